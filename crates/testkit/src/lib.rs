//! What the tests of several crates and the lab share. It depends on none of our crates, so that all of them can use it.
//!
//! Worlds (keys, contexts, encryptors) are in `tests/it` of the crate that they are about.

#[cfg(target_os = "linux")]
pub mod memory;
pub mod plain;
#[cfg(unix)]
pub mod process;
pub mod random;
pub mod size;

pub use random::Random;
pub use size::{setting, sized};
