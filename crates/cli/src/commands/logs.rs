//! Where a server's events go: a log and an audit, each at the end of a file that is opened again when it is asked for.

use super::serve_args::{LogFormat, Serve};
use crate::error::CliError;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use sudare_serve::Event;
use sudare_store::atomic::{self, Access};

/// The log and the audit of a server.
pub struct Logs {
    log: Option<Lines>,
    audit: Option<Lines>,
    format: LogFormat,
    quiet: bool,
}

/// A file of lines.
struct Lines {
    path: PathBuf,
    /// The file, and whether its last line was cut off by a full disk.
    file: Mutex<(File, bool)>,
}

impl Lines {
    fn open(path: &Option<PathBuf>) -> Result<Option<Self>, CliError> {
        let Some(path) = path else { return Ok(None) };
        let file = Mutex::new((atomic::append(path, Access::Owner)?, false));
        Ok(Some(Self { path: path.clone(), file }))
    }

    /// Whoever moved the file away gets no more lines.
    fn reopen(&self) -> Result<(), CliError> {
        let file = atomic::append(&self.path, Access::Owner)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = (file, false);
        Ok(())
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, torn) = &mut *file;
        let start = if *torn { "\n" } else { "" };
        let written = file.write_all(format!("{start}{line}\n").as_bytes());
        *torn = written.is_err();
        written
    }
}

impl Logs {
    /// Opens the files that are named.
    pub fn open(a: &Serve, quiet: bool) -> Result<Self, CliError> {
        Ok(Self { log: Lines::open(&a.log)?, audit: Lines::open(&a.audit)?, format: a.log_format, quiet })
    }

    /// Opens them again: somebody moved them away.
    pub fn reopen(&self) -> Result<(), CliError> {
        self.log.iter().chain(&self.audit).try_for_each(Lines::reopen)
    }

    /// Writes an event where it belongs; fails for those of the audit alone.
    pub fn write(&self, event: &Event) -> io::Result<()> {
        let json = || serde_json::to_string(event).map_err(io::Error::other);
        if event.is_audit() {
            return self.audit.as_ref().map_or(Ok(()), |lines| lines.write(&json()?));
        }
        let line = match self.format {
            LogFormat::Text => event.to_string(),
            LogFormat::Json => json()?,
        };
        match &self.log {
            Some(lines) => drop(lines.write(&line)),
            None if self.quiet => {}
            None => drop(writeln!(io::stderr(), "{line}")),
        }
        Ok(())
    }
}
