//! BFV and BGV as types.

use super::ciphertext::CiphertextOf;
use super::evaluator::Evaluator;
use super::params::IntegerParams;
use crate::error::ExactError;
use sudare_rlwe::Backend;

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
    fn product<B: Backend>(
        evaluator: &Evaluator<Self, B>,
        a: &[&CiphertextOf<Self, B>],
        b: &[&CiphertextOf<Self, B>],
    ) -> Result<CiphertextOf<Self, B>, ExactError>;

    /// Σ a_i·b_i with two parts, and in BGV with its modulus switched.
    #[doc(hidden)]
    fn product_relin<B: Backend>(
        evaluator: &Evaluator<Self, B>,
        a: &[&CiphertextOf<Self, B>],
        b: &[&CiphertextOf<Self, B>],
    ) -> Result<CiphertextOf<Self, B>, ExactError>;
}
