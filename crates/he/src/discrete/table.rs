//! Functions of integers modulo t by their values.

use crate::circuits::mod1::Interpolation;
use crate::error::{HeError, parameters};

/// A function from Z_t to Z_t', by its t values.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(super) interpolation: Interpolation,
    pub(super) values: Vec<u64>,
    pub(super) output: u64,
}

impl Table {
    /// f(0), …, f(t − 1), all below `output`, the modulus of the results.
    ///
    /// # Errors
    /// `RlweError::Parameters` for fewer than 2 values or more than [`MAX_TABLE`](crate::circuits::mod1::MAX_TABLE);
    /// [`HeError::NotBelow`].
    pub fn new(values: &[u64], output: u64) -> Result<Self, HeError> {
        if let Some(index) = values.iter().position(|f| *f >= output) {
            return Err(HeError::NotBelow { what: "a table's value", index, modulus: output });
        }
        let numbers: Vec<f64> = values.iter().map(|f| *f as f64).collect();
        Ok(Self { interpolation: Interpolation::new(&numbers)?, values: values.to_vec(), output })
    }

    /// The table of a function of 0, …, t − 1.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn of(modulus: u64, output: u64, f: impl FnMut(u64) -> u64) -> Result<Self, HeError> {
        Self::new(&(0..modulus).map(f).collect::<Vec<_>>(), output)
    }

    /// The table of a function of a bit that is known modulo 2 or 4: of values for 2 and 3, which do not occur, those with which it is a
    /// step, so that the least is left of an error.
    ///
    /// # Errors
    /// As [`Table::new`]; `RlweError::Parameters` for another modulus.
    pub fn of_bit(modulus: u64, output: u64, [zero, one]: [u64; 2]) -> Result<Self, HeError> {
        match modulus {
            2 => Self::new(&[zero, one], output),
            4 => Self::new(&[zero, one, one, zero], output),
            _ => Err(parameters(format!("a table of a bit takes bits modulo 2 or 4, not {modulus}"))),
        }
    }

    /// The same function of x, read at κ·x for a unit κ modulo t.
    pub(super) fn of_multiples(&self, unit: u64) -> Result<Self, HeError> {
        let t = self.modulus();
        let mut values = self.values.clone();
        (0..t).for_each(|x| values[(unit * x % t) as usize] = self.values[x as usize]);
        Self::new(&values, self.output)
    }

    /// t.
    pub fn modulus(&self) -> u64 {
        self.values.len() as u64
    }

    /// The modulus of the results.
    pub fn output(&self) -> u64 {
        self.output
    }

    /// The values.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Whether all values are one, so that it takes no bootstrap.
    pub fn is_constant(&self) -> bool {
        self.interpolation.is_constant()
    }

    /// Least and largest value.
    pub(super) fn range(&self) -> (i64, i64) {
        let ends = self.values.iter().fold((u64::MAX, 0), |(low, high), f| (low.min(*f), high.max(*f)));
        (ends.0 as i64, ends.1 as i64)
    }
}
