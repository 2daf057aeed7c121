//! Products of matrices that are larger than memory, block by block, from a store to a store ([`Schedule`], [`multiply`]).

mod run;
mod schedule;

pub(crate) use run::accumulate;
pub use run::{Decode, Operands, multiply};
pub use schedule::{Schedule, Sizes};
