//! Random polynomials: masks, errors and secrets.

use crate::error::HeError;
use crate::params::ERROR_SIGMA;
use crate::security::SecretDistribution;
use sudare_ring::random::{GaussianSampler, MaskSeed, Stream, fixed_weight_ternary, ternary, uniform};
use sudare_ring::threads::for_each_chunk;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// The uniform polynomial that a mask seed stands for, in evaluation form.
///
/// Limb `i` of mask `index` is drawn from the seed's stream with nonce `index · 2^16 + i`, so any
/// limb can be expanded alone and on any device.
pub(crate) fn mask(basis: &RnsBasis, seed: &MaskSeed, index: u64) -> Poly<Eval> {
    let mut out = Poly::dirty(basis);
    for_each_chunk(out.words_mut(), basis.degree(), |i, x| {
        uniform(&mut seed.stream((index << 16) | i as u64), basis.limb(i).modulus(), x);
    });
    out
}

/// Whether a polynomial is the mask `index` of a seed.
pub(crate) fn is_mask(poly: &Poly<Eval>, seed: &MaskSeed, index: u64) -> bool {
    let basis = poly.basis();
    let mut limb = vec![0; basis.degree()];
    // Limb after limb: one that is not differs in the first.
    (0..basis.len()).all(|i| {
        uniform(&mut seed.stream((index << 16) | i as u64), basis.limb(i).modulus(), &mut limb);
        limb == poly.limb(i)
    })
}

/// Signed coefficients with the distribution of secrets.
pub(crate) fn secret_coefficients(
    stream: &mut Stream,
    n: usize,
    distribution: SecretDistribution,
) -> Result<Zeroizing<Vec<i64>>, HeError> {
    let mut out = Zeroizing::new(vec![0i64; n]);
    match distribution {
        SecretDistribution::Ternary => ternary(stream, &mut out),
        SecretDistribution::FixedWeight { weight } => fixed_weight_ternary(stream, weight as usize, &mut out)?,
        SecretDistribution::Gaussian => error_sampler()?.sample(stream, &mut out),
    }
    Ok(out)
}

/// An error polynomial's signed coefficients.
pub(crate) fn error_coefficients(stream: &mut Stream, n: usize) -> Result<Zeroizing<Vec<i64>>, HeError> {
    let mut out = Zeroizing::new(vec![0i64; n]);
    error_sampler()?.sample(stream, &mut out);
    Ok(out)
}

/// An error polynomial in evaluation form.
pub(crate) fn error(stream: &mut Stream, basis: &RnsBasis) -> Result<Zeroizing<Poly<Eval>>, HeError> {
    let coefficients = error_coefficients(stream, basis.degree())?;
    Ok(Zeroizing::new(Poly::<Coeff>::from_signed(basis, &coefficients).into_eval()))
}

fn error_sampler() -> Result<&'static GaussianSampler, HeError> {
    debug_assert_eq!(GaussianSampler::standard().sigma(), ERROR_SIGMA);
    Ok(GaussianSampler::standard())
}
