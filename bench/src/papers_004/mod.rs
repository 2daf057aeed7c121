//! `papers-004`: the tables and box plots of the thesis on trace-type functions beside ours.

mod page;
mod plots;

use crate::lines::{Lines, store};
use crate::machine::Machine;
use crate::record::{Sink, replace};
use crate::timing::{Budget, Unit};
use crate::trace::{self, Cell};
use crate::{Outcome, fma, ops};
use page::Page;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;
use sudare_ring::Threads;

/// What to rerun.
#[derive(Clone, Debug, clap::Args)]
// The options of the traces are flattened into these, and groups are named after types.
#[group(skip)]
pub struct Options {
    /// Minutes after which no new group of cells starts.
    #[arg(long, default_value_t = 240.0)]
    minutes: f64,
    /// Go on with a run that was cut short: cells that the folder holds already are not measured again.
    #[arg(long)]
    resume: bool,
    /// Threads of the tables: the paper's are of one and of all eight; 0 means one for each processor.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 0])]
    tables: Vec<usize>,
    #[command(flatten)]
    trace: trace::Options,
}

/// Seconds for one cell of Table 5.2, of which there are 270.
const FMA_SECONDS: f64 = 0.08;
/// Least rounds of one.
const FMA_LEAST: usize = 15;

/// Runs the tables; writes lines, plots and the page into a folder.
pub fn run(options: &Options, budget: Budget, json: bool, machine: &Machine, runs: &Path) -> Outcome<()> {
    let start = Instant::now();
    let mut lines = Lines::new(json);
    let path = |name: &str| runs.join(format!("papers-004-{name}"));
    let wide = path("ops.jsonl");
    let mut page = Page {
        fma: kept(options.resume, &path("fma.jsonl"))?,
        ops: kept(options.resume, &wide)?,
        cells: kept(options.resume, &path("trace.jsonl"))?,
        missing: Vec::new(),
        machine: machine.clone(),
    };
    if page.fma.is_empty() {
        let budget = Budget { seconds: budget.seconds.min(FMA_SECONDS), least: FMA_LEAST };
        page.fma = fma::run(&fma::Options::paper(), budget, machine, &mut lines)?;
        store(&path("fma.jsonl"), &page.fma)?;
    }
    if page.ops.is_empty() {
        let mut sink = Sink::new(json, None);
        ops::run(&ops::Options::with_special_primes(3), budget, &Threads::new(1), machine, &mut sink)?;
        store(&wide, sink.records())?;
        page.ops = kept(true, &wide)?;
        sink.finish("ops")?;
    }
    let mut unit = Unit::new()?;
    for &m in &options.trace.m {
        for &threads in &options.tables {
            let threads = Threads::new(threads);
            let options_of_m = trace::Options { m: vec![m], ..options.trace.clone() };
            for group in options_of_m.groups()? {
                let place =
                    |c: &Cell| (c.m, c.k, c.level, c.threads) == (group.m, group.k, group.level, threads.count());
                if page.cells.iter().any(place) {
                    continue;
                }
                if start.elapsed().as_secs_f64() > 60.0 * options.minutes {
                    page.missing.push(format!(
                        "M = {}, k = {}, l = {}, {} threads",
                        group.m,
                        group.k,
                        group.level,
                        threads.count()
                    ));
                    continue;
                }
                let cells = trace::group_of_cells(&group, &options_of_m, budget, &threads, machine, &mut unit)?;
                cells.iter().try_for_each(|cell| lines.put(cell))?;
                page.cells.extend(cells);
                store(&path("trace.jsonl"), &page.cells)?;
            }
        }
    }
    for (name, svg) in plots::all(&page) {
        replace(&path(&name), &svg)?;
    }
    let target = runs.join("papers-004.md");
    replace(&target, &page.render()?)?;
    eprintln!("wrote {}", target.display());
    lines.finish()
}

/// The lines that a file holds, if a run goes on and there is one.
fn kept<T: DeserializeOwned>(resume: bool, path: &Path) -> Outcome<Vec<T>> {
    if !resume || !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path)?;
    text.lines().filter(|l| !l.is_empty()).map(|l| Ok(serde_json::from_str(l)?)).collect()
}

/// A line of `ops`, as the page reads it.
type OpsLine = Value;
