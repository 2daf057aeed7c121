//! The 3-D method exactly as `000` prints it (Algorithms 1–4): 5·log d additions, 7·log d
//! rotations, three products with masks, one product of ciphertexts (its Tables 2 and 5).

use crate::error::MatrixError;
use crate::portable::{self, Portable};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::products::{Method, ProductSpec};
use crate::slots::common::{check_count, check_depth, check_matrices, slots_of};
use crate::slots::cube::{CubePlan, Improvements};
use crate::tables::Tables;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, Encoder, Evaluator, Images, Mask, Order, Params, ParamsLiteral,
    Plaintext, PlaintextOf,
};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::{Backend, KeyId};

const NAME: &str = "paper3d";
/// Rescales from an operand to the result.
const DEPTH: usize = 3;

/// The product's steps and parameters; no tables. One product a ciphertext, d×d with d a power of
/// two and 2·d³ ≤ N/2; other shapes are padded.
#[derive(Clone, Debug)]
pub struct Paper3dPlan {
    shape: Shape,
    literal: ParamsLiteral,
    d: usize,
    cube: CubePlan,
}

impl Paper3dPlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (2·d³) or levels (3) do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral) -> Result<Self, MatrixError> {
        crate::slots::common::check_shape(NAME, shape)?;
        check_depth(NAME, literal, DEPTH)?;
        let d = shape.m.max(shape.k).max(shape.n).next_power_of_two();
        let cube = CubePlan::new(Shape::new(d, d, d), literal, Improvements::NONE)?;
        Ok(Self { shape, literal: literal.clone(), d, cube })
    }
}

impl ProductPlan for Paper3dPlan {
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

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

/// The paper's own parameters where they serve.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let params = ParamsLiteral::paper_matmul();
    let serves = Paper3dPlan::new(req.shape, &params).is_ok_and(|plan| plan.serves(req.max_abs, req.error));
    match params.security >= req.security && serves {
        true => vec![ProductSpec { shape: req.shape, method: Method::Paper3d, params }],
        false => Vec::new(),
    }
}

/// The product under built parameters.
pub struct Paper3d {
    params: Params,
    plan: Paper3dPlan,
    /// M_C(0), M_R(0) and M_S(0), each scaled by the prime that its rescale drops.
    masks: Tables<[Plaintext; 3]>,
}

impl Paper3d {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Paper3dPlan::new`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: Paper3dPlan::new(shape, params.literal())?, masks: Tables::new() })
    }

    fn masks(&self) -> Result<&[Plaintext; 3], MatrixError> {
        self.masks.get(|| self.plan.tables(&Evaluator::new(&self.params, EvalKeys::new(&self.params, KeyId::NONE))?))
    }
}

/// Three masks as a backend keeps them.
type Masks<B> = [PlaintextOf<B>; 3];

impl Paper3dPlan {
    /// `a + Rot(a, steps[0] + …)`, each step a rotation of its own.
    fn add_rotated<B: Backend>(
        e: &Evaluator<B>,
        a: &CiphertextOf<B>,
        steps: &[i64],
        images: Images,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let mut rotated = e.rotate(a, steps[0])?;
        for step in &steps[1..] {
            rotated = e.rotate(&rotated, *step)?;
        }
        let (before, switched) = (a.spread(), rotated.spread().real.held - a.spread().real.held);
        Ok(e.add(a, &rotated)?.with_spread(before.images(2.0, images).plus(switched)))
    }

    /// Algorithms 2 (`unit` 1: columns) and 3 (`unit` d: rows).
    fn compute_bar<B: Backend>(
        &self,
        e: &Evaluator<B>,
        a: &CiphertextOf<B>,
        unit: i64,
        mask: &PlaintextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let (w, square) = (self.d.trailing_zeros(), (self.d * self.d) as i64);
        let bound = a.bound();
        let mut bar = a.clone();
        for i in 0..w {
            bar = Self::add_rotated(e, &bar, &[unit << i, -(square << i)], Images::Disjoint)?;
        }
        // The mask leaves one element where sums were.
        bar = e.rescale(&e.mul_plain(&bar.with_bound(bound), mask)?)?.with_bound(bound);
        for i in 0..w {
            bar = Self::add_rotated(e, &bar, &[-(unit << i)], Images::Disjoint)?;
        }
        Ok(bar.with_bound(bound))
    }
}

impl Portable for Paper3dPlan {
    type Tables<B: Backend> = Masks<B>;

    /// M_C(0), M_R(0) and M_S(0).
    fn tables<B: Backend>(&self, e: &Evaluator<B>) -> Result<Masks<B>, MatrixError> {
        let (d, top) = (self.d, self.cube.top);
        Ok([
            e.mask(&Mask { level: top, value: 1.0, period: d, keep: |i: usize| i.is_multiple_of(d) })?,
            e.mask(&Mask { level: top, value: 1.0, period: d * d, keep: |i: usize| i % (d * d) < d })?,
            e.mask(&Mask { level: top - 2, value: 1.0, period: usize::MAX, keep: |i: usize| i < d * d })?,
        ])
    }

    /// Algorithm 1 for each product of the batch.
    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        masks: &Masks<B>,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.shape.batch)?;
        check_count("right ciphertexts", right.len(), self.shape.batch)?;
        let square = (self.d * self.d) as i64;
        let one = |pair: &[&CiphertextOf<B>]| {
            let a = self.compute_bar(e, pair[0], 1, &masks[0])?;
            let b = self.compute_bar(e, pair[1], self.d as i64, &masks[1])?;
            // Algorithm 4.
            let mut c = e.mul_rescale(&a, &b)?;
            for i in 0..self.d.trailing_zeros() {
                c = Self::add_rotated(e, &c, &[square << i], Images::Overlapping)?;
            }
            Ok(e.rescale(&e.mul_plain(&c, &masks[2])?)?)
        };
        e.each(Order::InTurn, left.len(), |i| vec![left.at(i), right.at(i)], one)
    }
}

impl Product for Paper3d {
    fn plan(&self) -> &dyn ProductPlan {
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

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.plan.multiply(evaluator, self.masks()?, left.into(), right.into())
    }

    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.plan.shape.batch)?;
        let slots = slots_of(&self.params, output)?;
        slots
            .iter()
            .map(|v| Ok(Matrix::from_fn(self.plan.shape.m, self.plan.shape.n, |i, j| v[i * self.plan.d + j])?))
            .collect()
    }
}
