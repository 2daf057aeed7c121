//! Integer matrices as coefficients: one multiplication is a rectangular product.
//!
//! A block of the left operand has entry (i, t) at coefficient i·b + t, a block of the right one
//! entry (t, j) at j·a·b + (b − 1 − t). In their product modulo X^N + 1, entry (i, j) of the blocks'
//! product stands at j·a·b + i·b + b − 1: for N ≥ a·b·c nothing else gets there, since what wraps
//! around lands below b − 1 (Duong et al., `002`, Theorem 7, for any shape). Products of larger
//! matrices are sums over blocks.

use crate::error::MatrixError;
use crate::packing::IntMatrix;
use crate::product::Shape;

/// How a product is cut into blocks of a×b times b×c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Blocks {
    /// Rows of a left block.
    pub a: usize,
    /// Columns of a left block.
    pub b: usize,
    /// Columns of a right block.
    pub c: usize,
}

impl Blocks {
    /// Blocks of a product in each direction: rows, contraction, columns.
    pub fn counts(&self, shape: Shape) -> [usize; 3] {
        [shape.m.div_ceil(self.a), shape.k.div_ceil(self.b), shape.n.div_ceil(self.c)]
    }

    /// Cuts worth pricing at ring degree `n`: for each number of rows and columns of blocks the
    /// longest contraction that fits.
    pub fn candidates(shape: Shape, n: usize) -> Vec<Self> {
        let sides = |side: usize| -> Vec<usize> {
            let mut all: Vec<usize> = (1..=side.min(256)).map(|parts| side.div_ceil(parts)).collect();
            all.extend((0..17).map(|i| 1 << i).filter(|s| *s <= side));
            all.sort_unstable();
            all.dedup();
            all
        };
        let (rows, columns) = (sides(shape.m), sides(shape.n));
        let mut out = Vec::new();
        for a in &rows {
            for c in columns.iter().filter(|c| a.saturating_mul(**c) <= n) {
                let most = shape.k.min(n / (a * c));
                // Equal parts: no block is nearly empty.
                out.push(Self { a: *a, b: shape.k.div_ceil(shape.k.div_ceil(most)), c: *c });
            }
        }
        out
    }

    /// Coefficients of left block (row, column) of blocks.
    pub fn left(&self, matrix: &IntMatrix, row: usize, column: usize) -> Vec<i128> {
        let (m, k) = matrix.shape();
        let (rows, columns) = (row * self.a..m.min((row + 1) * self.a), column * self.b..k.min((column + 1) * self.b));
        let mut out = vec![0; self.a * self.b];
        for i in rows.clone() {
            for t in columns.clone() {
                out[(i - rows.start) * self.b + t - columns.start] = matrix.get(i, t);
            }
        }
        out
    }

    /// Coefficients of right block (row, column) of blocks.
    pub fn right(&self, matrix: &IntMatrix, row: usize, column: usize) -> Vec<i128> {
        let (k, n) = matrix.shape();
        let (rows, columns) = (row * self.b..k.min((row + 1) * self.b), column * self.c..n.min((column + 1) * self.c));
        let mut out = vec![0; self.a * self.b * self.c];
        for t in rows.clone() {
            for j in columns.clone() {
                out[(j - columns.start) * self.a * self.b + self.b - 1 - (t - rows.start)] = matrix.get(t, j);
            }
        }
        out
    }

    /// Puts the products of all blocks together; `coefficient(row, column, at)` is one of the
    /// product of a row and a column of blocks.
    ///
    /// # Errors
    /// [`MatrixError::Elements`] for a shape without elements.
    pub fn gather(
        &self,
        shape: Shape,
        coefficient: impl Fn(usize, usize, usize) -> i128,
    ) -> Result<IntMatrix, MatrixError> {
        IntMatrix::from_fn(shape.m, shape.n, |i, j| {
            let at = (j % self.c) * self.a * self.b + (i % self.a) * self.b + self.b - 1;
            coefficient(i / self.a, j / self.c, at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product modulo X^n + 1, by definition.
    fn negacyclic(x: &[i128], y: &[i128], n: usize) -> Vec<i128> {
        let mut out = vec![0; n];
        for (i, a) in x.iter().enumerate() {
            for (j, b) in y.iter().enumerate() {
                let sign = if ((i + j) / n).is_multiple_of(2) { 1 } else { -1 };
                out[(i + j) % n] += sign * a * b;
            }
        }
        out
    }

    #[test]
    fn every_cut_gives_the_product() {
        for (m, k, n) in [(1, 1, 1), (3, 4, 2), (5, 7, 3), (1, 20, 1), (9, 1, 9), (4, 16, 6)] {
            let shape = Shape::new(m, k, n);
            let left = IntMatrix::from_fn(m, k, |i, t| (i * 31 + t * 17) as i128 % 23 - 11).unwrap();
            let right = IntMatrix::from_fn(k, n, |t, j| (t * 13 + j * 29) as i128 % 19 - 9).unwrap();
            let wanted = left.matmul(&right).unwrap();
            for degree in [8, 16, 64, 128] {
                for blocks in Blocks::candidates(shape, degree) {
                    assert!(blocks.a * blocks.b * blocks.c <= degree, "{blocks:?}");
                    let inner = blocks.counts(shape)[1];
                    let product = |row: usize, column: usize| {
                        (0..inner).fold(vec![0i128; degree], |mut sum, t| {
                            let term =
                                negacyclic(&blocks.left(&left, row, t), &blocks.right(&right, t, column), degree);
                            sum.iter_mut().zip(term).for_each(|(s, x)| *s += x);
                            sum
                        })
                    };
                    let found = blocks.gather(shape, |row, column, at| product(row, column)[at]).unwrap();
                    assert_eq!(found, wanted, "{blocks:?} at degree {degree}");
                }
            }
        }
    }
}
