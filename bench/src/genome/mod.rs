//! `genome`: panels and private searches, every answer compared with the plain search.

mod line;
mod panels;
pub mod published;
mod searches;

pub use line::Line;

use crate::Outcome;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::timing::{Budget, Unit};
use std::path::PathBuf;
use sudare_ring::Threads;

/// Which lines to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// VCF or BCF files of panels; those of `make genome-data` and the small one of data/genome are taken by themselves.
    #[arg(long, value_delimiter = ',')]
    panels: Vec<PathBuf>,
    /// Where `make genome-data` put its files.
    #[arg(long, default_value = "target/genome-data")]
    data: PathBuf,
    /// Only groups whose name contains one of these words: build, trie, client, hidden, private, lookup, figures, simd,
    /// memory, random.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Sites of windows.
    #[arg(long, value_delimiter = ',', default_value = "10,20,50,100")]
    q: Vec<usize>,
    /// Windows of a line: spread over the panel.
    #[arg(long, default_value_t = 24)]
    windows: usize,
    /// Starts of the lines that hide one among many.
    #[arg(long, default_value_t = 1000)]
    starts: usize,
    /// Random queries of each protocol, on small sets.
    #[arg(long, default_value_t = 200)]
    random: usize,
    /// Threads of the lines that use several; 0 means one for each processor.
    #[arg(long, default_value_t = 0)]
    pool: usize,
}

impl Options {
    fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|w| group.contains(w.as_str()))
    }
}

/// What every group needs, and the lines so far.
struct Lab<'a> {
    options: &'a Options,
    unit: Unit,
    budget: Budget,
    machine: &'a Machine,
    out: &'a mut Lines,
    lines: Vec<Line>,
    one: Threads,
    pool: Threads,
}

impl Lab<'_> {
    fn put(&mut self, line: Line) -> Outcome<()> {
        self.out.put(&line)?;
        self.lines.push(line);
        Ok(())
    }
}

/// Measures and prints; gives the lines back.
pub fn run(options: &Options, budget: Budget, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Line>> {
    let mut lab = Lab {
        options,
        unit: Unit::new()?,
        budget,
        machine,
        out,
        lines: Vec::new(),
        one: Threads::new(1),
        pool: Threads::new(options.pool),
    };
    let scratch = std::env::temp_dir().join(format!("sudare-lab-genome-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let done = panels::all(&mut lab, &scratch).and_then(|panels| searches::all(&mut lab, &panels, &scratch));
    std::fs::remove_dir_all(&scratch)?;
    done?;
    Ok(lab.lines)
}
