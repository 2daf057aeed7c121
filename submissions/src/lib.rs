//! What the entries for the public workloads share: a step by its name, folders, files.
//!
//! The harness of a workload runs one program a step, from its own root, with the arguments that its documentation says. Here a
//! workload is one program that does the step by whose name it was called; the build script of an entry makes the names.
#![forbid(unsafe_code)]

pub mod aes;
pub mod driver;
pub mod fetch;
pub mod mnist;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use sudare_ring::Threads;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Errors are told to who runs the harness.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A step and its arguments.
#[derive(Clone, Debug)]
pub struct Step {
    /// The step's name.
    pub name: String,
    /// What follows it.
    pub arguments: Vec<String>,
}

impl Step {
    /// By the name that the program was called by; by the first argument where that is the program's own (`sudare-…`).
    ///
    /// # Errors
    /// Without a step.
    pub fn of_this_process() -> Outcome<Self> {
        let mut words = std::env::args();
        let called = words.next().unwrap_or_default();
        let called = Path::new(&called).file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        let name = match called.starts_with("sudare-") {
            false => called,
            true => words.next().ok_or("name a step")?,
        };
        Ok(Self { name, arguments: words.collect() })
    }

    /// Whether an option is there.
    pub fn has(&self, option: &str) -> bool {
        self.arguments.iter().any(|a| a == option)
    }

    /// An argument by its place.
    ///
    /// # Errors
    /// If there is none.
    pub fn argument(&self, place: usize) -> Outcome<&str> {
        Ok(self.arguments.get(place).ok_or_else(|| format!("{}: an argument is missing", self.name))?)
    }
}

/// Runs a step on all processors (or `SUDARE_THREADS`), and says what memory and time the process took where `SUDARE_PEAK` names a file.
pub fn run(work: impl FnOnce(&Step) -> Outcome<()> + Send) -> ExitCode {
    let done = Step::of_this_process().and_then(|step| {
        let threads = std::env::var("SUDARE_THREADS").ok().map_or(Ok(0), |t| t.parse::<usize>())?;
        Threads::new(threads).run(|| work(&step))?;
        note_costs(&step.name)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sudare: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Adds the most memory that this process took so far, in kilobytes, and its processor time in seconds to the file of `SUDARE_PEAK`.
///
/// # Errors
/// What the system refuses.
pub fn note_costs(step: &str) -> Outcome<()> {
    let Some(path) = std::env::var_os("SUDARE_PEAK") else { return Ok(()) };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes: u64 = line.and_then(|l| l.trim().split(' ').next()).and_then(|n| n.parse().ok()).unwrap_or(0);
    // Of a user and of the system, in hundredths of a second, behind the command's name in parentheses.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(11).take(2);
    let seconds = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0;
    let path = PathBuf::from(path);
    let before = fs::read_to_string(&path).unwrap_or_default();
    write(&path, format!("{before}{step} {kilobytes} {seconds:.2}\n").as_bytes())
}

/// Writes a file whole, and its folder.
///
/// # Errors
/// What the system refuses.
pub fn write(path: &Path, data: &[u8]) -> Outcome<()> {
    atomic::make_folder(path)?;
    Ok(atomic::write(path, &[data], Access::Usual, Over::NoKey, Durability::Process)?)
}

/// Reads a file.
///
/// # Errors
/// What the system refuses, with the file's name.
pub fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Writes a secret key for its owner alone.
///
/// # Errors
/// What the system refuses.
pub fn write_secret(path: &Path, data: &[u8]) -> Outcome<()> {
    atomic::make_folder(path)?;
    Ok(atomic::write(path, &[data], Access::Owner, Over::All, Durability::Process)?)
}

/// Seconds of parts of a step, for the harness's report.
#[derive(Debug, Default)]
pub struct Reported(serde_json::Map<String, serde_json::Value>);

impl Reported {
    /// Times a part.
    ///
    /// # Errors
    /// Those of the work.
    pub fn timed<T>(&mut self, what: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let begun = Instant::now();
        let done = work()?;
        self.0.insert(what.into(), serde_json::json!((begun.elapsed().as_secs_f64() * 1e4).round() / 1e4));
        Ok(done)
    }

    /// As text.
    pub fn text(&self) -> String {
        serde_json::Value::Object(self.0.clone()).to_string()
    }
}

/// Little-endian numbers of a file.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
