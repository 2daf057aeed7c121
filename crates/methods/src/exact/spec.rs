//! Which exact computation: ring degree, blocks and plaintext moduli.

use super::blocks::Blocks;
use super::circuit::{Size, simulated};
use super::moduli::moduli;
use super::request::Request;
use crate::claims::{check_same, field};
use crate::error::MatrixError;
use crate::product::KeyDemand;
use serde::{Deserialize, Serialize};
use sudare_exact::IntegerParams;
use sudare_exact::plan::EXACT;
use sudare_expr::Shape;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{Security, max_log_qp};
use sudare_rlwe::work::Work;

/// Most plaintext moduli: results stay below 2^118.
const MAX_MODULI: usize = 4;
/// Bits of the largest prime: those that transforms serve without reductions.
const PRIME_BITS: u32 = 47;
/// Most primes of a computation that claims no security.
const MOST_PRIMES: u32 = 31;
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
        let Some(roomy) = roomy(request, log_n, &moduli) else { continue };
        let mut best: Option<(f64, ExactSpec)> = None;
        for blocks in Blocks::candidates(request.shape, 1 << log_n) {
            let Ok(run) = simulated(request, blocks, &roomy) else { continue };
            let Ok(noise) = request.shown((blocks, moduli.len()), &roomy, run.noise) else { continue };
            let Some(params) = literal(request, &roomy, noise) else { continue };
            // Work is proportional to the primes.
            let share = params.q_bits.len() as f64 / (roomy.max_level() + 1) as f64;
            let cost = price(&(run.ledger.work * (share * moduli.len() as f64)), log_n);
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
            let expected = format!("{} to {}", LOG_NS.start(), LOG_NS.end());
            return Err(field("params.log_n", params.log_n, expected));
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
        // The modulus is the least that holds the noise, as a simulation finds.
        let expected = roomy(request, params.log_n, &self.moduli).and_then(|roomy| {
            let noise = simulated(request, self.blocks, &roomy).ok()?.noise;
            literal(request, &roomy, request.shown((self.blocks, count), &roomy, noise).ok()?)
        });
        let Some(expected) = expected else {
            return Err(field("params.log_n", params.log_n, "a degree that holds this computation securely"));
        };
        check_same(params, &expected)
    }
}

/// A computation, how it is done, and what it takes.
#[derive(Clone, Debug)]
pub struct ExactPlan {
    pub(super) request: Request,
    pub(super) spec: ExactSpec,
    /// One set for each plaintext modulus, all over the same ring and primes.
    pub(super) params: Vec<IntegerParams>,
    work: Work,
    keys: KeyDemand,
    peak_bytes: u64,
    sizes: Vec<Size>,
    /// Bounds on the noise of a result under each modulus, and how several parties open it.
    pub(super) noises: Vec<f64>,
    pub(super) policy: Option<ReleasePolicy>,
}

impl ExactPlan {
    /// A computation that is done in a way: it is simulated under each plaintext modulus.
    ///
    /// # Errors
    /// [`MatrixError::PlanField`] for a way of another computation or for primes that do not hold its noise, with the field's
    /// name; [`MatrixError::He`].
    pub fn new(request: Request, spec: &ExactSpec) -> Result<Self, MatrixError> {
        spec.check(&request)?;
        let rlwe = spec.params.build(EXACT)?;
        let params = spec.moduli.iter().map(|t| IntegerParams::new(&rlwe, *t)).collect::<Result<Vec<_>, _>>()?;
        let (mut work, mut keys, mut peak_bytes) = (Work::default(), KeyDemand::default(), 0u64);
        let (mut sizes, mut noises) = (vec![Size::default(); request.expr().nodes().len()], Vec::new());
        for params in &params {
            let run = simulated(&request, spec.blocks, params).map_err(|_| {
                let expected = "primes that hold the noise of the result";
                field("params.q_bits", format!("{:?} bits", spec.params.q_bits), expected)
            })?;
            work += run.ledger.work;
            noises.push(run.noise);
            keys = KeyDemand::from(&run.ledger);
            // Values under all moduli are there at once.
            peak_bytes = peak_bytes.saturating_add(run.ledger.peak);
            let all = sizes.iter().zip(run.sizes);
            sizes = all.map(|(known, size)| Size { count: known.count + size.count, ..size }).collect();
        }
        let policy = request.policy(spec.blocks, params.len())?;
        Ok(Self { request, spec: spec.clone(), params, work, keys, peak_bytes, sizes, noises, policy })
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
        self.work
    }

    /// The keys that a server needs.
    pub fn keys(&self) -> &KeyDemand {
        &self.keys
    }

    /// Most bytes of ciphertexts that are in memory at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Ciphertexts of a node's value under all moduli.
    pub fn size(&self, node: usize) -> Size {
        self.sizes[node]
    }

    /// Bound on the absolute values of the result.
    pub fn largest(&self) -> i128 {
        self.request.result()
    }
}

/// Parameters as computations take them that multiply once: without keys.
fn of_primes(request: &Request, log_n: u32, q_bits: Vec<u32>) -> ParamsLiteral {
    let (secret, security) = (request.secret(), request.security);
    ParamsLiteral { log_n, q_bits, p_bits: Vec::new(), digit_limbs: 1, secret, security }
}

/// More primes than are secure at a degree, to find the noise, with the largest modulus, which has most of it.
fn roomy(request: &Request, log_n: u32, moduli: &[u64]) -> Option<IntegerParams> {
    let limit = max_log_qp(log_n, request.secret(), request.security)?;
    let count = (limit / PRIME_BITS).min(MOST_PRIMES) + 1;
    let literal = of_primes(request, log_n, vec![PRIME_BITS; count as usize]);
    let rlwe = ParamsLiteral { security: Security::Insecure, ..literal }.build(EXACT).ok()?;
    IntegerParams::new(&rlwe, *moduli.iter().max()?).ok()
}

/// The smallest modulus that holds a noise, if it is secure at this degree.
fn literal(request: &Request, roomy: &IntegerParams, noise: f64) -> Option<ParamsLiteral> {
    let log_n = roomy.log_n();
    let bits = (1.3 + (roomy.t() as f64).log2() + noise.log2()).ceil() as u32;
    let count = bits.div_ceil(PRIME_BITS);
    // Primes lie below their power of two.
    let each = (bits.div_ceil(count) + 1).max(log_n + 9);
    let limit = max_log_qp(log_n, request.secret(), request.security)?;
    (each <= PRIME_BITS + 1 && count * each <= limit).then(|| of_primes(request, log_n, vec![each; count as usize]))
}
