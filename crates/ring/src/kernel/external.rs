//! Products of a row of evaluated polynomials with a small matrix of them: the inner loop of a
//! GGSW external product.
//!
//! The matrix is stored as it is read: for each eight values, group after group, row after row,
//! column after column, each value in as few bytes as its modulus needs. A blind rotation
//! streams its key from memory, so bytes are time.

use super::contract::Monomials;
use super::{Ahead, Limb};
use crate::buffer::{Buffer, Pages};
use crate::interrupt::check;
use crate::order::exponent;
use crate::threads;
use std::sync::Arc;

/// Most columns of a [`PackedMatrix`].
pub const MAX_COLUMNS: usize = 6;
/// Most groups of a [`PackedMatrix`]: three bits of an unrolled key a step.
pub const MAX_GROUPS: usize = 7;
/// Bytes after the last value, so that a kernel may read whole cache lines.
const PADDING: usize = 64;

/// `groups` matrices of `rows × columns` evaluated polynomials, packed.
#[derive(Clone)]
pub struct PackedMatrix {
    groups: usize,
    rows: usize,
    columns: usize,
    degree: usize,
    /// Bytes of a value.
    width: usize,
    storage: Storage,
}

/// Where a matrix's bytes are.
#[derive(Clone)]
enum Storage {
    Own(Buffer),
    /// Words from the second number on, of a block that several matrices share.
    Shared(Arc<Pages>, usize),
}

impl PackedMatrix {
    /// Zeros, for polynomials of this limb.
    ///
    /// # Panics
    /// If a dimension is zero, there are more than [`MAX_COLUMNS`] columns or [`MAX_GROUPS`] groups, or no
    /// memory holds them all.
    pub fn zeroed(limb: &Limb, groups: usize, rows: usize, columns: usize) -> Self {
        assert!((1..=MAX_GROUPS).contains(&groups) && rows > 0 && (1..=MAX_COLUMNS).contains(&columns));
        let (degree, width) = (limb.degree(), limb.modulus().bits().div_ceil(8) as usize);
        let bytes = [rows, columns, degree, width].into_iter().try_fold(groups, usize::checked_mul);
        let length = bytes.and_then(|bytes| bytes.checked_add(PADDING));
        let Some(length) = length else { panic!("no memory holds {groups} matrices of {rows} × {columns}") };
        let storage = Storage::Own(Buffer::zeroed(length.div_ceil(8)));
        Self { groups, rows, columns, degree, width, storage }
    }

    /// The same matrices one after the other in one block of memory, for streaming.
    pub fn gather(matrices: Vec<Self>) -> Vec<Self> {
        let words = |m: &Self| (m.byte_len() + PADDING).div_ceil(64) * 8;
        let mut block = Pages::zeroed(matrices.iter().map(words).sum());
        let mut at = 0;
        for m in &matrices {
            check();
            let source = m.words();
            block[at..at + source.len()].copy_from_slice(source);
            at += words(m);
        }
        let (block, mut at) = (Arc::new(block), 0);
        matrices
            .into_iter()
            .map(|m| {
                let start = at;
                at += words(&m);
                Self { storage: Storage::Shared(Arc::clone(&block), start), ..m }
            })
            .collect()
    }

    /// Matrices of `groups[i]` groups of `rows × columns`, filled in parallel inside a pool, one after the other in one
    /// block of memory, for streaming. A thread fills one at a time, in memory that it uses again for the next.
    ///
    /// # Panics
    /// As for [`PackedMatrix::zeroed`].
    pub fn streamed(
        limb: &Limb,
        groups: &[usize],
        (rows, columns): (usize, usize),
        fill: impl Fn(usize, &mut Self) + Sync + Send,
    ) -> Vec<Self> {
        let (degree, width) = (limb.degree(), limb.modulus().bits().div_ceil(8) as usize);
        let words = |groups: &usize| (groups * rows * columns * degree * width + PADDING).div_ceil(64) * 8;
        let mut block = Pages::zeroed(groups.iter().map(words).sum());
        let (mut places, mut rest) = (Vec::with_capacity(groups.len()), &mut block[..]);
        for g in groups {
            let (place, behind) = rest.split_at_mut(words(g));
            places.push(place);
            rest = behind;
        }
        threads::for_each_mut(&mut places, |i, place| {
            let mut m = Self::zeroed(limb, groups[i], rows, columns);
            fill(i, &mut m);
            let source = m.words();
            place[..source.len()].copy_from_slice(source);
        });
        let (block, mut at) = (Arc::new(block), 0);
        let shared = |groups: &usize| {
            let start = at;
            at += words(groups);
            Self { groups: *groups, rows, columns, degree, width, storage: Storage::Shared(Arc::clone(&block), start) }
        };
        groups.iter().map(shared).collect()
    }

    /// The words that hold the values and their padding.
    #[inline]
    fn words(&self) -> &[u64] {
        let length = (self.byte_len() + PADDING).div_ceil(8);
        match &self.storage {
            Storage::Own(buffer) => &buffer[..length],
            Storage::Shared(block, start) => &block[*start..*start + length],
        }
    }

    /// Matrices.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Rows of a matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes that hold the values.
    pub fn byte_len(&self) -> usize {
        self.groups * self.rows * self.columns * self.degree * self.width
    }

    /// Its bytes, for transforms to ask for.
    pub fn ahead(&self) -> Ahead<'_> {
        Ahead::of(&bytemuck::cast_slice(self.words())[..self.byte_len()])
    }

    /// Where the eight values `8v..8v+8` of an entry begin.
    #[inline]
    pub(super) fn offset(&self, group: usize, row: usize, column: usize, v: usize) -> usize {
        (((v * self.groups + group) * self.rows + row) * self.columns + column) * 8 * self.width
    }

    /// Writes an entry, values in `[0, q)`.
    ///
    /// # Panics
    /// If there is no such entry or the length is not the degree.
    pub fn set(&mut self, group: usize, row: usize, column: usize, values: &[u64]) {
        assert!(group < self.groups && row < self.rows && column < self.columns && values.len() == self.degree);
        let width = self.width;
        if let Storage::Shared(..) = self.storage {
            self.storage = Storage::Own(Buffer::from_slice(self.words()));
        }
        let offsets = [0, 1].map(|v| self.offset(group, row, column, v));
        let Storage::Own(buffer) = &mut self.storage else { return };
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(buffer);
        for (v, eight) in values.chunks_exact(8).enumerate() {
            let at = offsets[0] + v * (offsets[1] - offsets[0]);
            for (place, x) in bytes[at..at + 8 * width].chunks_exact_mut(width).zip(eight) {
                place.copy_from_slice(&x.to_le_bytes()[..width]);
            }
        }
    }

    /// Reads an entry.
    ///
    /// # Panics
    /// As for [`PackedMatrix::set`].
    pub fn get(&self, group: usize, row: usize, column: usize, out: &mut [u64]) {
        assert!(group < self.groups && row < self.rows && column < self.columns && out.len() == self.degree);
        for (v, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            self.read_eight(self.offset(group, row, column, v), eight);
        }
    }

    /// The eight values from byte `at` on: whole words, of which the next values' bytes are cut off.
    #[inline]
    fn read_eight(&self, at: usize, out: &mut [u64; 8]) {
        let (width, mask) = (self.width, u64::MAX >> (64 - 8 * self.width));
        let bytes: &[u8] = &bytemuck::cast_slice(self.words())[at..at + 7 * width + 8];
        for (l, x) in out.iter_mut().enumerate() {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[l * width..l * width + 8]);
            *x = u64::from_le_bytes(word) & mask;
        }
    }
}

/// What evaluates monomials at all points of a transform: ψ's powers, and their order.
///
/// Value `8v + l` of X^e is `ψ^(e·E_v) · ψ^(e·lane_l)`: a power for each vector of eight values
/// times a factor for each lane (see [`crate::order`]).
#[derive(Debug)]
pub struct MonomialTable {
    q: u64,
    /// ψ^i with its quotient floor(ψ^i · 2^52 / q), `i` below 2N; the quotient is meaningful for q < 2^52.
    powers: Vec<[u64; 2]>,
    /// E_v: the exponent of value 8v.
    vectors: Vec<u32>,
    /// How much further the exponents of a vector's lanes lie.
    lanes: [usize; 8],
}

impl MonomialTable {
    /// The table of a limb.
    pub fn new(limb: &Limb) -> Self {
        let (n, q) = (limb.degree(), limb.modulus());
        let mut power = 1;
        let powers = (0..2 * n)
            .map(|_| {
                let shoup = q.shoup(power);
                power = q.mul(power, limb.root());
                [shoup.value, shoup.quotient52]
            })
            .collect();
        let vectors = (0..n / 8).map(|v| exponent(n, 8 * v) as u32).collect();
        let lanes = std::array::from_fn(|l| exponent(n, l) - exponent(n, 0));
        Self { q: q.value(), powers, vectors, lanes }
    }

    /// ψ^(e·E) with its quotient.
    #[inline(always)]
    fn power(&self, e: usize, exponent: usize) -> [u64; 2] {
        self.powers[e.wrapping_mul(exponent) & (self.powers.len() - 1)]
    }

    /// The value of X^e at place `i` of a transform.
    pub fn value(&self, e: usize, i: usize) -> u64 {
        self.power(e, self.vectors[i / 8] as usize + self.lanes[i % 8])[0]
    }
}

impl Limb {
    /// Column sums `out_c = Σ_r digits_r ⊙ m[r][c]` of a matrix of one group: all values in
    /// `[0, q)`, `digits` the rows one after the other, `out` the columns.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn external_product(&self, out: &mut [u64], digits: &[u64], m: &PackedMatrix) {
        self.external(out, digits, m, None);
    }

    /// Column sums of several groups, each with its row multiplied by X^e − 1:
    /// `out_c = Σ_g (X^(e_g) − 1) Σ_r digits_r ⊙ m_g[r][c]`. One step of a blind rotation with an
    /// unrolled key. Exponents are taken modulo 2N.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn external_product_monomials(
        &self,
        out: &mut [u64],
        digits: &[u64],
        m: &PackedMatrix,
        table: &MonomialTable,
        exponents: &[usize],
    ) {
        assert!(table.powers.len() == 2 * self.degree() && table.q == self.q(), "monomials of another limb");
        self.external(out, digits, m, Some((table, exponents)));
    }

    fn external(&self, out: &mut [u64], digits: &[u64], m: &PackedMatrix, monomials: Option<Monomials<'_>>) {
        let n = self.degree();
        assert!(m.degree == n && m.width == self.modulus().bits().div_ceil(8) as usize, "a matrix of another limb");
        assert!(m.groups == monomials.map_or(1, |(_, e)| e.len()));
        assert!(out.len() == m.columns * n && digits.len() == m.rows * n);
        self.kernels().external_product(out, digits, m, monomials);
    }
}

impl PackedMatrix {
    /// What kernels read: the bytes (with their padding) and the width of a value.
    pub(super) fn raw(&self) -> (&[u8], usize) {
        (bytemuck::cast_slice(self.words()), self.width)
    }
}

impl MonomialTable {
    /// What the vector kernels read: powers, exponents of vectors, and those of lanes.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn raw(&self) -> (&[[u64; 2]], &[u32], &[usize; 8]) {
        (&self.powers, &self.vectors, &self.lanes)
    }
}
