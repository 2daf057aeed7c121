//! Hybrid key switching: decomposition, inner product, mod-down (`004`, Algorithms 2.4.1–2.4.4).
//!
//! A polynomial c over Q_l is cut into digits c_j = \[c\] modulo the primes of digit j, each
//! lifted (centred) to Q_l·P. With the gadget of [`KeySwitchKey`], Σ_j c_j·(b_j, a_j) encrypts
//! P·c·s' over Q_l·P; dividing by P gives c·s' under s. The decomposition does not depend on the
//! key (hoisting), and sums over Q_l·P need one division together (lazy mod-down).

use crate::error::HeError;
use crate::keys::{GaloisKey, KeySwitchKey};
use crate::params::{LevelTables, Params};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, Prepared};
use sudare_ring::{Eval, Poly, Shoup, threads};

/// A polynomial cut into digits over Q_l·P, ready for any number of keys.
pub struct Decomposed {
    pub(crate) level: usize,
    digits: Vec<Poly<Eval>>,
}

impl Decomposed {
    /// Digits that come from elsewhere, over Q_l·P.
    pub(crate) fn of(level: usize, digits: Vec<Poly<Eval>>) -> Self {
        Self { level, digits }
    }

    /// Level of the polynomial.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Limb `t` of every digit.
    pub(crate) fn limb(&self, t: usize) -> Vec<&[u64]> {
        self.digits.iter().map(|d| d.limb(t)).collect()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.digits.iter().map(|d| d.words().len() * 8).sum()
    }
}

/// A pair (c_0, c_1) over Q_l·P: P times what a ciphertext's parts will be.
#[derive(Clone, Debug)]
pub struct ExtendedPair {
    pub(crate) level: usize,
    pub(crate) c: [Poly<Eval>; 2],
}

impl ExtendedPair {
    /// The zero pair.
    pub fn zero(params: &Params, level: usize) -> Self {
        Self { level, c: [Poly::zero(params.qp_at(level)), Poly::zero(params.qp_at(level))] }
    }

    /// A pair of unspecified content, to be overwritten.
    pub(crate) fn dirty(params: &Params, level: usize) -> Self {
        Self { level, c: [Poly::dirty(params.qp_at(level)), Poly::dirty(params.qp_at(level))] }
    }

    /// Both polynomials over Q_l·P.
    pub fn into_parts(self) -> [Poly<Eval>; 2] {
        self.c
    }

    /// `self += other`.
    pub fn add_assign(&mut self, other: &Self) {
        self.c[0].add_assign(&other.c[0]);
        self.c[1].add_assign(&other.c[1]);
    }

    /// `self −= other`.
    pub(crate) fn sub_assign(&mut self, other: &Self) {
        self.c[0].sub_assign(&other.c[0]);
        self.c[1].sub_assign(&other.c[1]);
    }

    /// Both polynomials under an automorphism.
    pub(crate) fn permuted(self, permutation: &EvalPermutation) -> Self {
        Self { level: self.level, c: self.c.map(|c| c.permuted(permutation)) }
    }

    /// `c_i += P · p` for a polynomial over Q_l.
    pub(crate) fn add_scaled(&mut self, params: &Params, i: usize, p: &Poly<Eval>) {
        let tables = params.tables(self.level);
        let (basis, n) = (params.q_at(self.level), params.degree());
        let q_words = basis.len() * n;
        threads::for_each_chunk(&mut self.c[i].words_mut()[..q_words], n, |l, x| {
            basis.limb(l).mul_scalar_add(x, p.limb(l), &tables.p_mod_q[l]);
        });
    }
}

/// A digit on its way to coefficient form: its number, its rows, and what a mod-up makes of them.
type Digit<'a> = (usize, &'a mut [u64], Option<Prepared<'a>>);

/// The digits' mod-ups, prepared where `rows` stand (one for each data prime, all of them).
/// `load(i, row)` writes the coefficients of limb i. Digit by digit, so that the preparation
/// finds the coefficients in the cache.
pub(crate) fn prepare_digits<'a>(
    tables: &'a LevelTables,
    rows: &'a mut [u64],
    n: usize,
    load: impl Fn(usize, &mut [u64]) + Sync + Send,
) -> Vec<Prepared<'a>> {
    let mut rest = rows;
    let mut digits: Vec<Digit<'a>> = Vec::with_capacity(tables.digits.len());
    for (j, digit) in tables.digits.iter().enumerate() {
        let (rows, more) = std::mem::take(&mut rest).split_at_mut(n * digit.len());
        rest = more;
        digits.push((j, rows, None));
    }
    threads::for_each_mut(&mut digits, |_, (j, rows, prepared)| {
        let rows = std::mem::take(rows);
        let first = tables.digits[*j].start;
        threads::for_each_chunk(rows, n, |i, x| load(first + i, x));
        *prepared = Some(tables.mod_up[*j].prepare(rows, true));
    });
    digits.into_iter().filter_map(|(_, _, prepared)| prepared).collect()
}

/// [`prepare_digits`] of a polynomial in evaluation form.
fn prepare_eval<'a>(tables: &'a LevelTables, rows: &'a mut [u64], c: &Poly<Eval>) -> Vec<Prepared<'a>> {
    prepare_digits(tables, rows, c.degree(), |i, x| {
        x.copy_from_slice(c.limb(i));
        tables.q.limb(i).inverse(x);
    })
}

/// Limb `t` (of Q_l·P) of digit `j`, in evaluation form.
fn digit_limb(tables: &LevelTables, c: &Poly<Eval>, prepared: &Prepared<'_>, j: usize, t: usize, out: &mut [u64]) {
    if tables.digits[j].contains(&t) {
        out.copy_from_slice(c.limb(t));
    } else {
        tables.mod_up[j].finish(prepared, t, out);
        tables.qp.limb(t).forward(out);
    }
}

/// RNSDecompModUp (`004`, Algorithm 2.4.3).
pub(crate) fn decompose(params: &Params, level: usize, c: &Poly<Eval>) -> Decomposed {
    let tables = params.tables(level);
    let n = params.degree();
    let mut rows = Buffer::dirty(c.words().len());
    let prepared = prepare_eval(tables, &mut rows, c);
    let digits = (0..tables.digits.len())
        .map(|j| {
            let mut digit = Poly::dirty(&tables.qp);
            threads::for_each_chunk(digit.words_mut(), n, |t, x| digit_limb(tables, c, &prepared[j], j, t, x));
            digit
        })
        .collect();
    Decomposed { level, digits }
}

/// How many of `limbs` target primes share one reading of a conversion's source: enough to save
/// most of the memory traffic, and no more than leaves every thread its share.
fn group(limbs: usize) -> usize {
    (limbs / threads::count()).clamp(1, 4)
}

/// Runs `work(t, x, y)` on the limbs of two polynomials over one basis together.
fn for_each_limb_pair(pair: &mut [Poly<Eval>; 2], work: impl Fn(usize, &mut [u64], &mut [u64]) + Sync + Send) {
    let n = pair[0].degree();
    let [x, y] = pair;
    threads::for_each_chunk_pair(x.words_mut(), y.words_mut(), n, work);
}

/// Refuses a key that does not reach a level.
pub(crate) fn check_key(key: &KeySwitchKey, operation: &'static str, level: usize) -> Result<(), HeError> {
    if level > key.level {
        return Err(HeError::NoSuchLevel { operation, wanted: level, highest: key.level });
    }
    Ok(())
}

/// Σ_j d_j · (b_j, a_j) over Q_l·P, for digits that exist already.
pub(crate) fn inner_product(params: &Params, decomposed: &Decomposed, key: &KeySwitchKey) -> ExtendedPair {
    let [pair] = inner_products(params, decomposed, [key]);
    pair
}

/// [`inner_product`] with several keys: limb after limb, so that each limb of the digits is read
/// from far memory once for all of them.
pub(crate) fn inner_products<const K: usize>(
    params: &Params,
    decomposed: &Decomposed,
    keys: [&KeySwitchKey; K],
) -> [ExtendedPair; K] {
    let level = decomposed.level;
    let (basis, n) = (params.qp_at(level), params.degree());
    let mut pairs = keys.map(|_| ExtendedPair::dirty(params, level));
    let mut limbs: Vec<Vec<[&mut [u64]; 2]>> = (0..basis.len()).map(|_| Vec::with_capacity(K)).collect();
    for pair in &mut pairs {
        let [x, y] = &mut pair.c;
        let rows = x.words_mut().chunks_exact_mut(n).zip(y.words_mut().chunks_exact_mut(n));
        limbs.iter_mut().zip(rows).for_each(|(limb, (x, y))| limb.push([x, y]));
    }
    threads::for_each_mut(&mut limbs, |t, outs| {
        let digits = decomposed.limb(t);
        for (out, key) in std::mem::take(outs).into_iter().zip(keys) {
            basis.limb(t).dot_pair_packed(out, &digits, key.limb(level, t), None);
        }
    });
    drop(limbs);
    pairs
}

/// One term of [`sum_of_images`]: the key of an automorphism, or the polynomial pair itself.
pub(crate) type Image<'a> = Option<&'a GaloisKey>;

/// Σ_g ψ_g(P·c_0 + ⟨d, ek_g⟩) over Q_l·P for the digits d of c_1: the loops of HoistKS (`004`,
/// Algorithm 3.2.1) without its division, so that any number of terms shares one.
///
/// Limb by limb: the digits' rows and both sums stay in the cache while the keys stream past.
/// Work is cut by limbs, and by terms as well where there are more threads than limbs; each part
/// has sums of its own, so nothing waits inside.
pub(crate) fn sum_of_images(
    params: &Params,
    [c0, c1]: [&Poly<Eval>; 2],
    decomposed: &Decomposed,
    images: &[Image<'_>],
) -> ExtendedPair {
    let level = decomposed.level;
    let tables = params.tables(level);
    let (basis, n) = (&tables.qp, params.degree());
    let part = |t: usize, images: &[Image<'_>], x: &mut [u64], y: &mut [u64]| {
        let limb = basis.limb(t);
        let digits = decomposed.limb(t);
        let scaled = |c: &Poly<Eval>| {
            let mut out = Buffer::from_slice(c.limb(t));
            limb.mul_scalar(&mut out, &tables.p_mod_q[t]);
            out
        };
        // P is zero modulo its own primes.
        let start = (t <= level).then(|| scaled(c0));
        let (mut u, mut v) = (Buffer::dirty(n), Buffer::dirty(n));
        let mut empty = true;
        for key in images.iter().flatten() {
            limb.dot_pair_packed([&mut u, &mut v], &digits, key.key.limb(level, t), start.as_deref());
            for (sum, image) in [(&mut *x, &u), (&mut *y, &v)] {
                match empty {
                    true => key.permutation.apply(sum, image),
                    false => key.permutation.apply_add(limb.modulus(), sum, image),
                }
            }
            empty = false;
        }
        if empty {
            x.fill(0);
            y.fill(0);
        }
        if let Some(start) = start {
            for _ in images.iter().filter(|key| key.is_none()) {
                limb.add_assign(x, &start);
                limb.add_assign(y, &scaled(c1));
            }
        }
    };
    let mut pair = ExtendedPair::dirty(params, level);
    let groups = threads::count().div_ceil(basis.len()).min(images.len());
    if groups <= 1 {
        for_each_limb_pair(&mut pair.c, |t, x, y| part(t, images, x, y));
        return pair;
    }
    let cuts: Vec<_> = images.chunks(images.len().div_ceil(groups)).collect();
    let partial = threads::map(basis.len() * cuts.len(), |at| {
        let (mut x, mut y) = (Buffer::dirty(n), Buffer::dirty(n));
        part(at / cuts.len(), cuts[at % cuts.len()], &mut x, &mut y);
        [x, y]
    });
    for_each_limb_pair(&mut pair.c, |t, x, y| {
        let [first, more @ ..] = &partial[t * cuts.len()..(t + 1) * cuts.len()] else { return };
        x.copy_from_slice(&first[0]);
        y.copy_from_slice(&first[1]);
        for [u, v] in more {
            basis.limb(t).add_assign(x, u);
            basis.limb(t).add_assign(y, v);
        }
    });
    pair
}

/// Decomposition and inner product in one pass over the target primes, for a single key.
pub(crate) fn switch(params: &Params, level: usize, c: &Poly<Eval>, key: &KeySwitchKey) -> ExtendedPair {
    let mut out = [ExtendedPair::dirty(params, level)];
    switch_into(params, level, &[c], key, &mut out);
    let [pair] = out;
    pair
}

/// [`switch`] of several polynomials at one level, so that each limb of the key is read from far
/// memory once for all of them.
pub(crate) fn switch_into(
    params: &Params,
    level: usize,
    cs: &[&Poly<Eval>],
    key: &KeySwitchKey,
    out: &mut [ExtendedPair],
) {
    let tables = params.tables(level);
    let n = params.degree();
    let mut rows: Vec<Buffer> = cs.iter().map(|c| Buffer::dirty(c.words().len())).collect();
    let prepared: Vec<_> = rows.iter_mut().zip(cs).map(|(rows, c)| prepare_eval(tables, rows, c)).collect();
    // Two targets at a time: more would not leave their digits in the cache.
    let size = group(tables.qp.len()).min(2);
    let mut groups: Vec<Vec<[&mut [u64]; 2]>> = (0..tables.qp.len().div_ceil(size)).map(|_| Vec::new()).collect();
    for pair in out {
        let [x, y] = &mut pair.c;
        let chunks = x.words_mut().chunks_mut(n * size).zip(y.words_mut().chunks_mut(n * size));
        groups.iter_mut().zip(chunks).for_each(|(group, (x, y))| group.push([x, y]));
    }
    threads::for_each_mut(&mut groups, |g, outs| {
        for ((out, prepared), c) in outs.iter_mut().zip(&prepared).zip(cs) {
            switch_targets(tables, c, prepared, key, (level, g * size), out);
        }
    });
}

/// The limbs from `first` on of one switched polynomial, as many as `out` has rows.
fn switch_targets(
    tables: &LevelTables,
    c: &Poly<Eval>,
    prepared: &[Prepared<'_>],
    key: &KeySwitchKey,
    (level, first): (usize, usize),
    [xs, ys]: &mut [&mut [u64]; 2],
) {
    let (n, count) = (c.degree(), tables.digits.len());
    let targets = first..first + xs.len() / n;
    let mut lifted = Buffer::dirty(n * count * targets.len());
    for (j, rows) in lifted.chunks_exact_mut(n * targets.len()).enumerate() {
        let (wanted, mut rows): (Vec<usize>, Vec<&mut [u64]>) =
            targets.clone().zip(rows.chunks_exact_mut(n)).filter(|(t, _)| !tables.digits[j].contains(t)).unzip();
        tables.mod_up[j].finish_many(&prepared[j], &wanted, &mut rows);
        wanted.iter().zip(rows).for_each(|(t, row)| tables.qp.limb(*t).forward(row));
    }
    for (i, (x, y)) in xs.chunks_exact_mut(n).zip(ys.chunks_exact_mut(n)).enumerate() {
        let t = targets.start + i;
        let digit = |j: usize| match tables.digits[j].contains(&t) {
            true => c.limb(t),
            false => &lifted[(j * targets.len() + i) * n..][..n],
        };
        let digits: Vec<&[u64]> = (0..count).map(digit).collect();
        tables.qp.limb(t).dot_pair_packed([x, y], &digits, key.limb(level, t), None);
    }
}

/// Divides by the product of the special primes: RNSModDown (`004`, Algorithm 2.4.2).
pub(crate) fn mod_down(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    match &tables.mod_down {
        Some(converter) => divide(c, converter, &tables.p_inv),
        None => c,
    }
}

/// ψ(⌊c / P⌉ + plus): the end of a rotation, each limb finished while it is in the cache.
pub(crate) fn mod_down_permuted(
    params: &Params,
    level: usize,
    mut c: Poly<Eval>,
    plus: Option<&Poly<Eval>>,
    permutation: &EvalPermutation,
) -> Poly<Eval> {
    let tables = params.tables(level);
    let (basis, n) = (&tables.q, params.degree());
    let mut out = Poly::dirty(basis);
    let (kept, tail) = c.words_mut().split_at_mut(basis.len() * n);
    let division = tables.mod_down.as_ref().map(|converter| Division::new(&tables.qp, converter, &tables.p_inv, tail));
    let group = group(basis.len());
    threads::for_each_chunk_pair(out.words_mut(), kept, n * group, |g, outs, xs| {
        if let Some(division) = &division {
            division.limbs(g * group, xs);
        }
        for (i, (out, x)) in outs.chunks_exact_mut(n).zip(xs.chunks_exact_mut(n)).enumerate() {
            if let Some(plus) = plus {
                basis.limb(g * group + i).add_assign(x, plus.limb(g * group + i));
            }
            permutation.apply(out, x);
        }
    });
    out
}

/// Divides by the special primes and the last data prime together: mod-down fused with rescale.
pub(crate) fn mod_down_rescale(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    match &tables.mod_down_rescale {
        Some(converter) => divide(c, converter, &tables.pq_inv),
        None => rescale(params, level, &c),
    }
}

/// Divides a polynomial over Q_l by its last prime.
pub(crate) fn rescale(params: &Params, level: usize, c: &Poly<Eval>) -> Poly<Eval> {
    rescale_with(params, level, |i, x| x.copy_from_slice(c.limb(i)))
}

/// Divides by the last prime what `limb(i, x)` writes limb by limb: a product is rescaled without
/// being stored in between.
pub(crate) fn rescale_with(params: &Params, level: usize, limb: impl Fn(usize, &mut [u64]) + Sync) -> Poly<Eval> {
    let tables = params.tables(level);
    let (basis, n) = (&tables.q, params.degree());
    let Some(converter) = &tables.drop_last else {
        let mut out = Poly::dirty(basis);
        threads::for_each_chunk(out.words_mut(), n, |i, x| limb(i, x));
        return out;
    };
    let mut tail = Buffer::dirty(n);
    limb(level, &mut tail);
    let division = Division::new(basis, converter, &tables.rescale, &mut tail);
    let mut out = Poly::dirty(converter.to());
    threads::for_each_chunk(out.words_mut(), n, |i, x| {
        limb(i, x);
        division.limbs(i, x);
    });
    out
}

/// Division by the product D of the last primes of a basis, whose limbs are prepared.
struct Division<'a> {
    converter: &'a BasisConverter,
    prepared: Prepared<'a>,
    /// D^−1 modulo each prime that stays.
    inverse: &'a [Shoup],
}

impl<'a> Division<'a> {
    /// Takes the limbs of the primes that go, in evaluation form.
    fn new(
        basis: &sudare_ring::RnsBasis,
        converter: &'a BasisConverter,
        inverse: &'a [Shoup],
        tail: &'a mut [u64],
    ) -> Self {
        let keep = converter.to().len();
        threads::for_each_chunk(tail, basis.degree(), |i, x| basis.limb(keep + i).inverse(x));
        Self { converter, prepared: converter.prepare(tail, true), inverse }
    }

    /// Limbs `first` … of ⌊c / D⌉ from those of c.
    fn limbs(&self, first: usize, xs: &mut [u64]) {
        let n = self.converter.to().degree();
        let mut lifted = Buffer::dirty(xs.len());
        let targets: Vec<usize> = (first..first + xs.len() / n).collect();
        let mut outs: Vec<&mut [u64]> = lifted.chunks_exact_mut(n).collect();
        self.converter.finish_many(&self.prepared, &targets, &mut outs);
        for ((i, x), lifted) in targets.into_iter().zip(xs.chunks_exact_mut(n)).zip(outs) {
            let limb = self.converter.to().limb(i);
            limb.forward(lifted);
            limb.sub_mul_scalar(x, lifted, &self.inverse[i]);
        }
    }
}

/// ⌊c / D⌉ where D is the product of the last limbs of `c`, the converter's source; the limbs
/// before them are its target.
pub(crate) fn divide(mut c: Poly<Eval>, converter: &BasisConverter, inverse: &[Shoup]) -> Poly<Eval> {
    let n = c.degree();
    let basis = c.basis().clone();
    let keep = converter.to().len();
    let (kept, tail) = c.words_mut().split_at_mut(keep * n);
    let division = Division::new(&basis, converter, inverse, tail);
    let group = group(keep);
    threads::for_each_chunk(kept, n * group, |g, xs| division.limbs(g * group, xs));
    c.into_truncated(keep)
}
