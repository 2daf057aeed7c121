//! How a program's noise reaches its outputs.
//!
//! An error in a value reaches an output times the output's derivative by that value, at the point
//! where the input stands. Each sum adds an error of its own, from relinearisation and rescaling, that
//! is independent of the others. Derivatives are found backwards through the program at sample points:
//! their mean squares give the variance, their largest values a bound. Second derivatives are left out;
//! errors are below 2^-20 wherever there is a message left.

use super::program::{Plan, Value, at};
use crate::ckks::noise::TAIL;
use num_complex::Complex64;
use sudare_rlwe::noise::{ROUNDING_VARIANCE, canonical_bound};

/// Points at which a program is looked at: an input, and the slot that it stands in.
pub(crate) type Samples = Vec<(Complex64, usize)>;

/// What lies between sample points.
pub(crate) const MARGIN: f64 = 1.05;

/// Sizes of an output and of its derivatives by each value, over sample points.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    /// Largest |output|.
    pub bound: f64,
    /// Mean squares of the derivatives by each value, the input first.
    pub mean_square: Vec<f64>,
    /// Largest derivatives.
    pub largest: Vec<f64>,
    /// Largest sizes of the values.
    pub sizes: Vec<f64>,
}

impl Plan {
    /// Looks at a value.
    pub fn gains(&self, output: Value, samples: &Samples) -> Gains {
        let count = self.sums().len() + 1;
        let mut gains =
            Gains { bound: 0.0, mean_square: vec![0.0; count], largest: vec![0.0; count], sizes: vec![0.0; count] };
        for (x, slot) in samples {
            let values = self.values(*x, *slot);
            let derivatives = self.derivatives(output, &values, *slot);
            gains.bound = gains.bound.max(values[output].norm());
            for v in 0..count {
                gains.mean_square[v] += derivatives[v].norm_sqr() / samples.len() as f64;
                gains.largest[v] = gains.largest[v].max(derivatives[v].norm());
                gains.sizes[v] = gains.sizes[v].max(values[v].norm());
            }
        }
        gains
    }

    /// Derivatives of an output by every value.
    pub fn derivatives(&self, output: Value, values: &[Complex64], slot: usize) -> Vec<Complex64> {
        let mut out = vec![Complex64::ZERO; values.len()];
        out[output] = Complex64::ONE;
        for (k, sum) in self.sums().iter().enumerate().rev() {
            let here = out[k + 1];
            if here == Complex64::ZERO {
                continue;
            }
            for (a, b) in &sum.products {
                let weight = self.weight(sum, (*a, *b));
                out[*a] += here * values[*b] * weight;
                out[*b] += here * values[*a] * weight;
            }
            for (v, c) in &sum.multiples {
                out[*v] += here * at(c, slot);
            }
        }
        out
    }

    /// Variance of a slot's error, E|e|² in units of the output, for an input whose slots have an error of
    /// variance `input`, and for inputs that are distributed as the samples.
    pub fn variance(&self, gains: &Gains, input: f64) -> f64 {
        let fresh = |k: usize| gains.mean_square[k + 1] * self.added_variance(k);
        gains.mean_square[0] * input + (0..self.sums().len()).map(fresh).sum::<f64>()
    }

    /// The same for an input at which every derivative is at its largest.
    pub fn largest_variance(&self, gains: &Gains, input: f64) -> f64 {
        let fresh = |k: usize| gains.largest[k + 1].powi(2) * self.added_variance(k);
        MARGIN * MARGIN * (gains.largest[0].powi(2) * input + (0..self.sums().len()).map(fresh).sum::<f64>())
    }

    /// Variance E|e|² of what sum `k` adds to a slot, in units of its value.
    pub fn added_variance(&self, k: usize) -> f64 {
        self.chain.degree() * self.fresh_variance(k) / self.scale(k + 1).powi(2)
    }

    /// Variance of a coefficient of what sum `k` adds, in integer units.
    fn fresh_variance(&self, k: usize) -> f64 {
        let (sum, chain) = (&self.sums()[k], &self.chain);
        let switching = if sum.products.is_empty() { 0.0 } else { chain.relinearisation(sum.level).variance() };
        switching / self.prime(sum.level).powi(2) + chain.division(2).variance()
    }

    /// Bound on an output's error in its units, for an input with an error of at most `input`.
    pub fn error_bound(&self, gains: &Gains, input: f64) -> f64 {
        let sums = (0..self.sums().len()).map(|k| gains.largest[k + 1] * self.fresh_bound(k, gains));
        MARGIN * (gains.largest[0] * input + sums.sum::<f64>())
    }

    /// Bound on what sum `k` adds, in units of its value.
    fn fresh_bound(&self, k: usize, gains: &Gains) -> f64 {
        let (sum, chain) = (&self.sums()[k], &self.chain);
        let switching = if sum.products.is_empty() { 0.0 } else { chain.relinearisation(sum.level).bound(&TAIL) };
        let divided = switching / self.prime(sum.level) + chain.division(2).bound(&TAIL);
        // Constants are rounded: two coefficients where one number stands in all slots.
        let rounding = |period: usize| match period {
            0 => 0.0,
            1 => std::f64::consts::FRAC_1_SQRT_2,
            _ => canonical_bound(&TAIL, (2 * period) as f64, ROUNDING_VARIANCE, 1),
        };
        let multiples: f64 =
            sum.multiples.iter().map(|(v, c)| rounding(c.len()) * self.scale(*v) * gains.sizes[*v]).sum();
        divided / self.scale(k + 1) + (rounding(sum.constant.len()) + multiples) / sum.scale
    }
}
