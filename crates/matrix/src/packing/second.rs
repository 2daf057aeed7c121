//! Matrix products by one multiplication (`002`, Theorems 7 and 10).

use super::entries::Entries;
use super::int_matrix::IntMatrix;
use super::layout::{Layout, expect_shape, expect_single};
use super::{MatrixPacking, expect_count};
use crate::error::MatrixError;
use crate::product::{Operand, Shape};
use sudare_he::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_he::security::Security;

const NAME: &str = "second";

/// Each matrix in one ciphertext, and one multiplication. Element (i, j) stands at
/// X^(s(ik + jmk)). Needs N ≥ s·m·k·n, which is m³ in Theorem 7 (short entries) and 2m³d in
/// Theorem 10, where the paper asks for 2m³d + 2md + 2d.
#[derive(Clone, Debug)]
pub struct SecondMethod {
    params: Params,
    shape: Shape,
    layout: Layout,
}

impl SecondMethod {
    /// The packing of a product under given parameters.
    ///
    /// # Errors
    /// [`MatrixError::DoesNotFit`] if N or t is too small, [`MatrixError::Method`] for an empty
    /// product, a batch, or results that could exceed 126 bits.
    pub fn new(params: &Params, shape: Shape, entries: Entries) -> Result<Self, MatrixError> {
        expect_single(NAME, shape)?;
        let layout = layout(shape, entries);
        layout.check(NAME, params)?;
        Ok(Self { params: params.clone(), shape, layout })
    }

    /// The cheapest parameters for a product.
    ///
    /// # Errors
    /// As [`SecondMethod::new`], and [`sudare_he::HeError::Parameters`].
    pub fn parameters(shape: Shape, entries: Entries, security: Security) -> Result<ParamsLiteral, MatrixError> {
        layout(shape, entries).parameters(NAME, security)
    }
}

fn layout(shape: Shape, entries: Entries) -> Layout {
    Layout { rows: shape.m, length: shape.k, cols: shape.n, entries }
}

impl MatrixPacking for SecondMethod {
    fn name(&self) -> &'static str {
        NAME
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn count(&self, operand: Operand) -> usize {
        match operand {
            Operand::Left => 1,
            Operand::Right => 1,
            Operand::Output => 1,
        }
    }

    fn encode(&self, operand: Operand, matrix: &IntMatrix) -> Result<Vec<Plaintext>, MatrixError> {
        expect_shape("the matrix", matrix.shape(), self.shape.of(operand))?;
        match operand {
            Operand::Left => {
                self.layout.left(&self.params, (0..self.shape.m).map(|i| matrix.row(i)), 0).map(|p| vec![p])
            }
            Operand::Right => {
                let columns = matrix.transpose();
                self.layout.right(&self.params, (0..self.shape.n).map(|i| columns.row(i)), 0).map(|p| vec![p])
            }
            Operand::Output => Err(MatrixError::Method { method: NAME, reason: "results are not encoded".into() }),
        }
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        expect_count("left ciphertexts", left.len(), self.count(Operand::Left))?;
        expect_count("right ciphertexts", right.len(), self.count(Operand::Right))?;
        Ok(vec![evaluator.mul(&left[0], &right[0])?])
    }

    fn decode(&self, result: &[Plaintext]) -> Result<IntMatrix, MatrixError> {
        expect_count("results", result.len(), self.count(Operand::Output))?;
        IntMatrix::from_fn(self.shape.m, self.shape.n, |i, j| self.layout.read(&result[0], i, j))
    }
}
