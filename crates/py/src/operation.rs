//! Operations, as JSON.

use crate::error::Result;
use pyo3::prelude::*;
use sudare_expr::{ExprError, Info, Operation};
use sudare_ring::error::told;

/// Rows, columns, and the bound on the absolute values: of integers to the last digit, too.
type Known = (usize, usize, f64, Option<i128>);

/// An operation, given as JSON.
pub fn operation_of(text: &str) -> Result<Operation> {
    Ok(serde_json::from_str(text).map_err(|e| ExprError::Expression { reason: told(e) })?)
}

/// What is known of the value of an operation by what is known of its operands.
#[pyfunction]
pub fn infer(operation: &str, operands: Vec<Known>) -> Result<Known> {
    let known = |(rows, cols, max_abs, integers)| Info { shape: (rows, cols), max_abs, integers, plain: false };
    let operands: Vec<Info> = operands.into_iter().map(known).collect();
    let made = operation_of(operation)?.infer(&operands.iter().collect::<Vec<_>>())?;
    Ok((made.shape.0, made.shape.1, made.max_abs, made.integers))
}
