//! What errors a slot is expected to have: the second reading of the noise formulas, beside the bound that travels.
//!
//! Variances add where errors are independent, so they follow how a circuit uses slots: a mask leaves most of them
//! empty, and a sum that spreads one slot over others adds to its error only what empty slots hold. The bound of
//! [`State`](super::State) knows none of this and holds always; a planner needs a figure close to what is measured.

use super::params::Params;
use sudare_rlwe::noise::ROUNDING_VARIANCE;

/// Standard deviations of a real part that a largest error allows for: a sum of several slots' errors passes them with a
/// probability under 2^-45.
pub const SIGMAS: f64 = 8.0;
/// The same where a single slot's error may decide: the error of a public-key encryption is a sum of two products of
/// Gaussians, which passes x deviations with probability about e^(−2x).
pub const SIGMAS_ALONE: f64 = 12.0;

/// Which slots hold messages in the images that a sum adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// Any: messages add up.
    Overlapping,
    /// In each slot at most one does.
    Disjoint,
}

/// Expected errors of slots, E|e|² in integer units: of those that hold a message, and of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Bound on messages, as far as the circuit knows it.
    pub size: f64,
    /// Variance where a slot holds a message.
    pub held: f64,
    /// Variance where it holds none.
    pub empty: f64,
    /// Largest error that slots may have in common: it adds up, whatever they are summed with.
    pub common: f64,
    /// Whether one slot's error may decide: nothing was summed over slots yet.
    pub alone: bool,
}

/// The same of a plaintext.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainSpread {
    /// Bound on the absolute values.
    pub size: f64,
    /// Variance of the error of encoding, in integer units.
    pub error: f64,
    /// Whether other slots are zeros: what is multiplied by it keeps its messages alone.
    pub mask: bool,
}

impl PlainSpread {
    /// Of a plaintext from elsewhere.
    pub const UNKNOWN: Self = Self { size: f64::NAN, error: f64::NAN, mask: false };
}

impl Spread {
    /// Of a ciphertext from elsewhere.
    pub const UNKNOWN: Self = Self { size: f64::NAN, held: f64::NAN, empty: f64::NAN, common: f64::NAN, alone: false };

    /// Of an error alike in all slots.
    pub fn even(size: f64, variance: f64) -> Self {
        Self { size, held: variance, empty: variance, common: 0.0, alone: false }
    }

    /// With more noise in every slot.
    #[must_use]
    pub fn plus(self, variance: f64) -> Self {
        Self { held: self.held + variance, empty: self.empty + variance, ..self }
    }

    /// In other units.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { held: self.held * by * by, empty: self.empty * by * by, common: self.common * by, ..self }
    }

    /// Of a sum of independent errors.
    #[must_use]
    pub fn sum(self, other: Self) -> Self {
        let (held, empty) = (self.held + other.held, self.empty + other.empty);
        let alone = self.alone || other.alone;
        Self { size: self.size + other.size, held, empty, common: self.common + other.common, alone }
    }

    /// Of a sum of errors that may be the same.
    #[must_use]
    pub fn sum_of_any(self, other: Self) -> Self {
        let both = |a: f64, b: f64| (a.sqrt() + b.sqrt()).powi(2);
        let (held, empty) = (both(self.held, other.held), both(self.empty, other.empty));
        let alone = self.alone || other.alone;
        Self { size: self.size + other.size, held, empty, common: self.common + other.common, alone }
    }

    /// Of a sum of two that hold messages in different slots.
    #[must_use]
    pub fn disjoint(self, other: Self) -> Self {
        Self {
            size: self.size.max(other.size),
            held: (self.held + other.empty).max(self.empty + other.held),
            empty: self.empty + other.empty,
            common: self.common.max(other.common),
            alone: self.alone || other.alone,
        }
    }

    /// Of what is left of it when what a mask took of it is taken away.
    #[must_use]
    pub fn without(self, masked: Self) -> Self {
        Self { held: self.held + masked.empty, empty: masked.empty, ..self }
    }

    /// The same where more than one slot's error decides.
    #[must_use]
    pub fn together(self) -> Self {
        Self { alone: false, ..self }
    }

    /// Of a sum over padded operands, of whose terms a part holds messages: what is common adds up over these alone.
    #[must_use]
    pub fn occupied(self, part: f64) -> Self {
        Self { common: self.common * part, ..self }
    }

    /// The same error, as one that slots may have in common.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { held: 0.0, common: self.largest(), alone: false, ..self }
    }

    /// The largest error to expect of a real part.
    pub fn largest(&self) -> f64 {
        (if self.alone { SIGMAS_ALONE } else { SIGMAS }) * (self.held / 2.0).sqrt() + self.common
    }

    /// Of a sum of `terms` images.
    #[must_use]
    pub fn images(self, terms: f64, images: Images) -> Self {
        match images {
            Images::Overlapping => {
                let (held, empty) = (self.held * terms, self.empty * terms);
                let alone = self.alone && terms < 2.0;
                Self { size: self.size * terms, held, empty, common: self.common * terms, alone }
            }
            Images::Disjoint => {
                Self { held: self.held + (terms - 1.0) * self.empty, empty: self.empty * terms, ..self }
            }
        }
    }

    /// Of a product with a plaintext of scale `scale`, the ciphertext's being `own`.
    #[must_use]
    pub fn mul_plain(self, own: f64, p: PlainSpread, scale: f64) -> Self {
        let (leak, factor) = ((self.size * own).powi(2) * p.error, (p.size * scale).powi(2));
        let empty = if p.mask { leak } else { self.empty * factor + leak };
        let (held, common) = (self.held * factor + leak, self.common * p.size * scale);
        Self { size: self.size * p.size, held, empty, common, alone: self.alone }
    }

    /// Of a product of ciphertexts of two scales.
    #[must_use]
    pub fn product(self, scale: f64, other: Self, others: f64) -> Self {
        let (x, y) = ((self.size * scale).powi(2), (other.size * others).powi(2));
        Self {
            size: self.size * other.size,
            held: x * other.held + y * self.held + self.held * other.held,
            empty: x * other.empty + y * self.empty + self.empty * other.empty,
            common: x.sqrt() * other.common + y.sqrt() * self.common + self.common * other.common,
            alone: self.alone || other.alone,
        }
    }
}

/// Variance of a slot's error after a key switch at a level, without the rounding of its division by P.
pub fn switching(params: &Params, level: usize) -> f64 {
    params.sketch().degree() * params.sketch().switching(level).variance()
}

/// Variance of a slot's error by the rounding of a division.
pub fn division(params: &Params, parts: usize) -> f64 {
    params.sketch().degree() * params.sketch().division(parts).variance()
}

/// Variance of what rounding to doubles on the way to coefficients leaves in a slot.
pub fn doubles(params: &Params, at: super::EncodeAt) -> f64 {
    let layers = f64::from(params.log_n() - 1).max(1.0);
    (2.0 * f64::EPSILON / 2.0 * layers.sqrt() * at.max_abs * at.scale).powi(2)
}

/// Variance of a slot's error of an encoding whose slots repeat with a period.
pub fn encoding(params: &Params, period: usize) -> f64 {
    (2.0 * period as f64).min(params.sketch().degree()) * ROUNDING_VARIANCE
}
