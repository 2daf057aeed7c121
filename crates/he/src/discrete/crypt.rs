//! Encryption of integers, and decryption for the key's owner.

use super::value::{Discrete, Form, check_modulus, largest_modulus, scale};
use crate::circuits::bootstrapping::{BootstrapParams, Errors};
use crate::ckks::{self, Ciphertext, EncodeAt, Encoder, Plaintext, State};
use crate::error::HeError;
use num_complex::Complex64;
use sudare_ring::wipe::Wiped;
use sudare_rlwe as rlwe;
use sudare_rlwe::Message;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{PublicKey, SecretKey};
use sudare_rlwe::noise::{NEGLIGIBLE, Noise};

/// Encrypts integers under a secret or a public key, each ciphertext from fresh entropy.
pub struct Encryptor<'a> {
    params: BootstrapParams,
    inner: rlwe::Encryptor<'a>,
}

impl<'a> Encryptor<'a> {
    /// Encrypts under a secret key: less noise, and ciphertexts that travel at half their size.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; `RlweError::Parameters` for a set without tables; `RlweError::Ring` if the system gives
    /// no entropy.
    pub fn with_secret_key(params: &BootstrapParams, key: &'a SecretKey) -> Result<Self, HeError> {
        params.layout().exponential()?;
        params.params().require("the secret key", key.params())?;
        Ok(Self { params: params.clone(), inner: rlwe::Encryptor::with_secret_key(key)? })
    }

    /// Encrypts under a public key.
    ///
    /// # Errors
    /// As [`Encryptor::with_secret_key`].
    pub fn with_public_key(params: &BootstrapParams, key: &'a PublicKey) -> Result<Self, HeError> {
        params.layout().exponential()?;
        params.params().require("the public key", key.params())?;
        Ok(Self { params: params.clone(), inner: rlwe::Encryptor::with_public_key(key)? })
    }

    /// Up to N integers below t, the rest zero: packed at the level where tables begin, split at the one where they end.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a modulus that the set has no room for, `RlweError::TooManyValues`,
    /// [`HeError::NotBelow`]; `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt(&self, values: &[u64], modulus: u64, form: Form) -> Result<Discrete, HeError> {
        let level = match form {
            Form::Packed => self.params.input_level(),
            Form::Split => self.params.output_level(),
        };
        let known = Fresh::new(&self.params, Some(self.inner.noise()), (modulus, level));
        let encrypt = |slots: &Wiped<Complex64>| {
            let plain = known.encode(&self.params, slots)?;
            Ok(Ciphertext::new(self.inner.encrypt(Message::Values(plain.poly()))?, known.state))
        };
        let slots = arranged(&self.params, values, modulus, form)?;
        let parts = slots.iter().map(encrypt).collect::<Result<Vec<_>, HeError>>()?;
        Discrete::new("encryption", parts, modulus, (0, modulus as i64 - 1), known.errors)
    }

    /// Up to N bits, the rest zero: integers modulo 4 where the set has room for them, as packed gates need it, else modulo 2.
    ///
    /// # Errors
    /// As [`Encryptor::encrypt`].
    pub fn encrypt_bits(&self, bits: &[bool], form: Form) -> Result<Discrete, HeError> {
        let most = largest_modulus(&self.params)?;
        let values: Wiped<u64> = bits.iter().map(|b| u64::from(*b)).collect::<Vec<_>>().into();
        self.encrypt(&values, if most < 4 { 2 } else { 4 }, form)?.within((0, 1))
    }
}

/// The slots of up to N integers below t, the rest zero, of each ciphertext.
pub(super) fn arranged(
    params: &BootstrapParams,
    values: &[u64],
    modulus: u64,
    form: Form,
) -> Result<Vec<Wiped<Complex64>>, HeError> {
    check_modulus(params, modulus)?;
    let degree = params.params().degree();
    if values.len() > degree {
        return Err(HeError::Rlwe(RlweError::TooManyValues { found: values.len(), capacity: degree }));
    }
    if let Some(index) = values.iter().position(|x| *x >= modulus) {
        return Err(HeError::NotBelow { what: "value", index, modulus });
    }
    let all: Wiped<f64> = (0..degree).map(|i| values.get(i).map_or(0.0, |x| *x as f64)).collect::<Vec<_>>().into();
    let (first, second) = all.split_at(degree / 2);
    let real = |half: &[f64]| half.iter().map(|x| (*x).into()).collect::<Vec<_>>().into();
    Ok(match form {
        Form::Packed => {
            let slots = first.iter().zip(second).map(|(re, im)| Complex64::new(*re, *im));
            vec![slots.collect::<Vec<_>>().into()]
        }
        Form::Split => vec![real(first), real(second)],
    })
}

/// What is known of integers modulo t that are encoded at a level, and encrypted where there is noise.
pub(super) struct Fresh {
    at: EncodeAt,
    state: State,
    pub(super) errors: Errors,
}

impl Fresh {
    pub(super) fn new(params: &BootstrapParams, noise: Option<Noise>, (modulus, level): (u64, usize)) -> Self {
        let max_abs = std::f64::consts::SQRT_2 * modulus as f64;
        let at = EncodeAt { level, scale: scale(params, modulus, level), max_abs };
        let sketch = params.params().sketch();
        let doubles = at.max_abs * at.scale * sketch.degree().log2() * f64::EPSILON;
        let all = || noise.into_iter().chain([sketch.rounding()]);
        let bound = all().map(|noise| noise.bound(&NEGLIGIBLE)).sum::<f64>() + doubles;
        let variance = all().map(|noise| noise.variance()).sum::<f64>();
        let errors = Errors::random(bound / at.scale, sketch.degree() * variance / 2.0 / at.scale.powi(2));
        Self { state: State { scale: at.scale, bound: max_abs, noise: bound }, at, errors }
    }

    pub(super) fn encode(&self, params: &BootstrapParams, slots: &Wiped<Complex64>) -> Result<Plaintext, HeError> {
        Encoder::new(params.params()).encode_complex(slots, self.at)
    }
}

/// Decrypts integers for the owner of the secret key: the nearest ones. What is decrypted is exact, so that it tells nothing
/// of the error and may be shown.
pub struct Decryptor<'a> {
    params: BootstrapParams,
    inner: ckks::Decryptor<'a>,
}

impl<'a> Decryptor<'a> {
    /// A decryptor with a secret key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn new(params: &BootstrapParams, secret: &'a SecretKey) -> Result<Self, HeError> {
        params.params().require("the secret key", secret.params())?;
        Ok(Self { params: params.clone(), inner: ckks::Decryptor::new(secret) })
    }

    /// The N integers, from 0 to t − 1.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; `RlweError::NotAsComputed` where an integer is out of the range that
    /// the value states, or farther from one than its error.
    pub fn decrypt(&self, value: &Discrete) -> Result<Vec<u64>, HeError> {
        let encoder = Encoder::new(self.params.params());
        let mut out = Vec::with_capacity(self.params.params().degree());
        for part in &value.parts {
            let slots = Wiped::from(encoder.decode_complex(&self.inner.decrypt(part)?)?);
            let real = slots.iter().map(|z| integer(value, z.re));
            let imaginary =
                slots.iter().map(|z| integer(value, z.im)).take(if value.parts.len() == 1 { slots.len() } else { 0 });
            out.extend(real.chain(imaginary).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(out)
    }
}

/// The integer modulo t that a number stands for.
fn integer(value: &Discrete, x: f64) -> Result<u64, HeError> {
    let nearest = x.round();
    let distance = (x - nearest).abs();
    let other = |what, found, expected| Err(HeError::Rlwe(RlweError::NotAsComputed { what, found, expected }));
    // Double precision's own error comes on top.
    if distance.is_nan() || distance > value.error() + 1e-6 {
        return other("error", value.error(), distance);
    }
    let (low, high) = (value.range.0 as f64, value.range.1 as f64);
    if !(low..=high).contains(&nearest) {
        return other("range", if nearest < low { low } else { high }, nearest);
    }
    Ok((nearest as i64).rem_euclid(value.modulus as i64) as u64)
}
