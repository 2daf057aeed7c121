//! The 3-D method exactly as `000` prints it (Algorithms 1–4): 5·log d additions, 7·log d
//! rotations, three products with masks, one product of ciphertexts (its Tables 2 and 5).

use super::common::{check_count, check_depth, check_matrices, mask_values, plain_mask, slots_of};
use super::cube::{CubePlan, Improvements};
use crate::error::MatrixError;
use crate::product::{KeyDemand, Method, Operand, Outline, Peak, Product, ProductSpec, Requirements, Shape};
use crate::tables::Tables;
use crate::work::Work;
use sudare_expr::Matrix;
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Params, ParamsLiteral, Plaintext};

const NAME: &str = "paper3d";
/// Rescales from an operand to the result.
const DEPTH: usize = 3;

/// The product's steps and parameters; no tables. One product a ciphertext, d×d with d a power of
/// two and 2·d³ ≤ N/2; other shapes are padded.
#[derive(Clone, Debug)]
pub struct Plan {
    shape: Shape,
    literal: ParamsLiteral,
    d: usize,
    cube: CubePlan,
}

impl Plan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (2·d³) or levels (3) do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral) -> Result<Self, MatrixError> {
        super::common::check_shape(NAME, shape)?;
        check_depth(NAME, literal, DEPTH)?;
        let d = shape.m.max(shape.k).max(shape.n).next_power_of_two();
        let cube = CubePlan::new(Shape::new(d, d, d), literal, Improvements::NONE)?;
        Ok(Self { shape, literal: literal.clone(), d, cube })
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

    fn ciphertexts(&self, _: Operand) -> usize {
        self.shape.batch
    }

    fn level(&self, operand: Operand) -> usize {
        self.cube.top - if operand == Operand::Output { DEPTH } else { 0 }
    }

    fn keys(&self) -> KeyDemand {
        self.cube.keys(&self.literal)
    }

    fn work(&self) -> Work {
        self.cube.work(&self.literal) * self.shape.batch as f64
    }

    fn table_bytes(&self) -> u64 {
        self.cube.table_bytes(&self.literal)
    }

    fn peaks(&self, max_abs: [f64; 2]) -> Vec<Peak> {
        self.cube.peaks(&self.literal, 1, max_abs)
    }

    fn error(&self, max_abs: [f64; 2]) -> f64 {
        self.cube.error(&self.literal, 1, max_abs)
    }
}

/// The paper's own parameters where they serve.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let params = ParamsLiteral::paper_matmul();
    let serves = Plan::new(req.shape, &params).is_ok_and(|plan| plan.serves(req.max_abs, req.error));
    match params.security >= req.security && serves {
        true => vec![ProductSpec { shape: req.shape, method: Method::Paper3d, params }],
        false => Vec::new(),
    }
}

/// The product under built parameters.
pub struct Paper3d {
    params: Params,
    plan: Plan,
    /// M_C(0), M_R(0) and M_S(0), each scaled by the prime that its rescale drops.
    masks: Tables<[Plaintext; 3]>,
}

impl Paper3d {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: Plan::new(shape, params.literal())?, masks: Tables::new() })
    }

    fn masks(&self) -> Result<&[Plaintext; 3], MatrixError> {
        let (d, top, slots) = (self.plan.d, self.plan.cube.top, self.params.slots());
        let mask = |level: usize, keep: &dyn Fn(usize) -> bool| {
            plain_mask(&self.params, level, &mask_values(slots, 1.0, keep))
        };
        self.masks
            .get(|| Ok([mask(top, &|i| i % d == 0)?, mask(top, &|i| i % (d * d) < d)?, mask(top - 2, &|i| i < d * d)?]))
    }

    /// cMult: product with a mask, rescaled.
    fn masked(&self, e: &Evaluator, a: &Ciphertext, mask: usize) -> Result<Ciphertext, MatrixError> {
        Ok(e.rescale(&e.mul_plain(a, &self.masks()?[mask])?)?)
    }

    /// `a + Rot(a, steps[0] + …)`, each step a rotation of its own.
    fn add_rotated(&self, e: &Evaluator, a: &Ciphertext, steps: &[i64]) -> Result<Ciphertext, MatrixError> {
        let mut turned = e.rotate(a, steps[0])?;
        for step in &steps[1..] {
            turned = e.rotate(&turned, *step)?;
        }
        Ok(e.add(a, &turned)?)
    }

    /// Algorithms 2 (`unit` 1: columns) and 3 (`unit` d: rows).
    fn compute_bar(&self, e: &Evaluator, a: &Ciphertext, unit: i64, mask: usize) -> Result<Ciphertext, MatrixError> {
        let (w, square) = (self.plan.d.trailing_zeros(), (self.plan.d * self.plan.d) as i64);
        let bound = a.bound();
        let mut bar = a.clone();
        for i in 0..w {
            bar = self.add_rotated(e, &bar, &[unit << i, -(square << i)])?;
        }
        // The mask leaves one element where sums were.
        bar = self.masked(e, &bar, mask)?.with_bound(bound);
        for i in 0..w {
            bar = self.add_rotated(e, &bar, &[-(unit << i)])?;
        }
        Ok(bar.with_bound(bound))
    }

    /// Algorithm 4.
    fn compute_c(&self, e: &Evaluator, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, MatrixError> {
        let mut c = e.mul_rescale(a, b)?;
        for i in 0..self.plan.d.trailing_zeros() {
            c = self.add_rotated(e, &c, &[((self.plan.d * self.plan.d) as i64) << i])?;
        }
        self.masked(e, &c, 2)
    }
}

impl Product for Paper3d {
    fn outline(&self) -> &dyn Outline {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn prepare(&self) -> Result<(), MatrixError> {
        self.masks().map(|_| ())
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let d = self.plan.d;
        matrices
            .iter()
            .map(|matrix| {
                let values: Vec<f64> = (0..d * d).map(|i| matrix.get(i / d, i % d)).collect();
                Ok(encoder.encode(&values, max_abs)?)
            })
            .collect()
    }

    /// Algorithm 1 for each product of the batch.
    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.plan.shape.batch)?;
        check_count("right ciphertexts", right.len(), self.plan.shape.batch)?;
        left.iter()
            .zip(right)
            .map(|(a, b)| {
                let a = self.compute_bar(evaluator, a, 1, 0)?;
                let b = self.compute_bar(evaluator, b, self.plan.d as i64, 1)?;
                self.compute_c(evaluator, &a, &b)
            })
            .collect()
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.plan.shape.batch)?;
        let slots = slots_of(&self.params, output)?;
        slots
            .iter()
            .map(|v| Ok(Matrix::from_fn(self.plan.shape.m, self.plan.shape.n, |i, j| v[i * self.plan.d + j])?))
            .collect()
    }
}
