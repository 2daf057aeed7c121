//! Which h: the cost of an unrolled trace from three measured figures.
//!
//! An iteration costs one decomposition and one pair of divisions, whatever it sums, and an inner
//! product with an addition for each automorphism. Inner products stream their keys, and what that
//! costs depends on whether all keys of the plan stay in the cache; so they are measured both ways.

use super::trace::TraceFunction;
use super::unrolled::TracePlan;
use crate::ckks::{EncodeAt, Encoder, Encryptor, Params};
use crate::error::HeError;
use std::hint::black_box;
use std::time::Duration;
use sudare_ring::ops::Image;
use sudare_rlwe::keys::{KeyGenerator, KeySwitchKey, SecretKey};
use sudare_rlwe::switching::ExtendedPair;

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
        let element = params.rotation_element(1);
        let key = KeyGenerator::new(&secret)?.galois_key(element, level)?;
        let at = EncodeAt { level, scale: (params.literal().log_scale as f64).exp2(), max_abs: 1.0 };
        let plain = Encoder::new(params).encode_at(&[0.5], at)?;
        let a = Encryptor::with_secret_key(&secret)?.encrypt(&plain)?;
        let parts = [&a.parts()[0], &a.parts()[1]];
        let tables = params.tables(level);
        let decomposed = tables.gadget.decompose(parts[1]);
        let far_keys = vec![key.clone(); (FAR_BYTES / key.key().bytes().max(1)).clamp(2, 64)];
        let key_bytes = key.key().bytes() as f64;

        let sum = |keys: Vec<Option<Image<'_>>>| {
            black_box(tables.gadget.sum_of_images(parts, &decomposed, &keys));
        };
        let iteration = least(&now, || {
            let decomposed = tables.gadget.decompose(parts[1]);
            let c = tables.gadget.sum_of_images(parts, &decomposed, &[None]);
            black_box(ExtendedPair { level, c }.mod_down(params));
        });
        // Differences, so that what a sum costs once does not count.
        let (few, many) = (1, 5);
        let per_key = |short: f64, long: f64| ((long - short) / f64::from(many - few)).max(1e-9);
        // Different keys that a cache holds together: one key alone would stay in the nearest one.
        let near_keys = &far_keys[..far_keys.len().min((NEAR_BYTES / key_bytes) as usize).max(1)];
        let near = |count: usize| {
            least(&now, || sum((0..count).map(|i| Some(near_keys[i % near_keys.len()].image())).collect()))
        };
        let near = per_key(near(few as usize), near(many as usize));
        let mut next = 0;
        let mut far = |count: i32| {
            least(&now, || {
                let keys = (0..count as usize).map(|i| Some(far_keys[(next + i) % far_keys.len()].image())).collect();
                next += count as usize;
                sum(keys);
            })
        };
        let far = per_key(far(few), far(many)).max(near);
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
    /// [`HeError::Memory`] if not even repeated doubling fits.
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
