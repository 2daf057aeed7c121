//! Ciphertexts, without what a scheme says of their message.

use crate::error::RlweError;
use crate::ids::KeyId;
use crate::params::Params;
use std::borrow::Cow;
use std::fmt;
use sudare_ring::ops::mask;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// Parts over the primes of a level with the phase Σ_i c_i·s^i: two, or three after a product. A
/// scheme's ciphertext has one, and what it says of the message beside it.
#[derive(Clone)]
pub struct Ciphertext {
    params: Params,
    key: KeyId,
    parts: Vec<Poly<Eval>>,
    level: usize,
    /// The seed that c_1 is expanded from, as long as it is.
    seed: Option<MaskSeed>,
}

impl Ciphertext {
    /// Of parts that are over the primes of the level.
    pub(crate) fn new(params: &Params, key: KeyId, parts: Vec<Poly<Eval>>, level: usize) -> Self {
        debug_assert!(parts.iter().all(|p| p.basis() == params.q_at(level)));
        Self { params: params.clone(), key, parts, level, seed: None }
    }

    /// Puts a ciphertext together from what travels.
    ///
    /// # Errors
    /// [`RlweError::NoSuchLevel`]; [`RlweError::Degree`] unless there are two or three parts;
    /// [`RlweError::Parameters`] for parts over other primes.
    pub fn from_parts(params: &Params, key: KeyId, parts: Vec<Poly<Eval>>, level: usize) -> Result<Self, RlweError> {
        let operation = "loading a ciphertext";
        params.expect_level(operation, level)?;
        if !(2..=3).contains(&parts.len()) {
            return Err(RlweError::Degree { operation, expected: 2, found: parts.len() });
        }
        if parts.iter().any(|p| p.basis() != params.q_at(level)) {
            return Err(RlweError::Parameters {
                reason: "the ciphertext's parts are not over the primes of its level".into(),
            });
        }
        Ok(Self::new(params, key, parts, level))
    }

    /// A seeded ciphertext from what travels: c_0 and the seed of c_1.
    ///
    /// # Errors
    /// As [`Ciphertext::from_parts`].
    pub fn from_seeded(
        params: &Params,
        key: KeyId,
        c0: Poly<Eval>,
        seed: &MaskSeed,
        level: usize,
    ) -> Result<Self, RlweError> {
        params.expect_level("loading a ciphertext", level)?;
        let c1 = mask(params.q_at(level), seed, 0);
        Ok(Self::from_parts(params, key, vec![c0, c1], level)?.with_seed(Some(*seed)))
    }

    /// A noiseless encryption of zero: the start of a sum.
    ///
    /// # Errors
    /// [`RlweError::NoSuchLevel`].
    pub fn zero(params: &Params, key: KeyId, level: usize) -> Result<Self, RlweError> {
        params.expect_level("an encryption of zero", level)?;
        let basis = params.q_at(level);
        Ok(Self::new(params, key, vec![Poly::zero(basis), Poly::zero(basis)], level))
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

    /// The parts alone.
    pub fn into_parts(self) -> Vec<Poly<Eval>> {
        self.parts
    }

    /// c_0 and c_1.
    pub fn both(&self) -> [&Poly<Eval>; 2] {
        [&self.parts[0], &self.parts[1]]
    }

    /// The parts for writing.
    pub(crate) fn parts_mut(&mut self) -> &mut Vec<Poly<Eval>> {
        self.seed = None;
        &mut self.parts
    }

    /// c_0 for writing.
    pub(crate) fn first_mut(&mut self) -> &mut Poly<Eval> {
        &mut self.parts[0]
    }

    /// The same, c_1 being what the seed stands for.
    pub(crate) fn with_seed(self, seed: Option<MaskSeed>) -> Self {
        Self { seed, ..self }
    }

    /// The index of the last prime: how many can still be dropped.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The seed of c_1, where c_1 is what a seed stands for: then c_0 and the seed are all that needs to
    /// travel. True of a fresh ciphertext under a secret key, and as long as c_1 only loses primes.
    pub fn seed(&self) -> Option<MaskSeed> {
        self.seed
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Poly::bytes).sum()
    }

    /// Other parts at a level, of the same parameters and key.
    #[must_use]
    pub fn with_parts(&self, parts: Vec<Poly<Eval>>, level: usize) -> Self {
        Self::new(&self.params, self.key, parts, level)
    }

    /// The same at a lower level, by dropping primes; without a copy if it is there already.
    pub(crate) fn at_level(&self, level: usize) -> Cow<'_, Self> {
        if level == self.level {
            return Cow::Borrowed(self);
        }
        let parts = self.parts.iter().map(|p| p.truncated(level + 1)).collect();
        Cow::Owned(self.with_parts(parts, level).with_seed(self.seed))
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Ciphertext(N = {}, {} parts, level {}/{}, key {})",
            self.params.degree(),
            self.parts.len(),
            self.level,
            self.params.max_level(),
            self.key
        )
    }
}

/// A polynomial at a lower level, without a copy if it is there already.
pub(crate) fn at_level(p: &Poly<Eval>, level: usize) -> Cow<'_, Poly<Eval>> {
    match p.basis().len() == level + 1 {
        true => Cow::Borrowed(p),
        false => Cow::Owned(p.truncated(level + 1)),
    }
}
