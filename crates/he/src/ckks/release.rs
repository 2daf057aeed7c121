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
use super::plaintext::Decrypted;
use crate::error::{HeError, parameters};
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::threads::map_into;
use sudare_rlwe::RlweError;
use sudare_rlwe::release::ReleasePolicy;
use zeroize::Zeroizing;

/// Most values of one release.
pub const MAX_RELEASED_VALUES: usize = 1 << 24;
/// Steps of the grid in a value's error bound.
const GRID: f64 = 2048.0;
/// Values of one seed stream.
const CHUNK: usize = 4096;

/// Hides the errors of values, each with a bound on its own.
fn hide(policy: ReleasePolicy, values: &mut [f64], error: &(impl Fn(usize) -> f64 + Sync)) -> Result<(), HeError> {
    // A value and the true one are at most GRID steps apart, and one more for the rounding.
    let sampler = WideGaussian::new((GRID + 1.0) * policy.deviation(values.len()))?;
    let seed = Seed::from_entropy()?;
    let chunks: Vec<&mut [f64]> = values.chunks_mut(CHUNK).collect();
    map_into(chunks, |at, chunk| {
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
        Self { level: ciphertext.level(), scale: ciphertext.scale, error: ciphertext.error_bound() }
    }

    pub(super) fn check(&self, ciphertext: &Ciphertext) -> Result<(), HeError> {
        let other = |what, found, expected| Err(HeError::Rlwe(RlweError::NotAsComputed { what, found, expected }));
        if ciphertext.level() != self.level {
            return other("level", ciphertext.level() as f64, self.level as f64);
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
    /// As [`Decryptor::decrypt`]; `RlweError::NotAsComputed` for a ciphertext that states another
    /// level or scale than expected, or a smaller error.
    pub fn decrypt_expected(&self, ciphertext: &Ciphertext, expected: &Expected) -> Result<Decrypted, HeError> {
        self.0.check(ciphertext.inner())?;
        expected.check(ciphertext)?;
        Ok(Decrypted {
            params: ciphertext.params().clone(),
            poly: self.0.phase_coefficients(ciphertext.inner(), ciphertext.level())?,
            level: ciphertext.level(),
            scale: expected.scale,
            // Decoding takes all primes that there are.
            bound: f64::INFINITY,
            noise: expected.error * expected.scale,
            spread: super::spread::PlainSpread::UNKNOWN,
        })
    }

    /// Makes decrypted values fit to be shown, in place: one of the key's releases. `error` gives
    /// the bound on the error of each value, which has to hold.
    ///
    /// # Errors
    /// `RlweError::ReleasesUsedUp`; `RlweError::OtherRelease` if the key's first release was by
    /// another policy; `RlweError::TooManyValues` over [`MAX_RELEASED_VALUES`];
    /// `RlweError::Parameters` for a bound that is no finite number above zero;
    /// `RlweError::Ring` if the system gives no entropy. The values are as they were then.
    pub fn release(
        &self,
        policy: ReleasePolicy,
        values: &mut [f64],
        error: impl Fn(usize) -> f64 + Sync,
    ) -> Result<(), HeError> {
        if values.len() > MAX_RELEASED_VALUES {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found: values.len(), capacity: MAX_RELEASED_VALUES }));
        }
        if !(0..values.len()).all(|i| error(i).is_finite() && error(i) > 0.0) {
            return Err(parameters("a released value needs a finite error bound above zero"));
        }
        if values.is_empty() {
            return Ok(());
        }
        self.0.secret().take_release(policy)?;
        hide(policy, values, &error)
    }

    /// The real parts of all slots, for others to see: one of the key's releases.
    ///
    /// ```
    /// use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Expected, ParamsLiteral};
    /// use sudare_rlwe::keys::SecretKey;
    /// use sudare_rlwe::release::ReleasePolicy;
    /// use sudare_rlwe::security::Security;
    ///
    /// # fn main() -> Result<(), sudare_he::HeError> {
    /// let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
    /// let (secret, encoder) = (SecretKey::generate(&params)?, Encoder::new(&params));
    /// let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.5], 1.0)?)?;
    ///
    /// // At most two results of this key will be shown, each hidden with 20 bits of statistical security.
    /// let policy = ReleasePolicy::new(2, 20)?;
    /// let expected = Expected::of(&x);
    /// let shown = Decryptor::new(&secret).decrypt_for_release(&encoder, &x, &expected, policy)?;
    /// assert!((shown[0] - 0.5).abs() < policy.released_error(params.slots(), expected.error));
    /// assert_eq!(secret.releases().map(|releases| releases.left()), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Decryptor::decrypt_expected`] and [`Decryptor::release`]; [`HeError::NoPrecision`] if
    /// the noise would leave nothing of values of size one.
    pub fn decrypt_for_release(
        &self,
        encoder: &Encoder,
        ciphertext: &Ciphertext,
        expected: &Expected,
        policy: ReleasePolicy,
    ) -> Result<Vec<f64>, HeError> {
        let released = policy.released_error(encoder.params().slots(), expected.error);
        if released > 0.5 {
            let (operation, scale) = ("decryption for release", expected.scale);
            return Err(HeError::NoPrecision { operation, noise: (released * scale).log2(), scale: scale.log2() });
        }
        let plain = Zeroizing::new(self.decrypt_expected(ciphertext, expected)?);
        let mut values = Zeroizing::new(encoder.decode(&plain)?);
        self.release(policy, &mut values, |_| expected.error)?;
        Ok(std::mem::take(&mut *values))
    }
}
