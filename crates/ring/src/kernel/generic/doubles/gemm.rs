//! Matrix products: register tiles of 2 rows × 8 columns, four operations a term and register.

use super::DoubleLimb;
use super::arith::{Arith, Split, Sum};
use super::lanes::Doubles;
use crate::kernel::NARROW_BITS;
use crate::kernel::contract::{Rows, RowsMut};

/// Rows of a tile.
const ROWS: usize = 2;
/// Terms whose panel of eight columns stays in the first cache.
const K_BLOCK: usize = 256;

/// `c (R×8) = a (R×k) · b (k×8)`, on top of `c` if `add`: rows of `a` and `b` in centred doubles.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn tile<L: Doubles, const R: usize>(
    f: Arith<L>,
    split: &Split<L>,
    c: &mut [u64],
    ldc: usize,
    a: [&[f64]; R],
    b: &[[u64; 8]],
    add: bool,
) {
    let l = f.l;
    // Places in it are constants in every loop: it stays in registers.
    let mut sums = [[Sum::new(split, l.splat(0.0)); 4]; R];
    if add {
        for i in 0..R {
            let start = &c[i * ldc..i * ldc + 8].as_chunks().0[0];
            for part in 0..L::PARTS {
                sums[i][part] = Sum::new(split, l.load_words(start, part));
            }
        }
    }
    let terms = b.len();
    let a = a.map(|row| &row[..terms]);
    for start in (0..terms).step_by(split.terms) {
        if start > 0 {
            for i in 0..R {
                for part in 0..L::PARTS {
                    sums[i][part] = Sum::new(split, sums[i][part].reduce(f, split));
                }
            }
        }
        for t in start..terms.min(start + split.terms) {
            for part in 0..L::PARTS {
                let y = l.load(&b[t], part);
                for i in 0..R {
                    sums[i][part].add(l, l.splat(a[i][t]), y);
                }
            }
        }
    }
    for i in 0..R {
        let place = &mut c[i * ldc..i * ldc + 8].as_chunks_mut().0[0];
        for part in 0..L::PARTS {
            l.store_words(place, part, f.positive(sums[i][part].reduce(f, split)));
        }
    }
}

impl<L: Doubles> DoubleLimb<L> {
    #[inline(always)]
    pub(crate) fn gemm(
        &self,
        c: RowsMut<'_>,
        a: Rows<'_>,
        b: Rows<'_>,
        (m, k, n): (usize, usize, usize),
        accumulate: bool,
    ) {
        if self.q.bits() <= NARROW_BITS {
            // As many rows as leave registers for what they are multiplied by.
            return match L::PARTS {
                1 => self.narrow_gemm::<12>(c, a, b, (m, k, n), accumulate),
                _ => self.narrow_gemm::<6>(c, a, b, (m, k, n), accumulate),
            };
        }
        let (f, q) = (self.arith(), &self.q);
        // Both factors are centred, so products have two bits less.
        let split = Split::new(f, q, 2 * q.bits() - 2);
        let mut panel = [[0u64; 8]; K_BLOCK];
        let mut left = vec![0f64; m * k.min(K_BLOCK)];
        for k0 in (0..k).step_by(K_BLOCK) {
            let terms = K_BLOCK.min(k - k0);
            let add = accumulate || k0 > 0;
            for (i, row) in left.chunks_exact_mut(terms).enumerate().take(m) {
                for (x, word) in row.iter_mut().zip(&a.words[i * a.stride + k0..][..terms]) {
                    *x = q.center(*word) as f64;
                }
            }
            for n0 in (0..n).step_by(8) {
                for (t, row) in panel[..terms].iter_mut().enumerate() {
                    for (x, word) in row.iter_mut().zip(&b.words[(k0 + t) * b.stride + n0..][..8]) {
                        *x = (q.center(*word) as f64).to_bits();
                    }
                }
                let panel = &panel[..terms];
                for m0 in (0..m).step_by(ROWS) {
                    let (ldc, c) = (c.stride, &mut c.words[m0 * c.stride + n0..]);
                    let row = |i: usize| &left[(m0 + i) * terms..][..terms];
                    match m - m0 {
                        1 => tile::<L, 1>(f, &split, c, ldc, [row(0)], panel, add),
                        _ => tile::<L, ROWS>(f, &split, c, ldc, [row(0), row(1)], panel, add),
                    }
                }
            }
        }
    }
}
