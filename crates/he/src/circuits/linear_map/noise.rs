//! Noise of a linear map.

use super::{Diagonal, LinearMap, MapPlan};
use crate::ckks::State;
use crate::ckks::noise::TAIL;
use sudare_rlwe::noise::ROUNDING_VARIANCE;
use sudare_rlwe::noise::Sketch;

impl MapPlan {
    pub(super) fn all_diagonals(&self) -> impl Iterator<Item = &Diagonal> {
        self.giants.iter().flat_map(|g| &g.diagonals)
    }

    /// Mean over the rows of Σ_t |d_t|²: what random slots' mean square is multiplied by.
    pub fn energy(&self) -> f64 {
        self.all_diagonals().map(|d| d.mean_square).sum()
    }

    /// The root of each baby, and whether the baby is a rotation of it.
    fn babies(&self) -> Vec<(usize, bool)> {
        let of_root = |(r, root): (usize, &super::Root)| root.babies.iter().map(|e| (r, *e != 1)).collect::<Vec<_>>();
        self.roots.iter().enumerate().flat_map(of_root).collect()
    }

    /// Turns that divide c_1 by P after the products with diagonals.
    pub(super) fn late_turns(&self) -> usize {
        self.giants.iter().filter(|g| g.turn != 1).count()
    }

    /// Bound on the canonical norm of the error before the last division, in integer units.
    pub(super) fn noise(&self, chain: &Sketch, a: State, level: usize) -> f64 {
        let switching = chain.switching(level).bound(&TAIL);
        let turn = switching + chain.division(2).bound(&TAIL);
        let babies = self.babies();
        let term = |d: &Diagonal| {
            let (root, rotated) = babies[d.baby];
            let before = a.noise + root as f64 * turn + if rotated { switching } else { 0.0 };
            let noise = d.noise(self.degree, self.scale);
            before * (d.bound * self.scale + noise) + a.bound * a.scale * noise
        };
        self.all_diagonals().map(term).sum::<f64>() + self.late_turns() as f64 * turn
    }

    /// Variance of a slot's error before the last division, E|e|² in integer units, of the map as it is without any key switch: for
    /// an input at `scale` whose slots have mean square `message` and an error of variance `input`, both in units of the message.
    pub fn own_variance(&self, scale: f64, message: f64, input: f64) -> f64 {
        let term =
            |d: &Diagonal| (input * d.mean_square * self.scale * self.scale + message * d.rounding) * scale * scale;
        self.all_diagonals().map(term).sum()
    }

    /// Variance of a slot's error before the last division, E|e|² in integer units, for an input at `level`
    /// and `scale` whose slots have mean square `message` and an error of variance `input`, both in units of
    /// the message.
    pub fn variance(&self, chain: &Sketch, level: usize, scale: f64, message: f64, input: f64) -> f64 {
        let n = self.degree as f64;
        let switching = n * chain.switching(level).variance();
        // c_0 is not divided: what rounding c_1 leaves is multiplied by the secret.
        let turn = switching + n * chain.secret_weight() * ROUNDING_VARIANCE;
        let babies = self.babies();
        let term = |d: &Diagonal| {
            let (root, rotated) = babies[d.baby];
            let before = root as f64 * turn + if rotated { switching } else { 0.0 };
            before * d.mean_square * self.scale * self.scale
        };
        let switched = self.all_diagonals().map(term).sum::<f64>() + self.late_turns() as f64 * turn;
        switched + self.own_variance(scale, message, input)
    }
}

impl LinearMap {
    /// Variance of a slot's error after the map and its rescale, E|e|² in units of the output, for an input
    /// at `level` and `scale` whose slots have mean square `message` and an error of variance `input`, both in
    /// units of the message.
    pub fn variance(&self, level: usize, scale: f64, message: f64, input: f64) -> f64 {
        let chain = self.params.sketch();
        let q = chain.q()[level];
        let before = self.plan.variance(chain, level, scale, message, input);
        (before / (q * q) + chain.degree() * chain.division(2).variance()) * (q / (scale * self.plan.scale)).powi(2)
    }
}
