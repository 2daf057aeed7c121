//! Which exact product: ring degree, blocks and plaintext moduli by cost.

use super::blocks::Blocks;
use crate::error::MatrixError;
use crate::plan::CostModel;
use crate::product::{Operand, Shape};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::fmt;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::integer::IntegerParams;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// Most plaintext moduli: results stay below 2^118.
const MAX_MODULI: usize = 4;
/// Bits of the largest plaintext modulus.
const MODULUS_BITS: u32 = 59;
/// Bits of the largest prime: those that transforms serve without reductions.
const PRIME_BITS: u32 = 47;
/// Largest absolute value of a result.
const MAX_RESULT: i128 = 1 << 117;
/// Most elements of an operand or a result.
const MAX_ELEMENTS: usize = 1 << 28;

/// A product of integer matrices as its plan sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactSpec {
    /// Sides; the batch is 1.
    pub shape: Shape,
    /// Bound on the absolute values of the left operand.
    pub left: u64,
    /// Bound on those of the right operand.
    pub right: u64,
    /// The security.
    pub security: Security,
}

impl ExactSpec {
    /// Bound on the absolute values of the result.
    pub fn result(&self) -> i128 {
        i128::from(self.left).saturating_mul(i128::from(self.right)).saturating_mul(self.shape.k as i128)
    }
}

/// What client and server of an exact product agree on; nothing secret.
///
/// One BGV multiplication of coefficient-packed blocks is a product of blocks without any key;
/// products of the same place are summed before they are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExactPlan {
    /// What is computed.
    pub spec: ExactSpec,
    /// The cut.
    pub blocks: Blocks,
    /// Coprime plaintext moduli, whose product holds every result.
    pub moduli: Vec<u64>,
    /// The parameters.
    pub params: ParamsLiteral,
    /// Seconds that encryption, product and decryption are expected to take on one thread.
    pub seconds: f64,
}

impl ExactPlan {
    /// The cheapest plan.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for an empty or too large shape, bounds of zero, or results of 117
    /// bits or more.
    pub fn new(spec: &ExactSpec) -> Result<Self, MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        let Shape { m, k, n, batch } = spec.shape;
        let sizes = [m.checked_mul(k), k.checked_mul(n), m.checked_mul(n)];
        if batch != 1 || sizes.iter().any(|s| s.is_none_or(|s| s == 0 || s > MAX_ELEMENTS)) {
            return refuse(format!("an exact product takes one pair of matrices of up to {MAX_ELEMENTS} elements"));
        }
        if spec.left == 0 || spec.right == 0 {
            return refuse("bounds of integer matrices are at least 1".into());
        }
        if spec.result() >= MAX_RESULT {
            return refuse(format!(
                "results of up to {} · {} · {k} do not fit 117 bits; state tighter bounds",
                spec.left, spec.right
            ));
        }
        let costs = CostModel::cached();
        let mut best: Option<Self> = None;
        for count in 1..=MAX_MODULI {
            let Some(moduli) = moduli(spec.result(), count) else { continue };
            for log_n in 10..=15 {
                for blocks in Blocks::candidates(spec.shape, 1 << log_n) {
                    let Some(params) = literal(spec, log_n, &moduli, blocks) else { continue };
                    let work = work(spec.shape, &params, blocks) * moduli.len() as f64;
                    let seconds = costs.price(&work, log_n, 1);
                    if best.as_ref().is_none_or(|b| seconds < b.seconds) {
                        best = Some(Self { spec: spec.clone(), blocks, moduli: moduli.clone(), params, seconds });
                    }
                }
            }
        }
        let Some(plan) = best else {
            return refuse("no ring of degree up to 32768 holds this product; state tighter bounds".into());
        };
        plan.build()?;
        Ok(plan)
    }

    /// The plan as JSON.
    ///
    /// # Errors
    /// None for a plan that exists.
    pub fn to_json(&self) -> Result<String, MatrixError> {
        serde_json::to_string(self).map_err(|e| MatrixError::NoPlan { reason: e.to_string() })
    }

    /// Reads a plan and checks that it holds what it promises.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`], [`MatrixError::He`].
    pub fn from_json(text: &str) -> Result<Self, MatrixError> {
        let plan: Self = serde_json::from_str(text).map_err(|e| MatrixError::NoPlan { reason: e.to_string() })?;
        plan.build()?;
        Ok(plan)
    }

    /// Parameters for each plaintext modulus, checked against the bound on the noise.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a plan that was changed and does not hold, [`MatrixError::He`].
    pub fn build(&self) -> Result<Vec<IntegerParams>, MatrixError> {
        let refuse = |reason: &str| Err(MatrixError::NoPlan { reason: reason.into() });
        let Blocks { a, b, c } = self.blocks;
        let degree = 1u128.checked_shl(self.params.log_n).unwrap_or(0);
        let Shape { m, k, n, batch } = self.spec.shape;
        if [a, b, c, m, k, n].contains(&0) || batch != 1 || a as u128 * b as u128 * c as u128 > degree {
            return refuse("the blocks do not fit the ring");
        }
        let product = self.moduli.iter().try_fold(1u128, |all, t| all.checked_mul(u128::from(*t)));
        let coprime = self.moduli.iter().enumerate().all(|(i, t)| self.moduli[..i].iter().all(|u| gcd(*t, *u) == 1));
        if self.moduli.is_empty() || !coprime || product.is_none_or(|p| p >> 1 < self.spec.result() as u128) {
            return refuse("the plaintext moduli do not hold the results");
        }
        let params = self.params.build()?;
        let all = self.moduli.iter().map(|t| IntegerParams::new(&params, *t)).collect::<Result<Vec<_>, _>>()?;
        let terms = self.blocks.counts(self.spec.shape)[1] as f64;
        for p in &all {
            let noise = p.noise().message() + p.noise().secret_encryption();
            let product = (p.t() as f64 * terms).log2() + 2.0 * noise.log2();
            if product >= p.noise().log_limit(params.max_level()) {
                return refuse("the modulus does not hold the noise of the product");
            }
        }
        Ok(all)
    }

    /// Blocks of a matrix, a ciphertext each for every plaintext modulus.
    pub(super) fn count(&self, operand: Operand) -> usize {
        let [rows, inner, columns] = self.blocks.counts(self.spec.shape);
        match operand {
            Operand::Left => rows * inner,
            Operand::Right => inner * columns,
            Operand::Output => rows * columns,
        }
    }

    /// (ciphertexts of the left operand, of the right one, of the result).
    pub fn ciphertexts(&self) -> (usize, usize, usize) {
        let all = |operand| self.count(operand) * self.moduli.len();
        (all(Operand::Left), all(Operand::Right), all(Operand::Output))
    }
}

impl fmt::Display for ExactPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { m, k, n, .. } = self.spec.shape;
        let (left, right, out) = self.ciphertexts();
        let Blocks { a, b, c } = self.blocks;
        let log_q: u32 = self.params.q_bits.iter().sum();
        writeln!(f, "exact product    {m}×{k} · {k}×{n}, |A| ≤ {}, |B| ≤ {}", self.spec.left, self.spec.right)?;
        writeln!(f, "scheme           BGV, coefficients, no keys on the server")?;
        writeln!(
            f,
            "parameters       N = {}, log2 Q = {log_q}, {}-bit security",
            1u64 << self.params.log_n,
            self.spec.security.bits()
        )?;
        let moduli: Vec<String> = self.moduli.iter().map(u64::to_string).collect();
        writeln!(f, "plaintext moduli {}", moduli.join(", "))?;
        writeln!(f, "blocks           {a}×{b} · {b}×{c}; ciphertexts {left} + {right} → {out}")?;
        write!(f, "expected         {:.1} ms on one thread", self.seconds * 1e3)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `count` coprime odd moduli, as small as they may be, with a product over twice the bound.
fn moduli(bound: i128, count: usize) -> Option<Vec<u64>> {
    let needed = 2 * bound as u128 + 1;
    let root = (needed as f64).powf(1.0 / count as f64).ceil() as u128 + 2;
    if root >> MODULUS_BITS != 0 || (count > 1 && root < 1 << 12) {
        return None;
    }
    let mut next = (root as u64).max(3) | 1;
    let mut found: Vec<u64> = Vec::new();
    while found.len() < count {
        if found.iter().all(|t| gcd(*t, next) == 1) {
            found.push(next);
        }
        next += 2;
    }
    Some(found)
}

/// The smallest modulus that holds the noise, if it is secure at this degree.
fn literal(spec: &ExactSpec, log_n: u32, moduli: &[u64], blocks: Blocks) -> Option<ParamsLiteral> {
    let n = f64::from(log_n).exp2();
    let terms = blocks.counts(spec.shape)[1] as f64;
    let t = *moduli.iter().max()? as f64;
    // A fresh ciphertext: the message's half unit a coefficient, and the error with its tail.
    let noise = n / 2.0 + sudare_he::integer::noise::TAIL[0] * (n * 3.19 * 3.19).sqrt();
    let bits = (1.3 + 2.0 * t.log2() + 2.0 * noise.log2() + terms.log2()).ceil() as u32;
    let count = bits.div_ceil(PRIME_BITS);
    // Primes lie below their power of two.
    let each = (bits.div_ceil(count) + 1).max(log_n + 9);
    let limit = max_log_qp(log_n, SecretDistribution::Ternary, spec.security)?;
    (each <= PRIME_BITS + 1 && count * each <= limit).then(|| ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: vec![each; count as usize],
            p_bits: Vec::new(),
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: spec.security,
        },
        log_scale: 1,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(m: usize, k: usize, n: usize, left: u64, right: u64) -> ExactSpec {
        ExactSpec { shape: Shape::new(m, k, n), left, right, security: Security::Bits128 }
    }

    #[test]
    fn plans_hold_what_they_promise() {
        for (m, k, n, left, right) in
            [(1, 1, 1, 1, 1), (16, 16, 16, 1023, 1023), (100, 200, 30, 255, 1), (3, 5, 2, u64::MAX / 2, 1 << 40)]
        {
            let plan = ExactPlan::new(&spec(m, k, n, left, right)).unwrap();
            let product: u128 = plan.moduli.iter().map(|t| u128::from(*t)).product();
            assert!(product > 2 * plan.spec.result() as u128);
            assert!(plan.blocks.a * plan.blocks.b * plan.blocks.c <= 1 << plan.params.log_n);
            assert_eq!(plan.build().unwrap().len(), plan.moduli.len());
        }
        let small = ExactPlan::new(&spec(16, 16, 16, 1023, 1023)).unwrap();
        assert!(small.params.log_n <= 12, "{small}");
    }

    #[test]
    fn refusals() {
        for bad in [spec(0, 1, 1, 1, 1), spec(1, 1, 1, 0, 1), spec(1 << 20, 1 << 20, 1, 1, 1)] {
            assert!(matches!(ExactPlan::new(&bad), Err(MatrixError::NoPlan { .. })));
        }
        assert!(matches!(ExactPlan::new(&spec(4, 4, 4, u64::MAX, u64::MAX)), Err(MatrixError::NoPlan { .. })));
        let plan = ExactPlan::new(&spec(8, 8, 8, 100, 100)).unwrap();
        let mut changed = plan.clone();
        changed.blocks.b = 1 << 14;
        assert!(matches!(changed.build(), Err(MatrixError::NoPlan { .. })));
        let mut changed = plan.clone();
        changed.moduli = vec![101];
        assert!(matches!(changed.build(), Err(MatrixError::NoPlan { .. })));
        let mut changed = plan;
        changed.params.q_bits = vec![30];
        assert!(changed.build().is_err());
    }
}
