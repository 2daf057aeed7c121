//! Discrete Gaussians wider than any table, by convolution.

use once_cell::race::OnceBox;

use zeroize::Zeroize;

use super::{GaussianSampler, Stream};
use crate::error::RingError;

/// Standard deviation σ_0 of a digit.
const DIGIT_SIGMA: f64 = 20.0;
/// log2 of the base b = 8 of the digits.
const BASE_BITS: u32 = 3;
/// Samples of one buffer.
const CHUNK: usize = 256;
/// Standard deviations that are served: a sample of the widest is below 2^110.
const SIGMAS: std::ops::RangeInclusive<f64> = DIGIT_SIGMA..=(1u128 << 100) as f64;

/// The discrete Gaussian on the integers of any standard deviation from 20 to 2^100.
///
/// A sample is Σ_{i<k} 8^i·x_i + m·x_k with x_i of the discrete Gaussian with σ_0 = 20
/// ([`GaussianSampler`], in constant time) and an integer m ≤ 8^k: the sum of Gaussians on Z and
/// on m·Z is one on Z as long as (σ_0^−2 + (m/σ_y)^2)^(−1/2) ≥ η_ε(Z), σ_y the deviation of the
/// digits below (Peikert, ePrint 2010/088, Theorem 3.1; Micciancio–Walter, ePrint 2017/259, section
/// 4). The left side is at least 2.48 here, where ε < 2^−173. So a sample is within statistical
/// distance (k + 1)·2^−117 of the exact distribution, its tail included: what the tables of the
/// digits leave.
#[derive(Clone, Copy, Debug)]
pub struct WideGaussian {
    /// k.
    digits: u32,
    /// m.
    top: i128,
    sigma: f64,
}

fn digit() -> &'static GaussianSampler {
    static DIGIT: OnceBox<GaussianSampler> = OnceBox::new();
    DIGIT.get_or_init(|| Box::new(GaussianSampler::tabulate(DIGIT_SIGMA)))
}

impl WideGaussian {
    /// The sampler with a standard deviation of at least `sigma`, 20 to 2^100; above 2^20 it is at
    /// most a thousandth more.
    ///
    /// # Errors
    /// [`RingError::Sigma`] for another σ, NaN included.
    pub fn new(sigma: f64) -> Result<Self, RingError> {
        if !SIGMAS.contains(&sigma) {
            return Err(RingError::Sigma { bits: sigma.to_bits() });
        }
        let unit = DIGIT_SIGMA * DIGIT_SIGMA;
        // Variance of the digits below k, and of the digit k itself.
        let (mut digits, mut below, mut next) = (1, unit, unit * 64.0);
        while below + next <= sigma * sigma {
            below += next;
            next *= 64.0;
            digits += 1;
        }
        let rest = (sigma * sigma - below).max(0.0);
        let top = (rest / unit).sqrt().ceil();
        Ok(Self { digits, top: top as i128, sigma: (below + top * top * unit).sqrt() })
    }

    /// The standard deviation that it has.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Fills `out` with independent samples.
    pub fn sample(&self, stream: &mut Stream, out: &mut [i128]) {
        let mut digits = [0i64; CHUNK];
        for chunk in out.chunks_mut(CHUNK) {
            chunk.fill(0);
            let weights = (0..self.digits).map(|i| 1i128 << (BASE_BITS * i)).chain([self.top]);
            for weight in weights.filter(|w| *w != 0) {
                let digits = &mut digits[..chunk.len()];
                digit().sample(stream, digits);
                chunk.iter_mut().zip(digits).for_each(|(x, digit)| *x += weight * i128::from(*digit));
            }
        }
        digits.zeroize();
    }
}
