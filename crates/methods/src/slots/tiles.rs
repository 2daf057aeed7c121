//! Matrices of any shape, cut into d×d tiles: one ciphertext a tile, row-major, zeros elsewhere.
//!
//! The layout of expressions: every operation takes and gives it.

use super::common::{check_count, check_shape, fold, mask_at, slots_of, stages};
use crate::error::MatrixError;
use std::collections::BTreeMap;
use sudare_expr::{Matrix, Shape};
use sudare_he::HeError;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Mask, Order, Params, ParamsLiteral,
    Plaintext,
};
use sudare_rlwe::{Backend, Shaped};

pub(crate) const NAME: &str = "tiled";
/// Most tiles of a matrix; bounds what a specification can ask for.
pub(crate) const MAX_TILES: usize = 1 << 20;

/// How a matrix lies in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLayout {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Side of a tile, a power of two.
    pub tile: usize,
    /// Stride of an element: slot (i·tile + j)·stride.
    pub stride: usize,
}

/// Which axis a sum runs over, as NumPy counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Over rows: the result has one row.
    Rows,
    /// Over columns: the result has one column.
    Columns,
}

impl TileLayout {
    /// The layout of a matrix.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if the tile is no power of two, the stride is zero, or the matrix
    /// has no elements or too many tiles.
    pub fn new(rows: usize, cols: usize, tile: usize, stride: usize) -> Result<Self, MatrixError> {
        check_shape(NAME, Shape::new(rows, cols, 1))?;
        let layout = Self { rows, cols, tile, stride };
        if !tile.is_power_of_two() || tile > 1 << 8 || stride == 0 {
            let reason =
                format!("a tile's side is a power of two up to 256 and its stride at least 1, not {tile} and {stride}");
            return Err(MatrixError::Method { method: NAME, reason });
        }
        if layout.tiles().0.checked_mul(layout.tiles().1).is_none_or(|t| t > MAX_TILES) {
            let reason =
                format!("a {rows}×{cols} matrix takes more than {MAX_TILES} tiles of side {tile}; cut it into parts");
            return Err(MatrixError::Method { method: NAME, reason });
        }
        Ok(layout)
    }

    /// Rows and columns of tiles.
    pub fn tiles(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.tile), self.cols.div_ceil(self.tile))
    }

    /// Number of ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        self.tiles().0 * self.tiles().1
    }

    /// Whether a slot of a tile holds an element.
    pub fn holds(&self, tile: usize, slot: usize) -> bool {
        let (place, d, across) = (slot / self.stride, self.tile, self.tiles().1);
        let (row, col) = (tile / across * d + place / d, tile % across * d + place % d);
        slot.is_multiple_of(self.stride) && place / d < d && row < self.rows && col < self.cols
    }

    /// The layout of the transpose.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self { rows: self.cols, cols: self.rows, ..*self }
    }

    /// The layout of a sum over an axis.
    #[must_use]
    pub fn summed(&self, axis: Axis) -> Self {
        match axis {
            Axis::Rows => Self { rows: 1, ..*self },
            Axis::Columns => Self { cols: 1, ..*self },
        }
    }

    /// Slots from one row or column to the next.
    pub(super) fn unit(&self, axis: Axis) -> i64 {
        match axis {
            Axis::Rows => (self.tile * self.stride) as i64,
            Axis::Columns => self.stride as i64,
        }
    }

    fn fits(&self, params: &ParamsLiteral) -> Result<(), MatrixError> {
        let (need, slots) = (self.tile * self.tile * self.stride, 1usize << params.log_n.saturating_sub(1));
        if need > slots {
            let reason = format!("a tile takes {need} slots, and the ring has {slots}; take a larger ring");
            return Err(MatrixError::Method { method: NAME, reason });
        }
        Ok(())
    }

    fn check<C: Shaped>(&self, what: &'static str, tiles: &Batch<'_, C>) -> Result<(), MatrixError> {
        check_count(what, tiles.len(), self.ciphertexts())
    }

    /// Encodes a matrix, a plaintext a tile, tiles row by row.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`], [`MatrixError::Expr`], [`MatrixError::Method`],
    /// [`MatrixError::He`].
    pub fn encode(&self, encoder: &Encoder, matrix: &Matrix, at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        self.fits(encoder.params().literal())?;
        let (found, expected) = (matrix.shape(), (self.rows, self.cols));
        if found != expected {
            return Err(MatrixError::PlannedShape { what: "the matrix", found, expected });
        }
        matrix.check_bound(at.max_abs)?;
        (0..self.ciphertexts()).map(|t| self.encode_tile(encoder, matrix, at, t)).collect()
    }

    /// Encodes one tile of a matrix of this layout.
    pub(crate) fn encode_tile(
        &self,
        encoder: &Encoder,
        matrix: &Matrix,
        at: EncodeAt,
        t: usize,
    ) -> Result<Plaintext, MatrixError> {
        let (d, g) = (self.tile, self.stride);
        let (row, col) = (t / self.tiles().1 * d, t % self.tiles().1 * d);
        let mut values = vec![0.0; d * d * g];
        for (e, x) in values.iter_mut().step_by(g).enumerate() {
            *x = matrix.get(row + e / d, col + e % d);
        }
        Ok(encoder.encode_at(&values, at)?)
    }

    /// Decodes a matrix.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn decode(&self, params: &Params, tiles: &[Decrypted]) -> Result<Matrix, MatrixError> {
        check_count("result plaintexts", tiles.len(), self.ciphertexts())?;
        self.fits(params.literal())?;
        let slots = slots_of(params, tiles)?;
        let (d, across) = (self.tile, self.tiles().1);
        Ok(Matrix::from_fn(self.rows, self.cols, |i, j| {
            slots[i / d * across + j / d][((i % d) * d + j % d) * self.stride]
        })?)
    }

    /// Applies an operation to the tiles of two matrices of one layout.
    ///
    /// # Errors
    /// [`MatrixError::Count`], those of the operation.
    pub fn zip<B: Backend>(
        &self,
        e: &Evaluator<B>,
        a: Batch<'_, B::Ciphertext>,
        b: Batch<'_, B::Ciphertext>,
        work: impl Fn(&CiphertextOf<B>, &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> + Sync,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.check("left tiles", &a)?;
        self.check("right tiles", &b)?;
        e.each(Order::InTurn, a.len(), |i| vec![a.at(i), b.at(i)], |c| Ok(work(c[0], c[1])?))
    }

    /// Applies an operation to the tiles of a matrix.
    ///
    /// # Errors
    /// As [`TileLayout::zip`].
    pub fn map<B: Backend>(
        &self,
        e: &Evaluator<B>,
        a: Batch<'_, B::Ciphertext>,
        work: impl Fn(&CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> + Sync,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.check("tiles", &a)?;
        e.each(Order::InTurn, a.len(), |i| vec![a.at(i)], |c| Ok(work(c[0])?))
    }

    /// A + x in every element, and nothing beside them. No level.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn shift<B: Backend>(
        &self,
        e: &Evaluator<B>,
        a: Batch<'_, B::Ciphertext>,
        x: f64,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.check("tiles", &a)?;
        let work = |t: usize, c: &[&CiphertextOf<B>]| Ok(e.add_where(c[0], x, |slot| self.holds(t, slot))?);
        e.each_at(Order::InTurn, a.len(), |i| vec![a.at(i)], work)
    }

    /// A + M for a plain matrix. No level.
    ///
    /// # Errors
    /// [`MatrixError::Count`] for another number of tiles; as [`TileLayout::encode`] and [`Evaluator::add_plain`].
    pub fn add_plain(&self, e: &Evaluator, a: &[Ciphertext], m: &Matrix) -> Result<Vec<Ciphertext>, MatrixError> {
        self.check("tiles", &a.into())?;
        let Some(first) = a.first() else { return Ok(Vec::new()) };
        let at = EncodeAt { level: first.level(), scale: first.scale(), max_abs: m.max_abs() };
        let plains = self.encode(&Encoder::new(e.params()), m, at)?;
        a.iter().zip(&plains).map(|(x, p)| Ok(e.add_plain(x, p)?)).collect()
    }

    /// A ⊙ M for a plain matrix. One level, the scale stays.
    ///
    /// # Errors
    /// As [`TileLayout::add_plain`].
    pub fn mul_plain(&self, e: &Evaluator, a: &[Ciphertext], m: &Matrix) -> Result<Vec<Ciphertext>, MatrixError> {
        self.check("tiles", &a.into())?;
        let Some(first) = a.first() else { return Ok(Vec::new()) };
        let at = EncodeAt { max_abs: m.max_abs(), ..mask_at(e.params(), first.level()) };
        let plains = self.encode(&Encoder::new(e.params()), m, at)?;
        a.iter().zip(&plains).map(|(x, p)| Ok(e.rescale(&e.mul_plain(x, p)?)?)).collect()
    }

    /// Baby steps of a transpose of tiles, about as many as giant steps.
    fn babies(tile: usize) -> usize {
        (1..).find(|b| b * b >= 2 * tile).unwrap_or(1)
    }

    /// Diagonals of a transpose and the rotation from one to the next: element (i, j) comes from
    /// (j, i), (j − i)·(d − 1) elements ahead.
    fn diagonals(&self) -> (std::ops::Range<i64>, i64) {
        let d = self.tile as i64;
        (1 - d..d, (d - 1) * self.stride as i64)
    }

    /// Prepares the transpose of tiles at a level; `None` for tiles of one element.
    ///
    /// # Errors
    /// [`MatrixError::Method`], [`MatrixError::He`].
    pub fn transposition<B: Backend>(
        &self,
        e: &Evaluator<B>,
        level: usize,
    ) -> Result<Option<LinearMap<B::Row>>, MatrixError> {
        self.fits(e.params().literal())?;
        let (d, g) = (self.tile, self.stride);
        if d == 1 {
            return Ok(None);
        }
        let (diagonals, unit) = self.diagonals();
        let ones: BTreeMap<i64, usize> = diagonals.map(|t| (t, d - t.unsigned_abs() as usize)).collect();
        let keep = |t: i64, s: usize| {
            let (i, j) = (s / g / d, s / g % d);
            s.is_multiple_of(g) && i < d && j as i64 - i as i64 == t
        };
        Ok(Some(e.mask_map(level, &ones, (unit, Self::babies(self.tile)), keep)?))
    }

    /// Aᵀ, by a prepared map. One level (none for tiles of one element).
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn transpose<B: Backend>(
        &self,
        e: &Evaluator<B>,
        map: Option<&LinearMap<B::Row>>,
        a: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.check("tiles", &a)?;
        let (down, across) = self.tiles();
        let place = |t: usize| vec![a.at(t % down * across + t / down)];
        let one = |tile: &[&CiphertextOf<B>]| {
            Ok(match map {
                Some(map) => e.linear_map(tile[0], map)?.with_bound(tile[0].bound()),
                None => tile[0].clone(),
            })
        };
        e.each(Order::InTurn, a.len(), place, one)
    }

    /// The sum over an axis. One level.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn sum<B: Backend>(
        &self,
        e: &Evaluator<B>,
        axis: Axis,
        a: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.check("tiles", &a)?;
        self.fits(e.params().literal())?;
        let (d, g, (down, across)) = (self.tile, self.stride, self.tiles());
        let Some(level) = a.iter().map(Ciphertext::level).min() else { return Ok(Vec::new()) };
        let keep = |s: usize| {
            let (i, j) = (s / g / d, s / g % d);
            s.is_multiple_of(g) && if axis == Axis::Rows { i == 0 } else { i < d && j == 0 }
        };
        let mask = e.mask(&Mask { level, value: 1.0, period: d * d * g, keep })?;
        let (lines, held, terms) = match axis {
            Axis::Rows => (across, self.rows, down),
            Axis::Columns => (down, self.cols, across),
        };
        let place = |line: usize, t: usize| match axis {
            Axis::Rows => t * across + line,
            Axis::Columns => line * across + t,
        };
        let one = |line: &[&CiphertextOf<B>]| -> Result<CiphertextOf<B>, MatrixError> {
            let mut sum = e.drop_to(line[0], level)?;
            for tile in &line[1..] {
                // Different elements' errors.
                let spread = sum.spread().sum(tile.spread()).together();
                e.add_assign(&mut sum, &e.drop_to(tile, level)?)?;
                sum = sum.with_spread(spread);
            }
            let sum = fold(e, sum, &stages(d, self.unit(axis), 2), true)?;
            let spread = sum.spread().occupied(held as f64 / (terms * d) as f64);
            Ok(e.rescale(&e.mul_plain(&sum.with_spread(spread), &mask)?)?)
        };
        e.each(Order::InTurn, lines, |line| (0..terms).map(|t| a.at(place(line, t))).collect(), one)
    }
}
