//! Products of matrices that are larger than memory, block by block.
//!
//! A method whose product is C_ij = finish(Σ_t spread(A_it) · spread(B_tj)), one ciphertext a block, is [`Blocked`]. Its sums
//! are exact, so that a product by blocks from a disk has the bits of the one in memory, whatever the order and however
//! it is cut.

use crate::error::MatrixError;
use crate::product::Product;
use sudare_expr::Matrix;
use sudare_expr::Operand;
use sudare_he::ckks::{Ciphertext, Decrypted, Evaluator, Plaintext};
use zeroize::Zeroizing;

/// A product by blocks of one ciphertext.
pub trait Blocked: Product {
    /// Rows and columns of blocks of each of the batch.
    fn grid(&self, operand: Operand) -> (usize, usize);

    /// Rows and columns of elements in a block.
    fn block_shape(&self, operand: Operand) -> (usize, usize);

    /// Encodes a block, counted row by row through the batch, of matrices whose shape and bound were checked.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn encode_block(
        &self,
        operand: Operand,
        matrices: &[Matrix],
        max_abs: f64,
        index: usize,
    ) -> Result<Plaintext, MatrixError>;

    /// The elements of a block of a matrix, row by row; zeros beyond the matrix's edge.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn decode_block(&self, operand: Operand, block: &Decrypted) -> Result<Zeroizing<Vec<f64>>, MatrixError>;

    /// A block in the form in which it is multiplied.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn spread(&self, _: &Evaluator, _: Operand, block: Ciphertext) -> Result<Ciphertext, MatrixError> {
        Ok(block)
    }

    /// A block of the result from the sum of products, which has three parts.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn finish(&self, evaluator: &Evaluator, sum: Ciphertext) -> Result<Ciphertext, MatrixError>;
}
