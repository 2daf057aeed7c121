//! Plain integer matrices.

use crate::error::MatrixError;
use crate::slots::lines::Lines;

/// An integer matrix, row by row. At least one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntMatrix {
    rows: usize,
    cols: usize,
    data: Vec<i128>,
}

impl IntMatrix {
    /// A matrix of `rows · cols` elements, row by row.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] if there is none or another number of them.
    pub fn new(rows: usize, cols: usize, data: Vec<i128>) -> Result<Self, MatrixError> {
        if rows.checked_mul(cols) != Some(data.len()) || data.is_empty() {
            return Err(MatrixError::Elements { rows, cols, elements: data.len() });
        }
        Ok(Self { rows, cols, data })
    }

    /// A matrix whose elements are `f(row, col)`.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] if there would be none.
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> i128) -> Result<Self, MatrixError> {
        Self::new(rows, cols, (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| f(i, j)).collect())
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// All elements, row by row.
    pub fn data(&self) -> &[i128] {
        &self.data
    }

    /// The element in a row and a column, which must exist.
    pub fn get(&self, row: usize, col: usize) -> i128 {
        self.data[row * self.cols + col]
    }

    /// A row, which must exist.
    pub fn row(&self, row: usize) -> &[i128] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// The transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let data = (0..self.cols).flat_map(|j| (0..self.rows).map(move |i| self.get(i, j))).collect();
        Self { rows: self.cols, cols: self.rows, data }
    }

    /// The sum over the rows (axis 0: one row comes out) or over the columns.
    ///
    /// # Errors
    /// [`MatrixError::OutOfRange`] for a sum of 128 bits or more.
    pub fn sum(&self, axis: usize) -> Result<Self, MatrixError> {
        let (rows, cols) = if axis == 0 { (1, self.cols) } else { (self.rows, 1) };
        let mut out = Self::from_fn(rows, cols, |_, _| 0)?;
        for (at, x) in self.data.iter().enumerate() {
            let (row, col) = (at / self.cols, at % self.cols);
            let sum = &mut out.data[if axis == 0 { col } else { row }];
            *sum = sum.checked_add(*x).ok_or(too_large(row, col))?;
        }
        Ok(out)
    }

    /// Rows (axis 0) or columns in other places, zeros where none goes.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] for a matrix without elements.
    pub(crate) fn take(&self, axis: usize, lines: &Lines) -> Result<Self, MatrixError> {
        let of = lines.sources();
        match axis {
            0 => Self::from_fn(of.len(), self.cols, |i, j| of[i].map_or(0, |i| self.get(i, j))),
            _ => Self::from_fn(self.rows, of.len(), |i, j| of[j].map_or(0, |j| self.get(i, j))),
        }
    }

    /// The only row (axis 0) or column, `size` times.
    ///
    /// # Errors
    /// As [`IntMatrix::take`].
    pub(crate) fn repeat(&self, axis: usize, size: usize) -> Result<Self, MatrixError> {
        match axis {
            0 => Self::from_fn(size, self.cols, |_, j| self.get(0, j)),
            _ => Self::from_fn(self.rows, size, |i, _| self.get(i, 0)),
        }
    }

    /// `f` of every element; `None` is for what 128 bits do not hold.
    ///
    /// # Errors
    /// [`MatrixError::OutOfRange`] for the first such element.
    pub fn map(&self, f: impl Fn(i128) -> Option<i128>) -> Result<Self, MatrixError> {
        let place = |at: usize| too_large(at / self.cols, at % self.cols);
        let data = self.data.iter().enumerate().map(|(at, x)| f(*x).ok_or_else(|| place(at)));
        Ok(Self { data: data.collect::<Result<_, _>>()?, ..*self })
    }

    /// `f` of the elements of two matrices in the same place; `None` is for what 128 bits do not hold.
    ///
    /// # Errors
    /// [`MatrixError::Shapes`], [`MatrixError::OutOfRange`].
    pub fn zip(
        &self,
        operation: &'static str,
        other: &Self,
        f: impl Fn(i128, i128) -> Option<i128>,
    ) -> Result<Self, MatrixError> {
        if self.shape() != other.shape() {
            return Err(MatrixError::Shapes { operation, left: self.shape(), right: other.shape() });
        }
        let place = |at: usize| too_large(at / self.cols, at % self.cols);
        let pairs = self.data.iter().zip(&other.data).enumerate();
        let data = pairs.map(|(at, (x, y))| f(*x, *y).ok_or_else(|| place(at)));
        Ok(Self { data: data.collect::<Result<_, _>>()?, ..*self })
    }

    /// The plain product: the reference of every encrypted one.
    ///
    /// # Errors
    /// [`MatrixError::Shapes`], or [`MatrixError::OutOfRange`] for an element of 128 bits or more.
    pub fn matmul(&self, other: &Self) -> Result<Self, MatrixError> {
        if self.cols != other.rows {
            let (left, right) = (self.shape(), other.shape());
            return Err(MatrixError::Shapes { operation: "product", left, right });
        }
        let mut data = Vec::with_capacity(self.rows * other.cols);
        for row in 0..self.rows {
            for col in 0..other.cols {
                let mut terms = self.row(row).iter().enumerate().map(|(k, x)| x.checked_mul(other.get(k, col)));
                let sum = terms.try_fold(0i128, |sum, term| sum.checked_add(term?));
                data.push(sum.ok_or(too_large(row, col))?);
            }
        }
        Self::new(self.rows, other.cols, data)
    }
}

/// The refusal of an element that 128 bits do not hold.
fn too_large(row: usize, col: usize) -> MatrixError {
    MatrixError::OutOfRange { row, col, low: i128::MIN, high: i128::MAX }
}
