//! LWE switching keys from their seed and bodies: what travels.

use super::super::context::check_shape;
use super::super::glwe::check_below;
use super::super::lwe::fill_torus;
use super::super::{Gadget, GlweContext, SecretKind, TfheError, TfheParams};
use super::{GlweSwitchKey, LweSwitchKey, ROW_ALIGN};
use sudare_ring::buffer::Pages;
use sudare_ring::kernel::{Family, PackedMatrix};
use sudare_ring::random::{MaskSeed, uniform};

impl LweSwitchKey {
    /// Bodies of a key of these parameters: one for each digit of each input coefficient.
    pub fn bodies_of(params: &TfheParams) -> usize {
        params.context().lwe_dimension() * params.switch_gadget().levels as usize
    }

    /// The bodies, level after level of each input coefficient.
    pub fn bodies(&self) -> Vec<u32> {
        let rows: &[u32] = bytemuck::cast_slice(&self.rows);
        rows.chunks_exact(self.stride).map(|row| row[self.to]).collect()
    }

    /// A server's key from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies.
    pub fn from_bodies(params: &TfheParams, masks: MaskSeed, bodies: &[u32]) -> Result<Self, TfheError> {
        check_shape("switching key bodies", Self::bodies_of(params), bodies.len())?;
        let (from, n, gadget) =
            (params.context().lwe_dimension(), params.literal().lwe_dimension, params.switch_gadget());
        let (levels, stride) = (gadget.levels as usize, (n + 1).next_multiple_of(ROW_ALIGN));
        // Rows are whole vectors, so an even number of 32-bit words.
        let mut rows = Pages::zeroed(bodies.len() * stride / 2);
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut rows);
        for (i, (block, bodies)) in words.chunks_exact_mut(levels * stride).zip(bodies.chunks_exact(levels)).enumerate()
        {
            let mut stream = masks.stream(i as u64);
            for (row, body) in block.chunks_exact_mut(stride).zip(bodies) {
                fill_torus(&mut stream, &mut row[..n]);
                row[n] = *body;
            }
        }
        let family = Family::choose_unbounded()?;
        Ok(Self { gadget, from, to: n, secret: SecretKind::Binary, masks, family, rows, stride })
    }
}

impl GlweSwitchKey {
    /// The bodies, polynomial after polynomial in evaluation form.
    pub fn bodies(&self) -> Vec<u64> {
        let (n, rows) = (self.context.degree(), self.matrix.rows());
        let mut out = vec![0; rows * n];
        for (row, p) in out.chunks_exact_mut(n).enumerate() {
            self.matrix.get(0, row, self.context.rank(), p);
        }
        out
    }

    /// A key to ciphertexts of `context` from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Ring`] for a value not below q.
    pub fn from_bodies(
        context: &GlweContext,
        from_rank: usize,
        gadget: Gadget,
        masks: MaskSeed,
        bodies: &[u64],
    ) -> Result<Self, TfheError> {
        let (n, rank, rows) = (context.degree(), context.rank(), from_rank * gadget.levels as usize);
        check_shape("body coefficients", rows * n, bodies.len())?;
        check_below(context, bodies)?;
        let mut matrix = PackedMatrix::zeroed(context.limb(), 1, rows, rank + 1);
        let mut stream = masks.stream(0);
        let mut mask = vec![0; rank * n];
        for (row, body) in bodies.chunks_exact(n).enumerate() {
            uniform(&mut stream, context.modulus(), &mut mask);
            for (c, a) in mask.chunks_exact(n).enumerate() {
                matrix.set(0, row, c, a);
            }
            matrix.set(0, row, rank, body);
        }
        Ok(Self { from_rank, context: context.clone(), gadget, masks, matrix })
    }
}
