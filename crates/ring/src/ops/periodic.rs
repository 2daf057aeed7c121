//! Polynomials in a power of X, stored once, and their sums of products.
//!
//! Modulo a prime the values of a polynomial in X^(N/2p) at the odd powers of ψ are constant on blocks of N/2p
//! neighbours (in bit-reversed order), so 2p words stand for a whole row: a + b·X^(N/2) (p = 1) is a + b√−1 on the
//! first half of a row and a − b√−1 on the second. In slots it is a vector of period p.

use super::Crossing;
use super::crt::residue;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::{Ahead, Limb, MIN_DEGREE, round_to_i64};
use crate::order::transpose64;
use crate::poly::{Eval, Poly};
use crate::threads;
use std::ops::Range;

/// Words of a row that are put together at a time: with a few dozen rows they stay in the second cache.
const CHUNK: usize = 512;
/// Shortest block that is worth a kernel call of its own.
const SHORTEST_BLOCK: usize = 256;
/// Words within which the evaluation order is not bit-reversed ([`crate::order`]): a square of eight rows, column after column.
const SQUARE: usize = 64;
/// Words of a square's row.
const LINE: usize = 8;
/// Sizes below which coefficients are rounded to words.
const WORD: f64 = (1u64 << 62) as f64;

/// A polynomial in X^(N/2p) over a basis, in evaluation form.
#[derive(Clone)]
pub struct PeriodicPoly(Rows);

#[derive(Clone)]
enum Rows {
    /// Every value.
    Full(Poly<Eval>),
    /// For each limb its 2p values: in bit-reversed order, and where blocks are shorter than a column of a square, the rows of a
    /// square that differ.
    Blocks { degree: usize, words: usize, values: Buffer },
}

impl std::fmt::Debug for PeriodicPoly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeriodicPoly({} limbs, {} bytes)", self.limbs(), self.bytes())
    }
}

impl PeriodicPoly {
    /// Of its 2p coefficients, p a power of two up to N/2: each is rounded.
    ///
    /// # Panics
    /// For another number of coefficients.
    pub fn rounded(basis: &RnsBasis, coefficients: &[f64]) -> Self {
        let _crossing = Crossing::begin();
        let (n, words) = (basis.degree(), coefficients.len());
        assert!(words.is_power_of_two() && (2..=n).contains(&words), "two coefficients for each slot of a period");
        let coefficients = Coefficients::of(coefficients);
        if words == n {
            let mut poly = Poly::dirty(basis);
            poly.for_each(|_, limb, out| evaluate(limb, &coefficients, out));
            return Self(Rows::Full(poly));
        }
        let mut values = Buffer::dirty(words * basis.len());
        threads::for_each_chunk(&mut values, words, |t, out| evaluate(basis.limb(t), &coefficients, out));
        Self(Rows::Blocks { degree: n, words, values })
    }

    /// Words of a limb of a vector of some period.
    pub const fn words_of(period: usize) -> usize {
        2 * period
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Rows::Full(poly) => poly.bytes(),
            Rows::Blocks { values, .. } => 8 * values.len(),
        }
    }

    /// Number of limbs.
    pub(super) fn limbs(&self) -> usize {
        match &self.0 {
            Rows::Full(poly) => poly.basis().len(),
            Rows::Blocks { words, values, .. } => values.len() / words,
        }
    }

    /// Neighbours that share a value; 1 where all are kept.
    fn block(&self) -> usize {
        match &self.0 {
            Rows::Full(_) => 1,
            Rows::Blocks { degree, words, .. } => degree / words,
        }
    }

    /// Words `start` … of row `t`, put together in `scratch` unless they stand there already.
    pub(super) fn part<'a>(&'a self, t: usize, start: usize, scratch: &'a mut [u64]) -> &'a [u64] {
        let (block, values) = match &self.0 {
            Rows::Full(poly) => return &poly.limb(t)[start..start + scratch.len()],
            Rows::Blocks { degree, words, values } => (degree / words, &values[t * words..(t + 1) * words]),
        };
        if block >= SQUARE {
            let step = block.min(scratch.len());
            for (i, out) in scratch.chunks_mut(step).enumerate() {
                out.fill(values[(start + i * step) / block]);
            }
        } else if block >= LINE {
            // Index 8r + c of a square stands for 8c + r.
            let per_lane = block / LINE;
            for (i, out) in scratch.chunks_exact_mut(SQUARE).enumerate() {
                let first = (start + i * SQUARE) / block;
                let lanes: [u64; LINE] = std::array::from_fn(|c| values[first + c / per_lane]);
                out.chunks_exact_mut(LINE).for_each(|row| row.copy_from_slice(&lanes));
            }
        } else {
            let lines = values[start / block..].chunks_exact(LINE);
            for (line, out) in lines.zip(scratch.chunks_exact_mut(LINE * block)) {
                out.chunks_exact_mut(LINE).for_each(|row| row.copy_from_slice(line));
            }
        }
        scratch
    }

    /// All values.
    #[doc(hidden)]
    pub fn to_poly(&self, basis: &RnsBasis) -> Poly<Eval> {
        let mut out = Poly::dirty(basis);
        out.for_each(|t, _, x| {
            let mut scratch = Buffer::dirty(x.len());
            x.copy_from_slice(self.part(t, 0, &mut scratch));
        });
        out
    }
}

/// Coefficients of a polynomial in a power of X, to be rounded.
enum Coefficients<'a> {
    /// Rounded to words.
    Words(Vec<i64>),
    /// Of which some are too large.
    Large(&'a [f64]),
}

impl<'a> Coefficients<'a> {
    fn of(coefficients: &'a [f64]) -> Self {
        if coefficients.iter().any(|c| c.abs() >= WORD) {
            return Self::Large(coefficients);
        }
        let mut words = vec![0; coefficients.len()];
        round_to_i64(&mut words, coefficients, 1.0);
        Self::Words(words)
    }

    fn residues(&self, limb: &Limb, out: &mut [u64]) {
        let q = limb.modulus();
        match self {
            // A line at least, as kernels take them.
            Self::Words(words) if words.len() >= LINE => limb.from_i64(out, words),
            Self::Words(words) => out.iter_mut().zip(words).for_each(|(o, c)| *o = q.reduce_i64(*c)),
            Self::Large(large) => out.iter_mut().zip(*large).for_each(|(o, c)| *o = residue(*c, q)),
        }
    }
}

/// The values modulo a prime: all N of them, or one for each block.
fn evaluate(limb: &Limb, coefficients: &Coefficients<'_>, out: &mut [u64]) {
    let (n, q, words) = (limb.degree(), limb.modulus(), out.len());
    coefficients.residues(limb, out);
    if words == n {
        return limb.forward(out);
    }
    if words == 2 {
        // ψ^(N/2) is a square root of −1.
        let [a, b] = [out[0], q.mul(out[1], q.pow(limb.root(), n as u64 / 2))];
        (out[0], out[1]) = (q.add(a, b), q.sub(a, b));
        return;
    }
    // A polynomial in a power of X is transformed as one of a smaller degree, down to the least that kernels serve.
    let (degree, block) = (words.max(MIN_DEGREE), n / words);
    let stride = degree / words;
    let mut row = Buffer::zeroed(degree);
    row.iter_mut().step_by(stride).zip(out.iter()).for_each(|(x, c)| *x = *c);
    // No whole transform, so that it is not counted as one.
    limb.smaller(degree).kernels().forward(&mut row, &mut Ahead::of(&[]));
    let reversed = |i: usize| row[transpose64(i * stride)];
    if block >= LINE {
        out.iter_mut().enumerate().for_each(|(i, o)| *o = reversed(i));
        return;
    }
    // Rows of a square, `block` of which are alike.
    let lines = LINE / block;
    for (square, out) in out.chunks_exact_mut(LINE * lines).enumerate() {
        let place = |i: usize| square * LINE * lines + i % LINE * lines + i / LINE;
        out.iter_mut().enumerate().for_each(|(i, o)| *o = reversed(place(i)));
    }
}

/// Some rows and what multiplies them, with that one's limb.
pub(super) type RowTerm<'a, const K: usize> = ([&'a [u64]; K], &'a PeriodicPoly, usize);

/// out_k = Σ_i x_ik ⊙ p_i modulo a limb's prime, in `[0, q)`, for the words from `start` on of the p_i, as many as each
/// row has; rows in `[0, q)`, at least one. A p_i is read once for all k.
pub(super) fn weighted_sums<const K: usize>(
    limb: &Limb,
    mut outs: [&mut [u64]; K],
    start: usize,
    terms: &[RowTerm<'_, K>],
) {
    let len = outs.first().map_or(0, |out| out.len());
    let block = terms.iter().map(|(_, p, _)| p.block()).min().unwrap_or(1);
    let rows = |k: usize, columns: &Range<usize>| -> Vec<&[u64]> {
        terms.iter().map(|(x, ..)| &x[k][columns.clone()]).collect()
    };
    if block >= SHORTEST_BLOCK {
        let (bits, step) = (limb.modulus().bits(), block.min(len));
        for at in (0..len).step_by(step) {
            let columns = at..at + step;
            let mut word = [0];
            let weights: Vec<u64> = terms.iter().map(|(_, p, t)| p.part(*t, start + at, &mut word)[0]).collect();
            for (k, out) in outs.iter_mut().enumerate() {
                limb.combine(&mut out[columns.clone()], &rows(k, &columns), &weights, bits);
            }
        }
        return;
    }
    let mut scratch = Buffer::dirty(terms.len() * CHUNK);
    for at in (0..len).step_by(CHUNK) {
        let columns = at..len.min(at + CHUNK);
        let factors: Vec<&[u64]> = terms
            .iter()
            .zip(scratch.chunks_exact_mut(CHUNK))
            .map(|((_, p, t), scratch)| p.part(*t, start + at, &mut scratch[..columns.len()]))
            .collect();
        match outs.as_mut_slice() {
            [x, y] => {
                let outs = [&mut x[columns.clone()], &mut y[columns.clone()]];
                limb.dot_pair(outs, &factors, &rows(0, &columns), &rows(1, &columns));
            }
            outs => {
                for (k, out) in outs.iter_mut().enumerate() {
                    limb.dot(&mut out[columns.clone()], &rows(k, &columns), &factors);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;
    use sudare_testkit::Random;

    fn coefficients(p: usize) -> Vec<f64> {
        (0..2 * p).map(|j| ((j as f64 * 0.37).sin() * 40f64.exp2()).round()).collect()
    }

    /// By a transform of its own size a polynomial in a power of X has the values that it has among all.
    #[test]
    fn values_are_those_of_the_whole_polynomial() {
        let n = 1024;
        let basis = RnsBasis::new(n, &ntt_primes(n, 50, 2, &[]).unwrap()).unwrap();
        for p in (0..10).map(|k| 1usize << k) {
            let mut whole = vec![0; n];
            let own = coefficients(p);
            own.iter().enumerate().for_each(|(j, c)| whole[j * n / (2 * p)] = *c as i64);
            let wanted = Poly::<crate::Coeff>::from_signed(&basis, &whole).into_eval();
            let found = PeriodicPoly::rounded(&basis, &own);
            assert_eq!(found.bytes(), 2 * 8 * PeriodicPoly::words_of(p));
            assert!(found.to_poly(&basis).words() == wanted.words(), "period {p}");
        }
    }

    #[test]
    fn sums_of_all_kinds() {
        let n = 1024;
        let basis = RnsBasis::new(n, &ntt_primes(n, 50, 2, &[]).unwrap()).unwrap();
        let limb = basis.limb(1);
        for periods in [vec![1], vec![1, 2, 1], vec![1, 4, 16], vec![512, 1, 64, 32], vec![128], vec![256, 128, 512]] {
            let plains: Vec<_> = periods.iter().map(|p| PeriodicPoly::rounded(&basis, &coefficients(*p))).collect();
            let rows: Vec<Vec<u64>> = (0..periods.len() as u64).map(|k| Random(k).words(limb.q(), n)).collect();
            let terms: Vec<RowTerm<'_, 1>> = rows.iter().zip(&plains).map(|(x, p)| ([x.as_slice()], p, 1)).collect();
            let mut out = vec![0; n];
            weighted_sums(limb, [&mut out], 0, &terms);
            // Two rows for each polynomial, part after part.
            let mut twice = [vec![0; n], vec![0; n]];
            for at in (0..n).step_by(128) {
                let columns = at..at + 128;
                let row = |i: usize| &rows[i % rows.len()][columns.clone()];
                let terms: Vec<RowTerm<'_, 2>> =
                    plains.iter().enumerate().map(|(i, p)| ([row(i + 1), row(i)], p, 1)).collect();
                let [x, y] = &mut twice;
                weighted_sums(limb, [&mut x[columns.clone()], &mut y[columns.clone()]], at, &terms);
            }
            assert_eq!(twice[1], out);
            let turned: Vec<RowTerm<'_, 1>> =
                plains.iter().enumerate().map(|(i, p)| ([rows[(i + 1) % rows.len()].as_slice()], p, 1)).collect();
            let mut other = vec![0; n];
            weighted_sums(limb, [&mut other], 0, &turned);
            assert_eq!(twice[0], other);
            let full: Vec<_> = plains.iter().map(|p| p.to_poly(&basis)).collect();
            for (i, x) in out.iter().enumerate() {
                let m = limb.modulus();
                let wanted = (0..rows.len()).fold(0, |acc, k| m.add(acc, m.mul(rows[k][i], full[k].limb(1)[i])));
                assert_eq!(*x, wanted);
            }
        }
    }
}
