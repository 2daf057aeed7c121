//! Sums, products with polynomials and integers, and division by the last prime.

use super::Cpu;
use crate::backend::Divisor;
use crate::ciphertext::{Ciphertext, at_level};
use crate::error::RlweError;
use crate::evaluator::Evaluator;
use sudare_ring::ops::Division;
use sudare_ring::{Eval, Poly, Shoup};

/// A polynomial over the primes of at least a ciphertext's level.
fn check_poly(operation: &'static str, a: &Ciphertext, p: &Poly<Eval>) -> Result<(), RlweError> {
    let limbs = p.basis().len();
    if limbs <= a.level() {
        return Err(RlweError::NoSuchLevel { operation, wanted: a.level(), highest: limbs.saturating_sub(1) });
    }
    Ok(())
}

impl Cpu {
    /// Part by part; `alone` makes of a part of `b` what it is without one of `a`.
    pub(super) fn combined(
        a: &Ciphertext,
        b: &Ciphertext,
        merge: fn(&Poly<Eval>, &Poly<Eval>) -> Poly<Eval>,
        alone: fn(&mut Poly<Eval>),
    ) -> Ciphertext {
        let level = a.level().min(b.level());
        let (a, b) = (a.at_level(level), b.at_level(level));
        let mut parts: Vec<_> = a.parts().iter().zip(b.parts()).map(|(x, y)| merge(x, y)).collect();
        parts.extend(a.parts().iter().skip(parts.len()).cloned());
        for y in b.parts().iter().skip(parts.len()) {
            let mut y = y.clone();
            alone(&mut y);
            parts.push(y);
        }
        a.with_parts(parts, level)
    }

    /// In place where `b` has the level and no more parts than `acc`.
    pub(super) fn accumulate(acc: &mut Ciphertext, b: &Ciphertext) {
        if b.level() != acc.level() || b.parts().len() > acc.parts().len() {
            *acc = Self::combined(acc, b, Poly::add, |_| ());
            return;
        }
        acc.parts_mut().iter_mut().zip(b.parts()).for_each(|(x, y)| x.add_assign(y));
    }

    /// a ± p.
    pub(super) fn with_plain(a: &Ciphertext, p: &Poly<Eval>, minus: bool) -> Result<Ciphertext, RlweError> {
        check_poly(if minus { "subtraction of a plaintext" } else { "addition of a plaintext" }, a, p)?;
        let (mut out, p) = (a.clone(), at_level(p, a.level()));
        match minus {
            true => out.first_mut().sub_assign(&p),
            false => out.first_mut().add_assign(&p),
        }
        Ok(out)
    }

    /// a·p, or rescaled, limb by limb.
    pub(super) fn times_plain(a: &Ciphertext, p: &Poly<Eval>, rescale: bool) -> Result<Ciphertext, RlweError> {
        check_poly("product with a plaintext", a, p)?;
        if rescale {
            return Ok(a.with_parts(last_prime(a)?.of_products(a.parts(), p), a.level() - 1));
        }
        let p = at_level(p, a.level());
        Ok(a.with_parts(a.parts().iter().map(|x| x.mul(&p)).collect(), a.level()))
    }

    /// a·value.
    pub(super) fn times_integer(a: &Ciphertext, value: i64) -> Ciphertext {
        let mut out = a.clone();
        let factors = (value != -1).then(|| Poly::<Eval>::scalar(a.params().q_at(a.level()), value));
        for part in out.parts_mut() {
            match &factors {
                Some(factors) => part.mul_scalars(factors),
                None => part.neg_assign(),
            }
        }
        out
    }

    /// e·a + f·b at one level.
    pub(super) fn weighted((a, e): (&Ciphertext, i64), (b, f): (&Ciphertext, i64)) -> Ciphertext {
        let level = a.level().min(b.level());
        let (mut out, b) = (Self::times_integer(&a.at_level(level), e), b.at_level(level));
        let basis = a.params().q_at(level);
        let factors = Poly::<Eval>::scalar(basis, f);
        for (i, part) in b.parts().iter().enumerate() {
            if i == out.parts().len() {
                out.parts_mut().push(Poly::zero(basis));
            }
            out.parts_mut()[i].mul_scalars_add(part, &factors);
        }
        out
    }

    /// ⌊a/D⌉.
    pub(super) fn divided(a: &Ciphertext, by: &Divisor<'_>) -> Result<Ciphertext, RlweError> {
        match by {
            Divisor::One => Ok(a.clone()),
            Divisor::Last => Self::rescaled(a),
            Divisor::Above(by) => {
                let division = by.over(a.level() + 1)?;
                let parts = a.parts().iter().map(|p| division.apply_by_columns(p.clone())).collect();
                Ok(a.with_parts(parts, by.to))
            }
        }
    }

    /// ⌊a / q_l⌉.
    pub(super) fn rescaled(a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        Ok(a.with_parts(last_prime(a)?.of(a.parts()), a.level() - 1))
    }
}

/// Division by the last prime of a ciphertext.
fn last_prime(a: &Ciphertext) -> Result<&Division, RlweError> {
    let none = RlweError::OutOfLevels { operation: "rescale", needed: 1, level: a.level() };
    a.params().tables(a.level()).rescale.as_ref().ok_or(none)
}

impl Evaluator {
    /// `a` times an integer, by its residues modulo each prime of the level.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    ///
    /// # Panics
    /// If there is not one residue for each prime.
    pub fn mul_scalars(&self, a: &Ciphertext, factors: &[Shoup]) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let mut out = a.clone();
        out.parts_mut().iter_mut().for_each(|p| p.mul_scalars(factors));
        Ok(out)
    }
}
