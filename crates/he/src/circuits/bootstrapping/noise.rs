//! What a refresh adds to a ciphertext's error: variances of each step, and a bound on the whole.
//!
//! Errors are told in units of x = t/q_0, of which values of size one are ρ. Those of StC and of raising are
//! errors of coefficients, which is where values stand then.

use super::layout::Layout;
use crate::circuits::linear_map::MapPlan;
use crate::circuits::polynomial::noise::{MARGIN, Samples};
use crate::circuits::polynomial::program::{Plan, Value};
use crate::ckks::noise::TAIL;
use crate::error::HeError;
use num_complex::Complex64;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE, Sketch};

/// Points of the reduction's input that are looked at.
const SAMPLES: usize = 2048;

/// Variances E|e|² of a slot's error by the step that adds it, in units of the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedNoise {
    /// Slots to coefficients.
    pub to_coefficients: f64,
    /// Raising to all primes.
    pub raise: f64,
    /// Coefficients to slots.
    pub to_slots: f64,
    /// The reduction's arithmetic.
    pub reduce: f64,
    /// The reduction's approximation, for messages that fill their bound evenly.
    pub approximation: f64,
    /// Joining real and imaginary parts.
    pub join: f64,
}

impl PredictedNoise {
    /// Variance of the whole.
    pub fn total(&self) -> f64 {
        self.to_coefficients + self.raise + self.to_slots + self.reduce + self.approximation + self.join
    }

    /// −log2 of the root of the mean square error.
    pub fn bits(&self) -> f64 {
        -self.total().log2() / 2.0
    }
}

/// Variance of |I|: h uniform numbers' sum, rounded.
pub(super) fn integer_variance(weight: u32) -> f64 {
    f64::from(weight + 1) / 12.0
}

/// x/(K + ρ) as raising distributes it: rounded sums of h uniform numbers, with messages spread evenly.
pub(super) fn samples(layout: &Layout) -> Samples {
    let span = layout.reduction.span();
    let mut out = Samples::new();
    let (mut cumulated, mut at) = (0.0, 0usize);
    for (integer, share) in integer_shares(layout.literal.weight) {
        cumulated += share;
        while at < SAMPLES && (at as f64 + 0.5) / SAMPLES as f64 <= cumulated {
            // Golden steps spread the messages.
            let m = layout.radius() * (2.0 * (at as f64 * 0.618_033_988_749_895).fract() - 1.0);
            out.push((Complex64::from((integer as f64 + m) / span), 0));
            at += 1;
        }
    }
    out
}

/// The integers I = −h/2 … h/2 that raising adds, with their probabilities.
pub(super) fn integer_shares(weight: u32) -> Vec<(i64, f64)> {
    // Sums of uniform numbers on a grid of 1/FINE.
    const FINE: usize = 32;
    let mut sums = vec![1.0];
    for _ in 0..weight {
        let mut next = vec![0.0; sums.len() + FINE - 1];
        sums.iter().enumerate().for_each(|(i, s)| next[i..i + FINE].iter_mut().for_each(|x| *x += s / FINE as f64));
        sums = next;
    }
    let last = i64::from(weight / 2);
    let middle = (sums.len() - 1) as f64 / 2.0;
    let mut out = vec![0.0; 2 * last as usize + 1];
    for (i, s) in sums.iter().enumerate() {
        let integer = ((i as f64 - middle) / FINE as f64).round() as i64;
        out[(integer.clamp(-last, last) + last) as usize] += s;
    }
    (-last..=last).zip(out).collect()
}

/// Variance of a coefficient's error after StC, in integer units modulo q_0, for an input whose slots have the
/// error `input` (E|e|², integer units) and values of mean square `message`.
pub(super) fn stc_variance(layout: &Layout, maps: &[MapPlan], message: f64, input: f64) -> f64 {
    let low = &layout.low;
    let n = low.degree();
    let (mut scale, mut energy, mut error) = (layout.scale(), message, input);
    for ((_, level, ..), map) in layout.stc_stages().zip(maps) {
        let q = low.q()[level];
        let before = map.variance(low, level, scale, energy, error / (scale * scale));
        error = before / (q * q) + n * low.division(2).variance();
        scale *= map.scale() / q;
        energy *= map.energy();
    }
    error / n
}

/// Variance of a coefficient's error after raising, in integer units.
pub(super) fn raise_variance(layout: &Layout) -> f64 {
    let n = layout.chain.degree();
    // One digit of q_0, all ways.
    let switching = n * ERROR_VARIANCE * ROUNDING_VARIANCE * (layout.q0() / layout.gate_prime).powi(2);
    let sparse = ROUNDING_VARIANCE * (1.0 + f64::from(layout.literal.weight));
    // The way back of a stage in keys is that stage's.
    let back = if layout.literal.keyed { 0.0 } else { switching + layout.chain.division(2).variance() };
    layout.literal.entries() as f64 * switching + sparse + back
}

/// Variance of the error that CtS adds to one of the reduction's inputs, a real number, in integer units.
pub(super) fn cts_variance(layout: &Layout, maps: &[MapPlan]) -> f64 {
    let chain = &layout.chain;
    let n = chain.degree();
    // Slots of the raised ciphertext: N coefficients of m + q_0·I each, of which the trace keeps some, times as many.
    let spread = layout.spread();
    let (mut scale, mut energy) = (layout.q0(), n * spread * layout.repeats() as f64);
    let mut error = trace_variance(layout);
    if let Some(stage) = layout.keyed() {
        let plan = stage.plan();
        error = stage.variance(&plan, scale, energy);
        scale *= plan.scale() / layout.gate_prime;
        energy *= plan.energy();
    }
    for ((_, level, ..), map) in layout.cts_stages().zip(maps) {
        let q = chain.q()[level];
        let before = map.variance(chain, level, scale, energy, error / (scale * scale));
        if level == layout.levels.start + 1 {
            // y = c + c̄ is twice the real part.
            let turn = conjugate_variance(chain, level);
            return (2.0 * before + turn / 2.0) / (q * q) + n * chain.division(2).variance() / 2.0;
        }
        error = before / (q * q) + n * chain.division(2).variance();
        scale *= map.scale() / q;
        energy *= map.energy();
    }
    error
}

/// Variance of the imaginary part that CtS leaves in one of the reduction's inputs, in integer units: what the conjugate's key
/// switch and the last division add after real parts were taken.
pub(super) fn cts_imaginary_variance(layout: &Layout) -> f64 {
    let (chain, level) = (&layout.chain, layout.levels.start + 1);
    (conjugate_variance(chain, level) / chain.q()[level].powi(2) + chain.degree() * chain.division(2).variance()) / 2.0
}

/// Variance E|e|² of what a conjugate adds to a slot: it rounds c_1 and switches once.
fn conjugate_variance(chain: &Sketch, level: usize) -> f64 {
    chain.degree() * (chain.switching(level).variance() + chain.secret_weight() * ROUNDING_VARIANCE)
}

/// Variance of a slot's error after the trace alone, in integer units.
fn trace_variance(layout: &Layout) -> f64 {
    let (chain, top) = (&layout.chain, layout.levels.top);
    let own = chain.degree() * (chain.switching(top).variance() + chain.division(2).variance());
    // Each automorphism doubles what was there before and adds its own.
    (0..layout.repeats().trailing_zeros()).fold(0.0, |error, _| 2.0 * error + own)
}

/// Variance E|e|² of the error that joining adds to a slot, in integer units, for values of `scale` twice the
/// reduction's and of `kinds` ciphertexts (2: complex, 1: real).
pub(super) fn join_variance(layout: &Layout, scale: f64, kinds: usize) -> f64 {
    let (chain, level) = (&layout.chain, layout.levels.reduced);
    let n = chain.degree();
    let switching = n * chain.switching(level).variance();
    let divided = n * chain.division(2).variance();
    match layout.mask_plan() {
        None => kinds as f64 * switching + divided,
        Some(mask) => {
            let message = 2.0 * layout.radius().powi(2) / 3.0;
            let first = (switching + divided) / (scale * scale);
            mask.variance(chain, level, scale, message, first) / chain.q()[level].powi(2) + divided
        }
    }
}

impl PredictedNoise {
    /// Of a refresh of complex slots for values of mean square `message` at the full scale.
    pub(super) fn of(layout: &Layout, message: f64) -> Result<Self, HeError> {
        let one = Self::one(layout, [layout.scale(), layout.user_scale()], message, layout.mod1()?.error().rms)?;
        if layout.literal.is_iterated() { Self::second(layout, &one) } else { Ok(one) }
    }

    /// Of one refresh of values whose scale and whose result's scale these are, with the approximation's error, a root of a mean
    /// square in units of x. `message` is in units of the full scale.
    fn one(layout: &Layout, [from, target]: [f64; 2], message: f64, approximation: f64) -> Result<Self, HeError> {
        let (q0, rho) = (layout.q0(), layout.unit(from));
        let (plan, value) = layout.reduction(from, target)?;
        let gains = plan.gains(value, &samples(layout));
        // Two real numbers a slot.
        let coefficient = |v: f64| 2.0 * v / (q0 * q0) / (rho * rho);
        let slot = |v: f64| 2.0 * v / (rho * rho);
        let start = layout.start_scale();
        let scale = 2.0 * plan.scale(value);
        Ok(Self {
            to_coefficients: coefficient(stc_variance(layout, &layout.stc_plans(), message, 0.0)),
            raise: coefficient(raise_variance(layout)),
            to_slots: slot(gains.mean_square[0] * cts_variance(layout, &layout.cts_plans()) / (start * start)),
            reduce: slot(0.5 * plan.variance(&gains, 0.0)),
            approximation: slot(approximation.powi(2)),
            join: join_variance(layout, scale, 2) / (scale * rho).powi(2),
        })
    }

    /// Of the refresh of another one's error, in units of the other one's message.
    fn second(layout: &Layout, first: &Self) -> Result<Self, HeError> {
        let (plan, value) = layout.reduction(layout.scale(), layout.user_scale())?;
        let rounding = layout.chain.degree() * layout.chain.division(2).variance();
        let bound =
            Bounds::new(layout).parts(layout, (&plan, value), layout.radius()) + tail(rounding) / layout.scale();
        let factor = layout.error_factor(bound, layout.user_scale(), layout.user_scale())?;
        let scale = layout.user_scale() * factor as f64;
        let error = first.total() + rounding / layout.scale().powi(2);
        // The series is nearly exact for what fills little of its interval, as errors do.
        let (mod1, m) = (layout.mod1()?, layout.unit(scale) * (error / 2.0).sqrt());
        let missed = integer_shares(layout.literal.weight).into_iter();
        let missed = missed.map(|(i, share)| share * (mod1.evaluate(i as f64 + m) - m).powi(2));
        let message = error * (scale / layout.scale()).powi(2);
        let mut out = Self::one(layout, [scale, layout.user_scale()], message, missed.sum::<f64>().sqrt())?;
        out.to_coefficients += rounding / scale.powi(2);
        Ok(out)
    }
}

/// The bound that refreshed ciphertexts carry, by what does not depend on the input.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Of a coefficient after StC and raising, in units of x.
    coefficients: f64,
    /// Of the reduction's input, in units of y.
    input: f64,
    /// Of the sine series; of tables none.
    approximation: f64,
    /// Variances of the first two.
    variances: [f64; 2],
    samples: Samples,
}

impl Bounds {
    pub fn new(layout: &Layout) -> Self {
        // A slot of a pair holds two values of size up to one.
        let (stc, raise) = (stc_variance(layout, &layout.stc_plans(), 2.0, 0.0), raise_variance(layout));
        let cts = cts_variance(layout, &layout.cts_plans());
        Self {
            coefficients: (tail(stc) + tail(raise)) / layout.q0(),
            input: tail(cts) / layout.start_scale(),
            variances: [(stc + raise) / layout.q0().powi(2), cts / layout.start_scale().powi(2)],
            approximation: layout.mod1().map_or(0.0, |mod1| mod1.error().largest),
            samples: samples(layout),
        }
    }

    /// Bound on the error of a slot after a reduction, in units of the message, for an input with an error of
    /// at most `error` in those units. `unit` is what of q_0 a message of size one is.
    pub fn output(&self, layout: &Layout, (plan, value): (&Plan, Value), error: f64, unit: f64) -> f64 {
        let gains = plan.gains(value, &self.samples);
        // How much the reduction stretches errors of x: nearly not.
        let gain = MARGIN * gains.largest[0] / layout.reduction.span();
        let reduced = 2.0 * (plan.error_bound(&gains, self.input) + self.approximation);
        let scale = 2.0 * plan.scale(value);
        let joined = tail(join_variance(layout, scale, 2)) / scale;
        error * gain + (2.0 * self.coefficients * gain + reduced + joined) / unit
    }

    /// Bound on the real and on the imaginary part of what a refresh adds to a slot, in units of the message. It is tighter than
    /// [`Bounds::output`], since errors of a ciphertext without history are independent of each other, given the key: a sum of
    /// products of two Gaussians, whose variances add.
    pub fn parts(&self, layout: &Layout, (plan, value): (&Plan, Value), unit: f64) -> f64 {
        let gains = plan.gains(value, &self.samples);
        let gain = MARGIN * gains.largest[0] / layout.reduction.span();
        let scale = 2.0 * plan.scale(value);
        let [coefficients, input] = self.variances;
        let reduced = plan.largest_variance(&gains, 2.0 * input);
        let joined = join_variance(layout, scale, 2) / (scale * scale);
        (tail(2.0 * gain * gain * coefficients + reduced + joined) + self.approximation) / unit
    }
}

/// Standard deviations times the tail of a product of two random polynomials.
fn tail(variance: f64) -> f64 {
    TAIL[1] * variance.sqrt()
}
