//! `discrete`: gates and tables of 2^15 integers by one bootstrap: time of a gate or value, errors against their prediction,
//! counters, keys and memory.
//!
//! Every result is decrypted and compared with the function in plain arithmetic. `work` has whole computations.

mod aes;
mod exchange;
mod identifiers;
mod life;
pub mod work;

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::{Machine, peak_rss_mb, reset_peak_rss};
use crate::record::Counted;
use crate::timing::{Budget, Unit, measure};
use serde::Serialize;
use std::time::Instant;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper};
use sudare_he::circuits::mod1::Interpolation;
use sudare_he::ckks;
use sudare_he::discrete::{Decryptor, Discrete, DiscreteSet, Encryptor, Evaluator, Form, Gate, Table};
use sudare_ring::Threads;
use sudare_ring::count;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_testkit::Random;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sets: G15, L15, S15, W16.
    #[arg(long, value_delimiter = ',', default_value = "G15,L15,S15")]
    set: Vec<String>,
    /// The set's shape over 2^`log_n`, without security: a trial of the lab.
    #[arg(long)]
    log_n: Option<u32>,
}

/// Units that a bootstrap with one table should take on one thread.
const TARGETS: [(DiscreteSet, f64); 3] =
    [(DiscreteSet::G15, 23_000.0), (DiscreteSet::S15, 30_000.0), (DiscreteSet::W16, 230_000.0)];
/// Figures of others, from other runs.
const REFERENCE: &str = "one Zen 3 core, from another run: OpenFHE 1.5.1 by tables of CKKS 223 µs a bit (N = 2^15) and 478 µs a value of 4 bits \
                         (N = 2^16); TFHE of this library 8,260 µs a gate there";

/// What is done with the integers.
#[derive(Clone, Debug)]
enum Work {
    Gates(Vec<Gate>),
    Tables(Vec<Table>),
}

/// A measured bootstrap of tables.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `discrete`.
    pub suite: &'static str,
    /// The set and what was computed.
    pub case: String,
    /// Ring degree.
    pub n: usize,
    /// Values of one table: all N.
    pub values: usize,
    /// Values that a table has.
    pub modulus: u64,
    /// Gates or tables of the same input.
    pub tables: usize,
    /// Threads.
    pub threads: usize,
    /// log2 of the whole modulus.
    pub log_qp: f64,
    /// Security by the limits; 0 where nothing is claimed.
    pub security_bits: u32,
    /// Median wall time.
    pub median_ms: Option<f64>,
    /// Median processor time.
    pub cpu_ms: Option<f64>,
    /// The unit's median.
    pub unit_ms: Option<f64>,
    /// Wall time in units.
    pub units: Option<f64>,
    /// Processor time in units: holds where others load the machine.
    pub cpu_units: Option<f64>,
    /// Processor microseconds of one gate or value.
    pub us_each: Option<f64>,
    /// What the units should be at most, for one table.
    pub target_units: Option<f64>,
    /// Others' figures.
    pub reference: Option<&'static str>,
    /// log2 of the root of the mean square error of a result.
    pub log_error: f64,
    /// The same by the set's formulas, of the first table; none for products.
    pub predicted_log_error: Option<f64>,
    /// log2 of the bound that the results carry, with a failure probability under 2^-128.
    pub log_bound: f64,
    /// Wrong values, of all.
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
    const HEAD: &'static str = "case                            N   t tables   wall ms    cpu ms  cpu units  target  us each   error predicted   bound key MB RSS MB check";

    fn row(&self) -> String {
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.0}"));
        let digits = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.2}"));
        format!(
            "{:<26} {:>6} {:>3} {:>6} {:>9} {:>9} {:>10} {:>7} {:>8} {:>7.2} {:>9} {:>7.2} {:>6} {:>6} {}",
            self.case,
            self.n,
            self.modulus,
            self.tables,
            number(self.median_ms),
            number(self.cpu_ms),
            number(self.cpu_units),
            number(self.target_units),
            digits(self.us_each),
            self.log_error,
            digits(self.predicted_log_error),
            self.log_bound,
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
    set: DiscreteSet,
    secret: SecretKey,
    server: Evaluator,
    setup_s: f64,
}

impl World {
    fn new(set: DiscreteSet, log_n: Option<u32>) -> Outcome<Self> {
        Self::of(set, set.literal(), log_n)
    }

    /// Of a set, or one like it.
    fn of(set: DiscreteSet, literal: BootstrapLiteral, log_n: Option<u32>) -> Outcome<Self> {
        let start = Instant::now();
        let literal = match log_n {
            Some(log_n) => literal.insecure(log_n)?,
            None => literal,
        };
        let params = literal.build()?;
        let secret = SecretKey::generate(params.params())?;
        let keys = BootstrapKeys::generate(&secret, &params)?;
        let server = Evaluator::new(Bootstrapper::new(keys, None)?)?;
        Ok(Self { set, secret, server, setup_s: start.elapsed().as_secs_f64() })
    }

    /// The same with keys for rotations of a ring's slots, at the level of tables' results.
    fn turning(set: DiscreteSet, log_n: Option<u32>, steps: fn(usize) -> Vec<i64>) -> Outcome<Self> {
        let start = Instant::now();
        let Self { secret, server, .. } = Self::new(set, log_n)?;
        let (params, level) = (server.params().params(), server.params().output_level());
        let elements: Vec<(u64, usize)> =
            steps(params.degree()).into_iter().map(|steps| (params.rotation_element(steps), level)).collect();
        let keys = KeyGenerator::new(&secret)?.eval_keys(None, &elements)?;
        Ok(Self { set, server: server.with_keys(keys)?, secret, setup_s: start.elapsed().as_secs_f64() })
    }

    /// Real and imaginary parts of slots, in the order of the values.
    fn slots(&self, value: &Discrete) -> Outcome<Vec<f64>> {
        let (owner, encoder) = (ckks::Decryptor::new(&self.secret), ckks::Encoder::new(self.server.params().params()));
        let mut out = Vec::new();
        for part in value.parts() {
            let slots = encoder.decode_complex(&owner.decrypt(part)?)?;
            out.extend(slots.iter().map(|z| z.re));
            if value.form() == Form::Packed {
                out.extend(slots.iter().map(|z| z.im));
            }
        }
        Ok(out)
    }
}

/// What each set is measured with: a name, the form of its values, the modulus, the work.
fn cases(set: DiscreteSet) -> Outcome<Vec<(&'static str, Form, u64, Work)>> {
    let mut random = Random(3);
    let mut any = |t: u64| Table::of(t, t, |_| random.below(t));
    let identity = |t| Table::of(t, t, |x| x);
    Ok(match set {
        DiscreteSet::G15 => vec![
            ("a gate", Form::Packed, 4, Work::Gates(vec![Gate::NAND])),
            ("XOR and AND", Form::Packed, 4, Work::Gates(vec![Gate::XOR, Gate::AND])),
            ("the table x", Form::Packed, 4, Work::Tables(vec![identity(4)?])),
        ],
        DiscreteSet::L15 => vec![
            ("a refresh", Form::Split, 2, Work::Tables(vec![identity(2)?])),
            ("a gate by a product", Form::Split, 2, Work::Gates(vec![Gate::XOR])),
        ],
        DiscreteSet::S15 => vec![
            ("the table x", Form::Packed, 16, Work::Tables(vec![identity(16)?])),
            ("a random table", Form::Packed, 16, Work::Tables(vec![any(16)?])),
            ("two random tables", Form::Packed, 16, Work::Tables(vec![any(16)?, any(16)?])),
            ("a gate", Form::Packed, 4, Work::Gates(vec![Gate::NAND])),
        ],
        DiscreteSet::W16 => vec![("a random table", Form::Packed, 256, Work::Tables(vec![any(256)?]))],
    })
}

/// A line of the suite.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A bootstrap of tables.
    Tables(Box<Measured>),
    /// Bits of TFHE in and out.
    Exchange(Box<exchange::Exchanged>),
}

/// Runs every set and case, and with bits modulo 4 their way from TFHE and back.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    out: &mut Lines,
) -> Outcome<Vec<Cell>> {
    let mut lines = Vec::new();
    let mut unit = Unit::new()?;
    for name in &options.set {
        let world = threads.run(|| World::new(name.parse()?, options.log_n))?;
        for (name, form, modulus, work) in cases(world.set)? {
            let line = case(&world, name, (form, modulus, &work), (budget, threads, machine), &mut unit)?;
            out.put(&line)?;
            lines.push(Cell::Tables(Box::new(line)));
        }
        if world.set == DiscreteSet::G15 {
            exchange::run(&world, (budget, threads, machine), &mut unit, &mut |line| {
                out.put(&line)?;
                lines.push(Cell::Exchange(Box::new(line)));
                Ok(())
            })?;
        }
    }
    Ok(lines)
}

fn case(
    w: &World,
    name: &str,
    (form, modulus, work): (Form, u64, &Work),
    (budget, threads, machine): (Budget, &Threads, &Machine),
    unit: &mut Unit,
) -> Outcome<Measured> {
    let (server, params) = (&w.server, w.server.params());
    let degree = params.params().degree();
    let client = Encryptor::with_secret_key(params, &w.secret)?;
    let mut random = Random(17);
    let (most, tables) = match work {
        Work::Gates(gates) => (2, gates.len()),
        Work::Tables(tables) => (modulus, tables.len()),
    };
    let plain = [random.words(most, degree), random.words(most, degree)];
    let encrypted = match work {
        Work::Gates(_) => plain.each_ref().map(|x| {
            let bits: Vec<bool> = x.iter().map(|x| *x == 1).collect();
            client.encrypt_bits(&bits, form)
        }),
        Work::Tables(_) => plain.each_ref().map(|x| client.encrypt(x, modulus, form)),
    };
    let [a, b] = encrypted;
    let (a, b) = (a?, b?);
    let compute = || match work {
        Work::Gates(gates) => server.gates(gates, &a, &b),
        Work::Tables(tables) => server.tables(&a, tables),
    };
    reset_peak_rss();
    let mut results = Vec::new();
    let timing = threads.run(|| {
        measure(
            unit,
            budget,
            || {
                results = compute()?;
                Ok(())
            },
            None,
        )
    })?;
    let owner = Decryptor::new(params, &w.secret)?;
    let (mut wrong, mut squares) = (0, 0.0);
    for (k, result) in results.iter().enumerate() {
        let wanted: Vec<u64> = plain[0]
            .iter()
            .zip(&plain[1])
            .map(|(a, b)| match work {
                Work::Gates(gates) => u64::from(gates[k].apply(*a == 1, *b == 1)),
                Work::Tables(tables) => tables[k].values()[*a as usize],
            })
            .collect();
        wrong += owner.decrypt(result)?.iter().zip(&wanted).filter(|(x, y)| x != y).count();
        let errors = w.slots(result)?.into_iter().zip(&wanted).map(|(x, y)| (x - *y as f64).powi(2));
        squares += errors.sum::<f64>() / (degree * tables) as f64;
    }
    let bound = results.iter().map(Discrete::error).fold(0.0, f64::max);
    server.bootstrapper().reset_counters();
    let (again, made_of) = count::counted(|| threads.run(compute));
    again?;
    let numbers = |t: &Table| t.values().iter().map(|x| *x as f64).collect::<Vec<_>>();
    let predicted = match work {
        Work::Tables(tables) => {
            Some(params.table_noise(&Interpolation::new(&numbers(&tables[0]))?)?.total().log2() / 2.0)
        }
        Work::Gates(_) => None,
    };
    let set = params.params();
    let (ours, unit) = (timing.ours, timing.unit);
    let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let one = tables == 1 && set.security().bits() > 0;
    let aim = TARGETS.iter().find(|t| t.0 == w.set && one);
    Ok(Measured {
        suite: "discrete",
        case: format!("{}, {name}", w.set),
        n: degree,
        values: degree,
        modulus,
        tables,
        threads: threads.count(),
        log_qp: (set.log_qp() * 100.0).round() / 100.0,
        security_bits: set.security().bits(),
        median_ms: ours.wall.median(),
        cpu_ms: ours.cpu.median(),
        unit_ms: unit.wall.median(),
        units: quotient(ours.wall.median(), unit.wall.median()),
        cpu_units: quotient(ours.cpu.median(), unit.cpu.median()),
        us_each: ours.cpu.median().map(|ms| ms * 1e3 / (degree * tables) as f64),
        target_units: aim.map(|t| t.1),
        reference: aim.map(|_| REFERENCE),
        log_error: squares.log2() / 2.0,
        predicted_log_error: predicted,
        log_bound: bound.log2(),
        wrong,
        counters: Counted::from(server.bootstrapper().counters()),
        transforms: made_of.transforms,
        key_bytes: params.key_bytes()?,
        diagonal_bytes: params.diagonal_bytes()?,
        setup_s: w.setup_s,
        peak_rss_mb: peak_rss_mb(),
        check: if wrong == 0 { "ok".into() } else { format!("{wrong} values are wrong") },
        machine: machine.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole run over a small ring, and a set that does not exist.
    #[test]
    fn small_sets_are_measured() {
        let options = Options { set: vec!["g15".into(), "L15".into(), "S15".into()], log_n: Some(10) };
        let (budget, machine) = (Budget { seconds: 0.0, least: 1 }, Machine::here());
        let mut out = Lines::new(true);
        let all = run(&options, budget, &Threads::new(1), &machine, &mut out).unwrap();
        out.finish().unwrap();
        let (mut lines, mut exchanged) = (Vec::new(), 0);
        for cell in all {
            match cell {
                Cell::Tables(line) => lines.push(line),
                Cell::Exchange(line) => {
                    assert!(line.check == "ok" && line.wire_bytes > 0, "{line:?}");
                    exchanged += 1;
                }
            }
        }
        assert_eq!((lines.len(), exchanged), (9, 4));
        for line in &lines {
            assert_eq!((line.check.as_str(), line.wrong, line.security_bits), ("ok", 0, 0), "{line:?}");
            assert!(line.log_error < line.log_bound && line.transforms > 0);
        }
        assert!(lines[1].transforms < lines[0].transforms * 3 / 2, "two gates share a bootstrap");
        let unknown = Options { set: vec!["X15".into()], log_n: Some(9) };
        assert!(run(&unknown, budget, &Threads::new(1), &machine, &mut out).is_err());
    }
}
