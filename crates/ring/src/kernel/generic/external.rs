//! Products of a row of evaluated polynomials with a small matrix of them, eight values at a time.

use super::super::contract::Monomials;
use super::super::external::{MAX_COLUMNS, PackedMatrix};
use crate::modulus::Modulus;

/// See [`LimbKernels::external_product`](super::super::contract::LimbKernels::external_product).
pub(crate) fn product(
    q: &Modulus,
    out: &mut [u64],
    digits: &[u64],
    m: &PackedMatrix,
    monomials: Option<Monomials<'_>>,
) {
    let n = digits.len() / m.rows();
    let mut key = [0u64; 8];
    for v in 0..n / 8 {
        let mut sums = [[0u64; 8]; MAX_COLUMNS];
        for g in 0..m.groups() {
            for r in 0..m.rows() {
                let mut x = [0u64; 8];
                for (l, x) in x.iter_mut().enumerate() {
                    let digit = digits[r * n + 8 * v + l];
                    *x = match monomials {
                        None => digit,
                        Some((table, e)) => q.sub(q.mul(digit, table.value(e[g], 8 * v + l)), digit),
                    };
                }
                for (c, sums) in sums.iter_mut().enumerate().take(m.columns()) {
                    m.read_eight(m.offset(g, r, c, v), &mut key);
                    for ((s, x), y) in sums.iter_mut().zip(&x).zip(&key) {
                        *s = q.reduce_u128(u128::from(*x) * u128::from(*y) + u128::from(*s));
                    }
                }
            }
        }
        for (c, sums) in sums.iter().enumerate().take(m.columns()) {
            out[c * n + 8 * v..c * n + 8 * v + 8].copy_from_slice(sums);
        }
    }
}
