//! Whole computations with tables: identifiers that are compared, the game of life, AES. Each takes encrypted values, and every
//! decrypted result is compared with the same in plain arithmetic.

use super::World;
use super::{aes, identifiers, life};
use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::{Machine, cpu_time, peak_rss_mb, reset_peak_rss};
use crate::timing::milliseconds;
use serde::Serialize;
use std::time::Instant;
use sudare_he::discrete::DiscreteSet;
use sudare_ring::Threads;

/// What to compute.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Computations: identifiers, life, aes.
    #[arg(long, value_delimiter = ',', default_value = "identifiers,life,aes")]
    work: Vec<String>,
    /// The sets' shapes over 2^`log_n`, without security: a trial of the lab.
    #[arg(long)]
    log_n: Option<u32>,
    /// Identifiers that are compared with one.
    #[arg(long, default_value_t = 1 << 20)]
    identifiers: usize,
    /// Rounds of the game of life.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Rounds of AES-128, whose last one has no MixColumns; the cipher has 10.
    #[arg(long, default_value_t = aes::ROUNDS)]
    aes_rounds: usize,
    /// Blocks of AES-128; without it as many as leave room for all bits of a byte in one value, 512 of 2^16.
    #[arg(long)]
    aes_blocks: Option<usize>,
    /// Where the picture of the last round goes, as SVG.
    #[arg(long)]
    picture: Option<std::path::PathBuf>,
}

/// A computation.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// `discrete-work`.
    pub suite: &'static str,
    /// What was computed.
    pub case: String,
    /// The set.
    pub set: String,
    /// Ring degree.
    pub n: usize,
    /// Results: identifiers, cells, blocks.
    pub results: usize,
    /// Bootstraps, each of one ciphertext or pair.
    pub bootstraps: usize,
    /// Threads.
    pub threads: usize,
    /// Security by the limits; 0 where nothing is claimed.
    pub security_bits: u32,
    /// Wall seconds of the server.
    pub wall_s: f64,
    /// Its processor seconds.
    pub cpu_s: f64,
    /// Seconds for secret, keys and diagonals.
    pub setup_s: f64,
    /// Wrong results.
    pub wrong: usize,
    /// Peak of the resident set.
    pub peak_rss_mb: Option<f64>,
    /// `ok`, or what is wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Computed {
    const HEAD: &'static str =
        "case                                    set     N  results  bootstraps    wall s     cpu s  RSS MB check";

    fn row(&self) -> String {
        format!(
            "{:<38} {:>4} {:>6} {:>8} {:>11} {:>9.1} {:>9.1} {:>7.0} {}",
            self.case,
            self.set,
            self.n,
            self.results,
            self.bootstraps,
            self.wall_s,
            self.cpu_s,
            self.peak_rss_mb.unwrap_or_default(),
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Time that the server takes, and how often it bootstraps.
#[derive(Debug, Default)]
pub struct Server {
    wall: f64,
    cpu: f64,
    /// Bootstraps.
    pub bootstraps: usize,
}

impl Server {
    /// Runs a part of the server's work.
    pub fn run<T>(&mut self, bootstraps: usize, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let (wall, cpu) = (Instant::now(), cpu_time());
        let out = work()?;
        self.wall += wall.elapsed().as_secs_f64();
        self.cpu += milliseconds(cpu_time().saturating_sub(cpu)) / 1e3;
        self.bootstraps += bootstraps;
        Ok(out)
    }
}

/// What came out of a computation.
pub struct Found {
    /// What was computed.
    pub case: String,
    /// How many results.
    pub results: usize,
    /// How many of them are wrong.
    pub wrong: usize,
}

/// Runs every computation.
pub fn run(options: &Options, threads: &Threads, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Computed>> {
    let mut lines = Vec::new();
    for name in &options.work {
        let world = threads.run(|| match name.as_str() {
            "identifiers" => World::new(DiscreteSet::S15, options.log_n),
            "life" => World::turning(DiscreteSet::W16, options.log_n, life::steps),
            "aes" => aes::world(options.log_n, options.aes_blocks),
            _ => Err(format!("there is no computation {name:?}; take identifiers, life or aes").into()),
        })?;
        reset_peak_rss();
        let mut server = Server::default();
        let found = threads.run(|| match name.as_str() {
            "identifiers" => identifiers::run(&world, options.identifiers, &mut server),
            "life" => life::run(&world, options.rounds, options.picture.as_deref(), &mut server),
            _ if !(1..=aes::ROUNDS).contains(&options.aes_rounds) => Err("AES-128 has 1 to 10 rounds".into()),
            _ => aes::run(&world, (options.aes_rounds, options.aes_blocks), &mut server),
        })?;
        let params = world.server.params().params();
        let line = Computed {
            suite: "discrete-work",
            case: found.case,
            set: world.set.to_string(),
            n: params.degree(),
            results: found.results,
            bootstraps: server.bootstraps,
            threads: threads.count(),
            security_bits: params.security().bits(),
            wall_s: server.wall,
            cpu_s: server.cpu,
            setup_s: world.setup_s,
            wrong: found.wrong,
            peak_rss_mb: peak_rss_mb(),
            check: if found.wrong == 0 { "ok".into() } else { format!("{} results are wrong", found.wrong) },
            machine: machine.clone(),
        };
        out.put(&line)?;
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All three over a small ring: fewer identifiers, a board of 32 by 16, 4 blocks.
    #[test]
    fn small_computations() {
        let work = ["identifiers", "life", "aes"].map(String::from).to_vec();
        let picture = std::env::temp_dir().join(format!("sudare-life-{}.svg", std::process::id()));
        let options = Options {
            work,
            log_n: Some(9),
            identifiers: 1000,
            rounds: 6,
            aes_rounds: 2,
            aes_blocks: None,
            picture: Some(picture.clone()),
        };
        let mut out = Lines::new(true);
        let lines = run(&options, &Threads::new(1), &Machine::here(), &mut out).unwrap();
        out.finish().unwrap();
        let results: Vec<usize> = lines.iter().map(|line| line.results).collect();
        assert_eq!(results, [1000, 512, 4]);
        assert!(lines.iter().all(|line| line.check == "ok" && line.bootstraps > 0));
        let text = std::fs::read_to_string(&picture).unwrap();
        std::fs::remove_file(&picture).unwrap();
        assert!(text.starts_with("<svg") && text.matches('M').count() > 3);
        let unknown = Options { work: vec!["chess".into()], ..options };
        assert!(run(&unknown, &Threads::new(1), &Machine::here(), &mut out).is_err());
    }
}
