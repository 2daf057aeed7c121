//! The phase of a ciphertext, which a scheme reads its message from.

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::SecretKey;
use sudare_ring::ops::{phase, phase_coefficients};
use sudare_ring::{Coeff, Eval, Poly};

/// Computes phases for the owner of the secret key.
#[derive(Clone, Copy, Debug)]
pub struct Decryptor<'a> {
    secret: &'a SecretKey,
}

impl<'a> Decryptor<'a> {
    /// A decryptor with a secret key.
    pub fn new(secret: &'a SecretKey) -> Self {
        Self { secret }
    }

    /// The secret key.
    pub fn secret(&self) -> &'a SecretKey {
        self.secret
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`].
    pub fn check(&self, ciphertext: &Ciphertext) -> Result<(), RlweError> {
        self.secret.params().require("the ciphertext", ciphertext.params())?;
        self.secret.id().require("the ciphertext", ciphertext.key())
    }

    /// Σ_i c_i·s^i modulo the primes of a level, at most the ciphertext's: the message and its error, for the
    /// owner's eyes.
    ///
    /// # Errors
    /// As [`Decryptor::check`], and [`RlweError::NoSuchLevel`].
    pub fn phase(&self, ciphertext: &Ciphertext, level: usize) -> Result<Poly<Eval>, RlweError> {
        self.check_level(ciphertext, level)?;
        Ok(phase(ciphertext.parts(), self.secret.s(), level + 1))
    }

    /// [`Decryptor::phase`] in coefficient form, which messages are read from: in one pass.
    ///
    /// # Errors
    /// As [`Decryptor::phase`].
    pub fn phase_coefficients(&self, ciphertext: &Ciphertext, level: usize) -> Result<Poly<Coeff>, RlweError> {
        self.check_level(ciphertext, level)?;
        Ok(phase_coefficients(ciphertext.parts(), self.secret.s(), level + 1))
    }

    fn check_level(&self, ciphertext: &Ciphertext, level: usize) -> Result<(), RlweError> {
        self.check(ciphertext)?;
        if level > ciphertext.level() {
            let highest = ciphertext.level();
            return Err(RlweError::NoSuchLevel { operation: "decryption", wanted: level, highest });
        }
        Ok(())
    }
}
