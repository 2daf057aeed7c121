//! Switching keys from their seed and bodies: what travels.

use super::super::key_switch::{GlweSwitchKey, LweSwitchKey};
use super::super::{GlweContext, SecretKind, TfheError, TfheParams};
use super::{RingSwitchKey, SwitchKey};
use sudare_ring::random::MaskSeed;

impl SwitchKey {
    /// How many bodies a key of these parameters has: 32-bit words, or residues modulo q where it
    /// works inside the ring.
    pub fn bodies_of(params: &TfheParams) -> usize {
        match params.ring_switch_noise() {
            Some(_) => params.context().lwe_dimension() * params.switch_gadget().levels as usize,
            None => LweSwitchKey::bodies_of(params),
        }
    }

    /// The bodies.
    pub fn bodies(&self) -> Vec<u64> {
        match self {
            Self::Lwe(key) => key.bodies().into_iter().map(u64::from).collect(),
            Self::Ring(key) => key.key.bodies(),
        }
    }

    /// A key from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies, [`TfheError::Ring`] for one that is too large.
    pub fn from_bodies(params: &TfheParams, masks: MaskSeed, bodies: &[u64]) -> Result<Self, TfheError> {
        let (context, dimension) = (params.context(), params.literal().lwe_dimension);
        if let Some(noise) = params.ring_switch_noise() {
            let (n, rank) = (context.degree(), dimension.div_ceil(context.degree()));
            let partial = GlweContext::new(n, context.q(), rank, SecretKind::Binary, noise)?;
            let gadget = params.switch_gadget();
            let key = GlweSwitchKey::from_bodies(&partial, context.rank(), gadget, masks, bodies)?;
            return Ok(Self::Ring(RingSwitchKey { from: context.clone(), dimension, key }));
        }
        let too_large = |index| sudare_ring::RingError::Coefficient { limb: 0, index };
        let bodies = bodies.iter().enumerate().map(|(i, b)| u32::try_from(*b).map_err(|_| too_large(i)));
        Ok(Self::Lwe(LweSwitchKey::from_bodies(params, masks, &bodies.collect::<Result<Vec<_>, _>>()?)?))
    }

    /// Dimensions that it takes and gives.
    pub fn dimensions(&self) -> (usize, usize) {
        match self {
            Self::Lwe(key) => (key.from_dimension(), key.to_dimension()),
            Self::Ring(key) => (key.from.lwe_dimension(), key.dimension),
        }
    }
}
