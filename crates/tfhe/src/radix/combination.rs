//! Linear combinations of blocks, with the range of their values and their noise.

use crate::rotation::table;
use crate::{EncryptedInt, LweCiphertext, ServerKey, TfheError, TfheParams};

/// A sum of multiples of blocks and constants, of one integer or of the same blocks of several that are
/// computed side by side (lanes). Costs no bootstrap.
#[derive(Clone)]
pub(crate) struct Combination {
    /// One for each lane, or one for all of them where everybody can read it.
    c: Vec<LweCiphertext>,
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

/// Whether everybody can read a block.
pub(crate) fn is_public(x: &EncryptedInt) -> bool {
    x.noise() == 0 && x.ciphertext().mask().iter().all(|a| *a == 0)
}

impl Combination {
    /// A block of each lane, at least one. Blocks that everybody can read, all alike, have the range of
    /// their one value.
    pub(super) fn of<'a>(key: &ServerKey, lanes: impl Iterator<Item = &'a EncryptedInt> + Clone) -> Self {
        let mut c: Vec<LweCiphertext> = lanes.clone().map(|x| x.ciphertext().clone()).collect();
        if lanes.clone().all(is_public) && c.iter().all(|other| other.body() == c[0].body()) {
            c.truncate(1);
            let value = table::decode(key.params(), c[0].body()) as i64;
            return Self { c, low: value, high: value, noise: 0 };
        }
        let largest = lanes.clone().map(EncryptedInt::largest).fold(0, u64::max);
        // A bound of zero on the noise is only true without a mask.
        Self { c, low: 0, high: largest as i64, noise: lanes.map(EncryptedInt::noise).fold(1, u64::max) }
    }

    /// Of ciphertexts that a rotation made, one for each lane.
    pub(super) fn rotated(c: Vec<LweCiphertext>, (low, high): (i64, i64)) -> Self {
        Self { c, low, high, noise: 1 }
    }

    /// The range and noise of a sum of flags, with no ciphertext behind it.
    pub(super) fn flags(count: u64, noise: u64) -> Self {
        Self { c: Vec::new(), low: 0, high: count as i64, noise: count * noise }
    }

    /// A constant.
    pub(super) fn constant(key: &ServerKey, value: i64) -> Self {
        let context = key.params().context();
        let phase = half_units(key.params(), 2 * value);
        let c = LweCiphertext::trivial(context.modulus(), context.lwe_dimension(), phase);
        Self { c: vec![c], low: value, high: value, noise: 0 }
    }

    /// The ciphertexts.
    pub(super) fn lanes(&self) -> &[LweCiphertext] {
        &self.c
    }

    /// The ciphertext of a lane.
    pub(super) fn lane(&self, i: usize) -> &LweCiphertext {
        &self.c[i % self.c.len()]
    }

    /// The value, where everybody can read it.
    pub(super) fn public(&self) -> Option<i64> {
        (self.noise == 0 && self.low == self.high).then_some(self.low)
    }

    pub(super) fn times(mut self, factor: i64) -> Self {
        if factor != 1 {
            self.c.iter_mut().for_each(|c| c.mul_assign(factor));
        }
        let ends = [self.low * factor, self.high * factor];
        self.low = ends[0].min(ends[1]);
        self.high = ends[0].max(ends[1]);
        self.noise *= factor.unsigned_abs();
        self
    }

    fn merge(
        &mut self,
        other: &Self,
        merge: fn(&mut LweCiphertext, &LweCiphertext) -> Result<(), TfheError>,
    ) -> Result<(), TfheError> {
        if self.c.len() < other.c.len() {
            self.c.resize(other.c.len(), self.c[0].clone());
        }
        self.c.iter_mut().enumerate().try_for_each(|(i, c)| merge(c, other.lane(i)))
    }

    pub(super) fn plus(mut self, other: &Self) -> Result<Self, TfheError> {
        self.merge(other, LweCiphertext::add_assign)?;
        self.low += other.low;
        self.high += other.high;
        self.noise += other.noise;
        Ok(self)
    }

    pub(super) fn minus(mut self, other: &Self) -> Result<Self, TfheError> {
        self.merge(other, LweCiphertext::sub_assign)?;
        self.low -= other.high;
        self.high -= other.low;
        self.noise += other.noise;
        Ok(self)
    }

    pub(super) fn plus_constant(mut self, key: &ServerKey, value: i64) -> Self {
        let phase = half_units(key.params(), 2 * value);
        self.c.iter_mut().for_each(|c| c.add_plain(phase));
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
