//! Blind rotation: bootstrapping keys, lookup tables as polynomials, several rotations at once.

pub(crate) mod batch;
pub(crate) mod blind;
pub(crate) mod steps;
pub(crate) mod table;

pub use blind::{BootstrapKey, MAX_UNROLL};
pub use steps::Steps;
pub use table::{LookupTable, table_steps};
