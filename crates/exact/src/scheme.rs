//! BFV and BGV as types.

use super::ciphertext::Ciphertext;
use super::evaluator::Evaluator;
use super::params::IntegerParams;
use crate::error::ExactError;

pub(crate) mod sealed {
    /// Only this crate's schemes are schemes.
    pub trait Sealed {}
}

/// What differs between BFV and BGV: plaintext factors and products. Everything linear is the
/// same on both.
pub trait Scheme: sealed::Sealed + Sized + Send + Sync + 'static {
    /// The scheme's name.
    const NAME: &'static str;
    /// Its number on the wire.
    #[doc(hidden)]
    const CODE: u32;

    /// The plaintext factor of fresh ciphertexts at a level.
    #[doc(hidden)]
    fn fresh_factor(params: &IntegerParams, level: usize) -> u64;

    /// The plaintext factor of every ciphertext at a level, if the scheme has but one: then both
    /// sides compute it, and what a file says is only compared.
    #[doc(hidden)]
    fn only_factor(_params: &IntegerParams, _level: usize) -> Option<u64> {
        None
    }

    /// Σ a_i·b_i with three parts.
    #[doc(hidden)]
    fn product(
        evaluator: &Evaluator<Self>,
        a: &[&Ciphertext<Self>],
        b: &[&Ciphertext<Self>],
    ) -> Result<Ciphertext<Self>, ExactError>;

    /// Σ a_i·b_i with two parts, and in BGV with its modulus switched.
    #[doc(hidden)]
    fn product_relin(
        evaluator: &Evaluator<Self>,
        a: &[&Ciphertext<Self>],
        b: &[&Ciphertext<Self>],
    ) -> Result<Ciphertext<Self>, ExactError>;
}
