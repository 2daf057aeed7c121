//! Encrypted bits: gates by one bootstrap each, with the blind rotations of CGGI or FHEW.

pub mod fhew;
pub(crate) mod gates;

pub use gates::{EncryptedBit, Gate};
