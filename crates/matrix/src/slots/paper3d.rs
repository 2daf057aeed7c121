//! The 3-D method exactly as `000` prints it (Algorithms 1–4): 5·log d additions, 7·log d
//! rotations, three products with masks, one product of ciphertexts (its Tables 2 and 5).

use super::common::{check_count, check_depth, check_matrices, mask_values, plain_mask, slots_of};
use super::cube::{CubePlan, Improvements, Side};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Method, Operand, Product, ProductSpec, Requirements, Shape};
use crate::work::Work;
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Plaintext};
use sudare_he::ckks::{Params, ParamsLiteral};

const NAME: &str = "paper3d";

/// One product a ciphertext, d×d with d a power of two and 2·d³ ≤ N/2; other shapes are padded.
pub struct Paper3d {
    params: Params,
    shape: Shape,
    d: usize,
    /// M_C(0), M_R(0) and M_S(0), each scaled by the prime that its rescale drops.
    masks: [Plaintext; 3],
}

/// d.
fn side_of(shape: Shape) -> usize {
    shape.m.max(shape.k).max(shape.n).next_power_of_two()
}

fn plan(shape: Shape, literal: &ParamsLiteral) -> Result<CubePlan, MatrixError> {
    super::common::check_shape(NAME, shape)?;
    check_depth(NAME, literal, 3)?;
    let d = side_of(shape);
    CubePlan::new(Shape::new(d, d, d), literal, Improvements::NONE)
}

/// What the product costs, from its specification alone.
///
/// # Errors
/// As [`Paper3d::new`].
pub fn work(shape: Shape, literal: &ParamsLiteral) -> Result<Work, MatrixError> {
    let plan = plan(shape, literal)?;
    let one =
        plan.expand_work(literal, Side::Left) + plan.expand_work(literal, Side::Right) + plan.contract_work(literal, 1);
    Ok(one * shape.batch as f64)
}

/// The keys that it needs, from its specification alone.
///
/// # Errors
/// As [`Paper3d::new`].
pub fn keys(shape: Shape, literal: &ParamsLiteral) -> Result<KeyDemand, MatrixError> {
    Ok(plan(shape, literal)?.keys(literal))
}

/// The paper's own parameters where they serve.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let params = ParamsLiteral::paper_matmul();
    let largest = req.max_abs[0] * req.max_abs[1] * req.shape.k as f64;
    let fits = params.security >= req.security && largest.max(1.0).log2() + 43.0 <= 60.0;
    let error = plan(req.shape, &params).map_or(f64::INFINITY, |p| p.predicted_error(&params, 1, req.max_abs));
    match fits && error <= req.error {
        true => vec![ProductSpec { shape: req.shape, method: Method::Paper3d, params }],
        false => Vec::new(),
    }
}

impl Paper3d {
    /// Prepares the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (2·d³) or levels (3) do not suffice, [`MatrixError::He`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        let top = plan(shape, params.literal())?.top;
        let (d, slots) = (side_of(shape), params.slots());
        let masks = [
            plain_mask(params, top, &mask_values(slots, 1.0, |i| i % d == 0))?,
            plain_mask(params, top, &mask_values(slots, 1.0, |i| i % (d * d) < d))?,
            plain_mask(params, top - 2, &mask_values(slots, 1.0, |i| i < d * d))?,
        ];
        Ok(Self { params: params.clone(), shape, d, masks })
    }

    /// cMult: product with a mask, rescaled.
    fn masked(&self, e: &Evaluator, a: &Ciphertext, mask: usize) -> Result<Ciphertext, MatrixError> {
        Ok(e.rescale(&e.mul_plain(a, &self.masks[mask])?)?)
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
        let (w, square) = (self.d.trailing_zeros(), (self.d * self.d) as i64);
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
        for i in 0..self.d.trailing_zeros() {
            c = self.add_rotated(e, &c, &[((self.d * self.d) as i64) << i])?;
        }
        self.masked(e, &c, 2)
    }
}

impl Product for Paper3d {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn ciphertexts(&self, _: Operand) -> usize {
        self.shape.batch
    }

    fn level(&self, operand: Operand) -> usize {
        let top = self.params.max_level();
        if operand == Operand::Output { top - 3 } else { top }
    }

    fn keys(&self) -> KeyDemand {
        keys(self.shape, self.params.literal()).unwrap_or_default()
    }

    fn work(&self) -> Work {
        work(self.shape, self.params.literal()).unwrap_or_default()
    }

    fn predicted_error(&self, max_abs: [f64; 2]) -> f64 {
        let literal = self.params.literal();
        plan(self.shape, literal).map_or(f64::INFINITY, |p| p.predicted_error(literal, 1, max_abs))
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let d = self.d;
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
        check_count("left ciphertexts", left.len(), self.shape.batch)?;
        check_count("right ciphertexts", right.len(), self.shape.batch)?;
        left.iter()
            .zip(right)
            .map(|(a, b)| {
                let a = self.compute_bar(evaluator, a, 1, 0)?;
                let b = self.compute_bar(evaluator, b, self.d as i64, 1)?;
                self.compute_c(evaluator, &a, &b)
            })
            .collect()
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.shape.batch)?;
        let slots = slots_of(&self.params, output)?;
        slots.iter().map(|v| Matrix::from_fn(self.shape.m, self.shape.n, |i, j| v[i * self.d + j])).collect()
    }
}
