//! Sums and products, value by value or coefficient by coefficient.

use super::{Crossing, begins_with};
use crate::basis::RnsBasis;
use crate::kernel::{Limb, MAX_TERMS};
use crate::modulus::Shoup;
use crate::poly::sealed::Form;
use crate::poly::{Eval, Poly};
use crate::threads::for_each_chunk;

/// Binary operations panic if the bases differ: which bases meet is the caller's to check.
impl<F: Form> Poly<F> {
    fn zip_with(&mut self, other: &Self, work: impl Fn(&Limb, &mut [u64], &[u64]) + Sync + Send) {
        assert_eq!(self.basis(), other.basis(), "polynomials of different bases");
        self.for_each(|i, l, x| work(l, x, other.limb(i)));
    }

    /// Limb by limb, in parallel inside a pool.
    pub(super) fn for_each(&mut self, work: impl Fn(usize, &Limb, &mut [u64]) + Sync + Send) {
        let _crossing = Crossing::begin();
        let basis = self.basis().clone();
        for_each_chunk(self.words_mut(), basis.degree(), |i, x| work(i, basis.limb(i), x));
    }

    fn merge(&self, other: &Self, work: impl Fn(&Limb, &mut [u64], &[u64], &[u64]) + Sync + Send) -> Self {
        assert_eq!(self.basis(), other.basis(), "polynomials of different bases");
        let mut out = Self::dirty(self.basis());
        out.for_each(|i, l, o| work(l, o, self.limb(i), other.limb(i)));
        out
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

    /// `self = −self`.
    pub fn neg_assign(&mut self) {
        self.for_each(|_, l, x| l.neg_assign(x));
    }

    /// Multiplies limb `i` by `factors[i]`.
    ///
    /// # Panics
    /// If there is not a factor for each limb.
    pub fn mul_scalars(&mut self, factors: &[Shoup]) {
        assert_eq!(factors.len(), self.basis().len());
        self.for_each(|i, l, x| l.mul_scalar(x, &factors[i]));
    }

    /// `self += other · factors`, limb by limb, for a polynomial over the first of these primes (the others keep
    /// what they have) and a factor for each of its limbs.
    ///
    /// # Panics
    /// If `other` is over other primes than the first of these, or there is not a factor for each of its limbs.
    pub fn mul_scalars_add(&mut self, other: &Self, factors: &[Shoup]) {
        let _crossing = Crossing::begin();
        assert!(begins_with(self.basis(), other.basis()), "polynomials of different bases");
        assert_eq!(factors.len(), other.basis().len());
        let (basis, n) = (other.basis(), other.degree());
        for_each_chunk(&mut self.words_mut()[..n * basis.len()], n, |i, x| {
            basis.limb(i).mul_scalar_add(x, other.limb(i), &factors[i]);
        });
    }

    /// The residues of an integer modulo each prime, with quotients: a factor for
    /// [`Poly::mul_scalars`].
    pub fn scalar(basis: &RnsBasis, value: i64) -> Vec<Shoup> {
        basis.moduli().map(|q| q.shoup(q.reduce_i64(value))).collect()
    }
}

impl Poly<Eval> {
    /// `self = self · other`.
    pub fn mul_assign(&mut self, other: &Self) {
        self.zip_with(other, |l, x, y| l.mul_assign(x, y));
    }

    /// `self · other`.
    pub fn mul(&self, other: &Self) -> Self {
        self.merge(other, |l, o, x, y| l.mul(o, x, y))
    }

    fn expect_first(&self, operands: [&Self; 2]) {
        assert!(operands.iter().all(|p| begins_with(p.basis(), self.basis())), "polynomials of different bases");
    }

    /// `self += a · b`, for operands over these primes or more.
    pub fn mul_add(&mut self, a: &Self, b: &Self) {
        self.expect_first([a, b]);
        self.for_each(|i, l, x| l.mul_add(x, a.limb(i), b.limb(i)));
    }

    /// `self −= a · b`, for operands over these primes or more.
    pub fn mul_sub(&mut self, a: &Self, b: &Self) {
        self.expect_first([a, b]);
        self.for_each(|i, l, x| {
            l.neg_assign(x);
            l.mul_add(x, a.limb(i), b.limb(i));
            l.neg_assign(x);
        });
    }

    /// Σ_j a_j · b_j with one reduction for thousands of terms, for operands over the primes of `basis` or more.
    ///
    /// # Panics
    /// If an operand is not over the primes of `basis` or more.
    pub fn dot(basis: &RnsBasis, a: &[&Self], b: &[&Self]) -> Self {
        assert!(a.iter().chain(b).all(|p| begins_with(p.basis(), basis)), "polynomials of different bases");
        let mut out = Self::dirty(basis);
        out.for_each(|i, l, x| {
            let [left, right] = [a, b].map(|side| side.iter().map(|p| p.limb(i)).collect::<Vec<_>>());
            dot_rows(l, x, &left, &right);
        });
        out
    }
}

/// Σ_j l_j·r_j for any number of terms.
pub(super) fn dot_rows(limb: &Limb, out: &mut [u64], left: &[&[u64]], right: &[&[u64]]) {
    if let ([l], [r]) = (left, right) {
        return limb.mul(out, l, r);
    }
    let (first, more) = (left.len().min(MAX_TERMS), left.chunks(MAX_TERMS).zip(right.chunks(MAX_TERMS)).skip(1));
    limb.dot(out, &left[..first], &right[..first]);
    for (l, r) in more {
        let mut sum = crate::buffer::Buffer::dirty(out.len());
        limb.dot(&mut sum, l, r);
        limb.add_assign(out, &sum);
    }
}
