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

/// Expected errors of real or of imaginary parts, in integer units: of slots that hold a message, and of the others. A variance is
/// that of a complex error whose two parts are both like this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Variance where a slot holds a message.
    pub held: f64,
    /// Variance where it holds none.
    pub empty: f64,
    /// Largest error that slots may have in common: it adds up, whatever they are summed with.
    pub common: f64,
}

/// Expected errors of slots. A refresh of real messages leaves what is imaginary behind, or gives it to another message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Bound on messages, as far as the circuit knows it.
    pub size: f64,
    /// Of real parts.
    pub real: Part,
    /// Of imaginary parts.
    pub imaginary: Part,
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

/// The variance of a sum of errors that may be the same.
fn of_any(a: f64, b: f64) -> f64 {
    (a.sqrt() + b.sqrt()).powi(2)
}

impl Part {
    fn even(variance: f64) -> Self {
        Self { held: variance, empty: variance, common: 0.0 }
    }

    fn plus(self, variance: f64) -> Self {
        Self { held: self.held + variance, empty: self.empty + variance, ..self }
    }

    fn scaled(self, by: f64) -> Self {
        self.weighted(by * by, by)
    }

    /// With variances by one factor, and what is common by another.
    fn weighted(self, variance: f64, common: f64) -> Self {
        Self { held: self.held * variance, empty: self.empty * variance, common: self.common * common }
    }

    /// Joined with another: variances by a rule of theirs, and what is common by another.
    fn with(self, other: Self, variance: impl Fn(f64, f64) -> f64, common: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            held: variance(self.held, other.held),
            empty: variance(self.empty, other.empty),
            common: common(self.common, other.common),
        }
    }

    fn sum(self, other: Self) -> Self {
        self.with(other, |a, b| a + b, |a, b| a + b)
    }

    fn sum_of_any(self, other: Self) -> Self {
        self.with(other, of_any, |a, b| a + b)
    }

    fn disjoint(self, other: Self) -> Self {
        Self {
            held: (self.held + other.empty).max(self.empty + other.held),
            empty: self.empty + other.empty,
            common: self.common.max(other.common),
        }
    }

    fn largest(self, alone: bool) -> f64 {
        (if alone { SIGMAS_ALONE } else { SIGMAS }) * (self.held / 2.0).sqrt() + self.common
    }
}

impl Spread {
    /// Of a ciphertext from elsewhere.
    pub const UNKNOWN: Self = {
        let part = Part { held: f64::NAN, empty: f64::NAN, common: f64::NAN };
        Self { size: f64::NAN, real: part, imaginary: part, alone: false }
    };

    /// Of an error alike in all slots.
    pub fn even(size: f64, variance: f64) -> Self {
        let part = Part::even(variance);
        Self { size, real: part, imaginary: part, alone: false }
    }

    fn each(self, of: impl Fn(Part) -> Part) -> Self {
        Self { real: of(self.real), imaginary: of(self.imaginary), ..self }
    }

    fn both(self, other: Self, of: impl Fn(Part, Part) -> Part) -> Self {
        let (real, imaginary) = (of(self.real, other.real), of(self.imaginary, other.imaginary));
        Self { real, imaginary, alone: self.alone || other.alone, ..self }
    }

    /// With more noise in every slot.
    #[must_use]
    pub fn plus(self, variance: f64) -> Self {
        self.each(|part| part.plus(variance))
    }

    /// In other units.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        self.each(|part| part.scaled(by))
    }

    /// Times the imaginary unit.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { real: self.imaginary, imaginary: self.real, ..self }
    }

    /// Of a sum of independent errors.
    #[must_use]
    pub fn sum(self, other: Self) -> Self {
        Self { size: self.size + other.size, ..self.both(other, Part::sum) }
    }

    /// Of a sum of errors that may be the same.
    #[must_use]
    pub fn sum_of_any(self, other: Self) -> Self {
        Self { size: self.size + other.size, ..self.both(other, Part::sum_of_any) }
    }

    /// Of a sum of two that hold messages in different slots.
    #[must_use]
    pub fn disjoint(self, other: Self) -> Self {
        Self { size: self.size.max(other.size), ..self.both(other, Part::disjoint) }
    }

    /// Of what is left of it when what a mask took of it is taken away.
    #[must_use]
    pub fn without(self, masked: Self) -> Self {
        let left = |part: Part, taken: Part| Part { held: part.held + taken.empty, empty: taken.empty, ..part };
        Self { alone: self.alone, ..self.both(masked, left) }
    }

    /// What holds for both.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        Self { size: self.size.max(other.size), ..self.both(other, |a, b| a.with(b, f64::max, f64::max)) }
    }

    /// The same where more than one slot's error decides.
    #[must_use]
    pub fn together(self) -> Self {
        Self { alone: false, ..self }
    }

    /// Of a sum over padded operands, of whose terms a part holds messages.
    #[must_use]
    pub fn occupied(self, share: f64) -> Self {
        self.each(|part| Part {
            held: share * part.held + (1.0 - share) * part.empty,
            common: part.common * share,
            ..part
        })
    }

    /// After a refresh of real messages to another scale, which adds a variance. Of two in one ciphertext each gets what stood
    /// in the other's imaginary part, which may be the same error.
    #[must_use]
    pub fn refreshed(self, by: f64, added: f64, paired: bool) -> Self {
        let real = if paired { self.real.sum_of_any(self.imaginary) } else { self.real };
        Self { real: real.scaled(by).plus(added), imaginary: Part::even(added), ..self }
    }

    /// With an error up to `error` in all slots.
    #[must_use]
    pub fn shifted(self, error: f64) -> Self {
        self.each(|part| Part { common: part.common + error, ..part })
    }

    /// The same error, as one that slots may have in common.
    #[must_use]
    pub fn shared(self) -> Self {
        self.each(|part| Part { held: 0.0, common: part.largest(self.alone), ..part }).together()
    }

    /// The largest error to expect of a real part.
    pub fn largest(&self) -> f64 {
        self.real.largest(self.alone)
    }

    /// The largest norm to expect of real and imaginary part together.
    pub fn norm(&self) -> f64 {
        self.largest() + self.imaginary.largest(self.alone)
    }

    /// Of a sum of `terms` images.
    #[must_use]
    pub fn images(self, terms: f64, images: Images) -> Self {
        match images {
            Images::Overlapping => {
                let sum = self.each(|part| part.weighted(terms, terms));
                Self { size: self.size * terms, alone: self.alone && terms < 2.0, ..sum }
            }
            Images::Disjoint => self.each(|part| Part {
                held: part.held + (terms - 1.0) * part.empty,
                empty: part.empty * terms,
                ..part
            }),
        }
    }

    /// Of a product with a plaintext of scale `scale`, the ciphertext's being `own`.
    #[must_use]
    pub fn mul_plain(self, own: f64, p: PlainSpread, scale: f64) -> Self {
        let (leak, factor) = ((self.size * own).powi(2) * p.error, p.size * scale);
        let product = |part: Part| {
            let product = part.scaled(factor).plus(leak);
            Part { empty: if p.mask { leak } else { product.empty }, ..product }
        };
        Self { size: self.size * p.size, ..self.each(product) }
    }

    /// Of a product of ciphertexts of two scales.
    #[must_use]
    pub fn product(self, scale: f64, other: Self, others: f64) -> Self {
        let (x, y) = (self.size * scale, other.size * others);
        // What two errors multiply to: E|e|² is halved where only parts meet.
        let crossed = |[a, b]: [Part; 2], [c, d]: [Part; 2]| {
            let of = |a: Part, c: Part| a.with(c, |x, y| x * y / 2.0, |x, y| x * y);
            of(a, c).sum(of(b, d))
        };
        let (own, theirs) = ([self.real, self.imaginary], [other.real, other.imaginary]);
        let errors = [crossed(own, theirs), crossed(own, [other.imaginary, other.real])];
        let of = |a: Part, b: Part, error: Part| b.scaled(x).sum(a.scaled(y)).sum(error);
        Self {
            size: self.size * other.size,
            real: of(self.real, other.real, errors[0]),
            imaginary: of(self.imaginary, other.imaginary, errors[1]),
            alone: self.alone || other.alone,
        }
    }

    /// Of a product whose factors, of two scales, may have the same errors: their shares in it add up as deviations do, not
    /// as variances. The product has a third scale.
    #[must_use]
    pub fn of_related(self, (x, own): (Self, f64), (y, others): (Self, f64), scale: f64) -> Self {
        let factor = 2.0 * x.size * y.size * scale.powi(2) / (own * others);
        let related = |a: Part, b: Part| a.with(b, |a, b| factor * (a * b).sqrt(), |_, _| 0.0);
        Self { size: self.size, alone: self.alone, ..self.both(x.both(y, related), Part::sum) }
    }

    /// Of a sum of two errors that were added as independent ones and may be the same: (√a + √b)² ≤ 2(a + b).
    #[must_use]
    pub fn of_any(self) -> Self {
        self.each(|part| part.weighted(2.0, 1.0))
    }
}

/// Variance of a slot's error after a key switch at a level, without the rounding of its division by P.
pub fn switching(params: &Params, level: usize) -> f64 {
    params.sketch().degree() * params.sketch().switching(level).variance()
}

/// The same by the relinearisation key.
pub fn relinearisation(params: &Params, level: usize) -> f64 {
    params.sketch().degree() * params.sketch().relinearisation(level).variance()
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
