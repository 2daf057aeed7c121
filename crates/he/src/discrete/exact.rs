//! Coefficients of BFV and BGV ciphertexts into tables.
//!
//! At level l such a ciphertext has the phase (Q_l/t)·x + v with x ≡ κ·m modulo t, κ a unit that both sides know: at level 0 that is where a
//! table begins. m ↦ f(m) is read as x ↦ f(x/κ), so that every plaintext factor of both schemes is free.
//!
//! Plaintext moduli share the keys of the ring: t is bound to the primes of the set for tables (`IntegerParams::new` of its
//! [`BootstrapParams::params`]), and ciphertexts are under the same secret.

use super::coefficients::{Coefficients, turn};
use super::evaluator::Evaluator;
use super::value::check_modulus;
use crate::circuits::bootstrapping::BootstrapParams;
use crate::error::HeError;
use sudare_exact::{Ciphertext, ExactError, Scheme};
use sudare_rlwe::RlweError;

/// The Galois element whose key at level 0 [`Evaluator::from_exact`] takes.
pub fn entry_element(params: &BootstrapParams) -> u64 {
    turn(params)[0]
}

impl Evaluator {
    /// The coefficients of a BFV or BGV ciphertext of two parts as integers modulo its t: coefficient [`place`](super::place)(N, i) is integer i.
    /// The scheme's evaluator has the key of [`entry_element`] at level 0.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey` for a ciphertext over other primes or under another key;
    /// `RlweError::Parameters` for a t that the set has no room for; `RlweError::MissingRotationKey`; [`HeError::Exact`] and `RlweError::NoBudget` where
    /// noise could change a coefficient.
    pub fn from_exact<S: Scheme>(
        &self,
        scheme: &sudare_exact::Evaluator<S>,
        c: &Ciphertext<S>,
    ) -> Result<Coefficients, HeError> {
        let (params, t) = (self.params(), c.params().t());
        params.params().rlwe().require("the ciphertext", c.inner().params())?;
        check_modulus(params, t)?;
        let lowest = scheme.automorphism(&scheme.drop_to(c, 0)?, entry_element(params), 0)?;
        let (q, modulus) = (params.params().prime_at(0), c.params().modulus());
        // x ≡ −q_0^(−1)·g·m.
        let unit = modulus.inv(q % t).map(|inverse| modulus.mul(modulus.neg(inverse), lowest.factor()));
        let unit = unit.ok_or(RlweError::Internal { what: "a plaintext modulus that shares a factor with q_0" })?;
        // A bound on the canonical norm is one on every coefficient.
        let error = lowest.noise() * t as f64 / q as f64;
        let [c0, c1] = lowest.inner().both().map(Clone::clone);
        Ok(Coefficients { unit, ..Coefficients::from_parts(params, lowest.key(), [c0, c1], t, error)? })
    }
}

impl From<ExactError> for HeError {
    fn from(error: ExactError) -> Self {
        match error {
            ExactError::Rlwe(e) => Self::Rlwe(e),
            e => Self::Exact(e),
        }
    }
}
