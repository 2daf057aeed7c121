//! LWE secret keys and ciphertexts, modulo the ring's prime and modulo 2^32.

use crate::core::context::check_shape;
use crate::{NoiseSampler, SecretKind, TfheError};
use std::fmt;
use sudare_ring::Modulus;
use sudare_ring::random::{Stream, uniform};
use zeroize::Zeroizing;

/// An LWE secret key: zeroised when dropped, neither cloned nor printed.
pub struct LweSecretKey {
    kind: SecretKind,
    s: Zeroizing<Vec<i64>>,
}

impl LweSecretKey {
    /// Draws a key of `dimension` coefficients.
    pub fn generate(dimension: usize, kind: SecretKind, stream: &mut Stream) -> Self {
        let mut s = Zeroizing::new(vec![0; dimension]);
        kind.sample(stream, &mut s);
        Self { kind, s }
    }

    /// A key from its coefficients.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a coefficient that the distribution does not have.
    pub fn from_coefficients(kind: SecretKind, s: Zeroizing<Vec<i64>>) -> Result<Self, TfheError> {
        let low = if kind == SecretKind::Binary { 0 } else { -1 };
        if s.iter().any(|x| !(low..=1).contains(x)) {
            return Err(TfheError::Parameters {
                reason: "these coefficients do not make a secret key of this kind; give 0 and 1 for a binary one, −1 \
                         to 1 for a ternary one"
                    .into(),
            });
        }
        Ok(Self { kind, s })
    }

    /// The dimension n.
    pub fn dimension(&self) -> usize {
        self.s.len()
    }

    /// The distribution it was drawn from.
    pub fn kind(&self) -> SecretKind {
        self.kind
    }

    /// The coefficients, for the owner's file and for key generation. Whoever reads them reads everything.
    pub fn coefficients(&self) -> &[i64] {
        &self.s
    }

    /// Encrypts `message` in `[0, q)` modulo q.
    pub fn encrypt(
        &self,
        q: &Modulus,
        message: u64,
        noise: &NoiseSampler,
        masks: &mut Stream,
        errors: &mut Stream,
    ) -> LweCiphertext {
        let mut words = vec![0; self.dimension() + 1];
        let (body, mask) = split_mut(&mut words);
        uniform(masks, q, mask);
        let mut e = Zeroizing::new([0i64]);
        noise.sample(errors, &mut *e);
        *body = q.add(q.add(q.reduce_i64(e[0]), q.reduce(message)), self.inner(q, mask));
        LweCiphertext { modulus: *q, words }
    }

    /// `Σ a_i·s_i` modulo q, in time that does not depend on s.
    fn inner(&self, q: &Modulus, mask: &[u64]) -> u64 {
        // |Σ| is below q·n, which fits i128 and makes the sum positive. Divisions take as long as their
        // operands ask for, so this one is a product with the reciprocal.
        let sum = mask.iter().zip(self.s.iter()).fold(0i128, |sum, (a, s)| sum + i128::from(*a as i64 * *s));
        q.reduce_u128((sum + i128::from(q.value()) * mask.len() as i128) as u128)
    }

    /// The phase `b − Σ a_i·s_i` modulo q: message plus noise.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another dimension.
    pub fn phase(&self, c: &LweCiphertext) -> Result<u64, TfheError> {
        check_shape("LWE dimension", self.dimension(), c.dimension())?;
        Ok(c.modulus.sub(c.body(), self.inner(&c.modulus, c.mask())))
    }

    /// The phase of a ciphertext modulo 2^32.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another dimension.
    pub fn phase_torus(&self, c: &TorusLwe) -> Result<u32, TfheError> {
        check_shape("LWE dimension", self.dimension(), c.dimension())?;
        Ok(c.body().wrapping_sub(self.inner_torus(c.mask())))
    }

    pub(crate) fn inner_torus(&self, mask: &[u32]) -> u32 {
        mask.iter().zip(self.s.iter()).fold(0, |sum: u32, (a, s)| sum.wrapping_add(a.wrapping_mul(*s as u32)))
    }
}

/// Body (the last word) and mask of a ciphertext's words; there is always a body.
fn split_mut(words: &mut [u64]) -> (&mut u64, &mut [u64]) {
    let (mask, body) = words.split_at_mut(words.len() - 1);
    (&mut body[0], mask)
}

/// An LWE ciphertext modulo q: mask `a_1 … a_n` and body `b = Σ a_i·s_i + m + e`.
#[derive(Clone, PartialEq, Eq)]
pub struct LweCiphertext {
    modulus: Modulus,
    /// The mask, then the body.
    words: Vec<u64>,
}

impl LweCiphertext {
    /// The noiseless encryption of a public value under every key.
    pub fn trivial(q: &Modulus, dimension: usize, message: u64) -> Self {
        let mut words = vec![0; dimension + 1];
        words[dimension] = q.reduce(message);
        Self { modulus: *q, words }
    }

    /// A ciphertext from its words, mask first.
    ///
    /// # Errors
    /// [`TfheError::Shape`] without a body, `RlweError::Ring` for a word that is not below q.
    pub fn from_words(q: &Modulus, words: Vec<u64>) -> Result<Self, TfheError> {
        if words.is_empty() {
            return Err(TfheError::Shape { what: "LWE words", expected: 1, found: 0 });
        }
        if let Some(index) = words.iter().position(|w| *w >= q.value()) {
            return Err(sudare_ring::RingError::Coefficient { limb: 0, index }.into());
        }
        Ok(Self { modulus: *q, words })
    }

    /// The modulus.
    pub fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The dimension n.
    pub fn dimension(&self) -> usize {
        self.words.len() - 1
    }

    /// The mask.
    pub fn mask(&self) -> &[u64] {
        &self.words[..self.words.len() - 1]
    }

    /// The body.
    pub fn body(&self) -> u64 {
        self.words[self.words.len() - 1]
    }

    /// Mask and body, one after the other.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    fn check(&self, other: &Self) -> Result<(), TfheError> {
        if self.modulus != other.modulus {
            return Err(TfheError::Modulus { expected: self.modulus.value(), found: other.modulus.value() });
        }
        check_shape("LWE dimension", self.dimension(), other.dimension())
    }

    /// `self += other`.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`].
    pub fn add_assign(&mut self, other: &Self) -> Result<(), TfheError> {
        self.check(other)?;
        self.words.iter_mut().zip(&other.words).for_each(|(x, y)| *x = self.modulus.add(*x, *y));
        Ok(())
    }

    /// `self −= other`.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`].
    pub fn sub_assign(&mut self, other: &Self) -> Result<(), TfheError> {
        self.check(other)?;
        self.words.iter_mut().zip(&other.words).for_each(|(x, y)| *x = self.modulus.sub(*x, *y));
        Ok(())
    }

    /// `self = −self`.
    pub fn neg_assign(&mut self) {
        self.words.iter_mut().for_each(|x| *x = self.modulus.neg(*x));
    }

    /// `self = factor·self`.
    pub fn mul_assign(&mut self, factor: i64) {
        let w = self.modulus.shoup(self.modulus.reduce_i64(factor));
        self.words.iter_mut().for_each(|x| *x = self.modulus.mul_shoup(*x, &w));
    }

    /// Adds a public value to the message.
    pub fn add_plain(&mut self, message: u64) {
        let q = self.modulus;
        let (body, _) = split_mut(&mut self.words);
        *body = q.add(*body, q.reduce(message));
    }
}

impl fmt::Debug for LweCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LweCiphertext(n = {}, q = {})", self.dimension(), self.modulus.value())
    }
}

/// An LWE ciphertext modulo 2^32, the form between a key switch and a blind rotation.
#[derive(Clone, PartialEq, Eq)]
pub struct TorusLwe {
    /// The mask, then the body.
    words: Vec<u32>,
}

impl TorusLwe {
    /// A ciphertext from its words, mask first.
    ///
    /// # Errors
    /// [`TfheError::Shape`] without a body.
    pub fn from_words(words: Vec<u32>) -> Result<Self, TfheError> {
        if words.is_empty() {
            return Err(TfheError::Shape { what: "LWE words", expected: 1, found: 0 });
        }
        Ok(Self { words })
    }

    /// Encrypts `message` (a fraction of 2^32).
    pub fn encrypt(
        key: &LweSecretKey,
        message: u32,
        noise: &NoiseSampler,
        masks: &mut Stream,
        errors: &mut Stream,
    ) -> Self {
        let mut words = vec![0u32; key.dimension() + 1];
        fill_torus(masks, &mut words[..key.dimension()]);
        let mut e = Zeroizing::new([0i64]);
        noise.sample(errors, &mut *e);
        let inner = key.inner_torus(&words[..key.dimension()]);
        words[key.dimension()] = inner.wrapping_add(message).wrapping_add(e[0] as u32);
        Self { words }
    }

    /// The dimension n.
    pub fn dimension(&self) -> usize {
        self.words.len() - 1
    }

    /// The mask.
    pub fn mask(&self) -> &[u32] {
        &self.words[..self.words.len() - 1]
    }

    /// Mask and body, one after the other.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The body.
    pub fn body(&self) -> u32 {
        self.words[self.words.len() - 1]
    }

    /// Rounds to the exponents of a blind rotation, modulo 2N.
    ///
    /// What rounding drops from the mask meets the secret; the part that meets the secret's mean
    /// is public and is taken off the body first (the mean-compensated switch), which for binary
    /// secrets halves the variance.
    ///
    /// # Panics
    /// If `two_n` is no power of two below 2^32.
    pub fn switch_modulus(&self, two_n: usize, secret: SecretKind) -> RotationExponents {
        let log = two_n.trailing_zeros();
        assert!(two_n.is_power_of_two() && (1..32).contains(&log));
        let shift = 32 - log;
        let half = 1u32 << (shift - 1);
        let mut dropped = 0i64;
        let mask = self
            .mask()
            .iter()
            .map(|a| {
                let rounded = a.wrapping_add(half) >> shift;
                dropped += i64::from(a.wrapping_sub(rounded << shift) as i32);
                rounded
            })
            .collect();
        let body = match secret {
            SecretKind::Binary => self.body().wrapping_sub((dropped >> 1) as u32),
            SecretKind::Ternary => self.body(),
        };
        RotationExponents { mask, body: body.wrapping_add(half) >> shift }
    }

    /// The same to odd exponents, which blind rotation by automorphisms takes: rounding of the mask is of twice the
    /// width.
    ///
    /// # Panics
    /// If `two_n` is no power of two from 2 to 2^31.
    pub fn switch_modulus_odd(&self, two_n: usize, secret: SecretKind) -> RotationExponents {
        let log = two_n.trailing_zeros();
        assert!(two_n.is_power_of_two() && (1..32).contains(&log));
        let shift = 32 - log;
        let mut dropped = 0i64;
        let mask = self.mask().iter().map(|a| {
            let odd = (a >> shift) | 1;
            dropped += i64::from(a.wrapping_sub(odd << shift) as i32);
            odd
        });
        let mask = mask.collect();
        let body = match secret {
            SecretKind::Binary => self.body().wrapping_sub((dropped >> 1) as u32),
            SecretKind::Ternary => self.body(),
        };
        RotationExponents { mask, body: body.wrapping_add(1 << (shift - 1)) >> shift }
    }
}

impl fmt::Debug for TorusLwe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TorusLwe(n = {})", self.dimension())
    }
}

/// Uniform words of a mask stream: four little-endian bytes each.
pub(crate) fn fill_torus(masks: &mut Stream, out: &mut [u32]) {
    let mut bytes = vec![0u8; 4 * out.len()];
    masks.fill_bytes(&mut bytes);
    for (x, b) in out.iter_mut().zip(bytes.chunks_exact(4)) {
        *x = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    }
}

/// An LWE ciphertext modulo 2N: the exponents of a blind rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationExponents {
    /// The mask, values below 2N.
    pub mask: Vec<u32>,
    /// The body, below 2N.
    pub body: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Against the plain remainder.
    fn check(value: u64, mask: Vec<u64>, s: Vec<i64>) {
        let q = Modulus::new(value).unwrap();
        let sum: i128 = mask.iter().zip(&s).map(|(a, s)| i128::from(*a) * i128::from(*s)).sum();
        let key = LweSecretKey::from_coefficients(SecretKind::Ternary, Zeroizing::new(s)).unwrap();
        assert_eq!(key.inner(&q, &mask), sum.rem_euclid(i128::from(value)) as u64, "modulo {value}");
    }

    #[test]
    fn inner_products_at_the_edges() {
        for value in [3, 12289, (1 << 47) + 5, (1 << 61) - 1] {
            for n in [0, 1, 2, 3, 8192] {
                for a in [0, 1, value / 2, value - 1] {
                    for s in [-1, 0, 1] {
                        check(value, vec![a; n], vec![s; n]);
                    }
                    // Sums of zero, of a multiple of q, of one more and one less.
                    for last in [0, 1, value - a, (value - a).saturating_sub(1)] {
                        for s in [-1, 1] {
                            check(value, vec![a, last % value], vec![1, s]);
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn random_inner_products(q in 1u64..1 << 60, words in prop::collection::vec((any::<u64>(), -1i64..=1), 1..50)) {
            let (mask, s) = words.into_iter().map(|(a, s)| (a % (2 * q + 1), s)).unzip();
            check(2 * q + 1, mask, s);
        }
    }
}
