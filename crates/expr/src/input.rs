//! What goes into an expression.

use crate::error::{ExprError, refuse};
use crate::expr::{MAX_ELEMENTS, MAX_NAME, MAX_SIDE};
use crate::operation::Info;
use serde::{Deserialize, Serialize};

/// Largest bound of a table's column, and the inverse of the least: its square is a double.
const MAX_COLUMN_BOUND: f64 = 1e150;

/// A matrix that goes in: its name, shape and bound, which server and client see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Its name, 1 to [`MAX_NAME`] bytes; two inputs of an expression have two.
    pub name: String,
    /// Rows, 1 to [`MAX_SIDE`]; rows · cols is at most [`MAX_ELEMENTS`].
    pub rows: usize,
    /// Columns, 1 to [`MAX_SIDE`].
    pub cols: usize,
    /// Bound on the absolute value of its elements, finite and above zero.
    pub max_abs: f64,
    /// Whether the server knows it: it is not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// For integers, which are computed with exactly, the bound to the last digit; `max_abs` is the double next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integers: Option<u128>,
    /// For a table of which statistics are found, a bound for each column; `max_abs` is the largest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<f64>,
    /// Whether its rows are a block of any number of them, each of which is computed with by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub block: bool,
}

impl InputSpec {
    /// An encrypted input of real numbers. `max_abs` bounds their absolute values. [`Expr::new`](crate::Expr::new) checks all of
    /// it.
    pub fn new(name: &str, (rows, cols): (usize, usize), max_abs: f64) -> Self {
        Self {
            name: name.to_owned(),
            rows,
            cols,
            max_abs,
            plain: false,
            integers: None,
            columns: Vec::new(),
            block: false,
        }
    }

    /// An encrypted input of integers of at most `bound` in absolute value, which are computed with exactly.
    pub fn integers(name: &str, shape: (usize, usize), bound: u128) -> Self {
        Self { integers: Some(bound), ..Self::new(name, shape, bound as f64) }
    }

    /// An encrypted table with a bound for each of its columns, whose number is that of the bounds.
    pub fn table(name: &str, rows: usize, columns: Vec<f64>) -> Self {
        let largest = columns.iter().copied().fold(0.0, f64::max);
        Self { cols: columns.len(), columns, ..Self::new(name, (rows, 0), largest) }
    }

    /// What is known of it.
    pub(crate) fn info(&self) -> Info {
        let integers = self.integers.map(|bound| bound.min(i128::MAX as u128) as i128);
        Info { shape: (self.rows, self.cols), max_abs: self.max_abs, integers, plain: self.plain }
    }

    /// Refuses one that no computation can have.
    pub(crate) fn check(&self) -> Result<(), ExprError> {
        let input = self;
        let InputSpec { name, rows, cols, max_abs, .. } = input;
        let printable = name.chars().all(|c| !c.is_control());
        if name.is_empty() || name.len() > MAX_NAME || !printable {
            return refuse(format!(
                "an input's name of {} bytes: take one of 1 to {MAX_NAME} bytes without control characters",
                name.len()
            ));
        }
        // A table's rows are no side of a product.
        let most = if input.columns.is_empty() { MAX_SIDE } else { MAX_ELEMENTS };
        let sides = (1..=most).contains(rows) && (1..=MAX_SIDE).contains(cols);
        if !sides || rows.saturating_mul(*cols) > MAX_ELEMENTS {
            return refuse(format!(
                "{name} is {rows}×{cols}; an input has 1 to {most} rows, 1 to {MAX_SIDE} columns and {MAX_ELEMENTS} \
                 elements at most: cut it into parts"
            ));
        }
        if let Some(bound) = input.integers {
            if bound == 0 || *max_abs != bound as f64 {
                return refuse(format!(
                    "the bound on the integers of {name} is {bound}, and its max_abs is {max_abs}; give one integer \
                     above zero for both"
                ));
            }
            return Ok(());
        }
        if !input.columns.is_empty() {
            return check_columns(input);
        }
        if !(max_abs.is_finite() && *max_abs > 0.0 && *max_abs <= 1e15 && *max_abs >= 1e-15) {
            return refuse(format!(
                "the bound on {name} is {max_abs}, and it has to be from 1e-15 to 1e15; scale its values"
            ));
        }
        Ok(())
    }
}

/// Refuses bounds of columns that are none, or others than as many as there are columns.
fn check_columns(input: &InputSpec) -> Result<(), ExprError> {
    let (name, bounds) = (&input.name, &input.columns);
    if let Some(bound) = bounds.iter().find(|b| !(**b >= 1.0 / MAX_COLUMN_BOUND && **b <= MAX_COLUMN_BOUND)) {
        return refuse(format!(
            "a column of {name} has the bound {bound}, and it has to be from 1e-150 to 1e150; scale its values"
        ));
    }
    if bounds.len() != input.cols || bounds.iter().copied().fold(0.0, f64::max) != input.max_abs {
        return refuse(format!(
            "{name} has {} columns and the bound {}, and bounds for {} columns; give one for each, the largest of \
             which is max_abs",
            input.cols,
            input.max_abs,
            bounds.len()
        ));
    }
    Ok(())
}
