//! BGV products: a tensor product, and one division for key switching and modulus switch.
//!
//! On parts kept times t^−1 a product is t·a·b. The factor t waits for the division that comes
//! anyway: ⌊t·x/(P·q)⌉ costs what ⌊x/(P·q)⌉ costs ([`sudare_ring::ops::Division`]).

use super::{Bgv, Ciphertext, CiphertextOf, Evaluator};
use crate::error::ExactError;
use crate::{IntegerParams, Scheme, State, check_fits, sealed};
use std::borrow::Cow;
use sudare_rlwe::{Backend, Quotient};

impl sealed::Sealed for Bgv {}

type Side<'a, B> = Vec<Cow<'a, CiphertextOf<B>>>;

/// Operands at one level and, each side, of one plaintext factor; the state of their product, Σ t·v·v'
/// checked to fit.
fn operands<'a, B: Backend>(
    evaluator: &Evaluator<B>,
    a: &[&'a CiphertextOf<B>],
    b: &[&'a CiphertextOf<B>],
) -> Result<(Side<'a, B>, Side<'a, B>, State), ExactError> {
    let params = &evaluator.params;
    let (t, model) = (params.modulus(), params.noise());
    let level = a.iter().chain(b).map(|c| c.level()).min().unwrap_or(0);
    let side = |list: &[&'a CiphertextOf<B>]| -> Result<Side<'a, B>, ExactError> {
        // The factor of an operand that stays as it is, or the level's own.
        let stays = list.iter().find(|c| c.level() == level);
        let wanted = stays.map_or_else(|| Bgv::fresh_factor(params, level), |c| c.factor);
        list.iter()
            .map(|c| match c.level() == level {
                true => Ok(Cow::Borrowed(*c)),
                false => evaluator.drop_toward(c, level, wanted).map(Cow::Owned),
            })
            .collect()
    };
    let (left, mut right) = (side(a)?, side(b)?);
    // Terms of different plaintext factors: the right operand takes the difference.
    let factor = t.mul(left[0].factor, right[0].factor);
    for (x, y) in left.iter().zip(&mut right) {
        let own = t.mul(x.factor, y.factor);
        if own != factor {
            let k = t.center(t.mul(factor, t.inverse(own)?));
            let mut fixed = evaluator.mul_integer(y, k)?;
            fixed.factor = t.mul(fixed.factor, t.reduce_i64(k));
            *y = Cow::Owned(fixed);
        }
    }
    let pairs: Vec<_> = left.iter().zip(&right).map(|(x, y)| [(level, x.noise), (level, y.noise)]).collect();
    let noise = model.bgv_product(&pairs).noise;
    check_fits(params, "product", level, noise)?;
    Ok((left, right, State { factor, noise }))
}

/// The tensor product.
fn tensor<B: Backend>(
    evaluator: &Evaluator<B>,
    left: &Side<'_, B>,
    right: &Side<'_, B>,
) -> Result<B::Ciphertext, ExactError> {
    let left: Vec<_> = left.iter().map(|c| c.inner()).collect();
    let right: Vec<_> = right.iter().map(|c| c.inner()).collect();
    Ok(evaluator.inner.dot(&left, &right)?)
}

impl Scheme for Bgv {
    const NAME: &'static str = "BGV";
    const CODE: u32 = 1;

    fn fresh_factor(params: &IntegerParams, level: usize) -> u64 {
        params.bgv_factor(level)
    }

    fn product<B: Backend>(
        evaluator: &Evaluator<B>,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ExactError> {
        let params = &evaluator.params;
        let (left, right, state) = operands(evaluator, a, b)?;
        let product = tensor(evaluator, &left, &right)?;
        // t is below 2^60.
        let inner = evaluator.inner.mul_integer(&product, params.t() as i64)?;
        Ok(Ciphertext::new(params, inner, state))
    }

    fn product_relin<B: Backend>(
        evaluator: &Evaluator<B>,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ExactError> {
        let (params, model) = (&evaluator.params, evaluator.params.noise());
        evaluator.inner.check_relin(0)?;
        let (left, right, state) = operands(evaluator, a, b)?;
        let (level, t) = (left[0].level(), params.modulus());
        evaluator.inner.check_relin(level)?;
        let target = model.bgv_target(level, state.noise);
        let noise = model.bgv_switched(state.noise, level, target);
        check_fits(params, "product", target, noise)?;
        let tables = || params.division(level, target, true, t.value());
        let factor = t.mul(state.factor, t.inverse(params.dropped_mod_t(level, target))?);
        let product = tensor(evaluator, &left, &right)?;
        let inner = evaluator.inner.relinearize_divide(&product, Quotient { to: target, tables: &tables })?;
        Ok(Ciphertext::new(params, inner, State { factor, noise }))
    }
}
