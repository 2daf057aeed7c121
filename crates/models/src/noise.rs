//! How far a decrypted answer is from the polynomial model's, for every input whose activations stay within their intervals.
//!
//! Errors are normal and independent from slot to slot where they arise: encryption, key switches, rounding. From there to the output they
//! go through maps and derivatives: a row's error has the deviation of one slot times ‖row of the Jacobian‖₂, which is at most that of the
//! last map's row times spectral norms and largest derivatives in between.

use crate::approximate::Activation;
use crate::circuit::{Levels, scales};
use crate::error::ModelError;
use crate::layout::{babies, diagonals};
use crate::network::Network;
use num_complex::Complex64;
use std::collections::BTreeSet;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::ckks::{EncodeAt, Params, spread};

/// log2 of the probability that an answer with all its numbers is further away than promised.
const FAILURE: f64 = -30.0;
/// Points at which a polynomial's own errors are looked at.
const POINTS: usize = 65;

/// What is known of a network without parameters.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    /// Largest absolute value after each layer's function, and the function's largest derivative.
    pub sizes: Vec<(f64, f64)>,
    /// Bounds after the maps.
    ranges: Vec<f64>,
    /// By how much an error in a kept value, and one after a layer's maps, can grow to the output.
    kept: Vec<f64>,
    /// Largest Euclidean norm of a row, of each source of each layer, with the number of its diagonals, babies, giants and folds.
    maps: Vec<Vec<Map>>,
}

#[derive(Clone, Copy, Debug)]
struct Map {
    row: f64,
    diagonals: f64,
    giants: f64,
    copies: f64,
    length: usize,
}

/// Standard deviations of errors after each layer's maps and function, and the promise.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    /// Bounds on errors after maps and after the function, for each layer.
    pub layers: Vec<[f64; 2]>,
    /// Standard deviation at the output.
    pub deviation: f64,
    /// The promise.
    pub promised: f64,
}

/// How many deviations a normal variable leaves with a probability of 2^log2 at most, one of `count`.
pub(crate) fn deviations(count: usize, log2: f64) -> f64 {
    (2.0 * ((count.max(1) as f64).ln() - log2 * std::f64::consts::LN_2 + std::f64::consts::LN_2)).sqrt()
}

impl Gains {
    pub fn of(network: &Network, activations: &[Option<Activation>], ranges: &[f64], images: usize) -> Self {
        let last = network.layers.len() - 1;
        let sizes: Vec<(f64, f64)> = (0..=last)
            .map(|k| match &activations[k] {
                Some(a) => a.sizes(),
                None => (ranges[k], 1.0),
            })
            .collect();
        let mut kept = vec![0.0; network.layers.len() + 1];
        kept[last + 1] = 1.0;
        for (k, layer) in network.layers.iter().enumerate().rev() {
            for (source, map) in &layer.sources {
                let by = if k == last { map.norms().into_iter().fold(0.0, f64::max) } else { map.spectral_norm() };
                kept[*source] += kept[k + 1] * sizes[k].1 * by;
            }
        }
        let one = |map: &crate::sparse::Sparse| {
            let (diagonals, copies) = diagonals(map, 1);
            let n = babies(&diagonals) as i64;
            let giants: BTreeSet<i64> = diagonals.keys().map(|t| t / n).filter(|g| *g != 0).collect();
            Map {
                row: map.norms().into_iter().fold(0.0, f64::max),
                diagonals: diagonals.len() as f64,
                giants: giants.len() as f64,
                copies: copies as f64,
                length: diagonals.values().next().map_or(1, Vec::len) * images,
            }
        };
        let maps = network.layers.iter().map(|l| l.sources.iter().map(|(_, m)| one(m)).collect()).collect();
        Self { sizes, ranges: ranges.to_vec(), kept, maps }
    }

    /// Diagonals, giant steps and copies of a layer's maps, added up.
    pub fn counts(&self, layer: usize) -> (usize, usize) {
        let sum = |f: fn(&Map) -> f64| self.maps[layer].iter().map(f).sum::<f64>() as usize;
        (sum(|m| m.diagonals), sum(|m| m.giants))
    }

    /// Errors with some parameters.
    pub fn errors(
        &self,
        network: &Network,
        activations: &[Option<Activation>],
        (levels, input): (&[Levels], f64),
        params: &Params,
    ) -> Result<Errors, ModelError> {
        let delta = params.scale();
        // Of a real part, in units of a message at a scale.
        let unit = |variance: f64, scale: f64| variance / 2.0 / (scale * scale);
        let at = EncodeAt { level: params.max_level(), scale: delta / input, max_abs: input };
        let fresh = params.sketch().degree() * (params.sketch().secret_encryption().variance() + 1.0 / 12.0);
        let mut variances = vec![unit(fresh + spread::doubles(params, at), at.scale)];
        // What is at the output of what each step adds, and bounds on the errors on the way, which add up in variances there as well.
        let mut output = self.kept[0].powi(2) * variances[0];
        let mut layers = Vec::new();
        for (k, layer) in network.layers.iter().enumerate() {
            let sizes = [self.ranges[k], self.sizes[k].0];
            let [scale, target] = scales(params, activations[k].as_ref(), levels[k], sizes);
            let (mut own, mut carried) = (0.0, 0.0);
            for ((source, _), map) in layer.sources.iter().zip(&self.maps[k]) {
                let size = source.checked_sub(1).map_or(input, |s| self.sizes[s].0);
                let (level, prime) = (levels[k].from, params.prime_at(levels[k].from) as f64);
                let (switch, weight) = (spread::switching(params, level), prime * scale * size / delta);
                let rotation = switch + spread::division(params, 2);
                // Babies' key switches times the weights, the rounding of diagonals, and giant steps before the rescale.
                let before = switch * (map.row * weight).powi(2)
                    + map.copies * map.diagonals * delta.powi(2) * spread::encoding(params, map.length)
                    + map.copies * map.giants * rotation;
                let folded = (spread::switching(params, level - 1) + spread::division(params, 2)) * map.copies;
                let rescaled = spread::division(params, 2) * map.copies;
                own += unit(before / (prime * prime) + rescaled + folded, scale);
                carried += (map.row * variances[*source].sqrt()).powi(2);
            }
            own += unit(spread::encoding(params, usize::MAX), scale);
            let (mut after, slope) = (own + carried, self.sizes[k].1);
            output += (self.kept[k + 1] * slope).powi(2) * own;
            let before = after;
            if let Some(a) = &activations[k] {
                let level = levels[k].from - 1;
                let added = if a.square {
                    let prime = params.prime_at(level) as f64;
                    unit(spread::relinearisation(params, level) / (prime * prime) + spread::division(params, 2), target)
                } else {
                    let circuit = PolynomialCircuit::new(params, &a.polynomial, level, scale, target)?;
                    let at = |i: usize| Complex64::from(a.reach * (2.0 * i as f64 / (POINTS - 1) as f64 - 1.0));
                    (0..POINTS).map(|i| circuit.variance(&[at(i)], 0.0)).fold(0.0, f64::max) / 2.0
                };
                output += self.kept[k + 1].powi(2) * added;
                after = after * slope * slope + added;
            }
            variances.push(after);
            let many = 4.0 * deviations(params.slots(), FAILURE);
            layers.push([before, after].map(|v| many * v.sqrt()));
        }
        let deviation = output.sqrt();
        Ok(Errors { layers, deviation, promised: deviation * deviations(network.outputs(), FAILURE) })
    }
}
