//! What both schemes share: everything linear.

use super::ciphertext::{Ciphertext, CiphertextOf, State, check_fits};
use super::params::IntegerParams;
use super::plaintext::{PlainFactor, Plaintext};
use super::scheme::Scheme;
use crate::error::{ExactError, parameters};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use sudare_ring::{Eval, Poly, RingError, threads};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::{Backend, Counters, Over, Quotient, RlweError, Shaped};

type AlignedPair<'c, S, B> = [Cow<'c, CiphertextOf<S, B>>; 2];

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
///
/// Sums and products are modulo t, slot by slot or of polynomials modulo X^N + 1, as the operands are packed. An operation
/// whose result could decrypt wrongly is refused with `RlweError::NoBudget` before anything is computed.
///
/// | Operation | Level | Noise | Key |
/// |---|---|---|---|
/// | [`add`](Evaluator::add), [`sub`](Evaluator::sub) | the lower one | adds | |
/// | [`add_plain`](Evaluator::add_plain) | stays | grows by a message's own | |
/// | [`mul_plain`](Evaluator::mul_plain), [`mul_integer`](Evaluator::mul_integer) | stays | times the factor's size | |
/// | `mul_relin` of [`bfv`](crate::bfv) | drops primes that the noise allows | times the norm of a message modulo t | relinearisation |
/// | `mul_relin` of [`bgv`](crate::bgv) | drops primes until the noise is near that of rounding | as left by the division | relinearisation |
/// | [`rotate_rows`](Evaluator::rotate_rows), [`rotate_columns`](Evaluator::rotate_columns) | stays | adds that of a key switch | the element's |
///
/// `B` does the work: the processor, a device, for which a ciphertext is a batch, or a simulation.
#[derive(Debug)]
pub struct Evaluator<S: Scheme, B = rlwe::Cpu> {
    pub(crate) params: IntegerParams,
    pub(crate) inner: rlwe::Evaluator<B>,
    scheme: PhantomData<S>,
}

impl<S: Scheme> Evaluator<S> {
    /// An evaluator with a server's keys; evaluators for other plaintext moduli can share them.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn new(params: &IntegerParams, keys: impl Into<Arc<dyn KeySource>>) -> Result<Self, ExactError> {
        Self::with_backend(params, rlwe::Cpu::new(keys))
    }
}

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// An evaluator on a backend, which has the keys.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn with_backend(params: &IntegerParams, backend: B) -> Result<Self, ExactError> {
        let inner = rlwe::Evaluator::with_backend(backend);
        params.rlwe().require("the evaluation keys", inner.params())?;
        Ok(Self { params: params.clone(), inner, scheme: PhantomData })
    }

    /// What does the work.
    pub fn backend(&self) -> &B {
        self.inner.backend()
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// Its keys.
    pub fn keys(&self) -> &Arc<dyn KeySource> {
        self.inner.keys()
    }

    /// Operations done since the start or the last reset.
    pub fn counters(&self) -> Counters {
        self.inner.counters()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.inner.reset_counters();
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::WrongKey`.
    pub fn check(&self, ciphertext: &CiphertextOf<S, B>) -> Result<(), ExactError> {
        self.params.require("the ciphertext", &ciphertext.params)?;
        Ok(self.inner.check(ciphertext.inner())?)
    }

    pub(crate) fn check_two_parts(
        &self,
        operation: &'static str,
        ciphertext: &CiphertextOf<S, B>,
    ) -> Result<(), ExactError> {
        self.check(ciphertext)?;
        Ok(self.inner.check_two_parts(operation, ciphertext.inner())?)
    }

    /// `a + b`, at the lower of both levels.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::WrongKey`,
    /// `RlweError::NoBudget`.
    pub fn add(&self, a: &CiphertextOf<S, B>, b: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.combine("addition", a, b, 1)
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &CiphertextOf<S, B>, b: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.combine("subtraction", a, b, -1)
    }

    /// a + sign·b.
    fn combine(
        &self,
        operation: &'static str,
        a: &CiphertextOf<S, B>,
        b: &CiphertextOf<S, B>,
        sign: i64,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        self.check(b)?;
        let [a, b] = self.aligned(a, b)?;
        if a.factor != b.factor {
            return self.combine_factors(operation, &a, &b, sign);
        }
        let noise = a.noise + b.noise;
        check_fits(&self.params, operation, a.level(), noise)?;
        let sum = if sign < 0 { self.inner.sub(a.inner(), b.inner()) } else { self.inner.add(a.inner(), b.inner()) };
        Ok(a.with(sum?, noise))
    }

    /// A sum of different plaintext factors: both sides are multiplied by small constants that
    /// make them equal (as SEAL does). BGV alone meets this, for operands of one level that came
    /// there in different ways.
    fn combine_factors(
        &self,
        operation: &'static str,
        a: &CiphertextOf<S, B>,
        b: &CiphertextOf<S, B>,
        sign: i64,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        let t = self.params.modulus();
        let Some((e, f)) = t.balance(a.factor, b.factor) else {
            return Err(RingError::NotCoprime { value: a.factor, modulus: t.value() }.into());
        };
        let noise = a.noise * e.unsigned_abs() as f64 + b.noise * f.unsigned_abs() as f64;
        check_fits(&self.params, operation, a.level(), noise)?;
        let factor = t.mul(a.factor, t.reduce_i64(e));
        let inner = self.inner.combination((a.inner(), e), (b.inner(), sign * f))?;
        Ok(Ciphertext::new(&self.params, inner, State { factor, noise }))
    }

    /// `acc += b`, in place where levels and plaintext factors agree; `acc` keeps its value on error.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_assign(&self, acc: &mut CiphertextOf<S, B>, b: &CiphertextOf<S, B>) -> Result<(), ExactError> {
        if b.level() != acc.level() || b.factor != acc.factor {
            *acc = self.add(acc, b)?;
            return Ok(());
        }
        self.check(acc)?;
        self.check(b)?;
        let noise = acc.noise + b.noise;
        check_fits(&self.params, "addition", acc.level(), noise)?;
        self.inner.add_assign(&mut acc.inner, b.inner())?;
        acc.noise = noise;
        Ok(())
    }

    /// `−a`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::WrongKey`.
    pub fn negate(&self, a: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        Ok(a.with(self.inner.negate(a.inner())?, a.noise))
    }

    /// `a + p`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_plain(&self, a: &CiphertextOf<S, B>, p: &Plaintext) -> Result<CiphertextOf<S, B>, ExactError> {
        self.add_made(a, || Ok(p))
    }

    /// `a − p`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub_plain(&self, a: &CiphertextOf<S, B>, p: &Plaintext) -> Result<CiphertextOf<S, B>, ExactError> {
        self.sub_made(a, || Ok(p))
    }

    /// `a + p` of a plaintext that a simulation does not ask for.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; those of `make`.
    pub fn add_made<'p>(
        &self,
        a: &CiphertextOf<S, B>,
        make: impl FnOnce() -> Result<&'p Plaintext, ExactError>,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.combine_plain("addition of a plaintext", a, make, false)
    }

    /// `a − p`, as [`Evaluator::add_made`].
    ///
    /// # Errors
    /// As there.
    pub fn sub_made<'p>(
        &self,
        a: &CiphertextOf<S, B>,
        make: impl FnOnce() -> Result<&'p Plaintext, ExactError>,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.combine_plain("subtraction of a plaintext", a, make, true)
    }

    fn combine_plain<'p>(
        &self,
        operation: &'static str,
        a: &CiphertextOf<S, B>,
        make: impl FnOnce() -> Result<&'p Plaintext, ExactError>,
        minus: bool,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        let noise = a.noise + self.params.noise().message();
        check_fits(&self.params, operation, a.level(), noise)?;
        let make = || {
            let p = make()?;
            self.params.require("the plaintext", &p.params)?;
            Ok::<_, ExactError>(p.addend(a.level(), a.factor).into_eval())
        };
        let addend = self.backend().prepare(a.level(), Over::Q, make)?;
        let sum = if minus { self.inner.sub_poly(a.inner(), &addend) } else { self.inner.add_poly(a.inner(), &addend) };
        Ok(a.with(sum?, noise))
    }

    /// `a · p` for a prepared plaintext: slot by slot, or as polynomials.
    ///
    /// # Errors
    /// As [`Evaluator::add`], and `RlweError::NoSuchLevel` if the factor's level is too low.
    pub fn mul_factor(
        &self,
        a: &CiphertextOf<S, B>,
        p: &PlainFactor<B::Plaintext>,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        let operation = "product with a plaintext";
        self.check(a)?;
        self.params.require("the plaintext", &p.params)?;
        if p.level() < a.level() {
            return Err(RlweError::NoSuchLevel { operation, wanted: a.level(), highest: p.level() }.into());
        }
        let noise = a.noise * p.norm();
        check_fits(&self.params, operation, a.level(), noise)?;
        Ok(a.with(self.inner.mul_poly(a.inner(), &p.poly)?, noise))
    }

    /// Prepares a plaintext as a factor for ciphertexts up to a level; on the processor [`Plaintext::factor`] does the same.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::NoSuchLevel`.
    pub fn factor(&self, p: &Plaintext, level: usize) -> Result<PlainFactor<B::Plaintext>, ExactError> {
        self.params.require("the plaintext", &p.params)?;
        self.prepared(level, p.size()?, || Ok(p.multiplier(level)))
    }

    /// The same of a plaintext whose canonical norm is at most `norm`, by which noise is multiplied: for a simulation, which
    /// does not ask for the plaintext, and for the run that it stands for.
    ///
    /// # Errors
    /// As [`Evaluator::factor`]; `RlweError::Parameters` for a plaintext of a larger norm; those of `make`.
    pub fn factor_within(
        &self,
        level: usize,
        norm: f64,
        make: impl FnOnce() -> Result<Plaintext, ExactError>,
    ) -> Result<PlainFactor<B::Plaintext>, ExactError> {
        self.prepared(level, norm, || {
            let p = make()?;
            self.params.require("the plaintext", &p.params)?;
            let found = p.size()?;
            if found > norm {
                return Err(parameters(format!(
                    "a plaintext has the norm {found:.1}, over the declared {norm:.1}; declare a larger one"
                )));
            }
            Ok(p.multiplier(level))
        })
    }

    fn prepared(
        &self,
        level: usize,
        size: f64,
        make: impl FnOnce() -> Result<Poly<Eval>, ExactError>,
    ) -> Result<PlainFactor<B::Plaintext>, ExactError> {
        self.params.expect_level("preparing a plaintext", level)?;
        let poly = self.backend().prepare(level, Over::Q, make)?;
        Ok(PlainFactor { params: self.params.clone(), poly, level, size })
    }

    /// `a · p`; [`Evaluator::factor`] prepares a plaintext that is used more than once.
    ///
    /// # Errors
    /// As [`Evaluator::mul_factor`].
    pub fn mul_plain(&self, a: &CiphertextOf<S, B>, p: &Plaintext) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        self.mul_factor(a, &self.factor(p, a.level())?)
    }

    /// `a · value` for an integer, taken modulo t and centred.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn mul_integer(&self, a: &CiphertextOf<S, B>, value: i64) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        let t = self.params.modulus();
        let value = t.center(t.reduce_i64(value));
        let noise = a.noise * value.unsigned_abs() as f64;
        check_fits(&self.params, "product with an integer", a.level(), noise)?;
        Ok(a.with(self.inner.mul_integer(a.inner(), value)?, noise))
    }

    /// The same message with another plaintext factor: the parts are multiplied by the quotient of both, taken modulo t and
    /// centred. A term of a sum takes that of a product so, which leaves the product's noise as it is.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`ExactError::WrongFactor`] for another than the one that every ciphertext at the level has;
    /// `RingError::NotCoprime` for one that is no unit modulo t.
    pub fn with_factor(&self, a: &CiphertextOf<S, B>, factor: u64) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        let (t, level) = (self.params.modulus(), a.level());
        if let Some(expected) = S::only_factor(&self.params, level).filter(|expected| *expected != factor) {
            return Err(ExactError::WrongFactor { scheme: S::NAME, level, found: factor, expected });
        }
        let quotient = t.center(t.mul(t.reduce(factor), t.inverse(a.factor)?));
        let noise = a.noise * quotient.unsigned_abs() as f64;
        check_fits(&self.params, "another plaintext factor", level, noise)?;
        let inner = self.inner.mul_integer(a.inner(), quotient)?;
        Ok(Ciphertext::new(&self.params, inner, State { factor: t.reduce(factor), noise }))
    }

    /// Switches the modulus: the same message at a lower level, with its noise divided by the
    /// primes that go.
    ///
    /// In BGV the plaintext factor is brought to the one that products at that level have, where
    /// that costs no more than the rounding does.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel` if `level` is above the ciphertext's, `RlweError::NoBudget`.
    pub fn drop_to(&self, a: &CiphertextOf<S, B>, level: usize) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        self.drop_toward(a, level, S::fresh_factor(&self.params, level.min(a.level())))
    }

    /// Both operands at the lower of their levels, with equal plaintext factors if that is free.
    pub(crate) fn aligned<'c>(
        &self,
        a: &'c CiphertextOf<S, B>,
        b: &'c CiphertextOf<S, B>,
    ) -> Result<AlignedPair<'c, S, B>, ExactError> {
        Ok(match a.level().cmp(&b.level()) {
            std::cmp::Ordering::Equal => [Cow::Borrowed(a), Cow::Borrowed(b)],
            std::cmp::Ordering::Greater => [Cow::Owned(self.drop_toward(a, b.level(), b.factor)?), Cow::Borrowed(b)],
            std::cmp::Ordering::Less => [Cow::Borrowed(a), Cow::Owned(self.drop_toward(b, a.level(), a.factor)?)],
        })
    }

    /// A lower level, with a wanted plaintext factor if the constant that makes it vanishes in
    /// the rounding.
    pub(crate) fn drop_toward(
        &self,
        a: &CiphertextOf<S, B>,
        level: usize,
        wanted: u64,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        let (operation, top) = ("switching the modulus", a.level());
        if level > top {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: top }.into());
        }
        if level == top {
            return Ok(a.clone());
        }
        let (t, model) = (self.params.modulus(), self.params.noise());
        let plain = t.mul(a.factor, t.inverse(self.params.dropped_mod_t(top, level))?);
        let (span, parts) = ((top, level), a.inner.polynomials());
        let mut constant = 1;
        if plain != wanted
            && let Some(k) = t.inv(plain).map(|inverse| t.center(t.mul(wanted, inverse)))
            && model.dropped(a.noise, parts, span, k as f64) <= 2.0 * model.division(parts)
            && t.inv(t.reduce_i64(k)).is_some()
            && self.params.is_unit(k, level)
        {
            constant = k;
        }
        let noise = model.dropped(a.noise, parts, span, constant as f64);
        check_fits(&self.params, operation, level, noise)?;
        let tables = || self.params.division(top, level, false, constant.unsigned_abs());
        let mut inner = self.inner.divide(a.inner(), Quotient { to: level, tables: &tables })?;
        if constant < 0 {
            inner = self.inner.negate(&inner)?;
        }
        let factor = t.mul(plain, t.reduce_i64(constant));
        Ok(Ciphertext::new(&self.params, inner, State { factor, noise }))
    }

    /// `a · b` with three parts, in BGV before any modulus switch: for results that are added up
    /// or decrypted next.
    ///
    /// # Errors
    /// `RlweError::Degree` if an operand has three parts, and as [`Evaluator::add`].
    pub fn mul(&self, a: &CiphertextOf<S, B>, b: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.dot(&[a], &[b])
    }

    /// Σ_i a_i · b_i with three parts: products are summed first, and one scaling and one
    /// relinearisation serve them all.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; `RlweError::Operands`.
    pub fn dot(&self, a: &[&CiphertextOf<S, B>], b: &[&CiphertextOf<S, B>]) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check_dot(a, b)?;
        S::product(self, a, b)
    }

    /// `a · b` as the scheme multiplies: relinearised, and in BGV with its modulus switched until
    /// the noise is about that of rounding.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize`].
    pub fn mul_relin(&self, a: &CiphertextOf<S, B>, b: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.dot_relin(&[a], &[b])
    }

    /// a², as [`Evaluator::mul_relin`].
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`].
    pub fn square(&self, a: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.dot_relin(&[a], &[a])
    }

    /// Σ_i a_i · b_i, as [`Evaluator::mul_relin`]: one relinearisation for all.
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`]; `RlweError::Operands`.
    pub fn dot_relin(
        &self,
        a: &[&CiphertextOf<S, B>],
        b: &[&CiphertextOf<S, B>],
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check_dot(a, b)?;
        S::product_relin(self, a, b)
    }

    /// What a circuit makes of each of `count` lists of operands, which `operands` names, on all threads: it gets the list's
    /// number. In a simulation the first stands for all, and its result is `count` ciphertexts.
    ///
    /// # Errors
    /// Those of the circuit.
    pub fn each<'c, E: Send>(
        &self,
        count: usize,
        operands: impl Fn(usize) -> Vec<&'c CiphertextOf<S, B>> + Sync,
        circuit: impl Fn(usize, &[&CiphertextOf<S, B>]) -> Result<CiphertextOf<S, B>, E> + Sync,
    ) -> Result<Vec<CiphertextOf<S, B>>, E>
    where
        B::Ciphertext: 'c,
    {
        let first = if count > 0 { operands(0) } else { Vec::new() };
        if let Some(taken) = self.backend().taken(&inners(&first), count).filter(|_| count > 0) {
            let list: Vec<_> = first.iter().zip(taken).map(|(c, inner)| c.with(inner, c.noise)).collect();
            let made = circuit(0, &list.iter().collect::<Vec<_>>())?;
            drop(list);
            let all = self.backend().assembled(made.inner(), count).unwrap_or_else(|| made.inner().clone());
            return Ok(vec![made.with(all, made.noise)]);
        }
        threads::map(count, |i| circuit(i, &operands(i))).into_iter().collect()
    }

    fn check_dot(&self, a: &[&CiphertextOf<S, B>], b: &[&CiphertextOf<S, B>]) -> Result<(), ExactError> {
        a.iter().chain(b).try_for_each(|c| self.check(c))?;
        self.inner.check_dot(&inners(a), &inners(b))?;
        Ok(())
    }
}

impl<S: Scheme> Evaluator<S, Simulated> {
    /// `count` simulated encryptions under the public key.
    ///
    /// # Errors
    /// `RlweError::NoBudget` where the level holds no fresh ciphertext.
    pub fn encryptions(&self, level: usize, count: usize) -> Result<CiphertextOf<S, Simulated>, ExactError> {
        let noise = self.params.noise().message() + self.params.noise().public_encryption();
        check_fits(&self.params, "encryption", level, noise)?;
        Ok(self.batch(level, count, State { factor: S::fresh_factor(&self.params, level), noise }))
    }

    /// `count` ciphertexts of which this is known.
    pub fn batch(&self, level: usize, count: usize, state: State) -> CiphertextOf<S, Simulated> {
        Ciphertext::new(&self.params, self.backend().batch(level, count), state)
    }
}

/// The parts of each.
pub(crate) fn inners<'a, S: Scheme, C: Shaped>(side: &[&'a Ciphertext<S, C>]) -> Vec<&'a C> {
    side.iter().map(|c| c.inner()).collect()
}
