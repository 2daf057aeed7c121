//! Noise of CKKS operations.
//!
//! Each formula gives the variance of a coefficient of the error polynomial. The static bound
//! that travels with a ciphertext is one on the error's canonical embedding, ‖e‖_can =
//! max_j |e(ζ^(5^j))|. For a polynomial with independent coefficients of variance V an embedded
//! value is nearly a complex Gaussian of variance N·V, and |e_j| > u·√(N·V) has probability about
//! exp(−u²); for a product of m such polynomials it is about exp(−m·u^(2/m)), a heavier tail.
//! [`TAIL`] holds the u of each m at which all N/2 slots together fail with probability under
//! 2^-60. Bounds add by the triangle inequality, so that correlated operands (a ciphertext and
//! itself) are covered. Costache–Curtis–Hales–Murphy–Ogilvie–Player, ePrint 2022/162.

use super::chain::Chain;
use crate::params::{ERROR_SIGMA, Params};
use crate::security::SecretDistribution;

/// Standard deviations from an embedded value to its bound, for one polynomial, a product of
/// two, a product of three: exp(−m·u^(2/m))·2^16 < 2^-60.
pub const TAIL: [f64; 3] = [7.3, 26.5, 74.0];

/// Variance of an error coefficient.
pub const ERROR_VARIANCE: f64 = ERROR_SIGMA * ERROR_SIGMA;

/// Variance of rounding to the nearest integer.
pub const ROUNDING_VARIANCE: f64 = 1.0 / 12.0;

/// Bound on the canonical norm of a product of `factors` random polynomials (one to three) that
/// has coefficient variance V.
pub fn canonical_bound(n: usize, variance: f64, factors: usize) -> f64 {
    TAIL[factors - 1] * (n as f64 * variance).sqrt()
}

/// Variance of a secret's coefficient.
pub fn secret_variance(params: &Params) -> f64 {
    variance_of(params.literal().secret, params.degree())
}

/// Variance of a coefficient of a secret.
pub(crate) fn variance_of(secret: SecretDistribution, degree: usize) -> f64 {
    match secret {
        SecretDistribution::Ternary => 2.0 / 3.0,
        SecretDistribution::FixedWeight { weight } => f64::from(weight) / degree as f64,
        SecretDistribution::Gaussian => ERROR_VARIANCE,
    }
}

/// Variance of a fresh encryption under the secret key: the error e.
pub fn secret_encryption_variance() -> f64 {
    ERROR_VARIANCE
}

/// Canonical bound of the same.
pub fn secret_encryption_bound(params: &Params) -> f64 {
    canonical_bound(params.degree(), secret_encryption_variance(), 1)
}

/// Variance of a fresh encryption under the public key: e_0 + v·e_pk + e_1·s, v ternary.
pub fn public_encryption_variance(params: &Params) -> f64 {
    let n = params.degree() as f64;
    ERROR_VARIANCE * (1.0 + n * (2.0 / 3.0) + n * secret_variance(params))
}

/// Canonical bound of the same.
pub fn public_encryption_bound(params: &Params) -> f64 {
    canonical_bound(params.degree(), public_encryption_variance(params), 2)
}

/// Variance of rounding the parts of a ciphertext when it is divided: r_0 + r_1·s (+ r_2·s²).
pub fn division_variance(params: &Params, parts: usize) -> f64 {
    Chain::of(params).division_variance(parts)
}

/// Canonical bound of the same.
pub fn division_bound(params: &Params, parts: usize) -> f64 {
    Chain::of(params).division_bound(parts)
}

/// Variance of key switching at a level, Σ_j d_j·e_j / P with digits uniform and centred, without
/// the rounding of the division by P.
pub fn switching_variance(params: &Params, level: usize) -> f64 {
    Chain::of(params).switching_variance(level)
}

/// Canonical bound of the same.
pub fn switching_bound(params: &Params, level: usize) -> f64 {
    Chain::of(params).switching_bound(level)
}

/// Variance of key switching with its division by P.
pub fn switched_variance(params: &Params, level: usize) -> f64 {
    switching_variance(params, level) + division_variance(params, 2)
}

/// Canonical bound of the same.
pub fn switched_bound(params: &Params, level: usize) -> f64 {
    switching_bound(params, level) + division_bound(params, 2)
}
