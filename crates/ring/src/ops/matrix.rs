//! Products of a sparse matrix of integers with a vector of polynomials.

use super::{Crossing, begins_with};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::MAX_TERMS;
use crate::poly::{Eval, Poly};
use crate::threads;

/// Words of each polynomial that are worked on together: with some hundred polynomials what a second-level cache holds.
const TILE: usize = 256;
/// Rows of a matrix that are multiplied together, over the columns that any of them has. More where the next ones have the same columns:
/// operands are packed once for all rows of a group.
const ROWS: usize = 16;
/// So few rows take less time as sums of multiples, from where operands are, than to copy and to pack operands for them.
const FEW_ROWS: usize = 2;

/// A sparse matrix of integers, row by row.
#[derive(Clone, Debug, Default)]
pub struct IntegerMatrix {
    columns: usize,
    rows: usize,
    groups: Vec<Group>,
}

/// Some rows as a dense matrix.
#[derive(Clone, Debug)]
struct Group {
    /// How many.
    rows: usize,
    /// Columns that they have, ascending.
    columns: Vec<u32>,
    /// Row by row.
    values: Vec<i64>,
}

impl IntegerMatrix {
    /// Of rows of columns, each at most once in a row, and values.
    ///
    /// # Panics
    /// For a column that there is not.
    pub fn new(columns: usize, rows: &[Vec<(u32, i64)>]) -> Self {
        let group = |rows: &[Vec<(u32, i64)>]| {
            let mut used: Vec<u32> = rows.iter().flatten().map(|(c, _)| *c).collect();
            used.sort_unstable();
            used.dedup();
            assert!(used.last().is_none_or(|c| (*c as usize) < columns), "a column that there is not");
            let mut values = vec![0; rows.len() * used.len()];
            for (row, values) in rows.iter().zip(values.chunks_mut(used.len().max(1))) {
                row.iter().for_each(|(c, v)| values[used.partition_point(|u| u < c)] = *v);
            }
            Group { rows: rows.len(), columns: used, values }
        };
        let mut groups: Vec<Group> = Vec::new();
        for next in rows.chunks(ROWS).map(group) {
            match groups.last_mut().filter(|last| last.columns == next.columns) {
                Some(last) => {
                    last.rows += next.rows;
                    last.values.extend(next.values);
                }
                None => groups.push(next),
            }
        }
        Self { columns, rows: rows.len(), groups }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Products of a residue that a product with a vector takes, of each of its words.
    pub fn products(&self) -> usize {
        self.groups.iter().map(|g| g.values.len()).sum()
    }

    /// Whether so many rows of so many columns are summed from where operands are, and these are not copied for a product of matrices.
    pub fn sums_in_place(rows: usize, columns: usize) -> bool {
        rows <= FEW_ROWS && (1..=MAX_TERMS).contains(&columns)
    }

    /// Σ_j m_ij·v_j for each row i, over the primes of `basis`, which those of the polynomials begin with.
    ///
    /// # Panics
    /// For another number of polynomials than columns, or polynomials over other primes.
    pub fn apply(&self, basis: &RnsBasis, values: &[&Poly<Eval>]) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        assert!(values.len() == self.columns, "as many polynomials as columns");
        assert!(values.iter().all(|v| begins_with(v.basis(), basis)), "polynomials of different bases");
        let n = basis.degree();
        let tile = TILE.min(n);
        let mut out: Vec<Poly<Eval>> = (0..self.rows).map(|_| Poly::dirty(basis)).collect();
        for l in 0..basis.len() {
            let limb = basis.limb(l);
            let modulus = limb.modulus();
            let matrices: Vec<Vec<u64>> = threads::map(self.groups.len(), |g| {
                self.groups[g].values.iter().map(|v| modulus.reduce_i64(*v)).collect()
            });
            let made = threads::map(n / tile, |t| {
                let words = |j: usize| &values[j].limb(l)[t * tile..][..tile];
                let (mut made, mut some) = (Buffer::dirty(self.rows * tile), Buffer::dirty(self.columns * tile));
                let mut rest: &mut [u64] = &mut made;
                for (group, matrix) in self.groups.iter().zip(&matrices) {
                    let (rows, terms) = (group.rows, group.columns.len());
                    let (to, after) = rest.split_at_mut(rows * tile);
                    let operands = group.columns.iter().map(|j| words(*j as usize));
                    if Self::sums_in_place(rows, terms) {
                        let operands: Vec<&[u64]> = operands.collect();
                        let sums = to.chunks_exact_mut(tile).zip(matrix.chunks_exact(terms));
                        sums.for_each(|(to, row)| limb.combine(to, &operands, row, modulus.bits()));
                    } else {
                        some.chunks_exact_mut(tile).zip(operands).for_each(|(to, x)| to.copy_from_slice(x));
                        limb.gemm(to, tile, matrix, terms, &some, tile, (rows, terms, tile), false);
                    }
                    rest = after;
                }
                made
            });
            for (i, out) in out.iter_mut().enumerate() {
                let limb = &mut out.words_mut()[l * n..][..n];
                limb.chunks_exact_mut(tile)
                    .zip(&made)
                    .for_each(|(to, made)| to.copy_from_slice(&made[i * tile..][..tile]));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;

    fn words(p: &Poly<Eval>) -> Vec<&[u64]> {
        (0..p.basis().len()).map(|l| p.limb(l)).collect()
    }

    /// Rows with many columns, few, and none, against products one by one; alone and with threads.
    #[test]
    fn products_are_sums_of_multiples() {
        let basis = RnsBasis::new(1 << 10, &ntt_primes(1 << 10, 45, 2, &[]).unwrap()).unwrap();
        let columns = 21;
        let values: Vec<Poly<Eval>> = (0..columns)
            .map(|j| {
                let numbers: Vec<i64> = (0..1 << 10).map(|i| (i * 7 + j * 31) % 1000 - 400).collect();
                Poly::<crate::Coeff>::from_signed(&basis, &numbers).into_eval()
            })
            .collect();
        let rows: Vec<Vec<(u32, i64)>> = (0..37)
            .map(|i| {
                // Two groups with the same columns, and one with fewer.
                let kept = |j: &u32| i != 20 && (i < 5 || (*j + i).is_multiple_of(4)) && (i < 32 || *j < 10);
                (0..columns as u32).filter(kept).map(|j| (j, i64::from(i * j) - (1 << 33))).collect()
            })
            .collect();
        let matrix = IntegerMatrix::new(columns as usize, &rows);
        assert!((matrix.rows(), matrix.columns()) == (37, 21) && matrix.products() <= 37 * 21);
        let operands: Vec<&Poly<Eval>> = values.iter().collect();
        let found = matrix.apply(&basis, &operands);
        // Few rows go another way.
        for some in [19..20, 20..21, 19..21, 34..36] {
            let few = IntegerMatrix::new(columns as usize, &rows[some.clone()]).apply(&basis, &operands);
            assert!(few.iter().zip(&found[some]).all(|(a, b)| words(a) == words(b)));
        }
        for (row, found) in rows.iter().zip(&found) {
            let mut wanted = Poly::<Eval>::zero(&basis);
            row.iter()
                .for_each(|(j, v)| wanted.mul_scalars_add(operands[*j as usize], &Poly::<Eval>::scalar(&basis, *v)));
            assert_eq!(words(found), words(&wanted));
        }
        let many = crate::Threads::new(2).run(|| matrix.apply(&basis, &operands));
        assert!(many.iter().zip(&found).all(|(a, b)| words(a) == words(b)));
    }
}
