//! Matrices of any shape, cut into d×d tiles: one ciphertext a tile, row-major, zeros elsewhere.
//!
//! The layout of expressions: every operation takes and gives it. A product accumulates over the
//! contraction index before one relinearisation and one fold per tile of the result (what `000`
//! leaves open in its section 5): each tile is brought into the cube once, Ā_IK and B̄_KJ, and
//! C_IJ = fold(relinearise(Σ_K Ā_IK ⊙ B̄_KJ)).

use super::common::{
    Search, check_count, check_matrices, check_shape, fold, mask_at, search_literals, slots_of, stages,
};
use super::cube::{Cube, CubeLayout, CubePlan, Improvements, Side};
use crate::blocked::Blocked;
use crate::error::MatrixError;
use crate::portable::{self, Portable};
use crate::product::{Figures, Method, Outline, Product, ProductSpec, Requirements};
use crate::registry::OnBackends;
use crate::tables::Tables;
use std::collections::BTreeMap;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::HeError;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, EncodeAt, Encoder, Evaluator, Mask, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::{Backend, Shaped};
use zeroize::Zeroizing;

const NAME: &str = "tiled";
/// Most tiles of a matrix; bounds what a specification can ask for.
const MAX_TILES: usize = 1 << 20;

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
            let reason = "a tile's side is a power of two up to 256 and its stride at least 1".into();
            return Err(MatrixError::Method { method: NAME, reason });
        }
        if layout.tiles().0.checked_mul(layout.tiles().1).is_none_or(|t| t > MAX_TILES) {
            let reason = format!("{rows}×{cols} is over {MAX_TILES} tiles of side {tile}");
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
            let reason = format!("a tile takes {need} slots and the ring has {slots}; take a larger ring");
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
    fn encode_tile(
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
    pub fn decode(&self, params: &Params, tiles: &[Plaintext]) -> Result<Matrix, MatrixError> {
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
        e.each_at(a.len(), |i| vec![a.at(i)], work)
    }

    /// A + M for a plain matrix. No level.
    ///
    /// # Errors
    /// As [`TileLayout::add`] and [`TileLayout::encode`].
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

/// Tiles along m, k and n.
fn counts(shape: Shape, tile: usize) -> [usize; 3] {
    [shape.m, shape.k, shape.n].map(|x| x.div_ceil(tile))
}

/// The steps and parameters of a product of tiled matrices; no tables. Each of the batch has tiles
/// of its own.
#[derive(Clone, Debug)]
pub struct Plan {
    shape: Shape,
    literal: ParamsLiteral,
    tile: usize,
    /// The cube of one tile product; tiles stand at the stride that its lanes give.
    cube: CubePlan,
}

impl Plan {
    /// Plans the product with tiles of side `tile`.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots or levels do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral, tile: usize, options: Improvements) -> Result<Self, MatrixError> {
        check_shape(NAME, shape)?;
        for (rows, cols) in [(shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n)] {
            TileLayout::new(rows, cols, tile, 1)?;
        }
        let cube = CubePlan::new(Shape::new(tile, tile, tile), literal, options)?;
        Ok(Self { shape, literal: literal.clone(), tile, cube })
    }

    /// How an operand or the result lies.
    pub fn layout(&self, operand: Operand) -> TileLayout {
        let (rows, cols) = self.shape.of(operand);
        TileLayout { rows, cols, tile: self.tile, stride: self.cube.layout.lanes }
    }
}

impl Portable for Plan {
    type Tables<B: Backend> = Cube<B::Plaintext>;

    fn tables<B: Backend>(&self, e: &Evaluator<B>) -> Result<Cube<B::Plaintext>, MatrixError> {
        Cube::prepare(e, self.cube)
    }

    /// Every tile is brought into the cube once, and each of the result contracts a row with a column of them.
    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        cube: &Cube<B::Plaintext>,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.ciphertexts(Operand::Left))?;
        check_count("right ciphertexts", right.len(), self.ciphertexts(Operand::Right))?;
        let [m, k, n] = counts(self.shape, self.tile);
        let mut out = Vec::new();
        for (left, right) in left.parts(m * k).into_iter().zip(right.parts(k * n)) {
            let bars = |side, tiles: Batch<'_, B::Ciphertext>| {
                e.each(Order::InTurn, tiles.len(), |t| vec![tiles.at(t)], |tile| cube.expand(e, side, tile[0]))
            };
            let (left, right) = (bars(Side::Left, left)?, bars(Side::Right, right)?);
            let (left, right) = (Batch::from(left.as_slice()), Batch::from(right.as_slice()));
            let lines = |at: usize| {
                let (row, column) = (at / n * k, at % n);
                (0..k).map(|t| left.at(row + t)).chain((0..k).map(|t| right.at(column + t * n))).collect()
            };
            let contract = |lines: &[&_]| cube.contract(e, &lines[..k], &lines[k..]);
            out.extend(e.each(Order::InTurn, left.len() / k * n, lines, contract)?);
        }
        Ok(out)
    }
}

impl Outline for Plan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.literal
    }

    fn ciphertexts(&self, operand: Operand) -> usize {
        self.layout(operand).ciphertexts() * self.shape.batch
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

/// Specifications that satisfy the requirements, for products of more than one tile.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let mut out = Vec::new();
    if check_shape(NAME, req.shape).is_err() {
        return out;
    }
    let largest = req.shape.m.max(req.shape.k).max(req.shape.n);
    for (tile, real_pairing) in [(8usize, false), (16, false), (16, true), (32, true)] {
        let options = Improvements { real_pairing, clean_output: !req.decrypt_next, ..Improvements::ALL };
        if largest <= tile || counts(req.shape, tile).iter().product::<usize>() > MAX_TILES {
            continue;
        }
        let least_log_n = 1 + CubeLayout::log_slots(Shape::new(tile, tile, tile), &options);
        let terms = req.shape.k.div_ceil(tile);
        let result = req.max_abs[0] * req.max_abs[1] * (terms * tile) as f64;
        let chain: &[bool] = if req.decrypt_next { &[true, false] } else { &[true, false, true] };
        let search = Search { req, least_log_n, result, chain, switching: true };
        let literals = search_literals(&search, |literal| {
            Plan::new(req.shape, literal, tile, options).ok()?.promised(req.max_abs)
        });
        let spec = |params| ProductSpec { shape: req.shape, method: Method::Tiled { tile, options }, params };
        out.extend(literals.into_iter().map(spec));
    }
    out
}

/// The product under built parameters.
pub struct Tiled {
    params: Params,
    plan: Plan,
    cube: Tables<Cube>,
}

impl Tiled {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(params: &Params, shape: Shape, tile: usize, options: Improvements) -> Result<Self, MatrixError> {
        let plan = Plan::new(shape, params.literal(), tile, options)?;
        Ok(Self { params: params.clone(), plan, cube: Tables::new() })
    }

    fn cube(&self) -> Result<&Cube, MatrixError> {
        self.cube.get(|| Cube::new(&self.params, self.plan.cube))
    }

    /// Multiplies operands of any backend that keeps plaintexts as the processor does.
    ///
    /// # Errors
    /// As [`Product::multiply`].
    pub fn multiply_on<B: Backend<Plaintext = Poly<Eval>>>(
        &self,
        evaluator: &Evaluator<B>,
        left: &[CiphertextOf<B>],
        right: &[CiphertextOf<B>],
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        self.plan.multiply(evaluator, self.cube()?, left.into(), right.into())
    }
}

impl Product for Tiled {
    fn outline(&self) -> &dyn Outline {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn prepare(&self) -> Result<(), MatrixError> {
        self.cube().map(|_| ())
    }

    fn blocked(&self) -> Option<&dyn Blocked> {
        Some(self)
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let layout = self.plan.layout(operand);
        let tiles: Result<Vec<_>, _> =
            matrices.iter().map(|m| layout.encode(&encoder, m, encoder.at_top(max_abs))).collect();
        Ok(tiles?.into_iter().flatten().collect())
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.multiply_on(evaluator, left, right)
    }

    fn on_backends(&self) -> Option<OnBackends<'_>> {
        Some(OnBackends::Tiled(self))
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.ciphertexts(Operand::Output))?;
        let layout = self.plan.layout(Operand::Output);
        output.chunks(layout.ciphertexts()).map(|tiles| layout.decode(&self.params, tiles)).collect()
    }
}

impl Blocked for Tiled {
    fn grid(&self, operand: Operand) -> (usize, usize) {
        self.plan.layout(operand).tiles()
    }

    fn block_shape(&self, _: Operand) -> (usize, usize) {
        (self.plan.tile, self.plan.tile)
    }

    fn encode_block(
        &self,
        operand: Operand,
        matrices: &[Matrix],
        max_abs: f64,
        index: usize,
    ) -> Result<Plaintext, MatrixError> {
        let (layout, encoder) = (self.plan.layout(operand), Encoder::new(&self.params));
        let (matrix, tile) = (&matrices[index / layout.ciphertexts()], index % layout.ciphertexts());
        layout.encode_tile(&encoder, matrix, encoder.at_top(max_abs), tile)
    }

    fn decode_block(&self, operand: Operand, block: &Plaintext) -> Result<Zeroizing<Vec<f64>>, MatrixError> {
        let layout = self.plan.layout(operand);
        let slots = Zeroizing::new(Encoder::new(&self.params).decode(block)?);
        let elements = layout.tile * layout.tile;
        Ok(Zeroizing::new(slots.iter().step_by(layout.stride).take(elements).copied().collect()))
    }

    fn spread(&self, evaluator: &Evaluator, operand: Operand, block: Ciphertext) -> Result<Ciphertext, MatrixError> {
        let side = if operand == Operand::Left { Side::Left } else { Side::Right };
        self.cube()?.expand(evaluator, side, &block)
    }

    fn finish(&self, evaluator: &Evaluator, sum: Ciphertext) -> Result<Ciphertext, MatrixError> {
        self.cube()?.fold_product(evaluator, &sum)
    }
}
