//! Rings Z_q\[X\]/(X^N + 1) in residue number systems: the arithmetic under every scheme of
//! Sudare. Knows no keys and no schemes.

pub mod automorphism;
pub mod error;
pub mod kernel;
pub mod modulus;
pub mod order;
pub mod prime;
pub mod random;

pub use error::RingError;
pub use kernel::{Family, Limb};
pub use modulus::{Modulus, Shoup};
