//! Decryption and the noise budget, for the key's owner.

use super::ciphertext::Ciphertext;
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use super::scheme::Scheme;
use crate::error::HeError;
use num_bigint::BigUint;
use std::marker::PhantomData;
use sudare_ring::kernel::round_quotients;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::{RlweError, inverse};
use zeroize::Zeroizing;

/// Decrypts for the owner of the secret key.
pub struct Decryptor<'a, S: Scheme> {
    params: IntegerParams,
    inner: rlwe::Decryptor<'a>,
    scheme: PhantomData<S>,
}

impl<'a, S: Scheme> Decryptor<'a, S> {
    /// A decryptor with a secret key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn new(params: &IntegerParams, secret: &'a SecretKey) -> Result<Self, HeError> {
        params.rlwe().expect("the secret key", secret.params())?;
        Ok(Self { params: params.clone(), inner: rlwe::Decryptor::new(secret), scheme: PhantomData })
    }

    fn check(&self, ciphertext: &Ciphertext<S>) -> Result<(), HeError> {
        self.params.expect("the ciphertext", &ciphertext.params)?;
        self.inner.check(ciphertext.inner())?;
        ciphertext.check_fits("decryption")
    }

    /// t·Σ c_i·s^i modulo q_0 … q_level.
    fn open(&self, ciphertext: &Ciphertext<S>, level: usize) -> Result<Zeroizing<Poly<Coeff>>, HeError> {
        let mut poly = self.inner.phase(ciphertext.inner(), level)?.into_coeff();
        poly.mul_scalars(self.params.t_mod_q(level));
        Ok(Zeroizing::new(poly))
    }

    /// Decrypts. The static noise bound says that the result is right, and how few primes say it:
    /// |c| ≤ t·noise, so the residues modulo the first primes that hold that are enough.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, [`HeError::WrongPlainModulus`], `RlweError::WrongKey`.
    pub fn decrypt(&self, ciphertext: &Ciphertext<S>) -> Result<Plaintext, HeError> {
        self.check(ciphertext)?;
        let (model, t) = (self.params.noise(), self.params.modulus());
        let needed = ciphertext.noise.max(1.0).log2() + 1.0;
        let level = (0..ciphertext.level()).find(|l| model.log_limit(*l) > needed).unwrap_or(ciphertext.level());
        let mut opened = self.open(ciphertext, level)?;
        // m = c/g modulo t, from c = Σ y_i·(Q/q_i) − v·Q with y_i = [c·(Q/q_i)^−1] modulo q_i.
        let basis = self.params.q_at(level).clone();
        let n = basis.degree();
        let unfactor = t.inverse(ciphertext.factor)?;
        let product = t.mul(self.params.q_mod_t(level), unfactor);
        let mut weights = Vec::with_capacity(basis.len());
        for (i, limb) in basis.limbs().iter().enumerate() {
            let m = limb.modulus();
            let others = || basis.primes().enumerate().filter(|(j, _)| *j != i).map(|(_, q)| q);
            let hat = others().fold(1, |acc, q| m.mul(acc, q));
            let y = &mut opened.limb_mut(i);
            limb.mul_scalar(y, &m.shoup(inverse(m, hat)?));
            weights.push(others().fold(unfactor, |acc, q| t.mul(acc, q)));
        }
        let mut quotient = Zeroizing::new(vec![0; n]);
        let rows: Vec<&[u64]> = (0..basis.len()).map(|i| opened.limb(i)).collect();
        let reciprocal: Vec<f64> = basis.primes().map(|q| 1.0 / q as f64).collect();
        round_quotients(&mut quotient, &rows, &reciprocal);
        let minus = t.neg(product);
        let mut coefficients = vec![0; n];
        for (k, out) in coefficients.iter_mut().enumerate() {
            let mut sum = u128::from(quotient[k]) * u128::from(minus);
            for (row, w) in rows.iter().zip(&weights) {
                // Each term is below 2^121.
                sum += u128::from(row[k]) * u128::from(*w);
                if sum >> 127 != 0 {
                    sum = u128::from(t.reduce_u128(sum));
                }
            }
            *out = t.reduce_u128(sum);
        }
        Ok(Plaintext { params: self.params.clone(), coefficients })
    }

    /// Bits of noise that the ciphertext could still take: log2(Q/2t) less the size of its noise.
    /// At or below zero it decrypts wrongly. Needs the secret key on purpose: a server that could
    /// compute it would have a decryption oracle.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`].
    pub fn noise_budget(&self, ciphertext: &Ciphertext<S>) -> Result<f64, HeError> {
        let (largest, modulus) = self.largest_noise(ciphertext)?;
        // Both are t times what they stand for.
        let log2 = |x: &BigUint| {
            let shift = x.bits().saturating_sub(60);
            let head: u64 = (x >> shift).try_into().unwrap_or(u64::MAX);
            (head.max(1) as f64).log2() + shift as f64
        };
        Ok(log2(&modulus) - 1.0 - log2(&largest))
    }

    /// The largest coefficient of c and Q.
    fn largest_noise(&self, ciphertext: &Ciphertext<S>) -> Result<(BigUint, BigUint), HeError> {
        self.check(ciphertext)?;
        let opened = self.open(ciphertext, ciphertext.level())?;
        let basis = opened.basis();
        let modulus = basis.product();
        let hats: Vec<BigUint> = basis
            .limbs()
            .iter()
            .map(|l| {
                let hat = &modulus / l.q();
                let residue = (&hat % l.q()).iter_u64_digits().next().unwrap_or(0);
                Ok(hat * inverse(l.modulus(), residue)?)
            })
            .collect::<Result<_, RlweError>>()?;
        let half = &modulus / 2u32;
        let mut largest = BigUint::ZERO;
        for k in 0..basis.degree() {
            let sum: BigUint = hats.iter().enumerate().map(|(i, hat)| hat * opened.limb(i)[k]).sum();
            let x = sum % &modulus;
            largest = largest.max(if x > half { &modulus - x } else { x });
        }
        Ok((largest, modulus))
    }
}
