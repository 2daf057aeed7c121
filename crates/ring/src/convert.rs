//! Basis conversion: from residues modulo one set of primes to residues modulo another.
//!
//! Halevi–Polyakov–Shoup, ePrint 2018/117; Cheon et al., ePrint 2018/931 (approximate form).
//! `x = Σ_i y_i · (Q/q_i) − v·Q` with `y_i = [x_i · (Q/q_i)^−1]_{q_i}`. The approximate form
//! leaves `v·Q`, `0 ≤ v < count`, in the result; the centred form rounds `v = ⌊Σ y_i/q_i⌉` in
//! double precision, so that the result stands for `x` in `(−Q/2, Q/2]`.

use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::count::{self, What};
use crate::modulus::Shoup;
use crate::threads::for_each_mut;

/// Residues of a row that are worked on together.
const COLUMN: usize = 1024;

/// Parts of all rows, and of the quotients if they are wanted.
type Column<'a> = (Vec<&'a mut [u64]>, Option<&'a mut [u64]>);

/// Precomputed conversion between two disjoint bases of one degree.
#[derive(Debug)]
pub struct BasisConverter {
    from: RnsBasis,
    to: RnsBasis,
    /// (Q/q_i)^−1 mod q_i.
    hat_inv: Vec<Shoup>,
    /// Row j: Q/q_i mod p_j for each i, then −Q mod p_j.
    weights: Vec<Vec<u64>>,
    /// 1/q_i.
    reciprocal: Vec<f64>,
    /// Bits of the largest source prime.
    bound_bits: u32,
    /// Whether factors are folded into the constants.
    scaled: bool,
}

impl BasisConverter {
    /// Prepares the conversion from `from` to `to`.
    ///
    /// # Panics
    /// Never: the primes of a basis are distinct.
    pub fn new(from: &RnsBasis, to: &RnsBasis) -> Self {
        let others = |i: usize| from.primes().enumerate().filter(move |(t, _)| *t != i).map(|(_, q)| q);
        let hat_inv = from
            .limbs()
            .iter()
            .enumerate()
            .map(|(i, l)| {
                let m = l.modulus();
                let hat = others(i).fold(1, |acc, q| m.mul(acc, q));
                m.shoup(m.inv(hat).expect("the primes of a basis are distinct"))
            })
            .collect();
        let weights = to
            .limbs()
            .iter()
            .map(|l| {
                let m = l.modulus();
                let product = from.primes().fold(1, |acc, q| m.mul(acc, q));
                (0..from.len()).map(|i| others(i).fold(1, |acc, q| m.mul(acc, q))).chain([m.neg(product)]).collect()
            })
            .collect();
        Self {
            hat_inv,
            weights,
            reciprocal: from.primes().map(|q| 1.0 / q as f64).collect(),
            bound_bits: from.limbs().iter().map(|l| l.modulus().bits()).max().unwrap_or(0),
            from: from.clone(),
            to: to.clone(),
            scaled: false,
        }
    }

    /// Prepares x → `post_j` · \[`pre` · x\] modulo target prime j, where `pre_i` is the factor's
    /// residue modulo source prime i: both factors go into the constants, at no cost.
    ///
    /// # Panics
    /// If there is not one factor for each prime.
    pub fn scaled(from: &RnsBasis, to: &RnsBasis, pre: &[u64], post: &[u64]) -> Self {
        assert!(pre.len() == from.len() && post.len() == to.len(), "one factor for each prime");
        let mut out = Self::new(from, to);
        for ((hat, limb), factor) in out.hat_inv.iter_mut().zip(from.limbs()).zip(pre) {
            *hat = limb.modulus().shoup(limb.modulus().mul(hat.value, *factor));
        }
        for ((row, limb), factor) in out.weights.iter_mut().zip(to.limbs()).zip(post) {
            row.iter_mut().for_each(|w| *w = limb.modulus().mul(*w, *factor));
        }
        out.scaled = true;
        out
    }

    /// The source basis.
    pub fn from(&self) -> &RnsBasis {
        &self.from
    }

    /// The target basis.
    pub fn to(&self) -> &RnsBasis {
        &self.to
    }

    /// First half of a conversion: turns the residues (coefficient form, limb after limb modulo
    /// the source primes) into the `y_i` where they stand, and finds `v` when `centered`.
    ///
    /// # Panics
    /// If `rows` has not N words for each source prime.
    pub fn prepare<'a>(&self, rows: &'a mut [u64], centered: bool) -> Prepared<'a> {
        let n = self.from.degree();
        assert_eq!(rows.len(), n * self.from.len(), "residues of another basis");
        count::add(What::Conversions, 1);
        if self.from.len() == 1 && !self.scaled {
            return Prepared { rows, quotient: None, centered };
        }
        let mut quotient = centered.then(|| Buffer::dirty(n));
        // Column by column, so that the quotients find the residues in the nearest cache.
        let mut columns: Vec<Column<'_>> = match &mut quotient {
            Some(v) => v.chunks_mut(COLUMN).map(|v| (Vec::new(), Some(v))).collect(),
            None => (0..n.div_ceil(COLUMN)).map(|_| (Vec::new(), None)).collect(),
        };
        for row in rows.chunks_exact_mut(n) {
            columns.iter_mut().zip(row.chunks_mut(COLUMN)).for_each(|((parts, _), part)| parts.push(part));
        }
        for_each_mut(&mut columns, |_, (parts, v)| {
            for (i, part) in parts.iter_mut().enumerate() {
                self.from.limb(i).mul_scalar(part, &self.hat_inv[i]);
            }
            if let Some(v) = v {
                let y: Vec<&[u64]> = parts.iter().map(|part| &**part).collect();
                crate::kernel::round_quotients(v, &y, &self.reciprocal);
            }
        });
        drop(columns);
        Prepared { rows, quotient, centered }
    }

    /// Second half: the residues modulo target prime `j`, in `[0, p_j)`.
    pub fn finish(&self, prepared: &Prepared<'_>, j: usize, out: &mut [u64]) {
        let n = self.from.degree();
        let limb = self.to.limb(j);
        if self.from.len() == 1 && !self.scaled {
            let q = self.from.limb(0).q();
            match prepared.centered {
                true => limb.reduce_centered(out, prepared.rows, q),
                false => limb.reduce(out, prepared.rows),
            }
            return;
        }
        let rows: Vec<&[u64]> = prepared.rows.chunks_exact(n).chain(prepared.quotient.as_deref()).collect();
        limb.combine(out, &rows, &self.weights[j][..rows.len()], self.bound_bits);
    }

    /// [`BasisConverter::finish`] for several target primes, which share one reading of the
    /// source: column by column, so that the second target finds it in the nearest cache.
    ///
    /// # Panics
    /// If there are not as many outputs as targets.
    pub fn finish_many(&self, prepared: &Prepared<'_>, targets: &[usize], outs: &mut [&mut [u64]]) {
        assert_eq!(targets.len(), outs.len(), "an output for each target");
        let n = self.from.degree();
        if targets.len() < 2 || self.from.len() == 1 {
            targets.iter().zip(outs).for_each(|(j, out)| self.finish(prepared, *j, out));
            return;
        }
        for start in (0..n).step_by(COLUMN) {
            let column = start..n.min(start + COLUMN);
            let sources = prepared.rows.chunks_exact(n).chain(prepared.quotient.as_deref());
            let rows: Vec<&[u64]> = sources.map(|row| &row[column.clone()]).collect();
            for (j, out) in targets.iter().zip(outs.iter_mut()) {
                let weights = &self.weights[*j][..rows.len()];
                self.to.limb(*j).combine(&mut out[column.clone()], &rows, weights, self.bound_bits);
            }
        }
    }
    /// The whole centred conversion of some columns: `rows[i]` holds residues modulo source prime
    /// i, `out[j]` gets those modulo target prime j, in `[0, p_j)`. All slices have one length, a
    /// multiple of 8; short ones ([`BasisConverter::columns`]) stay in the nearest cache for all
    /// targets, which is what this form is for.
    ///
    /// # Panics
    /// If slices are too few, too many or of different lengths.
    pub fn convert_columns(&self, rows: &[&[u64]], out: &mut [&mut [u64]]) {
        assert!(rows.len() == self.from.len() && out.len() == self.to.len(), "one slice for each prime");
        let Some(len) = rows.first().map(|r| r.len()) else { return };
        if self.from.len() == 1 && !self.scaled {
            let q = self.from.limb(0).q();
            out.iter_mut().enumerate().for_each(|(j, x)| self.to.limb(j).reduce_centered(x, rows[0], q));
            return;
        }
        // A copy: rows are a power of two apart and would compete for the same cache lines.
        let mut scratch = Buffer::dirty(len * (rows.len() + 1));
        let (y, quotient) = scratch.split_at_mut(len * rows.len());
        for (i, (y, row)) in y.chunks_exact_mut(len).zip(rows).enumerate() {
            y.copy_from_slice(row);
            self.from.limb(i).mul_scalar(y, &self.hat_inv[i]);
        }
        let refs: Vec<&[u64]> = y.chunks_exact(len).collect();
        crate::kernel::round_quotients(quotient, &refs, &self.reciprocal);
        let refs: Vec<&[u64]> = scratch.chunks_exact(len).collect();
        for (j, x) in out.iter_mut().enumerate() {
            self.to.limb(j).combine(x, &refs, &self.weights[j], self.bound_bits);
        }
    }

    /// How many columns [`BasisConverter::convert_columns`] takes best at a time.
    pub fn columns(&self) -> usize {
        const NEAR_WORDS: usize = 5120;
        let most = NEAR_WORDS / (self.from.len() + 1);
        (1usize << most.max(64).ilog2()).min(self.from.degree())
    }

    /// The whole centred conversion of coefficient forms, limb after limb, a block of columns at a
    /// time.
    ///
    /// # Panics
    /// If there is not one polynomial over each basis.
    pub fn convert(&self, rows: &[u64], out: &mut [u64]) {
        let n = self.from.degree();
        assert!(rows.len() == n * self.from.len() && out.len() == n * self.to.len(), "residues of another basis");
        count::add(What::Conversions, 1);
        let width = self.columns();
        let mut blocks = column_blocks(out, n, width);
        crate::threads::for_each_mut(&mut blocks, |b, out| {
            let at = b * width..(b + 1) * width;
            let rows: Vec<&[u64]> = rows.chunks_exact(n).map(|row| &row[at.clone()]).collect();
            self.convert_columns(&rows, out);
        });
    }
}

/// Limbs of `n` words each, cut into blocks of `width` columns.
///
/// # Panics
/// If `width` is zero.
pub fn column_blocks(limbs: &mut [u64], n: usize, width: usize) -> Vec<Vec<&mut [u64]>> {
    let mut blocks: Vec<Vec<&mut [u64]>> = (0..n / width).map(|_| Vec::with_capacity(limbs.len() / n)).collect();
    for limb in limbs.chunks_exact_mut(n) {
        for (block, columns) in blocks.iter_mut().zip(limb.chunks_exact_mut(width)) {
            block.push(columns);
        }
    }
    blocks
}

/// The state between the two halves of a conversion; see [`BasisConverter::prepare`].
pub struct Prepared<'a> {
    rows: &'a [u64],
    quotient: Option<Buffer>,
    centered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;
    use num_bigint::{BigInt, BigUint};
    use sudare_testkit::random::word_at;

    #[test]
    fn folded_factors_agree_with_big_integers() {
        let n = 512;
        for count in [1usize, 3] {
            let from_primes = ntt_primes(n, 45, count, &[]).unwrap();
            let to_primes = ntt_primes(n, 40, 2, &from_primes).unwrap();
            let (from, to) = (RnsBasis::new(n, &from_primes).unwrap(), RnsBasis::new(n, &to_primes).unwrap());
            let product = from.product();
            let (pre, post) = (0x1_2345_6789u64, [77u64, 0xFFFF_1234]);
            let values: Vec<BigUint> = (0..n as u64).map(|i| BigUint::from(word_at(1, i)).pow(3) % &product).collect();
            let mut rows: Vec<u64> =
                from_primes.iter().flat_map(|q| values.iter().map(move |x| (x % q).try_into().unwrap())).collect();
            let residues: Vec<u64> = from_primes.iter().map(|q| pre % q).collect();
            let converter = BasisConverter::scaled(&from, &to, &residues, &post);
            let mut whole = vec![0; 2 * n];
            converter.convert(&rows, &mut whole);
            let prepared = converter.prepare(&mut rows, true);
            let mut out = vec![0; n];
            for (j, p) in to_primes.iter().enumerate() {
                converter.finish(&prepared, j, &mut out);
                assert_eq!(out, whole[j * n..(j + 1) * n]);
                for (x, got) in values.iter().zip(&out) {
                    let scaled = x * pre % &product;
                    let centered = if scaled > &product / 2u32 {
                        BigInt::from(scaled) - BigInt::from(product.clone())
                    } else {
                        scaled.into()
                    };
                    let p = BigInt::from(*p);
                    let wanted: u64 = (((centered * post[j]) % &p + &p) % &p).try_into().unwrap();
                    assert_eq!(*got, wanted);
                }
            }
        }
    }

    #[test]
    fn both_forms_agree_with_big_integers() {
        let n = 512;
        let sizes = [(1usize, 40u32), (2, 45), (3, 60), (4, 30)];
        for (count, bits) in sizes {
            let from_primes = ntt_primes(n, bits, count, &[]).unwrap();
            let mut to_primes = ntt_primes(n, 36, 2, &from_primes).unwrap();
            to_primes.extend(ntt_primes(n, 59, 2, &from_primes).unwrap());
            let (from, to) = (RnsBasis::new(n, &from_primes).unwrap(), RnsBasis::new(n, &to_primes).unwrap());
            let product = from.product();
            let values: Vec<BigUint> = (0..n)
                .map(|i| match i {
                    0 => BigUint::ZERO,
                    1 => &product - 1u32,
                    2 => &product / 4u32,
                    3 => &product / 4u32 * 3u32,
                    _ => BigUint::from(word_at(1, i as u64)).pow(3) % &product,
                })
                .collect();
            let residues: Vec<u64> =
                from_primes.iter().flat_map(|q| values.iter().map(move |x| (x % q).try_into().unwrap())).collect();
            let converter = BasisConverter::new(&from, &to);
            let mut out = vec![0; n];
            let mut many = vec![vec![0; n]; to_primes.len()];
            let mut whole = vec![0; n * to.len()];
            converter.convert(&residues, &mut whole);
            let (mut rows, mut more_rows) = (residues.clone(), residues);
            let exact = converter.prepare(&mut rows, true);
            let approximate = converter.prepare(&mut more_rows, false);
            let targets: Vec<usize> = (0..to_primes.len()).collect();
            let mut outs: Vec<&mut [u64]> = many.iter_mut().map(Vec::as_mut_slice).collect();
            converter.finish_many(&exact, &targets, &mut outs);
            for (j, p) in to_primes.iter().enumerate() {
                let modulo = |x: BigInt| -> u64 {
                    let p = BigInt::from(*p);
                    (((x % &p) + &p) % &p).try_into().unwrap()
                };
                converter.finish(&exact, j, &mut out);
                assert_eq!(out, many[j]);
                assert_eq!(out, whole[j * n..(j + 1) * n]);
                for (x, got) in values.iter().zip(&out) {
                    let centered = if *x > &product / 2u32 {
                        BigInt::from(x.clone()) - BigInt::from(product.clone())
                    } else {
                        x.clone().into()
                    };
                    assert_eq!(*got, modulo(centered));
                }
                converter.finish(&approximate, j, &mut out);
                for (x, got) in values.iter().zip(&out) {
                    assert!((0..count as u64).any(|v| modulo(BigInt::from(x + &product * v)) == *got));
                }
            }
        }
    }
}
