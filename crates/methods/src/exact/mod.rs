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
//! Arrays of integers modulo a prime are computed element by element to any depth, with keys, and refreshed on the way ([`Arrays`],
//! [`ArraysPlan`]).
//!
//! Of the packings, the coefficients and slots beside the answer are terms of it, and sums of products of entries: whoever decrypts sees them
//! too.

mod arrays;
mod blocks;
mod circuit;
mod engine;
mod garner;
mod moduli;
mod operation;
mod request;
mod spec;

pub use arrays::{Arrays, ArraysPlan, ArraysSpec};
pub use blocks::Blocks;
pub use circuit::Size;
pub use engine::{EncryptionKey, ExactEngine, ExactOperand, ExactValue, IntegerEngine, Residues};
pub use request::Request;
pub use spec::ExactSpec;
pub use spec::{ExactPlan, candidates};
