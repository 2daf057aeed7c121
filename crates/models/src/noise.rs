//! How far a decrypted answer is from the polynomial model's, for every input whose activations stay within their intervals.
//!
//! Errors arise in encryption, key switches and rounding, independent from slot to slot. From there to the output they go through maps and
//! derivatives: a row's error has the deviation of one slot times ‖row of the Jacobian‖₂, which is at most that of the last map's row times
//! spectral norms and largest derivatives in between. Of a deep network that product says nothing; there the Jacobians at some examples are
//! looked at, with a margin, and the promise is for inputs like these.
//!
//! A slot's error is not normal. What a division rounds meets the secret, whose size |s(ζ)|² differs from slot to slot like an exponential
//! variable; the real part of r(ζ)·s(ζ) then follows Laplace's law, which passes x deviations with probability e^(−√2·x). Sums over slots
//! have lighter tails; where a map has one entry in a row, or each number its own ciphertext, nothing is summed.

use crate::approximate::Activation;
use crate::circuit::scales;
use crate::error::ModelError;
use crate::layout::{Layout, babies, offsets, steps};
use crate::network::Network;
use crate::placement::Placement;
use crate::sparse::Sparse;
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use sudare_he::HeError;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::ckks::{EncodeAt, Params, spread};
use sudare_ring::threads;
use sudare_rlwe::RlweError;

/// log2 of the probability that an answer with all its numbers is further away than promised.
pub(crate) const FAILURE: f64 = -30.0;
/// Points at which a polynomial's own errors are looked at.
const POINTS: usize = 65;
/// The variance of a polynomial of which nothing would be left: larger than any goal's, and no infinity, which times zero is no number.
const WORTHLESS: f64 = 1e100;

/// Examples at which Jacobians are looked at, at most, and outputs.
const LOOKED_AT: usize = 16;
/// How much more sensitive than there a network may be elsewhere.
const SENSITIVITY: f64 = 2.0;

/// For which inputs the bound on an answer's error is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// All whose values stay in their intervals.
    AllInputs,
    /// Those at which the network is no more than twice as sensitive as at the examples.
    LikeExamples,
}

/// What is known of a network without parameters.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    /// Largest absolute value after each layer's function, and the function's largest derivative.
    pub sizes: Vec<(f64, f64)>,
    /// Bounds after the maps.
    ranges: Vec<f64>,
    /// By how much errors can grow to the output, of all inputs, and of those like the examples, if they were looked at.
    all: Growth,
    examples: Option<Growth>,
}

/// By how much an error can grow to the output.
#[derive(Clone, Debug)]
struct Growth {
    /// In a kept value.
    kept: Vec<f64>,
    /// After a layer's maps.
    sums: Vec<f64>,
}

/// What a map is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    /// Largest Euclidean norm of a row, and the most entries of one.
    row: f64,
    entries: usize,
    pub diagonals: usize,
    pub babies: usize,
    pub giants: usize,
    pub copies: usize,
    /// Slots of a diagonal.
    pub length: usize,
}

/// Standard deviations of errors after each layer's maps and function, and the promise.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    /// Bounds on errors after maps and after the function, for each layer.
    pub layers: Vec<[f64; 2]>,
    /// Variance at the output, of all inputs and of those like the examples.
    variances: Vec<f64>,
    /// Deviations that hold an answer.
    deviations: f64,
}

impl Errors {
    /// For whom a bound within `error` is promised; none where there is no such bound.
    pub fn within(&self, error: f64) -> Option<Promise> {
        let who = [Promise::AllInputs, Promise::LikeExamples];
        who.into_iter().take(self.variances.len()).find(|who| self.promised(*who) <= error)
    }

    /// Standard deviation at the output.
    pub fn deviation(&self, promise: Promise) -> f64 {
        self.variances[promise as usize].sqrt()
    }

    /// The bound.
    pub fn promised(&self, promise: Promise) -> f64 {
        self.deviations * self.deviation(promise)
    }

    /// The least bound.
    pub fn nearest(&self) -> f64 {
        self.deviations * self.variances.iter().copied().fold(f64::INFINITY, f64::min).sqrt()
    }
}

/// How many deviations one of `count` slots' errors passes with a probability of 2^log2 at most, in its real or in its imaginary part.
pub(crate) fn deviations(count: usize, log2: f64) -> f64 {
    ((2.0 * count.max(1) as f64).ln() - log2 * std::f64::consts::LN_2) / std::f64::consts::SQRT_2
}

impl Growth {
    /// By norms, of all inputs.
    fn of_all(network: &Network, slopes: impl Fn(usize) -> f64) -> Self {
        let last = network.layers.len() - 1;
        let (mut kept, mut sums) = (vec![0.0; last + 2], vec![0.0; last + 1]);
        kept[last + 1] = 1.0;
        let norms = threads::map_jobs(last + 1, |k| {
            let norm = |(_, map): &(usize, Sparse)| match k == last {
                true => map.norms().into_iter().fold(0.0, f64::max),
                false => map.spectral_norm(),
            };
            network.layers[k].sources.iter().map(norm).collect::<Vec<_>>()
        });
        for (k, layer) in network.layers.iter().enumerate().rev() {
            sums[k] = kept[k + 1] * slopes(k);
            layer.sources.iter().zip(&norms[k]).for_each(|((s, _), norm)| kept[*s] += sums[k] * norm);
        }
        Self { kept, sums }
    }

    /// By Jacobians at some examples, row by row from the output back.
    fn at(network: &Network, activations: &[Option<Activation>], examples: &[&[f64]]) -> Self {
        let (last, outputs) = (network.layers.len() - 1, network.outputs());
        let stride = outputs.div_ceil(LOOKED_AT);
        let one = |i: usize| {
            let mut slopes: Vec<Vec<f64>> = Vec::new();
            network.run(examples[i], |k, x| match &activations[k] {
                None => {
                    slopes.push(vec![1.0; x.len()]);
                    x
                }
                Some(a) => {
                    slopes.push(x.iter().map(|x| a.slope(*x)).collect());
                    x.into_iter().map(|x| a.value(x)).collect()
                }
            });
            let mut out = Self { kept: vec![0.0; last + 2], sums: vec![0.0; last + 1] };
            for output in (0..outputs).step_by(stride) {
                let mut rows: Vec<Vec<f64>> = vec![Vec::new(); last + 2];
                rows[last + 1] = (0..outputs).map(|o| f64::from(u8::from(o == output))).collect();
                for (k, layer) in network.layers.iter().enumerate().rev() {
                    let mut row = std::mem::take(&mut rows[k + 1]);
                    out.kept[k + 1] = out.kept[k + 1].max(norm(&row));
                    row.iter_mut().zip(&slopes[k]).for_each(|(r, slope)| *r *= slope);
                    out.sums[k] = out.sums[k].max(norm(&row));
                    for (source, map) in &layer.sources {
                        let to = &mut rows[*source];
                        to.resize(map.columns(), 0.0);
                        map.add_transposed(&row, to);
                    }
                }
                out.kept[0] = out.kept[0].max(norm(&rows[0]));
            }
            out
        };
        let mut out = Self { kept: vec![0.0; last + 2], sums: vec![0.0; last + 1] };
        for found in threads::map_jobs(examples.len(), one) {
            let raise = |all: &mut [f64], by: &[f64]| {
                all.iter_mut().zip(by).for_each(|(a, b)| *a = a.max(SENSITIVITY * b));
            };
            raise(&mut out.kept, &found.kept);
            raise(&mut out.sums, &found.sums);
        }
        out
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Gains {
    pub fn of(network: &Network, activations: &[Option<Activation>], ranges: &[f64]) -> Self {
        let size = |k: usize| match &activations[k] {
            Some(a) => a.sizes(),
            None => (ranges[k], 1.0),
        };
        let sizes: Vec<(f64, f64)> = (0..network.layers.len()).map(size).collect();
        let all = Growth::of_all(network, |k| sizes[k].1);
        Self { sizes, ranges: ranges.to_vec(), all, examples: None }
    }

    /// Looks at some examples.
    pub fn look_at(&mut self, network: &Network, activations: &[Option<Activation>], examples: &[&[f64]]) {
        let some = &examples[..examples.len().min(LOOKED_AT)];
        self.examples.get_or_insert_with(|| Growth::at(network, activations, some));
    }

    /// Each source of each layer; without layouts, of numbers that have a ciphertext each.
    pub fn maps(&self, network: &Network, layouts: Option<&[Layout]>, images: usize) -> Vec<Vec<Map>> {
        let one = |k: usize, source: usize, map: &Sparse| {
            let row = map.norms().into_iter().fold(0.0, f64::max);
            let entries = (0..map.rows()).map(|r| map.row(r).count()).fold(0, usize::max);
            let Some(layouts) = layouts else {
                return Map { row, entries, diagonals: 0, babies: 0, giants: 0, copies: 1, length: 1 };
            };
            let layouts = [&layouts[source], &layouts[k + 1]];
            let offsets = offsets(map, layouts);
            let [babies, giants] = steps(&offsets, babies(&offsets));
            let [from, to] = layouts.map(Layout::period);
            Map {
                row,
                entries,
                diagonals: offsets.len(),
                babies,
                giants,
                copies: (from / to).max(1),
                length: from.max(to) * images,
            }
        };
        let all = |k: usize| network.layers[k].sources.iter().map(|(s, m)| one(k, *s, m)).collect();
        threads::map_jobs(network.layers.len(), all)
    }

    /// Errors with some parameters. `refresh` is the variance of a complex slot's error that a refresh adds to values of size one.
    pub fn errors(
        &self,
        (network, activations): (&Network, &[Option<Activation>]),
        maps: &[Vec<Map>],
        (placement, input): (&Placement, f64),
        (params, refresh): (&Params, Option<f64>),
    ) -> Result<Errors, ModelError> {
        let delta = params.scale();
        let levels = &placement.levels;
        // Of a real part, in units of a message at a scale.
        let unit = |variance: f64, scale: f64| variance / 2.0 / (scale * scale);
        let at = EncodeAt { level: placement.input, scale: delta / input, max_abs: input };
        let fresh = params.sketch().degree() * (params.sketch().secret_encryption().variance() + 1.0 / 12.0);
        let mut variances = vec![unit(fresh + spread::doubles(params, at), at.scale)];
        // What is at the output of what each step adds, and bounds on the errors on the way, which add up in variances there as well.
        let growth: Vec<&Growth> = std::iter::once(&self.all).chain(&self.examples).collect();
        let mut output: Vec<f64> = growth.iter().map(|g| g.kept[0].powi(2) * variances[0]).collect();
        let mut layers = Vec::new();
        for (k, layer) in network.layers.iter().enumerate() {
            let sizes = [self.ranges[k], self.sizes[k].0];
            let [scale, target] = scales(params, activations[k].as_ref(), levels[k], sizes);
            let renewed = |i: usize, scale: f64| match refresh.filter(|_| levels[k].refreshed[i]) {
                Some(variance) => variance / 2.0 * (delta / scale).powi(2),
                None => 0.0,
            };
            let (mut own, mut carried) = (0.0, 0.0);
            for ((source, _), map) in layer.sources.iter().zip(&maps[k]) {
                let size = source.checked_sub(1).map_or(input, |s| self.sizes[s].0);
                let (level, prime) = (levels[k].from, params.prime_at(levels[k].from) as f64);
                let (switch, weight) = (spread::switching(params, level), prime * scale * size / delta);
                let rotation = switch + spread::division(params, 2);
                let (copies, diagonals, giants) = (map.copies as f64, map.diagonals as f64, map.giants as f64);
                let rescaled = spread::division(params, 2) * copies;
                carried += (map.row * variances[*source].sqrt()).powi(2);
                if map.diagonals == 0 {
                    // Rounded constants times operands, which are real.
                    let rounding = 2.0 * map.entries as f64 * delta.powi(2) / 12.0;
                    own += unit(rounding / (prime * prime) + rescaled, scale);
                    continue;
                }
                // Babies' key switches times the weights, the rounding of diagonals, and giant steps before the rescale.
                let before = switch * (map.row * weight).powi(2)
                    + copies * diagonals * delta.powi(2) * spread::encoding(params, map.length)
                    + copies * giants * rotation;
                let folded = (spread::switching(params, level - 1) + spread::division(params, 2)) * copies;
                own += unit(before / (prime * prime) + rescaled + folded, scale);
            }
            own += unit(spread::encoding(params, usize::MAX), scale) + renewed(0, scale);
            let (mut after, slope) = (own + carried, self.sizes[k].1);
            output.iter_mut().zip(&growth).for_each(|(o, g)| *o += g.sums[k].powi(2) * own);
            let before = after;
            if let Some(a) = &activations[k] {
                let level = levels[k].start;
                let added = if a.square {
                    let prime = params.prime_at(level) as f64;
                    unit(spread::relinearisation(params, level) / (prime * prime) + spread::division(params, 2), target)
                } else {
                    let at = |i: usize| Complex64::from(a.reach * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0));
                    match PolynomialCircuit::new(params, &a.polynomial, level, scale, target) {
                        Ok(circuit) => (0..POINTS).map(|i| circuit.variance(&[at(i)], 0.0)).fold(0.0, f64::max) / 2.0,
                        // It would leave nothing of its values: no goal is met by it.
                        Err(HeError::Rlwe(RlweError::Parameters { .. })) => WORTHLESS,
                        Err(other) => return Err(other.into()),
                    }
                };
                let added = added + renewed(1, target);
                output.iter_mut().zip(&growth).for_each(|(o, g)| *o += g.kept[k + 1].powi(2) * added);
                after = after * slope * slope + added;
            }
            variances.push(after);
            let many = 2.0 * deviations(params.slots(), FAILURE);
            layers.push([before, after].map(|v| many * v.sqrt()));
        }
        Ok(Errors { layers, variances: output, deviations: deviations(network.outputs(), FAILURE) })
    }
}
