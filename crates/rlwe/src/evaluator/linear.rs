//! Sums, products with polynomials and integers, and division by the last prime.

use super::{Counters, Evaluator};
use crate::backend::Shaped;
use crate::ciphertext::{Ciphertext, at_level};
use crate::error::RlweError;
use sudare_ring::ops::Division;
use sudare_ring::{Eval, Poly, Shoup};

pub(super) const ADDITION: Counters = Counters { add: 1, rot: 0, cmult: 0, mult: 0, relin: 0, key_switches: 0 };
pub(super) const PLAIN_PRODUCT: Counters = Counters { add: 0, rot: 0, cmult: 1, mult: 0, relin: 0, key_switches: 0 };

impl Evaluator {
    /// `a + b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.combine(a, b, Poly::add, |_| ())
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.combine(a, b, Poly::sub, Poly::neg_assign)
    }

    /// Part by part; `alone` makes of a part of `b` what it is without one of `a`.
    fn combine(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        merge: fn(&Poly<Eval>, &Poly<Eval>) -> Poly<Eval>,
        alone: fn(&mut Poly<Eval>),
    ) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        self.check(b)?;
        let level = a.level().min(b.level());
        let (a, b) = (a.at_level(level), b.at_level(level));
        let mut parts: Vec<_> = a.parts().iter().zip(b.parts()).map(|(x, y)| merge(x, y)).collect();
        parts.extend(a.parts().iter().skip(parts.len()).cloned());
        for y in b.parts().iter().skip(parts.len()) {
            let mut y = y.clone();
            alone(&mut y);
            parts.push(y);
        }
        self.record(ADDITION);
        Ok(a.with_parts(parts, level))
    }

    /// `acc += b`, in place where `b` has the level and no more parts than `acc`; `acc` keeps its value on
    /// error.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn add_assign(&self, acc: &mut Ciphertext, b: &Ciphertext) -> Result<(), RlweError> {
        if b.level() != acc.level() || b.parts().len() > acc.parts().len() {
            *acc = self.add(acc, b)?;
            return Ok(());
        }
        self.check(acc)?;
        self.check(b)?;
        self.record(ADDITION);
        acc.parts_mut().iter_mut().zip(b.parts()).for_each(|(x, y)| x.add_assign(y));
        Ok(())
    }

    /// `e·a + f·b` for integers and operands of one level: one addition.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for operands of two levels.
    pub fn combination(&self, (a, e): (&Ciphertext, i64), (b, f): (&Ciphertext, i64)) -> Result<Ciphertext, RlweError> {
        self.check(b)?;
        if a.level() != b.level() {
            return Err(RlweError::NoSuchLevel { operation: "addition", wanted: a.level(), highest: b.level() });
        }
        let mut out = self.mul_integer(a, e)?;
        let basis = self.params().q_at(a.level());
        let factors = Poly::<Eval>::scalar(basis, f);
        for (i, part) in b.parts().iter().enumerate() {
            if i == out.parts().len() {
                out.parts_mut().push(Poly::zero(basis));
            }
            out.parts_mut()[i].mul_scalars_add(part, &factors);
        }
        self.record(ADDITION);
        Ok(out)
    }

    /// `−a`.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn negate(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let mut out = a.clone();
        out.parts_mut().iter_mut().for_each(Poly::neg_assign);
        Ok(out)
    }

    /// `a + p` for a polynomial over the primes of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for a polynomial over fewer primes.
    pub fn add_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.check_poly("addition of a plaintext", a, p)?;
        let mut out = a.clone();
        out.first_mut().add_assign(&at_level(p, a.level()));
        Ok(out)
    }

    /// `a − p`, as [`Evaluator::add_poly`].
    ///
    /// # Errors
    /// As there.
    pub fn sub_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.check_poly("subtraction of a plaintext", a, p)?;
        let mut out = a.clone();
        out.first_mut().sub_assign(&at_level(p, a.level()));
        Ok(out)
    }

    /// `a · p` for a polynomial over the primes of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add_poly`].
    pub fn mul_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.check_poly("product with a plaintext", a, p)?;
        let p = at_level(p, a.level());
        self.record(PLAIN_PRODUCT);
        Ok(a.with_parts(a.parts().iter().map(|x| x.mul(&p)).collect(), a.level()))
    }

    /// `a · X^(N/2)`: not counted, since its noise stays what it is.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`].
    pub fn mul_imaginary_unit(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let mut parts = a.parts().to_vec();
        parts.iter_mut().for_each(|part| part.mul_imaginary_unit(false));
        Ok(a.with_parts(parts, a.level()))
    }

    /// ⌊a · p / q_l⌉, one level down: the product is not stored before it is divided.
    ///
    /// # Errors
    /// As [`Evaluator::mul_poly`] and [`Evaluator::rescale`].
    pub fn mul_poly_rescale(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.check_poly("product with a plaintext", a, p)?;
        let lower = a.lower("rescale")?;
        self.record(PLAIN_PRODUCT);
        Ok(a.with_parts(self.rescale_division(a)?.of_products(a.parts(), p), lower))
    }

    fn check_poly(&self, operation: &'static str, a: &Ciphertext, p: &Poly<Eval>) -> Result<(), RlweError> {
        self.check(a)?;
        let limbs = p.basis().len();
        if limbs <= a.level() {
            return Err(RlweError::NoSuchLevel { operation, wanted: a.level(), highest: limbs.saturating_sub(1) });
        }
        Ok(())
    }

    /// `a · value`.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn mul_integer(&self, a: &Ciphertext, value: i64) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        if value == 1 {
            return Ok(a.clone());
        }
        self.mul_scalars(a, &Poly::<Eval>::scalar(self.params().q_at(a.level()), value))
    }

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

    /// ⌊a / q_l⌉, one level down.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::OutOfLevels`] at level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let lower = a.lower("rescale")?;
        Ok(a.with_parts(self.rescale_division(a)?.of(a.parts()), lower))
    }

    /// Division by the last prime of a ciphertext.
    fn rescale_division(&self, a: &Ciphertext) -> Result<&Division, RlweError> {
        let none = RlweError::OutOfLevels { operation: "rescale", needed: 1, level: a.level() };
        self.params().tables(a.level()).rescale.as_ref().ok_or(none)
    }

    /// ⌊F·a / D⌉ by a division that the scheme made, D a product of the last primes: as many levels down.
    /// Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for a division over other primes.
    pub fn divide(&self, a: &Ciphertext, division: &Division) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let (operation, kept) = ("division", division.kept().len());
        if kept == 0 || kept + division.tail().len() != a.level() + 1 {
            return Err(RlweError::NoSuchLevel { operation, wanted: kept, highest: a.level() });
        }
        let parts = a.parts().iter().map(|p| division.apply_by_columns(p.clone())).collect();
        Ok(a.with_parts(parts, kept - 1))
    }

    /// The same phase modulo fewer primes.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] if `level` is above the ciphertext's.
    pub fn drop_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        if level > a.level() {
            return Err(RlweError::NoSuchLevel { operation: "dropping levels", wanted: level, highest: a.level() });
        }
        Ok(a.at_level(level).into_owned())
    }
}
