//! Ciphertexts of exact schemes and the state that travels with them.

use super::params::IntegerParams;
use super::scheme::Scheme;
use crate::error::{ExactError, parameters};
use std::fmt;
use std::marker::PhantomData;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::{Backend, KeyId, RlweError, Shaped};

/// Parts with t·Σ_i c_i·s^i ≡ c modulo Q_level, c a small polynomial that is g·m modulo t:
/// m is the message and g the plaintext factor.
///
/// Both schemes keep this form, t^−1 times BGV's usual one. Read from the top, Σ_i c_i·s^i =
/// (Q/t)·x + v with x ≡ −Q^−1·g·m modulo t, which is BFV's usual form when g = −Q. So additions,
/// rotations, key switching and division by primes are the same operations on both, with the
/// keys of CKKS.
///
/// A static bound on the canonical norm of v = c/t travels along.
///
/// `C` holds the parts: those of one ciphertext, or those of a batch on a backend, of which all is said that holds for each.
pub struct Ciphertext<S: Scheme, C = rlwe::Ciphertext> {
    pub(crate) params: IntegerParams,
    pub(crate) inner: C,
    pub(crate) factor: u64,
    pub(crate) noise: f64,
    scheme: PhantomData<S>,
}

/// A ciphertext of a backend.
pub type CiphertextOf<S, B> = Ciphertext<S, <B as Backend>::Ciphertext>;

/// What a ciphertext says of its message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The plaintext factor g.
    pub factor: u64,
    /// Bound on the canonical norm of the noise.
    pub noise: f64,
}

impl<S: Scheme, C: Shaped> Clone for Ciphertext<S, C> {
    fn clone(&self) -> Self {
        self.with(self.inner.clone(), self.noise)
    }
}

impl<S: Scheme> Ciphertext<S> {
    /// Puts a ciphertext together from what travels.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; [`ExactError::WrongFactor`] for another factor than the one that every
    /// BFV ciphertext at the level has, or than that of a fresh ciphertext if it is seeded;
    /// `RlweError::NoBudget` and [`ExactError::NoiseTooSmall`] for a noise bound that the level does not hold
    /// or that is under that of any encryption; `RlweError::Parameters` for a plaintext factor that is no
    /// unit modulo t, or a noise bound that is no number.
    pub fn from_parts(params: &IntegerParams, inner: rlwe::Ciphertext, state: State) -> Result<Self, ExactError> {
        let (State { factor, noise }, level) = (state, inner.level());
        params.rlwe().require("the ciphertext", inner.params())?;
        let only = match inner.seed() {
            Some(_) => Some(S::fresh_factor(params, level)),
            None => S::only_factor(params, level),
        };
        if let Some(expected) = only.filter(|expected| *expected != factor) {
            return Err(ExactError::WrongFactor { scheme: S::NAME, level, found: factor, expected });
        }
        let t = params.modulus();
        if factor >= t.value() || t.inv(factor).is_none() {
            return Err(parameters("the ciphertext's plaintext factor has no inverse modulo t"));
        }
        if !(noise.is_finite() && noise >= 0.0) {
            return Err(parameters("the ciphertext's noise bound is not a finite number of at least 0"));
        }
        let least = params.noise().least();
        if noise < least && !inner.parts()[1..].iter().all(Poly::is_zero) {
            return Err(ExactError::NoiseTooSmall { found: noise, least });
        }
        check_fits(params, "loading a ciphertext", level, noise)?;
        Ok(Self::new(params, inner, state))
    }

    /// A noiseless encryption of zero: the start of a sum.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel`.
    pub fn zero(params: &IntegerParams, key: KeyId, level: usize) -> Result<Self, ExactError> {
        let inner = rlwe::Ciphertext::zero(params, key, level)?;
        let factor = S::fresh_factor(params, level);
        Ok(Self::new(params, inner, State { factor, noise: 0.0 }))
    }

    /// Its parts c_0, c_1 and perhaps c_2.
    pub fn parts(&self) -> &[Poly<Eval>] {
        self.inner.parts()
    }

    /// The seed of c_1, where c_1 is what a seed stands for: then c_0 and the seed are all that needs to
    /// travel.
    pub fn seed(&self) -> Option<MaskSeed> {
        self.inner.seed()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.inner.bytes()
    }
}

impl<S: Scheme, C: Shaped> Ciphertext<S, C> {
    /// Of a state that was computed.
    pub(crate) fn new(params: &IntegerParams, inner: C, State { factor, noise }: State) -> Self {
        Self { params: params.clone(), inner, factor, noise, scheme: PhantomData }
    }

    /// Other parts and their noise, of the same plaintext factor.
    pub(crate) fn with(&self, inner: C, noise: f64) -> Self {
        Self::new(&self.params, inner, State { factor: self.factor, noise })
    }

    /// What it says of its message.
    pub fn state(&self) -> State {
        State { factor: self.factor, noise: self.noise }
    }

    /// The ciphertext without what it says of its message.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// The same message with its parts elsewhere: copied to a device, or back.
    ///
    /// # Errors
    /// Those of `copy`; `RlweError::WrongParameters`, `RlweError::NoSuchLevel`, `RlweError::Operands` for what is no copy.
    pub fn copied<D: Shaped>(
        &self,
        copy: impl FnOnce(&C) -> Result<D, RlweError>,
    ) -> Result<Ciphertext<S, D>, ExactError> {
        let inner = copy(&self.inner)?;
        self.params.rlwe().require("the copy", inner.params())?;
        let (left, right) = (inner.polynomials(), self.inner.polynomials());
        if inner.level() != self.level() {
            let (wanted, highest) = (self.level(), inner.level());
            return Err(RlweError::NoSuchLevel { operation: "a copy", wanted, highest }.into());
        }
        if left != right {
            return Err(RlweError::Operands { operation: "a copy", left, right }.into());
        }
        Ok(Ciphertext::new(&self.params, inner, self.state()))
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.inner.key()
    }

    /// Data primes that can still be dropped.
    pub fn level(&self) -> usize {
        self.inner.level()
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
        self.params.noise().log_limit(self.level()) - self.noise.max(1.0).log2()
    }

    /// Refuses noise at which decryption could fail.
    pub(crate) fn check_fits(&self, operation: &'static str) -> Result<(), ExactError> {
        check_fits(&self.params, operation, self.level(), self.noise)
    }
}

/// Refuses noise at which decryption could fail.
pub(crate) fn check_fits(
    params: &IntegerParams,
    operation: &'static str,
    level: usize,
    noise: f64,
) -> Result<(), ExactError> {
    if params.noise().fits(level, noise) {
        return Ok(());
    }
    Err(ExactError::Rlwe(RlweError::NoBudget {
        operation,
        noise: noise.log2(),
        limit: params.noise().log_limit(level),
        level,
    }))
}

impl<S: Scheme, C: Shaped> fmt::Debug for Ciphertext<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} Ciphertext(N = {}, t = {}, {} parts, level {}/{}, at least {:.0} bits of noise room, key {})",
            S::NAME,
            self.params.degree(),
            self.params.t(),
            self.inner.polynomials(),
            self.level(),
            self.params.max_level(),
            self.headroom(),
            self.key()
        )
    }
}
