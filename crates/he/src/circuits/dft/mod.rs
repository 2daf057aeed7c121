//! The special FFT of the canonical embedding as a few linear maps on slots, in both directions
//! (Cheon–Han–Hhan, ePrint 2018/1073; Chen–Chillotti–Song, ePrint 2018/1043).
//!
//! Without its bit reversal, the transform from coefficients to slots is a product of log2 n layers of
//! butterflies; some layers together make a stage, whose matrix has few diagonals: those at multiples of
//! the stage's unit up to (radix − 1) on either side. A stage's diagonals repeat with its largest block;
//! where that is the whole vector, diagonals wrap and only radix of them are left. Slots to coefficients
//! (StC) starts with the smallest blocks; coefficients to slots (CtS) is the exact inverse in the opposite
//! order, so that the order of the coefficients between them is free.
//!
//! Keys for both signs of a rotation would be twice as many. So every stage is shifted until its
//! diagonals start at 0, which leaves its output rotated. Later stages work on rotated slots with
//! rotated diagonals, and one rotation at the end, [`Transform::pending`], undoes all of it.

mod layers;

use super::linear_map::{Diagonals, LinearMap, MapPlan};
use crate::ckks::{EncodeAt, Encoder, Evaluator};
use crate::error::{HeError, parameters};
use layers::Diagonal;
use num_complex::Complex64;
use sudare_rlwe::Backend;

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The packed coefficients of the result are the slots of the input, in bit-reversed order.
    SlotsToCoefficients,
    /// The slots of the result are the packed coefficients of the input, in bit-reversed order.
    CoefficientsToSlots,
}

/// One of the matrices that a transform is a product of.
#[derive(Clone, Debug)]
pub struct Stage {
    unit: i64,
    /// Diagonals at multiples of the unit, from 0 on; each one period of values.
    diagonals: Diagonals<Complex64>,
}

/// A special FFT cut into stages.
#[derive(Clone, Debug)]
pub struct Transform {
    points: usize,
    stages: Vec<Stage>,
    pending: i64,
}

impl Transform {
    /// The transform on `points` slots (a power of two, repeated to fill all slots) in stages of
    /// `layers` butterfly layers each, in the order in which they are applied. `pending` is the rotation
    /// that the input comes with.
    ///
    /// # Errors
    /// `RlweError::Parameters` unless the layers add up to log2 `points`, each stage with one or more.
    pub fn new(points: usize, layers: &[u32], direction: Direction, pending: i64) -> Result<Self, HeError> {
        let log = points.max(1).ilog2();
        if !points.is_power_of_two() || points < 2 || layers.iter().sum::<u32>() != log || layers.contains(&0) {
            return Err(parameters(format!(
                "a transform of {points} points in stages of {layers:?} layers is not possible; take a power of two \
                 from 2 on, and layers of 1 or more that add up to its log2"
            )));
        }
        let mut stages = Vec::new();
        let (mut done, mut pending) = (0, pending);
        for count in layers {
            // Layer k joins blocks of 2^k slots from halves.
            let range = match direction {
                Direction::SlotsToCoefficients => done + 1..=done + count,
                Direction::CoefficientsToSlots => log - done - count + 1..=log - done,
            };
            done += count;
            let unit = 1i64 << (range.start() - 1);
            let matrix = layers::product(points, range, direction);
            let shift = -matrix.keys().next().copied().unwrap_or(0);
            pending += shift;
            let turned = |(t, mut d): (i64, Diagonal)| {
                let by = pending.rem_euclid(d.len() as i64) as usize;
                d.rotate_left(by);
                ((t + shift) / unit, d)
            };
            stages.push(Stage { unit, diagonals: matrix.into_iter().map(turned).collect() });
        }
        Ok(Self { points, stages, pending })
    }

    /// No transform: nothing is done.
    pub fn none(points: usize) -> Self {
        Self { points, stages: Vec::new(), pending: 0 }
    }

    /// The stages in the order of their application.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// How far to the left the output is rotated, that of the input included.
    pub fn pending(&self) -> i64 {
        self.pending
    }

    /// Multiplies every slot of the output, in its order without the pending rotation, by the entry of
    /// `mask` that stands there; `mask` repeats.
    pub fn mask_output(&mut self, mask: &[Complex64]) {
        let Some(last) = self.stages.last_mut() else { return };
        for diagonal in last.diagonals.values_mut() {
            let length = diagonal.len().max(mask.len());
            let mask = (0..length).map(|j| mask[(j as i64 + self.pending).rem_euclid(mask.len() as i64) as usize]);
            *diagonal = mask.zip(diagonal.iter().cycle()).map(|(m, d)| m * d).collect();
        }
    }

    /// Slots that are transformed.
    pub fn points(&self) -> usize {
        self.points
    }
}

impl Stage {
    /// Distance of its diagonals in slots.
    pub fn unit(&self) -> i64 {
        self.unit
    }

    /// Its diagonals by multiples of the unit.
    pub fn diagonals(&self) -> &Diagonals<Complex64> {
        &self.diagonals
    }

    /// One more than the highest diagonal's number.
    pub(crate) fn count(&self) -> usize {
        self.diagonals.keys().last().map_or(1, |t| *t as usize + 1)
    }

    /// (babies of one decomposition, decompositions) with which its map has the fewest turns.
    pub fn steps(&self, hoisted: usize) -> (usize, usize) {
        let count = self.count();
        let turns = |roots: &usize| roots - 1 + count.div_ceil(hoisted * roots) - 1;
        // Of equals the one with more roots: they need no division of c_0, and fewer sums are stored.
        let best = (1..=count.div_ceil(hoisted)).rev().min_by_key(turns).unwrap_or(1);
        (hoisted, best)
    }

    /// Its map times `factor` at a level, with `hoisted` babies of one decomposition; the diagonals'
    /// scale is `at.scale`.
    ///
    /// # Errors
    /// As [`LinearMap::chained`].
    pub fn map(&self, encoder: &Encoder, factor: f64, hoisted: usize, at: EncodeAt) -> Result<LinearMap, HeError> {
        let scaled = self.times(factor);
        let max_abs = largest(&scaled);
        LinearMap::chained(encoder, &scaled, self.unit, self.steps(hoisted), EncodeAt { max_abs, ..at })
    }

    /// The same as a backend keeps it.
    ///
    /// # Errors
    /// As [`Stage::map`].
    pub(crate) fn map_on<B: Backend>(
        &self,
        evaluator: &Evaluator<B>,
        factor: f64,
        hoisted: usize,
        at: EncodeAt,
    ) -> Result<LinearMap<B::Row>, HeError> {
        let (scaled, degree) = (self.times(factor), evaluator.params().degree());
        let plan = MapPlan::chained(degree, &scaled, self.unit, self.steps(hoisted), at.scale);
        LinearMap::planned(evaluator, &scaled, plan, EncodeAt { max_abs: largest(&scaled), ..at })
    }

    /// The same map without its values, over a ring of some degree.
    pub(crate) fn plan(&self, degree: usize, factor: f64, hoisted: usize, scale: f64) -> MapPlan {
        MapPlan::chained(degree, &self.times(factor), self.unit, self.steps(hoisted), scale).0
    }

    /// The map as a sum of rotated products, Σ_i ψ_i(d_i·x): without its values, and its diagonals, each turned back by its rotation.
    pub(crate) fn apart(&self, degree: usize, factor: f64, scale: f64) -> (MapPlan, Vec<Vec<Complex64>>) {
        let (plan, turned) = MapPlan::flat(degree, &self.times(factor), self.unit, 1, scale);
        (plan, turned.into_iter().flatten().collect())
    }

    fn times(&self, factor: f64) -> Diagonals<Complex64> {
        self.diagonals.iter().map(|(t, d)| (*t, d.iter().map(|x| x * factor).collect())).collect()
    }

    /// The plain map: slot i of the result is Σ_t d_t\[i\]·x\[i + unit·t\].
    pub fn apply(&self, x: &[Complex64]) -> Vec<Complex64> {
        let n = x.len() as i64;
        let term =
            |i: i64, t: i64, d: &[Complex64]| d[i as usize % d.len()] * x[(i + t * self.unit).rem_euclid(n) as usize];
        (0..n).map(|i| self.diagonals.iter().map(|(t, d)| term(i, *t, d)).sum()).collect()
    }
}

/// The largest absolute value.
fn largest(diagonals: &Diagonals<Complex64>) -> f64 {
    diagonals.values().flatten().map(|x| x.norm()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::embedding::Embedding;
    use sudare_ring::order::bit_reverse;

    fn vector(n: usize) -> Vec<Complex64> {
        (0..n).map(|j| Complex64::new((j as f64 * 0.37).sin(), (j as f64 * 1.91).cos())).collect()
    }

    fn rotated(x: &[Complex64], by: i64) -> Vec<Complex64> {
        let mut x = x.to_vec();
        let n = x.len() as i64;
        x.rotate_left(by.rem_euclid(n) as usize);
        x
    }

    fn reversed(x: &[Complex64]) -> Vec<Complex64> {
        (0..x.len()).map(|i| x[bit_reverse(i, x.len().ilog2())]).collect()
    }

    fn expect_close(a: &[Complex64], b: &[Complex64], what: &str) {
        let size = b.iter().map(|x| x.norm()).fold(1.0, f64::max);
        let error = a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) / size;
        assert!(error < 1e-13, "{what}: {error}");
    }

    const CUTS: [&[u32]; 8] =
        [&[8], &[4, 4], &[3, 5], &[5, 3], &[3, 3, 2], &[2, 3, 3], &[1, 1, 1, 1, 1, 1, 1, 1], &[1, 6, 1]];

    #[test]
    fn the_product_of_the_stages_is_the_embedding() {
        let x = vector(256);
        let mut embedded = x.clone();
        Embedding::new(512).unwrap().embed(&mut embedded);
        for cut in CUTS {
            for before in [0, 5, -3] {
                let t = Transform::new(256, cut, Direction::SlotsToCoefficients, before).unwrap();
                let start = rotated(&reversed(&x), before);
                let out = t.stages().iter().fold(start, |x, stage| stage.apply(&x));
                expect_close(&rotated(&out, -t.pending()), &embedded, "StC");
            }
        }
    }

    #[test]
    fn the_other_direction_is_its_inverse() {
        let x = vector(256);
        for (cut, other) in CUTS.iter().zip(CUTS.iter().rev()) {
            let forth = Transform::new(256, cut, Direction::SlotsToCoefficients, 0).unwrap();
            let back = Transform::new(256, other, Direction::CoefficientsToSlots, forth.pending()).unwrap();
            let out = forth.stages().iter().chain(back.stages()).fold(x.clone(), |x, stage| stage.apply(&x));
            expect_close(&rotated(&out, -back.pending()), &x, "CtS after StC");
        }
    }

    #[test]
    fn diagonals_and_periods() {
        let shape = |t: &Transform| -> Vec<(i64, usize, usize)> {
            let period = |s: &Stage| s.diagonals().values().map(Vec::len).max().unwrap_or(0);
            t.stages().iter().map(|s| (s.unit(), s.diagonals().len(), period(s))).collect()
        };
        let forth = Transform::new(1 << 15, &[5, 5, 5], Direction::SlotsToCoefficients, 0).unwrap();
        assert_eq!(shape(&forth), [(1, 63, 32), (32, 63, 1024), (1024, 32, 32768)]);
        assert_eq!(forth.pending(), 31 * 33);
        let back = Transform::new(1 << 15, &[5, 5, 5], Direction::CoefficientsToSlots, forth.pending()).unwrap();
        assert_eq!(shape(&back), [(1024, 32, 32768), (32, 63, 1024), (1, 63, 32)]);
        assert_eq!(back.pending(), 2 * 31 * 33);
        let mixed = Transform::new(1 << 10, &[3, 4, 3], Direction::CoefficientsToSlots, 0).unwrap();
        assert_eq!(shape(&mixed), [(128, 8, 1024), (8, 31, 128), (1, 15, 8)]);
        // Every radix: 2r − 1 diagonals, r where they wrap.
        for layers in 1..=9u32 {
            let t = Transform::new(1 << 10, &[layers, 10 - layers], Direction::SlotsToCoefficients, 0).unwrap();
            let counts: Vec<usize> = t.stages().iter().map(|s| s.diagonals().len()).collect();
            assert_eq!(counts, [(2 << layers) - 1, 1 << (10 - layers)]);
        }
    }

    #[test]
    fn the_output_can_be_masked() {
        let x = vector(64);
        let mask: Vec<Complex64> = (0..128).map(|j| Complex64::new(1.0 + j as f64, -0.5)).collect();
        let mut t = Transform::new(64, &[2, 4], Direction::CoefficientsToSlots, 3).unwrap();
        let input: Vec<Complex64> = rotated(&x, 3).into_iter().cycle().take(128).collect();
        let apply = |t: &Transform| t.stages().iter().fold(input.clone(), |x, stage| stage.apply(&x));
        let plain = rotated(&apply(&t), -t.pending());
        t.mask_output(&mask);
        let wanted: Vec<Complex64> = plain.iter().zip(&mask).map(|(x, m)| x * m).collect();
        expect_close(&rotated(&apply(&t), -t.pending()), &wanted, "mask");
    }

    #[test]
    fn steps_with_the_fewest_turns() {
        let t = Transform::new(1 << 15, &[5, 5, 5], Direction::SlotsToCoefficients, 0).unwrap();
        assert_eq!(t.stages()[0].steps(4), (4, 4));
        assert_eq!(t.stages()[2].steps(4), (4, 4));
        let small = Transform::new(1 << 3, &[3], Direction::SlotsToCoefficients, 0).unwrap();
        assert_eq!(small.stages()[0].steps(4), (4, 2));
    }

    #[test]
    fn refusals() {
        for (points, layers) in [(256, &[4, 3][..]), (256, &[8, 0]), (255, &[8]), (1, &[])] {
            assert!(Transform::new(points, layers, Direction::SlotsToCoefficients, 0).is_err());
        }
    }
}
