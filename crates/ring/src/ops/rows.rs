//! Rows of polynomials: Fourier transforms over them, with monomials for roots of unity.

use super::Crossing;
use crate::buffer::Buffer;
use crate::kernel::Limb;
use crate::poly::{Coeff, Poly};
use crate::threads;

/// Rows that one sweep works on together: what a second-level cache holds.
const TILE: usize = 32;

/// Some rows of one limb: row numbers `first`, `first + stride`, ….
struct Rows<'a> {
    limb: &'a Limb,
    first: usize,
    stride: usize,
    rows: Vec<&'a mut [u64]>,
}

impl Rows<'_> {
    /// The layers of the transform over `side` rows with these block sizes.
    fn layers(&mut self, side: usize, blocks: impl Iterator<Item = usize>, inverse: bool) {
        let n = self.rows[0].len();
        let mut copy = Buffer::dirty(n);
        for block in blocks {
            let half = block / 2 / self.stride;
            for low in (0..self.rows.len()).filter(|r| (r / half).is_multiple_of(2)) {
                let (head, tail) = self.rows.split_at_mut(low + half);
                let (a, b) = (&mut *head[low], &mut *tail[0]);
                // The exponent of ω_block = X^(c·side/block) = X^(2N/block), below N.
                let e = 2 * n / block * ((self.first + low * self.stride) % (block / 2));
                copy.copy_from_slice(b);
                match inverse {
                    false => decimate(self.limb, a, b, &copy, e),
                    true => combine(self.limb, a, b, &copy, e),
                }
            }
        }
        debug_assert!(side >= self.rows.len());
    }
}

/// (a, b) → (a + b, X^e·(a − b)), 8 | e; `copy` holds b.
fn decimate(limb: &Limb, a: &mut [u64], b: &mut [u64], copy: &[u64], e: usize) {
    let cut = a.len() - e;
    limb.sub(&mut b[e..], &a[..cut], &copy[..cut]);
    limb.sub(&mut b[..e], &copy[cut..], &a[cut..]);
    limb.add_assign(a, copy);
}

/// (a, b) → (a + X^−e·b, a − X^−e·b), 8 | e; `copy` holds b.
fn combine(limb: &Limb, a: &mut [u64], b: &mut [u64], copy: &[u64], e: usize) {
    let cut = a.len() - e;
    limb.sub(&mut b[..cut], &a[..cut], &copy[e..]);
    limb.add(&mut b[cut..], &a[cut..], &copy[..e]);
    limb.add_assign(&mut a[..cut], &copy[e..]);
    limb.sub_assign(&mut a[cut..], &copy[..e]);
}

/// Block sizes from `high` down to `low`, or up where the transform goes back.
fn block_sizes(high: usize, low: usize, inverse: bool) -> impl Iterator<Item = usize> {
    let layers = (high / low).trailing_zeros();
    (0..=layers).map(move |i| if inverse { low << i } else { high >> i })
}

/// Fourier transform over d rows, a power of two up to N/4, with ω = X^(2N/d): natural order to bit-reversed,
/// or back (not divided by d). Output p of the way there is Σ_i X^(2N/d·brv(p)·i)·row_i.
///
/// # Panics
/// If there are no rows, their number is no power of two or beyond that, or they are over different bases.
pub fn fourier(rows: &mut [Poly<Coeff>], inverse: bool) {
    let _crossing = Crossing::begin();
    assert!(rows.len().is_power_of_two() && rows.len() <= rows[0].degree() / 4, "rows of no such transform");
    assert!(rows.iter().all(|row| row.basis() == rows[0].basis()), "rows of different bases");
    let (side, basis) = (rows.len(), rows[0].basis().clone());
    let tile = side.min(TILE);
    let mut sweep = |wide: bool| {
        let count = if wide { tile } else { side / tile };
        let mut groups: Vec<Rows<'_>> = (0..basis.len() * count)
            .map(|g| Rows {
                limb: basis.limb(g / count),
                first: if wide { g % count } else { g % count * tile },
                stride: if wide { tile } else { 1 },
                rows: Vec::new(),
            })
            .collect();
        for (r, row) in rows.iter_mut().enumerate() {
            let at = if wide { r % tile } else { r / tile };
            for (l, words) in row.words_mut().chunks_exact_mut(basis.degree()).enumerate() {
                groups[l * count + at].rows.push(words);
            }
        }
        let (high, low) = if wide { (side, 2 * tile) } else { (tile, 2) };
        threads::for_each_mut(&mut groups, |_, g| g.layers(side, block_sizes(high, low, inverse), inverse));
    };
    match (side > tile, inverse) {
        (true, false) => [true, false].into_iter().for_each(&mut sweep),
        (true, true) => [false, true].into_iter().for_each(&mut sweep),
        (false, _) => sweep(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::RnsBasis;
    use crate::order::bit_reverse;
    use crate::poly::Eval;

    /// X^e · a by the definition.
    fn monomial(q: u64, a: &[u64], e: usize) -> Vec<u64> {
        let n = a.len();
        let mut out = vec![0; n];
        for (i, x) in a.iter().enumerate() {
            let at = (i + e) % (2 * n);
            out[at % n] = if at < n || *x == 0 { *x } else { q - x };
        }
        out
    }

    #[test]
    fn transforms_by_definition_and_back() {
        let n = 512;
        let basis = RnsBasis::new(n, &crate::prime::ntt_primes(n, 40, 2, &[]).unwrap()).unwrap();
        for side in [8usize, 64, 128] {
            let rows: Vec<Poly<Coeff>> = (0..side)
                .map(|r| {
                    Poly::from_signed(
                        &basis,
                        &(0..n).map(|i| ((i * 31 + r * 17) % 101) as i64 - 50).collect::<Vec<_>>(),
                    )
                })
                .collect();
            let mut out = rows.clone();
            fourier(&mut out, false);
            let c = 2 * n / side;
            for p in [0, 1, 5, side - 1] {
                let f = bit_reverse(p, side.trailing_zeros());
                for l in 0..2 {
                    let q = basis.limb(l);
                    let mut sum = vec![0; n];
                    for (i, row) in rows.iter().enumerate() {
                        q.add_assign(&mut sum, &monomial(q.q(), row.limb(l), c * f * i % (2 * n)));
                    }
                    assert_eq!(out[p].limb(l), sum, "side {side}, row {p}");
                }
            }
            fourier(&mut out, true);
            for (x, y) in out.iter().zip(&rows) {
                let mut y = y.clone();
                y.mul_scalars(&Poly::<Eval>::scalar(&basis, side as i64));
                assert_eq!(x.words(), y.words());
            }
        }
    }
}
