//! What planning has to know of parameters: a chain of primes by their sizes, before there are any.

use super::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE, canonical_bound, variance_of};
use crate::params::{Params, ParamsLiteral};
use crate::security::SecretDistribution;

/// Degree, sizes of primes, and the secret's variance: enough for levels, scales and noise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chain {
    pub degree: usize,
    /// Data primes from the bottom.
    pub primes: Vec<f64>,
    /// Special primes.
    pub special: Vec<f64>,
    pub digit_limbs: usize,
    pub secret: SecretDistribution,
}

impl Chain {
    /// The chain of a set.
    pub fn of(params: &Params) -> Self {
        let sizes = |basis: &sudare_ring::RnsBasis| basis.primes().map(|q| q as f64).collect();
        let literal = params.literal();
        Self {
            degree: params.degree(),
            primes: sizes(params.q()),
            special: sizes(params.p()),
            digit_limbs: literal.digit_limbs,
            secret: literal.secret,
        }
    }

    /// The chain of a literal: primes are nearly the powers of two below which they lie.
    pub fn of_literal(literal: &ParamsLiteral) -> Self {
        let sizes = |bits: &[u32]| bits.iter().map(|b| f64::from(*b).exp2()).collect();
        Self {
            degree: 1 << literal.log_n,
            primes: sizes(&literal.q_bits),
            special: sizes(&literal.p_bits),
            digit_limbs: literal.digit_limbs,
            secret: literal.secret,
        }
    }

    /// Some of its primes.
    pub fn part(&self, data: usize, special: usize, digit_limbs: usize) -> Self {
        let (primes, special) = (self.primes[..data].to_vec(), self.special[..special].to_vec());
        Self { primes, special, digit_limbs, ..self.clone() }
    }

    /// The prime that a division at a level goes by.
    pub fn prime(&self, level: usize) -> f64 {
        self.primes[level]
    }

    /// The highest level.
    pub fn max_level(&self) -> usize {
        self.primes.len() - 1
    }

    /// Variance of a secret's coefficient.
    pub fn secret_variance(&self) -> f64 {
        variance_of(self.secret, self.degree)
    }

    /// Variance of a coefficient of r_0 + r_1·s (+ r_2·s²): what rounding the parts leaves.
    pub fn division_variance(&self, parts: usize) -> f64 {
        let ns = self.degree as f64 * self.secret_variance();
        // An embedded value of s² has the second moment 2·(N·V_s)², a coefficient the N-th part.
        ROUNDING_VARIANCE * (1.0 + ns + if parts > 2 { 2.0 * ns * ns } else { 0.0 })
    }

    /// Canonical bound of the same.
    pub fn division_bound(&self, parts: usize) -> f64 {
        let n = self.degree;
        let ns = n as f64 * self.secret_variance();
        let third = if parts > 2 { canonical_bound(n, ROUNDING_VARIANCE * ns * ns, 3) } else { 0.0 };
        canonical_bound(n, ROUNDING_VARIANCE, 1) + canonical_bound(n, ROUNDING_VARIANCE * ns, 2) + third
    }

    /// Variance of Σ_j d_j·e_j / P with digits uniform and centred, without the rounding of the division.
    pub fn switching_variance(&self, level: usize) -> f64 {
        let log = |primes: &[f64]| primes.iter().map(|q| q.log2()).sum::<f64>();
        let p = log(&self.special);
        let digits = self.primes[..=level].chunks(self.digit_limbs);
        let squares: f64 = digits.map(|d| (2.0 * (log(d) - p)).exp2()).sum();
        self.degree as f64 * ERROR_VARIANCE * squares * ROUNDING_VARIANCE
    }

    /// Canonical bound of the same.
    pub fn switching_bound(&self, level: usize) -> f64 {
        canonical_bound(self.degree, self.switching_variance(level), 2)
    }
}
