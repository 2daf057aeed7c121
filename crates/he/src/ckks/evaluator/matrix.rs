//! Products of a real matrix with a vector of ciphertexts, slot by slot: products with constants, which take no key.

use super::{Evaluator, dot_spread, parts_of};
use crate::ckks::{Ciphertext, Spread, State};
use crate::error::{HeError, parameters};
use sudare_ring::ops::IntegerMatrix;
use sudare_rlwe::RlweError;

/// A sparse real matrix at a scale.
#[derive(Clone, Debug)]
pub struct PlainMatrix {
    integers: IntegerMatrix,
    scale: f64,
    /// max_i Σ_j |m_ij|, and the most entries of a row.
    row_sum: f64,
    entries: usize,
}

impl PlainMatrix {
    /// A matrix by its rows: the columns that each row has, none of them twice, with their values, which are rounded at `scale`.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a column that there is not or that comes twice in a row, or a scale that is not finite and above zero; [`HeError::NotFinite`];
    /// [`HeError::TooLarge`] where |value|·scale reaches 2^62.
    pub fn new(columns: usize, rows: &[Vec<(u32, f64)>], scale: f64) -> Result<Self, HeError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(parameters("the scale of a matrix has to be finite and above zero"));
        }
        if rows.iter().flatten().any(|(c, _)| *c as usize >= columns) {
            return Err(parameters("the matrix has an entry beyond its columns; number columns from 0"));
        }
        let mut last = vec![None; columns];
        for (i, (c, _)) in rows.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |entry| (i, entry))) {
            if last[*c as usize].replace(i) == Some(i) {
                return Err(parameters("the matrix has two entries at one place; add them first"));
            }
        }
        if let Some(index) = rows.iter().flatten().position(|(_, v)| !v.is_finite()) {
            return Err(HeError::NotFinite { index });
        }
        let largest = rows.iter().flatten().fold(0.0, |m: f64, (_, v)| m.max(v.abs()));
        if largest * scale >= 62f64.exp2() {
            let (value, scale) = (largest.log2(), scale.log2());
            return Err(HeError::TooLarge { operation: "encoding", value, scale, modulus: 62.0, level: 0 });
        }
        let round =
            |row: &Vec<(u32, f64)>| row.iter().map(|(c, v)| (*c, (v * scale).round_ties_even() as i64)).collect();
        let integers: Vec<Vec<(u32, i64)>> = rows.iter().map(round).collect();
        let sums = rows.iter().map(|row| row.iter().map(|(_, v)| v.abs()).sum::<f64>());
        Ok(Self {
            integers: IntegerMatrix::new(columns, &integers),
            scale,
            row_sum: sums.fold(0.0, f64::max),
            entries: rows.iter().map(Vec::len).fold(0, usize::max),
        })
    }

    /// Products with a constant that a product with a vector takes.
    pub fn products(&self) -> usize {
        self.integers.products()
    }
}

impl Evaluator {
    /// [`Evaluator::dot`] of each list of some with one, whose ciphertexts are read once for all: bit by bit the same, at the lowest level of
    /// any.
    ///
    /// # Errors
    /// As there.
    pub fn dots(&self, lists: &[&[&Ciphertext]], b: &[&Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        let right = parts_of(b);
        let left: Vec<Vec<_>> = lists.iter().map(|a| parts_of(a)).collect();
        let levels = left.iter().map(|a| self.inner.check_dot(a, &right)).collect::<Result<Vec<_>, _>>()?;
        let Some(level) = levels.into_iter().min() else { return Ok(Vec::new()) };
        let state = |a: &&[&Ciphertext]| {
            let state = State { scale: a[0].scale * b[0].scale, bound: 0.0, noise: 0.0 };
            Ok((self.dot_state(state, a, b, level)?, dot_spread(Spread::even(0.0, 0.0), a, b)))
        };
        let states = lists.iter().map(state).collect::<Result<Vec<_>, HeError>>()?;
        let left: Vec<&[_]> = left.iter().map(Vec::as_slice).collect();
        let made = self.inner.dots(&left, &right)?.into_iter().zip(states);
        Ok(made.map(|(c, (state, spread))| Ciphertext::new(c, state).with_spread(spread)).collect())
    }

    /// Σ_j m_ij·v_j for each row i; the scales multiply, and a [`Evaluator::rescale`] is due.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`, `RlweError::Operands` for another number of ciphertexts than
    /// columns; [`HeError::ScaleMismatch`] for ciphertexts of several scales; [`HeError::TooLarge`].
    pub fn matrix_products(&self, matrix: &PlainMatrix, values: &[&Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        let operation = "a product with a matrix";
        let Some(first) = values.first() else {
            let (left, right) = (matrix.integers.columns(), 0);
            return Err(RlweError::Operands { operation, left, right }.into());
        };
        let (mut all, mut level) = (first.state(), first.level());
        for value in values {
            Self::scale_error(operation, first.state(), value.state())?;
            (all.bound, all.noise) = (all.bound.max(value.bound), all.noise.max(value.noise));
            level = level.min(value.level());
        }
        let rounding = 0.5 * matrix.entries as f64 * all.bound * all.scale;
        let state = State {
            scale: all.scale * matrix.scale,
            bound: all.bound * matrix.row_sum,
            noise: all.noise * matrix.row_sum * matrix.scale + rounding,
        };
        state.check_fits(operation, &self.params, level)?;
        let inner: Vec<_> = values.iter().map(|v| v.inner()).collect();
        let made = self.inner.integer_products(&matrix.integers, &inner)?;
        Ok(made.into_iter().map(|c| Ciphertext::new(c, state)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::{ErrorKind, Kinded};

    #[test]
    fn scales_that_are_refused() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = PlainMatrix::new(1, &[vec![(0, 0.0)]], scale).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Parameters, "{scale}");
        }
    }

    #[test]
    fn places_that_are_refused() {
        for rows in [vec![vec![(0, 1.0), (1, 1.0)]], vec![vec![], vec![(0, 1.0), (0, 2.0)]]] {
            let refused = PlainMatrix::new(1, &rows, 1024.0).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Parameters, "{rows:?}");
        }
        assert!(PlainMatrix::new(1, &[vec![(0, 1.0)], vec![(0, 2.0)]], 1024.0).is_ok());
    }
}
