//! Encrypted bits: gates by one bootstrap each, with the blind rotations of CGGI or FHEW.

mod elementwise;
pub mod fhew;
pub(crate) mod gates;

pub use elementwise::BitEvaluator;
pub(crate) use gates::eighth;
pub use gates::{EncryptedBit, Gate};
