//! Role-aware 3-D products: fresh operands are encrypted already spread over the cube, so that a
//! product is one multiplication.
//!
//! Slot (s, i, j, t) is ((s·m + i)·n + j)·g + t, sides padded to powers of two: the left operand
//! holds A\[i,s\] there and the right one B\[s,j\]. Where the contraction has more indices than a
//! ciphertext has squares it runs over several ciphertexts, summed before one relinearisation.

use crate::error::MatrixError;
use crate::portable::{self, Portable, Reading};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::products::coefficient;
use crate::products::{Method, ProductSpec};
use crate::rounding;
use crate::slots::common::{
    Search, check_count, check_depth, check_matrices, check_shape, fold, search_literals, slots_of, stages,
};
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::Backend;
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

/// The product's sizes and parameters.
#[derive(Clone, Debug)]
pub struct Spread3dPlan {
    shape: Shape,
    literal: ParamsLiteral,
    options: SpreadOptions,
    /// Padded m.
    m: usize,
    /// Padded n.
    n: usize,
    /// Squares of a ciphertext.
    squares: usize,
    /// Ciphertexts that a contraction runs over.
    chunks: usize,
    lanes: usize,
    /// Terms of the contraction in a slot.
    pair: usize,
}

impl Spread3dPlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (m·n) or levels (one, with a fold) do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: SpreadOptions) -> Result<Self, MatrixError> {
        check_shape(NAME, shape)?;
        if options.fold {
            check_depth(NAME, literal, 1)?;
        }
        let slots = 1usize << literal.log_n.clamp(1, 30).saturating_sub(1);
        let [m, k, n] = [shape.m, shape.k, shape.n].map(usize::next_power_of_two);
        let pair = if options.real_pairing && k > 1 { 2 } else { 1 };
        if m * n > slots {
            let reason =
                format!("a result of {m}×{n} takes {} slots, and the ring has {slots}; take a larger ring", m * n);
            return Err(MatrixError::Method { method: NAME, reason });
        }
        let squares = (k / pair).min(slots / (m * n));
        let chunks = shape.k.div_ceil(pair * squares);
        let lanes = slots / (m * n * squares);
        Ok(Self { shape, literal: literal.clone(), options, m, n, squares, chunks, lanes, pair })
    }

    fn groups(&self) -> usize {
        self.shape.batch.div_ceil(self.lanes)
    }

    fn stages(&self) -> Vec<Vec<i64>> {
        stages(self.squares, (self.m * self.n * self.lanes) as i64, self.options.unroll)
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

impl ProductPlan for Spread3dPlan {
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
        self.groups() * if operand == Operand::Output { 1 } else { self.chunks }
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

impl Portable for Spread3dPlan {
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
        let chunks = self.chunks;
        let lines = |g: usize| {
            let line = g * chunks..(g + 1) * chunks;
            line.clone().map(|c| left.at(c)).chain(line.map(|c| right.at(c))).collect()
        };
        let one = |lines: &[&CiphertextOf<B>]| {
            let product = e.dot(&lines[..chunks], &lines[chunks..])?;
            if !self.options.fold {
                return Ok(product);
            }
            fold(e, e.relinearize_rescale(&product)?, &self.stages(), self.options.unroll > 0)
        };
        e.each(Order::InTurn, self.groups(), lines, one)
    }

    fn message(&self, _: Operand, max_abs: f64) -> (f64, f64) {
        let size = max_abs * (self.pair as f64).sqrt() * (1.0 + f64::EPSILON);
        (size, size)
    }

    /// Without a fold, whoever decrypts sums the squares.
    fn reading(&self) -> Reading {
        Reading::Slots { summed: if self.options.fold { 1 } else { self.squares } }
    }
}

/// Specifications that satisfy the requirements: only for two fresh operands and a result that is
/// decrypted next, since its layout is not row-major.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    if req.fresh != [true; 2] || !req.decrypt_next || check_shape(NAME, req.shape).is_err() {
        return Vec::new();
    }
    let k = req.shape.k.next_power_of_two();
    let [log_m, log_k, log_n] = [req.shape.m, k, req.shape.n].map(|side| side.next_power_of_two().trailing_zeros());
    let mut out = Vec::new();
    for folded in [true, false] {
        let options = SpreadOptions { fold: folded, ..SpreadOptions::default() };
        let result = req.max_abs[0] * req.max_abs[1] * 2.0 * k as f64;
        for least_log_n in [1 + log_m + log_n, 1 + log_m + log_n + log_k.saturating_sub(1)] {
            if least_log_n > 17 {
                continue;
            }
            let search = Search { req, least_log_n, result, chain: &[false], switching: true };
            let literals = match folded {
                true => search_literals(&search, |literal| {
                    Spread3dPlan::new(req.shape, literal, options).ok()?.promised(req.max_abs)
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
        (20..=45u32).rev().chain(46..=50).find_map(|scale| {
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
            let plan = Spread3dPlan::new(req.shape, &literal(2 * scale), options).ok()?;
            let sum = req.max_abs[0] * req.max_abs[1] * (plan.pair * plan.chunks) as f64;
            // A sign and the primes' own distance from their powers of two.
            let literal = literal(2 * scale + sum.max(1.0).log2().ceil() as u32 + 3);
            let secure = literal.q_bits.iter().sum::<u32>() <= limit;
            let plan = Spread3dPlan { literal: literal.clone(), ..plan };
            (secure && plan.serves(req.max_abs, req.error)).then_some(literal)
        })
    })
}

/// The product under built parameters. Each ciphertext carries as many products as it has lanes.
#[derive(Debug)]
pub struct Spread3d {
    params: Params,
    plan: Spread3dPlan,
}

impl Spread3d {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Spread3dPlan::new`].
    pub fn new(params: &Params, shape: Shape, options: SpreadOptions) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: Spread3dPlan::new(shape, params.literal(), options)? })
    }
}

impl Product for Spread3d {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let (size, _) = self.plan.message(operand, max_abs);
        let mut out = Vec::with_capacity(self.ciphertexts(operand));
        for group in matrices.chunks(self.plan.lanes) {
            for chunk in 0..self.plan.chunks {
                let values = self.plan.values(operand, group, chunk, self.params.slots());
                out.push(encoder.encode_complex(&values, encoder.at_top(size))?);
            }
        }
        Ok(out)
    }

    /// Squares are summed after decryption, or hold the whole sum each.
    fn encode_addend(&self, matrices: &[Matrix], at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        let plan = &self.plan;
        coefficient::check_matrices(plan.shape, Operand::Output, matrices, at.max_abs)?;
        let (encoder, share) = (Encoder::new(&self.params), if plan.options.fold { 1 } else { plan.squares } as f64);
        let group = |group: &[Matrix]| {
            let value = |s: usize| {
                let (lane, rest) = (s % plan.lanes, s / plan.lanes);
                let (j, i) = (rest % plan.n, rest / plan.n % plan.m);
                Complex64::new(group.get(lane).map_or(0.0, |m| m.get(i, j)) / share, 0.0)
            };
            let values: Vec<Complex64> = (0..self.params.slots()).map(value).collect();
            Ok(encoder
                .encode_complex(&values, EncodeAt { max_abs: at.max_abs / share * (1.0 + f64::EPSILON), ..at })?)
        };
        matrices.chunks(plan.lanes).map(group).collect()
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
        check_count("result plaintexts", output.len(), self.ciphertexts(Operand::Output))?;
        let slots = slots_of(&self.params, output)?;
        let plan = &self.plan;
        let squares = if plan.options.fold { 1 } else { plan.squares };
        (0..self.plan.shape.batch)
            .map(|t| {
                let (values, lane) = (&slots[t / plan.lanes], t % plan.lanes);
                Ok(Matrix::from_fn(self.plan.shape.m, self.plan.shape.n, |i, j| {
                    rounding::sum((0..squares).map(|s| values[((s * plan.m + i) * plan.n + j) * plan.lanes + lane]))
                })?)
            })
            .collect()
    }
}
