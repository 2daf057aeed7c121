//! The command line of `sudare serve`, and of what computes far away.

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
    /// An object of JSON a line
    Json,
}

#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// Where it listens; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8443")]
    pub listen: SocketAddr,
    /// The folder for objects and jobs
    #[arg(long, value_name = "FOLDER")]
    pub data: PathBuf,
    /// Tenants and the hashes of their tokens, as `sudare token add` writes them; read again on SIGHUP, as are the files
    /// of TLS
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// The server's certificate and those above it, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM; only the server's user and group may read it
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Clients show a certificate of one of these authorities, beside their token
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
    /// Listen without TLS on an address that others reach: a proxy in front has it, and says in X-Forwarded-For who asks
    #[arg(long, conflicts_with = "tls_cert")]
    pub behind_proxy: bool,
    /// A haplotype panel to search in, under a name
    #[arg(long, value_name = "NAME=FILE", value_parser = offered)]
    pub panel: Vec<(String, PathBuf)>,
    /// A compiled model that answers encrypted inputs, under a name; `sudare.compile(…).save` writes the file
    #[arg(long, value_name = "NAME=FILE", value_parser = offered)]
    pub model: Vec<(String, PathBuf)>,
    /// Products that the work for each start in a panel is padded to, as `genome panel class` counts them for the longest
    /// window; or the least and the most that clients may ask for
    #[arg(long, value_name = "NAME=LEAST[-MOST]", value_parser = padding)]
    pub pad: Vec<(String, Padding)>,
    /// Jobs that run at once, each on all --threads; with 0 they are accepted and wait for the next start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
    /// Jobs that wait or run, of all tenants
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub queue: usize,
    /// Most bytes of a tenant's objects, tables, results and records of jobs
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "64GB")]
    pub storage: u64,
    /// Most bytes of keys and tables that stay in memory between jobs, and most that the operands of a job take there. A table
    /// takes up to half of it
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "4GB")]
    pub memory: u64,
    /// Most seconds that a job runs
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    pub job_seconds: u64,
    /// Days that unused objects and ended jobs are kept
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    pub keep: u64,
    /// Figures for Prometheus at http://HOST:PORT/metrics, and whether it runs at /healthz
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Requests and ends of jobs are appended to this file; opened again on SIGHUP [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// How the log is written; the audit is JSON always
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Who sent, computed, fetched and removed what goes to the end of this file; what cannot be written there is
    /// refused. Opened again on SIGHUP
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
    /// Whose it is: lower-case letters, digits, hyphens, underscores
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// The server's file of tokens, which gets a line with the token's hash
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// What it is called among the tenant's, in logs and for `remove` [default: the first digits of its hash]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// When it ends: after a time, as 90d or 12h, or at a moment of UTC, as 2030-01-31 or 2030-01-31T12:00:00Z [default:
    /// never]
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
    /// Whose it is
    #[arg(value_name = "TENANT")]
    pub tenant: String,
    /// Its name, as `list` says it
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
    /// Authorities that the server's certificate is from, instead of the web's, PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// Where the work is done, if not here.
#[derive(Debug, Args)]
pub struct Far {
    /// A server that computes instead, as https://HOST:PORT; keys and values are sent once
    #[arg(long, value_name = "URL", requires = "token_file")]
    pub server: Option<String>,
    /// The tenant's token
    #[arg(long, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// Authorities that the server's certificate is from, instead of the web's, PEM
    #[arg(long, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
}

impl Far {
    /// The server, if one is named.
    pub fn remote(&self) -> Result<Option<Remote>, CliError> {
        let (Some(url), Some(path)) = (&self.server, &self.token_file) else { return Ok(None) };
        let token = files::read_secret(path, MAX_TEXT)?;
        let token = std::str::from_utf8(&token)
            .map_err(|_| CliError::new(ErrorKind::Input, "this is no token: it is not text").in_file(path))?;
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
    if found > SystemTime::now() { Ok(found) } else { Err("this moment is over".into()) }
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
