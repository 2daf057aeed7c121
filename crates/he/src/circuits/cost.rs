//! Which h: the cost of an unrolled trace from three measured figures.
//!
//! An iteration costs one decomposition and one pair of divisions, whatever it sums, and an inner
//! product with an addition for each automorphism. Inner products stream their keys, and what that
//! costs depends on whether all keys of the plan stay in the cache; so they are measured both ways.

use super::trace::TraceFunction;
use super::unrolled::TracePlan;
use crate::ckks::{EncodeAt, Encoder, Encryptor, Evaluator, Params};
use crate::error::HeError;
use std::hint::black_box;
use std::time::Duration;
use sudare_rlwe::keys::{EvalKeys, GaloisKey, KeyGenerator, KeySwitchKey, SecretKey};

/// Automorphisms of a short sum and of a long one.
const FEW: usize = 1;
const MANY: usize = 5;
/// Timings of each figure.
const ROUNDS: usize = 7;
/// Key bytes that no cache shared with others is taken to hold.
const FAR_BYTES: usize = 192 << 20;
/// Key bytes up to which inner products cost as if a cache held them.
const NEAR_BYTES: f64 = 24e6;

/// Seconds of what an unrolled trace is made of, for one parameter set, level and number of
/// threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceCosts {
    /// Decomposition and both divisions by P.
    pub iteration: f64,
    /// An automorphism whose key comes from a cache.
    pub near: f64,
    /// An automorphism whose key comes from memory.
    pub far: f64,
    /// Bytes of a key.
    pub key_bytes: f64,
    /// The level that was measured.
    pub level: usize,
}

impl TraceCosts {
    /// Measures this machine with throw-away keys, on as many threads as the caller has: some
    /// tenths of a second. The clock is the caller's: on one thread of a machine that others load
    /// too, the processor time of the process tells more than wall time.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel`; `RlweError::Parameters` without special primes; those of the
    /// system's randomness.
    pub fn measure(params: &Params, level: usize, now: impl Fn() -> Duration) -> Result<Self, HeError> {
        let secret = SecretKey::generate(params)?;
        let key = KeyGenerator::new(&secret)?.galois_key(params.rotation_element(1), level)?;
        let key_bytes = key.key().bytes() as f64;
        // Copies of one key stand for many: their values do not matter here, only where they lie.
        let count = (FAR_BYTES / key.key().bytes().max(1)).clamp(MANY, 64).min(params.slots() - 1);
        let elements: Vec<u64> = (1..=count as i64).map(|step| params.rotation_element(step)).collect();
        let mut keys = EvalKeys::new(params, secret.id());
        for element in &elements {
            keys.insert(GaloisKey::from_parts(*element, key.key().clone())?)?;
        }
        let evaluator = Evaluator::new(params, keys)?;
        let at = EncodeAt { level, scale: (params.literal().log_scale as f64).exp2(), max_abs: 1.0 };
        let plain = Encoder::new(params).encode_at(&[0.5], at)?;
        let a = Encryptor::with_secret_key(&secret)?.encrypt(&plain)?;
        evaluator.sum_of_automorphisms(&a, &elements[..MANY])?;

        let sum = |elements: &[u64]| {
            let _ = black_box(evaluator.sum_of_automorphisms(&a, elements));
        };
        let iteration = least(&now, || sum(&[1]));
        // Differences, so that what a sum costs once does not count.
        let per_key = |short: f64, long: f64| ((long - short) / (MANY - FEW) as f64).max(1e-9);
        // Different keys that a cache holds together: one key alone would stay in the nearest one.
        let some = &elements[..count.min((NEAR_BYTES / key_bytes) as usize).max(1)];
        let near = |count: usize| {
            let chosen: Vec<u64> = some.iter().copied().cycle().take(count).collect();
            least(&now, || sum(&chosen))
        };
        let near = per_key(near(FEW), near(MANY));
        let mut next = 0;
        let mut far = |count: usize| {
            least(&now, || {
                let chosen: Vec<u64> = elements.iter().copied().cycle().skip(next).take(count).collect();
                next = (next + count) % elements.len();
                sum(&chosen);
            })
        };
        let far = per_key(far(FEW), far(MANY)).max(near);
        Ok(Self { iteration, near, far, key_bytes, level })
    }

    /// Seconds of a plan.
    pub fn price(&self, plan: &TracePlan) -> f64 {
        let bytes = plan.elements().len() as f64 * self.key_bytes;
        // Between what a cache holds for sure and twice as much again, keys come from both.
        let away = ((bytes - NEAR_BYTES) / (2.0 * NEAR_BYTES)).clamp(0.0, 1.0);
        let automorphism = self.near + (self.far - self.near) * away;
        plan.iterations() as f64 * self.iteration + plan.automorphisms() as f64 * automorphism
    }
}

impl TraceFunction {
    /// The fastest h by measured costs among the plans whose keys fit into `memory` bytes
    /// (`None`: no limit).
    ///
    /// # Errors
    /// `RlweError::Memory` if not even repeated doubling fits.
    pub fn fastest(&self, params: &Params, costs: &TraceCosts, memory: Option<u64>) -> Result<TracePlan, HeError> {
        let limit = memory.unwrap_or(u64::MAX);
        let mut best = self.doubling();
        best.check_memory(params.literal(), costs.level, limit)?;
        for iterations in 1..self.steps() {
            // 2^m − 1 keys an iteration: plans that no machine holds are not even written down.
            let most = self.steps().div_ceil(iterations) as u32;
            let bytes = (1u64 << most) * KeySwitchKey::bytes_at(params.literal(), costs.level) as u64;
            if most > 12 || bytes / 2 > limit {
                continue;
            }
            let plan = self.unrolled(iterations)?;
            if plan.check_memory(params.literal(), costs.level, limit).is_ok()
                && costs.price(&plan) < costs.price(&best)
            {
                best = plan;
            }
        }
        Ok(best)
    }
}

/// The least of a few timings in seconds, after one round to warm up: what the work itself takes
/// where others load the machine too.
fn least(now: &impl Fn() -> Duration, mut work: impl FnMut()) -> f64 {
    work();
    let samples = (0..ROUNDS).map(|_| {
        let start = now();
        work();
        now().saturating_sub(start).as_secs_f64()
    });
    samples.fold(f64::INFINITY, f64::min)
}
