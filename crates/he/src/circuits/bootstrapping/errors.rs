//! What is known of the errors of the N integers of a value, one by one and all together.
//!
//! Tables read an integer rightly if its own error is within a bound. BFV and BGV bound the canonical norm of all errors together,
//! Σ_i e_i·ζ^i, of which N bounds would say far too much. Given the integers, errors are independent of one another but for their
//! biases: N biases add up straight, and of what is random √N deviations (Costache–Curtis–Hales–Murphy–Ogilvie–Player, ePrint 2022/162).

use sudare_rlwe::noise::{NEGLIGIBLE, Noise, canonical_bound};

/// Errors of N real numbers that stand in real and imaginary parts of slots, or in coefficients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Bound on each of them.
    pub bound: f64,
    /// Bound on the size of the expected value of each.
    pub bias: f64,
    /// Bound on the root of the variance of each.
    pub deviation: f64,
}

impl Errors {
    /// None.
    pub const NONE: Self = Self { bound: 0.0, bias: 0.0, deviation: 0.0 };

    /// Errors of which nothing but a bound is known.
    pub fn within(bound: f64) -> Self {
        Self { bound, bias: bound, deviation: 0.0 }
    }

    /// Errors with the mean zero.
    pub fn random(bound: f64, variance: f64) -> Self {
        Self { bound, bias: 0.0, deviation: variance.sqrt() }
    }

    /// Those that noise makes of a real or imaginary part of a slot, which has half of its variance.
    pub fn of_noise(degree: f64, noise: &Noise, scale: f64) -> Self {
        Self::random(noise.bound(&NEGLIGIBLE) / scale, degree * noise.variance() / 2.0 / (scale * scale))
    }

    /// Of sums, whose terms may depend on each other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bound: self.bound + other.bound,
            bias: self.bias + other.bias,
            deviation: self.deviation + other.deviation,
        }
    }

    /// Of products with numbers up to `factor` in size.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { bound: self.bound * factor, bias: self.bias * factor, deviation: self.deviation * factor }
    }

    /// Products of errors with errors.
    #[must_use]
    pub fn product(self, other: Self) -> Self {
        let (own, others) = (self.mean_square().sqrt(), other.mean_square().sqrt());
        Self { bound: self.bound * other.bound, bias: own * others, deviation: self.bound * others }
    }

    /// What is known of either.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        let (bound, bias) = (self.bound.max(other.bound), self.bias.max(other.bias));
        Self { bound, bias, deviation: self.deviation.max(other.deviation) }
    }

    /// Bound on the mean square of each.
    pub fn mean_square(self) -> f64 {
        self.bias * self.bias + self.deviation * self.deviation
    }

    /// Bound on |Σ_i w_i·e_i| for N = `degree` of them and factors w_i up to one in size.
    pub fn together(self, degree: f64) -> f64 {
        degree * self.bias + canonical_bound(&NEGLIGIBLE, degree, self.deviation * self.deviation, 1)
    }
}
