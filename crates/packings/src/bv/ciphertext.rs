//! Ciphertexts of growing length.

use super::noise::Norms;
use super::params::Params;
use crate::error::parameters;
use std::fmt;
use sudare_he::HeError;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::KeyId;

/// Parts (c_0, …, c_ξ) that decrypt as [Σ c_i·s^i]_q mod t, in evaluation form, with static
/// bounds on the phase.
#[derive(Clone)]
pub struct Ciphertext {
    pub(super) params: Params,
    pub(super) key: KeyId,
    pub(super) parts: Vec<Poly<Eval>>,
    pub(super) norms: Norms,
}

impl Ciphertext {
    /// An encryption of zero without noise: the start of a sum.
    pub fn zero(params: &Params, key: KeyId) -> Self {
        let parts = vec![Poly::zero(params.q()), Poly::zero(params.q())];
        Self { params: params.clone(), key, parts, norms: Norms::ZERO }
    }

    /// Puts a ciphertext together from what travels. The norms must bound its phase.
    ///
    /// # Errors
    /// [`HeError::TooManyParts`], `RlweError::Parameters` for fewer than two parts, parts over other
    /// primes or norms that are no numbers of zero and more, [`HeError::MayDecryptWrongly`].
    pub fn from_parts(params: &Params, key: KeyId, parts: Vec<Poly<Eval>>, norms: Norms) -> Result<Self, HeError> {
        let operation = "loading a ciphertext";
        params.check_length(operation, parts.len())?;
        if parts.len() < 2 || parts.iter().any(|p| p.basis() != params.q()) {
            return Err(parameters("a ciphertext needs at least two parts, over all primes of q"));
        }
        if !(norms.max >= 0.0 && norms.euclid >= norms.max && norms.euclid.is_finite()) {
            return Err(parameters("the norms of a phase have to be finite, with 0 ≤ max ≤ euclid"));
        }
        params.check(operation, norms)?;
        Ok(Self { params: params.clone(), key, parts, norms })
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Its parts.
    pub fn parts(&self) -> &[Poly<Eval>] {
        &self.parts
    }

    /// Number of parts: two fresh, one more for each product in it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Static bounds on its phase.
    pub fn norms(&self) -> Norms {
        self.norms
    }

    /// Bits between the bound on the phase and q/2: what is certainly left, above zero.
    pub fn margin_bits(&self) -> f64 {
        self.params.log_q() - self.norms.log_modulus()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Poly::bytes).sum()
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bv::Ciphertext(N = {}, {} parts, {:.1} bits left, key {})",
            self.params.degree(),
            self.len(),
            self.margin_bits(),
            self.key
        )
    }
}
