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
pub(crate) use planner::bytes;
pub use program::Program;
pub use summary::{Considered, KeyLine, OperandLine, Summary};
pub(crate) use table::number;

use crate::error::MatrixError;
use crate::expr::Expr;
use program::Engine;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::ckks::{Expected, MAX_RELEASED_VALUES, ReleasePolicy};
use sudare_he::params::{Params, ParamsLiteral};
use sudare_he::security::{SecretDistribution, Security};
use sudare_he::wire::MAX_BUNDLE;

/// Version of plan files.
pub const PLAN_VERSION: u32 = 2;
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

    /// Nodes of the inputs and of the result.
    pub(crate) fn ends(&self) -> impl Iterator<Item = usize> {
        let expr = &self.expression;
        (0..expr.inputs().len()).map(|i| expr.node_of_input(i)).chain([expr.output()])
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
    /// [`MatrixError::PlanField`] for a program that does not keep what the goal asks for, or
    /// whatever its parts refuse.
    pub(crate) fn new(goal: Goal, program: Program) -> Result<Self, MatrixError> {
        goal.check()?;
        check_secret(&goal, program.literal())?;
        let engine = program.build(&goal)?;
        check_promise(&goal, &engine)?;
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

    /// Reads a plan and works everything in it out again: what is shown of it afterwards is what its
    /// parameters have, not what the text says.
    ///
    /// # Errors
    /// [`MatrixError::PlanFile`] for text that is no plan, one of another version, or one that
    /// was changed since it was made; [`MatrixError::PlanField`] for a field that does not go with
    /// the goal, with its name.
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
        check_claim("goal.security", file.goal.security)?;
        let plan = Self::new(file.goal, file.program).map_err(|e| match e {
            MatrixError::PlanField { .. } => e,
            other => fail(other.to_string()),
        })?;
        if plan.hash().hex() != file.hash {
            return Err(fail("it was changed since it was made, or made by another version; plan again".into()));
        }
        // What carries no weight is taken as it stands, within reason.
        let seconds = if file.summary.seconds.is_finite() { file.summary.seconds.max(0.0) } else { 0.0 };
        if !file.considered.iter().all(Considered::plausible) || file.considered.len() > planner::MAX_CONSIDERED {
            return Err(field("considered", "no list of methods and prices", "one that a planner wrote"));
        }
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
        let (level, scale) = self.engine().result();
        Expected { level, scale, error: self.engine().sketch().error() }
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

/// The refusal of a field of a plan.
pub(crate) fn field(field: &'static str, found: impl ToString, expected: impl ToString) -> MatrixError {
    MatrixError::PlanField { field, found: found.to_string(), expected: expected.to_string() }
}

/// Refuses a file without security: whoever wants none says so in code.
pub(crate) fn check_claim(name: &'static str, claimed: Security) -> Result<(), MatrixError> {
    match claimed {
        Security::Insecure => Err(field(name, "none", "128, 192 or 256 bits")),
        _ => Ok(()),
    }
}

/// Refuses parameters of a file that differ from those that are worked out, by the first field that
/// does, and those without security.
pub(crate) fn check_params(found: &ParamsLiteral, expected: &ParamsLiteral) -> Result<(), MatrixError> {
    let bits = |s: Security| format!("{} bits", s.bits());
    let fields = [
        ("params.security", bits(found.security), bits(expected.security)),
        ("params.secret", format!("{:?}", found.secret), format!("{:?}", expected.secret)),
        ("params.log_n", found.log_n.to_string(), expected.log_n.to_string()),
        ("params.q_bits", format!("{:?}", found.q_bits), format!("{:?}", expected.q_bits)),
        ("params.p_bits", format!("{:?}", found.p_bits), format!("{:?}", expected.p_bits)),
        ("params.digit_limbs", found.digit_limbs.to_string(), expected.digit_limbs.to_string()),
        ("params.log_scale", found.log_scale.to_string(), expected.log_scale.to_string()),
    ];
    match fields.into_iter().find(|(_, found, expected)| found != expected) {
        Some((name, found, expected)) => Err(field(name, found, expected)),
        None => check_claim("params.security", found.security),
    }
}

/// Refuses a secret or a claim that a planner does not make for the goal.
fn check_secret(goal: &Goal, literal: &ParamsLiteral) -> Result<(), MatrixError> {
    if literal.security < goal.security {
        let bits = |s: Security| format!("{} bits", s.bits());
        return Err(field("program.params.security", bits(literal.security), bits(goal.security)));
    }
    if literal.secret != SecretDistribution::Ternary {
        return Err(field("program.params.secret", format!("{:?}", literal.secret), "Ternary"));
    }
    Ok(())
}

/// Refuses a program whose modulus does not hold what it computes or whose error is over the wanted
/// one, or that nobody could send.
fn check_promise(goal: &Goal, engine: &Engine) -> Result<(), MatrixError> {
    let sketch = engine.sketch();
    if !sketch.holds() {
        let found = format!("{:?} bits", sketch.literal().q_bits);
        let expected = "primes that hold the values, declared bounds and scale together";
        return Err(field("program.params.q_bits", found, expected));
    }
    let error = goal.promised_error(sketch.error());
    if error.is_nan() || error > goal.error {
        let expected = format!("{:.1e} or more: what the program promises", error);
        return Err(field("goal.error", format!("{:.1e}", goal.error), expected));
    }
    let most = sketch.most_ciphertexts(goal);
    if most > MAX_BUNDLE {
        return Err(field("program", format!("{most} ciphertexts of a matrix"), format!("at most {MAX_BUNDLE}")));
    }
    Ok(())
}

fn hash_of(goal: &Goal, program: &Program, params: &Params) -> Result<PlanHash, MatrixError> {
    let bytes = serde_json::to_vec(&(goal, program)).map_err(|e| MatrixError::PlanFile { reason: e.to_string() })?;
    let mut hasher = blake3::Hasher::new_derive_key("sudare plan v1");
    hasher.update(&params.hash().0);
    hasher.update(&bytes);
    Ok(PlanHash(*hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{InputSpec, Op};
    use serde_json::{Value, json};

    fn planner() -> Planner {
        Planner { memory: 4 << 30, ..Planner::new(CostModel::default()) }
    }

    fn product(method: &str, error: f64) -> Plan {
        let input = |name, shape| InputSpec::new(name, shape, 2.0);
        let expr = Expr::product(input("A", (6, 10)), input("B", (10, 5))).unwrap();
        Planner { method: Some(method.into()), ..planner() }.plan(&Goal::new(expr, error)).unwrap()
    }

    fn circuit() -> Plan {
        let nodes = vec![Op::Input { input: 0 }, Op::Mul { left: 0, right: 0 }, Op::Sum { of: 1, axis: 0 }];
        let expr = Expr::new(vec![InputSpec::new("A", (5, 7), 2.0)], nodes, 2).unwrap();
        planner().plan(&Goal::new(expr, 1e-4)).unwrap()
    }

    /// A plan's text with one value in another's place, and the hash of what it then says, as whoever
    /// edits a file can write it.
    fn edited(plan: &Plan, pointer: &str, value: &Value) -> String {
        let mut text: Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
        *text.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        let parts = (serde_json::from_value(text["goal"].clone()), serde_json::from_value(text["program"].clone()));
        if let (Ok(goal), Ok(program)) = parts {
            let program: Program = program;
            if let Ok(params) = program.literal().build() {
                text["hash"] = json!(hash_of(&goal, &program, &params).unwrap().hex());
            }
        }
        text.to_string()
    }

    /// What is refused with this field's name, or, named "", refused by what the parameters or the
    /// text themselves have to be.
    fn refused(plan: &Plan, edits: &[(&str, Value, &str)]) {
        for (pointer, value, named) in edits {
            let told = Plan::from_json(&edited(plan, pointer, value)).expect_err(pointer);
            let field = matches!(&told, MatrixError::PlanField { field, .. } if field == named);
            let other = matches!(told, MatrixError::PlanFile { .. });
            assert!(if named.is_empty() { other } else { field }, "{pointer} = {value}: {told}");
        }
    }

    /// Every field that security, noise, scale or bounds hang on.
    fn edits_of_parameters(program: &str) -> Vec<(String, Value, &'static str)> {
        let at = |name: &str| format!("/program/{program}/params/{name}");
        vec![
            (at("security"), json!("Insecure"), "program.params.security"),
            (at("security"), json!("Bits256"), ""),
            (at("secret"), json!({"FixedWeight": {"weight": 1}}), "program.params.secret"),
            (at("secret"), json!("Gaussian"), "program.params.secret"),
            (at("log_n"), json!(9), ""),
            (at("log_n"), json!(70), ""),
            (at("q_bits"), json!([]), ""),
            (at("q_bits"), json!([60, 60, 60, 60, 60, 60, 60, 60, 60]), ""),
            (at("log_scale"), json!(0), ""),
            (at("digit_limbs"), json!(0), ""),
        ]
    }

    #[test]
    fn a_file_lowers_nothing() {
        for method in ["spread3d", "coefficient", "module", "improved3d", "jiang-bsgs"] {
            let plan = product(method, 1e-4);
            assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
            let own = edits_of_parameters("product");
            refused(&plan, &own.iter().map(|(p, v, n)| (p.as_str(), v.clone(), *n)).collect::<Vec<_>>());
            refused(
                &plan,
                &[
                    ("/goal/error", json!(1e-30), "goal.error"),
                    ("/goal/error", json!(0.0), ""),
                    ("/goal/security", json!("Insecure"), "goal.security"),
                    ("/goal/security", json!("Bits256"), "program.params.security"),
                    ("/goal/batch", json!(0), ""),
                    ("/goal/batch", json!(3), ""),
                    ("/goal/expression/inputs/0/rows", json!(7), ""),
                    ("/goal/expression/inputs/0/max_abs", json!(-1.0), ""),
                    ("/program/product/shape/m", json!(0), ""),
                    ("/program/product/shape/k", json!(1u64 << 40), ""),
                    ("/program/product/params/log_scale", json!(12), "goal.error"),
                    ("/version", json!(1), ""),
                    ("/considered/0/verdict", json!("\u{1b}[2J"), "considered"),
                    ("/considered/0/method", json!("x".repeat(1000)), "considered"),
                    ("/considered/0/seconds", json!(-1.0), "considered"),
                    ("/considered/0/log_n", json!(200), "considered"),
                ],
            );
            let text = plan.to_json().unwrap().replace(&plan.hash().hex(), "00");
            assert!(matches!(Plan::from_json(&text), Err(MatrixError::PlanFile { .. })));
            // Larger values than the modulus holds.
            let bound = edited(&plan, "/goal/expression/inputs/0/max_abs", &json!(1e15));
            assert!(matches!(Plan::from_json(&bound), Err(MatrixError::PlanField { .. })), "{method}");
            let prime = edited(&plan, "/program/product/params/q_bits/0", &json!(20));
            assert!(Plan::from_json(&prime).is_err(), "{method}");
        }
    }

    #[test]
    fn a_file_of_a_circuit_lowers_nothing() {
        let plan = circuit();
        let own = edits_of_parameters("circuit");
        refused(&plan, &own.iter().map(|(p, v, n)| (p.as_str(), v.clone(), *n)).collect::<Vec<_>>());
        refused(
            &plan,
            &[
                ("/goal/error", json!(1e-30), "goal.error"),
                ("/goal/security", json!("Bits192"), "program.params.security"),
                ("/goal/expression/inputs/0/max_abs", json!(1e9), "program.params.q_bits"),
                ("/program/circuit/tile", json!(3), ""),
                ("/program/circuit/tile", json!(1u64 << 40), ""),
                ("/program/circuit/params/log_scale", json!(14), "goal.error"),
            ],
        );
    }

    /// Methods' own options: none makes a plan of less than it says.
    #[test]
    fn options_in_a_file_keep_the_promise_or_are_refused() {
        let options = [
            ("coefficient", "block", json!([1 << 20, 1 << 20, 1])),
            ("coefficient", "block", json!([0, 1, 1])),
            ("coefficient", "block", json!([1, 1, 1])),
            ("coefficient", "relinearize", json!(true)),
            ("module", "side", json!(3)),
            ("module", "side", json!(1u64 << 40)),
            ("module", "slots", json!(1u64 << 40)),
            ("spread3d", "unroll", json!(4_000_000_000u32)),
            ("spread3d", "fold", json!(true)),
            ("improved3d", "exact_ring", json!(false)),
            ("improved3d", "clean_output", json!(true)),
            ("improved3d", "rescale_first", json!(false)),
        ];
        for (method, option, value) in options {
            let plan = product(method, 1e-4);
            let text = edited(&plan, &format!("/program/product/method/{option}"), &value);
            let Ok(changed) = Plan::from_json(&text) else { continue };
            let (s, goal) = (changed.summary(), changed.goal());
            assert!(s.predicted_error <= goal.error && s.security_bits >= 128, "{method} {option}: {changed}");
        }
    }

    /// What is shown is worked out: the text's own figures are not looked at.
    #[test]
    fn figures_of_a_file_carry_no_weight() {
        let plan = product("spread3d", 1e-4);
        for (name, value) in [
            ("predicted_error", json!(1e-30)),
            ("security_bits", json!(256)),
            ("log_qp", json!(1.0)),
            ("memory", json!(1)),
            ("key_switches", json!(-5.0)),
            ("method", json!("magic")),
            ("params", json!("00")),
        ] {
            let loaded = Plan::from_json(&edited(&plan, &format!("/summary/{name}"), &value)).unwrap();
            assert_eq!((loaded.summary(), loaded.to_string()), (plan.summary(), plan.to_string()), "{name}");
        }
    }
}
