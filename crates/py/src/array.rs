//! Arrays in, arrays out.

use crate::error::Result;
use numpy::{PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use sudare_matrix::Matrix;

/// Copies an array of the axes batch, row, column.
pub fn matrices(values: &PyReadonlyArray3<'_, f64>) -> Result<Vec<Matrix>> {
    let [batch, rows, cols] = <[usize; 3]>::try_from(values.shape()).unwrap_or_default();
    let array = values.as_array();
    let all: Vec<f64> = array.iter().copied().collect();
    let size = rows * cols;
    Ok((0..batch)
        .map(|i| Matrix::new(rows, cols, all.get(i * size..(i + 1) * size).unwrap_or_default().to_vec()))
        .collect::<std::result::Result<_, _>>()?)
}

/// A new array of the axes batch, row, column.
pub fn array<'py>(py: Python<'py>, all: Vec<Matrix>) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let (rows, cols) = all.first().map_or((0, 0), Matrix::shape);
    let batch = all.len();
    let values = all.into_iter().flat_map(Matrix::into_data).collect();
    PyArray1::from_vec(py, values).reshape([batch, rows, cols])
}
