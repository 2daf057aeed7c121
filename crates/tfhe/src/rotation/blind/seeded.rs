//! Bootstrapping keys from their seed and bodies: what travels.

use crate::core::context::check_shape;
use crate::core::seeded::expanded;
use crate::rotation::blind::BootstrapKey;
use crate::rotation::steps::Steps;
use crate::{TfheError, TfheParams};
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::MaskSeed;
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

    /// A step of a key from the seed of its masks and its bodies, in the order of
    /// [`Steps::bodies`](crate::Steps::bodies).
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a value not below q.
    pub fn step_from_bodies(
        params: &TfheParams,
        masks: &MaskSeed,
        step: usize,
        bodies: &[u64],
    ) -> Result<PackedMatrix, TfheError> {
        let rows = (params.context().rank() + 1) * params.bootstrap_gadget().levels as usize;
        let groups = Self::bodies_of(params, step) / rows;
        expanded(params.context(), &mut masks.stream(step as u64), (groups, rows), bodies)
    }

    /// A key from its steps.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of them.
    pub fn from_steps(params: &TfheParams, masks: MaskSeed, steps: Vec<PackedMatrix>) -> Result<Self, TfheError> {
        check_shape("steps", Self::steps_of(params), steps.len())?;
        let (literal, gadget) = (params.literal(), params.bootstrap_gadget());
        let steps = Steps::new(params.context(), gadget, masks, PackedMatrix::gather(steps));
        Ok(Self { steps, unroll: literal.unroll, dimension: literal.lwe_dimension })
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
