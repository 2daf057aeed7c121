//! The commands.

mod bits;
pub mod bits_args;
mod calibrate;
mod client;
mod genome;
pub mod genome_args;
mod index;
pub mod index_args;
mod info;
mod logs;
mod man;
pub mod model;
mod party;
pub mod party_args;
mod plan;
mod remote;
mod serve;
pub mod serve_args;
mod server;
mod stored;
mod token;

use crate::args::{Args, Command};
use crate::error::{CliError, InFile};
use crate::files::{self, Existing};
use clap::CommandFactory;
use std::io::Write;
use std::path::Path;
use sudare_plan::Plan;
use sudare_ring::ErrorKind;

pub fn run(args: &Args) -> Result<(), CliError> {
    let (inputs, outputs) = args.command.files();
    files::check_distinct(&inputs, &outputs)?;
    if args.existing() == Existing::Kept {
        files::check_free(&outputs)?;
    }
    match &args.command {
        Command::Plan(a) => plan::plan(args, a),
        Command::Compile(a) => model::compile(args, a),
        Command::Keygen(a) => client::keygen(args, a),
        Command::Encrypt(a) => client::encrypt(args, a),
        Command::Matmul(a) => server::matmul(args, a),
        Command::Run(a) => server::run(args, a),
        Command::Decrypt(a) => client::decrypt(args, a),
        Command::Info(a) => info::info(a),
        Command::Bits(a) => bits::run(args, a),
        Command::Completion(a) => completion(a),
        Command::Man(a) => man::man(args, a),
        Command::Calibrate(a) => calibrate::calibrate(args, a),
        Command::Genome(a) => genome::run(args, a),
        Command::Index(a) => index::run(args, a),
        Command::Party(a) => party::run(args, a),
        Command::Serve(a) => serve::serve(args, a),
        Command::Token(a) => token::run(a),
        Command::Health(a) => serve::health(a),
    }
}

/// The longest text of a plan, which a forest has; each kind has a limit of its own.
const MAX_PLAN_TEXT: u64 = 64 << 20;

/// A plan of either kind.
enum AnyPlan {
    /// Of matrices.
    Matrices(Plan),
    /// Of a compiled model.
    Model(model::ModelPlan),
}

/// Reads a plan.
fn load_plan(path: &Path) -> Result<Plan, CliError> {
    match any_plan(path)? {
        AnyPlan::Matrices(plan) => Ok(plan),
        AnyPlan::Model(_) => Err(CliError::new(
            ErrorKind::Usage,
            "this is the plan of a model: keygen, encrypt and decrypt take it, and `sudare run` its model.bin",
        )
        .in_file(path)),
    }
}

fn any_plan(path: &Path) -> Result<AnyPlan, CliError> {
    let bytes = files::read(path, MAX_PLAN_TEXT)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        CliError::new(ErrorKind::Format, "this is not a plan, for it is not text; copy it again").in_file(path)
    })?;
    match model::plan_of(text) {
        Some(plan) => Ok(AnyPlan::Model(plan.in_file(path)?)),
        None => Ok(AnyPlan::Matrices(Plan::from_json(text).in_file(path)?)),
    }
}

/// Bytes for people.
fn bytes(b: u64) -> String {
    match b as f64 {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

/// Lines for a person, unless none are wanted. They come before an output takes its place, so that
/// a command that fails to say what it did has done nothing.
fn say(args: &Args, lines: impl std::fmt::Display) -> Result<(), CliError> {
    if args.quiet {
        Ok(())
    } else if args.command.files().1.iter().any(|path| files::is_standard(path)) {
        // The output itself goes to standard output.
        let _ = writeln!(std::io::stderr(), "{lines}");
        Ok(())
    } else {
        print(lines)
    }
}

/// `sudare completion`.
fn completion(a: &crate::args::Completion) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Args::command(), "sudare", &mut script);
    print(String::from_utf8_lossy(&script))
}

/// Lines on standard output, at once: a reader that takes only the first gets them all.
fn print(lines: impl std::fmt::Display) -> Result<(), CliError> {
    let text = format!("{lines}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        CliError::new(
            ErrorKind::Io,
            format!("standard output cannot be written: {error}; use --quiet where nobody reads it"),
        )
    })
}
