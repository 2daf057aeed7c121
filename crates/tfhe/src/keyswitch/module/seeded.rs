//! Switching keys from their seed and bodies: what travels.

use crate::core::context::check_shape;
use crate::core::glwe::check_below;
use crate::keyswitch::lwe::LweSwitchKey;
use crate::keyswitch::module::{ModuleSwitchKey, SwitchKey};
use crate::{TfheError, TfheParams};
use sudare_ring::random::MaskSeed;

impl ModuleSwitchKey {
    /// The bodies, polynomial after polynomial in evaluation form.
    pub fn bodies(&self) -> Vec<u64> {
        let n = self.from.degree();
        let mut out = vec![0; self.rows() * n];
        if let Some(last) = self.columns.last() {
            for (row, p) in out.chunks_exact_mut(n).enumerate() {
                last.get(0, row, last.columns() - 1, p);
            }
        }
        out
    }

    /// A key of these parameters from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies, `RlweError::Ring` for one that is too
    /// large, [`TfheError::Parameters`] for parameters that have no such key.
    pub fn from_bodies(params: &TfheParams, masks: MaskSeed, bodies: &[u64]) -> Result<Self, TfheError> {
        let context = params.context();
        let mut key = Self::empty(context, params.literal().lwe_dimension, params.switch_gadget(), masks)?;
        let n = context.degree();
        check_shape("switching key bodies", key.rows() * n, bodies.len())?;
        check_below(context, bodies)?;
        let (mut stream, mut mask) = (masks.stream(0), vec![0; key.rank() * n]);
        for (row, body) in bodies.chunks_exact(n).enumerate() {
            key.draw_mask(&mut stream, &mut mask);
            key.set_row(row, &mask, body);
        }
        Ok(key)
    }
}

impl SwitchKey {
    /// How many bodies a key of these parameters has: 32-bit words, or residues modulo q where it
    /// works inside the ring.
    pub fn bodies_of(params: &TfheParams) -> usize {
        params.context().lwe_dimension() * params.switch_gadget().levels as usize
    }

    /// The bodies.
    pub fn bodies(&self) -> Vec<u64> {
        match self {
            Self::Lwe(key) => key.bodies().into_iter().map(u64::from).collect(),
            Self::Module(key) => key.bodies(),
        }
    }

    /// A key from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies, `RlweError::Ring` for one that is too large.
    pub fn from_bodies(params: &TfheParams, masks: MaskSeed, bodies: &[u64]) -> Result<Self, TfheError> {
        if params.literal().module_switch {
            return Ok(Self::Module(ModuleSwitchKey::from_bodies(params, masks, bodies)?));
        }
        let too_large = |index| sudare_ring::RingError::Coefficient { limb: 0, index };
        let bodies = bodies.iter().enumerate().map(|(i, b)| u32::try_from(*b).map_err(|_| too_large(i)));
        Ok(Self::Lwe(LweSwitchKey::from_bodies(params, masks, &bodies.collect::<Result<Vec<_>, _>>()?)?))
    }

    /// Dimensions that it takes and gives.
    pub fn dimensions(&self) -> (usize, usize) {
        match self {
            Self::Lwe(key) => (key.from_dimension(), key.to_dimension()),
            Self::Module(key) => (key.from.lwe_dimension(), key.dimension),
        }
    }
}
