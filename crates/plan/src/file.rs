//! Plans as files.

use super::{Considered, Goal, MAX_PLAN_BYTES, PLAN_VERSION, Plan, Program, Summary};
use super::{hash_of, planner, written};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sudare_exact::plan::EXACT;
use sudare_he::ckks::ParamsLiteral;
use sudare_methods::MatrixError;
use sudare_methods::claims::{check_claim, check_params, field};
use sudare_ring::error::told;
use sudare_rlwe::release::ReleasePolicy;

/// A plan as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct File {
    version: u32,
    made_by: String,
    hash: String,
    goal: Goal,
    program: Program,
    summary: Summary,
    considered: Vec<Considered>,
}

/// A table as it was specified before tables had plans: without a version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldTable {
    rows: usize,
    max_abs: Vec<f64>,
    params: ParamsLiteral,
    #[serde(default)]
    release: Option<ReleasePolicy>,
}

/// A plan's text with the hash of what it says, as whoever edits a file can write it; none where it has none. For tests
/// that reach the checks behind the hash.
#[doc(hidden)]
pub fn resealed_for_tests(text: &str) -> Option<String> {
    let mut text: Value = serde_json::from_str(text).ok()?;
    let goal: Goal = serde_json::from_value(text.get("goal")?.clone()).ok()?;
    let program: Program = serde_json::from_value(text.get("program")?.clone()).ok()?;
    let params = match &program {
        Program::Product { product } => product.params.build().ok()?.rlwe().clone(),
        Program::Circuit { circuit } => circuit.params.build().ok()?.rlwe().clone(),
        Program::Table { table } => table.params.build().ok()?.rlwe().clone(),
        Program::Exact { exact } => exact.params.build(EXACT).ok()?,
        Program::Arrays { arrays } => arrays.params.build(EXACT).ok()?,
    };
    text["hash"] = json!(hash_of(&params, &written(&goal, &program).ok()?).hex());
    Some(text.to_string())
}

fn fail(reason: impl ToString) -> MatrixError {
    MatrixError::PlanFile { reason: told(reason) }
}

impl OldTable {
    fn plan(self) -> Result<Plan, MatrixError> {
        let goal =
            Goal { security: self.params.security, release: self.release, ..Goal::moments(self.rows, self.max_abs)? };
        check_claim("params.security", goal.security)?;
        let program = Program::of_moments(&goal);
        check_params(&self.params, program.literal())?;
        Plan::new(goal, program)
    }
}

impl Plan {
    /// The plan as JSON.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] if it cannot be written down.
    pub fn to_json(&self) -> Result<String, MatrixError> {
        let file = File {
            version: PLAN_VERSION,
            made_by: env!("CARGO_PKG_VERSION").into(),
            hash: self.hash().hex(),
            goal: self.goal().clone(),
            program: self.program().clone(),
            summary: self.summary().clone(),
            considered: self.considered().to_vec(),
        };
        serde_json::to_string_pretty(&file).map_err(fail)
    }

    /// Reads a plan and works everything in it out again: what is shown of it afterwards is what its
    /// parameters have, not what the text says.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] for text that is no plan, one of another version, or one that
    /// was changed since it was made; [`MatrixError::PlanField`] for a field that does not go with
    /// the goal, with its name.
    pub fn from_json(text: &str) -> Result<Self, MatrixError> {
        if text.len() > MAX_PLAN_BYTES {
            return Err(fail(format!(
                "it has {} bytes, and a plan has at most {MAX_PLAN_BYTES}; check that it is a plan",
                text.len()
            )));
        }
        /// What every version has.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        if let Ok(table) = serde_json::from_str::<OldTable>(text) {
            return table.plan();
        }
        let version = serde_json::from_str::<Version>(text).map_err(fail)?.version;
        if version != PLAN_VERSION {
            return Err(fail(format!(
                "its version is {version}, and this release reads version {PLAN_VERSION}; plan again"
            )));
        }
        let file: File = serde_json::from_str(text).map_err(fail)?;
        check_claim("goal.security", file.goal.security)?;
        let plan = Self::new(file.goal, file.program).map_err(|e| match e {
            MatrixError::PlanField { .. } => e,
            other => fail(other),
        })?;
        if plan.hash().hex() != file.hash {
            return Err(fail("it was changed since it was made, or made by another release; plan again"));
        }
        // What carries no weight is taken as it stands, within reason.
        let seconds = if file.summary.seconds.is_finite() { file.summary.seconds.max(0.0) } else { 0.0 };
        if !file.considered.iter().all(Considered::plausible) || file.considered.len() > planner::MAX_CONSIDERED {
            return Err(field("considered", "not a list of methods and prices", "one that a planner wrote"));
        }
        Ok(plan.with_estimates(seconds, file.considered))
    }
}
