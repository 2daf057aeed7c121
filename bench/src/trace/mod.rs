//! `trace`: unrolled trace-type functions, the trace paper's Tables 5.3 to 5.14.
//!
//! Kernel families are chosen when a parameter set is built, by an environment variable; so the
//! portable column ("normal" in the paper) comes from a child process of the same binary, group by
//! group in turn with ours ("hexl"), each with the unit measured beside.

mod cell;
mod measure;

pub use cell::Cell;

use crate::Outcome;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::timing::{Budget, Unit};
use std::process::{Command, Stdio};
use sudare_ring::Threads;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Automorphisms of the function, M: 15 is the whole trace, fewer sum 2^M neighbouring slots.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 7, 15])]
    pub m: Vec<usize>,
    /// Levels of the ciphertext, 0 to 9.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 9])]
    pub level: Vec<usize>,
    /// Special primes; a digit of key switching has as many data primes.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 10])]
    pub k: Vec<usize>,
    /// Iterations after unrolling: numbers, or `all` from 1 to M.
    #[arg(long, default_value = "all")]
    pub h: String,
    /// Most bytes of evaluation keys; a cell that needs more is refused with the figure.
    #[arg(long, default_value_t = 3e9)]
    pub memory: f64,
    /// Sizes of the special primes.
    #[arg(long, value_enum, default_value_t = Special::Cover)]
    pub special: Special,
    /// Which kernels.
    #[arg(long, value_enum, default_value_t = Kernels::Both)]
    pub kernels: Kernels,
}

/// Sizes of the special primes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Special {
    /// As large as P needs to be to cover a digit.
    Cover,
    /// 60 bits each, as in the paper.
    Paper,
}

/// Kernels to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kernels {
    /// The best of this machine, and the portable ones in a child process.
    Both,
    /// Those that this process has.
    Here,
}

/// Cells that share parameters and keys: all h of one M, k and level.
#[derive(Clone, Debug)]
pub struct Group {
    /// M.
    pub m: usize,
    /// Special primes.
    pub k: usize,
    /// Level.
    pub level: usize,
    /// Iterations.
    pub h: Vec<usize>,
}

impl Options {
    /// The groups, small ones first.
    pub fn groups(&self) -> Outcome<Vec<Group>> {
        let mut groups = Vec::new();
        for &m in &self.m {
            let all = 1..=m;
            let h: Vec<usize> = match self.h.as_str() {
                "all" => all.collect(),
                list => {
                    let list = list.split(',').map(|h| Ok(h.trim().parse()?)).collect::<Outcome<Vec<usize>>>()?;
                    list.into_iter().filter(|h| all.contains(h)).collect()
                }
            };
            if !(1..=15).contains(&m) || h.is_empty() {
                return Err(format!("M = {m} with h = {}: M goes from 1 to 15, h from 1 to M", self.h).into());
            }
            for &k in &self.k {
                groups.extend(self.level.iter().map(|&level| Group { m, k, level, h: h.clone() }));
            }
        }
        match groups.iter().find(|g| !(1..=10).contains(&g.k) || g.level > 9) {
            Some(g) => {
                Err(format!("k = {}, level = {}: k goes from 1 to 10, the level from 0 to 9", g.k, g.level).into())
            }
            None => Ok(groups),
        }
    }
}

/// Runs the suite; returns its cells.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    lines: &mut Lines,
) -> Outcome<Vec<Cell>> {
    let mut unit = Unit::new()?;
    let mut all = Vec::new();
    for group in options.groups()? {
        let cells = group_of_cells(&group, options, budget, threads, machine, &mut unit)?;
        cells.iter().try_for_each(|cell| lines.put(cell))?;
        all.extend(cells);
    }
    Ok(all)
}

/// Measures a group, the portable kernels first if asked for.
pub fn group_of_cells(
    group: &Group,
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    unit: &mut Unit,
) -> Outcome<Vec<Cell>> {
    let mut cells = match options.kernels {
        Kernels::Both => portable(group, options, budget, threads)?,
        Kernels::Here => Vec::new(),
    };
    let mut ours = measure::group(group, options, budget, threads, machine, unit)?;
    for cell in &mut ours {
        let other = cells.iter().find(|c| c.same_place(cell)).and_then(Cell::time_units);
        cell.speedup = other.zip(cell.time_units()).map(|(other, ours)| other / ours);
    }
    cells.extend(ours);
    Ok(cells)
}

/// The same group from a child process with portable kernels.
fn portable(group: &Group, options: &Options, budget: Budget, threads: &Threads) -> Outcome<Vec<Cell>> {
    let list = |h: &[usize]| h.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let special = if options.special == Special::Paper { "paper" } else { "cover" };
    let output = Command::new(std::env::current_exe()?)
        .env("SUDARE_KERNEL", "portable")
        .args(["--json", "--seconds", &budget.seconds.to_string(), "--least", &budget.least.to_string()])
        .args(["--threads", &threads.count().to_string(), "trace", "--kernels", "here", "--special", special])
        .args(["--m", &group.m.to_string(), "--k", &group.k.to_string(), "--level", &group.level.to_string()])
        .args(["--h", &list(&group.h), "--memory", &options.memory.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    // A wrong answer makes the child fail, and its line says which one: it is counted here again.
    let text = String::from_utf8(output.stdout)?;
    let cells = text.lines().map(|l| Ok(serde_json::from_str(l)?)).collect::<Outcome<Vec<Cell>>>()?;
    if cells.len() != group.h.len() {
        return Err(format!("the portable process of {group:?} ended early: {}", output.status).into());
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        <Line as clap::Parser>::parse_from([&["x"], words].concat()).options
    }

    #[test]
    fn groups_cover_the_papers_tables() {
        let groups = options(&[]).groups().unwrap();
        assert_eq!(groups.iter().map(|g| g.h.len()).sum::<usize>(), 9 * (2 + 7 + 15));
        for p in cell::printed() {
            assert!(groups.iter().any(|g| (g.m, g.k, g.level) == (p.m, p.k, p.level) && g.h.contains(&p.h)));
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [["--m", "16"], ["--k", "0"], ["--k", "11"], ["--level", "10"], ["--h", "16"], ["--h", "x"]] {
            assert!(options(&words).groups().is_err(), "{words:?}");
        }
    }
}
