//! Ranges by calibration, and polynomials in the place of functions.

use crate::error::{ModelError, goal};
use crate::function::{DEGREES, Function};
use crate::network::Network;
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use sudare_he::circuits::polynomial::{Basis, Polynomial};
use sudare_ring::threads;

/// Examples that degrees are chosen by, at most.
const SEARCHED: usize = 256;
/// Layers of which each is tried alone for a higher degree; more are raised together.
const MOST_ALONE: usize = 8;

/// What an answer is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The number of the largest output.
    Argmax,
    /// Whether the only output is above zero.
    Sign,
    /// The numbers themselves.
    Numbers,
}

impl Label {
    /// The label of an answer, of equal numbers the first as in NumPy; none if it has none.
    pub fn of(self, answer: &[f64]) -> Option<usize> {
        match self {
            Self::Argmax => answer.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i),
            Self::Sign => answer.first().map(|x| usize::from(*x > 0.0)),
            Self::Numbers => None,
        }
    }
}

/// A function's polynomial on its interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Activation {
    /// Half the interval's length: it is [−reach, reach].
    pub reach: f64,
    pub polynomial: Polynomial,
    /// Largest distance to the function there.
    pub error: f64,
    /// Whether it is x², one product.
    pub square: bool,
}

impl Activation {
    pub fn new(function: &Function, reach: f64, degree: usize) -> Result<Self, ModelError> {
        let (polynomial, error) = function.polynomial(reach, degree)?;
        Ok(Self { reach, polynomial, error, square: *function == Function::Power(2) })
    }

    /// Levels that it takes.
    pub fn depth(&self) -> usize {
        if self.square { 1 } else { self.polynomial.depth() }
    }

    /// The polynomial's value.
    pub fn value(&self, x: f64) -> f64 {
        if self.polynomial.basis() == Basis::Power {
            return self.polynomial.evaluate(x).re;
        }
        // Clenshaw's rule on real numbers: the interval is centred.
        let (u, c) = (x / self.reach, self.polynomial.coefficients());
        let step = |(b1, b2): (f64, f64), c: &Complex64| (c.re + 2.0 * u * b1 - b2, b1);
        let (b1, b2) = c.iter().skip(1).rev().fold((0.0, 0.0), step);
        c[0].re + u * b1 - b2
    }

    /// Its derivative, by a difference.
    pub fn slope(&self, x: f64) -> f64 {
        let h = self.reach * 1e-6;
        (self.value(x + h) - self.value(x - h)) / (2.0 * h)
    }

    /// Largest absolute value and largest derivative on the interval.
    pub fn sizes(&self) -> (f64, f64) {
        let count = 64 * (self.polynomial.degree() + 4);
        let at = |i: usize| {
            let x = self.reach * (std::f64::consts::PI * i as f64 / count as f64).cos();
            (x, self.value(x))
        };
        let (mut last, mut size, mut slope) = (at(0), at(0).1.abs(), 0f64);
        for i in 1..=count {
            let next = at(i);
            size = size.max(next.1.abs());
            slope = slope.max(((next.1 - last.1) / (next.0 - last.0)).abs());
            last = next;
        }
        (size.max(f64::MIN_POSITIVE.sqrt()), slope)
    }
}

/// How near the polynomial model is to the given one on the examples. It says nothing of other inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approximation {
    /// Largest |difference| of an output.
    pub largest: f64,
    /// Root mean square of the differences.
    pub rms: f64,
    /// Share of examples with the same label; one for numbers.
    pub same: f64,
}

/// Ranges of a network on its examples, each widened by the margin.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    pub input: f64,
    pub layers: Vec<f64>,
    pub output: f64,
}

/// A bound that says no more of the examples than two digits: rounded up.
fn rounded_up(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let exponent = x.log10().floor() as i32 - 1;
    let digits = (x / 10f64.powi(exponent)).ceil();
    // As a person writes it, and no sum of powers of two near it.
    format!("{digits}e{exponent}").parse().unwrap_or(digits * 10f64.powi(exponent))
}

pub(crate) fn largest<'x>(values: impl IntoIterator<Item = &'x f64>) -> f64 {
    values.into_iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// Ranges of inputs may differ as much as those of the pixels of an image, of 8 bits.
const ALIKE: f64 = 256.0;

/// Factors that inputs are divided by where their ranges differ by more than [`ALIKE`], as in tables of unlike features: powers of two, so
/// that this is exact. None where they are alike.
pub(crate) fn factors(examples: &[&[f64]]) -> Vec<f64> {
    let inputs = examples.first().map_or(0, |x| x.len());
    let ranges: Vec<f64> = (0..inputs).map(|i| examples.iter().fold(0.0, |m: f64, x| m.max(x[i].abs()))).collect();
    let most = largest(&ranges);
    let least = ranges.iter().copied().filter(|r| *r > 0.0).fold(most, f64::min);
    if most <= ALIKE * least {
        return Vec::new();
    }
    let factor = |range: f64| if range > 0.0 { range } else { most }.log2().ceil().exp2();
    ranges.into_iter().map(factor).collect()
}

/// Inputs divided by their factors.
pub(crate) fn divided(example: &[f64], factors: &[f64]) -> Vec<f64> {
    match factors.is_empty() {
        true => example.to_vec(),
        false => example.iter().zip(factors).map(|(x, f)| x / f).collect(),
    }
}

impl Ranges {
    pub fn of(network: &Network, examples: &[&[f64]], margin: f64) -> Result<Self, ModelError> {
        let mut out = Self { input: 0.0, layers: vec![0.0; network.layers.len()], output: 0.0 };
        for example in examples {
            out.input = out.input.max(largest(*example));
            let kept = network.run(example, |k, x| {
                out.layers[k] = out.layers[k].max(largest(&x));
                x.into_iter().map(|x| network.layers[k].function.value(x)).collect()
            });
            out.output = out.output.max(largest(kept.last().into_iter().flatten()));
        }
        for range in [&mut out.input, &mut out.output].into_iter().chain(&mut out.layers) {
            *range = rounded_up(*range * margin);
            if !range.is_finite() {
                return goal(
                    "the network's values on the examples are not finite; check its weights, or give other examples",
                );
            }
        }
        Ok(out)
    }
}

/// A result of each example.
pub(crate) fn each<T: Send>(examples: &[&[f64]], work: impl Fn(&[f64]) -> T + Sync + Send) -> Vec<T> {
    threads::map_jobs(examples.len(), |i| work(examples[i]))
}

/// The result of the polynomial model.
pub(crate) fn evaluate(network: &Network, activations: &[Option<Activation>], example: &[f64]) -> Vec<f64> {
    let apply = |k: usize, x: Vec<f64>| match &activations[k] {
        None => x,
        Some(a) => x.into_iter().map(|x| a.value(x)).collect(),
    };
    network.run(example, apply).pop().into_iter().flatten().collect()
}

pub(crate) fn compare(found: &[Vec<f64>], given: &[Vec<f64>], label: Label) -> Approximation {
    let pairs = || found.iter().flatten().zip(given.iter().flatten()).map(|(a, b)| (a - b).abs());
    let count = given.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    let same = found.iter().zip(given).filter(|(a, b)| label.of(a) == label.of(b)).count();
    // A difference that is no number is as large as can be.
    let largest = pairs().map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max);
    Approximation {
        largest,
        rms: (pairs().map(|d| d * d).sum::<f64>() / count).sqrt(),
        same: same as f64 / given.len().max(1) as f64,
    }
}

/// What polynomials have to reach on the examples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub label: Label,
    pub agreement: f64,
    /// Largest difference, if that is asked for.
    pub difference: Option<f64>,
    /// Degree of all polynomials, if the caller chooses it.
    pub degree: Option<usize>,
}

impl Wanted {
    fn holds(&self, found: &Approximation) -> bool {
        let same = self.label == Label::Numbers || found.same >= self.agreement;
        same && self.difference.is_none_or(|most| found.largest <= most)
    }
}

/// Polynomials of all layers: the lowest degrees, each the largest of its depth, with which the wish holds on the examples.
///
/// While it does not, the layer whose next degree brings the results nearest to the given model's is raised.
pub(crate) fn choose(
    network: &Network,
    ranges: &Ranges,
    examples: &[&[f64]],
    wanted: Wanted,
) -> Result<Vec<Option<Activation>>, ModelError> {
    let searched: Vec<&[f64]> = examples.iter().copied().take(SEARCHED).collect();
    let given = each(&searched, |x| network.evaluate(x)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let make = |k: usize, degree: usize| -> Result<Option<Activation>, ModelError> {
        let function = &network.layers[k].function;
        match function {
            Function::Identity => Ok(None),
            _ => Ok(Some(Activation::new(function, ranges.layers[k], degree)?)),
        }
    };
    let layers = network.layers.len();
    let mut chosen =
        (0..layers).map(|k| make(k, wanted.degree.unwrap_or(DEGREES[0]))).collect::<Result<Vec<_>, _>>()?;
    let measure = |chosen: &[Option<Activation>]| {
        let found = each(&searched, |x| evaluate(network, chosen, x));
        compare(&found, &given, wanted.label)
    };
    let mut step = vec![0; layers];
    let free: Vec<usize> = (0..layers).filter(|k| !network.layers[*k].function.is_exact()).collect();
    let mut reached = measure(&chosen);
    while wanted.degree.is_none() && !wanted.holds(&reached) {
        let open: Vec<usize> = free.iter().copied().filter(|k| step[*k] + 1 < DEGREES.len()).collect();
        if open.is_empty() {
            return goal(format!(
                "polynomials of degree {} give {:.1} % of the examples' labels and outputs that are up to {:.1e} \
                 away; ask for less, or train the network with polynomials",
                DEGREES[DEGREES.len() - 1],
                100.0 * reached.same,
                reached.largest
            ));
        }
        let groups: Vec<Vec<usize>> =
            if open.len() <= MOST_ALONE { open.iter().map(|k| vec![*k]).collect() } else { vec![open] };
        let mut best: Option<(Approximation, Vec<Option<Activation>>, Vec<usize>)> = None;
        for group in groups {
            let mut tried = chosen.clone();
            for k in &group {
                tried[*k] = make(*k, DEGREES[step[*k] + 1])?;
            }
            let found = measure(&tried);
            let nearer = best.as_ref().is_none_or(|(best, ..)| found.rms.total_cmp(&best.rms).is_lt());
            if nearer {
                best = Some((found, tried, group));
            }
        }
        if let Some((found, tried, group)) = best {
            (reached, chosen) = (found, tried);
            group.into_iter().for_each(|k| step[k] += 1);
        }
    }
    Ok(chosen)
}
