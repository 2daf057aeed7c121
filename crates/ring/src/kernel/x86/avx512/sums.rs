//! Inner products and combinations.

use super::super::lanes::{add_mod, load, prefetch, store};
use super::DqLimb;
use super::arith::{DqField, FOLD_TERMS, SUM_TERMS, Sum, Wide};
use crate::packed::{BLOCK, PackedBlocks};
use std::arch::x86_64::*;

/// One vector of `Σ_j a_j · b_j` for each of `P` second factors.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn dot_vector<const P: usize>(f: &DqField, a: &[&[u64]], b: [&[&[u64]]; P], at: usize) -> [__m512i; P] {
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

impl DqLimb {
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        let f = self.field();
        for (i, o) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let [sum] = dot_vector(&f, a, [b], 8 * i);
            store(o, sum);
        }
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        let f = self.field();
        let [out0, out1] = out;
        for (i, (o0, o1)) in out0.as_chunks_mut::<8>().0.iter_mut().zip(out1.as_chunks_mut::<8>().0).enumerate() {
            let [sum0, sum1] = dot_vector(&f, a, [b0, b1], 8 * i);
            store(o0, sum0);
            store(o1, sum1);
        }
    }

    /// For pairs in whole words; narrower ones belong to primes that other families serve.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn dot_pair_words(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        let f = self.field();
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
    pub(super) fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], _bound_bits: u32) {
        let f = self.field();
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
}
