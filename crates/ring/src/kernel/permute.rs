//! The permutation of evaluations that an automorphism is.
//!
//! Write an index of the evaluation order as block `B`, row `r`, lane `c` (64B + 8r + c). Its
//! exponent is 2(X·2^(L−6) + brv(B)) + 1 with `X = 8·brv(r) + brv(c)` and L = log2 N. Under
//! X ↦ X^g a whole block comes from one block, and within it `X` from `g·X + s` mod 64 for one
//! shift `s` a block: each lane from one lane, its eight rows rotated by an amount of its own
//! (and all of them dilated alike by g mod 8). So eight vectors are loaded, one two-source lane
//! permutation each, two masked moves each, stored; no gathers.

use crate::order::bit_reverse;

/// Values in a block.
const BLOCK: usize = 64;

/// Where one block of the output comes from.
#[derive(Debug, Clone, Copy)]
struct Source {
    block: u32,
    shift: u32,
}

/// How the lanes of a block are mixed, for one shift.
#[derive(Debug, Clone, Copy)]
struct Mix {
    /// Source lane of each lane, plus 8 where its rows rotate by 4 more.
    lanes: [u64; 8],
    /// Lanes whose rows rotate by 2 more.
    rotate2: u8,
    /// Lanes whose rows rotate by 1 more.
    rotate1: u8,
}

/// The map `out[i] = src[index of g · exponent(i)]`.
#[derive(Debug, Clone)]
pub struct BlockPermutation {
    sources: Vec<Source>,
    /// For each shift.
    mixes: Vec<Mix>,
    /// Rows in the order in which g dilates them.
    rows: [usize; 8],
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    vector: bool,
}

impl BlockPermutation {
    /// For a power of two `n ≥ 64` and an odd `g < 2n`; with `vector`, by AVX-512, which the
    /// caller has detected.
    pub fn new(n: usize, g: usize, vector: bool) -> Self {
        let bits = n.trailing_zeros() - 6;
        let sources = (0..n / BLOCK)
            .map(|block| {
                let y = g * bit_reverse(block, bits) + g / 2;
                let shift = ((y >> bits) % BLOCK) as u32;
                Source { block: bit_reverse(y & ((1 << bits) - 1), bits) as u32, shift }
            })
            .collect();
        let mixes = (0..BLOCK)
            .map(|shift| {
                let mut mix = Mix { lanes: [0; 8], rotate2: 0, rotate1: 0 };
                for lane in 0..8 {
                    let x = (g * bit_reverse(lane, 3) + shift) % BLOCK;
                    // g is its own inverse modulo 8.
                    let rotation = g * (x / 8) % 8;
                    mix.lanes[lane] = (bit_reverse(x % 8, 3) + 2 * (rotation & 4)) as u64;
                    mix.rotate2 |= ((rotation >> 1 & 1) as u8) << lane;
                    mix.rotate1 |= ((rotation & 1) as u8) << lane;
                }
                mix
            })
            .collect();
        let mut rows = [0; 8];
        for (j, row) in rows.iter_mut().enumerate() {
            *row = bit_reverse(g * j % 8, 3);
        }
        Self { sources, mixes, rows, vector }
    }

    /// `out[i] = src[…]`; both have the `n` words of [`BlockPermutation::new`].
    pub fn apply(&self, out: &mut [u64], src: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.vector {
            // SAFETY: whoever built the permutation with `vector` found AVX-512 F.
            unsafe { self.apply_avx512::<false>(out, src, 0) };
            return;
        }
        self.apply_portable(out, src, |o, x| *o = x);
    }

    /// `out[i] += src[…]` modulo `q`, all in `[0, q)`.
    pub fn apply_add(&self, q: u64, out: &mut [u64], src: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.vector {
            // SAFETY: whoever built the permutation with `vector` found AVX-512 F.
            unsafe { self.apply_avx512::<true>(out, src, q) };
            return;
        }
        self.apply_portable(out, src, |o, x| {
            let sum = *o + x;
            *o = if sum >= q { sum - q } else { sum };
        });
    }

    fn apply_portable(&self, out: &mut [u64], src: &[u64], put: impl Fn(&mut u64, u64)) {
        for (out, source) in out.chunks_exact_mut(BLOCK).zip(&self.sources) {
            let src = &src[BLOCK * source.block as usize..][..BLOCK];
            let mix = &self.mixes[source.shift as usize];
            for j in 0..8 {
                let row = &mut out[8 * bit_reverse(j, 3)..][..8];
                for (lane, o) in row.iter_mut().enumerate() {
                    let from = mix.lanes[lane] as usize;
                    let (r2, r1) = (mix.rotate2 >> lane & 1, mix.rotate1 >> lane & 1);
                    let rotated = (j + (from >> 3) * 4 + usize::from(2 * r2 + r1)) % 8;
                    put(o, src[8 * self.rows[rotated] + (from & 7)]);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn apply_avx512<const ADD: bool>(&self, out: &mut [u64], src: &[u64], q: u64) {
        use super::avx512::{add_mod, load, splat, store};
        use std::arch::x86_64::*;
        let q = splat(q);
        let src = src.as_chunks::<8>().0.as_chunks::<8>().0;
        for (out, source) in out.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0.iter_mut().zip(&self.sources) {
            let src = &src[source.block as usize];
            let mix = &self.mixes[source.shift as usize];
            let lanes = load(&mix.lanes);
            let mut t = [_mm512_setzero_si512(); 8];
            for (t, row) in t.iter_mut().zip(self.rows) {
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
}
