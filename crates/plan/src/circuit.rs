//! Whole expressions on tiled matrices.
//!
//! A plan runs the graph on a backend that computes nothing, one batch a node, and learns levels, scales, keys, work and
//! errors of every node. What an operation is, for the plan and for the result, is in [`sudare_methods::circuit`].
//!
//! The evaluator's worst-case bounds grow with every mask by the number of its slots, and after four
//! or five products in a row no modulus would hold them. What a node's ciphertexts carry on is the
//! plan's own bound, as it is for the size of their messages.

use super::program::{self, CkksEngine, NodeSize, Refreshes};
use super::refresh::{Refresh, RefreshSpec};
use super::{Goal, shared, too_small};
use serde::{Deserialize, Serialize};
use sudare_expr::{Expr, Matrix};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet, Bootstrapper};
use sudare_he::ckks::spread;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Expected, Params, ParamsLiteral,
    Plaintext,
};
use sudare_methods::MatrixError;
use sudare_methods::circuit::{self, Graph, Prepared, evaluate, multiplies, padding};
use sudare_methods::claims::field;
use sudare_methods::product::KeyDemand;
use sudare_methods::slots::common::check_count;
use sudare_methods::tables::Tables;
use sudare_methods::{rounding, sizing};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::security::{Security, max_log_qp};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::work::Work;
use sudare_rlwe::{Backend, KeyId};

/// Ciphertexts that are refreshed together: a pair, which takes as much memory as keys do.
pub const TOGETHER: usize = 2;
/// Sides of tiles that are tried.
const TILES: [usize; 6] = [4, 8, 16, 32, 64, 128];
/// Deepest circuit that is looked for.
const MAX_DEPTH: usize = 48;
/// Most bits of a prime.
const MAX_PRIME_BITS: u32 = 60;
/// Scales that are tried. Doubles hold 53 bits of a value at any; the largest are for the noise of several parties over what is only added.
const SCALES: [u32; 15] = [49, 46, 43, 40, 37, 34, 31, 52, 55, 58, 60, 66, 72, 80, 88];

/// A circuit on tiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitSpec {
    /// Side of a tile.
    pub tile: usize,
    /// The parameters.
    pub params: ParamsLiteral,
    /// Which values are refreshed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<RefreshSpec>,
}

/// A node of a circuit that was run on a backend that computes nothing.
struct Node {
    /// Its work, without a refresh's.
    cost: Work,
    /// Level and scale as others take it: refreshed, where it is.
    level: usize,
    scale: f64,
    /// Bound on the noise of its ciphertexts, as they leave their operation and as they are worked on.
    noise: (f64, f64),
    /// Largest error of its elements once they are decrypted and read.
    error: f64,
    /// The norm that its error polynomials are expected to stay under.
    norm: f64,
}

/// Such a run of a whole circuit.
struct Run {
    nodes: Vec<Node>,
    ledger: Ledger,
    /// Work of refreshes.
    refreshes: Work,
    /// Levels that were used.
    depth: usize,
}

/// Canonical norm of the noise that a batch's expected errors stand for, of real and imaginary parts.
fn noise_of(c: &CiphertextOf<Simulated>) -> f64 {
    c.spread().norm()
}

impl Run {
    /// Runs a circuit from fresh inputs.
    fn new(
        expr: &Expr,
        params: &Params,
        graph: &Graph,
        refresh: Option<(&Refresh, &[usize])>,
    ) -> Result<Self, MatrixError> {
        Self::from_inputs(expr, params, graph, refresh, |e, at, count| e.encryptions(at, count))
    }

    /// Runs it from inputs as they are given.
    fn from_inputs(
        expr: &Expr,
        params: &Params,
        graph: &Graph,
        refresh: Option<(&Refresh, &[usize])>,
        input: impl Fn(&Evaluator<Simulated>, EncodeAt, usize) -> Result<CiphertextOf<Simulated>, HeError>,
    ) -> Result<Self, MatrixError> {
        let e = Evaluator::with_backend(params, Simulated::new(params))?;
        let top = refresh.map_or(params.max_level(), |(refresh, _)| refresh.top());
        let floor = refresh.map_or(0, |(refresh, _)| refresh.floor());
        let mut values: Vec<CiphertextOf<Simulated>> = Vec::with_capacity(expr.nodes().len());
        let mut run = Self { nodes: Vec::new(), ledger: Ledger::default(), refreshes: Work::default(), depth: 0 };
        let mut done = Work::default();
        for (at, node) in expr.nodes().iter().enumerate() {
            let (max_abs, count) = (expr.info(at).max_abs, graph.layouts[at].ciphertexts());
            let computed = match node.operation.input() {
                Some(_) => input(&e, EncodeAt { level: top, scale: params.scale(), max_abs }, count)?,
                None => {
                    let operands: Vec<_> = node.operands.iter().map(|of| std::slice::from_ref(&values[*of])).collect();
                    let level = operands.iter().map(|c| c[0].level()).min().unwrap_or(top);
                    let prepared = Prepared::new(&e, expr, graph, at, level)?;
                    let operands: Vec<_> = operands.into_iter().map(Batch::from).collect();
                    let made = evaluate(&e, expr, graph, &prepared, at, &operands)?.pop();
                    let made = made.ok_or(MatrixError::Count { what: "batches of a node", found: 0, expected: 1 })?;
                    let noise = noise_of(&made);
                    made.settled(max_abs, noise)
                }
            };
            let level = computed.level().checked_sub(floor).ok_or_else(out_of_levels)?;
            run.depth = run.depth.max(top - floor - level);
            let before = noise_of(&computed);
            let value = match refresh.filter(|(_, after)| after.contains(&at)) {
                Some((refresh, _)) => {
                    run.refreshes += refresh.work(count);
                    refresh.refreshed(&e, computed, (max_abs, count))?
                }
                None => computed,
            };
            let now = e.backend().work();
            let held = max_abs * padding(expr, at, graph.layouts[at].tile);
            let read = rounding::largest_reading(params.degree(), held, params.max_level());
            run.nodes.push(Node {
                cost: now + done * -1.0,
                level: value.level(),
                scale: value.scale(),
                noise: (before, noise_of(&value)),
                error: value.spread().largest() / value.scale() + read,
                norm: shared::norm(&value.spread()),
            });
            done = now;
            values.push(value);
        }
        run.ledger = e.backend().ledger();
        Ok(run)
    }

    /// What all of it costs.
    fn work(&self) -> Work {
        self.ledger.work + self.refreshes
    }
}

fn out_of_levels() -> MatrixError {
    MatrixError::NoPlan { reason: "a value falls below the levels at which it can be refreshed; plan again".into() }
}

/// A node of a circuit for placing refreshes: what it costs, and the level and scale that it leaves, for operands at some
/// levels and scales.
pub(super) struct Step<'a> {
    pub expr: &'a Expr,
    pub params: &'a Params,
    pub graph: &'a Graph,
}

impl Step<'_> {
    pub fn of(&self, at: usize, operands: &[(usize, f64)]) -> Result<(usize, f64, Work), MatrixError> {
        let (expr, e) = (self.expr, Evaluator::with_backend(self.params, Simulated::new(self.params))?);
        let stands = |(of, (level, scale)): (&usize, &(usize, f64))| {
            let at = EncodeAt { level: *level, scale: *scale, max_abs: expr.info(*of).max_abs };
            Ok([e.encryptions(at, self.graph.layouts[*of].ciphertexts())?])
        };
        let values = expr.nodes()[at].operands.iter().zip(operands).map(stands);
        let values = values.collect::<Result<Vec<_>, HeError>>()?;
        let level = operands.iter().map(|(level, _)| *level).min().unwrap_or(self.params.max_level());
        let prepared = Prepared::new(&e, expr, self.graph, at, level)?;
        let batches: Vec<_> = values.iter().map(|v| Batch::from(v.as_slice())).collect();
        let made = evaluate(&e, expr, self.graph, &prepared, at, &batches)?.pop();
        let made = made.ok_or(MatrixError::Count { what: "batches of a node", found: 0, expected: 1 })?;
        Ok((made.level(), made.scale(), e.backend().work()))
    }
}

/// The largest value that the message of any ciphertext may be taken to have.
fn largest_value(expr: &Expr, tile: usize) -> f64 {
    (0..expr.nodes().len()).fold(1.0f64, |m, at| m.max(expr.info(at).max_abs * padding(expr, at, tile)))
}

/// A circuit as its specification lays it out; nothing is built.
pub(crate) struct CircuitFigures {
    params: Params,
    graph: Graph,
    nodes: Vec<Node>,
    work: Work,
    costs: Vec<Work>,
    table_bytes: u64,
    keys: KeyDemand,
    refresh: Option<Refresh>,
    /// Nodes that are refreshed.
    after: Vec<usize>,
    output: usize,
    results: Vec<usize>,
    batch: usize,
    /// Where several parties hold the key.
    flooding: Option<Flooding>,
}

/// What several parties decrypt.
struct Flooding {
    /// The norm that error polynomials of the result are expected to stay under: what noise has to hide.
    norm: f64,
    /// What the noise adds to the error of the result.
    added: f64,
}

impl CircuitFigures {
    /// The figures of a circuit.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] or [`MatrixError::Method`] for a specification that does not serve.
    pub(super) fn new(goal: &Goal, spec: &CircuitSpec) -> Result<Self, MatrixError> {
        let (expr, tile, literal) = (&goal.expression, spec.tile, &spec.params);
        if !TILES.contains(&tile) {
            return Err(MatrixError::NoPlan { reason: format!("tiles of side {tile} are not used; plan again") });
        }
        let (refresh, after) = match &spec.refresh {
            Some(written) => (Some(refreshing(goal, tile, written, literal)?), written.after.clone()),
            None => (None, Vec::new()),
        };
        let (params, graph) = (literal.build()?, graph(goal, literal, tile)?);
        let by = refresh.as_ref().map(|refresh| (refresh, after.as_slice()));
        let run = Run::new(expr, &params, &graph, by).map_err(|e| match e {
            MatrixError::He(HeError::TooLarge { .. }) => too_small(literal),
            e => e,
        })?;
        Ok(Self {
            flooding: flooding(goal, &params, &graph)?,
            params,
            graph,
            work: run.work() * goal.batch as f64,
            costs: run.nodes.iter().map(|node| node.cost).collect(),
            table_bytes: run.ledger.prepared,
            keys: KeyDemand::from(&run.ledger),
            nodes: run.nodes,
            refresh,
            after,
            output: expr.output(),
            results: expr.results().collect(),
            batch: goal.batch,
        })
    }

    /// Level and scale of a node's value.
    pub(super) fn state(&self, node: usize) -> (usize, f64) {
        (self.nodes[node].level, self.nodes[node].scale)
    }

    /// What each node needs, as a backend keeps it.
    pub(super) fn prepared<B: Backend>(&self, e: &Evaluator<B>, expr: &Expr) -> Result<Vec<Prepared<B>>, MatrixError> {
        let node = |(at, node): (usize, &sudare_expr::Node)| {
            let level = node.operands.iter().map(|of| self.nodes[*of].level).min().unwrap_or(self.nodes[at].level);
            Prepared::new(e, expr, &self.graph, at, level)
        };
        expr.nodes().iter().enumerate().map(node).collect()
    }

    /// A node's value from its operands', wherever they are.
    pub(super) fn value<B: Backend>(
        &self,
        goal: &Goal,
        e: &Evaluator<B>,
        prepared: &[Prepared<B>],
        node: usize,
        operands: &[&[CiphertextOf<B>]],
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        let (expr, graph) = (&goal.expression, &self.graph);
        let own = &expr.nodes()[node];
        let sizes: Vec<usize> = own.operands.iter().map(|o| graph.layouts[*o].ciphertexts()).collect();
        check_count("operands", operands.len(), sizes.len())?;
        for (given, size) in operands.iter().zip(&sizes) {
            check_count("ciphertexts", given.len(), size * goal.batch)?;
        }
        let (bound, noise) = (expr.info(node).max_abs, self.nodes[node].noise.0);
        let mut out = Vec::new();
        for member in 0..goal.batch {
            let parts = operands.iter().zip(&sizes);
            let parts: Vec<_> = parts.map(|(all, n)| Batch::from(&all[member * n..(member + 1) * n])).collect();
            let value = evaluate(e, expr, graph, &prepared[node], node, &parts)?;
            out.extend(value.into_iter().map(|c| c.settled(bound, noise)));
        }
        Ok(out)
    }

    /// What others take of a node.
    pub(super) fn refreshed<B: Backend>(
        &self,
        goal: &Goal,
        (e, bootstrapper): (&Evaluator<B>, &Bootstrapper<B>),
        node: usize,
        values: Vec<CiphertextOf<B>>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        let Some(refresh) = self.refresh.as_ref().filter(|_| self.after.contains(&node)) else {
            return Ok(values);
        };
        let (max_abs, noise) = (goal.expression.info(node).max_abs, self.nodes[node].noise.1);
        let values = values.into_iter().map(|c| c.with_bound(max_abs));
        let values = values.map(|c| refresh.fitted(e, c, max_abs)).collect::<Result<Vec<_>, MatrixError>>()?;
        let mut out = Vec::with_capacity(values.len());
        for some in values.chunks(TOGETHER) {
            let fresh = bootstrapper.refresh_pairs(&some.iter().collect::<Vec<_>>())?;
            out.extend(fresh.into_iter().map(|c| c.settled(max_abs, noise)));
        }
        Ok(out)
    }
}

impl program::ProgramFigures for CircuitFigures {
    fn method(&self) -> &'static str {
        if self.refresh.is_some() { "bootstrapped" } else { "circuit" }
    }

    fn refreshes(&self) -> Option<Refreshes> {
        let places = self.after.iter().map(|at| (*at, self.graph.layouts[*at].ciphertexts() * self.batch));
        Some(self.refresh.as_ref()?.refreshes(places.collect()))
    }

    fn literal(&self) -> &sudare_rlwe::params::ParamsLiteral {
        self.params.rlwe().literal()
    }

    fn keys(&self) -> KeyDemand {
        self.keys.clone()
    }

    fn work(&self) -> Work {
        self.work
    }

    fn costs(&self) -> &[Work] {
        &self.costs
    }

    fn cheaper(&self, goal: &Goal, node: usize) -> Option<String> {
        circuit::cheaper(&goal.expression, node, self.graph.layouts[node].tile)
    }

    fn table_bytes(&self) -> u64 {
        self.table_bytes + self.refresh.as_ref().map_or(0, Refresh::prepared_bytes)
    }

    fn error(&self) -> f64 {
        largest_error(&self.nodes, self.results.iter().copied()) + added(&self.flooding)
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        Some(self.nodes[node].error + if node == self.output { added(&self.flooding) } else { 0.0 })
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let count = self.graph.layouts[node].ciphertexts() * self.batch;
        Some(NodeSize { count, parts: 2, level: self.nodes[node].level })
    }
}

/// The largest error of several values.
fn largest_error(nodes: &[Node], of: impl Iterator<Item = usize>) -> f64 {
    of.map(|node| nodes[node].error).fold(0.0, f64::max)
}

/// What several parties decrypt, if it is theirs. What doubles round an input by depends on no key, and is nothing to hide.
fn flooding(goal: &Goal, params: &Params, graph: &Graph) -> Result<Option<Flooding>, MatrixError> {
    if goal.sharing.is_none() {
        return Ok(None);
    }
    let rounded = |e: &Evaluator<Simulated>, at: EncodeAt, count: usize| {
        let fresh = e.encryptions(at, count)?;
        let spread = fresh.spread().plus(-spread::doubles(params, at));
        Ok(fresh.with_spread(spread))
    };
    let run = Run::from_inputs(&goal.expression, params, graph, None, rounded)?;
    let output = goal.expression.output();
    let (norm, scale) = (run.nodes[output].norm, run.nodes[output].scale);
    let count = graph.layouts[output].ciphertexts() * goal.batch;
    Ok(Some(Flooding { norm, added: shared::added(goal, params, count, (norm, scale)) }))
}

fn added(flooding: &Option<Flooding>) -> f64 {
    flooding.as_ref().map_or(0.0, |flooding| flooding.added)
}

/// What is known of a goal's nodes for tiles of a side.
fn graph(goal: &Goal, literal: &ParamsLiteral, tile: usize) -> Result<Graph, MatrixError> {
    Ok(Graph::new(&goal.expression, literal, tile)?.shown(goal.sharing.is_some()))
}

/// The refreshes of a specification, if its parameters are the set's and every node that it names can be one's.
fn refreshing(
    goal: &Goal,
    tile: usize,
    written: &RefreshSpec,
    literal: &ParamsLiteral,
) -> Result<Refresh, MatrixError> {
    let refresh = Refresh::new(written.set, goal.security, least_ring(tile, &goal.expression), goal.batch)?;
    if refresh.params() != literal {
        return Err(field("program.params", "others", format!("those of bootstrapping set {}", written.set)));
    }
    let expr = &goal.expression;
    let ordered = written.after.windows(2).all(|w| w[0] < w[1]);
    let inner = |at: &usize| *at < expr.nodes().len() && expr.input_at(*at).is_none();
    match ordered && written.after.iter().all(inner) {
        true => Ok(refresh),
        false => Err(field("program.refresh.after", format!("{:?}", written.after), "operations in their order")),
    }
}

/// log2 of the degree of the least ring that holds a tile, or the cube of a product.
fn least_ring(tile: usize, expr: &Expr) -> u32 {
    let slots = if multiplies(expr) { tile.pow(3) } else { tile.pow(2) };
    (1 + slots.trailing_zeros()).max(11)
}

/// Sides of tiles for an expression.
fn tiles(expr: &Expr) -> impl Iterator<Item = usize> {
    let products = multiplies(expr);
    let longest = expr.inputs().iter().map(|i| i.rows.max(i.cols)).max().unwrap_or(1).next_power_of_two();
    TILES.into_iter().filter(move |tile| (*tile <= 4 || *tile < 2 * longest) && !(products && *tile > 32))
}

/// Circuits that are refreshed, for each set and each side of tiles, at the places that `price` finds cheapest.
pub(super) fn refreshed(goal: &Goal, sets: &[BootstrapSet], price: impl Fn(&Work, u32) -> f64) -> Vec<CircuitSpec> {
    let expr = &goal.expression;
    let all = sets.iter().flat_map(|set| tiles(expr).map(move |tile| (*set, tile)));
    all.filter_map(|(set, tile)| {
        let refresh = Refresh::new(set, goal.security, least_ring(tile, expr), goal.batch).ok()?;
        let params = refresh.params();
        let (built, graph) = (params.build().ok()?, Graph::new(expr, params, tile).ok()?);
        let step = Step { expr, params: &built, graph: &graph };
        let after = refresh.placed(&step, |work| price(&(*work * goal.batch as f64), params.log_n))?;
        Some(CircuitSpec { tile, params: params.clone(), refresh: Some(RefreshSpec { set, after }) })
    })
    .collect()
}

/// Circuits for an expression: for each side of tiles the one that `price` finds cheapest.
pub(super) fn candidates(goal: &Goal, price: impl Fn(&Work, u32) -> f64) -> Vec<CircuitSpec> {
    let expr = &goal.expression;
    let mut out = Vec::new();
    let wanted = goal.private_error();
    for tile in tiles(expr) {
        let headroom = largest_value(expr, tile).log2().ceil() as u32 + 3;
        let mut best: Option<(f64, CircuitSpec)> = None;
        for scale in SCALES {
            // Scales past the fast kernels' primes are for what the others cannot reach.
            if scale > sizing::PRIME_BITS && best.is_some() {
                break;
            }
            let first = first_primes(scale + headroom);
            // No prime is as large as a larger scale, and so nothing is rescaled by one.
            let depth = if scale > MAX_PRIME_BITS { Some(0) } else { depth(goal, tile, (&first, scale)) };
            let Some(depth) = depth else { continue };
            for special in 1..=3usize {
                let Some(literal) = literal(goal, least_ring(tile, expr), (&first, scale), depth, special) else {
                    continue;
                };
                let run = || {
                    let (params, graph) = (literal.build()?, graph(goal, &literal, tile)?);
                    let run = Run::new(expr, &params, &graph, None)?;
                    let added = added(&flooding(goal, &params, &graph)?);
                    Ok::<_, MatrixError>((largest_error(&run.nodes, expr.results()) + added, run))
                };
                let Ok((error, run)) = run() else { continue };
                if error <= wanted {
                    let cost = price(&(run.work() * goal.batch as f64), literal.log_n);
                    if best.as_ref().is_none_or(|(c, _)| cost < *c) {
                        best = Some((cost, CircuitSpec { tile, params: literal, refresh: None }));
                    }
                }
            }
        }
        out.extend(best.map(|(_, spec)| spec));
    }
    out
}

/// Levels that an expression takes, with primes of `scale` bits above the first ones.
fn depth(goal: &Goal, tile: usize, (first, scale): (&[u32], u32)) -> Option<usize> {
    let expr = &goal.expression;
    let literal = ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n: least_ring(tile, expr),
            q_bits: first.iter().copied().chain(std::iter::repeat_n(scale, MAX_DEPTH)).collect(),
            p_bits: vec![MAX_PRIME_BITS],
            digit_limbs: 1,
            secret: goal.secret(),
            security: Security::Insecure,
        },
        log_scale: scale,
    };
    let (params, graph) = (literal.build().ok()?, graph(goal, &literal, tile).ok()?);
    let depth = Run::new(expr, &params, &graph, None).ok()?.depth;
    // A second low prime is a level that nothing is rescaled by.
    (depth <= MAX_DEPTH).then_some(depth)
}

/// The primes that hold a result of `bits` bits: as few as do, all of a size.
fn first_primes(bits: u32) -> Vec<u32> {
    let count = bits.div_ceil(MAX_PRIME_BITS);
    vec![bits.div_ceil(count); count as usize]
}

/// The least ring that holds a chain of `depth` primes above the first ones.
fn literal(
    goal: &Goal,
    least: u32,
    (first, scale): (&[u32], u32),
    depth: usize,
    special: usize,
) -> Option<ParamsLiteral> {
    let q_bits: Vec<u32> = first.iter().copied().chain(std::iter::repeat_n(scale, depth)).collect();
    if special > q_bits.len() {
        return None;
    }
    let digit = q_bits.chunks(special).map(|d| d.iter().sum::<u32>()).max()?;
    let bits = digit.div_ceil(special as u32);
    let total = q_bits.iter().sum::<u32>() + bits * special as u32;
    let log_n =
        (least..=17).find(|n| max_log_qp(*n, goal.secret(), goal.security).is_some_and(|limit| total <= limit))?;
    Some(ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits,
            p_bits: vec![bits; special],
            digit_limbs: special,
            secret: goal.secret(),
            security: goal.security,
        },
        log_scale: scale,
    })
}

/// A circuit under built parameters.
pub(crate) struct Circuit {
    figures: CircuitFigures,
    prepared: Tables<Vec<Prepared<sudare_rlwe::Cpu>>>,
}

impl Circuit {
    pub(super) fn new(goal: &Goal, spec: &CircuitSpec) -> Result<Self, MatrixError> {
        Ok(Self { figures: CircuitFigures::new(goal, spec)?, prepared: Tables::new() })
    }

    /// What each node needs, made at the first call.
    fn tables(&self, goal: &Goal) -> Result<&[Prepared<sudare_rlwe::Cpu>], MatrixError> {
        let params = &self.figures.params;
        let made =
            || self.figures.prepared(&Evaluator::new(params, EvalKeys::new(params, KeyId::NONE))?, &goal.expression);
        self.prepared.get(made).map(Vec::as_slice)
    }

    #[cfg(test)]
    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.is_made()
    }
}

impl CkksEngine for Circuit {
    fn params(&self) -> &Params {
        &self.figures.params
    }

    fn figures(&self) -> &dyn program::ProgramFigures {
        &self.figures
    }

    fn prepare(&self, goal: &Goal) -> Result<(), MatrixError> {
        self.tables(goal).map(drop)
    }

    fn expected(&self) -> Expected {
        let (level, scale) = self.figures.state(self.figures.output);
        let error = match &self.figures.flooding {
            Some(flooding) => flooding.norm / scale,
            None => program::ProgramFigures::error(&self.figures),
        };
        Expected { level, scale, error }
    }

    fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let encoder = Encoder::new(&self.figures.params);
        let at = EncodeAt { level: self.figures.state(node).0, ..encoder.at_top(goal.expression.info(node).max_abs) };
        let all = matrices.iter().map(|m| self.figures.graph.layouts[node].encode(&encoder, m, at));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn decode(&self, goal: &Goal, node: usize, values: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        let layout = &self.figures.graph.layouts[node];
        check_count("result plaintexts", values.len(), layout.ciphertexts() * goal.batch)?;
        values.chunks(layout.ciphertexts()).map(|tiles| layout.decode(&self.figures.params, tiles)).collect()
    }

    fn bootstrap(&self) -> Option<&BootstrapLiteral> {
        self.figures.refresh.as_ref().map(Refresh::literal)
    }

    fn refreshed(
        &self,
        goal: &Goal,
        (e, bootstrapper): (&Evaluator, &Bootstrapper),
        node: usize,
        values: Vec<Ciphertext>,
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.figures.refreshed(goal, (e, bootstrapper), node, values)
    }

    fn evaluate(
        &self,
        goal: &Goal,
        e: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.figures.value(goal, e, self.tables(goal)?, node, operands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_expr::{InputSpec, Lines, Operation};
    use sudare_he::ckks::Encryptor;
    use sudare_rlwe::keys::{KeyGenerator, SecretKey};
    use sudare_rlwe::security::SecretDistribution;

    fn small(levels: usize) -> ParamsLiteral {
        ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n: 11,
                q_bits: std::iter::once(55).chain(std::iter::repeat_n(40, levels)).collect(),
                p_bits: vec![50, 50],
                digit_limbs: 2,
                secret: SecretDistribution::Ternary,
                security: Security::Insecure,
            },
            log_scale: 38,
        }
    }

    /// The same lines on ciphertexts, with no key but those that the simulation names: levels, scales and counters are equal
    /// to the last bit.
    fn runs_as_simulated(shapes: [(usize, usize); 2], operations: &[(Operation, &[usize])]) {
        let inputs = ["A", "B"].into_iter().zip(shapes).map(|(name, shape)| InputSpec::new(name, shape, 1.0)).collect();
        let made = operations.iter().map(|(operation, of)| sudare_expr::Node::new(operation.clone(), of));
        let nodes: Vec<_> = (0..2).map(sudare_expr::Node::input).chain(made).collect();
        let last = nodes.len() - 1;
        let expr = Expr::new(inputs, nodes, last).unwrap();
        let goal = Goal { security: Security::Insecure, ..Goal::new(expr.clone(), 1.0) };
        let circuit = Circuit::new(&goal, &CircuitSpec { tile: 4, params: small(6), refresh: None }).unwrap();
        let (params, figures) = (circuit.params(), &circuit.figures);
        let secret = SecretKey::generate(params).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let keys = match (figures.keys.relin, figures.keys.galois.is_empty()) {
            (None, true) => EvalKeys::new(params, secret.id()),
            (relin, _) => generator.eval_keys(relin, &figures.keys.galois).unwrap(),
        };
        let e = Evaluator::new(params, keys).unwrap();
        let encryptor = Encryptor::with_secret_key(&secret).unwrap();
        circuit.prepare(&goal).unwrap();
        e.reset_counters();
        let mut values: Vec<Vec<Ciphertext>> = Vec::new();
        for (at, node) in expr.nodes().iter().enumerate() {
            let value = match node.operation {
                Operation::Input { .. } => {
                    let (rows, cols) = expr.info(at).shape;
                    let all = [Matrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 3) % 11) as f64 / 11.0).unwrap()];
                    circuit.encode(&goal, at, &all).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
                }
                _ => {
                    let operands: Vec<&[Ciphertext]> = node.operands.iter().map(|of| values[*of].as_slice()).collect();
                    circuit.evaluate(&goal, &e, at, &operands).unwrap()
                }
            };
            assert_eq!(value.len(), figures.graph.layouts[at].ciphertexts(), "{expr}: {at}");
            for c in &value {
                assert_eq!((c.level(), c.scale()), figures.state(at), "{expr}: {at}");
            }
            values.push(value);
        }
        let run = Run::new(&expr, params, &figures.graph, None).unwrap();
        assert_eq!(e.counters(), run.ledger.counters, "{expr}");
        assert_eq!(KeyDemand::from(&run.ledger), figures.keys);
    }

    #[test]
    fn simulation_is_the_run_of_circuits() {
        let take = |axis: u8, start: usize, count: usize, at: usize, size: usize| Operation::Take {
            axis,
            lines: Lines { start, step: 1, count, at, stride: 1, size },
        };
        let (m, k, n) = (9, 6, 5);
        runs_as_simulated([(m, k), (k, n)], &[(Operation::Matmul, &[0, 1]), (Operation::Mul, &[2, 2])]);
        for axis in [0, 1] {
            let along = |line: usize, other: usize| if axis == 0 { (line, other) } else { (other, line) };
            runs_as_simulated([(m, k), (k, n)], &[(Operation::Matmul, &[0, 1]), (Operation::Sum { axis }, &[2])]);
            // A line that is a tile's only one, repeated; lines of which others stay behind; what is put together.
            let repeated = [
                (take(axis, 4, 1, 0, 1), &[0][..]),
                (Operation::Repeat { axis, size: 7 }, &[2]),
                (Operation::Add, &[3, 1]),
            ];
            runs_as_simulated([along(5, 5), along(7, 5)], &repeated);
            let cut = [
                (take(axis, 1, 4, 0, 4), &[0][..]),
                (Operation::Scale { by: 0.3 }, &[2]),
                (Operation::Neg, &[3]),
                (Operation::Sub, &[4, 1]),
            ];
            runs_as_simulated([along(6, 6), along(4, 6)], &cut);
            let joined =
                [(take(axis, 0, 6, 0, 12), &[0][..]), (take(axis, 0, 6, 6, 12), &[1]), (Operation::Add, &[2, 3])];
            runs_as_simulated([(6, 6), (6, 6)], &joined);
        }
        let turned = [
            (Operation::Transpose, &[0][..]),
            (Operation::Shift { by: 2.0 }, &[2]),
            (Operation::Scale { by: 3.0 }, &[3]),
            (Operation::Bounded { max_abs: 9.0 }, &[4]),
            (Operation::Sub, &[5, 1]),
        ];
        runs_as_simulated([(m, n), (n, m)], &turned);
        // Scales that differ, on either side.
        runs_as_simulated([(m, n), (m, n)], &[(Operation::Mul, &[0, 1]), (Operation::Sub, &[2, 0])]);
        runs_as_simulated([(m, n), (m, n)], &[(Operation::Mul, &[0, 1]), (Operation::Add, &[1, 2])]);
    }
}
