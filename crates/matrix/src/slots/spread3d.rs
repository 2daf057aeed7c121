//! Role-aware 3-D products: fresh operands are encrypted already spread over the cube, so that a
//! product is one multiplication.
//!
//! Slot (s, i, j, t) is ((s·m + i)·n + j)·g + t, sides padded to powers of two: the left operand
//! holds A\[i,s\] there and the right one B\[s,j\]. Where the contraction has more indices than a
//! ciphertext has squares it runs over several ciphertexts, summed before one relinearisation.

use super::common::{
    KeyList, Search, check_count, check_depth, check_matrices, check_shape, fold, fold_work, radices, search_literals,
    slots_of, stages,
};
use super::error_model::ErrorModel;
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Method, Operand, Product, ProductSpec, Requirements, Shape};
use crate::work::Work;
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Plaintext};
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_rlwe::security::{SecretDistribution, max_log_qp};

const NAME: &str = "spread3d";

/// Choices of [`Spread3d`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SpreadOptions {
    /// Two terms of the contraction share a slot, in its real and imaginary part: Re((A₀ + iA₁)·
    /// (B₀ − iB₁)) = A₀B₀ + A₁B₁.
    pub real_pairing: bool,
    /// Sum over the squares under encryption: relinearisation, rescale and log k rotations.
    /// Without it the product keeps its three parts, no key is needed at all, and whoever
    /// decrypts sums: only for results that are decrypted next.
    pub fold: bool,
    /// Rotations that one decomposition serves, as a power of two; 0 for one each.
    pub unroll: u32,
}

impl Default for SpreadOptions {
    fn default() -> Self {
        Self { real_pairing: true, fold: true, unroll: 2 }
    }
}

/// Sizes; no tables.
#[derive(Clone, Copy)]
struct Plan {
    options: SpreadOptions,
    m: usize,
    n: usize,
    /// Squares of a ciphertext.
    squares: usize,
    /// Ciphertexts that a contraction runs over.
    chunks: usize,
    lanes: usize,
    pair: usize,
    top: usize,
}

impl Plan {
    fn new(shape: Shape, literal: &ParamsLiteral, options: SpreadOptions) -> Result<Self, MatrixError> {
        check_shape(NAME, shape)?;
        if options.fold {
            check_depth(NAME, literal, 1)?;
        }
        let slots = 1usize << literal.log_n.clamp(1, 30).saturating_sub(1);
        let [m, k, n] = [shape.m, shape.k, shape.n].map(usize::next_power_of_two);
        let pair = if options.real_pairing && k > 1 { 2 } else { 1 };
        if m * n > slots {
            let reason = format!("a result of {m}×{n} takes {} slots and the ring has {slots}", m * n);
            return Err(MatrixError::Method { method: NAME, reason });
        }
        let squares = (k / pair).min(slots / (m * n));
        let chunks = shape.k.div_ceil(pair * squares);
        let lanes = slots / (m * n * squares);
        Ok(Self { options, m, n, squares, chunks, lanes, pair, top: literal.q_bits.len().saturating_sub(1) })
    }

    fn groups(&self, shape: Shape) -> usize {
        shape.batch.div_ceil(self.lanes)
    }

    fn stages(&self) -> Vec<Vec<i64>> {
        stages(self.squares, (self.m * self.n * self.lanes) as i64, self.options.unroll)
    }

    fn keys(&self, literal: &ParamsLiteral) -> KeyDemand {
        let mut keys = KeyList::new(literal);
        if !self.options.fold {
            return keys.demand(None);
        }
        keys.stages(&self.stages(), self.top - 1);
        keys.demand(Some(self.top))
    }

    fn work(&self, literal: &ParamsLiteral) -> Work {
        let products = Work::tensor(literal, self.top) * self.chunks as f64;
        match self.options.fold {
            false => products,
            true => {
                products
                    + Work::relinearize_rescale(literal, self.top)
                    + fold_work(literal, self.top - 1, &self.stages(), self.options.unroll > 0)
            }
        }
    }

    fn predicted_error(&self, literal: &ParamsLiteral, max_abs: [f64; 2]) -> f64 {
        let model = ErrorModel::new(literal);
        let scale = model.scale();
        let pair = self.pair as f64;
        let product = pair * (max_abs[0].powi(2) + max_abs[1].powi(2)) * model.fresh() * self.chunks as f64;
        let folds = self.squares as f64;
        ErrorModel::largest(match self.options.fold {
            false => product * folds,
            true => {
                let after = scale * scale / model.prime(self.top);
                let v = product + model.division(after) + model.switching(self.top, scale * scale);
                model.fold(v, &radices(&self.stages()), self.top - 1, after)
            }
        })
    }

    /// The slots of one ciphertext: a group of lanes, a chunk of the contraction.
    fn values(&self, operand: Operand, group: &[Matrix], chunk: usize, slots: usize) -> Vec<Complex64> {
        let at = |s: usize| {
            let (lane, rest) = (s % self.lanes, s / self.lanes);
            let (j, rest) = (rest % self.n, rest / self.n);
            let (i, square) = (rest % self.m, rest / self.m);
            let term = (chunk * self.squares + square) * self.pair;
            let Some(matrix) = group.get(lane) else { return Complex64::new(0.0, 0.0) };
            let get = |t: usize| match operand {
                Operand::Left => matrix.get(i, t),
                _ => matrix.get(t, j),
            };
            let second = if self.pair == 2 { get(term + 1) } else { 0.0 };
            let sign = if operand == Operand::Left { 1.0 } else { -1.0 };
            Complex64::new(get(term), sign * second)
        };
        (0..slots).map(at).collect()
    }
}

/// What a product costs, from its specification alone.
///
/// # Errors
/// As [`Spread3d::new`].
pub fn work(shape: Shape, literal: &ParamsLiteral, options: SpreadOptions) -> Result<Work, MatrixError> {
    let plan = Plan::new(shape, literal, options)?;
    Ok(plan.work(literal) * plan.groups(shape) as f64)
}

/// The keys that a product needs, from its specification alone.
///
/// # Errors
/// As [`Spread3d::new`].
pub fn keys(shape: Shape, literal: &ParamsLiteral, options: SpreadOptions) -> Result<KeyDemand, MatrixError> {
    Ok(Plan::new(shape, literal, options)?.keys(literal))
}

/// Specifications that satisfy the requirements: only for two fresh operands and a result that is
/// decrypted next, since its layout is not row-major.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    if req.fresh != [true; 2] || !req.decrypt_next || check_shape(NAME, req.shape).is_err() {
        return Vec::new();
    }
    let [m, k, n] = [req.shape.m, req.shape.k, req.shape.n].map(usize::next_power_of_two);
    let mut out = Vec::new();
    for folded in [true, false] {
        let options = SpreadOptions { fold: folded, ..SpreadOptions::default() };
        let result = req.max_abs[0] * req.max_abs[1] * 2.0 * k as f64;
        for least_log_n in [1 + (m * n).trailing_zeros(), 1 + (m * n * k / 2).max(m * n).trailing_zeros()] {
            if least_log_n > 17 {
                continue;
            }
            let search = Search { req, least_log_n, result, chain: &[false], switching: true };
            let literals = match folded {
                true => search_literals(&search, |literal| {
                    Plan::new(req.shape, literal, options)
                        .map_or(f64::INFINITY, |plan| plan.predicted_error(literal, req.max_abs))
                }),
                false => unfolded_literal(req, least_log_n, options).into_iter().collect(),
            };
            for params in literals {
                let spec = ProductSpec { shape: req.shape, method: Method::Spread3d(options), params };
                if !out.contains(&spec) {
                    out.push(spec);
                }
            }
        }
    }
    out
}

/// The least ring without a rescale or a key: the modulus holds a product at its whole scale, split
/// evenly over primes below 2^50.
fn unfolded_literal(req: &Requirements, least_log_n: u32, options: SpreadOptions) -> Option<ParamsLiteral> {
    (least_log_n.max(11)..=17).find_map(|log_n| {
        let limit = max_log_qp(log_n, SecretDistribution::Ternary, req.security)?;
        (20..=45u32).rev().find_map(|scale| {
            let literal = |bits: u32| {
                let primes = bits.div_ceil(49);
                ParamsLiteral {
                    rlwe: sudare_rlwe::params::ParamsLiteral {
                        log_n,
                        q_bits: vec![bits.div_ceil(primes); primes as usize],
                        p_bits: Vec::new(),
                        digit_limbs: 1,
                        secret: SecretDistribution::Ternary,
                        security: req.security,
                    },
                    log_scale: scale,
                }
            };
            let plan = Plan::new(req.shape, &literal(2 * scale), options).ok()?;
            let sum = req.max_abs[0] * req.max_abs[1] * (plan.pair * plan.chunks) as f64;
            // A sign and the primes' own distance from their powers of two.
            let literal = literal(2 * scale + sum.max(1.0).log2().ceil() as u32 + 3);
            let fits = literal.q_bits.iter().sum::<u32>() <= limit;
            (fits && plan.predicted_error(&literal, req.max_abs) <= req.error).then_some(literal)
        })
    })
}

/// Each ciphertext carries as many products as it has lanes.
pub struct Spread3d {
    params: Params,
    shape: Shape,
    plan: Plan,
}

impl Spread3d {
    /// Prepares the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (m·n) or levels (one, with a fold) do not suffice.
    pub fn new(params: &Params, shape: Shape, options: SpreadOptions) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), shape, plan: Plan::new(shape, params.literal(), options)? })
    }
}

impl Product for Spread3d {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn ciphertexts(&self, operand: Operand) -> usize {
        self.plan.groups(self.shape) * if operand == Operand::Output { 1 } else { self.plan.chunks }
    }

    fn level(&self, operand: Operand) -> usize {
        self.plan.top - usize::from(operand == Operand::Output && self.plan.options.fold)
    }

    fn keys(&self) -> KeyDemand {
        self.plan.keys(self.params.literal())
    }

    fn work(&self) -> Work {
        self.plan.work(self.params.literal()) * self.plan.groups(self.shape) as f64
    }

    fn predicted_error(&self, max_abs: [f64; 2]) -> f64 {
        self.plan.predicted_error(self.params.literal(), max_abs)
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let size = max_abs * (self.plan.pair as f64).sqrt() * (1.0 + f64::EPSILON);
        let mut out = Vec::with_capacity(self.ciphertexts(operand));
        for group in matrices.chunks(self.plan.lanes) {
            for chunk in 0..self.plan.chunks {
                let values = self.plan.values(operand, group, chunk, self.params.slots());
                out.push(encoder.encode_complex(&values, encoder.at_top(size))?);
            }
        }
        Ok(out)
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.ciphertexts(Operand::Left))?;
        check_count("right ciphertexts", right.len(), self.ciphertexts(Operand::Right))?;
        let chunks = self.plan.chunks;
        left.chunks(chunks)
            .zip(right.chunks(chunks))
            .map(|(a, b)| {
                let (a, b): (Vec<&Ciphertext>, Vec<&Ciphertext>) = a.iter().zip(b).unzip();
                let product = evaluator.dot(&a, &b)?;
                if !self.plan.options.fold {
                    return Ok(product);
                }
                let product = evaluator.relinearize_rescale(&product)?;
                fold(evaluator, product, &self.plan.stages(), self.plan.options.unroll > 0)
            })
            .collect()
    }

    fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.ciphertexts(Operand::Output))?;
        let slots = slots_of(&self.params, output)?;
        let plan = &self.plan;
        let squares = if plan.options.fold { 1 } else { plan.squares };
        (0..self.shape.batch)
            .map(|t| {
                let (values, lane) = (&slots[t / plan.lanes], t % plan.lanes);
                Matrix::from_fn(self.shape.m, self.shape.n, |i, j| {
                    (0..squares).map(|s| values[((s * plan.m + i) * plan.n + j) * plan.lanes + lane]).sum()
                })
            })
            .collect()
    }
}
