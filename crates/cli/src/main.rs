//! The command `sudare`: a person with two matrices on disk gets their product computed by
//! somebody who can read neither.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod csv_file;
mod error;
mod files;
mod key_file;
mod matrices;
mod npy;
mod progress;
mod signals;

use clap::Parser;
use error::{Class, CliError};
use std::process::ExitCode;
use sudare_ring::Family;

fn main() -> ExitCode {
    let args = args::Args::parse();
    signals::listen();
    match limit_kernels().and_then(|()| commands::run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error::tell(&error);
            ExitCode::from(error.code())
        }
    }
}

/// `SUDARE_KERNEL` names the best kernel family that may be used.
fn limit_kernels() -> Result<(), CliError> {
    let Some(name) = std::env::var_os("SUDARE_KERNEL") else { return Ok(()) };
    let limited = name.to_string_lossy().parse::<Family>().and_then(Family::limit);
    limited.map_err(|error| CliError::new(Class::Usage, format!("SUDARE_KERNEL: {error}")))
}
