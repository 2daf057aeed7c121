//! `refresh`: BFV and BGV slots refreshed by removal of the noise digit, by set and scheme: time, steps, products after it,
//! counters, keys and memory.
//!
//! Every refreshed ciphertext is decrypted and compared, then multiplied as often as the set promises, refreshed again and
//! compared again.

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::{Machine, cpu_time, peak_rss_mb, reset_peak_rss};
use crate::record::Counted;
use crate::timing::{Budget, Unit, measure, milliseconds};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::refresh::{RefreshKeys, RefreshParams, RefreshSet, Refresher, Step};
use sudare_exact::{Ciphertext, Decryptor, Encoder, Encryptor, Packing, Scheme, Wrap};
use sudare_ring::Threads;
use sudare_ring::count;
use sudare_rlwe::keys::SecretKey;
use sudare_testkit::Random;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sets: X15, X16.
    #[arg(long, value_delimiter = ',', default_value = "X15")]
    set: Vec<String>,
    /// The set's shape over 2^`log_n`, without security: a trial of the lab.
    #[arg(long)]
    log_n: Option<u32>,
}

impl Options {
    /// A set.
    pub fn set(name: &str) -> Self {
        Self { set: vec![name.to_owned()], log_n: None }
    }

    /// Its shape over a small ring.
    #[cfg(test)]
    pub fn trial(name: &str, log_n: u32) -> Self {
        Self { log_n: Some(log_n), ..Self::set(name) }
    }
}

/// Units that a refresh should take on one thread, and the products after it.
const TARGETS: [(RefreshSet, f64, usize); 2] = [(RefreshSet::X15, 28_000.0, 3), (RefreshSet::X16, 110_000.0, 20)];
/// Figures of others, from other runs.
const REFERENCE: &str = "published: ePrint 2024/109, BFV through CKKS, N = 2^17: 392 s";

/// A measured refresh.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `refresh`.
    pub suite: &'static str,
    /// The set and the scheme.
    pub case: String,
    /// BFV or BGV.
    pub scheme: &'static str,
    /// Ring degree.
    pub n: usize,
    /// The plaintext modulus.
    pub t: u64,
    /// Values in slots.
    pub values: usize,
    /// Threads.
    pub threads: usize,
    /// log2 of the whole modulus.
    pub log_qp: f64,
    /// Security by the limits; 0 where nothing is claimed.
    pub security_bits: u32,
    /// Products in a row between two refreshes.
    pub products: usize,
    /// What they should be at least.
    pub target_products: Option<usize>,
    /// Median wall time.
    pub median_ms: Option<f64>,
    /// Median processor time.
    pub cpu_ms: Option<f64>,
    /// Wall time in units.
    pub units: Option<f64>,
    /// Processor time in units: holds where others load the machine.
    pub cpu_units: Option<f64>,
    /// What the units should be at most.
    pub target_units: Option<f64>,
    /// Processor milliseconds of each step of one refresh.
    pub steps_ms: BTreeMap<String, f64>,
    /// Processor microseconds of a value.
    pub us_each: Option<f64>,
    /// Others' figures.
    pub reference: &'static str,
    /// Wrong values of all, after refreshes and after products.
    pub wrong: usize,
    /// Operations, counted.
    pub counters: Counted,
    /// Transforms of one limb, counted.
    pub transforms: u64,
    /// Keys in memory.
    pub key_bytes: u64,
    /// Diagonals in memory.
    pub diagonal_bytes: u64,
    /// Seconds for secret, keys and diagonals.
    pub setup_s: f64,
    /// Peak of the resident set.
    pub peak_rss_mb: Option<f64>,
    /// `ok`, or what is wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Measured {
    const HEAD: &'static str = "case            N values products   wall ms    cpu ms  cpu units  target  us each transforms key MB RSS MB check";

    fn row(&self) -> String {
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.0}"));
        format!(
            "{:<10} {:>6} {:>6} {:>8} {:>9} {:>9} {:>10} {:>7} {:>8} {:>10} {:>6} {:>6} {}",
            self.case,
            self.n,
            self.values,
            self.products,
            number(self.median_ms),
            number(self.cpu_ms),
            number(self.cpu_units),
            number(self.target_units),
            self.us_each.map_or_else(String::new, |x| format!("{x:.1}")),
            self.transforms,
            self.key_bytes / 1_000_000,
            number(self.peak_rss_mb),
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// A set with its keys.
struct World {
    set: RefreshSet,
    params: RefreshParams,
    secret: SecretKey,
    server: Refresher,
    setup_s: f64,
}

impl World {
    fn new(set: RefreshSet, log_n: Option<u32>) -> Outcome<Self> {
        let start = Instant::now();
        let literal = match log_n {
            Some(log_n) => set.literal().insecure(log_n)?,
            None => set.literal(),
        };
        let params = literal.build()?;
        let secret = SecretKey::generate(params.params())?;
        let server = Refresher::new(RefreshKeys::generate(&secret, &params)?, None)?;
        Ok(Self { set, params, secret, server, setup_s: start.elapsed().as_secs_f64() })
    }

    fn wrong<S: Scheme>(&self, found: &Ciphertext<S>, wanted: &[u64]) -> Outcome<usize> {
        let plain = Decryptor::new(self.params.params(), &self.secret)?.decrypt(found)?;
        let values = Encoder::new(self.params.params()).decode_unsigned(&plain, Packing::Slots)?;
        Ok(values.iter().zip(wanted).filter(|(x, y)| x != y).count())
    }
}

/// Runs every set in both schemes.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    out: &mut Lines,
) -> Outcome<Vec<Measured>> {
    let mut lines = Vec::new();
    let mut unit = Unit::new()?;
    for name in &options.set {
        let world = threads.run(|| World::new(name.parse()?, options.log_n))?;
        let [bfv, bgv] = world.params.products();
        for line in [
            case::<Bgv>(&world, bgv, (budget, threads, machine), &mut unit)?,
            case::<Bfv>(&world, bfv, (budget, threads, machine), &mut unit)?,
        ] {
            out.put(&line)?;
            lines.push(line);
        }
    }
    Ok(lines)
}

fn case<S: Scheme>(
    w: &World,
    products: usize,
    (budget, threads, machine): (Budget, &Threads, &Machine),
    unit: &mut Unit,
) -> Outcome<Measured> {
    let (params, t) = (w.params.params(), *w.params.params().modulus());
    let mut values = Random(5).words(t.value() - 1, params.slots());
    values.iter_mut().for_each(|v| *v += 1);
    let plain = Encoder::new(params).encode_unsigned(&values, Packing::Slots, Wrap::Refuse)?;
    let low: Ciphertext<S> = Encryptor::with_secret_key(params, &w.secret)?.encrypt_at(&plain, w.params.input().0)?;
    reset_peak_rss();
    let mut fresh = low.clone();
    let timing = threads.run(|| {
        let refresh = || {
            fresh = w.server.refresh(&low)?;
            Ok(())
        };
        measure(unit, budget, refresh, None)
    })?;
    let mut wrong = w.wrong(&fresh, &values)?;
    let server = w.server.evaluator::<S>()?;
    let (mut state, mut wanted) = (fresh, values);
    threads.run(|| -> Outcome<()> {
        for _ in 0..products {
            state = server.square(&state)?;
            wanted.iter_mut().for_each(|v| *v = t.mul(*v, *v));
        }
        Ok(())
    })?;
    wrong += w.wrong(&state, &wanted)?;
    w.server.reset_counters();
    let mut starts: Vec<(Step, f64)> = Vec::new();
    let begin = cpu_time();
    let now = || milliseconds(cpu_time() - begin);
    let (again, made_of) =
        count::counted(|| threads.run(|| w.server.refresh_with(&state, &mut |step| starts.push((step, now())))));
    let end = now();
    wrong += w.wrong(&again?, &wanted)?;
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([end]);
    let steps_ms = starts.iter().zip(ends).map(|((step, at), end)| (format!("{step:?}"), end - at)).collect();
    let (ours, unit) = (timing.ours, timing.unit);
    let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let secure = params.security().bits() > 0;
    let aim = TARGETS.iter().find(|t| t.0 == w.set && secure);
    let counters = w.server.counters();
    let mut check = String::from("ok");
    if wrong > 0 {
        check = format!("{wrong} values are wrong");
    } else if counters != w.params.operations() {
        check = format!("{counters:?} are not the operations that the set foretells");
    }
    Ok(Measured {
        suite: "refresh",
        case: format!("{}, {}", w.set, S::NAME),
        scheme: S::NAME,
        n: params.degree(),
        t: t.value(),
        values: params.slots(),
        threads: threads.count(),
        log_qp: (params.log_qp() * 100.0).round() / 100.0,
        security_bits: params.security().bits(),
        products,
        target_products: aim.map(|a| a.2),
        median_ms: ours.wall.median(),
        cpu_ms: ours.cpu.median(),
        units: quotient(ours.wall.median(), unit.wall.median()),
        cpu_units: quotient(ours.cpu.median(), unit.cpu.median()),
        target_units: aim.map(|a| a.1),
        steps_ms,
        us_each: ours.cpu.median().map(|ms| ms * 1e3 / params.slots() as f64),
        reference: REFERENCE,
        wrong,
        counters: Counted::from(counters),
        transforms: made_of.transforms,
        key_bytes: w.params.key_bytes(),
        diagonal_bytes: w.params.diagonal_bytes(),
        setup_s: w.setup_s,
        peak_rss_mb: peak_rss_mb(),
        check,
        machine: machine.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole run over small rings, and a set that does not exist.
    #[test]
    fn small_sets_are_measured() {
        let (budget, machine) = (Budget { seconds: 0.0, least: 1 }, Machine::here());
        let mut out = Lines::new(true);
        let mut run = |options: &Options| run(options, budget, &Threads::new(1), &machine, &mut out);
        let lines = [run(&Options::trial("x15", 9)).unwrap(), run(&Options::trial("X16", 10)).unwrap()].concat();
        assert_eq!(lines.iter().map(|l| l.scheme).collect::<Vec<_>>(), ["BGV", "BFV", "BGV", "BFV"]);
        for line in &lines {
            assert_eq!((line.check.as_str(), line.wrong, line.security_bits), ("ok", 0, 0), "{line:?}");
            assert!(line.transforms > 0 && line.products >= 3 && line.steps_ms.len() == 4);
        }
        assert!(run(&Options::trial("G15", 9)).is_err());
        out.finish().unwrap();
    }
}
