//! What can be wrong with an expression or a plain matrix.

use sudare_ring::{ErrorKind, Kinded};

/// An expression or a matrix that was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExprError {
    /// An expression that makes no sense or is too large.
    #[error("expression: {reason}")]
    Expression {
        /// What is wrong with it.
        reason: String,
    },
    /// Shapes that do not go together.
    #[error("{operation}: shapes {}×{} and {}×{} do not go together", left.0, left.1, right.0, right.1)]
    Shapes {
        /// The refused operation.
        operation: &'static str,
        /// Rows and columns of the left operand.
        left: (usize, usize),
        /// Rows and columns of the right operand.
        right: (usize, usize),
    },
    /// More or fewer operands than an operation takes.
    #[error("{operation}: {found} operand(s) given, and it takes {expected}")]
    Operands {
        /// The refused operation.
        operation: &'static str,
        /// Number found.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// A matrix without elements, or with a number of elements that is not rows · columns.
    #[error("a {rows}×{cols} matrix cannot hold {elements} elements; give rows times columns of them, at least one")]
    Elements {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Elements given.
        elements: usize,
    },
    /// NaN or infinity.
    #[error("element ({row}, {col}) is not a finite number; replace or drop it first")]
    NotFinite {
        /// Row of the first such element.
        row: usize,
        /// Its column.
        col: usize,
    },
    /// An element over the bound that the plan declares.
    #[error("element ({row}, {col}) is over the planned bound {bound}; plan with a larger max_abs")]
    OverBound {
        /// Row of the first such element.
        row: usize,
        /// Its column.
        col: usize,
        /// The planned bound.
        bound: f64,
    },
    /// An integer that 128 bits do not hold.
    #[error("element ({row}, {col}) has more than 128 bits; declare smaller bounds")]
    TooLarge {
        /// Row of the first such element.
        row: usize,
        /// Its column.
        col: usize,
    },
}

impl Kinded for ExprError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Expression { .. } => ErrorKind::Parameters,
            Self::Shapes { .. } | Self::Operands { .. } | Self::Elements { .. } => ErrorKind::Shape,
            Self::NotFinite { .. } | Self::OverBound { .. } | Self::TooLarge { .. } => ErrorKind::Input,
        }
    }
}

pub(crate) fn refuse<T>(reason: String) -> Result<T, ExprError> {
    Err(ExprError::Expression { reason })
}
