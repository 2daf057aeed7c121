//! Keys of circuit bootstrapping from their seeds and bodies: what travels.

use super::super::automorphism::AutomorphismKey;
use super::super::context::check_shape;
use super::super::glwe::check_below;
use super::super::{GlweContext, ServerKey, TfheError};
use super::{CircuitKey, CircuitParams, SchemeSwitchKey, TraceKey};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::{MaskSeed, uniform};
use sudare_ring::threads;

/// The bodies of a matrix of GLWE rows, row after row.
fn bodies_of(m: &PackedMatrix, degree: usize) -> Vec<u64> {
    let mut out = vec![0; m.rows() * degree];
    out.chunks_exact_mut(degree).enumerate().for_each(|(row, p)| m.get(0, row, m.columns() - 1, p));
    out
}

/// Rows with these bodies and the masks of a stream.
fn rows(
    context: &GlweContext,
    masks: &MaskSeed,
    stream: u64,
    count: usize,
    bodies: &[u64],
) -> Result<PackedMatrix, TfheError> {
    let (n, k) = (context.degree(), context.rank());
    check_shape("body coefficients", count * n, bodies.len())?;
    check_below(context, bodies)?;
    let mut m = PackedMatrix::zeroed(context.limb(), 1, count, k + 1);
    let mut stream = masks.stream(stream);
    let mut mask = vec![0; k * n];
    for (row, body) in bodies.chunks_exact(n).enumerate() {
        uniform(&mut stream, context.modulus(), &mut mask);
        mask.chunks_exact(n).enumerate().for_each(|(c, a)| m.set(0, row, c, a));
        m.set(0, row, k, body);
    }
    Ok(m)
}

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
    /// [`TfheError::Shape`], [`TfheError::Ring`] for a residue not below q.
    pub fn from_bodies(params: &CircuitParams, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        let (context, gadget) = (params.context(), params.trace_gadget());
        let n = context.degree();
        check_shape("steps of the trace", n.trailing_zeros() as usize, bodies.len())?;
        let count = context.rank() * gadget.levels as usize;
        let steps = threads::map(bodies.len(), |t| {
            let permutation = EvalPermutation::new(n, (n >> t) as u64 + 1)?;
            Ok(AutomorphismKey::from_parts(permutation, rows(context, &masks, t as u64, count, &bodies[t])?))
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
    /// [`TfheError::Shape`], [`TfheError::Ring`] for a residue not below q.
    pub fn from_bodies(params: &CircuitParams, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        let (context, gadget) = (params.context(), params.scheme_gadget());
        check_shape("matrices of the scheme switch", context.rank(), bodies.len())?;
        let count = context.rank() * gadget.levels as usize;
        let matrices = bodies.iter().enumerate().map(|(c, b)| rows(context, &masks, c as u64, count, b));
        let matrices = matrices.collect::<Result<_, _>>()?;
        Ok(Self { context: context.clone(), gadget, masks, matrices })
    }
}

impl CircuitKey {
    /// A key from its parts, all of one client.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`] for a server key of another set; [`TfheError::Modulus`], [`TfheError::Shape`].
    pub fn from_parts(
        params: &CircuitParams,
        server: ServerKey,
        trace: TraceKey,
        scheme: SchemeSwitchKey,
    ) -> Result<Self, TfheError> {
        let (found, expected) = (server.params().hash(), params.tfhe().hash());
        if found != expected {
            return Err(TfheError::WrongParameters { what: "the server key", found, expected });
        }
        params.context().check(&trace.context)?;
        params.context().check(&scheme.context)?;
        Ok(Self { params: params.clone(), server, trace, scheme })
    }
}
