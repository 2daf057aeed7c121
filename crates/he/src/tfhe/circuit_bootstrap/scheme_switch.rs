//! From encryptions of g_l·M to a GGSW ciphertext of M.

use super::super::context::check_shape;
use super::super::ggsw::{check_gadget, evaluate_digits, write_glev};
use super::super::{GgswCiphertext, GlweCiphertext, GlweContext, GlweSecretKey, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use zeroize::Zeroizing;

/// GLev encryptions of the products S_c·S_i.
///
/// The phase of a row (A, B) is `B − Σ A_i·S_i`; minus S_c times it is the phase of B put on the mask c,
/// plus `Σ A_i·S_c·S_i`, which the digits of A and this key give.
pub struct SchemeSwitchKey {
    pub(super) context: GlweContext,
    pub(super) gadget: Gadget,
    pub(super) masks: MaskSeed,
    /// For each c: rows `(i, l)` encrypt `S_c·S_i·g_l`.
    pub(super) matrices: Vec<PackedMatrix>,
}

impl SchemeSwitchKey {
    /// A key; matrix c comes from stream c.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus.
    pub fn generate(key: &GlweSecretKey, gadget: Gadget, seeds: &ObjectSeeds) -> Result<Self, TfheError> {
        let context = key.context();
        check_gadget(context, gadget)?;
        let (k, levels) = (context.rank(), gadget.levels as usize);
        let mut product = Zeroizing::new(vec![0u64; context.degree()]);
        let matrices = (0..k)
            .map(|c| {
                let mut m = PackedMatrix::zeroed(context.limb(), 1, k * levels, k + 1);
                let (mut masks, mut errors) = (seeds.masks.stream(c as u64), seeds.errors.stream(c as u64));
                for i in 0..k {
                    context.limb().mul(&mut product, key.eval(c), key.eval(i));
                    write_glev(key, &product, gadget, &mut m, (0, i * levels), (&mut masks, &mut errors));
                }
                m
            })
            .collect();
        Ok(Self { context: context.clone(), gadget, masks: seeds.masks, matrices })
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
        self.matrices.iter().map(PackedMatrix::byte_len).sum()
    }

    /// The GGSW ciphertext of M from encryptions of `g_l·M`, one a level of `output`.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], [`TfheError::Shape`], [`TfheError::Modulus`].
    pub fn switch(&self, levels: &[GlweCiphertext], output: Gadget) -> Result<GgswCiphertext, TfheError> {
        let rows = levels.iter().map(|c| {
            self.context.check(c.context())?;
            let mut c = c.clone();
            self.context.limb().forward(c.body_mut());
            Ok(self.rows(&c))
        });
        self.assemble(&rows.collect::<Result<Vec<_>, TfheError>>()?, output)
    }

    /// The k + 1 rows of a level, evaluated, one after the other; the body of `c` is evaluated.
    pub(super) fn rows(&self, c: &GlweCiphertext) -> Buffer {
        let context = &self.context;
        let (n, limb, k, words) = (context.degree(), context.limb(), context.rank(), context.words());
        let mut out = Buffer::dirty((k + 1) * words);
        let mut digits = Buffer::dirty(context.lwe_dimension() * self.gadget.levels as usize);
        evaluate_digits(context, self.gadget, &c.words()[..context.lwe_dimension()], &mut digits);
        for (i, row) in out.chunks_exact_mut(words).enumerate() {
            match self.matrices.get(i) {
                Some(m) => {
                    limb.external_product(row, &digits, m);
                    limb.add_assign(&mut row[i * n..(i + 1) * n], c.body());
                }
                None => {
                    row.copy_from_slice(c.words());
                    row[..k * n].chunks_exact_mut(n).for_each(|p| limb.forward(p));
                }
            }
        }
        out
    }

    /// A GGSW ciphertext from the rows of its levels.
    pub(super) fn assemble(&self, levels: &[Buffer], output: Gadget) -> Result<GgswCiphertext, TfheError> {
        check_shape("GGSW levels", output.levels as usize, levels.len())?;
        assemble(&self.context, levels, output)
    }
}

/// A GGSW ciphertext from rows in evaluation form: level after level, those of the masks, then the body's.
pub(super) fn assemble(context: &GlweContext, levels: &[Buffer], output: Gadget) -> Result<GgswCiphertext, TfheError> {
    let (n, columns) = (context.degree(), context.rank() + 1);
    let mut matrix = PackedMatrix::zeroed(context.limb(), 1, columns * levels.len(), columns);
    for (l, rows) in levels.iter().enumerate() {
        for (i, p) in rows.chunks_exact(n).enumerate() {
            matrix.set(0, i / columns * levels.len() + l, i % columns, p);
        }
    }
    GgswCiphertext::from_matrix(context, output, matrix)
}
