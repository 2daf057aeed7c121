//! Refreshes in a circuit: what one costs and adds, and after which operations they are placed.
//!
//! Placement is a shortest path over (operation, level): operations are taken in their order, a step either leaves a value at
//! the level at which it was computed or refreshes it, and each costs what the planner's prices say at the levels of its
//! operands. What distinguishes two paths after an operation are the levels of the values that later ones still take, so of
//! paths with the same ones, or lower ones, at no less cost, one is kept.

use super::circuit::Step;
use super::program::Refreshes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::rc::Rc;
use sudare_expr::Expr;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet, Kind};
use sudare_he::ckks::spread::SIGMAS;
use sudare_he::ckks::{self, CiphertextOf, Evaluator, ParamsLiteral};
use sudare_methods::MatrixError;
use sudare_ring::memo::Memo;
use sudare_rlwe::Backend;
use sudare_rlwe::security::Security;
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::work::Work;

/// Paths that are kept after an operation.
const MOST_PATHS: usize = 256;
/// How far scale times bound of a refresh's input may lie over Δ, for scales that drift with products.
const DRIFT: f64 = 1.0 + 1.0 / 64.0;
/// Largest error of a refresh, in deviations: that of the modular reduction is no Gaussian one.
const LARGEST: f64 = 2.0;

/// Which values of a circuit are refreshed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefreshSpec {
    /// The bootstrapping set.
    pub set: BootstrapSet,
    /// Nodes of the expression, ascending.
    pub after: Vec<usize>,
}

/// Work of refreshing ciphertexts: those of real slots two and two as one of complex slots, the last of an odd number alone.
#[derive(Clone, Copy, Debug)]
pub struct RefreshWork {
    alone: Work,
    pair: Option<Work>,
}

impl RefreshWork {
    /// Of ciphertexts that are refreshed one by one.
    pub(super) fn single(alone: Work) -> Self {
        Self { alone, pair: None }
    }

    /// Whether two are refreshed as one.
    pub fn pairs(&self) -> bool {
        self.pair.is_some()
    }

    /// That of so many ciphertexts.
    pub fn of(&self, count: usize) -> Work {
        match self.pair {
            Some(pair) => pair * (count / 2) as f64 + self.alone * (count % 2) as f64,
            None => self.alone * count as f64,
        }
    }
}

/// What a bootstrapping set takes and adds.
struct Figures {
    levels: (usize, usize),
    variance: f64,
    work: RefreshWork,
    memory: [u64; 3],
}

impl Figures {
    fn new(literal: &BootstrapLiteral) -> Result<Self, MatrixError> {
        let (params, variance) = (literal.build()?, literal.predicted_noise(2.0)?.total());
        let cost = |kind: Kind| Ok::<_, MatrixError>(params.cost(kind)?.fused());
        let work = RefreshWork { alone: cost(Kind::Real)?, pair: Some(cost(Kind::Pair)?) };
        let memory = [params.key_bytes()?, params.diagonal_bytes()?, params.working_bytes(1)?];
        Ok(Self { levels: literal.levels()?, variance, work, memory })
    }
}

/// A bootstrapping set as a circuit sees it; nothing is built.
pub(crate) struct Refresh {
    set: BootstrapSet,
    literal: BootstrapLiteral,
    /// The level under which a value cannot be refreshed, and that of a refreshed one.
    levels: (usize, usize),
    /// Variance of a complex slot's error for real and imaginary parts up to one.
    variance: f64,
    work: RefreshWork,
    memory: [u64; 3],
    /// Members of a batch, which are refreshed together.
    batch: usize,
}

impl Refresh {
    /// A set over its own ring, or where no security is claimed over the least that serves, 2^`least`, for batches of
    /// `batch` members.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a set with fewer slots than the ring has, or with less security than is asked for.
    pub fn new(set: BootstrapSet, security: Security, least: u32, batch: usize) -> Result<Self, MatrixError> {
        let literal = match security {
            Security::Insecure => set.literal().insecure(least)?,
            _ => set.literal(),
        };
        if literal.log_slots + 1 < literal.params.log_n || literal.params.security < security {
            let reason = format!(
                "bootstrapping set {set} does not fill all slots, or has less security than is asked for; take \
                 another set"
            );
            return Err(MatrixError::NoPlan { reason });
        }
        // What a set takes is worked out once in a process.
        static KNOWN: Memo<(BootstrapSet, u32), Figures> = Memo::new();
        let key = (set, literal.params.log_n);
        let Figures { levels, variance, work, memory } = *match KNOWN.get(&key) {
            Some(known) => known,
            None => KNOWN.insert(key, Figures::new(&literal)?),
        };
        Ok(Self { set, levels, variance, work, memory, batch, literal })
    }

    pub fn literal(&self) -> &BootstrapLiteral {
        &self.literal
    }

    pub fn params(&self) -> &ParamsLiteral {
        &self.literal.params
    }

    /// The lowest level of a value.
    pub fn floor(&self) -> usize {
        self.levels.0
    }

    /// The level of inputs and of refreshed values.
    pub fn top(&self) -> usize {
        self.levels.1
    }

    /// Bytes of diagonals, and of what a refresh works in.
    pub fn prepared_bytes(&self) -> u64 {
        self.memory[1] + self.memory[2]
    }

    /// Work of refreshing a value of so many tiles, for each member of a batch.
    pub fn work(&self, tiles: usize) -> Work {
        self.work.of(tiles * self.batch) * (1.0 / self.batch as f64)
    }

    /// Whether some of such a value's tiles are refreshed as pairs.
    pub fn pairs(&self, tiles: usize) -> bool {
        tiles * self.batch > 1
    }

    /// What people are told.
    pub fn refreshes(&self, places: Vec<(usize, usize)>) -> Refreshes {
        let (set, prepared_bytes, work) = (self.set.to_string(), self.prepared_bytes(), self.work);
        Refreshes { set, key_bytes: self.memory[0], prepared_bytes, places, work }
    }

    fn scale(&self) -> f64 {
        f64::from(self.literal.params.log_scale).exp2()
    }

    /// Whether values up to `max_abs` at a scale are refreshed as they are.
    pub fn fits(&self, scale: f64, max_abs: f64) -> bool {
        scale * max_abs <= self.scale() * DRIFT
    }

    /// The scale of refreshed values up to `max_abs`, and one at which they fit.
    pub fn target(&self, max_abs: f64) -> f64 {
        self.scale() / max_abs.max(1.0).log2().ceil().exp2()
    }

    /// A value that fits.
    pub fn fitted<B: Backend>(
        &self,
        e: &Evaluator<B>,
        c: CiphertextOf<B>,
        max_abs: f64,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        match self.fits(c.scale(), max_abs) {
            true => Ok(c),
            false => Ok(e.set_scale(&c, self.target(max_abs))?),
        }
    }

    /// The level and scale of a refreshed value, which was computed at others.
    fn renewed(&self, (level, scale): (usize, f64), max_abs: f64) -> Result<(usize, f64), MatrixError> {
        if level < self.floor() || !self.fits(scale, max_abs) && level <= self.floor() {
            return Err(MatrixError::NoPlan {
                reason: "a value is too large to be refreshed at its level; declare smaller bounds".into(),
            });
        }
        Ok((self.top(), self.target(max_abs)))
    }

    /// A batch of `count` with new levels: what a refresh adds is independent from element to element.
    pub fn refreshed(
        &self,
        e: &Evaluator<Simulated>,
        c: CiphertextOf<Simulated>,
        (max_abs, count): (f64, usize),
    ) -> Result<CiphertextOf<Simulated>, MatrixError> {
        let (level, scale) = self.renewed((c.level(), c.scale()), max_abs)?;
        let c = self.fitted(e, c.with_bound(max_abs), max_abs)?;
        let added = 2.0 * (self.error(max_abs) * scale / SIGMAS).powi(2);
        let spread = c.spread().refreshed(scale / c.scale(), added, self.pairs(count));
        let state = ckks::State { scale, bound: max_abs, noise: spread.norm() };
        Ok(e.batch(level, count, state, spread))
    }

    /// The largest error that a refresh adds to values up to `max_abs`.
    pub fn error(&self, max_abs: f64) -> f64 {
        LARGEST * SIGMAS * (self.variance / 2.0).sqrt() * self.scale() / self.target(max_abs)
    }

    /// After which operations refreshes cost least with all that is computed between them; `None` where no way leads to the
    /// end.
    pub fn placed(&self, step: &Step<'_>, price: impl Fn(&Work) -> f64) -> Option<Vec<usize>> {
        let (expr, last_uses) = (step.expr, last_uses(step.expr));
        let mut paths = vec![Path::default()];
        // What a node costs follows from the levels and scales of its operands.
        let mut known = Known::new();
        for (at, node) in expr.nodes().iter().enumerate() {
            let (tiles, max_abs) = (step.graph.layouts[at].ciphertexts(), expr.info(at).max_abs);
            let renewed = price(&self.work(tiles));
            let input = expr.input_at(at).is_some();
            let fresh = input || expr.results().any(|result| result == at);
            let mut next = Vec::with_capacity(2 * paths.len());
            known.clear();
            for path in &paths {
                let operands: Vec<(usize, f64)> = node.operands.iter().map(|of| path.states[*of]).collect();
                let made = match input {
                    true => Some((self.top(), self.scale(), 0.0)),
                    false => {
                        *known.entry(operands.iter().map(|(l, s)| (*l, s.to_bits())).collect()).or_insert_with(|| {
                            let (level, scale, work) = step.of(at, &operands).ok()?;
                            (level >= self.floor()).then(|| (level, scale, price(&work)))
                        })
                    }
                };
                let Some((level, scale, cost)) = made else { continue };
                next.push(path.then((level, scale), path.cost + cost, None));
                if let Ok(state) = self.renewed((level, scale), max_abs)
                    && !fresh
                {
                    next.push(path.then(state, path.cost + cost + renewed, Some(at)));
                }
            }
            let live: Vec<usize> = (0..=at).filter(|n| last_uses[*n] > at).collect();
            paths = kept(next, &live);
        }
        let best = paths.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        let mut after: Vec<usize> =
            std::iter::successors(best.after.as_deref(), |a| a.1.as_deref()).map(|a| a.0).collect();
        after.reverse();
        Some(after)
    }
}

/// By levels and scales of a node's operands its own and its price, if it can be computed there.
type Known = BTreeMap<Vec<(usize, u64)>, Option<(usize, f64, f64)>>;

/// A refreshed node, and those before it.
struct After(usize, Option<Rc<After>>);

/// A way through the operations so far.
#[derive(Default)]
struct Path {
    /// Level and scale of each node, as others take it.
    states: Vec<(usize, f64)>,
    cost: f64,
    after: Option<Rc<After>>,
}

impl Path {
    /// With one node more, which is refreshed or not.
    fn then(&self, state: (usize, f64), cost: f64, refreshed: Option<usize>) -> Self {
        let states = self.states.iter().copied().chain([state]).collect();
        let after = match refreshed {
            Some(at) => Some(Rc::new(After(at, self.after.clone()))),
            None => self.after.clone(),
        };
        Self { states, cost, after }
    }
}

/// For each node the last one that takes it; the end of all for the result.
fn last_uses(expr: &Expr) -> Vec<usize> {
    let mut last = vec![0; expr.nodes().len()];
    for (at, node) in expr.nodes().iter().enumerate() {
        node.operands.iter().for_each(|o| last[*o] = at);
    }
    expr.results().for_each(|result| last[result] = usize::MAX);
    last
}

/// Paths that no other is better than: at no less cost, with no live value at a higher level.
fn kept(mut paths: Vec<Path>, live: &[usize]) -> Vec<Path> {
    paths.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let mut kept: Vec<Path> = Vec::new();
    for path in paths {
        let reaches = |other: &Path| live.iter().all(|n| other.states[*n].0 >= path.states[*n].0);
        if kept.len() < MOST_PATHS && !kept.iter().any(reaches) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::DegreeCost;
    use crate::{CostModel, Goal, Planner, Program};
    use sudare_expr::{InputSpec, Node, Operation};
    use sudare_methods::circuit::Graph;

    /// Processor seconds of bench/runs/bootstrap-zen4-2026-11-28.json at the prices of that machine in the same hour: a real
    /// refresh, and the share of two that a pair takes.
    #[test]
    fn a_refresh_is_priced_as_measured() {
        let row = |log_n, [ntt_ns, ntt_wide_ns, pass_ns, pass_wide_ns, term_ns, term_wide_ns]: [f64; 6]| DegreeCost {
            log_n,
            ntt_ns,
            ntt_wide_ns,
            pass_ns,
            pass_wide_ns,
            term_ns,
            term_wide_ns,
        };
        let model = CostModel {
            degrees: vec![
                row(15, [35_600.0, 80_200.0, 10_100.0, 16_100.0, 8_000.0, 18_100.0]),
                row(16, [77_800.0, 175_000.0, 20_500.0, 32_300.0, 16_400.0, 36_600.0]),
            ],
            key_bandwidth: 17.3e9,
            ..CostModel::default()
        };
        let measured = [(BootstrapSet::A, 1.79, 0.70), (BootstrapSet::B, 1.50, 0.69), (BootstrapSet::C, 0.60, 0.65)];
        for (set, seconds, share) in measured {
            let refresh = Refresh::new(set, Security::Bits128, 11, 1).unwrap();
            let price = |count: usize| model.price(&refresh.work(count), refresh.params().log_n, 1);
            let ratio = price(1) / seconds;
            assert!((0.7..1.4).contains(&ratio), "{set}: {ratio:.2} of what was measured");
            let found = price(2) / (2.0 * price(1));
            assert!((found - share).abs() < 0.1, "{set}: a pair is {found:.2} of two, measured {share}");
            // An odd one is alone; members of a batch are paired as tiles are.
            assert!((price(5) - 2.0 * price(2) - price(1)).abs() < 1e-9 * price(5));
            let many = Refresh::new(set, Security::Bits128, 11, 3).unwrap();
            let member = model.price(&many.work(1), many.params().log_n, 1);
            assert!((3.0 * member - price(3)).abs() < 1e-9 * price(3) && many.pairs(1) && !refresh.pairs(1));
        }
    }

    /// x ← x · a, many times, with a second value that is carried along.
    fn powers(count: usize) -> Expr {
        let inputs = vec![InputSpec::new("A", (3, 3), 1.0), InputSpec::new("B", (9, 9), 1.0)];
        let mut nodes = vec![Node::input(0), Node::input(1)];
        let mut last = 0;
        for _ in 0..count {
            nodes.push(Node::new(Operation::Mul, &[last, 0]));
            nodes.push(Node::new(Operation::Bounded { max_abs: 1.0 }, &[nodes.len() - 1]));
            last = nodes.len() - 1;
        }
        nodes.push(Node::new(Operation::Sum { axis: 0 }, &[1]));
        nodes.push(Node::new(Operation::Sum { axis: 1 }, &[nodes.len() - 1]));
        nodes.push(Node::new(Operation::Sum { axis: 0 }, &[last]));
        nodes.push(Node::new(Operation::Sum { axis: 1 }, &[nodes.len() - 1]));
        let end = nodes.len();
        nodes.push(Node::new(Operation::Mul, &[end - 3, end - 1]));
        Expr::new(inputs, nodes, end).unwrap()
    }

    /// As few as levels ask for, and none of what stays at its level until it is needed.
    #[test]
    fn refreshes_are_few_and_only_of_what_is_carried() {
        let (expr, model) = (powers(30), CostModel::default());
        let refresh = Refresh::new(BootstrapSet::A, Security::Insecure, 11, 1).unwrap();
        let params = refresh.params().build().unwrap();
        let placed = |expr: &Expr| {
            let graph = Graph::new(expr, refresh.params(), 4).unwrap();
            refresh.placed(&Step { expr, params: &params, graph: &graph }, |w| model.price(w, 11, 1))
        };
        let after = placed(&expr).unwrap();
        // Thirty products, two sums and a product of nine levels: the first nine are there.
        assert_eq!(after.len(), 3, "{after:?}");
        let carried = |at: &usize| expr.info(*at).shape == (3, 3);
        assert!(after.iter().all(carried), "{after:?}");
        assert!(placed(&powers(4)).unwrap().is_empty());
    }

    /// A larger ring without refreshes where it is cheaper, and refreshes where none is large enough.
    #[test]
    fn the_planner_compares() {
        let plan = |count: usize, error: f64| {
            let planner =
                Planner { bootstrap: vec![BootstrapSet::A, BootstrapSet::B], ..Planner::new(CostModel::default()) };
            let goal = Goal { security: Security::Insecure, ..Goal::new(powers(count), error) };
            planner.plan(&goal)
        };
        let refreshed = |plan: &crate::Plan| match plan.program() {
            Program::Circuit { circuit } => circuit.refresh.is_some(),
            _ => false,
        };
        let (short, long) = (plan(3, 1e-2).unwrap(), plan(60, 1e-2).unwrap());
        assert!(!refreshed(&short), "{short}");
        assert!(short.considered().iter().any(|c| c.method == "bootstrapped"), "{short}");
        assert!(refreshed(&long), "{long}");
        let shown = long.to_string();
        assert!(shown.contains("refreshes by set") && shown.contains("after operation"), "{shown}");
    }
}
