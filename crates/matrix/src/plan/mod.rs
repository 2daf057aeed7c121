//! Plans: what is computed, by which method, under which parameters and keys.
//!
//! A [`Plan`] is made by a [`Planner`], travels as JSON, and is all that a client and a server
//! have to agree on. Everything in it that can be worked out is worked out again when it is
//! loaded; nothing in a file is believed.

pub(crate) mod circuit;
pub mod cost;
mod planner;
mod program;
mod summary;
mod table;

pub use circuit::CircuitSpec;
pub use cost::CostModel;
pub use planner::Planner;
pub use program::Program;
pub use summary::{Considered, KeyLine, OperandLine, Summary};

use crate::error::MatrixError;
use crate::expr::Expr;
use program::Engine;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::ckks::Params;
use sudare_he::ckks::{Expected, MAX_RELEASED_VALUES};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;

/// Version of plan files.
pub const PLAN_VERSION: u32 = 1;
/// Most bytes of a plan file.
pub const MAX_PLAN_BYTES: usize = 4 << 20;
/// Most independent sets of inputs in one run.
pub const MAX_BATCH: usize = 1 << 20;

/// Names a plan on everything that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanHash(pub [u8; 32]);

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PlanHash {
    fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// What is asked for: an expression, how exact, how secure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What is computed.
    pub expression: Expr,
    /// Independent sets of inputs that one run takes.
    pub batch: usize,
    /// Largest absolute error of a result element that is wanted.
    pub error: f64,
    /// Security.
    pub security: Security,
    /// Whether others will see results, and how many of them: then `error` is what released results
    /// are within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleasePolicy>,
}

impl Goal {
    /// One set of inputs at 128-bit security, with results for the owner's eyes.
    pub fn new(expression: Expr, error: f64) -> Self {
        Self { expression, batch: 1, error, security: Security::Bits128, release: None }
    }

    /// Values of a result, all members of a batch together.
    fn values(&self) -> usize {
        let (rows, cols) = self.expression.info(self.expression.output()).shape;
        rows.saturating_mul(cols).saturating_mul(self.batch)
    }

    /// How exactly results have to be computed: to within the wanted error, or so much better that
    /// they are within it once the noise of a release hides the difference.
    pub(crate) fn private_error(&self) -> f64 {
        self.release.map_or(self.error, |policy| policy.private_error(self.values(), self.error))
    }

    /// What is promised of results that are computed to within `error`.
    pub(crate) fn promised_error(&self, error: f64) -> f64 {
        self.release.map_or(error, |policy| policy.released_error(self.values(), error))
    }

    fn check(&self) -> Result<(), MatrixError> {
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return Err(MatrixError::NoPlan { reason: format!("a batch has 1 to {MAX_BATCH} members") });
        }
        if !(self.error.is_finite() && self.error > 0.0) {
            return Err(MatrixError::NoPlan {
                reason: format!("the wanted error is {}, and it has to be above zero", self.error),
            });
        }
        if self.release.is_some() && self.values() > MAX_RELEASED_VALUES {
            return Err(MatrixError::NoPlan {
                reason: format!(
                    "a release shows at most {MAX_RELEASED_VALUES} values, and the result has {}; release it in parts",
                    self.values()
                ),
            });
        }
        Ok(())
    }
}

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

/// A checked plan, ready to run. Cloning shares it.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

struct Inner {
    goal: Goal,
    program: Program,
    engine: Engine,
    hash: PlanHash,
    summary: Summary,
    considered: Vec<Considered>,
}

impl Plan {
    /// A plan by a chosen program, without an estimate of its time.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] or whatever the program's parts refuse.
    pub(crate) fn new(goal: Goal, program: Program) -> Result<Self, MatrixError> {
        goal.check()?;
        let engine = program.build(&goal)?;
        let summary = Summary::new(&goal, &engine);
        let hash = hash_of(&goal, &program, engine.params())?;
        Ok(Self(Arc::new(Inner { goal, program, engine, hash, summary, considered: Vec::new() })))
    }

    /// The same with what was found out beside it: for a plan that nobody shares yet.
    fn told(mut self, seconds: f64, considered: Vec<Considered>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.summary.seconds = seconds;
            inner.considered = considered;
        }
        self
    }

    /// The plan as JSON.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] if it cannot be written down.
    pub fn to_json(&self) -> Result<String, MatrixError> {
        let file = File {
            version: PLAN_VERSION,
            made_by: env!("CARGO_PKG_VERSION").into(),
            hash: self.hash().hex(),
            goal: self.0.goal.clone(),
            program: self.0.program.clone(),
            summary: self.0.summary.clone(),
            considered: self.0.considered.clone(),
        };
        let text = serde_json::to_string_pretty(&file);
        text.map_err(|e| MatrixError::PlanFile { reason: e.to_string() })
    }

    /// Reads a plan and works everything in it out again.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] for text that is no plan, one of another version, or one that
    /// was changed since it was made.
    pub fn from_json(text: &str) -> Result<Self, MatrixError> {
        let fail = |reason: String| MatrixError::PlanFile { reason };
        if text.len() > MAX_PLAN_BYTES {
            return Err(fail(format!("{} bytes are too many; a plan has at most {MAX_PLAN_BYTES}", text.len())));
        }
        /// What every version has.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let version = serde_json::from_str::<Version>(text).map_err(|e| fail(e.to_string()))?.version;
        if version != PLAN_VERSION {
            return Err(fail(format!("its version is {version} and this is for version {PLAN_VERSION}; plan again")));
        }
        let file: File = serde_json::from_str(text).map_err(|e| fail(e.to_string()))?;
        let plan = Self::new(file.goal, file.program).map_err(|e| fail(e.to_string()))?;
        if plan.hash().hex() != file.hash {
            return Err(fail("it was changed since it was made, or made by another version; plan again".into()));
        }
        // What carries no weight is taken as it stands, within reason.
        let seconds = if file.summary.seconds.is_finite() { file.summary.seconds.max(0.0) } else { 0.0 };
        Ok(plan.told(seconds, file.considered))
    }

    /// What is asked for.
    pub fn goal(&self) -> &Goal {
        &self.0.goal
    }

    /// What may be released of its results, if anything.
    pub fn release(&self) -> Option<ReleasePolicy> {
        self.0.goal.release
    }

    /// What the result is under encryption, worked out from the program and not read from a file.
    pub fn expected(&self) -> Expected {
        let (level, scale) = self.engine().result(self.goal());
        Expected { level, scale, error: self.engine().predicted_error(self.goal()) }
    }

    /// What is computed.
    pub fn expression(&self) -> &Expr {
        &self.0.goal.expression
    }

    /// Independent sets of inputs that one run takes.
    pub fn batch(&self) -> usize {
        self.0.goal.batch
    }

    /// How it is computed.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        self.0.engine.params()
    }

    /// Keys, sizes, time, memory and error.
    pub fn summary(&self) -> &Summary {
        &self.0.summary
    }

    /// What else was thought of.
    pub fn considered(&self) -> &[Considered] {
        &self.0.considered
    }

    /// The plan's name on everything that belongs to it.
    pub fn hash(&self) -> PlanHash {
        self.0.hash
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, {}, {:?})", self.hash(), self.expression(), self.params())
    }
}

fn hash_of(goal: &Goal, program: &Program, params: &Params) -> Result<PlanHash, MatrixError> {
    let bytes = serde_json::to_vec(&(goal, program)).map_err(|e| MatrixError::PlanFile { reason: e.to_string() })?;
    let mut hasher = blake3::Hasher::new_derive_key("sudare plan v1");
    hasher.update(&params.hash().0);
    hasher.update(&bytes);
    Ok(PlanHash(*hasher.finalize().as_bytes()))
}
