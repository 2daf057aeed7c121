//! What is known of values before there are keys: the errors that [`Evaluator`](super::Evaluator) will state.

use super::crypt::Fresh;
use super::gate::{Gate, Input};
use super::table::Table;
use super::value::{LARGEST, check_error, check_modulus, scale};
use crate::circuits::bootstrapping::{BootstrapParams, Errors, TableInput, TableOutput};
use crate::error::{HeError, parameters};
use sudare_rlwe::RlweError;
use sudare_rlwe::noise::Noise;

/// Packed integers modulo t, of which there are only modulus, range and errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// t.
    pub modulus: u64,
    /// Least and largest integer.
    pub range: (i64, i64),
    /// Errors of each.
    pub errors: Errors,
}

impl Forecast {
    /// Integers in a range, from 0 to t − 1 at most, freshly encrypted under a secret key.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a modulus that the set has no room for, or a range that is none or goes beyond that.
    pub fn fresh(params: &BootstrapParams, modulus: u64, range: (i64, i64)) -> Result<Self, HeError> {
        Self::encoded(params, modulus, range, Some(params.params().sketch().secret_encryption()))
    }

    /// Integers in a range, from 0 to t − 1 at most, that everybody knows, by [`Evaluator::public`](super::Evaluator::public).
    ///
    /// # Errors
    /// As [`Forecast::fresh`].
    pub fn public(params: &BootstrapParams, modulus: u64, range: (i64, i64)) -> Result<Self, HeError> {
        Self::encoded(params, modulus, range, None)
    }

    fn encoded(
        params: &BootstrapParams,
        modulus: u64,
        range: (i64, i64),
        noise: Option<Noise>,
    ) -> Result<Self, HeError> {
        check_modulus(params, modulus)?;
        if range.0 < 0 || range.0 > range.1 || range.1 >= modulus as i64 {
            let (low, high) = range;
            return Err(parameters(format!(
                "integers from {low} to {high} are not a range modulo {modulus}; take one from 0 to {modulus} − 1"
            )));
        }
        Ok(Self { modulus, range, errors: Fresh::new(params, noise, (modulus, params.input_level())).errors })
    }

    /// Sums, by [`Evaluator::add`](super::Evaluator::add).
    ///
    /// # Errors
    /// As there, but for those of keys and of the form.
    pub fn plus(self, params: &BootstrapParams, other: Self) -> Result<Self, HeError> {
        self.sum(other)?.checked("addition", params)
    }

    /// Differences, by [`Evaluator::sub`](super::Evaluator::sub).
    ///
    /// # Errors
    /// As [`Forecast::plus`].
    pub fn minus(self, params: &BootstrapParams, other: Self) -> Result<Self, HeError> {
        self.sum(other.opposite())?.checked("subtraction", params)
    }

    /// Multiples, by [`Evaluator::mul_integer`](super::Evaluator::mul_integer).
    ///
    /// # Errors
    /// As [`Forecast::plus`].
    pub fn times(self, params: &BootstrapParams, k: i64) -> Result<Self, HeError> {
        self.multiple(self.least(k)).checked("product with an integer", params)
    }

    /// Sums with an integer, by [`Evaluator::add_integer`](super::Evaluator::add_integer).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn shifted(self, k: i64) -> Result<Self, HeError> {
        if k.unsigned_abs() > self.modulus {
            return Err(HeError::NotBelow { what: "the size of addend", index: 0, modulus: self.modulus });
        }
        Ok(Self { range: (self.range.0 + k, self.range.1 + k), ..self })
    }

    /// The same integers modulo a divisor, by [`Evaluator::modulo`](super::Evaluator::modulo).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn modulo(self, params: &BootstrapParams, modulus: u64) -> Result<Self, HeError> {
        check_modulus(params, modulus)?;
        if !self.modulus.is_multiple_of(modulus) {
            return Err(parameters(format!(
                "integers modulo {} are known modulo its divisors, and {modulus} is not one; use a table",
                self.modulus
            )));
        }
        Ok(Self { modulus, ..self })
    }

    /// Rotated slots, by [`Evaluator::rotate`](super::Evaluator::rotate).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn rotated(self, params: &BootstrapParams) -> Result<Self, HeError> {
        let errors = rotated(params, (self.modulus, params.input_level()), self.errors);
        Self { errors, ..self }.checked("rotation of integers", params)
    }

    /// Gates of bits, by [`Evaluator::gate`](super::Evaluator::gate).
    ///
    /// # Errors
    /// As there, but for those of keys and of the form.
    pub fn gate(self, params: &BootstrapParams, gate: Gate, other: Self) -> Result<Self, HeError> {
        self.alike(other)?;
        self.check_bits(other)?;
        let (input, table) = match gate.input() {
            Input::Free { a, b, .. } => {
                let operand = if b == 0 { self } else { other };
                let errors = operand.errors.times((a + b).unsigned_abs() as f64);
                return Ok(Self { range: (0, 1), errors, ..self });
            }
            Input::Sum(table) => (self.plus(params, other)?, table),
            Input::Difference(table) => (self.minus(params, other)?.shifted(1)?, table),
        };
        self.check_packed()?;
        input.modulo(params, 4)?.table(params, &Table::new(&table, self.modulus)?)
    }

    /// Whether all integers are 0 or 1.
    pub(super) fn is_bits(self) -> bool {
        self.range.0 >= 0 && self.range.1 <= 1
    }

    /// Refuses what gates do not take.
    pub(super) fn check_bits(self, other: Self) -> Result<(), HeError> {
        if self.is_bits() && other.is_bits() {
            return Ok(());
        }
        let ((a, b), (c, d)) = (self.range, other.range);
        Err(parameters(format!(
            "a gate takes bits, not integers from {a} to {b} and from {c} to {d}; make bits of them by a table"
        )))
    }

    /// Refuses a modulus in which packed bits have no sums to read gates of.
    pub(super) fn check_packed(self) -> Result<(), HeError> {
        if self.modulus.is_multiple_of(4) {
            return Ok(());
        }
        Err(parameters(format!(
            "packed gates take bits modulo 4, not integers modulo {}; encrypt bits modulo 4, or split ones",
            self.modulus
        )))
    }

    /// Refuses operands of two moduli.
    pub(super) fn alike(self, other: Self) -> Result<(), HeError> {
        if self.modulus == other.modulus {
            return Ok(());
        }
        let (found, expected) = (other.modulus, self.modulus);
        Err(HeError::Rlwe(RlweError::WrongPlainModulus { what: "the second operand", found, expected }))
    }

    /// a + b, unchecked for room.
    pub(super) fn sum(self, other: Self) -> Result<Self, HeError> {
        self.alike(other)?;
        let range = (self.range.0 + other.range.0, self.range.1 + other.range.1);
        Ok(Self { range, errors: self.errors.plus(other.errors), ..self })
    }

    /// −a, unreduced.
    pub(super) fn opposite(self) -> Self {
        self.multiple(-1)
    }

    /// Of all integers that are k modulo t, the one of least size.
    pub(super) fn least(self, k: i64) -> i64 {
        let t = self.modulus as i64;
        let least = k.rem_euclid(t);
        if 2 * least > t { least - t } else { least }
    }

    /// a · k, unchecked for room.
    pub(super) fn multiple(self, k: i64) -> Self {
        let ends = [self.range.0 * k, self.range.1 * k];
        let range = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        Self { range, errors: self.errors.times(k.unsigned_abs() as f64), ..self }
    }

    fn checked(self, operation: &'static str, params: &BootstrapParams) -> Result<Self, HeError> {
        check_error(operation, self.errors.bound, params.input_level())?;
        let largest = self.range.0.unsigned_abs().max(self.range.1.unsigned_abs());
        if largest >= LARGEST as u64 {
            return Err(parameters(format!(
                "integers of up to {largest} are too large: slots hold integers below {LARGEST}; reduce them by a \
                 table first"
            )));
        }
        Ok(self)
    }

    /// f of every integer, by [`Evaluator::table`](super::Evaluator::table).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn table(self, params: &BootstrapParams, table: &Table) -> Result<Self, HeError> {
        [self.modulus, table.output].into_iter().try_for_each(|t| check_modulus(params, t))?;
        if table.modulus() != self.modulus {
            return Err(HeError::TableLength { found: table.values.len(), modulus: self.modulus });
        }
        let (modulus, range) = (table.output, table.range());
        if table.is_constant() {
            return Ok(Self { modulus, range, errors: Errors::NONE });
        }
        let largest = self.range.0.unsigned_abs().max(self.range.1.unsigned_abs()) as f64;
        let angle = params.layout().coefficient_errors(self.modulus as usize, largest, self.errors);
        let input = TableInput { modulus: self.modulus as usize, angle };
        let level = params.input_level();
        let output = TableOutput { table: table.interpolation.clone(), scale: scale(params, modulus, level) };
        let [errors] = params.table_errors(input, std::slice::from_ref(&output))?[..] else {
            return Err(RlweError::Internal { what: "the errors of one table" }.into());
        };
        check_error("a table", errors.bound, level)?;
        Ok(Self { modulus, range, errors })
    }

    /// The sum with its own rotation, by [`Evaluator::rotate`](super::Evaluator::rotate) and [`Evaluator::add`](super::Evaluator::add).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn folded(self, params: &BootstrapParams) -> Result<Self, HeError> {
        self.plus(params, self.rotated(params)?)
    }
}

/// The scale that packed integers modulo t have, at the level where tables begin.
///
/// # Errors
/// `RlweError::Parameters` for a modulus that the set has no room for.
pub fn packed_scale(params: &BootstrapParams, modulus: u64) -> Result<f64, HeError> {
    check_modulus(params, modulus)?;
    Ok(scale(params, modulus, params.input_level()))
}

/// Errors of integers modulo t at a level after a rotation.
pub(super) fn rotated(params: &BootstrapParams, (modulus, level): (u64, usize), errors: Errors) -> Errors {
    let sketch = params.params().sketch();
    let scale = scale(params, modulus, level);
    let added = [sketch.switching(level), sketch.division(2)];
    added.into_iter().fold(errors, |errors, noise| errors.plus(Errors::of_noise(sketch.degree(), &noise, scale)))
}
