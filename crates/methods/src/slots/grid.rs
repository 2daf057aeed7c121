//! Tables of numbers over whole ciphertexts: products, sums and differences element by element, with an axis of
//! length one spread over the other operand's as NumPy does it, and sums over an axis.
//!
//! A tile has as many elements as there are slots, row by row: N/2 = R·C of them, C a power of two. An axis of
//! length one is *replicated*: its only entry stands in every row (or column) of the tile, so that an operation
//! with a longer axis needs no rotation. A sum over rows of a whole tile is a trace over the rotations by C, 2C, …,
//! which go around: its result is replicated without a mask (Han, Hong, Cheon, Park, ePrint 2018/662,
//! have this packing for gradient descent). A sum over columns takes a mask and rotations back.

use super::common::{check_count, check_shape, fold, mask_values, plain_mask, slots_of, stages};
use crate::error::MatrixError;
use crate::slots::tiles::Axis;
use std::borrow::Cow;
use sudare_expr::Shape;
use sudare_expr::{ExprError, Lines, Matrix};
use sudare_he::ckks::{Ciphertext, Decrypted, EncodeAt, Encoder, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_ring::threads;

const NAME: &str = "table";
/// Most tiles of a table; bounds what a specification can ask for.
const MAX_TILES: usize = 1 << 16;

/// How a table lies in ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridLayout {
    /// Rows of the table; one is replicated.
    pub rows: usize,
    /// Columns of the table; one is replicated.
    pub cols: usize,
    /// Rows of a tile.
    pub tile_rows: usize,
    /// Columns of a tile.
    pub tile_cols: usize,
}

/// Whether what lies in a tile beyond the last row, and beyond the last column, is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clean {
    /// Beyond the last row.
    pub rows: bool,
    /// Beyond the last column.
    pub cols: bool,
}

impl Clean {
    /// A fresh table.
    pub const ALL: Self = Self { rows: true, cols: true };
}

/// A table with what is known of the slots beside it.
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    /// How it lies.
    pub layout: GridLayout,
    /// What lies beside it.
    pub clean: Clean,
    /// Tiles, row by row.
    pub tiles: Cow<'a, [Ciphertext]>,
}

impl GridLayout {
    /// The layout of a table in tiles of `tile_cols` columns.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if the columns of a tile are no power of two below the number of slots, or the table has no
    /// elements or too many tiles.
    pub fn new(rows: usize, cols: usize, tile_cols: usize, literal: &ParamsLiteral) -> Result<Self, MatrixError> {
        check_shape(NAME, Shape::new(rows, cols, 1))?;
        let slots = 1usize << literal.log_n.clamp(1, 30).saturating_sub(1);
        if !tile_cols.is_power_of_two() || tile_cols >= slots {
            let reason = format!("the columns of a tile are a power of two below {slots}, not {tile_cols}");
            return Err(MatrixError::Method { method: NAME, reason });
        }
        let layout = Self { rows, cols, tile_rows: slots / tile_cols, tile_cols };
        if layout.ciphertexts() > MAX_TILES {
            let reason = format!(
                "a {rows}×{cols} matrix takes more than {MAX_TILES} tiles of {}×{tile_cols}; cut it into parts",
                layout.tile_rows
            );
            return Err(MatrixError::Method { method: NAME, reason });
        }
        Ok(layout)
    }

    /// Rows and columns of tiles.
    pub fn tiles(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.tile_rows), self.cols.div_ceil(self.tile_cols))
    }

    /// Number of ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        self.tiles().0 * self.tiles().1
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Where the element of a slot of a tile stands in the table, if it is one.
    fn element(&self, tile: usize, slot: usize) -> Option<(usize, usize)> {
        let (down, across) = (tile / self.tiles().1, tile % self.tiles().1);
        let (i, j) = (slot / self.tile_cols, slot % self.tile_cols);
        let i = if self.rows == 1 { 0 } else { down * self.tile_rows + i };
        let j = if self.cols == 1 { 0 } else { across * self.tile_cols + j };
        (i < self.rows && j < self.cols).then_some((i, j))
    }

    /// Encodes a table, a plaintext a tile.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`], [`MatrixError::Expr`], [`MatrixError::He`].
    pub fn encode(&self, encoder: &Encoder, matrix: &Matrix, at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        let (found, expected) = (matrix.shape(), self.shape());
        if found != expected {
            return Err(MatrixError::PlannedShape { what: "the table", found, expected });
        }
        matrix.check_bound(at.max_abs)?;
        let slots = encoder.params().slots();
        (0..self.ciphertexts())
            .map(|tile| {
                let value = |slot| self.element(tile, slot).map_or(0.0, |(i, j)| matrix.get(i, j));
                let values: Vec<f64> = (0..slots).map(value).collect();
                Ok(encoder.encode_at(&values, at)?)
            })
            .collect()
    }

    /// Decodes a table.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn decode(&self, params: &Params, tiles: &[Decrypted]) -> Result<Matrix, MatrixError> {
        check_count("result plaintexts", tiles.len(), self.ciphertexts())?;
        let slots = slots_of(params, tiles)?;
        let (r, c, across) = (self.tile_rows, self.tile_cols, self.tiles().1);
        Ok(Matrix::from_fn(self.rows, self.cols, |i, j| slots[i / r * across + j / c][i % r * c + j % c])?)
    }

    /// The layout of an operation element by element.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] if an axis has two lengths, neither of which is one.
    pub fn broadcast(&self, operation: &'static str, other: &Self) -> Result<Self, MatrixError> {
        let axis = |a: usize, b: usize| (a == b || a == 1 || b == 1).then_some(a.max(b));
        match (axis(self.rows, other.rows), axis(self.cols, other.cols)) {
            (Some(rows), Some(cols)) => Ok(Self { rows, cols, ..*self }),
            _ => Err(ExprError::Shapes { operation, left: self.shape(), right: other.shape() }.into()),
        }
    }

    /// The layout of a sum over an axis.
    #[must_use]
    pub fn summed(&self, axis: Axis) -> Self {
        match axis {
            Axis::Rows => Self { rows: 1, ..*self },
            Axis::Columns => Self { cols: 1, ..*self },
        }
    }

    /// Whether a slot of a tile holds an element.
    pub fn holds(&self, tile: usize, slot: usize) -> bool {
        self.element(tile, slot).is_some()
    }

    /// The layout of the transpose.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self { rows: self.cols, cols: self.rows, ..*self }
    }

    /// Whether entry `row` of a column in its tile `down`, and entry `col` of a row in its tile `across`, are one of `length`.
    fn meet(&self, length: usize, (down, row): (usize, usize), (across, col): (usize, usize)) -> bool {
        let entry = down * self.tile_rows + row;
        entry < length && entry == across * self.tile_cols + col
    }

    /// The tile of an operand that meets tile `t` of the result.
    fn tile_of(&self, result: &Self, t: usize) -> usize {
        let (down, across) = (t / result.tiles().1, t % result.tiles().1);
        (if self.rows == 1 { 0 } else { down }) * self.tiles().1 + if self.cols == 1 { 0 } else { across }
    }

    /// What an operand knows of the slots beside the result.
    fn clean_in(&self, clean: Clean, result: &Self) -> Clean {
        let rows = result.rows == 1 || result.rows.is_multiple_of(self.tile_rows) || (self.rows > 1 && clean.rows);
        let cols = result.cols == 1 || result.cols.is_multiple_of(self.tile_cols) || (self.cols > 1 && clean.cols);
        Clean { rows, cols }
    }

    fn stages(&self, axis: Axis) -> Vec<Vec<i64>> {
        match axis {
            Axis::Rows => stages(self.tile_rows, self.tile_cols as i64, 1),
            Axis::Columns => stages(self.tile_cols, 1, 1),
        }
    }

    /// Rotations that spread the first column over all.
    fn spread(&self) -> Vec<Vec<i64>> {
        stages(self.tile_cols, -1, 1)
    }

    /// Galois elements of sums over both axes.
    pub fn sum_elements(&self, params: &Params) -> Vec<u64> {
        let all = [self.stages(Axis::Rows), self.stages(Axis::Columns), self.spread()].concat().concat();
        all.into_iter().map(|step| params.rotation_element(step)).collect()
    }
}

impl<'a> Grid<'a> {
    fn level(&self) -> usize {
        self.tiles.iter().map(Ciphertext::level).min().unwrap_or(0)
    }

    /// An operation on the tiles that meet.
    fn zip(
        &self,
        operation: &'static str,
        other: &Grid<'_>,
        work: impl Fn(&Ciphertext, &Ciphertext) -> Result<Ciphertext, MatrixError> + Sync,
    ) -> Result<(GridLayout, [Clean; 2], Vec<Ciphertext>), MatrixError> {
        let layout = self.layout.broadcast(operation, &other.layout)?;
        check_count("left tiles", self.tiles.len(), self.layout.ciphertexts())?;
        check_count("right tiles", other.tiles.len(), other.layout.ciphertexts())?;
        let tiles = threads::map(layout.ciphertexts(), |t| {
            work(&self.tiles[self.layout.tile_of(&layout, t)], &other.tiles[other.layout.tile_of(&layout, t)])
        });
        let known = [self.layout.clean_in(self.clean, &layout), other.layout.clean_in(other.clean, &layout)];
        Ok((layout, known, tiles.into_iter().collect::<Result<_, _>>()?))
    }

    /// A + B. No level.
    ///
    /// # Errors
    /// [`MatrixError::Expr`], [`MatrixError::Count`], [`MatrixError::He`].
    pub fn add(&self, e: &Evaluator, other: &Grid<'_>) -> Result<Self, MatrixError> {
        let (layout, [x, y], tiles) = self.zip("addition", other, |a, b| Ok(e.add(a, b)?))?;
        Ok(Self { layout, clean: Clean { rows: x.rows && y.rows, cols: x.cols && y.cols }, tiles: tiles.into() })
    }

    /// A − B. No level.
    ///
    /// # Errors
    /// As [`Grid::add`].
    pub fn sub(&self, e: &Evaluator, other: &Grid<'_>) -> Result<Self, MatrixError> {
        let (layout, [x, y], tiles) = self.zip("subtraction", other, |a, b| Ok(e.sub(a, b)?))?;
        Ok(Self { layout, clean: Clean { rows: x.rows && y.rows, cols: x.cols && y.cols }, tiles: tiles.into() })
    }

    /// A ⊙ B, element by element. One level.
    ///
    /// # Errors
    /// As [`Grid::add`].
    pub fn mul(&self, e: &Evaluator, other: &Grid<'_>) -> Result<Self, MatrixError> {
        let (layout, [x, y], tiles) = self.zip("element-wise product", other, |a, b| Ok(e.mul_rescale(a, b)?))?;
        Ok(Self { layout, clean: Clean { rows: x.rows || y.rows, cols: x.cols || y.cols }, tiles: tiles.into() })
    }

    /// Levels that a sum over an axis takes.
    pub fn sum_levels(&self, axis: Axis) -> usize {
        match axis {
            Axis::Rows => usize::from(!self.known(axis)),
            Axis::Columns => 1 + usize::from(!self.known(axis)),
        }
    }

    /// Whether all that lies beside the table is zero.
    pub fn is_clean(&self) -> bool {
        self.known(Axis::Rows) && self.known(Axis::Columns)
    }

    /// Whether what lies beside the table along an axis is zero.
    fn known(&self, axis: Axis) -> bool {
        let own = self.layout.clean_in(self.clean, &self.layout);
        if axis == Axis::Rows { own.rows } else { own.cols }
    }

    /// The table with zeros beside it. One level.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn cleaned(&self, e: &Evaluator) -> Result<Self, MatrixError> {
        let (level, slots) = (self.level(), e.params().slots());
        let tiles = threads::map(self.tiles.len(), |t| {
            let mask = plain_mask(e.params(), level, &mask_values(slots, 1.0, |slot| self.layout.holds(t, slot)))?;
            let c = e.drop_to(&self.tiles[t], level)?;
            Ok::<_, MatrixError>(e.rescale(&e.mul_plain(&c, &mask)?)?.with_bound(c.bound()))
        });
        let tiles = tiles.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { layout: self.layout, clean: Clean::ALL, tiles })
    }

    /// Levels that a vector's transpose takes: one from a column to a row, two back.
    pub fn transpose_levels(&self) -> usize {
        match self.layout.shape() {
            (1, 1) => 0,
            (1, _) => 2,
            _ => 1,
        }
    }

    /// The transpose of a row or a column: its tiles are masked to one entry in each row or column of a tile, and summed.
    /// [`Grid::transpose_levels`] levels.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a table of several rows and columns, [`MatrixError::Count`], [`MatrixError::He`].
    pub fn transpose(&self, e: &Evaluator) -> Result<Self, MatrixError> {
        check_count("tiles", self.tiles.len(), self.layout.ciphertexts())?;
        let (layout, level, slots) = (self.layout.transposed(), self.level(), e.params().slots());
        let (to_row, length) = match self.layout.shape() {
            (1, 1) => return Ok(self.clone()),
            (rows, 1) => (true, rows),
            (1, cols) => (false, cols),
            _ => {
                let planned =
                    "of tables over whole ciphertexts, only vectors are transposed; write v @ X for X.T @ v".into();
                return Err(MatrixError::NotPlanned { operation: "a transpose of a table", planned });
            }
        };
        let tiles = threads::map(layout.ciphertexts(), |to| {
            let mut sum: Option<Ciphertext> = None;
            for (from, c) in self.tiles.iter().enumerate() {
                let (down, across) = if to_row { (from, to) } else { (to, from) };
                let place = |slot: usize| (slot / layout.tile_cols, slot % layout.tile_cols);
                let keep = |slot| layout.meet(length, (down, place(slot).0), (across, place(slot).1));
                if !(0..slots).any(keep) {
                    continue;
                }
                let mask = plain_mask(e.params(), level, &mask_values(slots, 1.0, keep))?;
                let part = e.mul_plain(&e.drop_to(c, level)?, &mask)?;
                match &mut sum {
                    Some(sum) => e.add_assign(sum, &part)?,
                    None => sum = Some(part),
                }
            }
            let none = MatrixError::Count { what: "tiles", found: 0, expected: self.tiles.len() };
            let masked = e.rescale(&sum.ok_or(none)?)?;
            if to_row {
                return fold(e, masked, &layout.stages(Axis::Rows), true);
            }
            spread(e, &layout, &fold(e, masked, &layout.stages(Axis::Columns), true)?)
        });
        let tiles = tiles.into_iter().collect::<Result<_, MatrixError>>()?;
        Ok(Self { layout, clean: Clean::ALL, tiles })
    }

    /// A run of rows that begins and ends where tiles do, or at the table's end. No level.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for other rows, and for columns; [`MatrixError::Count`].
    pub fn rows(&self, axis: Axis, taken: &Lines) -> Result<Self, MatrixError> {
        check_count("tiles", self.tiles.len(), self.layout.ciphertexts())?;
        let (Lines { start, count, .. }, GridLayout { rows, tile_rows, .. }) = (*taken, self.layout);
        let run = Lines { start, step: 1, count, at: 0, stride: 1, size: count };
        let ends = |row: usize| row.is_multiple_of(tile_rows) || row == rows;
        // One row of several is not replicated.
        let whole = count > 1 && ends(start) && ends(start + count);
        if axis == Axis::Columns || *taken != run || !taken.fit(rows) || !(whole || count == rows) {
            let planned = format!(
                "tables over whole ciphertexts are cut between rows alone, at multiples of {tile_rows}, and not put together; \
                 take a context without columns, or multiply by a plain column of zeros and ones and sum"
            );
            return Err(MatrixError::NotPlanned { operation: "a slice of a table", planned });
        }
        let across = self.layout.tiles().1;
        let tiles = &self.tiles[start / tile_rows * across..(start + count).div_ceil(tile_rows) * across];
        Ok(Self { layout: GridLayout { rows: count, ..self.layout }, clean: self.clean, tiles: tiles.to_vec().into() })
    }

    /// The sum over an axis, which stays with length one and is replicated. [`Grid::sum_levels`] levels; none for an axis of
    /// length one.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn sum(&self, e: &Evaluator, axis: Axis) -> Result<Self, MatrixError> {
        check_count("tiles", self.tiles.len(), self.layout.ciphertexts())?;
        if (if axis == Axis::Rows { self.layout.rows } else { self.layout.cols }) == 1 {
            return Ok(self.clone());
        }
        if !self.known(axis) {
            return self.cleaned(e)?.sum(e, axis);
        }
        let (layout, level, (down, across)) = (self.layout.summed(axis), self.level(), self.layout.tiles());
        let lines: Vec<Vec<usize>> = match axis {
            Axis::Rows => (0..across).map(|j| (0..down).map(|i| i * across + j).collect()).collect(),
            Axis::Columns => (0..down).map(|i| (0..across).map(|j| i * across + j).collect()).collect(),
        };
        let stages = self.layout.stages(axis);
        let tiles = threads::map(lines.len(), |line| {
            let line = &lines[line];
            let mut sum = e.drop_to(&self.tiles[line[0]], level)?;
            for t in &line[1..] {
                e.add_assign(&mut sum, &e.drop_to(&self.tiles[*t], level)?)?;
            }
            let sum = fold(e, sum, &stages, true)?;
            if axis == Axis::Rows {
                return Ok(sum);
            }
            spread(e, &self.layout, &sum)
        });
        let tiles = tiles.into_iter().collect::<Result<_, MatrixError>>()?;
        Ok(Self { layout, clean: self.clean, tiles })
    }

    /// A function of every element by a prepared polynomial; beside the table stand values of it at zero.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn map(
        &self,
        work: impl Fn(&Ciphertext) -> Result<Ciphertext, MatrixError> + Sync,
        keeps_zero: bool,
    ) -> Result<Self, MatrixError> {
        let tiles = threads::map(self.tiles.len(), |t| work(&self.tiles[t]));
        let clean = if keeps_zero { self.clean } else { Clean { rows: false, cols: false } };
        Ok(Self { layout: self.layout, clean, tiles: tiles.into_iter().collect::<Result<_, _>>()? })
    }
}

/// The first column of a tile in all of its columns: it alone has sums of one row. One level.
fn spread(e: &Evaluator, layout: &GridLayout, sum: &Ciphertext) -> Result<Ciphertext, MatrixError> {
    let first = |slot: usize| slot.is_multiple_of(layout.tile_cols);
    let mask = plain_mask(e.params(), sum.level(), &mask_values(e.params().slots(), 1.0, first))?;
    fold(e, e.rescale(&e.mul_plain(sum, &mask)?)?, &layout.spread(), true)
}
