//! The 3-D method with its improvements, for row-major operands of any shape.

use crate::error::MatrixError;
use crate::portable::{self, Portable};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::products::{Method, ProductSpec};
use crate::slots::common::{Search, check_count, check_matrices, check_shape, search_literals, slots_of};
use crate::slots::cube::{Cube, CubeLayout, CubePlan, Improvements, Side};
use crate::tables::Tables;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, Encoder, Evaluator, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::Backend;

const NAME: &str = "improved3d";

/// The product's steps and parameters; no tables.
#[derive(Clone, Debug)]
pub struct Improved3dPlan {
    shape: Shape,
    literal: ParamsLiteral,
    pub(super) cube: CubePlan,
}

impl Improved3dPlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots or levels do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: Improvements) -> Result<Self, MatrixError> {
        Ok(Self { shape, literal: literal.clone(), cube: CubePlan::new(shape, literal, options)? })
    }

    /// Ciphertexts of an operand: each carries as many products as it has lanes.
    fn groups(&self) -> usize {
        self.shape.batch.div_ceil(self.cube.layout.lanes)
    }
}

impl Portable for Improved3dPlan {
    type Tables<B: Backend> = Cube<B::Plaintext>;

    fn tables<B: Backend>(&self, e: &Evaluator<B>) -> Result<Cube<B::Plaintext>, MatrixError> {
        Cube::prepare(e, self.cube)
    }

    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        cube: &Cube<B::Plaintext>,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.groups())?;
        check_count("right ciphertexts", right.len(), self.groups())?;
        let multiply = |pair: &[&CiphertextOf<B>]| {
            let a = cube.expand(e, Side::Left, pair[0])?;
            let b = cube.expand(e, Side::Right, pair[1])?;
            cube.contract(e, &[&a], &[&b])
        };
        e.each(Order::InTurn, left.len(), |i| vec![left.at(i), right.at(i)], multiply)
    }
}

impl ProductPlan for Improved3dPlan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.literal
    }

    fn ciphertexts(&self, _: Operand) -> usize {
        self.groups()
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

/// Specifications that satisfy the requirements, for the planner to price.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let mut out = Vec::new();
    if check_shape(NAME, req.shape).is_err() {
        return out;
    }
    for real_pairing in [false, true] {
        let base = Improvements { real_pairing, clean_output: !req.decrypt_next, ..Improvements::ALL };
        let least_log_n = 1 + CubeLayout::log_slots(req.shape, &base);
        if least_log_n > 17 {
            continue;
        }
        let result = req.max_abs[0] * req.max_abs[1] * req.shape.k.next_power_of_two() as f64;
        let chain: &[bool] = if req.decrypt_next { &[true, false] } else { &[true, false, true] };
        let search = Search { req, least_log_n, result, chain, switching: true };
        let literals = search_literals(&search, |literal| {
            Improved3dPlan::new(req.shape, literal, base).ok()?.promised(req.max_abs)
        });
        for params in literals {
            for unroll in [0, 1, 2] {
                let options = Improvements { unroll, ..base };
                out.push(ProductSpec { shape: req.shape, method: Method::Improved3d(options), params: params.clone() });
            }
        }
    }
    out
}

/// The product under built parameters.
pub struct Improved3d {
    params: Params,
    plan: Improved3dPlan,
    cube: Tables<Cube>,
}

impl Improved3d {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Improved3dPlan::new`].
    pub fn new(params: &Params, shape: Shape, options: Improvements) -> Result<Self, MatrixError> {
        Ok(Self {
            params: params.clone(),
            plan: Improved3dPlan::new(shape, params.literal(), options)?,
            cube: Tables::new(),
        })
    }

    fn cube(&self) -> Result<&Cube, MatrixError> {
        self.cube.get(|| Cube::new(&self.params, self.plan.cube))
    }
}

impl Product for Improved3d {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn prepare(&self) -> Result<(), MatrixError> {
        self.cube().map(|_| ())
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let layout = &self.plan.cube.layout;
        matrices
            .chunks(layout.lanes)
            .map(|group| {
                let mut values = vec![0.0; layout.rows * layout.cols * layout.lanes];
                for (lane, matrix) in group.iter().enumerate() {
                    for i in 0..matrix.rows() {
                        for j in 0..matrix.cols() {
                            values[layout.slot(0, i, j, lane)] = matrix.get(i, j);
                        }
                    }
                }
                Ok(encoder.encode(&values, max_abs)?)
            })
            .collect()
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
        check_count("result plaintexts", output.len(), self.plan.groups())?;
        let slots = slots_of(&self.params, output)?;
        let layout = &self.plan.cube.layout;
        (0..self.plan.shape.batch)
            .map(|t| {
                let values = &slots[t / layout.lanes];
                let lane = t % layout.lanes;
                Ok(Matrix::from_fn(self.plan.shape.m, self.plan.shape.n, |i, j| values[layout.slot(0, i, j, lane)])?)
            })
            .collect()
    }
}
