//! `--server` of `sudare matmul`, `run` and `index`: the same work, done by somebody else's `sudare serve`.

use super::server::named;
use super::{bytes, say};
use crate::error::{CliError, InFile, tell};
use crate::files::{self, Access, Output};
use crate::progress::Bar;
use crate::{args, matrices};
use std::io::{Cursor, Write};
use std::path::Path;
use sudare_plan::Plan;
use sudare_ring::{ErrorKind, Kinded};
use sudare_serve::{Digest, Operand, Remote, Request};
use sudare_session::Encrypted;

/// Sends a file, unless the server has it.
pub fn send(remote: &Remote, path: &Path) -> Result<Digest, CliError> {
    remote.send(&mut files::open_unbuffered(path)?).in_file(path)
}

/// Sends an operand: an encrypted one as it is, one that the plan has plain as doubles or integers.
fn operand(remote: &Remote, plan: &Plan, (name, path): (&str, &Path), csv: &args::Csv) -> Result<Operand, CliError> {
    match plan.expression().inputs().iter().find(|i| i.name == name) {
        Some(input) if input.plain => {
            let (batch, shape) = (plan.batch(), (input.rows, input.cols));
            let elements: Vec<u8> = match plan.is_exact() {
                true => {
                    let all = matrices::integers(path, batch, shape, csv)?;
                    all.iter().flat_map(|m| m.data()).flat_map(|element| element.to_le_bytes()).collect()
                }
                false => {
                    let all = matrices::read(path, batch, shape, csv)?;
                    all.iter().flat_map(|m| m.data()).flat_map(|element| element.to_le_bytes()).collect()
                }
            };
            let object = remote.send(&mut Cursor::new(elements)).in_file(path)?;
            Ok(Operand { object, plain: Some(name.to_owned()) })
        }
        // What is no value of this plan is refused here, before it is sent.
        _ => {
            Encrypted::read_from(plan, files::open(path)?).in_file(path)?;
            Ok(Operand::encrypted(send(remote, path)?))
        }
    }
}

pub fn matmul(
    args: &args::Args,
    a: &args::Matmul,
    plan: &Plan,
    remote: &Remote,
    inputs: [usize; 2],
) -> Result<(), CliError> {
    let [left, right] = inputs.map(|i| plan.expression().inputs()[i].name.as_str());
    let operands =
        vec![operand(remote, plan, (left, &a.left), &a.csv)?, operand(remote, plan, (right, &a.right), &a.csv)?];
    compute(args, plan, remote, (&a.plan, &a.keys, &a.output), operands)
}

pub fn run(args: &args::Args, a: &args::Run, plan: &Plan, remote: &Remote) -> Result<(), CliError> {
    let operands = a.inputs.iter().map(|text| operand(remote, plan, named(plan, text), &a.csv));
    let operands = operands.collect::<Result<Vec<_>, _>>()?;
    compute(args, plan, remote, (&a.plan, &a.keys, &a.output), operands)
}

fn compute(
    args: &args::Args,
    plan: &Plan,
    remote: &Remote,
    (plan_path, keys, output): (&Path, &Path, &Path),
    operands: Vec<Operand>,
) -> Result<(), CliError> {
    let mut out = Output::create(output, Access::Usual)?;
    let (plan_name, keys) = (send(remote, plan_path)?, send(remote, keys)?);
    let request = Request::Compute { plan: plan_name, keys: Some(keys), operation: None, operands };
    let job = result(args, remote, &request, &mut out)?;
    let whole = out.finish()?;
    let value = Encrypted::read_from(plan, files::open(whole.scratch())?)?;
    say(args, format!("{}  {}  {value}", output.display(), bytes(whole.size())))?;
    whole.put(args.existing())?;
    forget(remote, job);
    Ok(())
}

/// Asks for a job, waits, and writes its result; gives the names of both.
pub fn result(
    args: &args::Args,
    remote: &Remote,
    request: &Request,
    out: &mut impl Write,
) -> Result<(String, Digest), CliError> {
    let bar = Bar::steps("computing at the server", args.quiet);
    let job = remote.submit(request, None)?;
    let (result, _) = remote.wait(&job.id, &|done, steps| bar.set(done as usize, steps as usize))?;
    drop(bar);
    remote.fetch(result, out)?;
    Ok((job.id, result))
}

/// Keys and values stay for the next time. The result is here, so that a removal that fails is a warning.
pub fn forget(remote: &Remote, (job, result): (String, Digest)) {
    for removed in [remote.delete_job(&job), remote.delete_object(result)] {
        if let Err(error) = removed
            && error.kind() != ErrorKind::NotFound
        {
            tell(format!("the server keeps what it computed: {error}"));
        }
    }
}
