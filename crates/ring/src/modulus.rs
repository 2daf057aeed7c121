//! A word-sized modulus and its scalar arithmetic.
//!
//! Sums, differences, products and reductions are for secrets too: they choose by masks, where a branch
//! could be, and divide by products with the reciprocal. Powers, inverses and [`Modulus::shoup`] are for
//! public values.

use crate::error::RingError;

/// Largest modulus, in bits: four times a modulus still fits a signed 64-bit word.
pub const MAX_MODULUS_BITS: u32 = 61;

/// An odd modulus `q` with `2 < q < 2^61` and its Barrett constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modulus {
    value: u64,
    /// floor(2^128 / q), high and low words.
    ratio: (u64, u64),
}

/// A constant factor `w < q` with its precomputed quotients (Shoup's trick).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shoup {
    /// The factor, in `[0, q)`.
    pub value: u64,
    /// floor(w · 2^64 / q), for 64-bit kernels.
    pub quotient: u64,
    /// floor(w · 2^52 / q), for IFMA kernels; meaningful for `q < 2^52`.
    pub quotient52: u64,
}

/// All ones if a difference of words below 2^63 is negative, else zero. (A comparison would do, but
/// compilers make branches of some.)
#[inline(always)]
const fn negative(difference: u64) -> u64 {
    (difference as i64 >> 63) as u64
}

impl Modulus {
    /// Checks the range and precomputes the Barrett constants.
    ///
    /// # Errors
    /// [`RingError::ModulusRange`] unless `q` is odd and `2 < q < 2^61`.
    pub fn new(q: u64) -> Result<Self, RingError> {
        if q < 3 || q >> MAX_MODULUS_BITS != 0 || q & 1 == 0 {
            return Err(RingError::ModulusRange { value: q });
        }
        // floor(2^128 / q) = floor((2^128 − 1) / q), since an odd q > 1 never divides 2^128.
        let ratio = u128::MAX / u128::from(q);
        Ok(Self { value: q, ratio: ((ratio >> 64) as u64, ratio as u64) })
    }

    /// The modulus itself.
    #[inline]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Its length in bits.
    #[inline]
    pub const fn bits(&self) -> u32 {
        64 - self.value.leading_zeros()
    }

    /// High and low words of floor(2^128 / q).
    #[inline]
    pub const fn barrett_ratio(&self) -> (u64, u64) {
        self.ratio
    }

    /// `r mod q` for `r < 2q`.
    #[inline(always)]
    const fn below(&self, r: u64) -> u64 {
        let d = r.wrapping_sub(self.value);
        d.wrapping_add(self.value & negative(d))
    }

    /// `x mod q` for any word.
    #[inline]
    pub const fn reduce(&self, x: u64) -> u64 {
        let estimate = ((x as u128 * self.ratio.0 as u128) >> 64) as u64;
        let r = x.wrapping_sub(estimate.wrapping_mul(self.value));
        self.below(r)
    }

    /// `x mod q` for any double word.
    #[inline]
    pub const fn reduce_u128(&self, x: u128) -> u64 {
        let (xh, xl) = ((x >> 64) as u64, x as u64);
        let (rh, rl) = self.ratio;
        let carry = ((xl as u128 * rl as u128) >> 64) as u64;
        let mid = xl as u128 * rh as u128 + carry as u128;
        let mid2 = xh as u128 * rl as u128 + (mid as u64) as u128;
        let estimate = xh.wrapping_mul(rh).wrapping_add((mid >> 64) as u64).wrapping_add((mid2 >> 64) as u64);
        let r = xl.wrapping_sub(estimate.wrapping_mul(self.value));
        self.below(r)
    }

    /// `x mod q` of a signed value.
    #[inline]
    pub const fn reduce_i64(&self, x: i64) -> u64 {
        let r = self.reduce(x.unsigned_abs());
        r ^ ((r ^ self.neg(r)) & negative(x as u64))
    }

    /// The representative of `x` in `(−q/2, q/2]`; `x` in `[0, q)`.
    #[inline]
    pub const fn center(&self, x: u64) -> i64 {
        x.wrapping_sub(self.value & negative((self.value / 2).wrapping_sub(x))) as i64
    }

    /// `a + b mod q`, operands in `[0, q)`.
    #[inline]
    pub const fn add(&self, a: u64, b: u64) -> u64 {
        self.below(a + b)
    }

    /// `a − b mod q`, operands in `[0, q)`.
    #[inline]
    pub const fn sub(&self, a: u64, b: u64) -> u64 {
        let d = a.wrapping_sub(b);
        d.wrapping_add(self.value & negative(d))
    }

    /// `−a mod q`, operand in `[0, q)`.
    #[inline]
    pub const fn neg(&self, a: u64) -> u64 {
        self.value.wrapping_sub(a) & negative(a.wrapping_neg())
    }

    /// `a · b mod q`, for any words.
    #[inline]
    pub const fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce_u128(a as u128 * b as u128)
    }

    /// `base^exponent mod q`.
    pub const fn pow(&self, base: u64, mut exponent: u64) -> u64 {
        let mut square = self.reduce(base);
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        result
    }

    /// The inverse of `a` modulo `q`, if there is one (Euclid; `q` need not be prime).
    pub fn inv(&self, a: u64) -> Option<u64> {
        let (mut r0, mut r1) = (self.value as i128, self.reduce(a) as i128);
        let (mut t0, mut t1) = (0i128, 1i128);
        while r1 != 0 {
            let quotient = r0 / r1;
            (r0, r1) = (r1, r0 - quotient * r1);
            (t0, t1) = (t1, t0 - quotient * t1);
        }
        (r0 == 1).then(|| t0.rem_euclid(self.value as i128) as u64)
    }

    /// The inverse of `a`.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if there is none.
    pub fn inverse(&self, a: u64) -> Result<u64, RingError> {
        self.inv(a).ok_or(RingError::NotCoprime { value: a, modulus: self.value() })
    }

    /// The constant factor `w mod q` with its quotients, by divisions: for a `w` that is public.
    pub const fn shoup(&self, w: u64) -> Shoup {
        let value = self.reduce(w);
        Shoup {
            value,
            quotient: (((value as u128) << 64) / self.value as u128) as u64,
            quotient52: (((value as u128) << 52) / self.value as u128) as u64,
        }
    }

    /// `x · w mod q` for any word `x`, result in `[0, 2q)`.
    #[inline(always)]
    pub const fn mul_shoup_lazy(&self, x: u64, w: &Shoup) -> u64 {
        let estimate = ((x as u128 * w.quotient as u128) >> 64) as u64;
        x.wrapping_mul(w.value).wrapping_sub(estimate.wrapping_mul(self.value))
    }

    /// `x · w mod q` for any word `x`, result in `[0, q)`.
    #[inline(always)]
    pub const fn mul_shoup(&self, x: u64, w: &Shoup) -> u64 {
        let r = self.mul_shoup_lazy(x, w);
        self.below(r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn odd_modulus() -> impl Strategy<Value = u64> {
        (2u32..=61)
            .prop_flat_map(|bits| (1u64 << (bits - 1)) | 1..1u64 << bits)
            .prop_map(|q| q | 1)
            .prop_filter("range", |q| *q > 2)
    }

    proptest! {
        #[test]
        fn agrees_with_wide_integers(q in odd_modulus(), a: u64, b: u64, x: u128) {
            let m = Modulus::new(q).unwrap();
            let wide = u128::from(q);
            prop_assert_eq!(m.reduce(a), a % q);
            prop_assert_eq!(u128::from(m.reduce_u128(x)), x % wide);
            prop_assert_eq!(u128::from(m.mul(a, b)), u128::from(a) * u128::from(b) % wide);
            let w = m.shoup(b);
            prop_assert!(m.mul_shoup_lazy(a, &w) < 2 * q);
            prop_assert_eq!(u128::from(m.mul_shoup(a, &w)), u128::from(a) * u128::from(b % q) % wide);
            let (ra, rb) = (a % q, b % q);
            prop_assert_eq!(m.add(ra, m.neg(rb)), m.sub(ra, rb));
            if let Some(inverse) = m.inv(a) { prop_assert_eq!(m.mul(inverse, ra), 1); }
            prop_assert_eq!(m.reduce_i64(m.center(ra)), ra);
        }
    }

    #[test]
    fn choices_at_their_edges() {
        for q in [3, 5, 12289, (1 << 61) - 1] {
            let m = Modulus::new(q).unwrap();
            let wide = i128::from(q);
            let of = |x: i128| x.rem_euclid(wide) as u64;
            let edges = [0, 1, 2, q / 2 - 1, q / 2, q / 2 + 1, q - 2, q - 1].map(|x| x % q);
            for a in edges {
                assert_eq!(m.neg(a), of(-i128::from(a)));
                assert_eq!(i128::from(m.center(a)), i128::from(a) - if a > q / 2 { wide } else { 0 });
                for b in edges {
                    assert_eq!(m.add(a, b), of(i128::from(a) + i128::from(b)));
                    assert_eq!(m.sub(a, b), of(i128::from(a) - i128::from(b)));
                    assert_eq!(m.mul(a, b), of(i128::from(a) * i128::from(b)));
                }
            }
            for x in [0, 1, -1, q as i64, -(q as i64), i64::MAX, i64::MIN, i64::MIN + 1] {
                assert_eq!(m.reduce_i64(x), of(i128::from(x)), "{x} modulo {q}");
            }
            for x in [0, 1, u128::from(q), u128::MAX - 1, u128::MAX] {
                assert_eq!(u128::from(m.reduce_u128(x)), x % u128::from(q), "{x} modulo {q}");
            }
        }
    }

    #[test]
    fn refuses_what_it_cannot_serve() {
        for q in [0, 1, 2, 4, 1 << 61, (1 << 61) + 1, u64::MAX] {
            assert!(Modulus::new(q).is_err(), "{q}");
        }
        assert!(Modulus::new((1 << 61) - 1).is_ok());
    }
}
