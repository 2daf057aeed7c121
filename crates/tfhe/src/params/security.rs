//! How little noise LWE carries at 128-bit security.
//!
//! Source: estimates for TFHE-like LWE with classical attacks (the tables of "Security Guidelines for
//! Implementing Homomorphic Encryption", ePrint 2024/463, and their continuation to small
//! dimensions). Between the table's dimensions log2 σ is interpolated linearly with a margin for
//! the table's rounding; below the first there is no figure, and beyond the last its limit stays.

use crate::{Noise, SecretKind, TfheError};
use sudare_rlwe::security::Security;

/// Dimension, and the least log2(σ/q) with binary and with ternary secrets, at 128 bits. The ternary figure of the
/// first row is a tenth above the source's, which comes out at 127.8 bits (docs/estimates).
const LIMITS: [(usize, f64, f64); 5] =
    [(630, -13.5, -14.7), (750, -16.6, -17.8), (870, -19.7, -20.9), (1024, -23.7, -24.9), (2048, -50.3, -51.6)];
/// Bits by which interpolated limits are raised: the table is rounded to tenths, and slightly concave.
const MARGIN: f64 = 0.15;
/// Least standard deviation in units of the modulus's last place: that of the guidelines' tables.
const LEAST_SIGMA: f64 = 3.19;

/// The least log2(σ/q) for a dimension, a secret and 128 bits of security; `None` where no figure is known.
pub fn least_log_noise(dimension: usize, secret: SecretKind) -> Option<f64> {
    let (limit, extrapolated) = limit(dimension, secret);
    if extrapolated {
        return None;
    }
    let known = dimension >= LIMITS[LIMITS.len() - 1].0 || LIMITS.iter().any(|(n, ..)| *n == dimension);
    Some(if known { limit } else { limit + MARGIN })
}

/// The same without a margin, and below the smallest dimension along the line of the first two, which is told: a guess
/// for judging published sets, not for making any.
pub(super) fn limit(dimension: usize, secret: SecretKind) -> (f64, bool) {
    let value = |i: usize| match secret {
        SecretKind::Binary => LIMITS[i].1,
        SecretKind::Ternary => LIMITS[i].2,
    };
    let last = LIMITS.len() - 1;
    if dimension >= LIMITS[last].0 {
        return (value(last), false);
    }
    let i = LIMITS.iter().rposition(|(n, ..)| *n <= dimension).unwrap_or(0);
    let part = (dimension as f64 - LIMITS[i].0 as f64) / (LIMITS[i + 1].0 - LIMITS[i].0) as f64;
    (value(i) + part * (value(i + 1) - value(i)), dimension < LIMITS[0].0)
}

/// Refuses noise under what a claim needs.
///
/// # Errors
/// [`TfheError::Insecure`]; [`TfheError::Parameters`] for a claim other than 128 bits or none.
pub fn check(
    object: &'static str,
    dimension: usize,
    secret: SecretKind,
    noise: Noise,
    log_q: f64,
    security: Security,
) -> Result<(), TfheError> {
    match security {
        Security::Insecure => return Ok(()),
        Security::Bits128 => {}
        _ => {
            return Err(TfheError::Parameters {
                reason: "TFHE's sets have a claim of 128 bits of security or none; ask for 128".into(),
            });
        }
    }
    let sigma = noise.variance().sqrt();
    let log_noise = sigma.log2() - log_q;
    let floor = LEAST_SIGMA.log2() - log_q;
    let limit = least_log_noise(dimension, secret).unwrap_or(0.0).max(floor);
    if log_noise + 1e-9 < limit {
        return Err(TfheError::Insecure { object, log_noise, dimension, limit, claimed: 128 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(least_log_noise(629, SecretKind::Binary), None);
        assert_eq!(least_log_noise(1024, SecretKind::Ternary), Some(-24.9));
        assert_eq!(least_log_noise(4096, SecretKind::Binary), Some(-50.3));
        let mut last = 0.0;
        for n in (631..2048).filter(|n| !LIMITS.iter().any(|l| l.0 == *n)) {
            let limit = least_log_noise(n, SecretKind::Binary).unwrap_or(0.0);
            assert!(limit < last, "{n}");
            last = limit;
        }
        // The known-good set: n = 918 with TUniform(45) modulo 2^64 is over 128 bits.
        let good = Noise::TUniform { bits: 13 };
        assert!(check("lwe", 918, SecretKind::Binary, good, 32.0, Security::Bits128).is_ok());
        assert!(check("lwe", 800, SecretKind::Binary, good, 32.0, Security::Bits128).is_err());
        assert!(check("lwe", 800, SecretKind::Binary, good, 32.0, Security::Insecure).is_ok());
        assert!(check("lwe", 918, SecretKind::Binary, good, 32.0, Security::Bits256).is_err());
        // Below the least σ no dimension helps.
        let thin = Noise::Gaussian { sigma: 2.0 };
        assert!(check("glwe", 4096, SecretKind::Binary, thin, 47.0, Security::Bits128).is_err());
    }
}
