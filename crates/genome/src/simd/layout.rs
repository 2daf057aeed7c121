//! The layout of symbols, haplotypes and queries in slots.

use crate::error::in_range;
use crate::{GenomeError, Shape};
use sudare_exact::IntegerParams;

/// Slots of a row, in blocks of one position each; in a block haplotypes, and for each haplotype the queries side by
/// side. Both rows hold haplotypes of their own.
///
/// Position k of a window of q sites is block q − 1 − k, so that earlier positions come with rotations to the left;
/// the blocks from q on hold ones, twice as many blocks as positions, so that no rotation brings anything else in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// N/2.
    row: usize,
    /// Sites, q.
    sites: usize,
    /// log2 of q rounded up: doublings of the prefixes.
    doublings: u32,
    /// Slots of a block.
    block: usize,
    /// Queries, rounded up to a power of two.
    batch: usize,
}

impl Layout {
    /// The layout of a batch of queries.
    ///
    /// # Errors
    /// [`GenomeError::Range`] if the window or the batch does not fit the ring.
    pub fn new(params: &IntegerParams, shape: Shape, batch: usize) -> Result<Self, GenomeError> {
        let (row, padded) = (params.row(), shape.sites.next_power_of_two());
        in_range("sites of a window in slots", shape.sites as u64, 1, (row / 2) as u64)?;
        let block = row / (2 * padded);
        in_range("queries of one message", batch as u64, 1, block as u64)?;
        let batch = batch.next_power_of_two();
        Ok(Self { row, sites: shape.sites, doublings: padded.trailing_zeros(), block, batch })
    }

    /// Haplotypes of one ciphertext, for each query.
    pub fn haplotypes(&self) -> usize {
        2 * self.block / self.batch
    }

    /// Blocks of a row: as many starts are told apart by one ciphertext.
    pub fn blocks(&self) -> usize {
        self.row / self.block
    }

    /// Slots, both rows.
    pub fn slots(&self) -> usize {
        2 * self.row
    }

    /// The slot of a block's first haplotype for a query.
    fn slot(&self, block: usize, haplotype: usize, query: usize) -> usize {
        let column = self.block / self.batch;
        let (row, place) = (haplotype / column, haplotype % column);
        row * self.row + block * self.block + place * self.batch + query
    }

    /// The slot of a position.
    pub fn position(&self, k: usize, haplotype: usize, query: usize) -> usize {
        self.slot(self.sites - 1 - k, haplotype, query)
    }

    /// Rotations that bring the products of 1, 2, 4, … earlier positions.
    pub fn doublings(&self) -> impl Iterator<Item = i64> + use<> {
        let block = self.block as i64;
        (0..self.doublings).map(move |i| block << i)
    }

    /// Rotations that add up the haplotypes of a row.
    pub fn sums(&self) -> impl Iterator<Item = i64> + use<> {
        let (batch, count) = (self.batch as i64, (self.block / self.batch).trailing_zeros());
        (0..count).map(move |i| batch << i)
    }

    /// Rotations that copy a block to all others.
    pub fn copies(&self) -> impl Iterator<Item = i64> + use<> {
        let (block, count) = (self.block as i64, self.blocks().trailing_zeros());
        (0..count).map(move |i| block << i)
    }

    /// Values of the queries' slots, the same for every haplotype: `value(block, query)`.
    pub fn replicated(&self, value: impl Fn(usize, usize) -> u64) -> Vec<u64> {
        let mut out = vec![0; self.slots()];
        for block in 0..self.blocks() {
            for query in 0..self.batch {
                let x = value(block, query);
                for haplotype in 0..self.haplotypes() {
                    out[self.slot(block, haplotype, query)] = x;
                }
            }
        }
        out
    }

    /// Queries, rounded up.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Factors and addends of the comparison `m = addend + factor·w` with up to [`Layout::haplotypes`] prefixes: one
    /// where the symbol is the prefix's, one everywhere past the window, zero past a prefix's end and where there is
    /// none.
    pub fn comparison(&self, prefixes: &[Vec<bool>]) -> [Vec<i64>; 2] {
        let mut out = [vec![0i64; self.slots()], vec![0i64; self.slots()]];
        for query in 0..self.batch {
            for haplotype in 0..self.haplotypes() {
                for block in self.sites..self.blocks() {
                    out[1][self.slot(block, haplotype, query)] = 1;
                }
                let Some(prefix) = prefixes.get(haplotype) else { continue };
                for (k, symbol) in prefix.iter().enumerate() {
                    let at = self.position(k, haplotype, query);
                    out[0][at] = if *symbol { 1 } else { -1 };
                    out[1][at] = i64::from(!*symbol);
                }
            }
        }
        out
    }
}
