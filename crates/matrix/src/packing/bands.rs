//! What the three methods for matrices share: they differ only in how many rows of the left matrix
//! and how many columns of the right one a ciphertext holds.

use super::entries::Entries;
use super::expect_count;
use super::layout::{Layout, expect_shape, expect_single};
use crate::error::MatrixError;
use crate::product::{Operand, Shape};
use sudare_expr::Matrix;
use sudare_he::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_ring::threads;
use sudare_rlwe::security::Security;

/// A product whose operands are cut into bands of equally many rows and columns; the numbers
/// divide m and n.
#[derive(Clone, Debug)]
pub(super) struct Bands {
    name: &'static str,
    params: Params,
    shape: Shape,
    layout: Layout,
}

fn layout(shape: Shape, (rows, cols): (usize, usize), entries: Entries) -> Layout {
    Layout { rows, length: shape.k, cols, entries }
}

impl Bands {
    /// Bands of `held` rows and columns.
    pub fn new(
        name: &'static str,
        params: &Params,
        shape: Shape,
        held: (usize, usize),
        entries: Entries,
    ) -> Result<Self, MatrixError> {
        expect_single(name, shape)?;
        let layout = layout(shape, held, entries);
        layout.check(name, params)?;
        Ok(Self { name, params: params.clone(), shape, layout })
    }

    /// The cheapest parameters.
    pub fn parameters(
        name: &'static str,
        shape: Shape,
        held: (usize, usize),
        entries: Entries,
        security: Security,
    ) -> Result<ParamsLiteral, MatrixError> {
        layout(shape, held, entries).parameters(name, security)
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn count(&self, operand: Operand) -> usize {
        let (down, across) = (self.shape.m / self.layout.rows, self.shape.n / self.layout.cols);
        match operand {
            Operand::Left => down,
            Operand::Right => across,
            Operand::Output => down * across,
        }
    }

    pub fn encode(&self, operand: Operand, matrix: &Matrix<i128>) -> Result<Vec<Plaintext>, MatrixError> {
        expect_shape("the matrix", matrix.shape(), self.shape.of(operand))?;
        let Layout { rows, cols, .. } = self.layout;
        match operand {
            Operand::Left => (0..self.count(operand))
                .map(|band| {
                    let first = band * rows;
                    self.layout.left(&self.params, (first..first + rows).map(|i| matrix.row(i)), first)
                })
                .collect(),
            Operand::Right => {
                let columns = matrix.transpose();
                (0..self.count(operand))
                    .map(|band| {
                        let first = band * cols;
                        self.layout.right(&self.params, (first..first + cols).map(|j| columns.row(j)), first)
                    })
                    .collect()
            }
            Operand::Output => Err(MatrixError::Method { method: self.name, reason: "results are not encoded".into() }),
        }
    }

    pub fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        expect_count("left ciphertexts", left.len(), self.count(Operand::Left))?;
        expect_count("right ciphertexts", right.len(), self.count(Operand::Right))?;
        let across = right.len();
        let one = |at: usize| Ok(evaluator.mul(&left[at / across], &right[at % across])?);
        threads::map(self.count(Operand::Output), one).into_iter().collect()
    }

    pub fn decode(&self, result: &[Plaintext]) -> Result<Matrix<i128>, MatrixError> {
        expect_count("results", result.len(), self.count(Operand::Output))?;
        let (Layout { rows, cols, .. }, across) = (&self.layout, self.count(Operand::Right));
        Ok(Matrix::<i128>::from_fn(self.shape.m, self.shape.n, |i, j| {
            self.layout.read(&result[i / rows * across + j / cols], i % rows, j % cols)
        })?)
    }
}

/// A method by the rows and columns that a ciphertext of it holds.
macro_rules! matrix_packing {
    ($method:ident, $name:literal, |$shape:ident| $held:expr) => {
        impl $method {
            /// The packing of a product under given parameters.
            ///
            /// # Errors
            /// [`MatrixError::DoesNotFit`](crate::MatrixError::DoesNotFit) if N or t is too small,
            /// [`MatrixError::Method`](crate::MatrixError::Method) for an empty product, a batch, or
            /// results that could exceed 126 bits.
            pub fn new(
                params: &sudare_he::bv::Params,
                $shape: crate::Shape,
                entries: super::Entries,
            ) -> Result<Self, crate::MatrixError> {
                Bands::new($name, params, $shape, $held, entries).map(Self)
            }

            /// The cheapest parameters for a product.
            ///
            /// # Errors
            /// As `new`, and `RlweError::Parameters`.
            pub fn parameters(
                $shape: crate::Shape,
                entries: super::Entries,
                security: sudare_rlwe::security::Security,
            ) -> Result<sudare_he::bv::ParamsLiteral, crate::MatrixError> {
                Bands::parameters($name, $shape, $held, entries, security)
            }
        }

        impl super::MatrixPacking for $method {
            fn name(&self) -> &'static str {
                $name
            }

            fn params(&self) -> &sudare_he::bv::Params {
                self.0.params()
            }

            fn shape(&self) -> crate::Shape {
                self.0.shape()
            }

            fn count(&self, operand: crate::Operand) -> usize {
                self.0.count(operand)
            }

            fn encode(
                &self,
                operand: crate::Operand,
                matrix: &sudare_expr::Matrix<i128>,
            ) -> Result<Vec<sudare_he::bv::Plaintext>, crate::MatrixError> {
                self.0.encode(operand, matrix)
            }

            fn multiply(
                &self,
                evaluator: &sudare_he::bv::Evaluator,
                left: &[sudare_he::bv::Ciphertext],
                right: &[sudare_he::bv::Ciphertext],
            ) -> Result<Vec<sudare_he::bv::Ciphertext>, crate::MatrixError> {
                self.0.multiply(evaluator, left, right)
            }

            fn decode(
                &self,
                result: &[sudare_he::bv::Plaintext],
            ) -> Result<sudare_expr::Matrix<i128>, crate::MatrixError> {
                self.0.decode(result)
            }
        }
    };
}
pub(super) use matrix_packing;
