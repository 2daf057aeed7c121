//! Homomorphic encryption on what [`sudare_rlwe`] has for all schemes: CKKS (approximate), integers and bits with tables
//! of their values, and circuits of these operations. BFV and BGV are in `sudare-exact`.
//!
//! ```
//! use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
//!
//! let encoder = Encoder::new(&params);
//! let encryptor = Encryptor::with_secret_key(&secret)?;
//! let x = encryptor.encrypt(&encoder.encode(&[0.5, -0.25], 1.0)?)?;
//!
//! let server = Evaluator::new(&params, keys)?;
//! let square = server.rescale(&server.mul_relin(&x, &x)?)?;
//!
//! let y = encoder.decode(&Decryptor::new(&secret).decrypt(&square)?)?;
//! assert!((y[0] - 0.25).abs() < 1e-6 && (y[1] - 0.0625).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod circuits;
pub mod ckks;
pub mod discrete;
pub mod error;

pub use error::HeError;
