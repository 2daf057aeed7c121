//! The command `sudare`: a person with two matrices on disk gets their product computed by
//! somebody who can read neither.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod error;
mod files;
mod key_file;
mod matrices;
mod progress;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sudare: {error}");
            ExitCode::from(error.code())
        }
    }
}
