//! The rows of a bootstrapping key, step after step, in the form in which the processor multiplies them fastest.

use crate::core::seeded::{bodies_alone, bodies_of, expanded};
use crate::{GlweContext, TfheError};
use std::borrow::Cow;
use sudare_ring::buffer::Buffer;
use sudare_ring::fourier::{Fourier, FourierMatrices};
use sudare_ring::kernel::{Ahead, Gadget, PackedMatrix};
use sudare_ring::random::MaskSeed;

/// GGSW rows of every step, and the parts of a step: an accumulator's digits, transformed, times the rows, transformed back.
///
/// Products are exact, or in floating point where [`Fourier::is_faster`] says so. Between [`Steps::begin`] and [`Steps::end`]
/// accumulators and products are what the form works on: residues, or numbers of [`sudare_ring::fourier`].
pub struct Steps {
    context: GlweContext,
    gadget: Gadget,
    masks: MaskSeed,
    rows: Rows,
}

enum Rows {
    /// Residues in evaluation form.
    Exact(Vec<PackedMatrix>),
    /// Values in floating point; and of the residues the bodies, which travel and from which the masks' seed makes the rest.
    Rounded { fourier: Box<Fourier>, matrices: FourierMatrices, bodies: Vec<PackedMatrix> },
}

impl Steps {
    /// Of matrices in evaluation form, whose masks follow from a seed, step i from its stream i.
    pub(super) fn new(context: &GlweContext, gadget: Gadget, masks: MaskSeed, matrices: Vec<PackedMatrix>) -> Self {
        let limb = context.limb();
        let rows = if Fourier::is_faster(limb) {
            let fourier = Box::new(Fourier::new(limb));
            let rounded = FourierMatrices::new(&fourier, limb, &matrices);
            Rows::Rounded { fourier, matrices: rounded, bodies: bodies_alone(context, &matrices) }
        } else {
            Rows::Exact(matrices)
        };
        Self { context: context.clone(), gadget, masks, rows }
    }

    /// Ring and rank.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// The decomposition.
    pub fn gadget(&self) -> Gadget {
        self.gadget
    }

    /// The seed of the masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Matrices that hold the bodies of every step, alone or in their last column.
    fn residues(&self) -> &[PackedMatrix] {
        let (Rows::Exact(matrices) | Rows::Rounded { bodies: matrices, .. }) = &self.rows;
        matrices
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.residues().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.residues().is_empty()
    }

    fn of(&self, step: usize) -> Result<&PackedMatrix, TfheError> {
        self.residues().get(step).ok_or(TfheError::Shape { what: "step", expected: self.len(), found: step })
    }

    /// The bodies of a step, polynomial after polynomial in evaluation form: those of its first encryption, then of the next.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if there is no such step.
    pub fn bodies(&self, step: usize) -> Result<Vec<u64>, TfheError> {
        Ok(bodies_of(self.of(step)?, self.context.degree()))
    }

    /// The rows of a step in evaluation form; where products are in floating point, made anew from seed and bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if there is no such step.
    pub fn matrix(&self, step: usize) -> Result<Cow<'_, PackedMatrix>, TfheError> {
        let m = self.of(step)?;
        match &self.rows {
            Rows::Exact(_) => Ok(Cow::Borrowed(m)),
            Rows::Rounded { .. } => {
                let (shape, mut masks) = ((m.groups(), m.rows()), self.masks.stream(step as u64));
                Ok(Cow::Owned(expanded(&self.context, &mut masks, shape, &self.bodies(step)?)?))
            }
        }
    }

    /// Bytes in memory.
    pub fn byte_len(&self) -> usize {
        let residues: usize = self.residues().iter().map(PackedMatrix::byte_len).sum();
        match &self.rows {
            Rows::Exact(_) => residues,
            Rows::Rounded { matrices, .. } => matrices.byte_len() + residues,
        }
    }

    /// Bytes of the bodies and the seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        self.residues().iter().map(|m| m.byte_len() / m.columns()).sum::<usize>() + 32
    }

    /// A step's rows, to be asked for while something else is done. Empty beyond the last, and where the product asks for them
    /// itself.
    pub fn ahead(&self, step: usize) -> Ahead<'_> {
        match &self.rows {
            Rows::Exact(matrices) => matrices.get(step).map_or(Ahead::of(&[]), PackedMatrix::ahead),
            Rows::Rounded { .. } => Ahead::of(&[]),
        }
    }

    /// Brings an accumulator from residues to what steps work on, in place.
    ///
    /// # Panics
    /// If the length is not that of polynomials.
    pub fn begin(&self, acc: &mut [u64]) {
        if let Rows::Rounded { fourier, .. } = &self.rows {
            acc.chunks_exact_mut(self.context.degree()).for_each(|p| fourier.from_residues(p));
        }
    }

    /// Adds the last product, if there is one, and brings the accumulator back to residues.
    ///
    /// # Panics
    /// If the lengths differ or are not those of polynomials.
    pub fn end(&self, acc: &mut [u64], product: Option<&[u64]>) {
        let Rows::Rounded { fourier, .. } = &self.rows else {
            return product.into_iter().for_each(|product| self.context.limb().add_assign(acc, product));
        };
        let n = self.context.degree();
        if let Some(product) = product {
            assert_eq!(acc.len(), product.len(), "an accumulator and a product of other lengths");
            acc.chunks_exact_mut(n).zip(product.chunks_exact(n)).for_each(|(acc, product)| fourier.add(acc, product));
        }
        acc.chunks_exact_mut(n).for_each(|p| fourier.to_residues(p));
    }

    /// `acc += product`, of one polynomial, and the digits of the sum; of X^turn − 1 times the sum where there is a turn, below 2N.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn decompose(&self, acc: &mut [u64], product: Option<&[u64]>, turn: Option<usize>, digits: &mut [u64]) {
        let (n, limb) = (self.context.degree(), self.context.limb());
        match (&self.rows, turn, product) {
            (Rows::Exact(_), None, Some(product)) => limb.add_decompose(acc, product, self.gadget, digits),
            (Rows::Exact(_), _, _) => {
                product.into_iter().for_each(|product| limb.add_assign(acc, product));
                match turn {
                    Some(turn) => limb.rotate_minus(&mut digits[..n], acc, turn),
                    None => digits[..n].copy_from_slice(acc),
                }
                limb.decompose(digits, self.gadget);
            }
            (Rows::Rounded { fourier, .. }, None, _) => fourier.digits(acc, product, self.gadget, digits),
            (Rows::Rounded { fourier, .. }, Some(turn), _) => {
                product.into_iter().for_each(|product| fourier.add(acc, product));
                let mut difference = Buffer::dirty(n);
                fourier.rotate_minus(&mut difference, acc, turn);
                fourier.digits(&mut difference, None, self.gadget, digits);
            }
        }
    }

    /// Transforms a polynomial of digits to what [`Steps::multiply`] takes, in place; asks for some of `ahead` meanwhile.
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn forward(&self, digit: &mut [u64], ahead: &mut Ahead<'_>) {
        match &self.rows {
            Rows::Exact(_) => self.context.limb().forward_ahead(digit, ahead),
            Rows::Rounded { fourier, .. } => fourier.forward(digit),
        }
    }

    /// The product of transformed digits with the rows of a step, whose groups are multiplied by X^e − 1 where there are
    /// exponents: `out` gets the columns, to be transformed by [`Steps::inverse`].
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn multiply(&self, step: usize, out: &mut [u64], digits: &[u64], exponents: Option<&[usize]>) {
        let (limb, monomials) = (self.context.limb(), self.context.monomials());
        match (&self.rows, exponents) {
            (Rows::Exact(matrices), None) => limb.external_product(out, digits, &matrices[step]),
            (Rows::Exact(matrices), Some(exponents)) => {
                limb.external_product_monomials(out, digits, &matrices[step], monomials, exponents);
            }
            (Rows::Rounded { fourier, matrices, .. }, _) => fourier.product(out, digits, (matrices, step), exponents),
        }
    }

    /// Transforms a polynomial of a product back, in place; `ahead` as for [`Steps::forward`].
    ///
    /// # Panics
    /// If the length is not the degree.
    pub fn inverse(&self, product: &mut [u64], ahead: &mut Ahead<'_>) {
        match &self.rows {
            Rows::Exact(_) => self.context.limb().inverse_ahead(product, ahead),
            Rows::Rounded { fourier, .. } => fourier.inverse(product),
        }
    }
}
