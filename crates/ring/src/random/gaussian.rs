//! Discrete Gaussian noise by a cumulative table, in constant time.

use once_cell::race::OnceBox;

use num_bigint::BigUint;
use zeroize::Zeroize;

use super::Stream;
use crate::error::RingError;
use crate::kernel::random::{WORD_MASK, count_thresholds};

/// Standard deviation of the noise of the security tables (ePrint 2024/463).
pub const SIGMA: f64 = 3.19;

/// Bits of a threshold: two words of 63.
const PRECISION: u32 = 126;
/// Bits after the point while the table is built.
const WORKING: u32 = 384;
/// Samples of one buffer.
const CHUNK: usize = 256;

/// The discrete Gaussian on the integers, `P(x)` proportional to `exp(−x²/2σ²)`.
///
/// A sample takes 16 bytes of the stream, two little-endian words. Bits 0..63 of the first and of
/// the second make a 126-bit integer `r` (the second is the high part), bit 63 of the second the
/// sign, bit 63 of the first is unused. The magnitude is the number of thresholds
/// `T_k = floor(2^126 · P(|x| > k))` that are above `r`. Every sample is compared with every
/// threshold, without branches or data-dependent addresses.
///
/// The table ends with the last `T_k > 0`, for σ = 3.19 at |x| = 41. The distribution is within
/// statistical distance `n·2^−126` of the exact one, `n` the number of thresholds: below 2^−120
/// for σ = 3.19 (tail cut included) and below 2^−116 for every σ allowed. It is built with integers
/// only, so it is the same on every machine.
#[derive(Clone, Debug)]
pub struct GaussianSampler {
    sigma: f64,
    /// Low and high 63 bits of each threshold, descending.
    thresholds: Vec<[u64; 2]>,
}

impl GaussianSampler {
    /// Builds the table of a standard deviation, in 0.5..=64. (Table and time grow with σ.)
    ///
    /// # Errors
    /// [`RingError::Sigma`] for another σ, NaN included.
    pub fn new(sigma: f64) -> Result<Self, RingError> {
        if !(0.5..=64.0).contains(&sigma) {
            return Err(RingError::Sigma { bits: sigma.to_bits() });
        }
        Ok(Self::tabulate(sigma))
    }

    /// The table of a standard deviation that is known to be in range.
    pub(super) fn tabulate(sigma: f64) -> Self {
        Self { sigma, thresholds: thresholds(sigma) }
    }

    /// The sampler of σ = [`SIGMA`], built once.
    pub fn standard() -> &'static Self {
        // No lock: one that a thread holds while the process is forked stays locked in the child.
        static STANDARD: OnceBox<GaussianSampler> = OnceBox::new();
        STANDARD.get_or_init(|| Box::new(Self::tabulate(SIGMA)))
    }

    /// The standard deviation σ.
    pub const fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Largest magnitude that a sample can have.
    pub const fn bound(&self) -> u64 {
        self.thresholds.len() as u64
    }

    /// Fills `out` with independent samples.
    pub fn sample(&self, stream: &mut Stream, out: &mut [i64]) {
        let mut draws = [0u64; 2 * CHUNK];
        for chunk in out.chunks_mut(CHUNK) {
            let draws = &mut draws[..2 * chunk.len()];
            stream.fill_u64(draws);
            count_thresholds(&self.thresholds, draws, chunk);
        }
        draws.zeroize();
    }
}

/// `floor(2^126 · P(|x| > k))` for k = 0, 1, … while above zero; σ in 0.5..=64.
///
/// The weights `exp(−k²/2σ²)` carry 384 bits and are off by less than 2^−350; those left out are
/// below e^−100 of the sum. So a threshold is the exact floor, or one off where the exact value lies
/// within 2^−13 of an integer.
fn thresholds(sigma: f64) -> Vec<[u64; 2]> {
    // σ = mantissa · 2^−scale exactly, for a normal number below 2^53.
    let bits = sigma.to_bits();
    let mantissa = BigUint::from(bits & ((1 << 52) - 1) | 1 << 52);
    let scale = (1075 - (bits >> 52)) as u32;
    let square = &mantissa * &mantissa;
    // k²/2σ² with WORKING bits after the point.
    let exponent = |k: u32| ((BigUint::from(k) * k) << (WORKING - 1 + 2 * scale)) / &square;
    let limit = BigUint::from(100u32) << WORKING;
    let weights: Vec<BigUint> = (0..).map(exponent).take_while(|x| *x < limit).map(|x| exp_minus(&x)).collect();

    // tails[k]: the weight of all |x| > k.
    let mut tail = BigUint::ZERO;
    let mut tails: Vec<BigUint> = Vec::with_capacity(weights.len());
    for weight in weights.iter().skip(1).rev() {
        tail += weight << 1u32;
        tails.push(tail.clone());
    }
    tails.reverse();
    let total = tail + &weights[0];
    let word = |t: &BigUint| t.iter_u64_digits().next().unwrap_or(0) & WORD_MASK;
    tails
        .into_iter()
        .map(|tail| (tail << PRECISION) / &total)
        .take_while(|t| *t != BigUint::ZERO)
        .map(|t| [word(&t), word(&(t >> 63u32))])
        .collect()
}

/// `e^−x`, both with WORKING bits after the point.
fn exp_minus(x: &BigUint) -> BigUint {
    const HALVINGS: u32 = 16;
    let y = x >> HALVINGS;
    let one = BigUint::from(1u32) << WORKING;
    // e^y by its series, all terms positive; then its inverse, squared HALVINGS times.
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0u32);
    while term != BigUint::ZERO {
        n += 1;
        term = ((term * &y) >> WORKING) / n;
        sum += &term;
    }
    let mut power = (&one << WORKING) / sum;
    for _ in 0..HALVINGS {
        power = (&power * &power) >> WORKING;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against thresholds computed elsewhere with 160 decimal digits: how many, three of them, and
    /// the sum of all modulo 2^126.
    #[test]
    fn thresholds_are_exact() {
        let expected = [
            (
                SIGMA,
                41,
                [0x37ff032f269ab5c21ec687c1eabd16fb, 0x1e576d19cace84445e1d528b, 0x1d],
                0x218e3574b06b8410401e5561eb04d436,
            ),
            (
                0.5,
                6,
                [0xda8d35650d8df759e0f0e5cb9a64f5c, 0x166e46c6e0ae472b8c84e, 0x6dddc7],
                0xdb178ffb4418daa14b8da677d254224,
            ),
            (
                64.0,
                832,
                [0x3f99deeb30af26bdcbc0d30ebfd151c7, 0x14f37714a5418ec5bef60424, 0x1],
                0x41194590528c10a919defd69894e772,
            ),
        ];
        for (sigma, count, [first, middle, last], sum) in expected {
            let found: Vec<u128> =
                thresholds(sigma).iter().map(|t| u128::from(t[1]) << 63 | u128::from(t[0])).collect();
            assert_eq!(found.len(), count);
            assert_eq!([found[0], found[count / 2], found[count - 1]], [first, middle, last]);
            assert_eq!(found.iter().fold(0u128, |a, b| a.wrapping_add(*b)) % (1 << PRECISION), sum);
        }
    }
}
