//! What schemes over Ring-LWE share, once: parameters and their security, keys, hybrid key switching,
//! ciphertexts and everything linear on them, noise formulas, and the wire format.
//!
//! A scheme wraps these types and adds what it says of a message: CKKS a scale and bounds, BFV and BGV a
//! plaintext factor and a noise bound. So `rlwe` encrypts raw polynomials and hands back phases; what
//! they mean is the scheme's.
//!
//! ```
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
//! use sudare_rlwe::security::{SecretDistribution, Security};
//! use sudare_rlwe::{Decryptor, Encryptor, Evaluator, Message};
//! use sudare_ring::{Coeff, Poly};
//!
//! # fn main() -> Result<(), sudare_rlwe::RlweError> {
//! let literal = ParamsLiteral {
//!     log_n: 13,
//!     q_bits: vec![49, 49],
//!     p_bits: vec![49],
//!     digit_limbs: 1,
//!     secret: SecretDistribution::Ternary,
//!     security: Security::Bits128,
//! };
//! let params = literal.build(SchemeTag(1))?;
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(None, &[(params.conjugation_element(), 1)])?;
//!
//! // 2^40·X, and X ↦ X^−1 = −X^(N−1) of it.
//! let mut message = vec![0i64; params.degree()];
//! message[1] = 1 << 40;
//! let message = Poly::<Coeff>::from_signed(params.q(), &message);
//! let x = Encryptor::with_secret_key(&secret)?.encrypt(Message::Coefficients(message))?;
//! let y = Evaluator::new(keys).automorphism(&x, params.conjugation_element(), 0)?;
//!
//! let phase = Decryptor::new(&secret).phase_coefficients(&y, 0)?;
//! let last = phase.centered()[params.degree() - 1];
//! assert!((last + (1 << 40)).abs() < 1 << 20);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod backend;
mod ciphertext;
mod context;
mod counted;
mod counters;
mod cpu;
mod decrypt;
mod encrypt;
pub mod error;
mod evaluator;
pub mod ids;
mod interleaved;
pub mod keys;
pub mod multiparty;
pub mod noise;
pub mod params;
pub mod release;
mod sample;
mod scaling;
pub mod security;
pub mod simulated;
pub mod switching;
pub mod wire;
pub mod work;

pub use backend::{
    Backend, Combination, Divisor, MapEnd, Over, Quotient, Raise, RaiseKeys, RaiseMap, ScaledProduct, Shaped, ToDense,
};
pub use ciphertext::Ciphertext;
pub use context::Context;
pub use counters::Counters;
pub use cpu::{Blocks, Cpu, GiantStep, MapSteps, RootStep, narrowed};
pub use decrypt::Decryptor;
pub use encrypt::{ENCRYPTION, Encryptor, Message};
pub use error::RlweError;
pub use evaluator::Evaluator;
pub use ids::{KeyId, ParamsHash};
pub use interleaved::{interleaved, interleaved_secrets};
pub use params::Params;
pub use scaling::ScalingTables;
pub use work::{Prices, Work};
