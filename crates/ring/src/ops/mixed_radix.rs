//! From residues modulo the primes of q to the centred integer modulo t, exactly.

use super::Crossing;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::modulus::Shoup;
use crate::poly::{Coeff, Poly};
use std::hint::select_unpredictable;
use zeroize::{Zeroize, Zeroizing};

/// The value or zero, without a branch: signs of secret coefficients are random, and nobody should see them by the time.
#[inline(always)]
fn value_if(condition: bool, value: u64) -> u64 {
    select_unpredictable(condition, value, 0)
}

/// Division by a fixed t ≥ 2 with a precomputed reciprocal.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    t: u64,
    /// floor((2^64 − 1) / t).
    reciprocal: u64,
}

impl Remainder {
    fn new(t: u64) -> Self {
        Self { t, reciprocal: u64::MAX / t }
    }

    /// `x mod t`.
    #[inline(always)]
    fn of(self, x: u64) -> u64 {
        // The reciprocal is low by less than one, the product's floor by another: the estimate is
        // at most one too small, since x < 2^64.
        let estimate = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let r = x.wrapping_sub(estimate.wrapping_mul(self.t));
        r - value_if(r >= self.t, self.t)
    }

    /// `a·b mod t` for `a`, `b` below t.
    #[inline(always)]
    fn product(self, a: u64, b: u64) -> u64 {
        match self.t >> 32 {
            0 => self.of(a * b),
            _ => (u128::from(a) * u128::from(b) % u128::from(self.t)) as u64,
        }
    }
}

/// Mixed-radix composition modulo the first primes of a basis.
///
/// x = d_0 + d_1·q_0 + d_2·q_0·q_1 + …, digit by digit (Garner). (Q−1)/2 has the digits
/// (q_i − 1)/2, so comparing digits from the top tells whether x stands for x − Q.
#[derive(Debug)]
pub struct Composition {
    remainder: Remainder,
    /// Row i: q_j^−1 mod q_i for each j < i.
    inverses: Vec<Vec<Shoup>>,
    /// q_0···q_(i−1) mod t, for i up to the number of primes.
    weights: Vec<u64>,
}

impl Composition {
    /// Prepares the composition modulo the primes of a basis, or the first of them, for t ≥ 2.
    ///
    /// # Panics
    /// Never: the primes of a basis are distinct.
    pub fn new(basis: &RnsBasis, t: u64) -> Self {
        let remainder = Remainder::new(t);
        let row = |i: usize| {
            let m = basis.modulus(i);
            let inverse = |q: u64| m.inv(m.reduce(q)).expect("the primes of a basis are distinct");
            basis.primes().take(i).map(|q| m.shoup(inverse(q))).collect()
        };
        let mut weights = vec![1];
        for q in basis.primes() {
            weights.push(remainder.product(weights[weights.len() - 1], remainder.of(q)));
        }
        Self { remainder, inverses: (0..basis.len()).map(row).collect(), weights }
    }

    /// The residues in [0, t) of the centred integers that a polynomial over the first primes of the basis has for
    /// coefficients.
    pub fn modulo_t(&self, poly: &Poly<Coeff>) -> Buffer {
        let _crossing = Crossing::begin();
        let (basis, words) = (poly.basis(), poly.words());
        let r = self.remainder;
        let mut out = Buffer::dirty(basis.degree());
        if basis.len() == 1 {
            let q = basis.limb(0).q();
            let (half, back) = (q / 2, r.t - r.of(q));
            // x − q ≡ x + (t − q mod t); the sum is below 2^62.
            out.iter_mut().zip(words).for_each(|(o, x)| *o = r.of(*x + value_if(*x > half, back)));
            return out;
        }
        if basis.len() == 2 {
            self.modulo_t_of_two(basis, words, &mut out);
            return out;
        }
        let q_mod_t = self.weights[basis.len()];
        let mut digits = Zeroizing::new(vec![0u64; basis.len()]);
        for (c, o) in out.iter_mut().enumerate() {
            let above = self.digits(basis, words, c, &mut digits);
            let sum = digits.iter().zip(&self.weights).fold(0, |sum, (d, w)| r.of(sum + r.product(r.of(*d), *w)));
            *o = r.of(sum + value_if(above, r.t - q_mod_t));
        }
        digits.zeroize();
        out
    }

    /// The same for two primes, the most usual number after one.
    fn modulo_t_of_two(&self, basis: &RnsBasis, words: &[u64], out: &mut [u64]) {
        // The largest x_0 + d_1·(q_0 mod t) + t; without another reduction if it is a word.
        let [q0, q1, t] = [basis.limb(0).q(), basis.limb(1).q(), self.remainder.t].map(u128::from);
        match q0 + q1 * t + t <= u128::from(u64::MAX) {
            true => self.modulo_t_of_two_by::<true>(basis, words, out),
            false => self.modulo_t_of_two_by::<false>(basis, words, out),
        }
    }

    fn modulo_t_of_two_by<const IN_A_WORD: bool>(&self, basis: &RnsBasis, words: &[u64], out: &mut [u64]) {
        let (r, inverse, weight) = (self.remainder, &self.inverses[1][0], self.weights[1]);
        let (m, back) = (basis.modulus(1), r.t - self.weights[2]);
        let (half0, half1) = (basis.limb(0).q() / 2, m.value() / 2);
        let (low, high) = words.split_at(basis.degree());
        for (out, (x0, x1)) in out.iter_mut().zip(low.iter().zip(high)) {
            let digit = m.mul_shoup(m.sub(*x1, m.reduce(*x0)), inverse);
            let above = (digit > half1) | ((digit == half1) & (*x0 > half0));
            let sum = match IN_A_WORD {
                true => *x0 + digit * weight,
                false => r.of(*x0) + r.product(r.of(digit), weight),
            };
            *out = r.of(sum + value_if(above, back));
        }
    }

    /// The digits of coefficient `c`; whether they stand for more than (Q−1)/2.
    fn digits(&self, basis: &RnsBasis, words: &[u64], c: usize, digits: &mut [u64]) -> bool {
        let n = basis.degree();
        let mut above = false;
        for (i, limb) in basis.limbs().iter().enumerate() {
            let m = limb.modulus();
            let digit = self.inverses[i]
                .iter()
                .zip(digits.iter())
                .fold(words[i * n + c], |x, (inverse, d)| m.mul_shoup(m.sub(x, m.reduce(*d)), inverse));
            let half = limb.q() / 2;
            above = (digit > half) | ((digit == half) & above);
            digits[i] = digit;
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;
    use num_bigint::{BigInt, BigUint};
    use sudare_testkit::Random;

    #[test]
    fn remainders() {
        for t in [2, 3, 17, 256, (1 << 31) + 11, (1 << 48) - 59, u64::MAX] {
            let r = Remainder::new(t);
            for x in [0, 1, t - 1, t, t.wrapping_add(1), u64::MAX - 1, u64::MAX, 0xBF58_476D_1CE4_E5B9] {
                assert_eq!(r.of(x), x % t);
                let (a, b) = (x % t, (x ^ 0xABCD) % t);
                assert_eq!(u128::from(r.product(a, b)), u128::from(a) * u128::from(b) % u128::from(t));
            }
        }
    }

    /// Against big integers, at the edges of the centred range and between, for each prefix.
    #[test]
    fn composition_is_exact() {
        let n = 512;
        let mut primes = ntt_primes(n, 30, 2, &[]).unwrap();
        primes.extend(ntt_primes(n, 61, 1, &primes).unwrap());
        primes.extend(ntt_primes(n, 45, 1, &primes).unwrap());
        let whole = RnsBasis::new(n, &primes).unwrap();
        for t in [2u64, 161, 65537, (1 << 33) + 17, (1 << 34) + 25, (1 << 40) + 15] {
            let composition = Composition::new(&whole, t);
            for count in 1..=4 {
                let basis = whole.prefix(count);
                let q = basis.product();
                let half = (&q - 1u32) / 2u32;
                let mut values: Vec<BigUint> =
                    vec![BigUint::ZERO, 1u32.into(), half.clone(), &half + 1u32, &half - 1u32, &q - 1u32];
                let mut random = Random(t);
                values.extend((values.len()..n).map(|_| BigUint::from(random.word()).pow(3) % &q));
                let words: Vec<u64> =
                    basis.primes().flat_map(|p| values.iter().map(move |v| u64::try_from(v % p).unwrap())).collect();
                let poly = Poly::from_words(&basis, &words).unwrap();
                let found = composition.modulo_t(&poly);
                let mut largest = 0f64;
                for (value, residue) in values.iter().zip(&found[..]) {
                    let centered = if *value > half {
                        BigInt::from(value.clone()) - BigInt::from(q.clone())
                    } else {
                        value.clone().into()
                    };
                    let t = BigInt::from(t);
                    assert_eq!(BigInt::from(*residue), ((&centered % &t) + &t) % &t);
                    largest = largest.max(centered.magnitude().to_string().parse().unwrap());
                }
                assert!((poly.log2_largest().unwrap() - largest.log2()).abs() < 1e-12);
            }
        }
    }
}
