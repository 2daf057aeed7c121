//! Work without a modulus, for both AVX-512 families.

use super::tokens::{Avx512, with_avx512};
use super::{chacha, permute, special_fft};
use crate::kernel::contract::{ChaChaKernel, WordKernels};
use crate::kernel::generic::fourier::fourier_methods;
use crate::kernel::generic::{random, words};
use crate::kernel::permute::BlockPermutation;
use crate::kernel::random::GROUP_BYTES;
use crate::kernel::special_fft::SpecialFft;

impl WordKernels for Avx512 {
    fourier_methods!(Avx512, crate::kernel::x86::tokens::with_avx512);

    with_avx512! { this: &Avx512;
        fn permute(p: &BlockPermutation, out: &mut [u64], src: &[u64]) = permute::permute::<false>(p, out, src, 0);
        fn permute_add(p: &BlockPermutation, q: u64, out: &mut [u64], src: &[u64])
            = permute::permute::<true>(p, out, src, q);
        fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) = words::round_quotients(v, y, reciprocal);
        fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) = special_fft::round_to_i64(out, src, scale);
        fn sub_scaled_rows(acc: &mut [u32], rows: &[u32], digits: &[i32]) = words::sub_scaled_rows(acc, rows, digits);
        fn add_tensors(sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]], fold: u64)
            = words::add_tensors(sums, a, b, fold);
        fn fft_inverse(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) = special_fft::inverse_aligned(t, re, im);
        fn fft_forward(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) = special_fft::forward_aligned(t, re, im);
        fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64])
            = random::count_thresholds::<64>(thresholds, draws, out);
        fn sort(words: &mut [u64]) = random::sort(words);
    }

    fn fft_reads_cubes(&self) -> bool {
        true
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
