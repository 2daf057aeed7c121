//! Matrix products modulo narrow primes: products are exact in doubles, and so are sums of some, one operation a term and register.
//!
//! Factors are centred, of magnitude below 2^(b−1) for a prime of b bits. A sum of `T` products on top of a reduced one stays below
//! `T·2^(2b−2) + p`, which `T = 2^(55−2b) − 1` keeps within 2^53: 7 terms of 26 bits, 127 of 24.

use super::DoubleLimb;
use super::arith::Arith;
use super::lanes::Doubles;
use crate::kernel::NARROW_BITS;
use crate::kernel::contract::{Rows, RowsMut};

/// Terms of which a panel of eight columns stays in the first cache.
const K_BLOCK: usize = 256;
/// Rows whose terms stay in the second cache while all panels pass.
const M_BLOCK: usize = 96;

/// The first `rows` rows of `c (R×8) = a (R×k) · b (k×8)`, on top of `c` if `add`, reduced after each `every` terms; centred doubles.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn tile<L: Doubles, const R: usize>(
    f: Arith<L>,
    every: usize,
    (c, rows): (RowsMut<'_>, usize),
    a: &[[f64; R]],
    b: &[[u64; 8]],
    add: bool,
) {
    let l = f.l;
    // Places in it are constants in every loop: it stays in registers.
    let mut sums = [[l.splat(0.0); 4]; R];
    if add {
        for i in 0..R {
            if i < rows {
                let start = &c.words[i * c.stride..][..8].as_chunks().0[0];
                for part in 0..L::PARTS {
                    sums[i][part] = l.load_words(start, part);
                }
            }
        }
    }
    for (a, b) in a.chunks(every).zip(b.chunks(every)) {
        for (x, row) in a.iter().zip(b) {
            let mut y = [l.splat(0.0); 4];
            for part in 0..L::PARTS {
                y[part] = l.load(row, part);
            }
            for i in 0..R {
                let x = l.splat(x[i]);
                for part in 0..L::PARTS {
                    sums[i][part] = l.mul_add(x, y[part], sums[i][part]);
                }
            }
        }
        for i in 0..R {
            for part in 0..L::PARTS {
                sums[i][part] = f.reduce(sums[i][part]);
            }
        }
    }
    for i in 0..R {
        if i < rows {
            let place = &mut c.words[i * c.stride..][..8].as_chunks_mut().0[0];
            for part in 0..L::PARTS {
                l.store_words(place, part, f.positive(sums[i][part]));
            }
        }
    }
}

impl<L: Doubles> DoubleLimb<L> {
    /// [`DoubleLimb::gemm`] for a narrow prime, by tiles of `R` rows.
    #[inline(always)]
    pub(super) fn narrow_gemm<const R: usize>(
        &self,
        c: RowsMut<'_>,
        a: Rows<'_>,
        b: Rows<'_>,
        (m, k, n): (usize, usize, usize),
        accumulate: bool,
    ) {
        let (f, q) = (self.arith(), &self.q);
        debug_assert!(q.bits() <= NARROW_BITS);
        let every = (1usize << (55 - 2 * q.bits()).min(32)) - 1;
        let center = |word: u64| q.center(word) as f64;
        let longest = k.min(K_BLOCK);
        let mut panels = vec![[0u64; 8]; n / 8 * longest];
        let mut tiles = vec![[0f64; R]; M_BLOCK.min(m).div_ceil(R) * longest];
        for k0 in (0..k).step_by(K_BLOCK) {
            let terms = K_BLOCK.min(k - k0);
            for (t, from) in b.words[k0 * b.stride..].chunks(b.stride).take(terms).enumerate() {
                for (at, eight) in from[..n].as_chunks::<8>().0.iter().enumerate() {
                    panels[at * terms + t] = eight.map(|word| center(word).to_bits());
                }
            }
            for m0 in (0..m).step_by(M_BLOCK) {
                let rows = M_BLOCK.min(m - m0);
                for (i, tile) in tiles.chunks_exact_mut(terms).enumerate().take(rows.div_ceil(R)) {
                    // Rows beyond the last are any of before.
                    for r in 0..R.min(rows - i * R) {
                        let from = &a.words[(m0 + i * R + r) * a.stride + k0..][..terms];
                        tile.iter_mut().zip(from).for_each(|(to, word)| to[r] = center(*word));
                    }
                }
                for (at, panel) in panels.chunks_exact(terms).enumerate().take(n / 8) {
                    for (i, left) in tiles.chunks_exact(terms).enumerate().take(rows.div_ceil(R)) {
                        let first = m0 + i * R;
                        let to = RowsMut { words: &mut c.words[first * c.stride + 8 * at..], stride: c.stride };
                        tile(f, every, (to, R.min(m - first).min(rows - i * R)), left, panel, accumulate || k0 > 0);
                    }
                }
            }
        }
    }
}
