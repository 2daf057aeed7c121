//! CKKS: approximate arithmetic on vectors of complex numbers.
//!
//! Cheon–Kim–Kim–Song, Asiacrypt 2017; in RNS: Cheon et al., ePrint 2018/931.

mod ciphertext;
mod decrypt;
mod encode;
mod encrypt;
mod evaluator;
pub mod multiparty;
pub mod noise;
mod params;
mod plaintext;
mod release;
pub mod spread;
mod wire;

pub use ciphertext::{Ciphertext, State};
pub use decrypt::Decryptor;
pub use encode::{EncodeAt, Encoder};
pub use encrypt::Encryptor;
pub use evaluator::{Batch, CiphertextOf, Evaluator, ExtendedPlaintext, Mask, Order, PlainMatrix, PlaintextOf};
pub use params::{Params, ParamsLiteral};
pub use plaintext::Plaintext;
pub use release::{Expected, MAX_RELEASED_VALUES};
pub use spread::{Images, Spread};
