//! Encoding of an entry into coefficients, and the plaintext modulus t that its products need.

use crate::error::PackingError;
use serde::{Deserialize, Serialize};

/// The range and sign of the entries of vectors and matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// Largest absolute value of an entry.
    max: u64,
    /// Base of the digits; `None` for entries in one coefficient.
    radix: Option<u64>,
    /// Digits of an entry, 1 without a radix.
    digits: usize,
    signed: bool,
}

impl Entries {
    /// Binary entries, 0 or 1, in one coefficient each.
    pub const BINARY: Self = Self { max: 1, radix: None, digits: 1, signed: false };

    /// Entries of up to `max` in one coefficient each (equation 3); below zero as well if
    /// `signed`.
    ///
    /// # Errors
    /// [`PackingError::Method`] unless `max` is in 1..2^62.
    pub fn short(max: u64, signed: bool) -> Result<Self, PackingError> {
        match (1..1 << 62).contains(&max) {
            true => Ok(Self { max, radix: None, digits: 1, signed }),
            false => Err(refused(format!("the largest entry is 1 or more and below 2^62, not {max}"))),
        }
    }

    /// Entries below 2^`bits` in absolute value as d = ⌈log_r 2^bits⌉ digits in base r, a
    /// coefficient each (equations 4 and 5); below zero as well, with digits of the same sign, if
    /// `signed`.
    ///
    /// # Errors
    /// [`PackingError::Method`] unless `bits` is in 1..=62 and the radix in 2..=2^32.
    pub fn digits(bits: u32, radix: u64, signed: bool) -> Result<Self, PackingError> {
        if !(1..=62).contains(&bits) || !(2..=1 << 32).contains(&radix) {
            return Err(refused(format!(
                "{bits}-bit entries in base {radix} are not possible; take 1 to 62 bits and a base from 2 to 2^32"
            )));
        }
        let (mut digits, mut power) = (1, u128::from(radix));
        while power < 1 << bits {
            power *= u128::from(radix);
            digits += 1;
        }
        Ok(Self { max: (1 << bits) - 1, radix: Some(radix), digits, signed })
    }

    /// Largest absolute value of an entry.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Whether entries may be below zero.
    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Digits d of an entry.
    pub fn digit_count(&self) -> usize {
        self.digits
    }

    /// Coefficients that an entry takes in a packing: 1, or 2d since a product of two entries has
    /// 2d − 1.
    pub fn stride(&self) -> usize {
        if self.radix.is_some() { 2 * self.digits } else { 1 }
    }

    /// Largest absolute value of a coefficient in a sum of `terms` products of entries.
    pub fn coefficient_bound(&self, terms: usize) -> u128 {
        let digit = u128::from(self.radix.map_or(self.max, |r| r - 1));
        (terms as u128).saturating_mul(self.digits as u128).saturating_mul(digit * digit)
    }

    /// Least t that tells the coefficients of such a sum apart: t > k(r − 1)²d (Theorem 4), twice
    /// that with signs.
    pub fn least_t(&self, terms: usize) -> u128 {
        let bound = self.coefficient_bound(terms);
        if self.signed { bound.saturating_mul(2).saturating_add(1) } else { bound.saturating_add(1) }
    }

    /// Writes an entry's digits, lowest first.
    ///
    /// # Errors
    /// [`PackingError::OutOfRange`].
    pub(super) fn write(&self, value: i128, at: (usize, usize), digits: &mut [i64]) -> Result<(), PackingError> {
        let high = i128::from(self.max);
        let low = if self.signed { -high } else { 0 };
        if !(low..=high).contains(&value) {
            return Err(PackingError::OutOfRange { row: at.0, col: at.1, low, high });
        }
        let Some(radix) = self.radix else {
            digits[0] = value as i64;
            return Ok(());
        };
        let (sign, mut rest) = (value.signum() as i64, value.unsigned_abs() as u64);
        for digit in digits.iter_mut().take(self.digits) {
            *digit = sign * (rest % radix) as i64;
            rest /= radix;
        }
        Ok(())
    }

    /// The value of a product's coefficients at x = r.
    pub(super) fn read(&self, residues: &[u64], t: u64) -> i128 {
        let one = |x: u64| match self.signed && x > t / 2 {
            true => i128::from(x) - i128::from(t),
            false => i128::from(x),
        };
        match self.radix {
            None => one(residues[0]),
            // Sums fit by the check of the packing; what is no product wraps and does not panic.
            Some(r) => residues[..2 * self.digits - 1]
                .iter()
                .rev()
                .fold(0i128, |sum, x| sum.wrapping_mul(i128::from(r)).wrapping_add(one(*x))),
        }
    }
}

fn refused(reason: String) -> PackingError {
    PackingError::Method { method: "packing", reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_digits() {
        for (bits, radix, digits) in [
            (10, 2, 10),
            (10, 3, 7),
            (10, 32, 2),
            (10, 1023, 2),
            (10, 1024, 1),
            (1, 2, 1),
            (62, 2, 62),
            (62, 1 << 32, 2),
        ] {
            let e = Entries::digits(bits, radix, false).unwrap();
            assert_eq!((e.digit_count(), e.stride()), (digits, 2 * digits), "{bits} bits in base {radix}");
        }
        assert_eq!(Entries::digits(10, 2, false).unwrap().least_t(16), 161);
        assert_eq!((Entries::BINARY.least_t(16), Entries::BINARY.least_t(32)), (17, 33));
        for (bits, radix) in [(0, 2), (63, 2), (10, 0), (10, 1), (10, (1 << 32) + 1)] {
            assert!(Entries::digits(bits, radix, false).is_err());
        }
        assert!(Entries::short(0, false).is_err() && Entries::short(1 << 62, true).is_err());
    }

    proptest! {
        #[test]
        fn digits_come_back(bits in 1u32..=62, radix in 2u64..=(1 << 32), seed: u64, negative: bool) {
            let e = Entries::digits(bits, radix, true).unwrap();
            let size = i128::from(seed >> (64 - bits));
            let value = if negative { -size } else { size };
            let mut digits = vec![0i64; e.stride()];
            e.write(value, (0, 0), &mut digits).unwrap();
            let t = (1u64 << 48) - 1;
            let residues: Vec<u64> = digits.iter().map(|d| d.rem_euclid(t as i64) as u64).collect();
            prop_assert_eq!(e.read(&residues, t), value);
            prop_assert!(digits.iter().all(|d| d.unsigned_abs() < radix));
            let over = i128::from(e.max()) + 1;
            let refused = matches!(e.write(over, (3, 4), &mut digits), Err(PackingError::OutOfRange { row: 3, col: 4, .. }));
            prop_assert!(refused);
        }
    }
}
