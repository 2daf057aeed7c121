//! `sudare matmul` and `run`: what the server does, without any secret.

use super::client::store;
use super::{load_plan, model, stored};
use crate::error::{CliError, InFile};
use crate::progress::Bar;
use crate::{args, files, matrices};
use std::path::Path;
use sudare_methods::MatrixError;
use sudare_plan::Plan;
use sudare_ring::ErrorKind;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::Wire;
use sudare_session::ServerKeys;
use sudare_session::{Encrypted, Server};
use sudare_store::StoreError;

/// The server of a plan; with `memory`, its keys stay in their file.
fn load_server(plan: &Plan, keys: &Path, memory: Option<u64>, threads: usize) -> Result<Server, CliError> {
    if let Some(memory) = memory {
        let held = usize::try_from(memory).unwrap_or(usize::MAX);
        let opened = ServerKeys::open(plan, keys, held).map_err(|e| match e {
            // The one that names no file itself.
            e @ MatrixError::Store(StoreError::Wire(_)) => CliError::from(e).in_file(keys),
            e => e.into(),
        })?;
        return Ok(Server::new(plan, opened, threads)?);
    }
    let set = EvalKeys::read_from(plan.params(), files::open(keys)?).in_file(keys)?;
    Server::new(plan, set, threads).in_file(keys)
}

/// An operand: encrypted, or plain where the plan has it so.
fn operand(plan: &Plan, server: &Server, name: &str, path: &Path, csv: &args::Csv) -> Result<Encrypted, CliError> {
    match plan.expression().inputs().iter().find(|i| i.name == name) {
        Some(input) if input.plain && plan.is_exact() => {
            let matrices = matrices::integers(path, plan.batch(), (input.rows, input.cols), csv)?;
            server.plain_integers(name, &matrices).in_file(path)
        }
        Some(input) if input.plain => {
            let matrices = matrices::read(path, plan.batch(), (input.rows, input.cols), csv)?;
            server.plain(name, &matrices).in_file(path)
        }
        _ => Encrypted::read_from(plan, files::open(path)?).in_file(path),
    }
}

pub fn matmul(args: &args::Args, a: &args::Matmul) -> Result<(), CliError> {
    let plan = load_plan(&a.plan)?;
    let Some((left, right)) = plan.expression().as_product() else {
        let message = format!("the plan computes {}, not one product; use `sudare run`", plan.expression());
        return Err(CliError::new(ErrorKind::Usage, message).in_file(&a.plan));
    };
    if let Some(remote) = a.remote.connect()? {
        return super::remote::matmul(args, a, &plan, &remote, [left, right]);
    }
    let server = load_server(&plan, &a.keys, a.keys_memory, args.threads)?;
    if let Some(memory) = a.memory {
        return stored::matmul(args, a, (&plan, &server), memory);
    }
    let name = |i: usize| plan.expression().inputs()[i].name.as_str();
    let l = operand(&plan, &server, name(left), &a.left, &a.csv)?;
    let r = operand(&plan, &server, name(right), &a.right, &a.csv)?;
    if plan.expression().node_of_input(left) == r.node() && plan.expression().node_of_input(right) == l.node() {
        let message = format!("this is the {} matrix; give the {} one first", name(right), name(left));
        return Err(CliError::new(ErrorKind::Input, message).in_file(&a.left));
    }
    let bar = Bar::clock("multiplying", plan.summary().seconds, args.quiet);
    let product = server.matmul(&l, &r)?;
    drop(bar);
    store(args, &product, &a.output)
}

/// `NAME=FILE` for an input that the plan has, or a file alone.
pub fn named<'a>(plan: &Plan, text: &'a str) -> (&'a str, &'a Path) {
    match text.split_once('=') {
        Some((name, path)) if plan.expression().input(name).is_some() => (name, Path::new(path)),
        _ => ("", Path::new(text)),
    }
}

pub fn run(args: &args::Args, a: &args::Run) -> Result<(), CliError> {
    // A server's model has a name there, and no file here.
    if model::is_model(&a.plan)? || (a.remote.server.is_some() && !a.plan.exists()) {
        return model::run(args, a);
    }
    let plan = load_plan(&a.plan)?;
    if let Some(remote) = a.remote.connect()? {
        return super::remote::run(args, a, &plan, &remote);
    }
    let server = load_server(&plan, &a.keys, a.keys_memory, args.threads)?;
    let mut inputs = Vec::with_capacity(a.inputs.len());
    for text in &a.inputs {
        let (name, path) = named(&plan, text);
        inputs.push(operand(&plan, &server, name, path, &a.csv)?);
    }
    let bar = Bar::clock("computing", plan.summary().seconds, args.quiet);
    let value = server.run(&inputs)?;
    drop(bar);
    store(args, &value, &a.output)
}
