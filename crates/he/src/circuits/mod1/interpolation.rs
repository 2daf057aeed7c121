//! Tables of the t-th roots of unity: from E = exp(2πix/t)·(1 + r) to f(x), with errors of the angle contracted.
//!
//! T(z) = Re Σ_{j<t} c_j·z^j with c_0 = f̂_0, c_j = 2(1 − j/t)·f̂_j and f̂_j = (1/t)·Σ_x f(x)·e^(−2πijx/t) is Fejér's
//! interpolation: T has the values of f at the roots, and no derivative along the circle there. It is the trigonometric
//! Hermite interpolation of order 1 of Alexandru, Kim and Polyakov (ePrint 2024/1623). An error δ of x/t becomes at most
//! (π²/3)·(t² − 1)·(max f − min f)·δ². Radial errors r are not contracted: they become r·Re Σ j·c_j·z^j, at most
//! (max f − min f)·(t² − 1)/3t·r.

use super::Series;
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::f64::consts::TAU;

/// Most values of a table.
pub const MAX_TABLE: usize = 1024;

/// A function of the integers modulo t as a trigonometric polynomial.
#[derive(Clone, Debug, PartialEq)]
pub struct Interpolation {
    values: Vec<f64>,
    series: Series,
}

impl Interpolation {
    /// f(0), …, f(t − 1), from 2 to [`MAX_TABLE`] numbers.
    ///
    /// # Errors
    /// `RlweError::Parameters` for another number of values, [`HeError::NotFinite`].
    pub fn new(values: &[f64]) -> Result<Self, HeError> {
        let t = values.len();
        if !(2..=MAX_TABLE).contains(&t) {
            return Err(parameters(format!("a table has 2 to {MAX_TABLE} values, not {t}")));
        }
        if let Some(index) = values.iter().position(|f| !f.is_finite()) {
            return Err(HeError::NotFinite { index });
        }
        let largest = values.iter().fold(0.0f64, |m, f| m.max(f.abs()));
        let coefficient = |j: usize| {
            let term = |(x, f): (usize, &f64)| Complex64::cis(-TAU * (j * x % t) as f64 / t as f64) * *f;
            let mean = values.iter().enumerate().map(term).sum::<Complex64>() / t as f64;
            // What is zero but for rounding needs no product.
            if mean.norm() < 1e-13 * largest { Complex64::ZERO } else { mean }
        };
        let weight = |j: usize| if j == 0 { 1.0 } else { 2.0 * (1.0 - j as f64 / t as f64) };
        let series = Series::new((0..t).map(|j| coefficient(j) * weight(j)).collect());
        Ok(Self { values: values.to_vec(), series })
    }

    /// t.
    pub fn modulus(&self) -> usize {
        self.values.len()
    }

    /// The values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The c_j.
    pub fn coefficients(&self) -> &[Complex64] {
        self.series.coefficients()
    }

    /// T as a series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Whether all values are the same.
    pub fn is_constant(&self) -> bool {
        self.coefficients().iter().skip(1).all(|c| *c == Complex64::ZERO)
    }

    /// T(z).
    pub fn evaluate(&self, z: Complex64) -> f64 {
        self.series.evaluate(z)
    }

    /// |T''|/2 along the circle at a value, in turns: a small error δ of a turn becomes so much times δ².
    pub fn curvature(&self, x: usize) -> f64 {
        let z = Complex64::cis(TAU * x as f64 / self.modulus() as f64);
        let term = |(j, c): (usize, &Complex64)| c * (j * j) as f64 * z.powu(j as u32);
        TAU * TAU / 2.0 * self.coefficients().iter().enumerate().map(term).sum::<Complex64>().re.abs()
    }

    /// Bound on what the square of a complex error of z is multiplied by.
    pub fn second_order(&self) -> f64 {
        self.coefficients().iter().enumerate().map(|(j, c)| (j * j) as f64 * c.norm() / 2.0).sum()
    }

    /// Largest |T − f| for an angle that is off by at most `error` of a turn, over all values.
    pub fn bending(&self, error: f64) -> f64 {
        // T has a degree under t, and hardly bends between points a sixteenth of a step apart.
        const POINTS: i32 = 8;
        let off = |x: usize, i: i32| {
            let turn = x as f64 / self.modulus() as f64 + error * f64::from(i) / f64::from(POINTS);
            (self.evaluate(Complex64::cis(TAU * turn)) - self.values[x]).abs()
        };
        let points = |x: usize| (-POINTS..=POINTS).map(move |i| off(x, i)).fold(0.0, f64::max);
        (0..self.modulus()).map(points).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_testkit::Random;

    fn tables(t: usize) -> Vec<Vec<f64>> {
        let mut random = Random(t as u64);
        let mut out = vec![(0..t).map(|x| x as f64).collect(), (0..t).map(|x| f64::from(u8::from(x == 1))).collect()];
        out.extend((0..4).map(|_| (0..t).map(|_| (random.unit().abs() * t as f64).floor()).collect()));
        out
    }

    /// Values at the roots of unity, no derivative along the circle, curvature and radial gain within their bounds.
    #[test]
    fn tables_are_met_and_flat() {
        for t in [2, 3, 4, 5, 8, 16, 256, 1024] {
            for f in tables(t) {
                let table = Interpolation::new(&f).unwrap();
                let range = f.iter().fold(f64::MIN, |m, x| m.max(*x)) - f.iter().fold(f64::MAX, |m, x| m.min(*x));
                let size = t as f64;
                for x in (0..t).step_by(1 + t / 64) {
                    let at = |off: f64| table.evaluate(Complex64::cis(TAU * (x as f64 / size + off)));
                    assert!((at(0.0) - f[x]).abs() < 1e-12 * size * range.max(1.0));
                    let z = Complex64::cis(TAU * x as f64 / size);
                    let sum = |weight: &dyn Fn(f64) -> Complex64| -> Complex64 {
                        table
                            .coefficients()
                            .iter()
                            .enumerate()
                            .map(|(j, c)| c * weight(j as f64) * z.powu(j as u32))
                            .sum()
                    };
                    let flat = sum(&|j| Complex64::new(0.0, j)).re;
                    assert!(flat.abs() < 1e-9 * size * range.max(1.0), "t = {t}: derivative {flat}");
                    let radial = sum(&|j| j.into()).re.abs();
                    assert!(radial <= range * (size * size - 1.0) / (3.0 * size) * (1.0 + 1e-9), "t = {t}: {radial}");
                    let off = 0.05 / size;
                    let bound = std::f64::consts::PI.powi(2) / 3.0 * (size * size - 1.0) * range * off * off;
                    assert!((at(off) - f[x]).abs() <= bound * (1.0 + 1e-6) + 1e-9, "t = {t}");
                }
                let bending = table.bending(0.05 / size);
                assert!(bending <= std::f64::consts::PI.powi(2) / 3.0 * range * 0.0025 + 1e-9, "t = {t}: {bending}");
            }
        }
    }

    #[test]
    fn frequencies_that_a_table_lacks_are_zero() {
        let degree = |f: &[f64]| {
            let c = Interpolation::new(f).unwrap();
            c.coefficients().iter().rposition(|c| *c != Complex64::ZERO)
        };
        assert_eq!(degree(&[0.0, 1.0, 0.0, 1.0]), Some(2));
        assert_eq!(degree(&[0.0, 1.0, 2.0, 3.0]), Some(3));
        assert_eq!(degree(&[1.0, 1.0, 1.0, 1.0]), Some(0));
        assert_eq!(degree(&[0.0; 4]), None);
        assert!(Interpolation::new(&[2.0; 5]).unwrap().is_constant());
    }

    #[test]
    fn refusals() {
        assert!(Interpolation::new(&[1.0]).is_err());
        assert!(Interpolation::new(&[0.0; MAX_TABLE + 1]).is_err());
        assert_eq!(Interpolation::new(&[0.0, f64::NAN]), Err(HeError::NotFinite { index: 1 }));
    }
}
