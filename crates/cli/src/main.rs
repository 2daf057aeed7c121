//! The command `sudare` as a program of its own.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(sudare_cli::run(std::env::args_os()))
}
