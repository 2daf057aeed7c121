//! Matrix products by an inner product for each element: the baseline (`002`, section 4).

use super::entries::Entries;
use super::int_matrix::IntMatrix;
use super::layout::{Layout, expect_shape, expect_single};
use super::{MatrixPacking, expect_count};
use crate::error::MatrixError;
use crate::product::{Operand, Shape};
use sudare_he::bv::{Ciphertext, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_he::ring::threads;
use sudare_he::security::Security;

const NAME: &str = "previous";

/// Every row and every column in a ciphertext of its own, as [`super::InnerProduct`] and
/// [`super::LargeInnerProduct`] pack them: m·n multiplications. Needs N ≥ s·k.
#[derive(Clone, Debug)]
pub struct PreviousMethod {
    params: Params,
    shape: Shape,
    layout: Layout,
}

impl PreviousMethod {
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
    /// As [`PreviousMethod::new`], and [`sudare_he::HeError::Parameters`].
    pub fn parameters(shape: Shape, entries: Entries, security: Security) -> Result<ParamsLiteral, MatrixError> {
        layout(shape, entries).parameters(NAME, security)
    }
}

fn layout(shape: Shape, entries: Entries) -> Layout {
    Layout { rows: 1, length: shape.k, cols: 1, entries }
}

impl MatrixPacking for PreviousMethod {
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
            Operand::Left => self.shape.m,
            Operand::Right => self.shape.n,
            Operand::Output => self.shape.m * self.shape.n,
        }
    }

    fn encode(&self, operand: Operand, matrix: &IntMatrix) -> Result<Vec<Plaintext>, MatrixError> {
        expect_shape("the matrix", matrix.shape(), self.shape.of(operand))?;
        match operand {
            Operand::Left => {
                (0..self.shape.m).map(|i| self.layout.left(&self.params, [matrix.row(i)].into_iter(), i)).collect()
            }
            Operand::Right => {
                let columns = matrix.transpose();
                (0..self.shape.n).map(|i| self.layout.right(&self.params, [columns.row(i)].into_iter(), i)).collect()
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
        let cols = self.shape.n;
        let one = |i: usize| Ok(evaluator.mul(&left[i / cols], &right[i % cols])?);
        threads::map(self.count(Operand::Output), one).into_iter().collect()
    }

    fn decode(&self, result: &[Plaintext]) -> Result<IntMatrix, MatrixError> {
        expect_count("results", result.len(), self.count(Operand::Output))?;
        IntMatrix::from_fn(self.shape.m, self.shape.n, |i, j| self.layout.read(&result[i * self.shape.n + j], 0, 0))
    }
}
