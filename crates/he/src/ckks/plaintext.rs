//! Encoded messages.

use crate::params::Params;
use sudare_ring::{Eval, Poly};
use zeroize::Zeroize;

/// An encoded vector: an integer polynomial that stands for `scale` times the message. Wiped when dropped.
#[derive(Clone, Debug)]
pub struct Plaintext {
    pub(crate) params: Params,
    pub(crate) poly: Poly<Eval>,
    pub(crate) level: usize,
    pub(crate) scale: f64,
    pub(crate) bound: f64,
    /// Bound on the canonical norm of the error, in integer units.
    pub(crate) noise: f64,
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        self.poly.zeroize();
    }
}

impl Plaintext {
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
    pub fn poly(&self) -> &Poly<Eval> {
        &self.poly
    }
}

impl Zeroize for Plaintext {
    /// Wipes the polynomial.
    fn zeroize(&mut self) {
        self.poly.zeroize();
    }
}
