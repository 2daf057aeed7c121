//! How noise grows: the variance of each operation's output, as a fraction of the modulus squared.
//!
//! Formulas are averages over secrets and messages, in the manner of Chillotti, Gama, Georgieva and
//! Izabachène (*TFHE*, 2018/421, section 4) with the variances, rather than the bounds, of digits
//! and rounding errors. Rounding that meets the mean of a binary secret is compensated where the
//! operation does so.

use crate::{GlweContext, SecretKind};
use sudare_ring::fourier::Fourier;
use sudare_ring::kernel::Gadget;

/// E[digit²] summed over the levels, and E[rounding²] in units of the modulus's last place, for a
/// number uniform modulo `q` of `bits` bits.
fn digits(gadget: Gadget, bits: u32, q: f64) -> (f64, f64) {
    let base = f64::from(gadget.base_log).exp2();
    let drop = f64::from(gadget.dropped(bits)).exp2();
    // The most significant digit takes what is left of the number.
    let top = q / drop / base.powi(gadget.levels as i32 - 1);
    let sum = top * top / 12.0 + f64::from(gadget.levels - 1) * (base * base + 2.0) / 12.0;
    (sum, if drop > 1.0 { (drop * drop + 2.0) / 12.0 } else { 0.0 })
}

/// What masks from encryptions of zero of variance `zero` add: `Σ u_j·e_j + e_0 − Σ e_i·S_i` with ternary u.
pub fn hidden(context: &GlweContext, zeros: usize, zero: f64) -> f64 {
    let masks = context.lwe_dimension() as f64 * context.secret().mean_square();
    zeros as f64 * context.degree() as f64 * (2.0 / 3.0) * zero + glwe_fresh(context) * (1.0 + masks)
}

/// Fresh noise of GLWE ciphertexts.
pub fn glwe_fresh(context: &GlweContext) -> f64 {
    context.noise().noise().variance() / (context.q() as f64).powi(2)
}

/// What the rows of a GGSW, GLev or switch key add: `polynomials` decomposed polynomials, N digits
/// of each level, each times one fresh error.
pub fn rows(context: &GlweContext, gadget: Gadget, polynomials: usize) -> f64 {
    let (sum, _) = digits(gadget, context.bits(), context.q() as f64);
    polynomials as f64 * context.degree() as f64 * sum * glwe_fresh(context)
}

/// What rounding in a decomposition adds to a phase: the body's error and those of k masks times the
/// secret.
pub fn rounding(context: &GlweContext, gadget: Gadget) -> f64 {
    let q = context.q() as f64;
    let (_, rounding) = digits(gadget, context.bits(), q);
    rounding / (q * q) * (1.0 + context.lwe_dimension() as f64 * context.secret().mean_square())
}

/// An external product by a bit that is one: the input's noise, the rows', and the rounding.
pub fn external_product(context: &GlweContext, gadget: Gadget, input: f64) -> f64 {
    input + rows(context, gadget, context.rank() + 1) + rounding(context, gadget)
}

/// A GLWE key switch.
pub fn glwe_switch(context: &GlweContext, gadget: Gadget, input: f64) -> f64 {
    let q = context.q() as f64;
    let (_, error) = digits(gadget, context.bits(), q);
    let masks = context.lwe_dimension() as f64 * context.secret().mean_square() * error / (q * q);
    input + rows(context, gadget, context.rank()) + masks
}

/// A key switch of one polynomial, whose secret has coefficients that square to `weight` in all, to any rank.
pub fn polynomial_switch(context: &GlweContext, gadget: Gadget, weight: f64) -> f64 {
    let q = context.q() as f64;
    let (_, error) = digits(gadget, context.bits(), q);
    rows(context, gadget, 1) + (1.0 + weight) * error / (q * q)
}

/// Packing LWE ciphertexts of a dimension and a secret: digits in all of the N coefficients.
pub fn packing(context: &GlweContext, gadget: Gadget, dimension: usize, secret: SecretKind, input: f64) -> f64 {
    let q = context.q() as f64;
    let (_, error) = digits(gadget, context.bits(), q);
    input + rows(context, gadget, dimension) + dimension as f64 * secret.mean_square() * error / (q * q)
}

/// An LWE key switch to 32-bit words: `noise` is the variance of the rows' errors in units of 2^−32.
pub fn lwe_switch(gadget: Gadget, dimension: usize, secret: SecretKind, noise: f64, input: f64) -> f64 {
    let word = 32f64.exp2();
    let base = f64::from(gadget.base_log).exp2();
    let sum = f64::from(gadget.levels) * (base * base + 2.0) / 12.0;
    let (_, error) = digits(gadget, 32, word);
    // Rounding to 32 bits comes first; what is dropped of these meets the centred secret.
    let masks = secret.variance() * error + secret.mean_square() / 12.0;
    input + (dimension as f64 * (sum * noise + masks) + 1.0 / 12.0) / (word * word)
}

/// A key switch inside the ring to module LWE, in 32-bit words: `noise` is the variance of the rows'
/// errors in units of 1/q, `dimension` that of the result.
pub fn module_switch(context: &GlweContext, gadget: Gadget, dimension: usize, noise: f64, input: f64) -> f64 {
    let q = context.q() as f64;
    let (sum, error) = digits(gadget, context.bits(), q);
    let inputs = context.lwe_dimension() as f64;
    let ring = inputs * (sum * noise + context.secret().mean_square() * error) / (q * q);
    input + ring + (dimension as f64 * 0.5 + 1.0) / 12.0 / 64f64.exp2()
}

/// A mean-compensated switch of a 32-bit LWE ciphertext to the modulus 2N.
pub fn modulus_switch(dimension: usize, secret: SecretKind, two_n: usize, input: f64) -> f64 {
    input + (dimension as f64 * secret.variance() + 1.0) / 12.0 / (two_n as f64).powi(2)
}

/// A blind rotation by `dimension` binary key bits, `unroll` bits a step, from a noiseless
/// accumulator.
///
/// Processors that multiply in floating point add rounding errors, some thousandths of the rows' noise, and are counted everywhere.
/// One bit a step: each adds the rows' noise, and rounding when the bit is one. u bits a step: the
/// rows of 2^u − 1 keys, each met by X^e − 1 of squared norm 2, and rounding twice unless all bits
/// are zero.
pub fn blind_rotation(context: &GlweContext, gadget: Gadget, dimension: usize, unroll: usize) -> f64 {
    let (digits, _) = digits(gadget, context.bits(), context.q() as f64);
    let products = context.words() as f64 * digits / 12.0;
    let rows = rows(context, gadget, context.rank() + 1) + products * Fourier::relative_variance(context.degree());
    let factor = if unroll == 1 { 1.0 } else { 2.0 * ((1u64 << unroll) as f64 - 1.0) };
    dimension.div_ceil(unroll) as f64 * factor * rows + rotation_rounding(context, gadget, dimension, unroll)
}

/// The part of [`blind_rotation`] that is rounding.
pub fn rotation_rounding(context: &GlweContext, gadget: Gadget, dimension: usize, unroll: usize) -> f64 {
    let factor = if unroll == 1 { 0.5 } else { 2.0 * (1.0 - 1.0 / (1u64 << unroll) as f64) };
    dimension.div_ceil(unroll) as f64 * factor * rounding(context, gadget)
}

/// The sum of `terms` (position, factor) of a blind rotation's coefficients, positions up to N.
///
/// What rounding of the masks meets the secret's mean is common to all coefficients but for signs: those at a
/// distance of d have (1 − 2d/N) of it as covariance.
pub fn rotation_sum(
    context: &GlweContext,
    gadget: Gadget,
    (dimension, unroll): (usize, usize),
    terms: &[(usize, i64)],
) -> f64 {
    let (masks, secret) = (context.lwe_dimension() as f64, context.secret());
    let share = masks * secret.mean().powi(2) / (1.0 + masks * secret.mean_square());
    let common = share * rotation_rounding(context, gadget, dimension, unroll);
    let squares: f64 = terms.iter().map(|(_, factor)| (factor * factor) as f64).sum();
    let mut pairs = 0.0;
    for (i, (at, factor)) in terms.iter().enumerate() {
        for (other, by) in &terms[..i] {
            let distance = at.abs_diff(*other) as f64 / context.degree() as f64;
            pairs += (factor * by) as f64 * (1.0 - 2.0 * distance);
        }
    }
    squares * blind_rotation(context, gadget, dimension, unroll) + 2.0 * common * pairs
}

/// log2 of the probability that a centred Gaussian of this variance leaves `(−bound, bound)`.
pub fn log2_tail(bound: f64, variance: f64) -> f64 {
    let z = bound / variance.sqrt();
    if z < 3.0 {
        return log2_erfc_small(z);
    }
    // erfc(z/√2) = 2φ(z)/z · (1 − 1/z² + 3/z⁴ − …); the bracket's partial sums enclose it.
    let bracket = 1.0 - 1.0 / (z * z) + 3.0 / z.powi(4);
    -0.5 * z * z * std::f64::consts::LOG2_E + (2.0 / std::f64::consts::PI).sqrt().log2() - z.log2() + bracket.log2()
}

/// log2 of erfc(z/√2) for z below 3, by the series of erf.
fn log2_erfc_small(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    (1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI).log2()
}

#[cfg(test)]
mod tests {
    use super::log2_tail;

    #[test]
    fn tails() {
        for (z, p) in [(1.0, 0.317_310_507_862_914), (2.0, 0.045_500_263_896_358), (4.0, 6.334_248_366_623_996e-5)] {
            assert!((log2_tail(z, 1.0) - f64::log2(p)).abs() < 0.02, "{z}");
        }
        // Two-sided 2^−128 is at 13.11 standard deviations.
        assert!((log2_tail(13.11, 1.0) + 128.0).abs() < 0.1);
    }
}
