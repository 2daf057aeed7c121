//! The public encryption key.

use crate::error::RlweError;
use crate::ids::KeyId;
use crate::params::Params;
use sudare_ring::ops::mask;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// An encryption of zero, (b, a) with b = −a·s + e, over all data primes; a from a seed, unless it comes from elsewhere.
#[derive(Clone, Debug)]
pub struct PublicKey {
    params: Params,
    id: KeyId,
    seed: Option<MaskSeed>,
    b: Poly<Eval>,
    a: Poly<Eval>,
}

impl PublicKey {
    pub(super) fn new(params: &Params, id: KeyId, seed: MaskSeed, b: Poly<Eval>, a: Poly<Eval>) -> Self {
        Self { params: params.clone(), id, seed: Some(seed), b, a }
    }

    /// Puts a key together from what travels: b and the seed of a.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] if `b` is not over the data primes.
    pub fn from_parts(params: &Params, id: KeyId, seed: MaskSeed, b: Poly<Eval>) -> Result<Self, RlweError> {
        if b.basis() != params.q() {
            return Err(RlweError::Parameters {
                reason: "the polynomials of a public key have to be over all data primes".into(),
            });
        }
        let a = mask(params.q(), &seed, 0);
        Ok(Self::new(params, id, seed, b, a))
    }

    /// Puts a key together whose a no seed stands for.
    ///
    /// # Errors
    /// As [`PublicKey::from_parts`].
    pub fn from_pair(params: &Params, id: KeyId, [b, a]: [Poly<Eval>; 2]) -> Result<Self, RlweError> {
        if a.basis() != params.q() || b.basis() != params.q() {
            return Err(RlweError::Parameters {
                reason: "the polynomials of a public key have to be over all data primes".into(),
            });
        }
        Ok(Self { params: params.clone(), id, seed: None, b, a })
    }

    /// The name of the secret key it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// (b, a).
    pub fn polys(&self) -> [&Poly<Eval>; 2] {
        [&self.b, &self.a]
    }

    /// The seed of a, where one stands for it: then b and the seed are all that needs to travel.
    pub fn seed(&self) -> Option<&MaskSeed> {
        self.seed.as_ref()
    }
}
