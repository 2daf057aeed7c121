//! From integers to residues, and from one basis to another.

use super::Crossing;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::convert::{BasisConverter, column_blocks};
use crate::count::{self, What};
use crate::error::RingError;
use crate::poly::{Coeff, Eval, Poly};
use crate::threads;

impl Poly<Coeff> {
    /// The residues of signed coefficients; `coefficients` has N entries.
    ///
    /// # Panics
    /// If `coefficients` has not N entries.
    pub fn from_signed(basis: &RnsBasis, coefficients: &[i64]) -> Self {
        assert_eq!(coefficients.len(), basis.degree());
        let mut out = Self::dirty(basis);
        out.for_each(|_, l, x| l.from_i64(x, coefficients));
        out
    }

    /// The residues of signed coefficients that take more than a word; `coefficients` has N entries.
    ///
    /// # Panics
    /// If `coefficients` has not N entries.
    pub fn from_wide(basis: &RnsBasis, coefficients: &[i128]) -> Self {
        assert_eq!(coefficients.len(), basis.degree());
        let mut out = Self::dirty(basis);
        out.for_each(|_, l, x| {
            let q = l.modulus();
            for (o, c) in x.iter_mut().zip(coefficients) {
                let size = q.reduce_u128(c.unsigned_abs());
                // Both are worked out, whatever the sign.
                let mask = (*c >> 127) as u64;
                *o = (q.neg(size) & mask) | (size & !mask);
            }
        });
        out
    }

    /// Every `gap`-th coefficient, from the constant one on: a polynomial of degree N/`gap` over the same primes.
    ///
    /// # Panics
    /// For a basis of another degree or other primes.
    pub fn every(&self, gap: usize, basis: &RnsBasis) -> Self {
        assert!(basis.degree() * gap == self.degree() && basis.primes().eq(self.basis().primes()), "another ring");
        let mut out = Self::dirty(basis);
        out.for_each(|i, _, x| x.iter_mut().zip(self.limb(i).iter().step_by(gap)).for_each(|(o, c)| *o = *c));
        out
    }

    /// The polynomial in X^`gap` with these coefficients, of degree N·`gap`: what [`Poly::every`] takes apart.
    ///
    /// # Panics
    /// As [`Poly::every`].
    pub fn spread(&self, gap: usize, basis: &RnsBasis) -> Self {
        assert!(basis.degree() == self.degree() * gap && basis.primes().eq(self.basis().primes()), "another ring");
        let mut out = Self::zero(basis);
        out.for_each(|i, _, x| x.iter_mut().step_by(gap).zip(self.limb(i)).for_each(|(o, c)| *o = *c));
        out
    }
}

impl Poly<Eval> {
    /// The polynomial of the centred residues modulo this one's only prime, over a basis that starts with it.
    ///
    /// # Panics
    /// For a polynomial of another number of primes, or a basis that starts with another.
    pub fn lifted(&self, basis: &RnsBasis) -> Self {
        assert_eq!(self.basis().len(), 1, "one prime is lifted");
        let from = self.basis().limb(0);
        assert_eq!(basis.limb(0).q(), from.q(), "the basis starts with another prime");
        count::add(What::Conversions, 1);
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
}

/// The centred polynomials over another basis, in evaluation form.
///
/// # Panics
/// If the polynomial is over other primes than the converter's.
pub fn lifted(converter: &BasisConverter, c: &Poly<Eval>) -> Poly<Eval> {
    c.to_coeff().lifted_by(converter)
}

impl Poly<Coeff> {
    /// As [`lifted`], from coefficients.
    ///
    /// # Panics
    /// As there.
    pub fn lifted_by(&self, converter: &BasisConverter) -> Poly<Eval> {
        let _crossing = Crossing::begin();
        assert_eq!(self.basis(), converter.from(), "a polynomial over other primes");
        let mut out = Self::dirty(converter.to());
        converter.convert(self.words(), out.words_mut());
        out.into_eval()
    }
}

/// ⌊R·x/Q⌉ of polynomials over Q, over R and over some primes of Q.
#[derive(Debug)]
pub struct Rescaling {
    /// Q → R, times R/Q.
    shrink: BasisConverter,
    /// R → the primes of Q that are wanted.
    back: BasisConverter,
}

impl Rescaling {
    /// From `q` to `r`, and from there to `low`.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] for a prime in both of `q` and `r`.
    pub fn new(q: &RnsBasis, r: &RnsBasis, low: &RnsBasis) -> Result<Self, RingError> {
        // ⌊R·x/Q⌉ = (R·x − [R·x]_Q)/Q ≡ −[R·x]_Q/Q modulo a prime of R.
        let pre: Vec<u64> = q.moduli().map(|m| r.product_modulo(m)).collect();
        let post = r.moduli().map(|m| Ok(m.neg(m.inverse(q.product_modulo(m))?)));
        let post = post.collect::<Result<Vec<u64>, RingError>>()?;
        Ok(Self { shrink: BasisConverter::scaled(q, r, &pre, &post), back: BasisConverter::new(r, low) })
    }

    /// The result over `low`, and over R: both conversions of a block of columns while it is in the nearest cache.
    ///
    /// # Panics
    /// If the polynomial is over other primes than Q's.
    pub fn apply(&self, c: &Poly<Eval>) -> [Poly<Eval>; 2] {
        let _crossing = Crossing::begin();
        assert_eq!(c.basis(), self.shrink.from(), "a polynomial over other primes");
        count::add(What::Conversions, 2);
        let (rows, n) = (c.to_coeff(), c.degree());
        let (mut low, mut r) = (Poly::<Coeff>::dirty(self.back.to()), Poly::<Coeff>::dirty(self.shrink.to()));
        let width = self.shrink.columns().min(self.back.columns());
        let blocks = column_blocks(low.words_mut(), n, width);
        let mut blocks: Vec<_> = blocks.into_iter().zip(column_blocks(r.words_mut(), n, width)).collect();
        threads::for_each_mut(&mut blocks, |b, (low, r)| {
            let at = b * width..(b + 1) * width;
            let rows: Vec<&[u64]> = rows.words().chunks_exact(n).map(|row| &row[at.clone()]).collect();
            self.shrink.convert_columns(&rows, r);
            let scaled: Vec<&[u64]> = r.iter().map(|x| &**x).collect();
            self.back.convert_columns(&scaled, low);
        });
        drop(blocks);
        [low, r].map(Poly::into_eval)
    }
}
