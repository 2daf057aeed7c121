//! Products of block rows with block columns of encrypted matrices over a subring (Cheon–Kang–Lee, ePrint 2025/1957).
//!
//! With Y = X^d the ring is R'\[X\]/(X^d − Y), R' = Z\[Y\]/(Y^(N/d) + 1). Row-encoded ciphertexts (b_i, a_i) stack to
//! M = B + A·S; those of the transpose, M column-encoded, to M = Bᵀ + Sᵀ·Aᵀ. For M1 column-encoded and M2 row-encoded
//!
//! M1·M2 = B1·B2 + (B1·A2)·S + Sᵀ·(A1·B2) + Sᵀ·(A1·A2)·S:
//!
//! four plain products ([`AtPoints::products`]), Sᵀ·X of two known X, and for two parts a relinearisation of each row.
//!
//! Sᵀ·X is a transposition of the ciphertext rows (0, x_i). With τ_t: X → X^(1 + c·t), c = 2N/d, which fix Y, and ω = X^c of
//! order d, row j of the transpose of rows m_i is X^−j·(1/d)·Σ_t ω^(−t·j)·τ_t(u_t), u_t = Σ_i ω^(t'·i)·X^i·m_i with
//! τ_t' = τ_t^−1: a Fourier transform of rows, one automorphism of each, and a transform back. All monomials are multiplied in
//! coefficient form, by shifting. The factor 1/d goes modulo q to the input, which is free of noise, and the division by P is
//! left to the end.

use super::Cpu;
use crate::ciphertext::Ciphertext;
use crate::counters::Counters;
use crate::error::RlweError;
use crate::keys::{GaloisKey, KeySwitchKey};
use crate::switching::LevelTables;
use std::sync::Arc;
use sudare_ring::ops::{AtPoints, Pair, PointProduct, PointProducts, RnsGadget, fourier};
use sudare_ring::order::bit_reverse;
use sudare_ring::{Coeff, Eval, Poly, RingError, Shoup, threads};

const OPERATION: &str = "block product";

/// Products of block rows with block columns. Operands are ordered by group, block row (block column on the right) and
/// term; results by group, block row, block column and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// d: rows and columns of a block, a power of two from 8 to N.
    pub side: usize,
    /// Pairs of matrices, none of which meets another.
    pub groups: usize,
    /// Block rows of a left matrix.
    pub block_rows: usize,
    /// Block columns of a right one.
    pub block_columns: usize,
    /// Ciphertexts of a block.
    pub terms: usize,
    /// Rows that a result has: those that fill up its last block row are not computed.
    pub rows: usize,
    /// Whether results are relinearised, and rescaled where there is a level: they have three parts otherwise.
    pub relinearize: bool,
}

impl Blocks {
    /// Ciphertexts of the left operand, of the right one, and of the result.
    pub fn counts(&self) -> [usize; 3] {
        let Self { groups, block_rows, block_columns, terms, rows, .. } = *self;
        [groups * block_rows * terms, groups * block_columns * terms, groups * block_columns * rows]
    }

    /// Rows of the result in a block row.
    fn rows_of(&self, block_row: usize) -> usize {
        self.side.min(self.rows - block_row * self.side)
    }

    /// Products of blocks.
    pub fn products(&self) -> usize {
        self.groups * self.block_rows * self.block_columns
    }

    /// Galois elements whose keys the transposition of blocks of `side` rows takes: 1 + 2N·t/d, 0 < t < d.
    pub fn elements(degree: usize, side: usize) -> impl Iterator<Item = u64> {
        (1..side as u64).map(move |t| 1 + t * (2 * degree / side) as u64)
    }

    /// What all of it does.
    pub fn counters(&self) -> Counters {
        let (switches, [_, _, results]) = (2 * (self.side - 1) * self.products(), self.counts());
        let relin = if self.relinearize { results as u64 } else { 0 };
        Counters { rot: switches as u64, relin, key_switches: switches as u64 + relin, ..Counters::default() }
    }

    /// Refuses another number of operands, and blocks that a ring of degree N has not.
    ///
    /// # Errors
    /// [`RlweError::Operands`], [`RlweError::Parameters`].
    pub(crate) fn check(&self, degree: usize, found: [usize; 2]) -> Result<(), RlweError> {
        let Self { side, block_rows, rows, .. } = *self;
        let reason = format!(
            "{block_rows} blocks of {side} rows for {rows} rows of a result: the side is a power of two from 8 to \
             {degree}, and there are as many blocks as hold the rows"
        );
        if !side.is_power_of_two() || !(8..=degree).contains(&side) || rows.div_ceil(side) != block_rows {
            return Err(RlweError::Parameters { reason });
        }
        let [left, right, _] = self.counts();
        match found == [left, right] && left * right > 0 {
            true => Ok(()),
            false => Err(RlweError::Operands { operation: OPERATION, left: found[0], right: found[1] }),
        }
    }
}

impl Cpu {
    /// The rows of products of block rows with block columns.
    pub(super) fn products_of_blocks(
        &self,
        left: &[&Ciphertext],
        right: &[&Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<Ciphertext>, RlweError> {
        let worker = Worker::new(self, left, right, blocks)?;
        let mut out = Vec::with_capacity(blocks.counts()[2]);
        for group in 0..blocks.groups {
            let operand = |all: &[&Ciphertext], count: usize| -> Vec<AtPoints> {
                let here = &all[group * count * blocks.terms..][..count * blocks.terms];
                here.chunks_exact(blocks.terms).map(|block| worker.at_points(block)).collect()
            };
            let (rows, columns) = (operand(left, blocks.block_rows), operand(right, blocks.block_columns));
            for (i, row) in rows.iter().enumerate() {
                for column in &columns {
                    out.extend(worker.multiply(row, column, blocks.rows_of(i))?);
                }
            }
        }
        Ok(out)
    }
}

/// What the products of all blocks share.
struct Worker<'a> {
    cpu: &'a Cpu,
    like: &'a Ciphertext,
    level: usize,
    tables: &'a LevelTables,
    side: usize,
    relin: Option<Arc<KeySwitchKey>>,
    /// 1/d modulo each prime.
    side_inverse: Vec<Shoup>,
}

impl<'a> Worker<'a> {
    fn new(cpu: &'a Cpu, left: &[&'a Ciphertext], right: &[&Ciphertext], blocks: &Blocks) -> Result<Self, RlweError> {
        let (params, side) = (cpu.context.params(), blocks.side);
        let none = RlweError::Operands { operation: OPERATION, left: 0, right: 0 };
        let level = left.iter().chain(right).map(|c| c.level()).min();
        let (Some(level), Some(like)) = (level, left.first()) else { return Err(none) };
        let tables = params.tables(level);
        tables.by_p()?;
        let relin = blocks.relinearize.then(|| cpu.context.keys().relin()).transpose()?;
        let side_inverse = params.q_at(level).moduli().map(|q| Ok(q.shoup(q.inverse(side as u64)?)));
        let side_inverse = side_inverse.collect::<Result<_, RingError>>()?;
        Ok(Self { cpu, like, level, tables, side, relin, side_inverse })
    }

    /// Brings a block's ciphertexts to the points of R'.
    fn at_points(&self, block: &[&Ciphertext]) -> AtPoints {
        let pairs: Vec<_> = block.iter().map(|c| c.both()).collect();
        AtPoints::new(self.cpu.context.params().q_at(self.level), self.side, &pairs)
    }

    /// Row `i` of a transposed product as the transposition takes it: times X^i / d.
    fn twisted(&self, products: &PointProducts, which: PointProduct, i: usize) -> Poly<Coeff> {
        let mut row = products.row(which, i);
        row.mul_scalars(&self.side_inverse);
        row.mul_monomial(i as isize);
        row
    }

    /// The first `rows` rows of the product of a block row with a block column.
    fn multiply(&self, left: &AtPoints, right: &AtPoints, rows: usize) -> Result<Vec<Ciphertext>, RlweError> {
        let products = left.products(right);
        let known = |which| threads::map(self.side, |i| self.twisted(&products, which, i));
        let plain = |which| threads::map(rows, |i| products.row(which, i));
        let (x, z) = (known(PointProduct::BATransposed), known(PointProduct::AATransposed));
        let (b, a) = (plain(PointProduct::BB), plain(PointProduct::BA));
        drop(products);
        let [c0, c1, c2] = self.transposed(x, z)?;
        let parts: Vec<_> = c0.into_iter().zip(c1).zip(c2).zip(b.into_iter().zip(a)).collect();
        let done = threads::map_into(parts, |_, (((c0, c1), c2), plain)| self.finish([c0, c1, c2], plain));
        done.into_iter().collect()
    }

    /// One row of the result from (c_0, c_1, c_2) over Q·P, P times too large, and the parts that no key switching was
    /// needed for.
    fn finish(
        &self,
        [c0, c1, c2]: [Poly<Coeff>; 3],
        plain: (Poly<Coeff>, Poly<Coeff>),
    ) -> Result<Ciphertext, RlweError> {
        let (mod_down, gadget) = (self.tables.by_p()?, &self.tables.gadget);
        let made = |parts: Vec<Poly<Eval>>, level| Ok(self.like.with_parts(parts, level));
        let Some(key) = &self.relin else {
            let [mut c0, mut c1, c2] = mod_down.apply([c0, c1, c2]);
            c0.add_assign(&plain.0);
            c1.add_assign(&plain.1);
            return made([c0, c1, c2].map(Poly::into_eval).into(), self.level);
        };
        let [square] = mod_down.apply([c2]);
        let [k0, k1] = gadget.switch(&square, None, key.pairs()).map(Poly::into_coeff);
        let sum = |mut c: Poly<Coeff>, k: &Poly<Coeff>, plain: &Poly<Coeff>| {
            c.add_assign(k);
            gadget.add_scaled(&mut c, plain);
            c
        };
        let sums = [sum(c0, &k0, &plain.0), sum(c1, &k1, &plain.1)];
        match &self.tables.mod_down_rescale {
            Some(rescaling) => made(rescaling.apply(sums).map(Poly::into_eval).into(), self.level - 1),
            None => made(mod_down.apply(sums).map(Poly::into_eval).into(), self.level),
        }
    }

    /// Over Q_l·P, P times P_0, P_1 + Q_0 and Q_1 where P_0 + P_1·S ≈ d·Sᵀ·X and Q_0 + Q_1·S ≈ d·Sᵀ·Z, from the rows X^i·(row
    /// i of Xᵀ) and X^i·(row i of Zᵀ) over Q_l, d of each.
    fn transposed(&self, mut x: Vec<Poly<Coeff>>, mut z: Vec<Poly<Coeff>>) -> Result<[Vec<Poly<Coeff>>; 3], RlweError> {
        let (cpu, side, gadget) = (self.cpu, self.side, &self.tables.gadget);
        let (n, order) = (cpu.context.params().degree(), side.trailing_zeros());
        let c = 2 * n / side;
        fourier(&mut x, false);
        fourier(&mut z, false);
        // The row at `p` is u_t with t' = bit-reversed p; its image goes to bit-reversed t.
        let element = |p: usize| inverse((1 + c * bit_reverse(p, order)) as u64, n);
        cpu.context.keys().prefetch(&(0..side).map(element).collect::<Vec<_>>());
        let image = |p: usize| -> Result<[Poly<Coeff>; 3], RlweError> {
            let keys = cpu.galois_keys(&[element(p)])?;
            let Some(key) = keys.into_iter().next().flatten() else {
                let mut out = [(); 3].map(|()| Poly::zero(gadget.qp()));
                gadget.add_scaled(&mut out[1], &x[p]);
                gadget.add_scaled(&mut out[2], &z[p]);
                return Ok(out);
            };
            let ([p0, p1], [mut q0, q1]) = (switched(gadget, &x[p], &key), switched(gadget, &z[p], &key));
            q0.add_assign(&p1);
            Ok([p0, q0, q1].map(Poly::into_coeff))
        };
        let images = threads::map(side, image);
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
}

/// A known polynomial times τ(s), both parts under τ of a key's pair, P times too large.
fn switched(gadget: &RnsGadget, c: &Poly<Coeff>, key: &GaloisKey) -> Pair {
    gadget.switch(c, None, key.key().pairs()).map(|part| part.permuted(key.permutation()))
}

/// g^−1 modulo the power of two 2n, by Newton's iteration.
fn inverse(g: u64, n: usize) -> u64 {
    let mut x = g;
    for _ in 0..6 {
        x = x.wrapping_mul(2u64.wrapping_sub(g.wrapping_mul(x)));
    }
    x & (2 * n as u64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_of_elements() {
        for side in [8, 64, 128] {
            assert!(Blocks::elements(512, side).all(|g| g * inverse(g, 512) % 1024 == 1));
        }
    }

    #[test]
    fn blocks_that_a_ring_has_not_are_refused() {
        let good = Blocks { side: 8, groups: 2, block_rows: 2, block_columns: 3, terms: 4, rows: 9, relinearize: true };
        assert_eq!(good.counts(), [16, 24, 54]);
        assert_eq!((good.rows_of(0), good.rows_of(1)), (8, 1));
        good.check(64, [16, 24]).unwrap();
        let refused = |blocks: Blocks| blocks.check(64, [16, 24]);
        assert!(matches!(refused(Blocks { side: 12, ..good }), Err(RlweError::Parameters { .. })));
        assert!(matches!(refused(Blocks { side: 128, ..good }), Err(RlweError::Parameters { .. })));
        assert!(matches!(refused(Blocks { rows: 8, ..good }), Err(RlweError::Parameters { .. })));
        assert!(matches!(refused(Blocks { terms: 3, ..good }), Err(RlweError::Operands { left: 16, right: 24, .. })));
        assert!(matches!(Blocks { terms: 0, ..good }.check(64, [0, 0]), Err(RlweError::Operands { .. })));
    }
}
