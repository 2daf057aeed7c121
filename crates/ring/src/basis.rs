//! Residue number systems: ordered lists of primes with their kernels.

use crate::error::RingError;
use crate::kernel::Limb;
use crate::modulus::Modulus;
use num_bigint::BigUint;
use std::sync::Arc;

/// An ordered list of distinct NTT-friendly primes for one ring degree.
///
/// Cloning shares the tables.
#[derive(Clone, Debug)]
pub struct RnsBasis {
    n: usize,
    limbs: Arc<[Arc<Limb>]>,
}

impl RnsBasis {
    /// Builds tables for each prime.
    ///
    /// # Errors
    /// As [`Limb::new`], and [`RingError::RepeatedModulus`].
    pub fn new(n: usize, primes: &[u64]) -> Result<Self, RingError> {
        let limbs = crate::threads::map(primes.len(), |i| Limb::new(primes[i], n).map(Arc::new));
        Self::from_limbs(n, limbs.into_iter().collect::<Result<_, _>>()?)
    }

    /// A basis of limbs that exist already.
    ///
    /// # Errors
    /// [`RingError::RepeatedModulus`], or [`RingError::Degree`] if a limb has another degree.
    pub fn from_limbs(n: usize, limbs: Vec<Arc<Limb>>) -> Result<Self, RingError> {
        for (i, limb) in limbs.iter().enumerate() {
            if limb.degree() != n {
                return Err(RingError::Degree { degree: limb.degree() });
            }
            if limbs[..i].iter().any(|l| l.q() == limb.q()) {
                return Err(RingError::RepeatedModulus { value: limb.q() });
            }
        }
        Ok(Self { n, limbs: limbs.into() })
    }

    /// The first `count` limbs.
    pub fn prefix(&self, count: usize) -> Self {
        Self { n: self.n, limbs: self.limbs[..count].into() }
    }

    /// Some of the limbs, in a given order.
    pub fn select(&self, indices: impl IntoIterator<Item = usize>) -> Self {
        Self { n: self.n, limbs: indices.into_iter().map(|i| self.limbs[i].clone()).collect() }
    }

    /// These limbs followed by those of `other`.
    ///
    /// # Errors
    /// [`RingError::RepeatedModulus`] if they share a prime, [`RingError::Degree`] if degrees differ.
    pub fn concat(&self, other: &Self) -> Result<Self, RingError> {
        Self::from_limbs(self.n, self.limbs.iter().chain(other.limbs.iter()).cloned().collect())
    }

    /// The ring degree N.
    #[inline]
    pub fn degree(&self) -> usize {
        self.n
    }

    /// Number of primes.
    #[inline]
    pub fn len(&self) -> usize {
        self.limbs.len()
    }

    /// Whether there is no prime.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.limbs.is_empty()
    }

    /// The limbs in order.
    #[inline]
    pub fn limbs(&self) -> &[Arc<Limb>] {
        &self.limbs
    }

    /// Limb `i`.
    #[inline]
    pub fn limb(&self, i: usize) -> &Limb {
        &self.limbs[i]
    }

    /// The modulus of limb `i`.
    #[inline]
    pub fn modulus(&self, i: usize) -> &Modulus {
        self.limbs[i].modulus()
    }

    /// The moduli in order.
    pub fn moduli(&self) -> impl Iterator<Item = &Modulus> + '_ {
        self.limbs.iter().map(|l| l.modulus())
    }

    /// The product of the primes modulo another.
    pub fn product_modulo(&self, modulus: &Modulus) -> u64 {
        self.primes().fold(1, |acc, q| modulus.mul(acc, q))
    }

    /// The primes in order.
    pub fn primes(&self) -> impl Iterator<Item = u64> + '_ {
        self.limbs.iter().map(|l| l.q())
    }

    /// The product of the primes.
    pub fn product(&self) -> BigUint {
        self.primes().map(BigUint::from).product()
    }

    /// log2 of the product of the primes.
    pub fn log2_product(&self) -> f64 {
        self.primes().map(|q| (q as f64).log2()).sum()
    }
}

impl PartialEq for RnsBasis {
    fn eq(&self, other: &Self) -> bool {
        self.n == other.n
            && self.len() == other.len()
            && (Arc::ptr_eq(&self.limbs, &other.limbs)
                || self.limbs.iter().zip(other.limbs.iter()).all(|(a, b)| Arc::ptr_eq(a, b) || a.q() == b.q()))
    }
}

impl Eq for RnsBasis {}
