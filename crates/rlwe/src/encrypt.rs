//! Encryption of raw messages: what every scheme's encryptor does with its own encoding.

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::ids::KeyId;
use crate::keys::{PublicKey, SecretKey};
use crate::noise::Noise;
use crate::params::Params;
use crate::sample::{error, error_coefficients};
use sudare_ring::ops::mask;
use sudare_ring::random::{Entropy, ObjectSeeds, Purpose, ternary};
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// Fresh ciphertexts of every scheme over these keys.
pub const ENCRYPTION: Purpose = Purpose { masks: "sudare mask", errors: "sudare encryption" };

/// A polynomial over the primes of a level, as it is added to a ciphertext.
pub enum Message<'a> {
    /// In evaluation form.
    Values(&'a Poly<Eval>),
    /// In coefficient form, which saves the error a transform of its own.
    Coefficients(Poly<Coeff>),
}

impl Message<'_> {
    fn basis(&self) -> &RnsBasis {
        match self {
            Self::Values(m) => m.basis(),
            Self::Coefficients(m) => m.basis(),
        }
    }

    /// Message and error together.
    fn plus(self, errors: &[i64]) -> Poly<Eval> {
        let errors = Poly::<Coeff>::from_signed(self.basis(), errors);
        match self {
            Self::Values(m) => {
                let mut sum = errors.into_eval();
                sum.add_assign(m);
                sum
            }
            Self::Coefficients(mut m) => {
                m.add_assign(&*Zeroizing::new(errors));
                m.into_eval()
            }
        }
    }
}

enum Key<'a> {
    Secret(&'a SecretKey),
    Public(&'a PublicKey),
}

/// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
pub struct Encryptor<'a> {
    key: Key<'a>,
    entropy: Entropy,
}

impl<'a> Encryptor<'a> {
    /// Encrypts under a secret key: less noise, and a ciphertext that travels at half its size.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if the system gives no entropy.
    pub fn with_secret_key(key: &'a SecretKey) -> Result<Self, RlweError> {
        Ok(Self { key: Key::Secret(key), entropy: Entropy::system()? })
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if the system gives no entropy.
    pub fn with_public_key(key: &'a PublicKey) -> Result<Self, RlweError> {
        Ok(Self { key: Key::Public(key), entropy: Entropy::system()? })
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// The parameters of its key.
    pub fn params(&self) -> &Params {
        match self.key {
            Key::Secret(k) => k.params(),
            Key::Public(k) => k.params(),
        }
    }

    /// The name of the secret key.
    pub fn key(&self) -> KeyId {
        match self.key {
            Key::Secret(k) => k.id(),
            Key::Public(k) => k.id(),
        }
    }

    /// Noise of a fresh ciphertext, without the message's own.
    pub fn noise(&self) -> Noise {
        match self.key {
            Key::Secret(_) => self.params().sketch().secret_encryption(),
            Key::Public(_) => self.params().sketch().public_encryption(),
        }
    }

    /// Encrypts a message at the level whose primes it is over.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] for a message over other primes; [`RlweError::Ring`] if the system
    /// gives no entropy.
    pub fn encrypt(&self, message: Message<'_>) -> Result<Ciphertext, RlweError> {
        let params = self.params();
        let basis = message.basis().clone();
        let level = basis.len().wrapping_sub(1);
        if level > params.max_level() || basis != *params.q_at(level) {
            return Err(RlweError::Parameters {
                reason: "the polynomial of a message has to be over the primes of a level".into(),
            });
        }
        let seeds = self.entropy.object(ENCRYPTION)?;
        let (parts, seed) = match self.key {
            Key::Secret(key) => (under_secret_key(key, message, &basis, &seeds), Some(seeds.masks)),
            Key::Public(key) => (under_public_key(key, message, &basis, &seeds), None),
        };
        Ok(Ciphertext::new(params, self.key(), parts, level).with_seed(seed))
    }
}

/// (m + e − a·s, a), a from a seed.
fn under_secret_key(key: &SecretKey, message: Message<'_>, basis: &RnsBasis, seeds: &ObjectSeeds) -> Vec<Poly<Eval>> {
    let a = mask(basis, &seeds.masks, 0);
    let mut c0 = message.plus(&error_coefficients(&mut seeds.errors.stream(1), basis.degree()));
    c0.mul_sub(&a, key.s());
    vec![c0, a]
}

/// (m + e_0 + v·b, e_1 + v·a), v ternary.
fn under_public_key(key: &PublicKey, message: Message<'_>, basis: &RnsBasis, seeds: &ObjectSeeds) -> Vec<Poly<Eval>> {
    let n = basis.degree();
    let mut v = Wiped::<i64>::zeros(n);
    ternary(&mut seeds.errors.stream(0), &mut v);
    let v = Zeroizing::new(Poly::<Coeff>::from_signed(basis, &v).into_eval());
    let mut errors = seeds.errors.stream(1);
    let c0 = message.plus(&error_coefficients(&mut errors, n));
    let c1 = Poly::clone(&*error(&mut errors, basis));
    let mut parts = vec![c0, c1];
    for (part, key) in parts.iter_mut().zip(key.polys()) {
        part.mul_add(&v, key);
    }
    parts
}
