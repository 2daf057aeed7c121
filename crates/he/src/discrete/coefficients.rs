//! Integers in the coefficients of a ciphertext modulo q_0: where tables begin, and where other schemes meet them.

use super::evaluator::Evaluator;
use super::value::{Discrete, check_error, check_modulus};
use crate::circuits::bootstrapping::{BootstrapParams, Errors};
use crate::error::{HeError, parameters};
use std::fmt;
use sudare_ring::order::bit_reverse;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::{self as rlwe, KeyId, RlweError};

/// N encrypted integers x modulo t as coefficients x·q_0/t of a polynomial m, each with an error of at most
/// [`Coefficients::error`] in units of x, which is below ½. [`place`] says which coefficient an integer is; the ciphertext modulo q_0
/// has κ·m(X^g) as its phase ([`turn`]), κ a known unit modulo t.
#[derive(Clone)]
pub struct Coefficients {
    pub(super) inner: rlwe::Ciphertext,
    pub(super) modulus: u64,
    /// In units of q_0/t.
    pub(super) errors: Errors,
    /// κ: what stands there is κ·x.
    pub(super) unit: u64,
}

/// The coefficient that integer i of a value is, of N = `degree`: the slots of each half stand in bit-reversed order.
pub fn place(degree: usize, i: usize) -> usize {
    let half = degree / 2;
    bit_reverse(i % half, half.trailing_zeros()) + i / half * half
}

/// The Galois element g with which the transforms leave a polynomial m, and its inverse: what they read and write is m(X^g), by a
/// rotation that is undone in slots at the end. Keys from and to other schemes have it in them.
pub fn turn(params: &BootstrapParams) -> [u64; 2] {
    let pending = params.layout().stc.pending();
    [pending, -pending].map(|steps| params.params().rotation_element(steps))
}

impl Coefficients {
    /// Of c_0 and c_1 modulo q_0, under the key with a name. The error is the caller's to know.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a modulus that the set has no room for, an error that is no number, or polynomials modulo
    /// another prime; `RlweError::NoBudget`.
    pub fn from_parts(
        params: &BootstrapParams,
        key: KeyId,
        parts: [Poly<Eval>; 2],
        modulus: u64,
        error: f64,
    ) -> Result<Self, HeError> {
        check_modulus(params, modulus)?;
        if error.is_nan() || error < 0.0 {
            return Err(parameters("a bound on an error has to be a number of at least 0"));
        }
        check_error("putting coefficients together", error, 0)?;
        let inner = rlwe::Ciphertext::from_parts(params.low(), key, parts.into(), 0)?;
        Ok(Self { inner, modulus, errors: Errors::within(error), unit: 1 })
    }

    /// The ciphertext modulo q_0.
    pub fn inner(&self) -> &rlwe::Ciphertext {
        &self.inner
    }

    /// t.
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// Bound on a coefficient's distance to x·q_0/t, in units of q_0/t.
    pub fn error(&self) -> f64 {
        self.errors.bound
    }

    /// The name of the secret key that it is under.
    pub fn key(&self) -> KeyId {
        self.inner.key()
    }
}

impl Evaluator {
    /// Integers in slots as coefficients: of each value one ciphertext, whatever its form.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; `RlweError::NoBudget` where an error would reach ½.
    pub fn to_coefficients(&self, values: &[&Discrete]) -> Result<Vec<Coefficients>, HeError> {
        let inputs = self.lowered(values)?;
        let errors: Vec<Errors> = inputs.iter().map(|x| self.coefficient_errors(x)).collect();
        errors.iter().try_for_each(|errors| check_error("slots to coefficients", errors.bound, 0))?;
        let made = self.moved(&inputs)?.into_iter().zip(&inputs).zip(errors);
        Ok(made.map(|((inner, x), errors)| Coefficients { inner, modulus: x.modulus, errors, unit: 1 }).collect())
    }

    /// Values at the level where tables begin.
    pub(super) fn lowered(&self, values: &[&Discrete]) -> Result<Vec<Discrete>, HeError> {
        let lowered = |x: &&Discrete| {
            self.check(x)?;
            self.lower(x, self.params().input_level())
        };
        values.iter().map(lowered).collect()
    }

    /// Errors of the coefficients of a value at that level.
    pub(super) fn coefficient_errors(&self, x: &Discrete) -> Errors {
        let errors = self.params().layout().coefficient_errors(x.modulus as usize, x.largest(), x.slot_errors());
        errors.times(x.modulus as f64)
    }

    /// Slots to coefficients, of values at that level.
    pub(super) fn moved(&self, inputs: &[Discrete]) -> Result<Vec<rlwe::Ciphertext>, HeError> {
        self.bootstrapper().coefficients(&inputs.iter().map(|x| x.parts.as_slice()).collect::<Vec<_>>())
    }

    pub(super) fn check_coefficients(&self, what: &'static str, x: &Coefficients) -> Result<(), HeError> {
        self.params().low().require(what, x.inner.params())?;
        match self.bootstrapper().keys() {
            Some(keys) => Ok(keys.id().require(what, x.key())?),
            None => Err(RlweError::Internal { what: "an evaluator without keys" }.into()),
        }
    }
}

impl fmt::Debug for Coefficients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Coefficients(integers modulo {}, error 2^{:.1})", self.modulus, self.error().log2())
    }
}
