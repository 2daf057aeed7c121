//! fetch-by-similarity: the sizes of the benchmark, and the plan of each.

use crate::Outcome;
use sudare_search::{Gap, Goal, Index, Payload};

/// Payload numbers of a row: 0 to 4095.
pub const NUMBERS: usize = 7;
const BITS: u32 = 12;

/// A size of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its name.
    pub name: &'static str,
    /// Rows of the table.
    pub rows: usize,
    /// Coordinates of a row.
    pub d: usize,
    /// The end of the scores of what does not match.
    low: f64,
}

impl Size {
    /// By its number: 0 (toy) to 3 (large).
    ///
    /// # Errors
    /// For another number.
    pub fn new(number: usize) -> Outcome<Self> {
        let (name, rows, d, low) = *[
            ("toy", 1_000, 128, 0.66),
            ("small", 50_000, 128, 0.66),
            ("medium", 1_000_000, 256, 0.52),
            ("large", 20_000_000, 512, 0.40),
        ]
        .get(number)
        .ok_or("sizes are 0 to 3")?;
        Ok(Self { name, rows, d, low })
    }

    /// The plan of a search for what is over a cosine of 0.8.
    ///
    /// # Errors
    /// None for these sizes.
    pub fn index(&self) -> Outcome<Index> {
        let Self { rows, d, low, .. } = *self;
        // No vector of the generator has a cosine under −low with another's, but for a probability of 2^−40.
        let payload = Some(Payload { numbers: NUMBERS, bits: BITS, dtype: None });
        let gap = Gap { low, high: 0.82 };
        Ok(Index::new(Goal { d, rows: rows as u64, above: 0.8, gap, lowest: -low, payload })?)
    }
}
