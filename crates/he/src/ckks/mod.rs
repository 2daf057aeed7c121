//! CKKS: approximate arithmetic on vectors of complex numbers.
//!
//! Cheon–Kim–Kim–Song, Asiacrypt 2017; in RNS: Cheon et al., ePrint 2018/931.

pub(crate) mod chain;
mod ciphertext;
mod decrypt;
mod encode;
mod encrypt;
mod evaluator;
pub mod noise;
mod plaintext;
mod release;

pub use ciphertext::Ciphertext;
pub use decrypt::Decryptor;
pub use encode::{EncodeAt, Encoder};
pub use encrypt::Encryptor;
pub use evaluator::{Counters, Evaluator, ExtendedPlaintext, Hoisted};
pub use plaintext::Plaintext;
pub use release::{
    Expected, MAX_RELEASED_VALUES, MAX_RELEASES, RELEASE_FAILURE_BITS, RELEASE_SECURITY, ReleasePolicy, Releases,
};
