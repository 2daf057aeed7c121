//! The command line of `sudare bits`.

use crate::args::Csv;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What `keygen` makes: the secret key and the evaluation keys.
pub const KEY_FILES: [&str; 2] = ["secret.key", "eval.keys"];

#[derive(Debug, Subcommand)]
pub enum Bits {
    /// Make keys: secret.key and eval.keys
    Keygen(Keygen),
    /// Encrypt a file of integers or booleans
    Encrypt(Encrypt),
    /// Compute with encrypted arrays; needs no secret key
    Run(Run),
    /// Decrypt an array
    Decrypt(Decrypt),
}

impl Bits {
    /// The files that are read, and those that are written.
    pub fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match self {
            Self::Keygen(a) => (Vec::new(), KEY_FILES.map(|name| a.output.join(name)).into()),
            Self::Encrypt(a) => (vec![a.keys.clone(), a.array.clone()], vec![a.output.clone()]),
            Self::Run(a) => {
                let operands = [&a.left].into_iter().chain(&a.right).map(PathBuf::from);
                ([a.keys.clone()].into_iter().chain(operands).collect(), vec![a.output.clone()])
            }
            Self::Decrypt(a) => (vec![a.keys.clone(), a.array.clone()], vec![a.output.clone()]),
        }
    }
}

#[derive(Debug, Args)]
pub struct Keygen {
    /// The set: message_2_carry_2 for integers and booleans, gates for booleans alone
    #[arg(long, value_name = "NAME", default_value = "message_2_carry_2")]
    pub parameters: String,
    /// The folder that the keys go to
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Encrypt {
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The elements' type: bool, or int or uint with 8, 16, 32 or 64
    #[arg(long, value_name = "TYPE", default_value = "int64")]
    pub dtype: String,
    /// Integers, .npy or .csv
    #[arg(value_name = "ARRAY")]
    pub array: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
    /// Where the encrypted array goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Run {
    /// eval.keys
    #[arg(long, value_name = "KEYS")]
    pub keys: PathBuf,
    /// NumPy's name: add, subtract, multiply, minimum, maximum, equal, not_equal, less, less_equal, greater,
    /// greater_equal, bitwise_and, bitwise_or, bitwise_xor; invert, negative, settle of one array
    #[arg(value_name = "OPERATION")]
    pub operation: String,
    /// An encrypted array
    #[arg(value_name = "LEFT")]
    pub left: String,
    /// Another of the same shape and type, or one integer that everybody may know
    #[arg(value_name = "RIGHT", allow_negative_numbers = true)]
    pub right: Option<String>,
    /// Where the encrypted array goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Decrypt {
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The encrypted array
    #[arg(value_name = "ARRAY")]
    pub array: PathBuf,
    #[command(flatten)]
    pub csv: Csv,
    /// Where the integers go, .npy or .csv; booleans are 0 and 1
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}
