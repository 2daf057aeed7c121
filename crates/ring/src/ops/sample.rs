//! Random polynomials.

use crate::basis::RnsBasis;
use crate::poly::{Eval, Poly};
use crate::random::{MaskSeed, Seed, uniform};

/// The uniform polynomial that a mask seed stands for, in evaluation form.
///
/// Limb `i` of mask `index` is drawn from the seed's stream with nonce `index · 2^16 + i`, so any
/// limb can be expanded alone and on any device.
pub fn mask(basis: &RnsBasis, seed: &MaskSeed, index: u64) -> Poly<Eval> {
    let mut out = Poly::dirty(basis);
    out.for_each(|i, l, x| uniform(&mut seed.stream((index << 16) | i as u64), l.modulus(), x));
    out
}

/// A secret uniform polynomial, in evaluation form: limb `i` from the seed's stream with nonce `i`.
pub fn secret_uniform(basis: &RnsBasis, seed: &Seed) -> Poly<Eval> {
    let mut out = Poly::dirty(basis);
    out.for_each(|i, l, x| uniform(&mut seed.stream(i as u64), l.modulus(), x));
    out
}
