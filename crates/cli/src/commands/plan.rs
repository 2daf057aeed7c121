//! `sudare plan`.

use super::say;
use crate::args;
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output};
use std::io::Write;
use sudare_expr::{Expr, InputSpec};
use sudare_plan::{Goal, Plan, Sharing};
use sudare_ring::ErrorKind;
use sudare_rlwe::security::Security;
use sudare_session::machine;

/// Largest bound on integers here: doubles have them all up to it. An expression's file has any.
const MAX_EXACT_BOUND: f64 = 9_007_199_254_740_992.0;
/// Most bytes of an expression file.
const MAX_EXPRESSION_BYTES: u64 = 1 << 20;

pub fn plan(args: &args::Args, a: &args::Plan) -> Result<(), CliError> {
    let security = Security::from_bits(a.security)
        .ok_or_else(|| CliError::new(ErrorKind::Usage, format!("--security is 128, 192 or 256, not {}", a.security)))?;
    let goal = match a.table {
        Some((rows, cols)) => Goal::moments(rows, column_bounds(a, cols)?)?,
        None => {
            let expression = expression(a)?;
            let error = if expression.is_exact() { 0.0 } else { a.error };
            Goal::new(expression, error)
        }
    };
    let sharing = a.parties.zip(a.threshold).map(|(parties, threshold)| Sharing { parties, threshold });
    let goal = Goal { batch: a.batch, security, release: a.release, sharing, ..goal };
    let mut planner = machine::planner(files::cache_folder().as_deref());
    planner.threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    planner.method.clone_from(&a.method);
    planner.compact = a.compact;
    if let Some(memory) = a.memory {
        planner.memory = memory;
    }
    let plan = planner.plan(&goal)?;
    let mut out = Output::create(&a.output, Access::Usual)?;
    let text = plan.to_json()?;
    writeln!(out, "{text}").in_file(&a.output)?;
    let whole = out.finish()?;
    match a.json {
        true => say(args, json(&plan)?)?,
        false => say(args, &plan)?,
    }
    whole.put(args.existing())
}

/// What a plan is and costs, for programs.
pub fn json(plan: &Plan) -> Result<serde_json::Value, CliError> {
    let figures = serde_json::to_value(plan.summary())
        .map_err(|e| CliError::new(ErrorKind::Internal, format!("the plan's figures cannot be written: {e}")))?;
    Ok(serde_json::json!({
        "plan": plan.hash().to_string(),
        "expression": plan.expression().to_string(),
        "batch": plan.batch(),
        "exact": plan.is_exact(),
        "figures": figures,
    }))
}

/// The bound of each column of a table.
fn column_bounds(a: &args::Plan, cols: usize) -> Result<Vec<f64>, CliError> {
    match a.max_abs.as_slice() {
        [one] => Ok(vec![*one; cols]),
        each if each.len() == cols => Ok(each.to_vec()),
        each => {
            let message = format!("--max-abs has {} numbers; give one, or one for each of {cols} columns", each.len());
            Err(CliError::new(ErrorKind::Usage, message))
        }
    }
}

fn expression(a: &args::Plan) -> Result<Expr, CliError> {
    if let Some(path) = &a.expression {
        let bytes = files::read(path, MAX_EXPRESSION_BYTES)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            CliError::new(ErrorKind::Input, "this is not an expression, for it is not text; copy it again")
                .in_file(path)
        })?;
        return Expr::from_json(text).in_file(path);
    }
    let (Some(left), Some(right)) = (a.left, a.right) else {
        return Err(CliError::new(ErrorKind::Usage, "give --left and --right, or --expression"));
    };
    if a.max_abs.len() > 2 {
        return Err(CliError::new(
            ErrorKind::Usage,
            "--max-abs has more than two numbers; give one, or one for each of both matrices",
        ));
    }
    let bound = |i: usize| a.max_abs.get(i).or(a.max_abs.first()).copied().unwrap_or(1.0);
    if a.integers {
        let whole = |i: usize| match bound(i) {
            x if x.fract() == 0.0 && (1.0..=MAX_EXACT_BOUND).contains(&x) => Ok(x as u128),
            x => Err(CliError::new(
                ErrorKind::Usage,
                format!("--max-abs {x}: a bound on integers has to be an integer from 1 to 2^53"),
            )),
        };
        let input = |name: &str, shape, i| -> Result<InputSpec, CliError> {
            let plain = a.plain.as_deref() == Some(name);
            Ok(InputSpec { plain, ..InputSpec::integers(name, shape, whole(i)?) })
        };
        return Ok(Expr::product(input("left", left, 0)?, input("right", right, 1)?)?);
    }
    let input = |name: &str, shape, i| InputSpec {
        plain: a.plain.as_deref() == Some(name),
        ..InputSpec::new(name, shape, bound(i))
    };
    Ok(Expr::product(input("left", left, 0), input("right", right, 1))?)
}
