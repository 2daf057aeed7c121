//! Inner products of large entries in base r (Yasuda et al., `002`, equations 4 and 5, Theorem 4).

use super::entries::Entries;
use super::inner::encode;
use super::layout::Layout;
use crate::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Operand;
use sudare_rlwe::security::Security;

const NAME: &str = "inner product of entries in digits";

/// Entry i of A is the polynomial of its d digits at X^(2id), of B at −X^(N−2id): the first 2d − 1
/// coefficients of the product, evaluated at r, are ⟨A, B⟩. Needs N ≥ 2kd and t > k(r − 1)²d
/// (twice that with signs).
#[derive(Clone, Debug)]
pub struct LargeInnerProduct {
    pub(super) params: Params,
    pub(super) layout: Layout,
}

impl LargeInnerProduct {
    /// Inner products of vectors of `length` entries below 2^`bits`, in base `radix`.
    ///
    /// # Errors
    /// [`PackingError::DoesNotFit`] if N or t is too small, [`PackingError::Method`] for no entries,
    /// or bits, a base or results out of range.
    pub fn new(params: &Params, length: usize, bits: u32, radix: u64, signed: bool) -> Result<Self, PackingError> {
        let layout = Layout { rows: 1, length, cols: 1, entries: Entries::digits(bits, radix, signed)? };
        layout.check(NAME, params)?;
        Ok(Self { params: params.clone(), layout })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`LargeInnerProduct::new`], and `RlweError::Parameters`.
    pub fn parameters(
        length: usize,
        bits: u32,
        radix: u64,
        signed: bool,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        let entries = Entries::digits(bits, radix, signed)?;
        Layout { rows: 1, length, cols: 1, entries }.parameters(NAME, security)
    }

    /// Packs a vector as the left or the right operand.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`].
    pub fn encode(&self, operand: Operand, vector: &[i128]) -> Result<Plaintext, PackingError> {
        encode(&self.params, &self.layout, operand, vector)
    }

    /// The product of a left and a right operand.
    ///
    /// # Errors
    /// As [`Evaluator::mul`].
    pub fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<Ciphertext, PackingError> {
        Ok(evaluator.mul(left, right)?)
    }

    /// Reads a decrypted product.
    pub fn decode(&self, result: &Plaintext) -> i128 {
        self.layout.read(result, 0, 0)
    }
}
