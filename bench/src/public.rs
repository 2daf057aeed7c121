//! The public workloads of HomomorphicEncryption.org by our entries (`submissions`): what their harnesses do and measure.

use crate::Outcome;
use crate::lines::{Line, Lines};
use crate::machine::Machine;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use sudare_submissions::driver::{Drive, Measured};

/// What is run.
#[derive(Debug, Args)]
pub struct Options {
    /// Workloads: count, fetch, zn.
    #[arg(long, value_delimiter = ',', default_value = "count,fetch,zn")]
    workloads: Vec<String>,
    /// Sizes as the harnesses number them: 0 toy (single), 1 small, 2 medium, and 3 large of zn.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    sizes: Vec<usize>,
    /// Runs of the steps that are repeated.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// The folder of the entries' programs.
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
    /// The folder that stands for a harness's root.
    #[arg(long, default_value = "target/bench-public")]
    folder: PathBuf,
}

/// A measured workload with its conditions.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    measured: Measured,
    machine: Machine,
}

impl Line for Row {
    const HEAD: &'static str =
        "workload                          size    server s   encrypt s   answer kB   peak MB   check";

    fn row(&self) -> String {
        let m = &self.measured;
        // Means, as the harnesses print.
        let mean = |step: &str| m.seconds.get(step).map_or(f64::NAN, |s| s.iter().sum::<f64>() / s.len() as f64);
        let encrypt = mean("client_encode_encrypt_db").min(mean("client_encode_encrypt_input"));
        let peak = m.peak_mb.values().copied().fold(0.0, f64::max);
        let answer = m.bytes.get("answer").map_or(f64::NAN, |b| *b as f64 / 1e3);
        let server = mean("server_encrypted_compute");
        format!(
            "{:<33} {:<7} {server:>8.3} {encrypt:>11.3} {answer:>11.0} {peak:>9.0}   {}",
            m.workload, m.size, m.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.measured.check != "ok").then_some(&self.measured.check)
    }
}

/// Runs the workloads.
pub fn run(options: &Options, threads: usize, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Row>> {
    let drive = Drive {
        programs: options.programs.clone(),
        folder: options.folder.clone(),
        threads,
        runs: options.runs.max(1),
    };
    let mut all = Vec::new();
    for size in &options.sizes {
        for workload in &options.workloads {
            let measured = match workload.as_str() {
                "count" => drive.fetch(*size, true),
                "fetch" => drive.fetch(*size, false),
                "zn" => drive.zn(*size),
                other => Err(format!("no workload {other}: count, fetch, zn").into()),
            };
            let row = Row { measured: measured?, machine: machine.clone() };
            lines.put(&row)?;
            all.push(row);
        }
    }
    Ok(all)
}
