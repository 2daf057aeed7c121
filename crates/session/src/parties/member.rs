//! A party, or a receiver of results, with the folder that it keeps.

use super::messages::Messages;
use super::opening::{Opened, Openings};
use super::request::Request;
use super::room::{Room, Step, check_name, damaged};
use super::seal::Sealing;
use crate::{Encrypted, PublicClient};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_methods::MatrixError;
use sudare_ring::Threads;
use sudare_ring::random::Seed;
use sudare_rlwe::multiparty::{DecryptionShare, Party, PartyError, PrivateShare};
use sudare_rlwe::wire::{Wire, WireError, peek};
use sudare_store::atomic::{self, Access, Durability, Over};
use sudare_store::{PartyLedger, StoreError};
use zeroize::Zeroizing;

/// Seed of the key that others encrypt to, and the name.
const SEAT: &str = "seat";
const PARTY: &str = "party";
const LEDGER: &str = "ledger";
const SEED_BYTES: usize = 32;
const MAX_SEAT: u64 = (SEED_BYTES + super::MAX_NAME) as u64;

/// A party of a session, or somebody who only receives results, with the folder that it keeps for itself. One process at a time has a party.
pub struct Member {
    room: Room,
    home: PathBuf,
    name: String,
    sealing: Sealing,
    own: Option<(Party, PartyLedger)>,
    threads: Threads,
}

impl Member {
    /// Joins under a name: that of a party, or another to receive results. The first time this makes `home`, a folder that nobody else reads and that
    /// goes into no backup; afterwards it goes on from there. On `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// [`StoreError::Exists`] where somebody else has joined under the name; [`StoreError::Busy`] while another process has the party;
    /// [`StoreError::NotAStore`] for a party whose ledger is gone; [`StoreError::Io`] for a folder that other users reach; [`MatrixError::NotPlanned`] for what is no name, or another than the folder's.
    pub fn join(messages: Arc<dyn Messages>, name: &str, home: &Path, threads: usize) -> Result<Self, MatrixError> {
        check_name(name)?;
        let room = Room::open(messages)?;
        atomic::make_private_folder(home)?;
        atomic::require_private(home)?;
        let seat = home.join(SEAT);
        if !seat.exists() {
            let mut seed = Zeroizing::new([0; SEED_BYTES]);
            Seed::from_entropy()?.stream(0).fill_bytes(&mut *seed);
            // Where another process was quicker, its seat is read below.
            atomic::write_new(&seat, &[&*seed, name.as_bytes()], Access::Owner)?;
        }
        let (sealing, own) = seated(home)?;
        if own != name {
            let planned = format!("this folder is {own}'s; name another, or join as {own}");
            return Err(MatrixError::NotPlanned { operation: "a party of this name", planned });
        }
        room.post(&Room::file(Step::Join, name), &sealing.key().to_bytes())?;
        Self::of(room, home, threads)
    }

    /// Goes on from the folder that [`Member::join`] made.
    ///
    /// # Errors
    /// As [`Member::join`]; [`StoreError::Io`] where there is no such folder.
    pub fn open(messages: Arc<dyn Messages>, home: &Path, threads: usize) -> Result<Self, MatrixError> {
        Self::of(Room::open(messages)?, home, threads)
    }

    fn of(room: Room, home: &Path, threads: usize) -> Result<Self, MatrixError> {
        let (sealing, name) = seated(home)?;
        let own = room.index(&name).map(|index| party(&room, index, home)).transpose()?;
        let (home, threads) = (home.into(), Threads::new(threads));
        Ok(Self { room, home, name, sealing, own, threads })
    }

    /// The messages that all see.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What others see of the key that they encrypt to, to be compared by another way than the folder.
    pub fn fingerprint(&self) -> String {
        self.sealing.key().fingerprint()
    }

    /// Releases that the party answered, of those that are declared; none for who only receives.
    pub fn releases(&self) -> u64 {
        self.own.as_ref().map_or(0, |(_, ledger)| ledger.releases())
    }

    /// Sends every message of key generation that this party can send by now, and takes over what came for it. To be called until [`Room::missing`] is
    /// empty at all parties; a call that has nothing to do changes nothing.
    ///
    /// # Errors
    /// [`MatrixError::Messages`] that names a party, for messages that are malformed, foreign or stale; [`StoreError::Exists`] for a message in this party's name that
    /// is not its own.
    pub fn round(&mut self) -> Result<(), MatrixError> {
        let room = self.room.clone();
        room.named(|| self.send(&room))
    }

    fn send(&mut self, room: &Room) -> Result<(), MatrixError> {
        let (demand, name) = (room.demand(), self.name.clone());
        let (party, ledger) = own(&mut self.own, &self.name)?;
        let file = |step| Room::file(step, &name);
        let threads = &self.threads;
        if !room.has(&file(Step::PublicKey))? {
            room.post(&file(Step::PublicKey), &threads.run(|| party.public_key_share().to_bytes())?)?;
        }
        if !demand.galois.is_empty() && !room.has(&file(Step::Galois))? {
            let share = threads.run(|| party.galois_share(&demand.galois))?;
            room.post(&file(Step::Galois), &share.to_bytes()?)?;
        }
        if let Some(level) = demand.relin {
            if !room.has(&file(Step::RelinFirst))? {
                let share = threads.run(|| party.relin_first_share(level))?;
                room.post(&file(Step::RelinFirst), &share.to_bytes()?)?;
            }
            let first = room.listed(Step::RelinFirst.name())?;
            let all_first = room.names().iter().all(|name| first.contains(&Room::file(Step::RelinFirst, name)));
            if all_first && !room.has(&file(Step::RelinSecond))? {
                let sum = threads.run(|| room.relin_sum(level))?;
                let share = threads.run(|| party.relin_second_share(&sum, ledger))?;
                room.post(&file(Step::RelinSecond), &share.to_bytes()?)?;
            }
        }
        self.secret_shares()
    }

    /// Sends this party's secret shares to those who have joined, and adds those of all others once they are there.
    fn secret_shares(&mut self) -> Result<(), MatrixError> {
        let (room, name) = (self.room.clone(), self.name.clone());
        let Some((party, _)) = &mut self.own else { return Ok(()) };
        if room.session().threshold() == room.session().parties() {
            return Ok(());
        }
        let (joined, sent) = (room.listed(Step::Join.name())?, room.listed(Step::Secret.name())?);
        let unsent =
            |to: &String| joined.contains(&Room::file(Step::Join, to)) && !sent.contains(&Room::secret_file(&name, to));
        if room.names().iter().any(unsent) {
            for share in self.threads.run(|| party.private_shares()) {
                let to = &room.names()[share.to() as usize];
                if unsent(to) {
                    let context = context(&room, &Room::secret_file(&name, to));
                    let sealed = self.sealing.seal(&room.key_of(to)?, &context, &share.to_bytes()?)?;
                    room.post(&Room::secret_file(&name, to), &sealed)?;
                }
            }
        }
        if party.can_decrypt() {
            return Ok(());
        }
        let files: Vec<String> = room.names().iter().map(|from| Room::secret_file(from, &name)).collect();
        let present = room.listed(Step::Secret.name())?;
        if !files.iter().all(|file| present.contains(file)) {
            return Ok(());
        }
        // The polynomial, and the key that two parties share.
        let limit = room.most_bytes(2);
        let receive = |(i, file): (usize, &String)| {
            let from = (i as u32, &room.key_of(&room.names()[i])?);
            let bytes = self.sealing.open(from, &context(&room, file), &room.get(file, limit)?)?;
            Ok(PrivateShare::receive(room.session(), i as u32, &bytes)?)
        };
        let shares = files.iter().enumerate().map(receive).collect::<Result<Vec<_>, MatrixError>>()?;
        party.add_private_shares(&shares)?;
        let path = self.home.join(PARTY);
        Ok(atomic::write(&path, &[&party.to_bytes()?], Access::Owner, Over::All, Durability::Power)?)
    }

    /// Encrypts under the common key, on the same number of threads.
    ///
    /// # Errors
    /// As [`Room::public_key`].
    pub fn client(&self) -> Result<PublicClient, MatrixError> {
        PublicClient::new(self.room.plan(), self.threads.run(|| self.room.public_key())?, self.threads.count())
    }

    /// Asks for a result's decryption where nobody has, and answers: this party's shares go to the receivers, encrypted to each. They are in the ledger before anybody has them; asked again, they are the same.
    /// `request` is whom this party agrees to decrypt with, and for whom; [`Room::asked`] has what somebody asked before. A refusal leaves no request behind.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where something else was asked, and before a receiver has joined; [`MatrixError::Messages`] of the kind `Mismatch` for a party that the request does not name, and
    /// of the kind `Release` for a ciphertext that was answered otherwise; `PartyError::UsedUp`; [`MatrixError::WrongPlan`]; `RlweError::NotAsComputed` for a result that states a smaller error than the plan.
    pub fn share(&mut self, value: &Encrypted, request: &Request) -> Result<(), MatrixError> {
        let room = self.room.clone();
        room.named(|| self.answer(value, request))
    }

    fn answer(&mut self, value: &Encrypted, request: &Request) -> Result<(), MatrixError> {
        let (party, _) = own(&mut self.own, &self.name)?;
        let party = party.index();
        self.secret_shares()?;
        self.room.check_request(request)?;
        if !request.parties.contains(&self.name) {
            return Err(PartyError::NotActive { party }.into());
        }
        let keys = request.receivers.iter().map(|to| self.room.key_of(to)).collect::<Result<Vec<_>, _>>()?;
        let openings = Openings::new(&self.room, value, request)?;
        // A request stands for good, so nothing is asked that this party could not answer.
        if self.room.request(value)?.is_none() {
            keys.iter().try_for_each(|key| self.sealing.seal(key, &[], &[]).map(drop))?;
            let (party, ledger) = own(&mut self.own, &self.name)?;
            self.threads.run(|| openings.shares(party, &mut ledger.rehearsal()).map(drop))?;
        }
        self.room.ask(value, request)?;
        let (party, ledger) = own(&mut self.own, &self.name)?;
        let shares = self.threads.run(|| openings.shares(party, ledger))?;
        let mut bytes = Zeroizing::new(Vec::new());
        for (i, share) in shares.iter().enumerate() {
            let one = Zeroizing::new(share.to_bytes()?);
            // Shares of a result are as long as the first, or shorter; a vector that grows leaves copies behind.
            bytes.reserve_exact(one.len() * (shares.len() - i));
            bytes.extend_from_slice(&one);
        }
        let result = Room::result_name(value)?;
        let present = self.room.listed(&Room::share_beginning(&result))?;
        for (to, key) in request.receivers.iter().zip(&keys) {
            let file = Room::share_file(&result, &self.name, to);
            if !present.contains(&file) {
                let sealed = self.sealing.seal(key, &context(&self.room, &file), &bytes)?;
                self.room.post(&file, &sealed)?;
            }
        }
        Ok(())
    }

    /// Opens a result for this receiver, from the shares of all parties that were asked. Elements are within what the plan promises; integers are exact.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where nothing was asked for this receiver; [`MatrixError::Messages`] that names the parties whose shares are missing, or the one
    /// whose share is damaged or foreign.
    pub fn combine(&self, value: &Encrypted) -> Result<Opened, MatrixError> {
        self.room.named(|| self.opened(value))
    }

    fn opened(&self, value: &Encrypted) -> Result<Opened, MatrixError> {
        let room = &self.room;
        let request = room.request(value)?.filter(|request| request.receivers.contains(&self.name));
        let request = request.ok_or_else(|| MatrixError::NotPlanned {
            operation: "this result",
            planned: format!("nobody was asked to decrypt it for {}; ask the parties first", self.name),
        })?;
        let (openings, result) = (Openings::new(room, value, &request)?, Room::result_name(value)?);
        let present = room.listed(&Room::share_beginning(&result))?;
        let mut shares: Vec<Vec<DecryptionShare>> = (0..openings.count()).map(|_| Vec::new()).collect();
        for name in &request.parties {
            let file = Room::share_file(&result, name, &self.name);
            let Some(index) = room.index(name).filter(|_| present.contains(&file)) else { continue };
            let sealed = room.get(&file, room.most_bytes(openings.count()))?;
            let malformed = |error: WireError| PartyError::Malformed { party: index, error };
            let early =
                || malformed(WireError::Corrupt { what: "a share that ends early, or has more than its ciphertexts" });
            let bytes = self.sealing.open((index, &room.key_of(name)?), &context(room, &file), &sealed)?;
            let mut rest = &bytes[..];
            for shares in &mut shares {
                let length = usize::try_from(peek(rest).map_err(malformed)?.total_bytes()).unwrap_or(usize::MAX);
                let (one, more) = rest.split_at_checked(length).ok_or_else(early)?;
                shares.push(DecryptionShare::receive(room.session(), index, one)?);
                rest = more;
            }
            if !rest.is_empty() {
                return Err(early().into());
            }
        }
        self.threads.run(|| openings.combine(room, value.node(), &shares))
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Member({} of session {}, hidden)", self.name, self.room.session().id())
    }
}

/// The party's part of the key and its ledger; refused to who only receives results.
fn own<'a>(own: &'a mut Option<(Party, PartyLedger)>, name: &str) -> Result<&'a mut (Party, PartyLedger), MatrixError> {
    let planned = format!("{name} receives results and holds no part of the key; let a party of the key do it");
    own.as_mut().ok_or(MatrixError::NotPlanned { operation: "a party's step", planned })
}

/// What an encrypted message is bound to: the session, and who says what to whom.
fn context(room: &Room, file: &str) -> Vec<u8> {
    [&room.session().id().0[..], file.as_bytes()].concat()
}

/// The key that others encrypt to, and the name, from the folder of who has joined.
fn seated(home: &Path) -> Result<(Sealing, String), MatrixError> {
    let seat = home.join(SEAT);
    [home, &seat].into_iter().try_for_each(atomic::require_private)?;
    let bytes = atomic::read_secret(&seat, MAX_SEAT)?;
    let no_seat = || damaged(&seat, "it does not hold a key and a name");
    let (seed, name) = bytes.split_first_chunk::<SEED_BYTES>().ok_or_else(no_seat)?;
    let name = std::str::from_utf8(name).map_err(|_| no_seat())?.to_owned();
    check_name(&name)?;
    Ok((Sealing::from_seed(seed), name))
}

/// A party from its folder, or a new one: its ledger is there before its secret, and its secret before any message.
fn party(room: &Room, index: u32, home: &Path) -> Result<(Party, PartyLedger), MatrixError> {
    let (session, secret, books) = (room.session(), home.join(PARTY), home.join(LEDGER));
    let open = || PartyLedger::open(&books, session.id(), index);
    if secret.exists() {
        let ledger = open()?;
        atomic::require_private(&secret)?;
        let bytes = atomic::read_secret(&secret, Party::largest_file(session))?;
        return Ok((Party::from_bytes(session, &bytes)?, ledger));
    }
    let said = Room::file(Step::PublicKey, &room.names()[index as usize]);
    if room.has(&said)? {
        return Err(damaged(
            &secret,
            "this party has sent messages, and its secret is missing; copy the file back, or begin a new session",
        )
        .into());
    }
    let ledger = match open() {
        Err(StoreError::NotAStore { .. }) => PartyLedger::create(&books, session.id(), index)?,
        opened => opened?,
    };
    let party = Party::generate(session, index)?;
    match atomic::write_new(&secret, &[&party.to_bytes()?], Access::Owner)? {
        true => Ok((party, ledger)),
        false => Err(StoreError::Busy { path: home.into() }.into()),
    }
}
