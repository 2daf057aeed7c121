//! Plans: what is computed, by which method, under which parameters and keys.
//!
//! A [`Plan`] is made by a [`Planner`], travels as JSON, and is all that a client and a server
//! have to agree on, whatever it computes: products and circuits of real matrices, exact products of integers,
//! statistics of tables. Everything in it that can be worked out is worked out again when it is
//! loaded; nothing in a file is believed.
//!
//! ```
//! use sudare_expr::{Expr, InputSpec};
//! use sudare_plan::{CostModel, Goal, Plan, Planner};
//!
//! # fn main() -> Result<(), sudare_methods::MatrixError> {
//! // The product of a 16×16 and a 16×4 matrix, elements up to one, to within 1e-4.
//! let product = Expr::product(InputSpec::new("A", (16, 16), 1.0), InputSpec::new("B", (16, 4), 1.0))?;
//! let plan = Planner::new(CostModel::default()).plan(&Goal::new(product, 1e-4))?;
//! let summary = plan.summary();
//! assert!(summary.predicted_error <= 1e-4 && summary.security_bits >= 128);
//!
//! // The other side reads it, and works every figure out again.
//! let text = plan.to_json()?;
//! assert_eq!(Plan::from_json(&text)?.hash(), plan.hash());
//! // A figure that somebody changed is refused.
//! assert!(Plan::from_json(&text.replace("0.0001", "0.001")).is_err());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod circuit;
pub mod cost;
mod exact;
mod file;
mod goal;
mod place;
mod planner;
mod product;
mod program;
mod refresh;
mod shared;
mod shown;
mod statistics;
mod summary;

pub use circuit::CircuitSpec;
pub use cost::CostModel;
#[doc(hidden)]
pub use file::resealed_for_tests;
pub use goal::{Goal, Sharing};
pub use place::{Place, Sought};
pub use planner::Planner;
pub use product::ProductEngine;
pub use program::Program;
pub use program::{CkksEngine, Engine, NodeSize, ProgramFigures, ProgramOn, Refreshes};
pub use refresh::{RefreshSpec, RefreshWork};
pub use shared::Opening;
pub use shown::{OperationLine, number};
pub use statistics::TableSpec;
pub use summary::{Considered, KeyLine, OperandLine, Summary};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use sudare_expr::{Expr, Matrix};
use sudare_he::ckks::Expected;
use sudare_methods::MatrixError;
use sudare_methods::claims::field;
use sudare_methods::error::PlanHash;
use sudare_methods::exact::IntegerEngine;
use sudare_ring::memo::PerProcess;
use sudare_rlwe::Params;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::MAX_BUNDLE;

/// Version of plan files.
pub const PLAN_VERSION: u32 = 3;
/// Most bytes of a plan file.
pub const MAX_PLAN_BYTES: usize = 4 << 20;

/// A checked plan, ready to run. Cloning shares it.
#[derive(Clone)]
pub struct Plan(Arc<Planned>);

/// A plan with what was found out beside it.
struct Planned {
    built: Arc<Built>,
    summary: Summary,
    considered: Vec<Considered>,
}

/// A goal and its program under built parameters.
struct Built {
    goal: Goal,
    program: Program,
    engine: Engine,
    hash: PlanHash,
    summary: Summary,
}

impl Built {
    fn new(goal: Goal, program: Program, written: &[u8]) -> Result<Self, MatrixError> {
        goal.check()?;
        check_secret(&goal, program.literal())?;
        let engine = program.build(&goal)?;
        check_promise(&goal, engine.figures())?;
        let summary = Summary::new(&goal, &engine);
        let hash = hash_of(engine.params(), written);
        Ok(Self { goal, program, engine, hash, summary })
    }

    /// What the process has built of this goal and program already, or something new.
    fn shared(goal: Goal, program: Program) -> Result<Arc<Self>, MatrixError> {
        static BUILT: PerProcess<Mutex<BTreeMap<[u8; 32], Weak<Built>>>> = PerProcess::new();
        let known = || BUILT.get().lock().unwrap_or_else(PoisonError::into_inner);
        let written = written(&goal, &program)?;
        let key = *blake3::hash(&written).as_bytes();
        if let Some(found) = known().get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        let made = Arc::new(Self::new(goal, program, &written)?);
        let mut known = known();
        known.retain(|_, built| built.strong_count() > 0);
        known.insert(key, Arc::downgrade(&made));
        Ok(made)
    }
}

impl Plan {
    /// A plan by a chosen program, without an estimate of its time. Plans of one goal and program share what is
    /// built for them.
    ///
    /// # Errors
    /// [`MatrixError::PlanField`] for a program that does not keep what the goal asks for, or
    /// whatever its parts refuse.
    pub(crate) fn new(goal: Goal, program: Program) -> Result<Self, MatrixError> {
        let built = Built::shared(goal, program)?;
        Ok(Self(Arc::new(Planned { summary: built.summary.clone(), considered: Vec::new(), built })))
    }

    /// The same with what was found out beside it.
    fn with_estimates(self, seconds: f64, considered: Vec<Considered>) -> Self {
        let built = self.0.built.clone();
        Self(Arc::new(Planned { summary: Summary { seconds, ..built.summary.clone() }, considered, built }))
    }

    /// What is asked for.
    pub fn goal(&self) -> &Goal {
        &self.0.built.goal
    }

    /// What may be released of its results, if anything.
    pub fn release(&self) -> Option<ReleasePolicy> {
        self.goal().release
    }

    /// Whether it computes with integers, exactly.
    pub fn is_exact(&self) -> bool {
        self.expression().is_exact()
    }

    /// The largest absolute value that an element of the result can have, if it computes with integers.
    pub fn largest_integer(&self) -> Option<i128> {
        self.engine().integers().map(IntegerEngine::largest)
    }

    /// What the result is under encryption, worked out from the program and not read from a file.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for integers, whose results have no error.
    pub fn expected(&self) -> Result<Expected, MatrixError> {
        Ok(self.real()?.expected())
    }

    /// What computes with integers.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a plan of real numbers.
    pub fn exact(&self) -> Result<&dyn IntegerEngine, MatrixError> {
        self.engine().integers().ok_or_else(|| MatrixError::NotPlanned {
            operation: "a computation with integers",
            planned: "the plan computes with real numbers; plan with inputs of integers (dtype=int)".into(),
        })
    }

    /// Whether it is computed without any key: integers that are multiplied once.
    pub fn is_keyless(&self) -> bool {
        matches!(self.engine(), Engine::Exact(_))
    }

    /// What computes with real matrices.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a plan of integers.
    pub fn real(&self) -> Result<&dyn CkksEngine, MatrixError> {
        match self.engine() {
            Engine::Ckks(engine) => Ok(&**engine),
            Engine::Exact(_) | Engine::Arrays(_) => Err(MatrixError::NotPlanned {
                operation: "a computation with real numbers",
                planned: "the plan computes exactly with integers; plan with inputs of real numbers (dtype=float)"
                    .into(),
            }),
        }
    }

    /// Bounds on the errors of the result's elements, a matrix of the result's shape in its units: for the owner's eyes, or as
    /// they are `released`.
    ///
    /// # Errors
    /// None for a plan that exists.
    pub fn errors(&self, released: bool) -> Result<Matrix, MatrixError> {
        let (expr, figures) = (self.expression(), self.engine().figures());
        let (rows, cols) = expr.info(expr.output()).shape;
        Ok(Matrix::from_fn(rows, cols, |row, col| {
            let (error, unit) = figures.element_error((row, col));
            unit * if released { self.goal().promised_error(error) } else { error }
        })?)
    }

    /// What is computed.
    pub fn expression(&self) -> &Expr {
        &self.goal().expression
    }

    /// Independent sets of inputs that one run takes.
    pub fn batch(&self) -> usize {
        self.goal().batch
    }

    /// How it is computed.
    pub fn program(&self) -> &Program {
        &self.0.built.program
    }

    /// The parameters that keys belong to.
    pub fn params(&self) -> &Params {
        self.engine().params()
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
        self.0.built.hash
    }

    /// The program under built parameters.
    pub fn engine(&self) -> &Engine {
        &self.0.built.engine
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

/// Refuses a secret or a claim that a planner does not make for the goal.
fn check_secret(goal: &Goal, literal: &ParamsLiteral) -> Result<(), MatrixError> {
    if literal.security < goal.security {
        let bits = |s: Security| format!("{} bits", s.bits());
        return Err(field("program.params.security", bits(literal.security), bits(goal.security)));
    }
    if literal.secret != goal.secret() {
        return Err(field("program.params.secret", format!("{:?}", literal.secret), format!("{:?}", goal.secret())));
    }
    Ok(())
}

/// The refusal of a modulus that does not hold what a program computes.
fn too_small(literal: &ParamsLiteral) -> MatrixError {
    let expected = "primes that hold the values, declared bounds and scale together";
    field("program.params.q_bits", format!("{:?} bits", literal.q_bits), expected)
}

/// Refuses a program whose modulus does not hold what it computes or whose error is over the wanted
/// one, or that nobody could send.
fn check_promise(goal: &Goal, figures: &dyn ProgramFigures) -> Result<(), MatrixError> {
    let error = goal.promised_error(figures.error());
    if error.is_nan() || error > goal.error {
        let expected = format!("{:.1e} or more: what the program promises", error);
        return Err(field("goal.error", format!("{:.1e}", goal.error), expected));
    }
    let most = figures.most_ciphertexts(goal);
    if most > MAX_BUNDLE {
        return Err(field("program", format!("{most} ciphertexts of a matrix"), format!("at most {MAX_BUNDLE}")));
    }
    Ok(())
}

/// A goal and a program as they are hashed.
fn written(goal: &Goal, program: &Program) -> Result<Vec<u8>, MatrixError> {
    serde_json::to_vec(&(goal, program)).map_err(|e| MatrixError::PlanFile { reason: e.to_string() })
}

fn hash_of(params: &Params, written: &[u8]) -> PlanHash {
    let mut hasher = blake3::Hasher::new_derive_key("sudare plan v1");
    hasher.update(&params.hash().0);
    hasher.update(written);
    PlanHash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests;
