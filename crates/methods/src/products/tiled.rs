//! Products of tiled matrices (what `000` leaves open in its section 5): a product accumulates over the contraction index
//! before one relinearisation and one fold per tile of the result. Each tile is brought into the cube once, Ā_IK and
//! B̄_KJ, and C_IJ = fold(relinearise(Σ_K Ā_IK ⊙ B̄_KJ)).

use super::{Method, ProductSpec};
use crate::blocked::Blocked;
use crate::error::MatrixError;
use crate::portable::{self, Portable};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::slots::common::{Search, check_count, check_matrices, check_shape, search_literals};
use crate::slots::cube::{Cube, CubeLayout, CubePlan, Improvements, Side};
use crate::slots::tiles::{MAX_TILES, NAME, TileLayout};
use crate::tables::Tables;
use sudare_expr::{Matrix, Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, Encoder, Evaluator, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::Backend;
use zeroize::Zeroizing;

/// Tiles along m, k and n.
fn counts(shape: Shape, tile: usize) -> [usize; 3] {
    [shape.m, shape.k, shape.n].map(|x| x.div_ceil(tile))
}

/// The steps and parameters of a product of tiled matrices; no tables. Each of the batch has tiles
/// of its own.
#[derive(Clone, Debug)]
pub struct TiledPlan {
    shape: Shape,
    literal: ParamsLiteral,
    tile: usize,
    /// The cube of one tile product; tiles stand at the stride that its lanes give.
    cube: CubePlan,
}

impl TiledPlan {
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

impl Portable for TiledPlan {
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

impl ProductPlan for TiledPlan {
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
            TiledPlan::new(req.shape, literal, tile, options).ok()?.promised(req.max_abs)
        });
        let spec = |params| ProductSpec { shape: req.shape, method: Method::Tiled { tile, options }, params };
        out.extend(literals.into_iter().map(spec));
    }
    out
}

/// The product under built parameters.
pub struct Tiled {
    params: Params,
    plan: TiledPlan,
    cube: Tables<Cube>,
}

impl Tiled {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`TiledPlan::new`].
    pub fn new(params: &Params, shape: Shape, tile: usize, options: Improvements) -> Result<Self, MatrixError> {
        let plan = TiledPlan::new(shape, params.literal(), tile, options)?;
        Ok(Self { params: params.clone(), plan, cube: Tables::new() })
    }

    fn cube(&self) -> Result<&Cube, MatrixError> {
        self.cube.get(|| Cube::new(&self.params, self.plan.cube))
    }
}

impl Product for Tiled {
    fn plan(&self) -> &dyn ProductPlan {
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
        self.plan.multiply(evaluator, self.cube()?, left.into(), right.into())
    }

    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
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

    fn decode_block(&self, operand: Operand, block: &Decrypted) -> Result<Zeroizing<Vec<f64>>, MatrixError> {
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
