//! What circuits multiply by: masks and constants, as the backend keeps them; and simulated encryptions.

use super::{CiphertextOf, Evaluator, ExtendedPlaintext, PlaintextOf};
use crate::ckks::noise::TAIL;
use crate::ckks::spread::{self, PlainSpread, Spread};
use crate::ckks::{Ciphertext, EncodeAt, Encoder, Plaintext, State};
use crate::error::HeError;
use sudare_rlwe::noise::{Noise, ROUNDING_VARIANCE};
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::{Backend, Over};

/// One value in some slots, zeros in the others, at the scale of the prime that the rescale after it divides by.
#[derive(Clone, Copy)]
pub struct Mask<K> {
    /// Level of what it multiplies.
    pub level: usize,
    /// The value.
    pub value: f64,
    /// Slots after which it repeats.
    pub period: usize,
    /// Which slots have the value.
    pub keep: K,
}

impl<K: Fn(usize) -> bool> Mask<K> {
    fn values(&self, slots: usize) -> Vec<f64> {
        (0..slots).map(|i| if (self.keep)(i) { self.value } else { 0.0 }).collect()
    }
}

impl<B: Backend> Evaluator<B> {
    fn mask_at(&self, level: usize) -> EncodeAt {
        EncodeAt { level, scale: self.params.prime_at(level) as f64, max_abs: 1.0 }
    }

    /// A mask for [`Evaluator::mul_plain`].
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn mask<K: Fn(usize) -> bool>(&self, mask: &Mask<K>) -> Result<PlaintextOf<B>, HeError> {
        self.masked(mask, self.mask_at(mask.level))
    }

    /// A mask at a scale of the caller's, whatever the rescale after it divides by.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`].
    pub fn mask_of_scale<K: Fn(usize) -> bool>(&self, mask: &Mask<K>, scale: f64) -> Result<PlaintextOf<B>, HeError> {
        self.masked(mask, EncodeAt { level: mask.level, scale, max_abs: mask.value })
    }

    fn masked<K: Fn(usize) -> bool>(&self, mask: &Mask<K>, at: EncodeAt) -> Result<PlaintextOf<B>, HeError> {
        let encoder = Encoder::new(&self.params);
        encoder.check_at("encoding", at)?;
        let make = || Ok::<_, HeError>(encoder.encode_at(&mask.values(self.params.slots()), at)?.poly.clone());
        let poly = self.backend().prepare(at.level, Over::Q, make)?;
        let (params, noise) = (self.params.rlwe().clone(), encoder.noise(at));
        let spread = self.mask_spread(mask);
        Ok(Plaintext { params, poly, level: at.level, scale: at.scale, bound: at.max_abs, noise, spread })
    }

    /// a + `value` where `keep` says so.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`] and [`Encoder::encode_at`].
    pub fn add_where(
        &self,
        a: &CiphertextOf<B>,
        value: f64,
        keep: impl Fn(usize) -> bool,
    ) -> Result<CiphertextOf<B>, HeError> {
        let mask = Mask { level: a.level(), value, period: usize::MAX, keep };
        self.add_slots(a, value.abs(), || mask.values(self.params.slots()))
    }

    /// a + the real numbers that `values` gives for the first slots, of which none is over `max_abs` in absolute value; zeros for the rest.
    ///
    /// # Errors
    /// As [`Evaluator::add_plain`] and [`Encoder::encode_at`].
    pub fn add_slots(
        &self,
        a: &CiphertextOf<B>,
        max_abs: f64,
        values: impl FnOnce() -> Vec<f64>,
    ) -> Result<CiphertextOf<B>, HeError> {
        let (level, scale, encoder) = (a.level(), a.scale(), Encoder::new(&self.params));
        let at = EncodeAt { level, scale, max_abs };
        encoder.check_at("encoding", at)?;
        let make = || Ok::<_, HeError>(encoder.encode_at(&values(), at)?.poly.clone());
        let poly = self.backend().prepare(level, Over::Q, make)?;
        let (params, noise) = (self.params.rlwe().clone(), encoder.noise(at));
        let error = spread::encoding(&self.params, usize::MAX) + spread::doubles(&self.params, at);
        let spread = PlainSpread { size: max_abs, error, mask: false };
        self.add_plain(a, &Plaintext { params, poly, level, scale, bound: at.max_abs, noise, spread })
    }

    /// A mask for [`Evaluator::sum_of_automorphisms_mul_rescale`].
    ///
    /// # Errors
    /// As [`Encoder::encode_extended`].
    pub fn extended_mask<K: Fn(usize) -> bool>(
        &self,
        mask: &Mask<K>,
    ) -> Result<ExtendedPlaintext<B::Plaintext>, HeError> {
        let (encoder, at) = (Encoder::new(&self.params), self.mask_at(mask.level));
        encoder.check_at("encoding", at)?;
        let make = || Ok::<_, HeError>(encoder.encode_extended(&mask.values(self.params.slots()), at)?.poly);
        let poly = self.backend().prepare(at.level, Over::QP, make)?;
        let params = self.params.rlwe().clone();
        // As an encoder's plaintext says it: its error bound times its scale.
        let noise = encoder.noise(at) / at.scale * at.scale;
        let spread = self.mask_spread(mask);
        Ok(ExtendedPlaintext { params, poly, level: at.level, scale: at.scale, bound: at.max_abs, noise, spread })
    }

    fn mask_spread<K>(&self, mask: &Mask<K>) -> PlainSpread {
        PlainSpread { size: mask.value, error: spread::encoding(&self.params, mask.period), mask: true }
    }

    /// One value in every slot.
    pub(super) fn constant(&self, value: f64, at: EncodeAt) -> Result<PlaintextOf<B>, HeError> {
        let encoder = Encoder::new(&self.params);
        encoder.check_at("encoding", at)?;
        let make = || Ok::<_, HeError>(encoder.encode_constant(value, at)?.poly.clone());
        let poly = self.backend().prepare(at.level, Over::Q, make)?;
        let (params, noise) = (self.params.rlwe().clone(), encoder.noise(at));
        let spread = PlainSpread { size: value.abs(), error: ROUNDING_VARIANCE, mask: false };
        Ok(Plaintext { params, poly, level: at.level, scale: at.scale, bound: at.max_abs, noise, spread })
    }
}

impl Evaluator<Simulated> {
    /// `count` simulated encryptions under the public key, of values up to `at.max_abs`.
    ///
    /// # Errors
    /// [`HeError::TooLarge`].
    pub fn encryptions(&self, at: EncodeAt, count: usize) -> Result<CiphertextOf<Simulated>, HeError> {
        self.fresh(at, count, self.params.sketch().public_encryption())
    }

    /// The same under the secret key.
    ///
    /// # Errors
    /// [`HeError::TooLarge`].
    pub fn secret_encryptions(&self, at: EncodeAt, count: usize) -> Result<CiphertextOf<Simulated>, HeError> {
        self.fresh(at, count, self.params.sketch().secret_encryption())
    }

    fn fresh(&self, at: EncodeAt, count: usize, fresh: Noise) -> Result<CiphertextOf<Simulated>, HeError> {
        let encoder = Encoder::new(&self.params);
        encoder.check_at("encoding", at)?;
        let state = State { scale: at.scale, bound: at.max_abs, noise: fresh.bound(&TAIL) + encoder.noise(at) };
        state.check_fits("encryption", &self.params, at.level)?;
        let degree = self.params.sketch().degree();
        let variance = degree * (fresh.variance() + ROUNDING_VARIANCE) + spread::doubles(&self.params, at);
        Ok(self.batch(at.level, count, state, Spread { alone: true, ..Spread::even(at.max_abs, variance) }))
    }

    /// `count` ciphertexts of which this is known.
    pub fn batch(&self, level: usize, count: usize, state: State, spread: Spread) -> CiphertextOf<Simulated> {
        Ciphertext::new(self.backend().batch(level, count), state).with_spread(spread)
    }
}
