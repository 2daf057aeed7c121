//! The command line of `sudare index`.

use super::serve_args::RemoteArgs;
use crate::args::Csv;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sudare_search::Mode;

/// What `keygen` makes: the secret key and the evaluation keys.
pub const KEY_FILES: [&str; 2] = ["secret.key", "eval.keys"];

#[derive(Debug, Subcommand)]
pub enum Index {
    /// Choose parameters for an index, and say what it costs and promises
    Plan(Plan),
    /// Make keys: secret.key and eval.keys
    Keygen(Keygen),
    /// Encrypt vectors into a new table
    Store(Store),
    /// Encrypt more vectors into a table
    Append(Store),
    /// Remove what an interrupted store or append left, so that other rows can take its place
    Discard(Discard),
    /// Encrypt a question, or several: one a row
    Query(Query),
    /// Count rows above a threshold; needs no secret key
    Count(Ask),
    /// Find rows above a threshold with their payloads; needs no secret key
    Fetch(Ask),
    /// Score all rows; needs no secret key
    Scores(Ask),
    /// Send a table to a server, or what was appended to it since; needs no secret key
    Send(Send),
    /// Decrypt an answer, and print it as CSV
    Answer(Answer),
    /// Score rows that the server has in the clear, for a question that it cannot read
    #[command(subcommand)]
    Plain(Plain),
}

/// Scores of rows in the clear.
#[derive(Debug, Subcommand)]
pub enum Plain {
    /// Make the asker's secret key; there are no others
    Keygen(PlainKeygen),
    /// Encrypt a question, or several: one a row
    Query(PlainQuery),
    /// Score rows; needs no key
    Scores(PlainScores),
    /// Decrypt an answer, and print it as CSV: a line of scores for each question
    Answer(PlainAnswer),
}

impl Plain {
    fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match self {
            Self::Keygen(a) => (Vec::new(), vec![a.output.clone()]),
            Self::Query(a) => (vec![a.keys.clone(), a.vectors.clone()], vec![a.output.clone()]),
            Self::Scores(a) => (vec![a.rows.clone(), a.query.clone()], vec![a.output.clone()]),
            Self::Answer(a) => (vec![a.keys.clone(), a.answer.clone()], Vec::new()),
        }
    }
}

#[derive(Debug, Args)]
pub struct PlainKeygen {
    /// Coordinates of a vector
    #[arg(long, value_name = "N")]
    pub d: usize,
    /// The secret key
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct PlainQuery {
    /// Coordinates of a vector
    #[arg(long, value_name = "N")]
    pub d: usize,
    /// The secret key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// One vector a row: .npy or .csv
    #[arg(value_name = "VECTORS")]
    pub vectors: PathBuf,
    /// The encrypted question
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
}

#[derive(Debug, Args)]
pub struct PlainScores {
    /// Coordinates of a vector
    #[arg(long, value_name = "N")]
    pub d: usize,
    /// The rows in the clear, one a row: .npy or .csv
    #[arg(value_name = "ROWS")]
    pub rows: PathBuf,
    /// The encrypted question
    #[arg(value_name = "QUERY")]
    pub query: PathBuf,
    /// The encrypted answer
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
}

#[derive(Debug, Args)]
pub struct PlainAnswer {
    /// Coordinates of a vector
    #[arg(long, value_name = "N")]
    pub d: usize,
    /// The secret key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The encrypted answer
    #[arg(value_name = "ANSWER")]
    pub answer: PathBuf,
}

impl Index {
    /// The files that are read, and those that are written.
    pub fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match self {
            Self::Plan(a) => (Vec::new(), vec![a.output.clone()]),
            Self::Keygen(a) => (vec![a.plan.clone()], KEY_FILES.map(|name| a.output.join(name)).into()),
            Self::Store(a) | Self::Append(a) => {
                let inputs = [&a.plan, &a.keys, &a.vectors].into_iter().chain(&a.payload);
                (inputs.cloned().collect(), vec![a.output.clone()])
            }
            Self::Discard(a) => (vec![a.plan.clone(), a.keys.clone()], Vec::new()),
            Self::Query(a) => (vec![a.plan.clone(), a.keys.clone(), a.vectors.clone()], vec![a.output.clone()]),
            Self::Count(a) | Self::Fetch(a) | Self::Scores(a) => {
                let here = a.keys.iter().chain(a.remote.server.is_none().then_some(&a.table));
                ([&a.plan, &a.query].into_iter().chain(here).cloned().collect(), vec![a.output.clone()])
            }
            Self::Send(a) => (vec![a.plan.clone(), a.keys.clone(), a.table.clone()], Vec::new()),
            Self::Answer(a) => (vec![a.plan.clone(), a.keys.clone(), a.answer.clone()], Vec::new()),
            Self::Plain(a) => a.files(),
        }
    }
}

#[derive(Debug, Args)]
pub struct Plan {
    /// Coordinates of a vector
    #[arg(long, value_name = "N")]
    pub d: usize,
    /// Most vectors
    #[arg(long, value_name = "N")]
    pub rows: u64,
    /// The threshold: vectors match whose cosine is over it
    #[arg(long, value_name = "X")]
    pub above: f64,
    /// Where no cosine lies, as 0.66,0.82 [default: the narrowest gap that so many rows allow]
    #[arg(long, value_parser = gap, value_name = "LOW,HIGH")]
    pub gap: Option<(f64, f64)>,
    /// What comes back with a match: how many unsigned numbers of how many bits, as 7x12
    #[arg(long, value_parser = payload, value_name = "NxBITS")]
    pub payload: Option<(usize, u32)>,
    /// How the table is encrypted: leveled, or compact in a tenth of the memory
    #[arg(long, value_name = "MODE", default_value_t = Mode::Leveled)]
    pub mode: Mode,
    /// The plan's file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

fn gap(text: &str) -> Result<(f64, f64), String> {
    let parsed = text.split_once(',').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
    parsed.ok_or_else(|| "give both ends, as 0.66,0.82".into())
}

fn payload(text: &str) -> Result<(usize, u32), String> {
    let parsed = text.split_once('x').and_then(|(n, bits)| Some((n.parse().ok()?, bits.parse().ok()?)));
    parsed.ok_or_else(|| "give the count of numbers and their bits, as 7x12".into())
}

#[derive(Debug, Args)]
pub struct Keygen {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// The folder that the keys go to
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Discard {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The table's folder
    #[arg(value_name = "TABLE")]
    pub table: PathBuf,
}

#[derive(Debug, Args)]
pub struct Store {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// Vectors, one a row: .npy or .csv
    #[arg(value_name = "VECTORS")]
    pub vectors: PathBuf,
    /// Unsigned integers that come back with a match, a row for each vector
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// The table's folder. What was begun there goes on
    #[arg(short, long, value_name = "TABLE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
}

#[derive(Debug, Args)]
pub struct Query {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// One vector a row: .npy or .csv
    #[arg(value_name = "VECTORS")]
    pub vectors: PathBuf,
    /// The encrypted question
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
}

#[derive(Debug, Args)]
pub struct Ask {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// eval.keys; a table at a server has them there
    #[arg(long, value_name = "KEY", required_unless_present = "server", conflicts_with = "server")]
    pub keys: Option<PathBuf>,
    /// The table's folder; with --server its name there
    #[arg(value_name = "TABLE")]
    pub table: PathBuf,
    /// The encrypted question
    #[arg(value_name = "QUERY")]
    pub query: PathBuf,
    /// Other thresholds than the plan's, in gaps as wide: several for a count
    #[arg(long, value_delimiter = ',', value_name = "X")]
    pub above: Vec<f64>,
    /// Most memory, in GB: rows that do not fit are read for each question
    #[arg(long, value_name = "GB", default_value_t = 4.0, conflicts_with = "server")]
    pub memory: f64,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The encrypted answer
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Send {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// eval.keys: the server keeps those that came with the table's first segment
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The table's folder
    #[arg(value_name = "TABLE")]
    pub table: PathBuf,
    /// Its name at the server: letters, digits, hyphens, underscores
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub struct Answer {
    /// The plan's file
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The encrypted answer
    #[arg(value_name = "ANSWER")]
    pub answer: PathBuf,
}
