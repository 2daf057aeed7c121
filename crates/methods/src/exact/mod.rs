//! Exact computations with integer matrices: never rounded, and refused where they would not fit.
//!
//! What is computed is an expression of inputs, encrypted or plain: sums, differences, products with numbers and plain
//! matrices, transposes, sums over rows and columns, slices and concatenation, and one product of two encrypted values on each way to the result,
//! of matrices or element by element (`request.rs`). Operands are packed into coefficients or slots of BGV ciphertexts
//! ([`Blocks`]); one multiplication is the product of two blocks, without rotations and without keys on the server. What
//! is linear is done before: its owner encrypts an input in every form that the expression takes it in. Larger matrices
//! are cut into blocks and summed before anything is sent; larger results use several coprime plaintext moduli. A planner
//! chooses ring, cut and moduli ([`ExactSpec`]) by cost. The packings of Duong et al. under the scheme of Brakerski and
//! Vaikuntanathan are in the crate `packings`.
//!
//! The coefficients and slots beside the answer are terms of it, and sums of products of entries: whoever decrypts sees them
//! too.
//!
//! ```
//! use sudare_expr::{Expr, InputSpec, Matrix};
//! use sudare_session::QUIET;
//! use sudare_plan::{CostModel, Goal, Planner};
//! use sudare_session::{Client, Server};
//!
//! # fn main() -> Result<(), sudare_methods::MatrixError> {
//! let expr = Expr::product(InputSpec::integers("A", (3, 5), 1000), InputSpec::integers("B", (5, 2), 50))?;
//! let plan = Planner::new(CostModel::default()).plan(&Goal::new(expr, 0.0))?;
//! let a = Matrix::<i128>::from_fn(3, 5, |i, t| (i * 400) as i128 - (t * 200) as i128)?;
//! let b = Matrix::<i128>::from_fn(5, 2, |t, j| 50 - (10 * t + j) as i128)?;
//!
//! let client = Client::new(&plan, 1)?;
//! let (x, y) = (client.encrypt_integers("A", &a, QUIET)?, client.encrypt_integers("B", &b, QUIET)?);
//! let product = Server::keyless(&plan, 1)?.matmul(&x, &y)?;
//! assert_eq!(client.decrypt_integers(&product)?, a.matmul(&b)?);
//! # Ok(())
//! # }
//! ```

mod blocks;
mod engine;
mod garner;
mod moduli;
mod operation;
mod request;
mod spec;

pub use blocks::Blocks;
pub use engine::{EncryptionKey, ExactEngine, ExactOperand, ExactValue, Residues};
pub use request::Request;
pub use spec::ExactSpec;
pub use spec::{ExactSketch, candidates};
