//! What both schemes share: everything linear.

use super::ciphertext::{Ciphertext, check_fits};
use super::params::IntegerParams;
use super::plaintext::{PlainFactor, Plaintext};
use super::scheme::Scheme;
use crate::error::HeError;
use crate::keys::EvalKeys;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use sudare_ring::{Eval, Poly};

type AlignedPair<'c, S> = (Cow<'c, Ciphertext<S>>, Cow<'c, Ciphertext<S>>);

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
#[derive(Debug)]
pub struct Evaluator<S: Scheme> {
    pub(crate) params: IntegerParams,
    pub(crate) keys: Arc<EvalKeys>,
    scheme: PhantomData<S>,
}

impl<S: Scheme> Evaluator<S> {
    /// An evaluator with a server's keys; evaluators for other plaintext moduli can share them.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`].
    pub fn new(params: &IntegerParams, keys: impl Into<Arc<EvalKeys>>) -> Result<Self, HeError> {
        let keys = keys.into();
        params.params().expect("the evaluation keys", &keys.params)?;
        Ok(Self { params: params.clone(), keys, scheme: PhantomData })
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// Its keys.
    pub fn keys(&self) -> &Arc<EvalKeys> {
        &self.keys
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongPlainModulus`], [`HeError::WrongKey`].
    pub fn check(&self, ciphertext: &Ciphertext<S>) -> Result<(), HeError> {
        self.params.expect("the ciphertext", &ciphertext.params)?;
        if ciphertext.key != self.keys.id {
            let (found, expected) = (ciphertext.key, self.keys.id);
            return Err(HeError::WrongKey { what: "the ciphertext", found, expected });
        }
        Ok(())
    }

    pub(crate) fn check_two_parts(&self, operation: &'static str, ciphertext: &Ciphertext<S>) -> Result<(), HeError> {
        self.check(ciphertext)?;
        if ciphertext.parts.len() != 2 {
            return Err(HeError::Degree { operation, expected: 2, found: ciphertext.parts.len() });
        }
        Ok(())
    }

    /// `a + b`, at the lower of both levels.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongPlainModulus`], [`HeError::WrongKey`],
    /// [`HeError::NoBudget`].
    pub fn add(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.combine("addition", a, b, false)
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.combine("subtraction", a, b, true)
    }

    fn combine(
        &self,
        operation: &'static str,
        a: &Ciphertext<S>,
        b: &Ciphertext<S>,
        subtract: bool,
    ) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        self.check(b)?;
        let (a, b) = self.aligned(a, b)?;
        if a.factor != b.factor {
            return self.combine_factors(operation, &a, &b, subtract);
        }
        let noise = a.noise + b.noise;
        check_fits(&self.params, operation, a.level, noise)?;
        let merge = if subtract { Poly::<Eval>::sub } else { Poly::<Eval>::add };
        let parts = (0..a.parts.len().max(b.parts.len()))
            .map(|i| match (a.parts.get(i), b.parts.get(i)) {
                (Some(x), Some(y)) => merge(x, y),
                (Some(x), None) => x.clone(),
                (None, Some(y)) => {
                    let mut y = y.clone();
                    if subtract {
                        y.neg_assign();
                    }
                    y
                }
                (None, None) => Poly::zero(self.params.params().q_at(a.level)),
            })
            .collect();
        Ok(Ciphertext { parts, noise, ..a.shell() })
    }

    /// A sum of different plaintext factors: both sides are multiplied by small constants that
    /// make them equal (as SEAL does). BGV alone meets this, for operands of one level that came
    /// there in different ways.
    fn combine_factors(
        &self,
        operation: &'static str,
        a: &Ciphertext<S>,
        b: &Ciphertext<S>,
        subtract: bool,
    ) -> Result<Ciphertext<S>, HeError> {
        let t = self.params.modulus();
        let Some((e, f)) = t.balance(a.factor, b.factor) else {
            return Err(HeError::Parameters { reason: "a plaintext factor is no unit modulo t".into() });
        };
        let noise = a.noise * e.unsigned_abs() as f64 + b.noise * f.unsigned_abs() as f64;
        check_fits(&self.params, operation, a.level, noise)?;
        let basis = self.params.params().q_at(a.level);
        let mut out = Ciphertext { parts: a.parts.clone(), noise, ..a.shell() };
        out.factor = t.mul(a.factor, t.reduce_i64(e));
        if e != 1 {
            let scalars = Poly::<Eval>::scalar(basis, e);
            out.parts.iter_mut().for_each(|p| p.mul_scalars(&scalars));
        }
        let scalars = Poly::<Eval>::scalar(basis, if subtract { -f } else { f });
        for (i, part) in b.parts.iter().enumerate() {
            if i == out.parts.len() {
                out.parts.push(Poly::zero(basis));
            }
            out.parts[i].mul_scalars_add(part, &scalars);
        }
        Ok(out)
    }

    /// `acc += b` in place; `acc` keeps its value on error.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_assign(&self, acc: &mut Ciphertext<S>, b: &Ciphertext<S>) -> Result<(), HeError> {
        if b.level != acc.level || b.factor != acc.factor || b.parts.len() > acc.parts.len() {
            *acc = self.add(acc, b)?;
            return Ok(());
        }
        self.check(acc)?;
        self.check(b)?;
        let noise = acc.noise + b.noise;
        check_fits(&self.params, "addition", acc.level, noise)?;
        acc.noise = noise;
        acc.parts.iter_mut().zip(&b.parts).for_each(|(x, y)| x.add_assign(y));
        Ok(())
    }

    /// `−a`.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongPlainModulus`], [`HeError::WrongKey`].
    pub fn negate(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        let mut out = a.clone();
        out.parts.iter_mut().for_each(Poly::neg_assign);
        Ok(out)
    }

    /// `a + p`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_plain(&self, a: &Ciphertext<S>, p: &Plaintext) -> Result<Ciphertext<S>, HeError> {
        self.combine_plain("addition of a plaintext", a, p, Poly::add_assign)
    }

    /// `a − p`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub_plain(&self, a: &Ciphertext<S>, p: &Plaintext) -> Result<Ciphertext<S>, HeError> {
        self.combine_plain("subtraction of a plaintext", a, p, Poly::sub_assign)
    }

    fn combine_plain(
        &self,
        operation: &'static str,
        a: &Ciphertext<S>,
        p: &Plaintext,
        work: impl Fn(&mut Poly<Eval>, &Poly<Eval>),
    ) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        self.params.expect("the plaintext", &p.params)?;
        let noise = a.noise + self.params.noise().message();
        check_fits(&self.params, operation, a.level, noise)?;
        let mut out = Ciphertext { noise, ..a.clone() };
        work(&mut out.parts[0], &p.addend(a.level, a.factor).into_eval());
        Ok(out)
    }

    /// `a · p` for a prepared plaintext: slot by slot, or as polynomials.
    ///
    /// # Errors
    /// As [`Evaluator::add`], and [`HeError::NoSuchLevel`] if the factor's level is too low.
    pub fn mul_factor(&self, a: &Ciphertext<S>, p: &PlainFactor) -> Result<Ciphertext<S>, HeError> {
        let operation = "product with a plaintext";
        self.check(a)?;
        self.params.expect("the plaintext", &p.params)?;
        if p.level() < a.level {
            return Err(HeError::NoSuchLevel { operation, wanted: a.level, highest: p.level() });
        }
        let noise = a.noise * p.norm;
        check_fits(&self.params, operation, a.level, noise)?;
        let poly = match p.level() == a.level {
            true => Cow::Borrowed(&p.poly),
            false => Cow::Owned(p.poly.truncated(a.level + 1)),
        };
        Ok(Ciphertext { parts: a.parts.iter().map(|x| x.mul(&poly)).collect(), noise, ..a.shell() })
    }

    /// `a · p`; [`Plaintext::factor`] prepares a plaintext that is used more than once.
    ///
    /// # Errors
    /// As [`Evaluator::mul_factor`].
    pub fn mul_plain(&self, a: &Ciphertext<S>, p: &Plaintext) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        self.mul_factor(a, &p.factor(a.level)?)
    }

    /// `a · value` for an integer, taken modulo t and centred.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn mul_integer(&self, a: &Ciphertext<S>, value: i64) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        let t = self.params.modulus();
        let value = t.center(t.reduce_i64(value));
        let noise = a.noise * value.unsigned_abs() as f64;
        check_fits(&self.params, "product with an integer", a.level, noise)?;
        let mut out = Ciphertext { parts: a.parts.clone(), noise, ..a.shell() };
        let factors = Poly::<Eval>::scalar(self.params.params().q_at(a.level), value);
        out.parts.iter_mut().for_each(|p| p.mul_scalars(&factors));
        Ok(out)
    }

    /// Switches the modulus: the same message at a lower level, with its noise divided by the
    /// primes that go.
    ///
    /// In BGV the plaintext factor is brought to the one that products at that level have, where
    /// that costs no more than the rounding does.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`] if `level` is above the ciphertext's, [`HeError::NoBudget`].
    pub fn drop_to(&self, a: &Ciphertext<S>, level: usize) -> Result<Ciphertext<S>, HeError> {
        self.check(a)?;
        self.drop_toward(a, level, S::fresh_factor(&self.params, level.min(a.level)))
    }

    /// Both operands at the lower of their levels, with equal plaintext factors if that is free.
    pub(crate) fn aligned<'c>(
        &self,
        a: &'c Ciphertext<S>,
        b: &'c Ciphertext<S>,
    ) -> Result<AlignedPair<'c, S>, HeError> {
        Ok(match a.level.cmp(&b.level) {
            std::cmp::Ordering::Equal => (Cow::Borrowed(a), Cow::Borrowed(b)),
            std::cmp::Ordering::Greater => (Cow::Owned(self.drop_toward(a, b.level, b.factor)?), Cow::Borrowed(b)),
            std::cmp::Ordering::Less => (Cow::Borrowed(a), Cow::Owned(self.drop_toward(b, a.level, a.factor)?)),
        })
    }

    /// A lower level, with a wanted plaintext factor if the constant that makes it vanishes in
    /// the rounding.
    pub(crate) fn drop_toward(&self, a: &Ciphertext<S>, level: usize, wanted: u64) -> Result<Ciphertext<S>, HeError> {
        let operation = "switching the modulus";
        if level > a.level {
            return Err(HeError::NoSuchLevel { operation, wanted: level, highest: a.level });
        }
        if level == a.level {
            return Ok(a.clone());
        }
        let (t, model, q) = (self.params.modulus(), self.params.noise(), self.params.params().q());
        let dropped = (level + 1..=a.level).fold(1 % t.value(), |acc, i| t.mul(acc, q.limb(i).q()));
        let plain = t.mul(a.factor, t.inv(dropped).unwrap_or(0));
        let span = (a.level, level);
        let parts = a.parts.len();
        let mut constant = 1;
        if plain != wanted
            && let Some(k) = t.inv(plain).map(|inverse| t.center(t.mul(wanted, inverse)))
            && model.dropped(a.noise, parts, span, k as f64) <= 2.0 * model.division(parts)
            && t.inv(t.reduce_i64(k)).is_some()
        {
            constant = k;
        }
        let absolute = constant.unsigned_abs();
        let division = self.params.division(a.level, level, false, absolute);
        let (division, constant) = match division {
            Some(division) => (division, constant),
            // The constant is a multiple of a prime: do without.
            None => (
                self.params
                    .division(a.level, level, false, 1)
                    .ok_or_else(|| HeError::Parameters { reason: "two primes of the modulus are equal".into() })?,
                1,
            ),
        };
        let noise = model.dropped(a.noise, parts, span, constant as f64);
        check_fits(&self.params, operation, level, noise)?;
        let mut out = Ciphertext { level, noise, factor: t.mul(plain, t.reduce_i64(constant)), ..a.shell() };
        out.parts = a.parts.iter().map(|p| division.apply_whole(p.clone())).collect();
        if constant < 0 {
            out.parts.iter_mut().for_each(Poly::neg_assign);
        }
        Ok(out)
    }

    /// `a · b` with three parts, in BGV before any modulus switch: for results that are added up
    /// or decrypted next.
    ///
    /// # Errors
    /// [`HeError::Degree`] if an operand has three parts, and as [`Evaluator::add`].
    pub fn mul(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.dot(&[a], &[b])
    }

    /// Σ_i a_i · b_i with three parts: products are summed first, and one scaling and one
    /// relinearisation serve them all.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; [`HeError::Operands`].
    pub fn dot(&self, a: &[&Ciphertext<S>], b: &[&Ciphertext<S>]) -> Result<Ciphertext<S>, HeError> {
        self.check_dot(a, b)?;
        S::product(self, a, b)
    }

    /// `a · b` as the scheme multiplies: relinearised, and in BGV with its modulus switched until
    /// the noise is about that of rounding.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize`].
    pub fn mul_relin(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.dot_relin(&[a], &[b])
    }

    /// a², as [`Evaluator::mul_relin`].
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`].
    pub fn square(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.dot_relin(&[a], &[a])
    }

    /// Σ_i a_i · b_i, as [`Evaluator::mul_relin`]: one relinearisation for all.
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`]; [`HeError::Operands`].
    pub fn dot_relin(&self, a: &[&Ciphertext<S>], b: &[&Ciphertext<S>]) -> Result<Ciphertext<S>, HeError> {
        self.check_dot(a, b)?;
        S::product_relin(self, a, b)
    }

    fn check_dot(&self, a: &[&Ciphertext<S>], b: &[&Ciphertext<S>]) -> Result<(), HeError> {
        let operation = "product";
        if a.is_empty() || a.len() != b.len() {
            return Err(HeError::Operands { operation, left: a.len(), right: b.len() });
        }
        a.iter().chain(b).try_for_each(|c| self.check_two_parts(operation, c))
    }
}
