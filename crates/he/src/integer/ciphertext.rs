//! Ciphertexts of exact schemes and the state that travels with them.

use super::params::IntegerParams;
use super::scheme::Scheme;
use crate::error::HeError;
use crate::keys::KeyId;
use crate::keys::noise_poly::{is_mask, mask};
use std::fmt;
use std::marker::PhantomData;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// Parts with t·Σ_i c_i·s^i ≡ c modulo Q_level, c a small polynomial that is g·m modulo t:
/// m is the message and g the plaintext factor.
///
/// Both schemes keep this form, t^−1 times BGV's usual one. Read from the top, Σ_i c_i·s^i =
/// (Q/t)·x + v with x ≡ −Q^−1·g·m modulo t, which is BFV's usual form when g = −Q. So additions,
/// rotations, key switching and division by primes are the same operations on both, with the
/// keys of CKKS.
///
/// A static bound on the canonical norm of v = c/t travels along.
pub struct Ciphertext<S: Scheme> {
    pub(crate) params: IntegerParams,
    pub(crate) key: KeyId,
    pub(crate) parts: Vec<Poly<Eval>>,
    pub(crate) level: usize,
    pub(crate) factor: u64,
    pub(crate) noise: f64,
    /// The seed that c_1 came from. Only a hint: operations may leave a stale one.
    pub(crate) seed: Option<MaskSeed>,
    pub(crate) scheme: PhantomData<S>,
}

impl<S: Scheme> Clone for Ciphertext<S> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), seed: self.seed, ..self.shell() }
    }
}

impl<S: Scheme> Ciphertext<S> {
    /// Puts a ciphertext together from what travels: its parts, level, plaintext factor and
    /// noise bound.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`], [`HeError::Degree`]; [`HeError::WrongFactor`] for another factor
    /// than the one that every BFV ciphertext at the level has; [`HeError::NoBudget`] and
    /// [`HeError::NoiseTooSmall`] for a noise bound that the level does not hold or that is under
    /// that of any encryption; [`HeError::Parameters`] for parts over other primes, a plaintext
    /// factor that is no unit modulo t, or a noise bound that is no number.
    pub fn from_parts(
        params: &IntegerParams,
        key: KeyId,
        parts: Vec<Poly<Eval>>,
        level: usize,
        (factor, noise): (u64, f64),
    ) -> Result<Self, HeError> {
        let operation = "loading a ciphertext";
        params.check_level(operation, level)?;
        if !(2..=3).contains(&parts.len()) {
            return Err(HeError::Degree { operation, expected: 2, found: parts.len() });
        }
        let refuse = |reason: &str| Err(HeError::Parameters { reason: reason.into() });
        if parts.iter().any(|p| p.basis() != params.params().q_at(level)) {
            return refuse("the ciphertext's parts are not over the primes of its level");
        }
        if let Some(expected) = S::only_factor(params, level) {
            check_factor::<S>(level, factor, expected)?;
        }
        let t = params.modulus();
        if factor >= t.value() || t.inv(factor).is_none() {
            return refuse("the ciphertext's plaintext factor is no unit modulo t");
        }
        if !(noise.is_finite() && noise >= 0.0) {
            return refuse("the ciphertext's noise bound is no number");
        }
        let least = params.noise().least();
        if noise < least && parts[1..].iter().any(|p| p.words().iter().any(|w| *w != 0)) {
            return Err(HeError::NoiseTooSmall { found: noise, least });
        }
        let out = Self { params: params.clone(), key, parts, level, factor, noise, seed: None, scheme: PhantomData };
        out.check_fits(operation)?;
        Ok(out)
    }

    /// A seeded ciphertext from what travels: c_0 and the seed of c_1.
    ///
    /// # Errors
    /// As [`Ciphertext::from_parts`]; [`HeError::WrongFactor`] for another factor than that of a
    /// fresh ciphertext at the level.
    pub fn from_seeded(
        params: &IntegerParams,
        key: KeyId,
        c0: Poly<Eval>,
        seed: &MaskSeed,
        level: usize,
        state: (u64, f64),
    ) -> Result<Self, HeError> {
        params.check_level("loading a ciphertext", level)?;
        check_factor::<S>(level, state.0, S::fresh_factor(params, level))?;
        let c1 = mask(params.params().q_at(level), seed, 0);
        Ok(Self { seed: Some(*seed), ..Self::from_parts(params, key, vec![c0, c1], level, state)? })
    }

    /// A noiseless encryption of zero: the start of a sum.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`].
    pub fn zero(params: &IntegerParams, key: KeyId, level: usize) -> Result<Self, HeError> {
        params.check_level("an encryption of zero", level)?;
        let basis = params.params().q_at(level);
        let parts = vec![Poly::zero(basis), Poly::zero(basis)];
        let (params, factor) = (params.clone(), S::fresh_factor(params, level));
        Ok(Self { params, key, parts, level, factor, noise: 0.0, seed: None, scheme: PhantomData })
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Its parts c_0, c_1 and perhaps c_2.
    pub fn parts(&self) -> &[Poly<Eval>] {
        &self.parts
    }

    /// The seed of c_1, if there are two parts and c_1 is what the seed stands for: then c_0 and
    /// the seed are all that needs to travel. Costs an expansion of the seed.
    pub fn seed(&self) -> Option<MaskSeed> {
        match self.parts.as_slice() {
            [_, c1] => self.seed.filter(|seed| is_mask(c1, seed, 0)),
            _ => None,
        }
    }

    /// Data primes that can still be dropped.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The plaintext factor g, a unit modulo t. BFV's is always −Q_level.
    pub fn factor(&self) -> u64 {
        self.factor
    }

    /// Static bound on the canonical norm of the noise.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Bits between the static noise bound and the noise at which decryption can fail. What a
    /// server sees; it depends on the operations alone, not on the data.
    pub fn headroom(&self) -> f64 {
        self.params.noise().log_limit(self.level) - self.noise.max(1.0).log2()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|p| p.words().len() * 8).sum()
    }

    /// Everything but the parts.
    pub(crate) fn shell(&self) -> Self {
        Self {
            params: self.params.clone(),
            key: self.key,
            parts: Vec::new(),
            level: self.level,
            factor: self.factor,
            noise: self.noise,
            seed: None,
            scheme: PhantomData,
        }
    }

    /// Refuses noise at which decryption could fail.
    pub(crate) fn check_fits(&self, operation: &'static str) -> Result<(), HeError> {
        check_fits(&self.params, operation, self.level, self.noise)
    }
}

/// Refuses a plaintext factor other than the one that both sides compute.
fn check_factor<S: Scheme>(level: usize, found: u64, expected: u64) -> Result<(), HeError> {
    if found == expected {
        return Ok(());
    }
    Err(HeError::WrongFactor { scheme: S::NAME, level, found, expected })
}

/// Refuses noise at which decryption could fail.
pub(crate) fn check_fits(
    params: &IntegerParams,
    operation: &'static str,
    level: usize,
    noise: f64,
) -> Result<(), HeError> {
    if params.noise().fits(level, noise) {
        return Ok(());
    }
    Err(HeError::NoBudget { operation, noise: noise.log2(), limit: params.noise().log_limit(level), level })
}

impl<S: Scheme> fmt::Debug for Ciphertext<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} Ciphertext(N = {}, t = {}, {} parts, level {}/{}, at least {:.0} bits of noise room, key {})",
            S::NAME,
            self.params.degree(),
            self.params.t(),
            self.parts.len(),
            self.level,
            self.params.params().max_level(),
            self.headroom(),
            self.key
        )
    }
}
