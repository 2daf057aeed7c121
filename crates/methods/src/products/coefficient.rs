//! The coefficient product: one multiplication of polynomials, no rotation, no mask.
//!
//! Duong–Mishra–Yasuda's packing (`002`) for matrices: a\[i,t\] stands at X^(i·k+t) and b\[t,j\]
//! at X^(j·m·k + (k−1−t)), so that coefficient j·m·k + i·k + k−1 of the product is Σ_t a\[i,t\]·b\[t,j\].
//! It needs m·k·n ≤ N; larger products are cut into blocks, summed over the contraction index
//! before anything else. Operands have to be encrypted for it, and the result is for decryption:
//! nothing relinearises unless smaller results are asked for, so that no key is needed at all.
//!
//! The other coefficients of a result hold partial sums of products of elements: whoever
//! decrypts sees them as well as the product.

use crate::blocked::Blocked;
use crate::error::MatrixError;
use crate::portable::{self, Portable, Reading};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::products::{Method, ProductSpec};
use crate::sizing;
use crate::slots::common::check_shape;
use serde::{Deserialize, Serialize};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_ring::threads;
use sudare_rlwe::Backend;
use zeroize::Zeroizing;

const NAME: &str = "coefficient";

/// Options of the coefficient product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoefficientOptions {
    /// Rows, contraction length and columns of a block; their product is at most N.
    pub block: (usize, usize, usize),
    /// Whether results are relinearised: two parts in place of three, for one key switch each.
    pub relinearize: bool,
}

/// Numbers of blocks along m, k and n.
fn counts(shape: Shape, (m, k, n): (usize, usize, usize)) -> (usize, usize, usize) {
    (shape.m.div_ceil(m), shape.k.div_ceil(k), shape.n.div_ceil(n))
}

/// Passes over a polynomial that a block size costs: products, and reading and writing.
fn passes(shape: Shape, block: (usize, usize, usize)) -> usize {
    let (i, t, j) = counts(shape, block);
    4 * i * t * j + 2 * (i * t + t * j) + 3 * i * j
}

/// The distinct block sizes that cut a length evenly, at most `limit`.
fn cuts(length: usize, limit: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut parts = length.div_ceil(limit);
    while parts <= length {
        let size = length.div_ceil(parts);
        sizes.push(size);
        // The next number of parts with a smaller block.
        parts = if size > 1 { length.div_ceil(size - 1) } else { length + 1 };
    }
    sizes
}

/// The block size that costs least at a ring degree.
fn best_block(shape: Shape, n: usize) -> (usize, usize, usize) {
    let sizes = cuts(shape.m, n).into_iter().flat_map(|a| cuts(shape.k, n / a).into_iter().map(move |b| (a, b)));
    sizes
        .filter_map(|(a, b)| cuts(shape.n, n / (a * b)).first().map(|c| (a, b, *c)))
        .min_by_key(|block| passes(shape, *block))
        .unwrap_or((1, 1, 1))
}

/// What the method proposes: a chain for each ring degree that reaches the wanted error.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    if req.fresh != [true, true] || !req.decrypt_next || check_shape(NAME, req.shape).is_err() {
        return Vec::new();
    }
    let found = (11..=15).flat_map(|log_n| {
        let block = best_block(req.shape, 1 << log_n);
        [false, true]
            .into_iter()
            .filter_map(move |relinearize| propose(req, log_n, CoefficientOptions { block, relinearize }))
    });
    found.take(6).collect()
}

fn propose(req: &Requirements, log_n: u32, options: CoefficientOptions) -> Option<ProductSpec> {
    let literal = |log_scale: u32| {
        let ample = CoefficientPlan {
            shape: req.shape,
            literal: sizing::ample(log_n, log_scale),
            options: CoefficientOptions { relinearize: false, ..options },
        };
        let mut literal = sizing::bare(log_n, log_scale, req.security);
        literal.q_bits = sizing::chain(portable::modulus_bits(&ample, req.max_abs).ok()?);
        if options.relinearize {
            literal.p_bits = literal.q_bits.clone();
            literal.digit_limbs = literal.q_bits.len();
        }
        // A larger scale takes a larger modulus.
        sizing::secure(&literal).then_some(literal)
    };
    let serves = |literal: &ParamsLiteral| {
        CoefficientPlan { shape: req.shape, literal: literal.clone(), options }.serves(req.max_abs, req.error)
    };
    // A larger scale is more exact.
    let scales: Vec<u32> = (16..=sizing::MAX_LOG_SCALE).collect();
    let least = scales.partition_point(|scale| literal(*scale).is_some_and(|literal| !serves(&literal)));
    let params = literal(*scales.get(least)?).filter(serves)?;
    Some(ProductSpec { shape: req.shape, method: Method::Coefficient(options), params })
}

/// Refuses what the method cannot serve.
fn check(shape: Shape, literal: &ParamsLiteral, options: &CoefficientOptions) -> Result<(), MatrixError> {
    let refuse = |reason: String| Err(MatrixError::Method { method: NAME, reason });
    let (a, b, c) = options.block;
    let volume = a.checked_mul(b).and_then(|x| x.checked_mul(c)).unwrap_or(0);
    let degree = 1usize.checked_shl(literal.log_n).unwrap_or(0);
    check_shape(NAME, shape)?;
    if volume == 0 || volume > degree {
        return refuse(format!(
            "a block has at least one and at most N = {degree} coefficients, and {a}×{b}×{c} has not; take another \
             block or ring"
        ));
    }
    if options.relinearize && literal.p_bits.is_empty() {
        return refuse("relinearisation needs special primes; take parameters with some".into());
    }
    Ok(())
}

/// The product's sizes and parameters.
#[derive(Clone, Debug)]
pub struct CoefficientPlan {
    shape: Shape,
    literal: ParamsLiteral,
    options: CoefficientOptions,
}

impl CoefficientPlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for an empty shape, a block that does not fit the ring, or a
    /// relinearisation without special primes.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: CoefficientOptions) -> Result<Self, MatrixError> {
        check(shape, literal, &options)?;
        Ok(Self { shape, literal: literal.clone(), options })
    }

    fn counts(&self) -> (usize, usize, usize) {
        counts(self.shape, self.options.block)
    }

    /// Coefficient of element (r, c) of an operand's block.
    fn place(&self, operand: Operand, r: usize, c: usize) -> usize {
        let (a, b, _) = self.options.block;
        match operand {
            Operand::Left => r * b + c,
            Operand::Right => c * a * b + b - 1 - r,
            Operand::Output => c * a * b + r * b + b - 1,
        }
    }

    /// Rows and columns of blocks, and of elements in a block.
    fn grid(&self, operand: Operand) -> ((usize, usize), (usize, usize)) {
        let ((i, t, j), (a, b, c)) = (self.counts(), self.options.block);
        match operand {
            Operand::Left => ((i, t), (a, b)),
            Operand::Right => ((t, j), (b, c)),
            Operand::Output => ((i, j), (a, c)),
        }
    }
}

impl ProductPlan for CoefficientPlan {
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
        let (rows, cols) = self.grid(operand).0;
        self.shape.batch * rows * cols
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

/// A coefficient product; see the [module](self).
#[derive(Debug)]
pub struct Coefficient {
    params: Params,
    plan: CoefficientPlan,
}

impl Coefficient {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`CoefficientPlan::new`].
    pub fn new(shape: Shape, params: &Params, options: CoefficientOptions) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: CoefficientPlan::new(shape, params.literal(), options)? })
    }
}

impl CoefficientPlan {
    /// What is done to a sum of products.
    fn ended<B: Backend>(
        &self,
        evaluator: &Evaluator<B>,
        sum: CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        Ok(if self.options.relinearize { evaluator.relinearize(&sum)? } else { sum })
    }
}

impl Portable for CoefficientPlan {
    type Tables<B: Backend> = ();

    fn tables<B: Backend>(&self, _: &Evaluator<B>) -> Result<(), MatrixError> {
        Ok(())
    }

    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        (): &(),
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.ciphertexts(Operand::Left))?;
        check_count("right ciphertexts", right.len(), self.ciphertexts(Operand::Right))?;
        let (i, t, j) = self.counts();
        let lines = |index: usize| {
            let (batch, row, col) = (index / (i * j), index / j % i, index % j);
            let row = (0..t).map(|at| left.at((batch * i + row) * t + at));
            row.chain((0..t).map(|at| right.at((batch * t + at) * j + col))).collect()
        };
        let product = |lines: &[&CiphertextOf<B>]| self.ended(e, e.dot(&lines[..t], &lines[t..])?);
        e.each(Order::SideBySide, self.ciphertexts(Operand::Output), lines, product)
    }

    /// The message's bound is the Euclidean norm of a block: the zeros between its elements add nothing.
    fn message(&self, operand: Operand, max_abs: f64) -> (f64, f64) {
        let (_, (rows, cols)) = self.grid(operand);
        (max_abs, max_abs * ((rows * cols) as f64).sqrt())
    }

    fn reading(&self) -> Reading {
        Reading::Coefficients
    }
}

impl Coefficient {
    /// The block `index` of the matrices of a batch.
    fn block(
        &self,
        operand: Operand,
        matrices: &[Matrix],
        at: EncodeAt,
        index: usize,
    ) -> Result<Plaintext, MatrixError> {
        let ((grid_rows, grid_cols), (rows, cols)) = self.plan.grid(operand);
        let (matrix, block) = (&matrices[index / (grid_rows * grid_cols)], index % (grid_rows * grid_cols));
        let length = self.plan.place(operand, rows - 1, cols - 1).max(self.plan.place(operand, 0, cols - 1)) + 1;
        let (r0, c0) = (block / grid_cols * rows, block % grid_cols * cols);
        let mut values = vec![0.0; length];
        for r in 0..rows {
            for c in 0..cols {
                values[self.plan.place(operand, r, c)] = matrix.get(r0 + r, c0 + c);
            }
        }
        let encoded = Encoder::new(&self.params).encode_coefficients(&values, at)?;
        Ok(encoded.with_bound(self.plan.message(operand, at.max_abs).1))
    }
}

impl Product for Coefficient {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let count = self.ciphertexts(operand);
        threads::map(count, |index| self.encode_block(operand, matrices, max_abs, index)).into_iter().collect()
    }

    fn encode_addend(&self, matrices: &[Matrix], at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, Operand::Output, matrices, at.max_abs)?;
        let count = self.ciphertexts(Operand::Output);
        threads::map(count, |index| self.block(Operand::Output, matrices, at, index)).into_iter().collect()
    }

    fn blocked(&self) -> Option<&dyn Blocked> {
        Some(self)
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.plan.multiply(evaluator, &(), left.into(), right.into())
    }

    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("results", output.len(), self.ciphertexts(Operand::Output))?;
        let ((grid_rows, grid_cols), (rows, cols)) = self.plan.grid(Operand::Output);
        let blocks = threads::map(output.len(), |b| self.decode_block(Operand::Output, &output[b]));
        let blocks = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
        blocks
            .chunks_exact(grid_rows * grid_cols)
            .map(|blocks| {
                Ok(Matrix::from_fn(self.plan.shape.m, self.plan.shape.n, |r, c| {
                    blocks[r / rows * grid_cols + c / cols][r % rows * cols + c % cols]
                })?)
            })
            .collect()
    }
}

impl Blocked for Coefficient {
    fn grid(&self, operand: Operand) -> (usize, usize) {
        self.plan.grid(operand).0
    }

    fn block_shape(&self, operand: Operand) -> (usize, usize) {
        self.plan.grid(operand).1
    }

    fn encode_block(
        &self,
        operand: Operand,
        matrices: &[Matrix],
        max_abs: f64,
        index: usize,
    ) -> Result<Plaintext, MatrixError> {
        let at = Encoder::new(&self.params).at_top(max_abs);
        self.block(operand, matrices, at, index)
    }

    fn decode_block(&self, operand: Operand, block: &Decrypted) -> Result<Zeroizing<Vec<f64>>, MatrixError> {
        let (rows, cols) = self.plan.grid(operand).1;
        let values = Zeroizing::new(Encoder::new(&self.params).decode_coefficients(block)?);
        Ok(Zeroizing::new((0..rows * cols).map(|e| values[self.plan.place(operand, e / cols, e % cols)]).collect()))
    }

    fn finish(&self, evaluator: &Evaluator, sum: Ciphertext) -> Result<Ciphertext, MatrixError> {
        self.plan.ended(evaluator, sum)
    }
}

/// Refuses another number of ciphertexts than planned.
///
/// # Errors
/// [`MatrixError::Count`].
pub fn check_count(what: &'static str, found: usize, expected: usize) -> Result<(), MatrixError> {
    if found == expected { Ok(()) } else { Err(MatrixError::Count { what, found, expected }) }
}

/// Refuses operands of another number, shape or size than planned.
///
/// # Errors
/// [`MatrixError::Count`], [`MatrixError::PlannedShape`]; [`MatrixError::Expr`] for an element over `max_abs`.
pub fn check_matrices(shape: Shape, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<(), MatrixError> {
    check_count("matrices", matrices.len(), shape.batch)?;
    let (what, expected) = match operand {
        Operand::Left => ("the left matrix", shape.of(operand)),
        Operand::Right => ("the right matrix", shape.of(operand)),
        Operand::Output => ("the result", shape.of(operand)),
    };
    for matrix in matrices {
        if matrix.shape() != expected {
            return Err(MatrixError::PlannedShape { what, found: matrix.shape(), expected });
        }
        matrix.check_bound(max_abs)?;
    }
    Ok(())
}
