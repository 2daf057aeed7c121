//! Products of encrypted matrices of any shape.
//!
//! A [`ProductSpec`] says which product (its [`Shape`](sudare_expr::Shape)), by which [`Method`], under which
//! parameters; it is what a plan stores. Its [`ProductPlan`] says which keys it needs, what it costs and
//! which error it promises, without anything being built; built, it is a [`Product`]: how operands
//! are encoded, multiplied and decoded. [`Work`](sudare_rlwe::work::Work) counts what a product costs, in operations that a
//! machine's cost model prices.
#![forbid(unsafe_code)]

pub mod blocked;
pub mod circuit;
pub mod claims;
pub mod error;
pub mod exact;
pub mod holders;
pub mod portable;
pub mod product;
pub mod products;
pub mod rounding;
pub mod sizing;
pub mod slots;
pub mod statistics;
pub mod tables;

pub use error::MatrixError;
pub use holders::Holders;
pub use product::{Figures, KeyDemand, Product, ProductPlan, Requirements};
pub use products::{Method, ProductSpec};
