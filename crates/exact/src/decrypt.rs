//! Decryption and the noise budget, for the key's owner.

use super::ciphertext::Ciphertext;
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use super::scheme::Scheme;
use crate::error::ExactError;
use std::marker::PhantomData;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::SecretKey;
use zeroize::Zeroizing;

/// Decrypts for the owner of the secret key.
pub struct Decryptor<'a, S: Scheme> {
    params: IntegerParams,
    inner: rlwe::Decryptor<'a>,
    scheme: PhantomData<S>,
}

impl<'a, S: Scheme> Decryptor<'a, S> {
    /// A decryptor with a secret key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn new(params: &IntegerParams, secret: &'a SecretKey) -> Result<Self, ExactError> {
        params.rlwe().require("the secret key", secret.params())?;
        Ok(Self { params: params.clone(), inner: rlwe::Decryptor::new(secret), scheme: PhantomData })
    }

    fn check(&self, ciphertext: &Ciphertext<S>) -> Result<(), ExactError> {
        self.params.require("the ciphertext", &ciphertext.params)?;
        self.inner.check(ciphertext.inner())?;
        ciphertext.check_fits("decryption")
    }

    /// t·Σ c_i·s^i modulo q_0 … q_level.
    fn open(&self, ciphertext: &Ciphertext<S>, level: usize) -> Result<Zeroizing<Poly<Coeff>>, ExactError> {
        let mut poly = self.inner.phase_coefficients(ciphertext.inner(), level)?;
        poly.mul_scalars(self.params.t_mod_q(level));
        Ok(Zeroizing::new(poly))
    }

    /// Decrypts. The static noise bound says that the result is right, and how few primes say it:
    /// |c| ≤ t·noise, so the residues modulo the first primes that hold that are enough.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::WrongKey`.
    pub fn decrypt(&self, ciphertext: &Ciphertext<S>) -> Result<Plaintext, ExactError> {
        self.check(ciphertext)?;
        let (model, t) = (self.params.noise(), self.params.modulus());
        let needed = ciphertext.noise.max(1.0).log2() + 1.0;
        let level = (0..ciphertext.level()).find(|l| model.log_limit(*l) > needed).unwrap_or(ciphertext.level());
        let mut opened = self.open(ciphertext, level)?;
        // m = c/g modulo t.
        let coefficients = opened.modulo(t, t.inverse(ciphertext.factor)?)?;
        Ok(Plaintext { params: self.params.clone(), coefficients })
    }

    /// Bits of noise that the ciphertext could still take: log2(Q/2t) less the size of its noise.
    /// At or below zero it decrypts wrongly. Needs the secret key on purpose: a server that could
    /// compute it would have a decryption oracle.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`].
    pub fn noise_budget(&self, ciphertext: &Ciphertext<S>) -> Result<f64, ExactError> {
        self.check(ciphertext)?;
        let opened = self.open(ciphertext, ciphertext.level())?;
        // Both are t times what they stand for.
        Ok(opened.basis().log2_product() - 1.0 - opened.log2_largest()?)
    }
}
