//! LWE switching keys from their seed and bodies: what travels.

use super::super::context::check_shape;
use super::super::lwe::fill_torus;
use super::super::{SecretKind, TfheError, TfheParams};
use super::{LweSwitchKey, ROW_ALIGN};
use sudare_ring::buffer::Pages;
use sudare_ring::random::MaskSeed;

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
        Ok(Self { gadget, from, to: n, secret: SecretKind::Binary, masks, rows, stride })
    }
}
