//! Inner products and combinations.

use super::super::lanes::{add_mod, load, splat, store};
use super::IfmaLimb;
use super::arith::{IfmaField, accumulate, needs_wide};
use std::arch::x86_64::*;

/// Vectors that an inner product keeps in flight: enough to hide the latency of IFMA.
const IN_FLIGHT: usize = 4;
/// Terms of [`IfmaLimb::combine`] with split sources between two reductions: each adds under 2^53 to the
/// low sum, which must stay under 2^64.
const SPLIT_TERMS: usize = 1024;

/// `V` vectors of an inner product at word `at`. The low halves of 4096 products stay under
/// 2^12 · 2^52 and the high ones under 2^12 · 2^48, so nothing is reduced before the end.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn dot_block<const V: usize, const WIDE: bool>(f: &IfmaField, out: &mut [u64], a: &[&[u64]], b: &[&[u64]], at: usize) {
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn dot_with<const WIDE: bool>(f: &IfmaField, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let blocked = out.len() - out.len() % (8 * IN_FLIGHT);
    for at in (0..blocked).step_by(8 * IN_FLIGHT) {
        dot_block::<IN_FLIGHT, WIDE>(f, out, a, b, at);
    }
    for at in (blocked..out.len()).step_by(8) {
        dot_block::<1, WIDE>(f, out, a, b, at);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn dot_pair_block<const V: usize, const WIDE: bool>(
    f: &IfmaField,
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn dot_pair_with<const WIDE: bool>(f: &IfmaField, mut out: [&mut [u64]; 2], a: &[&[u64]], b: [&[&[u64]]; 2]) {
    let len = out[0].len();
    let blocked = len - len % (8 * IN_FLIGHT);
    for at in (0..blocked).step_by(8 * IN_FLIGHT) {
        dot_pair_block::<IN_FLIGHT, WIDE>(f, &mut out, a, b, at);
    }
    for at in (blocked..len).step_by(8) {
        dot_pair_block::<1, WIDE>(f, &mut out, a, b, at);
    }
}

/// `V` vectors of a combination at word `at`, on top of what `out` holds if `add`. With `SPLIT`
/// the sources have more than 52 bits: their upper part meets `w · 2^52 mod q`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn combine_block<const V: usize, const SPLIT: bool, const WIDE: bool>(
    f: &IfmaField,
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn combine_with<const SPLIT: bool, const WIDE: bool>(
    f: &IfmaField,
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

impl IfmaLimb {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        let f = self.field();
        if needs_wide(a.len(), self.q.value(), self.q.value()) {
            dot_with::<true>(&f, out, a, b);
        } else {
            dot_with::<false>(&f, out, a, b);
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        let f = self.field();
        if needs_wide(a.len(), self.q.value(), self.q.value()) {
            dot_pair_with::<true>(&f, out, a, [b0, b1]);
        } else {
            dot_pair_with::<false>(&f, out, a, [b0, b1]);
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
        let (q, f) = (&self.q, self.field());
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
}
