//! Coefficients of BFV and BGV ciphertexts into tables, and integers back into such coefficients.
//!
//! At level l such a ciphertext has the phase (Q_l/t)·x + v with x ≡ κ·m modulo t, κ a unit that both sides know: at level 0 that is where a
//! table begins. m ↦ f(m) is read as x ↦ f(x/κ), so that every plaintext factor of both schemes is free.
//!
//! Back: slots to coefficients ends at such a phase, with κ = 1 and errors in place of v. They were bounded one by one; BFV and BGV bound
//! the canonical norm of all of them together, which is why values carry their bias and deviation beside their bound. The noise budget is
//! what errors leave, whatever the level, so that the way back ends at level 0: sums and rotations follow, or a table.
//!
//! Plaintext moduli share the keys of the ring: t is bound to the primes of the set for tables (`IntegerParams::new` of its
//! [`BootstrapParams::params`]), and ciphertexts are under the same secret.

use super::coefficients::{Coefficients, turn};
use super::evaluator::Evaluator;
use super::value::{Discrete, check_modulus};
use crate::circuits::bootstrapping::{BootstrapParams, Errors};
use crate::error::HeError;
use sudare_exact::{Ciphertext, ExactError, Scheme, State};
use sudare_rlwe::{self as rlwe, RlweError};

/// The Galois element whose key at level 0 [`Evaluator::from_exact`] takes.
pub fn entry_element(params: &BootstrapParams) -> u64 {
    turn(params)[0]
}

/// The Galois element whose key at level 0 [`Evaluator::to_exact`] takes.
pub fn exit_element(params: &BootstrapParams) -> u64 {
    turn(params)[1]
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
        let unit = unit.ok_or(RlweError::Internal { what: "the plaintext modulus shares a factor with q_0" })?;
        // A bound on the canonical norm is one on every coefficient, and on the root of the sum of their squares, which are alike.
        let error = lowest.noise() * t as f64 / q as f64;
        let errors = Errors::random(error, error * error / params.params().degree() as f64);
        let [c0, c1] = lowest.inner().both().map(Clone::clone);
        Ok(Coefficients { unit, errors, ..Coefficients::from_parts(params, lowest.key(), [c0, c1], t, error)? })
    }

    /// Integers modulo t as the coefficients of a BFV or BGV ciphertext at level 0, whose plaintext modulus is t: integer i is coefficient
    /// [`place`](super::place)(N, i). The scheme's evaluator has the key of [`exit_element`] at level 0.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey` for a value or keys over other primes or of another owner;
    /// `RlweError::WrongPlainModulus`; `RlweError::MissingRotationKey`; `RlweError::NoBudget` where errors could change a coefficient: take a
    /// table of x before, and fewer sums and products after it.
    pub fn to_exact<S: Scheme>(
        &self,
        scheme: &sudare_exact::Evaluator<S>,
        value: &Discrete,
    ) -> Result<Ciphertext<S>, HeError> {
        let (operation, params, plain) = ("integers to coefficients", self.params(), scheme.params());
        params.params().rlwe().require("the scheme's parameters", plain.rlwe())?;
        self.check(value)?;
        if value.modulus() != plain.t() {
            let (found, expected) = (value.modulus(), plain.t());
            return Err(RlweError::WrongPlainModulus { what: "the value", found, expected }.into());
        }
        let (keys, element) = (scheme.keys(), exit_element(params));
        value.key().require("the scheme's keys", keys.id())?;
        if element != 1 {
            keys.galois(element, 0)?;
        }
        let [lowered] = &self.lowered(&[value])?[..] else {
            return Err(RlweError::Internal { what: "one value at its level" }.into());
        };
        let q = params.params().prime_at(0);
        let errors = lowered.slot_errors();
        let noise =
            params.layout().coefficients_together(value.modulus() as usize, lowered.largest(), errors) * q as f64;
        let (after, limit) = (noise + plain.noise().switched(0), plain.noise().log_limit(0));
        if after.is_nan() || after.log2() >= limit {
            return Err(RlweError::NoBudget { operation, noise: after.log2(), limit, level: 0 }.into());
        }
        let [moved] = &self.moved(std::slice::from_ref(lowered))?[..] else {
            return Err(RlweError::Internal { what: "coefficients of one value" }.into());
        };
        let parts = moved.both().map(Clone::clone).into();
        let inner = rlwe::Ciphertext::from_parts(plain.rlwe(), value.key(), parts, 0)?;
        // x = −g/q_0 of the message.
        let t = plain.modulus();
        let factor = t.neg(q % t.value());
        let exact = Ciphertext::<S>::from_parts(plain, inner, State { factor, noise })?;
        Ok(scheme.automorphism(&exact, element, 0)?)
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
