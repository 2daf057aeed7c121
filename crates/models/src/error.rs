//! What can go wrong with a model, and the remedy.

use std::fmt;
use std::io;
use sudare_he::HeError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;

/// A node of a graph that is not computed on ciphertexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The node's name, or that of its result.
    pub layer: String,
    /// Its operator.
    pub operator: String,
    /// Why not, and what to write instead.
    pub remedy: String,
}

/// All such nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedNodes(pub Vec<Unsupported>);

impl fmt::Display for UnsupportedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Unsupported { layer, operator, remedy }) in self.0.iter().enumerate() {
            write!(f, "{}layer {layer}: {operator}: {remedy}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// An operation that was refused. No message holds anything of inputs or weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Bytes that are no model, or over a limit.
    #[error("the model cannot be read: {what}")]
    Format {
        /// What is wrong, and what to do.
        what: String,
    },
    /// Nodes that are not computed on ciphertexts.
    #[error("{0}")]
    Unsupported(UnsupportedNodes),
    /// A wish that makes no sense, or that nothing satisfies.
    #[error("{what}")]
    Goal {
        /// What, and what is possible.
        what: String,
    },
    /// Data of another shape.
    #[error("{what}: {found} numbers were given, and each example has {expected}")]
    Shape {
        /// Of what.
        what: &'static str,
        /// Numbers given.
        found: usize,
        /// Numbers expected.
        expected: usize,
    },
    /// Numbers that are not finite.
    #[error("example {row} holds a number that is not finite; remove or replace it")]
    NotFinite {
        /// Which example.
        row: usize,
    },
    /// An input outside of the calibrated range.
    #[error(
        "example {row}, number {column} is over {bound} in absolute value, the largest that the model was compiled for; \
         compile with examples that reach as far, or with a larger margin"
    )]
    Range {
        /// Which example.
        row: usize,
        /// Which number of it.
        column: usize,
        /// The bound.
        bound: f64,
    },
    /// An answer that only an activation outside of its interval gives.
    #[error(
        "answer {row} is {what}: on the way a value left the interval of its polynomial, for this input or for one that shares its \
         ciphertext; compile with examples like it, or with a larger margin"
    )]
    Left {
        /// Which example.
        row: usize,
        /// What gives it away.
        what: &'static str,
    },
    /// A score that no row gives.
    #[error(
        "the scores of row {row} are over the bound of all that the forest gives: the answer was not computed as the \
         plan says; ask again, and check the server"
    )]
    Score {
        /// Which row.
        row: usize,
    },
    /// Objects of another plan, model or key.
    #[error("{what} belongs to another plan, model or key; use those that were made together")]
    Mixed {
        /// What.
        what: &'static str,
    },
    /// Bytes that are no such object, or a damaged one.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The scheme refused.
    #[error(transparent)]
    He(#[from] HeError),
}

impl From<RingError> for ModelError {
    fn from(e: RingError) -> Self {
        Self::He(e.into())
    }
}

impl From<RlweError> for ModelError {
    fn from(e: RlweError) -> Self {
        Self::He(e.into())
    }
}

impl Kinded for ModelError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Wire(e) => e.kind(),
            Self::He(e) => e.kind(),
            Self::Format { .. } => ErrorKind::Format,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Goal { .. } => ErrorKind::Parameters,
            Self::Shape { .. } => ErrorKind::Shape,
            Self::NotFinite { .. } | Self::Range { .. } => ErrorKind::Input,
            Self::Left { .. } | Self::Score { .. } => ErrorKind::Precision,
            Self::Mixed { .. } => ErrorKind::Mismatch,
        }
    }

    fn system(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Wire(e) => e.system(),
            _ => None,
        }
    }
}

/// Bytes that are no model.
pub(crate) fn format<T>(what: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Format { what: what.into() })
}

/// A wish that nothing satisfies.
pub(crate) fn goal<T>(what: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Goal { what: what.into() })
}
