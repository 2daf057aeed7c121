//! Plaintext moduli: any integer from 2 to 2^60, even ones and composite ones included.

use crate::error::RingError;
use crate::modulus::Modulus;

/// Most bits of a plaintext modulus.
pub const MAX_PLAIN_BITS: u32 = 60;

/// A plaintext modulus t and its scalar arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainModulus {
    value: u64,
    /// Barrett constants, for odd moduli above 2.
    odd: Option<Modulus>,
}

impl PlainModulus {
    /// Checks the range.
    ///
    /// # Errors
    /// [`RingError::PlainModulus`] unless 2 ≤ t < 2^60.
    pub fn new(value: u64) -> Result<Self, RingError> {
        if value < 2 || value >> MAX_PLAIN_BITS != 0 {
            return Err(RingError::PlainModulus { value });
        }
        Ok(Self { value, odd: Modulus::new(value).ok() })
    }

    /// t.
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// `x mod t`.
    #[inline]
    pub const fn reduce(&self, x: u64) -> u64 {
        match &self.odd {
            Some(m) => m.reduce(x),
            None => x % self.value,
        }
    }

    /// `x mod t` of a double word.
    #[inline]
    pub const fn reduce_u128(&self, x: u128) -> u64 {
        match &self.odd {
            Some(m) => m.reduce_u128(x),
            None if self.value.is_power_of_two() => x as u64 & (self.value - 1),
            None => (x % self.value as u128) as u64,
        }
    }

    /// `x mod t` of a signed value.
    #[inline]
    pub const fn reduce_i64(&self, x: i64) -> u64 {
        let r = self.reduce(x.unsigned_abs());
        if x < 0 { self.neg(r) } else { r }
    }

    /// The representative in `[−⌊t/2⌋, ⌈t/2⌉)` of `x` in `[0, t)`.
    #[inline]
    pub const fn center(&self, x: u64) -> i64 {
        if x > (self.value - 1) / 2 { x as i64 - self.value as i64 } else { x as i64 }
    }

    /// `a · b mod t`, for any words.
    #[inline]
    pub const fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce_u128(a as u128 * b as u128)
    }

    /// `−a mod t`, `a` in `[0, t)`.
    #[inline]
    pub const fn neg(&self, a: u64) -> u64 {
        if a == 0 { 0 } else { self.value - a }
    }

    /// `a + b mod t`, both in `[0, t)`.
    #[inline]
    pub const fn add(&self, a: u64, b: u64) -> u64 {
        let s = a + b;
        if s >= self.value { s - self.value } else { s }
    }

    /// The inverse of `a`, if there is one.
    pub fn inv(&self, a: u64) -> Option<u64> {
        let (mut r0, mut r1) = (i128::from(self.value), i128::from(self.reduce(a)));
        let (mut t0, mut t1) = (0i128, 1i128);
        while r1 != 0 {
            let quotient = r0 / r1;
            (r0, r1) = (r1, r0 - quotient * r1);
            (t0, t1) = (t1, t0 - quotient * t1);
        }
        (r0 == 1).then(|| t0.rem_euclid(i128::from(self.value)) as u64)
    }

    /// The inverse of a unit.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if there is none.
    pub fn inverse(&self, a: u64) -> Result<u64, RingError> {
        self.inv(a).ok_or(RingError::NotCoprime { value: a, modulus: self.value })
    }

    /// Two small factors (e, f) with e·a ≡ f·b, `a` and `b` units: the remainders of Euclid's
    /// algorithm on (t, b/a) where they pass √t, so both are about √t at most.
    pub fn balance(&self, a: u64, b: u64) -> Option<(i64, i64)> {
        if a == b {
            return Some((1, 1));
        }
        let ratio = self.mul(self.inv(a)?, b);
        let root = self.value.isqrt() as i128;
        let (mut r0, mut r1) = (i128::from(self.value), i128::from(ratio));
        let (mut t0, mut t1) = (0i128, 1i128);
        // r ≡ ratio · t throughout: r·a ≡ t·b.
        while r1 > root {
            let quotient = r0 / r1;
            (r0, r1) = (r1, r0 - quotient * r1);
            (t0, t1) = (t1, t0 - quotient * t1);
        }
        // Both factors must be units, or the pair would lose part of the message.
        let unit = |x: i128| self.inv(x.rem_euclid(i128::from(self.value)) as u64).is_some();
        if unit(r1) && unit(t1) {
            return Some((r1 as i64, t1 as i64));
        }
        Some((self.center(ratio), 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_wide_integers(t in 2u64..1 << 60, a: u64, b: u64, x: u128) {
            let m = PlainModulus::new(t).unwrap();
            prop_assert_eq!(m.reduce(a), a % t);
            prop_assert_eq!(u128::from(m.reduce_u128(x)), x % u128::from(t));
            prop_assert_eq!(u128::from(m.mul(a, b)), u128::from(a) * u128::from(b) % u128::from(t));
            let (ra, rb) = (a % t, b % t);
            prop_assert_eq!(m.reduce_i64(m.center(ra)), ra);
            prop_assert_eq!(m.add(ra, m.neg(ra)), 0);
            if let Some(inverse) = m.inv(ra) {
                prop_assert_eq!(m.mul(inverse, ra), 1 % t);
                if m.inv(rb).is_some() {
                    let (e, f) = m.balance(ra, rb).unwrap();
                    prop_assert_eq!(m.mul(m.reduce_i64(e), ra), m.mul(m.reduce_i64(f), rb));
                    prop_assert!(m.inv(m.reduce_i64(e)).is_some() && m.inv(m.reduce_i64(f)).is_some());
                }
            }
        }

        #[test]
        fn small_moduli(t in 2u64..40, a in 0u64..40, b: u128) {
            let m = PlainModulus::new(t).unwrap();
            prop_assert_eq!(u128::from(m.reduce_u128(b)), b % u128::from(t));
            let c = m.center(a % t);
            prop_assert!(c >= -((t / 2) as i64) && c < t.div_ceil(2) as i64);
        }
    }

    #[test]
    fn refusals() {
        for t in [0, 1, 1 << 60, u64::MAX] {
            assert!(PlainModulus::new(t).is_err());
        }
        assert!(PlainModulus::new((1 << 60) - 1).is_ok());
    }
}
