//! The public encryption key.

use super::KeyId;
use super::noise_poly::mask;
use crate::error::HeError;
use crate::params::Params;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// An encryption of zero, (b, a) with b = −a·s + e, over all data primes; a from a seed.
#[derive(Clone, Debug)]
pub struct PublicKey {
    pub(crate) params: Params,
    pub(crate) id: KeyId,
    pub(crate) seed: MaskSeed,
    pub(crate) b: Poly<Eval>,
    pub(crate) a: Poly<Eval>,
}

impl PublicKey {
    /// Puts a key together from what travels: b and the seed of a.
    ///
    /// # Errors
    /// [`HeError::Parameters`] if `b` is not over the data primes.
    pub fn from_parts(params: &Params, id: KeyId, seed: MaskSeed, b: Poly<Eval>) -> Result<Self, HeError> {
        if b.basis() != params.q() {
            return Err(HeError::Parameters { reason: "a public key covers all data primes".into() });
        }
        let a = mask(params.q(), &seed, 0);
        Ok(Self { params: params.clone(), id, seed, b, a })
    }

    /// The name of the secret key it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// What travels: b and the seed of a.
    pub fn parts(&self) -> (&Poly<Eval>, &MaskSeed) {
        (&self.b, &self.seed)
    }
}
