//! Encryption.

use super::ciphertext::Ciphertext;
use super::noise::{public_encryption_bound, secret_encryption_bound};
use super::plaintext::Plaintext;
use crate::error::HeError;
use crate::keys::noise_poly::{error, error_coefficients, mask};
use crate::keys::{ENCRYPTION, KeyId, PublicKey, SecretKey};
use crate::params::Params;
use sudare_ring::random::{Entropy, MaskSeed, ObjectSeeds, ternary};
use sudare_ring::{Coeff, Eval, Poly};
use zeroize::Zeroizing;

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
    /// [`HeError::Ring`] if the system gives no entropy.
    pub fn with_secret_key(key: &'a SecretKey) -> Result<Self, HeError> {
        Ok(Self { key: Key::Secret(key), entropy: Entropy::system()? })
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// [`HeError::Ring`] if the system gives no entropy.
    pub fn with_public_key(key: &'a PublicKey) -> Result<Self, HeError> {
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

    fn params(&self) -> &Params {
        match self.key {
            Key::Secret(k) => &k.params,
            Key::Public(k) => &k.params,
        }
    }

    fn key_id(&self) -> KeyId {
        match self.key {
            Key::Secret(k) => k.id,
            Key::Public(k) => k.id,
        }
    }

    /// Encrypts a plaintext at its level.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::TooLarge`]; [`HeError::Ring`] if the system gives no
    /// entropy.
    pub fn encrypt(&self, plaintext: &Plaintext) -> Result<Ciphertext, HeError> {
        match self.key {
            Key::Secret(_) => Ok(self.encrypt_seeded(plaintext)?.0),
            Key::Public(key) => {
                let seed = self.seeds(plaintext)?.errors;
                let level = plaintext.level;
                let basis = self.params().q_at(level);
                let n = basis.degree();
                let mut v = Zeroizing::new(vec![0i64; n]);
                ternary(&mut seed.stream(0), &mut v);
                let v = Zeroizing::new(Poly::<Coeff>::from_signed(basis, &v).into_eval());
                let mut errors = seed.stream(1);
                let mut c0 = plaintext.poly.clone();
                c0.add_assign(&*error(&mut errors, basis)?);
                let mut c1 = Poly::clone(&*error(&mut errors, basis)?);
                for (part, key) in [(&mut c0, &key.b), (&mut c1, &key.a)] {
                    sudare_ring::threads::for_each_chunk(part.words_mut(), n, |i, x| {
                        basis.limb(i).mul_add(x, v.limb(i), key.limb(i));
                    });
                }
                let noise = public_encryption_bound(self.params());
                self.finish(plaintext, vec![c0, c1], noise, None)
            }
        }
    }

    /// Encrypts under the secret key and returns the seed of c_1 too: c_0 and the seed are all
    /// that needs to travel.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt`]; [`HeError::Parameters`] on a public-key encryptor.
    pub fn encrypt_seeded(&self, plaintext: &Plaintext) -> Result<(Ciphertext, MaskSeed), HeError> {
        let Key::Secret(key) = self.key else {
            return Err(HeError::Parameters { reason: "only a secret key makes seeded ciphertexts".into() });
        };
        let ObjectSeeds { masks: seed, errors } = self.seeds(plaintext)?;
        let level = plaintext.level;
        let basis = self.params().q_at(level);
        let a = mask(basis, &seed, 0);
        let errors = error_coefficients(&mut errors.stream(1), basis.degree())?;
        let mut c0: Poly<Eval> = Poly::<Coeff>::from_signed(basis, &errors).into_eval();
        c0.add_assign(&plaintext.poly);
        let s = key.s.limb(0).len();
        // c_0 = m + e − a·s, limb by limb without a copy of s.
        sudare_ring::threads::for_each_chunk(c0.words_mut(), s, |i, x| {
            let limb = basis.limb(i);
            limb.neg_assign(x);
            limb.mul_add(x, a.limb(i), key.s.limb(i));
            limb.neg_assign(x);
        });
        let noise = secret_encryption_bound(self.params());
        Ok((self.finish(plaintext, vec![c0, a], noise, Some(seed))?, seed))
    }

    /// The seeds of one ciphertext; checks come before anything is drawn.
    fn seeds(&self, plaintext: &Plaintext) -> Result<ObjectSeeds, HeError> {
        self.params().expect("the plaintext", &plaintext.params)?;
        Ok(self.entropy.object(ENCRYPTION)?)
    }

    fn finish(
        &self,
        plaintext: &Plaintext,
        parts: Vec<Poly<Eval>>,
        noise: f64,
        seed: Option<MaskSeed>,
    ) -> Result<Ciphertext, HeError> {
        let (params, level) = (self.params().clone(), plaintext.level);
        let noise = noise + plaintext.noise;
        let out = Ciphertext {
            params,
            key: self.key_id(),
            parts,
            level,
            scale: plaintext.scale,
            bound: plaintext.bound,
            noise,
            seed,
        };
        out.check_fits("encryption")?;
        Ok(out)
    }
}

/// The second part of a seeded ciphertext.
pub(crate) fn expand_mask(params: &Params, level: usize, seed: &MaskSeed) -> Poly<Eval> {
    mask(params.q_at(level), seed, 0)
}

impl Ciphertext {
    /// A seeded ciphertext from what travels: c_0 and the seed of c_1.
    ///
    /// # Errors
    /// As [`Ciphertext::from_parts`].
    pub fn from_seeded(
        params: &Params,
        key: KeyId,
        c0: Poly<Eval>,
        seed: &MaskSeed,
        level: usize,
        state: (f64, f64, f64),
    ) -> Result<Self, HeError> {
        if level > params.max_level() {
            let (wanted, highest) = (level, params.max_level());
            return Err(HeError::NoSuchLevel { operation: "loading a ciphertext", wanted, highest });
        }
        let c1 = expand_mask(params, level, seed);
        Ok(Self { seed: Some(*seed), ..Self::from_parts(params, key, vec![c0, c1], level, state)? })
    }
}
