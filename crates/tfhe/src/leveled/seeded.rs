//! Fresh ciphertexts as they travel: bodies, and the seed of their masks.

use super::{LeveledClient, LeveledGlwe, LeveledParams, Selector, SelectorNoise};
use crate::core::context::check_shape;
use crate::core::glwe::check_below;
use crate::core::seeded::expanded;
use crate::noise::variance;
use crate::{GgswCiphertext, GlweCiphertext, TfheError};
use std::fmt;
use sudare_ring::random::{MaskSeed, uniform};
use sudare_rlwe::KeyId;

/// Refuses bodies of another number or with a residue that is not below q.
fn check_bodies(params: &LeveledParams, polynomials: usize, bodies: &[u64]) -> Result<(), TfheError> {
    check_shape("body coefficients", polynomials * params.context().degree(), bodies.len())?;
    check_below(params.context(), bodies)
}

/// A fresh selector, a (k + 1)-th of its size.
#[derive(Clone)]
pub struct SeededSelector {
    masks: MaskSeed,
    bodies: Vec<u64>,
}

impl SeededSelector {
    /// Body polynomials of a selector of these parameters, each of N residues in evaluation form.
    pub fn bodies_of(params: &LeveledParams) -> usize {
        (params.context().rank() + 1) * params.gadget().levels as usize
    }

    /// A selector from the seed of its masks and its bodies, row after row.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a residue not below q.
    pub fn from_bodies(params: &LeveledParams, masks: MaskSeed, bodies: Vec<u64>) -> Result<Self, TfheError> {
        check_bodies(params, Self::bodies_of(params), &bodies)?;
        Ok(Self { masks, bodies })
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Its bodies, row after row in evaluation form.
    pub fn bodies(&self) -> &[u64] {
        &self.bodies
    }

    /// The whole selector, of this key.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a selector of other parameters.
    pub fn expand(&self, params: &LeveledParams, key: KeyId) -> Result<Selector, TfheError> {
        let (context, rows) = (params.context(), Self::bodies_of(params));
        let m = expanded(context, &mut self.masks.stream(0), (1, rows), &self.bodies)?;
        let ggsw = GgswCiphertext::from_matrix(context, params.gadget(), m)?;
        Ok(Selector::from_parts(ggsw, SelectorNoise::fresh(params), (params.hash(), key)))
    }
}

impl fmt::Debug for SeededSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededSelector({} residues)", self.bodies.len())
    }
}

/// A fresh GLWE ciphertext, a (k + 1)-th of its size.
#[derive(Clone)]
pub struct SeededGlwe {
    masks: MaskSeed,
    body: Vec<u64>,
}

impl SeededGlwe {
    /// A ciphertext from the seed of its masks and its body in coefficient form.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a residue not below q.
    pub fn from_body(params: &LeveledParams, masks: MaskSeed, body: Vec<u64>) -> Result<Self, TfheError> {
        check_bodies(params, 1, &body)?;
        Ok(Self { masks, body })
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Its body in coefficient form.
    pub fn body(&self) -> &[u64] {
        &self.body
    }

    /// The whole ciphertext, of this key.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a ciphertext of other parameters.
    pub fn expand(&self, params: &LeveledParams, key: KeyId) -> Result<LeveledGlwe, TfheError> {
        let context = params.context();
        check_bodies(params, 1, &self.body)?;
        let mut c = GlweCiphertext::zero(context);
        let masks = context.lwe_dimension();
        uniform(&mut self.masks.stream(0), context.modulus(), &mut c.words_mut()[..masks]);
        c.words_mut()[..masks].chunks_exact_mut(context.degree()).for_each(|p| context.limb().inverse(p));
        c.body_mut().copy_from_slice(&self.body);
        Ok(LeveledGlwe { c, variance: variance::glwe_fresh(context), owner: (params.hash(), Some(key)) })
    }
}

impl fmt::Debug for SeededGlwe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeededGlwe({} residues)", self.body.len())
    }
}

impl LeveledClient {
    /// [`LeveledClient::encrypt_selector`] as it travels.
    ///
    /// # Errors
    /// As there.
    pub fn encrypt_selector_seeded(&self, bit: bool) -> Result<SeededSelector, TfheError> {
        let seeds = self.fresh()?;
        let ggsw = self.encrypt_ggsw(bit, &seeds)?;
        let (m, n) = (ggsw.matrix(), self.params().context().degree());
        let mut bodies = vec![0; m.rows() * n];
        for (row, body) in bodies.chunks_exact_mut(n).enumerate() {
            m.get(0, row, self.params().context().rank(), body);
        }
        Ok(SeededSelector { masks: seeds.masks, bodies })
    }

    /// [`LeveledClient::encrypt`] as it travels.
    ///
    /// # Errors
    /// As there.
    pub fn encrypt_seeded(&self, messages: &[u64]) -> Result<SeededGlwe, TfheError> {
        let (c, masks) = self.encrypt_messages(messages)?;
        Ok(SeededGlwe { masks, body: c.ciphertext().body().to_vec() })
    }
}
