//! TFHE (CGGI): encrypted bits and small integers, with a bootstrap in every step.
//!
//! The objects are LWE, GLWE, GLev and GGSW ciphertexts under binary or ternary secrets.
//! Polynomials live modulo one NTT prime below 2^50, so that every product is exact; LWE
//! ciphertexts between key switch and blind rotation live modulo 2^32.

mod context;
mod error;
mod ggsw;
mod glwe;
mod key_switch;
mod lwe;
mod noise;
pub mod variance;

pub use context::GlweContext;
pub use error::TfheError;
pub use ggsw::{GgswCiphertext, GlevCiphertext, ObjectSeeds};
pub use glwe::{GlweCiphertext, GlweSecretKey};
pub use key_switch::{GlweSwitchKey, LweSwitchKey, PackingKey};
pub use lwe::{LweCiphertext, LweSecretKey, RotationExponents, TorusLwe};
pub use noise::{Noise, NoiseSampler, SecretKind};
pub use sudare_ring::kernel::Gadget;
