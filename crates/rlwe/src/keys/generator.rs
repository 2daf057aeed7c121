//! Makes public and evaluation keys from a secret key.

use super::{EvalKeys, GaloisKey, KeySwitchKey, PUBLISHED_KEY, PublicKey, SecretKey};
use crate::error::RlweError;
use crate::params::Params;
use crate::sample::{error, zero};
use crate::switching::NO_SPECIAL_PRIMES;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::mask;
use sudare_ring::random::{Entropy, ObjectSeeds};
use sudare_ring::{Coeff, Eval, Poly, threads};
use zeroize::Zeroizing;

/// Makes keys, each from fresh entropy, with separate streams for masks and errors.
///
/// A key serves ciphertexts up to its level, and takes memory in proportion to it: ask for the highest level at which it is
/// used.
///
/// ```
/// use sudare_rlwe::keys::{KeyGenerator, KeySource, SecretKey};
/// use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
/// use sudare_rlwe::security::{SecretDistribution, Security};
///
/// # fn main() -> Result<(), sudare_rlwe::RlweError> {
/// let literal = ParamsLiteral {
///     log_n: 12,
///     q_bits: vec![35, 35],
///     p_bits: vec![35],
///     digit_limbs: 1,
///     secret: SecretDistribution::Ternary,
///     security: Security::Bits128,
/// };
/// let params = literal.build(SchemeTag(1))?;
/// let secret = SecretKey::generate(&params)?;
/// // Products at level 1, rotations to the left by one at level 0.
/// let left = params.rotation_element(1);
/// let keys = KeyGenerator::new(&secret)?.eval_keys(Some(1), &[(left, 0)])?;
/// assert_eq!((keys.relin_level(), keys.galois_level(left)), (Some(1), Some(0)));
/// # Ok(())
/// # }
/// ```
pub struct KeyGenerator<'a> {
    secret: &'a SecretKey,
    entropy: Entropy,
}

impl<'a> KeyGenerator<'a> {
    /// A generator of keys for a secret key.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if the system gives none.
    pub fn new(secret: &'a SecretKey) -> Result<Self, RlweError> {
        Ok(Self { secret, entropy: Entropy::system()? })
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
        self.secret.params()
    }

    /// The public encryption key, over all data primes.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if the system gives no entropy.
    pub fn public_key(&self) -> Result<PublicKey, RlweError> {
        let params = self.params();
        let ObjectSeeds { masks: seed, errors } = self.entropy.object(PUBLISHED_KEY)?;
        let a = mask(params.q(), &seed, 0);
        let b = zero(&a, &self.secret.at_level(params.max_level()), &error(&mut errors.stream(0), params.q()));
        Ok(PublicKey::new(params, self.secret.id(), seed, b, a))
    }

    /// A key from `from` to `to`, both over Q·P at `level`.
    fn switch_key(
        &self,
        from: &Poly<Eval>,
        to: &Poly<Eval>,
        level: usize,
        seeds: &ObjectSeeds,
    ) -> Result<KeySwitchKey, RlweError> {
        let params = self.params();
        if params.p().is_empty() {
            return Err(RlweError::Parameters { reason: NO_SPECIAL_PRIMES.into() });
        }
        let basis = params.qp_at(level);
        let (mut all_b, mut all_a) = (Vec::new(), Vec::new());
        for j in 0..params.digits_at(level) {
            let a = mask(basis, &seeds.masks, j as u64);
            let mut b = zero(&a, to, &error(&mut seeds.errors.stream(j as u64), basis));
            params.tables(level).gadget.add_digit(j, &mut b, from);
            all_a.push(a);
            all_b.push(b);
        }
        Ok(KeySwitchKey::pack(params, level, Some(seeds.masks), &all_b, &all_a))
    }

    fn check_level(&self, level: usize) -> Result<(), RlweError> {
        self.params().expect_level("key generation", level)
    }

    /// The relinearisation key, from s² to s, for ciphertexts up to `level`.
    ///
    /// # Errors
    /// [`RlweError::NoSuchLevel`], [`RlweError::Parameters`] without special primes.
    pub fn relin_key(&self, level: usize) -> Result<KeySwitchKey, RlweError> {
        self.relin_key_from(level, &self.entropy.object(PUBLISHED_KEY)?)
    }

    fn relin_key_from(&self, level: usize, seeds: &ObjectSeeds) -> Result<KeySwitchKey, RlweError> {
        self.check_level(level)?;
        let s = self.secret.extended(level);
        let square = Zeroizing::new(s.mul(&s));
        self.switch_key(&square, &s, level, seeds)
    }

    /// A key from another secret of the same ring, given by its coefficients, to this one.
    ///
    /// # Errors
    /// As [`KeyGenerator::relin_key`].
    pub fn key_from(&self, coefficients: &[i64], level: usize) -> Result<KeySwitchKey, RlweError> {
        self.check_level(level)?;
        let from = Poly::<Coeff>::from_signed(self.params().qp_at(level), coefficients).into_eval();
        let from = Zeroizing::new(from);
        self.switch_key(&from, &self.secret.extended(level), level, &self.entropy.object(PUBLISHED_KEY)?)
    }

    /// Keys of a linear map Σ_i ψ_i(m_i·x) of what another secret of the same ring, given by its coefficients, decrypts: for each
    /// Galois element the pair (−a·s' + e + m_i·`from`, a) modulo Q·P of a level, with the s' that ψ_i takes to s. The m_i are
    /// public, over these primes. A product with c_1 is under s after the automorphism, and P times what it stands for where m_i
    /// is P times what is meant.
    ///
    /// # Errors
    /// As [`KeyGenerator::galois_key`], those of `multiple`; [`RlweError::Parameters`] unless the level has one digit.
    pub fn map_keys<E: From<RlweError> + Send>(
        &self,
        coefficients: &[i64],
        level: usize,
        elements: &[u64],
        multiple: impl Fn(usize) -> Result<Poly<Eval>, E> + Sync + Send,
    ) -> Result<Vec<GaloisKey>, E> {
        self.check_level(level)?;
        let (params, n) = (self.params(), self.params().degree());
        let basis = params.qp_at(level);
        if params.p().is_empty() || params.digits_at(level) != 1 {
            return Err(E::from(RlweError::Parameters { reason: "the keys of a map have one digit".into() }));
        }
        let from = Zeroizing::new(Poly::<Coeff>::from_signed(basis, coefficients).into_eval());
        let s = self.secret.extended(level);
        let batch = self.entropy.batch(PUBLISHED_KEY, elements.len()).map_err(RlweError::from)?;
        let key = |i: usize| -> Result<GaloisKey, E> {
            let (seeds, inverse) = (batch.seeds(i), inverse_element(elements[i], n));
            let target = Zeroizing::new(s.permuted(&EvalPermutation::new(n, inverse).map_err(RlweError::from)?));
            let a = mask(basis, &seeds.masks, 0);
            let mut b = zero(&a, &target, &error(&mut seeds.errors.stream(0), basis));
            b.mul_add(&multiple(i)?, &from);
            let key = KeySwitchKey::pack(params, level, Some(seeds.masks), &[b], &[a]);
            Ok(GaloisKey::from_parts(elements[i], key)?)
        };
        threads::map_alone(elements.len(), key).into_iter().collect()
    }

    /// The key of the automorphism X → X^`element`, for ciphertexts up to `level`.
    ///
    /// # Errors
    /// As [`KeyGenerator::relin_key`], and [`RlweError::Ring`] for an element that names none.
    pub fn galois_key(&self, element: u64, level: usize) -> Result<GaloisKey, RlweError> {
        self.galois_key_from(element, level, &self.entropy.object(PUBLISHED_KEY)?)
    }

    fn galois_key_from(&self, element: u64, level: usize, seeds: &ObjectSeeds) -> Result<GaloisKey, RlweError> {
        self.check_level(level)?;
        let n = self.params().degree();
        EvalPermutation::new(n, element)?;
        let s = self.secret.extended(level);
        let target = Zeroizing::new(s.permuted(&EvalPermutation::new(n, inverse_element(element, n))?));
        GaloisKey::from_parts(element, self.switch_key(&s, &target, level, seeds)?)
    }

    /// A set with the relinearisation key and the keys of `elements`, each with its level,
    /// made in parallel inside a thread pool.
    ///
    /// # Errors
    /// As [`KeyGenerator::galois_key`].
    pub fn eval_keys(&self, relin_level: Option<usize>, elements: &[(u64, usize)]) -> Result<EvalKeys, RlweError> {
        let count = elements.len();
        let batch = self.entropy.batch(PUBLISHED_KEY, count + usize::from(relin_level.is_some()))?;
        let keys = threads::map_alone(count, |i| self.galois_key_from(elements[i].0, elements[i].1, &batch.seeds(i)));
        let mut set = EvalKeys::new(self.params(), self.secret.id());
        if let Some(level) = relin_level {
            set.set_relin(self.relin_key_from(level, &batch.seeds(count))?)?;
        }
        keys.into_iter().try_for_each(|key| set.insert(key?))?;
        Ok(set)
    }
}

/// g^−1 modulo 2N.
pub(crate) fn inverse_element(element: u64, n: usize) -> u64 {
    // The group of odd residues modulo 2N has exponent dividing N/2.
    let order = 2 * n as u64;
    let (mut result, mut square, mut e) = (1u64, element % order, n as u64 / 2 - 1);
    while e > 0 {
        if e & 1 == 1 {
            result = result * square % order;
        }
        square = square * square % order;
        e >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::inverse_element;

    #[test]
    fn inverses() {
        for n in [512usize, 1 << 14, 1 << 17] {
            for g in [1, 3, 5, 25, 2 * n as u64 - 1, n as u64 + 1] {
                assert_eq!(g * inverse_element(g, n) % (2 * n as u64), 1);
            }
        }
    }
}
