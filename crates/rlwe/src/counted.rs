//! What operations are made of: transforms, conversions, decompositions, inner products and bytes of keys, from the sizes of
//! primes alone. [`sudare_ring::count`] counts the same where it is done.

use crate::params::ParamsLiteral;
use sudare_ring::count::Counts;
use sudare_ring::ops::PolyPairs;

/// The primes of some ciphertexts and of their keys, by size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Primes<'a> {
    n: usize,
    q: &'a [u32],
    p: &'a [u32],
    digit_limbs: usize,
}

/// So many transforms and conversions.
fn passes(transforms: usize, conversions: usize) -> Counts {
    Counts { transforms: transforms as u64, conversions: conversions as u64, ..Counts::default() }
}

impl<'a> Primes<'a> {
    /// Of a literal.
    pub fn of(literal: &'a ParamsLiteral) -> Self {
        Self { n: 1 << literal.log_n, q: &literal.q_bits, p: &literal.p_bits, digit_limbs: literal.digit_limbs.max(1) }
    }

    fn digits(&self, level: usize) -> usize {
        (level + 1).div_ceil(self.digit_limbs)
    }

    /// A decomposition at a level: all limbs one way, and every digit over all other primes back.
    pub fn decomposition(&self, level: usize) -> Counts {
        let digits = self.digits(level);
        Counts { decompositions: 1, ..passes(digits * (level + 1 + self.p.len()), digits) }
    }

    /// An inner product at a level.
    pub fn product(&self, level: usize) -> Counts {
        let bits = self.q[..=level].iter().chain(self.p).copied();
        let key_bytes = PolyPairs::bytes_of(self.n, bits, self.digits(level)) as u64;
        Counts { inner_products: 1, key_bytes, ..Counts::default() }
    }

    /// Divisions of some polynomials at a level by all special primes, with the last data prime or without: each prime
    /// that goes is transformed back, and each that stays forth.
    pub fn divisions(&self, polynomials: usize, level: usize) -> Counts {
        passes(polynomials * (level + 1 + self.p.len()), polynomials)
    }

    /// Divisions of some polynomials by one prime.
    pub fn rescales(&self, polynomials: usize, level: usize) -> Counts {
        passes(polynomials * (level + 1), polynomials)
    }

    /// A sum of scale-invariant products, of operands of these levels.
    pub fn dot_scaled(&self, left: &[usize], right: &[usize], level: usize, aux: usize) -> Counts {
        let kept = level + 1;
        let dropped = |high: usize| if high > level { passes(2 * (high + 1), 2) } else { Counts::default() };
        let left = left.iter().map(|high| dropped(*high) + passes(2 * (kept + aux), 2));
        let right = right.iter().map(|high| passes(2 * (high + 1 + aux + kept), 4));
        left.chain(right).sum::<Counts>() + passes(3 * (kept + aux), 3)
    }

    /// A key switch, and the division of both parts.
    pub fn switch(&self, level: usize) -> Counts {
        self.decomposition(level) + self.product(level) + self.divisions(2, level)
    }

    /// P times a ciphertext under an automorphism, again P times one: c_1 is divided by P and switched.
    pub fn turned(&self, level: usize) -> Counts {
        self.divisions(1, level) + self.decomposition(level) + self.product(level)
    }

    /// The way from q_0 to all primes with a map of some terms, whose keys are multiplied by c_1 as one digit. What the map makes of
    /// c_0 is over the primes of the level `low` and p, and goes from there to all of Q.
    pub fn raised_by_map(&self, level: usize, terms: usize, low: usize) -> Counts {
        let few = low + 1 + self.p.len();
        let first = passes(few, 1) + passes(few, 1) + passes(level + 1, 1);
        passes(level + 1 + self.p.len(), 1) + first + self.product(level) * terms + self.divisions(2, level)
    }

    /// The way from q_0 to all primes. Both parts are lifted, c_1 to p as well; as one digit it needs no decomposition.
    pub fn raised(&self, level: usize) -> Counts {
        let lifts = passes(level + 1 + self.p.len(), 1) + passes(level + 1, 1);
        lifts + self.product(level) + self.divisions(2, level)
    }
}
