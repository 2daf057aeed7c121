//! What a refresh adds to a ciphertext's error: variances of each step, and a bound on the whole.
//!
//! Errors are told in units of x = t/q_0, of which values of size one are ρ. Those of StC and of raising are
//! errors of coefficients, which is where values stand then.

use super::params::BootstrapParams;
use crate::circuits::linear_map::LinearMap;
use crate::circuits::polynomial::noise::{Gains, Samples};
use crate::circuits::polynomial::program::Program;
use crate::ckks::noise::{
    ERROR_VARIANCE, ROUNDING_VARIANCE, TAIL, canonical_bound, division_bound, division_variance, secret_variance,
    switched_bound, switching_variance,
};
use num_complex::Complex64;

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
pub(super) fn samples(params: &BootstrapParams) -> Samples {
    let (weight, span) = (params.literal().weight, params.mod1().span());
    let shares = integer_shares(weight);
    let last = params.mod1().literal().integers as i64;
    let mut out = Samples::new();
    let (mut cumulated, mut at) = (0.0, 0usize);
    for (share, integer) in shares.iter().zip(-last..=last) {
        cumulated += share;
        while at < SAMPLES && (at as f64 + 0.5) / SAMPLES as f64 <= cumulated {
            // Golden steps spread the messages.
            let m = params.radius() * (2.0 * (at as f64 * 0.618_033_988_749_895).fract() - 1.0);
            out.push((Complex64::from((integer as f64 + m) / span), 0));
            at += 1;
        }
    }
    out
}

/// Probabilities of I = −h/2 … h/2.
fn integer_shares(weight: u32) -> Vec<f64> {
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
    out
}

/// Variance of a coefficient's error after StC, in integer units modulo q_0, for an input whose slots have the
/// error `input` (E|e|², integer units) and values of mean square `message`.
pub(super) fn stc_variance(params: &BootstrapParams, maps: &[LinearMap], message: f64, input: f64) -> f64 {
    let low = params.low();
    let n = low.degree() as f64;
    let (mut scale, mut energy) = (params.params().scale(), message);
    let mut error = input;
    for (i, map) in maps.iter().enumerate() {
        let level = params.levels().input - i;
        let q = low.prime_at(level) as f64;
        let before = map.variance_before_division(level, scale, energy, error / (scale * scale));
        error = before / (q * q) + n * division_variance(low, 2);
        scale *= map.scale() / q;
        energy *= map.energy();
    }
    error / n
}

/// Variance of a coefficient's error after raising, in integer units.
pub(super) fn raise_variance(params: &BootstrapParams) -> f64 {
    let (gate, n) = (params.gate(), params.params().degree() as f64);
    let p = gate.p().limb(0).q() as f64;
    // One digit of q_0, both ways.
    let switching = n * ERROR_VARIANCE * ROUNDING_VARIANCE * (params.q0() / p).powi(2);
    2.0 * switching + division_variance(gate, 2) + division_variance(params.params(), 2)
}

/// Variance of the error that CtS adds to one of the reduction's inputs, a real number, in integer units.
pub(super) fn cts_variance(params: &BootstrapParams, maps: &[LinearMap]) -> f64 {
    let base = params.params();
    let n = base.degree() as f64;
    let repeats = (base.slots() / params.slots()) as f64;
    // Slots of the raised ciphertext: N coefficients of m + q_0·I each, of which the trace keeps some, times as many.
    let spread = integer_variance(params.literal().weight) + params.radius().powi(2) / 3.0;
    let (mut scale, mut energy) = (params.q0(), n * spread * repeats);
    let mut error = trace_variance(params);
    for (i, map) in maps.iter().enumerate() {
        let level = params.levels().top - i;
        let q = base.prime_at(level) as f64;
        let before = map.variance_before_division(level, scale, energy, error / (scale * scale));
        if i + 1 == maps.len() {
            // y = c + c̄ twice the real part; conjugation rounds c_1 and switches once.
            let turn = n * switching_variance(base, level) + n * n * secret_variance(base) * ROUNDING_VARIANCE;
            return (2.0 * before + turn / 2.0) / (q * q) + n * division_variance(base, 2) / 2.0;
        }
        error = before / (q * q) + n * division_variance(base, 2);
        scale *= map.scale() / q;
        energy *= map.energy();
    }
    error
}

/// Variance of a slot's error after the trace alone, in integer units.
fn trace_variance(params: &BootstrapParams) -> f64 {
    let (base, top) = (params.params(), params.levels().top);
    let n = base.degree() as f64;
    let mut error = 0.0;
    let mut count = base.slots() / params.slots();
    while count > 1 {
        // One automorphism with the sum's division; what was there before is doubled with its image.
        error = 2.0 * error + n * (switching_variance(base, top) + division_variance(base, 2));
        count /= 2;
    }
    error
}

/// Variance of the error of real and imaginary part together that joining adds, in integer units.
pub(super) fn join_variance(params: &BootstrapParams, mask: Option<&LinearMap>, scale: f64, kinds: usize) -> f64 {
    let (base, level) = (params.params(), params.levels().reduced);
    let n = base.degree() as f64;
    let switching = n * switching_variance(base, level);
    match mask {
        None => kinds as f64 * switching + n * division_variance(base, 2),
        Some(mask) => {
            let q = base.prime_at(level) as f64;
            let first = switching + n * division_variance(base, 2);
            let message = 2.0 * params.radius().powi(2) / 3.0;
            mask.variance_before_division(level, scale, message, first / (scale * scale)) / (q * q)
                + n * division_variance(base, 2)
        }
    }
}

/// The bound that a refreshed ciphertext carries, by what does not depend on the input.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Bound on the slots of m/q_0 + I.
    pub raised_slots: f64,
    /// Of a coefficient after StC and raising, in units of x.
    coefficients: f64,
    /// Largest derivative of the reduction by x, near 1.
    gain: f64,
    /// What CtS, reduction and joining add, in units of x.
    own: f64,
    radius: f64,
    full: f64,
}

impl Bounds {
    pub fn new(
        params: &BootstrapParams,
        stc: &[LinearMap],
        cts: &[LinearMap],
        program: &Program,
        mask: Option<&LinearMap>,
    ) -> Self {
        let base = params.params();
        // Slots of a polynomial with independent coefficients of that variance.
        let spread = integer_variance(params.literal().weight) + params.radius().powi(2);
        let raised_slots = canonical_bound(base.degree(), spread, 1);
        // Standard deviations times the tail of a product of two random polynomials.
        let tail = |variance: f64| TAIL[1] * variance.sqrt();
        let coefficients = tail(stc_variance(params, stc, 1.0, 0.0)) + tail(raise_variance(params));
        let gains = program.gains(0, &samples(params));
        let input = tail(cts_variance(params, cts)) / params.start_scale();
        let approximation = params.mod1().error().largest;
        let scale = program.output(0).1;
        let joined = match mask {
            None => 2.0 * switched_bound(base, params.levels().reduced) / (2.0 * scale),
            Some(_) => tail(join_variance(params, mask, 2.0 * scale, 2)) / (2.0 * scale),
        } + division_bound(base, 2) / scale;
        let own = 2.0 * (program.error_bound(&gains, input) + approximation) + joined;
        Self {
            raised_slots,
            coefficients: coefficients / params.q0(),
            gain: 1.05 * gains.largest[0] / params.mod1().span(),
            own,
            radius: params.radius(),
            full: base.scale(),
        }
    }

    /// Bound on the error of a slot in units of the message, for an input with an error of at most `error` in
    /// those units and a scale (times its integer factor).
    pub fn output(&self, error: f64, scale: f64) -> f64 {
        // ρ stands for a message of Δ/scale.
        let unit = self.radius * scale / self.full;
        error * self.gain + (2.0 * self.coefficients * self.gain + self.own) / unit
    }
}

impl BootstrapParams {
    /// Variances of a refresh of complex slots (real ones: half of them) for values of mean square
    /// `message` at the full scale.
    pub(super) fn predict(
        &self,
        (stc, cts, mask): (&[LinearMap], &[LinearMap], Option<&LinearMap>),
        program: &Program,
        gains: &Gains,
        message: f64,
    ) -> PredictedNoise {
        let (q0, rho) = (self.q0(), self.radius());
        // Two real numbers a slot.
        let coefficient = |v: f64| 2.0 * v / (q0 * q0) / (rho * rho);
        let slot = |v: f64| 2.0 * v / (rho * rho);
        let start = self.start_scale();
        let input = 2.0 * cts_variance(self, cts) / (start * start);
        let scale = 2.0 * program.output(0).1;
        PredictedNoise {
            to_coefficients: coefficient(stc_variance(self, stc, message, 0.0)),
            raise: coefficient(raise_variance(self)),
            to_slots: slot(0.5 * gains.mean_square[0] * input),
            reduce: slot(0.5 * program.variance(gains, 0.0)),
            approximation: slot(self.mod1().error().rms.powi(2)),
            join: join_variance(self, mask, scale, 2) / (scale * rho).powi(2),
        }
    }
}
