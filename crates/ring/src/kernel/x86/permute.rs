//! Permutations of evaluations, a block of 64 in registers at a time.

use super::super::permute::BlockPermutation;
use super::lanes::{add_mod, load, splat, store};
use crate::order::bit_reverse;
use std::arch::x86_64::*;

/// `out[i] = src[π(i)]`, or `out[i] += src[π(i)]` modulo `q` with `ADD`.
#[target_feature(enable = "avx512f")]
pub(super) fn permute<const ADD: bool>(p: &BlockPermutation, out: &mut [u64], src: &[u64], q: u64) {
    let q = splat(q);
    let src = src.as_chunks::<8>().0.as_chunks::<8>().0;
    for (out, source) in out.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0.iter_mut().zip(&p.sources) {
        let src = &src[source.block as usize];
        let mix = &p.mixes[source.shift as usize];
        let lanes = load(&mix.lanes);
        let mut t = [_mm512_setzero_si512(); 8];
        for (t, row) in t.iter_mut().zip(p.rows) {
            *t = load(&src[row & 7]);
        }
        let mut u = t;
        for j in 0..8 {
            u[j] = _mm512_permutex2var_epi64(t[j], lanes, t[(j + 4) & 7]);
        }
        for j in 0..8 {
            t[j] = _mm512_mask_mov_epi64(u[j], mix.rotate2, u[(j + 2) & 7]);
        }
        for j in 0..8 {
            let out = &mut out[bit_reverse(j, 3)];
            let image = _mm512_mask_mov_epi64(t[j], mix.rotate1, t[(j + 1) & 7]);
            store(out, if ADD { add_mod(load(out), image, q) } else { image });
        }
    }
}
