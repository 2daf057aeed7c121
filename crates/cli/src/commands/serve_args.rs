//! The command line of `sudare serve`, and of what a server computes instead.

use crate::args::size;
use crate::error::CliError;
use crate::files;
use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use sudare_genome::Padding;
use sudare_ring::ErrorKind;
use sudare_serve::Remote;

/// Most bytes of a token's file, and of certificates.
pub const MAX_TEXT: u64 = 1 << 20;

/// How lines of a log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A moment, what happened, and NAME=VALUE
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Listen on this address, which is no name; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8443")]
    pub listen: SocketAddr,
    /// Keep objects and jobs in this folder
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Tenants and the hashes of their tokens, as `sudare token add` writes them. SIGHUP reads it again, and the files of
    /// TLS too
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// The server's certificate and the certificates above it, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, PEM; only the server's user and group may read it
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Clients must show a certificate of one of these authorities, besides their token
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
    /// Listen without TLS on an address that others reach: a proxy in front has TLS, and names the client in X-Forwarded-For
    #[arg(long, conflicts_with = "tls_cert")]
    pub behind_proxy: bool,
    /// Offer a haplotype panel for searches under a name
    #[arg(long, value_name = "NAME=FILE", value_parser = offered)]
    pub panel: Vec<(String, PathBuf)>,
    /// Offer a compiled model for encrypted inputs under a name; `sudare.compile(…).save` writes the file
    #[arg(long, value_name = "NAME=FILE", value_parser = offered)]
    pub model: Vec<(String, PathBuf)>,
    /// Pad the work for each start in a panel to so many products, as `genome panel class` counts them for the longest
    /// window; or the least and the most that clients may ask for
    #[arg(long, value_name = "NAME=LEAST[-MOST]", value_parser = padding)]
    pub pad: Vec<(String, Padding)>,
    /// The most haplotypes that each tenant may ask about in a panel, for good: counted when a search is accepted, whatever
    /// its key, and after a restart too
    #[arg(long, value_name = "NAME=N", value_parser = queries)]
    pub queries: Vec<(String, u64)>,
    /// Run N jobs at once, each on all --threads; with 0 jobs are accepted and wait for the next start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
    /// The most jobs of all tenants that wait or run
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub queue: usize,
    /// The most bytes of a tenant's objects, tables, results and job records
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "64GB")]
    pub storage: u64,
    /// The most bytes of keys and tables that stay in memory between jobs; also the most that the operands of a job take. A
    /// table takes up to half of it
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "4GB")]
    pub memory: u64,
    /// The most seconds that a job may run
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    pub job_seconds: u64,
    /// Keep unused objects and ended jobs for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    pub keep: u64,
    /// Serve figures for Prometheus at http://ADDRESS:PORT/metrics, and a health check at /healthz
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Append requests and ends of jobs to this file; SIGHUP opens it again [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The format of the log; the audit is always JSON
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Append who sent, computed, fetched and removed what to this file. A request is refused if its line cannot be
    /// written. SIGHUP opens the file again
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// Make a token and print it; the server takes it after a SIGHUP
    Add(AddToken),
    /// Say which tokens there are, and until when
    List(ListTokens),
    /// Remove a token; the server refuses it after a SIGHUP
    Remove(RemoveToken),
}

#[derive(Debug, Args)]
pub struct AddToken {
    /// The tenant's name: lower-case letters, digits, hyphens, underscores
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// The server's file of tokens; a line with the token's hash is added. Only its writer can read it: write it as the
    /// server's user
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// The token's name, for logs and for `remove` [default: the first digits of its hash]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// When the token ends: after a time, as 90d or 12h, or at a moment in UTC, as 2030-01-31 or 2030-01-31T12:00:00Z
    /// [default: never]
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub expires: Option<SystemTime>,
}

#[derive(Debug, Args)]
pub struct ListTokens {
    /// The server's file of tokens
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RemoveToken {
    /// The tenant's name
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// The token's name, as `list` prints it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The server's file of tokens
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
}

#[derive(Debug, Args)]
pub struct Health {
    /// The server, as https://HOST:PORT, or its address for --metrics, as http://127.0.0.1:PORT
    #[arg(value_name = "URL")]
    pub server: String,
    /// The server's own certificate, or its authority's, PEM; needed unless a public authority signed it
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// The server that does the work, if it is not done here.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// A server instead of this machine, as https://HOST:PORT; what it has already is not sent again
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub server: Option<String>,
    /// The tenant's token
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// The server's own certificate, or its authority's, PEM; needed unless a public authority signed it
    #[arg(long, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
}

impl RemoteArgs {
    /// The server, if one is named.
    pub fn connect(&self) -> Result<Option<Remote>, CliError> {
        let (Some(url), Some(path)) = (&self.server, &self.token_file) else { return Ok(None) };
        let token = files::read_secret(path, MAX_TEXT)?;
        let token = std::str::from_utf8(&token).map_err(|_| {
            CliError::new(
                ErrorKind::Input,
                "this is not a token, for it is not text; take what `sudare token add` printed",
            )
            .in_file(path)
        })?;
        let ca = self.ca.as_deref().map(|path| files::read(path, MAX_TEXT)).transpose()?;
        Ok(Some(Remote::new(url, token.trim(), ca.as_deref())?))
    }
}

impl Serve {
    /// How long things are kept.
    pub fn kept(&self) -> Duration {
        Duration::from_secs(self.keep.saturating_mul(24 * 3600))
    }

    /// The files of TLS, if there is any.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }
}

/// `90d`, `2030-01-31`, `2030-01-31T12:00:00Z`.
fn moment(text: &str) -> Result<SystemTime, String> {
    let after = || SystemTime::now().checked_add(humantime::parse_duration(text).ok()?);
    let day = || humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok();
    let found = humantime::parse_rfc3339(text).ok().or_else(day).or_else(after);
    let found = found.ok_or("give a time as 90d or 12h, or a moment of UTC as 2030-01-31 or 2030-01-31T12:00:00Z")?;
    if found > SystemTime::now() { Ok(found) } else { Err("this moment is over; give a later one".into()) }
}

/// `NAME=LEAST-MOST`, or one class for all searches.
fn padding(text: &str) -> Result<(String, Padding), String> {
    let read = || {
        let (name, range) = text.split_once('=')?;
        let (least, most) = range.split_once('-').unwrap_or((range, range));
        Some((name.to_owned(), least.parse().ok()?, most.parse().ok()?))
    };
    let (name, least, most) = read().ok_or("give a panel's name and its classes, as ref=4096 or ref=4096-65536")?;
    Ok((name, Padding::new(least, most).map_err(|e| e.to_string())?))
}

/// `NAME=N`.
fn queries(text: &str) -> Result<(String, u64), String> {
    let read = || text.split_once('=').and_then(|(name, most)| Some((name.to_owned(), most.parse().ok()?)));
    read().ok_or_else(|| "give a panel's name and a number of haplotypes, as ref=1000".into())
}

/// `NAME=FILE`, of what the server offers.
fn offered(text: &str) -> Result<(String, PathBuf), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && name.chars().all(good) && !path.is_empty() => {
            Ok((name.into(), path.into()))
        }
        _ => Err("give a name of letters, digits and hyphens, and a file, as ref=panel.sudare".into()),
    }
}
