//! TFHE (CGGI): encrypted bits and small integers, with a bootstrap in every step.
//!
//! The objects are LWE, GLWE, GLev and GGSW ciphertexts under binary or ternary secrets.
//! Polynomials live modulo one NTT prime below 2^50, so that every product is exact; LWE
//! ciphertexts between key switch and blind rotation live modulo 2^32.

mod automorphism;
mod batch;
mod blind_rotation;
pub mod circuit_bootstrap;
mod context;
pub mod derive;
mod encoding;
mod error;
pub mod fhew;
mod gates;
mod ggsw;
mod glwe;
mod integer;
mod key_switch;
mod keys;
pub mod leveled;
mod lwe;
mod module_switch;
mod noise;
mod params;
pub mod published;
pub mod radix;
pub mod sanitise;
pub mod security;
mod table;
pub mod variance;

pub use blind_rotation::{BootstrapKey, MAX_UNROLL};
pub use context::GlweContext;
pub use error::TfheError;
pub use gates::{EncryptedBit, Gate};
pub use ggsw::{GgswCiphertext, GlevCiphertext};
pub use glwe::{GlweCiphertext, GlweSecretKey};
pub use integer::EncryptedInt;
pub use key_switch::{GlweSwitchKey, LweSwitchKey, PackingKey};
pub use keys::{ClientKey, ServerKey};
pub use lwe::{LweCiphertext, LweSecretKey, RotationExponents, TorusLwe};
pub use module_switch::{LEAST_MODULE_DEGREE, ModuleSwitchKey, SwitchKey};
pub use noise::{Noise, NoiseSampler, SecretKind};
pub use params::{Plaintext, TfheLiteral, TfheParams};
pub use sudare_ring::kernel::Gadget;
pub use table::{LookupTable, table_steps};
