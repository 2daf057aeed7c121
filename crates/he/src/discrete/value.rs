//! Encrypted integers modulo t, with the bound on their errors.

use super::forecast::Forecast;
use crate::circuits::bootstrapping::{BootstrapParams, Errors};
use crate::ckks::{Ciphertext, State};
use crate::error::{HeError, parameters};
use std::fmt;
use sudare_rlwe::{KeyId, RlweError};

/// Where the N integers of a value stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// In real and imaginary parts of one ciphertext: for sums and tables.
    Packed,
    /// In real parts of two ciphertexts: products too, for as many levels as they have. Tables take both at once.
    Split,
}

/// N encrypted integers x modulo t, in one ciphertext or two. Slots hold integers in a known range that are x modulo t, with errors of at most
/// [`Discrete::error`], which is below ½.
#[derive(Clone)]
pub struct Discrete {
    pub(super) parts: Vec<Ciphertext>,
    pub(super) modulus: u64,
    /// Least and largest integer in a slot.
    pub(super) range: (i64, i64),
    pub(super) errors: Errors,
}

/// What errors have to stay below.
const LIMIT: f64 = 0.5;
/// Integers are less than this in size: sums of them are exact, and their errors are seen in doubles.
pub(super) const LARGEST: i64 = 1 << 31;

/// The scale of integers modulo t at a level: such that x fills x/t of q_0 where StC ends, and that a product of two has that
/// of the level below.
pub(super) fn scale(params: &BootstrapParams, modulus: u64, level: usize) -> f64 {
    let layout = params.layout();
    let lowest = layout.scale() / (layout.radius() * modulus as f64);
    (params.input_level() + 1..=level).fold(lowest, |s, l| (s * layout.chain.q()[l]).sqrt())
}

/// The largest modulus of a set's integers: the most values that its tables have.
///
/// # Errors
/// `RlweError::Parameters` for a set without tables.
pub fn largest_modulus(params: &BootstrapParams) -> Result<u64, HeError> {
    let (_, most) = params.layout().exponential()?;
    Ok(most as u64)
}

/// Refuses a modulus that the set's tables have no room for.
pub(super) fn check_modulus(params: &BootstrapParams, modulus: u64) -> Result<(), HeError> {
    let most = largest_modulus(params)?;
    if !(2..=most).contains(&modulus) {
        return Err(parameters(format!(
            "the tables of the set have 2 to {most} values, not {modulus}; take such a modulus, or a set for larger \
             tables"
        )));
    }
    Ok(())
}

impl Discrete {
    /// Puts a value together from ciphertexts: one of complex slots ([`Form::Packed`]) or two of real ones
    /// ([`Form::Split`]). Range and error are the caller's to know.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a modulus that the set has no room for, an empty range, an error that is no number, levels or
    /// scales that integers modulo t do not have; `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`;
    /// `RlweError::NoBudget`, [`HeError::TooLarge`].
    pub fn from_parts(
        params: &BootstrapParams,
        parts: Vec<Ciphertext>,
        modulus: u64,
        range: (i64, i64),
        error: f64,
    ) -> Result<Self, HeError> {
        check_modulus(params, modulus)?;
        let [first, ..] = parts.as_slice() else { return Err(parameters("a value needs at least one ciphertext")) };
        let (level, key) = (first.level(), first.key());
        let wanted = scale(params, modulus, level);
        for c in &parts {
            params.params().require("the ciphertext", c.params())?;
            if c.parts().len() != 2 {
                return Err(RlweError::Degree { operation: OPERATION, expected: 2, found: c.parts().len() }.into());
            }
            if c.key() != key {
                return Err(RlweError::WrongKey { what: "the second ciphertext", found: c.key(), expected: key }.into());
            }
            if c.level() != level || ((c.scale() - wanted) / wanted).abs() > (-40f64).exp2() {
                return Err(parameters(format!(
                    "a ciphertext has level {} and scale 2^{:.3}, and integers modulo {modulus} have 2^{:.3} at level \
                     {level}",
                    c.level(),
                    c.scale().log2(),
                    wanted.log2()
                )));
            }
        }
        let levels = params.input_level()..=params.output_level();
        if parts.len() > 2 || !levels.contains(&level) || (parts.len() == 1 && level != params.input_level()) {
            return Err(parameters(
                "integers need one ciphertext at the input level, or two from there to the output level",
            ));
        }
        if range.0 > range.1 || error.is_nan() || error < 0.0 {
            return Err(parameters(
                "a range needs its least integer first, and an error has to be a number of at least 0",
            ));
        }
        Self::new(OPERATION, parts, modulus, range, Errors::within(error))
    }

    /// Of parts that were computed, as it was foreseen.
    pub(super) fn of(operation: &'static str, parts: Vec<Ciphertext>, known: Forecast) -> Result<Self, HeError> {
        Self::new(operation, parts, known.modulus, known.range, known.errors)
    }

    /// Of parts that were computed.
    pub(super) fn new(
        operation: &'static str,
        mut parts: Vec<Ciphertext>,
        modulus: u64,
        range: (i64, i64),
        errors: Errors,
    ) -> Result<Self, HeError> {
        check_error(operation, errors.bound, parts[0].level())?;
        let largest = range.0.unsigned_abs().max(range.1.unsigned_abs());
        let complex = if parts.len() == 1 { std::f64::consts::SQRT_2 } else { 1.0 };
        for c in &mut parts {
            let state = State {
                scale: c.scale(),
                bound: complex * largest as f64,
                noise: std::f64::consts::SQRT_2 * errors.bound * c.scale(),
            };
            state.check_fits(operation, c.params(), c.level())?;
            if largest >= LARGEST as u64 {
                let (value, scale, level) = ((largest as f64).log2(), c.scale().log2(), c.level());
                return Err(HeError::TooLarge {
                    operation,
                    value,
                    scale,
                    modulus: (LARGEST as f64).log2() + scale,
                    level,
                });
            }
            (c.bound, c.noise) = (state.bound, state.noise);
        }
        Ok(Self { parts, modulus, range, errors })
    }

    /// The same integers, of which the caller knows that they lie in a smaller range. Decryption refuses what does not.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a range that is empty or goes beyond the one that the value states.
    pub fn within(self, range: (i64, i64)) -> Result<Self, HeError> {
        if range.0 > range.1 || range.0 < self.range.0 || range.1 > self.range.1 {
            return Err(parameters(format!(
                "integers from {} to {} are not within the value's range from {} to {}; give a range within that one",
                range.0, range.1, self.range.0, self.range.1
            )));
        }
        Self::new(OPERATION, self.parts, self.modulus, range, self.errors)
    }

    /// What is known of it without its ciphertexts.
    pub fn known(&self) -> Forecast {
        Forecast { modulus: self.modulus, range: self.range, errors: self.errors }
    }

    /// The ciphertexts.
    pub fn parts(&self) -> &[Ciphertext] {
        &self.parts
    }

    /// t.
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// Least and largest integer that a slot may hold.
    pub fn range(&self) -> (i64, i64) {
        self.range
    }

    /// Bound on the distance of a real or imaginary part to its integer, below ½.
    pub fn error(&self) -> f64 {
        self.errors.bound
    }

    /// What is known of that distance.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// How its integers stand.
    pub fn form(&self) -> Form {
        if self.parts.len() == 1 { Form::Packed } else { Form::Split }
    }

    /// Its level.
    pub fn level(&self) -> usize {
        self.parts[0].level()
    }

    /// The name of the secret key that it is under.
    pub fn key(&self) -> KeyId {
        self.parts[0].key()
    }

    /// The size of the largest integer that a slot may hold.
    pub(super) fn largest(&self) -> f64 {
        self.range.0.unsigned_abs().max(self.range.1.unsigned_abs()) as f64
    }

    /// Errors of its integers in one ciphertext: what is imaginary in one of two is real in the other.
    pub(super) fn slot_errors(&self) -> Errors {
        self.errors.times(self.parts.len() as f64)
    }
}

/// Refuses an error that could change a value.
pub(super) fn check_error(operation: &'static str, error: f64, level: usize) -> Result<(), HeError> {
    // A comparison that no NaN passes.
    if error < LIMIT {
        return Ok(());
    }
    Err(HeError::Rlwe(RlweError::NoBudget { operation, noise: error.log2(), limit: LIMIT.log2(), level }))
}

/// For errors.
const OPERATION: &str = "putting integers together";

impl fmt::Debug for Discrete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (form, error) = (self.form(), self.error().log2());
        write!(f, "Discrete(integers modulo {}, {form:?}, error 2^{error:.1}, level {})", self.modulus, self.level())
    }
}
