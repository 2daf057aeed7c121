//! Transposing ciphertext rows (CMT): Sᵀ·X of a known matrix X over R'_q.
//!
//! With τ_t: X → X^(1 + c·t), c = 2N/d, which fix Y = X^d, and ω = X^c of order d, row j of the
//! transpose of rows m_i is X^−j·(1/d)·Σ_t ω^(−t·j)·τ_t(u_t), u_t = Σ_i ω^(t'·i)·X^i·m_i with
//! τ_t' = τ_t^−1: a Fourier transform of rows, one automorphism of each, and a transform back.
//! All monomials are multiplied in coefficient form, by shifting. The factor 1/d goes modulo q
//! to the input, which is free of noise, and the division by P is left to the end.

use crate::error::MatrixError;
use sudare_he::HeError;
use sudare_he::ckks::Evaluator;
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::Limb;
use sudare_ring::order::bit_reverse;
use sudare_ring::{Coeff, Poly, threads};
use sudare_rlwe::switching::coefficients::{add_scaled, switch_automorphism};

/// Rows that one sweep works on together: what a second-level cache holds.
const TILE: usize = 32;

/// The Galois elements 1 + c·t, t < d.
pub(super) fn elements(n: usize, side: usize) -> impl Iterator<Item = u64> {
    (0..side as u64).map(move |t| 1 + t * (2 * n / side) as u64)
}

/// g^−1 modulo the power of two 2n, by Newton's iteration.
fn inverse(g: u64, n: usize) -> u64 {
    let mut x = g;
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(g.wrapping_mul(x)));
    }
    x & (2 * n as u64 - 1)
}

/// `row = X^by · row` for |by| < N.
pub(super) fn shift(limb: &Limb, row: &mut [u64], by: isize) {
    let (n, q) = (row.len(), limb.modulus());
    let wrapped = if by >= 0 {
        row.rotate_right(by as usize);
        0..by as usize
    } else {
        row.rotate_left(by.unsigned_abs());
        n - by.unsigned_abs()..n
    };
    row[wrapped].iter_mut().for_each(|x| *x = q.neg(*x));
}

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

/// Fourier transform over rows: natural order to bit-reversed, or back (not divided by d).
fn transform(rows: &mut [Poly<Coeff>], inverse: bool) {
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

/// Over Q_l·P, P times P_0, P_1 + Q_0 and Q_1 where P_0 + P_1·S ≈ d·Sᵀ·X and Q_0 + Q_1·S ≈ d·Sᵀ·Z,
/// from the rows X^i·(row i of Xᵀ) and X^i·(row i of Zᵀ) over Q_l.
pub(super) fn transpose_pair(
    evaluator: &Evaluator,
    mut x: Vec<Poly<Coeff>>,
    mut z: Vec<Poly<Coeff>>,
) -> Result<[Vec<Poly<Coeff>>; 3], MatrixError> {
    let params = evaluator.params();
    let (n, side, level) = (params.degree(), x.len(), x[0].basis().len() - 1);
    let (order, c) = (side.trailing_zeros(), 2 * n / side);
    transform(&mut x, false);
    transform(&mut z, false);
    // The row at `p` is u_t with t' = bit-reversed p; its image goes to bit-reversed t.
    let element = |p: usize| inverse((1 + c * bit_reverse(p, order)) as u64, n);
    let switched = threads::map(side, |p| -> Result<[Poly<Coeff>; 3], HeError> {
        let g = element(p);
        if g == 1 {
            let zero = || Poly::zero(params.qp_at(level));
            let mut out = [zero(), zero(), zero()];
            add_scaled(params, &mut out[1], &x[p]);
            add_scaled(params, &mut out[2], &z[p]);
            return Ok(out);
        }
        let key = evaluator.keys().galois(g, 0)?;
        let [p0, p1] = switch_automorphism(params, &x[p], &key)?.c;
        let [mut q0, q1] = switch_automorphism(params, &z[p], &key)?.c;
        q0.add_assign(&p1);
        Ok([p0.into_coeff(), q0.into_coeff(), q1.into_coeff()])
    });
    drop((x, z));
    let mut sorted: [Vec<Option<Poly<Coeff>>>; 3] = std::array::from_fn(|_| (0..side).map(|_| None).collect());
    for (p, polys) in switched.into_iter().enumerate() {
        let to = bit_reverse((element(p) as usize - 1) / c % side, order);
        for (out, poly) in sorted.iter_mut().zip(polys?) {
            out[to] = Some(poly);
        }
    }
    Ok(sorted.map(|rows| {
        // The map of places is a permutation: every place is taken.
        let mut rows: Vec<_> = rows.into_iter().flatten().collect();
        transform(&mut rows, true);
        threads::for_each_mut(&mut rows, |j, row| {
            let basis = row.basis().clone();
            threads::for_each_chunk(row.words_mut(), n, |l, x| shift(basis.limb(l), x, -(j as isize)));
        });
        rows
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::RnsBasis;

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
        let basis = RnsBasis::new(n, &sudare_ring::prime::ntt_primes(n, 40, 2, &[]).unwrap()).unwrap();
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
            transform(&mut out, false);
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
            transform(&mut out, true);
            for (x, y) in out.iter().zip(&rows) {
                let mut y = y.clone();
                y.mul_scalars(&Poly::<sudare_ring::Eval>::scalar(&basis, side as i64));
                assert_eq!(x.words(), y.words());
            }
            for g in elements(n, side) {
                assert_eq!(g * inverse(g, n) % (2 * n as u64), 1);
            }
        }
    }
}
