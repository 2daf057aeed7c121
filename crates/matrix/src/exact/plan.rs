//! Which exact product: ring degree, blocks and plaintext moduli by cost.

use super::blocks::Blocks;
use crate::error::MatrixError;
use crate::plan::{CostModel, bytes, check_claim, check_params, field};
use crate::product::{Operand, Shape};
use crate::sizing;
use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::fmt;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::integer::IntegerParams;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp, security_of};

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

/// log2 of the ring degrees that are tried.
const LOG_NS: std::ops::RangeInclusive<u32> = 10..=15;
/// Most bytes of a plan file.
const MAX_PLAN_BYTES: usize = 1 << 16;

/// A product of integer matrices as its plan sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

    /// Refuses what no plan is made for.
    fn check(&self) -> Result<(), MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        let Shape { m, k, n, batch } = self.shape;
        let sizes = [m.checked_mul(k), k.checked_mul(n), m.checked_mul(n)];
        if batch != 1 || sizes.iter().any(|s| s.is_none_or(|s| s == 0 || s > MAX_ELEMENTS)) {
            return refuse(format!("an exact product takes one pair of matrices of up to {MAX_ELEMENTS} elements"));
        }
        if self.left == 0 || self.right == 0 {
            return refuse("bounds of integer matrices are at least 1".into());
        }
        if self.result() >= MAX_RESULT {
            return refuse(format!(
                "results of up to {} · {} · {k} do not fit 117 bits; state tighter bounds",
                self.left, self.right
            ));
        }
        Ok(())
    }
}

/// What client and server of an exact product agree on; nothing secret.
///
/// One BGV multiplication of coefficient-packed blocks is a product of blocks without any key;
/// products of the same place are summed before they are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
        spec.check()?;
        let costs = CostModel::default();
        let mut best: Option<Self> = None;
        for count in 1..=MAX_MODULI {
            let Some(moduli) = moduli(spec.result(), count) else { continue };
            for log_n in LOG_NS {
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
        let reason = "no ring of degree up to 32768 holds this product; state tighter bounds".into();
        let plan = best.ok_or(MatrixError::NoPlan { reason })?;
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

    /// Reads a plan. All that follows from what is computed, the degree and the cut is worked out
    /// again and has to be what the text says.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] for text that is no plan, [`MatrixError::PlanField`] for a field
    /// that does not go with the rest, with its name, [`MatrixError::NoPlan`] for a product that no
    /// plan is made for.
    pub fn from_json(text: &str) -> Result<Self, MatrixError> {
        let fail = |reason: String| MatrixError::PlanFile { reason };
        if text.len() > MAX_PLAN_BYTES {
            return Err(fail(format!("{} bytes are too many; a plan has at most {MAX_PLAN_BYTES}", text.len())));
        }
        let plan: Self = serde_json::from_str(text).map_err(|e| fail(e.to_string()))?;
        check_claim("spec.security", plan.spec.security)?;
        plan.build()?;
        Ok(plan)
    }

    /// Refuses a plan that a planner would not have made for this product, degree and cut.
    fn check(&self) -> Result<(), MatrixError> {
        self.spec.check()?;
        let (Blocks { a, b, c }, Shape { m, k, n, .. }) = (self.blocks, self.spec.shape);
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
        let expected = (1..=MAX_MODULI).contains(&count).then(|| moduli(self.spec.result(), count)).flatten();
        if expected.as_ref() != Some(&self.moduli) {
            let holding = format!("coprime ones that just hold results of up to {}", self.spec.result());
            return Err(field("moduli", format!("{:?}", self.moduli), holding));
        }
        let Some(expected) = literal(&self.spec, params.log_n, &self.moduli, self.blocks) else {
            return Err(field("params.log_n", params.log_n, "a degree that holds this product securely"));
        };
        check_params(params, &expected)?;
        if !(self.seconds.is_finite() && self.seconds >= 0.0) {
            return Err(field("seconds", self.seconds, "a time"));
        }
        Ok(())
    }

    /// Parameters for each plaintext modulus, checked against the bound on the noise.
    ///
    /// # Errors
    /// [`MatrixError::PlanField`] for a plan that was changed, with the field's name,
    /// [`MatrixError::NoPlan`], [`MatrixError::He`].
    pub fn build(&self) -> Result<Vec<IntegerParams>, MatrixError> {
        self.check()?;
        let params = self.params.build()?;
        let all = self.moduli.iter().map(|t| IntegerParams::new(&params, *t)).collect::<Result<Vec<_>, _>>()?;
        let terms = self.blocks.counts(self.spec.shape)[1] as f64;
        for p in &all {
            let noise = p.noise().message() + p.noise().secret_encryption();
            let product = (p.t() as f64 * terms).log2() + 2.0 * noise.log2();
            if product >= p.noise().log_limit(params.max_level()) {
                let expected = "primes that hold the noise of the product";
                return Err(field("params.q_bits", format!("{:?} bits", self.params.q_bits), expected));
            }
        }
        Ok(all)
    }

    /// Security that the parameters have.
    pub fn security(&self) -> Security {
        let bits: u32 = self.params.q_bits.iter().chain(&self.params.p_bits).sum();
        security_of(self.params.log_n, self.params.secret, f64::from(bits))
    }

    /// Bytes of an operand or of the result as they are sent: fresh ones under the secret key as one
    /// polynomial and a seed, the result's three.
    pub fn wire_bytes(&self, operand: Operand) -> u64 {
        let polynomials = if operand == Operand::Output { 3 } else { 1 };
        let one = sizing::sent_bytes(&self.params, self.params.q_bits.len(), false);
        (self.count(operand) * self.moduli.len() * polynomials) as u64 * one
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
            self.security().bits()
        )?;
        let moduli: Vec<String> = self.moduli.iter().map(u64::to_string).collect();
        writeln!(f, "plaintext moduli {}", moduli.join(", "))?;
        writeln!(f, "blocks           {a}×{b} · {b}×{c}; ciphertexts {left} + {right} → {out}")?;
        let [x, y, z] = [Operand::Left, Operand::Right, Operand::Output].map(|o| bytes(self.wire_bytes(o)));
        writeln!(f, "as files         {x} + {y} → {z}")?;
        write!(f, "expected         {:.1} ms on one thread", self.seconds * 1e3)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least integer whose power is not under `x`, below 2^60, the same on every machine.
fn root(x: u128, power: u32) -> u128 {
    let reaches = |r: u128| r.checked_pow(power).is_none_or(|p| p >= x);
    // Near it, but for the last bits of doubles.
    let mut r = (x as f64).powf(1.0 / f64::from(power)) as u128;
    while !reaches(r) {
        r += 1;
    }
    while r > 1 && reaches(r - 1) {
        r -= 1;
    }
    r
}

/// `count` coprime odd moduli, as small as they may be, with a product over twice the bound.
fn moduli(bound: i128, count: usize) -> Option<Vec<u64>> {
    let needed = 2 * bound as u128 + 1;
    // Too large a root, and one whose estimate by doubles would be far off.
    if needed >> (count as u32 * MODULUS_BITS).min(127) != 0 {
        return None;
    }
    let root = root(needed, count as u32);
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
    use crate::exact::{ExactClient, ExactServer};
    use crate::packing::IntMatrix;
    use serde_json::{Value, json};

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
    }

    #[test]
    fn roots_are_exact() {
        for (r, power) in [(1 << 58, 2), ((1 << 58) + 1, 2), (12_345_678_901, 3), (536_870_909, 4)] {
            let x = u128::pow(r, power);
            assert_eq!([root(x - 1, power), root(x, power), root(x + 1, power)], [r, r, r + 1], "{r}^{power}");
        }
        assert_eq!(root((1 << 58) + 5, 1), (1 << 58) + 5);
    }

    /// A plan's text with one value in another's place.
    fn edited(plan: &ExactPlan, pointer: &str, value: &Value) -> String {
        let mut text: Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
        *text.pointer_mut(pointer).unwrap() = value.clone();
        text.to_string()
    }

    /// Every field of a plan's file, set to what would lower security, hold less or take more.
    #[test]
    fn a_file_says_nothing_that_does_not_follow() {
        let plan = ExactPlan::new(&spec(16, 16, 16, 1023, 1023)).unwrap();
        let (field, limit) = ("PlanField", "NoPlan");
        let edits: Vec<(&str, Value, &str, &str)> = vec![
            ("/params/log_n", json!(9), field, "params.log_n"),
            ("/params/log_n", json!(11), field, "blocks"),
            ("/params/log_n", json!(13), field, "params.q_bits"),
            ("/params/log_n", json!(40), field, "params.log_n"),
            ("/params/security", json!("Insecure"), field, "params.security"),
            ("/params/security", json!("Bits256"), field, "params.security"),
            ("/params/secret", json!({"FixedWeight": {"weight": 1}}), field, "params.secret"),
            ("/params/secret", json!("Gaussian"), field, "params.secret"),
            ("/params/q_bits", json!([30]), field, "params.q_bits"),
            ("/params/q_bits", json!([39, 39, 39, 39, 39, 39]), field, "params.q_bits"),
            ("/params/q_bits", json!([]), field, "params.q_bits"),
            ("/params/p_bits", json!([60]), field, "params.p_bits"),
            ("/params/digit_limbs", json!(0), field, "params.digit_limbs"),
            ("/params/log_scale", json!(40), field, "params.log_scale"),
            ("/spec/security", json!("Insecure"), field, "spec.security"),
            ("/spec/security", json!("Bits256"), field, "params"),
            ("/spec/shape/m", json!(1u64 << 40), limit, "elements"),
            ("/spec/shape/k", json!(1 << 27), limit, "elements"),
            ("/spec/shape/k", json!(4096), field, "moduli"),
            ("/spec/shape/n", json!(0), limit, "elements"),
            ("/spec/shape/batch", json!(2), limit, "one pair"),
            ("/spec/left", json!(0), limit, "at least 1"),
            ("/spec/left", json!(1_000_000), field, "moduli"),
            ("/spec/right", json!(u64::MAX), field, "moduli"),
            ("/blocks/a", json!(0), field, "blocks"),
            ("/blocks/b", json!(1 << 14), field, "blocks"),
            ("/blocks/c", json!(u64::MAX), field, "blocks"),
            ("/moduli", json!([101]), field, "moduli"),
            ("/moduli", json!([]), field, "moduli"),
            // A product of 2^127.5: more than a centred result of 128 bits holds.
            ("/moduli", json!([u64::MAX / 2 + 3, u64::MAX / 2 + 5, 3]), field, "moduli"),
            ("/moduli", json!([(1u64 << 59) - 1, (1u64 << 59) - 3, 1023]), field, "moduli"),
            ("/seconds", json!(-1), field, "seconds"),
        ];
        for (pointer, value, kind, named) in edits {
            let refusal = ExactPlan::from_json(&edited(&plan, pointer, &value)).unwrap_err();
            let (debug, told) = (format!("{refusal:?}"), refusal.to_string());
            assert!(debug.starts_with(kind) && told.contains(named), "{pointer} = {value}: {told}");
        }
        // A file cannot bring along what a plan does not have.
        let more = plan.to_json().unwrap().replacen('{', "{\"note\":1,", 1);
        assert!(matches!(ExactPlan::from_json(&more), Err(MatrixError::PlanFile { .. })));
        // Another time changes nothing but the time.
        let slow = ExactPlan::from_json(&edited(&plan, "/seconds", &json!(5.0))).unwrap();
        assert_eq!(ExactPlan { seconds: plan.seconds, ..slow }, plan);
    }

    /// What is printed is what the parameters have.
    #[test]
    fn the_printed_security_is_that_of_the_parameters() {
        for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
            let plan = ExactPlan::new(&ExactSpec { security, ..spec(8, 8, 8, 100, 100) }).unwrap();
            let real = plan.build().unwrap()[0].security();
            assert!(real >= security);
            assert!(plan.to_string().contains(&format!("{}-bit security", real.bits())), "{plan}");
        }
        let mut play = ExactPlan::new(&spec(8, 8, 8, 100, 100)).unwrap();
        play.params.log_n = 10;
        assert!(play.to_string().contains(" 0-bit security"), "{play}");
    }

    #[test]
    fn sizes_are_those_that_are_sent() {
        for plan in
            [spec(16, 16, 16, 1023, 1023), spec(5, 40, 3, 1 << 40, 1 << 30)].map(|s| ExactPlan::new(&s).unwrap())
        {
            let client = ExactClient::new(&plan, 1).unwrap();
            let Shape { m, k, n, .. } = plan.spec.shape;
            let ones = |rows, cols| IntMatrix::from_fn(rows, cols, |_, _| 1).unwrap();
            let x = client.encrypt(Operand::Left, &ones(m, k)).unwrap();
            let y = client.encrypt(Operand::Right, &ones(k, n)).unwrap();
            let z = ExactServer::new(&plan, 1).unwrap().multiply(&x, &y).unwrap();
            for (operand, sent) in [(Operand::Left, x), (Operand::Right, y), (Operand::Output, z)] {
                let (told, found) = (plan.wire_bytes(operand) as f64, sent.to_bytes().unwrap().len() as f64);
                assert!((0.98..1.02).contains(&(told / found)), "{operand:?}: {told} told, {found} sent");
            }
        }
    }
}
