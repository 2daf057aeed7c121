//! Inner products of short entries (Yasuda et al., `002`, equation 3).

use super::entries::Entries;
use super::layout::Layout;
use super::require_count;
use crate::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Operand;
use sudare_rlwe::security::Security;

const NAME: &str = "inner product of short entries";

/// pm^(1)(A) = Σ a_i·X^i and pm^(2)(B) = −Σ b_i·X^(N−i): the constant coefficient of their product
/// is ⟨A, B⟩. Needs N ≥ k and t > k·max² (twice that with signs).
#[derive(Clone, Debug)]
pub struct InnerProduct {
    pub(super) params: Params,
    pub(super) layout: Layout,
}

impl InnerProduct {
    /// Inner products of vectors of `length` entries.
    ///
    /// # Errors
    /// [`PackingError::DoesNotFit`] if N or t is too small, [`PackingError::Method`] for no entries or
    /// entries of several digits.
    pub fn new(params: &Params, length: usize, entries: Entries) -> Result<Self, PackingError> {
        let layout = Self::layout(length, entries)?;
        layout.check(NAME, params)?;
        Ok(Self { params: params.clone(), layout })
    }

    pub(super) fn layout(length: usize, entries: Entries) -> Result<Layout, PackingError> {
        if entries.stride() != 1 {
            let reason = "it packs entries of one coefficient each; LargeInnerProduct packs entries in digits".into();
            return Err(PackingError::Method { method: NAME, reason });
        }
        Ok(Layout { rows: 1, length, cols: 1, entries })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`InnerProduct::new`], and `RlweError::Parameters`.
    pub fn parameters(length: usize, entries: Entries, security: Security) -> Result<ParamsLiteral, PackingError> {
        Self::layout(length, entries)?.parameters(NAME, security)
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

/// Packs one vector.
pub(super) fn encode(
    params: &Params,
    layout: &Layout,
    operand: Operand,
    vector: &[i128],
) -> Result<Plaintext, PackingError> {
    require_count("entries of a vector", vector.len(), layout.length)?;
    match operand {
        Operand::Left => layout.left(params, [vector].into_iter(), 0),
        Operand::Right => layout.right(params, [vector].into_iter(), 0),
        Operand::Output => Err(PackingError::Method { method: NAME, reason: "results are not encoded".into() }),
    }
}
