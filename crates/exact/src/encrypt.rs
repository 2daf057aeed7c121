//! Encryption.

use super::ciphertext::{Ciphertext, State, check_fits};
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use super::scheme::Scheme;
use crate::error::ExactError;
use std::marker::PhantomData;
use sudare_ring::random::Entropy;
use sudare_rlwe as rlwe;
use sudare_rlwe::Message;
use sudare_rlwe::keys::{PublicKey, SecretKey};
use sudare_rlwe::noise::NEGLIGIBLE;

/// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
pub struct Encryptor<'a, S: Scheme> {
    params: IntegerParams,
    inner: rlwe::Encryptor<'a>,
    scheme: PhantomData<S>,
}

impl<'a, S: Scheme> Encryptor<'a, S> {
    fn new(params: &IntegerParams, inner: rlwe::Encryptor<'a>) -> Self {
        Self { params: params.clone(), inner, scheme: PhantomData }
    }

    /// Encrypts under a secret key: less noise, and a ciphertext that travels at half its size.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; `RlweError::Ring` if the system gives no entropy.
    pub fn with_secret_key(params: &IntegerParams, key: &'a SecretKey) -> Result<Self, ExactError> {
        params.rlwe().require("the secret key", key.params())?;
        Ok(Self::new(params, rlwe::Encryptor::with_secret_key(key)?))
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; `RlweError::Ring` if the system gives no entropy.
    pub fn with_public_key(params: &IntegerParams, key: &'a PublicKey) -> Result<Self, ExactError> {
        params.rlwe().require("the public key", key.params())?;
        Ok(Self::new(params, rlwe::Encryptor::with_public_key(key)?))
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(self, entropy: Entropy) -> Self {
        Self { inner: self.inner.with_entropy(entropy), ..self }
    }

    /// Encrypts at the top level.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt_at`].
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext<S>, ExactError> {
        self.encrypt_at(plaintext, self.params.max_level())
    }

    /// Encrypts at a level: for operands that enter a computation late.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::NoSuchLevel`,
    /// `RlweError::NoBudget` where the level holds no fresh ciphertext, and `RlweError::Ring` if the
    /// system gives no entropy.
    pub fn encrypt_at(&self, plaintext: &Plaintext, level: usize) -> Result<Ciphertext<S>, ExactError> {
        let noise = self.params.noise().message() + self.inner.noise().bound(&NEGLIGIBLE);
        // Checks come before anything is drawn.
        self.params.require("the plaintext", &plaintext.params)?;
        self.params.expect_level("encryption", level)?;
        check_fits(&self.params, "encryption", level, noise)?;
        let factor = S::fresh_factor(&self.params, level);
        let inner = self.inner.encrypt(Message::Coefficients(plaintext.addend(level, factor)))?;
        Ok(Ciphertext::new(&self.params, inner, State { factor, noise }))
    }
}
