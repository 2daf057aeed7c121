//! A party's ledger of answers on a disk.

use crate::atomic::{self, Access};
use crate::error::{At, StoreError};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use sudare_ring::Kinded;
use sudare_rlwe::multiparty::{Digest, Entry, Ledger, PartyError, SessionId};
use sudare_rlwe::release::ReleasePolicy;

const OWNER: &str = "party";
const LOCK: &str = "lock";
const ANSWERS: &str = "answers";
/// Question, releases, bits of security, checksum.
const ENTRY_BYTES: usize = 32 + 8 + 4 + 32;

/// What one party answered: a folder with a file for each answer, named after its subject, which is on the disk before the answer
/// leaves the party. One process at a time has it: a fork of that process is refused, and so is it itself once its lock file is gone.
///
/// It belongs beside the party's file and into no backup: whoever goes back to an older one may answer twice.
#[derive(Debug)]
pub struct PartyLedger {
    folder: PathBuf,
    session: SessionId,
    party: u32,
    answers: BTreeMap<Digest, (Digest, Option<ReleasePolicy>)>,
    releases: u64,
    policy: Option<ReleasePolicy>,
    lock: File,
    /// The process that opened it. A lock is inherited by a fork, and what was answered since is not.
    process: u32,
}

impl PartyLedger {
    /// A new ledger for a party of a session, in a folder that is not there yet.
    ///
    /// # Errors
    /// [`StoreError::Exists`] for a folder with a ledger; [`StoreError::Io`].
    pub fn create(folder: &Path, session: SessionId, party: u32) -> Result<Self, StoreError> {
        let owner = folder.join(OWNER);
        let answers = folder.join(ANSWERS);
        fs::create_dir_all(&answers).at(&answers)?;
        let bytes = [&session.0[..], &party.to_le_bytes()].concat();
        if !atomic::write_new(&owner, &[&bytes], Access::Owner)? {
            return Err(StoreError::Exists { path: folder.into() });
        }
        atomic::sync_folder(atomic::folder(folder))?;
        Self::open(folder, session, party)
    }

    /// The ledger that [`PartyLedger::create`] made.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] where there is none, [`StoreError::OtherWork`] for that of another party or session,
    /// [`StoreError::Busy`] while another process has it, [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn open(folder: &Path, session: SessionId, party: u32) -> Result<Self, StoreError> {
        let owner = folder.join(OWNER);
        if fs::symlink_metadata(&owner).is_err() {
            return Err(StoreError::NotAStore { path: folder.into() });
        }
        let lock = atomic::own(&folder.join(LOCK))?.ok_or(StoreError::Busy { path: folder.into() })?;
        if fs::read(&owner).at(&owner)? != [&session.0[..], &party.to_le_bytes()].concat() {
            return Err(StoreError::OtherWork { path: folder.into() });
        }
        let mut ledger = Self {
            folder: folder.into(),
            session,
            party,
            answers: BTreeMap::new(),
            releases: 0,
            policy: None,
            lock,
            process: std::process::id(),
        };
        let answers = folder.join(ANSWERS);
        for entry in fs::read_dir(&answers).at(&answers)? {
            let path = entry.at(&answers)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // What a killed process left of an answer that it did not give.
            if name.starts_with('.') {
                continue;
            }
            let subject = digest(&name).ok_or_else(|| damaged(&path))?;
            let (question, policy) = stored(&path, &subject)?;
            ledger.note(subject, question, policy);
        }
        Ok(ledger)
    }

    /// Whether no other process can have this ledger.
    fn expect_alone(&self) -> Result<(), StoreError> {
        #[cfg(unix)]
        let named = {
            use std::os::unix::fs::MetadataExt;
            let path = self.folder.join(LOCK);
            let (own, there) = (self.lock.metadata().at(&path)?, fs::symlink_metadata(&path).at(&path)?);
            (own.dev(), own.ino()) == (there.dev(), there.ino())
        };
        #[cfg(not(unix))]
        let named = true;
        let alone = named && self.process == std::process::id();
        if alone { Ok(()) } else { Err(StoreError::Busy { path: self.folder.clone() }) }
    }

    /// Whether an entry is new and would be admitted, after so many more releases than there were.
    fn is_new(&self, entry: &Entry, more: u64) -> Result<bool, PartyError> {
        if (entry.session, entry.party) != (self.session, self.party) {
            return Err(PartyError::WrongSession { what: "the ledger" });
        }
        self.expect_alone().map_err(failed)?;
        let before = self.answers.get(&entry.subject).map(|(question, _)| *question);
        entry.is_new(before, (self.releases + more, self.policy))
    }

    /// What this ledger would admit, for whoever wants to know before anybody is asked.
    pub fn rehearsal(&self) -> Rehearsal<'_> {
        Rehearsal { ledger: self, releases: 0 }
    }

    fn note(&mut self, subject: Digest, question: Digest, policy: Option<ReleasePolicy>) {
        self.releases += u64::from(policy.is_some());
        self.policy = self.policy.or(policy);
        self.answers.insert(subject, (question, policy));
    }

    /// Releases so far.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// The policy that the first release fixed.
    pub fn policy(&self) -> Option<ReleasePolicy> {
        self.policy
    }
}

impl Drop for PartyLedger {
    fn drop(&mut self) {
        // Not by closing alone: a process that was forked meanwhile has the file open too. Nor by that one, whose lock it is not.
        if self.process == std::process::id() {
            let _ = self.lock.unlock();
        }
    }
}

impl Ledger for PartyLedger {
    fn admit(&mut self, entry: &Entry) -> Result<(), PartyError> {
        let Entry { party, subject, question, policy, .. } = *entry;
        if !self.is_new(entry, 0)? {
            return Ok(());
        }
        let path = self.folder.join(ANSWERS).join(subject.hex());
        if !atomic::write_new(&path, &[&write(&subject, &question, policy)], Access::Owner).map_err(failed)? {
            let (before, policy) = stored(&path, &subject).map_err(failed)?;
            atomic::sync_folder(&self.folder.join(ANSWERS)).map_err(failed)?;
            self.note(subject, before, policy);
            return if before == question { Ok(()) } else { Err(PartyError::Answered { party }) };
        }
        self.note(subject, question, policy);
        Ok(())
    }
}

/// A ledger that refuses what a [`PartyLedger`] would, counts what it admits, and keeps nothing: its answers may not leave the party.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    ledger: &'a PartyLedger,
    releases: u64,
}

impl Ledger for Rehearsal<'_> {
    fn admit(&mut self, entry: &Entry) -> Result<(), PartyError> {
        let new = self.ledger.is_new(entry, self.releases)?;
        self.releases += u64::from(new && entry.policy.is_some());
        Ok(())
    }
}

fn failed(error: StoreError) -> PartyError {
    PartyError::Ledger { reason: error.to_string(), kind: error.kind() }
}

fn damaged(path: &Path) -> StoreError {
    StoreError::damaged(path, "its record of an answer is not as it is written")
}

fn stored(path: &Path, subject: &Digest) -> Result<(Digest, Option<ReleasePolicy>), StoreError> {
    read(&fs::read(path).at(path)?, subject).ok_or_else(|| damaged(path))
}

fn checksum(subject: &Digest, body: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new_derive_key("sudare party ledger v1").update(&subject.0).update(body).finalize().as_bytes()
}

fn write(subject: &Digest, question: &Digest, policy: Option<ReleasePolicy>) -> Vec<u8> {
    let (releases, bits) = policy.map_or((0, 0), |policy| (policy.releases(), policy.security_bits()));
    let body = [&question.0[..], &releases.to_le_bytes(), &bits.to_le_bytes()].concat();
    let sum = checksum(subject, &body);
    [body, sum.to_vec()].concat()
}

fn read(bytes: &[u8], subject: &Digest) -> Option<(Digest, Option<ReleasePolicy>)> {
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    if bytes.len() != ENTRY_BYTES || checksum(subject, body) != *sum {
        return None;
    }
    let (question, rest) = body.split_first_chunk::<32>()?;
    let (releases, bits) = rest.split_first_chunk::<8>()?;
    let (releases, bits) = (u64::from_le_bytes(*releases), u32::from_le_bytes(bits.try_into().ok()?));
    let policy = match releases {
        0 => None,
        _ => Some(ReleasePolicy::new(releases, bits).ok()?),
    };
    Some((Digest(*question), policy))
}

/// A digest from its hexadecimal name.
fn digest(name: &str) -> Option<Digest> {
    let mut out = [0; 32];
    let lower = name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if name.len() != 64 || !lower {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(name.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Digest(out))
}
