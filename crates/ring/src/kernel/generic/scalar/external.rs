//! Products of a row of evaluated polynomials with a small matrix of them, eight values at a time.

use super::Word;
use super::sums::Reduction;
use crate::kernel::PackedMatrix;
use crate::kernel::contract::Monomials;
use crate::modulus::Modulus;

/// See [`LimbKernels::external_product`](crate::kernel::contract::LimbKernels::external_product).
#[inline(always)]
pub(crate) fn product(
    q: &Modulus,
    out: &mut [u64],
    digits: &[u64],
    m: &PackedMatrix,
    monomials: Option<Monomials<'_>>,
) {
    let (word, by) = (Word::new(q), Reduction::new(q, q.bits(), m.groups() * m.rows()));
    let (n, columns) = (digits.len() / m.rows(), m.columns());
    let (bytes, width) = m.raw();
    let mask = u64::MAX >> (64 - 8 * width);
    let mut factors = vec![[0u64; 8]; m.groups() * m.rows()];
    for v in 0..n / 8 {
        for (t, x) in factors.iter_mut().enumerate() {
            let (group, row) = (t / m.rows(), t % m.rows());
            for (l, x) in x.iter_mut().enumerate() {
                let digit = digits[row * n + 8 * v + l];
                *x = match monomials {
                    None => digit,
                    Some((table, e)) => {
                        let value = u128::from(table.value(e[group], 8 * v + l));
                        q.sub(word.reduce_square(u128::from(digit) * value), digit)
                    }
                };
            }
        }
        for c in 0..columns {
            for l in 0..8 {
                let mut at = m.offset(0, 0, c, v) + l * width;
                let mut total = 0u64;
                for terms in factors.chunks(by.lazy) {
                    let mut sum = u128::from(total);
                    for x in terms {
                        // A whole word, of which the next values' bytes are cut off.
                        let mut key = [0; 8];
                        key.copy_from_slice(&bytes[at..at + 8]);
                        sum += u128::from(x[l]) * u128::from(u64::from_le_bytes(key) & mask);
                        at += 8 * width * columns;
                    }
                    total = by.reduce(sum);
                }
                out[c * n + 8 * v + l] = total;
            }
        }
    }
}
