//! Vectors of eight words in AVX-512 registers.

use super::tokens::{Avx512, with_avx512};
use crate::kernel::generic::vectors::lanes::Lanes;
use std::arch::x86_64::*;

/// Eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(x: &[u64; 8]) -> __m512i {
    // SAFETY: the array is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
}

/// Writes eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(x: &mut [u64; 8], v: __m512i) {
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(x.as_mut_ptr().cast(), v) }
}

/// Asks for the lines of a slice. The hardware's own prefetching stops at each page.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn prefetch(words: &[u64]) {
    for line in words.chunks(8) {
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
}

/// One word in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x as i64)
}

/// `x` in `[0, 2m)` to `[0, m)`: below `m`, the difference wraps and loses the unsigned minimum.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn csub(x: __m512i, m: __m512i) -> __m512i {
    _mm512_min_epu64(x, _mm512_sub_epi64(x, m))
}

/// `a + b` modulo `q`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add_mod(a: __m512i, b: __m512i, q: __m512i) -> __m512i {
    csub(_mm512_add_epi64(a, b), q)
}

/// `a − b` modulo `q`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn sub_mod(a: __m512i, b: __m512i, q: __m512i) -> __m512i {
    let d = _mm512_sub_epi64(a, b);
    _mm512_min_epu64(d, _mm512_add_epi64(d, q))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn reverse(x: __m512i) -> __m512i {
    _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), x)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(v: [__m512i; 8]) -> [__m512i; 8] {
    // Pairs of rows: 2×2 squares in place.
    let a = [
        _mm512_unpacklo_epi64(v[0], v[1]),
        _mm512_unpackhi_epi64(v[0], v[1]),
        _mm512_unpacklo_epi64(v[2], v[3]),
        _mm512_unpackhi_epi64(v[2], v[3]),
        _mm512_unpacklo_epi64(v[4], v[5]),
        _mm512_unpackhi_epi64(v[4], v[5]),
        _mm512_unpacklo_epi64(v[6], v[7]),
        _mm512_unpackhi_epi64(v[6], v[7]),
    ];
    // Quarters of 128 bits: even ones to the low half, odd ones to the high half.
    let even = |x, y| _mm512_shuffle_i64x2::<0b10_00_10_00>(x, y);
    let odd = |x, y| _mm512_shuffle_i64x2::<0b11_01_11_01>(x, y);
    let b = [
        even(a[0], a[2]),
        even(a[1], a[3]),
        odd(a[0], a[2]),
        odd(a[1], a[3]),
        even(a[4], a[6]),
        even(a[5], a[7]),
        odd(a[4], a[6]),
        odd(a[5], a[7]),
    ];
    [
        even(b[0], b[4]),
        even(b[1], b[5]),
        even(b[2], b[6]),
        even(b[3], b[7]),
        odd(b[0], b[4]),
        odd(b[1], b[5]),
        odd(b[2], b[6]),
        odd(b[3], b[7]),
    ]
}

impl Lanes for Avx512 {
    type V = __m512i;

    with_avx512! { this: Avx512;
        fn splat(x: u64) -> __m512i = splat(x);
        fn load(x: &[u64; 8]) -> __m512i = load(x);
        fn store(x: &mut [u64; 8], v: __m512i) = store(x, v);
        fn add(x: __m512i, y: __m512i) -> __m512i = _mm512_add_epi64(x, y);
        fn sub(x: __m512i, y: __m512i) -> __m512i = _mm512_sub_epi64(x, y);
        fn subtract_once(x: __m512i, m: __m512i) -> __m512i = csub(x, m);
        fn reverse(x: __m512i) -> __m512i = reverse(x);
        fn transpose(v: [__m512i; 8]) -> [__m512i; 8] = transpose(v);
        fn prefetch(line: *const u8) = _mm_prefetch::<_MM_HINT_T1>(line.cast());
        fn prefetch_near(line: *const u8) = _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
}
