//! Measures the cells of one group in this process.

use super::cell::{Cell, Shares, printed};
use super::{Group, Options, Special};
use crate::Outcome;
use crate::machine::{Machine, cpu_time, peak_rss_mb, reset_peak_rss};
use crate::timing::{Budget, Unit, fill, measure, milliseconds};
use std::collections::BTreeSet;
use std::time::Instant;
use sudare_he::HeError;
use sudare_he::circuits::cost::TraceCosts;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_ring::Threads;
use sudare_ring::buffer::Buffer;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security, security_of};
use sudare_testkit::Random;

/// log2 N of the paper.
const LOG_N: u32 = 15;
/// Steps that only the whole trace to the rationals has.
const WHOLE: usize = 15;

/// The paper's chain {60, 40×9} with k special primes: L + 1 = 10 data primes, k in a digit.
pub fn literal(k: usize, special: Special) -> ParamsLiteral {
    let q_bits: Vec<u32> = std::iter::once(60).chain([40; 9]).collect();
    let digit = q_bits.chunks(k).map(|d| d.iter().sum::<u32>()).max().unwrap_or(0);
    let bits = match special {
        Special::Cover => digit.div_ceil(k as u32),
        Special::Paper => 60,
    };
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n: LOG_N,
            q_bits,
            p_bits: vec![bits; k],
            digit_limbs: k,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 40,
    }
}

/// What all cells of a group share.
struct World<'a> {
    group: &'a Group,
    options: &'a Options,
    params: Params,
    secret: SecretKey,
    input: Ciphertext,
    /// What every slot should become.
    wanted: Vec<f64>,
    costs: TraceCosts,
    parts: Parts,
    chosen: Option<usize>,
}

/// Measures a group: one line for each h.
pub fn group(
    group: &Group,
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    unit: &mut Unit,
) -> Outcome<Vec<Cell>> {
    let params = literal(group.k, options.special).build()?;
    let function = function(&params, group.m)?;
    let plans = group.h.iter().map(|h| Ok(function.unrolled(*h)?)).collect::<Outcome<Vec<_>>>()?;
    let mut random = Random(group.m as u64);
    let x: Vec<f64> = (0..params.slots()).map(|_| random.unit()).collect();
    let at = EncodeAt { level: group.level, scale: params.scale(), max_abs: 1.0 };
    let secret = SecretKey::generate(&params)?;
    let input = Encryptor::with_secret_key(&secret)?.encrypt(&Encoder::new(&params).encode_at(&x, at)?)?;
    // What judges the choice also measures the costs: see `Cell::time`.
    let start = Instant::now();
    let costs = match threads.count() {
        1 => TraceCosts::measure(&params, group.level, cpu_time)?,
        _ => threads.run(|| TraceCosts::measure(&params, group.level, || start.elapsed()))?,
    };
    let chosen = match function.fastest(&params, &costs, Some(options.memory as u64)) {
        Ok(plan) => Some(plan.iterations()),
        Err(HeError::Rlwe(RlweError::Memory { .. })) => None,
        Err(other) => return Err(other.into()),
    };
    let parts = Parts::measure(&params, group.level);
    let wanted = sums(&x, group.m);
    let w = World { group, options, params, secret, input, wanted, costs, parts, chosen };

    let mut cells: Vec<Cell> = plans.iter().map(|plan| w.cell(plan, threads.count(), machine)).collect();
    // Keys are made for as many plans at a time as fit: those with more iterations need fewer.
    let mut rest: Vec<usize> = (0..plans.len()).filter(|i| !cells[*i].refused).collect();
    rest.sort_by_key(|i| plans[*i].elements().len());
    while !rest.is_empty() {
        let mut union: BTreeSet<u64> = BTreeSet::new();
        let taken = rest.iter().take_while(|i| {
            let more: BTreeSet<u64> = union.iter().copied().chain(plans[**i].elements()).collect();
            let fits = more.len() as f64 * w.costs.key_bytes <= options.memory;
            if fits {
                union = more;
            }
            fits
        });
        let taken = taken.count().max(1);
        union.extend(plans[rest[0]].elements());
        let wanted: Vec<(u64, usize)> = union.iter().map(|e| (*e, group.level)).collect();
        reset_peak_rss();
        let server =
            Evaluator::new(&w.params, threads.run(|| KeyGenerator::new(&w.secret)?.eval_keys(None, &wanted))?)?;
        for i in rest.drain(..taken) {
            w.run(&mut cells[i], &plans[i], &server, budget, threads, unit)?;
        }
    }
    Ok(cells)
}

/// M = 15 is the whole trace at N = 2^15; fewer steps sum neighbouring slots.
fn function(params: &Params, m: usize) -> Result<TraceFunction, HeError> {
    if m == WHOLE { TraceFunction::field_trace(params) } else { TraceFunction::partial_sums(params, 1 << m) }
}

/// What the function makes of real slots.
fn sums(x: &[f64], m: usize) -> Vec<f64> {
    if m == WHOLE {
        return vec![2.0 * x.iter().sum::<f64>(); x.len()];
    }
    let width = 1 << m;
    (0..x.len()).map(|i| (0..width).map(|j| x[(i + j) % x.len()]).sum()).collect()
}

impl World<'_> {
    /// The cell before anything is measured, refused if its keys do not fit.
    fn cell(&self, plan: &TracePlan, threads: usize, machine: &Machine) -> Cell {
        let (params, group) = (&self.params, self.group);
        let literal = params.literal();
        let refusal = plan.check_memory(literal, group.level, self.options.memory as u64).err();
        let paper_log_qp = params.q().log2_product() + 60.0 * group.k as f64;
        let bits = |log_qp: f64| security_of(LOG_N, SecretDistribution::Ternary, log_qp).bits();
        let shares = self.shares(plan, threads);
        // The paper's multi-thread tables are of eight.
        let theirs = if threads == 1 { 1 } else { 8 };
        let place = (theirs, group.m, plan.iterations(), group.k, group.level);
        Cell {
            suite: "trace".into(),
            m: group.m,
            h: plan.iterations(),
            k: group.k,
            level: group.level,
            threads,
            kernel: machine.kernel.into(),
            params: format!(
                "{{60,40x9|{}x{}}} digits of {}",
                literal.p_bits.first().copied().unwrap_or(0),
                literal.p_bits.len(),
                literal.digit_limbs
            ),
            log_qp: (params.log_qp() * 100.0).round() / 100.0,
            security_bits: bits(params.log_qp()),
            paper_log_qp: (paper_log_qp * 100.0).round() / 100.0,
            paper_security_bits: bits(paper_log_qp),
            digits: params.digits_at(group.level),
            automorphisms: plan.automorphisms(),
            keys: plan.elements().len(),
            key_bytes: plan.key_bytes(literal, group.level),
            median_ms: None,
            p10_ms: None,
            p90_ms: None,
            cpu_ms: None,
            unit_ms: None,
            units: None,
            cpu_units: None,
            model_ms: Some(1e3 * self.costs.price(plan)),
            chosen: self.chosen == Some(plan.iterations()),
            binds: shares.binds().into(),
            shares: Some(shares),
            speedup: None,
            paper_ms: printed().find(|p| (p.threads, p.m, p.h, p.k, p.level) == place).and_then(|p| p.ms),
            max_error: None,
            error_bound: None,
            refused: refusal.is_some(),
            check: refusal.map_or_else(|| "not measured".into(), |e| e.to_string()),
            peak_rss_mb: None,
            commit: machine.commit.into(),
            cpu: machine.cpu.clone(),
            date: machine.date.clone(),
            samples_ms: Vec::new(),
        }
    }

    /// Measures a plan and checks its answer.
    fn run(
        &self,
        cell: &mut Cell,
        plan: &TracePlan,
        server: &Evaluator,
        budget: Budget,
        threads: &Threads,
        unit: &mut Unit,
    ) -> Outcome<()> {
        let mut last = None;
        let timing = measure(
            unit,
            budget,
            || {
                last = Some(threads.run(|| server.trace(&self.input, plan))?);
                Ok(())
            },
            None,
        )?;
        let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
        cell.median_ms = timing.ours.wall.median();
        (cell.p10_ms, cell.p90_ms) = (timing.ours.wall.quantile(0.1), timing.ours.wall.quantile(0.9));
        cell.cpu_ms = timing.ours.cpu.median();
        cell.unit_ms = timing.unit.wall.median();
        cell.units = quotient(cell.median_ms, cell.unit_ms);
        cell.cpu_units = quotient(cell.cpu_ms, timing.unit.cpu.median());
        cell.samples_ms = timing.ours.wall.0;
        cell.peak_rss_mb = peak_rss_mb();
        let Some(sum) = last else { return Ok(()) };
        let values = Encoder::new(&self.params).decode(&Decryptor::new(&self.secret).decrypt(&sum)?)?;
        let error = values.iter().zip(&self.wanted).map(|(v, w)| (v - w).abs()).fold(0.0, f64::max);
        let bound = sum.error_bound();
        (cell.max_error, cell.error_bound) = (Some(error), Some(bound));
        cell.check = if error <= bound { "ok".into() } else { format!("error {error:.3e} over the bound {bound:.3e}") };
        Ok(())
    }

    /// Where the processor time of a plan goes, from measured parts.
    fn shares(&self, plan: &TracePlan, threads: usize) -> Shares {
        let (costs, iterations) = (&self.costs, plan.iterations() as f64);
        // The costs are wall times with all threads at work.
        let cpu = 1e3 * threads as f64;
        let both = cpu * iterations * costs.iteration;
        let ntt = (1e3 * iterations * self.parts.ntt).min(both);
        let inner_product = cpu * plan.automorphisms() as f64 * costs.near;
        let memory = (cpu * costs.price(plan) - both - inner_product).max(0.0);
        Shares { ntt, conversion: both - ntt, inner_product, memory }
    }
}

/// Seconds of parts, on one thread.
struct Parts {
    /// All transforms of one iteration: a decomposition and two divisions by P.
    ntt: f64,
}

impl Parts {
    fn measure(params: &Params, level: usize) -> Self {
        const ROUNDS: usize = 7;
        let qp = params.qp_at(level);
        let (data, k) = (level + 1, params.literal().digit_limbs);
        let mut words = Buffer::zeroed(params.degree());
        let mut time = |t: usize, forward: bool| {
            let limb = qp.limb(t);
            fill(&mut words, limb.q(), t as u64);
            let samples = (0..ROUNDS).map(|_| {
                let start = Instant::now();
                match forward {
                    true => limb.forward(&mut words),
                    false => limb.inverse(&mut words),
                }
                milliseconds(start.elapsed()) / 1e3
            });
            samples.fold(f64::INFINITY, f64::min)
        };
        let forward: Vec<f64> = (0..qp.len()).map(|t| time(t, true)).collect();
        let inverse: Vec<f64> = (0..qp.len()).map(|t| time(t, false)).collect();
        let digits = (0..data).step_by(k).map(|first| first..data.min(first + k));
        let mod_up: f64 = digits.map(|d| forward.iter().sum::<f64>() - forward[d].iter().sum::<f64>()).sum();
        let down = inverse[data..].iter().sum::<f64>() + forward[..data].iter().sum::<f64>();
        Self { ntt: inverse[..data].iter().sum::<f64>() + mod_up + 2.0 * down }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_primes_cover_a_digit() {
        assert_eq!(literal(1, Special::Cover).p_bits, [60]);
        assert_eq!(literal(5, Special::Cover).p_bits, [44; 5]);
        assert_eq!(literal(10, Special::Cover).p_bits, [42; 10]);
        assert_eq!(literal(10, Special::Paper).p_bits, [60; 10]);
        // With the paper's, k = 10 is over the 868 bits that N = 2^15 holds at 128-bit security.
        let log_qp = |k: usize, special| {
            let l = literal(k, special);
            l.q_bits.iter().chain(&l.p_bits).sum::<u32>()
        };
        assert!([1, 5].iter().all(|k| log_qp(*k, Special::Paper) <= 868));
        assert!(log_qp(10, Special::Paper) > 868 && log_qp(10, Special::Cover) <= 868);
    }

    #[test]
    fn plain_sums() {
        let x = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(sums(&x, 1), [3.0, 6.0, 12.0, 9.0]);
        assert_eq!(sums(&x, WHOLE), [30.0; 4]);
    }
}
