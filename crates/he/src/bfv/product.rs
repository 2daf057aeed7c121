//! BFV products over Q and an auxiliary modulus R.
//!
//! With a(s) = Q·K + v and the right operand scaled to R, b'(s) = R·K' + v', the product
//! t·a·b'/R = t·Q·K·K' + t·K'·v + t·Q/R·K·v' + … needs a·b' modulo Q·R only, and the division by
//! R ends over Q: no conversion back (Kim–Polyakov–Zucca, ePrint 2021/204, "HPS over Q"). Primes
//! that the noise has outgrown are dropped on the way in ("leveled"), and stay dropped.

use super::{Bfv, Ciphertext, Evaluator};
use crate::error::HeError;
use crate::integer::scale::{Extended, ProductTables};
use crate::integer::tensor::tensor;
use crate::integer::{IntegerParams, Scheme, check_fits, sealed};
use crate::keyswitch;
use std::borrow::Cow;
use sudare_ring::{Eval, Poly};

impl sealed::Sealed for Bfv {}

/// Both parts of an operand over Q·R.
type Operand<'a> = [Extended<'a>; 2];

fn extend<'a>(
    tables: &ProductTables,
    c: &'a Ciphertext,
    side: impl Fn(&ProductTables, &'a Poly<Eval>) -> Result<Extended<'a>, HeError>,
) -> Result<Operand<'a>, HeError> {
    Ok([side(tables, &c.parts[0])?, side(tables, &c.parts[1])?])
}

/// Operands over Q alone.
fn over_q(side: Vec<Operand<'_>>) -> Vec<[Cow<'_, Poly<Eval>>; 2]> {
    side.into_iter().map(|c| c.map(|part| part.q)).collect()
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

    fn product(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let params = &evaluator.params;
        let pairs: Vec<_> = a.iter().zip(b).map(|(x, y)| [(x.level, x.noise), (y.level, y.noise)]).collect();
        let plan = params.noise().bfv_product(&pairs);
        check_fits(params, "product", plan.level, plan.noise)?;
        let tables = |level: usize| {
            params
                .product_tables(level, plan.level, plan.aux)
                .ok_or_else(|| HeError::Parameters { reason: "two primes of the modulus are equal".into() })
        };
        let left = a.iter().map(|c| extend(&*tables(c.level)?, c, ProductTables::left));
        let left = left.collect::<Result<Vec<_>, HeError>>()?;
        let right = b.iter().map(|c| extend(&*tables(c.level)?, c, ProductTables::right));
        let right = right.collect::<Result<Vec<_>, HeError>>()?;
        let tables = tables(plan.level)?;
        let mut tail = tensor(&tables.aux, &left, &right, |c: &Operand<'_>, part, i| c[part].r.limb(i));
        // What the first tensor product has read makes room for the second.
        let (left, right) = (over_q(left), over_q(right));
        let kept = tensor(&tables.low, &left, &right, |c: &[Cow<'_, Poly<Eval>>; 2], part, i| c[part].limb(i));
        drop((left, right));
        // −Q·m·m' from factors that are both −Q.
        let factor = Self::fresh_factor(params, plan.level);
        let shell = Ciphertext { level: plan.level, noise: plan.noise, factor, ..a[0].shell() };
        let divide = |(q, r): (Poly<Eval>, &mut Poly<Eval>)| tables.divide.apply(q.words(), r.words_mut());
        Ok(Ciphertext { parts: kept.into_iter().zip(&mut tail).map(divide).collect(), ..shell })
    }

    fn product_relin(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let params = &evaluator.params;
        let pairs: Vec<_> = a.iter().zip(b).map(|(x, y)| [(x.level, x.noise), (y.level, y.noise)]).collect();
        let plan = params.noise().bfv_product(&pairs);
        // What relinearisation would refuse after the work is refused before it.
        keyswitch::check_key(evaluator.keys.relin()?, "relinearisation", plan.level)?;
        check_fits(params, "product", plan.level, plan.noise + params.noise().switched(plan.level))?;
        evaluator.relinearize(&Self::product(evaluator, a, b)?)
    }
}
