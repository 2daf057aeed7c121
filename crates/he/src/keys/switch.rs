//! Key-switching keys.

use super::noise_poly::mask;
use crate::error::HeError;
use crate::params::Params;
use std::sync::Arc;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// A hybrid key-switching key from s' to s: for each digit j the pair (b_j, a_j) over Q·P with
/// b_j = −a_j·s + e_j + P·g_j·s', g_j ≡ 1 modulo the primes of digit j and 0 modulo the others.
/// Serves ciphertexts up to its level.
#[derive(Clone, Debug)]
pub struct KeySwitchKey {
    pub(crate) params: Params,
    pub(crate) level: usize,
    pub(crate) seed: MaskSeed,
    pub(crate) b: Vec<Poly<Eval>>,
    pub(crate) a: Vec<Poly<Eval>>,
}

impl KeySwitchKey {
    /// Puts a key together from what travels: its level, the b_j, and the seed of the a_j.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`], or [`HeError::Parameters`] if the b_j are too few, too many or
    /// over other primes.
    pub fn from_parts(params: &Params, level: usize, seed: MaskSeed, b: Vec<Poly<Eval>>) -> Result<Self, HeError> {
        if level > params.max_level() {
            let (wanted, highest) = (level, params.max_level());
            return Err(HeError::NoSuchLevel { operation: "key switching", wanted, highest });
        }
        let basis = params.qp_at(level);
        if params.p().is_empty() || b.len() != params.digits_at(level) || b.iter().any(|p| p.basis() != basis) {
            return Err(HeError::Parameters {
                reason: format!(
                    "a key-switching key has {} digits over all primes of its level",
                    params.digits_at(level)
                ),
            });
        }
        let a = (0..b.len() as u64).map(|j| mask(basis, &seed, j)).collect();
        Ok(Self { params: params.clone(), level, seed, b, a })
    }

    /// The highest level of the ciphertexts it serves.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// What travels: the b_j and the seed of the a_j.
    pub fn parts(&self) -> (&[Poly<Eval>], &MaskSeed) {
        (&self.b, &self.seed)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.b.iter().chain(&self.a).map(|p| p.words().len() * 8).sum()
    }

    /// Bytes of such a key in memory, before there is one; on the wire it is half.
    pub fn bytes_at(params: &Params, level: usize) -> usize {
        2 * 8 * params.degree() * params.digits_at(level) * params.qp_at(level).len()
    }
}

/// The key of one automorphism X → X^g.
///
/// It switches from s to ψ_g^−1(s), so that the automorphism itself is applied after the inner
/// product, once, and hoisted digits serve every g (Bossuat et al., ePrint 2020/1203; `004`,
/// section 3.2).
#[derive(Clone, Debug)]
pub struct GaloisKey {
    pub(crate) element: u64,
    pub(crate) key: KeySwitchKey,
    pub(crate) permutation: Arc<EvalPermutation>,
}

impl GaloisKey {
    /// Puts a key together.
    ///
    /// # Errors
    /// [`HeError::Ring`] if `element` is no Galois element of the ring.
    pub fn from_parts(element: u64, key: KeySwitchKey) -> Result<Self, HeError> {
        let permutation = Arc::new(EvalPermutation::new(key.params.degree(), element)?);
        Ok(Self { element, key, permutation })
    }

    /// g.
    pub fn element(&self) -> u64 {
        self.element
    }

    /// The key-switching key inside.
    pub fn key(&self) -> &KeySwitchKey {
        &self.key
    }
}
