//! One line of output: what was measured, how, and whether the answer was right.

use crate::Outcome;
use crate::machine::{Machine, peak_rss_mb};
use crate::timing::{Samples, Timing};
use serde::Serialize;
use std::path::{Path, PathBuf};
use sudare_rlwe::{Counters, Params};

/// The check of a case that has none: building blocks, whose answers their own tests check.
const NOT_CHECKED: &str = "not checked";

/// Operations of the papers' tables.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counted {
    /// Additions of ciphertexts.
    pub add: u64,
    /// Rotations.
    pub rot: u64,
    /// Products with plaintexts.
    pub cmult: u64,
    /// Products of ciphertexts.
    pub mult: u64,
    /// Relinearisations.
    pub relin: u64,
    /// Key switches: rotations, relinearisations, and from one secret to another.
    pub key_switches: u64,
}

impl From<Counters> for Counted {
    fn from(c: Counters) -> Self {
        Self { add: c.add, rot: c.rot, cmult: c.cmult, mult: c.mult, relin: c.relin, key_switches: c.key_switches }
    }
}

/// Milliseconds of the stages of an encrypted product, for all its matrices together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Stages {
    /// Secret, public and evaluation keys.
    pub keygen_ms: Option<f64>,
    /// Encoding of both operands.
    pub encode_ms: Option<f64>,
    /// Encryption of both operands.
    pub encrypt_ms: Option<f64>,
    /// The product itself.
    pub evaluate_ms: Option<f64>,
    /// Decryption of the result.
    pub decrypt_ms: Option<f64>,
    /// Decoding of the result.
    pub decode_ms: Option<f64>,
}

/// A published line of times, from another machine and another time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PaperTimes {
    /// Encryption.
    pub encrypt_ms: f64,
    /// Product.
    pub evaluate_ms: f64,
    /// Decryption.
    pub decrypt_ms: f64,
    /// All together.
    pub total_ms: f64,
    /// How many times faster the total is here.
    pub faster: Option<f64>,
    /// How many times faster it is wanted.
    pub wanted: f64,
}

impl PaperTimes {
    /// From seconds of encryption, product, decryption and all, and our milliseconds.
    pub fn new(seconds: [f64; 4], wanted: f64, ours_ms: Option<f64>) -> Self {
        let [encrypt_ms, evaluate_ms, decrypt_ms, total_ms] = seconds.map(|s| s * 1e3);
        Self { encrypt_ms, evaluate_ms, decrypt_ms, total_ms, faster: ours_ms.map(|ms| total_ms / ms), wanted }
    }
}

/// A line. What does not apply is `None`, never zero.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// `ntt`, `ops`, `matmul`.
    pub suite: &'static str,
    /// What was measured.
    pub case: String,
    /// Ring degree.
    pub n: Option<usize>,
    /// Kernel family or product algorithm.
    pub method: Option<String>,
    /// Side of square matrices.
    pub d: Option<usize>,
    /// m, k, n of an m×k by k×n product.
    pub shape: Option<[usize; 3]>,
    /// Products in a row that the parameters hold.
    pub depth: Option<usize>,
    /// Products done together.
    pub batch: Option<usize>,
    /// Threads.
    pub threads: usize,
    /// Parameters in words.
    pub params: Option<String>,
    /// log2 of the whole modulus.
    pub log_qp: Option<f64>,
    /// Security by the limits of the guidelines; 0 where nothing is claimed.
    pub security_bits: Option<u32>,
    /// Median time of one operation.
    pub median_ms: Option<f64>,
    /// Tenth percentile.
    pub p10_ms: Option<f64>,
    /// Ninetieth percentile.
    pub p90_ms: Option<f64>,
    /// Median over `unit_ms`.
    pub units: Option<f64>,
    /// Median over `batch`.
    pub per_product_ms: Option<f64>,
    /// The same in units.
    pub per_product_units: Option<f64>,
    /// Median processor time of one operation, all threads together.
    pub cpu_ms: Option<f64>,
    /// `cpu_ms` over the unit's processor time: holds where others load the machine.
    pub cpu_units: Option<f64>,
    /// Largest error of the answer.
    pub max_error: Option<f64>,
    /// Largest error that was predicted before.
    pub predicted_error: Option<f64>,
    /// Operations of one evaluation.
    pub counters: Option<Counted>,
    /// Peak of the resident set during the case.
    pub peak_rss_mb: Option<f64>,
    /// Evaluation keys in memory.
    pub key_bytes: Option<usize>,
    /// Ciphertexts of the operands and the result, or of the result where there is one operand.
    pub ct_bytes: Option<usize>,
    /// Bytes that the operation has to read and write: every operand and result once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_bytes: Option<usize>,
    /// The same over the median: 10^9 bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gb_per_s: Option<f64>,
    /// One forward transform of `tfhe-ntt` at N = 2^14, 50 bits, in turn with the case.
    pub unit_ms: Option<f64>,
    /// `ok`, or what was wrong with the answer.
    pub check: String,
    /// A library measured in the same process, in turn.
    pub peer: Option<&'static str>,
    /// Its median.
    pub peer_median_ms: Option<f64>,
    /// Its median over ours: how many times faster ours is.
    pub ratio: Option<f64>,
    /// The same of processor times.
    pub cpu_ratio: Option<f64>,
    /// A figure published or measured elsewhere, not in this run: whose.
    pub reference: Option<String>,
    /// That figure in units.
    pub reference_units: Option<f64>,
    /// The same in milliseconds.
    pub reference_ms: Option<f64>,
    /// That figure over ours, in units by processor time.
    pub reference_ratio: Option<f64>,
    /// What that ratio should reach.
    pub target_ratio: Option<f64>,
    /// Stages apart.
    pub stages: Option<Stages>,
    /// A paper's times of the same line.
    pub paper_ms: Option<PaperTimes>,
    /// The same product in the clear: plain Rust, one thread, double precision.
    pub plain_ms: Option<f64>,
    /// Mean of the largest errors of many random products, and how many.
    pub mean_max_error: Option<f64>,
    /// Mean of their smallest errors.
    pub mean_min_error: Option<f64>,
    /// How many random products the error statistics are of.
    pub products: Option<usize>,
    /// Conditions.
    pub machine: Machine,
    /// Raw times, in stored runs only.
    #[serde(skip_serializing_if = "Samples::is_empty")]
    pub samples_ms: Samples,
}

impl Samples {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Record {
    /// A line with nothing measured yet.
    pub fn new(suite: &'static str, case: impl Into<String>, threads: usize, machine: &Machine) -> Self {
        Self {
            suite,
            case: case.into(),
            n: None,
            method: None,
            d: None,
            shape: None,
            depth: None,
            batch: None,
            threads,
            params: None,
            log_qp: None,
            security_bits: None,
            median_ms: None,
            p10_ms: None,
            p90_ms: None,
            units: None,
            per_product_ms: None,
            per_product_units: None,
            cpu_ms: None,
            cpu_units: None,
            max_error: None,
            predicted_error: None,
            counters: None,
            peak_rss_mb: None,
            key_bytes: None,
            ct_bytes: None,
            moved_bytes: None,
            gb_per_s: None,
            unit_ms: None,
            check: NOT_CHECKED.into(),
            peer: None,
            peer_median_ms: None,
            ratio: None,
            cpu_ratio: None,
            reference: None,
            reference_units: None,
            reference_ms: None,
            reference_ratio: None,
            target_ratio: None,
            stages: None,
            paper_ms: None,
            plain_ms: None,
            mean_max_error: None,
            mean_min_error: None,
            products: None,
            machine: machine.clone(),
            samples_ms: Samples::default(),
        }
    }

    /// Fills in a parameter set.
    pub fn with_params(mut self, params: &Params) -> Self {
        let l = params.literal();
        let list = |bits: &[u32]| {
            let words: Vec<_> = bits
                .chunk_by(|a, b| a == b)
                .map(|run| if run.len() > 3 { format!("{}x{}", run[0], run.len()) } else { join(run) })
                .collect();
            words.join(",")
        };
        self.n = Some(params.degree());
        self.params = Some(format!(
            "{{{}|{}}} scale 2^{} digits of {}",
            list(&l.q_bits),
            list(&l.p_bits),
            params.tag().0,
            l.digit_limbs
        ));
        self.log_qp = Some((params.log_qp() * 100.0).round() / 100.0);
        self.security_bits = Some(params.security().bits());
        self
    }

    /// Fills in times, units, ratio and peak memory.
    pub fn with_timing(mut self, timing: Timing) -> Self {
        let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
        let Timing { ours, peer, unit } = timing;
        self.median_ms = ours.wall.median();
        self.p10_ms = ours.wall.quantile(0.1);
        self.p90_ms = ours.wall.quantile(0.9);
        self.unit_ms = unit.wall.median();
        self.units = quotient(self.median_ms, self.unit_ms);
        self.cpu_ms = ours.cpu.median();
        self.cpu_units = quotient(self.cpu_ms, unit.cpu.median());
        self.peer_median_ms = peer.wall.median();
        self.ratio = quotient(self.peer_median_ms, self.median_ms);
        self.cpu_ratio = quotient(peer.cpu.median(), self.cpu_ms);
        self.peak_rss_mb = peak_rss_mb();
        self.samples_ms = ours.wall;
        self
    }

    /// Fills in what the operation, whose times are there, has to move.
    pub fn with_bytes(mut self, bytes: usize) -> Self {
        self.moved_bytes = Some(bytes);
        self.gb_per_s = self.median_ms.map(|ms| bytes as f64 / ms / 1e6);
        let rate = self.gb_per_s.unwrap_or(0.0);
        self.method = Some(format!("{:.1} MB {rate:.1} GB/s", bytes as f64 / 1e6));
        self
    }

    /// Fills in the answer's error and whether it is within a tolerance.
    pub fn with_error(mut self, error: f64, tolerance: f64) -> Self {
        self.max_error = Some(error);
        // A NaN is not within the tolerance either.
        self.check =
            if error <= tolerance { "ok".into() } else { format!("error {error:.3e} over the bound {tolerance:.3e}") };
        self
    }

    /// Whether an answer was wrong.
    pub fn is_wrong(&self) -> bool {
        self.check != "ok" && self.check != NOT_CHECKED
    }
}

fn join(bits: &[u32]) -> String {
    bits.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Where lines go.
#[derive(Debug)]
pub struct Sink {
    json: bool,
    save: Option<PathBuf>,
    records: Vec<Record>,
}

impl Sink {
    /// Lines as JSON or as a table; stored with raw samples in `save` at the end, if given.
    pub fn new(json: bool, save: Option<PathBuf>) -> Self {
        Self { json, save, records: Vec::new() }
    }

    /// The lines so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Prints a line.
    pub fn put(&mut self, record: Record) -> Outcome<()> {
        if self.json {
            let mut line = record.clone();
            line.samples_ms = Samples::default();
            println!("{}", serde_json::to_string(&line)?);
        } else {
            if self.records.is_empty() {
                println!("{}", table_head(&record));
            }
            println!("{}", table_row(&record));
        }
        self.records.push(record);
        Ok(())
    }

    /// Stores the run; an error if any answer was wrong.
    pub fn finish(self, suite: &str) -> Outcome<()> {
        if let (Some(folder), Some(first)) = (&self.save, self.records.first()) {
            let path = folder.join(format!("{suite}-{}.json", first.machine.date));
            store(&path, &self.records)?;
            eprintln!("stored {}", path.display());
        }
        match self.records.iter().filter(|r| r.is_wrong()).count() {
            0 => Ok(()),
            wrong => Err(format!("{wrong} of {} answers were wrong", self.records.len()).into()),
        }
    }
}

/// Writes a run as a JSON array, one line a record; the file appears whole or not at all.
pub fn store(path: &Path, records: &[Record]) -> Outcome<()> {
    let lines = records.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    replace(path, &format!("[\n{}\n]\n", lines.join(",\n")))
}

/// Writes a file beside its place and moves it there.
pub fn replace(path: &Path, text: &str) -> Outcome<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = path.with_extension("part");
    std::fs::write(&part, text)?;
    std::fs::rename(&part, path)?;
    Ok(())
}

fn table_head(first: &Record) -> String {
    let m = &first.machine;
    format!(
        "{}; {} kernels; commit {}; {}\n{:<26} {:>6} {:<11} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9} {:>6} {:>9} {:>9} {}",
        m.cpu,
        m.kernel,
        m.commit,
        m.rustc,
        "case",
        "N",
        "method",
        "median ms",
        "p10",
        "p90",
        "units",
        "cpu units",
        "reference",
        "ratio",
        "error",
        "RSS MB",
        "check"
    )
}

fn table_row(r: &Record) -> String {
    let blank = |x: Option<String>| x.unwrap_or_default();
    let ms = |x: Option<f64>| blank(x.map(|x| format!("{x:.4}")));
    format!(
        "{:<26} {:>6} {:<11} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9} {:>6} {:>9} {:>9} {}",
        r.case,
        blank(r.n.map(|n| n.to_string())),
        r.method.as_deref().unwrap_or_default(),
        ms(r.median_ms),
        ms(r.p10_ms),
        ms(r.p90_ms),
        blank(r.units.map(|x| format!("{x:.2}"))),
        blank(r.cpu_units.map(|x| format!("{x:.2}"))),
        blank(r.reference_units.map(|x| format!("{x:.1}"))),
        blank(r.ratio.map(|x| format!("{x:.2}"))),
        blank(r.max_error.map(|x| format!("{x:.2e}"))),
        blank(r.peak_rss_mb.map(|x| format!("{x:.0}"))),
        r.check
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_null() {
        let record = Record::new("ops", "add", 1, &Machine::here());
        let value = serde_json::to_value(&record).unwrap();
        for field in ["n", "method", "d", "shape", "batch", "params", "log_qp", "security_bits", "median_ms", "p10_ms"]
        {
            assert!(value[field].is_null(), "{field}");
        }
        for field in ["p90_ms", "max_error", "counters", "peak_rss_mb", "key_bytes", "ct_bytes", "unit_ms", "peer"] {
            assert!(value.get(field).is_some_and(serde_json::Value::is_null), "{field}");
        }
        assert!(value.get("samples_ms").is_none());
        assert!(!record.is_wrong() && record.check != "ok");
    }

    #[test]
    fn a_wrong_answer_says_so() {
        let record = || Record::new("ops", "add", 1, &Machine::here());
        assert_eq!(record().with_error(1e-9, 1e-8).check, "ok");
        assert!(record().with_error(1e-7, 1e-8).check.contains("over the bound"));
        assert!(record().with_error(f64::NAN, 1e-8).is_wrong());
    }
}
