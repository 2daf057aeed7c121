//! Registers of four doubles.

use super::super::tokens::{Avx2, with_avx2};
use crate::kernel::generic::doubles::lanes::{Doubles, Packing, Reals};
use std::arch::x86_64::*;

/// The bits of 2^52, whose lowest ones are those of a small integer that is added.
const WORD: i64 = 0x4330_0000_0000_0000;
/// 2^52.
const TWO52: f64 = (1u64 << 52) as f64;

/// The words of the `part`-th half.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_half(x: &[u64; 8], part: usize) -> __m256i {
    let half = &x.as_chunks::<4>().0[part];
    // SAFETY: the array is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_half(x: &mut [u64; 8], part: usize, v: __m256i) {
    let half = &mut x.as_chunks_mut::<4>().0[part];
    // SAFETY: the array is 32 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), v) }
}

/// Words below 2^52 as doubles.
#[inline]
#[target_feature(enable = "avx2")]
fn from_words(x: __m256i) -> __m256d {
    let shifted = _mm256_or_si256(x, _mm256_set1_epi64x(WORD));
    _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(TWO52))
}

/// Integers in `[0, 2^52)` as words.
#[inline]
#[target_feature(enable = "avx2")]
fn to_words(x: __m256d) -> __m256i {
    let shifted = _mm256_add_pd(x, _mm256_set1_pd(TWO52));
    _mm256_xor_si256(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(WORD))
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(x: __m256i) -> [__m256d; 2] {
    let lower = _mm256_blend_epi32::<0b1010_1010>(x, _mm256_set1_epi64x(WORD));
    let upper = _mm256_or_si256(_mm256_srli_epi64::<32>(x), _mm256_set1_epi64x(WORD));
    let base = _mm256_set1_pd(TWO52);
    [_mm256_sub_pd(_mm256_castsi256_pd(upper), base), _mm256_sub_pd(_mm256_castsi256_pd(lower), base)]
}

/// Lower words of 32 bits and the words above them, as doubles.
#[inline]
#[target_feature(enable = "avx2")]
fn join(low: &[u32; 8], part: usize, high: __m256i) -> __m256d {
    let low = _mm256_cvtepu32_epi64(bytemuck::cast(low.as_chunks::<4>().0[part]));
    from_words(_mm256_or_si256(low, _mm256_slli_epi64::<32>(high)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn join_bytes(low: &[u32; 8], high: &[u8; 8], part: usize) -> __m256d {
    let high = i32::from_le_bytes(high.as_chunks::<4>().0[part]);
    join(low, part, _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(high)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn join_shorts(low: &[u32; 8], high: &[u16; 8], part: usize) -> __m256d {
    let high: i64 = bytemuck::cast(high.as_chunks::<4>().0[part]);
    join(low, part, _mm256_cvtepu16_epi64(_mm_cvtsi64_si128(high)))
}

/// Four packed values: two in each half of a register, whose bytes are moved to their lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::kernel::x86) fn unpack_words(bytes: &[u8; 64], packing: &Packing, part: usize) -> __m256i {
    let pair = |first: usize| -> __m128i { bytemuck::cast(*packing.pair(bytes, first)) };
    let both = _mm256_set_m128i(pair(4 * part + 2), pair(4 * part));
    _mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(bytemuck::cast(packing.index)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_if_negative(x: __m256d, y: __m256d) -> __m256d {
    let negative = _mm256_cmp_pd::<_CMP_LT_OQ>(x, _mm256_setzero_pd());
    _mm256_add_pd(x, _mm256_and_pd(negative, y))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn transpose(v: [__m256d; 8]) -> [__m256d; 8] {
    let [a, b, c, d] = [
        _mm256_unpacklo_pd(v[0], v[1]),
        _mm256_unpackhi_pd(v[0], v[1]),
        _mm256_unpacklo_pd(v[2], v[3]),
        _mm256_unpackhi_pd(v[2], v[3]),
    ];
    [
        _mm256_permute2f128_pd::<0x20>(a, c),
        _mm256_permute2f128_pd::<0x20>(b, d),
        _mm256_permute2f128_pd::<0x31>(a, c),
        _mm256_permute2f128_pd::<0x31>(b, d),
        v[4],
        v[5],
        v[6],
        v[7],
    ]
}

impl Reals for Avx2 {
    type V = __m256d;
    const PARTS: usize = 2;

    with_avx2! { this: Avx2;
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(x: &[u64; 8], part: usize) -> __m256d = _mm256_castsi256_pd(load_half(x, part));
        fn store(x: &mut [u64; 8], part: usize, v: __m256d) = store_half(x, part, _mm256_castpd_si256(v));
        fn load_words(x: &[u64; 8], part: usize) -> __m256d = from_words(load_half(x, part));
        fn store_words(x: &mut [u64; 8], part: usize, v: __m256d) = store_half(x, part, to_words(v));
        fn add(x: __m256d, y: __m256d) -> __m256d = _mm256_add_pd(x, y);
        fn sub(x: __m256d, y: __m256d) -> __m256d = _mm256_sub_pd(x, y);
        fn mul(x: __m256d, y: __m256d) -> __m256d = _mm256_mul_pd(x, y);
        fn mul_add(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fmadd_pd(x, y, z);
        fn neg_mul_add(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fnmadd_pd(x, y, z);
        fn add_if_negative(x: __m256d, y: __m256d) -> __m256d = add_if_negative(x, y);
        fn transpose(v: [__m256d; 8]) -> [__m256d; 8] = transpose(v);
        fn prefetch(line: *const u8) = _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
}

impl Doubles for Avx2 {
    const RADIX: usize = 3;

    with_avx2! { this: Avx2;
        fn load_halves(x: &[u64; 8], part: usize) -> [__m256d; 2] = halves(load_half(x, part));
        fn join_bytes(low: &[u32; 8], high: &[u8; 8], part: usize) -> __m256d = join_bytes(low, high, part);
        fn join_shorts(low: &[u32; 8], high: &[u16; 8], part: usize) -> __m256d = join_shorts(low, high, part);
        fn unpack(bytes: &[u8; 64], packing: &Packing, part: usize) -> __m256d
            = from_words(unpack_words(bytes, packing, part));
        fn mul_sub(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fmsub_pd(x, y, z);
    }
}
