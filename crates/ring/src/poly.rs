//! Polynomials in RNS, typed by their form: how they are kept. What is done with them is [`crate::ops`].

use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::error::RingError;
use std::marker::PhantomData;
use zeroize::Zeroize;

/// Coefficient form.
#[derive(Clone, Copy, Debug)]
pub struct Coeff;
/// Evaluation (NTT) form, in the order of [`crate::order`].
#[derive(Clone, Copy, Debug)]
pub struct Eval;

pub(crate) mod sealed {
    /// Whether values are kept, or coefficients.
    pub trait Form: Clone + Copy + Send + Sync + 'static {
        const VALUES: bool;
    }
    impl Form for super::Coeff {
        const VALUES: bool = false;
    }
    impl Form for super::Eval {
        const VALUES: bool = true;
    }
}
use sealed::Form;

/// A polynomial modulo X^N + 1 and each prime of a basis; residues in `[0, q)`, limb after limb.
///
/// Binary operations panic if the bases differ: which bases meet is the caller's to check.
#[derive(Clone)]
pub struct Poly<F: Form> {
    basis: RnsBasis,
    data: Buffer,
    form: PhantomData<F>,
}

impl<F: Form> std::fmt::Debug for Poly<F> {
    /// The shape alone: a polynomial may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Poly(N = {}, {} limbs)", self.basis.degree(), self.basis.len())
    }
}

impl<F: Form> Zeroize for Poly<F> {
    fn zeroize(&mut self) {
        self.data.zeroize();
    }
}

impl<F: Form> Poly<F> {
    /// The zero polynomial.
    pub fn zero(basis: &RnsBasis) -> Self {
        Self { data: Buffer::zeroed(basis.degree() * basis.len()), basis: basis.clone(), form: PhantomData }
    }

    /// A polynomial of unspecified content, to be overwritten.
    pub fn dirty(basis: &RnsBasis) -> Self {
        Self { data: Buffer::dirty(basis.degree() * basis.len()), basis: basis.clone(), form: PhantomData }
    }

    /// Takes raw residues, limb after limb.
    ///
    /// # Errors
    /// [`RingError::Length`] or [`RingError::Coefficient`] if they are no residues of this basis.
    pub fn from_words(basis: &RnsBasis, words: &[u64]) -> Result<Self, RingError> {
        let expected = basis.degree() * basis.len();
        if words.len() != expected {
            return Err(RingError::Length { expected, found: words.len() });
        }
        for (limb, (chunk, l)) in words.chunks_exact(basis.degree()).zip(basis.limbs()).enumerate() {
            let q = l.q();
            // One pass without a branch, since almost every polynomial is in range.
            if chunk.iter().fold(false, |bad, x| bad | (*x >= q))
                && let Some(index) = chunk.iter().position(|x| *x >= q)
            {
                return Err(RingError::Coefficient { limb, index });
            }
        }
        Ok(Self { data: Buffer::from_slice(words), basis: basis.clone(), form: PhantomData })
    }

    /// The basis.
    #[inline]
    pub fn basis(&self) -> &RnsBasis {
        &self.basis
    }

    /// The ring degree N.
    #[inline]
    pub fn degree(&self) -> usize {
        self.basis.degree()
    }

    /// All residues, limb after limb.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.data
    }

    /// All residues for writing; they must stay in `[0, q)` of their limb.
    #[inline]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.data
    }

    /// Residues of limb `i`.
    #[inline]
    pub fn limb(&self, i: usize) -> &[u64] {
        let n = self.degree();
        &self.data[i * n..(i + 1) * n]
    }

    /// Residues of limb `i` for writing; they must stay in `[0, q)`.
    #[inline]
    pub fn limb_mut(&mut self, i: usize) -> &mut [u64] {
        let n = self.degree();
        &mut self.data[i * n..(i + 1) * n]
    }

    /// The polynomial modulo the first `count` primes only.
    pub fn truncated(&self, count: usize) -> Self {
        let basis = self.basis.prefix(count);
        Self { data: Buffer::from_slice(&self.data[..count * basis.degree()]), basis, form: PhantomData }
    }

    /// Keeps the first `count` primes only, without a copy.
    #[must_use]
    pub fn into_truncated(mut self, count: usize) -> Self {
        self.basis = self.basis.prefix(count);
        self.data.truncate(count * self.basis.degree());
        self
    }

    /// The same words, said to be of another form.
    pub(crate) fn of_form<G: Form>(self) -> Poly<G> {
        Poly { basis: self.basis, data: self.data, form: PhantomData }
    }

    /// Whether every residue is zero.
    pub fn is_zero(&self) -> bool {
        self.data.iter().all(|x| *x == 0)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        8 * self.data.len()
    }

    /// The limbs at `indices`, as a polynomial of its own.
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut out = Self::dirty(&self.basis.select(indices.iter().copied()));
        for (to, from) in indices.iter().enumerate() {
            out.limb_mut(to).copy_from_slice(self.limb(*from));
        }
        out
    }
}
