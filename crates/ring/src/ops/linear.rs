//! The sums of a linear map with two kinds of steps (double hoisting).
//!
//! Part by part: values whose exponents agree modulo a power of two are neighbours, and an automorphism takes each
//! such part from one part. So a baby's product, its automorphism and the sums that it is in follow one another while
//! it is in the nearest caches, and no baby is ever whole in memory.

use super::gadget::{limbs_of, only};
use super::periodic::{RowTerm, weighted_sums};
use super::{Crossing, Digits, Division, Ending, Image, Pair, PeriodicPoly, PolyPairs, RnsGadget};
use crate::automorphism::{EvalPermutation, PartPermutation};
use crate::buffer::Buffer;
use crate::count::{self, What};
use crate::poly::{Eval, Poly};
use crate::threads;
use std::ops::Range;

/// Words of a part: those of sixteen babies stay in the second cache while every giant step reads them.
const PART: usize = 2048;

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

/// An automorphism by parts.
struct Turn<'a> {
    pairs: &'a PolyPairs,
    parts: Vec<PartPermutation>,
}

impl<'a> Turn<'a> {
    fn of(image: &Image<'a>) -> Self {
        Self { pairs: image.pairs, parts: image.permutation.parts(parts(image.permutation.degree())) }
    }
}

/// How many parts a row has.
fn parts(n: usize) -> usize {
    (n / PART).max(1)
}

/// Σ_i ψ_i(p_i·c), for p_i over the primes of c.
///
/// # Panics
/// For a p_i over fewer primes.
pub fn images_of_products(c: &Poly<Eval>, terms: &[(&PeriodicPoly, &EvalPermutation)]) -> Poly<Eval> {
    let _crossing = Crossing::begin();
    let (basis, n) = (c.basis(), c.degree());
    let (count, width) = (parts(n), n / parts(n));
    assert!(terms.iter().all(|(p, _)| p.limbs() >= basis.len()), "polynomials over fewer primes");
    let turns: Vec<Vec<PartPermutation>> = terms.iter().map(|(_, permutation)| permutation.parts(count)).collect();
    let mut out = Poly::<Eval>::zero(basis);
    threads::for_each_chunk(out.words_mut(), width, |job, out| {
        let (t, part) = (job / count, job % count);
        let mut scratch = Buffer::dirty(2 * width);
        let (scratch, product) = scratch.split_at_mut(width);
        for ((p, _), parts) in terms.iter().zip(&turns) {
            let at = parts[part].from * width;
            let row = p.part(t, at, scratch);
            basis.limb(t).mul(product, &c.limb(t)[at..at + width], row);
            parts[part].apply_add(basis.limb(t).modulus(), out, product);
        }
    });
    out
}

/// One limb of a root: P·c_0 where it is not zero, the digits.
struct RootLimb<'a> {
    scaled: Option<Buffer>,
    whole: Option<&'a [u64]>,
    digits: Vec<&'a [u64]>,
}

impl RootLimb<'_> {
    fn start(&self, at: &Range<usize>) -> Option<&[u64]> {
        self.scaled.as_deref().or(self.whole).map(|row| &row[at.clone()])
    }
}

impl RnsGadget {
    /// Σ_i p_i ⊙ baby_i over Q·P, for each giant step of each source: its terms name a baby and a polynomial over
    /// these primes (or over more q's). The babies are P times the images of a source's roots, numbered root after
    /// root; `None` is the root itself.
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
        count::add(What::InnerProducts, sources.len() * babies.iter().flatten().flatten().count());
        let n = self.qp().degree();
        let (parts, count) = (parts(n), babies.iter().map(Vec::len).sum::<usize>());
        let width = n / parts;
        let turns: Vec<Vec<Option<Turn<'_>>>> =
            babies.iter().map(|babies| babies.iter().map(|baby| baby.as_ref().map(Turn::of)).collect()).collect();
        let mut out: Vec<Pair> = sources.iter().flat_map(|_| giants.iter().map(|_| self.dirty())).collect();
        let mut rows = limbs_of(&mut out, n);
        threads::for_each_mut(&mut rows, |t, outs| {
            let mut scratch = Buffer::dirty(2 * width * (count + 1));
            let (products, rows) = scratch.split_at_mut(2 * width);
            for (roots, outs) in sources.iter().zip(outs.chunks_mut(giants.len())) {
                let limbs: Vec<RootLimb<'_>> = roots.iter().map(|root| self.root_limb(root, t)).collect();
                for part in 0..parts {
                    let mut rows_left = rows.chunks_exact_mut(2 * width);
                    for ((root, limb), turns) in roots.iter().zip(&limbs).zip(&turns) {
                        for (turn, row) in turns.iter().zip(&mut rows_left) {
                            let (x, y) = row.split_at_mut(width);
                            match turn {
                                Some(turn) => self.image_part((t, part), limb, turn, products, [x, y]),
                                None => self.root_part((t, part), root, limb, [x, y]),
                            }
                        }
                    }
                    let at = part * width..(part + 1) * width;
                    for (terms, [x, y]) in giants.iter().zip(outs.iter_mut()) {
                        self.giant_part(t, terms, rows, &at, [&mut x[at.clone()], &mut y[at.clone()]]);
                    }
                }
            }
        });
        drop(rows);
        let mut out = out.into_iter();
        sources.iter().map(|_| out.by_ref().take(giants.len()).collect()).collect()
    }

    /// ψ(P·c_0 + ⟨d, ek⟩) over Q·P for the digits d of c_1: P times a root's image.
    ///
    /// # Panics
    /// As [`RnsGadget::products_divided`].
    pub fn image(&self, root: &Root<'_>, image: &Image<'_>) -> Pair {
        let _crossing = Crossing::begin();
        count::add(What::InnerProducts, 1);
        let (n, turn) = (self.qp().degree(), Turn::of(image));
        let width = n / turn.parts.len();
        let mut out = [self.dirty()];
        threads::for_each_mut(&mut limbs_of(&mut out, n), |t, outs| {
            let limb = self.root_limb(root, t);
            let mut products = Buffer::dirty(2 * width);
            for [x, y] in outs {
                for (part, (x, y)) in x.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).enumerate() {
                    self.image_part((t, part), &limb, &turn, &mut products, [x, y]);
                }
            }
        });
        let [pair] = out;
        pair
    }

    /// ⌊Σ_i ψ_i(⟨d, ek_i⟩)/D⌉ for digits d over Q·P and any pairs ek_i: all images are divided together, and none is whole in
    /// memory.
    ///
    /// # Panics
    /// As [`RnsGadget::products_divided`].
    pub fn images_divided(&self, digits: &Digits, images: &[Image<'_>], division: &Division) -> Pair {
        let _crossing = Crossing::begin();
        // The division counts one.
        count::add(What::InnerProducts, images.len().saturating_sub(1));
        let (n, turns) = (self.qp().degree(), images.iter().map(Turn::of).collect::<Vec<_>>());
        let width = n / parts(n);
        only(self.divided(&[Ending { division, plus: None, image: None }], 1, |_, first, [xs, ys]| {
            let mut products = Buffer::dirty(2 * width);
            let (u, v) = products.split_at_mut(width);
            for ((t, xs), ys) in (first..).zip(xs.chunks_exact_mut(n)).zip(ys.chunks_exact_mut(n)) {
                let (limb, digits) = (self.qp().limb(t), digits.limb(t));
                for (part, (x, y)) in xs.chunks_exact_mut(width).zip(ys.chunks_exact_mut(width)).enumerate() {
                    x.fill(0);
                    y.fill(0);
                    for Turn { pairs, parts } in &turns {
                        let at = parts[part].from * width..(parts[part].from + 1) * width;
                        let digits: Vec<&[u64]> = digits.iter().map(|digit| &digit[at.clone()]).collect();
                        let pairs = self.pairs(pairs, t).from(at.start);
                        limb.dot_part_packed([&mut *u, &mut *v], &digits, pairs, None);
                        parts[part].apply_add(limb.modulus(), x, u);
                        parts[part].apply_add(limb.modulus(), y, v);
                    }
                }
            }
        }))
    }

    /// Limb `t` of a root.
    fn root_limb<'a>(&self, root: &Root<'a>, t: usize) -> RootLimb<'a> {
        // c_0 times P: computed of the input's, there already for the others, zero modulo P.
        let over_q = root.c0.basis().len() <= self.q().len();
        RootLimb {
            scaled: if over_q { self.scaled_limb(root.c0, t) } else { None },
            whole: (!over_q).then(|| root.c0.limb(t)),
            digits: root.digits.limb(t),
        }
    }

    /// Part `part` of limb `t` of an image of a root, in two rows; `products` holds two more.
    fn image_part(
        &self,
        (t, part): (usize, usize),
        root: &RootLimb<'_>,
        turn: &Turn<'_>,
        products: &mut [u64],
        [x, y]: [&mut [u64]; 2],
    ) {
        let (permutation, width) = (&turn.parts[part], x.len());
        let at = permutation.from * width..(permutation.from + 1) * width;
        let digits: Vec<&[u64]> = root.digits.iter().map(|digit| &digit[at.clone()]).collect();
        let pairs = self.pairs(turn.pairs, t).from(at.start);
        let (u, v) = products.split_at_mut(width);
        self.qp().limb(t).dot_part_packed([&mut *u, &mut *v], &digits, pairs, root.start(&at));
        permutation.apply(x, u);
        permutation.apply(y, v);
    }

    /// Part `part` of limb `t` of P times a root itself, in two rows.
    fn root_part(&self, (t, part): (usize, usize), root: &Root<'_>, limb: &RootLimb<'_>, [x, y]: [&mut [u64]; 2]) {
        let at = part * x.len()..(part + 1) * x.len();
        match limb.start(&at) {
            Some(start) => x.copy_from_slice(start),
            None => x.fill(0),
        }
        match self.p(t) {
            Some(p) => {
                y.copy_from_slice(&root.c1.limb(t)[at]);
                self.qp().limb(t).mul_scalar(y, p);
            }
            None => y.fill(0),
        }
    }

    /// The words `at` of limb `t` of a giant step's sums, from those of all babies.
    fn giant_part(&self, t: usize, terms: &[Term<'_>], babies: &[u64], at: &Range<usize>, outs: [&mut [u64]; 2]) {
        // The special primes stand behind those that a polynomial is prepared for.
        let stored = |p: &PeriodicPoly| if t < self.q().len() { t } else { t + p.limbs() - self.qp().len() };
        let row = |row: usize| &babies[row * at.len()..(row + 1) * at.len()];
        let terms: Vec<RowTerm<'_, 2>> =
            terms.iter().map(|(baby, p)| ([row(2 * baby), row(2 * baby + 1)], *p, stored(p))).collect();
        match terms.is_empty() {
            true => outs.into_iter().for_each(|out| out.fill(0)),
            false => weighted_sums(self.qp().limb(t), outs, at.start, &terms),
        }
    }
}
