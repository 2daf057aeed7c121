//! What a party has answered: kept where a crash, a restart and a loss of power do not reach.

use super::{Digest, PartyError, SessionId};
use crate::release::ReleasePolicy;

/// An answer that a party is about to give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The session.
    pub session: SessionId,
    /// The party that answers.
    pub party: u32,
    /// What its secret is multiplied with. One subject has one answer, for good.
    pub subject: Digest,
    /// The question. The same one is answered by the same bytes.
    pub question: Digest,
    /// The policy that the answer is one release of; `None` for steps that release nothing.
    pub policy: Option<ReleasePolicy>,
}

/// Remembers what a party answered. Two shares of one party for one ciphertext, for two sets of parties or with fresh noise,
/// reveal its secret (ePrint 2024/194, 2025/409, 2026/031); so a subject has one answer.
///
/// `sudare_store::PartyLedger` keeps it on a disk.
pub trait Ledger {
    /// Admits an answer. It returns when the entry outlives a loss of power, and only then is anything sent. An entry that
    /// is there already is admitted again and not counted again.
    ///
    /// # Errors
    /// [`PartyError::Answered`] for a subject with another question; [`PartyError::UsedUp`], [`PartyError::OtherPolicy`];
    /// [`PartyError::Ledger`] if it cannot be read or written.
    fn admit(&mut self, entry: &Entry) -> Result<(), PartyError>;
}
