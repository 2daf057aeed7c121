//! The complex exponential E = exp(2πix) of x = S·y, |y| ≤ 1: a Chebyshev polynomial for exp(2πix/2^r), then r squarings
//! that double its angle (Han–Ki, ePrint 2019/688).

use crate::circuits::polynomial::fit::least_squares;
use crate::circuits::polynomial::program::{Plan, Value};
use crate::circuits::polynomial::{Basis, Planner, Polynomial};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::f64::consts::TAU;
use sudare_rlwe::RlweError;

/// Highest degree of the exponential's polynomial.
pub const MAX_EXPONENTIAL_DEGREE: usize = 255;
/// Most squarings.
const MAX_DOUBLINGS: u32 = 8;
/// Largest S.
const MAX_SPAN: f64 = 1025.0;
/// Points for each degree at which the error of a fit on all of [−S, S] is looked for.
const POINTS: usize = 32;

/// The exponential of numbers up to S.
#[derive(Clone, Debug)]
pub struct Exponential {
    /// exp(2πix/2^r) of y = x/S.
    polynomial: Polynomial,
    doublings: u32,
    span: f64,
}

impl Exponential {
    /// Fits on all of [−S, S].
    ///
    /// # Errors
    /// `RlweError::Parameters` for values out of range, or where the fit is worse than an eighth.
    pub fn whole(span: f64, degree: usize, doublings: u32) -> Result<Self, HeError> {
        let out = Self::on(&[(-1.0, 1.0)], span, degree, doublings)?;
        let points = (POINTS * (degree + 1)) as i32;
        let error = (-points..=points).map(|i| span * f64::from(i) / f64::from(points)).map(|x| out.radial_error(x));
        let error = error.fold(0.0, f64::max);
        if error.is_nan() || error >= 0.125 {
            return Err(parameters(format!(
                "a polynomial of degree {degree} does not reach over |x| ≤ {span} with {doublings} doublings; take a \
                 higher degree or more doublings"
            )));
        }
        Ok(out)
    }

    /// Fits on intervals of y alone, which lie about 0.
    pub(super) fn on(intervals: &[(f64, f64)], span: f64, degree: usize, doublings: u32) -> Result<Self, HeError> {
        let sound = (0.5..=MAX_SPAN).contains(&span) && doublings <= MAX_DOUBLINGS;
        if !sound || !(1..=MAX_EXPONENTIAL_DEGREE).contains(&degree) {
            return Err(parameters(format!(
                "an exponential over |x| ≤ {span} has degree 1 to {MAX_EXPONENTIAL_DEGREE} and at most {MAX_DOUBLINGS} doublings, not {degree} and {doublings}"
            )));
        }
        let turns = span / f64::from(1u32 << doublings);
        let fitted = least_squares(|y| Complex64::cis(TAU * turns * y), intervals, degree)?;
        // The intervals lie about 0: even coefficients are real and odd ones imaginary but for rounding.
        let split = |(k, c): (usize, &Complex64)| match k % 2 {
            0 => Complex64::new(c.re, 0.0),
            _ => Complex64::new(0.0, c.im),
        };
        let coefficients: Vec<Complex64> = fitted.coefficients().iter().enumerate().map(split).collect();
        Ok(Self { polynomial: Polynomial::chebyshev(&coefficients, -1.0, 1.0)?, doublings, span })
    }

    /// S: the input is x over this.
    pub fn span(&self) -> f64 {
        self.span
    }

    /// Levels that it uses.
    pub fn depth(&self) -> usize {
        self.polynomial.depth() + self.doublings as usize
    }

    /// Its value in plain arithmetic, approximation error included.
    pub fn evaluate(&self, x: f64) -> Complex64 {
        let start = self.polynomial.evaluate(x / self.span);
        (0..self.doublings).fold(start, |e, _| e * e)
    }

    /// How far from the unit circle the value lies.
    pub fn radial_error(&self, x: f64) -> f64 {
        (self.evaluate(x).norm() - 1.0).abs()
    }

    /// Adds E of y = x/S to `plan`, at an exact scale. Planned backwards from that, since a scale that is a little off
    /// would be twice as far off after every squaring.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`.
    pub(crate) fn write(&self, plan: &mut Plan, y: Value, scale: f64) -> Result<Value, HeError> {
        let level = plan.level(y);
        if level < self.depth() {
            return Err(RlweError::OutOfLevels { operation: "an exponential", needed: self.depth(), level }.into());
        }
        let first = level - self.polynomial.depth();
        let last = first - self.doublings as usize;
        // A square at level l has scale s²/q_l.
        let start = (last + 1..=first).fold(scale, |s, l| (s * plan.prime(l)).sqrt());
        let e = Planner::write(plan, y, (Basis::Chebyshev, self.polynomial.coefficients()), start)?;
        (0..self.doublings).try_fold(e, |e, _| plan.square(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest relative radial errors on all of [−S, S], S = (h + 1)/2, as computed apart from this code.
    #[test]
    fn errors_of_fits_on_the_whole_interval() {
        for (weight, degree, doublings, bits) in
            [(28, 15, 4, 15.8), (30, 15, 4, 14.3), (32, 31, 3, 29.0), (32, 28, 3, 22.6), (28, 31, 3, 35.0)]
        {
            let span = f64::from(weight + 1) / 2.0;
            let e = Exponential::whole(span, degree, doublings).unwrap();
            let error = (-5000..=5000).map(|i| e.radial_error(span * f64::from(i) / 5000.0)).fold(0.0, f64::max);
            assert!((-error.log2() - bits).abs() < 0.6, "{weight} {degree} {doublings}: {:.2} bits", -error.log2());
            assert!((e.evaluate(0.25) - Complex64::I).norm() < 2.0 * error + 1e-15);
        }
    }

    #[test]
    fn refusals() {
        for (span, degree, doublings) in
            [(15.0, 0, 4), (15.0, 256, 4), (15.0, 7, 3), (15.0, 31, 9), (0.0, 15, 4), (f64::NAN, 15, 4), (2e3, 31, 3)]
        {
            let refused = Exponential::whole(span, degree, doublings);
            assert!(matches!(refused, Err(HeError::Rlwe(RlweError::Parameters { .. }))), "{span} {degree} {doublings}");
        }
    }
}
