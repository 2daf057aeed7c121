//! BGV: exact arithmetic modulo t by modulus switching.
//!
//! Brakerski–Gentry–Vaikuntanathan, ePrint 2011/277; in RNS with plaintext factors:
//! Gentry–Halevi–Smart, ePrint 2012/099; Kim–Polyakov–Zucca, ePrint 2021/204.
//!
//! ```
//! use sudare_exact::bgv::{Decryptor, Encryptor, Evaluator};
//! use sudare_exact::plan::Requirements;
//! use sudare_exact::{Encoder, Packing, Wrap};
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//!
//! # fn main() -> Result<(), sudare_exact::ExactError> {
//! let params = Requirements::new(65537).depth(1).slots().bgv()?;
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
//!
//! let encoder = Encoder::new(&params);
//! let x = encoder.encode_signed(&[3, -4, 5], Packing::Slots, Wrap::Refuse)?;
//! let x = Encryptor::with_secret_key(&params, &secret)?.encrypt(&x)?;
//!
//! let server = Evaluator::new(&params, keys)?;
//! let square = server.mul_relin(&x, &x)?;
//! assert!(square.level() < x.level());
//!
//! let y = Decryptor::new(&params, &secret)?.decrypt(&square)?;
//! assert_eq!(encoder.decode_signed(&y, Packing::Slots)?[..4], [9, 16, 25, 0]);
//! # Ok(())
//! # }
//! ```

mod product;

use sudare_rlwe as rlwe;

/// The scheme as a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bgv;

/// A BGV ciphertext.
pub type Ciphertext<C = rlwe::Ciphertext> = crate::Ciphertext<Bgv, C>;
/// A BGV ciphertext of a backend.
pub type CiphertextOf<B> = crate::CiphertextOf<Bgv, B>;
/// Encrypts for BGV.
pub type Encryptor<'a> = crate::Encryptor<'a, Bgv>;
/// Decrypts BGV.
pub type Decryptor<'a> = crate::Decryptor<'a, Bgv>;
/// Evaluates on BGV ciphertexts.
pub type Evaluator<B = rlwe::Cpu> = crate::Evaluator<Bgv, B>;
