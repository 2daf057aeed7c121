//! The 3-D method with its improvements, for row-major operands of any shape.

use super::common::{Search, check_count, check_matrices, search_literals, slots_of};
use super::cube::{Cube, CubeLayout, CubePlan, Improvements, Side};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Method, Operand, Product, ProductSpec, Requirements, Shape};
use crate::work::Work;
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Plaintext};
use sudare_he::ckks::{Params, ParamsLiteral};

const NAME: &str = "improved3d";

/// Each ciphertext carries as many products as it has lanes.
pub struct Improved3d {
    shape: Shape,
    cube: Cube,
}

impl Improved3d {
    /// Prepares the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots or levels do not suffice, [`MatrixError::He`].
    pub fn new(params: &Params, shape: Shape, options: Improvements) -> Result<Self, MatrixError> {
        Ok(Self { shape, cube: Cube::new(params, CubePlan::new(shape, params.literal(), options)?)? })
    }

    fn groups(&self) -> usize {
        self.shape.batch.div_ceil(self.cube.plan().layout.lanes)
    }
}

/// What the product costs, from its specification alone.
///
/// # Errors
/// As [`Improved3d::new`].
pub fn work(shape: Shape, literal: &ParamsLiteral, options: Improvements) -> Result<Work, MatrixError> {
    let plan = CubePlan::new(shape, literal, options)?;
    let one =
        plan.expand_work(literal, Side::Left) + plan.expand_work(literal, Side::Right) + plan.contract_work(literal, 1);
    Ok(one * shape.batch.div_ceil(plan.layout.lanes) as f64)
}

/// The keys that it needs, from its specification alone.
///
/// # Errors
/// As [`Improved3d::new`].
pub fn keys(shape: Shape, literal: &ParamsLiteral, options: Improvements) -> Result<KeyDemand, MatrixError> {
    Ok(CubePlan::new(shape, literal, options)?.keys(literal))
}

/// Specifications that satisfy the requirements, for the planner to price.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let mut out = Vec::new();
    for real_pairing in [false, true] {
        let base = Improvements { real_pairing, clean_output: !req.decrypt_next, ..Improvements::ALL };
        let least = CubeLayout::least_slots(req.shape, &base);
        let least_log_n = 1 + least.trailing_zeros();
        if least_log_n > 17 || super::common::check_shape(NAME, req.shape).is_err() {
            continue;
        }
        let result = req.max_abs[0] * req.max_abs[1] * req.shape.k.next_power_of_two() as f64;
        let chain: &[bool] = if req.decrypt_next { &[true, false] } else { &[true, false, true] };
        let search = Search { req, least_log_n, result, chain, switching: true };
        let literals = search_literals(&search, |literal| {
            CubePlan::new(req.shape, literal, base)
                .map_or(f64::INFINITY, |plan| plan.predicted_error(literal, 1, req.max_abs))
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

impl Product for Improved3d {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn params(&self) -> &Params {
        self.cube.params()
    }

    fn ciphertexts(&self, _: Operand) -> usize {
        self.groups()
    }

    fn level(&self, operand: Operand) -> usize {
        let top = self.params().max_level();
        if operand == Operand::Output { top - self.cube.plan().options.depth() } else { top }
    }

    fn keys(&self) -> KeyDemand {
        self.cube.plan().keys(self.params().literal())
    }

    fn work(&self) -> Work {
        work(self.shape, self.params().literal(), self.cube.plan().options).unwrap_or_default()
    }

    fn predicted_error(&self, max_abs: [f64; 2]) -> f64 {
        self.cube.plan().predicted_error(self.params().literal(), 1, max_abs)
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(self.params());
        let layout = &self.cube.plan().layout;
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
        check_count("left ciphertexts", left.len(), self.groups())?;
        check_count("right ciphertexts", right.len(), self.groups())?;
        left.iter()
            .zip(right)
            .map(|(a, b)| {
                let a = self.cube.expand(evaluator, Side::Left, a)?;
                let b = self.cube.expand(evaluator, Side::Right, b)?;
                self.cube.contract(evaluator, &[&a], &[&b])
            })
            .collect()
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.groups())?;
        let slots = slots_of(self.params(), output)?;
        let layout = &self.cube.plan().layout;
        (0..self.shape.batch)
            .map(|t| {
                let values = &slots[t / layout.lanes];
                let lane = t % layout.lanes;
                Matrix::from_fn(self.shape.m, self.shape.n, |i, j| values[layout.slot(0, i, j, lane)])
            })
            .collect()
    }
}
