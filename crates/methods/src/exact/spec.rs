//! Which exact computation: ring degree, blocks and plaintext moduli.

use super::blocks::Blocks;
use super::moduli::moduli;
use super::request::Request;
use crate::claims::{check_params, field};
use crate::error::MatrixError;
use serde::{Deserialize, Serialize};
use sudare_expr::Shape;
use sudare_rlwe::noise::NEGLIGIBLE;
use sudare_rlwe::noise::Sketch as Noise;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, max_log_qp};
use sudare_rlwe::work::Work;

/// Most plaintext moduli: results stay below 2^118.
const MAX_MODULI: usize = 4;
/// Bits of the largest prime: those that transforms serve without reductions.
const PRIME_BITS: u32 = 47;
/// log2 of the ring degrees that are tried.
const LOG_NS: std::ops::RangeInclusive<u32> = 10..=15;

/// An exact computation: how it is cut, and under which parameters.
///
/// One BGV multiplication of packed blocks is a product of blocks without any key; products of the same place are summed
/// before they are sent.
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
pub fn candidates(request: &Request, price: impl Fn(&Work, u32) -> f64) -> Vec<ExactSpec> {
    let mut out = Vec::new();
    for (count, log_n) in (1..=MAX_MODULI).flat_map(|count| LOG_NS.map(move |log_n| (count, log_n))) {
        let Some(moduli) = moduli(request.result(), count, request.packing, log_n) else { continue };
        let mut best: Option<(f64, ExactSpec)> = None;
        for blocks in Blocks::candidates(request.shape, 1 << log_n) {
            let Some(params) = literal(request, log_n, &moduli, blocks) else { continue };
            let cost = price(&(work(request, &params, blocks) * moduli.len() as f64), log_n);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, ExactSpec { blocks, moduli: moduli.clone(), params }));
            }
        }
        out.extend(best.map(|(_, spec)| spec));
    }
    out
}

impl ExactSpec {
    /// Refuses what a planner would not have made for this computation, degree and cut.
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
        let of = |count| moduli(request.result(), count, request.packing, params.log_n);
        let expected = (1..=MAX_MODULI).contains(&count).then(|| of(count)).flatten();
        if expected.as_ref() != Some(&self.moduli) {
            let holding = format!("coprime ones that just hold results of up to {}", request.result());
            return Err(field("moduli", format!("{:?}", self.moduli), holding));
        }
        let Some(expected) = literal(request, params.log_n, &self.moduli, self.blocks) else {
            return Err(field("params.log_n", params.log_n, "a degree that holds this computation securely"));
        };
        check_params(params, &expected)
    }
}

/// A computation and how it is done.
#[derive(Clone, Debug)]
pub struct ExactPlan {
    pub(super) request: Request,
    pub(super) spec: ExactSpec,
}

impl ExactPlan {
    /// A computation that is done in a way.
    ///
    /// # Errors
    /// [`MatrixError::PlanField`] for a way of another computation, with the field's name.
    pub fn new(request: Request, spec: &ExactSpec) -> Result<Self, MatrixError> {
        spec.check(&request)?;
        Ok(Self { request, spec: spec.clone() })
    }

    /// What is computed.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How.
    pub fn spec(&self) -> &ExactSpec {
        &self.spec
    }

    /// Work of encryption, computation and decryption.
    pub fn work(&self) -> Work {
        work(&self.request, &self.spec.params, self.spec.blocks) * self.spec.moduli.len() as f64
    }

    /// Ciphertexts of a node's value under all moduli, and polynomials of each.
    pub fn size(&self, node: usize) -> (usize, usize) {
        let parts = if self.request.factors(node) == 2 { 3 } else { 2 };
        (self.request.ciphertexts(self.spec.blocks, node) * self.spec.moduli.len(), parts)
    }

    /// Bound on the absolute values of the result.
    pub fn largest(&self) -> i128 {
        self.request.result()
    }
}

/// The smallest modulus that holds the noise, if it is secure at this degree.
fn literal(request: &Request, log_n: u32, moduli: &[u64], blocks: Blocks) -> Option<ParamsLiteral> {
    let (secret, security) = (SecretDistribution::Ternary, request.security);
    let of = |q_bits| ParamsLiteral { log_n, q_bits, p_bits: Vec::new(), digit_limbs: 1, secret, security };
    let (n, t) = (f64::from(log_n).exp2(), *moduli.iter().max()? as f64);
    // A fresh ciphertext: the message's half unit a coefficient, and the error with its tail, under either key.
    let fresh = n / 2.0 + Noise::of(&of(vec![PRIME_BITS])).public_encryption().bound(&NEGLIGIBLE);
    let bits = (1.3 + t.log2() + request.noise(blocks, (n, t), fresh).log2()).ceil() as u32;
    let count = bits.div_ceil(PRIME_BITS);
    // Primes lie below their power of two.
    let each = (bits.div_ceil(count) + 1).max(log_n + 9);
    let limit = max_log_qp(log_n, secret, security)?;
    (each <= PRIME_BITS + 1 && count * each <= limit).then(|| of(vec![each; count as usize]))
}

/// Encryption of the inputs, computation and decryption.
fn work(request: &Request, literal: &ParamsLiteral, blocks: Blocks) -> Work {
    let [fresh, products, others, results] = request.operations(blocks);
    let limbs = literal.q_bits.len() as f64;
    Work {
        // An error and a message each; masks are drawn as they are used.
        ntt: limbs * (fresh + results),
        pass: limbs * (fresh * 8.0 + products * 4.0 + others * 3.0 + results * 6.0),
        ..Work::default()
    }
}
