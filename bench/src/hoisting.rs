//! `ops --k`: key switching with k special primes: total sums, hoisted rotations, one rotation, a
//! product, beside what other libraries take on such a core.

use crate::Outcome;
use crate::ops::{Answer, Bench, World};
use crate::record::Record;
use std::time::Instant;
use sudare_he::HeError;
use sudare_he::circuits::cost::TraceCosts;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Encryptor, Evaluator, ParamsLiteral};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::KeyGenerator;
use sudare_rlwe::params::MAX_PRIMES;
use sudare_rlwe::security::{SecretDistribution, Security};

/// Rotations of one ciphertext that share a decomposition.
const ROTATIONS: i64 = 16;

/// A figure of other libraries, measured apart from this run on one core of a Sapphire Rapids
/// machine, at N = 2^15, {60, 10 × 40} and k = 3.
struct Reference {
    case: &'static str,
    /// The best of them.
    best: &'static str,
    ms: f64,
    units: f64,
    lattigo_ms: Option<f64>,
    /// How many times faster ours should be.
    target: Option<f64>,
}

const fn reference(
    case: &'static str,
    best: &'static str,
    [ms, units]: [f64; 2],
    lattigo_ms: Option<f64>,
    target: Option<f64>,
) -> Reference {
    Reference { case, best, ms, units, lattigo_ms, target }
}

const OPENFHE: &str = "OpenFHE 1.5.1 with HEXL";
const REFERENCES: [Reference; 5] = [
    reference("total sum", OPENFHE, [640.0, 16_300.0], Some(847.0), Some(6.0)),
    reference("total sum by doubling", OPENFHE, [820.0, 20_900.0], None, None),
    reference("16 hoisted rotations", OPENFHE, [372.0, 9_500.0], Some(428.0), Some(4.0)),
    reference("rotate", OPENFHE, [52.4, 1_340.0], Some(55.5), Some(5.0)),
    reference("mul + relin + rescale", "SEAL 4.4 with HEXL", [48.3, 1_230.0], Some(66.7), Some(4.0)),
];

/// {60, 10 × 40} with k special primes, as large as P needs to be to cover a digit of k data primes.
pub fn literal(log_n: u32, k: usize) -> Outcome<ParamsLiteral> {
    if !(1..=MAX_PRIMES).contains(&k) {
        return Err(format!("--k takes 1 to {MAX_PRIMES} special primes").into());
    }
    let q_bits: Vec<u32> = std::iter::once(60).chain([40; 10]).collect();
    let digit = q_bits.chunks(k).map(|d| d.iter().sum::<u32>()).max().unwrap_or(0);
    Ok(ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            p_bits: vec![digit.div_ceil(k as u32); k],
            q_bits,
            digit_limbs: k,
            secret: SecretDistribution::Ternary,
            security: Security::Bits128,
        },
        log_scale: 40,
    })
}

/// Adds a library's figure and the ratio to it.
fn beside(mut record: Record, case: &str) -> Record {
    if let Some(r) = REFERENCES.iter().find(|r| r.case == case && record.n == Some(1 << 15)) {
        let lattigo = r.lattigo_ms.map_or_else(String::new, |ms| format!("; Lattigo 6.2 {ms} ms"));
        record.reference =
            Some(format!("{} {} ms{lattigo}: one Sapphire Rapids core, constants from another run", r.best, r.ms));
        record.reference_ms = Some(r.ms);
        record.reference_units = Some(r.units);
        record.reference_ratio = record.cpu_units.or(record.units).map(|ours| r.units / ours);
        record.target_ratio = r.target;
    }
    record
}

/// Runs the cases at the highest level. Keys of sums take at most `memory` bytes.
pub fn run(bench: &mut Bench<'_>, w: &World<'_>, memory: u64) -> Outcome<()> {
    let (params, top) = (w.params, w.params.max_level());
    let generator = KeyGenerator::new(w.secret)?;
    let encryptor = Encryptor::with_secret_key(w.secret)?;
    let (a, b) = (encryptor.encrypt(&w.encoder.encode(&w.x, 1.0)?)?, encryptor.encrypt(&w.encoder.encode(&w.y, 1.0)?)?);
    let threads = bench.threads;

    let function = TraceFunction::total_sum(params)?;
    let start = Instant::now();
    let costs = threads.run(|| TraceCosts::measure(params, top, || start.elapsed()))?;
    let total: f64 = w.x.iter().sum();
    let sum = |bench: &mut Bench<'_>, name: String, plan: &TracePlan| -> Outcome<Option<Record>> {
        if !bench.wanted(&name) {
            return Ok(None);
        }
        let server = Evaluator::new(params, threads.run(|| generator.eval_keys(None, &plan.keys(top)))?)?;
        let bytes = server.keys().bytes();
        bench.measured(
            &name,
            Some(&server),
            1,
            || Ok(server.trace(&a, plan)?),
            |c| Ok(Answer::of(w, &c, |_| total)?.with_key(bytes)),
        )
    };
    // The model's choice and both its neighbours; the fastest of them stands beside the others' best.
    let chosen = match function.fastest(params, &costs, Some(memory)) {
        Err(e @ HeError::Rlwe(RlweError::Memory { .. })) => return Err(e.into()),
        plan => plan?.iterations(),
    };
    let mut sums = Vec::new();
    for h in chosen.saturating_sub(1).max(1)..=(chosen + 1).min(function.steps() - 1) {
        let plan = function.unrolled(h)?;
        if plan.check_memory(params.literal(), top, memory).is_ok() {
            let mark = if h == chosen { ", the model's choice" } else { "" };
            sums.extend(sum(bench, format!("total sum, h = {h}{mark}"), &plan)?);
        }
    }
    sums.sort_by(|x, y| x.cpu_ms.unwrap_or(f64::INFINITY).total_cmp(&y.cpu_ms.unwrap_or(f64::INFINITY)));
    for (i, record) in sums.into_iter().enumerate() {
        bench.sink.put(if i == 0 { beside(record, "total sum") } else { record })?;
    }
    if let Some(record) = sum(bench, "total sum by doubling".into(), &function.doubling())? {
        bench.sink.put(beside(record, "total sum by doubling"))?;
    }

    let elements: Vec<_> = (1..=ROTATIONS).map(|s| (params.rotation_element(s), top)).collect();
    let keys = threads.run(|| generator.eval_keys(Some(top), &elements))?;
    let one = keys.galois_keys().next().map_or(0, |k| k.key().bytes());
    let server = Evaluator::new(params, keys)?;
    let turned = |step: usize| move |i: usize| w.x[(i + step) % w.params.slots()];
    let steps: Vec<i64> = (1..=ROTATIONS).collect();
    let hoisted = bench.measured(
        "16 hoisted rotations",
        Some(&server),
        1,
        || Ok(server.rotate_many(&a, &steps)?),
        |all| {
            let mut worst = Answer::of(w, &all[0], turned(1))?;
            for (i, c) in all.iter().enumerate() {
                worst.error = worst.error.max(w.error(c, turned(i + 1))?);
            }
            Ok(worst.with_key(one * all.len()))
        },
    )?;
    let rotation = bench.measured(
        "rotate",
        Some(&server),
        1,
        || Ok(server.rotate(&a, 1)?),
        |c| Ok(Answer::of(w, &c, turned(1))?.with_key(one)),
    )?;
    let relin = server.keys().relin()?.bytes();
    let product = bench.measured(
        "mul + relin + rescale",
        Some(&server),
        1,
        || Ok(server.mul_rescale(&a, &b)?),
        |c| Ok(Answer::of(w, &c, |i| w.x[i] * w.y[i])?.with_key(relin)),
    )?;
    for record in [hoisted, rotation, product].into_iter().flatten() {
        let case = record.case.clone();
        bench.sink.put(beside(record, &case))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_special_primes_of_47_bits() {
        let l = literal(15, 3).unwrap();
        assert_eq!((&l.p_bits, l.digit_limbs, l.q_bits.len()), (&vec![47; 3], 3, 11));
        assert!(literal(15, 0).is_err());
    }

    #[test]
    fn references_agree_on_the_unit() {
        for r in REFERENCES {
            assert!((r.ms / r.units / 0.0393 - 1.0).abs() < 0.02, "{}", r.case);
        }
    }
}
