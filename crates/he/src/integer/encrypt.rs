//! Encryption.

use super::ciphertext::{Ciphertext, check_fits};
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use super::scheme::Scheme;
use crate::error::HeError;
use crate::keys::noise_poly::{error, error_coefficients, mask};
use crate::keys::{ENCRYPTION, KeyId, PublicKey, SecretKey};
use std::marker::PhantomData;
use sudare_ring::random::{Entropy, MaskSeed, ObjectSeeds, ternary};
use sudare_ring::threads::for_each_chunk;
use sudare_ring::{Coeff, Eval, Poly};
use zeroize::Zeroizing;

enum Key<'a> {
    Secret(&'a SecretKey),
    Public(&'a PublicKey),
}

/// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
pub struct Encryptor<'a, S: Scheme> {
    params: IntegerParams,
    key: Key<'a>,
    entropy: Entropy,
    scheme: PhantomData<S>,
}

impl<'a, S: Scheme> Encryptor<'a, S> {
    fn new(params: &IntegerParams, key: Key<'a>) -> Result<Self, HeError> {
        let params = params.clone();
        Ok(Self { params, key, entropy: Entropy::system()?, scheme: PhantomData })
    }

    /// Encrypts under a secret key: less noise, and a ciphertext that travels at half its size.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`]; [`HeError::Ring`] if the system gives no entropy.
    pub fn with_secret_key(params: &IntegerParams, key: &'a SecretKey) -> Result<Self, HeError> {
        params.params().expect("the secret key", &key.params)?;
        Self::new(params, Key::Secret(key))
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`]; [`HeError::Ring`] if the system gives no entropy.
    pub fn with_public_key(params: &IntegerParams, key: &'a PublicKey) -> Result<Self, HeError> {
        params.params().expect("the public key", &key.params)?;
        Self::new(params, Key::Public(key))
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    fn key_id(&self) -> KeyId {
        match self.key {
            Key::Secret(k) => k.id,
            Key::Public(k) => k.id,
        }
    }

    /// Encrypts at the top level.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt_at`].
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext<S>, HeError> {
        self.encrypt_at(plaintext, self.params.params().max_level())
    }

    /// Encrypts at a level: for operands that enter a computation late.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongPlainModulus`], [`HeError::NoSuchLevel`],
    /// [`HeError::NoBudget`] where the level holds no fresh ciphertext, and [`HeError::Ring`] if the
    /// system gives no entropy.
    pub fn encrypt_at(&self, plaintext: &Plaintext, level: usize) -> Result<Ciphertext<S>, HeError> {
        let model = self.params.noise();
        let noise = model.message()
            + match self.key {
                Key::Secret(_) => model.secret_encryption(),
                Key::Public(_) => model.public_encryption(),
            };
        // Checks come before anything is drawn.
        self.params.expect("the plaintext", &plaintext.params)?;
        self.params.check_level("encryption", level)?;
        check_fits(&self.params, "encryption", level, noise)?;
        let factor = S::fresh_factor(&self.params, level);
        let seeds = self.entropy.object(ENCRYPTION)?;
        let message = plaintext.addend(level, factor);
        let (parts, seed) = match self.key {
            Key::Secret(key) => self.secret(key, message, &seeds)?,
            Key::Public(key) => self.public(key, message, &seeds)?,
        };
        let (params, key) = (self.params.clone(), self.key_id());
        Ok(Ciphertext { params, key, parts, level, factor, noise, seed, scheme: PhantomData })
    }

    /// (m + e − a·s, a), a from a seed.
    fn secret(&self, key: &SecretKey, message: Poly<Coeff>, seeds: &ObjectSeeds) -> Result<Parts, HeError> {
        let basis = message.basis().clone();
        let a = mask(&basis, &seeds.masks, 0);
        let errors = error_coefficients(&mut seeds.errors.stream(1), basis.degree())?;
        let mut c0 = message;
        c0.add_assign(&*Zeroizing::new(Poly::<Coeff>::from_signed(&basis, &errors)));
        let mut c0 = c0.into_eval();
        for_each_chunk(c0.words_mut(), basis.degree(), |i, x| {
            let limb = basis.limb(i);
            limb.neg_assign(x);
            limb.mul_add(x, a.limb(i), key.s.limb(i));
            limb.neg_assign(x);
        });
        Ok((vec![c0, a], Some(seeds.masks)))
    }

    /// (m + e_0 + v·b, e_1 + v·a), v ternary.
    fn public(&self, key: &PublicKey, message: Poly<Coeff>, seeds: &ObjectSeeds) -> Result<Parts, HeError> {
        let basis = message.basis().clone();
        let n = basis.degree();
        let mut v = Zeroizing::new(vec![0i64; n]);
        ternary(&mut seeds.errors.stream(0), &mut v);
        let v = Zeroizing::new(Poly::<Coeff>::from_signed(&basis, &v).into_eval());
        let mut errors = seeds.errors.stream(1);
        let mut c0 = message.into_eval();
        c0.add_assign(&*error(&mut errors, &basis)?);
        let mut c1 = Poly::clone(&*error(&mut errors, &basis)?);
        for (part, key) in [(&mut c0, &key.b), (&mut c1, &key.a)] {
            for_each_chunk(part.words_mut(), n, |i, x| basis.limb(i).mul_add(x, v.limb(i), key.limb(i)));
        }
        Ok((vec![c0, c1], None))
    }
}

type Parts = (Vec<Poly<Eval>>, Option<MaskSeed>);
