//! How CKKS reads the noise formulas of [`sudare_rlwe::noise`]: the static bound that travels with a
//! ciphertext.
//!
//! All N/2 slots of one term together are over its bound with probability under 2^-60.

use sudare_rlwe::Params;
use sudare_rlwe::noise::Tails;

/// Standard deviations from an embedded value to its bound, for one polynomial, a product of
/// two, a product of three: exp(−m·u^(2/m))·2^16 < 2^-60.
pub const TAIL: Tails = [7.3, 26.5, 74.0];

/// Bound on the rounding of `parts` parts when a ciphertext is divided.
pub fn division_bound(params: &Params, parts: usize) -> f64 {
    params.sketch().division(parts).bound(&TAIL)
}

/// Bound on key switching by an automorphism's key at a level, without the rounding of its division by P.
pub fn switching_bound(params: &Params, level: usize) -> f64 {
    params.sketch().switching(level).bound(&TAIL)
}

/// The same by the relinearisation key.
pub fn relinearisation_bound(params: &Params, level: usize) -> f64 {
    params.sketch().relinearisation(level).bound(&TAIL)
}

/// Bound on key switching with its division by P.
pub fn switched_bound(params: &Params, level: usize) -> f64 {
    switching_bound(params, level) + division_bound(params, 2)
}
