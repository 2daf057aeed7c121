//! The public workloads of HomomorphicEncryption.org by our entries (`submissions`): what their harnesses do and measure.

use crate::Outcome;
use crate::lines::{Line, Lines};
use crate::machine::{Machine, prices};
use crate::timing::unit_seconds;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use sudare_submissions::driver::{Drive, Measured};
use sudare_submissions::fetch::Size;

/// What is run.
#[derive(Debug, Args)]
pub struct Options {
    /// Workloads: count, fetch, zn, mnist, transciphering.
    #[arg(long, value_delimiter = ',', default_value = "count,fetch,zn,mnist")]
    workloads: Vec<String>,
    /// Sizes as the harnesses number them: 0 toy (single), 1 small, 2 medium, and 3 large of zn, mnist and transciphering.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    sizes: Vec<usize>,
    /// Runs of the steps that are repeated.
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// The folder of the entries' programs.
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
    /// The folder that stands for a harness's root.
    #[arg(long, default_value = "target/bench-public")]
    folder: PathBuf,
    /// Test images of MNIST, as `bench/train_models.py` writes them (NAME.images); without them images are random.
    #[arg(long)]
    images: Option<PathBuf>,
    /// log2 of a ring without security for transciphering: a trial of its programs.
    #[arg(long)]
    insecure: Option<u32>,
}

/// The step of transciphering before what is computed.
const DECIPHER: &str = "server_encrypted_aes_decryption";

/// A measured workload with its conditions.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    measured: Measured,
    /// Seconds of a count on one thread by its plan, at the prices of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<f64>,
    /// Seconds of a unit on this machine just before.
    unit: f64,
    machine: Machine,
}

impl Line for Row {
    const HEAD: &'static str = "workload                          size    server s    cpu s   planned s   encrypt s   answer kB   peak MB   check";

    fn row(&self) -> String {
        let m = &self.measured;
        // Means, as the harnesses print.
        let mean = |step: &str| m.seconds.get(step).map_or(f64::NAN, |s| s.iter().sum::<f64>() / s.len() as f64);
        let encrypt = ["client_encode_encrypt_db", "client_encode_encrypt_input", "client_encode_encrypt"];
        let encrypt = encrypt.map(mean).into_iter().fold(f64::NAN, f64::min);
        let peak = m.peak_mb.values().copied().fold(0.0, f64::max);
        let answer = m.bytes.get("answer").map_or(f64::NAN, |b| *b as f64 / 1e3);
        // Of transciphering both steps.
        let server = mean("server_encrypted_compute") + m.seconds.get(DECIPHER).map_or(0.0, |_| mean(DECIPHER));
        // The server that stays loads before the first query.
        let queries = m.cpu.get("server_resident").and_then(|all| all.get(1..));
        let cpu = |step: &str| queries.or(m.cpu.get(step).map(Vec::as_slice)).unwrap_or_default();
        let mean_of = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let cpu = mean_of(cpu("server_encrypted_compute")) + m.cpu.get(DECIPHER).map_or(0.0, |all| mean_of(all));
        format!(
            "{:<33} {:<7} {server:>8.3} {cpu:>8.2} {:>11} {encrypt:>11.3} {answer:>11.0} {peak:>9.0}   {}",
            m.workload,
            m.size,
            self.predicted.map_or("-".into(), |s| format!("{s:.2}")),
            m.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.measured.check != "ok").then_some(&self.measured.check)
    }
}

/// Seconds of a count by its plan.
fn planned(size: usize) -> Outcome<f64> {
    let prices = prices()?;
    Ok(Size::new(size)?.index()?.seconds(&|work, log_n| prices.price(work, log_n, 1)))
}

/// Runs the workloads.
pub fn run(options: &Options, threads: usize, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Row>> {
    let drive = Drive {
        programs: options.programs.clone(),
        folder: options.folder.clone(),
        threads,
        runs: options.repetitions.max(1),
        images: options.images.clone(),
        insecure: options.insecure,
    };
    let mut all = Vec::new();
    for size in &options.sizes {
        for workload in &options.workloads {
            let unit = unit_seconds()?;
            let predicted = match workload.as_str() {
                "count" | "fetch" => Some(planned(*size)?),
                _ => None,
            };
            let measured = match workload.as_str() {
                "count" => drive.fetch(*size, true),
                "fetch" => drive.fetch(*size, false),
                "zn" => drive.zn(*size),
                "mnist" => drive.mnist(*size),
                "transciphering" => drive.transcipher(*size),
                other => Err(format!("no workload {other}: count, fetch, zn, mnist, transciphering").into()),
            };
            let row = Row { measured: measured?, predicted, unit, machine: machine.clone() };
            lines.put(&row)?;
            all.push(row);
        }
    }
    Ok(all)
}
