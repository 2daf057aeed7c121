//! Matrix products: register tiles of 4 rows × 16 columns, two IFMA a product and vector, or one for narrow primes, whose products
//! have no upper half.

use super::super::lanes::{load, splat, store};
use super::IfmaLimb;
use super::arith::{IfmaField, accumulate, accumulate_low, needs_wide};
use crate::kernel::NARROW_BITS;
use crate::kernel::contract::{Rows, RowsMut};
use crate::kernel::generic::vectors::tile::Tile;
use std::arch::x86_64::*;

/// Terms between reductions; a packed panel of this many rows is 32 KiB and stays in L1.
const K_BLOCK: usize = 256;
/// Rows of `a` that meet one packed panel before the next is packed; 1 MiB of `a` stays in L2.
const M_BLOCK: usize = 512;
/// Columns of a tile.
const COLUMNS: usize = 16;

/// `c (R×8V) = a (R×k) · b (k×8V)`, on top of `c` if `add`. At most 4095 terms: with `c` as
/// the start of the low sum it stays under 2^64.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn tile<const R: usize, const V: usize, const WIDE: bool, const NARROW: bool>(
    f: &IfmaField,
    c: &mut [u64],
    ldc: usize,
    a: Rows<'_>,
    b: Rows<'_>,
    k: usize,
    add: bool,
) {
    debug_assert!(k < 4096);
    let mut low = [[_mm512_setzero_si512(); V]; R];
    let mut high = low;
    if add {
        for i in 0..R {
            for v in 0..V {
                if let Some(x) = c[i * ldc + 8 * v..].first_chunk() {
                    low[i][v] = load(x);
                }
            }
        }
    }
    let a = Tile::<u64, R>::new(a.words, a.stride, k);
    for (t, row) in b.words.chunks(b.stride).take(k).enumerate() {
        let row = &row[..8 * V];
        let mut y = [_mm512_setzero_si512(); V];
        for (y, x) in y.iter_mut().zip(row.as_chunks::<8>().0) {
            *y = load(x);
        }
        for i in 0..R {
            let x = splat(a.entry(i, t));
            for v in 0..V {
                match NARROW {
                    true => accumulate_low(&mut low[i][v], x, y[v]),
                    false => accumulate(&mut low[i][v], &mut high[i][v], x, y[v]),
                }
            }
        }
    }
    for i in 0..R {
        for v in 0..V {
            if let Some(x) = c[i * ldc + 8 * v..].first_chunk_mut() {
                store(x, f.reduce_sum::<WIDE>(low[i][v], high[i][v]));
            }
        }
    }
}

/// All rows of `a` against one panel of `8V` columns.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn panel<const V: usize, const WIDE: bool, const NARROW: bool>(
    f: &IfmaField,
    c: &mut [u64],
    ldc: usize,
    a: Rows<'_>,
    b: Rows<'_>,
    (m, k): (usize, usize),
    add: bool,
) {
    let mut i = 0;
    while i < m {
        let rows = Rows { words: &a.words[i * a.stride..], stride: a.stride };
        let c = &mut c[i * ldc..];
        match m - i {
            1 => tile::<1, V, WIDE, NARROW>(f, c, ldc, rows, b, k, add),
            2 => tile::<2, V, WIDE, NARROW>(f, c, ldc, rows, b, k, add),
            3 => tile::<3, V, WIDE, NARROW>(f, c, ldc, rows, b, k, add),
            _ => tile::<4, V, WIDE, NARROW>(f, c, ldc, rows, b, k, add),
        }
        i += 4;
    }
}

impl IfmaLimb {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn gemm(
        &self,
        c: RowsMut<'_>,
        a: Rows<'_>,
        b: Rows<'_>,
        (m, k, n): (usize, usize, usize),
        accumulate: bool,
    ) {
        let (q, f) = (self.q.value(), self.field());
        // A panel of a wide matrix has its rows in few cache sets: copy it once where several rows use it.
        let pack = m >= 8 && k.saturating_mul(b.stride) > 4096;
        let mut packed = vec![0u64; if pack { COLUMNS * k.min(K_BLOCK) } else { 0 }];
        for k0 in (0..k).step_by(K_BLOCK) {
            let terms = K_BLOCK.min(k - k0);
            let add = accumulate || k0 > 0;
            // One term more for what `c` holds.
            let wide = needs_wide(terms + 1, q, q);
            let narrow = self.q.bits() <= NARROW_BITS;
            for m0 in (0..m).step_by(M_BLOCK) {
                let rows = M_BLOCK.min(m - m0);
                let a = Rows { words: &a.words[m0 * a.stride + k0..], stride: a.stride };
                for n0 in (0..n).step_by(COLUMNS) {
                    let columns = COLUMNS.min(n - n0);
                    let mut b = Rows { words: &b.words[k0 * b.stride + n0..], stride: b.stride };
                    if pack {
                        for (row, t) in packed.chunks_exact_mut(columns).zip(0..terms) {
                            row.copy_from_slice(&b.words[t * b.stride..][..columns]);
                        }
                        b = Rows { words: &packed, stride: columns };
                    }
                    let (ldc, c) = (c.stride, &mut c.words[m0 * c.stride + n0..]);
                    let shape = (rows, terms);
                    match (columns == COLUMNS, wide, narrow) {
                        (true, _, true) => panel::<2, false, true>(&f, c, ldc, a, b, shape, add),
                        (false, _, true) => panel::<1, false, true>(&f, c, ldc, a, b, shape, add),
                        (true, false, false) => panel::<2, false, false>(&f, c, ldc, a, b, shape, add),
                        (true, true, false) => panel::<2, true, false>(&f, c, ldc, a, b, shape, add),
                        (false, false, false) => panel::<1, false, false>(&f, c, ldc, a, b, shape, add),
                        (false, true, false) => panel::<1, true, false>(&f, c, ldc, a, b, shape, add),
                    }
                }
            }
        }
    }
}
