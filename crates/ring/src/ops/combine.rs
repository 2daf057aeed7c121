//! Sums of products and of multiples in one pass: a step of a polynomial evaluated on ciphertexts.

use super::elementwise::dot_rows;
use super::periodic::{RowTerm, weighted_sums};
use super::{Crossing, Pair, PeriodicPoly, begins_with};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::poly::{Eval, Poly};

/// f·Σ a_i·b_i + Σ p_j·v_j + p of values of two parts each.
#[derive(Clone, Debug)]
pub struct Combination<'a> {
    /// The factors of each product.
    pub products: Vec<[&'a Pair; 2]>,
    /// f.
    pub factor: u64,
    /// Each value, and what multiplies it.
    pub multiples: Vec<(&'a Pair, &'a PeriodicPoly)>,
    /// p.
    pub constant: Option<&'a PeriodicPoly>,
}

impl Combination<'_> {
    /// Its parts over a basis with whose primes all values begin: three if there is a product, else two.
    ///
    /// # Panics
    /// For values over other primes.
    pub fn parts(&self, basis: &RnsBasis) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        let values = self.products.iter().flatten().copied().chain(self.multiples.iter().map(|(v, _)| *v));
        assert!({ values }.flatten().all(|p| begins_with(p.basis(), basis)), "values over other primes");
        let ones = self.constant.is_some().then(|| ones(basis.degree()));
        let count = if self.products.is_empty() { 2 } else { 3 };
        (0..count).map(|part| self.part(basis, part, ones.as_deref())).collect()
    }

    /// Part 0, 1 or 2, `ones` being the polynomial one.
    fn part(&self, basis: &RnsBasis, part: usize, ones: Option<&[u64]>) -> Poly<Eval> {
        let mut out = Poly::dirty(basis);
        out.for_each(|t, limb, x| {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for [a, b] in &self.products {
                for i in part.saturating_sub(1)..=part.min(1) {
                    left.push(a[i].limb(t));
                    right.push(b[part - i].limb(t));
                }
            }
            let mut terms: Vec<RowTerm<'_, 1>> = Vec::new();
            if part < 2 {
                terms.extend(self.multiples.iter().map(|(v, p)| ([v[part].limb(t)], *p, t)));
            }
            if let (0, Some(p), Some(ones)) = (part, self.constant, ones) {
                terms.push(([ones], p, t));
            }
            match (left.is_empty(), terms.is_empty()) {
                (true, true) => x.fill(0),
                (true, false) => weighted_sums(limb, [x], 0, &terms),
                (false, empty) => {
                    dot_rows(limb, x, &left, &right);
                    if self.factor > 1 {
                        limb.mul_scalar(x, &limb.modulus().shoup(self.factor));
                    }
                    if !empty {
                        let mut more = Buffer::dirty(x.len());
                        weighted_sums(limb, [&mut more], 0, &terms);
                        limb.add_assign(x, &more);
                    }
                }
            }
        });
        out
    }
}

/// The polynomial one, evaluated modulo any prime.
fn ones(n: usize) -> Buffer {
    let mut out = Buffer::dirty(n);
    out.fill(1);
    out
}
