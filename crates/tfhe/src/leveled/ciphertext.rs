//! Ciphertexts that know their noise.

use crate::keys::check_owner;
use crate::leveled::LeveledParams;
use crate::noise::variance;
use crate::{GgswCiphertext, GlweCiphertext, LweCiphertext, TfheError};
use std::fmt;
use sudare_rlwe::{KeyId, ParamsHash};

/// Parameters and key that a ciphertext belongs to; public values belong to no key.
pub(super) type Owner = (ParamsHash, Option<KeyId>);

/// The key of a result of both.
///
/// # Errors
/// `RlweError::WrongParameters`, `RlweError::WrongKey`.
pub(super) fn meet(what: &'static str, expected: Owner, found: Owner) -> Result<Owner, TfheError> {
    let key = expected.1.or(found.1);
    if let Some(key) = key {
        check_owner(what, (expected.0, expected.1.unwrap_or(key)), (found.0, found.1.unwrap_or(key)))?;
    } else {
        expected.0.require(what, found.0)?;
    }
    Ok((expected.0, key))
}

/// A GLWE ciphertext with a bound of its noise variance.
#[derive(Clone)]
pub struct LeveledGlwe {
    pub(super) c: GlweCiphertext,
    pub(super) variance: f64,
    pub(super) owner: Owner,
}

impl LeveledGlwe {
    /// A ciphertext from its parts: a bound of its noise variance, its parameters' hash and its key's name in `owner`.
    pub fn from_parts(c: GlweCiphertext, variance: f64, owner: (ParamsHash, Option<KeyId>)) -> Self {
        Self { c, variance, owner }
    }

    /// The ciphertext.
    pub fn ciphertext(&self) -> &GlweCiphertext {
        &self.c
    }

    /// Bound of the variance of each coefficient's noise, as a fraction of q².
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Its parameters' hash and its key's name; `None` for a public value.
    pub fn owner(&self) -> (ParamsHash, Option<KeyId>) {
        self.owner
    }

    /// The LWE ciphertext of coefficient `at`.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if `at` is not below N.
    pub fn extract(&self, at: usize) -> Result<LeveledLwe, TfheError> {
        Ok(LeveledLwe { c: self.c.extract(at)?, variance: self.variance, owner: self.owner })
    }
}

impl fmt::Debug for LeveledGlwe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeveledGlwe({:?}, noise 2^{:.1})", self.c, 0.5 * self.variance.log2())
    }
}

/// An LWE ciphertext at rest with a bound of its noise variance.
#[derive(Clone)]
pub struct LeveledLwe {
    pub(super) c: LweCiphertext,
    pub(super) variance: f64,
    pub(super) owner: Owner,
}

impl LeveledLwe {
    /// A ciphertext from its parts, like [`LeveledGlwe::from_parts`].
    pub fn from_parts(c: LweCiphertext, variance: f64, owner: (ParamsHash, Option<KeyId>)) -> Self {
        Self { c, variance, owner }
    }

    /// The ciphertext.
    pub fn ciphertext(&self) -> &LweCiphertext {
        &self.c
    }

    /// Bound of the variance of its noise, as a fraction of q².
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Its parameters' hash and its key's name; `None` for a public value.
    pub fn owner(&self) -> (ParamsHash, Option<KeyId>) {
        self.owner
    }
}

impl fmt::Debug for LeveledLwe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeveledLwe({:?}, noise 2^{:.1})", self.c, 0.5 * self.variance.log2())
    }
}

/// What a product with a GGSW ciphertext adds to the noise variance, by its causes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectorNoise {
    /// Digits of the body times the errors of its rows.
    pub body: f64,
    /// Digits of the masks times the errors of theirs.
    pub masks: f64,
    /// What the decomposition rounds away, if the message is one.
    pub rounding: f64,
}

impl SelectorNoise {
    /// That of a fresh encryption.
    pub fn fresh(params: &LeveledParams) -> Self {
        let (context, gadget) = (params.context(), params.gadget());
        Self {
            body: variance::rows(context, gadget, 1),
            masks: variance::rows(context, gadget, context.rank()),
            rounding: variance::rounding(context, gadget),
        }
    }

    /// What a product with a uniform ciphertext adds on average, if the message is one.
    pub fn expected(&self) -> f64 {
        self.body + self.masks + self.rounding
    }

    /// What any product adds at most: the body's digits may be those of a public polynomial, all at
    /// the end of their range, whose mean square is three times that of uniform ones; the masks are
    /// zero then.
    pub fn bound(&self) -> f64 {
        (self.body + self.masks).max(3.0 * self.body) + self.rounding
    }
}

/// An encrypted bit that selects: a GGSW ciphertext and what a product with it adds to the noise.
#[derive(Clone)]
pub struct Selector {
    ggsw: GgswCiphertext,
    noise: SelectorNoise,
    owner: (ParamsHash, KeyId),
}

impl Selector {
    /// A selector from its parts: parameters' hash and key's name in `owner`.
    pub fn from_parts(ggsw: GgswCiphertext, noise: SelectorNoise, owner: (ParamsHash, KeyId)) -> Self {
        Self { ggsw, noise, owner }
    }

    /// The GGSW ciphertext.
    pub fn ggsw(&self) -> &GgswCiphertext {
        &self.ggsw
    }

    /// What a product with it adds to the noise.
    pub fn noise(&self) -> &SelectorNoise {
        &self.noise
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        self.owner
    }

    pub(super) fn as_owner(&self) -> Owner {
        (self.owner.0, Some(self.owner.1))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({:?}, adds 2^{:.1})", self.ggsw, 0.5 * self.noise.bound().log2())
    }
}
