//! The command line.

use crate::commands::bits_args::Bits;
use crate::commands::genome_args::Genome;
use crate::commands::index_args::Index;
use crate::commands::model;
use crate::commands::party_args::Party;
use crate::commands::serve_args::{Health, RemoteArgs, Serve, Tokens};
use crate::files::Existing;
use clap::{Args as Arguments, Parser, Subcommand};
use std::path::PathBuf;
use sudare_rlwe::release::ReleasePolicy;

/// Computes on encrypted matrices, integers, vectors and genomes in files.
#[derive(Debug, Parser)]
#[command(name = "sudare", version, about, after_help = EXIT_CODES, propagate_version = true)]
pub struct Args {
    /// Use N threads; 0 takes all processors
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub threads: usize,
    /// Print errors only: no tables, sizes or progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Replace existing files; what a replaced key encrypted is lost
    #[arg(long, global = true)]
    pub force: bool,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  an error of sudare itself
  2  wrong use of the command line, or an output file that exists
  3  bad input data: not finite, over the planned bound, another shape or other columns, not a matrix file; messages
     of parties that have not come
  4  a key, plan or parameter set that does not belong to the others, or a missing key
  5  a damaged file, or one that is not what it should be
  6  no plan satisfies what is asked for
  7  reading or writing failed
After an error no output file was written or changed. An existing file is replaced only with --force.
Where a file is wanted, - is standard input or standard output; matrices go there as .csv, and come from there as either.";

/// What `keygen` makes: the secret key, the public key and the evaluation keys.
pub const KEY_FILES: [&str; 3] = ["secret.key", "public.key", "eval.keys"];

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Choose method, parameters and keys for a product, and explain the choice
    Plan(Plan),
    /// Compile a trained network of an .onnx file for encrypted inputs: model.bin for the server, plan.json for the client
    Compile(Compile),
    /// Make the keys of a plan: secret.key, public.key and eval.keys
    Keygen(Keygen),
    /// Encrypt a matrix file for a plan
    Encrypt(Encrypt),
    /// Multiply two encrypted matrices; needs no secret key
    Matmul(Matmul),
    /// Compute the whole expression of a plan, or a compiled model, from encrypted inputs; needs no secret key
    Run(Run),
    /// Decrypt a result
    Decrypt(Decrypt),
    /// Say what a file is: a plan, a model, a key, an encrypted value, a matrix, a panel
    Info(Info),
    /// Compute exactly with encrypted integers and booleans: compare, choose, add
    #[command(subcommand)]
    Bits(Bits),
    /// Print the completions of a shell: source <(sudare completion bash)
    Completion(Completion),
    /// Write the manual pages into a folder: man -l FOLDER/sudare.1
    Man(Manual),
    /// Measure how fast this machine is, for the planner's estimates
    Calibrate(Calibrate),
    /// Search haplotype panels in private
    #[command(subcommand)]
    Genome(Genome),
    /// Search among encrypted vectors
    #[command(subcommand)]
    Index(Index),
    /// Share one key among several parties: any T of them decrypt together, and nobody alone
    #[command(subcommand)]
    Party(Party),
    /// Serve others over HTTP: computes, and holds no secret key
    Serve(Serve),
    /// Add, list and remove the tokens of tenants of `sudare serve`
    #[command(subcommand)]
    Token(Tokens),
    /// Ask whether a `sudare serve` answers and takes requests
    Health(Health),
}

impl Args {
    /// What becomes of a file that has the name of an output.
    pub fn existing(&self) -> Existing {
        if self.force { Existing::Replaced } else { Existing::Kept }
    }
}

impl Command {
    /// The files that are read, and those that are written.
    pub fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let list = |files: &[&PathBuf]| files.iter().map(PathBuf::from).collect::<Vec<_>>();
        match self {
            Self::Plan(a) => (a.expression.iter().cloned().collect(), list(&[&a.output])),
            Self::Compile(a) => (list(&[&a.network, &a.examples]), model::FILES.map(|name| a.output.join(name)).into()),
            Self::Keygen(a) => (list(&[&a.plan]), KEY_FILES.map(|name| a.output.join(name)).into()),
            Self::Encrypt(a) => {
                let inputs = [&a.plan, &a.keys, &a.matrix].into_iter().chain(&a.columns);
                (inputs.cloned().collect(), list(&[&a.output]))
            }
            Self::Matmul(a) => (list(&[&a.plan, &a.keys, &a.left, &a.right]), list(&[&a.output])),
            Self::Run(a) => {
                // FILE or NAME=FILE.
                let inputs = a.inputs.iter().flat_map(|text| {
                    [Some(text.as_str()), text.split_once('=').map(|(_, file)| file)].into_iter().flatten()
                });
                let inputs = inputs.map(PathBuf::from);
                (list(&[&a.plan, &a.keys]).into_iter().chain(inputs).collect(), list(&[&a.output]))
            }
            Self::Decrypt(a) => {
                let names = [&a.rows, &a.columns].into_iter().flatten().cloned();
                (list(&[&a.plan, &a.keys, &a.result]).into_iter().chain(names).collect(), list(&[&a.output]))
            }
            Self::Info(_) | Self::Completion(_) | Self::Man(_) | Self::Calibrate(_) => Default::default(),
            Self::Bits(a) => a.files(),
            Self::Genome(a) => a.files(),
            Self::Index(a) => a.files(),
            Self::Party(a) => a.files(),
            // A server's files are its own; a token's file is read and written.
            Self::Serve(_) | Self::Token(_) | Self::Health(_) => Default::default(),
        }
    }
}

#[derive(Debug, Arguments)]
pub struct Plan {
    /// Rows and columns of the left matrix, as 569x30
    #[arg(long, value_parser = shape, value_name = "RxC", required_unless_present_any = ["expression", "table"], requires = "right")]
    pub left: Option<(usize, usize)>,
    /// Rows and columns of the right matrix
    #[arg(long, value_parser = shape, value_name = "RxC", requires = "left")]
    pub right: Option<(usize, usize)>,
    /// Plan statistics of a table instead of a product; its rows and columns, as 569x30
    #[arg(long, value_parser = shape, value_name = "RxC", conflicts_with_all = ["left", "right", "expression", "plain", "integers", "batch", "error"])]
    pub table: Option<(usize, usize)>,
    /// The matrices hold integers, and the product is exact: no error or release
    #[arg(long, conflicts_with_all = ["expression", "error", "release"])]
    pub integers: bool,
    /// Largest absolute value of an element: one for both matrices or one for each, as 10,0.5; for each
    /// column of a table
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "X", default_value = "1")]
    pub max_abs: Vec<f64>,
    /// Plan an expression instead of one product; the file holds {"inputs": …, "nodes": …, "output": …}. It is exact if its inputs have "integers"
    #[arg(long, value_name = "FILE", conflicts_with_all = ["left", "right", "max_abs", "plain"])]
    pub expression: Option<PathBuf>,
    /// This matrix is public: the server gets it unencrypted
    #[arg(long, value_parser = ["left", "right"])]
    pub plain: Option<String>,
    /// Largest absolute error of a result element
    #[arg(long, value_name = "E", default_value_t = 1e-4)]
    pub error: f64,
    /// Security in bits: 128, 192 or 256
    #[arg(long, value_name = "BITS", default_value_t = 128)]
    pub security: u32,
    /// Independent products in one run; matrix files then hold BxRxC numbers
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub batch: usize,
    /// Others will see results: how many under one key, and the bits of statistical security of what
    /// hides their errors, as 10 or 10,30 [default bits: 30]. --error is then that of a released result
    #[arg(long, value_parser = release, value_name = "COUNT[,BITS]")]
    pub release: Option<ReleasePolicy>,
    /// N parties hold the key together (see `sudare party`); every decryption is a release
    #[arg(long, value_name = "N", requires_all = ["threshold", "release"])]
    pub parties: Option<u32>,
    /// T of the parties decrypt together
    #[arg(long, value_name = "T", requires = "parties")]
    pub threshold: Option<u32>,
    /// Consider this method alone
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Make results of few bytes that still have the wanted error, for more time and keys
    #[arg(long, conflicts_with = "table")]
    pub compact: bool,
    /// The most memory that the server may take, as 8GB or 512MB [default: all of this machine's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Print the plan's figures as JSON
    #[arg(long)]
    pub json: bool,
    /// Where the plan goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// What a model's answer says.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Label {
    /// The largest number's place is the label
    Argmax,
    /// Whether the first number is above zero is the label
    Sign,
    /// Numbers, without a label
    Numbers,
}

#[derive(Debug, Arguments)]
pub struct Compile {
    /// The network, as an exporter wrote it
    #[arg(value_name = "NETWORK.onnx")]
    pub network: PathBuf,
    /// Inputs like those that will be encrypted, .npy or .csv, one example after the other: ranges are theirs. Never those that the
    /// network is judged by
    #[arg(long, value_name = "FILE")]
    pub examples: PathBuf,
    /// Bound on what encryption adds to a number of an answer
    #[arg(long, value_name = "E", default_value_t = 1e-2)]
    pub error: f64,
    /// Share of the examples that keep their label
    #[arg(long, value_name = "SHARE", default_value_t = 0.99)]
    pub agreement: f64,
    /// Largest difference of polynomials from the network on the examples [default: what the agreement allows; of numbers, --error]
    #[arg(long, value_name = "E")]
    pub approximation: Option<f64>,
    /// Degree of all polynomials [default: the least that serves]
    #[arg(long, value_name = "N")]
    pub degree: Option<usize>,
    /// How many times as wide as the examples' the ranges are
    #[arg(long, value_name = "FACTOR", default_value_t = 1.5)]
    pub margin: f64,
    /// Examples that come together
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub batch: usize,
    /// What an answer says [default: argmax, and numbers of a network with one output]
    #[arg(long, value_enum)]
    pub label: Option<Label>,
    #[command(flatten)]
    pub csv: Csv,
    /// The folder that model.bin and plan.json go to
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Keygen {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// The folder that the keys go to
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Encrypt {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// public.key, or secret.key for a file of half the size
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// Which input of the plan it is: left or right, or a name of the expression's; a model has one
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// The matrix, or examples of a model, .npy, .csv or .tsv, or one of these packed as .gz. Names of columns in the first line and of rows in the first column stay here:
    /// see `decrypt --rows` and `--columns`
    #[arg(value_name = "MATRIX")]
    pub matrix: PathBuf,
    /// Refuse examples of a model unless their columns have the names and the order of the first line of this .csv file: that of
    /// the examples which the model was compiled for. The file needs no other line
    #[arg(long, value_name = "FILE")]
    pub columns: Option<PathBuf>,
    /// Write a store: a folder of blocks, for products larger than memory
    #[arg(long)]
    pub store: bool,
    #[command(flatten)]
    pub csv: Csv,
    /// Where the ciphertext goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Matmul {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// eval.keys
    #[arg(long, value_name = "KEYS")]
    pub keys: PathBuf,
    /// Read keys from their file as they are needed, and hold at most SIZE of unused ones, as 2GB
    #[arg(long, value_parser = size, value_name = "SIZE", conflicts_with = "server")]
    pub keys_memory: Option<u64>,
    /// The left matrix: encrypted, or a matrix file if the plan has it plain
    #[arg(value_name = "LEFT")]
    pub left: PathBuf,
    /// The right matrix
    #[arg(value_name = "RIGHT")]
    pub right: PathBuf,
    /// The memory that a product of two stores may take, as 8GB; the product is a store too
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Go on with an interrupted product of two stores
    #[arg(long, requires = "memory")]
    pub resume: bool,
    #[command(flatten)]
    pub csv: Csv,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Where the encrypted product goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Run {
    /// The plan; or model.bin, or the name of a model that --server offers
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// eval.keys
    #[arg(long, value_name = "KEYS")]
    pub keys: PathBuf,
    /// Read keys from their file as they are needed, and hold at most SIZE of unused ones, as 2GB
    #[arg(long, value_parser = size, value_name = "SIZE", conflicts_with = "server")]
    pub keys_memory: Option<u64>,
    /// The encrypted inputs in any order; an input that the plan has plain as NAME=FILE
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<String>,
    #[command(flatten)]
    pub csv: Csv,
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// Where the encrypted result goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Decrypt {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The encrypted result
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Others will see the matrix, so noise hides its error. The key's file counts this; the plan needs
    /// --release as well
    #[arg(long)]
    pub release: bool,
    /// Nobody else will see the matrix, so no noise hides its error. Needed if the plan has --release
    #[arg(long, conflicts_with = "release")]
    pub private: bool,
    /// Take the names of the result's rows from this .csv file
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// Take the names of the result's columns from this .csv file
    #[arg(long, value_name = "FILE")]
    pub columns: Option<PathBuf>,
    #[command(flatten)]
    pub csv: Csv,
    /// Where the matrix goes, .npy, .csv or .tsv
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// How .csv files are written. Lines that begin with # are comments.
#[derive(Clone, Debug, Default, Arguments)]
pub struct Csv {
    /// The separator of columns in .csv files: one character, tab or space [default: what the file has; in a
    /// result a comma, and a tab in one that ends in .tsv]
    #[arg(long, value_parser = separator, value_name = "CHAR")]
    pub separator: Option<u8>,
    /// Numbers in .csv files have a decimal comma
    #[arg(long)]
    pub decimal_comma: bool,
    /// The first column of .csv files holds the rows' names, even if they are numbers
    #[arg(long)]
    pub index: bool,
}

#[derive(Debug, Arguments)]
pub struct Info {
    /// Any file that sudare wrote, a stored matrix or table, or a matrix
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print it as JSON: a list of the objects in the file
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub csv: Csv,
}

#[derive(Debug, Arguments)]
pub struct Completion {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Arguments)]
pub struct Manual {
    /// The folder that the pages go to, as /usr/local/share/man/man1
    #[arg(value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Calibrate {
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// `;`, `tab`, `space`, …
fn separator(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        ("space", _) => Ok(b' '),
        (_, [one]) if one.is_ascii() && !one.is_ascii_alphanumeric() && !b"#\".-+\n\r".contains(one) => Ok(*one),
        _ => Err("give one character that is not part of a number, or tab, or space".into()),
    }
}

/// `569x30`.
fn shape(text: &str) -> Result<(usize, usize), String> {
    let parsed =
        text.split_once(['x', 'X', '×']).and_then(|(r, c)| Some((r.trim().parse().ok()?, c.trim().parse().ok()?)));
    parsed.filter(|(r, c)| *r > 0 && *c > 0).ok_or_else(|| "give rows and columns as 569x30".into())
}

/// `10` or `10,30`.
fn release(text: &str) -> Result<ReleasePolicy, String> {
    let (count, bits) = text.split_once(',').unwrap_or((text, "30"));
    match (count.trim().parse(), bits.trim().parse()) {
        (Ok(count), Ok(bits)) => ReleasePolicy::new(count, bits).map_err(|e| e.to_string()),
        _ => Err("give a count of results, or count and bits as 10,30".into()),
    }
}

/// `8GB`, `512MB`, `1GiB` or bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err("give a size as 8GB or 512MB".into()),
    };
    match text[..digits].parse::<f64>() {
        Ok(number) if number > 0.0 => Ok((number * unit) as u64),
        _ => Err("give a size as 8GB or 512MB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_makes_sense() {
        Args::command().debug_assert();
        assert_eq!(shape("569x30"), Ok((569, 30)));
        assert!(shape("569").is_err() && shape("0x3").is_err() && shape("-1x3").is_err());
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        assert_eq!(size("1.5 MiB"), Ok(1_572_864));
        assert_eq!(release("10"), release("10,30"));
        assert!(release("1,0").is_err() && release("0").is_err() && release("3,bits").is_err());
        assert_eq!((separator(";"), separator("tab")), (Ok(b';'), Ok(b'\t')));
        assert!(["", ";;", "5", ".", "#", "é"].iter().all(|s| separator(s).is_err()));
        assert!(size("GB").is_err() && size("8QB").is_err());
    }
}
