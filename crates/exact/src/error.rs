//! What can go wrong with exact encrypted arithmetic, and the remedy.

use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::PartyError;
use sudare_rlwe::wire::WireError;

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExactError {
    /// What all schemes share refused its input.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A step of several parties was refused.
    #[error(transparent)]
    Party(#[from] PartyError),
    /// A ciphertext that is too noisy for a refresh, or for a table of its coefficients.
    #[error(
        "{operation} takes a noise bound of up to 2^{limit:.1} at level {level}, and this ciphertext would have 2^{noise:.1} there; do it earlier, after fewer products or additions"
    )]
    TooNoisy {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the ciphertext's noise bound at that level.
        noise: f64,
        /// log2 of the largest that is taken.
        limit: f64,
        /// Level.
        level: usize,
    },
    /// A mask that no honest ciphertext has but once in 2^54.
    #[error(
        "the second part of the ciphertext is not a random polynomial: its size is 2^{found:.1}, and 2^{limit:.1} is \
         the largest that is taken; no encryption made it, so ask for it again"
    )]
    NotUniform {
        /// log2 of its canonical norm modulo t².
        found: f64,
        /// log2 of the largest that is taken.
        limit: f64,
    },
    /// An integer that the plaintext modulus does not hold.
    #[error(
        "value {index} of the input is not among the {modulus} values that the plaintext modulus holds; take a larger modulus or several, or ask for values modulo it"
    )]
    DoesNotFit {
        /// Position of the first such value.
        index: usize,
        /// The plaintext modulus.
        modulus: u64,
    },
    /// Slots asked of a plaintext modulus that has none.
    #[error(
        "plaintext modulus {modulus} has no slots at N = {degree}: it is not a prime ≡ 1 modulo 2N; take such a \
         prime, or use coefficients"
    )]
    NoSlots {
        /// The plaintext modulus.
        modulus: u64,
        /// Ring degree.
        degree: usize,
    },
    /// A plaintext factor that no such ciphertext has.
    #[error(
        "a {scheme} ciphertext at level {level} has plaintext factor {expected}, and this one says {found}: it was changed on its way, or is of another scheme; ask for it again"
    )]
    WrongFactor {
        /// The scheme.
        scheme: &'static str,
        /// Level.
        level: usize,
        /// The factor found.
        found: u64,
        /// The factor that both sides compute.
        expected: u64,
    },
    /// A noise bound under what any ciphertext has.
    #[error(
        "the ciphertext states a noise bound of {found:.1}, and none at its level is under {least:.1}: it was changed on its way; ask for it again"
    )]
    NoiseTooSmall {
        /// The bound stated.
        found: f64,
        /// The least bound of a ciphertext that hides its message.
        least: f64,
    },
}

impl Kinded for ExactError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Party(e) => e.kind(),
            Self::TooNoisy { .. } => ErrorKind::Precision,
            Self::DoesNotFit { .. } => ErrorKind::Input,
            Self::NoSlots { .. } => ErrorKind::Parameters,
            Self::WrongFactor { .. } | Self::NoiseTooSmall { .. } | Self::NotUniform { .. } => ErrorKind::Format,
        }
    }
}

impl From<RingError> for ExactError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<ExactError> for WireError {
    fn from(error: ExactError) -> Self {
        match error {
            ExactError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Object(e.into()),
        }
    }
}

/// Parameters, or an object that its parameters cannot have, refused for a reason.
pub(crate) fn parameters(reason: impl Into<String>) -> ExactError {
    RlweError::Parameters { reason: reason.into() }.into()
}
