//! `tfhe-noise`: the noise of every operation against its formula, each within 3 %.
//!
//! The measurements are those of the tests of TFHE, which take a few keys; here keys are added until the ratio is
//! known to a quarter of the 3 % and from at least 10^5 numbers.

#[path = "../../../crates/tfhe/tests/it/measure/mod.rs"]
mod measure;

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::Machine;
use measure::{Figure, SUITES, Suite, Tally};
use serde::Serialize;
use std::time::Instant;
use sudare_ring::{Threads, threads};

/// How much to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Numbers of each operation, at least 100,000.
    #[arg(long, default_value_t = 100_000)]
    samples: usize,
    /// Standard error of each ratio, from how far keys differ.
    #[arg(long, default_value_t = 0.0075)]
    error: f64,
    /// Most keys of a suite.
    #[arg(long, default_value_t = 20_000)]
    keys: u64,
    /// Only suites with this text in their name.
    #[arg(long)]
    only: Option<String>,
}

/// Fewest keys: their differences tell the standard error.
const FEWEST: u64 = 64;
/// Keys between two looks at the errors.
const AT_ONCE: u64 = 32;
/// How far measured and predicted may differ.
const TOLERANCE: f64 = 0.03;

/// A measured variance.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// `tfhe-noise`.
    pub suite: &'static str,
    /// The operation and its digits.
    pub case: String,
    /// Keys.
    pub keys: usize,
    /// Numbers.
    pub samples: usize,
    /// Measured over predicted variance.
    pub ratio: f64,
    /// Standard error of the ratio.
    pub error: f64,
    /// Seconds of its suite.
    pub seconds: f64,
    /// `ok`, or what is wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Measured {
    const HEAD: &'static str =
        "operation                                               keys   samples   ratio   error check";

    fn row(&self) -> String {
        format!(
            "{:<53} {:>6} {:>9} {:>7.4} {:>7.4} {}",
            self.case, self.keys, self.samples, self.ratio, self.error, self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Measures every suite.
pub fn run(options: &Options, threads: &Threads, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Measured>> {
    if options.samples < 100_000 || options.error.is_nan() || options.error <= 0.0 {
        return Err("--samples takes at least 100000, --error a number above zero".into());
    }
    let mut lines = Vec::new();
    for suite in SUITES.iter().filter(|s| options.only.as_ref().is_none_or(|w| s.name.contains(w.as_str()))) {
        let begin = Instant::now();
        let tally = threads.run(|| all(suite, options))?;
        let seconds = begin.elapsed().as_secs_f64();
        for (operation, figure) in tally.figures() {
            let line = line(operation, figure, options, seconds, machine);
            out.put(&line)?;
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Keys until every operation of a suite is known well enough.
fn all(suite: &Suite, options: &Options) -> Outcome<Tally> {
    let (mut tally, mut keys) = (Tally::default(), 0);
    let enough = |f: &Figure| f.samples() >= options.samples && f.error() <= options.error;
    while keys < FEWEST.max(suite.keys) || (keys < options.keys && !tally.figures().all(|(_, f)| enough(f))) {
        let some = threads::map(AT_ONCE as usize, |i| {
            let mut one = Tally::default();
            (suite.measure)(keys + i as u64, &mut one).map(|()| one)
        });
        for one in some {
            tally.merge(&one?);
        }
        keys += AT_ONCE;
    }
    Ok(tally)
}

fn line(operation: &str, figure: &Figure, options: &Options, seconds: f64, machine: &Machine) -> Measured {
    let (ratio, error) = (figure.ratio(), figure.error());
    let check = if figure.samples() < options.samples || error > options.error {
        format!("too few keys: the ratio is known to {error:.4}")
    } else if (ratio - 1.0).abs() > TOLERANCE {
        format!("{ratio:.3} times the formula")
    } else {
        "ok".into()
    };
    Measured {
        suite: "tfhe-noise",
        case: operation.into(),
        keys: figure.keys(),
        samples: figure.samples(),
        ratio,
        error,
        seconds,
        check,
        machine: machine.clone(),
    }
}
