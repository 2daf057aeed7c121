//! Operations on matrices and expressions of them, without any encryption.
//!
//! An [`Operation`] is what can be asked of matrices: the one list for expressions, sessions, requests and Python. An
//! [`Expr`] is a checked graph of operations whose shapes and bounds are known. A [`Matrix`] holds plain numbers.
#![forbid(unsafe_code)]

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
