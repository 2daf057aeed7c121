//! The scheme of Brakerski and Vaikuntanathan ([`bv`]), packings of integers, vectors and matrices into polynomials, and
//! exact products of them under it (Duong, Mishra, Yasuda, `002`, sections 3 and 4).
//!
//! A product of two packed operands is one multiplication of polynomials, or a few; certain
//! coefficients of it are the answer, and no key is needed to compute it.
//!
//! | packing | operands | products | needs N ≥ | file |
//! |---|---|---|---|---|
//! | [`LargeIntegers`] | integers of many bits, in binary (section 3.1) | 1 | factors·(bits − 1) + 1 | `integer.rs` |
//! | [`InnerProduct`] | vectors of short entries (equation 3) | 1 | k | `inner.rs` |
//! | [`LargeInnerProduct`] | vectors of entries in base r (equations 4 and 5, Theorem 4) | 1 | 2kd | `large_inner.rs` |
//! | [`PreviousMethod`] | matrices, an inner product for each element | m·n | s·k | `previous.rs` |
//! | [`FirstMethod`] | matrices (Theorems 5 and 9) | n | s·m·k | `first.rs` |
//! | [`SecondMethod`] | matrices (Theorems 7 and 10) | 1 | s·m·k·n | `second.rs` |
//!
//! The product is m×k times k×n (in the paper m = k = n); s is the number of coefficients that an
//! entry takes, 1 for a short one and 2d for one of d digits. Sizes that do not fit are refused
//! when a packing is made. On top of them: [`HammingDistance`], [`EuclideanDistance`],
//! [`PatternMatching`], [`Statistics`].
//!
//! The coefficients beside the answer are sums of products of entries: whoever decrypts sees them
//! too.
//!
//! ```
//! use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
//! use sudare_rlwe::security::Security;
//! use sudare_expr::Matrix;
//! use sudare_expr::{Operand, Shape};
//! use sudare_packings::{Entries, MatrixPacking, PackingError, SecondMethod};
//!
//! # fn main() -> Result<(), PackingError> {
//! // 3×4 times 4×2, entries below 2^10 in base 32: two digits each.
//! let (shape, entries) = (Shape::new(3, 4, 2), Entries::digits(10, 32, false)?);
//! let params = SecondMethod::parameters(shape, entries, Security::Bits128)?.build()?;
//! let packing = SecondMethod::new(&params, shape, entries)?;
//!
//! let secret = SecretKey::generate(&params)?;
//! let public = secret.public_key()?;
//! let a = Matrix::<i128>::from_fn(3, 4, |i, j| (300 * i + 17 * j) as i128)?;
//! let b = Matrix::<i128>::from_fn(4, 2, |i, j| (1023 - 100 * i - j) as i128)?;
//! let encryptor = Encryptor::new(&public)?;
//! let x = packing.encrypt(&encryptor, Operand::Left, &a)?;
//! let y = packing.encrypt(&encryptor, Operand::Right, &b)?;
//!
//! let product = packing.multiply(&Evaluator::new(&params), &x, &y)?;
//! assert_eq!(packing.decrypt(&Decryptor::new(&secret), &product)?, a.matmul(&b)?);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/3-integers-bits-search/05-packings.md")]
struct Guide;

mod bands;
pub mod bv;
mod distance;
mod entries;
pub mod error;
mod first;
mod inner;
mod integer;
mod large_inner;
mod layout;
mod pattern;
mod previous;
mod second;
mod statistics;

pub use distance::{EuclideanDistance, HammingDistance};
pub use entries::Entries;
pub use error::PackingError;
pub use first::FirstMethod;
pub use inner::InnerProduct;
pub use integer::LargeIntegers;
pub use large_inner::LargeInnerProduct;
pub use pattern::PatternMatching;
pub use previous::PreviousMethod;
pub use second::SecondMethod;
pub use statistics::{EncryptedColumn, EncryptedMoments, Moments, Statistics};

use crate::bv::{Ciphertext, Decryptor, Encryptor, Evaluator, Params, Plaintext};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_ring::threads;

/// A packing of matrices with its product. Work on several ciphertexts is shared by the threads
/// of the pool that it runs in.
pub trait MatrixPacking: std::fmt::Debug + Send + Sync {
    /// The method's name.
    fn name(&self) -> &'static str;

    /// The parameters that it was made for.
    fn params(&self) -> &Params;

    /// The product's shape.
    fn shape(&self) -> Shape;

    /// Ciphertexts of an operand or of the result.
    fn count(&self, operand: Operand) -> usize;

    /// Packs an operand.
    ///
    /// # Errors
    /// [`PackingError::PackedShape`], [`PackingError::OutOfRange`].
    fn encode(&self, operand: Operand, matrix: &Matrix<i128>) -> Result<Vec<Plaintext>, PackingError>;

    /// Multiplies packed operands.
    ///
    /// # Errors
    /// [`PackingError::Count`], and whatever [`Evaluator::mul`] refuses.
    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, PackingError>;

    /// Reads a decrypted result.
    ///
    /// # Errors
    /// [`PackingError::Count`].
    fn decode(&self, result: &[Plaintext]) -> Result<Matrix<i128>, PackingError>;

    /// Packs and encrypts an operand.
    ///
    /// # Errors
    /// As [`MatrixPacking::encode`] and [`Encryptor::encrypt`].
    fn encrypt(
        &self,
        encryptor: &Encryptor<'_>,
        operand: Operand,
        matrix: &Matrix<i128>,
    ) -> Result<Vec<Ciphertext>, PackingError> {
        let plain = self.encode(operand, matrix)?;
        threads::map(plain.len(), |i| Ok(encryptor.encrypt(&plain[i])?)).into_iter().collect()
    }

    /// Decrypts and reads a result.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`] and [`MatrixPacking::decode`].
    fn decrypt(&self, decryptor: &Decryptor<'_>, result: &[Ciphertext]) -> Result<Matrix<i128>, PackingError> {
        let plain: Result<Vec<_>, PackingError> =
            threads::map(result.len(), |i| Ok(decryptor.decrypt(&result[i])?)).into_iter().collect();
        self.decode(&plain?)
    }
}

/// Refuses another number of ciphertexts or plaintexts than a packing takes.
fn require_count(what: &'static str, found: usize, expected: usize) -> Result<(), PackingError> {
    if found == expected { Ok(()) } else { Err(PackingError::Count { what, found, expected }) }
}
