//! Sums, products and orders of several lines, powers, and products of matrices.

use super::evaluator::refuse;
use super::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use crate::TfheError;

impl dyn ArrayEvaluator + '_ {
    /// All lines along the first axis joined by an operation that is associative, by halving.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for no lines; those of [`ArrayEvaluator::elementwise`].
    pub fn folded(&self, operation: Elementwise, x: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        let rest = x.line_shape().to_vec();
        if x.lines() == 0 {
            return refuse("a reduction needs at least one element".into());
        }
        let (mut lines, mut round) = (x.clone(), 0);
        let rounds = x.lines().next_power_of_two().trailing_zeros() as usize;
        while lines.lines() > 1 {
            self.part(round, rounds);
            let (half, n) = (lines.lines() / 2, lines.lines());
            let joined = self.elementwise(operation, &lines.picked(0..half)?, &lines.picked(half..2 * half)?)?;
            lines = if n % 2 == 1 { EncryptedArray::stacked(&[&joined, &lines.picked(n - 1..n)?])? } else { joined };
            round += 1;
        }
        lines.reshaped(rest)
    }

    /// The first line, the first two joined, the first three, …: Brent and Kung's scan ("A regular layout for parallel
    /// adders", 1982), at most two operations a line.
    ///
    /// # Errors
    /// Those of [`ArrayEvaluator::elementwise`].
    pub fn scanned(&self, operation: Elementwise, x: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        let n = x.lines();
        if n < 2 {
            return Ok(x.clone());
        }
        let half = n / 2;
        let pairs = |at: usize| x.picked((0..half).map(|i| 2 * i + at));
        let odd = self.scanned(operation, &self.elementwise(operation, &pairs(0)?, &pairs(1)?)?)?;
        let mut even = x.picked(0..1)?;
        if n > 2 {
            let later = x.picked((2..n).step_by(2))?;
            let joined = self.elementwise(operation, &odd.picked(0..later.lines())?, &later)?;
            even = EncryptedArray::stacked(&[&even, &joined])?;
        }
        let order = (0..n).map(|i| if i % 2 == 1 { i / 2 } else { half + i / 2 });
        EncryptedArray::stacked(&[&odd, &even])?.picked(order)
    }

    /// x to a public power, which wraps: squares and products, as the bits of the exponent say.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for booleans; those of [`ArrayEvaluator::elementwise`].
    pub fn raised(&self, x: &EncryptedArray, exponent: u64) -> Result<EncryptedArray, TfheError> {
        if x.element() == ElementType::Bool {
            return refuse("booleans have no powers; cast them to an integer type first".into());
        }
        let (mut rest, mut square, mut power) = (exponent, x.clone(), None);
        let steps = (exponent.checked_ilog2().unwrap_or_default() + exponent.count_ones()) as usize;
        let mut step = 0;
        let mut product = |a: &EncryptedArray, b: &EncryptedArray| {
            self.part(step, steps);
            step += 1;
            self.elementwise(Elementwise::Mul, a, b)
        };
        while rest > 0 {
            if rest & 1 == 1 {
                power = Some(match &power {
                    None => square.clone(),
                    Some(so_far) => product(so_far, &square)?,
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = product(&square, &square)?;
            }
        }
        match power {
            Some(power) => Ok(power),
            None => super::evaluator::constant(self, x, x.element(), 1),
        }
    }

    /// The matrix product of two batches of matrices, n × k and k × m, in their elements' own type, which wraps; of
    /// booleans whether any pair is true.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for shapes that do not go together or no terms; those of [`ArrayEvaluator::elementwise`].
    pub fn matrix_product(&self, a: &EncryptedArray, b: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        let (&[batch, n, k], &[count, inner, m]) = (a.shape(), b.shape()) else {
            return Err(TfheError::Shape { what: "axes of a batch of matrices", expected: 3, found: a.shape().len() });
        };
        crate::core::context::check_shape("matrices", batch, count)?;
        crate::core::context::check_shape("terms of a matrix product", k, inner)?;
        let shape = vec![batch, n, m];
        let all = |place: &dyn Fn(usize, usize, usize) -> usize| -> Vec<usize> {
            (0..batch * n * m).map(|at| place(at / (n * m), at / m % n, at % m)).collect()
        };
        let mut sum: Option<EncryptedArray> = None;
        for term in 0..k {
            self.part(term, k);
            let left = a.take(shape.clone(), &all(&|batch, row, _| (batch * n + row) * k + term))?;
            let right = b.take(shape.clone(), &all(&|batch, _, col| (batch * k + term) * m + col))?;
            let product = self.elementwise(Elementwise::Mul, &left, &right)?;
            sum = Some(match &sum {
                None => product,
                Some(so_far) => self.elementwise(Elementwise::Add, so_far, &product)?,
            });
        }
        sum.ok_or(TfheError::Shape { what: "terms of a matrix product", expected: 1, found: 0 })
    }
}
