//! Hybrid key switching: decomposition, inner product, mod-down (`004`, Algorithms 2.4.1–2.4.4).
//!
//! A polynomial c over Q_l is cut into digits c_j = \[c\] modulo the primes of digit j, each
//! lifted (centred) to Q_l·P. With the gadget of [`KeySwitchKey`], Σ_j c_j·(b_j, a_j) encrypts
//! P·c·s' over Q_l·P; dividing by P gives c·s' under s. The decomposition does not depend on the
//! key (hoisting), and sums over Q_l·P need one division together (lazy mod-down).

pub mod coefficients;
mod division;

pub use division::Division;

use crate::error::RlweError;
use crate::keys::{GaloisKey, KeySwitchKey};
use crate::levels::LevelTables;
use crate::params::Params;
use division::rounded;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::Prepared;
use sudare_ring::{Eval, Poly, threads};

/// A polynomial cut into digits over Q_l·P, ready for any number of keys.
#[derive(Debug)]
pub struct Decomposed {
    level: usize,
    digits: Vec<Poly<Eval>>,
}

impl Decomposed {
    /// Digits that come from elsewhere, over Q_l·P.
    pub fn of(level: usize, digits: Vec<Poly<Eval>>) -> Self {
        Self { level, digits }
    }

    /// Level of the polynomial.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Limb `t` of every digit.
    pub fn limb(&self, t: usize) -> Vec<&[u64]> {
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
    /// Its level.
    pub level: usize,
    /// Both polynomials.
    pub c: [Poly<Eval>; 2],
}

impl ExtendedPair {
    /// The zero pair.
    pub fn zero(params: &Params, level: usize) -> Self {
        Self { level, c: [Poly::zero(params.qp_at(level)), Poly::zero(params.qp_at(level))] }
    }

    /// A pair of unspecified content, to be overwritten.
    pub fn dirty(params: &Params, level: usize) -> Self {
        Self { level, c: [Poly::dirty(params.qp_at(level)), Poly::dirty(params.qp_at(level))] }
    }

    /// `self += other`.
    pub fn add_assign(&mut self, other: &Self) {
        self.c[0].add_assign(&other.c[0]);
        self.c[1].add_assign(&other.c[1]);
    }

    /// Both divided by P: the parts of a ciphertext.
    #[must_use]
    pub fn mod_down(self, params: &Params) -> Vec<Poly<Eval>> {
        self.c.into_iter().map(|c| mod_down(params, self.level, c)).collect()
    }

    /// Both divided by P and the last prime: the parts of a ciphertext one level down.
    #[must_use]
    pub fn mod_down_rescale(self, params: &Params) -> Vec<Poly<Eval>> {
        self.c.into_iter().map(|c| mod_down_rescale(params, self.level, c)).collect()
    }

    /// Applies an automorphism to P times a ciphertext: c_1 is divided by P and switched, c_0 stays as
    /// it is.
    #[must_use]
    pub fn turned(self, params: &Params, key: &GaloisKey) -> Self {
        let (level, [mut c0, c1]) = (self.level, self.c);
        let [switched, c1] = switch(params, level, &mod_down(params, level, c1), key.key()).c;
        c0.add_assign(&switched);
        Self { level, c: [c0, c1].map(|c| c.permuted(key.permutation())) }
    }

    /// `self −= other`.
    pub fn sub_assign(&mut self, other: &Self) {
        self.c[0].sub_assign(&other.c[0]);
        self.c[1].sub_assign(&other.c[1]);
    }

    /// Both polynomials under an automorphism.
    #[must_use]
    pub fn permuted(self, permutation: &EvalPermutation) -> Self {
        Self { level: self.level, c: self.c.map(|c| c.permuted(permutation)) }
    }

    /// `c_i += P · p` for a polynomial over Q_l.
    pub fn add_scaled(&mut self, params: &Params, i: usize, p: &Poly<Eval>) {
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
fn prepare_digits<'a>(
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
pub fn decompose(params: &Params, level: usize, c: &Poly<Eval>) -> Decomposed {
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
pub fn check_key(key: &KeySwitchKey, operation: &'static str, level: usize) -> Result<(), RlweError> {
    if level > key.level() {
        return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: key.level() });
    }
    Ok(())
}

/// Σ_j d_j · (b_j, a_j) over Q_l·P, for digits that exist already.
pub fn inner_product(params: &Params, decomposed: &Decomposed, key: &KeySwitchKey) -> ExtendedPair {
    let [pair] = inner_products(params, decomposed, [key]);
    pair
}

/// [`inner_product`] with several keys: limb after limb, so that each limb of the digits is read
/// from far memory once for all of them.
pub fn inner_products<const K: usize>(
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
pub type Image<'a> = Option<&'a GaloisKey>;

/// Σ_g ψ_g(P·c_0 + ⟨d, ek_g⟩) over Q_l·P for the digits d of c_1: the loops of HoistKS (`004`,
/// Algorithm 3.2.1) without its division, so that any number of terms shares one.
///
/// Limb by limb: the digits' rows and both sums stay in the cache while the keys stream past.
/// Work is cut by limbs, and by terms as well where there are more threads than limbs; each part
/// has sums of its own, so nothing waits inside.
pub fn sum_of_images(
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
            limb.dot_pair_packed([&mut u, &mut v], &digits, key.key().limb(level, t), start.as_deref());
            for (sum, image) in [(&mut *x, &u), (&mut *y, &v)] {
                match empty {
                    true => key.permutation().apply(sum, image),
                    false => key.permutation().apply_add(limb.modulus(), sum, image),
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
pub fn switch(params: &Params, level: usize, c: &Poly<Eval>, key: &KeySwitchKey) -> ExtendedPair {
    let mut out = [ExtendedPair::dirty(params, level)];
    switch_into(params, level, &[c], key, &mut out);
    let [pair] = out;
    pair
}

/// [`switch`] of several polynomials at one level, so that each limb of the key is read from far
/// memory once for all of them.
pub fn switch_into(params: &Params, level: usize, cs: &[&Poly<Eval>], key: &KeySwitchKey, out: &mut [ExtendedPair]) {
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
pub fn mod_down(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    rounded(params.tables(level).mod_down.as_ref(), c)
}

/// ψ(⌊c / P⌉ + plus): the end of a rotation, each limb finished while it is in the cache.
pub fn mod_down_permuted(
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
    let started = tables.mod_down.as_ref().map(|division| division.start(tail));
    let group = group(basis.len());
    threads::for_each_chunk_pair(out.words_mut(), kept, n * group, |g, outs, xs| {
        if let Some(started) = &started {
            started.limbs(g * group, xs);
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
/// Without special primes a rescale alone.
pub fn mod_down_rescale(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    rounded(tables.mod_down_rescale.as_ref().or(tables.rescale.as_ref()), c)
}

/// Divides a polynomial over Q_l by its last prime, `level` ≥ 1.
pub fn rescale(params: &Params, level: usize, c: &Poly<Eval>) -> Poly<Eval> {
    rescale_with(params, level, |i, x| x.copy_from_slice(c.limb(i)))
}

/// ⌊a·b / q_l⌉ of polynomials over Q_l and perhaps more primes: the product is not stored before it is
/// divided.
pub fn mul_rescale(params: &Params, level: usize, a: &Poly<Eval>, b: &Poly<Eval>) -> Poly<Eval> {
    let basis = params.q_at(level);
    rescale_with(params, level, |i, x| basis.limb(i).mul(x, a.limb(i), b.limb(i)))
}

/// Divides by the last prime what `limb(i, x)` writes limb by limb: it is not stored in between.
fn rescale_with(params: &Params, level: usize, limb: impl Fn(usize, &mut [u64]) + Sync) -> Poly<Eval> {
    let tables = params.tables(level);
    let (basis, n) = (&tables.q, params.degree());
    let Some(division) = &tables.rescale else {
        let mut out = Poly::dirty(basis);
        threads::for_each_chunk(out.words_mut(), n, |i, x| limb(i, x));
        return out;
    };
    let mut tail = Buffer::dirty(n);
    limb(level, &mut tail);
    let started = division.start(&mut tail);
    let mut out = Poly::dirty(division.kept());
    threads::for_each_chunk(out.words_mut(), n, |i, x| {
        limb(i, x);
        started.limbs(i, x);
    });
    out
}
