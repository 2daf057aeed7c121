//! Matrix products: register tiles of 4 rows × 8 columns.

use super::super::lanes::{load, store};
use super::DqLimb;
use super::arith::{DqField, FOLD_TERMS, SUM_TERMS, Sum, Wide};
use crate::kernel::contract::{Rows, RowsMut};
use crate::kernel::generic::vectors::tile::Tile;
use std::arch::x86_64::*;

/// Rows of a tile.
const ROWS: usize = 4;
/// Terms after which every tile is written back, so that a column panel of `b` stays in L1.
const K_BLOCK: usize = 4 * SUM_TERMS;

/// Adds the products of columns `start ..` of `a` (its words in halves) and the rows of `b`, at most
/// [`FOLD_TERMS`] of them.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add_terms<const R: usize>(sums: &mut [Sum; R], a: &Tile<'_, [u32; 2], R>, start: usize, b: &[[u64; 8]]) {
    for (t, y) in b.iter().enumerate() {
        let y = Wide::new(load(y));
        for (i, sum) in sums.iter_mut().enumerate() {
            sum.add(Wide::splat(a.entry(i, start + t)), y);
        }
    }
    sums.iter_mut().for_each(|s| s.fold());
}

/// `c (R×8) = a (R×k) · b (k×8)`, on top of `c` if `add`. The panel `b` is contiguous.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn tile<const R: usize>(f: &DqField, c: &mut [u64], ldc: usize, a: Rows<'_>, b: &[[u64; 8]], add: bool) {
    let a = Tile::<[u32; 2], R>::new(bytemuck::cast_slice(a.words), a.stride, b.len());
    let mut total = [_mm512_setzero_si512(); R];
    if add {
        for (i, total) in total.iter_mut().enumerate() {
            if let Some(x) = c[i * ldc..].first_chunk() {
                *total = load(x);
            }
        }
    }
    for (chunk, panel) in b.chunks(SUM_TERMS).enumerate() {
        let mut sums = [Sum::new(total[0]); R];
        for (sum, total) in sums.iter_mut().zip(total) {
            *sum = Sum::new(total);
        }
        let (groups, rest) = panel.as_chunks::<FOLD_TERMS>();
        let start = chunk * SUM_TERMS;
        for (group, panel) in groups.iter().enumerate() {
            add_terms(&mut sums, &a, start + group * FOLD_TERMS, panel);
        }
        add_terms(&mut sums, &a, start + groups.len() * FOLD_TERMS, rest);
        for (total, sum) in total.iter_mut().zip(sums) {
            *total = sum.reduce(f);
        }
    }
    for (i, total) in total.into_iter().enumerate() {
        if let Some(x) = c[i * ldc..].first_chunk_mut() {
            store(x, total);
        }
    }
}

impl DqLimb {
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn gemm(
        &self,
        c: RowsMut<'_>,
        a: Rows<'_>,
        b: Rows<'_>,
        (m, k, n): (usize, usize, usize),
        accumulate: bool,
    ) {
        let f = self.field();
        let mut packed = [[0u64; 8]; K_BLOCK];
        for k0 in (0..k).step_by(K_BLOCK) {
            let terms = K_BLOCK.min(k - k0);
            let add = accumulate || k0 > 0;
            for n0 in (0..n).step_by(8) {
                for (t, row) in packed[..terms].iter_mut().enumerate() {
                    row.copy_from_slice(&b.words[(k0 + t) * b.stride + n0..][..8]);
                }
                let panel = &packed[..terms];
                for m0 in (0..m).step_by(ROWS) {
                    let a = Rows { words: &a.words[m0 * a.stride + k0..], stride: a.stride };
                    let (ldc, c) = (c.stride, &mut c.words[m0 * c.stride + n0..]);
                    match m - m0 {
                        1 => tile::<1>(&f, c, ldc, a, panel, add),
                        2 => tile::<2>(&f, c, ldc, a, panel, add),
                        3 => tile::<3>(&f, c, ldc, a, panel, add),
                        _ => tile::<4>(&f, c, ldc, a, panel, add),
                    }
                }
            }
        }
    }
}
