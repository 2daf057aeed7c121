//! Decryption for the key's owner.

use super::ciphertext::Ciphertext;
use super::plaintext::Plaintext;
use crate::error::HeError;
use crate::keys::SecretKey;
use sudare_ring::threads::for_each_chunk;
use sudare_ring::{Eval, Poly};

/// Decrypts for the owner of the secret key.
///
/// The result of [`Decryptor::decrypt`] holds the exact error, from which the key can be
/// recovered if it is shown to whoever knows the ciphertext (Li–Micciancio, ePrint 2020/1533).
/// What leaves the owner's hands goes through [`Decryptor::decrypt_for_release`].
pub struct Decryptor<'a> {
    pub(super) secret: &'a SecretKey,
}

impl<'a> Decryptor<'a> {
    /// A decryptor with a secret key.
    pub fn new(secret: &'a SecretKey) -> Self {
        Self { secret }
    }

    /// Private decryption: for the owner's eyes.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`].
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Plaintext, HeError> {
        self.check(ciphertext)?;
        let params = &self.secret.params;
        // As few primes as hold the message by its static bounds: the others say nothing more.
        let needed = (ciphertext.bound * ciphertext.scale + ciphertext.noise).max(1.0).log2() + 11.0;
        let mut level = 0;
        while level < ciphertext.level && params.q_at(level).log2_product() < needed {
            level += 1;
        }
        Ok(Plaintext {
            params: params.clone(),
            poly: self.phase(ciphertext, level),
            level,
            scale: ciphertext.scale,
            bound: ciphertext.bound,
            noise: ciphertext.noise,
        })
    }

    /// Refuses a ciphertext of other parameters or under another key.
    pub(super) fn check(&self, ciphertext: &Ciphertext) -> Result<(), HeError> {
        self.secret.params.expect("the ciphertext", &ciphertext.params)?;
        if ciphertext.key != self.secret.id {
            let (found, expected) = (ciphertext.key, self.secret.id);
            return Err(HeError::WrongKey { what: "the ciphertext", found, expected });
        }
        Ok(())
    }

    /// Σ_i c_i·s^i modulo the primes of a level.
    pub(super) fn phase(&self, ciphertext: &Ciphertext, level: usize) -> Poly<Eval> {
        let basis = self.secret.params.q_at(level);
        // Horner in s, without a copy of s or of the parts.
        let mut parts = ciphertext.parts.iter().rev();
        let mut poly = match parts.next() {
            Some(last) => last.truncated(level + 1),
            None => Poly::zero(basis),
        };
        for part in parts {
            for_each_chunk(poly.words_mut(), basis.degree(), |i, x| {
                basis.limb(i).mul_assign(x, self.secret.s.limb(i));
                basis.limb(i).add_assign(x, part.limb(i));
            });
        }
        poly
    }
}
