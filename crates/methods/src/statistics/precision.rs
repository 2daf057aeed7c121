//! Scales of column statistics, and how exact their results are.
//!
//! Values stand for at most one: columns are divided by their own bounds before they are encrypted, so
//! that an error here is one in units of a column's bound (of the product of two for a covariance),
//! whatever the size of the other columns.

use super::{ColumnStatistics, RESULT_LEVEL, TOP};
use sudare_he::ckks::{Expected, Params};
use sudare_rlwe::noise::ROUNDING_VARIANCE;

/// Standard deviations of a slot's real part to the bound: products of Gaussians have heavier tails
/// than a Gaussian and pass x deviations with probability about e^(−2x).
const SIGMAS: f64 = 12.0;
/// Rounding to doubles of values up to one, when they are encoded and when they are read.
const DOUBLE: f64 = 1.0 / (1u64 << 49) as f64;
/// Bits that a collected result may have beside its value and scale: its sign, a covariance of two,
/// and noise.
const SLACK: f64 = 4.0;
/// Most bits by which the masks of the collection are finer than their prime.
const MAX_GUARD: u32 = 10;

/// How many bits finer than the scale Δ intermediate values stand, as far as the result's modulus has
/// room for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// log2 of the power of two that is at least the number of rows.
    pub(super) rows: u32,
    /// log2 of what centred values are finer by: a mean is a sum divided by the rows, and a mask of
    /// 1/rows has as many bits less.
    pub(super) centred: u32,
    /// Bits by which the last masks are finer.
    pub(super) guard: u32,
}

impl Bits {
    pub(super) fn new(params: &Params, rows: usize) -> Self {
        let room = params.q_at(RESULT_LEVEL).log2_product() - f64::from(params.literal().log_scale) - SLACK;
        let rows = rows.next_power_of_two().trailing_zeros();
        let left = (room.max(0.0) as u32).saturating_sub(rows);
        // Products of centred values are finer twice.
        let centred = rows.min(left / 2);
        Self { rows, centred, guard: (left - 2 * centred).min(MAX_GUARD) }
    }
}

/// Bounds on the errors of means and covariances, for values up to one that were encrypted under
/// the secret key; each holds but for a probability under 2^-30.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentErrors {
    /// Of a mean.
    pub mean: f64,
    /// Of a covariance or a variance.
    pub covariance: f64,
}

fn largest(variance: f64) -> f64 {
    SIGMAS * (variance / 2.0).sqrt() + DOUBLE
}

impl ColumnStatistics {
    /// Variance of a slot's error, as a complex number, from that of a coefficient.
    fn slot(&self, coefficient: f64, scale: f64) -> f64 {
        self.params.degree() as f64 * coefficient / (scale * scale)
    }

    fn switching(&self, level: usize, scale: f64) -> f64 {
        self.slot(self.params.sketch().switching(level).variance(), scale)
    }

    fn division(&self, scale: f64) -> f64 {
        self.slot(self.params.sketch().division(2).variance(), scale)
    }

    /// What a sum over the rows of a ciphertext makes of an error of variance `v` in each slot.
    fn summed(&self, v: f64, level: usize, scale: f64) -> f64 {
        self.sum.terms().iter().fold(v, |v, terms| {
            let images = terms.len() as f64;
            images * v + (images - 1.0) * self.switching(level, scale) + self.division(scale)
        })
    }

    /// Scale of centred values.
    pub(super) fn centred_scale(&self) -> f64 {
        self.scale() * self.centred_factor() as f64
    }

    pub(super) fn centred_factor(&self) -> i64 {
        1 << self.bits.centred
    }

    /// Scale of sums of products.
    pub(super) fn product_scale(&self) -> f64 {
        self.centred_scale() * self.centred_scale() / self.params.prime_at(TOP - 1) as f64
    }

    /// Scale of the masks that collect sums of products.
    fn collecting_scale(&self) -> f64 {
        f64::from(self.bits.rows + self.bits.guard).exp2() * self.params.prime_at(RESULT_LEVEL + 1) as f64
    }

    /// Scale of collected results before their rescale.
    pub(super) fn collected_scale(&self) -> f64 {
        self.product_scale() * self.collecting_scale()
    }

    fn result_scale(&self) -> f64 {
        self.collected_scale() / self.params.prime_at(RESULT_LEVEL + 1) as f64
    }

    /// What the result of a table is under encryption, worked out from the public figures alone.
    pub fn expected(&self) -> Expected {
        let errors = self.errors();
        Expected { level: RESULT_LEVEL, scale: self.result_scale(), error: errors.mean.max(errors.covariance) }
    }

    /// How exact the moments are. Variances add as in the evaluator's own formulas, with three terms
    /// beside them that do not average out: what masks leak of other results, the error of the means
    /// that columns are centred with (by Cauchy and Schwarz), and doubles.
    pub fn errors(&self) -> MomentErrors {
        let rows = self.rows as f64;
        let (slots, chunks) = (self.params.slots() as f64 / self.stride as f64, self.chunks() as f64);
        let fresh = self.slot(self.params.sketch().secret_encryption().variance() + ROUNDING_VARIANCE, self.scale());
        let sums = self.summed(chunks * fresh, TOP, self.scale());

        let centred = self.centred_scale();
        let mask = centred / self.scale() * self.params.prime_at(TOP) as f64;
        let leak = rows * rows * self.slot(ROUNDING_VARIANCE, mask);
        let mean = largest(sums / (rows * rows) + leak + self.division(centred));

        let rotated = fresh + self.switching(TOP - 1, centred) + self.division(centred);
        let own = 4.0 * chunks * fresh * rotated
            + self.switching(TOP - 1, centred * centred)
            + self.division(self.product_scale());
        // Σ (x − m)² ≤ n; a variance meets the same error twice.
        let sum = self.summed(own, TOP - 2, self.product_scale()) + 2.0 * rows * (fresh + rotated);
        let by_means = (2.0 * rows * mean + slots * chunks * mean * mean) / (rows - 1.0);

        let items = (self.groups() + self.products.len()).min(self.chunk_rows()) as f64;
        let collected = items * rows * rows * self.slot(ROUNDING_VARIANCE, self.collecting_scale())
            + self.division(self.result_scale());
        MomentErrors {
            mean: largest(sums / (rows * rows) + collected),
            covariance: largest(sum / (rows - 1.0).powi(2) + collected) + by_means,
        }
    }
}
