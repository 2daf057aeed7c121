//! Encryption under the public key.

use super::ciphertext::Ciphertext;
use super::keys::{PublicKey, evaluated, gaussian};
use super::plaintext::Plaintext;
use sudare_he::HeError;
use sudare_ring::random::{Entropy, Purpose};
use zeroize::Zeroizing;

const ENCRYPTION: Purpose = Purpose::new("sudare bv encryption");

/// Encrypts, each ciphertext from fresh entropy.
pub struct Encryptor<'a> {
    key: &'a PublicKey,
    entropy: Entropy,
}

impl<'a> Encryptor<'a> {
    /// An encryptor under a public key.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn new(key: &'a PublicKey) -> Result<Self, HeError> {
        Ok(Self { key, entropy: Entropy::system()? })
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// (p_0·u + t·g + m, p_1·u + t·f) with Gaussian u, f, g (equation 1).
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext, HeError> {
        let params = &self.key.params;
        params.require("the plaintext", &plaintext.params)?;
        let seed = self.entropy.object(ENCRYPTION)?.errors;
        let t = params.t() as i64;
        let u = Zeroizing::new(evaluated(params, &gaussian(params, &mut seed.stream(0), 1)));
        let mut first = gaussian(params, &mut seed.stream(1), t);
        let half = t / 2;
        for (x, r) in first.iter_mut().zip(&plaintext.residues[..]) {
            let m = *r as i64;
            *x += if m > half { m - t } else { m };
        }
        let mut c0 = evaluated(params, &first);
        let mut c1 = evaluated(params, &gaussian(params, &mut seed.stream(2), t));
        c0.mul_add(&u, &self.key.p0);
        c1.mul_add(&u, &self.key.p1);
        Ok(Ciphertext { params: params.clone(), key: self.key.id, parts: vec![c0, c1], norms: params.fresh_norms() })
    }
}
