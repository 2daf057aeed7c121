//! Division of encrypted integers.

use super::evaluator::{constant, refuse};
use super::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use crate::TfheError;
use crate::core::context::check_shape;
use crate::radix::{BitOperation, Comparison, IntegerType, Shift};

/// What is divided by.
#[derive(Clone, Copy, Debug)]
pub enum Divisor<'a> {
    /// Numbers that everybody knows, as two's complement, one for each element.
    Public(&'a [u64]),
    /// An encrypted number for each element.
    Encrypted(&'a EncryptedArray),
}

const AND: Elementwise = Elementwise::Bits(BitOperation::And);
const GREATER_OR_EQUAL: Elementwise = Elementwise::Compare(Comparison::Ge);
const LESS: Elementwise = Elementwise::Compare(Comparison::Lt);
const DIFFERENT: Elementwise = Elementwise::Compare(Comparison::Ne);

/// An absolute divisor, below 2^bits.
enum Size {
    Public(Vec<u64>),
    Encrypted(EncryptedArray),
}

impl dyn ArrayEvaluator + '_ {
    /// Quotients rounded down and remainders with the divisor's sign, as NumPy's `divmod` has them; both are 0 where an
    /// encrypted divisor is.
    ///
    /// School division in base 2: a comparison, a choice and a difference for each bit of the quotient. By public powers of
    /// two it is a shift and a mask.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for booleans, for operands of two types and for a public zero, [`TfheError::Shape`] for
    /// another number of divisors; those of [`ArrayEvaluator::elementwise`].
    pub fn divided(&self, x: &EncryptedArray, by: Divisor<'_>) -> Result<(EncryptedArray, EncryptedArray), TfheError> {
        let ElementType::Integer(kind) = x.element() else {
            return refuse("booleans are not divided; cast them to an integer type first".into());
        };
        match by {
            Divisor::Public(values) => check_shape("divisors", x.len(), values.len())?,
            Divisor::Encrypted(d) if d.element() == x.element() => check_shape("divisors", x.len(), d.len())?,
            Divisor::Encrypted(d) => {
                return refuse(format!("{} is not divided by {}; cast one of them first", kind, d.element()));
            }
        }
        if let Divisor::Public(values) = by {
            if values.iter().any(|d| kind.wrap(*d) == 0) {
                return refuse("encrypted integers are not divided by a public zero; take another divisor".into());
            }
            if values.iter().all(|d| kind.to_i128(*d) > 0 && d.is_power_of_two()) {
                let shifts: Vec<u64> = values.iter().map(|d| u64::from(d.trailing_zeros())).collect();
                let masks: Vec<u64> = values.iter().map(|d| d - 1).collect();
                let masks = self.public_array(x.element(), x.shape().to_vec(), &masks)?;
                return Ok((self.shifted(Shift::Right, x, &shifts)?, self.elementwise(AND, x, &masks)?));
            }
        }
        self.part(0, kind.bits() as usize);
        if !kind.signed() {
            let size = match by {
                Divisor::Public(values) => Size::Public(values.iter().map(|d| kind.wrap(*d)).collect()),
                Divisor::Encrypted(d) => Size::Encrypted(d.clone()),
            };
            return self.unsigned(x, kind, &size);
        }
        self.signed(x, kind, by)
    }

    /// Division of absolute values, and what signs make of it.
    fn signed(
        &self,
        x: &EncryptedArray,
        kind: IntegerType,
        by: Divisor<'_>,
    ) -> Result<(EncryptedArray, EncryptedArray), TfheError> {
        let positive = IntegerType::new(kind.bits(), false)?;
        let (unsigned, signed) = (ElementType::Integer(positive), x.element());
        let zeros = constant(self, x, signed, 0)?;
        let (minus, size, public) = match by {
            Divisor::Public(values) => {
                let minus: Vec<u64> = values.iter().map(|d| u64::from(kind.to_i128(*d) < 0)).collect();
                let size: Vec<u64> =
                    values.iter().map(|d| positive.wrap(kind.to_i128(*d).unsigned_abs() as u64)).collect();
                let minus = self.public_array(ElementType::Bool, x.shape().to_vec(), &minus)?;
                (minus, Size::Public(size.clone()), self.public_array(signed, x.shape().to_vec(), &size)?)
            }
            Divisor::Encrypted(d) => {
                let minus = self.elementwise(LESS, d, &zeros)?;
                let size = self.choice(&minus, &self.negative(d)?, d)?;
                (minus, Size::Encrypted(self.converted(&size, unsigned)?), size)
            }
        };
        let low = self.elementwise(LESS, x, &zeros)?;
        let absolute = self.converted(&self.choice(&low, &self.negative(x)?, x)?, unsigned)?;
        let (quotient, rest) = self.unsigned(&absolute, positive, &size)?;
        let (quotient, rest) = (self.converted(&quotient, signed)?, self.converted(&rest, signed)?);
        // Of different signs: down, and the rest is what is missing. A divisor of zero has quotient and rest 0, and stays.
        let differ = self.elementwise(Elementwise::Bits(BitOperation::Xor), &low, &minus)?;
        let down = self.elementwise(AND, &differ, &self.elementwise(DIFFERENT, &rest, &zeros)?)?;
        let rest = self.choice(&down, &self.elementwise(Elementwise::Sub, &public, &rest)?, &rest)?;
        let quotient = self.choice(&differ, &self.negative(&quotient)?, &quotient)?;
        let quotient = self.elementwise(Elementwise::Sub, &quotient, &self.converted(&down, signed)?)?;
        Ok((quotient, self.choice(&minus, &self.negative(&rest)?, &rest)?))
    }

    fn unsigned(
        &self,
        x: &EncryptedArray,
        kind: IntegerType,
        by: &Size,
    ) -> Result<(EncryptedArray, EncryptedArray), TfheError> {
        let (element, bits) = (x.element(), kind.bits());
        let zeros = constant(self, x, element, 0)?;
        // The quotient's highest bit.
        let longest = match by {
            // No divisor is zero.
            Size::Public(values) => values.iter().map(|d| d.leading_zeros() + bits - 64).fold(0, u32::max),
            Size::Encrypted(_) => bits - 1,
        };
        let (mut quotient, mut rest) = (None, x.clone());
        for at in (0..=longest).rev() {
            self.part((longest - at) as usize, longest as usize + 1);
            let shape = || x.shape().to_vec();
            // The divisor so far up, and where it still fits: the digit is zero elsewhere.
            let (moved, fits) = match by {
                Size::Public(values) => {
                    let moved: Vec<u64> = values.iter().map(|d| kind.wrap(d << at)).collect();
                    let fits: Vec<u64> = values.iter().zip(&moved).map(|(d, m)| u64::from(m >> at == *d)).collect();
                    let all = fits.iter().all(|f| *f == 1);
                    let fits = if all { None } else { Some(self.public_array(ElementType::Bool, shape(), &fits)?) };
                    (self.public_array(element, shape(), &moved)?, fits)
                }
                Size::Encrypted(d) if at == 0 => (d.clone(), None),
                Size::Encrypted(d) => {
                    let above = self.shifted(Shift::Right, d, &vec![u64::from(bits - at); d.len()])?;
                    let fits = self.elementwise(Elementwise::Compare(Comparison::Eq), &above, &zeros)?;
                    (self.shifted(Shift::Left, d, &vec![u64::from(at); d.len()])?, Some(fits))
                }
            };
            let mut digit = self.elementwise(GREATER_OR_EQUAL, &rest, &moved)?;
            if let Some(fits) = &fits {
                digit = self.elementwise(AND, &digit, fits)?;
            }
            rest = self.elementwise(Elementwise::Sub, &rest, &self.choice(&digit, &moved, &zeros)?)?;
            let number = self.converted(&digit, element)?;
            let term = self.shifted(Shift::Left, &number, &vec![u64::from(at); x.len()])?;
            quotient = Some(match &quotient {
                None => term,
                Some(above) => self.elementwise(Elementwise::Add, above, &term)?,
            });
        }
        let quotient = quotient.unwrap_or(zeros.clone());
        match by {
            Size::Public(_) => Ok((quotient, rest)),
            Size::Encrypted(d) => {
                let real = self.elementwise(DIFFERENT, d, &zeros)?;
                Ok((self.choice(&real, &quotient, &zeros)?, self.choice(&real, &rest, &zeros)?))
            }
        }
    }
}
