//! Decryption with powers of s.

use super::ciphertext::Ciphertext;
use super::keys::SecretKey;
use super::plaintext::Plaintext;
use sudare_he::HeError;
use sudare_ring::ops::phase_coefficients;
use sudare_ring::{Coeff, Poly};
use zeroize::Zeroizing;

/// Decrypts for the owner of the secret key.
pub struct Decryptor<'a> {
    secret: &'a SecretKey,
}

impl<'a> Decryptor<'a> {
    /// A decryptor with a secret key.
    pub fn new(secret: &'a SecretKey) -> Self {
        Self { secret }
    }

    /// [Σ c_i·s^i]_q mod t. The bounds that the ciphertext carries make it the right answer.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Plaintext, HeError> {
        let params = &self.secret.params;
        let needed = ciphertext.norms.log_modulus();
        // As few primes as hold the phase: the others say nothing more.
        let mut limbs = 1;
        while limbs < params.q().len() && params.q().prefix(limbs).log2_product() <= needed {
            limbs += 1;
        }
        let phase = self.phase(ciphertext, limbs)?;
        let residues = params.composition().modulo_t(&phase);
        Ok(Plaintext { params: params.clone(), residues })
    }

    /// Bits between the largest coefficient of the phase and q/2: what is really left, at least
    /// [`Ciphertext::margin_bits`]. It depends on the secret key, so it is for its owner alone.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`].
    pub fn budget_bits(&self, ciphertext: &Ciphertext) -> Result<f64, HeError> {
        let params = &self.secret.params;
        let phase = self.phase(ciphertext, params.q().len())?;
        Ok(params.log_q() - 1.0 - phase.log2_largest()?)
    }

    /// Σ c_i·s^i modulo the first primes of q.
    pub(super) fn phase(&self, ciphertext: &Ciphertext, limbs: usize) -> Result<Zeroizing<Poly<Coeff>>, HeError> {
        let params = &self.secret.params;
        params.require("the ciphertext", &ciphertext.params)?;
        self.secret.id.require("the ciphertext", ciphertext.key)?;
        Ok(Zeroizing::new(phase_coefficients(&ciphertext.parts, &self.secret.s, limbs)))
    }
}
