//! Noise of circuit bootstrapping, as fractions of q².
//!
//! Formulas are averages over secrets, as in [`crate::noise::variance`], which they build on. The rounding
//! errors of the trace's digits are taken as independent from coefficient to coefficient.

use crate::leveled::SelectorNoise;
use crate::noise::variance;
use crate::{Gadget, GlweContext};

/// The constant coefficient after a trace of a noiseless ciphertext: step t's key switch is doubled by
/// each later one, `Σ 4^(log N − t) = (N² − 1)/3`.
pub fn trace_constant(context: &GlweContext, gadget: Gadget) -> f64 {
    let n = context.degree() as f64;
    (n * n - 1.0) / 3.0 * variance::glwe_switch(context, gadget, 0.0)
}

/// The sum over all coefficients of the squared noise after a trace: N of the last key switch, half as
/// many of the one before, doubled, and so on, `N·Σ 2^(log N − t) = N(N − 1)`.
pub fn trace_energy(context: &GlweContext, gadget: Gadget) -> f64 {
    let n = context.degree() as f64;
    n * (n - 1.0) * variance::glwe_switch(context, gadget, 0.0)
}

/// E[digit²] summed over the levels.
fn digit_squares(context: &GlweContext, gadget: Gadget) -> f64 {
    variance::rows(context, gadget, 1) / (context.degree() as f64 * variance::glwe_fresh(context))
}

/// What the key of a scheme switch adds to a coefficient of a mask row: the rows' errors, and the digits'
/// rounding times S_c·S_i, whose mean square over the coefficients grows with N². Rounding half up has a mean of 1/2, which
/// is common to all coefficients: it meets sums of S_c·S_i, of mean square 2N⁴/15 for N coefficients of mean one.
pub fn scheme_switch(context: &GlweContext, gadget: Gadget) -> f64 {
    let (n, k, s) = (context.degree() as f64, context.rank() as f64, context.secret());
    // The sums of ±1 in the N coefficients of a negacyclic product are −N + 2, …, N.
    let mean_squares = s.mean().powi(4) * n * (n * n + 2.0) / 3.0;
    let spread = n * (s.mean_square().powi(2) - s.mean().powi(4));
    let error = variance::rounding(context, gadget) / (1.0 + context.lwe_dimension() as f64 * s.mean_square());
    let common = if error > 0.0 { 0.25 / (context.q() as f64).powi(2) } else { 0.0 };
    // A square counts each product of two coefficients twice.
    let spread = error * n * spread * (k + 1.0);
    let sums = common * k * k * s.mean().powi(4) * 2.0 * n.powi(4) / 15.0;
    variance::rows(context, gadget, context.rank()) + (error - common) * k * mean_squares + spread + sums
}

/// The noise of a GGSW ciphertext's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNoise {
    /// Sum over the coefficients of the variance of a body row's noise; a mask row has −S_c times that noise.
    pub energy: f64,
    /// Part of it that is common to the constant coefficients of any two levels: their covariance.
    pub common: f64,
    /// Variance of each coefficient of a mask row besides.
    pub masks: f64,
}

/// A product with a GGSW ciphertext of this noise.
///
/// Digits below the first have mean −1/2. Against independent errors that is part of their mean square;
/// against S_c, whose coefficients have a mean as well, the sums of up to N terms of one sign count apart, and
/// those of all levels add up where their errors go together.
pub fn product(context: &GlweContext, output: Gadget, rows: RowNoise) -> SelectorNoise {
    let (n, k, s) = (context.degree() as f64, context.rank() as f64, context.secret());
    let (digits, lower) = (digit_squares(context, output), f64::from(output.levels - 1));
    // Squared means of the digits, and products of two levels' means.
    let (means, pairs) = (0.25 * lower, 0.25 * lower * (lower - 1.0).max(0.0));
    // Mean square of the coefficients of S_c·(1 + X + … + X^(N−1)).
    let sums = s.mean().powi(2) * (n * n + 2.0) / 3.0 + n * s.variance();
    let secret = (digits - means) * n * s.mean_square() + means * sums;
    SelectorNoise {
        body: digits * rows.energy + pairs * rows.common,
        masks: k * (secret * rows.energy + pairs * sums * rows.common + digits * n * rows.masks),
        rounding: variance::rounding(context, output),
    }
}

/// Covariance of two coefficients' rounding errors times the secret, as a share of their variance: the
/// squared mean of its coefficients over their mean square.
fn common_share(context: &GlweContext) -> f64 {
    context.secret().mean().powi(2) / context.secret().mean_square()
}

/// Variance after a blind rotation by `dimension` key bits, and its part by rounding.
pub fn rotation(context: &GlweContext, gadget: Gadget, dimension: usize, unroll: usize) -> (f64, f64) {
    let all = variance::blind_rotation(context, gadget, dimension, unroll);
    (all, variance::rotation_rounding(context, gadget, dimension, unroll))
}

/// The rows that a circuit bootstrap makes after a rotation of this variance and part by rounding.
pub fn circuit_bootstrap(context: &GlweContext, trace: Gadget, switch: Gadget, rotation: (f64, f64)) -> RowNoise {
    RowNoise {
        energy: rotation.0 + trace_energy(context, trace),
        common: common_share(context) * rotation.1,
        masks: scheme_switch(context, switch),
    }
}

/// A product with the result of a classical circuit bootstrap: private switches with this gadget.
pub fn classical(context: &GlweContext, output: Gadget, switch: Gadget, rotation: (f64, f64)) -> SelectorNoise {
    let n = context.degree() as f64;
    // Digits are numbers: a coefficient meets each digit once.
    let row = variance::rows(context, switch, 1) / n * (context.lwe_dimension() as f64 + 1.0);
    // The rounding is an error of the message, which F multiplies like the rotation's noise. Levels are
    // coefficients of one ciphertext, so they round the same masks.
    let rounding = variance::rounding(context, switch);
    let common = common_share(context) * (rotation.1 + rounding);
    let noise = product(context, output, RowNoise { energy: rotation.0 + rounding, common, masks: row });
    SelectorNoise { body: noise.body + digit_squares(context, output) * n * row, ..noise }
}
