//! The batched ciphertext-matrix method of Cheon–Kang–Lee, ePrint 2025/1957.
//!
//! With Y = X^d the ring is R'\[X\]/(X^d − Y), R' = Z\[Y\]/(Y^(N/d) + 1): a polynomial is a row of
//! d elements of R', and multiplication by s a d×d matrix S. Row-encoded ciphertexts (b_i, a_i)
//! stack to M = B + A·S; those of the transpose, M column-encoded, to M = Bᵀ + Sᵀ·Aᵀ. For M1
//! column-encoded and M2 row-encoded
//!
//! M1·M2 = B1·B2 + (B1·A2)·S + Sᵀ·(A1·B2) + Sᵀ·(A1·A2)·S:
//!
//! four plain matrix products over R'_q, and Sᵀ·X of a known X, which is a transposition of
//! ciphertext rows (0, x_i): d − 1 key switches whatever the number of products. The result is
//! row-encoded, of three parts until d relinearisations.
//!
//! R' carries `slots` independent products in its complex slots; what is left of it carries the
//! contraction: real and imaginary parts one pair of terms, and g = N/(2·d·slots) powers of Y
//! one pair each (on the left at Y^f, on the right at Y^−f), so that the real part of the slots
//! of the coefficient at Y^0 is a sum of 2·g terms.
//!
//! The other coefficients and the imaginary parts of a result hold cross sums of products of
//! elements: whoever decrypts sees them as well as the product.

mod layout;
mod search;

use crate::error::MatrixError;
use crate::portable::{self, Portable, Reading};
use crate::product::{Figures, Product, ProductPlan};
use crate::products::coefficient::{check_count, check_matrices};
use crate::slots::common::check_shape;
use layout::Layout;
pub use search::{candidates, compact};
use serde::{Deserialize, Serialize};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::circuits::block_product::BlockProduct;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Params, ParamsLiteral, Plaintext,
};
use sudare_ring::threads;
use sudare_rlwe::{Backend, Blocks};
use zeroize::Zeroizing;

const NAME: &str = "module";

/// Options of the module method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleOptions {
    /// Rows and columns of a block of the result, d: a power of two, 8 to N/4.
    pub side: usize,
    /// Products that share ciphertexts: a power of two, up to N/(2·side).
    pub slots: usize,
    /// Whether results are relinearised and rescaled: two parts and fewer primes in place of
    /// three and all, for one key switch each.
    pub relinearize: bool,
}

/// The size of a complex pair of elements up to one, and so of a coefficient: √2, rounded up.
const PAIR: f64 = 1.4143;

/// The product's sizes and parameters; no tables.
#[derive(Clone, Debug)]
pub struct ModulePlan {
    shape: Shape,
    literal: ParamsLiteral,
    options: ModuleOptions,
}

impl ModulePlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for an empty shape, a side or a number of slots that the ring
    /// cannot have, or parameters without special primes.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: ModuleOptions) -> Result<Self, MatrixError> {
        check(shape, literal, &options)?;
        Ok(Self { shape, literal: literal.clone(), options })
    }

    /// Terms of the contraction in one ciphertext.
    fn terms(&self) -> usize {
        (1 << self.literal.log_n) / (self.options.side * self.options.slots)
    }

    /// Blocks of both operands and of the result.
    fn blocks(&self) -> Blocks {
        let (Shape { m, k, n, batch }, ModuleOptions { side, slots, relinearize }) = (self.shape, self.options);
        Blocks {
            side,
            groups: batch.div_ceil(slots),
            block_rows: m.div_ceil(side),
            block_columns: n.div_ceil(side),
            terms: k.div_ceil(self.terms()),
            rows: m,
            relinearize,
        }
    }
}

impl ProductPlan for ModulePlan {
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
        let [left, right, output] = self.blocks().counts();
        match operand {
            Operand::Left => left,
            Operand::Right => right,
            Operand::Output => output,
        }
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

impl Portable for ModulePlan {
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
        let blocks = self.blocks();
        let occupied = self.shape.k as f64 / (blocks.terms * self.terms()) as f64;
        Ok(e.block_products(left, right, &BlockProduct { blocks, occupied })?)
    }

    /// The message's bound is the Euclidean norm of a row.
    fn message(&self, _: Operand, max_abs: f64) -> (f64, f64) {
        (max_abs * PAIR, max_abs * ((self.options.side * self.terms()) as f64).sqrt())
    }

    fn reading(&self) -> Reading {
        Reading::Embedded { slots: self.options.slots, error: layout::embedding_error(self.options.slots) }
    }
}

/// A product by the module method; see the [module](self).
#[derive(Debug)]
pub struct Module {
    params: Params,
    plan: ModulePlan,
    layout: Layout,
}

/// Refuses what the method cannot serve.
fn check(shape: Shape, literal: &ParamsLiteral, options: &ModuleOptions) -> Result<(), MatrixError> {
    let refuse = |reason: String| Err(MatrixError::Method { method: NAME, reason });
    let (n, d, slots) = (1usize.checked_shl(literal.log_n).unwrap_or(0), options.side, options.slots);
    check_shape(NAME, shape)?;
    if !d.is_power_of_two() || d < 8 || d > n / 4 {
        return refuse(format!("side {d} is not a power of two from 8 to N/4 = {}", n / 4));
    }
    if !slots.is_power_of_two() || slots > n / (2 * d) {
        return refuse(format!("{slots} slots are not a power of two up to N/(2·side) = {}", n / (2 * d)));
    }
    if literal.p_bits.is_empty() || literal.q_bits.is_empty() || literal.digit_limbs == 0 {
        return refuse("its key switching needs data primes, special primes and digits of at least one prime".into());
    }
    Ok(())
}

impl Module {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`ModulePlan::new`]; [`MatrixError::He`].
    pub fn new(shape: Shape, params: &Params, options: ModuleOptions) -> Result<Self, MatrixError> {
        let plan = ModulePlan::new(shape, params.literal(), options)?;
        let layout = Layout::new(params.degree(), options.side, options.slots)?;
        Ok(Self { params: params.clone(), plan, layout })
    }

    /// Rows of the result in block row `i`.
    fn rows(&self, i: usize) -> usize {
        self.plan.options.side.min(self.plan.shape.m - i * self.plan.options.side)
    }
}

impl Product for Module {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let Blocks { groups, terms, .. } = self.plan.blocks();
        let blocks = self.ciphertexts(operand) / terms;
        let per_group = blocks / groups;
        let encoder = Encoder::new(&self.params);
        let (d, slots, per_term) = (self.plan.options.side, self.plan.options.slots, self.plan.terms());
        let (values, bound) = self.plan.message(operand, max_abs);
        let at = EncodeAt { max_abs: values, ..encoder.at_top(max_abs) };
        let plaintexts = threads::map(blocks * terms, |index| {
            let (block, term) = (index / terms, index % terms);
            let (group, block) = (block / per_group, block % per_group);
            let element = |slot: usize, i: usize, t: usize| {
                let (i, t) = (block * d + i, term * per_term + t);
                matrices.get(group * slots + slot).map_or(0.0, |m| match operand {
                    Operand::Left => m.get(i, t),
                    _ => m.get(t, i),
                })
            };
            let values = self.layout.encode(element, operand == Operand::Right);
            Ok(encoder.encode_coefficients(&values, at)?.with_bound(bound))
        });
        plaintexts.into_iter().collect()
    }

    /// A result's rows hold their elements where the first term of a left row's pair would stand.
    fn encode_addend(&self, matrices: &[Matrix], at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, Operand::Output, matrices, at.max_abs)?;
        let Blocks { groups, block_rows, block_columns, side: d, .. } = self.plan.blocks();
        let (encoder, slots) = (Encoder::new(&self.params), self.plan.options.slots);
        let blocks =
            (0..groups).flat_map(|g| (0..block_rows).flat_map(move |i| (0..block_columns).map(move |j| (g, i, j))));
        let rows: Vec<_> = blocks.flat_map(|(g, i, j)| (0..self.rows(i)).map(move |r| (g, i * d + r, j * d))).collect();
        let one = |index: usize| {
            let (group, row, first) = rows[index];
            let element = |slot: usize, i: usize, t: usize| match (t, matrices.get(group * slots + slot)) {
                (0, Some(m)) => m.get(row, first + i),
                _ => 0.0,
            };
            let values = self.layout.encode(element, false);
            // A complex slot's coefficients are no larger than it.
            Ok(encoder.encode_coefficients(&values, at)?.with_bound(at.max_abs))
        };
        threads::map(rows.len(), one).into_iter().collect()
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
        let Blocks { block_rows, block_columns, side: d, .. } = self.plan.blocks();
        let slots = self.plan.options.slots;
        let Shape { m, n, batch, .. } = self.plan.shape;
        let encoder = Encoder::new(&self.params);
        let rows = threads::map(output.len(), |at| {
            let coefficients = Zeroizing::new(encoder.decode_coefficients(&output[at])?);
            Ok::<_, MatrixError>(self.layout.decode(&coefficients))
        });
        let rows = Zeroizing::new(rows.into_iter().collect::<Result<Vec<_>, _>>()?);
        let mut data = vec![vec![0.0; m * n]; batch];
        let mut next = rows.iter().enumerate();
        for group in 0..batch.div_ceil(slots) {
            for i in 0..block_rows {
                for j in 0..block_columns {
                    for (row, (_, values)) in (i * d..).zip(next.by_ref().take(self.rows(i))) {
                        for (slot, matrix) in data[group * slots..].iter_mut().take(slots).enumerate() {
                            for col in j * d..n.min((j + 1) * d) {
                                matrix[row * n + col] = values[(col - j * d) * slots + slot];
                            }
                        }
                    }
                }
            }
        }
        data.into_iter().map(|data| Ok(Matrix::new(m, n, data)?)).collect()
    }
}
