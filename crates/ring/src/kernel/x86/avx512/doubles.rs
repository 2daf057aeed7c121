//! Registers of eight doubles, for primes below 2^50.

use super::super::avx2::lanes::unpack_words;
use super::super::lanes::{load, store};
use super::super::tokens::{Avx512, with_avx512};
use crate::kernel::features::Proof;
use crate::kernel::generic::doubles::DoubleLimb;
use crate::kernel::generic::doubles::lanes::{Doubles, Packing, Reals};
use crate::kernel::generic::limb_kernels_of;
use crate::kernel::generic::vectors::lanes::Lanes;
use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn join(low: &[u32; 8], high: __m512i) -> __m512d {
    let low = _mm512_cvtepu32_epi64(bytemuck::cast(*low));
    _mm512_cvtepi64_pd(_mm512_or_si512(low, _mm512_slli_epi64::<32>(high)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn halves(x: __m512i) -> [__m512d; 2] {
    let lower = _mm512_and_si512(x, _mm512_set1_epi64(0xFFFF_FFFF));
    [_mm512_cvtepi64_pd(_mm512_srli_epi64::<32>(x)), _mm512_cvtepi64_pd(lower)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn unpack(bytes: &[u8; 64], packing: &Packing) -> __m512d {
    let low = _mm512_castsi256_si512(unpack_words(bytes, packing, 0));
    _mm512_cvtepi64_pd(_mm512_inserti64x4::<1>(low, unpack_words(bytes, packing, 1)))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_if_negative(x: __m512d, y: __m512d) -> __m512d {
    let negative = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, _mm512_setzero_pd());
    _mm512_mask_add_pd(x, negative, x, y)
}

impl Reals for Avx512 {
    type V = __m512d;
    const PARTS: usize = 1;

    with_avx512! { this: Avx512;
        fn splat(x: f64) -> __m512d = _mm512_set1_pd(x);
        fn load(x: &[u64; 8], part: usize) -> __m512d = _mm512_castsi512_pd(load(x));
        fn store(x: &mut [u64; 8], part: usize, v: __m512d) = store(x, _mm512_castpd_si512(v));
        fn load_words(x: &[u64; 8], part: usize) -> __m512d = _mm512_cvtepi64_pd(load(x));
        fn store_words(x: &mut [u64; 8], part: usize, v: __m512d) = store(x, _mm512_cvtpd_epi64(v));
        fn add(x: __m512d, y: __m512d) -> __m512d = _mm512_add_pd(x, y);
        fn sub(x: __m512d, y: __m512d) -> __m512d = _mm512_sub_pd(x, y);
        fn mul(x: __m512d, y: __m512d) -> __m512d = _mm512_mul_pd(x, y);
        fn mul_add(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fmadd_pd(x, y, z);
        fn neg_mul_add(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fnmadd_pd(x, y, z);
        fn add_if_negative(x: __m512d, y: __m512d) -> __m512d = add_if_negative(x, y);
        fn transpose(v: [__m512d; 8]) -> [__m512d; 8]
            = Lanes::transpose(this, v.map(|x| _mm512_castpd_si512(x))).map(|x| _mm512_castsi512_pd(x));
        fn prefetch(line: *const u8) = _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
}

impl Doubles for Avx512 {
    const RADIX: usize = 3;

    with_avx512! { this: Avx512;
        fn load_halves(x: &[u64; 8], part: usize) -> [__m512d; 2] = halves(load(x));
        fn join_bytes(low: &[u32; 8], high: &[u8; 8], part: usize) -> __m512d
            = join(low, _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(*high))));
        fn join_shorts(low: &[u32; 8], high: &[u16; 8], part: usize) -> __m512d
            = join(low, _mm512_cvtepu16_epi64(bytemuck::cast(*high)));
        fn unpack(bytes: &[u8; 64], packing: &Packing, part: usize) -> __m512d = unpack(bytes, packing);
        fn mul_sub(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fmsub_pd(x, y, z);
    }
}

impl Proof<Avx512> for DoubleLimb<Avx512> {
    #[inline(always)]
    fn proof(&self) -> Avx512 {
        self.lanes
    }
}

limb_kernels_of!(DoubleLimb<Avx512>, crate::kernel::x86::tokens::with_avx512, this => this);
