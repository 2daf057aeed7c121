//! TFHE (CGGI): encrypted bits and small integers, with a bootstrap in every step.
//!
//! The objects are LWE, GLWE, GLev and GGSW ciphertexts under binary or ternary secrets.
//! Polynomials live modulo one NTT prime below 2^50, so that every product is exact; LWE
//! ciphertexts between key switch and blind rotation live modulo 2^32.
//!
//! ```
//! use sudare_tfhe::array::{ArrayEvaluator, ElementType, Elementwise};
//! use sudare_tfhe::radix::IntegerType;
//! use sudare_tfhe::{ClientKey, Plaintext, TfheLiteral};
//!
//! # fn main() -> Result<(), sudare_tfhe::TfheError> {
//! // A small set without security, so that the example takes no time.
//! let plaintext = Plaintext::Integer { message_bits: 2, carry_bits: 2 };
//! let params = TfheLiteral::insecure_test(plaintext).build()?;
//! let client = ClientKey::generate(&params)?;
//! let server = client.server_key()?;
//!
//! let byte = ElementType::Integer(IntegerType::new(8, false)?);
//! let x = client.encrypt_array(byte, vec![2], &[200, 7])?;
//! let sum = server.integers()?.elementwise(Elementwise::Add, &x, &x)?;
//! assert_eq!(client.decrypt_array(&sum)?, [144, 14]); // modulo 256
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod array;
pub mod boolean;
pub mod circuit_bootstrap;
mod core;
mod error;
pub mod exchange;
mod keys;
mod keyswitch;
pub mod leveled;
pub mod noise;
pub mod params;
pub mod radix;
mod rotation;
pub mod sanitise;
pub mod wire;

pub use boolean::{EncryptedBit, Gate};
pub use core::{
    GgswCiphertext, GlevCiphertext, GlweCiphertext, GlweContext, GlweSecretKey, LweCiphertext, LweSecretKey,
    RotationExponents, TorusLwe,
};
pub use error::TfheError;
pub use keys::{ClientKey, PublicKey, ServerKey};
pub use keyswitch::{
    GlweSwitchKey, LEAST_MODULE_DEGREE, LweSwitchKey, ModuleSwitchKey, Packable, PackingKey, SwitchKey,
};
pub use noise::{Noise, NoiseSampler, SecretKind};
pub use params::{Plaintext, TfheLiteral, TfheParams};
pub use radix::EncryptedInt;
pub use rotation::{BootstrapKey, LookupTable, MAX_UNROLL, Steps, table_steps};
pub use sudare_ring::kernel::Gadget;
