//! `schemes`: additions and products of BFV, BGV and CKKS by ring degree and by depth, checked by decryption, and the
//! steps that a product is made of.

mod ckks;
mod integer;
mod page;
mod steps;

pub use integer::IntegerWorld;
pub use page::section;
pub use steps::Steps;

use crate::Outcome;
use crate::machine::{Machine, reset_peak_rss};
use crate::record::{Record, Sink};
use crate::timing::{Budget, Unit, measure};
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::Requirements;
use sudare_ring::Threads;
use sudare_rlwe::Params;
use sudare_rlwe::security::Security;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// `degree`: add and multiply against N; `depth`: against depth; `steps`: what a product is made of, by depth.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "degree,depth,steps",
        value_parser = ["degree", "depth", "steps"]
    )]
    pub sweep: Vec<String>,
    /// Schemes.
    #[arg(long, value_delimiter = ',', default_value = "bfv,bgv,ckks", value_parser = ["bfv", "bgv", "ckks"])]
    pub scheme: Vec<String>,
    /// Plaintext modulus of the exact schemes.
    #[arg(long, default_value_t = 65537)]
    pub t: u64,
    /// Ring degrees of the sweep by degree.
    #[arg(long, value_delimiter = ',', default_value = "1024,2048,4096,8192,16384,32768")]
    pub n: Vec<usize>,
    /// Depth of the sweep by degree.
    #[arg(long, default_value_t = 1)]
    pub at_depth: usize,
    /// Depths of the sweep by depth.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5,6,7,8,9,10")]
    pub depth: Vec<usize>,
    /// Least ring degree of the sweep by depth.
    #[arg(long, default_value_t = 16_384)]
    pub at_n: usize,
    /// Only cases whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

/// What a case's result should hold.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// x + x.
    Sum,
    /// x².
    Product,
    /// x squared so many times in a row.
    Squares(usize),
}

/// Keys and operands of one set of one scheme.
pub trait World: Sync {
    /// Its ciphertexts.
    type Ciphertext: Clone + Send + Sync;
    /// The scheme.
    fn scheme(&self) -> &'static str;
    /// The set.
    fn params(&self) -> &Params;
    /// The set in words.
    fn words(&self, params: String) -> String;
    /// Evaluation keys in memory.
    fn key_bytes(&self) -> usize;
    /// The first operand.
    fn fresh(&self) -> &Self::Ciphertext;
    /// Bytes of a ciphertext in memory.
    fn bytes(&self, c: &Self::Ciphertext) -> usize;
    /// The operands' sum.
    fn add(&self) -> Outcome<Self::Ciphertext>;
    /// Their product with everything that it takes: relinearisation, and rescaling or modulus switching.
    fn multiply(&self) -> Outcome<Self::Ciphertext>;
    /// A ciphertext times itself, as in `multiply`.
    fn square(&self, c: &Self::Ciphertext) -> Outcome<Self::Ciphertext>;
    /// The largest error of a result, and the largest that is right.
    fn check(&self, c: &Self::Ciphertext, wanted: Expected) -> Outcome<(f64, f64)>;
    /// Steps of a product on one thread.
    fn steps(&self, unit: &mut Unit, budget: Budget) -> Outcome<Steps>;
}

/// A case's name, depth, and who is measured beside it.
pub struct Case<'a> {
    /// After the scheme's name.
    pub name: String,
    /// Products in a row that the set holds.
    pub depth: usize,
    /// A library measured in turn with it.
    pub peer: Option<(&'static str, &'a mut dyn FnMut())>,
}

impl Case<'_> {
    /// A case alone.
    pub fn new(name: &str, depth: usize) -> Self {
        Self { name: name.into(), depth, peer: None }
    }
}

/// Runs and prints one case after another.
pub struct Bench<'a> {
    /// The unit of all cases.
    pub unit: Unit,
    /// How long to measure.
    pub budget: Budget,
    /// Conditions.
    pub machine: &'a Machine,
    /// Where lines go.
    pub sink: &'a mut Sink,
    /// The threads of every case.
    pub threads: &'a Threads,
    /// Words, one of which a case's name has to contain; none for every case.
    pub only: &'a [String],
    /// The suite in the records.
    pub suite: &'static str,
}

/// OpenFHE with AVX-512 at N = 2^14, t = 65537, 128 bits: one product with relinearisation (in BGV
/// with its modulus switch), in units, measured apart from this run.
const OPENFHE_UNITS: [(&str, usize, f64); 4] =
    [("BFV", 3, 395.0), ("BFV", 6, 724.0), ("BGV", 3, 173.0), ("BGV", 6, 332.0)];
const OPENFHE: &str = "OpenFHE with AVX-512, one Sapphire Rapids core, constant from another run";

impl Bench<'_> {
    /// Whether a case of this name is to run.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }

    /// Measures `op`, checks its last result and prints the line.
    pub fn case<W: World>(
        &mut self,
        w: &W,
        mut case: Case<'_>,
        wanted: Expected,
        mut op: impl FnMut() -> Outcome<W::Ciphertext> + Send,
    ) -> Outcome<Option<Record>> {
        let name = format!("{} {}", w.scheme().to_lowercase(), case.name);
        if !self.wants(&name) {
            return Ok(None);
        }
        reset_peak_rss();
        let mut last = None;
        let peer = case.peer.take();
        let peer_name = peer.as_ref().map(|p| p.0);
        let timing = measure(
            &mut self.unit,
            self.budget,
            || {
                // The result before goes first, so that one buffer serves all of them, as in the peer.
                last = None;
                last = Some(self.threads.run(&mut op)?);
                Ok(())
            },
            peer.map(|p| p.1),
        )?;
        let mut record = Record::new(self.suite, name, self.threads.count(), self.machine)
            .with_params(w.params())
            .with_timing(timing);
        record.params = record.params.map(|p| w.words(p));
        (record.method, record.depth) = (Some(w.scheme().into()), Some(case.depth));
        (record.key_bytes, record.peer) = (Some(w.key_bytes()), peer_name);
        if let Some(c) = last {
            record.ct_bytes = Some(w.bytes(&c));
            let (error, tolerance) = w.check(&c, wanted)?;
            record = record.with_error(error, tolerance);
        }
        let secure =
            record.n == Some(1 << 14) && record.security_bits >= Some(128) && case.name.starts_with("multiply");
        let known = OPENFHE_UNITS.iter().find(|(s, d, _)| secure && *s == w.scheme() && *d == case.depth);
        if let Some((.., units)) = known {
            (record.reference, record.reference_units) = (Some(OPENFHE.into()), Some(*units));
        }
        self.sink.put(record.clone())?;
        Ok(Some(record))
    }
}

/// A line of a sweep, for the page.
#[derive(Clone, Debug)]
pub struct Point {
    /// `degree` or `depth`.
    pub sweep: &'static str,
    /// What was measured.
    pub operation: String,
    /// The line.
    pub record: Record,
}

/// What the sweeps found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Lines of the sweeps.
    pub points: Vec<Point>,
    /// Products taken apart.
    pub steps: Vec<Steps>,
}

/// Addition, one product, and all products in a row.
fn set<W: World>(bench: &mut Bench<'_>, found: &mut Found, sweep: &'static str, w: &W, depth: usize) -> Outcome<()> {
    let mut keep = |operation: &str, record: Option<Record>| {
        found.points.extend(record.map(|record| Point { sweep, operation: operation.into(), record }));
    };
    keep("add", bench.case(w, Case::new("add", depth), Expected::Sum, || w.add())?);
    if depth == 0 {
        return Ok(());
    }
    keep("multiply", bench.case(w, Case::new("multiply", depth), Expected::Product, || w.multiply())?);
    if sweep == "depth" {
        let run = || (0..depth).try_fold(w.fresh().clone(), |c, _| w.square(&c));
        keep("all products", bench.case(w, Case::new("all products", depth), Expected::Squares(depth), run)?);
    }
    Ok(())
}

/// Secure where the degree allows it, and without a claim where it does not.
fn exact_at(options: &Options, n: usize) -> Outcome<Requirements> {
    let wish = Requirements::new(options.t).depth(options.at_depth).values(n);
    let log_n = n.trailing_zeros();
    if wish.bfv_literal()?.log_n == log_n && wish.bgv_literal()?.log_n == log_n {
        return Ok(wish);
    }
    Ok(wish.security(Security::Insecure))
}

/// Runs the sweeps.
pub fn run(options: &Options, budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink) -> Outcome<Found> {
    if let Some(n) = options.n.iter().chain([&options.at_n]).find(|n| !n.is_power_of_two()) {
        return Err(format!("a ring degree of {n} is no power of two").into());
    }
    let (only, unit) = (options.only.as_slice(), Unit::new()?);
    let mut bench = Bench { unit, budget, machine, sink, threads, only, suite: "schemes" };
    let mut found = Found::default();
    let mut cases: Vec<(&'static str, usize, usize)> = Vec::new();
    if options.sweep.iter().any(|s| s == "degree") {
        cases.extend(options.n.iter().map(|n| ("degree", *n, options.at_depth)));
    }
    if options.sweep.iter().any(|s| s == "depth" || s == "steps") {
        cases.extend(options.depth.iter().map(|depth| ("depth", options.at_n, *depth)));
    }
    for (sweep, n, depth) in cases {
        let wish = match sweep {
            "degree" => exact_at(options, n)?,
            _ => Requirements::new(options.t).depth(depth).values(n),
        };
        for scheme in &options.scheme {
            match scheme.as_str() {
                "bfv" => {
                    one(&mut bench, options, &mut found, (sweep, depth), &IntegerWorld::<Bfv>::new(&wish.bfv()?)?)?
                }
                "bgv" => {
                    one(&mut bench, options, &mut found, (sweep, depth), &IntegerWorld::<Bgv>::new(&wish.bgv()?)?)?
                }
                _ => {
                    let world = ckks::CkksWorld::new(&ckks::literal(n, depth, sweep == "depth"))?;
                    one(&mut bench, options, &mut found, (sweep, depth), &world)?;
                }
            }
        }
    }
    Ok(found)
}

/// The lines of one set.
fn one<W: World>(
    bench: &mut Bench<'_>,
    options: &Options,
    found: &mut Found,
    (sweep, depth): (&'static str, usize),
    w: &W,
) -> Outcome<()> {
    if options.sweep.iter().any(|s| s == sweep) {
        set(bench, found, sweep, w, depth)?;
    }
    if sweep == "depth" && depth > 0 && options.sweep.iter().any(|s| s == "steps") {
        found.steps.push(Steps { depth, ..w.steps(&mut bench.unit, bench.budget)? });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every scheme over small rings, and the page of it.
    #[test]
    fn three_schemes_are_measured() {
        let all = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        let options = Options {
            sweep: all(&["degree", "depth", "steps"]),
            scheme: all(&["bfv", "bgv", "ckks"]),
            t: 65537,
            n: vec![1024, 4096],
            at_depth: 1,
            depth: vec![1, 2],
            at_n: 1024,
            only: Vec::new(),
        };
        let (budget, machine) = (Budget { seconds: 0.0, least: 1 }, Machine::here());
        let mut sink = Sink::new(true, None);
        let found = run(&options, budget, &Threads::new(1), &machine, &mut sink).unwrap();
        sink.finish("schemes").unwrap();
        assert_eq!((found.points.len(), found.steps.len()), (3 * (2 * 2 + 2 * 3), 3 * 2));
        assert!(found.points.iter().all(|p| p.record.check == "ok"));
        // At N = 1024 a product of BFV has no room for security; sets by depth take the degree that they need.
        let bits = |sweep: &str, n: usize| {
            let of = found.points.iter().filter(|p| p.sweep == sweep && p.record.n == Some(n));
            of.map(|p| p.record.security_bits.unwrap()).collect::<Vec<_>>()
        };
        assert!(bits("degree", 1024).iter().all(|b| *b == 0) && bits("degree", 4096).contains(&0));
        assert!(found.points.iter().filter(|p| p.sweep == "depth").all(|p| p.record.security_bits >= Some(128)));
        for steps in &found.steps {
            let sum: f64 = steps.parts.values().sum();
            assert!((sum - steps.cpu_ms).abs() < 1e-6 * steps.cpu_ms.max(1.0) && steps.parts.len() == 4, "{steps:?}");
        }
        let wrong = Options { n: vec![1000], ..options };
        assert!(run(&wrong, budget, &Threads::new(1), &machine, &mut Sink::new(true, None)).is_err());
    }
}
