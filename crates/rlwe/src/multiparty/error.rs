//! What can be wrong between parties, and who it is.

use super::{MAX_PARTIES, SessionId};
use crate::error::RlweError;
use crate::release::ReleasePolicy;
use crate::wire::WireError;
use sudare_ring::{ErrorKind, Kinded, RingError};

/// A step of several parties that was refused. Nothing was sent or taken over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartyError {
    /// What all schemes share refused its input.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A session that cannot be.
    #[error(
        "a session of {parties} parties, any {threshold} of which decrypt: take 2 to {MAX_PARTIES} parties (parameters whose secret is a TernarySum say how many) and a threshold from 2 to their number"
    )]
    Session {
        /// Parties of the parameters.
        parties: u32,
        /// Threshold asked for.
        threshold: u32,
    },
    /// A number that no party has.
    #[error("there is no party {party} among {parties}; they are numbered from 0")]
    NoSuchParty {
        /// The number.
        party: u32,
        /// How many there are.
        parties: u32,
    },
    /// Bytes that are no message.
    #[error("party {party} sent a message that cannot be read: {error}; ask that party to send it again")]
    Malformed {
        /// Who sent it.
        party: u32,
        /// What is wrong.
        error: WireError,
    },
    /// A message of another session.
    #[error("party {party} sent a message of another session, and this one is {expected}; ask for one of this session")]
    Foreign {
        /// Who sent it.
        party: u32,
        /// The session of this step.
        expected: SessionId,
    },
    /// The caller's own mix-up: a party, a ledger, a question or collected messages of another session or of another party.
    #[error(
        "{what} belongs to another session, question or party than the rest of this call; take those that belong together"
    )]
    WrongSession {
        /// What does not belong.
        what: &'static str,
    },
    /// A message that answers something else.
    #[error(
        "party {party} answered another question than this one: another round, ciphertext, set of parties or list of keys; ask that party again"
    )]
    Stale {
        /// Who sent it.
        party: u32,
    },
    /// A message in another party's name.
    #[error("party {party} sent a message of party {found}; ask that party for its own")]
    InAnothersName {
        /// Who sent it.
        party: u32,
        /// Whose it says it is.
        found: u32,
    },
    /// A secret share that is for another party.
    #[error(
        "party {party} sent a secret share for party {to}; ask that party for yours, and let nobody else read this one"
    )]
    ForAnother {
        /// Who sent it.
        party: u32,
        /// Whom it is for.
        to: u32,
    },
    /// A second, different message of one party.
    #[error("party {party} sent two messages where one belongs; take one of them")]
    Twice {
        /// Who sent them.
        party: u32,
    },
    /// A party that does not take part in this step.
    #[error("party {party} does not take part in this step; ask again with a set of parties that has it")]
    NotActive {
        /// The party.
        party: u32,
    },
    /// Another number of parties than the threshold, or one twice.
    #[error(
        "{found} different parties are asked, and exactly {threshold}, the threshold, take part in a step; ask that \
         many, each once"
    )]
    ActiveSet {
        /// Different parties that are asked.
        found: usize,
        /// The threshold.
        threshold: u32,
    },
    /// Messages that have not come.
    #[error(
        "messages of parties {parties:?} are missing; wait for them; keys need all parties, and a result all who were asked"
    )]
    Missing {
        /// Whose.
        parties: Vec<u32>,
    },
    /// A party that has not got its secret share yet.
    #[error(
        "party {party} has not added the secret shares of all parties yet, and a threshold below their number needs them: call add_private_shares"
    )]
    NoSecretShare {
        /// The party.
        party: u32,
    },
    /// A question whose subject was answered otherwise before: two answers can give the secret away.
    #[error(
        "party {party} has answered for this ciphertext before, to another set of parties or for another purpose, and two answers can give its secret away; ask with the first question, which gets the same answer again, or let the ciphertext be computed anew"
    )]
    Answered {
        /// The party that refuses.
        party: u32,
    },
    /// More releases than were declared.
    #[error("{} releases were declared for this session and all are used; a new session with new keys is needed", policy.releases())]
    UsedUp {
        /// What was declared.
        policy: ReleasePolicy,
    },
    /// A release by another policy than the first.
    #[error("the first release of this session declared {} of {} bits, and {} of {} bits are asked for; declare the \
             same, or make a new session", declared.releases(), declared.security_bits(), wanted.releases(), wanted.security_bits())]
    OtherPolicy {
        /// The session's policy.
        declared: ReleasePolicy,
        /// The policy asked for.
        wanted: ReleasePolicy,
    },
    /// A ledger that could not be read or written: nothing is answered without it.
    #[error("the ledger of answers failed, and nothing is answered without it: {reason}")]
    Ledger {
        /// What happened, and where.
        reason: String,
        /// What kind of refusal that is.
        kind: ErrorKind,
    },
    /// A part of a ciphertext's coefficients that there is not.
    #[error(
        "every {gap}-th coefficient of degree {degree}: the gap is a power of two that leaves {least} coefficients or more"
    )]
    Gap {
        /// What was asked for.
        gap: usize,
        /// N.
        degree: usize,
        /// Fewest coefficients.
        least: usize,
    },
    /// A receiver's public key over other primes.
    #[error(
        "the receiver's public key is over other primes than the session's; make one of a set with the same ring and the same bits of primes"
    )]
    Receiver,
}

impl From<RingError> for PartyError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl Kinded for PartyError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Session { .. } => ErrorKind::Parameters,
            Self::NoSuchParty { .. } | Self::Gap { .. } => ErrorKind::Usage,
            Self::Malformed { error, .. } => error.kind(),
            Self::Foreign { .. }
            | Self::WrongSession { .. }
            | Self::ForAnother { .. }
            | Self::Stale { .. }
            | Self::InAnothersName { .. }
            | Self::Twice { .. }
            | Self::NotActive { .. }
            | Self::Receiver => ErrorKind::Mismatch,
            Self::ActiveSet { .. } | Self::Missing { .. } => ErrorKind::Shape,
            Self::NoSecretShare { .. } => ErrorKind::MissingKey,
            Self::Answered { .. } | Self::UsedUp { .. } | Self::OtherPolicy { .. } => ErrorKind::Release,
            Self::Ledger { kind, .. } => *kind,
        }
    }
}
