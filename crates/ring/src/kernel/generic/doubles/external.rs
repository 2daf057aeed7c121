//! External products with packed matrices: one pass over the key, one reduction a column.

use super::DoubleLimb;
use super::arith::{Arith, Factor, Split, Sum, pair};
use super::lanes::{Doubles, Packing};
use crate::kernel::contract::Monomials;
use crate::kernel::{MAX_COLUMNS, MAX_GROUPS, PackedMatrix};

/// How far ahead the key is asked for, in bytes: hardware does not look beyond a page of 4 KiB.
const AHEAD: usize = 4096;

/// What is added up for a column: eight words.
type Sums<L> = [Sum<L>; 4];

/// `X^e − 1` at eight places of a transform, with its quotients: the power of the first place times the lanes'
/// factors, up to 0.57p. The quotients are rounded twice, hence off by 2^−52·0.57, and meet `|x| < 2^50`: the
/// product is up to 0.65p.
#[inline(always)]
fn monomial<L: Doubles>(f: Arith<L>, power: f64, lanes: &[[u64; 8]; 2], part: usize) -> Factor<L> {
    let [w, quotient] = lanes;
    let value = f.times(f.l.splat(power), (f.l.load(w, part), f.l.load(quotient, part)));
    let less = f.l.sub(value, f.l.splat(1.0));
    (less, f.l.mul(less, f.inverse))
}

impl<L: Doubles> DoubleLimb<L> {
    #[inline(always)]
    pub(crate) fn external_product(
        &self,
        out: &mut [u64],
        digits: &[u64],
        m: &PackedMatrix,
        monomials: Option<Monomials<'_>>,
    ) {
        match m.columns() {
            1 => self.columns::<1>(out, digits, m, monomials),
            2 => self.columns::<2>(out, digits, m, monomials),
            3 => self.columns::<3>(out, digits, m, monomials),
            4 => self.columns::<4>(out, digits, m, monomials),
            5 => self.columns::<5>(out, digits, m, monomials),
            _ => self.columns::<MAX_COLUMNS>(out, digits, m, monomials),
        }
    }

    #[inline(always)]
    fn columns<const C: usize>(
        &self,
        out: &mut [u64],
        digits: &[u64],
        m: &PackedMatrix,
        monomials: Option<Monomials<'_>>,
    ) {
        let (f, l, q) = (self.arith(), self.lanes, &self.q);
        // Digits times monomials are below p in magnitude, as residues are.
        let split = Split::new(f, q, 2 * q.bits());
        let (groups, rows) = (m.groups(), m.rows());
        let n = digits.len() / rows;
        let (bytes, width) = m.raw();
        let packing = Packing::new(width);
        let mut lanes = [[[0u64; 8]; 2]; MAX_GROUPS];
        let (powers, vectors) = match monomials {
            None => (&[][..], &[][..]),
            Some((table, exponents)) => {
                let (powers, vectors, places) = table.raw();
                for (factor, e) in lanes.iter_mut().zip(exponents) {
                    for (k, place) in places.iter().enumerate() {
                        let w = pair(q, powers[e.wrapping_mul(*place) & (powers.len() - 1)][0]);
                        (factor[0][k], factor[1][k]) = (w[0].to_bits(), w[1].to_bits());
                    }
                }
                (powers, vectors)
            }
        };
        let mut key = 0;
        for v in 0..n / 8 {
            for line in (0..groups * rows * C * 8 * width).step_by(64) {
                l.prefetch(bytes.as_ptr().wrapping_add(key + AHEAD + line));
            }
            let mut sums: [Sums<L>; C] = [[Sum::new(&split, l.splat(0.0)); 4]; C];
            let mut terms = 0;
            for (g, lanes) in lanes.iter().enumerate().take(groups) {
                let mut w = [(f.p, f.p); 4];
                if let Some((_, exponents)) = monomials {
                    let power = powers[exponents[g].wrapping_mul(vectors[v] as usize) & (powers.len() - 1)][0];
                    for (part, w) in w[..L::PARTS].iter_mut().enumerate() {
                        *w = monomial(f, power as f64, lanes, part);
                    }
                }
                for r in 0..rows {
                    if terms == split.terms {
                        for sum in sums.iter_mut().flat_map(|sums| &mut sums[..L::PARTS]) {
                            *sum = Sum::new(&split, sum.reduce(f, &split));
                        }
                        terms = 0;
                    }
                    terms += 1;
                    let digit = &digits[r * n + 8 * v..r * n + 8 * v + 8].as_chunks().0[0];
                    let mut x = [f.p; 4];
                    for (part, x) in x[..L::PARTS].iter_mut().enumerate() {
                        *x = l.load_words(digit, part);
                        if monomials.is_some() {
                            *x = f.times(*x, w[part]);
                        }
                    }
                    for sums in &mut sums {
                        let eight = &bytes[key..key + 64].as_chunks().0[0];
                        for part in 0..L::PARTS {
                            sums[part].add(l, x[part], l.unpack(eight, &packing, part));
                        }
                        key += 8 * width;
                    }
                }
            }
            for (c, sums) in sums.iter().enumerate() {
                let place = &mut out[c * n + 8 * v..c * n + 8 * v + 8].as_chunks_mut().0[0];
                for (part, sum) in sums[..L::PARTS].iter().enumerate() {
                    l.store_words(place, part, f.positive(sum.reduce(f, &split)));
                }
            }
        }
    }
}
