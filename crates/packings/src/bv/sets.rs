//! The paper's parameter sets, and secure siblings.

use super::params::ParamsLiteral;
use sudare_he::HeError;
use sudare_rlwe::security::Security;

/// The parameter sets of the paper's Tables 1 and 2 (`002`, section 5.1).
///
/// They have σ = 8 and moduli of 60 and 70 bits, which the paper puts at "more than 80 bits" of
/// security. By today's limits the three of N = 2048 are under 128 bits, since that degree
/// carries 55; the larger degrees are over it. All of them run as [`Security::Insecure`] only,
/// by name; each has a sibling of the same degree and t that claims 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaperSet {
    /// Table 1, m = 16, previous and first method: (2048, 60, 17, 8).
    Binary16,
    /// Table 1, m = 32, previous and first method: (2048, 60, 33, 8).
    Binary32,
    /// Table 1, m = 16, second method: (4096, 60, 17, 8).
    Binary16Second,
    /// Table 1, m = 32, second method: (32768, 60, 33, 8).
    Binary32Second,
    /// Table 2, previous method: (2048, 70, 161, 8).
    TenBitPrevious,
    /// Table 2, first method: (8192, 70, 161, 8).
    TenBitFirst,
    /// Table 2, second method: (131072, 70, 161, 8).
    TenBitSecond,
}

impl PaperSet {
    /// Every set.
    pub const ALL: [Self; 7] = [
        Self::Binary16,
        Self::Binary32,
        Self::Binary16Second,
        Self::Binary32Second,
        Self::TenBitPrevious,
        Self::TenBitFirst,
        Self::TenBitSecond,
    ];

    /// (log2 n, log2 q, t).
    const fn printed(self) -> (u32, u32, u64) {
        match self {
            Self::Binary16 => (11, 60, 17),
            Self::Binary32 => (11, 60, 33),
            Self::Binary16Second => (12, 60, 17),
            Self::Binary32Second => (15, 60, 33),
            Self::TenBitPrevious => (11, 70, 161),
            Self::TenBitFirst => (13, 70, 161),
            Self::TenBitSecond => (17, 70, 161),
        }
    }

    /// The set as printed, with no security claimed. The paper's one prime of 70 bits is two of
    /// 35 here, since a word holds no such prime.
    pub fn insecure(self) -> ParamsLiteral {
        let (log_n, log_q, t) = self.printed();
        let q_bits = if log_q > 61 { vec![log_q / 2; 2] } else { vec![log_q] };
        ParamsLiteral { log_n, q_bits, t, sigma: 8.0, max_length: 3, security: Security::Insecure }
    }

    /// The sibling with a claim: the same t, at least the same degree, σ = 3.19, and the smallest
    /// modulus that a product needs.
    ///
    /// # Errors
    /// `RlweError::Parameters` if there is none.
    pub fn secure(self, security: Security) -> Result<ParamsLiteral, HeError> {
        let (log_n, _, t) = self.printed();
        ParamsLiteral::for_products(1 << log_n, t, 1, security)
    }
}
