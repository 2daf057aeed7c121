//! From residues to numbers and back (the Chinese remainder theorem).

use super::Crossing;
use crate::basis::RnsBasis;
use crate::error::RingError;
use crate::kernel::{self, round_quotients};
use crate::modulus::Modulus;
use crate::plain::PlainModulus;
use crate::poly::{Coeff, Poly};
use crate::wipe::Wiped;
use num_bigint::BigUint;
use std::ops::Range;

/// Sizes up to which a number is rounded to a word.
const WORD: f64 = (1u64 << 62) as f64;

/// ⌊x⌉ modulo q, for numbers of any size.
pub(super) fn residue(x: f64, q: &Modulus) -> u64 {
    if x.abs() < WORD {
        return q.reduce_i64(x.round_ties_even() as i64);
    }
    let shift = x.abs().log2() as i32 - 60;
    q.mul(q.reduce_i64((x * f64::from(-shift).exp2()) as i64), q.pow(2, shift as u64))
}

impl Poly<Coeff> {
    /// The residues of m·2^e for pairs (m, e), one for each coefficient.
    ///
    /// # Panics
    /// If there are not N pairs.
    pub fn from_mantissas(basis: &RnsBasis, coefficients: &[(i64, u64)]) -> Self {
        assert_eq!(coefficients.len(), basis.degree());
        let mut out = Self::dirty(basis);
        out.for_each(|_, l, x| {
            let q = l.modulus();
            for (o, (mantissa, shift)) in x.iter_mut().zip(coefficients) {
                *o = q.mul(q.reduce_i64(*mantissa), q.pow(2, *shift));
            }
        });
        out
    }

    /// The centred residues modulo the first prime, in (−q/2, q/2].
    pub fn centered(&self) -> Vec<i64> {
        let q = self.basis().modulus(0);
        self.limb(0).iter().map(|x| q.center(*x)).collect()
    }

    /// Writes the centred integers that the coefficients from `first` on are, times a factor, in double precision.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if the primes are not distinct.
    ///
    /// # Panics
    /// If there are fewer of them than places in `out`.
    pub fn to_f64(&self, first: usize, out: &mut [f64], factor: f64) -> Result<(), RingError> {
        let _crossing = Crossing::begin();
        let from = first..first + out.len();
        match self.basis().len() {
            1 => kernel::words().centered_to_f64(out, &self.limb(0)[from], self.basis().modulus(0).value(), factor),
            _ if self.basis().product().bits() <= 126 => self.few_to_f64(from, out, factor)?,
            _ => {
                let crt = Crt::new(self.basis())?;
                let signed = |(negative, x): (bool, BigUint)| if negative { -to_f64(&x) } else { to_f64(&x) };
                out.iter_mut().zip(from).for_each(|(x, c)| *x = signed(crt.centered(self, c)) * factor);
            }
        }
        Ok(())
    }

    /// Garner's formula for primes whose product fits 126 bits.
    fn few_to_f64(&self, from: Range<usize>, out: &mut [f64], factor: f64) -> Result<(), RingError> {
        // A prime, the product of those before, and its inverse.
        let (mut steps, mut product) = (Vec::new(), 1u128);
        for q in self.basis().moduli() {
            steps.push((*q, product, q.shoup(q.inverse(q.reduce_u128(product))?)));
            product *= u128::from(q.value());
        }
        let limbs: Vec<&[u64]> = (0..steps.len()).map(|l| &self.limb(l)[from.clone()]).collect();
        for (c, o) in out.iter_mut().enumerate() {
            let mut x = 0u128;
            for (limb, (q, before, inverse)) in limbs.iter().zip(&steps) {
                let known = u64::try_from(x).map_or_else(|_| q.reduce_u128(x), |x| q.reduce(x));
                x += before * u128::from(q.mul_shoup(q.sub(limb[c], known), inverse));
            }
            let centred = if x > product / 2 { x as i128 - product as i128 } else { x as i128 };
            *o = centred as f64 * factor;
        }
        Ok(())
    }

    /// The centred integers that the coefficients are, modulo other primes: exact, and as slow as large integers are.
    ///
    /// # Errors
    /// As [`Poly::to_f64`].
    pub fn over(&self, basis: &RnsBasis) -> Result<Self, RingError> {
        let _crossing = Crossing::begin();
        let crt = Crt::new(self.basis())?;
        let integers: Vec<_> = (0..self.degree()).map(|c| crt.centered(self, c)).collect();
        let mut out = Self::dirty(basis);
        out.for_each(|_, l, x| {
            let q = l.modulus();
            // 2^64 modulo q: a number of several words follows by Horner.
            let word = q.reduce_u128(1 << 64);
            for (o, (negative, size)) in x.iter_mut().zip(&integers) {
                let digits: Vec<u64> = size.iter_u64_digits().collect();
                let size = digits.iter().rev().fold(0, |acc, digit| q.add(q.mul(acc, word), q.reduce(*digit)));
                *o = if *negative { q.neg(size) } else { size };
            }
        });
        Ok(out)
    }

    /// log2 of the largest absolute value among the centred integers, and at least 0.
    ///
    /// # Errors
    /// As [`Poly::to_f64`].
    pub fn log2_largest(&self) -> Result<f64, RingError> {
        let _crossing = Crossing::begin();
        let crt = Crt::new(self.basis())?;
        Ok(log2((0..self.degree()).map(|c| crt.centered(self, c).1).max().unwrap_or_default()))
    }

    /// `factor` times the centred integers modulo t, where these are so much smaller than the modulus that double
    /// precision rounds their quotients rightly. The polynomial is used up.
    ///
    /// c = Σ y_i·(Q/q_i) − v·Q with y_i = \[c·(Q/q_i)^−1\] modulo q_i (Halevi–Polyakov–Shoup, ePrint 2018/117).
    ///
    /// # Errors
    /// As [`Poly::to_f64`].
    pub fn modulo(&mut self, t: &PlainModulus, factor: u64) -> Result<Vec<u64>, RingError> {
        let _crossing = Crossing::begin();
        let (basis, n) = (self.basis().clone(), self.degree());
        let mut weights = Vec::with_capacity(basis.len());
        for (i, limb) in basis.limbs().iter().enumerate() {
            let m = limb.modulus();
            let others = || basis.primes().enumerate().filter(|(j, _)| *j != i).map(|(_, q)| q);
            let hat = others().fold(1, |acc, q| m.mul(acc, q));
            limb.mul_scalar(self.limb_mut(i), &m.shoup(m.inverse(hat)?));
            weights.push(others().fold(factor, |acc, q| t.mul(acc, q)));
        }
        let mut quotient = Wiped::<u64>::zeros(n);
        let rows: Vec<&[u64]> = (0..basis.len()).map(|i| self.limb(i)).collect();
        let reciprocal: Vec<f64> = basis.primes().map(|q| 1.0 / q as f64).collect();
        round_quotients(&mut quotient, &rows, &reciprocal);
        let minus = t.neg(basis.primes().fold(factor, |acc, q| t.mul(acc, q)));
        let one = |k: usize| {
            let mut sum = u128::from(quotient[k]) * u128::from(minus);
            for (row, w) in rows.iter().zip(&weights) {
                // Each term is below 2^121.
                sum += u128::from(row[k]) * u128::from(*w);
                if sum >> 127 != 0 {
                    sum = u128::from(t.reduce_u128(sum));
                }
            }
            t.reduce_u128(sum)
        };
        Ok((0..n).map(one).collect())
    }
}

/// Composition in big integers.
struct Crt {
    /// (Q/q_i)·\[(Q/q_i)^−1\] modulo q_i.
    weights: Vec<BigUint>,
    product: BigUint,
    half: BigUint,
}

impl Crt {
    fn new(basis: &RnsBasis) -> Result<Self, RingError> {
        let product = basis.product();
        let weight = |m: &Modulus| {
            let hat = &product / m.value();
            let residue = (&hat % m.value()).iter_u64_digits().next().unwrap_or(0);
            Ok(hat * m.inverse(residue)?)
        };
        let weights = basis.moduli().map(weight).collect::<Result<_, RingError>>()?;
        Ok(Self { weights, half: &product / 2u32, product })
    }

    /// Whether the centred coefficient `c` is negative, and its size.
    fn centered(&self, poly: &Poly<Coeff>, c: usize) -> (bool, BigUint) {
        let sum: BigUint = self.weights.iter().enumerate().map(|(i, weight)| weight * poly.limb(i)[c]).sum();
        let x = sum % &self.product;
        if x > self.half { (true, &self.product - x) } else { (false, x) }
    }
}

/// The top 64 bits and an exponent: more than a double holds.
fn to_f64(x: &BigUint) -> f64 {
    let shift = x.bits().saturating_sub(64);
    (x >> shift).iter_u64_digits().next().unwrap_or(0) as f64 * (shift as f64).exp2()
}

/// log2 of at least 1; of numbers that no double holds as well.
fn log2(x: BigUint) -> f64 {
    let shift = x.bits().saturating_sub(60);
    let head = (x >> shift).iter_u64_digits().next().unwrap_or(0);
    (head.max(1) as f64).log2() + shift as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;

    #[test]
    fn residues_of_large_numbers() {
        let q = &Modulus::new(ntt_primes(512, 45, 1, &[]).unwrap()[0]).unwrap();
        assert_eq!(residue(-2.5, q), q.value() - 2);
        assert_eq!(residue(100f64.exp2(), q), q.pow(2, 100));
        assert_eq!(residue(-3.0 * 90f64.exp2(), q), q.neg(q.mul(3, q.pow(2, 90))));
    }

    #[test]
    fn numbers_and_back() {
        let n = 512;
        let bases = [50, 40].map(|bits| (bits, RnsBasis::new(n, &ntt_primes(n, bits, 3, &[]).unwrap()).unwrap()));
        let values: Vec<(i64, u64)> = (0..n as i64).map(|i| ((i - 200) * 0x1357_9BDF, (i % 60) as u64)).collect();
        let t = PlainModulus::new(65536).unwrap();
        // Products of 126 bits and fewer, and of more.
        for (bits, count, basis) in bases.iter().flat_map(|(bits, basis)| (1..=3).map(move |k| (*bits, k, basis))) {
            let basis = basis.prefix(count as usize);
            let holds = |(m, e): &(i64, u64)| (*m, (*e).min(u64::from(bits * count - 39)));
            let values: Vec<_> = values.iter().map(holds).collect();
            let mut poly = Poly::from_mantissas(&basis, &values);
            let exact = |(m, e): &(i64, u64)| i128::from(*m) << e;
            let doubles: Vec<f64> = values.iter().map(|v| exact(v) as f64 * 0.25).collect();
            let mut found = vec![0.0; n];
            let (low, high) = found.split_at_mut(200);
            poly.to_f64(0, low, 0.25).unwrap();
            poly.to_f64(200, high, 0.25).unwrap();
            assert_eq!(found, doubles);
            let largest = values.iter().map(|v| exact(v).unsigned_abs()).max().unwrap();
            assert!((poly.log2_largest().unwrap() - (largest as f64).log2()).abs() < 1e-9);
            let others = RnsBasis::new(n, &ntt_primes(n, 55, 4, &[]).unwrap()).unwrap();
            let integers: Vec<i128> = values.iter().map(exact).collect();
            assert_eq!(poly.over(&others).unwrap().words(), Poly::from_wide(&others, &integers).words());
            assert_eq!(Poly::from_wide(&basis, &integers).words(), poly.words());
            let wanted: Vec<u64> = values.iter().map(|v| (3 * exact(v)).rem_euclid(65536) as u64).collect();
            assert_eq!(poly.modulo(&t, 3).unwrap(), wanted);
        }
    }
}
