//! Element-wise kernels and inner products.

use super::super::avx512::{add_mod, csub, load, prefetch, prefetch_vector, splat, store};
use super::arith::{FOLD_TERMS, Field, SUM_TERMS, Shoup as WideShoup, Sum, Wide};
use crate::modulus::{Modulus, Shoup};
use crate::packed::{BLOCK, PackedPairs};
use std::arch::x86_64::*;

pub use super::super::avx512::{add, add_assign, neg_assign, sub, sub_assign};

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(q);
    let (out, a, b) = (out.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        store(o, f.reduce_4q(f.mul_lazy(load(x), load(y))));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    let f = Field::new(q);
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        store(x, f.reduce_4q(f.mul_lazy(load(x), load(y))));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul_add(q: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    match Field::is_near_power(q) {
        true => mul_add_with::<true>(q, acc, a, b),
        false => mul_add_with::<false>(q, acc, a, b),
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn mul_add_with<const NEAR: bool>(q: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let f = Field::new(q);
    let (acc, a, b) = (acc.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let ahead = [acc.as_ptr(), a.as_ptr(), b.as_ptr()];
    for (i, ((o, x), y)) in acc.iter_mut().zip(a).zip(b).enumerate() {
        ahead.iter().for_each(|rows| prefetch_vector(*rows, i));
        store(o, f.mul_add::<NEAR>(load(o), load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul_assign_add(q: &Modulus, a: &mut [u64], b: &[u64], c: &[u64]) {
    match Field::is_near_power(q) {
        true => mul_assign_add_with::<true>(q, a, b, c),
        false => mul_assign_add_with::<false>(q, a, b, c),
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn mul_assign_add_with<const NEAR: bool>(q: &Modulus, a: &mut [u64], b: &[u64], c: &[u64]) {
    let f = Field::new(q);
    let (a, b, c) = (a.as_chunks_mut::<8>().0, b.as_chunks::<8>().0, c.as_chunks::<8>().0);
    let ahead = [a.as_ptr(), b.as_ptr(), c.as_ptr()];
    for (i, ((x, y), z)) in a.iter_mut().zip(b).zip(c).enumerate() {
        ahead.iter().for_each(|rows| prefetch_vector(*rows, i));
        store(x, f.mul_add::<NEAR>(load(z), load(x), load(y)));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul_scalar(q: &Modulus, a: &mut [u64], w: &Shoup) {
    let (f, w) = (Field::new(q), WideShoup::new(w));
    for x in a.as_chunks_mut::<8>().0 {
        store(x, f.reduce_4q(f.mul_shoup_lazy(load(x), &w)));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn mul_scalar_add(q: &Modulus, acc: &mut [u64], a: &[u64], w: &Shoup) {
    let (f, w) = (Field::new(q), WideShoup::new(w));
    for (o, x) in acc.as_chunks_mut::<8>().0.iter_mut().zip(a.as_chunks::<8>().0) {
        let sum = _mm512_add_epi64(csub(f.mul_shoup_lazy(load(x), &w), f.two_q), load(o));
        store(o, f.reduce_4q(sum));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn sub_mul_scalar(q: &Modulus, a: &mut [u64], b: &[u64], w: &Shoup) {
    let (f, w) = (Field::new(q), WideShoup::new(w));
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        let difference = _mm512_sub_epi64(_mm512_add_epi64(load(x), f.q), load(y));
        store(x, f.reduce_4q(f.mul_shoup_lazy(difference, &w)));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn reduce(q: &Modulus, out: &mut [u64], src: &[u64]) {
    let f = Field::new(q);
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        store(o, f.reduce_4q(f.reduce_word_lazy(load(x))));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn reduce_centered(q: &Modulus, out: &mut [u64], src: &[u64], p: u64) {
    let f = Field::new(q);
    let (half, minus_p) = (splat(p / 2), splat(q.neg(q.reduce(p))));
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        let x = load(x);
        let r = f.reduce_4q(f.reduce_word_lazy(x));
        let upper = _mm512_cmpgt_epu64_mask(x, half);
        store(o, csub(_mm512_mask_add_epi64(r, upper, r, minus_p), f.q));
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn from_i64(q: &Modulus, out: &mut [u64], src: &[i64]) {
    let f = Field::new(q);
    for (o, x) in out.as_chunks_mut::<8>().0.iter_mut().zip(bytemuck::cast_slice(src).as_chunks::<8>().0) {
        let x = load(x);
        let r = f.reduce_4q(f.reduce_word_lazy(_mm512_abs_epi64(x)));
        let negative = _mm512_cmplt_epi64_mask(x, _mm512_setzero_si512());
        store(o, csub(_mm512_mask_sub_epi64(r, negative, f.q, r), f.q));
    }
}

/// One vector of `Σ_j a_j · b_j` for each of `P` second factors.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn dot_vector<const P: usize>(f: &Field, a: &[&[u64]], b: [&[&[u64]]; P], at: usize) -> [__m512i; P] {
    let mut total = [_mm512_setzero_si512(); P];
    let mut start = 0;
    while start < a.len() {
        let end = a.len().min(start + SUM_TERMS);
        let mut sums = [Sum::new(total[0]); P];
        for (sum, total) in sums.iter_mut().zip(total) {
            *sum = Sum::new(total);
        }
        while start < end {
            let group = end.min(start + FOLD_TERMS);
            for j in start..group {
                let x = Wide::new(at_word(a[j], at));
                for (sum, b) in sums.iter_mut().zip(b) {
                    sum.add(x, Wide::new(at_word(b[j], at)));
                }
            }
            sums.iter_mut().for_each(|s| s.fold());
            start = group;
        }
        for (total, sum) in total.iter_mut().zip(sums) {
            *total = sum.reduce(f);
        }
    }
    total
}

/// The eight words from word `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn at_word(x: &[u64], at: usize) -> __m512i {
    load(&x[at..at + 8].as_chunks::<8>().0[0])
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn dot(q: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    let f = Field::new(q);
    for (i, o) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let [sum] = dot_vector(&f, a, [b], 8 * i);
        store(o, sum);
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn dot_pair(q: &Modulus, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
    let f = Field::new(q);
    let [out0, out1] = out;
    for (i, (o0, o1)) in out0.as_chunks_mut::<8>().0.iter_mut().zip(out1.as_chunks_mut::<8>().0).enumerate() {
        let [sum0, sum1] = dot_vector(&f, a, [b0, b1], 8 * i);
        store(o0, sum0);
        store(o1, sum1);
    }
}

/// For pairs in whole words; narrower ones belong to primes that other families serve.
#[target_feature(enable = "avx512f,avx512dq")]
pub fn dot_pair_words(q: &Modulus, out: [&mut [u64]; 2], a: &[&[u64]], b: &PackedPairs, start: Option<&[u64]>) {
    let f = Field::new(q);
    let [out0, out1] = out;
    let (mut left, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    let blocks = out0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(out1.as_chunks_mut::<BLOCK>().0);
    for (at, (out0, out1)) in blocks.enumerate() {
        left.clear();
        left.extend(a.iter().map(|row| &row[at * BLOCK..][..BLOCK]));
        let units = b.block(at).as_chunks::<BLOCK>().0.as_chunks::<2>().0;
        first.clear();
        second.clear();
        first.extend(units[..a.len()].iter().map(|pair| pair[0].as_slice()));
        second.extend(units[..a.len()].iter().map(|pair| pair[1].as_slice()));
        prefetch(b.ahead(at));
        for (i, (o0, o1)) in out0.as_chunks_mut::<8>().0.iter_mut().zip(out1.as_chunks_mut::<8>().0).enumerate() {
            let [sum0, sum1] = dot_vector(&f, &left, [&first, &second], 8 * i);
            let start = start.map(|row| load(&row.as_chunks::<8>().0[at * BLOCK / 8 + i]));
            store(o0, start.map_or(sum0, |start| add_mod(sum0, start, f.q)));
            store(o1, sum1);
        }
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
pub fn combine(q: &Modulus, out: &mut [u64], src: &[&[u64]], w: &[u64], _bound_bits: u32) {
    let f = Field::new(q);
    for (i, o) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut total = _mm512_setzero_si512();
        for (src, w) in src.chunks(SUM_TERMS).zip(w.chunks(SUM_TERMS)) {
            let mut sum = Sum::new(total);
            for (src, w) in src.chunks(FOLD_TERMS).zip(w.chunks(FOLD_TERMS)) {
                for (x, w) in src.iter().zip(w) {
                    sum.add(Wide::new(at_word(x, 8 * i)), Wide::splat([*w as u32, (*w >> 32) as u32]));
                }
                sum.fold();
            }
            total = sum.reduce(&f);
        }
        store(o, total);
    }
}
