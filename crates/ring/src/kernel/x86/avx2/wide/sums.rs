//! Inner products with the pairs of a key, in halves whose products add up in words.
//!
//! With `h = ⌈b/2⌉` for a prime of b bits, both factors are `x_1·2^h + x_0` of halves below 2^h. A term adds `x_0·y_0` to S_0,
//! `x_0·y_1 + x_1·y_0` to S_1 and `x_1·y_1` to S_2. Four terms fill S_1, which stays below 2^(2h+3) ≤ 2^63; then S_1 takes what S_0
//! has above 2^h, and S_2 what S_1 has. S_2 is below 7·2^60 + 2^34 after seven terms, which is in the range of a product with
//! 2^(2h) modulo q. What is left of S_1 and S_0 is below 2^(2h) ≤ 2^(b+1) < 4q, so that the sum of all three is between −q and 5q.

use super::{Constant, Factor, Halves, Split, WideLimb, halves_of, residue, times};
use crate::kernel::x86::avx2::lanes::{load_half, store_half};
use crate::packed::{BLOCK, PackedBlocks};
use std::arch::x86_64::*;

/// Terms after which S_0 and S_1 are carried.
const CARRY: usize = 4;
/// Terms between two reductions.
const TERMS: usize = 7;

/// How values are taken apart.
#[derive(Clone, Copy)]
struct Parts {
    split: Split,
    /// h.
    shift: __m256i,
    /// 2^h − 1.
    mask: __m256i,
    /// 2^(2h) modulo q.
    weight: Factor,
}

impl Parts {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(limb: &WideLimb) -> Self {
        let q = &limb.limb.q;
        let h = q.bits().div_ceil(2);
        Self {
            split: limb.arith(),
            shift: _mm256_set1_epi64x(i64::from(h)),
            mask: _mm256_set1_epi64x((1 << h) - 1),
            weight: halves_of(&Halves::new(q, q.reduce_u128(1 << (2 * h)))),
        }
    }
}

/// The lower and the upper part.
#[inline]
#[target_feature(enable = "avx2")]
fn parts(by: Parts, x: __m256i) -> [__m256i; 2] {
    [_mm256_and_si256(x, by.mask), _mm256_srlv_epi64(x, by.shift)]
}

/// S_0, S_1 and S_2 of four words.
type Sums = [__m256i; 3];

#[inline]
#[target_feature(enable = "avx2")]
fn begin(by: Parts, start: __m256i) -> Sums {
    let [lower, upper] = parts(by, start);
    [lower, upper, _mm256_setzero_si256()]
}

#[inline]
#[target_feature(enable = "avx2")]
fn add([s0, s1, s2]: Sums, [x0, x1]: [__m256i; 2], [y0, y1]: [__m256i; 2]) -> Sums {
    let crossed = _mm256_add_epi64(_mm256_mul_epu32(x0, y1), _mm256_mul_epu32(x1, y0));
    [
        _mm256_add_epi64(s0, _mm256_mul_epu32(x0, y0)),
        _mm256_add_epi64(s1, crossed),
        _mm256_add_epi64(s2, _mm256_mul_epu32(x1, y1)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn carry(by: Parts, [s0, s1, s2]: Sums) -> Sums {
    let [s0, over] = parts(by, s0);
    let [s1, over] = parts(by, _mm256_add_epi64(s1, over));
    [s0, s1, _mm256_add_epi64(s2, over)]
}

/// The sum modulo q.
#[inline]
#[target_feature(enable = "avx2")]
fn reduce(by: Parts, sums: Sums) -> __m256i {
    let [s0, s1, s2] = carry(by, sums);
    let rest = _mm256_add_epi64(_mm256_sllv_epi64(s1, by.shift), s0);
    residue(by.split, _mm256_add_epi64(times(by.split, s2, by.weight), rest))
}

impl WideLimb {
    /// See [`LimbKernels::dot_pair_packed`](crate::kernel::contract::LimbKernels::dot_pair_packed).
    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    pub(in crate::kernel::x86) fn dot_pair_packed(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        if self.tables.is_none() {
            return self.limb.dot_pair_packed(out, a, b, start);
        }
        let by = Parts::new(self);
        let zero = _mm256_setzero_si256();
        let [out0, out1] = out;
        let blocks = out0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(out1.as_chunks_mut::<BLOCK>().0);
        for (at, (out0, out1)) in blocks.enumerate() {
            // Such primes have whole words.
            let pairs = b.block(at).as_chunks::<BLOCK>().0.as_chunks::<2>().0;
            let eights = out0.as_chunks_mut::<8>().0.iter_mut().zip(out1.as_chunks_mut::<8>().0);
            for (i, (out0, out1)) in eights.enumerate() {
                let eight = |row: &[u64]| row[BLOCK * at + 8 * i..][..8].as_chunks::<8>().0[0];
                for part in 0..2 {
                    let mut totals = [start.map_or(zero, |row| load_half(&eight(row), part)), zero];
                    for (a, pairs) in a.chunks(TERMS).zip(pairs.chunks(TERMS)) {
                        let mut first = begin(by, totals[0]);
                        let mut second = begin(by, totals[1]);
                        for (j, (x, [y0, y1])) in a.iter().zip(pairs).enumerate() {
                            if j == CARRY {
                                first = carry(by, first);
                                second = carry(by, second);
                            }
                            let x = parts(by, load_half(&eight(x), part));
                            first = add(first, x, parts(by, load_half(&y0.as_chunks().0[i], part)));
                            second = add(second, x, parts(by, load_half(&y1.as_chunks().0[i], part)));
                        }
                        totals = [reduce(by, first), reduce(by, second)];
                    }
                    store_half(out0, part, totals[0]);
                    store_half(out1, part, totals[1]);
                }
            }
        }
    }
}
