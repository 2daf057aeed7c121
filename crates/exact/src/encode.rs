//! Encoding of integers: into slots or coefficients, signed or not.

use super::params::IntegerParams;
use super::plaintext::Plaintext;
use crate::error::ExactError;
use sudare_ring::buffer::Buffer;
use sudare_ring::order;
use sudare_rlwe::RlweError;
use zeroize::Zeroize;

/// Where values stand in a plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Slots in two rows of N/2 (row 0 first): sums and products are slot by slot, rotations
    /// turn both rows. Needs a prime t ≡ 1 modulo 2N; for t ≡ 1 modulo N alone rows have N/4 slots, and plaintexts are polynomials
    /// in X².
    Slots,
    /// Coefficients of a polynomial: products are convolutions modulo X^N + 1. Any t.
    Coefficients,
}

/// What happens to a value that the plaintext modulus does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// It is refused.
    Refuse,
    /// It is taken modulo t.
    Modulo,
}

/// Encodes and decodes integers. Results of computations are exact modulo t.
///
/// A plaintext holds up to [`IntegerParams::slots`] values in slots, or N in coefficients; zeros fill the rest. Signed values
/// that fit are those in `[−⌊t/2⌋, ⌈t/2⌉)`, unsigned ones those in `[0, t)`.
///
/// ```
/// use sudare_exact::plan::Requirements;
/// use sudare_exact::{Encoder, Packing, Wrap};
///
/// # fn main() -> Result<(), sudare_exact::ExactError> {
/// let params = Requirements::new(65537).slots().bfv()?;
/// let encoder = Encoder::new(&params);
/// let plain = encoder.encode_signed(&[-1, 70000], Packing::Slots, Wrap::Modulo)?;
/// assert_eq!(encoder.decode_signed(&plain, Packing::Slots)?[..2], [-1, 70000 - 65537]);
/// // Unless it is asked for, nothing wraps.
/// assert!(encoder.encode_signed(&[70000], Packing::Slots, Wrap::Refuse).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    params: IntegerParams,
    /// Where each slot stands among the values of the transform modulo t.
    positions: Vec<u32>,
}

impl Encoder {
    /// An encoder for a parameter set.
    pub fn new(params: &IntegerParams) -> Self {
        let n = params.slots();
        let mut positions = Vec::new();
        if params.has_slots() {
            let order = 2 * n;
            positions = vec![0; n];
            let mut exponent = 1;
            for j in 0..n / 2 {
                positions[j] = order::index_of(n, exponent) as u32;
                positions[n / 2 + j] = order::index_of(n, order - exponent) as u32;
                exponent = exponent * 5 % order;
            }
        }
        Self { params: params.clone(), positions }
    }

    /// The parameters that it encodes for.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// Encodes signed values; those in `[−⌊t/2⌋, ⌈t/2⌉)` fit. The rest of the plaintext is zero.
    ///
    /// # Errors
    /// `RlweError::TooManyValues`, [`ExactError::NoSlots`], [`ExactError::DoesNotFit`].
    pub fn encode_signed(&self, values: &[i64], packing: Packing, wrap: Wrap) -> Result<Plaintext, ExactError> {
        let t = self.params.modulus();
        let residue = |x: i64| {
            let r = t.reduce_i64(x);
            (r, t.center(r) == x)
        };
        self.encode_with(values, packing, wrap, residue)
    }

    /// Encodes values without a sign; those in `[0, t)` fit. The rest of the plaintext is zero.
    ///
    /// # Errors
    /// As [`Encoder::encode_signed`].
    pub fn encode_unsigned(&self, values: &[u64], packing: Packing, wrap: Wrap) -> Result<Plaintext, ExactError> {
        let t = self.params.modulus();
        self.encode_with(values, packing, wrap, |x| (t.reduce(x), x < t.value()))
    }

    fn encode_with<T: Copy>(
        &self,
        values: &[T],
        packing: Packing,
        wrap: Wrap,
        residue: impl Fn(T) -> (u64, bool),
    ) -> Result<Plaintext, ExactError> {
        let n = self.params.degree();
        let capacity = match packing {
            Packing::Slots => self.params.slot_transform()?.degree(),
            Packing::Coefficients => n,
        };
        if values.len() > capacity {
            return Err(ExactError::Rlwe(RlweError::TooManyValues { found: values.len(), capacity }));
        }
        if wrap == Wrap::Refuse
            && let Some(index) = values.iter().position(|x| !residue(*x).1)
        {
            return Err(ExactError::DoesNotFit { index, modulus: self.params.t() });
        }
        let mut coefficients = vec![0; n];
        match packing {
            Packing::Coefficients => {
                coefficients.iter_mut().zip(values).for_each(|(c, x)| *c = residue(*x).0);
            }
            Packing::Slots => {
                let limb = self.params.slot_transform()?;
                let mut scratch = Buffer::zeroed(capacity);
                for (position, x) in self.positions.iter().zip(values) {
                    scratch[*position as usize] = residue(*x).0;
                }
                limb.inverse(&mut scratch);
                coefficients.iter_mut().step_by(n / capacity).zip(scratch.iter()).for_each(|(c, x)| *c = *x);
                scratch.zeroize();
            }
        }
        Ok(Plaintext { params: self.params.clone(), coefficients })
    }

    /// All N values (or slots), in `[0, t)`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, [`ExactError::NoSlots`].
    pub fn decode_unsigned(&self, plaintext: &Plaintext, packing: Packing) -> Result<Vec<u64>, ExactError> {
        self.params.require("the plaintext", &plaintext.params)?;
        match packing {
            Packing::Coefficients => Ok(plaintext.coefficients.clone()),
            Packing::Slots => {
                let (limb, all) = (self.params.slot_transform()?, &plaintext.coefficients);
                let mut scratch = Buffer::zeroed(limb.degree());
                let step = all.len() / scratch.len();
                scratch.iter_mut().zip(all.iter().step_by(step)).for_each(|(x, c)| *x = *c);
                limb.forward(&mut scratch);
                let values = self.positions.iter().map(|position| scratch[*position as usize]).collect();
                scratch.zeroize();
                Ok(values)
            }
        }
    }

    /// All N values (or slots), in `[−⌊t/2⌋, ⌈t/2⌉)`.
    ///
    /// # Errors
    /// As [`Encoder::decode_unsigned`].
    pub fn decode_signed(&self, plaintext: &Plaintext, packing: Packing) -> Result<Vec<i64>, ExactError> {
        let t = self.params.modulus();
        Ok(self.decode_unsigned(plaintext, packing)?.into_iter().map(|x| t.center(x)).collect())
    }
}
