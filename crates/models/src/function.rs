//! Functions between linear layers, and polynomials in their place.

use crate::error::{ModelError, goal};
use serde::{Deserialize, Serialize};
use sudare_he::circuits::polynomial::{Polynomial, fit};

/// A function of every element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Function {
    /// x.
    Identity,
    /// max(x, 0).
    Relu,
    /// x, times a slope below zero.
    LeakyRelu(f64),
    /// x above zero, α·(e^x − 1) below; times γ.
    Elu {
        /// α.
        alpha: f64,
        /// γ.
        gamma: f64,
    },
    /// 1/(1 + e^−x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// x·sigmoid(αx).
    Swish(f64),
    /// x·Φ(x).
    Gelu,
    /// x/2·(1 + tanh(√(2/π)·(x + 0.044715 x³))).
    GeluTanh,
    /// The error function.
    Erf,
    /// e^x.
    Exp,
    /// ln(1 + e^x).
    Softplus,
    /// x/(1 + |x|).
    Softsign,
    /// max(0, min(1, αx + β)).
    HardSigmoid {
        /// α.
        alpha: f64,
        /// β.
        beta: f64,
    },
    /// max(low, min(high, x)).
    Clip {
        /// The least value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// x^n, exactly.
    Power(u32),
    /// x·(gain·f(x) + shift).
    Gated {
        /// f.
        by: Box<Function>,
        /// The factor of f.
        gain: f64,
        /// What is added to it.
        shift: f64,
    },
}

/// Highest power that is computed exactly.
pub(crate) const MAX_POWER: u32 = 8;
/// Degrees of the polynomials that are tried, each the largest of its depth.
pub(crate) const DEGREES: [usize; 7] = [3, 7, 15, 31, 63, 127, 255];
/// How much more errors near zero count in a fit for functions with a kink there, in parts of the interval: most values are near zero.
const KINK: f64 = 0.05;

impl Function {
    /// Its value.
    pub fn value(&self, x: f64) -> f64 {
        match self {
            Self::Identity => x,
            Self::Relu => x.max(0.0),
            Self::LeakyRelu(slope) => {
                if x < 0.0 {
                    slope * x
                } else {
                    x
                }
            }
            Self::Elu { alpha, gamma } => gamma * if x < 0.0 { alpha * x.exp_m1() } else { x },
            Self::Sigmoid => sigmoid(x),
            Self::Tanh => x.tanh(),
            Self::Swish(alpha) => x * sigmoid(alpha * x),
            Self::Gelu => x * 0.5 * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Self::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                0.5 * x * (1.0 + inner.tanh())
            }
            Self::Erf => erf(x),
            Self::Exp => x.exp(),
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::Softsign => x / (1.0 + x.abs()),
            Self::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
            Self::Clip { low, high } => x.max(*low).min(*high),
            Self::Power(n) => x.powi(*n as i32),
            Self::Gated { by, gain, shift } => x * (gain * by.value(x) + shift),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Self::Identity => "identity".into(),
            Self::Relu => "ReLU".into(),
            Self::LeakyRelu(_) => "leaky ReLU".into(),
            Self::Elu { .. } => "ELU".into(),
            Self::Sigmoid => "sigmoid".into(),
            Self::Tanh => "tanh".into(),
            Self::Swish(_) => "SiLU".into(),
            Self::Gelu | Self::GeluTanh => "GELU".into(),
            Self::Erf => "erf".into(),
            Self::Exp => "exp".into(),
            Self::Softplus => "softplus".into(),
            Self::Softsign => "softsign".into(),
            Self::HardSigmoid { .. } => "hard sigmoid".into(),
            Self::Clip { .. } => "clip".into(),
            Self::Power(2) => "square".into(),
            Self::Power(n) => format!("power {n}"),
            Self::Gated { by, .. } => format!("x times {}", by.name()),
        }
    }

    /// Whether a polynomial is the function itself.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Identity | Self::Power(_))
    }

    /// Whether errors near zero count more: the function has a kink there, and activations crowd.
    fn has_kink(&self) -> bool {
        match self {
            Self::Relu | Self::LeakyRelu(_) => true,
            Self::Gated { by, .. } => by.has_kink(),
            _ => false,
        }
    }

    /// The polynomial in its place on [−reach, reach], of a degree unless it is exact, and its largest error there.
    ///
    /// A function with a kink at zero is fitted by weighted least squares (weight 1/(|u| + 0.05), u in [−1, 1]), others by Remez'
    /// algorithm. The function of a layer without one is the identity, and has no polynomial.
    ///
    /// # Errors
    /// [`ModelError::Goal`] where the function is not finite on the interval.
    pub fn polynomial(&self, reach: f64, degree: usize) -> Result<(Polynomial, f64), ModelError> {
        if let Self::Power(n) = self {
            let mut coefficients = vec![0.0; *n as usize + 1];
            coefficients[*n as usize] = 1.0;
            return Ok((Polynomial::power(&coefficients, reach)?, 0.0));
        }
        if !(self.value(reach).is_finite() && self.value(-reach).is_finite()) {
            return goal(format!(
                "{} is not finite on [−{reach}, {reach}]; scale the inputs, or take another function",
                self.name()
            ));
        }
        let polynomial = if self.has_kink() {
            weighted_squares(|u| self.value(u * reach), degree, reach)?
        } else {
            fit::minimax(|x| self.value(x), &[(-reach, reach)], degree)?.polynomial
        };
        let count = 64 * (degree + 1);
        let error = |i: usize| {
            let x = reach * (std::f64::consts::PI * i as f64 / count as f64).cos();
            (polynomial.evaluate(x).re - self.value(x)).abs()
        };
        let error = (0..=count).map(error).fold(0.0, f64::max);
        Ok((polynomial, error))
    }
}

/// The polynomial of a degree with the least Σ w(u)²·(f(u) − p(u))² over Chebyshev nodes, on [−`reach`, `reach`]: by the normal equations in
/// Chebyshev polynomials, which are near orthogonal.
fn weighted_squares(f: impl Fn(f64) -> f64, degree: usize, reach: f64) -> Result<Polynomial, ModelError> {
    let (size, count) = (degree + 1, 8 * (degree + 1));
    let (mut normal, mut right) = (vec![vec![0.0; size]; size], vec![0.0; size]);
    for i in 0..count {
        let angle = std::f64::consts::PI * (i as f64 + 0.5) / count as f64;
        let u = angle.cos();
        let weight = (u.abs() + KINK).recip().powi(2);
        let row: Vec<f64> = (0..size).map(|k| (k as f64 * angle).cos()).collect();
        for a in 0..size {
            right[a] += weight * row[a] * f(u);
            normal[a].iter_mut().zip(&row).for_each(|(n, b)| *n += weight * row[a] * b);
        }
    }
    // Cholesky.
    for j in 0..size {
        for i in j..size {
            let below: f64 = (0..j).map(|k| normal[i][k] * normal[j][k]).sum();
            let rest = normal[i][j] - below;
            normal[i][j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / normal[j][j] };
        }
    }
    for i in 0..size {
        let before: f64 = (0..i).map(|k| normal[i][k] * right[k]).sum();
        right[i] = (right[i] - before) / normal[i][i];
    }
    for i in (0..size).rev() {
        let after: f64 = (i + 1..size).map(|k| normal[k][i] * right[k]).sum();
        right[i] = (right[i] - after) / normal[i][i];
    }
    Ok(fit::rounded(Polynomial::chebyshev(&right, -reach, reach)?))
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// The error function: its Taylor series, and for large values the continued fraction of its complement.
pub(crate) fn erf(x: f64) -> f64 {
    let size = x.abs();
    if size < 3.0 {
        // 2/√π · e^−x² · Σ 2^k x^(2k+1)/(1·3·5…(2k+1))
        let (mut term, mut sum, mut k) = (size, size, 0.0);
        while term > sum * 1e-17 {
            k += 1.0;
            term *= 2.0 * size * size / (2.0 * k + 1.0);
            sum += term;
        }
        return (std::f64::consts::FRAC_2_SQRT_PI * (-size * size).exp() * sum).copysign(x);
    }
    if size > 6.0 {
        return 1f64.copysign(x);
    }
    let fraction = (1..=60).rev().fold(size, |f, k| size + f64::from(k) / 2.0 / f);
    (1.0 - (-size * size).exp() / (fraction * std::f64::consts::PI.sqrt())).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function() {
        // Abramowitz and Stegun, table 7.1.
        let known = [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)];
        known.iter().for_each(|(x, y)| assert!((erf(*x) - y).abs() < 1e-10 && (erf(-*x) + y).abs() < 1e-10));
        assert!((erf(2.999_999) - erf(3.000_001)).abs() < 1e-8);
    }

    #[test]
    fn fits_of_relu() {
        // Weighted fits have at most about twice the error of minimax ones, 0.14/n of the range.
        for degree in [15, 31, 63, 127] {
            let (p, error) = Function::Relu.polynomial(4.0, degree).unwrap();
            assert!(error < 0.45 / degree as f64 * 4.0, "{degree}: {error}");
            assert!((p.evaluate(2.0).re - 2.0).abs() < error);
        }
        let (p, error) = Function::Power(3).polynomial(2.0, 0).unwrap();
        assert!((p.evaluate(1.5).re - 3.375).abs() < 1e-12 && error == 0.0);
    }
}
