//! Lookup tables as the test polynomials of programmable bootstraps.

use super::context::check_shape;
use super::{GlweContext, TfheError, TfheParams, encoding};

/// One or several tables, ready to be an accumulator.
///
/// A table of p entries has boxes of N/p coefficients, shifted by half a box so that noise of either
/// sign stays inside; phases of the upper half (where the padding bit is one) read negated entries.
/// 2^t tables in one polynomial interleave their coefficients, which takes t bits off the
/// precision of the phase and so off the messages that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTable {
    coefficients: Vec<u64>,
    log_tables: u32,
    tables: usize,
    largest: Vec<u64>,
    /// Boxes of half the torus.
    boxes: usize,
    /// Boxes that were given.
    entries: usize,
}

impl LookupTable {
    /// The table of `f` on the values of message and carry; its results are again such values.
    ///
    /// # Errors
    /// [`TfheError::Message`] for a result that does not fit.
    pub fn new(params: &TfheParams, f: impl Fn(u64) -> u64) -> Result<Self, TfheError> {
        let values: Vec<u64> = (0..params.space()).map(f).collect();
        Self::interleaved(params, &[values])
    }

    /// Several tables for one blind rotation; tables of p entries are for messages below p. Where there is room for more
    /// entries, the rest are zeros that no lookup reads.
    ///
    /// # Errors
    /// [`TfheError::Shape`] unless all tables have equally many entries, a power of two, and
    /// `entries · tables` (rounded up to a power of two) is at most the space; [`TfheError::Message`]
    /// for a result that does not fit.
    pub fn interleaved(params: &TfheParams, tables: &[Vec<u64>]) -> Result<Self, TfheError> {
        let space = params.space();
        if let Some(value) = tables.iter().flatten().find(|x| **x >= space) {
            return Err(TfheError::Message { value: *value, space });
        }
        let entries = tables.first().map_or(0, Vec::len);
        let padded = tables.len().next_power_of_two();
        check_power_of_two(entries, space as usize / padded)?;
        if entries * padded > space as usize {
            return Err(TfheError::Shape {
                what: "entries of all tables",
                expected: space as usize,
                found: entries * padded,
            });
        }
        let mut encoded = Vec::with_capacity(tables.len());
        for table in tables {
            check_shape("table entries", entries, table.len())?;
            // The box of a message is as wide as in a table of the whole space.
            let rest = std::iter::repeat_n(0, space as usize / padded - entries);
            encoded.push(table.iter().map(|m| encode(params, *m)).chain(rest).collect());
        }
        let mut table = Self::from_phases(params.context(), &encoded)?;
        table.entries = entries;
        table.largest = tables.iter().map(|t| t.iter().copied().max().unwrap_or(0)).collect();
        Ok(table)
    }

    /// Tables of phases in `[0, q)`, one for each of the messages 0, 1, … that fill half the torus.
    ///
    /// # Errors
    /// [`TfheError::Shape`] unless all have equally many entries, a power of two, that N holds.
    pub fn from_phases(context: &GlweContext, tables: &[Vec<u64>]) -> Result<Self, TfheError> {
        let (n, q) = (context.degree(), context.modulus());
        let entries = tables.first().map_or(0, Vec::len);
        let padded = tables.len().next_power_of_two();
        check_power_of_two(entries, n / 2 / padded)?;
        if 2 * entries * padded > n {
            return Err(TfheError::Shape { what: "table entries", expected: n / 2 / padded, found: entries });
        }
        let width = n / entries;
        let mut coefficients = vec![0; n];
        for (t, table) in tables.iter().enumerate() {
            check_shape("table entries", entries, table.len())?;
            for group in 0..n / padded {
                let at = group * padded + width / 2;
                let value = q.reduce(table[at / width % entries]);
                coefficients[group * padded + t] = if at < n { value } else { q.neg(value) };
            }
        }
        let log_tables = padded.trailing_zeros();
        let largest = vec![u64::MAX; tables.len()];
        Ok(Self { coefficients, log_tables, tables: tables.len(), largest, boxes: entries, entries })
    }

    /// The value at every phase of the first half of the torus, from zero on, its negation at the
    /// others: a sign, times `value` in `[0, q)`.
    pub fn constant(context: &GlweContext, value: u64) -> Self {
        let coefficients = vec![context.modulus().reduce(value); context.degree()];
        Self { coefficients, log_tables: 0, tables: 1, largest: vec![u64::MAX], boxes: 1, entries: 1 }
    }

    /// The test polynomial.
    pub fn coefficients(&self) -> &[u64] {
        &self.coefficients
    }

    /// log2 of the interleaved tables.
    pub fn log_tables(&self) -> u32 {
        self.log_tables
    }

    /// Tables that there are.
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// Refuses numbers that the entries are not for.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for boxes other than those of messages, [`TfheError::CarrySpace`] if `largest` has no entry.
    pub(crate) fn check_messages(&self, space: u64, largest: u64) -> Result<(), TfheError> {
        check_shape("boxes of the table", (space >> self.log_tables) as usize, self.boxes)?;
        if largest >= self.entries as u64 {
            return Err(TfheError::CarrySpace { operation: "lookup", found: largest, space: self.entries as u64 });
        }
        Ok(())
    }

    /// The largest entry of a table of messages.
    pub fn largest(&self, table: usize) -> u64 {
        self.largest.get(table).copied().unwrap_or(u64::MAX)
    }
}

/// # Errors
/// [`TfheError::Shape`] unless `entries` is a power of two.
fn check_power_of_two(entries: usize, expected: usize) -> Result<(), TfheError> {
    if entries.is_power_of_two() {
        Ok(())
    } else {
        Err(TfheError::Shape { what: "table entries", expected, found: entries })
    }
}

/// A message of the space as a phase: `m·q/(2·space)`, rounded.
pub(crate) fn encode(params: &TfheParams, m: u64) -> u64 {
    encoding::encode(params.context().modulus(), m, params.space().ilog2() + 1)
}

/// The message nearest to a phase, modulo twice the space (the upper half has its padding bit set).
pub(crate) fn decode(params: &TfheParams, phase: u64) -> u64 {
    encoding::decode(params.context().modulus(), phase, params.space().ilog2() + 1)
}

/// The polynomial (1 − X)·F of a table of the whole space as its terms (position, factor), positions below N:
/// entries that differ from their neighbours', in a ring of degree N.
pub fn table_steps(degree: usize, table: &[u64]) -> Vec<(usize, i64)> {
    let width = degree / table.len().max(1);
    // Coefficients from N − width/2 on are those of box 0, negated, and so is what precedes coefficient 0.
    let value = |at: usize| match table.get((at + width / 2) / width) {
        Some(entry) => *entry as i64,
        None => table.first().map_or(0, |entry| -(*entry as i64)),
    };
    // Where box i begins: half a box before its middle.
    let begins = (0..=table.len()).map(|i| (i * width).saturating_sub(width / 2));
    let steps = begins.map(|at| (at, value(at) - if at == 0 { -value(degree - 1) } else { value(at - 1) }));
    steps.filter(|(_, step)| *step != 0).collect()
}
