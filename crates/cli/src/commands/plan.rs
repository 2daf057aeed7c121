//! `sudare plan`.

use super::say;
use crate::args;
use crate::error::{Class, CliError, InFile};
use crate::files::{self, Access, Output};
use std::io::Write;
use sudare_matrix::expr::InputSpec;
use sudare_matrix::{CostModel, Expr, Goal, Planner};
use sudare_rlwe::security::Security;

/// Most bytes of an expression file.
const MAX_EXPRESSION_BYTES: u64 = 1 << 20;

pub fn plan(args: &args::Args, a: &args::Plan) -> Result<(), CliError> {
    let expression = expression(a)?;
    let security =
        Security::from_bits(a.security).ok_or_else(|| CliError::new(Class::Usage, "--security is 128, 192 or 256"))?;
    let goal = Goal { batch: a.batch, security, release: a.release, ..Goal::new(expression, a.error) };
    let mut planner = Planner::new(CostModel::stored(files::cache_folder().as_deref()));
    planner.threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    planner.method.clone_from(&a.method);
    if let Some(memory) = a.memory {
        planner.memory = memory;
    }
    let plan = planner.plan(&goal)?;
    let mut out = Output::create(&a.output, Access::Usual)?;
    let text = plan.to_json()?;
    writeln!(out, "{text}").in_file(&a.output)?;
    let whole = out.finish()?;
    say(args, &plan)?;
    whole.put()
}

fn expression(a: &args::Plan) -> Result<Expr, CliError> {
    if let Some(path) = &a.expression {
        let bytes = files::read(path, MAX_EXPRESSION_BYTES)?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| CliError::new(Class::Data, "this is no expression: it is not text").in_file(path))?;
        return Expr::from_json(text).in_file(path);
    }
    let (Some(left), Some(right)) = (a.left, a.right) else {
        return Err(CliError::new(Class::Usage, "give --left and --right, or --expression"));
    };
    let bound = |i: usize| a.max_abs.get(i).or(a.max_abs.first()).copied().unwrap_or(1.0);
    let input = |name: &str, shape, i| InputSpec {
        plain: a.plain.as_deref() == Some(name),
        ..InputSpec::new(name, shape, bound(i))
    };
    Ok(Expr::product(input("left", left, 0), input("right", right, 1))?)
}
