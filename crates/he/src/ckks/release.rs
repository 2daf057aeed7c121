//! Decryption of results that others will see.
//!
//! A decrypted value is the true one plus an error that depends on the key and on the ciphertext.
//! Whoever sees both can compute the key (Li–Micciancio, ePrint 2020/1533). A *release* rounds the
//! values to a grid and adds a discrete Gaussian to each, so that what is shown tells as good as
//! nothing about the error (Li–Micciancio–Schultz–Sorrell, ePrint 2022/816). How wide the Gaussian
//! has to be follows from a bound on the error, which whoever decrypts works out from the
//! computation ([`Expected`]): what a ciphertext says of itself was written by whoever computed.

use super::ciphertext::Ciphertext;
use super::decrypt::Decryptor;
use super::encode::Encoder;
use super::plaintext::Plaintext;
use crate::error::HeError;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::threads::for_each_mut;
use zeroize::Zeroizing;

/// Most releases of a policy.
pub const MAX_RELEASES: u64 = 1 << 24;
/// Most values of one release.
pub const MAX_RELEASED_VALUES: usize = 1 << 24;
/// Bits of statistical security that a policy may ask for. The sampler is within statistical distance
/// 2^−112 of a Gaussian for a value, so 2^24 releases of 2^24 values each are within 2^−64 in all.
pub const RELEASE_SECURITY: RangeInclusive<u32> = 20..=64;
/// A released value is off by more than what [`ReleasePolicy::released_error`] says with
/// probability 2^−30 at most, all values of the release together.
pub const RELEASE_FAILURE_BITS: u32 = 30;

/// Steps of the grid in a value's error bound.
const GRID: f64 = 2048.0;
/// Values of one seed stream.
const CHUNK: usize = 4096;

/// How many results will be shown under one key, and how well their errors are hidden.
///
/// With τ releases of S values each, every value within an error bound E of the true one, the
/// noise of a value has the standard deviation √(12·τ·S)·2^(ν/2)·E for ν bits of statistical security: the
/// Gaussian mechanism of ePrint 2022/816 for errors of Euclidean norm √S·E. Whatever is computed from
/// what all τ releases show has an advantage of at most 2^(−ν/2)/√48 over what the true values and
/// fresh noise show.
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
    type Error = HeError;

    fn try_from(written: Written) -> Result<Self, HeError> {
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
    /// [`HeError::ReleasePolicy`] for other figures.
    pub fn new(releases: u64, security_bits: u32) -> Result<Self, HeError> {
        if !(1..=MAX_RELEASES).contains(&releases) || !RELEASE_SECURITY.contains(&security_bits) {
            return Err(HeError::ReleasePolicy { releases, security_bits });
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
    fn deviation(&self, values: usize) -> f64 {
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

    /// Hides the errors of values, each with a bound on its own.
    fn hide(&self, values: &mut [f64], error: &(impl Fn(usize) -> f64 + Sync)) -> Result<(), HeError> {
        // A value and the true one are at most GRID steps apart, and one more for the rounding.
        let sampler = WideGaussian::new((GRID + 1.0) * self.deviation(values.len()))?;
        let seed = Seed::from_entropy()?;
        let mut chunks: Vec<&mut [f64]> = values.chunks_mut(CHUNK).collect();
        for_each_mut(&mut chunks, |at, chunk| {
            let mut noise = Zeroizing::new(vec![0i128; chunk.len()]);
            sampler.sample(&mut seed.stream(at as u64), &mut noise);
            for (i, (x, noise)) in chunk.iter_mut().zip(noise.iter()).enumerate() {
                let step = error(at * CHUNK + i) / GRID;
                // The cast keeps what is out of range at its end.
                *x = ((*x / step).round() as i128).saturating_add(*noise) as f64 * step;
            }
        });
        Ok(())
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
    /// [`HeError::ReleasesUsedUp`] for more than the policy has.
    pub fn new(policy: ReleasePolicy, used: u64) -> Result<Self, HeError> {
        if used > policy.releases {
            return Err(HeError::ReleasesUsedUp { declared: policy.releases });
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

    /// One release more.
    pub(crate) fn next(before: Option<Self>, policy: ReleasePolicy) -> Result<Self, HeError> {
        let before = before.unwrap_or(Self { policy, used: 0 });
        if before.policy != policy {
            return Err(HeError::OtherRelease { declared: before.policy, wanted: policy });
        }
        Self::new(policy, before.used + 1)
    }
}

/// What a computation gives, worked out by whoever decrypts its result and not read from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Level.
    pub level: usize,
    /// Scale.
    pub scale: f64,
    /// Bound on the error of a value.
    pub error: f64,
}

impl Expected {
    /// Of a ciphertext that this process made or computed itself: what it says was written here.
    /// Never of one that came from elsewhere.
    pub fn of(ciphertext: &Ciphertext) -> Self {
        Self { level: ciphertext.level, scale: ciphertext.scale, error: ciphertext.error_bound() }
    }

    fn check(&self, ciphertext: &Ciphertext) -> Result<(), HeError> {
        let other = |what, found, expected| Err(HeError::NotAsComputed { what, found, expected });
        if ciphertext.level != self.level {
            return other("level", ciphertext.level as f64, self.level as f64);
        }
        // Double precision's own drift is no difference.
        if ((ciphertext.scale - self.scale) / self.scale).abs() > (-40f64).exp2() {
            return other("scale", ciphertext.scale, self.scale);
        }
        let found = ciphertext.noise / self.scale;
        if found < self.error * (1.0 - (-40f64).exp2()) {
            return other("error bound", found, self.error);
        }
        Ok(())
    }
}

impl Decryptor<'_> {
    /// Private decryption of a ciphertext of which nothing is believed: level, scale and error
    /// are the expected ones, and the bounds that it states are not used.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`]; [`HeError::NotAsComputed`] for a ciphertext that states another
    /// level or scale than expected, or a smaller error.
    pub fn decrypt_expected(&self, ciphertext: &Ciphertext, expected: &Expected) -> Result<Plaintext, HeError> {
        self.check(ciphertext)?;
        expected.check(ciphertext)?;
        let poly = self.phase(ciphertext, ciphertext.level);
        Ok(Plaintext {
            params: ciphertext.params.clone(),
            poly,
            level: ciphertext.level,
            scale: expected.scale,
            // Decoding takes all primes that there are.
            bound: f64::INFINITY,
            noise: expected.error * expected.scale,
        })
    }

    /// Makes decrypted values fit to be shown, in place: one of the key's releases. `error` gives
    /// the bound on the error of each value, which has to hold.
    ///
    /// # Errors
    /// [`HeError::ReleasesUsedUp`]; [`HeError::OtherRelease`] if the key's first release was by
    /// another policy; [`HeError::TooManyValues`] over [`MAX_RELEASED_VALUES`];
    /// [`HeError::Parameters`] for a bound that is no finite number above zero;
    /// [`HeError::Ring`] if the system gives no entropy. The values are as they were then.
    pub fn release(
        &self,
        policy: ReleasePolicy,
        values: &mut [f64],
        error: impl Fn(usize) -> f64 + Sync,
    ) -> Result<(), HeError> {
        if values.len() > MAX_RELEASED_VALUES {
            return Err(HeError::TooManyValues { found: values.len(), capacity: MAX_RELEASED_VALUES });
        }
        if !(0..values.len()).all(|i| error(i).is_finite() && error(i) > 0.0) {
            return Err(HeError::Parameters { reason: "a released value needs an error bound above zero".into() });
        }
        if values.is_empty() {
            return Ok(());
        }
        self.secret.take_release(policy)?;
        policy.hide(values, &error)
    }

    /// The real parts of all slots, for others to see: one of the key's releases.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt_expected`] and [`Decryptor::release`]; [`HeError::NoPrecision`] if
    /// the noise would leave nothing of values of size one.
    pub fn decrypt_for_release(
        &self,
        ciphertext: &Ciphertext,
        expected: &Expected,
        policy: ReleasePolicy,
    ) -> Result<Vec<f64>, HeError> {
        let released = policy.released_error(ciphertext.params.slots(), expected.error);
        if released > 0.5 {
            let (operation, scale) = ("decryption for release", expected.scale);
            return Err(HeError::NoPrecision { operation, noise: (released * scale).log2(), scale: scale.log2() });
        }
        let plain = Zeroizing::new(self.decrypt_expected(ciphertext, expected)?);
        let mut values = Zeroizing::new(Encoder::new(&ciphertext.params).decode(&plain)?);
        self.release(policy, &mut values, |_| expected.error)?;
        Ok(std::mem::take(&mut *values))
    }
}
