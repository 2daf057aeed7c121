//! Noise of a linear map.

use super::{Diagonal, LinearMap};
use crate::ckks::Ciphertext;
use crate::ckks::noise::{ROUNDING_VARIANCE, division_bound, division_variance, secret_variance};
use crate::ckks::noise::{switching_bound, switching_variance};

impl LinearMap {
    fn all_diagonals(&self) -> impl Iterator<Item = &Diagonal> {
        self.giants.iter().flat_map(|g| &g.diagonals)
    }

    /// Mean over the rows of Σ_t |d_t|²: what random slots' mean square is multiplied by.
    pub(crate) fn energy(&self) -> f64 {
        self.all_diagonals().map(|d| d.mean_square).sum()
    }

    /// The root of each baby, and whether the baby is a rotation of it.
    fn babies(&self) -> Vec<(usize, bool)> {
        let of_root = |(r, root): (usize, &super::Root)| root.babies.iter().map(|e| (r, *e != 1)).collect::<Vec<_>>();
        self.roots.iter().enumerate().flat_map(of_root).collect()
    }

    /// Turns that divide c_1 by P after the products with diagonals.
    fn late_turns(&self) -> usize {
        self.giants.iter().filter(|g| g.turn != 1).count()
    }

    /// Bound on the canonical norm of the error before the last division, in integer units.
    pub(super) fn noise(&self, a: &Ciphertext) -> f64 {
        let switching = switching_bound(&self.params, a.level);
        let turn = switching + division_bound(&self.params, 2);
        let babies = self.babies();
        let term = |d: &Diagonal| {
            let (root, rotated) = babies[d.baby];
            let before = a.noise + root as f64 * turn + if rotated { switching } else { 0.0 };
            before * (d.bound * self.scale + d.noise) + a.bound * a.scale * d.noise
        };
        self.all_diagonals().map(term).sum::<f64>() + self.late_turns() as f64 * turn
    }

    /// Variance of a slot's error, E|e|² in units of the output, for an input at `level` and `scale` whose
    /// slots have mean square `message` and an error of variance `input`, both in units of the message.
    pub fn variance(&self, level: usize, scale: f64, message: f64, input: f64) -> f64 {
        let q = self.params.prime_at(level) as f64;
        (self.variance_before_division(level, scale, message, input) / (q * q)
            + self.params.degree() as f64 * division_variance(&self.params, 2))
            * (q / (scale * self.scale)).powi(2)
    }

    /// The same in integer units, before the last division.
    pub(crate) fn variance_before_division(&self, level: usize, scale: f64, message: f64, input: f64) -> f64 {
        let n = self.params.degree() as f64;
        let switching = n * switching_variance(&self.params, level);
        // c_0 is not divided: what rounding c_1 leaves is multiplied by the secret.
        let turn = switching + n * n * secret_variance(&self.params) * ROUNDING_VARIANCE;
        let babies = self.babies();
        let term = |d: &Diagonal| {
            let (root, rotated) = babies[d.baby];
            let before = input * scale * scale + root as f64 * turn + if rotated { switching } else { 0.0 };
            before * d.mean_square * self.scale * self.scale
                + message * scale * scale * ROUNDING_VARIANCE * (2 * d.period) as f64
        };
        self.all_diagonals().map(term).sum::<f64>() + self.late_turns() as f64 * turn
    }
}
