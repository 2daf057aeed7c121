//! `tfhe-failure`: how often bootstraps fail at reduced precision, against the formula.
//!
//! Each chain of bootstraps feeds a bootstrap's output to the next, so that the noise that decides is
//! all of it: the blind rotation's, the key switch's, the modulus switch's. A failure reads a
//! neighbouring entry of the table, which differs by at least three.

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::Machine;
use serde::Serialize;
use std::time::Instant;
use sudare_ring::Threads;
use sudare_rlwe::security::Security;
use sudare_testkit::Random;
use sudare_tfhe::{ClientKey, LookupTable, LweCiphertext, Noise, Plaintext, TfheLiteral, TfheParams};

/// How much to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Expected failures of each set, at least 200.
    #[arg(long, default_value_t = 400)]
    failures: usize,
    /// Keys of each set: the noise of one key's rows is one sample of theirs.
    #[arg(long, default_value_t = 32)]
    keys: usize,
    /// Only sets with this text in their name.
    #[arg(long)]
    only: Option<String>,
}

/// Chains side by side.
const CHAINS: usize = 64;
/// Values that a chain takes.
const VALUES: u64 = 8;
/// Standard deviations of the two-sided interval that decides: 99.9 %.
const WIDE: f64 = 3.29;
/// Those of the interval that is printed: 95 %.
const NARROW: f64 = 1.96;

/// A set at reduced precision; insecure.
#[derive(Debug)]
pub struct Reduced {
    /// What most of its noise comes from.
    pub name: &'static str,
    /// n and the bits of the noise of its rows.
    lwe: (usize, u32),
    /// Digits of the blind rotation and of the key switch.
    digits: [(u32, u32); 2],
    /// Factor on an output before it goes back in.
    factor: u64,
}

/// Each source of noise in turn, and all together.
pub const SETS: [Reduced; 5] = [
    Reduced { name: "blind rotation", lwe: (128, 10), digits: [(13, 1), (5, 3)], factor: 1 },
    Reduced { name: "key switch", lwe: (128, 16), digits: [(15, 1), (6, 2)], factor: 1 },
    Reduced { name: "all", lwe: (256, 10), digits: [(14, 1), (2, 5)], factor: 1 },
    Reduced { name: "twice an output", lwe: (128, 10), digits: [(14, 1), (5, 3)], factor: 2 },
    Reduced { name: "modulus switch", lwe: (1500, 8), digits: [(20, 1), (5, 3)], factor: 1 },
];

impl Reduced {
    /// Its parameters: N = 512 and two bits of message and two of carry, declared to fail at 2^−3.
    fn params(&self) -> Outcome<TfheParams> {
        let literal = TfheLiteral {
            lwe_dimension: self.lwe.0,
            lwe_noise: Noise::TUniform { bits: self.lwe.1 },
            log_n: 9,
            rank: 1,
            modulus_bits: 40,
            bootstrap_digits: self.digits[0],
            switch_digits: self.digits[1],
            noise_factor: self.factor * self.factor,
            log_failure: -3.0,
            security: Security::Insecure,
            ..TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 })
        };
        Ok(literal.build()?)
    }
}

/// A measured probability.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `tfhe-failure`.
    pub suite: &'static str,
    /// The set.
    pub case: &'static str,
    /// n, its noise, digits.
    pub params: String,
    /// Bootstraps.
    pub bootstraps: usize,
    /// Keys.
    pub keys: usize,
    /// The formula.
    pub predicted: f64,
    /// Failures that the formula gives.
    pub expected: f64,
    /// Failures.
    pub failures: usize,
    /// Failures over bootstraps.
    pub measured: f64,
    /// Two-sided 95 % interval (Wilson).
    pub interval_95: [f64; 2],
    /// Two-sided 99.9 % interval, which has to hold the formula.
    pub interval_999: [f64; 2],
    /// Measured over predicted.
    pub ratio: f64,
    /// Seconds.
    pub seconds: f64,
    /// `ok`, or that the formula is outside.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Measured {
    const HEAD: &'static str =
        "set              bootstraps failures expected  measured predicted ratio 95 % interval        check";

    fn row(&self) -> String {
        let [low, high] = self.interval_95;
        format!(
            "{:<16} {:>10} {:>8} {:>8.0} {:>9.3e} {:>9.3e} {:>5.2} {low:.3e} to {high:.3e} {}",
            self.case,
            self.bootstraps,
            self.failures,
            self.expected,
            self.measured,
            self.predicted,
            self.ratio,
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Wilson's score interval of `k` of `n` at `z` standard deviations.
fn wilson(k: usize, n: usize, z: f64) -> [f64; 2] {
    let (n, p) = (n as f64, k as f64 / n as f64);
    let scale = 1.0 / (1.0 + z * z / n);
    let centre = scale * (p + z * z / (2.0 * n));
    let half = scale * z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    [centre - half, centre + half]
}

/// Measures every set.
pub fn run(options: &Options, threads: &Threads, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Measured>> {
    if options.failures < 200 || options.keys == 0 {
        return Err("--failures takes at least 200, --keys at least one".into());
    }
    let mut lines = Vec::new();
    for set in SETS.iter().filter(|s| options.only.as_ref().is_none_or(|w| s.name.contains(w.as_str()))) {
        let line = measure(set, options, threads, machine)?;
        out.put(&line)?;
        lines.push(line);
    }
    Ok(lines)
}

fn measure(set: &Reduced, options: &Options, threads: &Threads, machine: &Machine) -> Outcome<Measured> {
    let params = set.params()?;
    let predicted = params.log_failure().exp2();
    let rounds = (options.failures as f64 / predicted / (options.keys * CHAINS) as f64).ceil() as usize;
    let begin = Instant::now();
    let mut failures = 0;
    for number in 0..options.keys {
        failures += threads.run(|| chains(&params, set.factor, rounds, number as u64))?;
    }
    let bootstraps = rounds * options.keys * CHAINS;
    let wide = wilson(failures, bootstraps, WIDE);
    let inside = (wide[0]..=wide[1]).contains(&predicted);
    let l = params.literal();
    Ok(Measured {
        suite: "tfhe-failure",
        case: set.name,
        params: format!(
            "n {} TUniform({}) N {} k {} q 2^{} digits {:?} switch {:?} factor {}",
            set.lwe.0,
            set.lwe.1,
            1u64 << l.log_n,
            l.rank,
            l.modulus_bits,
            set.digits[0],
            set.digits[1],
            set.factor
        ),
        bootstraps,
        keys: options.keys,
        predicted,
        expected: predicted * bootstraps as f64,
        failures,
        measured: failures as f64 / bootstraps as f64,
        interval_95: wilson(failures, bootstraps, NARROW),
        interval_999: wide,
        ratio: failures as f64 / bootstraps as f64 / predicted,
        seconds: begin.elapsed().as_secs_f64(),
        check: if inside { "ok".into() } else { format!("the formula is outside {wide:?}") },
        machine: machine.clone(),
    })
}

/// Failures of `rounds` bootstraps of each chain under one key.
fn chains(params: &TfheParams, factor: u64, rounds: usize, number: u64) -> Outcome<usize> {
    let client = ClientKey::generate(params)?;
    let server = client.server_key()?;
    let q = params.context().q();
    let boxes = 2 * params.space();
    // Neighbouring entries differ by three or five.
    let entry = |x: u64, shift: u64| (3 * x + shift) % VALUES;
    let tables = (0..VALUES).map(|s| Ok(LookupTable::new(params, |x| entry(x, s))?)).collect::<Outcome<Vec<_>>>()?;
    let phase = |m: u64| ((u128::from(m) * u128::from(q)) / u128::from(boxes)) as u64;
    let mut random = Random(1 + number);
    let mut values: Vec<u64> = (0..CHAINS).map(|_| random.word() % VALUES).collect();
    let mut cs: Vec<LweCiphertext> =
        values.iter().map(|m| client.encrypt_phase(phase(*m))).collect::<Result<_, _>>()?;
    let mut failures = 0;
    // The first round's inputs are fresh encryptions, whose noise is less: it does not count.
    for round in 0..=rounds {
        let shift = random.word() % VALUES;
        cs.iter_mut().for_each(|c| c.mul_assign(factor as i64));
        let table = &tables[shift as usize];
        cs = server.bootstrap_many(&cs.iter().collect::<Vec<_>>(), &vec![table; CHAINS])?;
        for (value, c) in values.iter_mut().zip(cs.iter_mut()) {
            *value = entry(factor * *value, shift);
            let found = client.extracted().phase(c)?;
            let off = (found as f64 - phase(*value) as f64) / q as f64;
            if (off - off.round()).abs() * boxes as f64 > 1.5 {
                failures += usize::from(round > 0);
                // The chain goes on with what it should have been, and the noise that it has.
                let entry = ((u128::from(found) * u128::from(boxes) + u128::from(q) / 2) / u128::from(q)) as u64;
                c.add_plain((q + phase(*value) - phase(entry % boxes)) % q);
            }
        }
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let [low, high] = wilson(200, 20_000, NARROW);
        assert!(low > 0.0087 && low < 0.0088 && high > 0.0114 && high < 0.0115, "{low} {high}");
    }

    #[test]
    fn every_set_is_at_reduced_precision() {
        for set in &SETS {
            let p = set.params().unwrap().log_failure().exp2();
            assert!((1e-3..2e-2).contains(&p), "{} {p}", set.name);
        }
    }
}
