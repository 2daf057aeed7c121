//! Makes public and evaluation keys from a secret key.

use super::noise_poly::{error, mask};
use super::{EvalKeys, GaloisKey, KeySwitchKey, PublicKey, SecretKey};
use crate::error::HeError;
use crate::params::Params;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::random::Seed;
use sudare_ring::{Coeff, Eval, Poly, threads};
use zeroize::Zeroizing;

/// Makes keys; fresh entropy for each generator, separate streams for masks and errors.
pub struct KeyGenerator<'a> {
    secret: &'a SecretKey,
    seed: Seed,
    made: AtomicU64,
}

impl<'a> KeyGenerator<'a> {
    /// A generator with entropy of its own.
    ///
    /// # Errors
    /// [`HeError::Ring`] if the system gives none.
    pub fn new(secret: &'a SecretKey) -> Result<Self, HeError> {
        Ok(Self { secret, seed: Seed::from_entropy()?, made: AtomicU64::new(0) })
    }

    /// With entropy of the caller's choice: for known answers alone. Two generators of one seed
    /// give the secret key away.
    #[doc(hidden)]
    #[must_use]
    pub fn with_seed_for_tests(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    fn params(&self) -> &Params {
        &self.secret.params
    }

    /// The public encryption key.
    ///
    /// # Errors
    /// [`HeError::Ring`].
    pub fn public_key(&self) -> Result<PublicKey, HeError> {
        let index = self.made.fetch_add(1, Ordering::Relaxed);
        let params = self.params();
        let seed = self.seed.derive_mask("sudare mask", index);
        let a = mask(params.q(), &seed, 0);
        let mut b = a.mul(&self.secret.at_level(params.max_level()));
        b.neg_assign();
        b.add_assign(&*error(&mut self.seed.derive("sudare error", index).stream(0), params.q())?);
        Ok(PublicKey { params: params.clone(), id: self.secret.id, seed, b, a })
    }

    /// A key from `from` to `to`, both over Q·P at `level`.
    fn switch_key(
        &self,
        from: &Poly<Eval>,
        to: &Poly<Eval>,
        level: usize,
        index: u64,
    ) -> Result<KeySwitchKey, HeError> {
        let params = self.params();
        if params.p().is_empty() {
            return Err(HeError::Parameters { reason: "key switching needs special primes; give p_bits".into() });
        }
        let basis = params.qp_at(level);
        let tables = params.tables(level);
        let seed = self.seed.derive_mask("sudare mask", index);
        let errors = self.seed.derive("sudare error", index);
        let (mut all_b, mut all_a) = (Vec::new(), Vec::new());
        for (j, digit) in tables.digits.iter().enumerate() {
            let a = mask(basis, &seed, j as u64);
            let mut b = a.mul(to);
            b.neg_assign();
            b.add_assign(&*error(&mut errors.stream(j as u64), basis)?);
            for i in digit.clone() {
                basis.limb(i).mul_scalar_add(b.limb_mut(i), from.limb(i), &tables.p_mod_q[i]);
            }
            all_a.push(a);
            all_b.push(b);
        }
        Ok(KeySwitchKey::pack(params, level, seed, &all_b, &all_a))
    }

    fn check_level(&self, level: usize) -> Result<(), HeError> {
        let highest = self.params().max_level();
        if level > highest {
            return Err(HeError::NoSuchLevel { operation: "key generation", wanted: level, highest });
        }
        Ok(())
    }

    /// The relinearisation key, from s² to s, for ciphertexts up to `level`.
    ///
    /// # Errors
    /// [`HeError::NoSuchLevel`], [`HeError::Parameters`] without special primes.
    pub fn relin_key(&self, level: usize) -> Result<KeySwitchKey, HeError> {
        self.check_level(level)?;
        let s = self.secret.extended(level);
        let square = Zeroizing::new(s.mul(&s));
        self.switch_key(&square, &s, level, self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// A key from another secret of the same ring, given by its coefficients, to this one.
    ///
    /// # Errors
    /// As [`KeyGenerator::relin_key`].
    pub(crate) fn key_from(&self, coefficients: &[i64], level: usize) -> Result<KeySwitchKey, HeError> {
        self.check_level(level)?;
        let from = Poly::<Coeff>::from_signed(self.params().qp_at(level), coefficients).into_eval();
        let from = Zeroizing::new(from);
        self.switch_key(&from, &self.secret.extended(level), level, self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// The key of the automorphism X → X^`element`, for ciphertexts up to `level`.
    ///
    /// # Errors
    /// As [`KeyGenerator::relin_key`], and [`HeError::Ring`] for an element that names none.
    pub fn galois_key(&self, element: u64, level: usize) -> Result<GaloisKey, HeError> {
        self.galois_key_at(element, level, self.made.fetch_add(1, Ordering::Relaxed))
    }

    fn galois_key_at(&self, element: u64, level: usize, index: u64) -> Result<GaloisKey, HeError> {
        self.check_level(level)?;
        let n = self.params().degree();
        EvalPermutation::new(n, element)?;
        let s = self.secret.extended(level);
        let target = Zeroizing::new(s.permuted(&EvalPermutation::new(n, inverse_element(element, n))?));
        GaloisKey::from_parts(element, self.switch_key(&s, &target, level, index)?)
    }

    /// A set with the relinearisation key and the keys of `elements`, each with its level,
    /// made in parallel inside a thread pool.
    ///
    /// # Errors
    /// As [`KeyGenerator::galois_key`].
    pub fn eval_keys(&self, relin_level: Option<usize>, elements: &[(u64, usize)]) -> Result<EvalKeys, HeError> {
        let first = self.made.fetch_add(elements.len() as u64, Ordering::Relaxed);
        let keys = threads::map(elements.len(), |i| self.galois_key_at(elements[i].0, elements[i].1, first + i as u64));
        let mut set = EvalKeys::new(self.params(), self.secret.id);
        if let Some(level) = relin_level {
            set.set_relin(self.relin_key(level)?)?;
        }
        keys.into_iter().try_for_each(|key| set.insert(key?))?;
        Ok(set)
    }
}

/// g^−1 modulo 2N.
fn inverse_element(element: u64, n: usize) -> u64 {
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
