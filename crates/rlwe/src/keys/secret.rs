//! The secret key.

use crate::error::RlweError;
use crate::ids::KeyId;
use crate::params::Params;
use crate::release::{ReleasePolicy, Releases};
use crate::sample::secret_coefficients;
use crate::security::SecretDistribution;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::random::{GaussianSampler, Seed};
use sudare_ring::{Coeff, Eval, Poly};
use zeroize::{Zeroize, Zeroizing};

/// A secret key: zeroised when dropped, neither cloned nor printed.
pub struct SecretKey {
    params: Params,
    id: KeyId,
    /// s over Q·P.
    s: Poly<Eval>,
    /// The coefficients of s: what its owner's file keeps.
    coefficients: Zeroizing<Vec<i64>>,
    /// What was shown of what it decrypts; kept in its owner's file as well.
    /// In one word, so that no fork finds it locked.
    releases: AtomicU64,
}

impl SecretKey {
    /// Draws a key from the operating system's entropy.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if the system gives none.
    pub fn generate(params: &Params) -> Result<Self, RlweError> {
        Self::from_seed(params, &Seed::from_entropy()?)
    }

    /// The key that a seed stands for in this parameter set; in any other it stands for another.
    ///
    /// # Errors
    /// [`RlweError::Ring`].
    pub fn from_seed(params: &Params, seed: &Seed) -> Result<Self, RlweError> {
        let seed = params.hash().bind(seed, "ring");
        let mut stream = seed.derive("sudare secret", 0).stream(0);
        let coefficients = secret_coefficients(&mut stream, params.degree(), params.literal().secret)?;
        let mut id = [0u8; 16];
        seed.derive_mask("sudare key id", 0).stream(0).fill_bytes(&mut id);
        Ok(Self::expand(params, KeyId(id), coefficients))
    }

    /// A key from its name and the coefficients that its owner's file keeps.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] if they are no secret of these parameters: the wrong number, or a
    /// coefficient that the secret's distribution does not have.
    pub fn from_coefficients(params: &Params, id: KeyId, coefficients: Zeroizing<Vec<i64>>) -> Result<Self, RlweError> {
        let (limit, weight) = match params.literal().secret {
            SecretDistribution::Ternary => (1, None),
            SecretDistribution::FixedWeight { weight } => (1, Some(weight as usize)),
            SecretDistribution::Gaussian => (GaussianSampler::standard().bound(), None),
            SecretDistribution::TernarySum { parties } => (u64::from(parties), None),
        };
        let nonzero = coefficients.iter().filter(|c| **c != 0).count();
        let in_range = coefficients.iter().all(|c| c.unsigned_abs() <= limit);
        if coefficients.len() != params.degree() || !in_range || weight.is_some_and(|w| w != nonzero) {
            return Err(RlweError::Parameters {
                reason: "these coefficients do not make a secret key of this set; give those of its ring and its \
                         distribution"
                    .into(),
            });
        }
        Ok(Self::expand(params, id, coefficients))
    }

    fn expand(params: &Params, id: KeyId, coefficients: Zeroizing<Vec<i64>>) -> Self {
        let basis = params.qp_at(params.max_level());
        let s = Poly::<Coeff>::from_signed(basis, &coefficients).into_eval();
        Self { params: params.clone(), id, s, coefficients, releases: AtomicU64::new(Releases::word(None)) }
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The coefficients of s, for the owner's file. Whoever reads it reads everything.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// What was released under this key so far, if anything was.
    pub fn releases(&self) -> Option<Releases> {
        Releases::from_word(self.releases.load(Ordering::Relaxed))
    }

    /// The same key with the releases that its owner's file tells of.
    #[must_use]
    pub fn with_releases(mut self, releases: Option<Releases>) -> Self {
        *self.releases.get_mut() = Releases::word(releases);
        self
    }

    /// Takes one release of a policy: the first fixes the policy for the life of the key.
    ///
    /// # Errors
    /// [`RlweError::ReleasesUsedUp`], [`RlweError::OtherRelease`].
    pub fn take_release(&self, policy: ReleasePolicy) -> Result<(), RlweError> {
        let mut word = self.releases.load(Ordering::Relaxed);
        loop {
            let next = Releases::word(Some(Releases::next(Releases::from_word(word), policy)?));
            match self.releases.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => word = found,
            }
        }
    }

    /// Counts what another copy of the key has released too: the larger count is the key's.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`] for another key, [`RlweError::OtherRelease`] for a copy
    /// whose releases were declared otherwise.
    pub fn count_with(&self, copy: &Self) -> Result<(), RlweError> {
        self.params.hash().require("copy of a secret key", copy.params.hash())?;
        self.id.require("copy of a secret key", copy.id)?;
        let theirs = copy.releases();
        let mut word = self.releases.load(Ordering::Relaxed);
        loop {
            let larger = Releases::word(Releases::larger(Releases::from_word(word), theirs)?);
            match self.releases.compare_exchange_weak(word, larger, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => word = found,
            }
        }
    }

    /// s over Q·P.
    pub(crate) fn s(&self) -> &Poly<Eval> {
        &self.s
    }

    /// s modulo the data primes at a level.
    pub(crate) fn at_level(&self, level: usize) -> Zeroizing<Poly<Eval>> {
        Zeroizing::new(self.s.truncated(level + 1))
    }

    /// s modulo the data primes at a level and the special primes.
    pub(crate) fn extended(&self, level: usize) -> Zeroizing<Poly<Eval>> {
        let special = self.params.q().len()..self.params.q().len() + self.params.p().len();
        let limbs: Vec<usize> = (0..=level).chain(special).collect();
        Zeroizing::new(self.s.select(&limbs))
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.s.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, hidden)", self.id)
    }
}
