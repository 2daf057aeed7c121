//! Where the elements of integer matrices stand in polynomials.
//!
//! A block of the left operand of a product is a×b, one of the right operand b×c, and a block of the result a×c. In
//! [`Packing::Coefficients`], entry (i, t) of a left block stands at coefficient i·b + t and (t, j) of a right one at
//! j·a·b + (b − 1 − t). In their product modulo X^N + 1, entry (i, j) of the blocks' product stands at j·a·b + i·b + b − 1:
//! for N ≥ a·b·c nothing else gets there, since what wraps around lands below b − 1 (Duong et al., `002`, Theorem 7,
//! for any shape).
//!
//! In [`Packing::Slots`], (i, t) stands at the c slots j·a·b + i·b + t, and (t, j) at the a of them: the product of both
//! has the b terms of entry (i, j) in neighbouring slots, which are summed after decryption. There, products element by
//! element are products of ciphertexts.
//!
//! Products of larger matrices are sums over blocks in either packing.

use crate::error::MatrixError;
use sudare_exact::Packing;
use sudare_expr::Matrix;
use sudare_expr::Shape;

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

/// What a matrix is in a product of m×k with k×n matrices, and so where its elements stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The left factor of a product over so many terms.
    Left(usize),
    /// The right factor.
    Right(usize),
    /// The result, or what is added to it.
    Result,
    /// In slots, what a result is multiplied by element by element: at all the terms of each entry.
    Everywhere,
}

impl Role {
    /// Terms of the sums of products whose factor it is.
    pub fn terms(self) -> Option<usize> {
        match self {
            Self::Left(k) | Self::Right(k) => Some(k),
            Self::Result | Self::Everywhere => None,
        }
    }
}

impl Blocks {
    /// Blocks of a product in each direction: rows, contraction, columns.
    pub fn counts(&self, shape: Shape) -> [usize; 3] {
        [shape.m.div_ceil(self.a), shape.k.div_ceil(self.b), shape.n.div_ceil(self.c)]
    }

    /// Rows and columns of blocks of a matrix.
    pub fn grid(&self, shape: Shape, role: Role) -> (usize, usize) {
        let [rows, _, columns] = self.counts(shape);
        match role {
            Role::Left(k) => (rows, k.div_ceil(self.b)),
            Role::Right(k) => (k.div_ceil(self.b), columns),
            Role::Result | Role::Everywhere => (rows, columns),
        }
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

    /// The values of block (row, column) of a matrix, in the order of coefficients or slots.
    pub fn block(
        &self,
        packing: Packing,
        role: Role,
        matrix: &Matrix<i128>,
        (row, column): (usize, usize),
    ) -> Vec<i128> {
        let Self { a, b, c } = *self;
        let (high, wide) = match role {
            Role::Left(_) => (a, b),
            Role::Right(_) => (b, c),
            Role::Result | Role::Everywhere => (a, c),
        };
        let (height, width) = matrix.shape();
        let (rows, columns) = (row * high..height.min((row + 1) * high), column * wide..width.min((column + 1) * wide));
        let at = |i: usize, t: usize, j: usize| j * a * b + i * b + t;
        let mut out = vec![0; a * b * c];
        for p in rows.clone() {
            for q in columns.clone() {
                let (x, p, q) = (matrix.get(p, q), p - rows.start, q - columns.start);
                match (packing, role) {
                    (Packing::Coefficients, Role::Left(_)) => out[at(p, q, 0)] = x,
                    (Packing::Coefficients, Role::Right(_)) => out[at(0, b - 1 - p, q)] = x,
                    (Packing::Coefficients, _) => out[at(p, b - 1, q)] = x,
                    (Packing::Slots, Role::Left(_)) => (0..c).for_each(|j| out[at(p, q, j)] = x),
                    (Packing::Slots, Role::Right(_)) => (0..a).for_each(|i| out[at(i, p, q)] = x),
                    (Packing::Slots, Role::Result) => out[at(p, 0, q)] = x,
                    (Packing::Slots, Role::Everywhere) => (0..b).for_each(|t| out[at(p, t, q)] = x),
                }
            }
        }
        out
    }

    /// The places in a block of the result whose sum is its entry (i, j).
    pub fn places(&self, packing: Packing, (i, j): (usize, usize)) -> std::ops::Range<usize> {
        let first = j * self.a * self.b + i * self.b;
        match packing {
            Packing::Coefficients => first + self.b - 1..first + self.b,
            Packing::Slots => first..first + self.b,
        }
    }

    /// Puts the results of all blocks together; `sum(row, column, places)` is that of a block's values.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] for a shape without elements.
    pub fn gather(
        &self,
        packing: Packing,
        shape: Shape,
        sum: impl Fn(usize, usize, std::ops::Range<usize>) -> i128,
    ) -> Result<Matrix<i128>, MatrixError> {
        Ok(Matrix::<i128>::from_fn(shape.m, shape.n, |i, j| {
            sum(i / self.a, j / self.c, self.places(packing, (i % self.a, j % self.c)))
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product modulo X^n + 1, by definition, or slot by slot.
    fn product(packing: Packing, x: &[i128], y: &[i128], n: usize) -> Vec<i128> {
        let mut out = vec![0; n];
        if packing == Packing::Slots {
            x.iter().zip(y).zip(&mut out).for_each(|((a, b), o)| *o = a * b);
            return out;
        }
        for (i, a) in x.iter().enumerate() {
            for (j, b) in y.iter().enumerate() {
                let sign = if ((i + j) / n).is_multiple_of(2) { 1 } else { -1 };
                out[(i + j) % n] += sign * a * b;
            }
        }
        out
    }

    /// A @ B + C, in slots also (A @ B) * C.
    #[test]
    fn every_cut_gives_the_product() {
        for (m, k, n) in [(1, 1, 1), (3, 4, 2), (5, 7, 3), (1, 20, 1), (9, 1, 9), (4, 16, 6)] {
            let shape = Shape::new(m, k, n);
            let left = Matrix::<i128>::from_fn(m, k, |i, t| (i * 31 + t * 17) as i128 % 23 - 11).unwrap();
            let right = Matrix::<i128>::from_fn(k, n, |t, j| (t * 13 + j * 29) as i128 % 19 - 9).unwrap();
            let other = Matrix::<i128>::from_fn(m, n, |i, j| (i * 7 + j * 5) as i128 % 17 - 8).unwrap();
            let plain = left.matmul(&right).unwrap();
            for (degree, packing) in
                [8, 16, 64, 128].into_iter().flat_map(|d| [(d, Packing::Coefficients), (d, Packing::Slots)])
            {
                for blocks in Blocks::candidates(shape, degree) {
                    assert!(blocks.a * blocks.b * blocks.c <= degree, "{blocks:?}");
                    let whole = |row: usize, column: usize, mixed: bool| {
                        let mut sum = vec![0i128; degree];
                        for t in 0..blocks.grid(shape, Role::Left(k)).1 {
                            let x = blocks.block(packing, Role::Left(k), &left, (row, t));
                            let y = blocks.block(packing, Role::Right(k), &right, (t, column));
                            sum.iter_mut().zip(product(packing, &x, &y, degree)).for_each(|(s, x)| *s += x);
                        }
                        let (role, at) = (if mixed { Role::Everywhere } else { Role::Result }, (row, column));
                        let c = blocks.block(packing, role, &other, at);
                        match mixed {
                            true => product(packing, &sum, &c, degree),
                            false => {
                                sum.iter().zip(c.into_iter().chain(std::iter::repeat(0))).map(|(s, x)| s + x).collect()
                            }
                        }
                    };
                    for mixed in [false, true].into_iter().filter(|mixed| !mixed || packing == Packing::Slots) {
                        let sum = |row: usize, column: usize, at: std::ops::Range<usize>| -> i128 {
                            whole(row, column, mixed)[at].iter().sum()
                        };
                        let found = blocks.gather(packing, shape, sum).unwrap();
                        let both = |x: i128, y: i128| if mixed { x * y } else { x + y };
                        let wanted =
                            Matrix::<i128>::from_fn(m, n, |i, j| both(plain.get(i, j), other.get(i, j))).unwrap();
                        assert_eq!(found, wanted, "{blocks:?} at degree {degree} in {packing:?}");
                    }
                }
            }
        }
    }
}
