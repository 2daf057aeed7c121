//! Work without a modulus: the plain loops as AVX2 code.

use super::super::tokens::{Avx2, with_avx2};
use crate::kernel::contract::WordKernels;
use crate::kernel::generic::additive::subtract_once;
use crate::kernel::generic::fourier::fourier_methods;
use crate::kernel::generic::{random, words};
use crate::kernel::permute::BlockPermutation;

impl WordKernels for Avx2 {
    fourier_methods!(Avx2, crate::kernel::x86::tokens::with_avx2);

    with_avx2! { this: &Avx2;
        fn permute(p: &BlockPermutation, out: &mut [u64], src: &[u64]) = p.apply_plain(out, src, |o, x| *o = x);
        fn permute_add(p: &BlockPermutation, q: u64, out: &mut [u64], src: &[u64])
            = p.apply_plain(out, src, |o, x| *o = subtract_once(*o + x, q));
        fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) = words::round_quotients(v, y, reciprocal);
        fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) = words::round_to_i64(out, src, scale);
        fn centered_to_f64(out: &mut [f64], src: &[u64], q: u64, factor: f64)
            = words::centered_to_f64(out, src, q, factor);
        fn sub_scaled_rows(acc: &mut [u32], rows: &[u32], digits: &[i32]) = words::sub_scaled_rows(acc, rows, digits);
        fn add_tensors(sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]], fold: u64)
            = words::add_tensors(sums, a, b, fold);
        fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64])
            = random::count_thresholds::<16>(thresholds, draws, out);
        fn sort(words: &mut [u64]) = random::sort(words);
    }
}
