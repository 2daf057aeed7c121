//! Sums of products: added up in 128 bits, a few words side by side, and reduced once.

use super::{ScalarLimb, Word};
use crate::kernel::contract::{Rows, RowsMut};
use crate::modulus::Modulus;
use crate::packed::{BLOCK, PackedBlocks, unpack};

/// Words side by side: their sums stay in registers.
const SIDE: usize = 4;

/// Words side by side of two sums each.
const TWO: usize = 2;

/// How sums of products of so many bits are reduced.
#[derive(Clone, Copy)]
pub(super) struct Reduction<'a> {
    q: &'a Modulus,
    word: Word,
    /// Whether sums of all terms and a residue are so small that [`Word::reduce_sum`] takes them.
    near: bool,
    /// Terms that 128 bits hold with what a reduction leaves.
    pub lazy: usize,
}

impl<'a> Reduction<'a> {
    /// For `terms` products of a word and a residue.
    #[inline(always)]
    pub(super) fn new(q: &'a Modulus, word_bits: u32, terms: usize) -> Self {
        let near = terms <= 1 << 62u32.saturating_sub(word_bits).min(20);
        Self { q, word: Word::new(q), near, lazy: 1 << (127 - word_bits - q.bits()).min(20) }
    }

    /// The sum modulo q.
    #[inline(always)]
    pub(super) fn reduce(self, sum: u128) -> u64 {
        match self.near {
            true => self.word.reduce_sum(sum),
            false => self.q.reduce_u128(sum),
        }
    }
}

/// `out = start + Σ_j a_j · b_j` of [`SIDE`] words each; `b(j)` gives those of term `j`.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn sum<'a>(
    by: Reduction<'_>,
    terms: usize,
    start: [u64; SIDE],
    row: impl Fn(usize) -> (&'a [u64; SIDE], [u64; SIDE]),
) -> [u64; SIDE] {
    let mut total = start;
    let mut first = 0;
    loop {
        let end = terms.min(first + by.lazy);
        // Loops, since closures of `map` are called where they would be expanded.
        let mut sums = [0u128; SIDE];
        for l in 0..SIDE {
            sums[l] = u128::from(total[l]);
        }
        for j in first..end {
            let (x, y) = row(j);
            for l in 0..SIDE {
                sums[l] += u128::from(x[l]) * u128::from(y[l]);
            }
        }
        for l in 0..SIDE {
            total[l] = by.reduce(sums[l]);
        }
        if end == terms {
            return total;
        }
        first = end;
    }
}

/// Both sums of a block's `i`-th two words: on top of `start` for the first, `Σ_j a_j · b_j`.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn pair_sums(
    by: Reduction<'_>,
    start: [u64; TWO],
    a: &[[u64; BLOCK]],
    b: &[[[u64; BLOCK]; 2]],
    i: usize,
) -> [[u64; TWO]; 2] {
    let mut total = [start, [0; TWO]];
    let (mut a, mut b) = (a, b);
    loop {
        // Cut by hand: `chunks` divides.
        let terms = a.len().min(by.lazy);
        let (a_now, b_now);
        ((a_now, a), (b_now, b)) = (a.split_at(terms), b.split_at(terms));
        // Loops, as above.
        let mut sums = [[0u128; TWO]; 2];
        for part in 0..2 {
            for l in 0..TWO {
                sums[part][l] = u128::from(total[part][l]);
            }
        }
        for (x, pair) in a_now.iter().zip(b_now) {
            let x = x.as_chunks::<TWO>().0[i];
            for (sums, y) in sums.iter_mut().zip(pair) {
                let y = y.as_chunks::<TWO>().0[i];
                for l in 0..TWO {
                    sums[l] += u128::from(x[l]) * u128::from(y[l]);
                }
            }
        }
        for part in 0..2 {
            for l in 0..TWO {
                total[part][l] = by.reduce(sums[part][l]);
            }
        }
        if a.is_empty() {
            return total;
        }
    }
}

/// The [`SIDE`] words from `at` on.
#[inline(always)]
fn words(row: &[u64], at: usize) -> &[u64; SIDE] {
    &row[at..at + SIDE].as_chunks().0[0]
}

impl ScalarLimb {
    #[inline(always)]
    pub(crate) fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        let by = Reduction::new(&self.q, self.q.bits(), a.len());
        for (i, o) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            *o = sum(by, a.len(), [0; SIDE], |j| (words(a[j], SIDE * i), *words(b[j], SIDE * i)));
        }
    }

    #[inline(always)]
    pub(crate) fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        let [out0, out1] = out;
        self.dot(out0, a, b0);
        self.dot(out1, a, b1);
    }

    #[inline(always)]
    pub(crate) fn dot_pair_packed(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        let by = Reduction::new(&self.q, self.q.bits(), a.len());
        let unit = b.width().unit_words();
        let [out0, out1] = out;
        // Rows side by side: a term is one step further in both. Whole words of pairs are read where they stand.
        let mut rows = vec![[0u64; BLOCK]; a.len()];
        let mut unpacked = vec![[[0u64; BLOCK]; 2]; if unit < BLOCK { a.len() } else { 0 }];
        let blocks = out0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(out1.as_chunks_mut::<BLOCK>().0);
        for (at, (out0, out1)) in blocks.enumerate() {
            let units = b.block(at);
            for (pair, units) in unpacked.iter_mut().zip(units.chunks_exact(2 * unit)) {
                let (first, second) = units.split_at(unit);
                unpack(b.width(), &mut pair[0], first);
                unpack(b.width(), &mut pair[1], second);
            }
            rows.iter_mut().zip(a).for_each(|(row, a)| *row = a.as_chunks().0[at]);
            let pairs = if unit < BLOCK { &unpacked } else { units.as_chunks().0.as_chunks().0 };
            let first = start.map(|row| &row.as_chunks::<BLOCK>().0[at]);
            let outs = out0.as_chunks_mut::<TWO>().0.iter_mut().zip(out1.as_chunks_mut::<TWO>().0);
            for (i, (out0, out1)) in outs.enumerate() {
                let start = first.map_or([0; TWO], |row| row.as_chunks().0[i]);
                [*out0, *out1] = pair_sums(by, start, &rows, pairs, i);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
        let by = Reduction::new(&self.q, bound_bits, src.len());
        for (i, o) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            *o = sum(by, src.len(), [0; SIDE], |j| (words(src[j], SIDE * i), [w[j]; SIDE]));
        }
    }

    #[inline(always)]
    pub(crate) fn gemm(
        &self,
        c: RowsMut<'_>,
        a: Rows<'_>,
        b: Rows<'_>,
        (m, k, n): (usize, usize, usize),
        accumulate: bool,
    ) {
        let by = Reduction::new(&self.q, self.q.bits(), k);
        // A panel of columns, copied once for all rows.
        let mut panel = vec![[0u64; SIDE]; k];
        for at in (0..n).step_by(SIDE) {
            for (t, row) in panel.iter_mut().enumerate() {
                *row = *words(&b.words[t * b.stride..], at);
            }
            for i in 0..m {
                let x = &a.words[i * a.stride..][..k];
                let place = &mut c.words[i * c.stride + at..][..SIDE];
                let start = if accumulate { *words(place, 0) } else { [0; SIDE] };
                place.copy_from_slice(&sum(by, k, start, |t| (&panel[t], [x[t]; SIDE])));
            }
        }
    }
}
