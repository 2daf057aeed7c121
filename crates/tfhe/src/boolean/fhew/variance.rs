//! Noise of the two blind rotations, as fractions of q².

use crate::noise::variance;
use crate::{Gadget, GlweContext, SecretKind};

/// A blind rotation by `products` external products from a noiseless accumulator.
pub fn by_digits(context: &GlweContext, gadget: Gadget, products: f64) -> f64 {
    products * variance::external_product(context, gadget, 0.0)
}

/// A blind rotation by one external product for each of `dimension` coefficients and `automorphisms` key
/// switches between.
pub fn by_automorphisms(context: &GlweContext, gadget: Gadget, dimension: usize, automorphisms: f64) -> f64 {
    let product = variance::external_product(context, gadget, 0.0);
    dimension as f64 * product + automorphisms * variance::glwe_switch(context, gadget, 0.0)
}

/// A mean-compensated switch of a 32-bit LWE ciphertext to odd exponents modulo 2N: the rounding of the mask
/// is of twice the width.
pub fn odd_modulus_switch(dimension: usize, secret: SecretKind, two_n: usize, input: f64) -> f64 {
    input + (4.0 * dimension as f64 * secret.variance() + 1.0) / 12.0 / (two_n as f64).powi(2)
}
