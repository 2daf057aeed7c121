//! Computing on ciphertexts: the operations of [`rlwe::Evaluator`], and what each does to scale and bounds.

mod each;
mod linear;
mod mask;
mod matrix;

pub use each::{Batch, Order};
pub use linear::ExtendedPlaintext;
pub use mask::Mask;
pub use matrix::PlainMatrix;

use super::ciphertext::{Ciphertext, State};
use super::encode::EncodeAt;
use super::noise::{division_bound, relinearisation_bound, switched_bound, switching_bound};
use super::params::Params;
use super::plaintext::Plaintext;
use super::spread::{self, Images, Spread};
use crate::error::HeError;
use std::sync::Arc;
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::{Backend, Counters, RlweError, Shaped};

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
///
/// | Operation | Level | Scale | Key |
/// |---|---|---|---|
/// | [`add`](Evaluator::add), [`sub`](Evaluator::sub) | the lower one | has to be equal | |
/// | [`add_plain`](Evaluator::add_plain) | stays | has to be equal | |
/// | [`add_constant`](Evaluator::add_constant) | stays | stays | |
/// | [`mul_relin`](Evaluator::mul_relin) | the lower one | multiply | relinearisation |
/// | [`mul_rescale`](Evaluator::mul_rescale) | one below the lower one | multiply, divided by the prime | relinearisation |
/// | [`mul_plain_rescale`](Evaluator::mul_plain_rescale) | one below | multiply, divided by the prime | |
/// | [`mul_constant`](Evaluator::mul_constant) | one below | stays | |
/// | [`mul_integer`](Evaluator::mul_integer) | stays | stays | |
/// | [`rescale`](Evaluator::rescale) | one below | divided by the prime | |
/// | [`set_scale`](Evaluator::set_scale) | one below | as asked for | |
/// | [`rotate`](Evaluator::rotate), [`conjugate`](Evaluator::conjugate) | stays | stays | the element's |
///
/// `B` does the work: the processor, or a device, for which a ciphertext is a batch.
///
/// ```
/// use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
/// use sudare_rlwe::keys::{KeyGenerator, SecretKey};
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// let params = ParamsLiteral::with_depth(2, 40, Security::Bits128)?.build()?;
/// let secret = SecretKey::generate(&params)?;
/// let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
/// let (encoder, server) = (Encoder::new(&params), Evaluator::new(&params, keys)?);
/// let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.5, -1.0], 1.0)?)?;
///
/// // x³ − x. A product drifts from Δ by what its prime differs from it: `set_scale` makes the scales equal.
/// let cube = server.mul_rescale(&server.mul_rescale(&x, &x)?, &x)?;
/// let difference = server.sub(&cube, &server.set_scale(&x, cube.scale())?)?;
///
/// let y = encoder.decode(&Decryptor::new(&secret).decrypt(&difference)?)?;
/// assert!((y[0] + 0.375).abs() < 1e-6 && y[1].abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Evaluator<B = rlwe::Cpu> {
    params: Params,
    pub(crate) inner: rlwe::Evaluator<B>,
}

/// What an operation on the parts does.
type Work<B, T> =
    fn(&rlwe::Evaluator<B>, &<B as Backend>::Ciphertext, &T) -> Result<<B as Backend>::Ciphertext, RlweError>;
/// What the evaluator of a backend takes: a ciphertext, or a batch of them.
pub type CiphertextOf<B> = Ciphertext<<B as Backend>::Ciphertext>;
/// What it multiplies by and adds.
pub type PlaintextOf<B> = Plaintext<<B as Backend>::Plaintext>;

impl<B: Backend> Evaluator<B> {
    /// An evaluator by a backend, which has the keys.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn with_backend(params: &Params, backend: B) -> Result<Self, HeError> {
        params.require("the evaluation keys", backend.context().params())?;
        Ok(Self { params: params.clone(), inner: rlwe::Evaluator::with_backend(backend) })
    }

    /// What does the work.
    pub fn backend(&self) -> &B {
        self.inner.backend()
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
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
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn check(&self, ciphertext: &CiphertextOf<B>) -> Result<(), HeError> {
        Ok(self.inner.check(&ciphertext.inner)?)
    }

    /// What a sum of two scales costs: the error of taking one for the other, refused where it
    /// would be more than the noise that is there.
    fn scale_error(operation: &'static str, a: State, b: State) -> Result<f64, HeError> {
        let difference = (a.scale - b.scale).abs() * b.bound;
        // Double precision's own drift is no mismatch.
        let drift = a.scale * (a.bound + b.bound) * (-40f64).exp2();
        if difference > (a.noise + b.noise).max(drift) {
            return Err(HeError::ScaleMismatch { operation, left: a.scale.log2(), right: b.scale.log2() });
        }
        Ok(difference)
    }

    /// The state of a sum at a level.
    fn sum_state(&self, operation: &'static str, a: State, b: State, level: usize) -> Result<State, HeError> {
        let error = Self::scale_error(operation, a, b)?;
        let state = State { scale: a.scale, bound: a.bound + b.bound, noise: a.noise + (b.noise + error) };
        state.check_fits(operation, &self.params, level)?;
        Ok(state)
    }

    /// `a + b`, at the lower of both levels and the scale of `a`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; [`HeError::ScaleMismatch`] where taking one scale for the other would
    /// be an error larger than the noise ([`Evaluator::set_scale`] is the remedy); [`HeError::TooLarge`].
    pub fn add(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.combine("addition", a, b, rlwe::Evaluator::add)
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.combine("subtraction", a, b, rlwe::Evaluator::sub)
    }

    fn combine(
        &self,
        operation: &'static str,
        a: &CiphertextOf<B>,
        b: &CiphertextOf<B>,
        work: Work<B, B::Ciphertext>,
    ) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        self.check(b)?;
        let state = self.sum_state(operation, a.state(), b.state(), a.level().min(b.level()))?;
        let spread = a.spread.sum_of_any(b.spread).shifted((a.scale - b.scale).abs() * b.spread.size);
        Ok(Ciphertext::new(work(&self.inner, &a.inner, &b.inner)?, state).with_spread(spread))
    }

    /// `acc += b`, in place where `b` has the level of `acc` and no more parts; `acc` keeps its value on
    /// error.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn add_assign(&self, acc: &mut CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<(), HeError> {
        self.check(acc)?;
        self.check(b)?;
        let state = self.sum_state("addition", acc.state(), b.state(), acc.level().min(b.level()))?;
        self.inner.add_assign(&mut acc.inner, &b.inner)?;
        (acc.bound, acc.noise, acc.spread) = (state.bound, state.noise, acc.spread.sum_of_any(b.spread));
        Ok(())
    }

    /// `−a`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn negate(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        Ok(Ciphertext::new(self.inner.negate(&a.inner)?, a.state()).with_spread(a.spread))
    }

    /// `a + p` for a plaintext of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add`], and `RlweError::NoSuchLevel` if the plaintext's level is too low.
    pub fn add_plain(&self, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.combine_plain("addition of a plaintext", a, p, rlwe::Evaluator::add_poly)
    }

    /// `a − p` for a plaintext of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`].
    pub fn sub_plain(&self, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.combine_plain("subtraction of a plaintext", a, p, rlwe::Evaluator::sub_poly)
    }

    fn combine_plain(
        &self,
        operation: &'static str,
        a: &CiphertextOf<B>,
        p: &PlaintextOf<B>,
        work: Work<B, B::Plaintext>,
    ) -> Result<CiphertextOf<B>, HeError> {
        self.check_plain(operation, a, p)?;
        let other = State { scale: p.scale, bound: p.bound, noise: p.noise };
        let state = self.sum_state(operation, a.state(), other, a.level())?;
        let spread = Spread { size: a.spread.size + p.spread.size, ..a.spread.plus(p.spread.error) };
        Ok(Ciphertext::new(work(&self.inner, &a.inner, &p.poly)?, state).with_spread(spread))
    }

    fn check_plain(&self, operation: &'static str, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<(), HeError> {
        self.check(a)?;
        self.params.require("the plaintext", &p.params)?;
        if p.level < a.level() {
            return Err(RlweError::NoSuchLevel { operation, wanted: a.level(), highest: p.level }.into());
        }
        Ok(())
    }

    /// `a + value` in every slot.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`] and [`Encoder::encode_at`](super::Encoder::encode_at).
    pub fn add_constant(&self, a: &CiphertextOf<B>, value: f64) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        let at = EncodeAt { level: a.level(), scale: a.scale, max_abs: value.abs() };
        self.add_plain(a, &self.constant(value, at)?)
    }

    /// `a · p`; the scales multiply, and a [`Evaluator::rescale`] is due.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::NoSuchLevel` if the
    /// plaintext's level is too low, [`HeError::TooLarge`].
    pub fn mul_plain(&self, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        let state = self.plain_product_state(a, p)?;
        let spread = a.spread.mul_plain(a.scale, p.spread, p.scale);
        Ok(Ciphertext::new(self.inner.mul_poly(&a.inner, &p.poly)?, state).with_spread(spread))
    }

    /// `a · p` rescaled, limb by limb: the product is not stored before it is divided.
    ///
    /// # Errors
    /// As [`Evaluator::mul_plain`] and [`Evaluator::rescale`].
    pub fn mul_plain_rescale(&self, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        a.inner.lower("rescale")?;
        let state = self.plain_product_state(a, p)?;
        let parts = a.inner.polynomials();
        let spread = a.spread.mul_plain(a.scale, p.spread, p.scale);
        let inner = self.inner.mul_poly_rescale(&a.inner, &p.poly)?;
        let spread = self.rescaled_spread(spread, a.level(), parts);
        Ok(Ciphertext::new(inner, self.rescaled(state, a.level(), parts)).with_spread(spread))
    }

    /// What a division by the last prime of a level leaves of a state.
    pub(crate) fn rescaled(&self, state: State, level: usize, parts: usize) -> State {
        let prime = self.params.prime_at(level) as f64;
        let noise = state.noise / prime + division_bound(&self.params, parts);
        State { scale: state.scale / prime, bound: state.bound, noise }
    }

    /// The same of expected errors.
    pub(crate) fn rescaled_spread(&self, spread: Spread, level: usize, parts: usize) -> Spread {
        let prime = self.params.prime_at(level) as f64;
        spread.scaled(1.0 / prime).plus(spread::division(&self.params, parts))
    }

    /// The state of `a · p`.
    fn plain_product_state(&self, a: &CiphertextOf<B>, p: &PlaintextOf<B>) -> Result<State, HeError> {
        let operation = "product with a plaintext";
        self.check_plain(operation, a, p)?;
        let state = State {
            scale: a.scale * p.scale,
            bound: a.bound * p.bound,
            noise: a.noise * (p.bound * p.scale + p.noise) + a.bound * a.scale * p.noise,
        };
        state.check_fits(operation, &self.params, a.level())?;
        Ok(state)
    }

    /// `a · value` at no cost in levels, for an integer.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`HeError::TooLarge`].
    pub fn mul_integer(&self, a: &CiphertextOf<B>, value: i64) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        let size = value.unsigned_abs() as f64;
        let state = State { scale: a.scale, bound: a.bound * size, noise: a.noise * size };
        state.check_fits("product with an integer", &self.params, a.level())?;
        let spread = Spread { size: a.spread.size * size, ..a.spread.scaled(size) };
        Ok(Ciphertext::new(self.inner.mul_integer(&a.inner, value)?, state).with_spread(spread))
    }

    /// The same message in units of 1/`factor`: `a · factor` at `factor` times the scale.
    ///
    /// # Errors
    /// As [`Evaluator::mul_integer`].
    pub fn refine(&self, a: &CiphertextOf<B>, factor: i64) -> Result<CiphertextOf<B>, HeError> {
        let fine = self.mul_integer(a, factor)?;
        let size = factor.unsigned_abs().max(1) as f64;
        Ok(Ciphertext { scale: a.scale * size, bound: a.bound, ..fine })
    }

    /// `a · value` for a real constant; one level is used and the scale stays as it is.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`, [`HeError::NotFinite`], and as [`Evaluator::mul_integer`].
    pub fn mul_constant(&self, a: &CiphertextOf<B>, value: f64) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        a.inner.lower("product with a constant")?;
        let at = EncodeAt { level: a.level(), scale: self.params.prime_at(a.level()) as f64, max_abs: value.abs() };
        let p = self.constant(value, at)?;
        self.mul_plain_rescale(a, &p)
    }

    /// `a · b` with three parts: relinearise and rescale are due.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree` if an operand has
    /// three parts, [`HeError::TooLarge`].
    pub fn mul(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.dot(&[a], &[b])
    }

    /// Σ_i a_i · b_i with three parts: products are summed first, and one relinearisation after
    /// serves them all (lazy relinearisation).
    ///
    /// All operands of one side share a scale; levels are brought down to the lowest.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; `RlweError::Operands`, [`HeError::ScaleMismatch`].
    pub fn dot(&self, a: &[&CiphertextOf<B>], b: &[&CiphertextOf<B>]) -> Result<CiphertextOf<B>, HeError> {
        let (left, right) = (parts_of(a), parts_of(b));
        let level = self.inner.check_dot(&left, &right)?;
        let state = State { scale: a[0].scale * b[0].scale, bound: 0.0, noise: 0.0 };
        let state = self.dot_state(state, a, b, level)?;
        let spread = dot_spread(Spread::even(0.0, 0.0), a, b);
        Ok(Ciphertext::new(self.inner.dot(&left, &right)?, state).with_spread(spread))
    }

    /// `acc += Σ_i a_i · b_i`, three parts: what [`Evaluator::dot`] makes of all terms, some at a time, bit by bit and
    /// in what it says of the message. `acc` keeps its value on error.
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn dot_assign(
        &self,
        acc: &mut CiphertextOf<B>,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
    ) -> Result<(), HeError> {
        self.check(acc)?;
        let (left, right) = (parts_of(a), parts_of(b));
        let level = self.inner.check_dot(&left, &right)?.min(acc.level());
        let state = self.dot_state(acc.state(), a, b, level)?;
        self.inner.dot_assign(&mut acc.inner, &left, &right)?;
        (acc.bound, acc.noise, acc.spread) = (state.bound, state.noise, dot_spread(acc.spread, a, b));
        Ok(())
    }

    /// The state of a sum to which products are added, at a level.
    fn dot_state(
        &self,
        State { scale, mut bound, mut noise }: State,
        a: &[&CiphertextOf<B>],
        b: &[&CiphertextOf<B>],
        level: usize,
    ) -> Result<State, HeError> {
        let operation = "product";
        for (x, y) in a.iter().zip(b) {
            let (sx, sy) = (x.bound * x.scale, y.bound * y.scale);
            let own = sx * y.noise + sy * x.noise + x.noise * y.noise;
            let here = State { scale: x.scale * y.scale, bound: x.bound * y.bound, noise: own };
            noise += own + Self::scale_error(operation, State { scale, bound, noise }, here)?;
            bound += x.bound * y.bound;
        }
        let state = State { scale, bound, noise };
        state.check_fits(operation, &self.params, level)?;
        Ok(state)
    }

    /// Three parts to two.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if the key does not reach.
    pub fn relinearize(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        let (state, spread) = self.relinearized((a.state(), a.spread), a.level(), a.inner.polynomials(), false);
        Ok(Ciphertext::new(self.inner.relinearize(&a.inner)?, state).with_spread(spread))
    }

    /// Relinearise and rescale with one division by P·q_level.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`] and [`Evaluator::rescale`].
    pub fn relinearize_rescale(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        let (state, spread) = self.relinearized((a.state(), a.spread), a.level(), a.inner.polynomials(), true);
        Ok(Ciphertext::new(self.inner.relinearize_rescale(&a.inner)?, state).with_spread(spread))
    }

    /// What relinearisation leaves of a state and of expected errors, alone or with a rescale.
    fn relinearized(
        &self,
        (state, spread): (State, Spread),
        level: usize,
        parts: usize,
        rescale: bool,
    ) -> (State, Spread) {
        let (bound, variance) = match (parts > 2, rescale) {
            (false, _) => (0.0, 0.0),
            (true, false) => (
                relinearisation_bound(&self.params, level) + division_bound(&self.params, 2),
                spread::relinearisation(&self.params, level) + spread::division(&self.params, 2),
            ),
            (true, true) => (relinearisation_bound(&self.params, level), spread::relinearisation(&self.params, level)),
        };
        let (state, spread) = (State { noise: state.noise + bound, ..state }, spread.plus(variance));
        match rescale {
            false => (state, spread),
            true => (self.rescaled(state, level, 2), self.rescaled_spread(spread, level, 2)),
        }
    }

    /// Product and relinearisation.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize`].
    pub fn mul_relin(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.product(a, b, false)
    }

    /// Product, relinearisation and rescale, with one division for both.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize_rescale`].
    pub fn mul_rescale(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        a.inner.lower("rescale")?;
        b.inner.lower("rescale")?;
        self.product(a, b, true)
    }

    fn product(&self, a: &CiphertextOf<B>, b: &CiphertextOf<B>, rescale: bool) -> Result<CiphertextOf<B>, HeError> {
        let level = self.inner.check_dot(&[&a.inner], &[&b.inner])?;
        self.inner.check_relin(level)?;
        let state = State { scale: a.scale * b.scale, bound: 0.0, noise: 0.0 };
        let state = self.dot_state(state, &[a], &[b], level)?;
        let spread = dot_spread(Spread::even(0.0, 0.0), &[a], &[b]);
        let inner = match rescale {
            true => self.inner.mul_rescale(&a.inner, &b.inner)?,
            false => self.inner.mul_relin(&a.inner, &b.inner)?,
        };
        let (state, spread) = self.relinearized((state, spread), level, 3, rescale);
        Ok(Ciphertext::new(inner, state).with_spread(spread))
    }

    /// Divides message scale and modulus by the last prime: one level down.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels` at level 0.
    pub fn rescale(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        let inner = self.inner.rescale(&a.inner)?;
        let spread = self.rescaled_spread(a.spread, a.level(), a.inner.polynomials());
        Ok(Ciphertext::new(inner, self.rescaled(a.state(), a.level(), a.inner.polynomials())).with_spread(spread))
    }

    /// The same message at a lower level: drops primes.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel` if `level` is above the ciphertext's.
    pub fn drop_to(&self, a: &CiphertextOf<B>, level: usize) -> Result<CiphertextOf<B>, HeError> {
        let inner = self.inner.drop_to(&a.inner, level)?;
        a.state().check_fits("dropping levels", &self.params, level)?;
        Ok(Ciphertext::new(inner, a.state()).with_spread(a.spread))
    }

    /// The same message at exactly `scale`, one level down: multiplies by the constant that the
    /// quotient of the scales asks for, and rescales. The remedy for a scale mismatch.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`, [`HeError::NoPrecision`] if the factor would round to nothing.
    pub fn set_scale(&self, a: &CiphertextOf<B>, scale: f64) -> Result<CiphertextOf<B>, HeError> {
        let operation = "changing the scale";
        self.check(a)?;
        a.inner.lower(operation)?;
        let prime = self.params.prime_at(a.level()) as f64;
        let factor = (scale / a.scale * prime).round();
        if !(factor.is_finite() && (1.0..9e18).contains(&factor)) {
            return Err(HeError::NoPrecision { operation, noise: a.noise.log2(), scale: scale.log2() });
        }
        let state = State { scale: a.scale * factor, bound: a.bound, noise: a.noise * factor };
        state.check_fits(operation, &self.params, a.level())?;
        let raised = Ciphertext::new(self.inner.mul_integer(&a.inner, factor as i64)?, state);
        let raised = raised.with_spread(a.spread.scaled(factor));
        let mut out = self.rescale(&raised)?;
        // The factor was rounded to an integer; what that leaves is error, not scale.
        out.noise += (out.scale - scale).abs() * out.bound;
        out.spread = out.spread.shifted((out.scale - scale).abs() * out.spread.size);
        out.scale = scale;
        Ok(out)
    }

    /// Rotates the N/2 slots left by `step`, of any sign: slot i gets what slot i + step modulo N/2 held. The key is that of
    /// [`rotation_element`](sudare_rlwe::Params::rotation_element)\(step).
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`; `RlweError::NoSuchLevel` if the key does not reach the ciphertext's level;
    /// `RlweError::Degree` for three parts.
    pub fn rotate(&self, a: &CiphertextOf<B>, step: i64) -> Result<CiphertextOf<B>, HeError> {
        self.automorphism(a, self.params.rotation_element(step), step)
    }

    /// Complex conjugate of every slot.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn conjugate(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.automorphism(a, self.params.conjugation_element(), 0)
    }

    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn automorphism(&self, a: &CiphertextOf<B>, element: u64, step: i64) -> Result<CiphertextOf<B>, HeError> {
        Ok(self.rotated(a, element, self.inner.automorphism(&a.inner, element, step)?))
    }

    /// Variance of a slot's error after a key switch at a level.
    fn switched_variance(&self, level: usize) -> f64 {
        spread::switching(&self.params, level) + spread::division(&self.params, 2)
    }

    /// What a rotation makes of a ciphertext.
    fn rotated(&self, a: &CiphertextOf<B>, element: u64, inner: B::Ciphertext) -> CiphertextOf<B> {
        let switched = if element == 1 { 0.0 } else { switched_bound(&self.params, a.level()) };
        let added = if element == 1 { 0.0 } else { self.switched_variance(a.level()) };
        Ciphertext::new(inner, State { noise: a.noise + switched, ..a.state() }).with_spread(a.spread.plus(added))
    }

    /// A rotation for each of `steps`, in their order, with one decomposition (hoisting).
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn rotate_many(&self, a: &CiphertextOf<B>, steps: &[i64]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let images = self.inner.rotate_many(&a.inner, steps)?.into_iter().zip(steps);
        Ok(images.map(|(inner, step)| self.rotated(a, self.params.rotation_element(*step), inner)).collect())
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down; `004`, section 3.2). Element 1 is the ciphertext
    /// itself.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`]; `RlweError::Operands` without elements, [`HeError::TooLarge`].
    pub fn sum_of_automorphisms(&self, a: &CiphertextOf<B>, elements: &[u64]) -> Result<CiphertextOf<B>, HeError> {
        self.sum_of_images(a, elements, Images::Overlapping)
    }

    /// The same, of images that hold messages in the same or in different slots.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`].
    pub fn sum_of_images(
        &self,
        a: &CiphertextOf<B>,
        elements: &[u64],
        images: Images,
    ) -> Result<CiphertextOf<B>, HeError> {
        let operation = "sum of rotations";
        self.inner.check_two_parts(operation, &a.inner)?;
        self.inner.check_keys(elements, a.level())?;
        let terms = elements.len() as f64;
        let switched = elements.iter().filter(|e| **e != 1).count() as f64;
        let switching = switching_bound(&self.params, a.level()) * switched;
        let noise = a.noise * terms + switching + division_bound(&self.params, 2);
        let state = State { scale: a.scale, bound: a.bound * terms, noise };
        state.check_fits(operation, &self.params, a.level())?;
        let added = spread::switching(&self.params, a.level()) * switched + spread::division(&self.params, 2);
        let spread = a.spread.images(terms, images).plus(added);
        Ok(Ciphertext::new(self.inner.sum_of_automorphisms(&a.inner, elements)?, state).with_spread(spread))
    }

    /// Refuses before any work what a missing key would refuse in the middle. Loads no key.
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`, `RlweError::NoSuchLevel` if a key does not reach.
    pub fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), HeError> {
        Ok(self.inner.check_keys(elements, level)?)
    }

    /// The same of the relinearisation key.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if it does not reach.
    pub fn check_relin(&self, level: usize) -> Result<(), HeError> {
        Ok(self.inner.check_relin(level)?)
    }
}

impl Evaluator {
    /// An evaluator with a server's keys.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn new(params: &Params, keys: impl Into<Arc<dyn KeySource>>) -> Result<Self, HeError> {
        Self::with_backend(params, rlwe::Cpu::new(keys))
    }
}

/// Expected errors of a sum to which products are added.
fn dot_spread<C>(sum: Spread, a: &[&Ciphertext<C>], b: &[&Ciphertext<C>]) -> Spread {
    let sum = a.iter().zip(b).fold(sum, |sum, (x, y)| sum.sum(x.spread.product(x.scale, y.spread, y.scale)));
    Spread { alone: sum.alone && a.len() < 2, ..sum }
}

/// The parts of each.
fn parts_of<'a, C>(side: &[&'a Ciphertext<C>]) -> Vec<&'a C> {
    side.iter().map(|c| &c.inner).collect()
}
