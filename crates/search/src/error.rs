//! What can go wrong with an index, and the remedy.

use crate::threshold::Gap;
use std::io;
use sudare_he::HeError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;
use sudare_store::StoreError;

/// An operation that was refused. No message holds anything of rows or questions.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A wish that makes no sense.
    #[error("{what}: {found} is not possible; take {wanted}")]
    Goal {
        /// Of what.
        what: &'static str,
        /// What was given.
        found: String,
        /// What is possible.
        wanted: &'static str,
    },
    /// A gap that no polynomial of the parameters' depth reaches.
    #[error(
        "no polynomial of this depth tells scores above {} from those under {} so well that {rows} rows are counted \
         right; widen the gap, for example to ({possible:.3}, {})", gap.high, gap.low, gap.high
    )]
    Gap {
        /// The gap wanted.
        gap: Gap,
        /// The rows that are counted.
        rows: u64,
        /// The lower end that is possible with the same upper one.
        possible: f64,
    },
    /// Numbers that are not finite.
    #[error("row {row} holds a number that is not finite; remove or replace it")]
    NotFinite {
        /// Which row.
        row: usize,
    },
    /// A question of zeros, which has no direction.
    #[error("question {row} is zero in every coordinate, so it is like no row; ask another")]
    ZeroQuery {
        /// Which question of the batch.
        row: usize,
    },
    /// Data of another shape.
    #[error("{what}: {found} numbers were given, and {expected} are needed")]
    Shape {
        /// Of what.
        what: &'static str,
        /// Numbers given.
        found: usize,
        /// Numbers expected.
        expected: usize,
    },
    /// A payload over its bits.
    #[error("payload number {number} of row {row} does not fit {bits} bits; plan the payload wider")]
    Payload {
        /// Which row.
        row: usize,
        /// Which number.
        number: usize,
        /// Bits planned.
        bits: u32,
    },
    /// More rows than were planned.
    #[error(
        "the table would have {found} rows, and the index is planned for {planned}; plan a larger one, for answers \
         would no longer be sure"
    )]
    TooManyRows {
        /// Rows there would be.
        found: u64,
        /// Rows planned.
        planned: u64,
    },
    /// An index without payloads.
    #[error("this index was planned without payloads, and can count and score, but not fetch; plan one with payload=")]
    NoPayload,
    /// What a mode cannot answer.
    #[error("an index in compact mode counts and fetches, and gives no scores; plan a leveled one for them")]
    NoScores,
    /// Objects of another plan or index.
    #[error("{what} belongs to another plan or index; use those that were made together")]
    Mixed {
        /// What.
        what: &'static str,
    },
    /// An answer to something else.
    #[error("this is the answer to a {found} and not to a {wanted}; read it as what it is")]
    OtherAnswer {
        /// What it answers.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A file that is no part of an index, or a damaged one.
    #[error("{path}: {what}")]
    Damaged {
        /// Which.
        path: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A sum of indicators far from an integer.
    #[error(
        "the count comes out as {found:.2}, too far from a whole number: scores lie inside of the gap ({}, {}); ask with another threshold, or look at scores", gap.low, gap.high
    )]
    InsideGap {
        /// The sum.
        found: f64,
        /// The gap.
        gap: Gap,
    },
    /// A payload sum far from an integer.
    #[error(
        "payloads do not come out as whole numbers: scores lie inside of the gap ({}, {}); ask with another threshold, or look at scores", gap.low, gap.high
    )]
    BlurredPayload {
        /// The gap.
        gap: Gap,
    },
    /// Sums that hide each other.
    #[error(
        "{left} cells hold several matches each that cannot be told apart; count is right, and a higher threshold fetches fewer"
    )]
    Unresolved {
        /// Cells that are left.
        left: usize,
    },
    /// More segments than the plan has room for.
    #[error(
        "the plan has room for {planned} segments, and each append begins one; append {rows} rows at a time, or plan \
         more rows"
    )]
    TooManySegments {
        /// Segments planned.
        planned: u64,
        /// Rows of a segment.
        rows: u64,
    },
    /// Other rows where a store or an append was not finished.
    #[error(
        "{path}: an unfinished append has stored other rows there; go on with the same rows, or discard() what is \
         unfinished first"
    )]
    OtherRows {
        /// The segment.
        path: String,
    },
    /// Ciphertexts that are no count.
    #[error(
        "the answer does not hold a count: its slots disagree, or it is larger than the table; ask again, and check \
         the server"
    )]
    NoSum,
    /// More matches than errors of indicators allow for.
    #[error(
        "about {found} rows match, and with this gap up to {sure} are counted right; ask with a wider gap or a higher threshold, \
         or look at scores"
    )]
    ManyMatches {
        /// Matches, about.
        found: u64,
        /// Matches that are counted right.
        sure: u64,
    },
    /// Less memory than a search takes.
    #[error("a search of this index takes {least} bytes of memory, and {given} are allowed; allow {least} or more")]
    TooLittleMemory {
        /// Bytes that are allowed.
        given: u64,
        /// The least that will do.
        least: u64,
    },
    /// Bytes that are no such object, or a damaged one.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A store that was refused, or a damaged one.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The scheme refused.
    #[error(transparent)]
    He(#[from] HeError),
}

impl From<RingError> for SearchError {
    fn from(e: RingError) -> Self {
        Self::He(e.into())
    }
}

impl From<RlweError> for SearchError {
    fn from(e: RlweError) -> Self {
        Self::He(e.into())
    }
}

impl Kinded for SearchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Wire(e) => e.kind(),
            Self::Store(e) => e.kind(),
            Self::He(e) => e.kind(),
            Self::Goal { .. }
            | Self::Gap { .. }
            | Self::TooManyRows { .. }
            | Self::TooManySegments { .. }
            | Self::TooLittleMemory { .. } => ErrorKind::Parameters,
            Self::NotFinite { .. } | Self::ZeroQuery { .. } | Self::Payload { .. } => ErrorKind::Input,
            Self::Shape { .. } => ErrorKind::Shape,
            Self::NoPayload | Self::NoScores => ErrorKind::NotPlanned,
            Self::Mixed { .. } | Self::OtherRows { .. } => ErrorKind::Mismatch,
            Self::OtherAnswer { .. } => ErrorKind::Usage,
            Self::Damaged { .. } | Self::NoSum => ErrorKind::Format,
            Self::InsideGap { .. }
            | Self::ManyMatches { .. }
            | Self::BlurredPayload { .. }
            | Self::Unresolved { .. } => ErrorKind::Precision,
        }
    }

    fn system(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Wire(e) => e.system(),
            Self::Store(e) => e.system(),
            _ => None,
        }
    }
}
