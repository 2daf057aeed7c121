//! Encoded messages.

use super::ciphertext::State;
use super::spread::PlainSpread;
use crate::error::{HeError, parameters};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use sudare_rlwe::Params;
use zeroize::{Zeroize, Zeroizing};

/// An encoded vector: an integer polynomial that stands for `scale` times the message. Wiped when dropped.
#[derive(Clone, Debug)]
pub struct Plaintext<P: Zeroize = Poly<Eval>> {
    pub(crate) params: Params,
    pub(crate) poly: P,
    pub(crate) level: usize,
    pub(crate) scale: f64,
    pub(crate) bound: f64,
    /// Bound on the canonical norm of the error, in integer units.
    pub(crate) noise: f64,
    pub(crate) spread: PlainSpread,
}

/// What a decryption gives: the polynomial in coefficient form, which slots are decoded from. Wiped when dropped.
pub type Decrypted = Plaintext<Poly<Coeff>>;

/// A polynomial that slots can be decoded from.
pub trait Decodable: Zeroize {
    /// Its primes.
    fn basis(&self) -> &RnsBasis;
    /// Hands the coefficients modulo the first `limbs` primes to `read`; a copy is wiped.
    fn read<T>(&self, limbs: usize, read: impl FnOnce(&Poly<Coeff>) -> T) -> T;
}

impl Decodable for Poly<Eval> {
    fn basis(&self) -> &RnsBasis {
        self.basis()
    }

    fn read<T>(&self, limbs: usize, read: impl FnOnce(&Poly<Coeff>) -> T) -> T {
        read(&Zeroizing::new(self.first_to_coeff(limbs)))
    }
}

impl Decodable for Poly<Coeff> {
    fn basis(&self) -> &RnsBasis {
        self.basis()
    }

    fn read<T>(&self, limbs: usize, read: impl FnOnce(&Poly<Coeff>) -> T) -> T {
        match limbs == self.basis().len() {
            true => read(self),
            false => read(&Zeroizing::new(self.truncated(limbs))),
        }
    }
}

impl<P: Zeroize> Drop for Plaintext<P> {
    fn drop(&mut self) {
        self.poly.zeroize();
    }
}

impl Plaintext {
    /// Puts a plaintext together: a polynomial over the primes of a level, and what it stands for.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a polynomial over other primes, and for a scale, bound or noise that is not a finite
    /// number above zero.
    pub fn from_parts(params: &Params, poly: Poly<Eval>, state: State) -> Result<Self, HeError> {
        state.check()?;
        let level = poly.basis().len().wrapping_sub(1);
        if level > params.max_level() || poly.basis() != params.q_at(level) {
            return Err(parameters("the polynomial of a plaintext has to be over the primes of a level"));
        }
        let State { scale, bound, noise } = state;
        Ok(Self { params: params.clone(), poly, level, scale, bound, noise, spread: PlainSpread::UNKNOWN })
    }
}

impl Decrypted {
    /// The same in the form that ciphertexts meet: to compute with it, to encrypt it or to store it.
    pub fn encoded(&self) -> Plaintext {
        Plaintext {
            params: self.params.clone(),
            poly: self.poly.clone().into_eval(),
            level: self.level,
            scale: self.scale,
            bound: self.bound,
            noise: self.noise,
            spread: self.spread,
        }
    }
}

impl<P: Zeroize> Plaintext<P> {
    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Its level: the index of its last prime.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Declared bound on the absolute values of its slots.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Replaces the bound by one that the caller knows; it must hold.
    #[must_use]
    pub fn with_bound(mut self, bound: f64) -> Self {
        self.bound = bound;
        self
    }

    /// Static bound on the error of a slot, in units of the message.
    pub fn error_bound(&self) -> f64 {
        self.noise / self.scale
    }

    /// The polynomial.
    pub fn poly(&self) -> &P {
        &self.poly
    }
}

impl<P: Zeroize> Zeroize for Plaintext<P> {
    /// Wipes the polynomial.
    fn zeroize(&mut self) {
        self.poly.zeroize();
    }
}
