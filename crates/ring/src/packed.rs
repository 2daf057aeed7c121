//! Pairs of residue rows in few bytes, in the order in which an inner product reads them.
//!
//! Key switching multiplies a few rows of digits by many megabytes of key, and memory is what it
//! waits for. Residues of a 40-bit prime are kept in five bytes and those of up to 48 bits in
//! six; the rows of all digits are interleaved block by block, so that one sequential stream
//! serves the whole product.

use crate::Limb;
use crate::buffer::Buffer;

/// Residues in a unit: one row's share of a block.
pub const BLOCK: usize = 64;

/// How the residues of one unit are stored. The low halves come first, as 64 words of 32 bits,
/// then the rest of each residue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits and 8 more: primes up to 40 bits.
    Bytes5,
    /// 32 bits and 16 more: primes up to 48 bits.
    Bytes6,
    /// Whole words.
    Bytes8,
}

impl Width {
    /// The narrowest that holds residues of so many bits.
    pub const fn of_bits(bits: u32) -> Self {
        match bits {
            0..=40 => Self::Bytes5,
            41..=48 => Self::Bytes6,
            _ => Self::Bytes8,
        }
    }

    /// Bytes of a residue.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes5 => 5,
            Self::Bytes6 => 6,
            Self::Bytes8 => 8,
        }
    }

    /// 64-bit words of a unit.
    pub const fn unit_words(self) -> usize {
        self.bytes() * BLOCK / 8
    }
}

/// `terms` pairs of rows modulo one prime.
#[derive(Clone)]
pub struct PackedPairs {
    width: Width,
    n: usize,
    terms: usize,
    /// Block after block, term after term: a unit of the pair's first row, one of its second.
    words: Buffer,
}

impl PackedPairs {
    /// Packs rows of `limb`'s prime: `pairs[j]` holds two rows of N residues in `[0, q)`.
    ///
    /// # Panics
    /// If a row has not N words.
    pub fn new(limb: &Limb, pairs: &[[&[u64]; 2]]) -> Self {
        let n = limb.degree();
        assert!(pairs.iter().flatten().all(|row| row.len() == n), "rows of another degree");
        let width = Width::of_bits(limb.modulus().bits());
        let unit = width.unit_words();
        let mut words = Buffer::dirty(2 * pairs.len() * n / BLOCK * unit);
        for (at, out) in words.chunks_exact_mut(unit).enumerate() {
            let (part, term, block) = (at % 2, at / 2 % pairs.len(), at / 2 / pairs.len());
            pack(width, out, &pairs[term][part][block * BLOCK..][..BLOCK]);
        }
        Self { width, n, terms: pairs.len(), words }
    }

    /// Number of pairs.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// Bytes that `terms` pairs of rows of a prime of `bits` bits will take.
    pub const fn bytes_of(n: usize, bits: u32, terms: usize) -> usize {
        2 * n * terms * Width::of_bits(bits).bytes()
    }

    /// Writes row `part` (0 or 1) of pair `term` to `out`.
    ///
    /// # Panics
    /// If there is no such row, or `out` has not N words.
    pub fn unpack(&self, term: usize, part: usize, out: &mut [u64]) {
        assert!(term < self.terms && part < 2 && out.len() == self.n);
        for (block, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            unpack(self.width, out, self.unit(block, term, part));
        }
    }

    pub(crate) fn degree(&self) -> usize {
        self.n
    }

    pub(crate) fn width(&self) -> Width {
        self.width
    }

    /// The blocks of the values from `first` on, which begins one.
    #[inline]
    pub(crate) fn from(&self, first: usize) -> PackedBlocks<'_> {
        let block = 2 * self.terms * self.width.unit_words();
        debug_assert!(first.is_multiple_of(BLOCK));
        PackedBlocks { width: self.width, block, words: &self.words[first / BLOCK * block..] }
    }

    fn unit(&self, block: usize, term: usize, part: usize) -> &[u64] {
        let unit = self.width.unit_words();
        &self.from(block * BLOCK).block(0)[(2 * term + part) * unit..][..unit]
    }
}

/// Packed pairs from one block on: what a product with some of the values reads.
#[derive(Clone, Copy)]
pub(crate) struct PackedBlocks<'a> {
    width: Width,
    /// Words of a block.
    block: usize,
    words: &'a [u64],
}

impl<'a> PackedBlocks<'a> {
    pub(crate) fn width(self) -> Width {
        self.width
    }

    /// Number of pairs.
    pub(crate) fn terms(self) -> usize {
        self.block / (2 * self.width.unit_words())
    }

    /// Number of values of each.
    pub(crate) fn values(self) -> usize {
        self.words.len() / self.block.max(1) * BLOCK
    }

    /// All units of one block: two for each term.
    #[inline]
    pub(crate) fn block(self, block: usize) -> &'a [u64] {
        &self.words[block * self.block..][..self.block]
    }

    /// As many words as a block has, some way after block `block`; fewer at the end. What a
    /// product asks memory for while it works on the block.
    #[inline]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn ahead(self, block: usize) -> &'a [u64] {
        /// Words between what is multiplied and what is asked for: a few hundred nanoseconds.
        const AHEAD: usize = 1024;
        let start = (block * self.block + AHEAD).min(self.words.len());
        &self.words[start..(start + self.block).min(self.words.len())]
    }
}

impl std::fmt::Debug for PackedPairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedPairs({} × {}, {:?})", self.terms, self.n, self.width)
    }
}

/// One unit from 64 residues.
fn pack(width: Width, out: &mut [u64], values: &[u64]) {
    if width == Width::Bytes8 {
        out.copy_from_slice(values);
        return;
    }
    let (low, high) = out.split_at_mut(BLOCK / 2);
    for (word, pair) in low.iter_mut().zip(values.chunks_exact(2)) {
        *word = (pair[0] & u64::from(u32::MAX)) | pair[1] << 32;
    }
    let per_word = BLOCK / high.len();
    let bits = 64 / per_word as u32;
    for (word, group) in high.iter_mut().zip(values.chunks_exact(per_word)) {
        *word = group.iter().rev().fold(0, |acc, x| acc << bits | x >> 32);
    }
}

/// 64 residues from one unit.
#[inline(always)]
pub(crate) fn unpack(width: Width, out: &mut [u64], unit: &[u64]) {
    let (low, high) = unit.split_at(BLOCK / 2);
    match width {
        Width::Bytes8 => out.copy_from_slice(unit),
        Width::Bytes5 => unpack_by::<8>(out, low, high),
        Width::Bytes6 => unpack_by::<4>(out, low, high),
    }
}

/// The same where a word holds the upper parts of `COUNT` residues.
#[inline(always)]
fn unpack_by<const COUNT: usize>(out: &mut [u64], low: &[u64], high: &[u64]) {
    let bits = 64 / COUNT;
    for ((out, low), high) in out.as_chunks_mut::<COUNT>().0.iter_mut().zip(low.chunks_exact(COUNT / 2)).zip(high) {
        for (i, x) in out.iter_mut().enumerate() {
            let upper = high >> (bits * i) & ((1 << bits) - 1);
            *x = low[i / 2] >> (32 * (i % 2)) & u64::from(u32::MAX) | upper << 32;
        }
    }
}
