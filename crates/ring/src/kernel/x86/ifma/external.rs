//! External products with packed matrices: one pass, one reduction a column.

use super::super::lanes::{load, splat, store};
use super::IfmaLimb;
use super::arith::{accumulate, needs_wide};
use crate::kernel::contract::Monomials;
use crate::kernel::{MAX_GROUPS, PackedMatrix};
use std::arch::x86_64::*;

/// How far ahead the key is asked for, in bytes: hardware does not look beyond a page of 4 KiB.
const AHEAD: usize = 4096;

/// A group's monomial: the exponent, and the factors of the eight lanes with their quotients.
#[derive(Clone, Copy)]
struct Monomial {
    exponent: usize,
    lanes: __m512i,
    quotients: __m512i,
}

/// `x · w` in `[0, 2q)` modulo 2^52, for `x < 2^52` (Shoup); bits above 52 are left as they are.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn mul_lazy(x: __m512i, w: __m512i, quotient: __m512i, neg_q: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let estimate = _mm512_madd52hi_epu64(zero, x, quotient);
    _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, w), estimate, neg_q)
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn columns<const C: usize, const WIDE: bool>(
    limb: &IfmaLimb,
    out: &mut [u64],
    digits: &[u64],
    m: &PackedMatrix,
    monomials: Option<Monomials<'_>>,
) {
    let f = limb.field();
    let neg_q = splat((1 << 52) - limb.q.value());
    let (bytes, width) = m.raw();
    let (groups, rows) = (m.groups(), m.rows());
    let n = digits.len() / rows;
    // Lane l takes bytes l·width.. and zeros above.
    let index: [u8; 64] = std::array::from_fn(|i| ((i / 8) * width + (i % 8).min(width - 1)) as u8);
    let keep = (0..64).fold(0u64, |mask, i| if i % 8 < width { mask | 1 << i } else { mask });
    let index = load(&bytemuck::cast(index));
    let mut factors = [Monomial { exponent: 0, lanes: splat(0), quotients: splat(0) }; MAX_GROUPS];
    let (powers, vectors) = match monomials {
        None => (&[][..], &[][..]),
        Some((table, exponents)) => {
            let (powers, vectors, lanes) = table.raw();
            for (factor, e) in factors.iter_mut().zip(exponents) {
                let at = |l: usize| powers[e.wrapping_mul(lanes[l]) & (powers.len() - 1)];
                let (values, quotients): ([u64; 8], [u64; 8]) =
                    (std::array::from_fn(|l| at(l)[0]), std::array::from_fn(|l| at(l)[1]));
                *factor = Monomial { exponent: *e, lanes: load(&values), quotients: load(&quotients) };
            }
            (powers, vectors)
        }
    };
    assert!(groups <= MAX_GROUPS && out.len() == C * n && n.is_multiple_of(8));
    assert!(bytes.len() >= groups * rows * C * n * width + 64 && (monomials.is_none() || vectors.len() == n / 8));
    let mut key = bytes.as_ptr();
    for v in 0..n / 8 {
        for line in (0..groups * rows * C * 8 * width).step_by(64) {
            // A hint: it may reach beyond the matrix, mostly into the next one.
            _mm_prefetch::<_MM_HINT_T0>(key.wrapping_add(AHEAD + line).cast());
        }
        let mut low = [_mm512_setzero_si512(); C];
        let mut high = low;
        for factor in factors.iter().take(groups) {
            let power = if monomials.is_some() {
                let [value, quotient] = powers[factor.exponent.wrapping_mul(vectors[v] as usize) & (powers.len() - 1)];
                (splat(value), splat(quotient))
            } else {
                (splat(0), splat(0))
            };
            for r in 0..rows {
                // SAFETY: r < rows and 8v + 8 <= n, and `digits` has rows·n words (asserted above).
                let mut x = unsafe { _mm512_loadu_si512(digits.as_ptr().add(r * n + 8 * v).cast()) };
                if monomials.is_some() {
                    // X^e·x below 2q, and q − x: the sum is below 3q < 2^52.
                    let y = mul_lazy(x, factor.lanes, factor.quotients, neg_q);
                    let y = mul_lazy(y, power.0, power.1, neg_q);
                    x = _mm512_add_epi64(y, _mm512_sub_epi64(f.q, x));
                }
                for c in 0..C {
                    // SAFETY: entries are read in order, 8·width bytes each, and 64 bytes of
                    // padding follow the last (asserted above).
                    let packed = unsafe { _mm512_loadu_si512(key.cast()) };
                    let y = _mm512_maskz_permutexvar_epi8(keep, index, packed);
                    accumulate(&mut low[c], &mut high[c], x, y);
                    key = key.wrapping_add(8 * width);
                }
            }
        }
        for c in 0..C {
            let sum = f.reduce_sum::<WIDE>(low[c], high[c]);
            if let Some(place) = out[c * n + 8 * v..].first_chunk_mut() {
                store(place, sum);
            }
        }
    }
}

impl IfmaLimb {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn external_product(
        &self,
        out: &mut [u64],
        digits: &[u64],
        m: &PackedMatrix,
        monomials: Option<Monomials<'_>>,
    ) {
        let q = self.q.value();
        let wide = needs_wide(m.groups() * m.rows(), 3 * q, q);
        match (m.columns(), wide) {
            (1, false) => columns::<1, false>(self, out, digits, m, monomials),
            (2, false) => columns::<2, false>(self, out, digits, m, monomials),
            (3, false) => columns::<3, false>(self, out, digits, m, monomials),
            (4, false) => columns::<4, false>(self, out, digits, m, monomials),
            (5, false) => columns::<5, false>(self, out, digits, m, monomials),
            (_, false) => columns::<6, false>(self, out, digits, m, monomials),
            (1, true) => columns::<1, true>(self, out, digits, m, monomials),
            (2, true) => columns::<2, true>(self, out, digits, m, monomials),
            (3, true) => columns::<3, true>(self, out, digits, m, monomials),
            (4, true) => columns::<4, true>(self, out, digits, m, monomials),
            (5, true) => columns::<5, true>(self, out, digits, m, monomials),
            (_, true) => columns::<6, true>(self, out, digits, m, monomials),
        }
    }
}
