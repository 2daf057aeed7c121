//! Work without a modulus, for both AVX-512 families.

use super::tokens::{Avx512, with_avx512};
use super::{chacha, lanes, permute};
use crate::kernel::contract::{ChaChaKernel, WordKernels};
use crate::kernel::generic::fourier::fourier_methods;
use crate::kernel::generic::{random, words};
use crate::kernel::permute::BlockPermutation;
use crate::kernel::random::GROUP_BYTES;
use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    let (out, out_rest) = out.as_chunks_mut::<8>();
    let (src, src_rest) = src.as_chunks::<8>();
    let factor = _mm512_set1_pd(scale);
    for (o, x) in out.iter_mut().zip(src) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        let x = _mm512_castsi512_pd(lanes::load(bytemuck::cast_ref(x)));
        let rounded = _mm512_cvt_roundpd_epi64::<NEAREST>(_mm512_mul_pd(x, factor));
        lanes::store(bytemuck::cast_mut(o), rounded);
    }
    words::round_to_i64(out_rest, src_rest, scale);
}

impl WordKernels for Avx512 {
    fourier_methods!(Avx512, crate::kernel::x86::tokens::with_avx512);

    with_avx512! { this: &Avx512;
        fn permute(p: &BlockPermutation, out: &mut [u64], src: &[u64]) = permute::permute::<false>(p, out, src, 0);
        fn permute_add(p: &BlockPermutation, q: u64, out: &mut [u64], src: &[u64])
            = permute::permute::<true>(p, out, src, q);
        fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) = words::round_quotients(v, y, reciprocal);
        fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) = round_to_i64(out, src, scale);
        fn centered_to_f64(out: &mut [f64], src: &[u64], q: u64, factor: f64)
            = words::centered_to_f64(out, src, q, factor);
        fn sub_scaled_rows(acc: &mut [u32], rows: &[u32], digits: &[i32]) = words::sub_scaled_rows(acc, rows, digits);
        fn add_tensors(sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]], fold: u64)
            = words::add_tensors(sums, a, b, fold);
        fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64])
            = random::count_thresholds::<64>(thresholds, draws, out);
        fn sort(words: &mut [u64]) = random::sort(words);
    }

    fn chacha(&self) -> Option<&dyn ChaChaKernel> {
        Some(self)
    }
}

impl ChaChaKernel for Avx512 {
    with_avx512! { this: &Avx512;
        fn group(state: &[u32; 16], out: &mut [u8; GROUP_BYTES]) = chacha::group(state, out);
    }
}
