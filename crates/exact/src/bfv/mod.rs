//! BFV: exact arithmetic modulo t by scale-invariant products.
//!
//! Brakerski, CRYPTO 2012; Fan–Vercauteren, ePrint 2012/144. In RNS: Halevi–Polyakov–Shoup,
//! ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204.
//!
//! ```
//! use sudare_exact::bfv::{Decryptor, Encryptor, Evaluator};
//! use sudare_exact::plan::Requirements;
//! use sudare_exact::{Encoder, Packing, Wrap};
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//!
//! # fn main() -> Result<(), sudare_exact::ExactError> {
//! let params = Requirements::new(65537).depth(1).slots().bfv()?;
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
//!
//! let encoder = Encoder::new(&params);
//! let x = encoder.encode_signed(&[3, -4, 5], Packing::Slots, Wrap::Refuse)?;
//! let x = Encryptor::with_secret_key(&params, &secret)?.encrypt(&x)?;
//!
//! let server = Evaluator::new(&params, keys)?;
//! let square = server.mul_relin(&x, &x)?;
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
pub struct Bfv;

/// A BFV ciphertext.
pub type Ciphertext<C = rlwe::Ciphertext> = crate::Ciphertext<Bfv, C>;
/// A BFV ciphertext of a backend.
pub type CiphertextOf<B> = crate::CiphertextOf<Bfv, B>;
/// Encrypts for BFV.
pub type Encryptor<'a> = crate::Encryptor<'a, Bfv>;
/// Decrypts BFV.
pub type Decryptor<'a> = crate::Decryptor<'a, Bfv>;
/// Evaluates on BFV ciphertexts.
pub type Evaluator<B = rlwe::Cpu> = crate::Evaluator<Bfv, B>;
