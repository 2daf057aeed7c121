//! Inner products of encrypted vectors: one product, one trace-type function.

use super::unrolled::TracePlan;
use crate::ckks::{CiphertextOf, Evaluator, PlaintextOf};
use crate::error::HeError;
use sudare_rlwe::Backend;

impl<B: Backend> Evaluator<B> {
    /// Σ_i x_i·y_i over the slots that `plan` sums, one level down: with
    /// [`TraceFunction::total_sum`](super::trace::TraceFunction::total_sum) every slot becomes the
    /// inner product. Keys of the trace are needed at the level below the operands' only.
    ///
    /// # Errors
    /// As [`Evaluator::mul_rescale`] and [`Evaluator::trace`].
    pub fn inner_product(
        &self,
        x: &CiphertextOf<B>,
        y: &CiphertextOf<B>,
        plan: &TracePlan,
    ) -> Result<CiphertextOf<B>, HeError> {
        let level = x.level().min(y.level());
        self.check_keys(&plan.elements(), level.saturating_sub(1))?;
        self.trace(&self.mul_rescale(x, y)?, plan)
    }

    /// The same with a plaintext.
    ///
    /// # Errors
    /// As [`Evaluator::mul_plain_rescale`] and [`Evaluator::trace`].
    pub fn inner_product_plain(
        &self,
        x: &CiphertextOf<B>,
        y: &PlaintextOf<B>,
        plan: &TracePlan,
    ) -> Result<CiphertextOf<B>, HeError> {
        self.check_keys(&plan.elements(), x.level().saturating_sub(1))?;
        self.trace(&self.mul_plain_rescale(x, y)?, plan)
    }
}
