//! What can go wrong with an encrypted matrix.

use std::fmt;
use sudare_exact::ExactError;
use sudare_expr::ExprError;
use sudare_he::HeError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::PartyError;
use sudare_rlwe::wire::WireError;
use sudare_store::StoreError;

/// Names a plan on everything that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanHash(pub [u8; 32]);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PlanHash {
    /// All of it, in hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// An operation on matrices that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The scheme below refused.
    #[error(transparent)]
    He(#[from] HeError),
    /// An exact scheme refused.
    #[error(transparent)]
    Exact(#[from] ExactError),
    /// An expression or a plain matrix that was refused.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// Bytes that were refused.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A store that was refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A product of stored matrices in less memory than it takes.
    #[error("this product takes at least {least} bytes of memory, and {given} are allowed; allow {least} or more")]
    TooLittleMemory {
        /// Bytes that are allowed.
        given: u64,
        /// The least that would do.
        least: u64,
    },
    /// A matrix of another shape than the plan's.
    #[error("{what} is {}×{}, and the plan says {}×{}; plan for the \
             shape that you have", found.0, found.1, expected.0, expected.1)]
    PlannedShape {
        /// Which matrix.
        what: &'static str,
        /// Rows and columns found.
        found: (usize, usize),
        /// Rows and columns planned.
        expected: (usize, usize),
    },
    /// Another number of ciphertexts or matrices than the product takes.
    #[error("{what}: {found} were given, and {expected} are needed")]
    Count {
        /// What was counted.
        what: &'static str,
        /// Number found.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// A method that cannot serve a shape under given parameters.
    #[error("{method} cannot serve this product: {reason}")]
    Method {
        /// The method's name.
        method: &'static str,
        /// Why, and what would do.
        reason: String,
    },
    /// No parameters satisfy the requirements.
    #[error("no plan: {reason}")]
    NoPlan {
        /// Why, and what would help.
        reason: String,
    },
    /// A plan file that cannot be used.
    #[error("the plan cannot be used: {reason}")]
    PlanFile {
        /// Why.
        reason: String,
    },
    /// A field of a plan that does not go with what the plan is for.
    #[error("the plan cannot be used: its {field} is {found}, and {expected} would do; plan again")]
    PlanField {
        /// The field's path.
        field: &'static str,
        /// What it says.
        found: String,
        /// What goes with the rest.
        expected: String,
    },
    /// A refresh in a context without bootstrapping keys.
    #[error("this context does not bootstrap; make one with a bootstrapping set")]
    NoBootstrap,
    /// An object of another plan.
    #[error("{what} belongs to plan {found}, not to {expected}; encrypt and compute with one plan file")]
    WrongPlan {
        /// The offending object.
        what: &'static str,
        /// Its plan.
        found: PlanHash,
        /// The plan expected.
        expected: PlanHash,
    },
    /// An operation that the plan does not have.
    #[error("{operation} is not possible here: {planned}")]
    NotPlanned {
        /// The refused operation.
        operation: &'static str,
        /// What the plan has.
        planned: String,
    },
    /// A decryption for release where none was declared.
    #[error(
        "this {what} was made without releases, whose noise has to be part of its precision; make it with \
         release=Release(count, security) (in Rust a ReleasePolicy, on the command line --release COUNT,BITS), or \
         decrypt for your own eyes"
    )]
    NoRelease {
        /// What would declare them: a plan, a context, a table.
        what: &'static str,
    },
    /// An operation that needs more levels than a matrix of a context has left.
    #[error(
        "{operation} takes {needed} level(s) and the matrix has {level} left; make a context with a depth over {depth}, multiply less in a row, or refresh it where the context bootstraps"
    )]
    OutOfDepth {
        /// The refused operation.
        operation: &'static str,
        /// Levels it uses.
        needed: usize,
        /// Levels left.
        level: usize,
        /// Depth of the context.
        depth: usize,
    },
    /// Messages of several parties that were not read or sent, where that is no matter of a folder.
    #[error("{words}")]
    Messages {
        /// What kind of refusal it was.
        kind: ErrorKind,
        /// Its words.
        words: String,
    },
    /// An integer over the bound that its input declares.
    #[error("element ({row}, {col}) is not from {low} to {high}; declare a larger bound")]
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
}

impl Kinded for MatrixError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::He(e) => e.kind(),
            Self::Exact(e) => e.kind(),
            Self::Expr(e) => e.kind(),
            Self::Wire(e) => e.kind(),
            Self::Store(e) => e.kind(),
            Self::PlannedShape { .. } | Self::Count { .. } => ErrorKind::Shape,
            Self::OutOfRange { .. } => ErrorKind::Input,
            Self::Messages { kind, .. } => *kind,
            Self::TooLittleMemory { .. } | Self::Method { .. } | Self::NoPlan { .. } => ErrorKind::Parameters,
            Self::PlanFile { .. } | Self::PlanField { .. } => ErrorKind::Format,
            Self::WrongPlan { .. } => ErrorKind::Mismatch,
            Self::NotPlanned { .. } => ErrorKind::NotPlanned,
            Self::NoRelease { .. } => ErrorKind::Release,
            Self::OutOfDepth { .. } => ErrorKind::Levels,
            Self::NoBootstrap => ErrorKind::Unsupported,
        }
    }

    fn system(&self) -> Option<std::io::ErrorKind> {
        match self {
            Self::Wire(e) => e.system(),
            Self::Store(e) => e.system(),
            _ => None,
        }
    }
}

impl From<RlweError> for MatrixError {
    fn from(error: RlweError) -> Self {
        Self::He(error.into())
    }
}

impl From<PartyError> for MatrixError {
    fn from(error: PartyError) -> Self {
        Self::He(error.into())
    }
}

impl From<RingError> for MatrixError {
    fn from(error: RingError) -> Self {
        Self::He(error.into())
    }
}
