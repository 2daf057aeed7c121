//! What both AVX-512 families share: lanes, conditional subtraction, and the kernels without a
//! product. Ranges are those of [`super::Limb`].

use crate::modulus::Modulus;
use std::arch::x86_64::*;

/// Eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load(x: &[u64; 8]) -> __m512i {
    // SAFETY: the array is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
}

/// Writes eight words.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store(x: &mut [u64; 8], v: __m512i) {
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(x.as_mut_ptr().cast(), v) }
}

/// Asks for the lines of a slice. The hardware's own prefetching stops at each page.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn prefetch(words: &[u64]) {
    for line in words.chunks(8) {
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
}

/// Asks for the vector `AHEAD` places after the `i`-th from `rows` on, into the first-level cache.
/// Three streams of operands leave the hardware's prefetching behind, even in the second level; and
/// limbs lie one after another, so that what comes after a slice is mostly the next operand.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn prefetch_vector(rows: *const [u64; 8], i: usize) {
    const AHEAD: usize = 32;
    // A prefetch is a hint: no address makes it fail, and none is dereferenced.
    _mm_prefetch::<_MM_HINT_T0>(rows.wrapping_add(i + AHEAD).cast());
}

/// One word in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn splat(x: u64) -> __m512i {
    _mm512_set1_epi64(x as i64)
}

/// `x` in `[0, 2m)` to `[0, m)`: below `m`, the difference wraps and loses the unsigned minimum.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn csub(x: __m512i, m: __m512i) -> __m512i {
    _mm512_min_epu64(x, _mm512_sub_epi64(x, m))
}

/// `a + b` modulo `q`.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn add_mod(a: __m512i, b: __m512i, q: __m512i) -> __m512i {
    csub(_mm512_add_epi64(a, b), q)
}

/// `a − b` modulo `q`.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn sub_mod(a: __m512i, b: __m512i, q: __m512i) -> __m512i {
    let d = _mm512_sub_epi64(a, b);
    _mm512_min_epu64(d, _mm512_add_epi64(d, q))
}

#[target_feature(enable = "avx512f")]
pub fn add(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let q = splat(q.value());
    let (out, a, b) = (out.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        store(o, add_mod(load(x), load(y), q));
    }
}

#[target_feature(enable = "avx512f")]
pub fn add_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    let q = splat(q.value());
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        store(x, add_mod(load(x), load(y), q));
    }
}

#[target_feature(enable = "avx512f")]
pub fn sub(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    let q = splat(q.value());
    let (out, a, b) = (out.as_chunks_mut::<8>().0, a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        store(o, sub_mod(load(x), load(y), q));
    }
}

#[target_feature(enable = "avx512f")]
pub fn sub_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    let q = splat(q.value());
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        store(x, sub_mod(load(x), load(y), q));
    }
}

#[target_feature(enable = "avx512f")]
pub fn neg_assign(q: &Modulus, a: &mut [u64]) {
    let q = splat(q.value());
    for x in a.as_chunks_mut::<8>().0 {
        store(x, csub(_mm512_sub_epi64(q, load(x)), q));
    }
}
