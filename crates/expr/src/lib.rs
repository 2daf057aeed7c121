//! Operations on matrices and expressions of them, without any encryption.
//!
//! An [`Operation`] is what can be asked of matrices: the one list for expressions, sessions, requests and Python. An
//! [`Expr`] is a checked graph of operations whose shapes and bounds are known. A [`Matrix`] holds plain numbers.
//!
//! ```
//! use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
//!
//! # fn main() -> Result<(), sudare_expr::ExprError> {
//! // (A @ B).T with a 3×4 and a 4×2 matrix, elements up to 10 and 1 in absolute value.
//! let inputs = vec![InputSpec::new("A", (3, 4), 10.0), InputSpec::new("B", (4, 2), 1.0)];
//! let nodes = vec![
//!     Node::input(0),
//!     Node::input(1),
//!     Node::new(Operation::Matmul, &[0, 1]),
//!     Node::new(Operation::Transpose, &[2]),
//! ];
//! let expr = Expr::new(inputs, nodes, 3)?;
//! let result = expr.info(expr.output());
//! assert_eq!((result.shape, result.max_abs), ((2, 3), 40.0));
//!
//! // What an operation means, on plain matrices.
//! let a = Matrix::new(1, 2, vec![1.0, 2.0])?;
//! let b = Matrix::new(2, 1, vec![3.0, 4.0])?;
//! assert_eq!(Operation::Matmul.of_plain(&[&a, &b])?.data(), [11.0]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod error;
pub mod expr;
pub mod input;
pub mod lines;
pub mod matrix;
pub mod operation;
pub mod polynomial;
pub mod product;
mod text;

pub use error::ExprError;
pub use expr::Expr;
pub use input::InputSpec;
pub use lines::Lines;
pub use matrix::{Element, Matrix};
pub use operation::{Info, Node, Operation};
pub use polynomial::Polynomial;
pub use product::{Operand, Shape};
