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
mod sizes;

use crate::coefficient::{check_count, check_matrices};
use crate::error::MatrixError;
use crate::product::{Outline, Product};
use crate::slots::common::check_shape;
use layout::Layout;
use serde::{Deserialize, Serialize};
pub use sizes::{Plan, candidates};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::circuits::block_product::BlockProduct;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_ring::threads;
use sudare_rlwe::Blocks;
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

/// A product by the module method; see the [module](self).
#[derive(Debug)]
pub struct Module {
    params: Params,
    plan: Plan,
    layout: Layout,
}

/// Refuses what the method cannot serve.
fn check(shape: Shape, literal: &ParamsLiteral, options: &ModuleOptions) -> Result<(), MatrixError> {
    let refuse = |reason: String| Err(MatrixError::Method { method: NAME, reason });
    let (n, d, slots) = (1usize.checked_shl(literal.log_n).unwrap_or(0), options.side, options.slots);
    check_shape(NAME, shape)?;
    if !d.is_power_of_two() || d < 8 || d > n / 4 {
        return refuse(format!("side {d} is no power of two from 8 to N/4 = {}", n / 4));
    }
    if !slots.is_power_of_two() || slots > n / (2 * d) {
        return refuse(format!("{slots} slots are no power of two up to N/(2·side) = {}", n / (2 * d)));
    }
    if literal.p_bits.is_empty() || literal.q_bits.is_empty() || literal.digit_limbs == 0 {
        return refuse("key switching needs special primes".into());
    }
    Ok(())
}

impl Module {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Plan::new`]; [`MatrixError::He`].
    pub fn new(shape: Shape, params: &Params, options: ModuleOptions) -> Result<Self, MatrixError> {
        let plan = Plan::new(shape, params.literal(), options)?;
        let layout = Layout::new(params.degree(), options.side, options.slots)?;
        Ok(Self { params: params.clone(), plan, layout })
    }

    /// Rows of the result in block row `i`.
    fn rows(&self, i: usize) -> usize {
        self.plan.options.side.min(self.plan.shape.m - i * self.plan.options.side)
    }
}

impl Product for Module {
    fn outline(&self) -> &dyn Outline {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let terms = self.plan.counts().3;
        let blocks = self.ciphertexts(operand) / terms;
        let per_group = blocks / self.plan.counts().0;
        let encoder = Encoder::new(&self.params);
        let (d, slots, per_term) = (self.plan.options.side, self.plan.options.slots, self.layout.terms());
        // A complex pair of elements is √2 times as large as one, and so may a coefficient be.
        let at = EncodeAt { max_abs: max_abs * 1.4143, ..encoder.at_top(max_abs) };
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
            Ok(encoder.encode_coefficients(&values, at)?.with_bound(max_abs * self.layout.row_norm()))
        });
        plaintexts.into_iter().collect()
    }

    /// A result's rows hold their elements where the first term of a left row's pair would stand.
    fn encode_addend(&self, matrices: &[Matrix], at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, Operand::Output, matrices, at.max_abs)?;
        let ((groups, block_rows, block_cols, _), d) = (self.plan.counts(), self.plan.options.side);
        let (encoder, slots) = (Encoder::new(&self.params), self.plan.options.slots);
        let blocks =
            (0..groups).flat_map(|g| (0..block_rows).flat_map(move |i| (0..block_cols).map(move |j| (g, i, j))));
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
        check_count("left ciphertexts", left.len(), self.ciphertexts(Operand::Left))?;
        check_count("right ciphertexts", right.len(), self.ciphertexts(Operand::Right))?;
        let (groups, block_rows, block_columns, terms) = self.plan.counts();
        let ModuleOptions { side, relinearize, .. } = self.plan.options;
        let Shape { m: rows, k, .. } = self.plan.shape;
        let blocks = Blocks { side, groups, block_rows, block_columns, terms, rows, relinearize };
        let product = BlockProduct { blocks, occupied: k as f64 / (terms * self.layout.terms()) as f64 };
        Ok(evaluator.block_products(left.into(), right.into(), &product)?)
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("results", output.len(), self.ciphertexts(Operand::Output))?;
        let (_, block_rows, block_cols, _) = self.plan.counts();
        let (d, slots) = (self.plan.options.side, self.plan.options.slots);
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
                for j in 0..block_cols {
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
