//! What can go wrong on encrypted bits and small integers.

use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TfheError {
    /// What all lattice schemes share refused its input: objects of different parameters or keys, or what
    /// the ring below refuses.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// A parameter that makes no sense.
    #[error("{reason}")]
    Parameters {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Noise too small for the security that was claimed.
    #[error(
        "{object}: noise of 2^{log_noise:.2} of the modulus in dimension {dimension} is under the 2^{limit:.2} that {claimed}-bit security needs; take a larger dimension or more noise, or ask for the security \"insecure\" by name"
    )]
    Insecure {
        /// The object whose noise it is.
        object: &'static str,
        /// log2 of the noise's standard deviation, as a fraction of the modulus.
        log_noise: f64,
        /// Dimension of its secret.
        dimension: usize,
        /// Smallest log2 that the claim allows.
        limit: f64,
        /// Security claimed, in bits.
        claimed: u32,
    },
    /// A failure probability over the declared bound.
    #[error(
        "a bootstrap fails with probability 2^{found:.1}, over the declared 2^{declared:.1}; declare a larger one, or \
         take parameters with less noise"
    )]
    FailureProbability {
        /// log2 of what the noise formulas give.
        found: f64,
        /// log2 of the bound.
        declared: f64,
    },
    /// Objects whose shapes do not go together.
    #[error("{what}: {found} was given, and {expected} is needed")]
    Shape {
        /// What has the wrong shape.
        what: &'static str,
        /// The number expected.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// Objects of different moduli.
    #[error(
        "a ciphertext is modulo {found}, and one modulo {expected} is needed; use what was made with one set of \
         parameters"
    )]
    Modulus {
        /// The modulus expected.
        expected: u64,
        /// The modulus found.
        found: u64,
    },
    /// A message or table value that the message space does not hold.
    #[error(
        "the message does not fit a space of {space} values, from 0 on; take a smaller one, or parameters with more \
         message bits"
    )]
    Message {
        /// The refused value.
        value: u64,
        /// Values that there are.
        space: u64,
    },
    /// Noise that further linear operations would push over the bound of the parameters.
    #[error(
        "{operation}: the noise would be {found} times that of a bootstrapped ciphertext, and the parameters allow {allowed}; bootstrap first"
    )]
    NoiseBudget {
        /// The refused operation.
        operation: &'static str,
        /// Noise of the result, in units of a bootstrapped ciphertext's (worst case, fully correlated).
        found: u64,
        /// Largest that a bootstrap takes.
        allowed: u64,
    },
    /// A value that could leave the carry space.
    #[error(
        "{operation}: values up to {found} do not fit the {space} values of message and carry; propagate carries first"
    )]
    CarrySpace {
        /// The refused operation.
        operation: &'static str,
        /// Largest value of the result.
        found: u64,
        /// Values that fit.
        space: u64,
    },
    /// A leveled operation whose result could decrypt wrongly.
    #[error(
        "{operation}: the result would decrypt wrongly with probability 2^{found:.1}, over the declared \
         2^{declared:.1}; take fewer steps, finer digits or a smaller message space, or bootstrap first"
    )]
    LeveledNoise {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the probability.
        found: f64,
        /// log2 of the bound.
        declared: f64,
    },
}

impl Kinded for TfheError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Parameters { .. } => ErrorKind::Unsupported,
            Self::Insecure { .. } => ErrorKind::Insecure,
            Self::Shape { .. } => ErrorKind::Shape,
            Self::Modulus { .. } => ErrorKind::Mismatch,
            Self::Message { .. } => ErrorKind::Input,
            Self::FailureProbability { .. }
            | Self::NoiseBudget { .. }
            | Self::CarrySpace { .. }
            | Self::LeveledNoise { .. } => ErrorKind::Precision,
        }
    }
}

impl From<RingError> for TfheError {
    fn from(error: RingError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<TfheError> for WireError {
    fn from(error: TfheError) -> Self {
        match error {
            TfheError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Object(e.into()),
        }
    }
}
