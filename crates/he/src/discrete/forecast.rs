//! What is known of values before there are keys: the errors that [`Evaluator`](super::Evaluator) will state.

use super::table::Table;
use super::value::{check_error, check_modulus, scale};
use crate::circuits::bootstrapping::{BootstrapParams, Errors, TableInput, TableOutput};
use crate::error::HeError;
use sudare_rlwe::RlweError;

/// For errors.
const OPERATION: &str = "a planned table";

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
        if table.interpolation.is_constant() {
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
        check_error(OPERATION, errors.bound, level)?;
        Ok(Self { modulus, range, errors })
    }

    /// The sum with its own rotation, by [`Evaluator::rotate`](super::Evaluator::rotate) and [`Evaluator::add`](super::Evaluator::add).
    ///
    /// # Errors
    /// As there, but for those of keys.
    pub fn folded(self, params: &BootstrapParams) -> Result<Self, HeError> {
        let level = params.input_level();
        let errors = self.errors.plus(rotated(params, (self.modulus, level), self.errors));
        check_error(OPERATION, errors.bound, level)?;
        Ok(Self { range: (2 * self.range.0, 2 * self.range.1), errors, ..self })
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
