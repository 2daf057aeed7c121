//! The command line of `sudare party`.

use super::super::args::{Csv, KEY_FILES};
use clap::{Args as Arguments, Subcommand};
use std::path::PathBuf;

/// Keys that several parties hold together, through a folder that all of them see.
#[derive(Debug, Subcommand)]
pub enum Party {
    /// Begin a session: the folder that all parties see
    Init(Init),
    /// Join as a party, or under another name to receive results
    Join(Join),
    /// Send what can be sent by now, take over what came, and say who is missing
    Round(Round),
    /// Help to decrypt a result, for the receivers that are named
    Share(Share),
    /// Add what all have sent: to the keys of a session, or to a result
    Combine(Combine),
}

#[derive(Debug, Arguments)]
pub struct Init {
    /// The folder that all parties see, which is made
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The plan, made with --parties, --threshold and --release
    #[arg(long, value_name = "PLAN")]
    pub plan: PathBuf,
    /// Names of the parties, as north,south,west: letters without accents, digits and _
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

#[derive(Debug, Arguments)]
pub struct Join {
    /// The folder that all parties see
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The party's name, or another to receive results
    #[arg(long = "as", value_name = "NAME")]
    pub name: String,
    /// A folder that nobody else reads, for the party's secret and its ledger: into no backup
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Round {
    /// The folder that all parties see
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The party's own folder
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Share {
    /// The folder that all parties see
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The encrypted result
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// The party's own folder
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
    /// The parties that decrypt, as many as the threshold; without them this party agrees to what was asked
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", requires = "to")]
    pub by: Vec<String>,
    /// Who reads the result
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", requires = "by")]
    pub to: Vec<String>,
}

#[derive(Debug, Arguments)]
pub struct Combine {
    /// The folder that all parties see
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The encrypted result; without one the keys of the session are combined
    #[arg(value_name = "RESULT", requires = "home")]
    pub result: Option<PathBuf>,
    /// The receiver's own folder
    #[arg(long, value_name = "FOLDER", requires = "result")]
    pub home: Option<PathBuf>,
    #[command(flatten)]
    pub csv: Csv,
    /// The folder that public.key and eval.keys go to; of a result the matrix, .npy, .csv or .tsv
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
}

impl Combine {
    /// Where public.key and eval.keys go.
    pub fn keys(&self) -> [PathBuf; 2] {
        [self.output.join(KEY_FILES[1]), self.output.join(KEY_FILES[2])]
    }
}

impl Party {
    /// The files that are read, and those that are written.
    pub fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        match self {
            Self::Init(a) => (vec![a.plan.clone()], Vec::new()),
            Self::Join(_) | Self::Round(_) => Default::default(),
            Self::Share(a) => (vec![a.result.clone()], Vec::new()),
            Self::Combine(a) => match &a.result {
                Some(result) => (vec![result.clone()], vec![a.output.clone()]),
                None => (Vec::new(), a.keys().into()),
            },
        }
    }
}
