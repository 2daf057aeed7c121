//! How large a modulus each ring degree carries at a security level.
//!
//! Source: "Security Guidelines for Implementing Homomorphic Encryption", ePrint 2024/463;
//! classical attacks, error σ = 3.19. The older standard's limits (881 bits at N = 32768 and so
//! on) are 125–126 bits by today's estimates and are not used.

use serde::{Deserialize, Serialize};

/// Claimed strength against classical attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Security {
    /// No claim: for play and for rerunning published tables.
    Insecure,
    /// 128 bits.
    Bits128,
    /// 192 bits.
    Bits192,
    /// 256 bits.
    Bits256,
}

impl Security {
    /// The claim in bits; 0 for [`Security::Insecure`].
    pub const fn bits(self) -> u32 {
        match self {
            Self::Insecure => 0,
            Self::Bits128 => 128,
            Self::Bits192 => 192,
            Self::Bits256 => 256,
        }
    }

    /// The level for a claim of 128, 192 or 256 bits.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            128 => Some(Self::Bits128),
            192 => Some(Self::Bits192),
            256 => Some(Self::Bits256),
            _ => None,
        }
    }
}

/// Distribution of the secret key's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SecretDistribution {
    /// Uniform on {−1, 0, 1}.
    Ternary,
    /// Exactly `weight` coefficients ±1. Sparse secrets have a rule of their own: only what an
    /// estimate on record covers is accepted where security is claimed.
    FixedWeight {
        /// Number of non-zero coefficients.
        weight: u32,
    },
    /// Discrete Gaussian, σ = 3.19.
    Gaussian,
    /// The sum of the ternary secrets of several parties ([`crate::multiparty`]). Whoever knows all but one of them faces a
    /// ternary secret, so the table is that of ternary ones.
    TernarySum {
        /// How many parties there are, 2 to [`crate::multiparty::MAX_PARTIES`].
        parties: u32,
    },
}

impl SecretDistribution {
    /// Parties whose secrets are added: one for a secret that somebody holds alone.
    pub const fn parties(self) -> u32 {
        match self {
            Self::TernarySum { parties } => parties,
            Self::Ternary | Self::FixedWeight { .. } | Self::Gaussian => 1,
        }
    }
}

/// log2 N of the first column.
const FIRST_LOG_N: u32 = 10;
const TERNARY: [[u32; 8]; 3] = [
    [26, 53, 106, 214, 430, 868, 1747, 3523],
    [0, 36, 73, 147, 297, 597, 1199, 2411],
    [0, 27, 56, 114, 230, 462, 929, 1866],
];
const GAUSSIAN: [[u32; 8]; 3] = [
    [28, 55, 108, 216, 432, 870, 1749, 3525],
    [0, 38, 75, 149, 299, 599, 1201, 2413],
    [0, 30, 58, 116, 232, 464, 931, 1868],
];

/// (log2 N, weight, log2 Q·P) of sparse ternary secrets with 128 bits: what was estimated, and no more. Attacks may guess
/// the N rotations that one sample of a ring has (ePrint 2026/279, 2026/366). The primal hybrid attack costs 2^148 or more
/// on each row; the bound on dual hybrid attacks, whose guesses are found for the square root of their number and are never
/// lost, more than any known attack manages, is 2^128 or more. See `docs/estimates`.
const SPARSE: [(u32, u32, u32); 11] = [
    (14, 36, 46),
    (14, 38, 54),
    (14, 40, 66),
    (15, 30, 54),
    (15, 32, 66),
    (15, 34, 92),
    (15, 36, 108),
    (16, 26, 66),
    (16, 28, 96),
    (16, 30, 121),
    (17, 24, 100),
];

/// Largest modulus that was estimated for this degree and at most this weight: a smaller modulus and a larger weight are
/// only harder.
fn max_sparse_log_qp(log_n: u32, weight: u32, security: Security) -> Option<u32> {
    let covers = |(n, least, _): &&(u32, u32, u32)| *n == log_n && *least <= weight && security == Security::Bits128;
    SPARSE.iter().filter(covers).map(|(.., log_qp)| *log_qp).max()
}

/// Largest log2 of the whole modulus Q·P for a ring degree, a secret and a claim; `None` where
/// nothing secure exists or no figure is known, `u32::MAX` where nothing is claimed.
///
/// ```
/// use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
///
/// assert_eq!(max_log_qp(13, SecretDistribution::Ternary, Security::Bits128), Some(214));
/// assert_eq!(max_log_qp(13, SecretDistribution::Ternary, Security::Insecure), Some(u32::MAX));
/// ```
pub fn max_log_qp(log_n: u32, secret: SecretDistribution, security: Security) -> Option<u32> {
    let row = match security {
        Security::Insecure => return Some(u32::MAX),
        Security::Bits128 => 0,
        Security::Bits192 => 1,
        Security::Bits256 => 2,
    };
    let table = match secret {
        SecretDistribution::Ternary | SecretDistribution::TernarySum { .. } => &TERNARY,
        SecretDistribution::Gaussian => &GAUSSIAN,
        SecretDistribution::FixedWeight { weight } => return max_sparse_log_qp(log_n, weight, security),
    };
    let column = log_n.checked_sub(FIRST_LOG_N)?;
    table[row].get(column as usize).copied().filter(|limit| *limit > 0)
}

/// The strongest level whose limit `log_qp` respects.
pub fn security_of(log_n: u32, secret: SecretDistribution, log_qp: f64) -> Security {
    [Security::Bits256, Security::Bits192, Security::Bits128]
        .into_iter()
        .find(|s| max_log_qp(log_n, secret, *s).is_some_and(|limit| log_qp <= f64::from(limit)))
        .unwrap_or(Security::Insecure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SecretDistribution::*;

    #[test]
    fn limits_of_the_guidelines() {
        assert_eq!(max_log_qp(13, Ternary, Security::Bits128), Some(214));
        assert_eq!(max_log_qp(14, Ternary, Security::Bits192), Some(297));
        assert_eq!(max_log_qp(15, Gaussian, Security::Bits256), Some(464));
        assert_eq!(max_log_qp(10, Ternary, Security::Bits192), None);
        assert_eq!(max_log_qp(18, Ternary, Security::Bits128), None);
        assert_eq!(max_log_qp(13, FixedWeight { weight: 64 }, Security::Bits128), None);
    }

    #[test]
    fn sparse_secrets_have_what_was_estimated_and_no_more() {
        let limit = |log_n, weight| max_log_qp(log_n, FixedWeight { weight }, Security::Bits128);
        assert_eq!([34, 35, 36, 38, 39, 40, 64].map(|w| limit(14, w).unwrap_or(0)), [0, 0, 46, 54, 54, 66, 66]);
        assert_eq!([28, 30, 32, 33, 34, 36, 192].map(|w| limit(15, w).unwrap_or(0)), [0, 54, 66, 66, 92, 108, 108]);
        assert_eq!([24, 25, 26, 27, 28, 30, 64].map(|w| limit(16, w).unwrap_or(0)), [0, 0, 66, 66, 96, 121, 121]);
        assert_eq!([22, 23, 24, 64].map(|w| limit(17, w).unwrap_or(0)), [0, 0, 100, 100]);
        // Two less, and the modulus of a row is refused.
        for (log_n, weight, log_qp) in SPARSE {
            assert_eq!(limit(log_n, weight), Some(log_qp));
            assert!(limit(log_n, weight - 2) < Some(log_qp));
        }
        // Other degrees, and other claims, have no estimate.
        assert_eq!([10, 13, 18].map(|n| limit(n, 64)), [None; 3]);
        assert_eq!(max_log_qp(16, FixedWeight { weight: 32 }, Security::Bits192), None);
        assert_eq!(security_of(16, FixedWeight { weight: 28 }, 95.9), Security::Bits128);
        assert_eq!(security_of(16, FixedWeight { weight: 28 }, 96.1), Security::Insecure);
    }

    #[test]
    fn the_older_standard_is_not_128_bits() {
        for (log_n, old) in [(10, 27.0), (11, 54.0), (12, 109.0), (13, 218.0), (14, 438.0), (15, 881.0)] {
            assert_eq!(security_of(log_n, Ternary, old), Security::Insecure);
        }
        assert_eq!(security_of(14, Ternary, 240.0), Security::Bits192);
        assert_eq!(security_of(13, Ternary, 200.0), Security::Bits128);
    }
}
