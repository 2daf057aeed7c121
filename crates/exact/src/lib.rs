//! BFV and BGV: exact encrypted arithmetic with integers modulo t, with keys, parameters and the wire format of [`sudare_rlwe`].
//!
//! What both share is here: plaintext moduli, encoding, ciphertexts, noise, and everything linear. Products are in
//! [`bfv`] and [`bgv`], each with the scheme's own names of all types and an example; the refresh of both is in [`refresh`].
//!
//! | To do | Take |
//! |---|---|
//! | choose parameters for a computation | [`plan::Requirements`] |
//! | pack integers into slots or coefficients | [`Encoder`] |
//! | integers larger than one plaintext modulus | [`big::BigEncoder`] |
//! | know what noise an operation leaves | [`NoiseModel`], [`Ciphertext::headroom`], [`Decryptor::noise_budget`] |
//! | hold the key among several parties | [`multiparty`] |
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod bfv;
pub mod bgv;
pub mod big;
mod ciphertext;
mod decrypt;
mod encode;
mod encrypt;
pub mod error;
mod evaluator;
pub mod multiparty;
pub mod noise;
mod params;
mod plaintext;
pub mod plan;
pub mod refresh;
mod rotate;
mod scheme;
mod wire;

pub(crate) use ciphertext::check_fits;
pub use ciphertext::{Ciphertext, CiphertextOf, State};
pub use decrypt::Decryptor;
pub use encode::{Encoder, Packing, Wrap};
pub use encrypt::Encryptor;
pub use error::ExactError;
pub use evaluator::Evaluator;
pub use noise::NoiseModel;
pub(crate) use noise::ProductPlan;
pub use params::IntegerParams;
pub use plaintext::{PlainFactor, Plaintext};
pub use scheme::Scheme;
pub(crate) use scheme::sealed;
pub use wire::{
    StoredIntegerParams, integer_params_from_bytes, integer_params_to_bytes, read_integer_params, write_integer_params,
};
