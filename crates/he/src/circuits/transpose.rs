//! Transposing ciphertext rows (CMT): Sᵀ·X of a known matrix X over R'_q (Cheon–Kang–Lee, ePrint 2025/1957).
//!
//! With τ_t: X → X^(1 + c·t), c = 2N/d, which fix Y = X^d, and ω = X^c of order d, row j of the
//! transpose of rows m_i is X^−j·(1/d)·Σ_t ω^(−t·j)·τ_t(u_t), u_t = Σ_i ω^(t'·i)·X^i·m_i with
//! τ_t' = τ_t^−1: a Fourier transform of rows, one automorphism of each, and a transform back.
//! All monomials are multiplied in coefficient form, by shifting. The factor 1/d goes modulo q
//! to the input, which is free of noise, and the division by P is left to the end.

use crate::ckks::Evaluator;
use crate::error::HeError;
use sudare_ring::ops::{Pair, fourier};
use sudare_ring::order::bit_reverse;
use sudare_ring::{Coeff, Poly, threads};
use sudare_rlwe::keys::GaloisKey;

/// The Galois elements 1 + c·t, t < d.
pub fn elements(n: usize, side: usize) -> impl Iterator<Item = u64> {
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

/// Over Q_l·P, P times P_0, P_1 + Q_0 and Q_1 where P_0 + P_1·S ≈ d·Sᵀ·X and Q_0 + Q_1·S ≈ d·Sᵀ·Z,
/// from the rows X^i·(row i of Xᵀ) and X^i·(row i of Zᵀ) over Q_l, d of each.
///
/// # Errors
/// As [`Evaluator::check_keys`] for [`elements`].
pub(super) fn transpose_pair(
    evaluator: &Evaluator,
    mut x: Vec<Poly<Coeff>>,
    mut z: Vec<Poly<Coeff>>,
) -> Result<[Vec<Poly<Coeff>>; 3], HeError> {
    let (params, side) = (evaluator.params(), x.len());
    let (n, level) = (params.degree(), x[0].basis().len() - 1);
    let (gadget, order, c) = (&params.tables(level).gadget, side.trailing_zeros(), 2 * n / side);
    fourier(&mut x, false);
    fourier(&mut z, false);
    // The row at `p` is u_t with t' = bit-reversed p; its image goes to bit-reversed t.
    let element = |p: usize| inverse((1 + c * bit_reverse(p, order)) as u64, n);
    evaluator.inner.prefetch(&(0..side).map(element).collect::<Vec<_>>());
    let switched = |c: &Poly<Coeff>, key: &GaloisKey| -> Pair {
        gadget.switch(c, None, key.key().pairs()).map(|part| part.permuted(key.permutation()))
    };
    let images = threads::map(side, |p| -> Result<[Poly<Coeff>; 3], HeError> {
        let keys = evaluator.inner.galois_keys(&[element(p)], level)?;
        let Some(key) = keys.into_iter().next().flatten() else {
            let mut out = [(); 3].map(|()| Poly::zero(gadget.qp()));
            gadget.add_scaled(&mut out[1], &x[p]);
            gadget.add_scaled(&mut out[2], &z[p]);
            return Ok(out);
        };
        let ([p0, p1], [mut q0, q1]) = (switched(&x[p], &key), switched(&z[p], &key));
        q0.add_assign(&p1);
        Ok([p0, q0, q1].map(Poly::into_coeff))
    });
    drop((x, z));
    let mut sorted: [Vec<Option<Poly<Coeff>>>; 3] = std::array::from_fn(|_| (0..side).map(|_| None).collect());
    for (p, polys) in images.into_iter().enumerate() {
        let to = bit_reverse((element(p) as usize - 1) / c % side, order);
        for (out, poly) in sorted.iter_mut().zip(polys?) {
            out[to] = Some(poly);
        }
    }
    Ok(sorted.map(|rows| {
        // The map of places is a permutation: every place is taken.
        let mut rows: Vec<_> = rows.into_iter().flatten().collect();
        fourier(&mut rows, true);
        threads::map_into(rows, |j, mut row| {
            row.mul_monomial(-(j as isize));
            row
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_of_elements() {
        for side in [8, 64, 128] {
            assert!(elements(512, side).all(|g| g * inverse(g, 512) % 1024 == 1));
        }
    }
}
