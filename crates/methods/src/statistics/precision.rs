//! Scales of column statistics.

use super::{Columns, RESULT_LEVEL, TOP};
use sudare_he::ckks::Params;

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
    rows: u32,
    /// log2 of what centred values are finer by: a mean is a sum divided by the rows, and a mask of
    /// 1/rows has as many bits less.
    centred: u32,
    /// Bits by which the last masks are finer.
    guard: u32,
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

impl Columns {
    pub(super) fn centred_factor(&self) -> i64 {
        1 << self.bits.centred
    }

    /// Scale of collected results before their rescale: it grows with the rows, so that masks stay as precise as their prime.
    pub(super) fn collected_scale(&self) -> f64 {
        let centred = self.scale() * self.centred_factor() as f64;
        let product = centred * centred / self.params.prime_at(TOP - 1) as f64;
        let masks = f64::from(self.bits.rows + self.bits.guard).exp2() * self.params.prime_at(RESULT_LEVEL + 1) as f64;
        product * masks
    }
}
