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

impl Entry {
    /// The rule of every ledger: whether the entry is new, and so has to be kept, given the question that its subject was answered for
    /// before, and the releases and their policy so far.
    ///
    /// # Errors
    /// [`PartyError::Answered`] for a subject with another question; [`PartyError::OtherPolicy`], [`PartyError::UsedUp`].
    pub fn is_new(
        &self,
        before: Option<Digest>,
        (releases, policy): (u64, Option<ReleasePolicy>),
    ) -> Result<bool, PartyError> {
        if let Some(before) = before {
            let party = self.party;
            return if before == self.question { Ok(false) } else { Err(PartyError::Answered { party }) };
        }
        if let Some(wanted) = self.policy {
            if let Some(declared) = policy.filter(|declared| *declared != wanted) {
                return Err(PartyError::OtherPolicy { declared, wanted });
            }
            if releases >= wanted.releases() {
                return Err(PartyError::UsedUp { policy: wanted });
            }
        }
        Ok(true)
    }
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
    /// As [`Entry::is_new`]; [`PartyError::WrongSession`] for an entry of another party or session than the ledger's;
    /// [`PartyError::Ledger`] if it cannot be read or written.
    fn admit(&mut self, entry: &Entry) -> Result<(), PartyError>;
}
