//! Predicted errors of slot-packed products.
//!
//! The static bound that travels with a ciphertext covers correlated operands by the triangle
//! inequality, and is far above what a product of independent ciphertexts shows. A planner needs
//! a figure close to what will be measured, so this model adds variances instead, with the
//! formulas of [`sudare_he::ckks::noise`] read off a literal, without building it.

use crate::rounding;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::ckks::spread::{SIGMAS, SIGMAS_ALONE};
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_rlwe::security::SecretDistribution;

/// Variances of slot errors under one parameter literal. A slot's error is complex; variances are
/// E|e|², in units of the message.
#[derive(Clone, Copy, Debug)]
pub struct ErrorModel<'a> {
    literal: &'a ParamsLiteral,
    n: f64,
    secret: f64,
}

impl<'a> ErrorModel<'a> {
    /// The model of a literal.
    pub fn new(literal: &'a ParamsLiteral) -> Self {
        let n = f64::from(literal.log_n).exp2();
        let secret = match literal.secret {
            SecretDistribution::FixedWeight { weight } => f64::from(weight) / n,
            SecretDistribution::Gaussian => ERROR_VARIANCE,
            _ => 2.0 / 3.0,
        };
        Self { literal, n, secret }
    }

    /// The default scale Δ.
    pub fn scale(&self) -> f64 {
        f64::from(self.literal.log_scale).exp2()
    }

    /// The prime that a rescale at `level` divides by, nearly.
    pub fn prime(&self, level: usize) -> f64 {
        self.literal.q_bits.get(level).map_or(1.0, |b| f64::from(*b).exp2())
    }

    /// A public-key encryption at scale Δ, its encoding included.
    pub fn fresh(&self) -> f64 {
        let coefficient = ERROR_VARIANCE * (1.0 + self.n * (2.0 / 3.0 + self.secret)) + ROUNDING_VARIANCE;
        self.n * coefficient / self.scale().powi(2)
    }

    /// The inner product of a key switch at `level`, for a ciphertext of scale `scale`.
    pub fn switching(&self, level: usize, scale: f64) -> f64 {
        let p: u32 = self.literal.p_bits.iter().sum();
        let digits: f64 = self.literal.q_bits[..=level]
            .chunks(self.literal.digit_limbs)
            .map(|d| (2.0 * (f64::from(d.iter().sum::<u32>()) - f64::from(p))).exp2())
            .sum();
        self.n * self.n * ERROR_VARIANCE * ROUNDING_VARIANCE * digits / scale.powi(2)
    }

    /// Rounding the parts of a ciphertext in a division, at the scale after it.
    pub fn division(&self, scale: f64) -> f64 {
        self.n * ROUNDING_VARIANCE * (1.0 + self.n * self.secret) / scale.powi(2)
    }

    /// A 0/1 mask whose pattern repeats after `period` slots, encoded at `scale`: relative to the
    /// values it multiplies. The encoding has 2·period coefficients that are not zero.
    pub fn mask(&self, period: usize, scale: f64) -> f64 {
        (2.0 * period as f64).min(self.n) * ROUNDING_VARIANCE / scale.powi(2)
    }

    /// Rounding the coefficients of an encoding at `scale` to integers.
    pub fn encoded(&self, scale: f64) -> f64 {
        self.n * ROUNDING_VARIANCE / scale.powi(2)
    }

    /// Rounding to doubles of slots up to `size` on their way to coefficients.
    pub fn encoding(&self, size: f64) -> f64 {
        (rounding::embedding(self.n / 2.0) * size).powi(2)
    }

    /// The largest error that reading values up to `size` adds, after `rescales` of their scale.
    pub fn read(&self, size: f64, rescales: usize) -> f64 {
        reading_error(self.n, size, rescales)
    }

    /// The largest error to expect of real parts whose variance (as complex numbers) is `variance`.
    pub fn largest(variance: f64) -> f64 {
        SIGMAS * (variance / 2.0).sqrt()
    }

    /// The same of a sum of `terms` slots' errors, perhaps one.
    pub fn largest_sum(variance: f64, terms: usize) -> f64 {
        if terms > 1 { Self::largest(variance) } else { SIGMAS_ALONE * (variance / 2.0).sqrt() }
    }

    /// Σ of `count` rotated images in `stages` of hoisted sums, on errors of variance `v`.
    pub fn fold(&self, v: f64, stages: &[usize], level: usize, scale: f64) -> f64 {
        stages.iter().fold(v, |v, radix| {
            let r = *radix as f64;
            r * v + (r - 1.0) * (self.switching(level, scale) + self.division(scale))
        })
    }
}

fn reading_variance(degree: f64, size: f64) -> f64 {
    (rounding::reading(rounding::embedding(degree / 2.0)) * size).powi(2)
}

/// The largest error that reading values up to `size` adds in a ring of this degree, after `rescales` of
/// their scale.
pub fn reading_error(degree: f64, size: f64, rescales: usize) -> f64 {
    ErrorModel::largest(reading_variance(degree, size)) + rounding::drift(rescales) * size
}
