//! Rings Z_q\[X\]/(X^N + 1) in residue number systems: the arithmetic under every scheme of
//! Sudare. Knows no keys and no schemes.
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod automorphism;
pub mod basis;
pub mod buffer;
pub mod convert;
pub mod count;
pub mod embedding;
pub mod error;
pub mod fourier;
pub mod interrupt;
pub mod kernel;
pub mod kind;
pub mod measure;
pub mod memo;
pub mod modulus;
pub mod ops;
pub mod order;
pub mod packed;
pub mod plain;
pub mod poly;
pub mod prime;
pub mod random;
pub mod threads;
pub mod wipe;

pub use basis::RnsBasis;
pub use error::RingError;
pub use kernel::{Family, Limb};
pub use kind::{ErrorKind, Kinded};
pub use modulus::{Modulus, Shoup};
pub use plain::PlainModulus;
pub use poly::{Coeff, Eval, Poly};
pub use threads::Threads;
