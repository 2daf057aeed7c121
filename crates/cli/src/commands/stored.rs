//! Matrices in stores: products larger than memory.

use super::{bytes, say};
use crate::args;
use crate::error::{CliError, InFile};
use crate::progress::Bar;
use std::path::Path;
use sudare_methods::MatrixError;
use sudare_plan::Plan;
use sudare_ring::ErrorKind;
use sudare_session::{Encrypted, Server};
use sudare_session::{OutOfCore, Stored};
use sudare_store::Existing;
pub use sudare_store::is_store;

/// Says what a store is.
pub fn told(args: &args::Args, stored: &Stored) -> Result<(), CliError> {
    say(args, format!("{}  {}  {stored}", stored.reader().path().display(), bytes(stored.bytes())))
}

/// Opens a store of a plan's value.
fn open(plan: &Plan, path: &Path) -> Result<Stored, CliError> {
    let stored = Stored::open(path)?;
    if stored.plan() != plan {
        let (what, found, expected) = ("the store", stored.plan().hash(), plan.hash());
        return Err(CliError::from(MatrixError::WrongPlan { what, found, expected }).in_file(path));
    }
    Ok(stored)
}

/// A stored value in memory.
pub fn load(plan: &Plan, path: &Path) -> Result<Encrypted, CliError> {
    open(plan, path)?.load().in_file(path)
}

/// `sudare matmul --memory`: tells what it will read, write and take, then does it.
pub fn matmul(
    args: &args::Args,
    a: &args::Matmul,
    (plan, server): (&Plan, &Server),
    memory: u64,
) -> Result<(), CliError> {
    if let Some(path) = [&a.left, &a.right].into_iter().find(|path| !is_store(path)) {
        let message = "--memory is for stores, and this is not one; make one by `sudare encrypt --store`";
        return Err(CliError::new(ErrorKind::Usage, message).in_file(path));
    }
    let (left, right) = (open(plan, &a.left)?, open(plan, &a.right)?);
    let existing = if a.resume { Existing::Resume } else { Existing::Refuse };
    let options = OutOfCore { memory, existing };
    say(args, server.schedule(&left, &right, &a.output, options)?)?;
    let bar = Bar::steps("multiplying", args.quiet);
    let done = server.matmul_stored(&left, &right, &a.output, options, &|done, all| bar.set(done, all))?;
    drop(bar);
    told(args, &done.product)
}
