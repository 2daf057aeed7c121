//! Plain matrices: what goes in and comes out.

use crate::error::ExprError;
use crate::lines::Lines;

/// A number that matrices are made of: a double, or an integer of 128 bits. Arithmetic gives `None` for what it cannot hold.
pub trait Element: Copy + Default + PartialEq {
    /// Whether a matrix may have it: no NaN, no infinity.
    fn is_valid(self) -> bool;
    /// The refusal of what it cannot hold.
    fn refusal(row: usize, col: usize) -> ExprError;
    /// A number of an expression; `None` if it is none of these.
    fn of(number: f64) -> Option<Self>;
    /// The sum.
    fn plus(self, other: Self) -> Option<Self>;
    /// The product.
    fn times(self, other: Self) -> Option<Self>;
    /// The negative.
    fn negative(self) -> Option<Self>;
    /// Adds `x` times each of a row to sums; `None` if one cannot be held.
    fn add_multiples(sums: &mut [Self], x: Self, row: &[Self]) -> Option<()>;
}

impl Element for f64 {
    fn is_valid(self) -> bool {
        self.is_finite()
    }

    fn refusal(row: usize, col: usize) -> ExprError {
        ExprError::NotFinite { row, col }
    }

    fn of(number: f64) -> Option<Self> {
        Some(number)
    }

    fn plus(self, other: Self) -> Option<Self> {
        Some(self + other)
    }

    fn times(self, other: Self) -> Option<Self> {
        Some(self * other)
    }

    fn negative(self) -> Option<Self> {
        Some(-self)
    }

    fn add_multiples(sums: &mut [Self], x: Self, row: &[Self]) -> Option<()> {
        sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        Some(())
    }
}

impl Element for i128 {
    fn is_valid(self) -> bool {
        true
    }

    fn refusal(row: usize, col: usize) -> ExprError {
        ExprError::TooLarge { row, col }
    }

    fn of(number: f64) -> Option<Self> {
        crate::operation::whole(number)
    }

    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn times(self, other: Self) -> Option<Self> {
        self.checked_mul(other)
    }

    fn negative(self) -> Option<Self> {
        self.checked_neg()
    }

    fn add_multiples(sums: &mut [Self], x: Self, row: &[Self]) -> Option<()> {
        for (sum, y) in sums.iter_mut().zip(row) {
            *sum = sum.checked_add(x.checked_mul(*y)?)?;
        }
        Some(())
    }
}

/// A plain matrix of real numbers or of integers, row by row: at least one element, all of them finite.
///
/// ```
/// use sudare_expr::Matrix;
///
/// let a = Matrix::<i128>::from_fn(2, 3, |row, col| (3 * row + col) as i128)?;
/// assert_eq!(a.matmul(&a.transpose())?.data(), [5, 14, 14, 50]);
/// assert_eq!(a.sum(0)?.shape(), (1, 3));
/// assert!(a.matmul(&a).is_err());
/// # Ok::<(), sudare_expr::ExprError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix<T = f64> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Element> Matrix<T> {
    /// A matrix of `rows · cols` elements, row by row.
    ///
    /// # Errors
    /// [`ExprError::Elements`] if there is none or another number of them,
    /// [`ExprError::NotFinite`] if one is not finite.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Result<Self, ExprError> {
        if rows.checked_mul(cols) != Some(data.len()) || data.is_empty() {
            return Err(ExprError::Elements { rows, cols, elements: data.len() });
        }
        if let Some(at) = data.iter().position(|x| !x.is_valid()) {
            return Err(ExprError::NotFinite { row: at / cols, col: at % cols });
        }
        Ok(Self { rows, cols, data })
    }

    /// A matrix whose elements are `f(row, col)`.
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> T) -> Result<Self, ExprError> {
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
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All elements, row by row.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }

    /// The element in a row and a column; zero outside the matrix, as blocks at its edge need.
    pub fn get(&self, row: usize, col: usize) -> T {
        if row < self.rows && col < self.cols { self.data[row * self.cols + col] } else { T::default() }
    }

    /// A row, which must exist.
    pub fn row(&self, row: usize) -> &[T] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// Rows (axis 0) or columns in other places, zeros where none goes.
    ///
    /// # Errors
    /// [`ExprError::Elements`] for a matrix without elements.
    pub fn take(&self, axis: u8, lines: &Lines) -> Result<Self, ExprError> {
        let of = lines.sources();
        let at = |line: Option<usize>, element: &dyn Fn(usize) -> T| line.map_or(T::default(), element);
        match axis {
            0 => Self::from_fn(of.len(), self.cols, |i, j| at(of[i], &|i| self.get(i, j))),
            _ => Self::from_fn(self.rows, of.len(), |i, j| at(of[j], &|j| self.get(i, j))),
        }
    }

    /// The only row (axis 0) or column, `size` times.
    ///
    /// # Errors
    /// As [`Matrix::take`].
    pub fn repeat(&self, axis: u8, size: usize) -> Result<Self, ExprError> {
        match axis {
            0 => Self::from_fn(size, self.cols, |_, j| self.get(0, j)),
            _ => Self::from_fn(self.rows, size, |i, _| self.get(i, 0)),
        }
    }

    /// The sum over the rows (axis 0: one row comes out) or over the columns.
    ///
    /// # Errors
    /// As [`Matrix::take`]; [`ExprError::TooLarge`] for a sum of 128 bits or more.
    pub fn sum(&self, axis: u8) -> Result<Self, ExprError> {
        let (rows, cols) = if axis == 0 { (1, self.cols) } else { (self.rows, 1) };
        let mut data = vec![T::default(); rows * cols];
        for (at, x) in self.data.iter().enumerate() {
            let (row, col) = (at / self.cols, at % self.cols);
            let sum = &mut data[if axis == 0 { col } else { row }];
            *sum = sum.plus(*x).ok_or_else(|| T::refusal(row, col))?;
        }
        Self::new(rows, cols, data)
    }

    /// `f` of every element; `None` is for what cannot be held.
    ///
    /// # Errors
    /// [`ExprError::NotFinite`] or [`ExprError::TooLarge`] for the first such element.
    pub fn map(&self, f: impl Fn(T) -> Option<T>) -> Result<Self, ExprError> {
        self.numbered(|at| f(self.data[at]))
    }

    /// `f` of the elements of two matrices in the same place; `None` is for what cannot be held.
    ///
    /// # Errors
    /// [`ExprError::Shapes`]; as [`Matrix::map`].
    pub fn zip(&self, operation: &'static str, other: &Self, f: impl Fn(T, T) -> Option<T>) -> Result<Self, ExprError> {
        if self.shape() != other.shape() {
            return Err(ExprError::Shapes { operation, left: self.shape(), right: other.shape() });
        }
        self.numbered(|at| f(self.data[at], other.data[at]))
    }

    fn numbered(&self, f: impl Fn(usize) -> Option<T>) -> Result<Self, ExprError> {
        let one = |at: usize| f(at).ok_or_else(|| T::refusal(at / self.cols, at % self.cols));
        Self::new(self.rows, self.cols, (0..self.data.len()).map(one).collect::<Result<_, _>>()?)
    }

    /// The plain product: the reference of every encrypted one.
    ///
    /// # Errors
    /// [`ExprError::Shapes`]; [`ExprError::TooLarge`] with the row of an element of 128 bits or more.
    pub fn matmul(&self, other: &Self) -> Result<Self, ExprError> {
        if self.cols != other.rows {
            let (left, right) = (self.shape(), other.shape());
            return Err(ExprError::Shapes { operation: "product", left, right });
        }
        let mut data = vec![T::default(); self.rows * other.cols];
        for (i, out) in data.chunks_exact_mut(other.cols).enumerate() {
            for (k, x) in self.row(i).iter().enumerate() {
                T::add_multiples(out, *x, other.row(k)).ok_or_else(|| T::refusal(i, 0))?;
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
}

impl Matrix {
    /// The largest absolute value.
    pub fn max_abs(&self) -> f64 {
        self.data.iter().fold(0.0, |m, x| m.max(x.abs()))
    }

    /// Refuses a matrix with an element over a bound.
    ///
    /// # Errors
    /// [`ExprError::OverBound`].
    pub fn check_bound(&self, bound: f64) -> Result<(), ExprError> {
        match self.data.iter().position(|x| x.abs() > bound) {
            Some(at) => Err(ExprError::OverBound { row: at / self.cols, col: at % self.cols, bound }),
            None => Ok(()),
        }
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
