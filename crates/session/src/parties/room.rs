//! The messages that all parties see.

use super::messages::Messages;
use super::request::{self, Asked, Request};
use super::seal::{KEY_BYTES, SealedKey};
use crate::client::require_plan;
use crate::encrypted::most_bytes;
use crate::{Encrypted, ServerKeys};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use sudare_exact::ExactError;
use sudare_he::HeError;
use sudare_methods::MatrixError;
use sudare_methods::product::KeyDemand;
use sudare_plan::{MAX_PLAN_BYTES, Plan};
use sudare_ring::Kinded;
use sudare_ring::random::MaskSeed;
use sudare_rlwe::keys::{EvalKeys, PublicKey};
use sudare_rlwe::multiparty::{
    Collector, Digest, Kind, PartyError, RelinSum, Session, Share, galois_keys, public_key, relin_key, relin_sum,
};
use sudare_rlwe::wire::{ALIGNMENT, MAX_HEADER_BYTES, Wire};
use sudare_store::StoreError;

/// Most characters of a name.
pub const MAX_NAME: usize = 32;
const PLAN: &str = "plan.json";
const NAMES: &str = "names";
const SESSION: &str = "session";

/// A step that parties send messages in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The key that others encrypt to.
    Join,
    /// A share of the public key.
    PublicKey,
    /// Shares of Galois keys.
    Galois,
    /// Round 1 of the relinearisation key.
    RelinFirst,
    /// Round 2, which answers the sum of round 1.
    RelinSecond,
    /// Secret shares, each encrypted to its receiver.
    Secret,
}

impl Step {
    /// How names of its files begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Join => "key",
            Self::PublicKey => "public",
            Self::Galois => "galois",
            Self::RelinFirst => "relin1",
            Self::RelinSecond => "relin2",
            Self::Secret => "secret",
        }
    }
}

/// Whose messages of a step have not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The step.
    pub step: Step,
    /// The parties, in their order.
    pub names: Vec<String>,
}

/// The messages that all parties see: nothing in them is secret.
#[derive(Clone, Debug)]
pub struct Room {
    messages: Arc<dyn Messages>,
    plan: Plan,
    session: Session,
    names: Vec<String>,
}

pub(super) fn io_at<T>(path: &Path, result: std::io::Result<T>) -> Result<T, StoreError> {
    result.map_err(|e| StoreError::Io { path: path.into(), kind: e.kind(), reason: e.to_string() })
}

pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Damaged { path: path.into(), what: what.into() }
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(plain)
}

/// Whether every party has a name of its own, also where a disk takes capitals and small letters for one.
fn are_names(names: &[String], parties: u32) -> bool {
    let different: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
    names.len() == parties as usize && different.len() == names.len() && names.iter().all(|name| is_name(name))
}

/// Refuses what cannot be a part of a file's name.
pub(super) fn check_name(name: &str) -> Result<(), MatrixError> {
    if is_name(name) {
        return Ok(());
    }
    let planned = format!("\"{name}\" is not a name; take 1 to {MAX_NAME} letters without accents, digits and _");
    Err(MatrixError::NotPlanned { operation: "a party of this name", planned })
}

impl Room {
    /// Begins a session: puts plan, names of the parties in their order, and seed where all see them. They are public; a room is for one key.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a plan whose key has one owner, other names than the plan has parties, or what is no name;
    /// [`StoreError::Exists`] where there is a session already.
    pub fn create(messages: Arc<dyn Messages>, plan: &Plan, names: &[String]) -> Result<Self, MatrixError> {
        let sharing = plan.shared()?;
        names.iter().try_for_each(|name| check_name(name))?;
        if !are_names(names, sharing.parties) {
            let planned = format!("the key has {} parties; give each a name of its own", sharing.parties);
            return Err(MatrixError::NotPlanned { operation: "a session of these parties", planned });
        }
        let session = Session::new(plan.params(), sharing.threshold, MaskSeed::from_entropy()?)?;
        let room = Self { messages, plan: plan.clone(), session, names: names.to_vec() };
        room.post(PLAN, plan.to_json()?.as_bytes())?;
        room.post(NAMES, names.join("\n").as_bytes())?;
        // The last: with it the room is whole.
        room.post(SESSION, &room.session.to_bytes()?)?;
        Ok(room)
    }

    /// The session that [`Room::create`] began.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] where there is none; what is refused of a plan or session.
    pub fn open(messages: Arc<dyn Messages>) -> Result<Self, MatrixError> {
        if !messages.names(SESSION)?.contains(SESSION) {
            return Err(StoreError::NotAStore { path: messages.place("") }.into());
        }
        let text = |name: &str, limit: u64| -> Result<String, MatrixError> {
            let bytes = messages.get(name, limit)?;
            String::from_utf8(bytes).map_err(|_| damaged(&messages.place(name), "it is not text").into())
        };
        let plan = Plan::from_json(&text(PLAN, MAX_PLAN_BYTES as u64)?)?;
        let names: Vec<String> = text(NAMES, request::MAX_BYTES)?.lines().map(str::to_owned).collect();
        let session = Session::from_bytes(plan.params(), &messages.get(SESSION, request::MAX_BYTES)?)?;
        let sharing = plan.shared()?;
        if !are_names(&names, sharing.parties) || session.threshold() != sharing.threshold {
            return Err(damaged(&messages.place(NAMES), "names and session do not fit the plan").into());
        }
        Ok(Self { messages, plan, session, names })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Parameters, threshold and seed.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Names of the parties, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a party, if the name is one's.
    pub fn index(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|own| own == name).map(|i| i as u32)
    }

    /// Work whose refusals name the parties that they number.
    pub(super) fn named<T>(&self, work: impl FnOnce() -> Result<T, MatrixError>) -> Result<T, MatrixError> {
        work().map_err(|error| {
            let (MatrixError::He(HeError::Party(found)) | MatrixError::Exact(ExactError::Party(found))) = &error else {
                return error;
            };
            match self.words(found) {
                Some(words) => MatrixError::Messages { kind: found.kind(), words },
                None => error,
            }
        })
    }

    /// A refusal of a party or of its message, for who knows the parties by their names; none for what numbers no party.
    fn words(&self, error: &PartyError) -> Option<String> {
        let of = |party: &u32| self.names.get(*party as usize).cloned().unwrap_or_else(|| format!("party {party}"));
        let again =
            |name: &str| format!("wait and do this again; if it stays so, remove it and let {name} send it anew");
        Some(match error {
            PartyError::Malformed { party, error } => {
                let name = of(party);
                format!("a message of {name} is damaged, or it has not arrived completely: {error}; {}", again(&name))
            }
            PartyError::Foreign { party, .. } => {
                format!("a message of {0} is of another session; let {0} say where it found this one", of(party))
            }
            PartyError::Stale { party } => format!(
                "{0} answered another question than this one: another round, ciphertext or set of parties; ask {0} again",
                of(party)
            ),
            PartyError::InAnothersName { party, found } => {
                format!("a message of {} is {}'s; {}", of(party), of(found), again(&of(party)))
            }
            PartyError::ForAnother { party, to } => format!(
                "{0} sent a secret share that is for {1}; ask {0} for yours, and let nobody else read this one",
                of(party),
                of(to)
            ),
            PartyError::NotActive { party } => format!(
                "{0} is not among the parties that decrypt this; ask with {0} among them, or let one of them ask",
                of(party)
            ),
            PartyError::Missing { parties } => {
                let names: Vec<String> = parties.iter().map(of).collect();
                format!(
                    "messages of {} have not come; wait for them: keys need all parties, and a result all that were asked",
                    names.join(", ")
                )
            }
            PartyError::NoSecretShare { party } => format!(
                "{} has not got the secret shares of all parties yet; let each make its rounds until nobody is missing",
                of(party)
            ),
            PartyError::Answered { party } => format!(
                "{} has answered for this ciphertext before, with other parties or for another purpose, and two answers can give its secret away; ask as then, or let the result be computed anew from fresh encryptions",
                of(party)
            ),
            _ => return None,
        })
    }

    pub(super) fn demand(&self) -> KeyDemand {
        self.plan.engine().keys()
    }

    /// Names of the messages that are there and begin so.
    pub(super) fn listed(&self, beginning: &str) -> Result<BTreeSet<String>, MatrixError> {
        self.messages.names(beginning)
    }

    pub(super) fn has(&self, file: &str) -> Result<bool, MatrixError> {
        Ok(self.listed(file)?.contains(file))
    }

    /// A message, which is there whole or not at all.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where another one is.
    pub(super) fn post(&self, file: &str, bytes: &[u8]) -> Result<(), MatrixError> {
        match self.messages.post(file, bytes)? {
            true => Ok(()),
            false => Err(StoreError::Exists { path: self.messages.place(file) }.into()),
        }
    }

    /// A message of at most so many bytes.
    pub(super) fn get(&self, file: &str, limit: u64) -> Result<Vec<u8>, MatrixError> {
        self.messages.get(file, limit)
    }

    fn value_file(name: &str) -> Result<String, MatrixError> {
        check_name(name)?;
        Ok(format!("value-{name}"))
    }

    /// Puts an encrypted value where all see it, under a name of its own.
    ///
    /// # Errors
    /// [`StoreError::Exists`] where another one is; [`MatrixError::NotPlanned`] for what is no name; [`MatrixError::WrongPlan`].
    pub fn put(&self, name: &str, value: &Encrypted) -> Result<(), MatrixError> {
        require_plan(self.plan.hash(), value)?;
        self.post(&Self::value_file(name)?, &value.to_bytes()?)
    }

    /// The encrypted value of a name, where it has been put.
    ///
    /// # Errors
    /// What is refused of a value of the plan.
    pub fn value(&self, name: &str) -> Result<Option<Encrypted>, MatrixError> {
        let file = Self::value_file(name)?;
        if !self.has(&file)? {
            return Ok(None);
        }
        Encrypted::from_bytes(&self.plan, &self.get(&file, most_bytes(&self.plan))?).map(Some)
    }

    /// More bytes than any message of so many polynomials has, encrypted or not: a word for each residue, and what stands around them.
    pub(super) fn most_bytes(&self, polynomials: usize) -> u64 {
        let literal = self.session.params().literal();
        let words = ((literal.q_bits.len() + literal.p_bits.len()) as u64) << literal.log_n;
        MAX_HEADER_BYTES as u64 + polynomials as u64 * (8 * words + 2 * ALIGNMENT)
    }

    pub(super) fn file(step: Step, name: &str) -> String {
        format!("{}-{name}", step.name())
    }

    pub(super) fn secret_file(from: &str, to: &str) -> String {
        format!("{}-{from}-{to}", Step::Secret.name())
    }

    /// Steps that the plan's keys take.
    fn steps(&self) -> Vec<Step> {
        let demand = self.demand();
        let wanted = |step: &Step| match step {
            Step::Join | Step::PublicKey => true,
            Step::Galois => !demand.galois.is_empty(),
            Step::RelinFirst | Step::RelinSecond => demand.relin.is_some(),
            Step::Secret => self.session.threshold() < self.session.parties(),
        };
        let all = [Step::Join, Step::PublicKey, Step::Galois, Step::RelinFirst, Step::RelinSecond, Step::Secret];
        all.into_iter().filter(wanted).collect()
    }

    /// Whose messages of key generation have not come, by step.
    ///
    /// # Errors
    /// Where messages cannot be listed.
    pub fn missing(&self) -> Result<Vec<Missing>, MatrixError> {
        let mut missing = Vec::new();
        for step in self.steps() {
            let present = self.listed(step.name())?;
            let sent = |name: &String| match step {
                Step::Secret => self.names.iter().all(|to| present.contains(&Self::secret_file(name, to))),
                step => present.contains(&Self::file(step, name)),
            };
            let names: Vec<String> = self.names.iter().filter(|name| !sent(name)).cloned().collect();
            if !names.is_empty() {
                missing.push(Missing { step, names });
            }
        }
        Ok(missing)
    }

    /// Who has joined: parties in their order, then those who only receive.
    ///
    /// # Errors
    /// Where messages cannot be listed.
    pub fn joined(&self) -> Result<Vec<String>, MatrixError> {
        let beginning = Self::file(Step::Join, "");
        let present = self.listed(&beginning)?;
        let found: BTreeSet<&str> = present.iter().filter_map(|file| file.strip_prefix(&beginning)).collect();
        let parties = self.names.iter().map(String::as_str).filter(|name| found.contains(name));
        let others = found.iter().copied().filter(|name| is_name(name) && self.index(name).is_none());
        Ok(parties.chain(others).map(str::to_owned).collect())
    }

    /// The public key that others encrypt to a name by.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where nobody of the name has joined.
    pub fn key_of(&self, name: &str) -> Result<SealedKey, MatrixError> {
        check_name(name)?;
        let file = Self::file(Step::Join, name);
        if !self.has(&file)? {
            let planned = format!("{name} has not joined; wait for it");
            return Err(MatrixError::NotPlanned { operation: "a message for this name", planned });
        }
        Ok(SealedKey::from_bytes(&self.get(&file, KEY_BYTES as u64)?)?)
    }

    /// All parties' messages of a step, added as they are read.
    fn collected<K: Kind>(&self, step: Step, mut collector: Collector<K>) -> Result<Collector<K>, MatrixError> {
        let params = self.session.params();
        // A share of a key has a polynomial for each digit, of round 1 of the relinearisation key two.
        let keys = if step == Step::Galois { self.demand().galois.len() } else { 2 };
        let limit = self.most_bytes(keys * params.digits_at(params.max_level()));
        let present = self.listed(step.name())?;
        for (i, name) in self.names.iter().enumerate() {
            let file = Self::file(step, name);
            if present.contains(&file) {
                collector.add(&Share::<K>::receive(&self.session, i as u32, &self.get(&file, limit)?)?)?;
            }
        }
        Ok(collector)
    }

    /// The key to encrypt by.
    ///
    /// # Errors
    /// [`MatrixError::Messages`] that names the parties whose messages are missing, or the one whose message is damaged or foreign.
    pub fn public_key(&self) -> Result<PublicKey, MatrixError> {
        self.named(|| Ok(self.collected(Step::PublicKey, public_key(&self.session))?.public_key()?))
    }

    /// The sum that round 2 of the relinearisation key answers.
    pub(super) fn relin_sum(&self, level: usize) -> Result<RelinSum, MatrixError> {
        Ok(self.collected(Step::RelinFirst, relin_sum(&self.session, level)?)?.relin_sum()?)
    }

    /// The keys of a server.
    ///
    /// # Errors
    /// As [`Room::public_key`].
    pub fn server_keys(&self) -> Result<ServerKeys, MatrixError> {
        self.named(|| self.combined())
    }

    fn combined(&self) -> Result<ServerKeys, MatrixError> {
        let demand = self.demand();
        let mut keys = EvalKeys::new(self.session.params(), self.session.key());
        if let Some(level) = demand.relin {
            let sum = self.relin_sum(level)?;
            keys.set_relin(self.collected(Step::RelinSecond, relin_key(&sum))?.relin_key()?)?;
        }
        if !demand.galois.is_empty() {
            let galois = self.collected(Step::Galois, galois_keys(&self.session, &demand.galois)?)?.galois_keys()?;
            galois.into_iter().try_for_each(|key| keys.insert(key))?;
        }
        Ok(keys.into())
    }

    /// What a result is called in names of files: a digest of its bytes.
    pub(super) fn result_name(value: &Encrypted) -> Result<String, MatrixError> {
        let mut hasher = blake3::Hasher::new_derive_key("sudare party result v1");
        value.write_to(&mut hasher)?;
        Ok(Digest(*hasher.finalize().as_bytes()).hex()[..24].to_owned())
    }

    pub(super) fn share_beginning(result: &str) -> String {
        format!("share-{result}-")
    }

    pub(super) fn share_file(result: &str, from: &str, to: &str) -> String {
        format!("{}{from}-{to}", Self::share_beginning(result))
    }

    /// Who was asked to decrypt a result, and for whom, if anybody was.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for a request that is none; [`PartyError::ActiveSet`] for another number of parties than decrypt.
    pub fn request(&self, value: &Encrypted) -> Result<Option<Request>, MatrixError> {
        self.request_for(&Self::result_name(value)?)
    }

    /// What was asked for a result: to be agreed to by [`super::Member::share`], or not.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where nobody asked; as [`Room::request`].
    pub fn asked(&self, value: &Encrypted) -> Result<Request, MatrixError> {
        self.request(value)?.ok_or_else(|| MatrixError::NotPlanned {
            operation: "a share of this result",
            planned: "nobody has asked for it; say who decrypts it, and for whom".into(),
        })
    }

    /// All requests, in the order of their results' names.
    ///
    /// # Errors
    /// As [`Room::request`].
    pub fn requests(&self) -> Result<Vec<Asked>, MatrixError> {
        let (beginning, mut all) = (Self::request_file(""), Vec::new());
        for result in self.listed(&beginning)?.iter().filter_map(|file| file.strip_prefix(&beginning)) {
            if let Some(request) = self.request_for(result)? {
                let unanswered = self.waiting_for(result, &request)?;
                all.push(Asked { result: result.to_owned(), request, unanswered });
            }
        }
        Ok(all)
    }

    fn request_file(result: &str) -> String {
        format!("ask-{result}")
    }

    /// The request for the result of a name.
    fn request_for(&self, result: &str) -> Result<Option<Request>, MatrixError> {
        let file = Self::request_file(result);
        if !self.has(&file)? {
            return Ok(None);
        }
        let request = Request::from_bytes(&self.get(&file, request::MAX_BYTES)?)?;
        self.check_request(&request)?;
        Ok(Some(request))
    }

    pub(super) fn check_request(&self, request: &Request) -> Result<(), MatrixError> {
        request.check()?;
        request.receivers.iter().try_for_each(|name| check_name(name))?;
        let active = self.active(request)?;
        let threshold = self.session.threshold();
        if active.len() != threshold as usize {
            return Err(PartyError::ActiveSet { found: active.len(), threshold }.into());
        }
        Ok(())
    }

    /// Asks for a decryption, or finds that it was asked for alike: by the same parties for the same receivers, named in any order.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where others were asked, or for others; as [`Room::request`].
    pub fn ask(&self, value: &Encrypted, request: &Request) -> Result<(), MatrixError> {
        self.check_request(request)?;
        let result = Self::result_name(value)?;
        if self.request_for(&result)?.is_none() {
            // Where somebody was quicker, his is read below.
            self.messages.post(&Self::request_file(&result), &request.to_bytes()?)?;
        }
        match self.request_for(&result)? {
            Some(found) if found.names_the_same(request) => Ok(()),
            found => {
                let Request { parties, receivers } = found.unwrap_or_else(|| request.clone());
                let planned = format!(
                    "{} were asked for {}, and a ciphertext is answered once; ask them, or about a new ciphertext",
                    parties.join(", "),
                    receivers.join(", ")
                );
                Err(MatrixError::NotPlanned { operation: "this decryption", planned })
            }
        }
    }

    /// Numbers of the parties that a request names.
    pub(super) fn active(&self, request: &Request) -> Result<Vec<u32>, MatrixError> {
        let number = |name: &String| {
            self.index(name).ok_or_else(|| MatrixError::NotPlanned {
                operation: "a decryption by this name",
                planned: format!("{name} is not a party; the parties are {}", self.names.join(", ")),
            })
        };
        let mut active = request.parties.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        active.sort_unstable();
        Ok(active)
    }

    /// Parties whose shares of a result have not come for all receivers.
    ///
    /// # Errors
    /// As [`Room::request`].
    pub fn unanswered(&self, value: &Encrypted) -> Result<Vec<String>, MatrixError> {
        let result = Self::result_name(value)?;
        match self.request_for(&result)? {
            Some(request) => self.waiting_for(&result, &request),
            None => Ok(Vec::new()),
        }
    }

    fn waiting_for(&self, result: &str, request: &Request) -> Result<Vec<String>, MatrixError> {
        let present = self.listed(&Self::share_beginning(result))?;
        let answered =
            |from: &String| request.receivers.iter().all(|to| present.contains(&Self::share_file(result, from, to)));
        Ok(request.parties.iter().filter(|from| !answered(from)).cloned().collect())
    }
}
