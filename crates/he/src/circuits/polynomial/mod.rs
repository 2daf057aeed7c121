//! Polynomials of encrypted numbers.
//!
//! | Subject | Where | Source |
//! |---|---|---|
//! | polynomials in powers and in Chebyshev polynomials, with complex coefficients | here | |
//! | fitting functions on unions of intervals: least squares, minimax (Remez) | [`fit`] | Remez 1934; Lee et al., ePrint 2020/552 |
//! | fits whose errors count more on some intervals | [`weighted`] | |
//! | how far they are: bounds for known functions, estimates for others | `distance` | Ehlich and Zeller 1964 |
//! | baby steps and giant steps at the least depth, lazy relinearisation, exact scales | `plan` | Paterson–Stockmeyer 1973; Bossuat et al., ePrint 2020/1203, section 5 |
//! | programs: sums of products and multiples, each rescaled once | `program`, `run` | |
//! | the noise of a program, by derivatives | `noise` | |
//!
//! ```
//! use sudare_he::circuits::polynomial::{Function, PolynomialCircuit, fit};
//! use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator};
//! use sudare_he::ckks::ParamsLiteral;
//! use sudare_rlwe::keys::{KeyGenerator, SecretKey};
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_he::HeError> {
//! // exp on [−2, 2] to 1e-4, by a polynomial of degree 7: three levels.
//! let params = ParamsLiteral::with_depth(3, 40, Security::Bits128)?.build()?;
//! let exp = fit::known(Function::Exp, &[(-2.0, 2.0)], 7)?;
//! assert!(exp.error < 1e-4);
//! let circuit = PolynomialCircuit::new(&params, &exp.polynomial, params.max_level(), params.scale(), params.scale())?;
//!
//! let secret = SecretKey::generate(&params)?;
//! let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
//! let encoder = Encoder::new(&params);
//! let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.0, 1.0, -2.0], 2.0)?)?;
//! let y = Evaluator::new(&params, keys)?.polynomial(&x, &circuit)?;
//! let y = encoder.decode(&Decryptor::new(&secret).decrypt(&y)?)?;
//! assert!((y[1] - std::f64::consts::E).abs() < 1.1e-4);
//! # Ok(())
//! # }
//! ```

mod circuit;
mod distance;
pub mod fit;
pub(crate) mod noise;
mod plan;
pub(crate) mod program;
mod run;
pub mod weighted;

pub use circuit::PolynomialCircuit;
pub use distance::Function;
pub(crate) use plan::Planner;

use crate::error::{HeError, parameters};
use num_complex::Complex64;

/// What a polynomial is a sum of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// u^k on the disc |u| ≤ 1.
    Power,
    /// T_k(u) = cos(k·arccos u) on the real interval [−1, 1].
    Chebyshev,
}

/// Σ_k c_k·u^k or Σ_k c_k·T_k(u) with u = (x − centre)/radius.
#[derive(Clone, Debug, PartialEq)]
pub struct Polynomial {
    basis: Basis,
    coefficients: Vec<Complex64>,
    centre: f64,
    radius: f64,
}

impl Polynomial {
    /// Σ_k c_k·x^k, to be evaluated where |x| ≤ `radius`; real or complex coefficients.
    ///
    /// # Errors
    /// `RlweError::Parameters` without coefficients or for a radius that is not above zero,
    /// [`HeError::NotFinite`].
    pub fn power<T: Copy + Into<Complex64>>(coefficients: &[T], radius: f64) -> Result<Self, HeError> {
        let mut weight = 1.0;
        let scaled = coefficients.iter().map(|c| {
            let c: Complex64 = (*c).into();
            let out = c * weight;
            weight *= radius;
            out
        });
        Self::new(Basis::Power, scaled.collect(), -radius, radius)
    }

    /// Σ_k c_k·T_k(u), u = (2x − from − to)/(to − from), for real x in [`from`, `to`]; real or
    /// complex coefficients.
    ///
    /// ```
    /// use sudare_he::circuits::polynomial::Polynomial;
    ///
    /// // T_2(u) = 2u² − 1 on [0, 4], where u = (x − 2)/2.
    /// let p = Polynomial::chebyshev(&[0.0, 0.0, 1.0], 0.0, 4.0)?;
    /// assert_eq!((p.degree(), p.depth()), (2, 2));
    /// assert!((p.evaluate(3.0).re + 0.5).abs() < 1e-12);
    /// # Ok::<(), sudare_he::HeError>(())
    /// ```
    ///
    /// # Errors
    /// `RlweError::Parameters` without coefficients or for an empty interval, [`HeError::NotFinite`].
    pub fn chebyshev<T: Copy + Into<Complex64>>(coefficients: &[T], from: f64, to: f64) -> Result<Self, HeError> {
        Self::new(Basis::Chebyshev, coefficients.iter().map(|c| (*c).into()).collect(), from, to)
    }

    fn new(basis: Basis, coefficients: Vec<Complex64>, from: f64, to: f64) -> Result<Self, HeError> {
        if coefficients.is_empty() {
            return Err(parameters("a polynomial needs at least one coefficient"));
        }
        if !(from.is_finite() && to.is_finite() && from < to) {
            return Err(parameters(format!(
                "the interval [{from}, {to}] of a polynomial needs two finite ends, the lower one first"
            )));
        }
        if let Some(index) = coefficients.iter().position(|c| !(c.re.is_finite() && c.im.is_finite())) {
            return Err(HeError::NotFinite { index });
        }
        Ok(Self { basis, coefficients, centre: (from + to) / 2.0, radius: (to - from) / 2.0 })
    }

    /// Its basis.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The c_k, of u = (x − centre)/radius.
    pub fn coefficients(&self) -> &[Complex64] {
        &self.coefficients
    }

    /// Centre and radius of the interval or disc on which it is evaluated.
    pub fn domain(&self) -> (f64, f64) {
        (self.centre, self.radius)
    }

    /// The highest power with a coefficient that is not zero.
    pub fn degree(&self) -> usize {
        degree(&self.coefficients)
    }

    /// Levels of its evaluation: ⌈log2(degree + 1)⌉, the least possible, and none for a constant.
    pub fn depth(&self) -> usize {
        depth(self.degree())
    }

    /// The value at a number, by Horner's or Clenshaw's rule.
    pub fn evaluate<T: Into<Complex64>>(&self, x: T) -> Complex64 {
        let u = (x.into() - self.centre) / self.radius;
        match self.basis {
            Basis::Power => self.coefficients.iter().rev().fold(Complex64::ZERO, |acc, c| acc * u + c),
            Basis::Chebyshev => {
                let (mut b1, mut b2) = (Complex64::ZERO, Complex64::ZERO);
                for c in self.coefficients.iter().skip(1).rev() {
                    (b1, b2) = (*c + u * b1 * 2.0 - b2, b1);
                }
                self.coefficients[0] + u * b1 - b2
            }
        }
    }

    /// Bound on |p| over the domain: Σ|c_k|.
    pub fn bound(&self) -> f64 {
        self.coefficients.iter().map(|c| c.norm()).sum()
    }
}

/// Degree of a sum with these coefficients; 0 for none.
fn degree(coefficients: &[Complex64]) -> usize {
    coefficients.iter().rposition(|c| *c != Complex64::ZERO).unwrap_or(0)
}

/// ⌈log2(degree + 1)⌉.
fn depth(degree: usize) -> usize {
    (degree + 1).next_power_of_two().trailing_zeros() as usize
}

/// (q, r) with p = q·B_g + r for B_g = u^g or T_g and deg r < g.
fn divide(basis: Basis, p: &[Complex64], g: usize) -> (Vec<Complex64>, Vec<Complex64>) {
    let mut r = p.to_vec();
    let mut q = vec![Complex64::ZERO; (degree(p) + 1).saturating_sub(g).max(1)];
    for k in (g..=degree(p)).rev() {
        let c = std::mem::replace(&mut r[k], Complex64::ZERO);
        match basis {
            // T_k = 2·T_{k−g}·T_g − T_{|k−2g|}.
            Basis::Chebyshev if k > g => {
                q[k - g] += c * 2.0;
                r[k.abs_diff(2 * g)] -= c;
            }
            _ => q[k - g] += c,
        }
    }
    r.truncate(g);
    (q, r)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize) -> Vec<Complex64> {
        (0..n).map(|k| Complex64::new((k as f64 * 0.7).cos(), (k as f64 * 1.3).sin())).collect()
    }

    #[test]
    fn chebyshev_sums_are_cosines() {
        let p = Polynomial::chebyshev(&sample(20), -3.0, 5.0).unwrap();
        for i in 0..50 {
            let angle = 0.06 * f64::from(i);
            let direct: Complex64 = sample(20).iter().enumerate().map(|(k, c)| c * (k as f64 * angle).cos()).sum();
            assert!((p.evaluate(1.0 + 4.0 * angle.cos()) - direct).norm() < 1e-12);
        }
    }

    #[test]
    fn powers_are_those_of_x() {
        let p = Polynomial::power(&sample(9), 2.5).unwrap();
        let x = Complex64::new(1.1, -0.6);
        let direct: Complex64 = sample(9).iter().enumerate().map(|(k, c)| c * x.powu(k as u32)).sum();
        assert!((p.evaluate(x) - direct).norm() < 1e-12);
    }

    #[test]
    fn division_by_powers_and_chebyshev_polynomials() {
        for basis in [Basis::Power, Basis::Chebyshev] {
            for (n, g) in [(8, 4), (7, 4), (5, 4), (16, 4), (3, 2), (32, 8)] {
                let (q, r) = divide(basis, &sample(n), g);
                assert!(r.len() <= g);
                let polynomial = |c: Vec<Complex64>| Polynomial::new(basis, c, -1.0, 1.0).unwrap();
                let mut unit = vec![Complex64::ZERO; g + 1];
                unit[g] = Complex64::ONE;
                let (p, q, r, b) = (polynomial(sample(n)), polynomial(q), polynomial(r), polynomial(unit));
                for i in 0..20 {
                    let x = f64::from(i) * 0.1 - 1.0;
                    assert!((p.evaluate(x) - q.evaluate(x) * b.evaluate(x) - r.evaluate(x)).norm() < 1e-11);
                }
            }
        }
    }

    #[test]
    fn depths() {
        let depth_of = |n| Polynomial::power(&vec![1.0; n], 1.0).unwrap().depth();
        assert_eq!([1, 2, 3, 4, 5, 8, 9, 32, 33].map(depth_of), [0, 1, 2, 2, 3, 3, 4, 5, 6]);
    }

    #[test]
    fn refusals() {
        assert!(Polynomial::power::<f64>(&[], 1.0).is_err());
        assert!(Polynomial::power(&[1.0], 0.0).is_err());
        assert!(Polynomial::chebyshev(&[1.0], 1.0, 1.0).is_err());
        assert_eq!(Polynomial::power(&[1.0, f64::NAN], 1.0), Err(HeError::NotFinite { index: 1 }));
    }
}
