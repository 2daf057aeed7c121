//! Secret and noise distributions, sampled in constant time.

pub mod variance;

use crate::TfheError;
use serde::{Deserialize, Serialize};
use sudare_ring::random::{GaussianSampler, Stream, ternary};
use zeroize::Zeroizing;

/// Distribution of secret coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SecretKind {
    /// Uniform on {0, 1}.
    Binary,
    /// Uniform on {−1, 0, 1}.
    Ternary,
}

impl SecretKind {
    /// Fills `out` with fresh coefficients.
    pub fn sample(self, stream: &mut Stream, out: &mut [i64]) {
        match self {
            Self::Binary => {
                let mut words = Zeroizing::new(vec![0u64; out.len().div_ceil(64)]);
                stream.fill_u64(&mut words);
                for (i, x) in out.iter_mut().enumerate() {
                    *x = (words[i / 64] >> (i % 64) & 1) as i64;
                }
            }
            Self::Ternary => ternary(stream, out),
        }
    }

    /// The mean, E(s): known to everybody, so rounding errors times it can be taken back.
    pub const fn mean(self) -> f64 {
        match self {
            Self::Binary => 0.5,
            Self::Ternary => 0.0,
        }
    }

    /// The mean square, E(s²).
    pub const fn mean_square(self) -> f64 {
        match self {
            Self::Binary => 0.5,
            Self::Ternary => 2.0 / 3.0,
        }
    }

    /// The variance of a coefficient.
    pub const fn variance(self) -> f64 {
        self.mean_square() - self.mean() * self.mean()
    }
}

/// Distribution of fresh noise, in units of the modulus's last place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Noise {
    /// Discrete Gaussian; σ in 0.5..=64.
    Gaussian {
        /// Standard deviation.
        sigma: f64,
    },
    /// Uniform on `−2^bits ..= 2^bits`, both ends with half the weight of the others: bounded, and
    /// exact in constant time.
    TUniform {
        /// log2 of the bound, at most 40.
        bits: u32,
    },
    /// Uniform on `−bound ..= bound`: bounded, of any width, to 2^−80 in constant time.
    Uniform {
        /// The bound, at most 2^46.
        bound: u64,
    },
}

/// Widest uniform noise.
const MAX_BOUND: u64 = 1 << 46;

impl Noise {
    /// The narrowest uniform noise of at least this standard deviation, at most the widest there is.
    pub fn uniform_of(sigma: f64) -> Self {
        // σ² = bound·(bound + 1)/3.
        let bound = (0.25 + 3.0 * sigma * sigma).sqrt() - 0.5;
        Self::Uniform { bound: (bound.ceil().max(0.0) as u64).min(MAX_BOUND) }
    }

    /// The variance.
    pub fn variance(self) -> f64 {
        match self {
            Self::Gaussian { sigma } => sigma * sigma,
            Self::TUniform { bits } => (2f64.powi(2 * bits as i32 + 1) + 1.0) / 6.0,
            Self::Uniform { bound } => bound as f64 * (bound as f64 + 1.0) / 3.0,
        }
    }
}

/// Samples a [`Noise`].
#[derive(Clone, Debug)]
pub struct NoiseSampler {
    noise: Noise,
    gaussian: Option<GaussianSampler>,
}

impl NoiseSampler {
    /// A sampler of this distribution.
    ///
    /// # Errors
    /// `RlweError::Ring` or [`TfheError::Parameters`] for a width out of range.
    pub fn new(noise: Noise) -> Result<Self, TfheError> {
        let gaussian = match noise {
            Noise::Gaussian { sigma } => Some(GaussianSampler::new(sigma)?),
            Noise::TUniform { bits } if bits <= 40 => None,
            Noise::Uniform { bound } if bound <= MAX_BOUND => None,
            Noise::TUniform { bits } => {
                return Err(TfheError::Parameters {
                    reason: format!("noise of the distribution TUniform has up to 40 bits, not {bits}"),
                });
            }
            Noise::Uniform { bound } => {
                return Err(TfheError::Parameters {
                    reason: format!("uniform noise has a bound of up to {MAX_BOUND}, not {bound}"),
                });
            }
        };
        Ok(Self { noise, gaussian })
    }

    /// The distribution.
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// Fills `out` with independent samples.
    pub fn sample(&self, stream: &mut Stream, out: &mut [i64]) {
        match (self.noise, &self.gaussian) {
            (Noise::TUniform { bits }, _) => {
                let mut words = Zeroizing::new(vec![0u64; out.len()]);
                stream.fill_u64(&mut words);
                for (x, w) in out.iter_mut().zip(words.iter()) {
                    // Two bits more than the range: (floor(r/2) + ceil's carry) weighs the ends by half.
                    let r = w >> (62 - bits);
                    *x = (((r >> 1) + (r & 1)) as i64) - (1i64 << bits);
                }
            }
            (Noise::Uniform { bound }, _) => {
                let mut words = Zeroizing::new(vec![0u64; 2 * out.len()]);
                stream.fill_u64(&mut words);
                let range = u128::from(2 * bound + 1);
                for (x, w) in out.iter_mut().zip(words.chunks_exact(2)) {
                    // floor(r·range / 2^128) of 128 random bits.
                    let low = (u128::from(w[0]) * range) >> 64;
                    *x = ((u128::from(w[1]) * range + low) >> 64) as i64 - bound as i64;
                }
            }
            (_, Some(gaussian)) => gaussian.sample(stream, out),
            (_, None) => out.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::random::Seed;

    #[test]
    fn widths_are_those_stated() {
        let mut stream = Seed::from_bytes([3; 32]).stream(0);
        for noise in [
            Noise::TUniform { bits: 0 },
            Noise::TUniform { bits: 2 },
            Noise::TUniform { bits: 13 },
            Noise::Gaussian { sigma: 10.0 },
            Noise::Uniform { bound: 0 },
            Noise::Uniform { bound: 5 },
            Noise::Uniform { bound: 19_000 },
            Noise::Uniform { bound: 1 << 46 },
        ] {
            let mut x = vec![0i64; 200_000];
            NoiseSampler::new(noise).unwrap().sample(&mut stream, &mut x);
            let n = x.len() as f64;
            let mean = x.iter().sum::<i64>() as f64 / n;
            let variance = x.iter().map(|v| (*v as f64).powi(2)).sum::<f64>() / n;
            assert!(mean.abs() <= 5.0 * (noise.variance() / n).sqrt(), "{noise:?} {mean}");
            assert!((variance - noise.variance()).abs() <= 0.02 * noise.variance(), "{noise:?} {variance}");
            if let Noise::Uniform { bound } = noise {
                let widest = x.iter().map(|v| v.unsigned_abs()).max().unwrap();
                assert!(widest <= bound && widest >= bound - bound / 1000, "{noise:?} {widest}");
            }
            if let Noise::TUniform { bits } = noise {
                assert_eq!(x.iter().map(|v| v.unsigned_abs()).max(), Some(1 << bits));
            }
        }
        assert!(NoiseSampler::new(Noise::TUniform { bits: 41 }).is_err());
        assert!(NoiseSampler::new(Noise::Uniform { bound: (1 << 46) + 1 }).is_err());
        for sigma in [0.0, 0.5, 11_050.0, 1e9] {
            let found = Noise::uniform_of(sigma).variance().sqrt();
            assert!(found >= sigma && found - sigma < 1.0, "{sigma} {found}");
        }
        let mut bits = vec![0i64; 10_000];
        SecretKind::Binary.sample(&mut stream, &mut bits);
        assert!(bits.iter().all(|b| *b == 0 || *b == 1));
        assert!((bits.iter().sum::<i64>() - 5000).abs() < 300);
    }
}
