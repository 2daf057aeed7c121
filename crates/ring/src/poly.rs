//! Polynomials in RNS, typed by their form.

use crate::automorphism::{EvalPermutation, apply_coeff};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::error::RingError;
use crate::modulus::Shoup;
use crate::threads::for_each_chunk;
use std::marker::PhantomData;
use zeroize::Zeroize;

/// Coefficient form.
#[derive(Clone, Copy, Debug)]
pub struct Coeff;
/// Evaluation (NTT) form, in the order of [`crate::order`].
#[derive(Clone, Copy, Debug)]
pub struct Eval;

mod sealed {
    pub trait Form: Send + Sync + 'static {}
    impl Form for super::Coeff {}
    impl Form for super::Eval {}
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
            if chunk.iter().fold(false, |bad, x| bad | (*x >= q)) {
                let index = chunk.iter().position(|x| *x >= q).unwrap_or(0);
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

    /// The limbs at `indices`, as a polynomial of its own.
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut out = Self::dirty(&self.basis.select(indices.iter().copied()));
        for (to, from) in indices.iter().enumerate() {
            out.limb_mut(to).copy_from_slice(self.limb(*from));
        }
        out
    }

    fn zip_with(&mut self, other: &Self, work: impl Fn(&crate::Limb, &mut [u64], &[u64]) + Sync + Send) {
        assert_eq!(self.basis, other.basis, "polynomials of different bases");
        let (basis, n) = (&self.basis, self.basis.degree());
        for_each_chunk(&mut self.data, n, |i, x| work(basis.limb(i), x, other.limb(i)));
    }

    fn for_each(&mut self, work: impl Fn(usize, &crate::Limb, &mut [u64]) + Sync + Send) {
        let (basis, n) = (&self.basis, self.basis.degree());
        for_each_chunk(&mut self.data, n, |i, x| work(i, basis.limb(i), x));
    }

    /// `self += other`.
    pub fn add_assign(&mut self, other: &Self) {
        self.zip_with(other, |l, x, y| l.add_assign(x, y));
    }

    /// `self −= other`.
    pub fn sub_assign(&mut self, other: &Self) {
        self.zip_with(other, |l, x, y| l.sub_assign(x, y));
    }

    /// `self + other`.
    pub fn add(&self, other: &Self) -> Self {
        self.merge(other, |l, o, x, y| l.add(o, x, y))
    }

    /// `self − other`.
    pub fn sub(&self, other: &Self) -> Self {
        self.merge(other, |l, o, x, y| l.sub(o, x, y))
    }

    fn merge(&self, other: &Self, work: impl Fn(&crate::Limb, &mut [u64], &[u64], &[u64]) + Sync + Send) -> Self {
        assert_eq!(self.basis, other.basis, "polynomials of different bases");
        let mut out = Self::dirty(&self.basis);
        out.for_each(|i, l, o| work(l, o, self.limb(i), other.limb(i)));
        out
    }

    /// `self = −self`.
    pub fn neg_assign(&mut self) {
        self.for_each(|_, l, x| l.neg_assign(x));
    }

    /// Multiplies limb `i` by `factors[i]`.
    pub fn mul_scalars(&mut self, factors: &[Shoup]) {
        assert_eq!(factors.len(), self.basis.len());
        self.for_each(|i, l, x| l.mul_scalar(x, &factors[i]));
    }

    /// `self += other · factors`, limb by limb.
    pub fn mul_scalars_add(&mut self, other: &Self, factors: &[Shoup]) {
        assert_eq!(self.basis, other.basis, "polynomials of different bases");
        assert_eq!(factors.len(), self.basis.len());
        let (basis, n) = (&self.basis, self.basis.degree());
        for_each_chunk(&mut self.data, n, |i, x| basis.limb(i).mul_scalar_add(x, other.limb(i), &factors[i]));
    }

    /// The residues of an integer modulo each prime, with quotients: a factor for
    /// [`Poly::mul_scalars`].
    pub fn scalar(basis: &RnsBasis, value: i64) -> Vec<Shoup> {
        basis.limbs().iter().map(|l| l.modulus().shoup(l.modulus().reduce_i64(value))).collect()
    }
}

impl Poly<Coeff> {
    /// The residues of signed coefficients; `coefficients` has N entries.
    pub fn from_signed(basis: &RnsBasis, coefficients: &[i64]) -> Self {
        assert_eq!(coefficients.len(), basis.degree());
        let mut out = Self::dirty(basis);
        out.for_each(|_, l, x| l.from_i64(x, coefficients));
        out
    }

    /// Evaluation form.
    pub fn into_eval(mut self) -> Poly<Eval> {
        self.for_each(|_, l, x| l.forward(x));
        Poly { basis: self.basis, data: self.data, form: PhantomData }
    }

    /// a(X) → a(X^g).
    ///
    /// # Errors
    /// [`RingError::GaloisElement`] unless `g` is odd and below 2N.
    pub fn automorphism(&self, g: u64) -> Result<Self, RingError> {
        let order = 2 * self.degree() as u64;
        if g.is_multiple_of(2) || g >= order {
            return Err(RingError::GaloisElement { element: g, order });
        }
        let mut out = Self::dirty(&self.basis);
        out.for_each(|i, l, x| {
            let applied = apply_coeff(l.modulus(), g, x, self.limb(i));
            debug_assert!(applied.is_ok(), "the element was checked");
        });
        Ok(out)
    }
}

impl Poly<Eval> {
    /// Coefficient form.
    pub fn into_coeff(mut self) -> Poly<Coeff> {
        self.for_each(|_, l, x| l.inverse(x));
        Poly { basis: self.basis, data: self.data, form: PhantomData }
    }

    /// `self = self · other`.
    pub fn mul_assign(&mut self, other: &Self) {
        self.zip_with(other, |l, x, y| l.mul_assign(x, y));
    }

    /// `self · other`.
    pub fn mul(&self, other: &Self) -> Self {
        self.merge(other, |l, o, x, y| l.mul(o, x, y))
    }

    /// `self += a · b`.
    pub fn mul_add(&mut self, a: &Self, b: &Self) {
        assert!(self.basis == a.basis && self.basis == b.basis, "polynomials of different bases");
        let (basis, n) = (&self.basis, self.basis.degree());
        for_each_chunk(&mut self.data, n, |i, x| basis.limb(i).mul_add(x, a.limb(i), b.limb(i)));
    }

    /// Σ_j a_j · b_j with one reduction for all terms.
    pub fn dot(basis: &RnsBasis, a: &[&Self], b: &[&Self]) -> Self {
        assert!(a.iter().chain(b).all(|p| p.basis == *basis), "polynomials of different bases");
        let mut out = Self::dirty(basis);
        out.for_each(|i, l, x| {
            let left: Vec<_> = a.iter().map(|p| p.limb(i)).collect();
            let right: Vec<_> = b.iter().map(|p| p.limb(i)).collect();
            l.dot(x, &left, &right);
        });
        out
    }

    /// Times X^(N/2), or −X^(N/2) if `negative`: i or −i in every slot. Its values are √−1 on the first half of a
    /// row and −√−1 on the second.
    pub fn mul_imaginary_unit(&mut self, negative: bool) {
        self.for_each(|_, l, x| {
            let q = l.modulus();
            let root = q.pow(l.root(), l.degree() as u64 / 2);
            let (first, second) = x.split_at_mut(l.degree() / 2);
            let [on_first, on_second] = if negative { [q.neg(root), root] } else { [root, q.neg(root)] };
            l.mul_scalar(first, &q.shoup(on_first));
            l.mul_scalar(second, &q.shoup(on_second));
        });
    }

    /// The polynomial of the centred residues modulo this one's only prime, over a basis that starts with it.
    ///
    /// # Panics
    /// For a polynomial of another number of primes, or a basis that starts with another.
    pub fn lifted(&self, basis: &RnsBasis) -> Self {
        assert_eq!(self.basis.len(), 1, "one prime is lifted");
        let from = self.basis.limb(0);
        assert_eq!(basis.limb(0).q(), from.q(), "the basis starts with another prime");
        let mut coefficients = Buffer::from_slice(self.limb(0));
        from.inverse(&mut coefficients);
        let mut out = Self::dirty(basis);
        out.for_each(|i, l, x| match i {
            0 => x.copy_from_slice(self.limb(0)),
            _ => {
                l.reduce_centered(x, &coefficients, from.q());
                l.forward(x);
            }
        });
        out
    }

    /// a(X) → a(X^g), by the prepared permutation.
    pub fn permuted(&self, permutation: &EvalPermutation) -> Self {
        let mut out = Self::dirty(&self.basis);
        out.for_each(|i, _, x| permutation.apply(x, self.limb(i)));
        out
    }
}
