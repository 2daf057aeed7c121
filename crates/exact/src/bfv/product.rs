//! BFV products over Q and an auxiliary modulus R.
//!
//! With a(s) = Q·K + v and the right operand scaled to R, b'(s) = R·K' + v', the product
//! t·a·b'/R = t·Q·K·K' + t·K'·v + t·Q/R·K·v' + … needs a·b' modulo Q·R only, and the division by
//! R ends over Q: no conversion back (Kim–Polyakov–Zucca, ePrint 2021/204, "HPS over Q"). Primes
//! that the noise has outgrown are dropped on the way in ("leveled"), and stay dropped.

use super::{Bfv, Ciphertext, Evaluator};
use crate::error::ExactError;
use crate::scale::{Extended, ProductTables};
use crate::{IntegerParams, ProductPlan, Scheme, State, check_fits, sealed};
use std::borrow::{Borrow, Cow};
use sudare_ring::ops::tensor;
use sudare_ring::{Eval, Poly};

impl sealed::Sealed for Bfv {}

/// Both parts of an operand over Q·R.
type Operand<'a> = [Extended<'a>; 2];

fn extend<'a>(
    tables: &ProductTables,
    c: &'a Ciphertext,
    side: impl Fn(&ProductTables, &'a Poly<Eval>) -> Result<Extended<'a>, ExactError>,
) -> Result<Operand<'a>, ExactError> {
    Ok([side(tables, &c.parts()[0])?, side(tables, &c.parts()[1])?])
}

/// One modulus's share of operands.
type Side<T> = Vec<[T; 2]>;

/// Operands over Q, and over R.
fn split(side: Vec<Operand<'_>>) -> (Side<Cow<'_, Poly<Eval>>>, Side<Poly<Eval>>) {
    side.into_iter().map(|[a, b]| ([a.q, b.q], [a.r, b.r])).unzip()
}

fn by_reference<T: Borrow<Poly<Eval>>>(side: &[[T; 2]]) -> Vec<[&Poly<Eval>; 2]> {
    side.iter().map(|c| c.each_ref().map(Borrow::borrow)).collect()
}

/// What Σ a_i·b_i does to levels and noise.
fn plan(params: &IntegerParams, a: &[&Ciphertext], b: &[&Ciphertext]) -> ProductPlan {
    let state = |c: &Ciphertext| (c.level(), c.noise);
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

    fn product(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, ExactError> {
        let params = &evaluator.params;
        let plan = plan(params, a, b);
        check_fits(params, "product", plan.level, plan.noise)?;
        planned(evaluator, &plan, a, b)
    }

    fn product_relin(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, ExactError> {
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
fn planned(
    evaluator: &Evaluator,
    plan: &ProductPlan,
    a: &[&Ciphertext],
    b: &[&Ciphertext],
) -> Result<Ciphertext, ExactError> {
    let params = &evaluator.params;
    let tables = |level: usize| params.product_tables(level, plan.level, plan.aux);
    let left = a.iter().map(|c| extend(&*tables(c.level())?, c, ProductTables::left));
    let left = left.collect::<Result<Vec<_>, ExactError>>()?;
    let right = b.iter().map(|c| extend(&*tables(c.level())?, c, ProductTables::right));
    let right = right.collect::<Result<Vec<_>, ExactError>>()?;
    let tables = tables(plan.level)?;
    let ((left, left_r), (right, right_r)) = (split(left), split(right));
    let tail = tensor(&tables.aux, &by_reference(&left_r), &by_reference(&right_r));
    // What the first tensor product has read makes room for the second.
    drop((left_r, right_r));
    let kept = tensor(&tables.low, &by_reference(&left), &by_reference(&right));
    drop((left, right));
    // −Q·m·m' from factors that are both −Q.
    let factor = Bfv::fresh_factor(params, plan.level);
    let parts = tables.divide.apply_to_parts(kept, tail).into();
    evaluator.inner.record_products(a.len());
    let inner = a[0].inner().with_parts(parts, plan.level);
    Ok(Ciphertext::new(params, inner, State { factor, noise: plan.noise }))
}
