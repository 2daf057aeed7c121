//! Linear combinations of blocks, with the range of their values and their noise.

use crate::rotation::table;
use crate::{EncryptedInt, LweCiphertext, ServerKey, TfheError, TfheParams};

/// A sum of multiples of blocks and constants. Costs no bootstrap.
#[derive(Clone)]
pub(super) struct Combination {
    pub(super) c: LweCiphertext,
    /// Least value.
    pub(super) low: i64,
    /// Largest value.
    pub(super) high: i64,
    /// Noise in units of a bootstrap's output, as if every output were the same one.
    pub(super) noise: u64,
}

/// `halves/2` messages as a phase, rounded.
pub(super) fn half_units(params: &TfheParams, halves: i64) -> u64 {
    let (q, parts) = (i128::from(params.context().q()), 4 * i128::from(params.space()));
    let phase = (i128::from(halves) * q + parts / 2).div_euclid(parts);
    // In [0, q) after the reduction.
    phase.rem_euclid(q) as u64
}

impl Combination {
    /// A block by itself. A block that everybody can read has the range of its one value.
    pub(super) fn of(key: &ServerKey, x: &EncryptedInt) -> Self {
        let c = x.ciphertext().clone();
        if x.noise() == 0 && c.mask().iter().all(|a| *a == 0) {
            let value = table::decode(key.params(), c.body()) as i64;
            return Self { c, low: value, high: value, noise: 0 };
        }
        // A bound of zero on the noise is only true without a mask.
        Self { c, low: 0, high: x.largest() as i64, noise: x.noise().max(1) }
    }

    /// A constant.
    pub(super) fn constant(key: &ServerKey, value: i64) -> Self {
        let context = key.params().context();
        let phase = half_units(key.params(), 2 * value);
        let c = LweCiphertext::trivial(context.modulus(), context.lwe_dimension(), phase);
        Self { c, low: value, high: value, noise: 0 }
    }

    /// The value, where everybody can read it.
    pub(super) fn public(&self) -> Option<i64> {
        (self.noise == 0 && self.low == self.high).then_some(self.low)
    }

    pub(super) fn times(mut self, factor: i64) -> Self {
        if factor != 1 {
            self.c.mul_assign(factor);
        }
        let ends = [self.low * factor, self.high * factor];
        self.low = ends[0].min(ends[1]);
        self.high = ends[0].max(ends[1]);
        self.noise *= factor.unsigned_abs();
        self
    }

    pub(super) fn plus(mut self, other: &Self) -> Result<Self, TfheError> {
        self.c.add_assign(&other.c)?;
        self.low += other.low;
        self.high += other.high;
        self.noise += other.noise;
        Ok(self)
    }

    pub(super) fn minus(mut self, other: &Self) -> Result<Self, TfheError> {
        self.c.sub_assign(&other.c)?;
        self.low -= other.high;
        self.high -= other.low;
        self.noise += other.noise;
        Ok(self)
    }

    pub(super) fn plus_constant(mut self, key: &ServerKey, value: i64) -> Self {
        self.c.add_plain(half_units(key.params(), 2 * value));
        self.low += value;
        self.high += value;
        self
    }

    /// Narrows the range by what is known of the terms together.
    pub(super) fn within(mut self, low: i64, high: i64) -> Self {
        self.low = self.low.max(low);
        self.high = self.high.min(high);
        self
    }
}
