//! The code that the three methods for matrices share: they differ only in how many rows of the left matrix
//! and how many columns of the right one a ciphertext holds.

use super::entries::Entries;
use super::layout::{Layout, require_shape, require_single};
use super::require_count;
use crate::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
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
    ) -> Result<Self, PackingError> {
        require_single(name, shape)?;
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
    ) -> Result<ParamsLiteral, PackingError> {
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

    pub fn encode(&self, operand: Operand, matrix: &Matrix<i128>) -> Result<Vec<Plaintext>, PackingError> {
        require_shape("the matrix", matrix.shape(), self.shape.of(operand))?;
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
            Operand::Output => Err(PackingError::Method {
                method: self.name,
                reason: "results are decrypted and not encoded; name the left or the right operand".into(),
            }),
        }
    }

    pub fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, PackingError> {
        require_count("left ciphertexts", left.len(), self.count(Operand::Left))?;
        require_count("right ciphertexts", right.len(), self.count(Operand::Right))?;
        let across = right.len();
        let one = |at: usize| Ok(evaluator.mul(&left[at / across], &right[at % across])?);
        threads::map(self.count(Operand::Output), one).into_iter().collect()
    }

    pub fn decode(&self, result: &[Plaintext]) -> Result<Matrix<i128>, PackingError> {
        require_count("results", result.len(), self.count(Operand::Output))?;
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
            /// [`PackingError::DoesNotFit`](crate::PackingError::DoesNotFit) if N or t is too small,
            /// [`PackingError::Method`](crate::PackingError::Method) for an empty product, a batch, or
            /// results that could exceed 126 bits.
            pub fn new(
                params: &crate::bv::Params,
                $shape: sudare_expr::Shape,
                entries: super::Entries,
            ) -> Result<Self, crate::PackingError> {
                Bands::new($name, params, $shape, $held, entries).map(Self)
            }

            /// The cheapest parameters for a product.
            ///
            /// # Errors
            /// As `new`, and `RlweError::Parameters`.
            pub fn parameters(
                $shape: sudare_expr::Shape,
                entries: super::Entries,
                security: sudare_rlwe::security::Security,
            ) -> Result<crate::bv::ParamsLiteral, crate::PackingError> {
                Bands::parameters($name, $shape, $held, entries, security)
            }
        }

        impl super::MatrixPacking for $method {
            fn name(&self) -> &'static str {
                $name
            }

            fn params(&self) -> &crate::bv::Params {
                self.0.params()
            }

            fn shape(&self) -> sudare_expr::Shape {
                self.0.shape()
            }

            fn count(&self, operand: sudare_expr::Operand) -> usize {
                self.0.count(operand)
            }

            fn encode(
                &self,
                operand: sudare_expr::Operand,
                matrix: &sudare_expr::Matrix<i128>,
            ) -> Result<Vec<crate::bv::Plaintext>, crate::PackingError> {
                self.0.encode(operand, matrix)
            }

            fn multiply(
                &self,
                evaluator: &crate::bv::Evaluator,
                left: &[crate::bv::Ciphertext],
                right: &[crate::bv::Ciphertext],
            ) -> Result<Vec<crate::bv::Ciphertext>, crate::PackingError> {
                self.0.multiply(evaluator, left, right)
            }

            fn decode(
                &self,
                result: &[crate::bv::Plaintext],
            ) -> Result<sudare_expr::Matrix<i128>, crate::PackingError> {
                self.0.decode(result)
            }
        }
    };
}
pub(super) use matrix_packing;
