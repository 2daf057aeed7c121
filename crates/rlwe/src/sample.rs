//! Random polynomials: errors and secrets. Masks are [`sudare_ring::ops::mask`].

use crate::error::RlweError;
use crate::security::SecretDistribution;
use sudare_ring::random::{GaussianSampler, Stream, fixed_weight_ternary, ternary};
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// Signed coefficients with the distribution of secrets.
pub(crate) fn secret_coefficients(
    stream: &mut Stream,
    n: usize,
    distribution: SecretDistribution,
) -> Result<Zeroizing<Vec<i64>>, RlweError> {
    let mut out = Zeroizing::new(vec![0i64; n]);
    match distribution {
        SecretDistribution::Ternary => ternary(stream, &mut out),
        SecretDistribution::FixedWeight { weight } => fixed_weight_ternary(stream, weight as usize, &mut out)?,
        SecretDistribution::Gaussian => GaussianSampler::standard().sample(stream, &mut out),
        SecretDistribution::TernarySum { parties } => {
            let mut one = Zeroizing::new(vec![0i64; n]);
            for _ in 0..parties {
                ternary(stream, &mut one);
                out.iter_mut().zip(one.iter()).for_each(|(sum, x)| *sum += x);
            }
        }
    }
    Ok(out)
}

/// An error polynomial's signed coefficients.
pub(crate) fn error_coefficients(stream: &mut Stream, n: usize) -> Wiped<i64> {
    let mut out = Wiped::zeros(n);
    GaussianSampler::standard().sample(stream, &mut out);
    out
}

/// −a·s + e: an encryption of zero under s with the mask a.
pub(crate) fn zero(a: &Poly<Eval>, s: &Poly<Eval>, e: &Poly<Eval>) -> Poly<Eval> {
    let mut b = a.mul(s);
    b.neg_assign();
    b.add_assign(e);
    b
}

/// An error polynomial in evaluation form.
pub(crate) fn error(stream: &mut Stream, basis: &RnsBasis) -> Zeroizing<Poly<Eval>> {
    let coefficients = error_coefficients(stream, basis.degree());
    Zeroizing::new(Poly::<Coeff>::from_signed(basis, &coefficients).into_eval())
}
