//! How many decrypted results others will see under one key, and how well their errors are hidden: the
//! policy and the count that are kept with a secret key.
//!
//! A decrypted value of an approximate scheme is the true one plus an error that depends on the key and
//! on the ciphertext; whoever sees both can compute the key (Li–Micciancio, ePrint 2020/1533). A
//! release adds a discrete Gaussian to each value, whose width a [`ReleasePolicy`] says
//! (Li–Micciancio–Schultz–Sorrell, ePrint 2022/816).

use crate::error::RlweError;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Most releases of a policy.
pub const MAX_RELEASES: u64 = 1 << 24;
/// Bits of statistical security that a policy may ask for. The sampler is within statistical distance
/// 2^−112 of a Gaussian for a value, so 2^24 releases of 2^24 values each are within 2^−64 in all.
pub const RELEASE_SECURITY: RangeInclusive<u32> = 20..=64;
/// A released value is off by more than what [`ReleasePolicy::released_error`] says with
/// probability 2^−30 at most, all values of the release together.
pub const RELEASE_FAILURE_BITS: u32 = 30;

/// How many results will be shown under one key, and how well their errors are hidden.
///
/// With τ releases of S values each, every value within an error bound E of the true one, the
/// noise of a value has the standard deviation √(12·τ·S)·2^(ν/2)·E for ν bits of statistical security: the
/// Gaussian mechanism of ePrint 2022/816 for errors of Euclidean norm √S·E. Whatever is computed from
/// what all τ releases show has an advantage of at most 2^(−ν/2)/√48 over what the true values and
/// fresh noise show.
///
/// ```
/// use sudare_rlwe::release::ReleasePolicy;
///
/// // Ten results, each of 100 values that are decrypted to within 1e-9.
/// let policy = ReleasePolicy::new(10, 30)?;
/// assert!(policy.released_error(100, 1e-9) < 0.05);
/// # Ok::<(), sudare_rlwe::RlweError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct ReleasePolicy {
    releases: u64,
    security_bits: u32,
}

/// A policy as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    releases: u64,
    security_bits: u32,
}

impl TryFrom<Written> for ReleasePolicy {
    type Error = RlweError;

    fn try_from(written: Written) -> Result<Self, RlweError> {
        Self::new(written.releases, written.security_bits)
    }
}

impl From<ReleasePolicy> for Written {
    fn from(policy: ReleasePolicy) -> Self {
        Self { releases: policy.releases, security_bits: policy.security_bits }
    }
}

impl ReleasePolicy {
    /// A policy of 1 to 2^24 releases at 20 to 64 bits of statistical security.
    ///
    /// # Errors
    /// [`RlweError::ReleasePolicy`] for other figures.
    pub fn new(releases: u64, security_bits: u32) -> Result<Self, RlweError> {
        if !(1..=MAX_RELEASES).contains(&releases) || !RELEASE_SECURITY.contains(&security_bits) {
            return Err(RlweError::ReleasePolicy { releases, security_bits });
        }
        Ok(Self { releases, security_bits })
    }

    /// τ: releases declared.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// ν: bits of statistical security.
    pub fn security_bits(&self) -> u32 {
        self.security_bits
    }

    /// Standard deviation of the noise of each of `values` values, in units of their error bound.
    pub fn deviation(&self, values: usize) -> f64 {
        (12.0 * self.releases as f64 * values as f64).sqrt() * (f64::from(self.security_bits) / 2.0).exp2()
    }

    /// What a release multiplies an error bound with.
    fn growth(&self, values: usize) -> f64 {
        // P(|x| > tσ) ≤ exp(−t²/2) for each value.
        let failure = f64::from(RELEASE_FAILURE_BITS) * std::f64::consts::LN_2 + (values.max(1) as f64).ln();
        // The grid, and the sampler's own rounding of the deviation.
        1.001 * (1.0 + (2.0 * failure).sqrt() * self.deviation(values))
    }

    /// How far a released value is from the true one at most, for `values` values that are
    /// decrypted to within `error`; but for a probability of 2^−30 in each release.
    pub fn released_error(&self, values: usize, error: f64) -> f64 {
        error * self.growth(values)
    }

    /// How exactly `values` values have to be decrypted so that they are released within `error`.
    pub fn private_error(&self, values: usize, error: f64) -> f64 {
        error / self.growth(values)
    }
}

/// What was released under a key: its policy and a count, both kept with the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    policy: ReleasePolicy,
    used: u64,
}

impl Releases {
    /// `used` releases of a policy.
    ///
    /// # Errors
    /// [`RlweError::ReleasesUsedUp`] for more than the policy has.
    pub fn new(policy: ReleasePolicy, used: u64) -> Result<Self, RlweError> {
        if used > policy.releases {
            return Err(RlweError::ReleasesUsedUp { declared: policy.releases });
        }
        Ok(Self { policy, used })
    }

    /// The policy that the first release fixed.
    pub fn policy(&self) -> ReleasePolicy {
        self.policy
    }

    /// Releases so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Releases left.
    pub fn left(&self) -> u64 {
        self.policy.releases - self.used
    }

    /// The larger of two counts under one key.
    pub(crate) fn larger(a: Option<Self>, b: Option<Self>) -> Result<Option<Self>, RlweError> {
        match (a, b) {
            (Some(a), Some(b)) if a.policy != b.policy => {
                Err(RlweError::OtherRelease { declared: b.policy, wanted: a.policy })
            }
            (Some(a), Some(b)) => Ok(Some(if a.used < b.used { b } else { a })),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// Policy and count in one word: the count, the releases declared (25 bits each) and the security (7 bits).
    pub(crate) fn word(releases: Option<Self>) -> u64 {
        let pack = |r: Self| r.used | r.policy.releases << 25 | u64::from(r.policy.security_bits) << 50;
        releases.map_or(0, pack)
    }

    /// What a word of [`Releases::word`] says; a policy declares one release at least.
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let (used, releases, security_bits) = (word % (1 << 25), (word >> 25) % (1 << 25), (word >> 50) as u32);
        (word != 0).then_some(Self { policy: ReleasePolicy { releases, security_bits }, used })
    }

    /// One release more.
    pub(crate) fn next(before: Option<Self>, policy: ReleasePolicy) -> Result<Self, RlweError> {
        let before = before.unwrap_or(Self { policy, used: 0 });
        if before.policy != policy {
            return Err(RlweError::OtherRelease { declared: before.policy, wanted: policy });
        }
        Self::new(policy, before.used + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_policy_and_count() {
        assert_eq!(Releases::from_word(Releases::word(None)), None);
        for (declared, bits, used) in [(1, 20, 0), (1, 64, 1), (MAX_RELEASES, 64, MAX_RELEASES), (77, 33, 5)] {
            let releases = Releases::new(ReleasePolicy::new(declared, bits).unwrap(), used).unwrap();
            assert_eq!(Releases::from_word(Releases::word(Some(releases))), Some(releases));
        }
    }
}
