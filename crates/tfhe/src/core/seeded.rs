//! Matrices of GLWE rows as they travel: bodies, and a seed for the masks.

use crate::core::context::check_shape;
use crate::core::glwe::check_below;
use crate::{GlweContext, TfheError};
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::{Stream, uniform};
use sudare_ring::threads;

/// The bodies of a matrix of GLWE rows, row after row of each group.
pub(crate) fn bodies_of(m: &PackedMatrix, degree: usize) -> Vec<u64> {
    let mut out = vec![0; m.groups() * m.rows() * degree];
    for (i, p) in out.chunks_exact_mut(degree).enumerate() {
        m.get(i / m.rows(), i % m.rows(), m.columns() - 1, p);
    }
    out
}

/// The last columns of matrices alone; in parallel inside a thread pool.
pub(crate) fn bodies_alone(context: &GlweContext, matrices: &[PackedMatrix]) -> Vec<PackedMatrix> {
    threads::map(matrices.len(), |i| {
        let (m, mut body) = (&matrices[i], vec![0; context.degree()]);
        let mut bodies = PackedMatrix::zeroed(context.limb(), m.groups(), m.rows(), 1);
        for (group, row) in (0..m.groups()).flat_map(|g| (0..m.rows()).map(move |r| (g, r))) {
            m.get(group, row, m.columns() - 1, &mut body);
            bodies.set(group, row, 0, &body);
        }
        bodies
    })
}

/// `groups` matrices of `rows` GLWE rows with these bodies, their masks the next of a stream.
///
/// # Errors
/// [`TfheError::Shape`] for the wrong number of residues, `RlweError::Ring` for one that is not below q.
pub(crate) fn expanded(
    context: &GlweContext,
    stream: &mut Stream,
    (groups, rows): (usize, usize),
    bodies: &[u64],
) -> Result<PackedMatrix, TfheError> {
    let (n, k) = (context.degree(), context.rank());
    check_shape("body coefficients", groups * rows * n, bodies.len())?;
    check_below(context, bodies)?;
    let mut m = PackedMatrix::zeroed(context.limb(), groups, rows, k + 1);
    let mut mask = vec![0; k * n];
    for (i, body) in bodies.chunks_exact(n).enumerate() {
        uniform(stream, context.modulus(), &mut mask);
        let (group, row) = (i / rows, i % rows);
        mask.chunks_exact(n).enumerate().for_each(|(c, a)| m.set(group, row, c, a));
        m.set(group, row, k, body);
    }
    Ok(m)
}
