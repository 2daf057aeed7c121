//! Larger integers by several coprime plaintext moduli and the Chinese remainder theorem.

use super::encode::{Encoder, Packing, Wrap};
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use crate::error::{ExactError, parameters};
use num_bigint::{BigInt, BigUint, Sign};
use sudare_ring::PlainModulus;
use sudare_rlwe::{Params, RlweError};

/// Most moduli of one system.
pub const MAX_MODULI: usize = 64;

/// Encodes integers modulo the product of several coprime plaintext moduli: one plaintext, and so
/// one ciphertext, for each. All computations are done on each alike, under the same keys.
///
/// ```
/// use num_bigint::BigInt;
/// use sudare_exact::big::BigEncoder;
/// use sudare_exact::plan::{Requirements, slot_modulus};
/// use sudare_exact::{Packing, Wrap};
///
/// # fn main() -> Result<(), sudare_exact::ExactError> {
/// let params = Requirements::new(slot_modulus(30, 12)?).slots().bgv()?;
/// // Two moduli of 17 and 30 bits: integers up to 2^45 and a sign.
/// let encoder = BigEncoder::new(&params, &[65537, slot_modulus(30, 12)?])?;
/// let values = [BigInt::from(1_i64 << 44), BigInt::from(-3)];
/// let plain = encoder.encode(&values, Packing::Slots, Wrap::Refuse)?;
/// assert_eq!(plain.len(), 2);
/// assert_eq!(encoder.decode(&plain, Packing::Slots)?[..2], values);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BigEncoder {
    encoders: Vec<Encoder>,
    product: BigUint,
    /// (M/t_i)·\[(M/t_i)^−1\]_{t_i} for the product M.
    basis: Vec<BigUint>,
}

impl BigEncoder {
    /// An encoder for plaintext moduli over one parameter set.
    ///
    /// # Errors
    /// `RlweError::Parameters` without moduli, with more than [`MAX_MODULI`], or if two share a
    /// factor; and as [`IntegerParams::new`].
    pub fn new(params: &Params, moduli: &[u64]) -> Result<Self, ExactError> {
        if moduli.is_empty() || moduli.len() > MAX_MODULI {
            return Err(parameters(format!("1 to {MAX_MODULI} plaintext moduli are possible, not {}", moduli.len())));
        }
        let product: BigUint = moduli.iter().map(|t| BigUint::from(*t)).product();
        let mut basis = Vec::with_capacity(moduli.len());
        let mut encoders = Vec::with_capacity(moduli.len());
        for t in moduli {
            let modulus = PlainModulus::new(*t)?;
            let hat = &product / *t;
            let Some(inverse) = modulus.inv(residue(&hat, *t)) else {
                return Err(parameters(format!(
                    "plaintext modulus {t} shares a factor with another one; take moduli without common factors"
                )));
            };
            basis.push(hat * inverse);
            encoders.push(Encoder::new(&IntegerParams::new(params, *t)?));
        }
        Ok(Self { encoders, product, basis })
    }

    /// The encoder of each modulus, with its parameters.
    pub fn encoders(&self) -> &[Encoder] {
        &self.encoders
    }

    /// The product M of the moduli.
    pub fn modulus(&self) -> &BigUint {
        &self.product
    }

    /// Encodes signed values, one plaintext for each modulus; those in `[−⌊M/2⌋, ⌈M/2⌉)` fit.
    ///
    /// # Errors
    /// As [`Encoder::encode_signed`]; `RlweError::OverBound` names the first value that does not
    /// fit.
    pub fn encode(&self, values: &[BigInt], packing: Packing, wrap: Wrap) -> Result<Vec<Plaintext>, ExactError> {
        let low = -BigInt::from(&self.product / 2u32);
        let high = BigInt::from((&self.product + 1u32) / 2u32);
        if wrap == Wrap::Refuse
            && let Some(index) = values.iter().position(|x| *x < low || *x >= high)
        {
            let bound = (self.product.bits() as f64 - 1.0).exp2();
            return Err(ExactError::Rlwe(RlweError::OverBound { index, bound }));
        }
        self.encoders
            .iter()
            .map(|encoder| {
                let t = encoder.params().modulus();
                let residues: Vec<u64> = values
                    .iter()
                    .map(|x| match (residue(x.magnitude(), t.value()), x.sign()) {
                        (r, Sign::Minus) => t.neg(r),
                        (r, _) => r,
                    })
                    .collect();
                encoder.encode_unsigned(&residues, packing, Wrap::Modulo)
            })
            .collect()
    }

    /// All N values, in `[−⌊M/2⌋, ⌈M/2⌉)`, from the plaintext of each modulus.
    ///
    /// # Errors
    /// `RlweError::Operands` unless there is one plaintext for each modulus, and as
    /// [`Encoder::decode_signed`].
    pub fn decode(&self, plaintexts: &[Plaintext], packing: Packing) -> Result<Vec<BigInt>, ExactError> {
        if plaintexts.len() != self.encoders.len() {
            let (left, right) = (plaintexts.len(), self.encoders.len());
            return Err(RlweError::Operands { operation: "decoding", left, right }.into());
        }
        let columns = self
            .encoders
            .iter()
            .zip(plaintexts)
            .map(|(encoder, p)| encoder.decode_unsigned(p, packing))
            .collect::<Result<Vec<_>, _>>()?;
        let half = (&self.product - 1u32) / 2u32;
        let count = columns.first().map_or(0, Vec::len);
        Ok((0..count)
            .map(|i| {
                let sum: BigUint = columns.iter().zip(&self.basis).map(|(c, b)| b * c[i]).sum();
                let x = sum % &self.product;
                match x > half {
                    true => BigInt::from_biguint(Sign::Minus, &self.product - x),
                    false => BigInt::from(x),
                }
            })
            .collect())
    }
}

/// x mod t.
fn residue(x: &BigUint, t: u64) -> u64 {
    (x % t).iter_u64_digits().next().unwrap_or(0)
}
