//! The phase of a ciphertext, which a scheme reads its message from.

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::SecretKey;
use sudare_ring::ops::phase;
use sudare_ring::{Eval, Poly};

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
        self.check(ciphertext)?;
        if level > ciphertext.level() {
            let highest = ciphertext.level();
            return Err(RlweError::NoSuchLevel { operation: "decryption", wanted: level, highest });
        }
        Ok(phase(ciphertext.parts(), self.secret.s(), level + 1))
    }
}
