//! Bootstrapping keys from their seed and bodies: what travels.

use crate::core::context::check_shape;
use crate::core::glwe::check_below;
use crate::rotation::blind::BootstrapKey;
use crate::{GlweContext, TfheError, TfheParams};
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::{MaskSeed, uniform};
use sudare_ring::threads;

impl BootstrapKey {
    /// Steps of a key of these parameters.
    pub fn steps_of(params: &TfheParams) -> usize {
        params.literal().lwe_dimension.div_ceil(params.literal().unroll)
    }

    /// Body polynomials of a step of a key of these parameters.
    pub fn bodies_of(params: &TfheParams, step: usize) -> usize {
        let (literal, gadget) = (params.literal(), params.bootstrap_gadget());
        let bits = literal.unroll.min(literal.lwe_dimension - step * literal.unroll);
        ((1 << bits) - 1) * (literal.rank + 1) * gadget.levels as usize
    }

    /// The bodies of a step, polynomial after polynomial in evaluation form: those of its first
    /// encryption, then of the next.
    pub fn bodies(&self, step: usize) -> Vec<u64> {
        let (m, n) = (&self.steps[step], self.context.degree());
        let mut out = vec![0; m.groups() * m.rows() * n];
        for (i, p) in out.chunks_exact_mut(n).enumerate() {
            m.get(i / m.rows(), i % m.rows(), self.context.rank(), p);
        }
        out
    }

    /// A step of a key from the seed of its masks and its bodies, in the order of
    /// [`BootstrapKey::bodies`].
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a value not below q.
    pub fn step_from_bodies(
        params: &TfheParams,
        masks: &MaskSeed,
        step: usize,
        bodies: &[u64],
    ) -> Result<PackedMatrix, TfheError> {
        let context: &GlweContext = params.context();
        let (n, rank) = (context.degree(), context.rank());
        let count = Self::bodies_of(params, step);
        check_shape("body coefficients", count * n, bodies.len())?;
        check_below(context, bodies)?;
        let rows = (rank + 1) * params.bootstrap_gadget().levels as usize;
        let mut m = PackedMatrix::zeroed(context.limb(), count / rows, rows, rank + 1);
        let mut stream = masks.stream(step as u64);
        let mut mask = vec![0; rank * n];
        for (i, body) in bodies.chunks_exact(n).enumerate() {
            uniform(&mut stream, context.modulus(), &mut mask);
            for (c, a) in mask.chunks_exact(n).enumerate() {
                m.set(i / rows, i % rows, c, a);
            }
            m.set(i / rows, i % rows, rank, body);
        }
        Ok(m)
    }

    /// A key from its steps.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of them.
    pub fn from_steps(params: &TfheParams, masks: MaskSeed, steps: Vec<PackedMatrix>) -> Result<Self, TfheError> {
        check_shape("steps", Self::steps_of(params), steps.len())?;
        let literal = params.literal();
        Ok(Self {
            context: params.context().clone(),
            gadget: params.bootstrap_gadget(),
            unroll: literal.unroll,
            dimension: literal.lwe_dimension,
            masks,
            steps: PackedMatrix::gather(steps),
        })
    }

    /// A key from the seed of its masks and the bodies of every step, expanded in parallel inside a
    /// thread pool.
    ///
    /// # Errors
    /// As for [`BootstrapKey::step_from_bodies`].
    pub fn from_bodies(params: &TfheParams, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        check_shape("steps", Self::steps_of(params), bodies.len())?;
        let steps = threads::map(bodies.len(), |i| Self::step_from_bodies(params, &masks, i, &bodies[i]));
        Self::from_steps(params, masks, steps.into_iter().collect::<Result<_, _>>()?)
    }
}
