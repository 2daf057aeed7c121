//! Decryption for the key's owner.

use super::ciphertext::Ciphertext;
use super::plaintext::Decrypted;
use crate::error::HeError;
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::SecretKey;

/// Decrypts for the owner of the secret key.
///
/// The result of [`Decryptor::decrypt`] holds the exact error, from which the key can be
/// recovered if it is shown to whoever knows the ciphertext (Li–Micciancio, ePrint 2020/1533).
/// What leaves the owner's hands goes through [`Decryptor::decrypt_for_release`].
pub struct Decryptor<'a>(pub(super) rlwe::Decryptor<'a>);

impl<'a> Decryptor<'a> {
    /// A decryptor with a secret key.
    pub fn new(secret: &'a SecretKey) -> Self {
        Self(rlwe::Decryptor::new(secret))
    }

    /// Private decryption: for the owner's eyes.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`,
    /// `RlweError::WrongKey`.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Decrypted, HeError> {
        let params = ciphertext.params();
        // As few primes as hold the message by its static bounds: the others say nothing more.
        let needed = (ciphertext.bound * ciphertext.scale + ciphertext.noise).max(1.0).log2() + 11.0;
        let level = (0..ciphertext.level()).find(|l| params.log_q(*l) >= needed);
        let level = level.unwrap_or(ciphertext.level());
        Ok(Decrypted {
            params: params.clone(),
            poly: self.0.phase_coefficients(ciphertext.inner(), level)?,
            level,
            scale: ciphertext.scale,
            bound: ciphertext.bound,
            noise: ciphertext.noise,
            spread: super::spread::PlainSpread::UNKNOWN,
        })
    }
}
