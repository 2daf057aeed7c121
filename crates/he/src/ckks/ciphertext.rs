//! Ciphertexts and the state that travels with them.

use crate::error::HeError;
use crate::keys::KeyId;
use crate::keys::noise_poly::is_mask;
use crate::params::Params;
use std::fmt;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// Parts that decrypt as Σ_i c_i·s^i: two, or three after a product.
///
/// Level, scale, a bound on the message and a static noise bound travel along. For slots the
/// message bound is one on their absolute values; for coefficient encodings it is the Euclidean
/// norm of the coefficients, which bounds every coefficient of one product.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) params: Params,
    pub(crate) key: KeyId,
    pub(crate) parts: Vec<Poly<Eval>>,
    pub(crate) level: usize,
    pub(crate) scale: f64,
    pub(crate) bound: f64,
    pub(crate) noise: f64,
    /// The seed that c_1 came from. Only a hint: operations may leave a stale one.
    pub(crate) seed: Option<MaskSeed>,
}

impl Ciphertext {
    /// Puts a ciphertext together from what travels.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`], [`HeError::Degree`], or [`HeError::Parameters`] for parts over
    /// other primes or a scale, bound or noise that is not a finite number above zero.
    pub fn from_parts(
        params: &Params,
        key: KeyId,
        parts: Vec<Poly<Eval>>,
        level: usize,
        (scale, bound, noise): (f64, f64, f64),
    ) -> Result<Self, HeError> {
        let operation = "loading a ciphertext";
        if level > params.max_level() {
            return Err(HeError::NoSuchLevel { operation, wanted: level, highest: params.max_level() });
        }
        if !(2..=3).contains(&parts.len()) {
            return Err(HeError::Degree { operation, expected: 2, found: parts.len() });
        }
        if parts.iter().any(|p| p.basis() != params.q_at(level)) {
            return Err(HeError::Parameters {
                reason: "the ciphertext's parts are not over the primes of its level".into(),
            });
        }
        if !(scale.is_finite() && scale > 0.0 && bound.is_finite() && bound >= 0.0 && noise.is_finite() && noise >= 0.0)
        {
            return Err(HeError::Parameters { reason: "scale, bound and noise must be finite numbers".into() });
        }
        Ok(Self { params: params.clone(), key, parts, level, scale, bound, noise, seed: None })
    }

    /// A noiseless encryption of zero: the start of a sum.
    pub fn zero(params: &Params, key: KeyId, level: usize, scale: f64) -> Self {
        let basis = params.q_at(level);
        let parts = vec![Poly::zero(basis), Poly::zero(basis)];
        Self { params: params.clone(), key, parts, level, scale, bound: 0.0, noise: 0.0, seed: None }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
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
    /// the seed are all that needs to travel. True of a fresh ciphertext under a secret key, and
    /// as long as c_1 only loses primes. Costs an expansion of the seed.
    pub fn seed(&self) -> Option<MaskSeed> {
        match self.parts.as_slice() {
            [_, c1] => self.seed.filter(|seed| is_mask(c1, seed, 0)),
            _ => None,
        }
    }

    /// Rescales left.
    pub fn level(&self) -> usize {
        self.level
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

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|p| p.words().len() * 8).sum()
    }

    /// Refuses a message that the modulus cannot hold at this level.
    pub(crate) fn check_fits(&self, operation: &'static str) -> Result<(), HeError> {
        let modulus = self.params.q_at(self.level).log2_product();
        let total = self.bound * self.scale + self.noise;
        // A signed value needs one bit more than its size.
        if total.max(1.0).log2() + 1.0 > modulus {
            let (value, scale) = (self.bound.log2(), self.scale.log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: self.level });
        }
        Ok(())
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(N = {}, {} parts, level {}/{}, scale 2^{:.2}, about {:.0} bits precise, key {})",
            self.params.degree(),
            self.parts.len(),
            self.level,
            self.params.max_level(),
            self.scale.log2(),
            self.precision_bits(),
            self.key
        )
    }
}
