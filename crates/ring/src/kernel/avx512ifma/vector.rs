//! Element-wise kernels and inner products.

use super::super::avx512::{add_mod, csub, load, prefetch_vector, splat, store};
use super::arith::{Field, accumulate, needs_wide};
use crate::modulus::{Modulus, Shoup};
use std::arch::x86_64::*;

pub use super::super::avx512::{add, add_assign, neg_assign, sub, sub_assign};

/// Vectors that an inner product keeps in flight: enough to hide the latency of IFMA.
const IN_FLIGHT: usize = 4;
/// Terms of [`combine`] with split sources between two reductions: each adds under 2^53 to the
/// low sum, which must stay under 2^64.
const SPLIT_TERMS: usize = 1024;

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(q);
    let (out, a, b) = (out.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        store(o, f.mul(load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    let f = Field::new(q);
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        store(x, f.mul(load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul_add(q: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(q);
    let (acc, a, b) = (acc.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let ahead = [acc.as_ptr(), a.as_ptr(), b.as_ptr()];
    for (i, ((o, x), y)) in acc.iter_mut().zip(a).zip(b).enumerate() {
        ahead.iter().for_each(|rows| prefetch_vector(*rows, i));
        store(o, f.mul_add(load(o), load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul_assign_add(q: &Modulus, a: &mut [u64], b: &[u64], c: &[u64]) {
    let f = Field::new(q);
    let (a, b, c) = (a.as_chunks_mut::<8>().0, b.as_chunks::<8>().0, c.as_chunks::<8>().0);
    let ahead = [a.as_ptr(), b.as_ptr(), c.as_ptr()];
    for (i, ((x, y), z)) in a.iter_mut().zip(b).zip(c).enumerate() {
        ahead.iter().for_each(|rows| prefetch_vector(*rows, i));
        store(x, f.mul_add(load(z), load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul_scalar(q: &Modulus, a: &mut [u64], w: &Shoup) {
    let (f, value, quotient) = (Field::new(q), splat(w.value), splat(w.quotient52));
    for x in a.as_chunks_mut::<8>().0 {
        store(x, csub(f.mul_shoup_add(_mm512_setzero_si512(), load(x), value, quotient), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn mul_scalar_add(q: &Modulus, acc: &mut [u64], a: &[u64], w: &Shoup) {
    let (f, value, quotient) = (Field::new(q), splat(w.value), splat(w.quotient52));
    for (o, x) in acc.as_chunks_mut::<8>().0.iter_mut().zip(a.as_chunks::<8>().0) {
        // Under 3q.
        let sum = f.mul_shoup_add(load(o), load(x), value, quotient);
        store(o, csub(csub(sum, f.two_q), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn sub_mul_scalar(q: &Modulus, a: &mut [u64], b: &[u64], w: &Shoup) {
    let (f, value, quotient) = (Field::new(q), splat(w.value), splat(w.quotient52));
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        let difference = _mm512_sub_epi64(_mm512_add_epi64(load(x), f.q), load(y));
        store(x, csub(f.mul_shoup_add(_mm512_setzero_si512(), difference, value, quotient), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn reduce(q: &Modulus, out: &mut [u64], src: &[u64]) {
    let f = Field::new(q);
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        store(o, csub(f.reduce_word(load(x)), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn reduce_centered(q: &Modulus, out: &mut [u64], src: &[u64], p: u64) {
    let f = Field::new(q);
    let (half, minus_p) = (splat(p / 2), splat(q.neg(q.reduce(p))));
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        let x = load(x);
        let r = csub(f.reduce_word(x), f.q);
        let upper = _mm512_cmpgt_epu64_mask(x, half);
        store(o, csub(_mm512_mask_add_epi64(r, upper, r, minus_p), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn from_i64(q: &Modulus, out: &mut [u64], src: &[i64]) {
    let f = Field::new(q);
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(bytemuck::cast_slice(src).as_chunks::<8>().0) {
        let x = load(x);
        let r = csub(f.reduce_word(_mm512_abs_epi64(x)), f.q);
        let negative = _mm512_cmplt_epi64_mask(x, _mm512_setzero_si512());
        store(o, csub(_mm512_mask_sub_epi64(r, negative, f.q, r), f.q));
    }
}

/// `V` vectors of an inner product at word `at`. The low halves of 4096 products stay under
/// 2^12 · 2^52 and the high ones under 2^12 · 2^48, so nothing is reduced before the end.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn dot_block<const V: usize, const WIDE: bool>(f: &Field, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], at: usize) {
    let mut low = [_mm512_setzero_si512(); V];
    let mut high = low;
    for (x, y) in a.iter().zip(b) {
        let x = x[at..at + 8 * V].as_chunks::<8>().0;
        let y = y[at..at + 8 * V].as_chunks::<8>().0;
        for v in 0..V {
            accumulate(&mut low[v], &mut high[v], load(&x[v]), load(&y[v]));
        }
    }
    let out = out[at..at + 8 * V].as_chunks_mut::<8>().0;
    for v in 0..V {
        store(&mut out[v], f.reduce_sum::<WIDE>(low[v], high[v]));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn dot_with<const WIDE: bool>(f: &Field, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let blocked = out.len() - out.len() % (8 * IN_FLIGHT);
    for at in (0..blocked).step_by(8 * IN_FLIGHT) {
        dot_block::<IN_FLIGHT, WIDE>(f, out, a, b, at);
    }
    for at in (blocked..out.len()).step_by(8) {
        dot_block::<1, WIDE>(f, out, a, b, at);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn dot(q: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let f = Field::new(q);
    if needs_wide(a.len(), q.value(), q.value()) {
        dot_with::<true>(&f, out, a, b);
    } else {
        dot_with::<false>(&f, out, a, b);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn dot_pair_block<const V: usize, const WIDE: bool>(
    f: &Field,
    out: &mut [&mut [u64]; 2],
    a: &[&[u64]],
    b: [&[&[u64]]; 2],
    at: usize,
) {
    let mut low = [[_mm512_setzero_si512(); V]; 2];
    let mut high = low;
    for ((x, y0), y1) in a.iter().zip(b[0]).zip(b[1]) {
        let x = x[at..at + 8 * V].as_chunks::<8>().0;
        let y0 = y0[at..at + 8 * V].as_chunks::<8>().0;
        let y1 = y1[at..at + 8 * V].as_chunks::<8>().0;
        for v in 0..V {
            let x = load(&x[v]);
            accumulate(&mut low[0][v], &mut high[0][v], x, load(&y0[v]));
            accumulate(&mut low[1][v], &mut high[1][v], x, load(&y1[v]));
        }
    }
    for (out, (low, high)) in out.iter_mut().zip(low.iter().zip(&high)) {
        let out = out[at..at + 8 * V].as_chunks_mut::<8>().0;
        for v in 0..V {
            store(&mut out[v], f.reduce_sum::<WIDE>(low[v], high[v]));
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn dot_pair_with<const WIDE: bool>(f: &Field, mut out: [&mut [u64]; 2], a: &[&[u64]], b: [&[&[u64]]; 2]) {
    let len = out[0].len();
    let blocked = len - len % (8 * IN_FLIGHT);
    for at in (0..blocked).step_by(8 * IN_FLIGHT) {
        dot_pair_block::<IN_FLIGHT, WIDE>(f, &mut out, a, b, at);
    }
    for at in (blocked..len).step_by(8) {
        dot_pair_block::<1, WIDE>(f, &mut out, a, b, at);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn dot_pair(q: &Modulus, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
    let f = Field::new(q);
    if needs_wide(a.len(), q.value(), q.value()) {
        dot_pair_with::<true>(&f, out, a, [b0, b1]);
    } else {
        dot_pair_with::<false>(&f, out, a, [b0, b1]);
    }
}

/// `V` vectors of a combination at word `at`, on top of what `out` holds if `add`. With `SPLIT`
/// the sources have more than 52 bits: their upper part meets `w · 2^52 mod q`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn combine_block<const V: usize, const SPLIT: bool, const WIDE: bool>(
    f: &Field,
    out: &mut [u64],
    (src, w, w52): (&[&[u64]], &[u64], &[u64]),
    at: usize,
    add: bool,
) {
    let mut low = [_mm512_setzero_si512(); V];
    let mut high = low;
    for (j, (x, w)) in src.iter().zip(w).enumerate() {
        let x = x[at..at + 8 * V].as_chunks::<8>().0;
        let w = splat(*w);
        for v in 0..V {
            accumulate(&mut low[v], &mut high[v], load(&x[v]), w);
        }
        if SPLIT {
            let w = splat(w52[j]);
            for v in 0..V {
                accumulate(&mut low[v], &mut high[v], _mm512_srli_epi64::<52>(load(&x[v])), w);
            }
        }
    }
    let out = out[at..at + 8 * V].as_chunks_mut::<8>().0;
    for v in 0..V {
        let sum = f.reduce_sum::<WIDE>(low[v], high[v]);
        let sum = if add { add_mod(sum, load(&out[v]), f.q) } else { sum };
        store(&mut out[v], sum);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn combine_with<const SPLIT: bool, const WIDE: bool>(
    f: &Field,
    out: &mut [u64],
    terms: (&[&[u64]], &[u64], &[u64]),
    add: bool,
) {
    let blocked = out.len() - out.len() % (8 * IN_FLIGHT);
    for at in (0..blocked).step_by(8 * IN_FLIGHT) {
        combine_block::<IN_FLIGHT, SPLIT, WIDE>(f, out, terms, at, add);
    }
    for at in (blocked..out.len()).step_by(8) {
        combine_block::<1, SPLIT, WIDE>(f, out, terms, at, add);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub fn combine(q: &Modulus, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
    let f = Field::new(q);
    if bound_bits <= 52 {
        if needs_wide(src.len(), q.value(), 1 << bound_bits) {
            combine_with::<false, true>(&f, out, (src, w, &[]), false);
        } else {
            combine_with::<false, false>(&f, out, (src, w, &[]), false);
        }
        return;
    }
    let r52 = q.shoup(1 << 52);
    let w52: Vec<u64> = w.iter().map(|w| q.mul_shoup(*w, &r52)).collect();
    let mut start = 0;
    loop {
        let end = src.len().min(start + SPLIT_TERMS);
        let terms = (&src[start..end], &w[start..end], &w52[start..end]);
        if needs_wide(2 * (end - start), q.value(), 1 << 52) {
            combine_with::<true, true>(&f, out, terms, start > 0);
        } else {
            combine_with::<true, false>(&f, out, terms, start > 0);
        }
        start = end;
        if start == src.len() {
            return;
        }
    }
}
