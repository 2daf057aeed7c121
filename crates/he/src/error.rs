//! What can go wrong with an encrypted computation, and the remedy.

use sudare_exact::ExactError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::PartyError;
use sudare_rlwe::wire::WireError;
use sudare_tfhe::TfheError;

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HeError {
    /// What all schemes share refused its input.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A step of several parties was refused.
    #[error(transparent)]
    Party(#[from] PartyError),
    /// BFV or BGV refused its ciphertexts.
    #[error(transparent)]
    Exact(ExactError),
    /// TFHE refused its ciphertexts or keys.
    #[error(transparent)]
    Tfhe(TfheError),
    /// Operands whose scales differ by more than their noise.
    #[error(
        "{operation}: the scales 2^{left:.8} and 2^{right:.8} differ; rescale both alike, encode at the other's \
         scale, or change one by set_scale"
    )]
    ScaleMismatch {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the left scale.
        left: f64,
        /// log2 of the right scale.
        right: f64,
    },
    /// A value or result that the modulus cannot hold.
    #[error(
        "{operation}: a value of up to 2^{value:.1} at scale 2^{scale:.1} does not fit the {modulus:.0} bits of the modulus at level {level}; rescale, lower the scale or the value bound, or stay at a higher level"
    )]
    TooLarge {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the value bound.
        value: f64,
        /// log2 of the scale.
        scale: f64,
        /// log2 of the modulus.
        modulus: f64,
        /// Level.
        level: usize,
    },
    /// Noise that would swallow the message.
    #[error(
        "{operation}: the noise bound 2^{noise:.1} reaches the scale 2^{scale:.1}; use a larger scale or fewer operations"
    )]
    NoPrecision {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the noise bound.
        noise: f64,
        /// log2 of the scale.
        scale: f64,
    },
    /// NaN or infinity in the input.
    #[error("value {index} of the input is not a finite number; replace it or leave it out")]
    NotFinite {
        /// Position of the first such value.
        index: usize,
    },
    /// A polynomial that cannot stand for a function as it was asked to.
    #[error("{reason}")]
    Approximation {
        /// Why not, and what would do.
        reason: String,
    },
    /// A result that the noise could have changed.
    #[error(
        "{operation}: the result decrypts for certain with a modulus of {needed:.1} bits, and q has {modulus:.1}; \
         compute less on these ciphertexts, or take parameters with a larger q"
    )]
    MayDecryptWrongly {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the modulus that the static bound asks for.
        needed: f64,
        /// log2 of q.
        modulus: f64,
    },
    /// A ciphertext longer than the parameters allow.
    #[error(
        "{operation} gives a ciphertext of {parts} parts, and the parameters allow {most}; take a larger max_length"
    )]
    TooManyParts {
        /// The refused operation.
        operation: &'static str,
        /// Parts of the result.
        parts: usize,
        /// Most parts allowed.
        most: usize,
    },
    /// A coefficient that is not below the plaintext modulus.
    #[error(
        "coefficient {index} of the plaintext is not below t = {t} in absolute value; reduce it first, or take a larger t"
    )]
    NotModulo {
        /// Position of the first such coefficient.
        index: usize,
        /// The plaintext modulus.
        t: u64,
    },
    /// An integer that is not below its modulus.
    #[error("{what} {index} is not below the modulus {modulus}; reduce it first, or take a larger modulus")]
    NotBelow {
        /// What it is: a value, a table's value.
        what: &'static str,
        /// Its position.
        index: usize,
        /// The modulus.
        modulus: u64,
    },
    /// A table that does not say what becomes of each integer.
    #[error("a table has {found} values, and integers modulo {modulus} need one for each of 0 to {modulus} − 1")]
    TableLength {
        /// Values given.
        found: usize,
        /// The modulus.
        modulus: u64,
    },
}

impl Kinded for HeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Party(e) => e.kind(),
            Self::Exact(e) => e.kind(),
            Self::Tfhe(e) => e.kind(),
            Self::ScaleMismatch { .. }
            | Self::TooLarge { .. }
            | Self::NoPrecision { .. }
            | Self::MayDecryptWrongly { .. } => ErrorKind::Precision,
            Self::NotFinite { .. } | Self::Approximation { .. } | Self::NotModulo { .. } | Self::NotBelow { .. } => {
                ErrorKind::Input
            }
            Self::TooManyParts { .. } | Self::TableLength { .. } => ErrorKind::Shape,
        }
    }
}

impl From<RingError> for HeError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<TfheError> for HeError {
    fn from(error: TfheError) -> Self {
        match error {
            TfheError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Tfhe(e),
        }
    }
}

impl From<HeError> for WireError {
    fn from(error: HeError) -> Self {
        match error {
            HeError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Object(e.into()),
        }
    }
}

/// Parameters, or an object that its parameters cannot have, refused for a reason.
pub(crate) fn parameters(reason: impl Into<String>) -> HeError {
    RlweError::Parameters { reason: reason.into() }.into()
}
