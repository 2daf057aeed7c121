//! Slot vectors that repeat: polynomials in a power of X, stored once ([`PeriodicPoly`]).

use crate::ckks::Params;
use num_complex::Complex64;
use sudare_ring::RnsBasis;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::ops::PeriodicPoly;

/// From here on a double is a whole number.
const LEAST_WHOLE: f64 = (1u64 << 53) as f64;

/// The shortest period of a vector, a power of two.
pub(crate) fn period<T: PartialEq>(slots: &[T]) -> usize {
    let mut length = slots.len();
    while length.is_multiple_of(2) && slots[..length / 2] == slots[length / 2..length] {
        length /= 2;
    }
    length
}

/// The slot vector that repeats `slots` (a power of two of them, up to N/2) at a scale.
pub(crate) fn encode(params: &Params, basis: &RnsBasis, slots: &[Complex64], scale: f64) -> PeriodicPoly {
    encode_rounded(params, basis, slots, scale).0
}

/// The same, and the mean square of the error that rounding leaves in a slot, in integer units: 2p/12 on
/// average.
pub(crate) fn encode_rounded(
    params: &Params,
    basis: &RnsBasis,
    slots: &[Complex64],
    scale: f64,
) -> (PeriodicPoly, f64) {
    let coefficients = coefficients(params, &slots[..period(slots)], scale);
    let mut whole = vec![0; coefficients.len()];
    round_to_i64(&mut whole, &coefficients, 1.0);
    // Larger ones are whole.
    let error = |(c, whole): (&f64, &i64)| if c.abs() < LEAST_WHOLE { (c - *whole as f64).powi(2) } else { 0.0 };
    let rounding = coefficients.iter().zip(&whole).map(error).sum();
    (PeriodicPoly::rounded(basis, &coefficients), rounding)
}

/// The 2p coefficients of the polynomial in X^(N/2p), scaled and not yet rounded.
fn coefficients(params: &Params, slots: &[Complex64], scale: f64) -> Vec<f64> {
    let p = slots.len();
    if p == 1 {
        return vec![slots[0].re * scale, slots[0].im * scale];
    }
    let embedding = params.embedding().smaller(p);
    let all = embedding.slots();
    let (mut re, mut im): (Vec<f64>, Vec<f64>) = slots.iter().cycle().take(all).map(|z| (z.re, z.im)).unzip();
    embedding.embed_inverse_split(&mut re, &mut im);
    let strided = |x: Vec<f64>| x.into_iter().step_by(all / p).map(move |c| c * scale);
    strided(re).chain(strided(im)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckks::ParamsLiteral;
    use sudare_ring::{Coeff, Eval, Poly};
    use sudare_rlwe::security::{SecretDistribution, Security};

    fn params() -> Params {
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: 10,
            q_bits: vec![45, 50, 40],
            p_bits: vec![],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        ParamsLiteral { rlwe, log_scale: 30 }.build().unwrap()
    }

    fn vector(p: usize) -> Vec<Complex64> {
        (0..p).map(|j| Complex64::new((j as f64 * 0.37).sin(), (j as f64 * 0.91).cos())).collect()
    }

    /// The rows of a polynomial encoded the long way: all slots, all coefficients.
    fn whole(params: &Params, slots: &[Complex64], scale: f64) -> Poly<Eval> {
        let all = params.slots();
        let (mut re, mut im): (Vec<f64>, Vec<f64>) = slots.iter().cycle().take(all).map(|z| (z.re, z.im)).unzip();
        params.embedding().embed_inverse_split(&mut re, &mut im);
        let stride = all / slots.len();
        let rounded = |(i, c): (usize, f64)| if i % stride == 0 { (c * scale).round_ties_even() as i64 } else { 0 };
        let rounded: Vec<i64> = re.into_iter().chain(im).enumerate().map(rounded).collect();
        Poly::<Coeff>::from_signed(params.q(), &rounded).into_eval()
    }

    #[test]
    fn every_period_gives_the_rows_of_the_whole_vector() {
        let params = params();
        let scale = 35f64.exp2();
        for p in (0..=params.slots().trailing_zeros()).map(|k| 1usize << k) {
            let rows = encode(&params, params.q(), &vector(p), scale);
            let wanted = whole(&params, &vector(p), scale);
            assert!(rows.to_poly(params.q()).words() == wanted.words(), "period {p}");
            assert_eq!(rows.bytes(), 24 * 2 * p, "period {p}");
        }
    }

    #[test]
    fn repetitions_are_found() {
        assert_eq!(period(&[1, 2, 1, 2, 1, 2, 1, 2]), 2);
        assert_eq!(period(&[1, 2, 1, 3]), 4);
        assert_eq!(period(&[7; 8]), 1);
        let params = params();
        let long: Vec<Complex64> = vector(8).into_iter().cycle().take(512).collect();
        assert_eq!(encode(&params, params.q(), &long, 1e9).bytes(), 3 * 16 * 8);
    }
}
