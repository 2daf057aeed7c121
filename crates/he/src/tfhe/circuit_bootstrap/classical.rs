//! Private functional key switching: the classical second half of a circuit bootstrap.

use super::super::context::check_shape;
use super::super::ggsw::{check_gadget, write_glev};
use super::super::{GlweContext, GlweSecretKey, LweCiphertext, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::threads;
use zeroize::Zeroizing;

/// Input coefficients whose rows one thread makes.
const BLOCK: usize = 16;

/// A key that takes LWE ciphertexts at rest to GLWE ciphertexts of F·m, for F = −S_1, …, −S_k and 1: the
/// rows of a GGSW ciphertext. It is large: `(k·N + 1)·levels·(k + 1)` GLWE ciphertexts.
///
/// Rows are kept evaluated, since digits are numbers and not polynomials: a switch is a matrix product
/// and ends in the form that a GGSW ciphertext has.
pub struct PrivateSwitchKey {
    context: GlweContext,
    gadget: Gadget,
    masks: MaskSeed,
    /// Row `(i, l)`: encryptions of `−s_i·g_l·F` for each F; then rows l of the body, of `g_l·F`.
    rows: Vec<u64>,
}

impl PrivateSwitchKey {
    /// A key from the coefficients of a GLWE key to that key; in parallel inside a thread pool, sixteen
    /// input coefficients from a stream.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus.
    pub fn generate(key: &GlweSecretKey, gadget: Gadget, seeds: &ObjectSeeds) -> Result<Self, TfheError> {
        let context = key.context();
        check_gadget(context, gadget)?;
        let (n, k, q, limb) = (context.degree(), context.rank(), context.modulus(), context.limb());
        let (levels, words, dimension) = (gadget.levels as usize, context.words(), context.lwe_dimension());
        let blocks = threads::map((dimension + 1).div_ceil(BLOCK), |block| {
            let (mut masks, mut errors) = (seeds.masks.stream(block as u64), seeds.errors.stream(block as u64));
            let inputs = block * BLOCK..(dimension + 1).min((block + 1) * BLOCK);
            let mut out = vec![0u64; inputs.len() * levels * (k + 1) * words];
            let mut m = PackedMatrix::zeroed(limb, 1, levels, k + 1);
            let mut message = Zeroizing::new(vec![0u64; n]);
            for (i, rows) in inputs.zip(out.chunks_exact_mut(levels * (k + 1) * words)) {
                // −s_i, and 1 for the body.
                let s = Zeroizing::new(key.coefficients().get(i).map_or(1, |s| -s));
                let s = Zeroizing::new(q.reduce_i64(*s));
                for f in 0..=k {
                    if f < k {
                        message.copy_from_slice(key.eval(f));
                        limb.neg_assign(&mut message);
                    } else {
                        message.fill(1);
                    }
                    // Not by a constant's quotient, which takes a division of the secret.
                    message.iter_mut().for_each(|x| *x = q.mul(*x, *s));
                    write_glev(key, &message, gadget, &mut m, (0, 0), (&mut masks, &mut errors));
                    for l in 0..levels {
                        let row = &mut rows[(l * (k + 1) + f) * words..][..words];
                        row.chunks_exact_mut(n).enumerate().for_each(|(c, p)| m.get(0, l, c, p));
                    }
                }
            }
            out
        });
        Ok(Self { context: context.clone(), gadget, masks: seeds.masks, rows: blocks.concat() })
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
        8 * self.rows.len()
    }

    /// For each input the k + 1 rows of a GGSW level, evaluated: one pass over the key for all.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`].
    pub(super) fn rows(&self, inputs: &[LweCiphertext]) -> Result<Vec<Buffer>, TfheError> {
        let (n, limb) = (self.context.degree(), self.context.limb());
        let (dimension, levels) = (self.context.lwe_dimension(), self.gadget.levels as usize);
        let width = (self.context.rank() + 1) * self.context.words();
        let terms = (dimension + 1) * levels;
        let mut digits = Buffer::dirty(inputs.len() * terms);
        let mut scratch = Buffer::dirty(levels * n);
        for (c, digits) in inputs.iter().zip(digits.chunks_exact_mut(terms)) {
            check_shape("LWE dimension", dimension, c.dimension())?;
            if c.modulus().value() != limb.q() {
                return Err(TfheError::Modulus { expected: limb.q(), found: c.modulus().value() });
            }
            for (part, out) in c.words().chunks(n).zip(digits.chunks_mut(levels * n)) {
                scratch[..part.len()].copy_from_slice(part);
                scratch[part.len()..n].fill(0);
                limb.decompose(&mut scratch, self.gadget);
                for (i, d) in out.chunks_exact_mut(levels).enumerate() {
                    d.iter_mut().enumerate().for_each(|(l, d)| *d = scratch[l * n + i]);
                }
            }
        }
        let mut out = Buffer::dirty(inputs.len() * width);
        limb.gemm(&mut out, width, &digits, terms, &self.rows, width, (inputs.len(), terms, width), false);
        Ok(out.chunks_exact(width).map(Buffer::from_slice).collect())
    }
}
