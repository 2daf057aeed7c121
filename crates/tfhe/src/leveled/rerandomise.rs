//! Fresh masks for a result, from the client's encryptions of zero.

use super::ciphertext::{LeveledGlwe, meet};
use super::{LeveledParams, LeveledServer};
use crate::TfheError;
use crate::core::context::check_shape;
use crate::noise::variance;
use sudare_ring::random::Seed;

/// What new masks from encryptions of zero of variance `zero` add to the noise variance: `Σ u_j·e_j + e_0 − Σ e_i·S_i`
/// with ternary u.
pub fn rerandomised(params: &LeveledParams, zeros: usize, zero: f64) -> f64 {
    variance::hidden(params.context(), zeros, zero)
}

impl LeveledServer {
    /// The same message under masks that tell nothing of the old ones: `c + Σ u_j·zeros_j + (e_1, …, e_k, e_0)` with
    /// secret ternary u_j and fresh errors, drawn from `seed`. There are as many encryptions of zero as masks, so the
    /// masks are hidden by module LWE of the ciphertexts' own rank, also from the client.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of zeros than the rank; [`TfheError::LeveledNoise`],
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn rerandomise(&self, c: &LeveledGlwe, zeros: &[LeveledGlwe], seed: &Seed) -> Result<LeveledGlwe, TfheError> {
        let (context, mut owner) = (self.params().context(), (self.params().hash(), None));
        check_shape("encryptions of zero", context.rank(), zeros.len())?;
        for x in zeros.iter().chain([c]) {
            owner = meet("an encryption of zero", owner, x.owner())?;
        }
        let zero = zeros.iter().fold(0f64, |most, z| most.max(z.variance()));
        let variance = c.variance() + rerandomised(self.params(), zeros.len(), zero);
        self.params().check_variance("rerandomisation", variance)?;
        let errors = seed.derive("sudare leveled rerandomisation errors", 0);
        let factors = |j| seed.derive("sudare leveled rerandomisation", j);
        let mut out = c.ciphertext().clone();
        out.hide(zeros.iter().map(LeveledGlwe::ciphertext), factors, &errors);
        Ok(LeveledGlwe::from_parts(out, variance, owner))
    }
}
