//! Chooses the method, the parameters and the keys of a plan.

use super::cost::CostModel;
use super::program::Program;
use super::summary::{self, Considered};
use super::{Goal, Plan, circuit, product};
use sudare_exact::refresh::RefreshSet;
use sudare_expr::{Expr, Shape};
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_methods::MatrixError;
use sudare_methods::exact;
use sudare_methods::product::Requirements;
use sudare_methods::products::{ProductSpec, candidates, compact};
use sudare_rlwe::wire::MAX_BUNDLE;
use sudare_rlwe::work::Work;

/// Most programs that a plan tells of.
pub(super) const MAX_CONSIDERED: usize = 24;
/// How many times the least time still counts as the least.
const NEAR: f64 = 1.05;
/// How many times the fewest bytes of results still count as the fewest: the last of them can take a hundred times the keys.
const NEAR_BYTES: f64 = 1.25;
/// Errors under this part of a result are near what doubles are rounded by.
const NEAR_DOUBLES: f64 = 1e-12;

/// Makes plans for one machine.
///
/// Every method proposes programs. All are weighed by their literals alone; those that are too
/// inexact or need too much memory are dropped, the others priced, and the cheapest is taken. Of
/// programs within a twentieth of the cheapest the one with the smallest keys wins. For compact results only those
/// programs count whose results are within a quarter of the smallest. Only the one that is taken is built, and only as
/// far as a client needs it: tables wait for a server.
#[derive(Clone, Debug)]
pub struct Planner {
    /// Prices.
    pub cost: CostModel,
    /// Threads of the server, at least one.
    pub threads: usize,
    /// Most bytes of memory that the server may take with keys, tables and ciphertexts.
    pub memory: u64,
    /// Only this method, if one is named.
    pub method: Option<String>,
    /// Results of few bytes first, and then the least time.
    pub compact: bool,
    /// Bootstrapping sets by which values may be refreshed, beside rings that are large enough to do without.
    pub bootstrap: Vec<BootstrapSet>,
    /// Sets by which integers may be refreshed, beside computations that multiply once.
    pub refresh: Vec<RefreshSet>,
}

impl Planner {
    /// A planner for one thread and any amount of memory.
    pub fn new(cost: CostModel) -> Self {
        let (bootstrap, refresh) = (Vec::new(), Vec::new());
        Self { cost, threads: 1, memory: u64::MAX, method: None, compact: false, bootstrap, refresh }
    }

    /// The cheapest plan for a goal.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] with what the nearest miss would need.
    pub fn plan(&self, goal: &Goal) -> Result<Plan, MatrixError> {
        goal.check()?;
        if goal.expression.as_moments().is_some() {
            return self.table(goal);
        }
        let mut priced = self.priced(goal)?;
        while let Some(chosen) = self.choose(&priced) {
            match Plan::new(goal.clone(), priced[chosen].0.clone()) {
                Ok(plan) => {
                    let seconds = priced[chosen].1.seconds;
                    self.judge(&mut priced, chosen);
                    return Ok(plan.with_estimates(seconds, shortlist(priced.into_iter().map(|(_, c)| c))));
                }
                // Real primes are not quite what they were taken for; a hair can decide.
                Err(_) => drop(priced.remove(chosen)),
            }
        }
        Err(MatrixError::NoPlan { reason: self.refusal(goal, &priced)? })
    }

    /// Statistics of a table, which there is one way to compute.
    fn table(&self, goal: &Goal) -> Result<Plan, MatrixError> {
        let plan = Plan::new(goal.clone(), Program::of_moments(goal))?;
        let (needed, figures) = (plan.summary().memory, plan.engine().figures());
        if needed > self.memory {
            let (needed, limit) = (bytes(needed), bytes(self.memory));
            let reason = format!(
                "the statistics take {needed} of memory, and the limit is {limit}; raise the limit, or take a table \
                 of fewer rows or columns"
            );
            return Err(MatrixError::NoPlan { reason });
        }
        let seconds = self.cost.price(&figures.work(), figures.literal().log_n, self.threads);
        Ok(plan.with_estimates(seconds, Vec::new()))
    }

    /// Programs with their prices, the cheapest first; the verdict is empty for those that would do.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for an expression of integers that is not computed exactly.
    fn priced(&self, goal: &Goal) -> Result<Vec<(Program, Considered)>, MatrixError> {
        let all = self.programs(goal)?.into_iter();
        let mut priced: Vec<_> = all.filter_map(|p| self.price(goal, &p).map(|c| (p, c)).ok()).collect();
        priced.sort_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        Ok(priced)
    }

    /// Whether a program would do, being by the method that was asked for.
    fn would_do(&self, c: &Considered) -> bool {
        c.verdict.is_empty() && self.method.as_ref().is_none_or(|m| *m == c.method)
    }

    /// Whether results are near the smallest of all programs that would do, or anything goes.
    fn small(&self, priced: &[(Program, Considered)]) -> impl Fn(&Considered) -> bool + use<> {
        let smallest = self.smallest(priced);
        move |c| smallest.is_none_or(|smallest| times(c.result_bytes, smallest) <= NEAR_BYTES)
    }

    /// Bytes of the smallest results, if those are wanted.
    fn smallest(&self, priced: &[(Program, Considered)]) -> Option<u64> {
        let serving = priced.iter().filter(|(_, c)| self.compact && self.would_do(c));
        serving.filter_map(|(_, c)| c.result_bytes).min()
    }

    /// The program to take.
    fn choose(&self, priced: &[(Program, Considered)]) -> Option<usize> {
        let small = self.small(priced);
        let cheapest = priced.iter().find(|(_, c)| self.would_do(c) && small(c))?.1.seconds;
        let near = |(_, (_, c)): &(usize, &(Program, Considered))| {
            self.would_do(c) && small(c) && c.seconds <= cheapest * NEAR
        };
        priced.iter().enumerate().filter(near).min_by_key(|(_, (_, c))| c.key_bytes).map(|(i, _)| i)
    }

    /// Says of each program why it was taken or not.
    fn judge(&self, priced: &mut [(Program, Considered)], chosen: usize) {
        let (least_keys, taken) = (priced[chosen].1.key_bytes, priced[chosen].1.seconds);
        let (small, smallest) = (self.small(priced), self.smallest(priced).unwrap_or(1));
        let cheapest = priced.iter().find(|(_, c)| self.would_do(c) && small(c)).map_or(taken, |(_, c)| c.seconds);
        for (i, (_, c)) in priced.iter_mut().enumerate() {
            if i == chosen {
                c.verdict = "taken".into();
            } else if c.verdict.is_empty() {
                c.verdict = match (self.would_do(c), c.seconds >= cheapest) {
                    (false, _) => "another method was asked for".into(),
                    _ if !small(c) => {
                        format!("{} times the bytes of results", two_digits(times(c.result_bytes, smallest)))
                    }
                    _ if c.seconds <= cheapest * NEAR && c.key_bytes > least_keys => "larger keys".into(),
                    _ => format!("{} times as long", two_digits(c.seconds / cheapest)),
                };
            }
        }
    }

    /// All that could compute the goal.
    fn programs(&self, goal: &Goal) -> Result<Vec<Program>, MatrixError> {
        let expr = &goal.expression;
        let price = |work: &Work, log_n: u32| self.cost.price(work, log_n, self.threads);
        if expr.is_exact() {
            let arrays = self.refresh.iter().map(|set| goal.arrays(*set).map(|plan| plan.spec().clone()));
            let (arrays, refused): (Vec<_>, Vec<_>) = arrays.partition(Result::is_ok);
            let arrays: Vec<_> = arrays.into_iter().flatten().map(|arrays| Program::Arrays { arrays }).collect();
            let once = match goal.exact() {
                Ok(request) => exact::candidates(&request, price),
                // One of both ways is enough; of two refusals that tells more which was asked for.
                Err(other) => match (arrays.len(), refused.into_iter().find_map(Result::err)) {
                    (0, Some(refusal)) => return Err(refusal),
                    (0, None) => return Err(other),
                    _ => Vec::new(),
                },
            };
            return Ok(once.into_iter().map(|exact| Program::Exact { exact }).chain(arrays).collect());
        }
        let mut programs = Vec::new();
        // Methods of products leave sums beside their results, which several parties would see.
        if let Some(asked) = product::Asked::new(expr).filter(|_| goal.sharing.is_none()) {
            let [(m, k), (_, n)] = asked.shapes;
            let requirements = Requirements {
                shape: Shape { m, k, n, batch: goal.batch },
                max_abs: asked.max_abs,
                error: goal.private_error() / product::growth_of(expr, &asked.product),
                security: goal.security,
                fresh: [true, true],
                decrypt_next: true,
            };
            let serves = |product: &ProductSpec| asked.product.addends.is_empty() || product.method.adds();
            let smallest = if self.compact { compact(&requirements) } else { Vec::new() };
            let products = candidates(&requirements).into_iter().chain(smallest).filter(serves);
            programs.extend(products.map(|product| Program::Product { product }));
        }
        let sets: &[BootstrapSet] = if goal.sharing.is_none() { &self.bootstrap } else { &[] };
        let refreshed = circuit::refreshed(goal, sets, price);
        let circuits = circuit::candidates(goal, price).into_iter().chain(refreshed);
        programs.extend(circuits.map(|circuit| Program::Circuit { circuit }));
        Ok(programs)
    }

    /// Prices a program; the verdict is empty if it would do.
    fn price(&self, goal: &Goal, program: &Program) -> Result<Considered, MatrixError> {
        let literal = program.literal();
        program.with_figures(goal, |figures| {
            let (error, memory) = (goal.promised_error(figures.error()), summary::memory(goal, figures));
            let verdict = if error.is_nan() || error > goal.error {
                format!("error {error:.1e} is over the wanted {:.1e}", goal.error)
            } else if memory > self.memory {
                format!("{} of memory are over the limit of {}", bytes(memory), bytes(self.memory))
            } else if figures.most_ciphertexts(goal) > MAX_BUNDLE {
                format!("{} ciphertexts of a matrix are over the limit of {MAX_BUNDLE}", figures.most_ciphertexts(goal))
            } else {
                String::new()
            };
            Considered {
                method: figures.method().to_owned(),
                log_n: literal.log_n,
                log_qp: literal.q_bits.iter().chain(&literal.p_bits).sum(),
                key_bytes: summary::all_key_bytes(figures),
                memory,
                result_bytes: Some(summary::result_bytes(goal, figures)),
                seconds: self.cost.price(&figures.work(), literal.log_n, self.threads),
                error,
                verdict,
            }
        })
    }

    /// Why there is no plan, and what would help.
    fn refusal(&self, goal: &Goal, priced: &[(Program, Considered)]) -> Result<String, MatrixError> {
        match self.wrong_method(goal)?.or_else(|| self.too_large(goal, priced)) {
            Some(reason) => Ok(reason),
            None => self.too_exact(goal),
        }
    }

    /// That the method which was asked for cannot compute this at all, if it is so.
    fn wrong_method(&self, goal: &Goal) -> Result<Option<String>, MatrixError> {
        let Some(method) = &self.method else { return Ok(None) };
        let goal = Goal { error: f64::MAX, ..goal.clone() };
        let mut names: Vec<String> = self.priced(&goal)?.into_iter().map(|(_, c)| c.method).collect();
        names.sort_unstable();
        names.dedup();
        let serve = names.join(", ");
        Ok((!names.contains(method))
            .then(|| format!("method {method} does not serve {}; these do: {serve}", goal.expression)))
    }

    /// That there is too little memory, or that nobody could send the matrices, if that is all.
    fn too_large(&self, goal: &Goal, priced: &[(Program, Considered)]) -> Option<String> {
        let asked = |c: &&Considered| self.method.as_ref().is_none_or(|m| *m == c.method);
        let exact: Vec<&Considered> =
            priced.iter().map(|(_, c)| c).filter(asked).filter(|c| c.error <= goal.error).collect();
        let expr = &goal.expression;
        match exact.iter().filter(|c| c.memory > self.memory).map(|c| c.memory).min() {
            Some(least) => Some(format!(
                "the least memory that {expr} takes is {}, and the limit is {}; raise the limit or compute it in parts",
                bytes(least),
                bytes(self.memory)
            )),
            None => Some(format!("{expr}: {}; compute it in parts or in smaller batches", exact.first()?.verdict)),
        }
    }

    /// That the wanted error is too small, and by how much.
    fn too_exact(&self, goal: &Goal) -> Result<String, MatrixError> {
        if goal.expression.is_exact() {
            return Ok(format!(
                "no ring of degree up to 32768 holds {} exactly; declare smaller bounds",
                goal.expression
            ));
        }
        let (expr, size) = (&goal.expression, largest(&goal.expression));
        let integers =
            if self.integers_would_do(goal) { "; integers are exact: describe the inputs with dtype=int" } else { "" };
        let release = if goal.release.is_some() { ", or release fewer results or with fewer bits" } else { "" };
        Ok(match self.least_error(goal)? {
            Some(least) if least < size => {
                let doubles = match least < size * NEAR_DOUBLES {
                    true => format!(" (doubles of that size are {:.1e} apart)", size * f64::EPSILON),
                    false => String::new(),
                };
                format!(
                    "the least error that can be promised for {expr}, whose results are up to {size:.1e}{doubles}, is \
                     {least:.1e}, {} times the wanted {:.1e}; ask for error={least:.1e} or declare smaller bounds{release}{integers}",
                    two_digits(least / goal.error),
                    goal.error
                )
            }
            _ => format!(
                "no parameters with {}-bit security hold values as large and as deep as those of {expr} (results up \
                 to {size:.1e}) with an error under {size:.1e}; declare smaller bounds or compute it in parts{release}{integers}",
                goal.security.bits()
            ),
        })
    }

    /// Whether an exact plan computes the goal, should its elements be integers.
    fn integers_would_do(&self, goal: &Goal) -> bool {
        let exact = goal.of_integers().filter(|exact| exact.check().is_ok());
        exact.is_some_and(|exact| self.programs(&exact).is_ok_and(|programs| !programs.is_empty()))
    }

    /// The least error, rounded up to two digits, for which there is a plan.
    fn least_error(&self, goal: &Goal) -> Result<Option<f64>, MatrixError> {
        let serves = |error: f64| -> Result<bool, MatrixError> {
            Ok(self.priced(&Goal { error, ..goal.clone() })?.iter().any(|(_, c)| self.would_do(c)))
        };
        let most = largest(&goal.expression).max(goal.error);
        if !serves(most)? {
            return Ok(None);
        }
        // Between errors that are too small and large enough, by halves of their quotient.
        let (mut low, mut high) = (goal.error.min(most * f64::EPSILON), most);
        while high > low * 1.05 {
            let middle = (low.ln() / 2.0 + high.ln() / 2.0).exp();
            if serves(middle)? { high = middle } else { low = middle }
        }
        Ok(Some(rounded_up(high)))
    }
}

/// How many times the fewest bytes others are.
fn times(bytes: Option<u64>, fewest: u64) -> f64 {
    bytes.map_or(f64::INFINITY, |bytes| bytes as f64 / fewest as f64)
}

/// The largest bound of a result.
fn largest(expr: &Expr) -> f64 {
    expr.results().map(|node| expr.info(node).max_abs).fold(0.0, f64::max)
}

/// The least number of two digits that is not under `x`.
fn rounded_up(x: f64) -> f64 {
    let parsed = |x: f64| format!("{x:.1e}").parse().unwrap_or(x);
    let near: f64 = parsed(x);
    if near >= x { near } else { parsed(x * 1.05) }
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
    match x {
        x if x < 9.95 => format!("{x:.1}"),
        x if x < 1e5 => format!("{x:.0}"),
        x => format!("{x:.1e}"),
    }
}

/// Bytes for people.
pub(crate) fn bytes(b: u64) -> String {
    let b = b as f64;
    match b {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} kB", two_digits(b / 1e3)),
        b if b < 1e9 => format!("{} MB", two_digits(b / 1e6)),
        b if b < 1e12 => format!("{} GB", two_digits(b / 1e9)),
        b => format!("{:.1} TB", b / 1e12),
    }
}
