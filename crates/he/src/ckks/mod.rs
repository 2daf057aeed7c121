//! CKKS: approximate arithmetic on vectors of complex numbers.
//!
//! Cheon–Kim–Kim–Song, Asiacrypt 2017; in RNS: Cheon et al., ePrint 2018/931.
//!
//! A ciphertext has N/2 slots, each with a complex number. Beside its parts it carries four figures:
//!
//! | Figure | Unit | Changes |
//! |---|---|---|
//! | level | primes that are left, less one: 0 to [`max_level`](sudare_rlwe::Params::max_level) | a rescale takes one |
//! | scale Δ | integer units in a message of size one | products multiply it, a rescale divides it by a prime |
//! | [`bound`](Ciphertext::bound) | the message's own; largest absolute value of a slot | follows from the operations |
//! | [`noise`](Ciphertext::noise) | integer units; bound on the canonical norm of the error | follows from the operations |
//!
//! The figures depend on parameters, declared bounds and operations, never on the values. So a server refuses what would not
//! decrypt to the declared precision before it computes it.
//!
//! ```
//! use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral};
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
//! let secret = SecretKey::generate(&params)?;
//! // Whoever encrypts needs the public key alone; the server needs a key for each rotation.
//! let generator = KeyGenerator::new(&secret)?;
//! let public = generator.public_key()?;
//! let keys = generator.eval_keys(None, &[(params.rotation_element(1), params.max_level())])?;
//!
//! let encoder = Encoder::new(&params);
//! let x = Encryptor::with_public_key(&public)?.encrypt(&encoder.encode(&[1.0, 2.0, 3.0], 4.0)?)?;
//! assert_eq!((x.level(), x.scale(), x.bound()), (params.max_level(), params.scale(), 4.0));
//!
//! let server = Evaluator::new(&params, keys)?;
//! let neighbours = server.add(&x, &server.rotate(&x, 1)?)?;
//! assert_eq!(neighbours.bound(), 8.0);
//!
//! let sums = encoder.decode(&Decryptor::new(&secret).decrypt(&neighbours)?)?;
//! assert!((sums[0] - 3.0).abs() < neighbours.error_bound() && (sums[1] - 5.0).abs() < neighbours.error_bound());
//! # Ok(())
//! # }
//! ```

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
pub use plaintext::{Decodable, Decrypted, Plaintext};
pub use release::{Expected, MAX_RELEASED_VALUES};
pub use spread::{Images, Spread};
