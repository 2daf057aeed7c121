//! Sums of products and of multiples in one pass: a step of a polynomial evaluated on ciphertexts.

use super::elementwise::dot_rows;
use super::periodic::{RowTerm, weighted_sums};
use super::{Crossing, Pair, PeriodicPoly, begins_with, runs};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::Limb;
use crate::poly::{Eval, Poly};
use crate::threads;

/// Words of each row that are worked on at a time: what one part reads, the others find in the nearest caches.
const COLUMNS: usize = 2048;

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
        let count = if self.products.is_empty() { 2 } else { 3 };
        let (n, width) = (basis.degree(), basis.degree().min(COLUMNS));
        let ones = ones(if self.constant.is_some() { width } else { 0 });
        let mut out: Vec<Poly<Eval>> = (0..count).map(|_| Poly::dirty(basis)).collect();
        threads::for_each_mut(&mut runs(out.iter_mut().map(Poly::words_mut), n), |t, parts| {
            for start in (0..n).step_by(width) {
                for (part, row) in parts.iter_mut().enumerate() {
                    self.columns(basis.limb(t), (t, part, start), &ones, &mut row[start..start + width]);
                }
            }
        });
        out
    }

    /// Some words from `start` on of limb `t` of part 0, 1 or 2, `ones` being as many of the polynomial one.
    fn columns(&self, limb: &Limb, (t, part, start): (usize, usize, usize), ones: &[u64], x: &mut [u64]) {
        let at = start..start + x.len();
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for [a, b] in &self.products {
            for i in part.saturating_sub(1)..=part.min(1) {
                left.push(&a[i].limb(t)[at.clone()]);
                right.push(&b[part - i].limb(t)[at.clone()]);
            }
        }
        let mut terms: Vec<RowTerm<'_, 1>> = Vec::new();
        if part < 2 {
            terms.extend(self.multiples.iter().map(|(v, p)| ([&v[part].limb(t)[at.clone()]], *p, t)));
        }
        if let (0, Some(p)) = (part, self.constant) {
            terms.push(([ones], p, t));
        }
        match (left.is_empty(), terms.is_empty()) {
            (true, true) => x.fill(0),
            (true, false) => weighted_sums(limb, [x], start, &terms),
            (false, empty) => {
                dot_rows(limb, x, &left, &right);
                if self.factor > 1 {
                    limb.mul_scalar(x, &limb.modulus().shoup(self.factor));
                }
                if !empty {
                    let mut more = Buffer::dirty(x.len());
                    weighted_sums(limb, [&mut more], start, &terms);
                    limb.add_assign(x, &more);
                }
            }
        }
    }
}

/// The polynomial one, evaluated modulo any prime.
fn ones(n: usize) -> Buffer {
    let mut out = Buffer::dirty(n);
    out.fill(1);
    out
}
