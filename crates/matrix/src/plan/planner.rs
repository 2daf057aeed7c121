//! Chooses the method, the parameters and the keys of a plan.

use super::circuit;
use super::cost::CostModel;
use super::program::Program;
use super::summary::Considered;
use super::{Goal, Plan};
use crate::error::MatrixError;
use crate::product::{Requirements, Shape};
use crate::registry::candidates;
use crate::work::Work;

/// Most programs that a plan tells of.
const MAX_CONSIDERED: usize = 24;

/// Makes plans for one machine.
///
/// Every method proposes programs; those that are too inexact or need too much memory are
/// dropped, the others priced, and the cheapest is taken. Of programs within a twentieth of the
/// cheapest the one with the smallest keys wins.
#[derive(Clone, Debug)]
pub struct Planner {
    /// Prices.
    pub cost: CostModel,
    /// Threads of the server.
    pub threads: usize,
    /// Most bytes of memory that the server may take.
    pub memory: u64,
    /// Only this method, if one is named.
    pub method: Option<String>,
}

impl Planner {
    /// A planner for one thread that may use all of this machine's memory.
    pub fn new(cost: CostModel) -> Self {
        Self { cost, threads: 1, memory: machine_memory().unwrap_or(u64::MAX), method: None }
    }

    /// Plans.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] with what the nearest miss would need.
    pub fn plan(&self, goal: &Goal) -> Result<Plan, MatrixError> {
        goal.check()?;
        let programs = self.programs(goal);
        let mut failed: Option<MatrixError> = None;
        let mut priced: Vec<(Plan, Considered)> = Vec::new();
        for program in programs {
            match self.price(goal, program) {
                Ok(entry) => priced.push(entry),
                Err(e) => failed = Some(e),
            }
        }
        priced.sort_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        let wanted = |c: &Considered| self.method.as_ref().is_none_or(|m| *m == c.method);
        let cheapest = priced.iter().find(|(_, c)| c.verdict.is_empty() && wanted(c)).map(|(_, c)| c.seconds);
        let Some(cheapest) = cheapest else { return Err(self.refusal(goal, &priced, failed)) };
        let chosen: usize = priced
            .iter()
            .enumerate()
            .filter(|(_, (_, c))| c.verdict.is_empty() && wanted(c) && c.seconds <= cheapest * 1.05)
            .min_by_key(|(_, (_, c))| c.key_bytes)
            .map_or(0, |(i, _)| i);
        let least_keys = priced[chosen].1.key_bytes;
        for (i, (_, c)) in priced.iter_mut().enumerate() {
            if i == chosen {
                c.verdict = "taken".into();
            } else if c.verdict.is_empty() {
                c.verdict = match (wanted(c), c.seconds >= cheapest) {
                    (false, _) => "another method was asked for".into(),
                    _ if c.seconds <= cheapest * 1.05 && c.key_bytes > least_keys => "larger keys".into(),
                    _ => format!("{} times as long", two_digits(c.seconds / cheapest)),
                };
            }
        }
        let seconds = priced[chosen].1.seconds;
        let considered = shortlist(priced.iter().map(|(_, c)| c.clone()));
        let (plan, _) = priced.swap_remove(chosen);
        Ok(plan.told(seconds, considered))
    }

    /// All that could compute the goal.
    fn programs(&self, goal: &Goal) -> Vec<Program> {
        let expr = &goal.expression;
        let mut programs = Vec::new();
        if let Some((left, right)) = expr.as_product() {
            let (l, r) = (&expr.inputs()[left], &expr.inputs()[right]);
            let requirements = Requirements {
                shape: Shape { m: l.rows, k: l.cols, n: r.cols, batch: goal.batch },
                max_abs: [l.max_abs, r.max_abs],
                error: goal.private_error(),
                security: goal.security,
                fresh: [true, true],
                decrypt_next: true,
            };
            programs.extend(candidates(&requirements).into_iter().map(|product| Program::Product { product }));
        }
        let price = |work: &Work, log_n: u32| self.cost.price(work, log_n, self.threads);
        programs.extend(circuit::candidates(goal, price).into_iter().map(|circuit| Program::Circuit { circuit }));
        programs
    }

    /// Builds a program; the verdict is empty if it would do.
    fn price(&self, goal: &Goal, program: Program) -> Result<(Plan, Considered), MatrixError> {
        let plan = Plan::new(goal.clone(), program)?;
        let params = plan.params();
        let seconds = self.cost.price(&plan.engine().work(), params.log_n(), self.threads);
        let s = plan.summary();
        let verdict = if s.predicted_error.is_nan() || s.predicted_error > goal.error {
            format!("error {:.1e} is over the wanted {:.1e}", s.predicted_error, goal.error)
        } else if s.memory > self.memory {
            format!("{} of memory are over the limit of {}", bytes(s.memory), bytes(self.memory))
        } else {
            String::new()
        };
        let considered = Considered {
            method: s.method.clone(),
            log_n: params.log_n(),
            log_qp: s.log_qp.round() as u32,
            key_bytes: s.key_bytes(),
            memory: s.memory,
            seconds,
            error: s.predicted_error,
            verdict,
        };
        Ok((plan, considered))
    }

    fn refusal(&self, goal: &Goal, priced: &[(Plan, Considered)], failed: Option<MatrixError>) -> MatrixError {
        if let Some(method) = &self.method
            && !priced.iter().any(|(_, c)| c.method == *method)
        {
            let mut names: Vec<&str> = priced.iter().map(|(_, c)| c.method.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let reason = format!("method {method} does not serve {}; these do: {}", goal.expression, names.join(", "));
            return MatrixError::NoPlan { reason };
        }
        let exact = |c: &Considered| c.error <= goal.error;
        let least_memory = priced.iter().map(|(_, c)| c).filter(|c| exact(c)).map(|c| c.memory).min();
        let least_error = priced.iter().map(|(_, c)| c.error).fold(f64::INFINITY, f64::min);
        let release = match goal.release {
            Some(_) => ", or release fewer results or with fewer bits",
            None => "",
        };
        let reason = match (least_memory, priced.is_empty(), failed) {
            (Some(memory), ..) => format!(
                "the least memory that {} takes is {}, and the limit is {}; raise the limit or compute it in parts",
                goal.expression,
                bytes(memory),
                bytes(self.memory)
            ),
            (None, false, _) => format!(
                "the least error that any method promises is {least_error:.1e}, and {:.1e} is wanted; ask for less or declare smaller bounds{release}",
                goal.error
            ),
            (None, true, Some(e)) => e.to_string(),
            (None, true, None) => format!(
                "no method computes {} with error {:.1e} at {}-bit security; allow a larger error or declare smaller bounds{release}",
                goal.expression,
                goal.error,
                goal.security.bits()
            ),
        };
        MatrixError::NoPlan { reason }
    }
}

/// The best of each method and degree, the taken one first.
fn shortlist(all: impl Iterator<Item = Considered>) -> Vec<Considered> {
    let mut seen = std::collections::HashSet::new();
    let mut list: Vec<Considered> = all.collect();
    list.sort_by_key(|c| c.verdict != "taken");
    list.retain(|c| seen.insert((c.method.clone(), c.log_n)));
    list.truncate(MAX_CONSIDERED);
    list
}

fn two_digits(x: f64) -> String {
    if x < 9.95 { format!("{x:.1}") } else { format!("{x:.0}") }
}

/// Bytes for people.
pub(super) fn bytes(b: u64) -> String {
    let b = b as f64;
    match b {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} kB", two_digits(b / 1e3)),
        b if b < 1e9 => format!("{} MB", two_digits(b / 1e6)),
        b if b < 1e12 => format!("{} GB", two_digits(b / 1e9)),
        b => format!("{:.1} TB", b / 1e12),
    }
}

/// All memory of this machine.
fn machine_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}
