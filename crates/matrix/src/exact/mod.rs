//! Exact products of integer matrices: never rounded, and refused where they would not fit.
//!
//! Operands are packed into coefficients of BGV ciphertexts ([`Blocks`]); one multiplication is
//! the product of two blocks, without rotations and without keys on the server. Larger matrices
//! are cut into blocks and summed before anything is sent; larger results use several coprime
//! plaintext moduli. [`ExactPlan`] chooses ring, cut and moduli by cost. The packings of Duong et
//! al. under the scheme of Brakerski and Vaikuntanathan are in [`crate::packing`].
//!
//! The coefficients beside the answer are sums of products of entries: whoever decrypts sees them
//! too.
//!
//! ```
//! use sudare_rlwe::security::Security;
//! use sudare_matrix::exact::{ExactClient, ExactPlan, ExactServer, ExactSpec};
//! use sudare_matrix::packing::IntMatrix;
//! use sudare_matrix::{Operand, Shape};
//!
//! # fn main() -> Result<(), sudare_matrix::MatrixError> {
//! let shape = Shape::new(3, 5, 2);
//! let plan = ExactPlan::new(&ExactSpec { shape, left: 1000, right: 50, security: Security::Bits128 })?;
//! let a = IntMatrix::from_fn(3, 5, |i, t| (i * 400) as i128 - (t * 200) as i128)?;
//! let b = IntMatrix::from_fn(5, 2, |t, j| 50 - (10 * t + j) as i128)?;
//!
//! let client = ExactClient::new(&plan, 1)?;
//! let (x, y) = (client.encrypt(Operand::Left, &a)?, client.encrypt(Operand::Right, &b)?);
//! let product = ExactServer::new(&plan, 1)?.multiply(&x, &y)?;
//! assert_eq!(client.decrypt(&product)?, a.matmul(&b)?);
//! # Ok(())
//! # }
//! ```

mod blocks;
mod plan;
mod session;

pub use blocks::Blocks;
pub use plan::{ExactPlan, ExactSpec};
pub use session::{EncryptedIntegers, ExactClient, ExactServer};
