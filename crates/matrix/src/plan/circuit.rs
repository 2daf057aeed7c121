//! Whole expressions on tiled matrices: levels, scales, keys and the evaluation.
//!
//! Levels and exact scales of every node are found by walking the graph as the evaluator will.
//! Operations use levels as follows: sum, transpose, product element by element and with a number
//! that is no integer one each; a slice one where lines of a tile stay behind; a matrix product two, and a third where its result is worked on
//! further; a sum of values with different histories one, to bring their scales together.
//!
//! # Errors
//! Errors of a fresh matrix are independent from element to element, so that a sum of n of them
//! grows with √n. What a matrix product leaves is not: the error of one element of a factor is in a
//! whole row or column of the result, and matrices that are all alike let it add up n times. Both
//! parts are carried along ([`Error`]).
//!
//! The evaluator's worst-case bounds grow with every mask by the number of its slots, and after four
//! or five products in a row no modulus would hold them. What a node's ciphertexts carry on is the
//! plan's own bound, as it is for the size of their messages.

use super::program::{self, CkksEngine, NodeSize, Refreshes};
use super::refresh::{Refresh, RefreshSpec};
use super::{Goal, field};
use crate::error::MatrixError;
use crate::product::{KeyDemand, Peak, Shape};
use crate::slots::common::{KeyList, check_count, fold_work, hoisted_sum_work, radices, stages};
use crate::slots::cube::{Cube, CubePlan, Improvements, Side};
use crate::slots::error_model::ErrorModel;
use crate::slots::follow::{self, Follow};
use crate::slots::tiles::{Axis, TileLayout};
use crate::tables::Tables;
use crate::{Work, sizing};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use sudare_expr::{Expr, Matrix, Node, Operation};
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet, Bootstrapper};
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{
    self, Ciphertext, CiphertextOf, EncodeAt, Encoder, Evaluator, Expected, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::security::{SecretDistribution, max_log_qp};
use sudare_rlwe::{Backend, KeyId};

/// Ciphertexts that are refreshed together: a pair, which takes as much memory as keys do.
pub(crate) const TOGETHER: usize = 2;
/// Sides of tiles that are tried.
const TILES: [usize; 6] = [4, 8, 16, 32, 64, 128];
/// Largest integer that a value is multiplied with at no cost in levels.
const MAX_INTEGER: f64 = 1048576.0;
/// Deepest circuit that is looked for.
const MAX_DEPTH: usize = 48;
/// Most bits of a prime.
const MAX_PRIME_BITS: u32 = 60;

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

/// Level and scale of a node's ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub level: usize,
    pub scale: f64,
}

/// How two operands are brought to one scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// They have it already.
    Same,
    /// The left one is changed.
    Left,
    /// The right one is changed.
    Right,
}

/// The states of all nodes under one set of primes.
#[derive(Clone, Default)]
pub(super) struct Walk {
    /// As each node leaves its operation.
    computed: Vec<State>,
    /// As others take it: refreshed, where it is.
    pub states: Vec<State>,
    aligns: Vec<Align>,
}

/// What a walk goes down: from which level and scale inputs start, what a rescale at a level divides by, and how far
/// it goes.
pub(super) struct Ladder<'a> {
    pub tile: usize,
    pub top: usize,
    pub scale: f64,
    pub prime: &'a dyn Fn(usize) -> f64,
    /// What refreshes; levels under its inputs' are its own.
    pub refresh: Option<&'a Refresh>,
}

fn out_of_levels(depth: usize) -> MatrixError {
    MatrixError::NoPlan { reason: format!("the expression needs more than {depth} levels") }
}

fn no_circuit(operation: &Operation) -> MatrixError {
    MatrixError::NoPlan { reason: format!("{} is no circuit on tiles", operation.name()) }
}

pub(crate) fn is_integer(by: f64) -> bool {
    by.fract() == 0.0 && by.abs() <= MAX_INTEGER
}

/// Whether a node's value is only decrypted.
fn is_last(expr: &Expr, node: usize) -> bool {
    node == expr.output() && !expr.nodes().iter().any(|n| n.operands.contains(&node))
}

pub(super) fn options(expr: &Expr, node: usize) -> Improvements {
    Improvements { clean_output: !is_last(expr, node), ..Improvements::ALL }
}

/// Whether two scales are one to the evaluator.
pub(crate) fn same_scale(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < (-44f64).exp2()
}

impl Walk {
    /// Walks the graph; nodes in `after` are refreshed.
    fn new(expr: &Expr, ladder: &Ladder<'_>, after: &[usize]) -> Result<Self, MatrixError> {
        let mut walk = Self::default();
        for at in 0..expr.nodes().len() {
            walk.step(expr, ladder, after.contains(&at))?;
        }
        Ok(walk)
    }

    /// Adds the next node, `refreshed` or as it is computed.
    pub fn step(&mut self, expr: &Expr, ladder: &Ladder<'_>, refreshed: bool) -> Result<(), MatrixError> {
        let at = self.states.len();
        let (computed, align) = self.computed(expr, ladder, at)?;
        let state = match (refreshed, ladder.refresh) {
            (false, _) => computed,
            (true, Some(refresh)) => refresh.state(computed, expr.info(at).max_abs)?,
            (true, None) => return Err(MatrixError::NoBootstrap),
        };
        self.computed.push(computed);
        self.states.push(state);
        self.aligns.push(align);
        Ok(())
    }

    fn computed(&self, expr: &Expr, ladder: &Ladder<'_>, at: usize) -> Result<(State, Align), MatrixError> {
        let (states, floor) = (&self.states, ladder.refresh.map_or(0, Refresh::floor));
        let lower = |s: State, by: usize| -> Result<State, MatrixError> {
            let level = s.level.checked_sub(by).filter(|l| *l >= floor);
            Ok(State { level: level.ok_or_else(|| out_of_levels(ladder.top - floor))?, ..s })
        };
        let mut align = Align::Same;
        let state = match expr.nodes()[at].parts() {
            (Operation::Input { .. }, _) => State { level: ladder.top, scale: ladder.scale },
            (
                Operation::Neg | Operation::Shift { .. } | Operation::Bounded { .. } | Operation::Repeat { .. },
                &[of],
            )
            | (Operation::Approximation { .. }, &[of, _]) => states[of],
            (&Operation::Take { axis: along, lines }, &[of]) => {
                let before = layout(expr, of, ladder.tile, 1)?;
                lower(states[of], before.take_levels(axis(along), &lines))?
            }
            (&Operation::Scale { by }, &[of]) => lower(states[of], usize::from(!is_integer(by)))?,
            (Operation::Transpose, &[of]) => lower(states[of], usize::from(ladder.tile > 1))?,
            (Operation::Sum { .. }, &[of]) => lower(states[of], 1)?,
            (Operation::Mul, &[left, right]) => {
                let (l, r) = (states[left], states[right]);
                let level = l.level.min(r.level);
                lower(State { level, scale: l.scale * r.scale / (ladder.prime)(level) }, 1)?
            }
            (Operation::Matmul, &[left, right]) => {
                let (l, r) = (states[left], states[right]);
                let level = l.level.min(r.level);
                let depth = options(expr, at).depth();
                let s = lower(State { level, ..l }, depth)?;
                State { scale: l.scale * r.scale / (ladder.prime)(level - 1), ..s }
            }
            (Operation::Add | Operation::Sub, &[left, right]) => {
                let (mut l, mut r) = (states[left], states[right]);
                if !same_scale(l.scale, r.scale) {
                    if l.level >= r.level {
                        align = Align::Left;
                        l = State { scale: r.scale, ..lower(l, 1)? };
                    } else {
                        align = Align::Right;
                        r = State { scale: l.scale, ..lower(r, 1)? };
                    }
                }
                State { level: l.level.min(r.level), scale: l.scale }
            }
            (operation, _) => return Err(no_circuit(operation)),
        };
        Ok((state, align))
    }
}

pub(super) fn axis(axis: u8) -> Axis {
    if axis == 0 { Axis::Rows } else { Axis::Columns }
}

/// The cube of a matrix product whose operands meet at `level`.
pub(crate) fn cube_plan(
    literal: &ParamsLiteral,
    tile: usize,
    options: Improvements,
    level: usize,
) -> Result<CubePlan, MatrixError> {
    let plan = CubePlan::new(Shape::new(tile, tile, tile), literal, options)?;
    Ok(CubePlan { top: level, ..plan })
}

/// Whether an expression has products of matrices.
fn multiplies(expr: &Expr) -> bool {
    expr.nodes().iter().any(|node| node.operation == Operation::Matmul)
}

/// The stride of elements: what the cube's lanes give, so that products take tiles as they are.
pub(super) fn stride(expr: &Expr, literal: &ParamsLiteral, tile: usize) -> usize {
    let slots = 1usize << literal.log_n.saturating_sub(1);
    if multiplies(expr) { (slots / tile.pow(3)).max(1) } else { 1 }
}

pub(super) fn layout(expr: &Expr, node: usize, tile: usize, stride: usize) -> Result<TileLayout, MatrixError> {
    let (rows, cols) = expr.info(node).shape;
    TileLayout::new(rows, cols, tile, stride)
}

/// Largest error of real or of imaginary parts, in two parts that add up.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Independent from element to element.
    own: f64,
    /// What elements may have in common.
    common: f64,
}

impl Part {
    fn total(self) -> f64 {
        self.own + self.common
    }

    fn scaled(self, by: f64) -> Self {
        Self { own: self.own * by, common: self.common * by }
    }

    fn plus(self, other: Self) -> Self {
        Self { own: self.own + other.own, common: self.common + other.common }
    }
}

/// Largest error of a node's elements, and of what stands in their slots' imaginary parts: a refresh takes that away, or
/// gives it to another element's real part.
#[derive(Clone, Copy, Debug, Default)]
struct Error {
    real: Part,
    imaginary: Part,
}

impl Error {
    /// An error with independent elements.
    fn own(own: f64) -> Self {
        let part = Part { own, common: 0.0 };
        Self { real: part, imaginary: part }
    }

    /// An error that elements may have in common.
    fn common(common: f64) -> Self {
        Self::own(common).shared()
    }

    /// The elements' own.
    fn total(self) -> f64 {
        self.real.total()
    }

    fn each(self, f: impl Fn(Part) -> Part) -> Self {
        Self { real: f(self.real), imaginary: f(self.imaginary) }
    }

    fn scaled(self, by: f64) -> Self {
        self.each(|part| part.scaled(by))
    }

    fn plus(self, other: Self) -> Self {
        Self { real: self.real.plus(other.real), imaginary: self.imaginary.plus(other.imaginary) }
    }

    /// That of a sum of `terms` elements.
    fn summed(self, terms: f64) -> Self {
        self.each(|part| Part { own: part.own * terms.sqrt(), common: part.common * terms })
    }

    /// The same, as one that elements may have in common.
    fn shared(self) -> Self {
        self.each(|part| Part { own: 0.0, common: part.total() })
    }

    /// What two errors multiply to. Each part has two products: of the real one they have opposite signs in a square, where the
    /// larger counts; those of the imaginary one add up there.
    fn times(self, other: Self) -> Self {
        let [a, b] = [self, other].map(|e| (e.real.total(), e.imaginary.total()));
        let part = |common: f64| Part { own: 0.0, common };
        Self { real: part((a.0 * b.0).max(a.1 * b.1)), imaginary: part(a.0 * b.1 + a.1 * b.0) }
    }

    /// After a refresh of real slots that adds `added`; `paired` with others alike.
    fn refreshed(self, added: Self, paired: bool) -> Self {
        let given = if paired { self.imaginary } else { Part::default() };
        Self { real: self.real.plus(given).plus(added.real), imaginary: added.imaginary }
    }
}

/// Canonical norm of the noise that an error stands for.
fn noise(error: Error, scale: f64) -> f64 {
    (error.real.total() + error.imaginary.total()) * scale
}

/// What the last node of a walk costs, and the bytes of tables that it needs. Its own refresh is not in it.
pub(super) fn node_work(
    expr: &Expr,
    literal: &ParamsLiteral,
    tile: usize,
    walk: &Walk,
    at: usize,
) -> Result<(Work, u64), MatrixError> {
    let stride = stride(expr, literal, tile);
    let (tiles, state) = (layout(expr, at, tile, stride)?.ciphertexts() as f64, walk.computed[at]);
    let pass = Work::passes_at(literal, state.level, 2.0);
    let untabled = |work: Work| Ok((work, 0));
    match expr.nodes()[at].parts() {
        (Operation::Input { .. } | Operation::Bounded { .. } | Operation::Approximation { .. }, _) => {
            untabled(Work::default())
        }
        (&Operation::Scale { by, .. }, _) if !is_integer(by) => {
            untabled((pass + Work::rescale(literal, state.level + 1)) * tiles)
        }
        (Operation::Neg | Operation::Shift { .. } | Operation::Scale { .. }, _) => untabled(pass * tiles),
        (Operation::Transpose, _) if tile == 1 => untabled(Work::default()),
        (Operation::Transpose, &[of]) => {
            let (level, babies) = (walk.states[of].level, ((2 * tile) as f64).sqrt());
            let one = hoisted_sum_work(literal, level, babies)
                + Work::key_switch(literal, level) * babies
                + Work::mul_plain(literal, level) * (2 * tile) as f64;
            Ok((one * tiles, (2 * tile - 1) as u64 * sizing::extended_bytes(literal, level)))
        }
        (&Operation::Take { axis: a, lines }, &[of]) => {
            untabled(layout(expr, of, tile, stride)?.take_work(literal, axis(a), &lines, walk.states[of].level))
        }
        (&Operation::Repeat { axis: a, size }, &[of]) => {
            untabled(layout(expr, of, tile, stride)?.repeat_work(literal, axis(a), size, state.level))
        }
        (&Operation::Sum { axis: a }, &[of]) => {
            let (before, level) = (layout(expr, of, tile, stride)?, walk.states[of].level);
            let unit = if a == 0 { tile * stride } else { stride } as i64;
            let fold = fold_work(literal, level, &stages(tile, unit, 2), true);
            let masked = Work::mul_plain(literal, level) + Work::rescale(literal, level);
            untabled(pass * before.ciphertexts() as f64 + (fold + masked) * tiles)
        }
        (Operation::Mul, _) => {
            let level = state.level + 1;
            untabled((Work::tensor(literal, level) + Work::relinearize_rescale(literal, level)) * tiles)
        }
        (Operation::Matmul, &[left, right]) => {
            let top = walk.states[left].level.min(walk.states[right].level);
            let plan = cube_plan(literal, tile, options(expr, at), top)?;
            let (a, b) = (layout(expr, left, tile, stride)?, layout(expr, right, tile, stride)?);
            let work = plan.expand_work(literal, Side::Left) * a.ciphertexts() as f64
                + plan.expand_work(literal, Side::Right) * b.ciphertexts() as f64
                + plan.contract_work(literal, a.tiles().1) * tiles;
            Ok((work, plan.table_bytes(literal)))
        }
        (Operation::Add | Operation::Sub, _) if walk.aligns[at] != Align::Same => {
            untabled((pass * 2.0 + Work::rescale(literal, state.level + 1)) * tiles)
        }
        (Operation::Add | Operation::Sub, _) => untabled(pass * tiles),
        (operation, _) => Err(no_circuit(operation)),
    }
}

/// Work and predicted errors of a walk.
struct Figures<'a> {
    work: Work,
    /// The part of it that is each node's.
    costs: Vec<Work>,
    /// Error of each node, as it leaves its operation.
    computed: Vec<Error>,
    /// Error of each node, as it is worked on: refreshed, where it is.
    errors: Vec<Error>,
    /// What the evaluator will say of each node's ciphertexts.
    states: Vec<follow::State>,
    follow: Follow<'a>,
    table_bytes: u64,
}

impl<'a> Figures<'a> {
    fn new(
        expr: &Expr,
        literal: &'a ParamsLiteral,
        tile: usize,
        walk: &Walk,
        refresh: Option<(&Refresh, &[usize])>,
    ) -> Result<Self, MatrixError> {
        let nodes = expr.nodes().len();
        let mut figures = Self {
            work: Work::default(),
            costs: Vec::with_capacity(nodes),
            computed: Vec::with_capacity(nodes),
            errors: Vec::with_capacity(nodes),
            states: Vec::with_capacity(nodes),
            follow: Follow::new(literal),
            table_bytes: 0,
        };
        for at in 0..nodes {
            figures.node(expr, literal, tile, walk, at)?;
            if let Some((refresh, _)) = refresh.filter(|(_, after)| after.contains(&at)) {
                let tiles = layout(expr, at, tile, stride(expr, literal, tile))?.ciphertexts();
                figures.refreshed(refresh, walk, (at, expr.info(at).max_abs, tiles));
                figures.work += refresh.work(tiles);
            }
        }
        Ok(figures)
    }

    /// The last node with new levels: what a refresh adds is independent from element to element.
    fn refreshed(&mut self, refresh: &Refresh, walk: &Walk, (at, max_abs, tiles): (usize, f64, usize)) {
        let (State { level, scale }, added) = (walk.states[at], Error::own(refresh.error(max_abs)));
        let error = self.computed[at].refreshed(added, refresh.pairs(tiles));
        self.errors[at] = error;
        self.states[at] = follow::State { level, scale, bound: max_abs, noise: noise(error, scale) };
    }

    /// Adds the node `at`, all before it being there.
    fn node(
        &mut self,
        expr: &Expr,
        literal: &ParamsLiteral,
        tile: usize,
        walk: &Walk,
        at: usize,
    ) -> Result<(), MatrixError> {
        let model = ErrorModel::new(literal);
        let stride = stride(expr, literal, tile);
        let own = |variance: f64| Error::own(ErrorModel::largest(variance));
        let state = walk.computed[at];
        let division = own(model.division(state.scale));
        let size = |node: usize| expr.info(node).max_abs;
        let (work, table_bytes) = node_work(expr, literal, tile, walk, at)?;
        self.work += work;
        self.costs.push(work);
        self.table_bytes += table_bytes;
        let error = match expr.nodes()[at].parts() {
            (Operation::Input { .. }, _) => {
                Error::own(ErrorModel::largest_sum(model.fresh() + model.encoding(size(at)), 1))
            }
            (Operation::Neg | Operation::Bounded { .. }, &[of]) => self.errors[of],
            (&Operation::Approximation { error, .. }, &[of, _]) => self.errors[of].plus(Error::common(error)),
            (&Operation::Repeat { axis: a, size: times }, &[of]) => {
                // Copies have one error in common.
                let turns = layout(expr, of, tile, stride)?.repeat_turns(axis(a), times) as f64;
                let switching = model.switching(state.level, state.scale) + model.division(state.scale);
                self.errors[of].shared().plus(own(switching * turns))
            }
            (&Operation::Take { axis: a, lines }, &[of]) => {
                let (before, level) = (layout(expr, of, tile, stride)?, walk.states[of].level);
                let terms = before.take_terms(&lines) as f64;
                let spread = model.switching(level, state.scale) + model.division(state.scale);
                let mask = model.mask(tile * tile * stride, model.prime(level));
                let (levels, held) = (before.take_levels(axis(a), &lines) as f64, size(of).powi(2));
                self.errors[of].plus(own((spread + levels * held * mask) * terms)).plus(division)
            }
            (&Operation::Shift { by }, &[of]) => {
                self.errors[of].plus(own(model.encoded(state.scale) + model.encoding(by.abs())))
            }
            (&Operation::Scale { by }, &[of]) => {
                let scaled = self.errors[of].scaled(by.abs());
                // The number is rounded to a multiple of one over the prime.
                let rounded = || size(of) * 0.5 / model.prime(state.level + 1);
                match is_integer(by) {
                    true => scaled,
                    false => scaled.plus(division).plus(Error::common(rounded())),
                }
            }
            (Operation::Transpose, &[of]) => {
                let level = walk.states[of].level;
                let steps = 2.0 * (2.0 * tile as f64).sqrt();
                let spread = model.switching(level, state.scale) + model.division(state.scale);
                let mask = model.mask(tile * tile * stride, model.prime(level));
                let variance = spread * steps + size(of).powi(2) * mask * (2 * tile) as f64;
                self.errors[of].plus(own(variance)).plus(division)
            }
            (&Operation::Sum { axis: a }, &[of]) => {
                let level = walk.states[of].level;
                let (rows, cols) = expr.info(of).shape;
                let terms = if a == 0 { rows } else { cols } as f64;
                let variance = tile as f64 * (model.switching(level, state.scale) + model.division(state.scale));
                let mask = (terms * size(of)).powi(2) * model.mask(tile * tile * stride, model.prime(level));
                self.errors[of].summed(terms).plus(own(variance + mask)).plus(division)
            }
            (Operation::Mul, &[left, right]) => {
                let level = state.level + 1;
                let (l, r) = (self.errors[left], self.errors[right]);
                let product = walk.states[left].scale * walk.states[right].scale;
                let switching = own(model.switching(level, product));
                r.scaled(size(left)).plus(l.scaled(size(right))).plus(l.times(r)).plus(switching).plus(division)
            }
            (Operation::Matmul, &[left, right]) => {
                let top = walk.states[left].level.min(walk.states[right].level);
                let plan = cube_plan(literal, tile, options(expr, at), top)?;
                let across = layout(expr, left, tile, stride)?.tiles().1;
                let sizes = [size(left), size(right)];
                let (l, r) = (self.errors[left], self.errors[right]);
                let terms = expr.info(left).shape.1 as f64;
                let from = r.summed(terms).scaled(sizes[0]).plus(l.summed(terms).scaled(sizes[1])).shared();
                let made = Error::common(plan.own_error(literal, across, sizes));
                from.plus(l.times(r).scaled(terms)).plus(made)
            }
            (Operation::Add | Operation::Sub, &[left, right]) => {
                let sum = self.errors[left].plus(self.errors[right]).plus(division);
                // What is left of two scales that are taken for one.
                let (unlike, of) = match walk.aligns[at] {
                    Align::Same => (walk.states[left].scale / walk.states[right].scale - 1.0, right),
                    Align::Left => (0.5 / model.prime(walk.states[left].level), left),
                    Align::Right => (0.5 / model.prime(walk.states[right].level), right),
                };
                sum.plus(Error::common(unlike.abs() * size(of)))
            }
            (operation, _) => return Err(no_circuit(operation)),
        };
        self.computed.push(error);
        self.errors.push(error);
        let mut followed = self.followed(expr, tile, walk, at)?;
        if expr.input_at(at).is_none() {
            followed.bound = followed.bound.min(size(at));
            followed.noise = followed.noise.min(noise(error, followed.scale));
        }
        self.states.push(followed);
        Ok(())
    }

    /// The ciphertexts of the node `at` on paper.
    fn followed(&mut self, expr: &Expr, tile: usize, walk: &Walk, at: usize) -> Result<follow::State, MatrixError> {
        let (follow, states) = (&mut self.follow, &self.states);
        Ok(match expr.nodes()[at].parts() {
            (Operation::Input { .. }, _) => {
                follow::State { level: walk.states[at].level, ..follow.fresh(expr.info(at).max_abs) }
            }
            (Operation::Neg, &[of]) => states[of],
            (&Operation::Bounded { max_abs }, &[of]) => states[of].with_bound(states[of].bound.min(max_abs)),
            (Operation::Approximation { .. }, &[of, _]) => states[of],
            (&Operation::Take { axis: along, lines }, &[of]) => {
                layout(expr, of, tile, 1)?.take_follow(follow, axis(along), &lines, states[of])
            }
            (&Operation::Repeat { axis: along, size }, &[of]) => {
                let turns = layout(expr, of, tile, 1)?.repeat_turns(axis(along), size);
                follow.doubled(states[of], turns)
            }
            (&Operation::Shift { by }, &[of]) => follow.add_plain(states[of], by.abs()),
            (&Operation::Scale { by }, &[of]) if is_integer(by) => follow.mul_integer(states[of], by.abs()),
            (&Operation::Scale { by }, &[of]) => follow.masked(states[of], by.abs()),
            (Operation::Transpose, &[of]) if tile > 1 => {
                let (diagonals, giants) = TileLayout::transposition_size(tile);
                follow.linear_map(states[of], diagonals, giants)
            }
            (Operation::Transpose, &[of]) => states[of],
            (&Operation::Sum { axis }, &[of]) => {
                let (rows, cols) = expr.info(of).shape;
                let tiles = if axis == 0 { rows } else { cols }.div_ceil(tile);
                let sum = follow.sum(states[of], tiles);
                let folded = follow.fold(sum, &radices(&stages(tile, 1, 2)), true);
                follow.masked(folded, 1.0)
            }
            (Operation::Mul, &[left, right]) => {
                let product = follow.dot(states[left], states[right], 1);
                follow.relinearize_rescale(product)
            }
            (Operation::Matmul, &[left, right]) => {
                let top = walk.states[left].level.min(walk.states[right].level);
                let plan = cube_plan(follow.literal(), tile, options(expr, at), top)?;
                let terms = expr.info(left).shape.1.div_ceil(tile);
                plan.follow(follow, terms, states[left], states[right])
            }
            (Operation::Add | Operation::Sub, &[left, right]) => {
                let (mut l, mut r) = (states[left], states[right]);
                match walk.aligns[at] {
                    Align::Same => {}
                    Align::Left => l = follow.set_scale(l, r.scale),
                    Align::Right => r = follow.set_scale(r, l.scale),
                }
                follow.add(l, r)
            }
            (operation, _) => return Err(no_circuit(operation)),
        })
    }

    /// Largest error of a node's elements once they are decrypted and read.
    fn read(&self, expr: &Expr, literal: &ParamsLiteral, tile: usize, node: usize) -> f64 {
        let held = expr.info(node).max_abs * padding(expr, node, tile);
        self.errors[node].total() + ErrorModel::new(literal).read(held, literal.q_bits.len() - 1)
    }
}

/// How much larger than its bound the message of a node's ciphertexts may be taken to be: sums run
/// over whole tiles.
pub(super) fn padding(expr: &Expr, node: usize, tile: usize) -> f64 {
    let padded = |n: usize| n.next_multiple_of(tile) as f64 / n as f64;
    match expr.nodes()[node].parts() {
        (Operation::Matmul, &[left, _]) => padded(expr.info(left).shape.1),
        (&Operation::Sum { axis }, &[of]) => {
            let (rows, cols) = expr.info(of).shape;
            padded(if axis == 0 { rows } else { cols })
        }
        (Operation::Add | Operation::Sub, _) => 2.0,
        _ => 1.0,
    }
}

/// The largest value that the message of any ciphertext may be taken to have.
fn largest_value(expr: &Expr, tile: usize) -> f64 {
    (0..expr.nodes().len()).fold(1.0f64, |m, at| m.max(expr.info(at).max_abs * padding(expr, at, tile)))
}

/// A circuit as its specification lays it out; nothing is built.
pub(crate) struct Sketch {
    literal: ParamsLiteral,
    layouts: Vec<TileLayout>,
    walk: Walk,
    work: Work,
    costs: Vec<Work>,
    peaks: Vec<Peak>,
    table_bytes: u64,
    keys: KeyDemand,
    /// Bound on the noise of each node's ciphertexts, as they leave their operation and as they are worked on.
    noise: Vec<(f64, f64)>,
    refresh: Option<Refresh>,
    /// Nodes that are refreshed.
    after: Vec<usize>,
    /// Error of each node once it is read.
    read: Vec<f64>,
    output: usize,
    batch: usize,
}

impl Sketch {
    /// The sketch of a circuit; `prime(l)` is what a rescale at level `l` divides by.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] or [`MatrixError::Method`] for a specification that does not serve.
    pub(super) fn new(goal: &Goal, spec: &CircuitSpec, prime: impl Fn(usize) -> f64) -> Result<Self, MatrixError> {
        let (expr, tile, literal) = (&goal.expression, spec.tile, &spec.params);
        if !TILES.contains(&tile) {
            return Err(MatrixError::NoPlan { reason: format!("tiles of side {tile} are not used") });
        }
        let (refresh, after) = match &spec.refresh {
            Some(written) => (Some(refreshing(goal, tile, written, literal)?), written.after.clone()),
            None => (None, Vec::new()),
        };
        let top = refresh.as_ref().map_or(literal.q_bits.len().saturating_sub(1), Refresh::top);
        let scale = f64::from(literal.log_scale).exp2();
        let ladder = Ladder { tile, top, scale, prime: &prime, refresh: refresh.as_ref() };
        let walk = Walk::new(expr, &ladder, &after)?;
        let figures = Figures::new(expr, literal, tile, &walk, refresh.as_ref().map(|r| (r, after.as_slice())))?;
        let (nodes, stride) = (expr.nodes().len(), stride(expr, literal, tile));
        let layouts = (0..nodes).map(|at| layout(expr, at, tile, stride)).collect::<Result<Vec<_>, _>>()?;
        let keys = keys(expr, literal, &layouts, &walk)?;
        let read = (0..nodes).map(|at| figures.read(expr, literal, tile, at)).collect();
        let noise = (0..nodes)
            .map(|at| {
                let (before, after) = (walk.computed[at].scale, walk.states[at].scale);
                (noise(figures.computed[at], before), noise(figures.errors[at], after))
            })
            .collect();
        let Figures { work, costs, follow, table_bytes, .. } = figures;
        let (peaks, work) = (follow.peaks, work * goal.batch as f64);
        Ok(Self {
            literal: literal.clone(),
            layouts,
            walk,
            work,
            costs,
            peaks,
            table_bytes,
            keys,
            noise,
            refresh,
            after,
            read,
            output: expr.output(),
            batch: goal.batch,
        })
    }

    /// The same before any prime is known: they lie just under their powers of two, as distinct as
    /// real ones are, so that scales differ where they will.
    pub(super) fn of(goal: &Goal, spec: &CircuitSpec) -> Result<Self, MatrixError> {
        Self::new(goal, spec, |l| model_prime(&spec.params, l))
    }

    /// Level and scale of a node's value.
    pub(super) fn state(&self, node: usize) -> (usize, f64) {
        let State { level, scale } = self.walk.states[node];
        (level, scale)
    }
}

impl program::Sketch for Sketch {
    fn method(&self) -> &'static str {
        if self.refresh.is_some() { "bootstrapped" } else { "circuit" }
    }

    fn refreshes(&self) -> Option<Refreshes> {
        let places = self.after.iter().map(|at| (*at, self.layouts[*at].ciphertexts() * self.batch));
        Some(self.refresh.as_ref()?.told(places.collect()))
    }

    fn literal(&self) -> &sudare_rlwe::params::ParamsLiteral {
        &self.literal
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
        let expr = &goal.expression;
        let input = |of: usize| expr.input_at(of).map(|input| &input.name);
        match expr.nodes()[node].parts() {
            (Operation::Transpose, &[of]) => input(of).map(|x| format!("give {x}.T as an input of its own")),
            (Operation::Matmul, &[left, right]) if expr.prepared(left).is_some() && expr.prepared(right).is_some() => {
                Some("in a plan of its own, with numbers and inputs alone added to it, it has faster methods".into())
            }
            (Operation::Take { .. }, _) => Some(format!(
                "slices from multiples of {} up to such or to the end cost least",
                self.layouts[node].tile
            )),
            _ => None,
        }
    }

    fn table_bytes(&self) -> u64 {
        self.table_bytes + self.refresh.as_ref().map_or(0, Refresh::prepared_bytes)
    }

    fn error(&self) -> f64 {
        self.read[self.output]
    }

    fn holds(&self) -> bool {
        sizing::holds(&self.literal, &self.peaks)
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        Some(self.read[node])
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let count = self.layouts[node].ciphertexts() * self.batch;
        Some(NodeSize { count, parts: 2, level: self.walk.states[node].level })
    }
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
    let ordered = written.after.windows(2).all(|w| w[0] < w[1]);
    let expr = &goal.expression;
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
        let params = refresh.params().clone();
        let prime = |l: usize| model_prime(&params, l);
        let scale = f64::from(params.log_scale).exp2();
        let ladder = Ladder { tile, top: refresh.top(), scale, prime: &prime, refresh: Some(&refresh) };
        let after = refresh.placed(expr, &ladder, |work| price(&(*work * goal.batch as f64), params.log_n))?;
        Some(CircuitSpec { tile, params: params.clone(), refresh: Some(RefreshSpec { set, after }) })
    })
    .collect()
}

/// What a rescale divides by, nearly.
fn model_prime(literal: &ParamsLiteral, level: usize) -> f64 {
    let bits = literal.q_bits.get(level).map_or(0.0, |b| f64::from(*b));
    bits.exp2() * (1.0 - (level + 1) as f64 * (-20f64).exp2())
}

/// The keys of all nodes, each at the highest level that it is used at.
fn keys(expr: &Expr, literal: &ParamsLiteral, layouts: &[TileLayout], walk: &Walk) -> Result<KeyDemand, MatrixError> {
    let (mut keys, mut relin) = (KeyList::new(literal), None::<usize>);
    for (at, node) in expr.nodes().iter().enumerate() {
        match node.parts() {
            (Operation::Transpose, &[of]) => {
                keys.demanded(&layouts[of].transposition_keys(literal, walk.states[of].level))
            }
            (&Operation::Sum { axis: along }, &[of]) => {
                keys.demanded(&layouts[of].sum_keys(literal, axis(along), walk.states[of].level));
            }
            (&Operation::Take { axis: along, lines }, &[of]) => {
                keys.demanded(&layouts[of].take_keys(literal, axis(along), &lines, walk.states[of].level));
            }
            (&Operation::Repeat { axis: along, size }, &[of]) => {
                keys.demanded(&layouts[of].repeat_keys(literal, axis(along), size, walk.states[of].level));
            }
            (Operation::Mul, _) => relin = relin.max(Some(walk.computed[at].level + 1)),
            (Operation::Matmul, &[left, right]) => {
                let top = walk.states[left].level.min(walk.states[right].level);
                let plan = cube_plan(literal, layouts[at].tile, options(expr, at), top)?;
                plan.expand_keys(Side::Left, &mut keys);
                plan.expand_keys(Side::Right, &mut keys);
                relin = relin.max(Some(plan.contract_keys(&mut keys)));
            }
            _ => {}
        }
    }
    Ok(keys.demand(relin))
}

/// Circuits for an expression: for each side of tiles the one that `price` finds cheapest.
pub(super) fn candidates(goal: &Goal, price: impl Fn(&Work, u32) -> f64) -> Vec<CircuitSpec> {
    let expr = &goal.expression;
    let mut out = Vec::new();
    let wanted = goal.private_error();
    for tile in tiles(expr) {
        let headroom = largest_value(expr, tile).log2().ceil() as u32 + 3;
        let mut best: Option<(f64, CircuitSpec)> = None;
        for scale in [49, 46, 43, 40, 37, 34, 31, 52, 55, 58, 60] {
            // Scales past the fast kernels' primes are for what the others cannot reach.
            if scale > sizing::PRIME_BITS && best.is_some() {
                break;
            }
            let first = first_primes(scale + headroom);
            let start = f64::from(scale).exp2();
            let walk = |depth: usize| {
                let prime = |l: usize| start * (1.0 - (l + 1) as f64 * (-20f64).exp2());
                Walk::new(expr, &Ladder { tile, top: depth, scale: start, prime: &prime, refresh: None }, &[])
            };
            let Some(depth) = (0..=MAX_DEPTH).find(|d| walk(*d).is_ok()) else { continue };
            // A second low prime is a level that nothing is rescaled by.
            let Ok(walk) = walk(depth + first.len() - 1) else { continue };
            for special in 1..=3usize {
                let Some(literal) = literal(goal, least_ring(tile, expr), (&first, scale), depth, special) else {
                    continue;
                };
                let Ok(figures) = Figures::new(expr, &literal, tile, &walk, None) else { continue };
                let error = figures.read(expr, &literal, tile, expr.output());
                if error <= wanted && sizing::holds(&literal, &figures.follow.peaks) {
                    let cost = price(&(figures.work * goal.batch as f64), literal.log_n);
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

/// The primes that hold a result of `bits` bits: one, or two of half its size.
fn first_primes(bits: u32) -> Vec<u32> {
    if bits <= MAX_PRIME_BITS { vec![bits] } else { vec![bits.div_ceil(2); 2] }
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
    let log_n = (least..=17)
        .find(|n| max_log_qp(*n, SecretDistribution::Ternary, goal.security).is_some_and(|limit| total <= limit))?;
    Some(ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits,
            p_bits: vec![bits; special],
            digit_limbs: special,
            secret: SecretDistribution::Ternary,
            security: goal.security,
        },
        log_scale: scale,
    })
}

/// What a node needs besides its operands.
pub(super) enum Prepared {
    Nothing,
    Cube(Box<Cube>),
    Transposition(Option<Box<LinearMap>>),
}

/// A circuit under built parameters.
pub(crate) struct Circuit {
    params: Params,
    sketch: Sketch,
    prepared: Tables<Vec<Prepared>>,
}

impl Circuit {
    pub(super) fn new(goal: &Goal, spec: &CircuitSpec) -> Result<Self, MatrixError> {
        let params = spec.params.build()?;
        let sketch = Sketch::new(goal, spec, |l| params.prime_at(l) as f64)?;
        Ok(Self { params, sketch, prepared: Tables::new() })
    }

    /// What each node needs, made at the first call.
    fn tables(&self, goal: &Goal) -> Result<&[Prepared], MatrixError> {
        self.prepared.get(|| self.make_tables(&goal.expression)).map(Vec::as_slice)
    }

    #[cfg(test)]
    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.is_made()
    }

    fn make_tables(&self, expr: &Expr) -> Result<Vec<Prepared>, MatrixError> {
        let (params, states) = (&self.params, &self.sketch.walk.states);
        let e = Evaluator::new(params, EvalKeys::new(params, KeyId::NONE))?;
        let node = |(at, node): (usize, &Node)| -> Result<Prepared, MatrixError> {
            Ok(match node.parts() {
                (Operation::Matmul, &[left, right]) => {
                    let (top, tile) = (states[left].level.min(states[right].level), self.sketch.layouts[at].tile);
                    let plan = cube_plan(params.literal(), tile, options(expr, at), top)?;
                    Prepared::Cube(Box::new(Cube::new(params, plan)?))
                }
                (Operation::Transpose, &[of]) => {
                    let map = self.sketch.layouts[of].transposition(&e, states[of].level)?;
                    Prepared::Transposition(map.map(Box::new))
                }
                _ => Prepared::Nothing,
            })
        };
        expr.nodes().iter().enumerate().map(node).collect()
    }

    /// A node's ciphertext with the plan's own bounds where they are tighter than the evaluator's.
    fn settled(&self, c: Ciphertext, noise: f64, bound: f64) -> Result<Ciphertext, MatrixError> {
        let bound = c.bound().min(bound);
        if c.noise() <= noise {
            return Ok(c.with_bound(bound));
        }
        Ok(Ciphertext::from_parts(c.inner().clone(), ckks::State { scale: c.scale(), bound, noise })?)
    }

    /// A node's value from those of its operands, all of one member of the batch.
    fn value(
        &self,
        e: &Evaluator,
        (at, node): (usize, &Node),
        prepared: &Prepared,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (layouts, layout) = (&self.sketch.layouts, &self.sketch.layouts[at]);
        let set_scale = |c: &[Ciphertext], to: &[Ciphertext]| -> Result<Vec<Ciphertext>, MatrixError> {
            c.iter().zip(to).map(|(x, t)| Ok(e.set_scale(x, t.scale())?)).collect()
        };
        let (Some(&a), Some(&b)) = (operands.first(), operands.last()) else {
            return Err(no_circuit(&node.operation));
        };
        match (&node.operation, node.operands.as_slice(), prepared) {
            (Operation::Neg, ..) => Ok(a.iter().map(|c| e.negate(c)).collect::<Result<_, _>>()?),
            (Operation::Bounded { .. } | Operation::Approximation { .. }, ..) => Ok(a.to_vec()),
            (Operation::Take { axis: along, lines }, &[of], _) => layouts[of].take(e, (axis(*along), lines), true, a),
            (&Operation::Repeat { axis: along, size }, &[of], _) => layouts[of].repeat(e, axis(along), size, a),
            (&Operation::Scale { by }, ..) if is_integer(by) => {
                Ok(a.iter().map(|c| e.mul_integer(c, by as i64)).collect::<Result<_, _>>()?)
            }
            (&Operation::Scale { by }, ..) => layout.mul_scalar(e, a, by),
            (&Operation::Shift { by }, ..) => {
                // Only the matrix itself: what is beside it stays zero.
                layout.add_plain(e, a, &Matrix::from_fn(layout.rows, layout.cols, |_, _| by)?)
            }
            (Operation::Transpose, &[of], Prepared::Transposition(map)) => layouts[of].transpose(e, map.as_deref(), a),
            (&Operation::Sum { axis: along }, &[of], _) => layouts[of].sum(e, axis(along), a),
            (Operation::Matmul, &[left, right], Prepared::Cube(cube)) => {
                matmul(e, cube, (&layouts[left], a), (&layouts[right], b))
            }
            (Operation::Mul, ..) => layout.mul(e, a, b),
            (operation @ (Operation::Add | Operation::Sub), ..) => {
                let (x, y): (Cow<'_, [Ciphertext]>, Cow<'_, [Ciphertext]>) = match self.sketch.walk.aligns[at] {
                    Align::Same => (a.into(), b.into()),
                    Align::Left => (set_scale(a, b)?.into(), b.into()),
                    Align::Right => (a.into(), set_scale(b, a)?.into()),
                };
                if *operation == Operation::Add { layout.add(e, &x, &y) } else { layout.sub(e, &x, &y) }
            }
            (operation, ..) => Err(no_circuit(operation)),
        }
    }
}

impl CkksEngine for Circuit {
    fn params(&self) -> &Params {
        &self.params
    }

    fn sketch(&self) -> &dyn program::Sketch {
        &self.sketch
    }

    fn prepare(&self, goal: &Goal) -> Result<(), MatrixError> {
        self.tables(goal).map(drop)
    }

    fn expected(&self) -> Expected {
        let (level, scale) = self.sketch.state(self.sketch.output);
        Expected { level, scale, error: program::Sketch::error(&self.sketch) }
    }

    fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let encoder = Encoder::new(&self.params);
        let at = EncodeAt { level: self.sketch.state(node).0, ..encoder.at_top(goal.expression.info(node).max_abs) };
        let all = matrices.iter().map(|m| self.sketch.layouts[node].encode(&encoder, m, at));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn decode(&self, goal: &Goal, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        let layout = &self.sketch.layouts[node];
        check_count("result plaintexts", values.len(), layout.ciphertexts() * goal.batch)?;
        values.chunks(layout.ciphertexts()).map(|tiles| layout.decode(&self.params, tiles)).collect()
    }

    fn bootstrap(&self) -> Option<&BootstrapLiteral> {
        self.sketch.refresh.as_ref().map(Refresh::literal)
    }

    fn refreshed(
        &self,
        goal: &Goal,
        (e, bootstrapper): (&Evaluator, &Bootstrapper),
        node: usize,
        values: Vec<Ciphertext>,
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let Some(refresh) = self.sketch.refresh.as_ref().filter(|_| self.sketch.after.contains(&node)) else {
            return Ok(values);
        };
        let (max_abs, noise) = (goal.expression.info(node).max_abs, self.sketch.noise[node].1);
        let values = values.into_iter().map(|c| c.with_bound(max_abs));
        let values = values
            .map(|c| match refresh.fits(c.scale(), max_abs) {
                true => Ok(c),
                false => Ok(e.set_scale(&c, refresh.target(max_abs))?),
            })
            .collect::<Result<Vec<_>, MatrixError>>()?;
        let mut out = Vec::with_capacity(values.len());
        for some in values.chunks(TOGETHER) {
            let fresh = bootstrapper.refresh_pairs(&some.iter().collect::<Vec<_>>())?;
            out.extend(fresh.into_iter().map(|c| self.settled(c, noise, max_abs)).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(out)
    }

    fn evaluate(
        &self,
        goal: &Goal,
        e: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (expr, prepared) = (&goal.expression, &self.tables(goal)?[node]);
        let own = &expr.nodes()[node];
        let sizes: Vec<usize> = own.operands.iter().map(|o| self.sketch.layouts[*o].ciphertexts()).collect();
        check_count("operands", operands.len(), sizes.len())?;
        for (given, size) in operands.iter().zip(&sizes) {
            check_count("ciphertexts", given.len(), size * goal.batch)?;
        }
        let bound = expr.info(node).max_abs;
        let mut out = Vec::new();
        for member in 0..goal.batch {
            let parts = operands.iter().zip(&sizes).map(|(all, size)| &all[member * size..][..*size]);
            let parts: Vec<&[Ciphertext]> = parts.collect();
            let value = self.value(e, (node, own), prepared, &parts)?;
            let noise = self.sketch.noise[node].0;
            out.extend(value.into_iter().map(|c| self.settled(c, noise, bound)).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(out)
    }
}

/// Tiles of a product: each operand's tiles are brought into the cube once, and each tile of the
/// result is one sum, one relinearisation and one fold.
pub(crate) fn matmul<B: Backend>(
    e: &Evaluator<B>,
    cube: &Cube<B::Plaintext>,
    (left, a): (&TileLayout, &[CiphertextOf<B>]),
    (right, b): (&TileLayout, &[CiphertextOf<B>]),
) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
    let expand = |side: Side, tiles: &[CiphertextOf<B>]| {
        e.each(Order::SideBySide, tiles.len(), |t| vec![&tiles[t]], |tile| cube.expand(e, side, tile[0]))
    };
    let (left_bars, right_bars) = (expand(Side::Left, a)?, expand(Side::Right, b)?);
    let (terms, across) = (left.tiles().1, right.tiles().1);
    let lines = |at: usize| {
        let (row, column) = (&left_bars[at / across * terms..][..terms], right_bars.iter().skip(at % across));
        row.iter().chain(column.step_by(across)).collect()
    };
    // An element's error is in a whole row or column of the result.
    let contract = |lines: &[&CiphertextOf<B>]| {
        let out = cube.contract(e, &lines[..terms], &lines[terms..])?;
        let spread = out.spread().occupied(left.cols as f64 / (terms * left.tile) as f64).shared();
        Ok(out.with_spread(spread))
    };
    e.each(Order::SideBySide, left.tiles().0 * across, lines, contract)
}
