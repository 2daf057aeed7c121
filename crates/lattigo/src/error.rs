//! What keeps an object from being exchanged, and the remedy.

use sudare_exact::ExactError;
use sudare_he::HeError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;

/// An object that was not read or not written. Nothing was taken over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LattigoError {
    /// The bytes end too early.
    #[error("the {found} bytes end before the object; copy or send it again")]
    Truncated {
        /// Bytes that are there.
        found: usize,
    },
    /// Bytes after the end of the object.
    #[error("the object has {expected} bytes and {found} are there; hand over the object alone")]
    Trailing {
        /// The object's length.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// A count that the parameters do not have: another object, another set, or damage.
    #[error(
        "{what}: there are {found}, and these parameters have {expected}; check that the object is of this kind and \
         of these parameters"
    )]
    Size {
        /// What is counted.
        what: &'static str,
        /// The count found.
        found: u64,
        /// The only count that is possible, or the largest.
        expected: u64,
    },
    /// A residue that is not below its modulus.
    #[error(
        "residue {index} modulo the prime {prime} is not below it; the object is damaged or belongs to other \
         parameters; copy or send it again"
    )]
    Coefficient {
        /// The prime.
        prime: u64,
        /// Position of the residue.
        index: usize,
    },
    /// Text that is not what Lattigo writes.
    #[error("{what} is not as Lattigo writes it: {reason}")]
    Text {
        /// Which text.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// What one of both libraries has and the other has not.
    #[error("{what} cannot be exchanged: {reason}")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// Why not, and what would do.
        reason: String,
    },
    /// A bound that is no number above zero.
    #[error(
        "the {what} of a ciphertext from outside is {found}; give a finite number of at least 0 that is a true bound"
    )]
    Claim {
        /// Which bound.
        what: &'static str,
        /// The bound given.
        found: f64,
    },
    /// What all schemes share refused it.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// CKKS refused it.
    #[error(transparent)]
    Ckks(HeError),
    /// BFV or BGV refused it.
    #[error(transparent)]
    Exact(ExactError),
}

impl Kinded for LattigoError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Truncated { .. }
            | Self::Trailing { .. }
            | Self::Size { .. }
            | Self::Coefficient { .. }
            | Self::Text { .. } => ErrorKind::Format,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Claim { .. } => ErrorKind::Input,
            Self::Rlwe(e) => e.kind(),
            Self::Ckks(e) => e.kind(),
            Self::Exact(e) => e.kind(),
        }
    }
}

impl From<RingError> for LattigoError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<HeError> for LattigoError {
    fn from(error: HeError) -> Self {
        match error {
            HeError::Rlwe(e) => Self::Rlwe(e),
            HeError::Exact(e) => e.into(),
            e => Self::Ckks(e),
        }
    }
}

impl From<ExactError> for LattigoError {
    fn from(error: ExactError) -> Self {
        match error {
            ExactError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Exact(e),
        }
    }
}

pub(crate) fn unsupported(what: &'static str, reason: impl Into<String>) -> LattigoError {
    LattigoError::Unsupported { what, reason: reason.into() }
}
