//! Polynomials in a power of X, stored once, and their sums of products.
//!
//! Modulo a prime the values of a polynomial in X^(N/2p) at the odd powers of ψ are constant on blocks of N/2p
//! neighbours (in bit-reversed order), so 2p words stand for a whole row: a + b·X^(N/2) (p = 1) is a + b√−1 on the
//! first half of a row and a − b√−1 on the second. In slots it is a vector of period p.

use super::Crossing;
use super::crt::residue;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::Limb;
use crate::poly::{Eval, Poly};
use crate::threads;
use std::ops::Range;

/// Words of a row that are put together at a time: with a few dozen rows they stay in the second cache.
const CHUNK: usize = 512;
/// Shortest block that is worth a kernel call of its own.
const SHORTEST_BLOCK: usize = 256;
/// Words within which the evaluation order is not bit-reversed ([`crate::order`]).
const SQUARE: usize = 64;
/// Shortest block that is kept once: within a square of eight by eight, all rows are alike then.
const SHORTEST_KEPT: usize = 8;

/// A polynomial in X^(N/2p) over a basis, in evaluation form.
#[derive(Clone, Debug)]
pub struct PeriodicPoly(Rows);

#[derive(Clone, Debug)]
enum Rows {
    /// Every value.
    Full(Poly<Eval>),
    /// For each limb its 2p values, in bit-reversed order.
    Blocks { degree: usize, words: usize, values: Vec<u64> },
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
        let kept = Self::words_of(n, words / 2);
        let mut values = Buffer::dirty(kept * basis.len());
        threads::for_each_chunk(&mut values, kept, |t, out| evaluate(basis.limb(t), coefficients, out));
        if kept < n {
            return Self(Rows::Blocks { degree: n, words, values: values.to_vec() });
        }
        let mut poly = Poly::dirty(basis);
        poly.words_mut().copy_from_slice(&values);
        Self(Rows::Full(poly))
    }

    /// Words of a limb of a vector of some period.
    pub fn words_of(degree: usize, period: usize) -> usize {
        if degree / (2 * period) < SHORTEST_KEPT { degree } else { 2 * period }
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
    fn part<'a>(&'a self, t: usize, start: usize, scratch: &'a mut [u64]) -> &'a [u64] {
        let (block, values) = match &self.0 {
            Rows::Full(poly) => return &poly.limb(t)[start..start + scratch.len()],
            Rows::Blocks { degree, words, values } => (degree / words, &values[t * words..(t + 1) * words]),
        };
        if block >= SQUARE {
            let step = block.min(scratch.len());
            for (i, out) in scratch.chunks_mut(step).enumerate() {
                out.fill(values[(start + i * step) / block]);
            }
        } else {
            // Index 8r + c of a square stands for 8c + r.
            let per_lane = block / 8;
            for (i, out) in scratch.chunks_exact_mut(SQUARE).enumerate() {
                let first = (start + i * SQUARE) / block;
                let lanes: [u64; 8] = std::array::from_fn(|c| values[first + c / per_lane]);
                out.chunks_exact_mut(8).for_each(|row| row.copy_from_slice(&lanes));
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

/// The values modulo a prime: all N of them, or one for each block.
fn evaluate(limb: &Limb, coefficients: &[f64], out: &mut [u64]) {
    let (n, q) = (limb.degree(), limb.modulus());
    let stride = n / coefficients.len();
    if coefficients.len() == 2 {
        // ψ^(N/2) is a square root of −1.
        let [a, b] = [coefficients[0], coefficients[1]].map(|c| residue(c, q));
        let b = q.mul(b, q.pow(limb.root(), n as u64 / 2));
        (out[0], out[1]) = (q.add(a, b), q.sub(a, b));
        return;
    }
    let mut row = Buffer::zeroed(n);
    row.iter_mut().step_by(stride).zip(coefficients).for_each(|(x, c)| *x = residue(*c, q));
    if out.len() == n {
        limb.forward(&mut row);
        out.copy_from_slice(&row);
        return;
    }
    // After so many layers a block is the polynomial modulo X^d − ω, a constant.
    limb.forward_partial(&mut row, coefficients.len().trailing_zeros());
    out.iter_mut().zip(row.iter().step_by(stride)).for_each(|(o, x)| *o = *x);
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

    #[test]
    fn sums_of_all_kinds() {
        let n = 1024;
        let basis = RnsBasis::new(n, &ntt_primes(n, 50, 2, &[]).unwrap()).unwrap();
        let limb = basis.limb(1);
        for periods in [vec![1], vec![1, 2, 1], vec![1, 4, 16], vec![512, 1, 64, 32]] {
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
