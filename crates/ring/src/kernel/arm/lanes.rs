//! Registers of two doubles.

use super::{Neon, with_neon};
use crate::kernel::generic::doubles::lanes::{Doubles, Packing, Reals};
use std::arch::aarch64::*;

/// The words of the `part`-th quarter.
#[inline]
#[target_feature(enable = "neon")]
fn load_quarter(x: &[u64; 8], part: usize) -> uint64x2_t {
    let quarter = &x.as_chunks::<2>().0[part];
    // SAFETY: the array is 16 readable bytes; the load needs no alignment.
    unsafe { vld1q_u64(quarter.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_quarter(x: &mut [u64; 8], part: usize, v: uint64x2_t) {
    let quarter = &mut x.as_chunks_mut::<2>().0[part];
    // SAFETY: the array is 16 writable bytes; the store needs no alignment.
    unsafe { vst1q_u64(quarter.as_mut_ptr(), v) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_bytes(x: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array is 16 readable bytes; the load needs no alignment.
    unsafe { vld1q_u8(x.as_ptr()) }
}

/// Lower words of 32 bits and what is above them, as doubles.
#[inline]
#[target_feature(enable = "neon")]
fn join(low: &[u32; 8], part: usize, high: [u64; 2]) -> float64x2_t {
    let mut words = [0u64; 8];
    for ((word, low), high) in words.iter_mut().zip(&low[2 * part..2 * part + 2]).zip(high) {
        *word = u64::from(*low) | high << 32;
    }
    vcvtq_f64_u64(load_quarter(&words, 0))
}

#[inline]
#[target_feature(enable = "neon")]
fn halves(x: uint64x2_t) -> [float64x2_t; 2] {
    [vcvtq_f64_u64(vshrq_n_u64::<32>(x)), vcvtq_f64_u64(vandq_u64(x, vdupq_n_u64(0xFFFF_FFFF)))]
}

#[inline]
#[target_feature(enable = "neon")]
fn unpack(bytes: &[u8; 64], packing: &Packing, part: usize) -> float64x2_t {
    let words = vqtbl1q_u8(load_bytes(packing.pair(bytes, 2 * part)), load_bytes(&packing.index));
    vcvtq_f64_u64(vreinterpretq_u64_u8(words))
}

#[inline]
#[target_feature(enable = "neon")]
fn add_if_negative(x: float64x2_t, y: float64x2_t) -> float64x2_t {
    let more = vandq_u64(vcltzq_f64(x), vreinterpretq_u64_f64(y));
    vaddq_f64(x, vreinterpretq_f64_u64(more))
}

impl Reals for Neon {
    type V = float64x2_t;
    const PARTS: usize = 4;

    with_neon! { this: Neon;
        fn splat(x: f64) -> float64x2_t = vdupq_n_f64(x);
        fn load(x: &[u64; 8], part: usize) -> float64x2_t = vreinterpretq_f64_u64(load_quarter(x, part));
        fn store(x: &mut [u64; 8], part: usize, v: float64x2_t) = store_quarter(x, part, vreinterpretq_u64_f64(v));
        fn load_words(x: &[u64; 8], part: usize) -> float64x2_t = vcvtq_f64_u64(load_quarter(x, part));
        fn store_words(x: &mut [u64; 8], part: usize, v: float64x2_t) = store_quarter(x, part, vcvtq_u64_f64(v));
        fn add(x: float64x2_t, y: float64x2_t) -> float64x2_t = vaddq_f64(x, y);
        fn sub(x: float64x2_t, y: float64x2_t) -> float64x2_t = vsubq_f64(x, y);
        fn mul(x: float64x2_t, y: float64x2_t) -> float64x2_t = vmulq_f64(x, y);
        fn mul_add(x: float64x2_t, y: float64x2_t, z: float64x2_t) -> float64x2_t = vfmaq_f64(z, x, y);
        fn neg_mul_add(x: float64x2_t, y: float64x2_t, z: float64x2_t) -> float64x2_t = vfmsq_f64(z, x, y);
        fn add_if_negative(x: float64x2_t, y: float64x2_t) -> float64x2_t = add_if_negative(x, y);
        fn transpose(v: [float64x2_t; 8]) -> [float64x2_t; 8]
            = [vzip1q_f64(v[0], v[1]), vzip2q_f64(v[0], v[1]), v[2], v[3], v[4], v[5], v[6], v[7]];
    }
}

impl Doubles for Neon {
    const RADIX: usize = 3;

    with_neon! { this: Neon;
        fn load_halves(x: &[u64; 8], part: usize) -> [float64x2_t; 2] = halves(load_quarter(x, part));
        fn join_bytes(low: &[u32; 8], high: &[u8; 8], part: usize) -> float64x2_t
            = join(low, part, [high[2 * part], high[2 * part + 1]].map(u64::from));
        fn join_shorts(low: &[u32; 8], high: &[u16; 8], part: usize) -> float64x2_t
            = join(low, part, [high[2 * part], high[2 * part + 1]].map(u64::from));
        fn unpack(bytes: &[u8; 64], packing: &Packing, part: usize) -> float64x2_t = unpack(bytes, packing, part);
        fn mul_sub(x: float64x2_t, y: float64x2_t, z: float64x2_t) -> float64x2_t = vfmaq_f64(vnegq_f64(z), x, y);
    }
}
