//! Plaintexts whose slots repeat, stored once.
//!
//! A slot vector of period p is a polynomial in X^(N/2p). Modulo a prime its values at the odd powers
//! of ψ are constant on blocks of N/2p neighbours (in bit-reversed order), so 2p words stand for a
//! whole row: a complex constant (p = 1) is a + b√−1 on the first half of a row and a − b√−1 on the
//! second.

use crate::ckks::Params;
use num_complex::Complex64;
use sudare_ring::buffer::Buffer;
use sudare_ring::{Eval, Limb, Modulus, Poly, RnsBasis, threads};

/// Words of a row that are put together at a time: with a few dozen rows they stay in the second cache.
const CHUNK: usize = 512;
/// Shortest block that is worth a kernel call of its own.
const SHORTEST_BLOCK: usize = 256;
/// Words within which the evaluation order is not bit-reversed ([`sudare_ring::order`]).
const SQUARE: usize = 64;
/// Shortest block that is kept once: within a square of eight by eight, all rows are alike then.
const SHORTEST_KEPT: usize = 8;
/// Sizes up to which a scaled coefficient is rounded to a word.
const WORD: f64 = (1u64 << 62) as f64;

/// An encoded slot vector of some period over a basis, in evaluation form.
#[derive(Clone, Debug)]
pub(crate) enum PeriodicRows {
    /// Every value.
    Full(Poly<Eval>),
    /// For each limb its 2p values, in bit-reversed order.
    Blocks { degree: usize, words: usize, values: Vec<u64> },
}

/// The shortest period of a vector, a power of two.
pub(crate) fn period<T: PartialEq>(slots: &[T]) -> usize {
    let mut length = slots.len();
    while length.is_multiple_of(2) && slots[..length / 2] == slots[length / 2..length] {
        length /= 2;
    }
    length
}

/// ⌊x⌉ modulo q, for numbers of any size.
pub(crate) fn residue(x: f64, q: &Modulus) -> u64 {
    if x.abs() < WORD {
        return q.reduce_i64(x.round_ties_even() as i64);
    }
    let shift = x.abs().log2() as i32 - 60;
    q.mul(q.reduce_i64((x * f64::from(-shift).exp2()) as i64), q.pow(2, shift as u64))
}

impl PeriodicRows {
    /// The slot vector that repeats `slots` (a power of two of them, up to N/2) at a scale.
    pub fn encode(params: &Params, basis: &RnsBasis, slots: &[Complex64], scale: f64) -> Self {
        Self::encode_rounded(params, basis, slots, scale).0
    }

    /// The same, and the mean square of the error that rounding leaves in a slot, in integer units: 2p/12 on
    /// average.
    pub fn encode_rounded(params: &Params, basis: &RnsBasis, slots: &[Complex64], scale: f64) -> (Self, f64) {
        let slots = &slots[..period(slots)];
        let (n, words) = (params.degree(), 2 * slots.len());
        let coefficients = coefficients(params, slots, scale);
        let rounding = coefficients.iter().map(|c| (c - c.round_ties_even()).powi(2)).sum();
        let kept = Self::words_of(n, slots.len());
        let mut values = Buffer::dirty(kept * basis.len());
        threads::for_each_chunk(&mut values, kept, |t, out| evaluate(basis.limb(t), &coefficients, out));
        if kept < n {
            return (Self::Blocks { degree: n, words, values: values.to_vec() }, rounding);
        }
        let mut poly = Poly::dirty(basis);
        poly.words_mut().copy_from_slice(&values);
        (Self::Full(poly), rounding)
    }

    /// Words of a limb of a vector of some period.
    pub fn words_of(degree: usize, period: usize) -> usize {
        if degree / (2 * period) < SHORTEST_KEPT { degree } else { 2 * period }
    }

    /// Neighbours that share a value; 1 where all are kept.
    fn block(&self) -> usize {
        match self {
            Self::Full(_) => 1,
            Self::Blocks { degree, words, .. } => degree / words,
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        8 * match self {
            Self::Full(poly) => poly.words().len(),
            Self::Blocks { values, .. } => values.len(),
        }
    }

    /// Words `start` … of row `t`, put together in `scratch` unless they stand there already.
    fn part<'a>(&'a self, t: usize, start: usize, scratch: &'a mut [u64]) -> &'a [u64] {
        let (block, values) = match self {
            Self::Full(poly) => return &poly.limb(t)[start..start + scratch.len()],
            Self::Blocks { degree, words, values } => (degree / words, &values[t * words..(t + 1) * words]),
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

    /// All of row `t`.
    #[cfg(test)]
    pub fn row(&self, t: usize, degree: usize) -> Vec<u64> {
        let mut out = vec![0; degree];
        self.part(t, 0, &mut out).to_vec()
    }
}

/// The 2p coefficients of the polynomial in X^(N/2p), scaled and not yet rounded.
fn coefficients(params: &Params, slots: &[Complex64], scale: f64) -> Vec<f64> {
    let (all, p) = (params.slots(), slots.len());
    if p == 1 {
        return vec![slots[0].re * scale, slots[0].im * scale];
    }
    let (mut re, mut im): (Vec<f64>, Vec<f64>) = slots.iter().cycle().take(all).map(|z| (z.re, z.im)).unzip();
    params.embedding().embed_inverse_split(&mut re, &mut im);
    let strided = |x: Vec<f64>| x.into_iter().step_by(all / p).map(move |c| c * scale);
    strided(re).chain(strided(im)).collect()
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

/// A row and the plaintext that multiplies it, with the plaintext's limb.
pub(crate) type Term<'a> = (&'a [u64], &'a PeriodicRows, usize);

/// out = Σ_i x_i ⊙ p_i modulo a limb's prime, in `[0, q)`; rows in `[0, q)`, at least one.
pub(crate) fn weighted_sum(limb: &Limb, out: &mut [u64], terms: &[Term<'_>]) {
    let block = terms.iter().map(|(_, p, _)| p.block()).min().unwrap_or(1);
    if block >= SHORTEST_BLOCK {
        let bits = limb.modulus().bits();
        for (b, out) in out.chunks_exact_mut(block).enumerate() {
            let at = b * block;
            let rows: Vec<&[u64]> = terms.iter().map(|(x, ..)| &x[at..at + block]).collect();
            let mut word = [0];
            let weights: Vec<u64> = terms.iter().map(|(_, p, t)| p.part(*t, at, &mut word)[0]).collect();
            limb.combine(out, &rows, &weights, bits);
        }
        return;
    }
    let mut scratch = Buffer::dirty(terms.len() * CHUNK);
    for (c, out) in out.chunks_mut(CHUNK).enumerate() {
        let columns = c * CHUNK..c * CHUNK + out.len();
        let rows: Vec<&[u64]> = terms.iter().map(|(x, ..)| &x[columns.clone()]).collect();
        let factors: Vec<&[u64]> = terms
            .iter()
            .zip(scratch.chunks_exact_mut(CHUNK))
            .map(|((_, p, t), scratch)| p.part(*t, columns.start, &mut scratch[..out.len()]))
            .collect();
        limb.dot(out, &rows, &factors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckks::ParamsLiteral;
    use sudare_ring::Coeff;
    use sudare_rlwe::security::{SecretDistribution, Security};

    fn params() -> Params {
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: 10,
            q_bits: vec![45, 50, 40],
            p_bits: vec![],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        ParamsLiteral { rlwe, log_scale: 30 }.build().unwrap()
    }

    fn vector(p: usize) -> Vec<Complex64> {
        (0..p).map(|j| Complex64::new((j as f64 * 0.37).sin(), (j as f64 * 0.91).cos())).collect()
    }

    /// The rows of a polynomial encoded the long way: all slots, all coefficients.
    fn whole(params: &Params, slots: &[Complex64], scale: f64) -> Poly<Eval> {
        let all = params.slots();
        let (mut re, mut im): (Vec<f64>, Vec<f64>) = slots.iter().cycle().take(all).map(|z| (z.re, z.im)).unzip();
        params.embedding().embed_inverse_split(&mut re, &mut im);
        let stride = all / slots.len();
        let rounded = |(i, c): (usize, f64)| if i % stride == 0 { (c * scale).round_ties_even() as i64 } else { 0 };
        let rounded: Vec<i64> = re.into_iter().chain(im).enumerate().map(rounded).collect();
        Poly::<Coeff>::from_signed(params.q(), &rounded).into_eval()
    }

    #[test]
    fn every_period_gives_the_rows_of_the_whole_vector() {
        let params = params();
        let scale = 35f64.exp2();
        for p in (0..=params.slots().trailing_zeros()).map(|k| 1usize << k) {
            let rows = PeriodicRows::encode(&params, params.q(), &vector(p), scale);
            let wanted = whole(&params, &vector(p), scale);
            for t in 0..3 {
                assert!(rows.row(t, 1024) == wanted.limb(t), "period {p}, limb {t}");
            }
            let kept = if p > 64 { 1024 } else { 2 * p };
            assert_eq!(rows.bytes(), 24 * kept, "period {p}");
        }
    }

    #[test]
    fn repetitions_are_found() {
        assert_eq!(period(&[1, 2, 1, 2, 1, 2, 1, 2]), 2);
        assert_eq!(period(&[1, 2, 1, 3]), 4);
        assert_eq!(period(&[7; 8]), 1);
        let params = params();
        let long: Vec<Complex64> = vector(8).into_iter().cycle().take(512).collect();
        assert_eq!(PeriodicRows::encode(&params, params.q(), &long, 1e9).bytes(), 3 * 16 * 8);
    }

    #[test]
    fn sums_of_all_kinds() {
        let params = params();
        let limb = params.q().limb(1);
        for periods in [vec![1], vec![1, 2, 1], vec![1, 4, 16], vec![512, 1, 64, 32]] {
            let plains: Vec<PeriodicRows> =
                periods.iter().map(|p| PeriodicRows::encode(&params, params.q(), &vector(*p), 40f64.exp2())).collect();
            let rows: Vec<Vec<u64>> = (0..periods.len() as u64)
                .map(|k| (0..1024u64).map(|i| (i * 0x9E37_79B9_7F4A + k * 77777) % limb.q()).collect())
                .collect();
            let terms: Vec<Term<'_>> = rows.iter().zip(&plains).map(|(x, p)| (x.as_slice(), p, 1)).collect();
            let mut out = vec![0; 1024];
            weighted_sum(limb, &mut out, &terms);
            let full: Vec<Vec<u64>> = plains.iter().map(|p| p.row(1, 1024)).collect();
            for (i, x) in out.iter().enumerate() {
                let m = limb.modulus();
                let wanted = (0..rows.len()).fold(0, |acc, k| m.add(acc, m.mul(rows[k][i], full[k][i])));
                assert_eq!(*x, wanted);
            }
        }
    }

    #[test]
    fn residues_of_large_numbers() {
        let params = params();
        let q = params.q().limb(0).modulus();
        assert_eq!(residue(-2.5, q), q.value() - 2);
        assert_eq!(residue(100f64.exp2(), q), q.pow(2, 100));
        assert_eq!(residue(-3.0 * 90f64.exp2(), q), q.neg(q.mul(3, q.pow(2, 90))));
    }
}
