//! Measured noise of every operation against the formulas of `tfhe::variance` and its neighbours.
//!
//! The tests of TFHE and the lab's `tfhe-noise` share these measurements: the tests take a few keys, the lab as
//! many as it takes to know each ratio far better than the 3 % that it has to keep.

pub mod circuit;
mod exchange;
mod fhew;
mod glwe;
mod lwe;
mod rotation;
pub mod support;

use std::collections::BTreeMap;
use sudare_tfhe::TfheError;

/// Measured over predicted variances by operation: one figure for each key, since what a key's noise has in
/// common makes samples under one key depend on each other.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<String, Figure>);

/// What is known of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figure {
    keys: usize,
    samples: usize,
    sum: f64,
    squares: f64,
}

impl Tally {
    /// Notes the mean of measured over predicted of `samples` numbers under one key.
    fn note(&mut self, operation: impl Into<String>, ratio: f64, samples: usize) {
        let figure = self.0.entry(operation.into()).or_default();
        figure.keys += 1;
        figure.samples += samples;
        figure.sum += ratio;
        figure.squares += ratio * ratio;
    }

    /// Adds what was measured under other keys.
    pub fn merge(&mut self, other: &Self) {
        for (operation, more) in &other.0 {
            let figure = self.0.entry(operation.clone()).or_default();
            figure.keys += more.keys;
            figure.samples += more.samples;
            figure.sum += more.sum;
            figure.squares += more.squares;
        }
    }

    /// By operation.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Figure)> {
        self.0.iter().map(|(operation, figure)| (operation.as_str(), figure))
    }
}

impl Figure {
    /// Keys.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Numbers whose squares were taken.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Measured over predicted.
    pub fn ratio(&self) -> f64 {
        self.sum / self.keys as f64
    }

    /// Standard error of the ratio, from how far the keys differ.
    pub fn error(&self) -> f64 {
        let (n, mean) = (self.keys as f64, self.ratio());
        ((self.squares / n - mean * mean).max(0.0) / (n - 1.0)).sqrt()
    }
}

/// Operations that are measured together.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What they are.
    pub name: &'static str,
    /// Keys that a test takes.
    pub keys: u64,
    /// Measures under the key of a number.
    pub measure: fn(u64, &mut Tally) -> Result<(), TfheError>,
}

/// All of them.
pub const SUITES: [Suite; 12] = [
    Suite { name: "glwe", keys: 12, measure: glwe::products },
    Suite { name: "packing", keys: 8, measure: glwe::packing },
    Suite { name: "exchange", keys: 8, measure: exchange::exchange },
    Suite { name: "lwe", keys: 6, measure: lwe::switches },
    Suite { name: "module switch", keys: 8, measure: lwe::module_switch },
    Suite { name: "blind rotation", keys: 10, measure: rotation::blind_rotations },
    Suite { name: "several tables", keys: 6, measure: rotation::several_tables },
    Suite { name: "leveled lookup", keys: 16, measure: glwe::leveled_lookups },
    Suite { name: "trace", keys: 12, measure: circuit::trace },
    Suite { name: "scheme switch", keys: 16, measure: circuit::scheme_switch },
    Suite { name: "circuit bootstrap", keys: 4, measure: circuit::products },
    Suite { name: "fhew", keys: 5, measure: fhew::blind_rotations },
];
