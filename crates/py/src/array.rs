//! Arrays in, arrays out.

use crate::error::Result;
use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray3};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use sudare_expr::Matrix;
use sudare_methods::MatrixError;

/// Copies an array of the axes batch, row, column.
pub fn matrices(values: &PyReadonlyArray3<'_, f64>) -> Result<Vec<Matrix>> {
    let array = values.as_array();
    let (batch, rows, cols) = array.dim();
    let all: Vec<f64> = array.iter().copied().collect();
    let size = rows * cols;
    Ok((0..batch)
        .map(|i| Matrix::new(rows, cols, all.get(i * size..(i + 1) * size).unwrap_or_default().to_vec()))
        .collect::<std::result::Result<_, _>>()?)
}

/// The only matrix of an array of the axes batch, row, column.
pub fn one(values: &PyReadonlyArray3<'_, f64>) -> Result<Matrix> {
    let mut all = matrices(values)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (_, others) => Err(MatrixError::Count { what: "matrices", found: others + 1, expected: 1 }.into()),
    }
}

/// A new array of the axes batch, row, column.
pub fn array<'py>(py: Python<'py>, all: Vec<Matrix>) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let (rows, cols) = all.first().map_or((0, 0), Matrix::shape);
    let batch = all.len();
    let values = all.into_iter().flat_map(Matrix::into_data).collect();
    PyArray1::from_vec(py, values).reshape([batch, rows, cols])
}

/// Integers with the axes batch, row, column: an array of 64-bit ones, or the shape and a list where one does not fit.
#[derive(FromPyObject)]
pub enum Integers<'py> {
    Narrow(PyReadonlyArray3<'py, i64>),
    Wide([usize; 3], Vec<i128>),
}

impl Integers<'_> {
    /// Copies the matrices of a batch.
    pub fn matrices(self) -> Result<Vec<Matrix<i128>>> {
        let ((batch, rows, cols), all) = match self {
            Self::Narrow(values) => {
                let array = values.as_array();
                (array.dim(), array.iter().map(|x| i128::from(*x)).collect())
            }
            Self::Wide(shape, all) => (shape.into(), all),
        };
        let size = rows * cols;
        let one =
            |i: usize| Matrix::<i128>::new(rows, cols, all.get(i * size..(i + 1) * size).unwrap_or_default().to_vec());
        Ok((0..batch).map(one).collect::<std::result::Result<_, _>>()?)
    }
}

/// The elements of matrices of integers one after another: an array of 64-bit ones, or a list where one does not fit.
pub fn whole<'py>(py: Python<'py>, all: &[Matrix<i128>]) -> PyResult<Bound<'py, PyAny>> {
    let elements = || all.iter().flat_map(Matrix::data);
    let narrow: std::result::Result<Vec<i64>, _> = elements().map(|x| i64::try_from(*x)).collect();
    match narrow {
        Ok(narrow) => Ok(PyArray1::from_vec(py, narrow).into_any()),
        Err(_) => elements().copied().collect::<Vec<i128>>().into_bound_py_any(py),
    }
}
