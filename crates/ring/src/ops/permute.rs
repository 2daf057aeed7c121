//! Automorphisms and monomials.

use crate::automorphism::{EvalPermutation, apply_coeff};
use crate::error::RingError;
use crate::poly::{Coeff, Eval, Poly};

impl Poly<Coeff> {
    /// a(X) → a(X^g).
    ///
    /// # Errors
    /// [`RingError::GaloisElement`] unless `g` is odd and below 2N.
    pub fn automorphism(&self, g: u64) -> Result<Self, RingError> {
        let order = 2 * self.degree() as u64;
        if g.is_multiple_of(2) || g >= order {
            return Err(RingError::GaloisElement { element: g, order });
        }
        let mut out = Self::dirty(self.basis());
        out.for_each(|i, l, x| {
            let applied = apply_coeff(l.modulus(), g, x, self.limb(i));
            debug_assert!(applied.is_ok(), "the element was checked");
        });
        Ok(out)
    }
}

impl Poly<Coeff> {
    /// Times X^by, |by| < N.
    pub fn mul_monomial(&mut self, by: isize) {
        self.for_each(|_, l, x| {
            let (n, q, steps) = (x.len(), l.modulus(), by.unsigned_abs());
            let wrapped = if by >= 0 {
                x.rotate_right(steps);
                0..steps
            } else {
                x.rotate_left(steps);
                n - steps..n
            };
            x[wrapped].iter_mut().for_each(|x| *x = q.neg(*x));
        });
    }
}

impl Poly<Eval> {
    /// a(X) → a(X^g), by the prepared permutation.
    pub fn permuted(&self, permutation: &EvalPermutation) -> Self {
        let mut out = Self::dirty(self.basis());
        out.for_each(|i, _, x| permutation.apply(x, self.limb(i)));
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
}
