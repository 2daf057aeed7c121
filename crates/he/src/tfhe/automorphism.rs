//! Keys that take a GLWE ciphertext to its image under X ↦ X^g.

use super::ggsw::{check_gadget, evaluate_digits, write_glev};
use super::{GlweContext, GlweSecretKey, TfheError};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::ObjectSeeds;
use zeroize::Zeroizing;

/// A key for X ↦ X^g: the permutation of the evaluations, and rows that take σ(S) back to S.
pub(super) struct AutomorphismKey {
    permutation: EvalPermutation,
    /// Rows `(c, l)`: encryptions of `−σ(S_c)·g_l`.
    matrix: PackedMatrix,
}

impl AutomorphismKey {
    /// The key of Galois element `g`, streams `stream`.
    pub(super) fn generate(
        key: &GlweSecretKey,
        g: u64,
        gadget: Gadget,
        seeds: &ObjectSeeds,
        stream: u64,
    ) -> Result<Self, TfheError> {
        let context = key.context();
        check_gadget(context, gadget)?;
        let (n, k, levels) = (context.degree(), context.rank(), gadget.levels as usize);
        let permutation = EvalPermutation::new(n, g)?;
        let mut matrix = PackedMatrix::zeroed(context.limb(), 1, k * levels, k + 1);
        let (mut masks, mut errors) = (seeds.masks.stream(stream), seeds.errors.stream(stream));
        let mut image = Zeroizing::new(vec![0u64; n]);
        for c in 0..k {
            permutation.apply(&mut image, key.eval(c));
            context.limb().neg_assign(&mut image);
            write_glev(key, &image, gadget, &mut matrix, (0, c * levels), (&mut masks, &mut errors));
        }
        Ok(Self { permutation, matrix })
    }

    pub(super) fn from_parts(permutation: EvalPermutation, matrix: PackedMatrix) -> Self {
        Self { permutation, matrix }
    }

    pub(super) fn matrix(&self) -> &PackedMatrix {
        &self.matrix
    }

    pub(super) fn byte_len(&self) -> usize {
        self.matrix.byte_len()
    }

    pub(super) fn permutation(&self) -> &EvalPermutation {
        &self.permutation
    }

    /// `out = Σ σ(digits of A)·rows` in evaluation form; `digits` and `permuted` are scratch of k·levels
    /// polynomials. Digits of σ(A) are those of A, permuted.
    pub(super) fn switch_masks(
        &self,
        context: &GlweContext,
        gadget: Gadget,
        masks: &[u64],
        (digits, permuted): (&mut [u64], &mut [u64]),
        out: &mut [u64],
    ) {
        let n = context.degree();
        evaluate_digits(context, gadget, masks, digits);
        for (p, d) in permuted.chunks_exact_mut(n).zip(digits.chunks_exact(n)) {
            self.permutation.apply(p, d);
        }
        context.limb().external_product(out, permuted, &self.matrix);
    }
}
