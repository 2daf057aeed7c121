//! How far what is computed is from what it should be: of integers by bounds that hold with a probability of 1 − 2^−128, of scores by
//! deviations, as `noise` has it for networks.

use super::circuit::Program;
use super::places::Part;
use crate::layout::{babies, steps};
use crate::noise::{FAILURE, deviations};
use std::f64::consts::SQRT_2;
use sudare_he::HeError;
use sudare_he::ckks::spread;
use sudare_he::discrete::{Errors, Forecast, Table, packed_scale};

/// The two tables, and the moduli of what they read.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Whether a step is not taken, of a rank minus that of its threshold.
    pub step: Table,
    /// Whether a way has been followed, of how many of its steps are not taken.
    pub reached: Table,
}

impl Tables {
    /// For ranks up to `most` and ways of up to `depth` steps.
    pub fn new(most: usize, depth: usize) -> Result<Self, HeError> {
        let (half, counts) = (most as u64, depth as u64 + 1);
        let step = Table::of(2 * half, counts, |x| u64::from(x < half))?;
        Ok(Self { step, reached: Table::of(counts, 2, |x| u64::from(x == 0))? })
    }

    /// Least and largest of what the first one reads.
    pub fn range(&self) -> (i64, i64) {
        let half = self.step.modulus() as i64 / 2;
        (-half, half - 1)
    }
}

/// Bound on ranks' distance to integers where the first table begins: encryption, the map that brings them to their places, each of which
/// takes one rank, and what is added there.
pub(crate) fn placed(program: &Program, tables: &Tables) -> Result<f64, HeError> {
    let (params, mut diagonals, mut giants) = (&program.params, 0, 0);
    for offsets in program.parts.iter().map(Part::offsets) {
        diagonals = diagonals.max(offsets.len());
        giants = giants.max(steps(&offsets, babies(&offsets))[1]);
    }
    let (sketch, level) = (params.params().sketch(), params.input_level() + 1);
    let (scale, prime) = (packed_scale(params, tables.step.modulus())?, sketch.q()[level]);
    let bound = |noise| Errors::of_noise(sketch.degree(), &noise, 1.0).bound;
    let (rounding, largest) = (bound(sketch.rounding()), SQRT_2 * tables.step.modulus() as f64);
    let rotated = bound(sketch.switching(level)) + bound(sketch.division(2));
    let before = bound(sketch.secret_encryption()) + rounding + rotated;
    // Diagonals are rounded, and so is what they are multiplied by: once each.
    let rounded = (largest * scale + before) * diagonals as f64 * rounding / prime;
    let after = giants as f64 * rotated / prime + bound(sketch.division(2)) + rounding;
    // Double precision has the same relative error at any scale.
    let doubles = largest * sketch.degree().log2() * f64::EPSILON * (2.0 + diagonals as f64);
    Ok((before + rounded + after) / scale + doubles)
}

/// Errors of indicators: of ranks with a bound, through both tables and the sums between them.
pub(crate) fn indicators(program: &Program, tables: &Tables) -> Result<Errors, HeError> {
    let (params, places, bound) = (&program.params, &program.places, placed(program, tables)?);
    let ranks = Forecast { modulus: tables.step.modulus(), range: tables.range(), errors: Errors::within(bound) };
    let steps = ranks.table(params, &tables.step)?;
    let sums = (0..places.steps.trailing_zeros()).try_fold(steps, |sum, _| sum.folded(params))?;
    Ok(sums.table(params, &tables.reached)?.errors)
}

/// Bound on the errors of a row's scores, but for a probability of 2^−30.
pub(crate) fn scores(program: &Program, indicators: Errors) -> Result<f64, HeError> {
    let Program { params, places, parts, outputs, size, largest, .. } = program;
    let outputs = *outputs;
    let (set, level) = (params.params(), params.input_level());
    let sketch = set.sketch();
    let (mut sums, mut squares) = (vec![0.0f64; outputs], vec![0.0f64; outputs]);
    for part in parts {
        for o in 0..outputs {
            let first = places.score(o, 0);
            let all = part.values(o / places.steps)[first..first + places.ways * places.rows].iter();
            all.step_by(places.rows).for_each(|v| {
                sums[o] += v.abs();
                squares[o] += v * v;
            });
        }
    }
    let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
    let (sum, square) = (most(sums), most(squares));
    // Scores are at the scale of indicators divided by the largest value of a leaf.
    let scale = packed_scale(params, 2)? / size;
    let unit = |variance: f64| variance / 2.0 / (scale * scale);
    let (encoding, division) = (spread::encoding(set, usize::MAX), spread::division(set, 2));
    let (ways, parts) = (places.ways as f64, parts.len() as f64);
    let [first, second] = [sketch.q()[level], sketch.q()[level - 1]];
    // Values of leaves are rounded wherever an indicator is one, in the row and in the one that shares its slots: at most everywhere.
    let values = 2.0 * ways * parts * encoding * (size / first).powi(2);
    let folded = unit(2.0 * ways * parts * (division + spread::switching(set, level - 1)));
    let masked = unit(division + encoding) + 2.0 * encoding * (largest / second).powi(2);
    let variance = square * indicators.deviation.powi(2) + values + folded + masked;
    Ok(sum * indicators.bias + deviations(outputs, FAILURE) * variance.sqrt())
}
