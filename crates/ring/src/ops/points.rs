//! Products of matrices of polynomials over a subring, point by point.
//!
//! With Y = X^d the ring is R'\[X\]/(X^d − Y), R' = Z\[Y\]/(Y^(N/d) + 1): a polynomial is a row of d elements of R',
//! and modulo a prime an element is its values at N/d points.

use super::{Crossing, begins_with};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::poly::{Coeff, Eval, Poly};
use crate::threads;

/// Pairs (b_i, a_i) of polynomials as the rows of two matrices over R', at its points.
pub struct AtPoints {
    basis: RnsBasis,
    side: usize,
    terms: usize,
    /// Limb by limb, part by part, polynomial by polynomial: N/d times d words.
    words: Buffer,
}

/// Which two of the four matrices are multiplied: B or A of the left operand, transposed, by B or A of the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointProduct {
    /// B_1ᵀ·B_2.
    BB,
    /// B_1ᵀ·A_2.
    BA,
    /// (A_1ᵀ·B_2)ᵀ: its rows are what a transposition takes.
    BATransposed,
    /// (A_1ᵀ·A_2)ᵀ.
    AATransposed,
}

impl AtPoints {
    /// Brings pairs over the primes of `basis` or more to the points, for d = `side`.
    ///
    /// # Panics
    /// For polynomials over other primes, or a side that is no power of two from 8 to N.
    pub fn new(basis: &RnsBasis, side: usize, pairs: &[[&Poly<Eval>; 2]]) -> Self {
        let _crossing = Crossing::begin();
        let (n, terms) = (basis.degree(), pairs.len());
        assert!(side.is_power_of_two() && (8..=n).contains(&side), "a side of no subring");
        assert!(pairs.iter().flatten().all(|p| begins_with(p.basis(), basis)), "pairs over other primes");
        let mut words = Buffer::dirty(basis.len() * 2 * terms * n);
        threads::for_each_chunk(&mut words, n, |at, x| {
            let limb = basis.limb(at / (2 * terms));
            x.copy_from_slice(pairs[at % terms][at / terms % 2].limb(at / (2 * terms)));
            limb.inverse(x);
            limb.forward_partial(x, layers(n, side));
        });
        Self { basis: basis.clone(), side, terms, words }
    }

    /// The rows of one part modulo one prime: `terms` rows of N words.
    fn part(&self, limb: usize, part: usize) -> &[u64] {
        let size = self.terms * self.basis.degree();
        &self.words[(2 * limb + part) * size..][..size]
    }

    /// All four products with the matrices of as many pairs, for columns of `self`.
    ///
    /// # Panics
    /// If the operands differ in basis, side or number of pairs.
    pub fn products(&self, right: &Self) -> PointProducts {
        let _crossing = Crossing::begin();
        let (basis, d, terms) = (&self.basis, self.side, self.terms);
        assert!(*basis == right.basis && d == right.side && terms == right.terms, "operands of other shapes");
        let n = basis.degree();
        let mut words = Buffer::dirty(4 * basis.len() * n * d);
        threads::for_each_chunk(&mut words, 4 * d * d, |at, out| {
            let (l, from) = (at / (n / d), at % (n / d) * d);
            let left = |part| &self.part(l, part)[from..];
            let right = |part| &right.part(l, part)[from..];
            let mut multiply = |which: PointProduct, a: &[u64], b: &[u64]| {
                let out = &mut out[which as usize * d * d..][..d * d];
                basis.limb(l).gemm(out, d, a, terms, b, n, (d, terms, d), false);
            };
            let b1 = transposed(left(0), n, terms, d);
            multiply(PointProduct::BB, &b1, right(0));
            multiply(PointProduct::BA, &b1, right(1));
            multiply(PointProduct::BATransposed, &transposed(right(0), n, terms, d), left(1));
            multiply(PointProduct::AATransposed, &transposed(right(1), n, terms, d), left(1));
        });
        PointProducts { basis: basis.clone(), side: d, words }
    }
}

/// The four products at every point: limb by limb, point by point, product by product.
pub struct PointProducts {
    basis: RnsBasis,
    side: usize,
    words: Buffer,
}

impl PointProducts {
    /// Row `i` of a product, in coefficient form.
    pub fn row(&self, which: PointProduct, i: usize) -> Poly<Coeff> {
        let (n, d) = (self.basis.degree(), self.side);
        let mut row = Poly::dirty(&self.basis);
        row.for_each(|l, limb, words| {
            for (p, to) in words.chunks_exact_mut(d).enumerate() {
                let point = &self.words[(l * (n / d) + p) * 4 * d * d..][..4 * d * d];
                to.copy_from_slice(&point[(which as usize * d + i) * d..][..d]);
            }
            limb.inverse_partial(words, layers(n, d));
        });
        row
    }
}

/// Layers from coefficients to the points of R'.
fn layers(n: usize, side: usize) -> u32 {
    (n / side).trailing_zeros()
}

/// The transpose of a `terms`×`side` matrix whose rows are N words apart.
fn transposed(rows: &[u64], n: usize, terms: usize, side: usize) -> Buffer {
    let mut out = Buffer::dirty(side * terms);
    for (u, row) in rows.chunks(n).take(terms).enumerate() {
        for (i, x) in row[..side].iter().enumerate() {
            out[i * terms + u] = *x;
        }
    }
    out
}
