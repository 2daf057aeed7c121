//! Trigonometric series of E = exp(2πiu): Re Σ_k c_k·E^k, of which a step between two arcs is one.
//!
//! An even trigonometric polynomial Σ_k a_k·cos kφ is the polynomial Σ_k a_k·T_k in cos φ. So the best one for constants on arcs about
//! 0 and about π is a weighted minimax fit in Chebyshev's basis on two intervals. A circle needs about half of the degree that an interval
//! needs for the same step.

use crate::circuits::polynomial::program::{Plan, Value};
use crate::circuits::polynomial::weighted::{Piece, weighted};
use crate::circuits::polynomial::{Basis, Planner};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::f64::consts::TAU;

/// Re Σ_k c_k·E^k.
#[derive(Clone, Debug, PartialEq)]
pub struct Series(Vec<Complex64>);

/// A step on the circle of u modulo 1: one near a place and zero away from it. Places and distances are in turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The middle of where it is one.
    pub centre: f64,
    /// How far from the middle it is one, above zero.
    pub near: f64,
    /// How far from the middle it begins to be zero, above `near` and below a half.
    pub far: f64,
    /// How many times as much errors at zero count as errors at one, above zero.
    pub weight: f64,
}

impl Series {
    /// Of its coefficients c_0, c_1, ….
    pub(super) fn new(coefficients: Vec<Complex64>) -> Self {
        Self(coefficients)
    }

    /// The best series of a degree for a step.
    ///
    /// # Errors
    /// `RlweError::Parameters` unless 0 < near < far < ½, and as [`weighted`].
    pub fn step(step: Step, degree: usize) -> Result<Self, HeError> {
        let Step { centre, near, far, weight } = step;
        if !(0.0 < near && near < far && far < 0.5 && centre.is_finite()) {
            return Err(parameters(format!(
                "no step about {centre} is one up to {near} and zero from {far} on, in turns; take 0 < near < far < 1/2"
            )));
        }
        let [near, far] = [near, far].map(|turns| (TAU * turns).cos());
        let pieces = [
            Piece { interval: (-1.0, far), value: 0.0, weight },
            Piece { interval: (near, 1.0), value: 1.0, weight: 1.0 },
        ];
        let cosines = weighted(&pieces, degree)?;
        let shifted = |(k, a): (usize, &Complex64)| Complex64::cis(-TAU * (k as f64 * centre).fract()) * a.re;
        Ok(Self(cosines.coefficients().iter().enumerate().map(shifted).collect()))
    }

    /// The c_k.
    pub fn coefficients(&self) -> &[Complex64] {
        &self.0
    }

    /// Its value at z in the place of E.
    pub fn evaluate(&self, z: Complex64) -> f64 {
        self.0.iter().rev().fold(Complex64::ZERO, |acc, c| acc * z + c).re
    }

    /// Its derivative along the circle, for each turn.
    pub fn slope(&self, z: Complex64) -> f64 {
        let terms = self.0.iter().enumerate().map(|(k, c)| c * Complex64::new(0.0, TAU * k as f64) * z.powu(k as u32));
        terms.sum::<Complex64>().re
    }

    /// Adds to `plan` for each series the value i·Σ_k c_k·z^k of the exponential z, at its exact scale: its imaginary part
    /// is the series'. Powers of z are shared.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`, also for series that are all constant.
    pub(crate) fn write(plan: &mut Plan, z: Value, all: &[(&Self, f64)]) -> Result<Vec<Value>, HeError> {
        let times_i: Vec<Vec<Complex64>> =
            all.iter().map(|(s, _)| s.0.iter().map(|c| c * Complex64::I).collect()).collect();
        let polynomials: Vec<(&[Complex64], f64)> =
            times_i.iter().zip(all).map(|(c, (_, scale))| (c.as_slice(), *scale)).collect();
        Planner::write_all(plan, z, Basis::Power, &polynomials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step of scores above 0.82 (up to 1.01) and under 0.52, of a period of 1.82, with a margin of 0.01: its coefficients and errors
    /// as computed apart from this code.
    #[test]
    fn a_step_of_scores() {
        let (period, middle) = (1.82, 0.91);
        let step = |low: f64| Step {
            centre: middle / period,
            near: 0.10 / period,
            far: (middle - low - 0.01) / period,
            weight: 1.0,
        };
        for (low, degree, error) in [
            (0.66, 7, 6.5e-2),
            (0.66, 15, 5.1e-3),
            (0.66, 31, 5.9e-5),
            (0.52, 15, 5.7e-5),
            (0.52, 23, 6.5e-7),
            (0.40, 11, 3.8e-5),
            (0.40, 15, 9.2e-7),
        ] {
            let series = Series::step(step(low), degree).unwrap();
            let at = |score: f64| series.evaluate(Complex64::cis(TAU * score / period));
            let grid = |from: f64, to: f64, value: f64| {
                (0..=2000).map(|i| (at(from + (to - from) * f64::from(i) / 2000.0) - value).abs()).fold(0.0, f64::max)
            };
            let found = grid(0.81, 1.01, 1.0).max(grid(-low - 0.01, low + 0.01, 0.0));
            assert!((found / error - 1.0).abs() < 0.03, "{low} {degree}: {found:.2e}");
        }
        let series = Series::step(step(0.52), 15).unwrap();
        for (c, wanted) in series.coefficients().iter().zip([0.260949, 0.459217, 0.301073, 0.118705]) {
            assert!((c.norm() - wanted).abs() < 2e-6, "{c}");
        }
        let sum: f64 = series.coefficients().iter().map(|c| c.norm()).sum();
        assert!((sum - 1.372).abs() < 1e-3);
        // The slope is the difference quotient.
        let z = |turns: f64| Complex64::cis(TAU * turns);
        let quotient = (series.evaluate(z(0.3 + 1e-6)) - series.evaluate(z(0.3 - 1e-6))) / 2e-6;
        assert!((series.slope(z(0.3)) - quotient).abs() < 1e-6 * quotient.abs());
    }

    #[test]
    fn refusals() {
        let good = Step { centre: 0.5, near: 0.1, far: 0.2, weight: 1.0 };
        for bad in [
            Step { near: 0.0, ..good },
            Step { far: 0.1, ..good },
            Step { far: 0.5, ..good },
            Step { near: f64::NAN, ..good },
            Step { weight: 0.0, ..good },
        ] {
            assert!(Series::step(bad, 7).is_err(), "{bad:?}");
        }
    }
}
