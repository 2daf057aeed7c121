//! BGV products: a tensor product, and one division for key switching and modulus switch.
//!
//! On parts kept times t^−1 a product is t·a·b. The factor t waits for the division that comes
//! anyway: ⌊t·x/(P·q)⌉ costs what ⌊x/(P·q)⌉ costs ([`crate::integer::scale`]).

use super::{Bgv, Ciphertext, Evaluator};
use crate::error::HeError;
use crate::integer::tensor::tensor;
use crate::integer::{IntegerParams, Scheme, check_fits, sealed};
use crate::keyswitch;
use std::borrow::Cow;

impl sealed::Sealed for Bgv {}

type Side<'a> = Vec<Cow<'a, Ciphertext>>;

/// Operands at one level and, each side, of one plaintext factor; Σ t·v·v' checked to fit.
fn operands<'a>(
    evaluator: &Evaluator,
    a: &[&'a Ciphertext],
    b: &[&'a Ciphertext],
) -> Result<(Side<'a>, Side<'a>, Ciphertext), HeError> {
    let params = &evaluator.params;
    let (t, model) = (params.modulus(), params.noise());
    let level = a.iter().chain(b).map(|c| c.level).min().unwrap_or(0);
    let side = |list: &[&'a Ciphertext]| -> Result<Side<'a>, HeError> {
        // The factor of an operand that stays as it is, or the level's own.
        let stays = list.iter().find(|c| c.level == level);
        let wanted = stays.map_or_else(|| Bgv::fresh_factor(params, level), |c| c.factor);
        list.iter()
            .map(|c| match c.level == level {
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
            let k = t.center(t.mul(factor, t.inv(own).unwrap_or(0)));
            let fixed = evaluator.mul_integer(y, k)?;
            let factor = t.mul(fixed.factor, t.reduce_i64(k));
            *y = Cow::Owned(Ciphertext { factor, ..fixed });
        }
    }
    let pairs: Vec<_> = left.iter().zip(&right).map(|(x, y)| [(level, x.noise), (level, y.noise)]).collect();
    let noise = model.bgv_product(&pairs).noise;
    check_fits(params, "product", level, noise)?;
    let shell = Ciphertext { level, noise, factor, ..a[0].shell() };
    Ok((left, right, shell))
}

impl Scheme for Bgv {
    const NAME: &'static str = "BGV";
    const CODE: u32 = 1;

    fn fresh_factor(params: &IntegerParams, level: usize) -> u64 {
        params.bgv_factor(level)
    }

    fn product(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let params = &evaluator.params;
        let (left, right, shell) = operands(evaluator, a, b)?;
        let basis = params.params().q_at(shell.level);
        let mut parts = tensor(basis, &left, &right, |c: &Cow<'_, Ciphertext>, part, i| c.parts[part].limb(i));
        parts.iter_mut().for_each(|p| p.mul_scalars(params.t_mod_q(shell.level)));
        Ok(Ciphertext { parts: parts.into(), ..shell })
    }

    fn product_relin(evaluator: &Evaluator, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let operation = "product";
        let (params, key) = (&evaluator.params, evaluator.keys.relin()?);
        let (left, right, shell) = operands(evaluator, a, b)?;
        let (level, model, t) = (shell.level, params.noise(), params.modulus());
        keyswitch::check_key(key, "relinearisation", level)?;
        let target = model.bgv_target(level, shell.noise);
        let noise = model.bgv_switched(shell.noise, level, target);
        check_fits(params, operation, target, noise)?;
        let division = params
            .division(level, target, true, t.value())
            .ok_or_else(|| HeError::Parameters { reason: "two primes of the modulus are equal".into() })?;
        let q = params.params().q();
        let dropped = (target + 1..=level).fold(1 % t.value(), |acc, i| t.mul(acc, q.limb(i).q()));
        let factor = t.mul(shell.factor, t.inv(dropped).unwrap_or(0));
        let he = params.params();
        let [c0, c1, c2] =
            tensor(he.q_at(level), &left, &right, |c: &Cow<'_, Ciphertext>, part, i| c.parts[part].limb(i));
        let mut pair = keyswitch::switch(he, level, &c2, key);
        pair.add_scaled(he, 0, &c0);
        pair.add_scaled(he, 1, &c1);
        let parts = pair.c.into_iter().map(|c| division.apply_whole(c)).collect();
        Ok(Ciphertext { parts, level: target, noise, factor, ..shell })
    }
}
