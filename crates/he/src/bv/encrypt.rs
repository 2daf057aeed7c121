//! Encryption under the public key.

use super::ciphertext::Ciphertext;
use super::keys::{PublicKey, evaluated, gaussian};
use super::plaintext::Plaintext;
use crate::error::HeError;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::random::Seed;
use sudare_ring::threads::for_each_chunk;
use zeroize::Zeroizing;

/// Encrypts; entropy of its own, fresh streams for each ciphertext.
pub struct Encryptor<'a> {
    key: &'a PublicKey,
    seed: Seed,
    made: AtomicU64,
}

impl<'a> Encryptor<'a> {
    /// An encryptor under a public key.
    ///
    /// # Errors
    /// [`HeError::Ring`] if the system gives no entropy.
    pub fn new(key: &'a PublicKey) -> Result<Self, HeError> {
        Ok(Self { key, seed: Seed::from_entropy()?, made: AtomicU64::new(0) })
    }

    /// With entropy of the caller's choice: for known answers alone. Two encryptors of one seed
    /// give everything away.
    #[doc(hidden)]
    #[must_use]
    pub fn with_seed_for_tests(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// (p_0·u + t·g + m, p_1·u + t·f) with Gaussian u, f, g (equation 1).
    ///
    /// # Errors
    /// [`HeError::WrongParameters`].
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext, HeError> {
        let params = &self.key.params;
        params.expect("the plaintext", &plaintext.params)?;
        let seed = self.seed.derive("sudare bv encryption", self.made.fetch_add(1, Ordering::Relaxed));
        let t = params.t() as i64;
        let u = Zeroizing::new(evaluated(params, &gaussian(params, &mut seed.stream(0), 1)));
        let mut first = gaussian(params, &mut seed.stream(1), t);
        let half = t / 2;
        for (x, r) in first.iter_mut().zip(&plaintext.residues) {
            let m = *r as i64;
            *x += if m > half { m - t } else { m };
        }
        let mut c0 = evaluated(params, &first);
        let mut c1 = evaluated(params, &gaussian(params, &mut seed.stream(2), t));
        for (part, key) in [(&mut c0, &self.key.p0), (&mut c1, &self.key.p1)] {
            for_each_chunk(part.words_mut(), params.degree(), |i, x| {
                params.q().limb(i).mul_add(x, u.limb(i), key.limb(i));
            });
        }
        Ok(Ciphertext { params: params.clone(), key: self.key.id, parts: vec![c0, c1], norms: params.fresh_norms() })
    }
}
