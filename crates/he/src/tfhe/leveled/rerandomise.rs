//! Fresh masks for a result, from the client's encryptions of zero.

use super::super::TfheError;
use super::super::context::check_shape;
use super::super::variance;
use super::ciphertext::{LeveledGlwe, meet};
use super::{LeveledParams, LeveledServer};
use sudare_ring::buffer::Buffer;
use sudare_ring::random::{Seed, ternary};
use zeroize::Zeroizing;

/// What new masks from encryptions of zero of variance `zero` add to the noise variance: `Σ u_j·e_j + e_0 − Σ e_i·S_i`
/// with ternary u.
pub fn rerandomised(params: &LeveledParams, zeros: usize, zero: f64) -> f64 {
    let (context, fresh) = (params.context(), variance::glwe_fresh(params.context()));
    let masks = context.lwe_dimension() as f64 * context.secret().mean_square();
    zeros as f64 * context.degree() as f64 * (2.0 / 3.0) * zero + fresh * (1.0 + masks)
}

impl LeveledServer {
    /// The same message under masks that tell nothing of the old ones: `c + Σ u_j·zeros_j + (e_1, …, e_k, e_0)` with
    /// secret ternary u_j and fresh errors, drawn from `seed`. There are as many encryptions of zero as masks, so the
    /// masks are hidden by module LWE of the ciphertexts' own rank, also from the client.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of zeros than the rank; [`TfheError::LeveledNoise`],
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`].
    pub fn rerandomise(&self, c: &LeveledGlwe, zeros: &[LeveledGlwe], seed: &Seed) -> Result<LeveledGlwe, TfheError> {
        let (context, mut owner) = (self.params().context(), (self.params().hash(), None));
        check_shape("encryptions of zero", context.rank(), zeros.len())?;
        for x in zeros.iter().chain([c]) {
            owner = meet("an encryption of zero", owner, x.owner())?;
        }
        let zero = zeros.iter().fold(0f64, |most, z| most.max(z.variance()));
        let variance = c.variance() + rerandomised(self.params(), zeros.len(), zero);
        self.params().check_variance("rerandomisation", variance)?;
        let (n, limb) = (context.degree(), context.limb());
        let mut sum = Buffer::zeroed(context.words());
        let mut small = Zeroizing::new(vec![0i64; n]);
        let mut u = Zeroizing::new(vec![0u64; n]);
        let mut p = Buffer::dirty(n);
        for (j, z) in zeros.iter().enumerate() {
            ternary(&mut seed.derive("sudare leveled rerandomisation", j as u64).stream(0), &mut small);
            limb.from_i64(&mut u, &small);
            limb.forward(&mut u);
            for (sum, z) in sum.chunks_exact_mut(n).zip(z.ciphertext().words().chunks_exact(n)) {
                p.copy_from_slice(z);
                limb.forward(&mut p);
                limb.mul_add(sum, &p, &u);
            }
        }
        let mut errors = seed.derive("sudare leveled rerandomisation errors", 0).stream(0);
        let mut out = c.ciphertext().clone();
        for (sum, out) in sum.chunks_exact_mut(n).zip(out.words_mut().chunks_exact_mut(n)) {
            limb.inverse(sum);
            limb.add_assign(out, sum);
            context.noise().sample(&mut errors, &mut small);
            limb.from_i64(&mut u, &small);
            limb.add_assign(out, &u);
        }
        Ok(LeveledGlwe::from_parts(out, variance, owner))
    }
}
