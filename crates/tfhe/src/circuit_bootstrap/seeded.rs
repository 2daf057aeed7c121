//! Keys of circuit bootstrapping from their seeds and bodies: what travels.

use super::{CircuitKey, CircuitParams, SchemeSwitchKey, TraceKey};
use crate::core::context::check_shape;
use crate::core::seeded::{bodies_of, expanded};
use crate::keyswitch::automorphism::AutomorphismKey;
use crate::{ServerKey, TfheError};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::random::MaskSeed;
use sudare_ring::threads;

impl TraceKey {
    /// Bodies of each of the log2 N steps.
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        self.steps.iter().map(|s| bodies_of(s.matrix(), self.context.degree())).collect()
    }

    /// Residues of the bodies of a step.
    pub fn step_bodies_of(params: &CircuitParams) -> usize {
        params.context().lwe_dimension() * params.trace_gadget().levels as usize
    }

    /// A key from the seed of its masks and its bodies, expanded in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a residue not below q.
    pub fn from_bodies(params: &CircuitParams, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        let (context, gadget) = (params.context(), params.trace_gadget());
        let n = context.degree();
        check_shape("steps of the trace", n.trailing_zeros() as usize, bodies.len())?;
        let count = context.rank() * gadget.levels as usize;
        let steps = threads::map(bodies.len(), |t| {
            let permutation = EvalPermutation::new(n, (n >> t) as u64 + 1)?;
            Ok(AutomorphismKey::from_parts(
                permutation,
                expanded(context, &mut masks.stream(t as u64), (1, count), &bodies[t])?,
            ))
        });
        let steps = steps.into_iter().collect::<Result<_, TfheError>>()?;
        Ok(Self { context: context.clone(), gadget, masks, steps })
    }
}

impl SchemeSwitchKey {
    /// Bodies of the matrix of each S_c.
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        self.matrices.iter().map(|m| bodies_of(m, self.context.degree())).collect()
    }

    /// Residues of the bodies of a matrix.
    pub fn matrix_bodies_of(params: &CircuitParams) -> usize {
        params.context().lwe_dimension() * params.scheme_gadget().levels as usize
    }

    /// A key from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a residue not below q.
    pub fn from_bodies(params: &CircuitParams, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        let (context, gadget) = (params.context(), params.scheme_gadget());
        check_shape("matrices of the scheme switch", context.rank(), bodies.len())?;
        let count = context.rank() * gadget.levels as usize;
        let matrices =
            bodies.iter().enumerate().map(|(c, b)| expanded(context, &mut masks.stream(c as u64), (1, count), b));
        let matrices = matrices.collect::<Result<_, _>>()?;
        Ok(Self { context: context.clone(), gadget, masks, matrices })
    }
}

impl CircuitKey {
    /// A key from its parts, all of one client.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a server key of another set; [`TfheError::Modulus`], [`TfheError::Shape`].
    pub fn from_parts(
        params: &CircuitParams,
        server: ServerKey,
        trace: TraceKey,
        scheme: SchemeSwitchKey,
    ) -> Result<Self, TfheError> {
        params.tfhe().hash().require("the server key", server.params().hash())?;
        params.context().check(&trace.context)?;
        params.context().check(&scheme.context)?;
        Ok(Self { params: params.clone(), server, trace, scheme })
    }
}
