//! Encryption.

use super::ciphertext::{Ciphertext, State};
use super::noise::TAIL;
use super::plaintext::Plaintext;
use super::spread::Spread;
use crate::error::HeError;
use sudare_ring::random::Entropy;
use sudare_rlwe as rlwe;
use sudare_rlwe::Message;
use sudare_rlwe::keys::{PublicKey, SecretKey};

/// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
///
/// The owner of the secret key takes [`Encryptor::with_secret_key`]. Everybody else takes [`Encryptor::with_public_key`], whose
/// noise is larger by about the square root of the ring degree.
pub struct Encryptor<'a>(rlwe::Encryptor<'a>);

impl<'a> Encryptor<'a> {
    /// Encrypts under a secret key: less noise, and a ciphertext that travels at half its size.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn with_secret_key(key: &'a SecretKey) -> Result<Self, HeError> {
        Ok(Self(rlwe::Encryptor::with_secret_key(key)?))
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn with_public_key(key: &'a PublicKey) -> Result<Self, HeError> {
        Ok(Self(rlwe::Encryptor::with_public_key(key)?))
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(self, entropy: Entropy) -> Self {
        Self(self.0.with_entropy(entropy))
    }

    /// Encrypts a plaintext at its level.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, [`HeError::TooLarge`];
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext, HeError> {
        let params = self.0.params();
        // Checks come before anything is drawn.
        params.require("the plaintext", &plaintext.params)?;
        let noise = self.0.noise().bound(&TAIL) + plaintext.noise;
        let state = State { scale: plaintext.scale, bound: plaintext.bound, noise };
        state.check_fits("encryption", params, plaintext.level)?;
        let variance = params.sketch().degree() * self.0.noise().variance() + plaintext.spread.error;
        let spread = Spread { alone: true, ..Spread::even(plaintext.bound, variance) };
        Ok(Ciphertext::new(self.0.encrypt(Message::Values(&plaintext.poly))?, state).with_spread(spread))
    }
}
