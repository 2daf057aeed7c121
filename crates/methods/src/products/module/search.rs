//! Parameters of the module method.

use super::{ModuleOptions, ModulePlan, NAME};
use crate::product::{Figures, ProductPlan, Requirements};
use crate::products::{Method, ProductSpec};
use crate::slots::common::check_shape;
use crate::{portable, sizing};
use sudare_he::ckks::ParamsLiteral;
use sudare_rlwe::keys::KeySwitchKey;

/// Least scale that is tried, in bits.
const LEAST_SCALE: u32 = 16;

/// Seconds on an ordinary core, near enough to order proposals.
fn rough_seconds(literal: &ParamsLiteral, figures: &Figures) -> f64 {
    let (work, n) = (&figures.work, sizing::degree(literal));
    let ntt = n * f64::from(literal.log_n) * 1.2e-10;
    let products = (work.mac + work.mac_narrow / 2.0) * 2e-10;
    (work.ntt + 2.0 * work.ntt_wide) * ntt + (work.pass + 2.0 * work.pass_wide) * n * 3e-10 + products
}

fn key_bytes(literal: &ParamsLiteral, figures: &Figures) -> f64 {
    let keys = figures.keys.galois.len() + 1;
    (keys * KeySwitchKey::bytes_at(literal, literal.q_bits.len() - 1)) as f64
}

/// Primes of a proposed chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Primes {
    /// As few as possible.
    Few,
    /// More of them, modulo which a product takes fewer operations.
    Narrow,
}

impl Primes {
    fn chain(self, bits: f64, log_n: u32) -> Vec<u32> {
        match self {
            Self::Few => sizing::chain(bits),
            Self::Narrow => sizing::narrow_chain(bits, log_n),
        }
    }
}

/// What the method proposes: with either kind of primes the fastest few by its own count, and the one with the least keys.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let of = |primes: Primes| {
        let priced = layouts(req, &[false, true], primes).into_iter().map(|(plan, figures)| {
            (rough_seconds(&plan.literal, &figures), key_bytes(&plan.literal, &figures), spec(plan))
        });
        let mut found: Vec<(f64, f64, ProductSpec)> = priced.collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let least = found.iter().enumerate().min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)).map(|(i, _)| i);
        let chosen = found.into_iter().enumerate().filter(move |(i, _)| *i < 5 || Some(*i) == least);
        chosen.map(|(_, (_, _, spec))| spec)
    };
    of(Primes::Few).chain(of(Primes::Narrow)).collect()
}

/// Layouts of every ring, each with its smallest scale that reaches the wanted error.
fn layouts(req: &Requirements, relinearized: &[bool], primes: Primes) -> Vec<(ModulePlan, Figures)> {
    let mut found = Vec::new();
    if req.fresh != [true, true] || !req.decrypt_next || check_shape(NAME, req.shape).is_err() {
        return found;
    }
    // Layouts of one ring take about the same scale.
    let mut near = LEAST_SCALE;
    for log_n in 12..=15u32 {
        let n = 1usize << log_n;
        let largest = req.shape.m.max(req.shape.n).next_power_of_two().clamp(8, n / 4);
        for log_side in 3..=largest.trailing_zeros() {
            let side = 1 << log_side;
            let slots = req.shape.batch.next_power_of_two().min(n / (2 * side));
            for relinearize in relinearized {
                let options = ModuleOptions { side, slots, relinearize: *relinearize };
                let Some((plan, figures)) = propose(req, log_n, options, near, primes) else { continue };
                near = plan.literal.log_scale;
                found.push((plan, figures));
            }
        }
    }
    found
}

fn spec(plan: ModulePlan) -> ProductSpec {
    ProductSpec { shape: plan.shape, method: Method::Module(plan.options), params: plan.literal }
}

/// A literal of some scale whose data primes are what `cut` makes of the bits that the sum takes.
fn literal(
    req: &Requirements,
    log_n: u32,
    options: ModuleOptions,
    log_scale: u32,
    cut: impl FnOnce(f64) -> Vec<u32>,
) -> Option<ParamsLiteral> {
    let mut ample = sizing::ample(log_n, log_scale);
    (ample.p_bits, ample.digit_limbs) = (ample.q_bits.clone(), ample.q_bits.len());
    // Before a rescale, after which less is needed.
    let ample =
        ModulePlan { shape: req.shape, literal: ample, options: ModuleOptions { relinearize: false, ..options } };
    let mut literal = sizing::bare(log_n, log_scale, req.security);
    literal.q_bits = cut(portable::modulus_bits(&ample, req.max_abs).ok()?);
    // One digit if the degree has room for as many special primes, one prime a digit if not.
    literal.p_bits = literal.q_bits.clone();
    literal.digit_limbs = literal.q_bits.len();
    if !sizing::secure(&literal) {
        literal.p_bits = literal.q_bits.iter().copied().max().into_iter().collect();
        literal.digit_limbs = 1;
    }
    // A larger scale takes a larger modulus.
    sizing::secure(&literal).then_some(literal)
}

/// What the method proposes for the smallest results: relinearised, and rescaled by as much as the wanted error allows.
pub fn compact(req: &Requirements) -> Vec<ProductSpec> {
    /// A scale above the least leaves room for the rounding of the rescale.
    const ROOM: std::ops::RangeInclusive<u32> = 1..=3;
    let smallest = layouts(req, &[false], Primes::Few).into_iter().flat_map(|(least, _)| {
        let (log_n, log_scale) = (least.literal.log_n, least.literal.log_scale);
        let options = ModuleOptions { relinearize: true, ..least.options };
        ROOM.filter_map(move |room| {
            let of = |last: u32| {
                let cut = |bits: f64| {
                    let mut chain = sizing::chain(bits - f64::from(last));
                    chain.push(last);
                    chain
                };
                let literal = literal(req, log_n, options, log_scale + room, cut)?;
                let plan = ModulePlan { shape: req.shape, literal, options };
                let figures = plan.figures(req.max_abs).ok().filter(|figures| figures.error <= req.error)?;
                Some((figures.result_bytes(&plan.literal), plan))
            };
            // A larger divisor leaves less of the scale.
            let lasts: Vec<u32> = (sizing::LEAST_PRIME_BITS..=sizing::PRIME_BITS).collect();
            of(*lasts.get(lasts.partition_point(|last| of(*last).is_some()).checked_sub(1)?)?)
        })
    });
    smallest.min_by_key(|(bytes, _)| *bytes).map(|(_, plan)| spec(plan)).into_iter().collect()
}

/// The smallest scale that reaches the wanted error, and primes for it; the search begins `near` one.
fn propose(
    req: &Requirements,
    log_n: u32,
    options: ModuleOptions,
    near: u32,
    primes: Primes,
) -> Option<(ModulePlan, Figures)> {
    let made = |log_scale: u32| -> Option<ModulePlan> {
        let cut = |bits: f64| {
            let chain = primes.chain(bits, log_n);
            if !options.relinearize || chain.len() == 1 || primes == Primes::Narrow {
                return chain;
            }
            // Rescale by as little as possible: a high scale keeps the rounding out of sight.
            let (total, others) = (chain.iter().sum::<u32>(), chain.len() as u32 - 1);
            let last = total.saturating_sub(others * sizing::PRIME_BITS).max(sizing::LEAST_PRIME_BITS);
            let mut chain = vec![(total - last).div_ceil(others); others as usize];
            chain.push(last);
            chain
        };
        Some(ModulePlan { shape: req.shape, literal: literal(req, log_n, options, log_scale, cut)?, options })
    };
    let figures = |plan: &ModulePlan| plan.figures(req.max_abs).ok().filter(|figures| figures.error <= req.error);
    // A larger scale is more exact.
    let too_small = |scale: u32| made(scale).is_some_and(|plan| figures(&plan).is_none());
    let (mut low, mut high, mut step) = (near, near, 1);
    match too_small(near) {
        true => loop {
            (low, high, step) = (high + 1, (high + step).min(sizing::MAX_LOG_SCALE + 1), 2 * step);
            if high > sizing::MAX_LOG_SCALE || !too_small(high) {
                break;
            }
        },
        false => {
            while low > LEAST_SCALE {
                (high, low, step) = (low, low.saturating_sub(step).max(LEAST_SCALE), 2 * step);
                if too_small(low) {
                    low += 1;
                    break;
                }
            }
        }
    }
    let scales: Vec<u32> = (low..high).collect();
    let least = low + scales.partition_point(|scale| too_small(*scale)) as u32;
    if least > sizing::MAX_LOG_SCALE {
        return None;
    }
    let plan = made(least)?;
    let figures = figures(&plan)?;
    Some((plan, figures))
}
