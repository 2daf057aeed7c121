//! Keys of FHEW from their seeds and bodies: what travels.
//!
//! A part is what one stream of masks makes: the encryptions of one coefficient of the LWE key, or one
//! automorphism key.

use crate::boolean::fhew::gates::Accumulator;
use crate::boolean::fhew::{AutomorphismBootstrapKey, DigitBootstrapKey, FhewKey, FhewMethod, FhewParams, digits};
use crate::core::context::check_shape;
use crate::core::seeded::{bodies_of, expanded};
use crate::{SwitchKey, TfheError};
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::MaskSeed;
use sudare_rlwe::KeyId;

/// Matrices of a part, and the rows of each.
fn shape(params: &FhewParams, part: usize) -> (usize, usize) {
    let (context, levels) = (params.tfhe().context(), params.tfhe().bootstrap_gadget().levels as usize);
    match params.method() {
        FhewMethod::Digits { base_log } => {
            (digits::keys_of(2 * context.degree(), base_log), (context.rank() + 1) * levels)
        }
        FhewMethod::Automorphisms { .. } if part < params.tfhe().literal().lwe_dimension => {
            (1, (context.rank() + 1) * levels)
        }
        FhewMethod::Automorphisms { .. } => (1, context.rank() * levels),
    }
}

impl FhewKey {
    /// Parts of the accumulator's key of these parameters.
    pub fn parts_of(params: &FhewParams) -> usize {
        let dimension = params.tfhe().literal().lwe_dimension;
        match params.method() {
            FhewMethod::Digits { .. } => dimension,
            FhewMethod::Automorphisms { window } => dimension + window + 1,
        }
    }

    /// Body polynomials of a part.
    pub fn bodies_of(params: &FhewParams, part: usize) -> usize {
        let (matrices, rows) = shape(params, part);
        matrices * rows
    }

    /// The seed of the accumulator's masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        match &self.accumulator {
            Accumulator::Digits(key) => key.mask_seed(),
            Accumulator::Automorphisms(key) => key.mask_seed(),
        }
    }

    /// The key switch.
    pub fn switch_key(&self) -> &SwitchKey {
        &self.switch
    }

    /// The bodies of a part, polynomial after polynomial in evaluation form.
    pub fn bodies(&self, part: usize) -> Vec<u64> {
        let n = self.params.tfhe().context().degree();
        match &self.accumulator {
            Accumulator::Digits(key) => key.keys[part].iter().flat_map(|m| bodies_of(m, n)).collect(),
            Accumulator::Automorphisms(key) => bodies_of(key.part(part), n),
        }
    }

    /// The matrices of a part, from the seed of the accumulator's masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a value not below q.
    pub fn part_from_bodies(
        params: &FhewParams,
        masks: &MaskSeed,
        part: usize,
        bodies: &[u64],
    ) -> Result<Vec<PackedMatrix>, TfheError> {
        let (context, (matrices, rows)) = (params.tfhe().context(), shape(params, part));
        check_shape("body coefficients", matrices * rows * context.degree(), bodies.len())?;
        let mut stream = masks.stream(part as u64);
        bodies.chunks_exact(rows * context.degree()).map(|b| expanded(context, &mut stream, (1, rows), b)).collect()
    }

    /// A key from its parts.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of them or a key switch of other parameters.
    pub fn from_parts(
        params: &FhewParams,
        id: KeyId,
        switch: SwitchKey,
        masks: MaskSeed,
        parts: Vec<Vec<PackedMatrix>>,
    ) -> Result<Self, TfheError> {
        let (tfhe, dimension) = (params.tfhe(), params.tfhe().literal().lwe_dimension);
        check_shape("parts of a key", Self::parts_of(params), parts.len())?;
        for (i, part) in parts.iter().enumerate() {
            check_shape("matrices of a part", shape(params, i).0, part.len())?;
        }
        check_shape("LWE dimension", tfhe.context().lwe_dimension(), switch.dimensions().0)?;
        check_shape("LWE dimension", dimension, switch.dimensions().1)?;
        let (context, gadget) = (tfhe.context().clone(), tfhe.bootstrap_gadget());
        let accumulator = match params.method() {
            FhewMethod::Digits { base_log } => {
                Accumulator::Digits(DigitBootstrapKey { context, gadget, base_log, dimension, masks, keys: parts })
            }
            FhewMethod::Automorphisms { .. } => {
                let parts = parts.into_iter().flatten().collect();
                let key = AutomorphismBootstrapKey::from_parts(context, gadget, masks, dimension, parts)?;
                Accumulator::Automorphisms(Box::new(key))
            }
        };
        Ok(Self { params: params.clone(), id, switch, accumulator })
    }
}
