//! Which exact product: ring degree, blocks and plaintext moduli.

use super::blocks::Blocks;
use super::moduli::moduli;
use crate::error::MatrixError;
use crate::expr::Expr;
use crate::plan::{Goal, NodeSize, Sketch, check_params, field};
use crate::product::{KeyDemand, Operand, Shape};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// Most plaintext moduli: results stay below 2^118.
const MAX_MODULI: usize = 4;
/// Bits of the largest prime: those that transforms serve without reductions.
const PRIME_BITS: u32 = 47;
/// Largest absolute value of a result.
const MAX_RESULT: i128 = 1 << 117;
/// log2 of the ring degrees that are tried.
const LOG_NS: std::ops::RangeInclusive<u32> = 10..=15;

/// An exact product as an expression asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Sides; the batch is 1.
    pub(super) shape: Shape,
    /// Bounds on the absolute values of both operands.
    pub(super) bounds: [u64; 2],
    security: Security,
    /// Nodes of the operands: the input, and its transpose where that is the factor.
    pub(super) operands: [(usize, Option<usize>); 2],
    /// Node of the product.
    pub(super) output: usize,
}

impl Request {
    /// What a goal with inputs of integers asks for.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for anything but one product of two inputs, each as it is or transposed, or one
    /// whose results pass 117 bits.
    pub(crate) fn new(goal: &Goal) -> Result<Self, MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        let expr = &goal.expression;
        let Some(factors) = expr.factors() else {
            return refuse(format!(
                "integers are computed with exactly, and only as A @ B of two different inputs, not as {expr}; transpose or \
                 extend the matrices before encryption, and give a matrix twice to multiply it with itself"
            ));
        };
        if goal.batch != 1 || goal.error != 0.0 || goal.release.is_some() {
            return refuse("an exact product has no error, batch or release; leave them out".into());
        }
        let inputs = factors.map(|f| expr.inputs()[f.input].integers);
        let [Some(left), Some(right)] = inputs else {
            return refuse("the inputs of an exact product are integers".into());
        };
        let operands = factors.map(|f| (expr.node_of_input(f.input), f.node));
        let [(m, k), (_, n)] = operands.map(|(input, turned)| expr.info(turned.unwrap_or(input)).shape);
        let (shape, bounds, security) = (Shape::new(m, k, n), [left, right], goal.security);
        let request = Self { shape, bounds, security, operands, output: expr.output() };
        match request.result() < MAX_RESULT {
            true => Ok(request),
            false => {
                refuse(format!("results of up to {left} · {right} · {k} do not fit 117 bits; state tighter bounds"))
            }
        }
    }

    /// The product that an expression of doubles would be if its elements were integers.
    pub(crate) fn of_doubles(goal: &Goal) -> Option<Goal> {
        let expr = &goal.expression;
        let mut inputs = expr.inputs().to_vec();
        for input in &mut inputs {
            // Between −1 and 1 there is hardly an integer.
            if !(2.0..9e18).contains(&input.max_abs) || input.plain {
                return None;
            }
            input.max_abs = input.max_abs.floor();
            input.integers = Some(input.max_abs as u64);
        }
        let expression = Expr::new(inputs, expr.nodes().to_vec(), expr.output()).ok()?;
        Some(Goal { expression, error: 0.0, release: None, ..goal.clone() })
    }

    /// Bound on the absolute values of the result.
    pub(super) fn result(&self) -> i128 {
        let [left, right] = self.bounds.map(i128::from);
        left.saturating_mul(right).saturating_mul(self.shape.k as i128)
    }

    /// Which matrix of the product a node is, and whether it is turned for it.
    pub(super) fn operand(&self, node: usize) -> Option<Operand> {
        let among = |(input, turned): (usize, Option<usize>)| input == node || turned == Some(node);
        match node {
            n if n == self.output => Some(Operand::Output),
            _ if among(self.operands[0]) => Some(Operand::Left),
            _ if among(self.operands[1]) => Some(Operand::Right),
            _ => None,
        }
    }
}

/// An exact product: how it is cut, and under which parameters.
///
/// One BGV multiplication of coefficient-packed blocks is a product of blocks without any key;
/// products of the same place are summed before they are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactSpec {
    /// The cut.
    pub blocks: Blocks,
    /// Coprime plaintext moduli, whose product holds every result.
    pub moduli: Vec<u64>,
    /// The parameters.
    pub params: ParamsLiteral,
}

/// The cheapest cut for each number of plaintext moduli and each degree, by `price`.
pub(crate) fn candidates(request: &Request, price: impl Fn(&Work, u32) -> f64) -> Vec<ExactSpec> {
    let mut out = Vec::new();
    for count in 1..=MAX_MODULI {
        let Some(moduli) = moduli(request.result(), count) else { continue };
        for log_n in LOG_NS {
            let mut best: Option<(f64, ExactSpec)> = None;
            for blocks in Blocks::candidates(request.shape, 1 << log_n) {
                let Some(params) = literal(request, log_n, &moduli, blocks) else { continue };
                let cost = price(&(work(request.shape, &params, blocks) * moduli.len() as f64), log_n);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, ExactSpec { blocks, moduli: moduli.clone(), params }));
                }
            }
            out.extend(best.map(|(_, spec)| spec));
        }
    }
    out
}

impl ExactSpec {
    /// Refuses what a planner would not have made for this product, degree and cut.
    pub(super) fn check(&self, request: &Request) -> Result<(), MatrixError> {
        let (Blocks { a, b, c }, Shape { m, k, n, .. }) = (self.blocks, request.shape);
        let params = &self.params;
        if !LOG_NS.contains(&params.log_n) {
            return Err(field("params.log_n", params.log_n, format!("{LOG_NS:?}")));
        }
        let fits = a.checked_mul(b).and_then(|x| x.checked_mul(c)).is_some_and(|x| x <= 1 << params.log_n);
        let sides = [(a, m), (b, k), (c, n)].iter().all(|(block, side)| (1..=*side).contains(block));
        if !fits || !sides {
            let expected = format!("one within {m}×{k}·{k}×{n} of at most {} coefficients", 1u64 << params.log_n);
            return Err(field("blocks", format!("{a}×{b}·{b}×{c}"), expected));
        }
        // They follow from the bound on the result and their number.
        let count = self.moduli.len();
        let expected = (1..=MAX_MODULI).contains(&count).then(|| moduli(request.result(), count)).flatten();
        if expected.as_ref() != Some(&self.moduli) {
            let holding = format!("coprime ones that just hold results of up to {}", request.result());
            return Err(field("moduli", format!("{:?}", self.moduli), holding));
        }
        let Some(expected) = literal(request, params.log_n, &self.moduli, self.blocks) else {
            return Err(field("params.log_n", params.log_n, "a degree that holds this product securely"));
        };
        check_params(params, &expected)
    }
}

/// A product and how it is computed.
#[derive(Clone, Debug)]
pub(crate) struct ExactSketch {
    pub(super) request: Request,
    pub(super) spec: ExactSpec,
}

impl ExactSketch {
    /// The sketch of a program for a goal.
    ///
    /// # Errors
    /// As [`Request::new`]; [`MatrixError::PlanField`] for a program of another goal, with the field's name.
    pub(crate) fn new(goal: &Goal, spec: &ExactSpec) -> Result<Self, MatrixError> {
        let request = Request::new(goal)?;
        spec.check(&request)?;
        Ok(Self { request, spec: spec.clone() })
    }

    /// Bound on the absolute values of the result.
    pub(crate) fn largest(&self) -> i128 {
        self.request.result()
    }

    /// Blocks of a matrix, a ciphertext each for every plaintext modulus.
    pub(super) fn count(&self, operand: Operand) -> usize {
        let [rows, inner, columns] = self.spec.blocks.counts(self.request.shape);
        match operand {
            Operand::Left => rows * inner,
            Operand::Right => inner * columns,
            Operand::Output => rows * columns,
        }
    }
}

impl Sketch for ExactSketch {
    fn method(&self) -> &'static str {
        "exact"
    }

    fn scheme(&self) -> &'static str {
        "bgv"
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.spec.params
    }

    fn keys(&self) -> KeyDemand {
        KeyDemand::default()
    }

    fn work(&self) -> Work {
        work(self.request.shape, &self.spec.params, self.spec.blocks) * self.spec.moduli.len() as f64
    }

    fn error(&self) -> f64 {
        0.0
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        (node == self.request.output).then_some(0.0)
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let operand = self.request.operand(node)?;
        let parts = if operand == Operand::Output { 3 } else { 2 };
        let count = self.count(operand) * self.spec.moduli.len();
        Some(NodeSize { count, parts, level: self.spec.params.q_bits.len() - 1 })
    }

    fn fresh_public(&self) -> bool {
        false
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let Blocks { a, b, c } = self.spec.blocks;
        let moduli: Vec<String> = self.spec.moduli.iter().map(u64::to_string).collect();
        vec![("moduli", moduli.join(", ")), ("blocks", format!("{a}×{b} · {b}×{c}"))]
    }
}

/// The smallest modulus that holds the noise, if it is secure at this degree.
fn literal(request: &Request, log_n: u32, moduli: &[u64], blocks: Blocks) -> Option<ParamsLiteral> {
    let n = f64::from(log_n).exp2();
    let terms = blocks.counts(request.shape)[1] as f64;
    let t = *moduli.iter().max()? as f64;
    // A fresh ciphertext: the message's half unit a coefficient, and the error with its tail.
    let noise = n / 2.0 + sudare_he::integer::noise::TAIL[0] * (n * 3.19 * 3.19).sqrt();
    let bits = (1.3 + 2.0 * t.log2() + 2.0 * noise.log2() + terms.log2()).ceil() as u32;
    let count = bits.div_ceil(PRIME_BITS);
    // Primes lie below their power of two.
    let each = (bits.div_ceil(count) + 1).max(log_n + 9);
    let limit = max_log_qp(log_n, SecretDistribution::Ternary, request.security)?;
    (each <= PRIME_BITS + 1 && count * each <= limit).then(|| ParamsLiteral {
        log_n,
        q_bits: vec![each; count as usize],
        p_bits: Vec::new(),
        digit_limbs: 1,
        secret: SecretDistribution::Ternary,
        security: request.security,
    })
}

/// Encryption of both operands, product and decryption.
fn work(shape: Shape, literal: &ParamsLiteral, blocks: Blocks) -> Work {
    let [rows, inner, columns] = blocks.counts(shape).map(|c| c as f64);
    let limbs = literal.q_bits.len() as f64;
    let fresh = rows * inner + inner * columns;
    let results = rows * columns;
    Work {
        // An error and a message each; masks are drawn as they are used.
        ntt: limbs * (fresh * 1.0 + results),
        pass: limbs * (fresh * 8.0 + rows * inner * columns * 4.0 + results * 6.0),
        ..Work::default()
    }
}
