//! The somewhat homomorphic scheme of Brakerski and Vaikuntanathan, in the form of Lauter,
//! Naehrig and Vaikuntanathan (`002`, section 2.1).
//!
//! Plaintexts are polynomials modulo t and X^N + 1. The secret s is Gaussian, errors are
//! multiplied by t, and a ciphertext (c_0, …, c_ξ) decrypts as [Σ c_i·s^i]_q mod t. A product is
//! longer than its factors and nothing shortens it: there are no evaluation keys at all. That
//! suits computations of one or two products, as the packings of this crate are.
//!
//! ```
//! use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, ParamsLiteral, Plaintext, SecretKey};
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! // One product in a ring of degree 2048 or more, coefficients modulo 257.
//! let params = ParamsLiteral::for_products(2048, 257, 1, Security::Bits128)?.build()?;
//! let secret = SecretKey::generate(&params)?;
//! let public = secret.public_key()?;
//! let encryptor = Encryptor::new(&public)?;
//! let x = encryptor.encrypt(&Plaintext::new(&params, &[3, 1])?)?; // 3 + X
//! let y = encryptor.encrypt(&Plaintext::new(&params, &[-5, 2])?)?; // −5 + 2X
//!
//! let product = Evaluator::new(&params).mul(&x, &y)?;
//! assert_eq!(product.len(), 3);
//! let plain = Decryptor::new(&secret).decrypt(&product)?;
//! assert_eq!(plain.centered()[..3], [-15, 1, 2]);
//! # Ok(())
//! # }
//! ```

mod ciphertext;
mod decrypt;
mod encrypt;
mod evaluator;
mod keys;
pub mod noise;
mod params;
mod plaintext;
mod sets;
#[cfg(test)]
mod tests;

pub use ciphertext::Ciphertext;
pub use decrypt::Decryptor;
pub use encrypt::Encryptor;
pub use evaluator::{Evaluator, Multiplier};
pub use keys::{PublicKey, SecretKey};
pub use params::{MAX_LENGTH, MAX_PLAIN_MODULUS, Params, ParamsLiteral};
pub use plaintext::Plaintext;
pub use sets::PaperSet;
