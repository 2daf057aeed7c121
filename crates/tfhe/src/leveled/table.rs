//! Tables packed into polynomials.

use crate::core::context::check_shape;
use crate::leveled::LeveledParams;
use crate::leveled::ciphertext::{LeveledGlwe, Owner, meet};
use crate::{GlweCiphertext, TfheError};
use std::fmt;

/// Where the words of a table's entries lie.
///
/// The words of an entry are neighbours (horizontal packing: one lookup gives them all), and as
/// many entries as fit share a polynomial (vertical packing: one rotation instead of half a tree).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    entries: usize,
    outputs: usize,
    log_stride: u32,
    log_per_polynomial: u32,
    polynomials: usize,
}

impl TableLayout {
    /// The layout of `entries` entries of `outputs` words each.
    ///
    /// # Errors
    /// [`TfheError::Shape`] without entries or words, or for more than N words; [`TfheError::Parameters`]
    /// for more than 2^32 entries.
    pub fn new(params: &LeveledParams, entries: usize, outputs: usize) -> Result<Self, TfheError> {
        let n = params.context().degree();
        if outputs == 0 || outputs > n {
            return Err(TfheError::Shape { what: "words of an entry", expected: n, found: outputs });
        }
        if entries == 0 {
            return Err(TfheError::Shape { what: "table entries", expected: 1, found: 0 });
        }
        if entries as u64 > 1 << 32 {
            return Err(TfheError::Parameters { reason: format!("a table has at most 2^32 entries, not {entries}") });
        }
        let log_stride = outputs.next_power_of_two().trailing_zeros();
        let log_entries = entries.next_power_of_two().trailing_zeros();
        let log_per_polynomial = (n.trailing_zeros() - log_stride).min(log_entries);
        let polynomials = entries.div_ceil(1 << log_per_polynomial);
        Ok(Self { entries, outputs, log_stride, log_per_polynomial, polynomials })
    }

    /// Entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Words of an entry.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Selectors that a lookup takes.
    pub fn index_bits(&self) -> u32 {
        self.entries.next_power_of_two().trailing_zeros()
    }

    /// Coefficients from one entry to the next.
    pub fn stride(&self) -> usize {
        1 << self.log_stride
    }

    /// log2 of the entries that share a polynomial.
    pub fn log_per_polynomial(&self) -> u32 {
        self.log_per_polynomial
    }

    /// Polynomials of the table.
    pub fn polynomials(&self) -> usize {
        self.polynomials
    }

    /// CMUX and rotations that a lookup takes.
    pub fn products(&self) -> usize {
        self.polynomials - 1 + self.log_per_polynomial as usize
    }

    /// The polynomials of a table, as phases.
    pub(super) fn phases(&self, params: &LeveledParams, entries: &[Vec<u64>]) -> Result<Vec<Vec<u64>>, TfheError> {
        check_shape("table entries", self.entries, entries.len())?;
        let n = params.context().degree();
        entries
            .chunks(1 << self.log_per_polynomial)
            .map(|part| {
                let mut p = vec![0; n];
                for (entry, place) in part.iter().zip(p.chunks_mut(self.stride())) {
                    check_shape("words of an entry", self.outputs, entry.len())?;
                    for (x, m) in place.iter_mut().zip(entry) {
                        *x = params.encode(*m)?;
                    }
                }
                Ok(p)
            })
            .collect()
    }
}

/// A polynomial of a table.
pub(super) enum Leaf {
    Plain(Vec<u64>),
    Encrypted(GlweCiphertext),
}

/// A table ready for lookups: plain or encrypted.
pub struct PackedTable {
    layout: TableLayout,
    leaves: Vec<Leaf>,
    variance: f64,
    owner: Owner,
}

impl PackedTable {
    /// A public table whose entries are equally many messages.
    ///
    /// # Errors
    /// As for [`TableLayout::new`]; [`TfheError::Message`] for a word that does not fit.
    pub fn plain(params: &LeveledParams, entries: &[Vec<u64>]) -> Result<Self, TfheError> {
        let layout = TableLayout::new(params, entries.len(), entries.first().map_or(0, Vec::len))?;
        let leaves = layout.phases(params, entries)?.into_iter().map(Leaf::Plain).collect();
        Ok(Self { layout, leaves, variance: 0.0, owner: (params.hash(), None) })
    }

    /// A table from its encrypted polynomials.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of them than the layout's; `RlweError::WrongParameters`,
    /// `RlweError::WrongKey`.
    pub fn encrypted(
        params: &LeveledParams,
        layout: TableLayout,
        polynomials: Vec<LeveledGlwe>,
    ) -> Result<Self, TfheError> {
        check_shape("polynomials of the table", layout.polynomials(), polynomials.len())?;
        let (mut owner, mut variance) = ((params.hash(), None), 0f64);
        for p in &polynomials {
            owner = meet("a polynomial of the table", owner, p.owner)?;
            variance = variance.max(p.variance);
        }
        let leaves = polynomials.into_iter().map(|p| Leaf::Encrypted(p.c)).collect();
        Ok(Self { layout, leaves, variance, owner })
    }

    /// Where its words lie.
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    /// Bound of the noise variance of its polynomials; zero for a public table.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    pub(super) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }
}

impl fmt::Debug for PackedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l = &self.layout;
        write!(f, "PackedTable({} entries of {} words in {} polynomials)", l.entries, l.outputs, l.polynomials)
    }
}
