//! The trace that leaves the constant coefficient of a GLWE ciphertext.

use crate::core::ggsw::check_gadget;
use crate::keyswitch::automorphism::AutomorphismKey;
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::Gadget;
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::threads;

/// The log2 N automorphism keys of a trace.
///
/// Step t adds the image under X ↦ X^(N/2^t + 1): coefficients that are odd multiples of 2^t vanish,
/// the others double.
pub struct TraceKey {
    pub(super) context: GlweContext,
    pub(super) gadget: Gadget,
    pub(super) masks: MaskSeed,
    pub(super) steps: Vec<AutomorphismKey>,
}

impl TraceKey {
    /// A key; steps are made in parallel inside a thread pool, step t from stream t.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus.
    pub fn generate(key: &GlweSecretKey, gadget: Gadget, seeds: &ObjectSeeds) -> Result<Self, TfheError> {
        let context = key.context();
        check_gadget(context, gadget)?;
        let n = context.degree();
        let steps = threads::map(n.trailing_zeros() as usize, |t| {
            AutomorphismKey::generate(key, (n >> t) as u64 + 1, gadget, seeds, t as u64)
        });
        let steps = steps.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { context: context.clone(), gadget, masks: seeds.masks, steps })
    }

    /// Its decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.steps.iter().map(AutomorphismKey::byte_len).sum()
    }

    /// An encryption of the constant coefficient of the phase, as a constant.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for a ciphertext of another ring.
    pub fn constant(&self, c: &GlweCiphertext) -> Result<GlweCiphertext, TfheError> {
        self.context.check(c.context())?;
        let mut c = c.clone();
        self.constant_half_evaluated(&mut c)?;
        self.context.limb().inverse(c.body_mut());
        Ok(c)
    }

    /// The same in place, the body left in evaluation form.
    pub(super) fn constant_half_evaluated(&self, c: &mut GlweCiphertext) -> Result<(), TfheError> {
        let context = &self.context;
        let (n, limb, q) = (context.degree(), context.limb(), context.modulus());
        let inverse =
            q.inv(n as u64).ok_or_else(|| TfheError::Parameters { reason: "q has to be an odd prime".into() })?;
        let inverse = q.shoup(inverse);
        c.words_mut().chunks_exact_mut(n).for_each(|p| limb.mul_scalar(p, &inverse));
        limb.forward(c.body_mut());
        let masks = context.lwe_dimension();
        let mut digits = Buffer::dirty(masks * self.gadget.levels as usize);
        let mut permuted = Buffer::dirty(digits.len());
        let mut product = Buffer::dirty(context.words());
        let mut body = Buffer::dirty(n);
        for step in &self.steps {
            let scratch = (&mut digits[..], &mut permuted[..]);
            step.switch_masks(context, self.gadget, &c.words()[..masks], scratch, &mut product);
            body.copy_from_slice(c.body());
            step.permutation().apply_add(q, c.body_mut(), &body);
            product[..masks].chunks_exact_mut(n).for_each(|p| limb.inverse(p));
            limb.add_assign(c.words_mut(), &product);
        }
        Ok(())
    }
}
