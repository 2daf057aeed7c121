//! Whole expressions on tiled matrices: levels, scales, keys and the evaluation.
//!
//! Levels and exact scales of every node are found by walking the graph as the evaluator will.
//! Operations use levels as follows: sum, transpose, product element by element and with a number
//! that is no integer one each; a matrix product two, and a third where its result is worked on
//! further; a sum of values with different histories one, to bring their scales together.

use super::Goal;
use crate::error::MatrixError;
use crate::expr::{Expr, Op};
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Shape};
use crate::slots::common::{KeyList, fold_work, hoisted_sum_work, stages};
use crate::slots::cube::{Cube, CubePlan, Improvements, Side};
use crate::slots::error_model::ErrorModel;
use crate::slots::tiles::{Axis, TileLayout};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Plaintext};
use sudare_he::params::{Params, ParamsLiteral};
use sudare_he::security::{SecretDistribution, max_log_qp};

/// Sides of tiles that are tried.
const TILES: [usize; 6] = [4, 8, 16, 32, 64, 128];
/// Largest integer that a value is multiplied with at no cost in levels.
const MAX_INTEGER: f64 = 1048576.0;
/// Deepest circuit that is looked for.
const MAX_DEPTH: usize = 48;

/// A circuit on tiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitSpec {
    /// Side of a tile.
    pub tile: usize,
    /// The parameters.
    pub params: ParamsLiteral,
}

/// Level and scale of a node's ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    level: usize,
    scale: f64,
}

/// How two operands are brought to one scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    /// They have it already.
    Same,
    /// The left one is changed.
    Left,
    /// The right one is changed.
    Right,
}

/// The states of all nodes under one set of primes.
struct Walk {
    states: Vec<State>,
    aligns: Vec<Align>,
}

fn out_of_levels(depth: usize) -> MatrixError {
    MatrixError::NoPlan { reason: format!("the expression needs more than {depth} levels") }
}

pub(crate) fn is_integer(by: f64) -> bool {
    by.fract() == 0.0 && by.abs() <= MAX_INTEGER
}

/// Whether a node's value is only decrypted.
fn is_last(expr: &Expr, node: usize) -> bool {
    node == expr.output() && !expr.nodes().iter().any(|op| op.operands().any(|o| o == node))
}

fn options(expr: &Expr, node: usize) -> Improvements {
    Improvements { clean_output: !is_last(expr, node), ..Improvements::ALL }
}

/// Whether two scales are one to the evaluator.
pub(crate) fn same_scale(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < (-44f64).exp2()
}

impl Walk {
    /// Walks the graph from level `top` and scale `scale`; `prime(l)` is what a rescale at level
    /// `l` divides by.
    fn new(
        expr: &Expr,
        tile: usize,
        top: usize,
        scale: f64,
        prime: impl Fn(usize) -> f64,
    ) -> Result<Self, MatrixError> {
        let mut states: Vec<State> = Vec::with_capacity(expr.nodes().len());
        let mut aligns = Vec::with_capacity(expr.nodes().len());
        let lower = |s: State, by: usize| -> Result<State, MatrixError> {
            Ok(State { level: s.level.checked_sub(by).ok_or_else(|| out_of_levels(top))?, ..s })
        };
        for (at, op) in expr.nodes().iter().enumerate() {
            let mut align = Align::Same;
            let state = match *op {
                Op::Input { .. } => State { level: top, scale },
                Op::Neg { of } | Op::Shift { of, .. } => states[of],
                Op::Scale { of, by } => lower(states[of], usize::from(!is_integer(by)))?,
                Op::Transpose { of } => lower(states[of], usize::from(tile > 1))?,
                Op::Sum { of, .. } => lower(states[of], 1)?,
                Op::Mul { left, right } => {
                    let (l, r) = (states[left], states[right]);
                    let level = l.level.min(r.level);
                    lower(State { level, scale: l.scale * r.scale / prime(level) }, 1)?
                }
                Op::Matmul { left, right } => {
                    let (l, r) = (states[left], states[right]);
                    let level = l.level.min(r.level);
                    let depth = options(expr, at).depth();
                    let s = lower(State { level, ..l }, depth)?;
                    State { scale: l.scale * r.scale / prime(level - 1), ..s }
                }
                Op::Add { left, right } | Op::Sub { left, right } => {
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
            };
            states.push(state);
            aligns.push(align);
        }
        Ok(Self { states, aligns })
    }
}

fn axis(axis: u8) -> Axis {
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

/// The stride of elements: what the cube's lanes give, so that products take tiles as they are.
fn stride(expr: &Expr, literal: &ParamsLiteral, tile: usize) -> usize {
    let slots = 1usize << literal.log_n.saturating_sub(1);
    let products = expr.nodes().iter().any(|op| matches!(op, Op::Matmul { .. }));
    if products { (slots / tile.pow(3)).max(1) } else { 1 }
}

fn layout(expr: &Expr, node: usize, tile: usize, stride: usize) -> Result<TileLayout, MatrixError> {
    let (rows, cols) = expr.info(node).shape;
    TileLayout::new(rows, cols, tile, stride)
}

/// Work, keys but those of transposes, and predicted error of a walk.
struct Figures {
    work: Work,
    keys: KeyList,
    relin: Option<usize>,
    error: f64,
}

fn figures(expr: &Expr, literal: &ParamsLiteral, tile: usize, walk: &Walk) -> Result<Figures, MatrixError> {
    let model = ErrorModel::new(literal);
    let stride = stride(expr, literal, tile);
    let (mut work, mut keys, mut relin) = (Work::default(), KeyList::new(literal), None::<usize>);
    let mut errors: Vec<f64> = Vec::with_capacity(expr.nodes().len());
    let own = |variance: f64| ErrorModel::largest(variance);
    for (at, op) in expr.nodes().iter().enumerate() {
        let (here, state) = (layout(expr, at, tile, stride)?, walk.states[at]);
        let tiles = here.ciphertexts() as f64;
        let pass = Work::passes_at(literal, state.level, 2.0);
        let division = own(model.division(state.scale));
        let info = |node: usize| (expr.info(node).max_abs, errors[node]);
        let error = match *op {
            Op::Input { .. } => own(model.fresh()),
            Op::Neg { of } | Op::Shift { of, .. } => {
                work += pass * tiles;
                errors[of]
            }
            Op::Scale { of, by } => {
                work += pass * tiles;
                if !is_integer(by) {
                    work += Work::rescale(literal, state.level + 1) * tiles;
                }
                errors[of] * by.abs() + division
            }
            Op::Transpose { of } => {
                let level = walk.states[of].level;
                if tile > 1 {
                    let babies = ((2 * tile) as f64).sqrt();
                    let one = hoisted_sum_work(literal, level, babies)
                        + Work::key_switch(literal, level) * babies
                        + Work::mul_plain(literal, level) * (2 * tile) as f64;
                    work += one * tiles;
                }
                let (size, e) = info(of);
                let steps = 2.0 * (2.0 * tile as f64).sqrt();
                let spread = model.switching(level, state.scale) + model.division(state.scale);
                let mask = model.mask(tile * tile * stride, model.prime(level));
                e + own(spread * steps + size * size * mask * (2 * tile) as f64) + division
            }
            Op::Sum { of, axis: a } => {
                let (before, level) = (layout(expr, of, tile, stride)?, walk.states[of].level);
                let unit = if a == 0 { tile * stride } else { stride } as i64;
                let steps = stages(tile, unit, 2);
                keys.stages(&steps, level);
                work += pass * before.ciphertexts() as f64
                    + (fold_work(literal, level, &steps, true)
                        + Work::mul_plain(literal, level)
                        + Work::rescale(literal, level))
                        * tiles;
                let (size, e) = info(of);
                let (rows, cols) = expr.info(of).shape;
                let terms = if a == 0 { rows } else { cols } as f64;
                let own_variance = tile as f64 * (model.switching(level, state.scale) + model.division(state.scale));
                let mask = (terms * size).powi(2) * model.mask(tile * tile * stride, model.prime(level));
                e * terms.sqrt() + own(own_variance + mask) + division
            }
            Op::Mul { left, right } => {
                let level = state.level + 1;
                work += (Work::tensor(literal, level) + Work::relinearize_rescale(literal, level)) * tiles;
                relin = relin.max(Some(level));
                let ((ml, el), (mr, er)) = (info(left), info(right));
                let product = walk.states[left].scale * walk.states[right].scale;
                ml * er + mr * el + el * er + own(model.switching(level, product)) + division
            }
            Op::Matmul { left, right } => {
                let top = walk.states[left].level.min(walk.states[right].level);
                let plan = cube_plan(literal, tile, options(expr, at), top)?;
                let (a, b) = (layout(expr, left, tile, stride)?, layout(expr, right, tile, stride)?);
                work += plan.expand_work(literal, Side::Left) * a.ciphertexts() as f64
                    + plan.expand_work(literal, Side::Right) * b.ciphertexts() as f64
                    + plan.contract_work(literal, a.tiles().1) * tiles;
                plan.expand_keys(Side::Left, &mut keys);
                plan.expand_keys(Side::Right, &mut keys);
                relin = relin.max(Some(plan.contract_keys(&mut keys)));
                let ((ml, el), (mr, er)) = (info(left), info(right));
                let terms = (expr.info(left).shape.1 as f64).sqrt();
                terms * (ml * er + mr * el) + plan.predicted_error(literal, a.tiles().1, [ml, mr])
            }
            Op::Add { left, right } | Op::Sub { left, right } => {
                work += pass * tiles;
                if walk.aligns[at] != Align::Same {
                    work += (pass + Work::rescale(literal, state.level + 1)) * tiles;
                }
                errors[left] + errors[right] + division
            }
        };
        errors.push(error);
    }
    Ok(Figures { work, keys, relin, error: errors[expr.output()] })
}

/// The largest value that the message of any ciphertext may be taken to have: sums run over whole
/// tiles.
fn largest_value(expr: &Expr, tile: usize) -> f64 {
    let padded = |n: usize| n.next_multiple_of(tile) as f64 / n as f64;
    expr.nodes().iter().enumerate().fold(1.0f64, |m, (at, op)| {
        let extra = match *op {
            Op::Matmul { left, .. } => padded(expr.info(left).shape.1),
            Op::Sum { of, axis } => {
                let (rows, cols) = expr.info(of).shape;
                padded(if axis == 0 { rows } else { cols })
            }
            Op::Add { .. } | Op::Sub { .. } => 2.0,
            _ => 1.0,
        };
        m.max(expr.info(at).max_abs * extra)
    })
}

/// Circuits for an expression: for each side of tiles the one that `price` finds cheapest.
pub(super) fn candidates(goal: &Goal, price: impl Fn(&Work, u32) -> f64) -> Vec<CircuitSpec> {
    let expr = &goal.expression;
    let products = expr.nodes().iter().any(|op| matches!(op, Op::Matmul { .. }));
    let longest = expr.inputs().iter().map(|i| i.rows.max(i.cols)).max().unwrap_or(1);
    let mut out = Vec::new();
    for tile in TILES {
        if (tile > 4 && tile >= 2 * longest.next_power_of_two()) || (products && tile > 32) {
            continue;
        }
        let headroom = largest_value(expr, tile).log2().ceil() as u32 + 3;
        let mut best: Option<(f64, CircuitSpec)> = None;
        for scale in [46, 43, 40, 37, 34, 31] {
            let first = scale + headroom;
            if first > 60 {
                continue;
            }
            // Primes as distinct as real ones are, so that scales differ where they will.
            let prime = |l: usize| f64::from(scale).exp2() * (1.0 - (l + 1) as f64 * (-20f64).exp2());
            let start = f64::from(scale).exp2();
            let Some(depth) = (0..=MAX_DEPTH).find(|d| Walk::new(expr, tile, *d, start, prime).is_ok()) else {
                continue;
            };
            for special in 1..=3usize {
                let Some((literal, walk)) = literal(goal, (tile, products), (first, scale), depth, special)
                    .and_then(|l| Some((l, Walk::new(expr, tile, depth, start, prime).ok()?)))
                else {
                    continue;
                };
                let Ok(figures) = figures(expr, &literal, tile, &walk) else { continue };
                if figures.error <= goal.error {
                    let cost = price(&(figures.work * goal.batch as f64), literal.log_n);
                    if best.as_ref().is_none_or(|(c, _)| cost < *c) {
                        best = Some((cost, CircuitSpec { tile, params: literal }));
                    }
                }
            }
        }
        out.extend(best.map(|(_, spec)| spec));
    }
    out
}

/// The least ring that holds a chain of `depth` primes above the first.
fn literal(
    goal: &Goal,
    (tile, products): (usize, bool),
    (first, scale): (u32, u32),
    depth: usize,
    special: usize,
) -> Option<ParamsLiteral> {
    let q_bits: Vec<u32> = std::iter::once(first).chain(std::iter::repeat_n(scale, depth)).collect();
    if special > q_bits.len() {
        return None;
    }
    let digit = q_bits.chunks(special).map(|d| d.iter().sum::<u32>()).max()?;
    let bits = digit.div_ceil(special as u32);
    let total = q_bits.iter().sum::<u32>() + bits * special as u32;
    let slots = if products { tile.pow(3) } else { tile.pow(2) };
    let least = (1 + slots.trailing_zeros()).max(11);
    let log_n = (least..=17)
        .find(|n| max_log_qp(*n, SecretDistribution::Ternary, goal.security).is_some_and(|limit| total <= limit))?;
    Some(ParamsLiteral {
        log_n,
        q_bits,
        p_bits: vec![bits; special],
        digit_limbs: special,
        log_scale: scale,
        secret: SecretDistribution::Ternary,
        security: goal.security,
    })
}

/// What a node needs besides its operands.
enum Prepared {
    Nothing,
    Cube(Box<Cube>),
    Transposition(Option<Box<LinearMap>>),
}

/// A circuit ready to run.
pub(crate) struct Circuit {
    params: Params,
    layouts: Vec<TileLayout>,
    prepared: Vec<Prepared>,
    walk: Walk,
    keys: KeyDemand,
    work: Work,
    error: f64,
}

impl Circuit {
    pub(super) fn new(goal: &Goal, spec: &CircuitSpec) -> Result<Self, MatrixError> {
        let (expr, tile) = (&goal.expression, spec.tile);
        let params = spec.params.build()?;
        let literal = params.literal();
        if !TILES.contains(&tile) {
            return Err(MatrixError::NoPlan { reason: format!("tiles of side {tile} are not used") });
        }
        let walk = Walk::new(expr, tile, params.max_level(), params.scale(), |l| params.prime_at(l) as f64)?;
        let stride = stride(expr, literal, tile);
        let layouts =
            (0..expr.nodes().len()).map(|at| layout(expr, at, tile, stride)).collect::<Result<Vec<_>, _>>()?;
        let Figures { work, mut keys, relin, error } = figures(expr, literal, tile, &walk)?;
        let mut prepared = Vec::with_capacity(layouts.len());
        for (at, op) in expr.nodes().iter().enumerate() {
            prepared.push(match *op {
                Op::Matmul { left, right } => {
                    let top = walk.states[left].level.min(walk.states[right].level);
                    Prepared::Cube(Box::new(Cube::new(&params, cube_plan(literal, tile, options(expr, at), top)?)?))
                }
                Op::Transpose { of } => {
                    let map = layouts[of].transposition(&params, walk.states[of].level)?;
                    for element in map.iter().flat_map(LinearMap::elements) {
                        keys.element(element, walk.states[of].level);
                    }
                    Prepared::Transposition(map.map(Box::new))
                }
                _ => Prepared::Nothing,
            });
        }
        let keys = keys.demand(relin);
        Ok(Self { params, layouts, prepared, walk, keys, work: work * goal.batch as f64, error })
    }

    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    pub(super) fn keys(&self) -> &KeyDemand {
        &self.keys
    }

    pub(super) fn work(&self) -> Work {
        self.work
    }

    pub(super) fn error(&self) -> f64 {
        self.error
    }

    /// Ciphertexts of a whole batch, and level.
    pub(super) fn size(&self, goal: &Goal, node: usize) -> (usize, usize) {
        (self.layouts[node].ciphertexts() * goal.batch, self.walk.states[node].level)
    }

    pub(super) fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let encoder = Encoder::new(&self.params);
        let at = encoder.at_top(goal.expression.info(node).max_abs);
        let all = matrices.iter().map(|m| self.layouts[node].encode(&encoder, m, at));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    pub(super) fn decode(&self, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        let layout = &self.layouts[node];
        values.chunks(layout.ciphertexts()).map(|tiles| layout.decode(&self.params, tiles)).collect()
    }

    pub(super) fn evaluate(
        &self,
        goal: &Goal,
        e: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let expr = &goal.expression;
        let op = expr.nodes()[node];
        let sizes: Vec<usize> = op.operands().map(|o| self.layouts[o].ciphertexts()).collect();
        for (given, size) in operands.iter().zip(&sizes) {
            let expected = size * goal.batch;
            if given.len() != expected {
                return Err(MatrixError::Count { what: "ciphertexts", found: given.len(), expected });
            }
        }
        let bound = expr.info(node).max_abs;
        let mut out = Vec::new();
        for member in 0..goal.batch {
            let part = |i: usize| &operands[i][member * sizes[i]..(member + 1) * sizes[i]];
            let value = match (op, operands.len()) {
                (Op::Neg { .. } | Op::Scale { .. } | Op::Shift { .. } | Op::Transpose { .. } | Op::Sum { .. }, 1) => {
                    self.unary(e, node, op, part(0))?
                }
                (Op::Matmul { .. } | Op::Add { .. } | Op::Sub { .. } | Op::Mul { .. }, 2) => {
                    self.binary(e, node, op, part(0), part(1))?
                }
                (_, found) => {
                    let expected = op.operands().count();
                    return Err(MatrixError::Count { what: "operands", found, expected });
                }
            };
            // The evaluator adds up bounds; the expression's own is the tighter one.
            out.extend(value.into_iter().map(|c| if c.bound() > bound { c.with_bound(bound) } else { c }));
        }
        Ok(out)
    }

    fn unary(&self, e: &Evaluator, node: usize, op: Op, a: &[Ciphertext]) -> Result<Vec<Ciphertext>, MatrixError> {
        let layout = &self.layouts[node];
        let before = |of: usize| &self.layouts[of];
        match op {
            Op::Neg { .. } => Ok(a.iter().map(|c| e.negate(c)).collect::<Result<_, _>>()?),
            Op::Scale { by, .. } if is_integer(by) => {
                Ok(a.iter().map(|c| e.mul_integer(c, by as i64)).collect::<Result<_, _>>()?)
            }
            Op::Scale { by, .. } => layout.mul_scalar(e, a, by),
            Op::Shift { by, .. } => {
                // Only the matrix itself: what is beside it stays zero.
                let (rows, cols) = (layout.rows, layout.cols);
                layout.add_plain(e, a, &Matrix::from_fn(rows, cols, |_, _| by)?)
            }
            Op::Transpose { of } => match &self.prepared[node] {
                Prepared::Transposition(map) => before(of).transpose(e, map.as_deref(), a),
                _ => Err(MatrixError::NoPlan { reason: "the transpose is not prepared".into() }),
            },
            Op::Sum { of, axis: along } => before(of).sum(e, axis(along), a),
            _ => Err(MatrixError::NoPlan { reason: format!("{} takes two operands", op.name()) }),
        }
    }

    fn binary(
        &self,
        e: &Evaluator,
        node: usize,
        op: Op,
        a: &[Ciphertext],
        b: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let layout = &self.layouts[node];
        let aligned = |c: &[Ciphertext], to: &[Ciphertext]| -> Result<Vec<Ciphertext>, MatrixError> {
            c.iter().zip(to).map(|(x, t)| Ok(e.set_scale(x, t.scale())?)).collect()
        };
        match op {
            Op::Matmul { left, right } => match &self.prepared[node] {
                Prepared::Cube(cube) => matmul(e, cube, (&self.layouts[left], a), (&self.layouts[right], b)),
                _ => Err(MatrixError::NoPlan { reason: "the product is not prepared".into() }),
            },
            Op::Mul { .. } => layout.mul(e, a, b),
            Op::Add { .. } | Op::Sub { .. } => {
                let (left, right);
                let (a, b) = match self.walk.aligns[node] {
                    Align::Same => (a, b),
                    Align::Left => {
                        left = aligned(a, b)?;
                        (left.as_slice(), b)
                    }
                    Align::Right => {
                        right = aligned(b, a)?;
                        (a, right.as_slice())
                    }
                };
                if matches!(op, Op::Add { .. }) { layout.add(e, a, b) } else { layout.sub(e, a, b) }
            }
            _ => Err(MatrixError::NoPlan { reason: format!("{} takes one operand", op.name()) }),
        }
    }
}

/// Tiles of a product: each operand's tiles are brought into the cube once, and each tile of the
/// result is one sum, one relinearisation and one fold.
pub(crate) fn matmul(
    e: &Evaluator,
    cube: &Cube,
    (left, a): (&TileLayout, &[Ciphertext]),
    (right, b): (&TileLayout, &[Ciphertext]),
) -> Result<Vec<Ciphertext>, MatrixError> {
    let expand = |side: Side, tiles: &[Ciphertext]| -> Result<Vec<Ciphertext>, MatrixError> {
        let all = sudare_he::ring::threads::map(tiles.len(), |t| cube.expand(e, side, &tiles[t]));
        all.into_iter().collect()
    };
    let (left_bars, right_bars) = (expand(Side::Left, a)?, expand(Side::Right, b)?);
    let (terms, across) = (left.tiles().1, right.tiles().1);
    let all = sudare_he::ring::threads::map(left.tiles().0 * across, |at| {
        let row: Vec<&Ciphertext> = left_bars[at / across * terms..][..terms].iter().collect();
        let column: Vec<&Ciphertext> = right_bars.iter().skip(at % across).step_by(across).collect();
        cube.contract(e, &row, &column)
    });
    all.into_iter().collect()
}
