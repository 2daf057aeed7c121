//! `bootstrap`: CKKS bootstrapping by set: time, steps, precision by shape of input, counters, keys and memory.
//!
//! Every refreshed ciphertext is decrypted and has to lie within the bound that it carries, and the counted
//! operations have to be those that the set foretells.

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::{Machine, cpu_time, peak_rss_mb, reset_peak_rss};
use crate::record::Counted;
use crate::timing::{Budget, Unit, measure, milliseconds};
use num_complex::Complex64;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, BootstrapParams, Bootstrapper, Kind, Step};
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor};
use sudare_ring::Threads;
use sudare_ring::count::{self, Counts};
use sudare_rlwe::Counters;
use sudare_rlwe::keys::SecretKey;
use sudare_testkit::Random;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sets: A, A12, A50, B, C, D.
    #[arg(long, value_delimiter = ',', default_value = "C")]
    set: Vec<String>,
    /// Ciphertexts refreshed together, or pairs of them, in lines of their own.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    batch: Vec<usize>,
    /// Slots: `complex`, `real`, `pair` (two real ciphertexts as one).
    #[arg(long, value_delimiter = ',', default_value = "complex,real,pair")]
    slots: Vec<Slots>,
    /// Do not refresh the other shapes of input: the constants 1, −1 and i, a corner, [0, 1], one-hot, a ramp.
    #[arg(long)]
    quick: bool,
    /// Refreshes in a row of one ciphertext of complex slots, the last one's error against its prediction.
    #[arg(long, default_value_t = 0)]
    row: usize,
    /// Most bytes of keys, diagonals and one ciphertext's work.
    #[arg(long)]
    memory: Option<f64>,
    /// The set's shape over 2^`log_n`, without security: a trial of the lab.
    #[arg(long)]
    log_n: Option<u32>,
}

impl Options {
    /// Complex slots of a set, one ciphertext, random slots alone.
    pub fn set(name: &str) -> Self {
        let (set, batch, slots) = (vec![name.to_owned()], vec![1], vec![Slots::Complex]);
        Self { set, batch, slots, quick: true, row: 0, memory: None, log_n: None }
    }

    /// The same over a ring of degree 2^`log_n`, without security.
    pub fn trial(name: &str, log_n: u32) -> Self {
        Self { log_n: Some(log_n), ..Self::set(name) }
    }
}

/// Which slots hold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Slots {
    Complex,
    Real,
    /// Two ciphertexts of real slots, refreshed as one.
    Pair,
}

impl Slots {
    fn kind(self) -> Kind {
        match self {
            Self::Complex => Kind::Complex,
            Self::Real => Kind::Real,
            Self::Pair => Kind::Pair,
        }
    }

    /// Ciphertexts that are refreshed as one.
    fn together(self) -> usize {
        if self == Self::Pair { 2 } else { 1 }
    }

    /// E|z|² of what is refreshed, for random slots.
    fn mean_square(self) -> f64 {
        match self {
            Self::Complex => 0.5,
            Self::Real => 1.0 / 3.0,
            Self::Pair => 2.0 / 3.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Complex => "complex",
            Self::Real => "real",
            Self::Pair => "pair",
        }
    }
}

/// Units that a bootstrap of complex slots on one thread should take, and the bits that should be left.
const TARGETS: [(&str, f64, f64); 3] = [("A", 88_000.0, 27.0), ("B", 68_000.0, 20.0), ("C", 28_500.0, 16.0)];
/// The set whose quality others have, and that others are compared with.
const STANDARD: &str = "A";
/// Figures of others for the quality of set A, from other runs.
const REFERENCE: &str = "one Sapphire Rapids core, constants from another run: Lattigo 6.2 19.1 s, 27.9 bits for slots of mean zero and \
                         13.3 for the constant 1, 9 levels, 7.9 GB keys; OpenFHE 1.5.1 with HEXL 16.1 s, 10.6 bits, 3 levels";

/// Bits by the errors of real and of imaginary parts (of real slots: real parts alone).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Precision {
    /// −log2 of the root of their mean square.
    pub rms_bits: f64,
    /// Mean of −log2 |e|.
    pub mean_bits: f64,
    /// −log2 of the largest |e|.
    pub worst_bits: f64,
}

/// What one refresh is made of ([`sudare_ring::count`]).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Work {
    /// Transforms of one limb.
    pub transforms: u64,
    /// Conversions of polynomials to other bases.
    pub conversions: u64,
    /// Decompositions into digits.
    pub decompositions: u64,
    /// Products of digits with keys.
    pub inner_products: u64,
    /// Bytes of keys that these read.
    pub key_bytes: u64,
}

impl From<Counts> for Work {
    fn from(c: Counts) -> Self {
        let Counts { transforms, conversions, decompositions, inner_products, key_bytes } = c;
        Self { transforms, conversions, decompositions, inner_products, key_bytes }
    }
}

/// Time of one step of a refresh.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StepTime {
    /// Wall time.
    pub ms: f64,
    /// Processor time of all threads.
    pub cpu_ms: f64,
    /// Key switches.
    pub key_switches: u64,
}

/// Refreshes of one ciphertext in a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct InARow {
    /// How many.
    pub rounds: usize,
    /// Rms bits that are left.
    pub rms_bits: f64,
    /// The same by the set's formulas: independent errors add as squares, and what the series does to the same message
    /// again and again adds straight.
    pub predicted_rms_bits: f64,
}

/// A measured refresh.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `bootstrap`.
    pub suite: &'static str,
    /// The set, its slots and how many ciphertexts.
    pub case: String,
    /// Ring degree.
    pub n: usize,
    /// Slots that hold values.
    pub slots: usize,
    /// Ciphertexts refreshed together, or pairs of them.
    pub batch: usize,
    /// Threads.
    pub threads: usize,
    /// log2 of the whole modulus.
    pub log_qp: f64,
    /// Security by the limits; 0 where nothing is claimed.
    pub security_bits: u32,
    /// Levels that a refreshed ciphertext has for use: of two primes each in A50.
    pub levels: usize,
    /// log2 of the scale.
    pub log_scale: u32,
    /// Median wall time for all ciphertexts.
    pub median_ms: Option<f64>,
    /// Median processor time for all of them.
    pub cpu_ms: Option<f64>,
    /// Processor time of one ciphertext.
    pub cpu_ms_each: Option<f64>,
    /// The unit's median.
    pub unit_ms: Option<f64>,
    /// Wall time in units.
    pub units: Option<f64>,
    /// Processor time of one ciphertext over the unit's: holds where others load the machine.
    pub cpu_units_each: Option<f64>,
    /// Processor time of one ciphertext over that of set A with the same slots, where that was measured before in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_set_a: Option<f64>,
    /// What that should be at most, for one ciphertext of complex slots on one thread.
    pub target_units: Option<f64>,
    /// Mean bits that should be left at least.
    pub target_bits: Option<f64>,
    /// Others' figures.
    pub reference: Option<&'static str>,
    /// Each step, all ciphertexts together.
    pub steps: BTreeMap<&'static str, StepTime>,
    /// Precision by shape of input, values of size up to one.
    pub precision: BTreeMap<&'static str, Precision>,
    /// After many refreshes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_a_row: Option<InARow>,
    /// Rms bits that the set's formulas give for random slots of this kind.
    pub predicted_rms_bits: f64,
    /// −log2 of the static bound that the results carry.
    pub bound_bits: f64,
    /// Operations of one refresh of all ciphertexts, counted; the same as the set foretells.
    pub counters: Counted,
    /// What they were made of, counted; the same as the set foretells.
    pub work: Work,
    /// Keys in memory.
    pub key_bytes: u64,
    /// Diagonals in memory.
    pub diagonal_bytes: u64,
    /// Seconds for secret, keys and diagonals.
    pub setup_s: f64,
    /// Peak of the resident set during the refreshes.
    pub peak_rss_mb: Option<f64>,
    /// `ok`, or what is wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Measured {
    const HEAD: &'static str = "case                   N levels   wall ms    cpu ms  cpu units of A  target bits rms  mean worst predicted key MB RSS MB check";

    fn row(&self) -> String {
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.0}"));
        let p = self.precision["random"];
        format!(
            "{:<18} {:>5} {:>6} {:>9} {:>9} {:>9} {:>4} {:>7} {:>8.1} {:>5.1} {:>5.1} {:>9.1} {:>6} {:>6} {}",
            self.case,
            self.n,
            self.levels,
            number(self.median_ms),
            number(self.cpu_ms),
            number(self.cpu_units_each),
            self.of_set_a.map_or_else(String::new, |x| format!("{x:.2}")),
            number(self.target_units),
            p.rms_bits,
            p.mean_bits,
            p.worst_bits,
            self.predicted_rms_bits,
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
    set: String,
    secret: SecretKey,
    bootstrapper: Bootstrapper,
    setup_s: f64,
}

impl World {
    fn new(name: &str, literal: &BootstrapLiteral, memory: Option<f64>) -> Outcome<Self> {
        let (set, start) = (name.to_uppercase(), Instant::now());
        let params = literal.build()?;
        let secret = SecretKey::generate(params.params())?;
        let keys = BootstrapKeys::generate(&secret, &params)?;
        let bootstrapper = Bootstrapper::new(keys, memory.map(|bytes| bytes as u64))?;
        Ok(Self { set, secret, bootstrapper, setup_s: start.elapsed().as_secs_f64() })
    }

    fn params(&self) -> &BootstrapParams {
        self.bootstrapper.params()
    }

    /// Values, repeated over all slots.
    fn all(&self, x: &[Complex64]) -> Vec<Complex64> {
        x.iter().copied().cycle().take(self.params().params().slots()).collect()
    }

    fn encrypt(&self, x: &[Complex64]) -> Outcome<Ciphertext> {
        let params = self.params();
        let at = EncodeAt { level: params.input_level(), scale: params.params().scale(), max_abs: 1.0 };
        let plain = Encoder::new(params.params()).encode_complex(&self.all(x), at)?;
        Ok(Encryptor::with_secret_key(&self.secret)?.encrypt(&plain)?)
    }

    /// Precision of a result, and what is wrong with it.
    fn judge(&self, y: &Ciphertext, x: &[Complex64], kind: Kind) -> Outcome<(Precision, Option<String>)> {
        let plain = Decryptor::new(&self.secret).decrypt(y)?;
        let found = Encoder::new(self.params().params()).decode_complex(&plain)?;
        let errors: Vec<Complex64> = found.iter().zip(self.all(x)).map(|(f, x)| f - x).collect();
        let largest = errors.iter().map(|e| e.norm()).fold(0.0, f64::max);
        let wrong = (largest.is_nan() || largest > y.error_bound())
            .then(|| format!("error {largest:.3e} over the bound {:.3e}", y.error_bound()))
            .or_else(|| {
                (y.level() != self.params().output_level()).then(|| format!("level {} after a refresh", y.level()))
            });
        let part = |e: &Complex64| if kind == Kind::Complex { vec![e.re, e.im] } else { vec![e.re] };
        let parts: Vec<f64> = errors.iter().flat_map(part).map(f64::abs).collect();
        let mean = |f: &dyn Fn(f64) -> f64| parts.iter().map(|e| f(*e)).sum::<f64>() / parts.len() as f64;
        let precision = Precision {
            rms_bits: -mean(&|e| e * e).log2() / 2.0,
            // Doubles tell no smaller errors of numbers up to one.
            mean_bits: mean(&|e| -e.max(f64::EPSILON / 4.0).log2()),
            worst_bits: -parts.iter().copied().fold(0.0, f64::max).log2(),
        };
        Ok((precision, wrong))
    }
}

/// Inputs of every shape, values of size up to one, by name.
fn shapes(n: usize, kind: Kind) -> Vec<(&'static str, Vec<Complex64>)> {
    let constant = |z: Complex64| vec![z; n];
    let mut random = Random(7);
    let mut one_hot = constant(Complex64::ZERO);
    one_hot[n / 3] = Complex64::ONE;
    let mut all = vec![
        ("one", constant(Complex64::ONE)),
        ("minus one", constant(-Complex64::ONE)),
        ("from 0 to 1", (0..n).map(|_| random.unit().abs().into()).collect()),
        ("one hot", one_hot),
        ("ramp", (0..n).map(|j| (2.0 * j as f64 / n as f64 - 1.0).into()).collect()),
    ];
    if kind == Kind::Complex {
        all.push(("i", constant(Complex64::I)));
        all.push(("corner", constant(Complex64::new(0.5f64.sqrt(), -(0.5f64.sqrt())))));
    }
    all
}

/// Random values: in the disc, or in [−1, 1).
fn random(n: usize, kind: Kind, seed: u64) -> Vec<Complex64> {
    let mut random = Random(seed);
    let one = |_| match kind {
        Kind::Real | Kind::Pair => random.unit().into(),
        Kind::Complex => {
            let radius = random.unit().abs().sqrt();
            Complex64::from_polar(radius, std::f64::consts::PI * random.unit())
        }
    };
    (0..n).map(one).collect()
}

/// Runs every set, kind and batch.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    out: &mut Lines,
) -> Outcome<Vec<Measured>> {
    if options.batch.contains(&0) {
        return Err("--batch takes numbers above zero".into());
    }
    let mut lines = Vec::new();
    let mut unit = Unit::new()?;
    for name in &options.set {
        let own = BootstrapLiteral::named(name)?;
        let literal = options.log_n.map_or_else(|| Ok(own.clone()), |log_n| own.clone().insecure(log_n))?;
        let world = threads.run(|| World::new(name, &literal, options.memory))?;
        for slots in &options.slots {
            for batch in &options.batch {
                let mut line = case(&world, *slots, *batch, options.quick, (budget, threads, machine), &mut unit)?;
                if options.row > 0 && *batch == 1 && *slots == Slots::Complex {
                    line.in_a_row = Some(in_a_row(&world, options.row, threads)?);
                }
                let standard = format!("{STANDARD}, {}, {batch}", slots.name());
                let standard = lines.iter().rev().find(|known: &&Measured| known.case == standard);
                let standard = standard.filter(|known| known.case != line.case);
                line.of_set_a = standard.and_then(|known| Some(line.cpu_ms_each? / known.cpu_ms_each?));
                out.put(&line)?;
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

fn case(
    w: &World,
    slots: Slots,
    batch: usize,
    quick: bool,
    (budget, threads, machine): (Budget, &Threads, &Machine),
    unit: &mut Unit,
) -> Outcome<Measured> {
    let (params, kind, together) = (w.params(), slots.kind(), slots.together());
    let ciphertexts = batch * together;
    let values: Vec<Vec<Complex64>> = (0..ciphertexts).map(|i| random(params.slots(), kind, 1 + i as u64)).collect();
    let inputs = values.iter().map(|x| w.encrypt(x)).collect::<Outcome<Vec<_>>>()?;
    let all: Vec<&Ciphertext> = inputs.iter().collect();
    let refresh = |all: &[&Ciphertext]| match kind {
        Kind::Complex => w.bootstrapper.refresh_many(all),
        Kind::Real => w.bootstrapper.refresh_many_real(all),
        Kind::Pair => w.bootstrapper.refresh_pairs(all),
    };
    reset_peak_rss();
    let mut results = Vec::new();
    let timing = threads.run(|| {
        measure(
            unit,
            budget,
            || {
                results = refresh(&all)?;
                Ok(())
            },
            None,
        )
    })?;
    let mut wrong = Vec::new();
    let mut precision = BTreeMap::new();
    for (y, x) in results.iter().zip(&values) {
        let (found, problem) = w.judge(y, x, kind)?;
        precision.entry("random").or_insert(found);
        wrong.extend(problem);
    }
    let bound = results.iter().map(Ciphertext::error_bound).fold(0.0, f64::max);
    drop(results);

    w.bootstrapper.reset_counters();
    let (steps, work) = count::counted(|| threads.run(|| steps(w, &all, slots)));
    let steps = steps?;
    let counted = w.bootstrapper.counters();
    let foretold: Counters = params.operations(kind)?.into_iter().sum();
    if counted != foretold * batch {
        wrong.push(format!("counted {counted:?}, foretold {foretold:?} for each"));
    }
    let made_of: Counts = params.work(kind)?.into_iter().sum();
    if work != made_of * batch {
        wrong.push(format!("made of {work:?}, foretold {made_of:?} for each"));
    }
    let shapes = if quick || batch > 1 { Vec::new() } else { shapes(params.slots(), kind) };
    for (name, x) in shapes {
        let input = w.encrypt(&x)?;
        let y = threads.run(|| refresh(&vec![&input; together]))?;
        let (found, problem) = w.judge(&y[0], &x, kind)?;
        precision.insert(name, found);
        wrong.extend(problem.map(|p| format!("{name}: {p}")));
    }

    let set = params.params();
    let noise = params.predicted_noise(slots.mean_square())?;
    let (ours, unit) = (timing.ours, timing.unit);
    let each = ours.cpu.median().map(|ms| ms / ciphertexts as f64);
    let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let aim = TARGETS.iter().find(|t| t.0 == w.set && slots == Slots::Complex && set.security().bits() > 0);
    Ok(Measured {
        suite: "bootstrap",
        case: format!("{}, {}, {batch}", w.set, slots.name()),
        n: set.degree(),
        slots: params.slots(),
        batch,
        threads: threads.count(),
        log_qp: (set.log_qp() * 100.0).round() / 100.0,
        security_bits: set.security().bits(),
        levels: params.usable_levels(),
        log_scale: set.literal().log_scale,
        median_ms: ours.wall.median(),
        cpu_ms: ours.cpu.median(),
        cpu_ms_each: each,
        unit_ms: unit.wall.median(),
        units: quotient(ours.wall.median(), unit.wall.median()),
        cpu_units_each: quotient(each, unit.cpu.median()),
        of_set_a: None,
        target_units: aim.map(|t| t.1),
        target_bits: aim.map(|t| t.2),
        reference: aim.filter(|t| t.0 == STANDARD).map(|_| REFERENCE),
        steps,
        precision,
        // Complex errors have two parts of equal size.
        predicted_rms_bits: noise.bits() + 0.5,
        in_a_row: None,
        bound_bits: -bound.log2(),
        counters: Counted::from(counted),
        work: Work::from(work),
        key_bytes: params.key_bytes()?,
        diagonal_bytes: params.diagonal_bytes()?,
        setup_s: w.setup_s,
        peak_rss_mb: peak_rss_mb(),
        check: if wrong.is_empty() { "ok".into() } else { wrong.join("; ") },
        machine: machine.clone(),
    })
}

/// Refreshes random complex slots again and again.
fn in_a_row(w: &World, rounds: usize, threads: &Threads) -> Outcome<InARow> {
    let x = random(w.params().slots(), Kind::Complex, 11);
    let mut c = w.encrypt(&x)?;
    for _ in 0..rounds {
        // What is known of the values, not of their errors, is what the next refresh needs.
        c = threads.run(|| w.bootstrapper.refresh(&c))?.with_bound(1.0);
    }
    let (found, _) = w.judge(&c, &x, Kind::Complex)?;
    let noise = w.params().predicted_noise(Slots::Complex.mean_square())?;
    let (times, same) = (rounds as f64, noise.approximation);
    let variance = times * (noise.total() - same) + times * times * same;
    Ok(InARow { rounds, rms_bits: found.rms_bits, predicted_rms_bits: 0.5 - variance.log2() / 2.0 })
}

fn name(step: Step) -> &'static str {
    match step {
        Step::SlotsToCoefficients => "1 slots to coefficients",
        Step::Raise => "2 raise",
        Step::CoefficientsToSlots => "3 coefficients to slots",
        Step::Reduce => "4 reduce",
        Step::Join => "5 join",
    }
}

/// Times of the steps of one more refresh.
fn steps(w: &World, all: &[&Ciphertext], slots: Slots) -> Outcome<BTreeMap<&'static str, StepTime>> {
    let (mut marks, kind) = (Vec::new(), slots.kind());
    let mut tell = |_| marks.push((Instant::now(), cpu_time()));
    w.bootstrapper.refresh_with_progress(all, kind, &mut tell)?;
    marks.push((Instant::now(), cpu_time()));
    let switches = w.params().operations(kind)?.map(|c| c.key_switches);
    let mut times = BTreeMap::new();
    // Two refreshes in one tell of each step twice.
    for (i, pair) in marks.windows(2).enumerate() {
        let [(from, cpu_from), (to, cpu_to)] = [pair[0], pair[1]];
        let (step, groups) = (i % Step::ALL.len(), (all.len() / slots.together()) as u64);
        let none = StepTime { ms: 0.0, cpu_ms: 0.0, key_switches: switches[step] * groups };
        let time = times.entry(name(Step::ALL[step])).or_insert(none);
        time.ms += milliseconds(to - from);
        time.cpu_ms += milliseconds(cpu_to.saturating_sub(cpu_from));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole run over a small ring, and sets that do not exist.
    #[test]
    fn a_small_set_is_measured() {
        let options = Options {
            set: vec!["c".into()],
            batch: vec![1, 2],
            slots: vec![Slots::Complex, Slots::Real, Slots::Pair],
            quick: false,
            row: 5,
            memory: None,
            log_n: Some(9),
        };
        let (budget, machine) = (Budget { seconds: 0.0, least: 1 }, Machine::here());
        let mut out = Lines::new(true);
        let lines = run(&options, budget, &Threads::new(1), &machine, &mut out).unwrap();
        out.finish().unwrap();
        assert_eq!(lines.len(), 6);
        for line in &lines {
            assert_eq!((line.check.as_str(), line.steps.len(), line.security_bits), ("ok", 5, 0));
            assert!((line.precision["random"].rms_bits - line.predicted_rms_bits).abs() < 1.5, "{line:?}");
        }
        assert_eq!(lines[0].precision.len(), 8);
        let row = lines[0].in_a_row.unwrap();
        assert!((row.rms_bits - row.predicted_rms_bits).abs() < 1.5 && row.rounds == 5, "{row:?}");
        assert!(lines[1..].iter().all(|line| line.in_a_row.is_none()));
        assert_eq!(lines[1].work.inner_products, 2 * lines[0].work.inner_products);
        let foretold = BootstrapLiteral::c().operations(Kind::Complex).unwrap();
        assert_eq!(lines[0].steps["4 reduce"].key_switches, foretold[3].key_switches);
        let unknown = Options { set: vec!["E".into()], ..options.clone() };
        assert!(run(&unknown, budget, &Threads::new(1), &machine, &mut out).is_err());
        let small = Options { memory: Some(1e6), ..options };
        assert!(run(&small, budget, &Threads::new(1), &machine, &mut out).is_err());
    }
}
