//! The sums of a linear map with two kinds of steps (double hoisting).

use super::gadget::limbs_of;
use super::periodic::{RowTerm, weighted_sum};
use super::{Crossing, Digits, Image, Pair, PeriodicPoly, RnsGadget};
use crate::buffer::Buffer;
use crate::poly::{Eval, Poly};
use crate::threads;

/// What babies are hoisted from: c_0 over Q, or times P over Q·P; c_1 over Q; the digits of c_1.
#[derive(Clone, Copy, Debug)]
pub struct Root<'a> {
    /// c_0.
    pub c0: &'a Poly<Eval>,
    /// c_1.
    pub c1: &'a Poly<Eval>,
    /// The digits of c_1.
    pub digits: &'a Digits,
}

/// A baby's number, and what multiplies it.
pub type Term<'a> = (usize, &'a PeriodicPoly);

impl RnsGadget {
    /// Σ_i p_i ⊙ baby_i over Q·P, for each giant step of each source: its terms name a baby and a polynomial over
    /// these primes (or over more q's). The babies are P times the images of a source's roots, numbered root after
    /// root; `None` is the root itself. Limb by limb: a limb's babies stay in the cache while every giant step reads
    /// them.
    ///
    /// # Panics
    /// If a source has not as many roots as there are lists of babies, or a term names none of them.
    pub fn hoisted_sums(
        &self,
        sources: &[Vec<Root<'_>>],
        babies: &[Vec<Option<Image<'_>>>],
        giants: &[Vec<Term<'_>>],
    ) -> Vec<Vec<Pair>> {
        let _crossing = Crossing::begin();
        assert!(sources.iter().all(|roots| roots.len() == babies.len()), "babies of other roots");
        let n = self.qp().degree();
        let count: usize = babies.iter().map(Vec::len).sum();
        let mut out: Vec<Pair> = sources.iter().flat_map(|_| giants.iter().map(|_| self.dirty())).collect();
        let mut rows = limbs_of(&mut out, n);
        threads::for_each_mut(&mut rows, |t, outs| {
            let mut scratch = Buffer::dirty(2 * n * count);
            for (roots, outs) in sources.iter().zip(outs.chunks_mut(giants.len())) {
                self.baby_rows(t, roots, babies, &mut scratch);
                for (terms, out) in giants.iter().zip(outs) {
                    self.giant_rows(t, terms, &scratch, out);
                }
            }
        });
        drop(rows);
        let mut out = out.into_iter();
        sources.iter().map(|_| out.by_ref().take(giants.len()).collect()).collect()
    }

    /// Limb `t` of every baby: two rows each.
    fn baby_rows(&self, t: usize, roots: &[Root<'_>], babies: &[Vec<Option<Image<'_>>>], out: &mut [u64]) {
        let (n, limb) = (self.qp().degree(), self.qp().limb(t));
        let mut rows = out.chunks_exact_mut(2 * n);
        let (mut u, mut v) = (Buffer::dirty(n), Buffer::dirty(n));
        for (root, babies) in roots.iter().zip(babies) {
            let digits = root.digits.limb(t);
            // c_0 times P: computed of the input's, there already for the others, zero modulo P.
            let over_q = root.c0.basis().len() <= self.q().len();
            let times_p = if over_q { self.scaled_limb(root.c0, t) } else { None };
            let start = times_p.as_deref().or((!over_q).then(|| root.c0.limb(t)));
            for (baby, row) in babies.iter().zip(&mut rows) {
                let (x, y) = row.split_at_mut(n);
                match baby {
                    Some(Image { pairs, permutation }) => {
                        limb.dot_pair_packed([&mut u, &mut v], &digits, self.pairs(pairs, t), start);
                        permutation.apply(x, &u);
                        permutation.apply(y, &v);
                    }
                    None => {
                        copy_or_zero(x, start);
                        copy_or_zero(y, self.scaled_limb(root.c1, t).as_deref());
                    }
                }
            }
        }
    }

    fn giant_rows(&self, t: usize, terms: &[Term<'_>], babies: &[u64], out: &mut [&mut [u64]; 2]) {
        let n = self.qp().degree();
        for (part, out) in out.iter_mut().enumerate() {
            // The special primes stand behind those that a polynomial is prepared for.
            let stored = |p: &PeriodicPoly| if t < self.q().len() { t } else { t + p.limbs() - self.qp().len() };
            let row = |baby: usize| &babies[(2 * baby + part) * n..][..n];
            let terms: Vec<RowTerm<'_>> = terms.iter().map(|(baby, p)| (row(*baby), *p, stored(p))).collect();
            match terms.is_empty() {
                true => out.fill(0),
                false => weighted_sum(self.qp().limb(t), out, &terms),
            }
        }
    }
}

fn copy_or_zero(out: &mut [u64], row: Option<&[u64]>) {
    match row {
        Some(row) => out.copy_from_slice(row),
        None => out.fill(0),
    }
}
