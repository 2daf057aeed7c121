//! Functions of numbers modulo 1, by way of the complex exponential E = exp(2πix), which knows no integers.
//!
//! | What follows E | Where |
//! |---|---|
//! | of x = I + m with |I| ≤ K and |m| ≤ ρ: m, by a sine series | here |
//! | of x = I + k/t with an integer k: any table of t values | `interpolation` |
//! | of x = I + u: any trigonometric series in u, a step among them | `series` |
//!
//! For the first, E is fitted on the intervals [j − ρ, j + ρ] alone, and m is nearly Im Σ_j a_j·E^j with the best sine
//! series for an angle below 2πρ (Jutla–Manohar, ePrint 2021/572), which a real polynomial would need an arcsine for.

mod exponential;
mod interpolation;
mod series;

pub use exponential::{Exponential, MAX_EXPONENTIAL_DEGREE};
pub use interpolation::{Interpolation, MAX_TABLE};
pub use series::{Series, Step};

use super::polynomial::fit::minimax_sines;
use super::polynomial::program::{Plan, Sum, Value};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::f64::consts::TAU;
use sudare_rlwe::RlweError;

/// Terms of a sine series: with four, depth 2 is enough.
pub const SINES: std::ops::RangeInclusive<usize> = 2..=4;
/// Points in an interval at which errors are looked for.
const POINTS: usize = 65;

/// What a modular reduction is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mod1Literal {
    /// K: largest |I|.
    pub integers: u32,
    /// ρ: largest |m|, below ½.
    pub radius: f64,
    /// Degree of the exponential's polynomial.
    pub degree: usize,
    /// r: squarings.
    pub doublings: u32,
    /// Terms of the sine series, 2 to 4.
    pub sines: usize,
}

/// A modular reduction with its coefficients.
#[derive(Clone, Debug)]
pub struct Mod1 {
    literal: Mod1Literal,
    exponential: Exponential,
    sines: Vec<f64>,
    error: Mod1Error,
}

/// How far the reduction is from m before any encryption, over all intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mod1Error {
    /// Largest error.
    pub largest: f64,
    /// Root of the mean square, m uniform and all I alike.
    pub rms: f64,
}

/// What follows the exponential.
#[derive(Clone, Debug)]
pub enum Reduction {
    /// A sine series: the message again.
    Sines(Mod1),
    /// Tables that are chosen when it runs, of integers modulo at most `modulus`.
    Tables {
        /// The exponential, over all numbers.
        exponential: Exponential,
        /// Most values of a table.
        modulus: usize,
    },
}

impl Reduction {
    /// S: the input is x over this.
    pub fn span(&self) -> f64 {
        match self {
            Self::Sines(mod1) => mod1.span(),
            Self::Tables { exponential, .. } => exponential.span(),
        }
    }

    /// Levels that it uses, with the largest table.
    pub fn depth(&self) -> usize {
        match self {
            Self::Sines(mod1) => mod1.depth(),
            Self::Tables { exponential, modulus } => exponential.depth() + series_depth(*modulus),
        }
    }

    /// ±1: what a written value has to be multiplied by before its imaginary part is taken.
    pub fn sign(&self) -> f64 {
        match self {
            Self::Sines(mod1) => mod1.sign(),
            Self::Tables { .. } => 1.0,
        }
    }
}

impl Mod1 {
    /// Fits polynomial and series.
    ///
    /// # Errors
    /// `RlweError::Parameters` for values out of range, or where the fit is worse than ρ itself.
    pub fn new(literal: Mod1Literal) -> Result<Self, HeError> {
        let Mod1Literal { integers, radius, degree, doublings, sines } = literal;
        let fail = |reason: String| Err(parameters(reason));
        if !(radius > 0.0 && radius < 0.25) || integers > 1 << 10 || !SINES.contains(&sines) {
            return fail(format!(
                "a reduction of |I| ≤ {integers} with ρ = {radius} and {sines} sines is not possible; take |I| up to \
                 1024, ρ above 0 and below ¼, and {} to {} sines",
                SINES.start(),
                SINES.end()
            ));
        }
        let span = f64::from(integers) + radius;
        let centres = (0..=2 * integers).map(|j| f64::from(j) - f64::from(integers));
        let intervals: Vec<(f64, f64)> = centres.map(|c| ((c - radius) / span, (c + radius) / span)).collect();
        let exponential = Exponential::on(&intervals, span, degree, doublings)?;
        let (sines, _) = minimax_sines(|angle| angle / TAU, TAU * radius, sines)?;
        let mut out = Self { literal, exponential, sines, error: Mod1Error { largest: 0.0, rms: 0.0 } };
        out.error = out.measure();
        if out.error.largest > radius {
            return fail(format!(
                "a polynomial of degree {degree} does not reach over |x| ≤ {span} with {doublings} doublings; take a \
                 higher degree or more doublings"
            ));
        }
        Ok(out)
    }

    /// What was asked for.
    pub fn literal(&self) -> Mod1Literal {
        self.literal
    }

    /// K + ρ: the input is x over this.
    pub fn span(&self) -> f64 {
        self.exponential.span()
    }

    /// Levels that it uses.
    pub fn depth(&self) -> usize {
        self.exponential.depth() + series_depth(self.sines.len())
    }

    /// Error of the approximation.
    pub fn error(&self) -> Mod1Error {
        self.error
    }

    /// The a_j.
    pub fn sines(&self) -> &[f64] {
        &self.sines
    }

    /// The reduction of x in plain arithmetic, approximation error included.
    pub fn evaluate(&self, x: f64) -> f64 {
        let e = self.exponential.evaluate(x);
        self.sines.iter().enumerate().map(|(j, a)| a * e.powu(j as u32 + 1).im).sum()
    }

    fn measure(&self) -> Mod1Error {
        let (mut largest, mut squares, mut count) = (0.0f64, 0.0, 0);
        for j in 0..=2 * self.literal.integers {
            let centre = f64::from(j) - f64::from(self.literal.integers);
            for i in 0..POINTS {
                let m = self.literal.radius * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0);
                let error = (self.evaluate(centre + m) - m).abs();
                largest = largest.max(error);
                squares += error * error;
                count += 1;
            }
        }
        Mod1Error { largest, rms: (squares / f64::from(count)).sqrt() }
    }

    /// ±1: what the written value has to be multiplied by before its imaginary part is taken.
    pub fn sign(&self) -> f64 {
        self.sines.last().map_or(1.0, |a| a.signum())
    }

    /// Adds to `plan` the value sign·Σ_j a_j·E^j of y = x/(K + ρ), at an exact scale: its imaginary part
    /// times the sign is m.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`.
    pub(crate) fn write(&self, plan: &mut Plan, y: Value, target: f64) -> Result<Value, HeError> {
        let level = plan.level(y);
        if level < self.depth() {
            return Err(RlweError::OutOfLevels { operation: "modular reduction", needed: self.depth(), level }.into());
        }
        let scale = self.series_scale(plan, level - self.exponential.depth(), target);
        let e = self.exponential.write(plan, y, scale)?;
        self.write_series(plan, e, target)
    }

    /// Scale that E needs at a level, so that the series ends at `target`: its highest term has no
    /// constant of its own but its product's scale.
    fn series_scale(&self, plan: &Plan, level: usize, target: f64) -> f64 {
        let top = self.sines.last().map_or(1.0, |a| a.abs());
        let q = |below: usize| plan.prime(level - below);
        match self.sines.len() {
            2 => (top * target * q(0)).sqrt(),
            3 => (top * target * q(0) * q(1)).cbrt(),
            _ => ((top * target * q(1)).sqrt() * q(0)).sqrt(),
        }
    }

    fn write_series(&self, plan: &mut Plan, e: Value, target: f64) -> Result<Value, HeError> {
        let sign = self.sign();
        let constant = |x: f64| vec![Complex64::from(x)];
        let [.., top] = self.sines.as_slice() else { return Ok(e) };
        let square = (self.sines.len() > 2).then(|| plan.square(e)).transpose()?;
        let level = plan.level(square.unwrap_or(e));
        let mut sum = Sum::new(level, target * plan.prime(level));
        sum.multiples.push((e, constant(sign * self.sines[0])));
        if let Some(square) = square {
            sum.multiples.push((square, constant(sign * self.sines[1])));
        }
        match (square, self.sines.as_slice()) {
            (Some(square), [.., third, _]) if self.sines.len() == 4 => {
                // a_4·E⁴ + a_3·E³ = a_4·E²·(E² + (a_3/a_4)·E).
                let here = plan.level(e);
                let mut ratio = Sum::new(here, plan.scale(square) * plan.prime(here));
                ratio.multiples.push((e, constant(third / top)));
                let ratio = plan.push(ratio, 1.0)?;
                sum.products.extend([(square, square), (square, ratio)]);
            }
            (Some(square), _) => sum.products.push((square, e)),
            (None, _) => sum.products.push((e, e)),
        }
        plan.push(sum, top.abs())
    }
}

/// Levels of a sine series: the highest term's constant is its product's scale.
fn series_depth(terms: usize) -> usize {
    terms.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckks::{Params, ParamsLiteral};
    use sudare_rlwe::security::{SecretDistribution, Security};

    fn literal(sines: usize) -> Mod1Literal {
        let radius = [0.0, 0.0, -5.75f64, -5.0, -4.2][sines].exp2();
        Mod1Literal { integers: 14, radius, degree: 31, doublings: 3, sines }
    }

    fn params(bits: &[u32]) -> Params {
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: 9,
            q_bits: bits.to_vec(),
            p_bits: vec![51],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        ParamsLiteral { rlwe, log_scale: 40 }.build().unwrap()
    }

    #[test]
    fn errors_are_those_of_the_series() {
        for (sines, bits) in [(2, 21.2), (3, 27.2), (4, 29.4)] {
            let m = Mod1::new(literal(sines)).unwrap();
            let found = -(m.error().largest / literal(sines).radius).log2();
            assert!((found - bits).abs() < 0.5, "{sines} sines: {found:.2} bits");
            assert!(m.error().rms < m.error().largest);
        }
    }

    #[test]
    fn programs_compute_the_reduction_at_exact_scales() {
        for (sines, depth) in [(2, 9), (3, 10), (4, 10)] {
            let m = Mod1::new(literal(sines)).unwrap();
            assert_eq!(m.depth(), depth);
            let params = params(&[vec![50, 46, 46, 46, 46], vec![50; 7]].concat());
            let (level, target) = (params.max_level(), 48.2f64.exp2());
            let mut plan = Plan::new(params.sketch().clone(), level, 50f64.exp2());
            let value = m.write(&mut plan, 0, target).unwrap();
            let (low, scale) = (plan.level(value), plan.scale(value));
            assert_eq!(low, level - depth);
            assert!((scale / target - 1.0).abs() < 1e-12);
            for i in 0..200 {
                let m_in = m.literal().radius * (f64::from(i % 19) / 9.0 - 1.0);
                let x = f64::from(i % 29 - 14) + m_in;
                let out = plan.values((x / m.span()).into(), 0)[value];
                assert!((m.sign() * out.im - m.evaluate(x)).abs() < 1e-12);
                assert!((m.sign() * out.im - m_in).abs() <= 1.01 * m.error().largest);
            }
        }
    }

    #[test]
    fn operations_of_a_reduction() {
        let params = params(&[vec![50, 46, 46, 46, 46], vec![50; 7]].concat());
        let count = |sines| {
            let mut plan = Plan::new(params.sketch().clone(), params.max_level(), 50f64.exp2());
            let value = Mod1::new(literal(sines)).unwrap().write(&mut plan, 0, 48f64.exp2()).unwrap();
            assert!(value > 0);
            plan.operations().relinearisations
        };
        assert_eq!([2, 3, 4].map(count), [14, 15, 15]);
    }

    #[test]
    fn refusals() {
        let good = literal(4);
        for bad in [
            Mod1Literal { radius: 0.3, ..good },
            Mod1Literal { radius: 0.0, ..good },
            Mod1Literal { sines: 1, ..good },
            Mod1Literal { sines: 5, ..good },
            Mod1Literal { degree: 0, ..good },
            Mod1Literal { degree: 7, ..good },
            Mod1Literal { doublings: 0, ..good },
        ] {
            assert!(matches!(Mod1::new(bad), Err(HeError::Rlwe(RlweError::Parameters { .. }))), "{bad:?}");
        }
        let params = params(&[50, 40, 40, 40]);
        let mut plan = Plan::new(params.sketch().clone(), 3, 40f64.exp2());
        let refused = Mod1::new(good).unwrap().write(&mut plan, 0, 40f64.exp2());
        assert_eq!(
            refused,
            Err(RlweError::OutOfLevels { operation: "modular reduction", needed: 10, level: 3 }.into())
        );
    }
}
