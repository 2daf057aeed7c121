//! Products of encrypted matrices of any shape.
//!
//! A [`ProductSpec`] says which product (its [`Shape`]), by which [`Method`], under which
//! parameters; it is what a plan stores. Its [`Outline`] says which keys it needs, what it costs and
//! which error it promises, without anything being built; built, it is a [`Product`]: how operands
//! are encoded, multiplied and decoded. [`Work`] counts what a product costs, in operations that a
//! machine's cost model prices.
#![forbid(unsafe_code)]

pub mod blocked;
pub mod coefficient;
pub mod device;
pub mod error;
pub mod exact;
pub mod module;
pub mod packing;
pub mod plan;
mod portable;
pub mod product;
pub mod registry;
mod rounding;
pub mod session;
mod sizing;
pub mod slots;
pub mod statistics;
mod tables;

pub use error::MatrixError;
pub use plan::{CostModel, Goal, Plan, Planner};
pub use product::{Figures, KeyDemand, Method, Operand, Outline, Product, ProductSpec, Requirements, Shape};
pub use session::{Client, Context, ContextOptions, Encrypted, PublicClient, Server};
pub use sudare_rlwe::work::{self, Work};
