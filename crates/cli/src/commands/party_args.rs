//! The command line of `sudare party`.

use super::super::args::{Csv, KEY_FILES};
use super::serve_args::RemoteArgs;
use crate::error::CliError;
use clap::{Args as Arguments, Subcommand};
use std::path::PathBuf;
use std::sync::Arc;
use sudare_ring::ErrorKind;
use sudare_serve::RemoteRoom;
use sudare_session::parties::{Folder, Messages};

/// Keys that several parties hold together, through a folder that all of them see or a room of a server.
#[derive(Debug, Subcommand)]
pub enum Party {
    /// Begin a session: the folder or room that all parties see
    Init(Init),
    /// Join as a party, or under another name to receive results
    Join(Join),
    /// Send what can be sent by now, take over what came, and say who is missing
    Round(Round),
    /// Show who has joined, who is missing, and what was asked
    Status(Status),
    /// Help to decrypt a result for the receivers that are named, or show who asks for whom
    Share(Share),
    /// Add what all have sent: to the keys of a session, or to a result
    Combine(Combine),
}

/// Where the messages are that all parties see.
#[derive(Debug, Arguments)]
pub struct At {
    /// The folder that all parties see; with --server the name of their room there, where all parties are one tenant
    #[arg(value_name = "ROOM")]
    pub at: PathBuf,
    #[command(flatten)]
    pub server: RemoteArgs,
}

impl At {
    /// The room of a server, if one is named.
    pub fn remote(&self) -> Result<Option<Arc<RemoteRoom>>, CliError> {
        let Some(remote) = self.server.connect()? else { return Ok(None) };
        let name = self.at.to_str().ok_or_else(|| {
            CliError::new(
                ErrorKind::Usage,
                "the name of the room is not text; take letters, digits, hyphens, underscores and dots",
            )
        })?;
        Ok(Some(RemoteRoom::new(remote, name)))
    }

    /// The messages.
    pub fn messages(&self) -> Result<Arc<dyn Messages>, CliError> {
        Ok(match self.remote()? {
            Some(room) => room,
            None => Folder::at(&self.at),
        })
    }
}

#[derive(Debug, Arguments)]
pub struct Init {
    #[command(flatten)]
    pub room: At,
    /// The plan, made with --parties, --threshold and --release
    #[arg(long, value_name = "PLAN")]
    pub plan: PathBuf,
    /// Names of the parties, as north,south,west: letters without accents, digits and _
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

#[derive(Debug, Arguments)]
pub struct Join {
    #[command(flatten)]
    pub room: At,
    /// The party's name, or another to receive results
    #[arg(long = "as", value_name = "NAME")]
    pub name: String,
    /// A folder that no other user reaches, for the party's secret and its ledger: into no backup
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
}

#[derive(Debug, Arguments)]
pub struct Round {
    #[command(flatten)]
    pub room: At,
    /// The party's own folder
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
    /// Go on until nobody is missing, for at most so many seconds [without a number: 3600]. Exit code 3 if somebody is missing then
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "3600")]
    pub wait: Option<u32>,
}

#[derive(Debug, Arguments)]
pub struct Status {
    #[command(flatten)]
    pub room: At,
    /// A party's own folder, to count the releases that it has left
    #[arg(long, value_name = "FOLDER")]
    pub home: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub struct Share {
    #[command(flatten)]
    pub room: At,
    /// The encrypted result
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// The party's own folder
    #[arg(long, value_name = "FOLDER")]
    pub home: PathBuf,
    /// The parties that decrypt, as many as the threshold, in any order; without them what was asked is shown
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", requires = "to")]
    pub by: Vec<String>,
    /// Who reads the result
    #[arg(long, value_delimiter = ',', num_args = 1.., value_name = "NAME", requires = "by")]
    pub to: Vec<String>,
    /// Answer what was asked, whoever reads it
    #[arg(long, conflicts_with = "by")]
    pub agree: bool,
}

#[derive(Debug, Arguments)]
pub struct Combine {
    #[command(flatten)]
    pub room: At,
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
            Self::Join(_) | Self::Round(_) | Self::Status(_) => Default::default(),
            Self::Share(a) => (vec![a.result.clone()], Vec::new()),
            Self::Combine(a) => match &a.result {
                Some(result) => (vec![result.clone()], vec![a.output.clone()]),
                None => (Vec::new(), a.keys().into()),
            },
        }
    }
}
