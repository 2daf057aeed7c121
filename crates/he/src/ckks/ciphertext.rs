//! Ciphertexts and the state that travels with them.

use super::spread::Spread;
use crate::error::{HeError, parameters};
use std::fmt;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::{KeyId, Params, Shaped};

/// Parts that decrypt as Σ_i c_i·s^i: two, or three after a product.
///
/// Level, scale, a bound on the message and a static noise bound travel along. For slots the
/// message bound is one on their absolute values; for coefficient encodings it is the Euclidean
/// norm of the coefficients, which bounds every coefficient of one product.
///
/// `C` holds the parts: those of one ciphertext, or on a device those of a batch, of which all is said that holds for
/// each of them.
#[derive(Clone)]
pub struct Ciphertext<C = rlwe::Ciphertext> {
    pub(crate) inner: C,
    pub(crate) scale: f64,
    pub(crate) bound: f64,
    pub(crate) noise: f64,
    pub(crate) spread: Spread,
}

/// What a ciphertext says of its message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Scale.
    pub scale: f64,
    /// Bound on the message.
    pub bound: f64,
    /// Bound on the canonical norm of the error, in integer units.
    pub noise: f64,
}

impl State {
    /// Refuses what is not a finite number above zero.
    pub(crate) fn check(&self) -> Result<(), HeError> {
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        if self.scale > 0.0 && [self.scale, self.bound, self.noise].into_iter().all(sound) {
            return Ok(());
        }
        Err(parameters("scale, bound and noise have to be finite, the scale above zero and the others at least zero"))
    }

    /// Refuses a message that the modulus of a level cannot hold.
    ///
    /// # Errors
    /// [`HeError::TooLarge`], which names the operation.
    pub fn check_fits(&self, operation: &'static str, params: &Params, level: usize) -> Result<(), HeError> {
        let modulus = params.log_q(level);
        let total = self.bound * self.scale + self.noise;
        // A signed value needs one bit more than its size.
        if total.max(1.0).log2() + 1.0 > modulus {
            let (value, scale) = (self.bound.log2(), self.scale.log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level });
        }
        Ok(())
    }
}

impl<C: Shaped> Ciphertext<C> {
    /// Puts a ciphertext together from what travels.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a scale, bound or noise that is not a
    /// finite number above zero.
    pub fn from_parts(inner: C, state: State) -> Result<Self, HeError> {
        state.check()?;
        Ok(Self::new(inner, state))
    }

    /// Of a state that was computed.
    pub(crate) fn new(inner: C, State { scale, bound, noise }: State) -> Self {
        Self { inner, scale, bound, noise, spread: Spread::UNKNOWN }
    }

    /// With expected errors.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// Expected errors of its slots, where they are known.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The ciphertext without what it says of its message.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// The same, taken out.
    pub fn into_inner(self) -> C {
        self.inner
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        self.inner.params()
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.inner.key()
    }

    /// Rescales left.
    pub fn level(&self) -> usize {
        self.inner.level()
    }

    /// What it says of its message.
    pub fn state(&self) -> State {
        State { scale: self.scale, bound: self.bound, noise: self.noise }
    }

    /// The exact scale (a product and quotient of primes and encoding scales, in double
    /// precision: relative error under 2^-45 after a thousand operations).
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Bound on the message.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Replaces the message bound by one that the caller knows; it must hold.
    #[must_use]
    pub fn with_bound(mut self, bound: f64) -> Self {
        self.bound = bound;
        self.spread.size = bound;
        self
    }

    /// With bounds that the caller knows to hold, where they are tighter.
    #[must_use]
    pub fn settled(mut self, bound: f64, noise: f64) -> Self {
        (self.bound, self.noise) = (self.bound.min(bound), self.noise.min(noise));
        self.spread.size = self.spread.size.min(bound);
        self
    }

    /// States an error of at least `error`, in units of the message: a bound may always be larger.
    #[must_use]
    pub fn with_error_of(mut self, error: f64) -> Self {
        self.noise = self.noise.max(error * self.scale);
        self
    }

    /// Static bound on the canonical norm of the error, in integer units.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Static bound on the error of a slot, in units of the message.
    pub fn error_bound(&self) -> f64 {
        self.noise / self.scale
    }

    /// Bits of a message of size one above the noise bound.
    pub fn precision_bits(&self) -> f64 {
        (self.scale / self.noise.max(1e-300)).log2()
    }
}

impl Ciphertext {
    /// A noiseless encryption of zero: the start of a sum.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel`.
    pub fn zero(params: &Params, key: KeyId, level: usize, scale: f64) -> Result<Self, HeError> {
        Ok(Self::new(rlwe::Ciphertext::zero(params, key, level)?, State { scale, bound: 0.0, noise: 0.0 }))
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

impl<C: Shaped> fmt::Debug for Ciphertext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(N = {}, {} parts, level {}/{}, scale 2^{:.2}, about {:.0} bits precise, key {})",
            self.params().degree(),
            self.inner.polynomials(),
            self.level(),
            self.params().max_level(),
            self.scale.log2(),
            self.precision_bits(),
            self.key()
        )
    }
}
