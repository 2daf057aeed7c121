//! Linear maps on slots modulo t or t², exact: double hoisting of [`rlwe::Evaluator`] with diagonals of integers.
//!
//! The rotations of x are babies of a few roots, each the root before turned once more. Where rows mix, those of x with its
//! rows swapped follow: its first root is the last one of x, swapped, so that its offsets begin there.

use super::slots::Slots;
use super::transform::Stage;
use crate::error::ExactError;
use crate::{IntegerParams, NoiseModel};
use std::collections::BTreeSet;
use sudare_ring::automorphism::{conjugation_element, rotation_element};
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::{self as rlwe, GiantStep, MapSteps, Quotient, RootStep};

/// A diagonal as a polynomial: its 2p centred coefficients.
#[derive(Clone, Debug)]
struct Diagonal {
    baby: usize,
    coefficients: Vec<i64>,
}

/// A map's steps, its diagonals by giant step, and by how much it multiplies noise.
#[derive(Clone)]
pub(super) struct MapPlan {
    steps: MapSteps,
    giants: Vec<Vec<Diagonal>>,
    gain: Gain,
}

/// The largest Σ |d(ζ^k)| over all k and over all diagonals d: what the canonical norm of the input's noise is multiplied by,
/// of a key switch before a baby, and of a turn of a root, each as often as it comes before the diagonal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gain {
    input: f64,
    switched: f64,
    turned: f64,
    late: f64,
}

/// Which root and baby a diagonal at a multiple of the unit meets, and after which giant step.
fn place(t: i64, (hoisted, roots): (usize, usize), swapped: bool) -> (usize, (usize, usize)) {
    let before = if swapped { (roots - 1) * hoisted } else { 0 };
    let (t, babies) = (t as usize - before, hoisted * roots);
    let (giant, baby) = (t / babies, t % babies);
    (giant, (baby / hoisted + if swapped { roots } else { 0 }, baby % hoisted))
}

impl MapPlan {
    /// The plan of a stage.
    ///
    /// # Errors
    /// `RlweError::Ring`.
    pub fn of(params: &IntegerParams, slots: &Slots, stage: &Stage) -> Result<Self, ExactError> {
        let (n, (hoisted, count)) = (params.degree(), stage.steps);
        let all: Vec<_> = [(&stage.plain, false), (&stage.swapped, true)]
            .into_iter()
            .flat_map(|(matrix, swapped)| matrix.iter().map(move |(t, d)| (place(*t, stage.steps, swapped), d)))
            .collect();
        let used: BTreeSet<(usize, usize)> = all.iter().map(|((_, at), _)| *at).collect();
        let element = |units: usize| rotation_element(n, units as i64 * stage.unit);
        let last = used.last().map_or(0, |(root, _)| *root);
        let root = |r: usize| RootStep {
            turn: match r {
                0 => 1,
                r if r == count && !stage.swapped.is_empty() => conjugation_element(n),
                _ => element(hoisted),
            },
            babies: used.iter().filter(|(root, _)| *root == r).map(|(_, b)| element(*b)).collect(),
        };
        let roots: Vec<RootStep> = (0..=last).map(root).collect();
        let index: Vec<(usize, usize)> = used.iter().copied().collect();
        let highest = all.iter().map(|((giant, _), _)| *giant).max().unwrap_or(0);
        let (mut giants, mut steps) = (Vec::new(), Vec::new());
        let mut sums = [vec![0.0; n / 2], vec![0.0; n / 2], vec![0.0; n / 2]];
        for giant in (0..=highest).rev() {
            let mut here = Vec::new();
            for ((_, at), values) in all.iter().filter(|((g, _), _)| *g == giant) {
                // Rot_g(p ⊙ x) = Rot_g(p) ⊙ Rot_g(x): the diagonal is turned back beforehand.
                let by = (giant * hoisted * count) as i64 * stage.unit;
                let mut turned = values.to_vec();
                turned.rotate_right(by.rem_euclid(values.len() as i64) as usize);
                let coefficients = slots.coefficients(&turned);
                let sizes = params.embedded_sizes(&coefficients)?;
                let rotated = if at.1 == 0 { 0.0 } else { 1.0 };
                for (j, size) in sizes.iter().cycle().skip(by.rem_euclid(n as i64 / 2) as usize).take(n / 2).enumerate()
                {
                    sums[0][j] += size;
                    sums[1][j] += size * rotated;
                    sums[2][j] += size * at.0 as f64;
                }
                let baby = index.partition_point(|place| place < at);
                here.push(Diagonal { baby, coefficients });
            }
            let turn = if giant == highest { 1 } else { element(hoisted * count) };
            steps.push(GiantStep { turn, babies: here.iter().map(|d| d.baby).collect() });
            giants.push(here);
        }
        let [input, switched, turned] = sums.map(|sum| sum.into_iter().fold(0.0, f64::max));
        let gain = Gain { input, switched, turned, late: highest as f64 };
        Ok(Self { steps: MapSteps { roots, giants: steps, chained: true }, giants, gain })
    }

    /// Galois elements whose keys it needs, each once.
    pub fn elements(&self) -> Vec<u64> {
        self.steps.elements()
    }

    /// Its steps.
    pub fn steps(&self) -> &MapSteps {
        &self.steps
    }

    /// Bound on the canonical norm of the noise of what it makes of a ciphertext at a level.
    pub fn noise(&self, model: &NoiseModel, level: usize, noise: f64) -> f64 {
        let (switching, turn) = (model.switching(level), model.switched(level));
        let Gain { input, switched, turned, late } = self.gain;
        noise * input + switching * switched + turn * (turned + late)
    }

    /// Variance of a coefficient of the noise of what it makes of noise of a variance, of diagonals that are as random as they
    /// look.
    #[cfg(test)]
    pub fn variance(&self, sketch: &rlwe::noise::Sketch, level: usize, variance: f64) -> f64 {
        let switching = sketch.switching(level).variance();
        let turn = switching + sketch.secret_weight() * rlwe::noise::ROUNDING_VARIANCE;
        let babies: Vec<(usize, bool)> = self
            .steps
            .roots
            .iter()
            .enumerate()
            .flat_map(|(r, root)| root.babies.iter().map(move |e| (r, *e != 1)))
            .collect();
        let term = |d: &Diagonal| {
            let (root, rotated) = babies[d.baby];
            let before = variance + root as f64 * turn + if rotated { switching } else { 0.0 };
            before * d.coefficients.iter().map(|c| (*c as f64).powi(2)).sum::<f64>()
        };
        self.giants.iter().flatten().map(term).sum::<f64>() + self.gain.late * turn
    }

    /// Words of a limb that its diagonals take.
    pub fn row_words(&self) -> usize {
        self.giants.iter().flatten().map(|d| PeriodicPoly::words_of(d.coefficients.len() / 2)).sum()
    }

    /// The map for ciphertexts at a level.
    pub fn prepare(&self, params: &rlwe::Params, level: usize) -> Vec<Vec<PeriodicPoly>> {
        let basis = params.qp_at(level);
        // Coefficients are below 2^53: doubles hold them exactly.
        let row =
            |d: &Diagonal| PeriodicPoly::rounded(basis, &d.coefficients.iter().map(|c| *c as f64).collect::<Vec<_>>());
        self.giants.iter().map(|giant| giant.iter().map(row).collect()).collect()
    }

    /// What it makes of a ciphertext, divided by the primes above `to`.
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`, `RlweError::NoSuchLevel` if a key does not reach.
    pub fn apply(
        &self,
        evaluator: &rlwe::Evaluator,
        params: &IntegerParams,
        rows: &[Vec<PeriodicPoly>],
        a: &rlwe::Ciphertext,
        to: usize,
    ) -> Result<rlwe::Ciphertext, ExactError> {
        let tables = || params.division(a.level(), to, true, 1);
        Ok(evaluator.linear_map_divided(a, (&self.steps, rows), Quotient { to, tables: &tables })?)
    }
}

/// Standard deviations of an embedded value of a polynomial with uniform coefficients up to which it may multiply: a larger
/// one comes once in 2^54.
const UNIFORM_TAIL: f64 = 7.0;

/// The largest canonical norm of the mask that multiplies the sparse secret.
pub(super) fn largest_mask(degree: usize, modulus: u64) -> f64 {
    UNIFORM_TAIL * (degree as f64 / 12.0).sqrt() * modulus as f64
}

/// Bound on a fresh error times such a mask, which is known where the error is drawn.
pub(super) fn masked_error(model: &NoiseModel, mask: f64) -> f64 {
    model.secret_encryption() * mask
}

impl std::fmt::Debug for MapPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MapPlan({:?}, {:?}, log2 {:.1})", self.steps.counts(), self.gain, self.gain.input.log2())
    }
}
