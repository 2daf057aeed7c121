//! Errors of packed operands.

use sudare_expr::ExprError;
use sudare_he::HeError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;

/// An operation on packed operands that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PackingError {
    /// The scheme below refused.
    #[error(transparent)]
    He(#[from] HeError),
    /// A plain matrix that was refused.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// Another number of ciphertexts or matrices than the packing takes.
    #[error("{what}: {found} were given, and the packing takes {expected}")]
    Count {
        /// The counted thing.
        what: &'static str,
        /// Number found.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// A packing that cannot serve a product.
    #[error("{method} cannot serve this product: {reason}")]
    Method {
        /// The packing's name.
        method: &'static str,
        /// Why, and what would do.
        reason: String,
    },
    /// A packing for which the parameters are too small.
    #[error(
        "{packing}: the parameters have {what} = {available}, and {needed} is the least that does; take larger \
         parameters"
    )]
    DoesNotFit {
        /// The packing.
        packing: &'static str,
        /// The part that is too small: N, t or the longest ciphertext.
        what: &'static str,
        /// Least value that would do.
        needed: u128,
        /// The value there is, or the largest that there can be.
        available: u64,
    },
    /// An integer that an entry of the packing cannot be.
    #[error("element ({row}, {col}) is not from {low} to {high}; make the packing for larger entries")]
    OutOfRange {
        /// Row of the first such element; 0 in a vector.
        row: usize,
        /// Its column.
        col: usize,
        /// Least entry.
        low: i128,
        /// Largest entry.
        high: i128,
    },
    /// An integer with more bits than the packing takes.
    #[error("an integer has {found} bits, and at most {most} fit; make the packing for more bits")]
    TooManyBits {
        /// Bits found.
        found: u64,
        /// Most bits.
        most: usize,
    },
    /// A matrix of another shape than the packing's.
    #[error("{what} is {}×{}, and the packing is for {}×{}; make a \
             packing for this shape", found.0, found.1, expected.0, expected.1)]
    PackedShape {
        /// The name of the matrix.
        what: &'static str,
        /// Rows and columns found.
        found: (usize, usize),
        /// Rows and columns that the packing takes.
        expected: (usize, usize),
    },
}

impl Kinded for PackingError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::He(e) => e.kind(),
            Self::Expr(e) => e.kind(),
            Self::Count { .. } | Self::PackedShape { .. } => ErrorKind::Shape,
            Self::OutOfRange { .. } | Self::TooManyBits { .. } => ErrorKind::Input,
            Self::Method { .. } | Self::DoesNotFit { .. } => ErrorKind::Parameters,
        }
    }
}

impl From<RlweError> for PackingError {
    fn from(error: RlweError) -> Self {
        Self::He(error.into())
    }
}

impl From<RingError> for PackingError {
    fn from(error: RingError) -> Self {
        Self::He(error.into())
    }
}

/// Parameters, or an object that its parameters cannot have, refused for a reason.
pub(crate) fn parameters(reason: impl Into<String>) -> HeError {
    RlweError::Parameters { reason: reason.into() }.into()
}
