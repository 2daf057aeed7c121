//! Products of a plain matrix with an encrypted vector by diagonals (Halevi–Shoup, ePrint
//! 2014/106), in baby and giant steps with double hoisting (ePrint 2018/244, 2020/1203).
//!
//! An m×n matrix is padded to R×C, powers of two. With R < C there are R diagonals of C entries,
//! `d_t[i] = M[i mod R][(i + t) mod C]`, and the sum of every R-th slot finishes the rows (the hybrid
//! of Juvekar et al., ePrint 2018/073); otherwise there are C diagonals of R entries.

use super::linear_map::LinearMap;
use super::trace::TraceFunction;
use super::unrolled::TracePlan;
use crate::ckks::{CiphertextOf, EncodeAt, Encoder, Evaluator, Params};
use crate::error::{HeError, parameters};
use std::collections::{BTreeMap, BTreeSet};
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::{Backend, RlweError};

/// A plain m×n matrix, ready to multiply encrypted vectors of n values at one level; m and n are at most N/2.
///
/// ```
/// use sudare_he::circuits::matrix_vector::MatrixVector;
/// use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, ParamsLiteral};
/// use sudare_rlwe::keys::{KeyGenerator, SecretKey};
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
/// let (encoder, level) = (Encoder::new(&params), params.max_level());
/// let at = EncodeAt { level, scale: params.prime_at(level) as f64, max_abs: 6.0 };
/// let matrix = MatrixVector::new(&encoder, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3, at)?;
///
/// let secret = SecretKey::generate(&params)?;
/// let keys = KeyGenerator::new(&secret)?.eval_keys(None, &matrix.keys())?;
/// let x = encoder.encode(&matrix.layout(&params, &[1.0, 0.0, -1.0])?, 1.0)?;
/// let x = Encryptor::with_secret_key(&secret)?.encrypt(&x)?;
/// let y = Evaluator::new(&params, keys)?.matrix_vector(&matrix, &x)?;
///
/// let y = encoder.decode(&Decryptor::new(&secret).decrypt(&y)?)?;
/// assert!((y[0] + 2.0).abs() < 1e-6 && (y[1] + 2.0).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MatrixVector<R = PeriodicPoly> {
    rows: usize,
    columns: usize,
    /// Columns after padding: the period at which vectors are repeated.
    period: usize,
    map: LinearMap<R>,
    fold: TracePlan,
}

impl MatrixVector {
    /// Prepares an m×n matrix, row by row in `entries`. `at.max_abs` bounds its entries; the
    /// scale of the prime at `at.level` keeps a vector's scale as it is.
    ///
    /// # Errors
    /// `RlweError::Parameters` for an empty matrix, one of another number of entries, or one with
    /// a side over N/2; as [`LinearMap::new`].
    pub fn new(encoder: &Encoder, entries: &[f64], rows: usize, columns: usize, at: EncodeAt) -> Result<Self, HeError> {
        let params = encoder.params();
        let slots = params.slots();
        if rows == 0 || columns == 0 || rows.max(columns) > slots || rows.checked_mul(columns) != Some(entries.len()) {
            return Err(parameters(format!(
                "a {rows}×{columns} matrix with {} entries is not possible; take sides from 1 to {slots}, and rows \
                 times columns entries",
                entries.len()
            )));
        }
        let (r, c) = (rows.next_power_of_two(), columns.next_power_of_two());
        let period = r.max(c);
        let entry = |i: usize, j: usize| if i < rows && j < columns { entries[i * columns + j] } else { 0.0 };
        let mut diagonals = BTreeMap::new();
        for t in 0..r.min(c) {
            // With more rows than columns, the vector repeats every C slots, and so do its rotations.
            let value = |i: usize| entry(i % r, (i + t) % c);
            let short: Vec<f64> = (0..period).map(value).collect();
            if short.iter().any(|x| *x != 0.0) {
                diagonals.insert(t as i64, short.into_iter().cycle().take(slots).collect::<Vec<f64>>());
            }
        }
        if diagonals.is_empty() {
            diagonals.insert(0, vec![0.0; slots]);
        }
        let babies = baby_steps(diagonals.len().max(1));
        let map = LinearMap::new(encoder, &diagonals, 1, babies, at)?;
        let fold = TraceFunction::strided_sums(params, (c / r).max(1), r as i64)?.doubling();
        Ok(Self { rows, columns, period: c, map, fold })
    }
}

impl<R> MatrixVector<R> {
    /// (m, n).
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// A vector of n values as [`Evaluator::matrix_vector`] expects it: padded and repeated to
    /// fill all slots.
    ///
    /// # Errors
    /// `RlweError::Operands` for another number of values.
    pub fn layout(&self, params: &Params, vector: &[f64]) -> Result<Vec<f64>, HeError> {
        if vector.len() != self.columns {
            let (left, right) = (self.columns, vector.len());
            return Err(RlweError::Operands { operation: "matrix–vector product", left, right }.into());
        }
        let padded = vector.iter().copied().chain(std::iter::repeat(0.0)).take(self.period);
        Ok(padded.collect::<Vec<_>>().into_iter().cycle().take(params.slots()).collect())
    }

    /// Galois elements whose keys it needs, each with its level: the map works at the level it is
    /// prepared for, the fold after it one below.
    pub fn keys(&self) -> Vec<(u64, usize)> {
        let level = self.map.level();
        let map: BTreeSet<u64> = self.map.elements().into_iter().collect();
        let fold = self.fold.elements().into_iter().filter(|e| !map.contains(e)).map(|e| (e, level.saturating_sub(1)));
        map.iter().map(|e| (*e, level)).chain(fold).collect()
    }
}

/// Baby steps for a number of diagonals. A giant step costs a division and a whole key switch of
/// its own, a baby step an inner product, which is several times less: so there are more babies.
fn baby_steps(diagonals: usize) -> usize {
    const GIANT_BY_BABY: f64 = 4.0;
    let ideal = (diagonals as f64 * GIANT_BY_BABY).sqrt();
    (ideal.log2().round().exp2() as usize).clamp(1, diagonals.next_power_of_two())
}

impl<B: Backend> Evaluator<B> {
    /// M·x, one level down: slot i < m holds entry i. The vector is laid out by
    /// [`MatrixVector::layout`].
    ///
    /// # Errors
    /// As [`Evaluator::linear_map`] and [`Evaluator::trace`].
    pub fn matrix_vector(
        &self,
        matrix: &MatrixVector<B::Row>,
        x: &CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, HeError> {
        self.check_keys(&matrix.fold.elements(), x.level().saturating_sub(1))?;
        self.trace(&self.linear_map(x, &matrix.map)?, &matrix.fold)
    }
}
