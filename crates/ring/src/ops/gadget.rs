//! Hybrid key switching's sums of products: digits of a polynomial times pairs of polynomials over more primes
//! (`004`, Algorithms 2.4.3–2.4.4).
//!
//! A polynomial c over Q is cut into digits c_j = \[c\] modulo the primes of digit j, each lifted (centred) to Q·P.
//! With pairs that hold P·g_j·s', g_j ≡ 1 modulo the primes of digit j and 0 modulo the others,
//! Σ_j c_j·(b_j, a_j) holds P·c·s'. The digits do not depend on the pairs (hoisting).

use super::{Crossing, Division, Image, PolyPairs, begins_with, group, runs};
use crate::automorphism::EvalPermutation;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::convert::{BasisConverter, Prepared};
use crate::count::{self, What};
use crate::error::RingError;
use crate::modulus::Shoup;
use crate::poly::sealed::Form;
use crate::poly::{Eval, Poly};
use crate::threads;
use std::ops::Range;

/// Two polynomials over Q·P.
pub type Pair = [Poly<Eval>; 2];

/// The digits of polynomials over Q = q_0·…·q_l, over Q·P.
#[derive(Debug)]
pub struct RnsGadget {
    q: RnsBasis,
    qp: RnsBasis,
    /// Which limbs of Q each digit holds.
    digits: Vec<Range<usize>>,
    /// From each digit to all of Q·P; the digit's own limbs are not asked for. None without special primes.
    mod_up: Vec<BasisConverter>,
    /// P modulo each q.
    p: Vec<Shoup>,
}

/// A polynomial cut into digits over Q·P, ready for any number of products.
#[derive(Debug)]
pub struct Digits(Vec<Poly<Eval>>);

impl Digits {
    /// Digits that come from elsewhere, over Q·P.
    pub fn of(digits: Vec<Poly<Eval>>) -> Self {
        Self(digits)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Poly::bytes).sum()
    }

    /// Limb `t` of every digit.
    pub(super) fn limb(&self, t: usize) -> Vec<&[u64]> {
        self.0.iter().map(|d| d.limb(t)).collect()
    }
}

/// How a product with pairs ends: ψ(⌊(P·plus + Σ_j d_j·(b_j, a_j))/D⌉ + (c_0, 0)).
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// Division by the last primes of Q·P.
    pub division: &'a Division,
    /// A pair over Q that is added times P.
    pub plus: Option<[&'a Poly<Eval>; 2]>,
    /// c_0, over the primes that stay or more, and ψ.
    pub image: Option<(&'a Poly<Eval>, &'a EvalPermutation)>,
}

/// A digit on its way to coefficient form: its number, its rows, and what a mod-up makes of them.
type Digit<'a> = (usize, &'a mut [u64], Option<Prepared<'a>>);

impl RnsGadget {
    /// Digits of `digit_limbs` primes of `q` each, over `q` and the special primes `p`.
    ///
    /// # Errors
    /// [`RingError::RepeatedModulus`], [`RingError::Degree`] as [`RnsBasis::concat`].
    pub fn new(q: &RnsBasis, p: &RnsBasis, digit_limbs: usize) -> Result<Self, RingError> {
        let (q, qp, limbs) = (q.clone(), q.concat(p)?, q.len());
        let digits: Vec<Range<usize>> =
            (0..limbs).step_by(digit_limbs).map(|start| start..limbs.min(start + digit_limbs)).collect();
        let mod_up = match p.is_empty() {
            true => Vec::new(),
            false => digits.iter().map(|d| BasisConverter::new(&qp.select(d.clone()), &qp)).collect(),
        };
        let p = q.moduli().map(|m| m.shoup(p.product_modulo(m))).collect();
        Ok(Self { q, qp, digits, mod_up, p })
    }

    /// q_0 … q_l.
    pub fn q(&self) -> &RnsBasis {
        &self.q
    }

    /// q_0 … q_l, p_0 … p_(k−1).
    pub fn qp(&self) -> &RnsBasis {
        &self.qp
    }

    /// Number of digits.
    pub fn digits(&self) -> usize {
        self.digits.len()
    }

    /// Primes of the largest digit.
    fn digit_limbs(&self) -> usize {
        self.digits.first().map_or(1, Range::len)
    }

    /// P modulo prime `t` of Q·P; none for its own primes, where it is zero.
    pub(super) fn p(&self, t: usize) -> Option<&Shoup> {
        self.p.get(t)
    }

    pub(super) fn pairs<'a>(&self, key: &'a PolyPairs, t: usize) -> &'a crate::packed::PackedPairs {
        key.limb(self.q.len(), self.qp.len(), t)
    }

    /// A pair of unspecified content, to be overwritten.
    pub(super) fn dirty(&self) -> Pair {
        [Poly::dirty(&self.qp), Poly::dirty(&self.qp)]
    }

    fn require<F: Form>(&self, c: &Poly<F>) {
        assert_eq!(*c.basis(), self.q, "digits of a polynomial over other primes");
    }

    /// `acc += P · c` for `acc` over Q·P and `c` over Q.
    ///
    /// # Panics
    /// For polynomials over other primes.
    pub fn add_scaled<F: Form>(&self, acc: &mut Poly<F>, c: &Poly<F>) {
        self.require(c);
        acc.mul_scalars_add(c, &self.p);
    }

    /// `b += P · g_j · c`, both over primes that begin with Q: what the pair of digit `j` holds of c.
    ///
    /// # Panics
    /// For polynomials over other primes, or if there are no more than `j` digits.
    pub fn add_digit(&self, j: usize, b: &mut Poly<Eval>, c: &Poly<Eval>) {
        let _crossing = Crossing::begin();
        assert!([b.basis(), c.basis()].iter().all(|basis| begins_with(basis, &self.q)), "another gadget's digit");
        for i in self.digits[j].clone() {
            self.q.limb(i).mul_scalar_add(b.limb_mut(i), c.limb(i), &self.p[i]);
        }
    }

    /// The digits' mod-ups, prepared where `rows` stand (one for each data prime, all of them). Digit by digit, so
    /// that the preparation finds the coefficients in the cache.
    fn prepare<'a, F: Form>(&'a self, rows: &'a mut [u64], c: &Poly<F>) -> Vec<Prepared<'a>> {
        count::add(What::Decompositions, 1);
        let n = c.degree();
        let mut rest = rows;
        let mut digits: Vec<Digit<'a>> = Vec::with_capacity(self.digits.len());
        for (j, digit) in self.digits.iter().enumerate() {
            let (rows, more) = std::mem::take(&mut rest).split_at_mut(n * digit.len());
            rest = more;
            digits.push((j, rows, None));
        }
        threads::for_each_mut(&mut digits, |_, (j, rows, prepared)| {
            let (rows, first) = (std::mem::take(rows), self.digits[*j].start);
            threads::for_each_chunk(rows, n, |i, x| match F::VALUES {
                true => self.q.limb(first + i).inverse_of(x, c.limb(first + i)),
                false => x.copy_from_slice(c.limb(first + i)),
            });
            *prepared = Some(self.mod_up[*j].prepare(rows, true));
        });
        digits.into_iter().filter_map(|(_, _, prepared)| prepared).collect()
    }

    /// RNSDecompModUp (`004`, Algorithm 2.4.3).
    ///
    /// # Panics
    /// For a polynomial over other primes.
    pub fn decompose(&self, c: &Poly<Eval>) -> Digits {
        let _crossing = Crossing::begin();
        self.require(c);
        let n = c.degree();
        let mut rows = Buffer::dirty(c.words().len());
        let prepared = self.prepare(&mut rows, c);
        let mut out: Vec<Poly<Eval>> = self.digits.iter().map(|_| Poly::dirty(&self.qp)).collect();
        let size = group(self.qp.len(), self.digit_limbs());
        let mut runs = runs(out.iter_mut().map(Poly::words_mut), n * size);
        threads::for_each_mut(&mut runs, |g, digits| {
            let first = g * size;
            self.lift(c, &prepared, first, digits);
            for (i, t) in (first..).take(digits[0].len() / n).enumerate() {
                if let Some(own) = self.digits.iter().position(|own| own.contains(&t)) {
                    digits[own][i * n..(i + 1) * n].copy_from_slice(c.limb(t));
                }
            }
        });
        drop(runs);
        Digits(out)
    }

    /// The values of every digit modulo the targets from `first` on, as many as its rows hold. A digit's own primes are
    /// left out where their values are there already.
    fn lift<F: Form>(&self, c: &Poly<F>, prepared: &[Prepared<'_>], first: usize, digits: &mut [&mut [u64]]) {
        let n = c.degree();
        for (j, rows) in digits.iter_mut().enumerate() {
            let own = |(t, _): &(usize, &mut [u64])| self.digits[j].contains(t);
            let (own, wanted): (Vec<_>, Vec<_>) = (first..).zip(rows.chunks_exact_mut(n)).partition(own);
            let (wanted, mut rows): (Vec<usize>, Vec<&mut [u64]>) = wanted.into_iter().unzip();
            self.mod_up[j].finish_many(&prepared[j], &wanted, &mut rows);
            let lifted = wanted.into_iter().zip(rows);
            let own = own.into_iter().filter(|_| !F::VALUES).map(|(t, row)| {
                row.copy_from_slice(c.limb(t));
                (t, row)
            });
            lifted.chain(own).for_each(|(t, row)| self.qp.limb(t).forward(row));
        }
    }

    /// Σ_j d_j · (b_j, a_j) over Q·P.
    ///
    /// # Panics
    /// If pairs are fewer than the digits, or over other primes.
    pub fn product(&self, digits: &Digits, pairs: &PolyPairs) -> Pair {
        let _crossing = Crossing::begin();
        count::add(What::InnerProducts, 1);
        let [mut x, mut y] = self.dirty();
        threads::for_each_chunk_pair(x.words_mut(), y.words_mut(), self.qp.degree(), |t, x, y| {
            self.qp.limb(t).dot_pair_packed([x, y], &digits.limb(t), self.pairs(pairs, t), None);
        });
        [x, y]
    }

    /// Decomposition and product in one pass over the target primes; plus P times a pair over Q, if there is one.
    ///
    /// # Panics
    /// As [`RnsGadget::product`], and for polynomials over other primes.
    pub fn switch<F: Form>(&self, c: &Poly<F>, plus: Option<[&Poly<Eval>; 2]>, pairs: &PolyPairs) -> Pair {
        only(self.switch_many(&[c], plus.as_slice(), pairs))
    }

    /// [`RnsGadget::switch`] of each of a batch, so that each limb of the pairs is read from far memory once for all
    /// of them.
    ///
    /// # Panics
    /// As there, and if `plus` is neither empty nor as long as the batch.
    pub fn switch_many<F: Form>(&self, batch: &[&Poly<F>], plus: &[[&Poly<Eval>; 2]], key: &PolyPairs) -> Vec<Pair> {
        let _crossing = Crossing::begin();
        assert!(plus.is_empty() || plus.len() == batch.len(), "a pair for each polynomial, or none");
        batch.iter().for_each(|c| self.require(c));
        plus.iter().flatten().for_each(|c| self.require(c));
        count::add(What::InnerProducts, batch.len());
        let mut rows: Vec<Buffer> = batch.iter().map(|c| Buffer::dirty(c.words().len())).collect();
        let prepared: Vec<_> = rows.iter_mut().zip(batch).map(|(rows, c)| self.prepare(rows, c)).collect();
        let mut out: Vec<Pair> = batch.iter().map(|_| self.dirty()).collect();
        let size = group(self.qp.len(), self.digit_limbs());
        let mut groups = limbs_of(&mut out, self.qp.degree() * size);
        threads::for_each_mut(&mut groups, |g, outs| {
            for (i, out) in outs.iter_mut().enumerate() {
                self.switch_targets(batch[i], &prepared[i], key, g * size, out);
                self.add_plus(plus.get(i), g * size, out);
            }
        });
        drop(groups);
        out
    }

    /// Decomposition, product and division in one pass over the primes that stay, the last primes of Q·P with P or
    /// without them being divided by: what is divided is not stored.
    ///
    /// # Panics
    /// As [`RnsGadget::switch`], and for a division over other primes.
    pub fn switch_divided<F: Form>(&self, c: &Poly<F>, pairs: &PolyPairs, end: &Ending<'_>) -> Pair {
        only(self.switch_divided_many(&[(c, *end)], pairs))
    }

    /// [`RnsGadget::switch_divided`] of each of a batch, all by one division, so that each limb of the pairs is read
    /// from far memory once for all of them.
    ///
    /// # Panics
    /// As there, and for different divisions.
    pub fn switch_divided_many<F: Form>(&self, batch: &[(&Poly<F>, Ending<'_>)], key: &PolyPairs) -> Vec<Pair> {
        let _crossing = Crossing::begin();
        let ends: Vec<Ending<'_>> = batch.iter().map(|(_, end)| *end).collect();
        batch.iter().for_each(|(c, _)| self.require(*c));
        let mut rows: Vec<Buffer> = batch.iter().map(|(c, _)| Buffer::dirty(c.words().len())).collect();
        let prepared: Vec<_> = rows.iter_mut().zip(batch).map(|(rows, (c, _))| self.prepare(rows, c)).collect();
        self.divided(&ends, self.digit_limbs(), |i, first, out| {
            self.switch_targets(batch[i].0, &prepared[i], key, first, out);
        })
    }

    /// Σ_j d_j · (b_j, a_j) with each of several lists of pairs, divided, all by one division: what is divided is not
    /// stored. Limb after limb, so that each limb of the digits is read from far memory once for all lists.
    ///
    /// # Panics
    /// As [`RnsGadget::product`], and for other or different divisions.
    pub fn products_divided(&self, digits: &Digits, keys: &[(&PolyPairs, Ending<'_>)]) -> Vec<Pair> {
        let _crossing = Crossing::begin();
        let ends: Vec<Ending<'_>> = keys.iter().map(|(_, end)| *end).collect();
        let n = self.qp.degree();
        self.divided(&ends, 1, |i, first, [xs, ys]| {
            for ((t, x), y) in (first..).zip(xs.chunks_exact_mut(n)).zip(ys.chunks_exact_mut(n)) {
                self.qp.limb(t).dot_pair_packed([x, y], &digits.limb(t), self.pairs(keys[i].0, t), None);
            }
        })
    }

    /// Ends some products, all by one division, from `product(i, first, out)`: the limbs from `first` on of product
    /// `i`, as many as `out` has rows, each asked for once. `sources` is how many primes a limb comes from.
    pub(super) fn divided(
        &self,
        ends: &[Ending<'_>],
        sources: usize,
        product: impl Fn(usize, usize, &mut [&mut [u64]; 2]) + Sync,
    ) -> Vec<Pair> {
        let Some(Ending { division, .. }) = ends.first() else { return Vec::new() };
        let (n, kept, tail) = (self.qp.degree(), division.kept(), division.tail());
        let primes = kept.primes().chain(tail.primes());
        assert!(self.qp.primes().eq(primes), "a division of polynomials over other primes");
        for end in ends {
            assert!(std::ptr::eq(end.division, *division), "one division for a batch");
            end.plus.iter().flatten().for_each(|c| self.require(c));
        }
        count::add(What::InnerProducts, ends.len());
        let product = |i: usize, first: usize, out: &mut [&mut [u64]; 2]| {
            product(i, first, out);
            self.add_plus(ends[i].plus.as_ref(), first, out);
        };
        let mut tails: Vec<Buffer> =
            ends.iter().flat_map(|_| [(); 2].map(|()| Buffer::dirty(n * tail.len()))).collect();
        let size = group(tail.len(), sources);
        threads::for_each_mut(&mut runs(tails.iter_mut().map(|tail| &mut **tail), n * size), |g, tails| {
            for (i, pair) in tails.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                product(i, kept.len() + g * size, pair);
            }
        });
        let started = division.start::<Eval>(tails.iter_mut().map(|tail| &mut **tail).collect());
        let mut out: Vec<Pair> = ends.iter().map(|_| [Poly::dirty(kept), Poly::dirty(kept)]).collect();
        let size = group(kept.len(), sources);
        threads::for_each_mut(&mut limbs_of(&mut out, n * size), |g, outs| {
            let first = g * size;
            for (i, (out, started)) in outs.iter_mut().zip(started.chunks_exact(2)).enumerate() {
                match &ends[i].image {
                    None => {
                        product(i, first, out);
                        division.limbs::<Eval, true>(started, first, out);
                    }
                    Some((plus, permutation)) => {
                        let len = out[0].len();
                        let mut products = Buffer::dirty(2 * len);
                        let (x, y) = products.split_at_mut(len);
                        let mut products = [x, y];
                        product(i, first, &mut products);
                        division.limbs_permuted(started, first, &mut products, out, &[Some(*plus), None], permutation);
                    }
                }
            }
        });
        out
    }

    /// `out += P · plus` in the limbs from `first` on.
    fn add_plus(&self, plus: Option<&[&Poly<Eval>; 2]>, first: usize, out: &mut [&mut [u64]; 2]) {
        let Some(plus) = plus else { return };
        let n = self.qp.degree();
        for (rows, c) in out.iter_mut().zip(plus) {
            for (t, x) in (first..).zip(rows.chunks_exact_mut(n)) {
                if let Some(factor) = self.p(t) {
                    self.q.limb(t).mul_scalar_add(x, c.limb(t), factor);
                }
            }
        }
    }

    /// ψ(⟨d, ek⟩ + (c_0, 0)) of each of a batch for the digits d of its c_1, c_0 over Q·P: what P times a ciphertext
    /// becomes under an automorphism. Added to `sums`, where there are any.
    ///
    /// # Panics
    /// As [`RnsGadget::switch_many`], and if there are sums, but not as many.
    pub fn turn_many(&self, batch: &[[&Poly<Eval>; 2]], image: &Image<'_>, sums: Option<Vec<Pair>>) -> Vec<Pair> {
        let _crossing = Crossing::begin();
        batch.iter().for_each(|[_, c1]| self.require(*c1));
        let (n, add) = (self.qp.degree(), sums.is_some());
        let mut out = sums.unwrap_or_else(|| batch.iter().map(|_| self.dirty()).collect());
        let over = |c: &Poly<Eval>| *c.basis() == self.qp;
        assert!(out.len() == batch.len() && out.iter().flatten().chain(batch.iter().map(|[c0, _]| *c0)).all(over));
        count::add(What::InnerProducts, batch.len());
        let mut rows: Vec<Buffer> = batch.iter().map(|[_, c1]| Buffer::dirty(c1.words().len())).collect();
        let prepared: Vec<_> = rows.iter_mut().zip(batch).map(|(rows, [_, c1])| self.prepare(rows, c1)).collect();
        let size = group(self.qp.len(), self.digit_limbs());
        threads::for_each_mut(&mut limbs_of(&mut out, n * size), |g, outs| {
            for (i, [x, y]) in outs.iter_mut().enumerate() {
                let [c0, c1] = batch[i];
                let mut products = Buffer::dirty(2 * x.len());
                let (u, v) = products.split_at_mut(x.len());
                self.switch_targets(c1, &prepared[i], image.pairs, g * size, &mut [&mut *u, &mut *v]);
                for (j, u) in u.chunks_exact_mut(n).enumerate() {
                    self.qp.limb(g * size + j).add_assign(u, c0.limb(g * size + j));
                }
                for (sum, product) in [(x, u), (y, v)] {
                    for (j, (sum, product)) in sum.chunks_exact_mut(n).zip(product.chunks_exact(n)).enumerate() {
                        match add {
                            true => image.permutation.apply_add(self.qp.limb(g * size + j).modulus(), sum, product),
                            false => image.permutation.apply(sum, product),
                        }
                    }
                }
            }
        });
        out
    }

    /// The limbs from `first` on of one product, as many as `out` has rows: all digits modulo a prime, whose transforms
    /// read the same twiddles, then their products.
    fn switch_targets<F: Form>(
        &self,
        c: &Poly<F>,
        prepared: &[Prepared<'_>],
        key: &PolyPairs,
        first: usize,
        [xs, ys]: &mut [&mut [u64]; 2],
    ) {
        let (n, size) = (c.degree(), xs.len());
        let mut lifted = Buffer::dirty(size * self.digits.len());
        let mut digits: Vec<&mut [u64]> = lifted.chunks_exact_mut(size).collect();
        self.lift(c, prepared, first, &mut digits);
        for (i, (x, y)) in xs.chunks_exact_mut(n).zip(ys.chunks_exact_mut(n)).enumerate() {
            let (t, limb) = (first + i, self.qp.limb(first + i));
            let digits: Vec<&[u64]> = digits
                .iter()
                .zip(&self.digits)
                .map(|(digit, own)| match F::VALUES && own.contains(&t) {
                    true => c.limb(t),
                    false => &digit[i * n..(i + 1) * n],
                })
                .collect();
            limb.dot_pair_packed([x, y], &digits, self.pairs(key, t), None);
        }
    }
}

/// The result of a batch of one.
pub(super) fn only(pairs: Vec<Pair>) -> Pair {
    let mut pairs = pairs.into_iter();
    let Some(pair) = pairs.next() else { unreachable!("a batch has as many results as operands") };
    pair
}

/// Both polynomials of each pair, cut into runs of `size` words: for each run, those of all pairs.
pub(super) fn limbs_of(pairs: &mut [Pair], size: usize) -> Vec<Vec<[&mut [u64]; 2]>> {
    let mut limbs: Vec<Vec<[&mut [u64]; 2]>> = Vec::new();
    for [x, y] in pairs {
        for (t, (x, y)) in x.words_mut().chunks_mut(size).zip(y.words_mut().chunks_mut(size)).enumerate() {
            if limbs.len() == t {
                limbs.push(Vec::new());
            }
            limbs[t].push([x, y]);
        }
    }
    limbs
}
