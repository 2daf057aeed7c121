//! Computing on ciphertexts.

mod linear;

pub use linear::ExtendedPlaintext;

use super::ciphertext::Ciphertext;
use super::encode::{EncodeAt, Encoder};
use super::noise::{division_bound, switched_bound, switching_bound};
use super::plaintext::Plaintext;
use crate::error::HeError;
use crate::keys::{EvalKeys, GaloisKey};
use crate::keyswitch::{self, Decomposed, ExtendedPair};
use crate::params::Params;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::{Eval, Poly};

/// How many operations an evaluator has done, by the names of the papers' tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Additions and subtractions of ciphertexts.
    pub add: u64,
    /// Rotations and conjugations, each with its key switch.
    pub rot: u64,
    /// Products with plaintexts.
    pub cmult: u64,
    /// Products of ciphertexts.
    pub mult: u64,
    /// Key switches: rotations and relinearisations.
    pub key_switches: u64,
}

impl std::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            add: self.add + other.add,
            rot: self.rot + other.rot,
            cmult: self.cmult + other.cmult,
            mult: self.mult + other.mult,
            key_switches: self.key_switches + other.key_switches,
        }
    }
}

impl std::iter::Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), std::ops::Add::add)
    }
}

impl std::ops::Mul<usize> for Counters {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        let of = |x: u64| x * times as u64;
        Self {
            add: of(self.add),
            rot: of(self.rot),
            cmult: of(self.cmult),
            mult: of(self.mult),
            key_switches: of(self.key_switches),
        }
    }
}

#[derive(Debug, Default)]
struct AtomicCounters {
    add: AtomicU64,
    rot: AtomicU64,
    cmult: AtomicU64,
    mult: AtomicU64,
    key_switches: AtomicU64,
}

/// A ciphertext whose c_1 is decomposed, for any number of rotations.
pub struct Hoisted<'a> {
    ciphertext: &'a Ciphertext,
    pub(crate) decomposed: Decomposed,
}

impl Hoisted<'_> {
    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext {
        self.ciphertext
    }
}

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
#[derive(Debug)]
pub struct Evaluator {
    keys: EvalKeys,
    counters: AtomicCounters,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Evaluator {
    /// An evaluator with a server's keys.
    pub fn new(keys: EvalKeys) -> Self {
        Self { keys, counters: AtomicCounters::default() }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.keys.params
    }

    /// Its keys.
    pub fn keys(&self) -> &EvalKeys {
        &self.keys
    }

    /// Operations done since the start or the last reset.
    pub fn counters(&self) -> Counters {
        let load = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Counters {
            add: load(&self.counters.add),
            rot: load(&self.counters.rot),
            cmult: load(&self.counters.cmult),
            mult: load(&self.counters.mult),
            key_switches: load(&self.counters.key_switches),
        }
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        let c = &self.counters;
        [&c.add, &c.rot, &c.cmult, &c.mult, &c.key_switches].into_iter().for_each(|x| x.store(0, Ordering::Relaxed));
    }

    /// Adds operations that were done outside of this evaluator's methods to its counters.
    pub fn record(&self, done: Counters) {
        let c = &self.counters;
        let pairs = [
            (&c.add, done.add),
            (&c.rot, done.rot),
            (&c.cmult, done.cmult),
            (&c.mult, done.mult),
            (&c.key_switches, done.key_switches),
        ];
        pairs.into_iter().for_each(|(counter, n)| {
            counter.fetch_add(n, Ordering::Relaxed);
        });
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`].
    pub fn check(&self, ciphertext: &Ciphertext) -> Result<(), HeError> {
        self.params().expect("the ciphertext", &ciphertext.params)?;
        if ciphertext.key != self.keys.id {
            let (found, expected) = (ciphertext.key, self.keys.id);
            return Err(HeError::WrongKey { what: "the ciphertext", found, expected });
        }
        Ok(())
    }

    fn check_two_parts(&self, operation: &'static str, ciphertext: &Ciphertext) -> Result<(), HeError> {
        self.check(ciphertext)?;
        if ciphertext.parts.len() != 2 {
            return Err(HeError::Degree { operation, expected: 2, found: ciphertext.parts.len() });
        }
        Ok(())
    }

    /// What a sum of two scales costs: the error of taking one for the other, refused where it
    /// would be more than the noise that is there.
    fn scale_error(
        operation: &'static str,
        (scale, bound, noise): (f64, f64, f64),
        (other_scale, other_bound, other_noise): (f64, f64, f64),
    ) -> Result<f64, HeError> {
        let difference = (scale - other_scale).abs() * other_bound;
        // Double precision's own drift is no mismatch.
        let drift = scale * (bound + other_bound) * (-40f64).exp2();
        if difference > (noise + other_noise).max(drift) {
            return Err(HeError::ScaleMismatch { operation, left: scale.log2(), right: other_scale.log2() });
        }
        Ok(difference)
    }

    /// `a + b`, at the lower of both levels.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::ScaleMismatch`],
    /// [`HeError::TooLarge`].
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.combine("addition", a, b, Poly::add_assign)
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.combine("subtraction", a, b, Poly::sub_assign)
    }

    fn combine(
        &self,
        operation: &'static str,
        a: &Ciphertext,
        b: &Ciphertext,
        work: impl Fn(&mut Poly<Eval>, &Poly<Eval>),
    ) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        self.check(b)?;
        let error = Self::scale_error(operation, (a.scale, a.bound, a.noise), (b.scale, b.bound, b.noise))?;
        let level = a.level.min(b.level);
        let mut out = self.drop_to(a, level)?;
        let b = if b.level == level {
            std::borrow::Cow::Borrowed(b)
        } else {
            std::borrow::Cow::Owned(self.drop_to(b, level)?)
        };
        out.bound += b.bound;
        out.noise += b.noise + error;
        out.check_fits(operation)?;
        count(&self.counters.add);
        for (i, part) in b.parts.iter().enumerate() {
            if i == out.parts.len() {
                out.parts.push(Poly::zero(part.basis()));
            }
            work(&mut out.parts[i], part);
        }
        Ok(out)
    }

    /// `acc += b` in place; `acc` keeps its value on error.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`HeError::NoSuchLevel`] if `b` is below the level of `acc`.
    pub fn add_assign(&self, acc: &mut Ciphertext, b: &Ciphertext) -> Result<(), HeError> {
        if b.level != acc.level || b.parts.len() > acc.parts.len() {
            *acc = self.add(acc, b)?;
            return Ok(());
        }
        let operation = "addition";
        self.check(acc)?;
        self.check(b)?;
        let error = Self::scale_error(operation, (acc.scale, acc.bound, acc.noise), (b.scale, b.bound, b.noise))?;
        let before = (acc.bound, acc.noise);
        acc.bound += b.bound;
        acc.noise += b.noise + error;
        if let Err(e) = acc.check_fits(operation) {
            (acc.bound, acc.noise) = before;
            return Err(e);
        }
        count(&self.counters.add);
        acc.parts.iter_mut().zip(&b.parts).for_each(|(x, y)| x.add_assign(y));
        Ok(())
    }

    /// `−a`.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`].
    pub fn negate(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let mut out = a.clone();
        out.parts.iter_mut().for_each(Poly::neg_assign);
        Ok(out)
    }

    /// `a + p` for a plaintext of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add`], and [`HeError::NoSuchLevel`] if the plaintext's level is too low.
    pub fn add_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, HeError> {
        self.combine_plain("addition of a plaintext", a, p, Poly::add_assign)
    }

    /// `a − p` for a plaintext of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`].
    pub fn sub_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, HeError> {
        self.combine_plain("subtraction of a plaintext", a, p, Poly::sub_assign)
    }

    fn combine_plain(
        &self,
        operation: &'static str,
        a: &Ciphertext,
        p: &Plaintext,
        work: impl Fn(&mut Poly<Eval>, &Poly<Eval>),
    ) -> Result<Ciphertext, HeError> {
        self.check_plain(operation, a, p)?;
        let error = Self::scale_error(operation, (a.scale, a.bound, a.noise), (p.scale, p.bound, p.noise))?;
        let mut out = a.clone();
        out.bound += p.bound;
        out.noise += p.noise + error;
        out.check_fits(operation)?;
        work(&mut out.parts[0], &at_level(&p.poly, a.level));
        Ok(out)
    }

    fn check_plain(&self, operation: &'static str, a: &Ciphertext, p: &Plaintext) -> Result<(), HeError> {
        self.check(a)?;
        self.params().expect("the plaintext", &p.params)?;
        if p.level < a.level {
            return Err(HeError::NoSuchLevel { operation, wanted: a.level, highest: p.level });
        }
        Ok(())
    }

    /// `a + value` in every slot.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`] and [`Encoder::encode_at`].
    pub fn add_constant(&self, a: &Ciphertext, value: f64) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let at = EncodeAt { level: a.level, scale: a.scale, max_abs: value.abs() };
        self.add_plain(a, &Encoder::new(self.params()).encode_constant(value, at)?)
    }

    /// `a · p`; the scales multiply, and a [`Evaluator::rescale`] is due.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::NoSuchLevel`] if the
    /// plaintext's level is too low, [`HeError::TooLarge`].
    pub fn mul_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, HeError> {
        let mut out = self.product_with_plain(a, p)?;
        let poly = at_level(&p.poly, a.level);
        out.parts = a.parts.iter().map(|x| x.mul(&poly)).collect();
        Ok(out)
    }

    /// `a · p` rescaled, limb by limb: the product is not stored before it is divided.
    ///
    /// # Errors
    /// As [`Evaluator::mul_plain`] and [`Evaluator::rescale`].
    pub fn mul_plain_rescale(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation: "rescale", needed: 1, level: 0 });
        }
        let product = self.product_with_plain(a, p)?;
        let (params, basis) = (self.params(), self.params().q_at(a.level));
        let prime = params.prime_at(a.level) as f64;
        let part = |x: &Poly<Eval>| {
            keyswitch::rescale_with(params, a.level, |i, out| basis.limb(i).mul(out, x.limb(i), p.poly.limb(i)))
        };
        Ok(Ciphertext {
            parts: a.parts.iter().map(part).collect(),
            level: a.level - 1,
            scale: product.scale / prime,
            noise: product.noise / prime + division_bound(params, a.parts.len()),
            ..product
        })
    }

    /// Everything of `a · p` but its parts.
    fn product_with_plain(&self, a: &Ciphertext, p: &Plaintext) -> Result<Ciphertext, HeError> {
        let operation = "product with a plaintext";
        self.check_plain(operation, a, p)?;
        let mut out = a.shell();
        out.scale = a.scale * p.scale;
        out.bound = a.bound * p.bound;
        out.noise = a.noise * (p.bound * p.scale + p.noise) + a.bound * a.scale * p.noise;
        out.check_fits(operation)?;
        count(&self.counters.cmult);
        Ok(out)
    }

    /// `a · value` at no cost in levels, for an integer.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::TooLarge`].
    pub fn mul_integer(&self, a: &Ciphertext, value: i64) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let mut out = a.clone();
        let size = value.unsigned_abs() as f64;
        out.bound *= size;
        out.noise *= size;
        out.check_fits("product with an integer")?;
        let factors = Poly::<Eval>::scalar(self.params().q_at(a.level), value);
        out.parts.iter_mut().for_each(|p| p.mul_scalars(&factors));
        Ok(out)
    }

    /// `a · value` for a real constant; one level is used and the scale stays as it is.
    ///
    /// # Errors
    /// [`HeError::OutOfLevels`], [`HeError::NotFinite`], and as [`Evaluator::mul_integer`].
    pub fn mul_constant(&self, a: &Ciphertext, value: f64) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let operation = "product with a constant";
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation, needed: 1, level: 0 });
        }
        let at = EncodeAt { level: a.level, scale: self.params().prime_at(a.level) as f64, max_abs: value.abs() };
        let p = Encoder::new(self.params()).encode_constant(value, at)?;
        self.mul_plain_rescale(a, &p)
    }

    /// `a · b` with three parts: relinearise and rescale are due.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::Degree`] if an operand has
    /// three parts, [`HeError::TooLarge`].
    pub fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.dot(&[a], &[b])
    }

    /// Σ_i a_i · b_i with three parts: products are summed first, and one relinearisation after
    /// serves them all (lazy relinearisation).
    ///
    /// All operands of one side share a scale; levels are brought down to the lowest.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; [`HeError::Operands`], [`HeError::ScaleMismatch`].
    pub fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let operation = "product";
        let (Some(a0), Some(b0), true) = (a.first(), b.first(), a.len() == b.len()) else {
            return Err(HeError::Operands { operation, left: a.len(), right: b.len() });
        };
        let mut level = a0.level;
        for c in a.iter().chain(b) {
            self.check_two_parts(operation, c)?;
            level = level.min(c.level);
        }
        let scale = a0.scale * b0.scale;
        let (mut bound, mut noise) = (0.0, 0.0);
        for (x, y) in a.iter().zip(b) {
            let (sx, sy) = (x.bound * x.scale, y.bound * y.scale);
            let own = sx * y.noise + sy * x.noise + x.noise * y.noise;
            let here = (x.scale * y.scale, x.bound * y.bound, own);
            noise += own + Self::scale_error(operation, (scale, bound, noise), here)?;
            bound += x.bound * y.bound;
        }
        let params = a0.params.clone();
        let mut out = Ciphertext { params, key: a0.key, parts: Vec::new(), level, scale, bound, noise, seed: None };
        out.check_fits(operation)?;
        for _ in a {
            count(&self.counters.mult);
        }
        (1..a.len()).for_each(|_| count(&self.counters.add));
        out.parts = tensor(self.params(), level, a, b);
        Ok(out)
    }

    /// Three parts to two.
    ///
    /// # Errors
    /// [`HeError::MissingRelinKey`], [`HeError::NoSuchLevel`] if the key does not reach.
    pub fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        let Some(pair) = self.relinearize_extended(a)? else { return Ok(a.clone()) };
        let params = self.params();
        let parts = pair.c.into_iter().map(|c| keyswitch::mod_down(params, a.level, c)).collect();
        let noise = a.noise + switched_bound(params, a.level);
        Ok(Ciphertext { parts, noise, ..a.shell() })
    }

    /// Relinearise and rescale with one division by P·q_level.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`] and [`Evaluator::rescale`].
    pub fn relinearize_rescale(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation: "rescale", needed: 1, level: 0 });
        }
        let Some(pair) = self.relinearize_extended(a)? else { return self.rescale(a) };
        let params = self.params();
        let prime = params.prime_at(a.level) as f64;
        let noise = (a.noise + switching_bound(params, a.level)) / prime + division_bound(params, 2);
        Ok(Ciphertext {
            parts: pair.c.into_iter().map(|c| keyswitch::mod_down_rescale(params, a.level, c)).collect(),
            level: a.level - 1,
            scale: a.scale / prime,
            noise,
            ..a.shell()
        })
    }

    /// P·(c_0, c_1) + the switched c_2, over Q_l·P; `None` if there is no third part.
    fn relinearize_extended(&self, a: &Ciphertext) -> Result<Option<ExtendedPair>, HeError> {
        self.check(a)?;
        if a.parts.len() < 3 {
            return Ok(None);
        }
        let key = self.keys.relin()?;
        keyswitch::check_key(key, "relinearisation", a.level)?;
        count(&self.counters.key_switches);
        let mut pair = keyswitch::switch(self.params(), a.level, &a.parts[2], key);
        pair.add_scaled(self.params(), 0, &a.parts[0]);
        pair.add_scaled(self.params(), 1, &a.parts[1]);
        Ok(Some(pair))
    }

    /// Product and relinearisation.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize`].
    pub fn mul_relin(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.relinearize(&self.mul(a, b)?)
    }

    /// Product, relinearisation and rescale, with one division for both.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize_rescale`].
    pub fn mul_rescale(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.relinearize_rescale(&self.mul(a, b)?)
    }

    /// Divides message scale and modulus by the last prime: one level down.
    ///
    /// # Errors
    /// [`HeError::OutOfLevels`] at level 0.
    pub fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation: "rescale", needed: 1, level: 0 });
        }
        let params = self.params();
        let prime = params.prime_at(a.level) as f64;
        let rounding = division_bound(params, a.parts.len());
        Ok(Ciphertext {
            parts: a.parts.iter().map(|p| keyswitch::rescale(params, a.level, p)).collect(),
            level: a.level - 1,
            scale: a.scale / prime,
            noise: a.noise / prime + rounding,
            ..a.shell()
        })
    }

    /// The same message at a lower level: drops primes.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`] if `level` is above the ciphertext's.
    pub fn drop_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        if level > a.level {
            return Err(HeError::NoSuchLevel { operation: "dropping levels", wanted: level, highest: a.level });
        }
        let out = Ciphertext {
            parts: a.parts.iter().map(|p| p.truncated(level + 1)).collect(),
            level,
            seed: a.seed,
            ..a.shell()
        };
        out.check_fits("dropping levels")?;
        Ok(out)
    }

    /// The same message at exactly `scale`, one level down: multiplies by the constant that the
    /// quotient of the scales asks for, and rescales. The remedy for a scale mismatch.
    ///
    /// # Errors
    /// [`HeError::OutOfLevels`], [`HeError::NoPrecision`] if the factor would round to nothing.
    pub fn set_scale(&self, a: &Ciphertext, scale: f64) -> Result<Ciphertext, HeError> {
        let operation = "changing the scale";
        self.check(a)?;
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation, needed: 1, level: 0 });
        }
        let prime = self.params().prime_at(a.level) as f64;
        let factor = (scale / a.scale * prime).round();
        if !(factor.is_finite() && (1.0..9e18).contains(&factor)) {
            return Err(HeError::NoPrecision { operation, noise: a.noise.log2(), scale: scale.log2() });
        }
        let mut raised = a.clone();
        raised.scale *= factor;
        raised.noise *= factor;
        raised.check_fits(operation)?;
        let factors = Poly::<Eval>::scalar(self.params().q_at(a.level), factor as i64);
        raised.parts.iter_mut().for_each(|p| p.mul_scalars(&factors));
        let mut out = self.rescale(&raised)?;
        // The factor was rounded to an integer; what that leaves is error, not scale.
        out.noise += (out.scale - scale).abs() * out.bound;
        out.scale = scale;
        Ok(out)
    }

    /// Rotates the slots left by `step`: slot i gets what slot i + step held.
    ///
    /// # Errors
    /// [`HeError::MissingRotationKey`], [`HeError::NoSuchLevel`], [`HeError::Degree`].
    pub fn rotate(&self, a: &Ciphertext, step: i64) -> Result<Ciphertext, HeError> {
        let element = self.params().rotation_element(step);
        self.automorphism(a, element, step)
    }

    /// Complex conjugate of every slot.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn conjugate(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.automorphism(a, self.params().conjugation_element(), 0)
    }

    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn automorphism(&self, a: &Ciphertext, element: u64, step: i64) -> Result<Ciphertext, HeError> {
        self.check_two_parts("rotation", a)?;
        if element == 1 {
            return Ok(a.clone());
        }
        let key = self.galois_key(element, step, a.level)?;
        let pair = keyswitch::switch(self.params(), a.level, &a.parts[1], &key.key);
        Ok(self.finish_rotation(a, key, pair))
    }

    /// Decomposes once for many rotations (hoisting).
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::Degree`].
    pub fn hoist<'a>(&self, a: &'a Ciphertext) -> Result<Hoisted<'a>, HeError> {
        self.check_two_parts("hoisting", a)?;
        Ok(Hoisted { ciphertext: a, decomposed: keyswitch::decompose(self.params(), a.level, &a.parts[1]) })
    }

    /// A rotation of a hoisted ciphertext.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn rotate_hoisted(&self, hoisted: &Hoisted<'_>, step: i64) -> Result<Ciphertext, HeError> {
        let element = self.params().rotation_element(step);
        if element == 1 {
            return Ok(hoisted.ciphertext.clone());
        }
        let key = self.galois_key(element, step, hoisted.ciphertext.level)?;
        let pair = keyswitch::inner_product(self.params(), &hoisted.decomposed, &key.key);
        Ok(self.finish_rotation(hoisted.ciphertext, key, pair))
    }

    /// Many rotations with one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`].
    pub fn rotate_many(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, HeError> {
        /// Keys that stream past one reading of the digits.
        const TOGETHER: usize = 4;
        let params = self.params();
        let elements: Vec<u64> = steps.iter().map(|step| params.rotation_element(*step)).collect();
        for (element, step) in elements.iter().zip(steps).filter(|(e, _)| **e != 1) {
            self.galois_key(*element, *step, a.level)?;
        }
        let hoisted = self.hoist(a)?;
        let mut out = Vec::with_capacity(steps.len());
        for (elements, steps) in elements.chunks(TOGETHER).zip(steps.chunks(TOGETHER)) {
            let keys = elements.iter().zip(steps).map(|(e, s)| self.galois_key(*e, *s, a.level));
            match keys.collect::<Result<Vec<_>, _>>().map(<[_; TOGETHER]>::try_from) {
                Ok(Ok(keys)) => {
                    let pairs = keyswitch::inner_products(params, &hoisted.decomposed, keys.map(|key| &key.key));
                    out.extend(pairs.into_iter().zip(keys).map(|(pair, key)| self.finish_rotation(a, key, pair)));
                }
                // Fewer than that, or a step of zero among them.
                _ => steps.iter().try_for_each(|step| self.rotate_hoisted(&hoisted, *step).map(|c| out.push(c)))?,
            }
        }
        Ok(out)
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down; `004`, section 3.2). Element 1 is the ciphertext
    /// itself.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`]; [`HeError::TooLarge`].
    pub fn sum_of_automorphisms(&self, a: &Ciphertext, elements: &[u64]) -> Result<Ciphertext, HeError> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        let params = self.params();
        let keys = elements
            .iter()
            .map(|e| if *e == 1 { Ok(None) } else { self.galois_key(*e, 0, a.level).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        let terms = elements.len() as f64;
        let switched = keys.iter().flatten().count();
        let mut out = a.shell();
        out.bound *= terms;
        out.noise = out.noise * terms + switching_bound(params, a.level) * switched as f64 + division_bound(params, 2);
        out.check_fits(operation)?;
        (1..elements.len()).for_each(|_| count(&self.counters.add));
        (0..switched).for_each(|_| {
            count(&self.counters.rot);
            count(&self.counters.key_switches);
        });
        let decomposed = keyswitch::decompose(params, a.level, &a.parts[1]);
        let sum = keyswitch::sum_of_images(params, [&a.parts[0], &a.parts[1]], &decomposed, &keys);
        out.parts = sum.c.into_iter().map(|c| keyswitch::mod_down(params, a.level, c)).collect();
        Ok(out)
    }

    fn galois_key(&self, element: u64, step: i64, level: usize) -> Result<&GaloisKey, HeError> {
        let key = self.keys.galois(element, step)?;
        keyswitch::check_key(&key.key, "rotation", level)?;
        Ok(key)
    }

    /// Divides by P, adds c_0 and applies the automorphism.
    fn finish_rotation(&self, a: &Ciphertext, key: &GaloisKey, pair: ExtendedPair) -> Ciphertext {
        count(&self.counters.rot);
        count(&self.counters.key_switches);
        let params = self.params();
        let [c0, c1] = pair.c;
        let end = |c, plus| keyswitch::mod_down_permuted(params, a.level, c, plus, &key.permutation);
        let noise = a.noise + switched_bound(params, a.level);
        Ciphertext { parts: vec![end(c0, Some(&a.parts[0])), end(c1, None)], noise, ..a.shell() }
    }
}

impl Ciphertext {
    /// Everything but the parts.
    fn shell(&self) -> Self {
        Self {
            params: self.params.clone(),
            key: self.key,
            parts: Vec::new(),
            level: self.level,
            scale: self.scale,
            bound: self.bound,
            noise: self.noise,
            seed: None,
        }
    }
}

/// A polynomial at a lower level, without a copy if it is there already.
fn at_level(p: &Poly<Eval>, level: usize) -> std::borrow::Cow<'_, Poly<Eval>> {
    if p.basis().len() == level + 1 {
        std::borrow::Cow::Borrowed(p)
    } else {
        std::borrow::Cow::Owned(p.truncated(level + 1))
    }
}

/// (Σ a_0·b_0, Σ a_0·b_1 + a_1·b_0, Σ a_1·b_1), one reduction for each value.
fn tensor(params: &Params, level: usize, a: &[&Ciphertext], b: &[&Ciphertext]) -> Vec<Poly<Eval>> {
    let basis = params.q_at(level);
    // Terms of one kernel call; far more are reduced in between.
    const CHUNK: usize = 1024;
    fn limbs<'c>(side: &[(usize, &[&'c Ciphertext])], i: usize) -> Vec<&'c [u64]> {
        side.iter().flat_map(|(part, cts)| cts.iter().map(move |c| c.parts[*part].limb(i))).collect()
    }
    let sum = |left: &[(usize, &[&Ciphertext])], right: &[(usize, &[&Ciphertext])]| {
        let mut out = Poly::dirty(basis);
        sudare_ring::threads::for_each_chunk(out.words_mut(), basis.degree(), |i, x| {
            let (l, r) = (limbs(left, i), limbs(right, i));
            for (at, (l, r)) in l.chunks(CHUNK).zip(r.chunks(CHUNK)).enumerate() {
                if at == 0 {
                    basis.limb(i).dot(x, l, r);
                } else {
                    let mut more = sudare_ring::buffer::Buffer::dirty(x.len());
                    basis.limb(i).dot(&mut more, l, r);
                    basis.limb(i).add_assign(x, &more);
                }
            }
        });
        out
    };
    vec![sum(&[(0, a)], &[(0, b)]), sum(&[(0, a), (1, a)], &[(1, b), (0, b)]), sum(&[(1, a)], &[(1, b)])]
}
