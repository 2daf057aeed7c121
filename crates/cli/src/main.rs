//! The command `sudare`: a person with two matrices on disk gets their product computed by
//! somebody who can read neither.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod error;
mod files;
mod matrices;
mod progress;
mod signals;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    signals::listen();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error::tell(&error);
            ExitCode::from(error.code())
        }
    }
}
