//! The command `sudare`: a person with two matrices on disk gets their product computed by
//! somebody who can read neither.
//!
//! A program has it by [`run`]: the binary of this crate, and the command that the Python package installs.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod csv_file;
mod error;
mod files;
mod gzip;
mod key_file;
mod matrices;
mod npy;
mod progress;
mod signals;

#[doc(hidden)]
pub use matrices::read_for_fuzzing;

use clap::Parser;
use error::CliError;
use std::ffi::OsString;
use sudare_ring::{ErrorKind, Family};

/// Runs the command with its words, the first of which is its own name; returns the exit code.
///
/// It listens to signals from here on, which end the process after its scratch files are removed.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let args = match args::Args::try_parse_from(words) {
        Ok(args) => args,
        Err(shown) => {
            // Help and versions are no errors, and nobody may read either.
            let _ = shown.print();
            return u8::try_from(shown.exit_code()).unwrap_or(ErrorKind::Usage.exit_code());
        }
    };
    signals::listen();
    match limit_kernels().and_then(|()| commands::run(&args)) {
        Ok(()) => 0,
        Err(error) => {
            error::tell(&error);
            error.code()
        }
    }
}

/// `SUDARE_KERNEL` names the best kernel family that may be used.
fn limit_kernels() -> Result<(), CliError> {
    let Some(name) = std::env::var_os("SUDARE_KERNEL") else { return Ok(()) };
    let limited = name.to_string_lossy().parse::<Family>().and_then(Family::limit);
    limited.map_err(|error| CliError::new(ErrorKind::Usage, format!("SUDARE_KERNEL: {error}")))
}
