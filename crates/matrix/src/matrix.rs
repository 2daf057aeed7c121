//! Plain matrices: what goes in and comes out.

use crate::error::MatrixError;
use crate::slots::lines::Lines;

/// A real matrix, row by row. At least one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// A matrix of `rows · cols` elements, row by row.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] if there is none or another number of them,
    /// [`MatrixError::NotFinite`] if one is not finite.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self, MatrixError> {
        if rows.checked_mul(cols) != Some(data.len()) || data.is_empty() {
            return Err(MatrixError::Elements { rows, cols, elements: data.len() });
        }
        if let Some(at) = data.iter().position(|x| !x.is_finite()) {
            return Err(MatrixError::NotFinite { row: at / cols, col: at % cols });
        }
        Ok(Self { rows, cols, data })
    }

    /// A matrix whose elements are `f(row, col)`.
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> f64) -> Result<Self, MatrixError> {
        Self::new(rows, cols, (0..rows * cols).map(|i| f(i / cols, i % cols)).collect())
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// All elements, row by row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// All elements, row by row.
    pub fn into_data(self) -> Vec<f64> {
        self.data
    }

    /// The element in a row and a column; zero outside the matrix, as blocks at its edge need.
    pub fn get(&self, row: usize, col: usize) -> f64 {
        if row < self.rows && col < self.cols { self.data[row * self.cols + col] } else { 0.0 }
    }

    /// Rows (axis 0) or columns in other places, zeros where none goes.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] for a matrix without elements.
    pub fn take(&self, axis: u8, lines: &Lines) -> Result<Self, MatrixError> {
        let of = lines.sources();
        match axis {
            0 => Self::from_fn(of.len(), self.cols, |i, j| of[i].map_or(0.0, |i| self.get(i, j))),
            _ => Self::from_fn(self.rows, of.len(), |i, j| of[j].map_or(0.0, |j| self.get(i, j))),
        }
    }

    /// The only row (axis 0) or column, `size` times.
    ///
    /// # Errors
    /// As [`Matrix::take`].
    pub fn repeat(&self, axis: u8, size: usize) -> Result<Self, MatrixError> {
        match axis {
            0 => Self::from_fn(size, self.cols, |_, j| self.get(0, j)),
            _ => Self::from_fn(self.rows, size, |i, _| self.get(i, 0)),
        }
    }

    /// The sum over the rows (axis 0: one row comes out) or over the columns.
    ///
    /// # Errors
    /// As [`Matrix::take`].
    pub fn sum(&self, axis: u8) -> Result<Self, MatrixError> {
        let (rows, cols) = if axis == 0 { (1, self.cols) } else { (self.rows, 1) };
        let mut data = vec![0.0; rows * cols];
        for (at, x) in self.data.iter().enumerate() {
            data[if axis == 0 { at % self.cols } else { at / self.cols }] += x;
        }
        Self::new(rows, cols, data)
    }

    /// `f` of every element.
    ///
    /// # Errors
    /// As [`Matrix::take`]; [`MatrixError::NotFinite`] where it is no number.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Result<Self, MatrixError> {
        Self::new(self.rows, self.cols, self.data.iter().map(|x| f(*x)).collect())
    }

    /// The largest absolute value.
    pub fn max_abs(&self) -> f64 {
        self.data.iter().fold(0.0, |m, x| m.max(x.abs()))
    }

    /// Refuses a matrix with an element over a bound.
    ///
    /// # Errors
    /// [`MatrixError::OverBound`].
    pub fn check_bound(&self, bound: f64) -> Result<(), MatrixError> {
        match self.data.iter().position(|x| x.abs() > bound) {
            Some(at) => Err(MatrixError::OverBound { row: at / self.cols, col: at % self.cols, bound }),
            None => Ok(()),
        }
    }

    /// The plain product: the reference of every encrypted one.
    ///
    /// # Errors
    /// [`MatrixError::Shapes`].
    pub fn matmul(&self, other: &Self) -> Result<Self, MatrixError> {
        if self.cols != other.rows {
            let (left, right) = (self.shape(), other.shape());
            return Err(MatrixError::Shapes { operation: "product", left, right });
        }
        let mut data = vec![0.0; self.rows * other.cols];
        for (i, out) in data.chunks_exact_mut(other.cols).enumerate() {
            for (k, x) in self.data[i * self.cols..(i + 1) * self.cols].iter().enumerate() {
                for (o, y) in out.iter_mut().zip(&other.data[k * other.cols..(k + 1) * other.cols]) {
                    *o += x * y;
                }
            }
        }
        Self::new(self.rows, other.cols, data)
    }

    /// The transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let data = (0..self.data.len()).map(|i| self.data[(i % self.rows) * self.cols + i / self.rows]).collect();
        Self { rows: self.cols, cols: self.rows, data }
    }

    /// The largest absolute difference from a matrix of the same shape; infinite if the shapes
    /// differ.
    pub fn max_difference(&self, other: &Self) -> f64 {
        if self.shape() != other.shape() {
            return f64::INFINITY;
        }
        self.data.iter().zip(&other.data).fold(0.0, |m, (x, y)| m.max((x - y).abs()))
    }
}
