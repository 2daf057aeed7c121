//! BFV products: their levels and noise. [`sudare_rlwe::Evaluator::dot_scaled`] multiplies.

use super::{Bfv, Ciphertext, CiphertextOf, Evaluator};
use crate::error::ExactError;
use crate::evaluator::inners;
use crate::{IntegerParams, ProductPlan, Scheme, State, check_fits, sealed};
use sudare_rlwe::{Backend, ScaledProduct, Shaped};

impl sealed::Sealed for Bfv {}

/// What Σ a_i·b_i does to levels and noise.
fn plan<C: Shaped>(params: &IntegerParams, a: &[&Ciphertext<C>], b: &[&Ciphertext<C>]) -> ProductPlan {
    let state = |c: &Ciphertext<C>| (c.level(), c.noise);
    let pairs: Vec<_> = a.iter().zip(b).map(|(x, y)| [state(x), state(y)]).collect();
    params.noise().bfv_product(&pairs)
}

impl Scheme for Bfv {
    const NAME: &'static str = "BFV";
    const CODE: u32 = 0;

    /// −Q_l: then x = m.
    fn fresh_factor(params: &IntegerParams, level: usize) -> u64 {
        params.modulus().neg(params.q_mod_t(level))
    }

    /// Every operation keeps or restores it.
    fn only_factor(params: &IntegerParams, level: usize) -> Option<u64> {
        Some(Self::fresh_factor(params, level))
    }

    fn product<B: Backend>(
        evaluator: &Evaluator<B>,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ExactError> {
        let params = &evaluator.params;
        let plan = plan(params, a, b);
        check_fits(params, "product", plan.level, plan.noise)?;
        planned(evaluator, &plan, a, b)
    }

    fn product_relin<B: Backend>(
        evaluator: &Evaluator<B>,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ExactError> {
        let params = &evaluator.params;
        let plan = plan(params, a, b);
        // What relinearisation would refuse after the work is refused before it.
        evaluator.inner.check_relin(plan.level)?;
        let noise = plan.noise + params.noise().relinearised(plan.level);
        check_fits(params, "product", plan.level, noise)?;
        let product = planned(evaluator, &plan, a, b)?;
        Ok(product.with(evaluator.inner.relinearize(product.inner())?, noise))
    }
}

/// Σ a_i·b_i with three parts, which was planned and fits.
fn planned<B: Backend>(
    evaluator: &Evaluator<B>,
    plan: &ProductPlan,
    a: &[&CiphertextOf<B>],
    b: &[&CiphertextOf<B>],
) -> Result<CiphertextOf<B>, ExactError> {
    let params = &evaluator.params;
    let tables = |level: usize| params.product_tables(level, plan.level, plan.aux);
    let by = ScaledProduct { level: plan.level, aux: plan.aux, tables: &tables };
    let inner = evaluator.inner.dot_scaled(&inners(a), &inners(b), &by)?;
    // −Q·m·m' from factors that are both −Q.
    let factor = Bfv::fresh_factor(params, plan.level);
    Ok(Ciphertext::new(params, inner, State { factor, noise: plan.noise }))
}
