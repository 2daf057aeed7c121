//! Hybrid key switching: decomposition, inner product, mod-down (`004`, Algorithms 2.4.1–2.4.4).
//!
//! A polynomial c over Q_l is cut into digits c_j = \[c\] modulo the primes of digit j, each
//! lifted (centred) to Q_l·P. With the gadget of [`KeySwitchKey`], Σ_j c_j·(b_j, a_j) encrypts
//! P·c·s' over Q_l·P; dividing by P gives c·s' under s. The decomposition does not depend on the
//! key (hoisting), and sums over Q_l·P need one division together (lazy mod-down).

use crate::error::HeError;
use crate::keys::KeySwitchKey;
use crate::params::{LevelTables, Params};
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, Prepared};
use sudare_ring::{Eval, Poly, Shoup, threads};

/// A polynomial cut into digits over Q_l·P, ready for any number of keys.
pub struct Decomposed {
    pub(crate) level: usize,
    digits: Vec<Poly<Eval>>,
}

impl Decomposed {
    /// Level of the polynomial.
    pub fn level(&self) -> usize {
        self.level
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

    /// Both polynomials over Q_l·P.
    pub fn into_parts(self) -> [Poly<Eval>; 2] {
        self.c
    }

    /// `self += other`.
    pub fn add_assign(&mut self, other: &Self) {
        self.c[0].add_assign(&other.c[0]);
        self.c[1].add_assign(&other.c[1]);
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

/// Coefficient form of a polynomial's limbs: where every mod-up starts.
fn coefficients(tables: &LevelTables, c: &Poly<Eval>) -> Buffer {
    let mut out = Buffer::dirty(c.words().len());
    threads::for_each_chunk(&mut out, c.degree(), |i, x| {
        x.copy_from_slice(c.limb(i));
        tables.q.limb(i).inverse(x);
    });
    out
}

/// The digits' mod-ups, prepared in place.
pub(crate) fn prepare_digits<'a>(tables: &LevelTables, coefficients: &'a mut [u64], n: usize) -> Vec<Prepared<'a>> {
    let mut rest = coefficients;
    let digits = tables.digits.iter().zip(&tables.mod_up);
    digits
        .map(|(digit, mod_up)| {
            let (rows, more) = std::mem::take(&mut rest).split_at_mut(n * digit.len());
            rest = more;
            mod_up.prepare(rows, true)
        })
        .collect()
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
    let mut rows = coefficients(tables, c);
    let prepared = prepare_digits(tables, &mut rows, n);
    let digits = (0..tables.digits.len())
        .map(|j| {
            let mut digit = Poly::dirty(&tables.qp);
            threads::for_each_chunk(digit.words_mut(), n, |t, x| digit_limb(tables, c, &prepared[j], j, t, x));
            digit
        })
        .collect();
    Decomposed { level, digits }
}

/// Where limb `t` of Q_l·P stands in a key made for a higher level.
fn key_limb(key: &KeySwitchKey, level: usize, t: usize) -> usize {
    if t <= level { t } else { t + key.level - level }
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
    let level = decomposed.level;
    let basis = params.qp_at(level);
    let mut c = [Poly::dirty(basis), Poly::dirty(basis)];
    for_each_limb_pair(&mut c, |t, x, y| {
        let at = key_limb(key, level, t);
        let digits: Vec<_> = decomposed.digits.iter().map(|d| d.limb(t)).collect();
        let b: Vec<_> = key.b[..digits.len()].iter().map(|p| p.limb(at)).collect();
        let a: Vec<_> = key.a[..digits.len()].iter().map(|p| p.limb(at)).collect();
        basis.limb(t).dot_pair([x, y], &digits, &b, &a);
    });
    ExtendedPair { level, c }
}

/// Decomposition and inner product in one pass over the target primes, for a single key.
pub(crate) fn switch(params: &Params, level: usize, c: &Poly<Eval>, key: &KeySwitchKey) -> ExtendedPair {
    let tables = params.tables(level);
    let n = params.degree();
    let count = tables.digits.len();
    let mut rows = coefficients(tables, c);
    let prepared = prepare_digits(tables, &mut rows, n);
    let mut out = [Poly::dirty(&tables.qp), Poly::dirty(&tables.qp)];
    for_each_limb_pair(&mut out, |t, x, y| {
        let at = key_limb(key, level, t);
        let mut lifted = Buffer::dirty(n * count);
        for (j, row) in lifted.chunks_exact_mut(n).enumerate() {
            if !tables.digits[j].contains(&t) {
                digit_limb(tables, c, &prepared[j], j, t, row);
            }
        }
        let rows: Vec<&[u64]> = (0..count)
            .map(|j| if tables.digits[j].contains(&t) { c.limb(t) } else { &lifted[j * n..(j + 1) * n] })
            .collect();
        let b: Vec<_> = key.b[..count].iter().map(|p| p.limb(at)).collect();
        let a: Vec<_> = key.a[..count].iter().map(|p| p.limb(at)).collect();
        tables.qp.limb(t).dot_pair([x, y], &rows, &b, &a);
    });
    ExtendedPair { level, c: out }
}

/// Divides by the product of the special primes: RNSModDown (`004`, Algorithm 2.4.2).
pub(crate) fn mod_down(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    match &tables.mod_down {
        Some(converter) => divide(c, converter, &tables.p_inv),
        None => c,
    }
}

/// Divides by the special primes and the last data prime together: mod-down fused with rescale.
pub(crate) fn mod_down_rescale(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    match &tables.mod_down_rescale {
        Some(converter) => divide(c, converter, &tables.pq_inv),
        None => rescale(params, level, c),
    }
}

/// Divides a polynomial over Q_l by its last prime.
pub(crate) fn rescale(params: &Params, level: usize, c: Poly<Eval>) -> Poly<Eval> {
    let tables = params.tables(level);
    match &tables.drop_last {
        Some(converter) => divide(c, converter, &tables.rescale),
        None => c,
    }
}

/// ⌊c / D⌉ where D is the product of the last limbs of `c`, the converter's source; the limbs
/// before them are its target.
fn divide(mut c: Poly<Eval>, converter: &BasisConverter, inverse: &[Shoup]) -> Poly<Eval> {
    let n = c.degree();
    let basis = c.basis().clone();
    let keep = converter.to().len();
    let (kept, tail) = c.words_mut().split_at_mut(keep * n);
    threads::for_each_chunk(tail, n, |i, x| basis.limb(keep + i).inverse(x));
    let prepared = converter.prepare(tail, true);
    threads::for_each_chunk(kept, n, |i, x| {
        let limb = basis.limb(i);
        let mut lifted = Buffer::dirty(n);
        converter.finish(&prepared, i, &mut lifted);
        limb.forward(&mut lifted);
        limb.sub_mul_scalar(x, &lifted, &inverse[i]);
    });
    c.into_truncated(keep)
}
