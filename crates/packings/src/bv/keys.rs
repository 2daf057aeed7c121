//! The secret key and the public key.

use super::params::Params;
use crate::error::parameters;
use std::fmt;
use sudare_he::HeError;
use sudare_ring::ops::mask;
use sudare_ring::random::{MaskSeed, Seed, Stream};
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::KeyId;
use zeroize::{Zeroize, Zeroizing};

/// A Gaussian polynomial's coefficients, times a factor.
pub(super) fn gaussian(params: &Params, stream: &mut Stream, factor: i64) -> Zeroizing<Vec<i64>> {
    let mut out = Zeroizing::new(vec![0i64; params.degree()]);
    params.sampler().sample(stream, &mut out);
    if factor != 1 {
        // At most 2^48 · 832.
        out.iter_mut().for_each(|x| *x *= factor);
    }
    out
}

/// Coefficients in evaluation form.
pub(super) fn evaluated(params: &Params, coefficients: &[i64]) -> Poly<Eval> {
    Poly::<Coeff>::from_signed(params.q(), coefficients).into_eval()
}

/// The secret key s: zeroised when dropped, neither cloned nor printed.
pub struct SecretKey {
    pub(super) params: Params,
    pub(super) id: KeyId,
    pub(super) s: Poly<Eval>,
    /// The seed of the public key.
    seed: Seed,
}

impl SecretKey {
    /// Draws a key from the operating system's entropy.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives none.
    pub fn generate(params: &Params) -> Result<Self, HeError> {
        Ok(Self::from_seed(params, &Seed::from_entropy()?))
    }

    /// The key that a seed stands for in this parameter set; in any other it stands for another.
    pub fn from_seed(params: &Params, seed: &Seed) -> Self {
        let seed = params.hash().bind(seed, "bv");
        let s = gaussian(params, &mut seed.derive("sudare bv secret", 0).stream(0), 1);
        let mut id = [0u8; 16];
        seed.derive_mask("sudare bv key id", 0).stream(0).fill_bytes(&mut id);
        Self { params: params.clone(), id: KeyId(id), s: evaluated(params, &s), seed }
    }

    /// The public key (p_0, p_1) with p_0 = −(p_1·s + t·e). It is the same every time: a second
    /// one would tell no more, and noise bounds are for one.
    ///
    /// # Errors
    /// `RlweError::Ring`.
    pub fn public_key(&self) -> Result<PublicKey, HeError> {
        let params = &self.params;
        let seed = self.seed.derive_mask("sudare bv mask", 0);
        let p1 = mask(params.q(), &seed, 0);
        let e = gaussian(params, &mut self.seed.derive("sudare bv public key", 0).stream(0), params.t() as i64);
        let mut p0 = p1.mul(&self.s);
        p0.add_assign(&*Zeroizing::new(evaluated(params, &e)));
        p0.neg_assign();
        Ok(PublicKey { params: params.clone(), id: self.id, seed, p0, p1 })
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.s.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bv::SecretKey({}, hidden)", self.id)
    }
}

/// The public key; see [`SecretKey::public_key`].
#[derive(Clone, Debug)]
pub struct PublicKey {
    pub(super) params: Params,
    pub(super) id: KeyId,
    pub(super) seed: MaskSeed,
    pub(super) p0: Poly<Eval>,
    pub(super) p1: Poly<Eval>,
}

impl PublicKey {
    /// Puts a key together from what travels: p_0 and the seed of p_1.
    ///
    /// # Errors
    /// `RlweError::Parameters` if `p0` is not over the primes of q.
    pub fn from_parts(params: &Params, id: KeyId, seed: MaskSeed, p0: Poly<Eval>) -> Result<Self, HeError> {
        if p0.basis() != params.q() {
            return Err(parameters("the polynomial of a public key has to be over all primes of q"));
        }
        let p1 = mask(params.q(), &seed, 0);
        Ok(Self { params: params.clone(), id, seed, p0, p1 })
    }

    /// The part that travels: p_0 and the seed of p_1.
    pub fn parts(&self) -> (&Poly<Eval>, &MaskSeed) {
        (&self.p0, &self.seed)
    }

    /// The name of the secret key it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }
}
