//! What an operation of an expression is under encryption: one function, `evaluate`, for the plan, which runs it on a backend
//! that computes nothing, and for the result.
//!
//! Operations use levels as follows: sum, transpose, product element by element and with a number
//! that is no integer one each; a slice one where lines of a tile stay behind; a matrix product two, and a third where its
//! result is worked on further; a sum of values with different histories one, to bring their scales together.
//!
//! # Errors
//! Errors of a fresh matrix are independent from element to element, so that a sum of n of them
//! grows with √n. What a matrix product leaves is not: the error of one element of a factor is in a
//! whole row or column of the result, and matrices that are all alike let it add up n times. Both
//! parts are carried along (`Spread`). Operands that depend on a common input may have one error.

use crate::error::MatrixError;
use crate::slots::cube::{Cube, CubePlan, Improvements, Side};
use crate::slots::tiles::{Axis, TileLayout};
use std::collections::BTreeSet;
use sudare_expr::{Expr, Operation, Shape};
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Batch, CiphertextOf, Evaluator, Order, ParamsLiteral};
use sudare_rlwe::Backend;

/// Largest integer that a value is multiplied with at no cost in levels.
const MAX_INTEGER: f64 = 1048576.0;

fn no_circuit(operation: &Operation) -> MatrixError {
    MatrixError::NoPlan { reason: format!("{} cannot be computed on tiles of a matrix", operation.name()) }
}

/// Whether values are multiplied by a number at no cost in levels.
pub fn is_integer(by: f64) -> bool {
    by.fract() == 0.0 && by.abs() <= MAX_INTEGER
}

/// Whether a node's value is only decrypted.
fn is_last(expr: &Expr, node: usize) -> bool {
    node == expr.output() && !expr.nodes().iter().any(|n| n.operands.contains(&node))
}

/// Whether two scales are one to the evaluator.
pub fn same_scale(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < (-44f64).exp2()
}

fn axis(axis: u8) -> Axis {
    if axis == 0 { Axis::Rows } else { Axis::Columns }
}

/// The cube of a matrix product whose operands meet at `level`.
///
/// # Errors
/// [`MatrixError::Method`] for parameters that it does not fit.
pub fn cube_plan(
    literal: &ParamsLiteral,
    tile: usize,
    options: Improvements,
    level: usize,
) -> Result<CubePlan, MatrixError> {
    let plan = CubePlan::new(Shape::new(tile, tile, tile), literal, options)?;
    Ok(CubePlan { top: level, ..plan })
}

/// Whether an expression has products of matrices.
pub fn multiplies(expr: &Expr) -> bool {
    expr.nodes().iter().any(|node| node.operation == Operation::Matmul)
}

/// The stride of elements: what the cube's lanes give, so that products take tiles as they are.
fn stride(expr: &Expr, literal: &ParamsLiteral, tile: usize) -> usize {
    let slots = 1usize << literal.log_n.saturating_sub(1);
    if multiplies(expr) { (slots / tile.pow(3)).max(1) } else { 1 }
}

fn layout(expr: &Expr, node: usize, tile: usize, stride: usize) -> Result<TileLayout, MatrixError> {
    let (rows, cols) = expr.info(node).shape;
    TileLayout::new(rows, cols, tile, stride)
}

/// What is known of an expression's nodes before anything is computed.
pub struct Graph {
    /// How each node's value is cut into tiles.
    pub layouts: Vec<TileLayout>,
    /// Whether the operands of a node depend on no common input, so that their errors are independent.
    unrelated: Vec<bool>,
    /// Whether others see all slots of the result, so that nothing may be left beside it.
    shown: bool,
}

impl Graph {
    /// Works it out for tiles of a side.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for matrices that tiles cannot hold.
    pub fn new(expr: &Expr, literal: &ParamsLiteral, tile: usize) -> Result<Self, MatrixError> {
        let stride = stride(expr, literal, tile);
        let layouts = (0..expr.nodes().len()).map(|at| layout(expr, at, tile, stride)).collect::<Result<_, _>>()?;
        let (mut inputs, mut unrelated): (Vec<BTreeSet<usize>>, Vec<bool>) = (Vec::new(), Vec::new());
        for node in expr.nodes() {
            let mut all: BTreeSet<usize> = node.operation.input().into_iter().collect();
            let mut apart = true;
            for of in &node.operands {
                apart &= all.is_disjoint(&inputs[*of]);
                all.extend(&inputs[*of]);
            }
            inputs.push(all);
            unrelated.push(apart);
        }
        Ok(Self { layouts, unrelated, shown: false })
    }

    /// The same where others see all slots of the result: nothing is left beside its elements.
    #[must_use]
    pub fn shown(self, shown: bool) -> Self {
        Self { shown, ..self }
    }

    fn options(&self, expr: &Expr, node: usize) -> Improvements {
        Improvements { clean_output: self.shown || !is_last(expr, node), ..Improvements::ALL }
    }
}

/// What a node needs besides its operands, as a backend keeps it.
pub enum Prepared<B: Backend> {
    /// Nothing.
    Nothing,
    /// The masks of a matrix product.
    Cube(Box<Cube<B::Plaintext>>),
    /// The linear map of a transpose, unless tiles are 1×1.
    Transposition(Option<Box<LinearMap<B::Row>>>),
}

impl<B: Backend> Prepared<B> {
    /// For operands of which the lowest is at `level`.
    ///
    /// # Errors
    /// [`MatrixError::Method`], [`MatrixError::He`].
    pub fn new(e: &Evaluator<B>, expr: &Expr, graph: &Graph, at: usize, level: usize) -> Result<Self, MatrixError> {
        Ok(match expr.nodes()[at].parts() {
            (Operation::Matmul, _) => {
                let plan = cube_plan(e.params().literal(), graph.layouts[at].tile, graph.options(expr, at), level)?;
                Self::Cube(Box::new(Cube::prepare(e, plan)?))
            }
            (Operation::Transpose, &[of]) => {
                Self::Transposition(graph.layouts[of].transposition(e, level)?.map(Box::new))
            }
            _ => Self::Nothing,
        })
    }
}

/// A node's value from its operands'.
///
/// # Errors
/// [`MatrixError::NoPlan`] for an operation that circuits do not have, [`MatrixError::He`].
pub fn evaluate<B: Backend>(
    e: &Evaluator<B>,
    expr: &Expr,
    graph: &Graph,
    prepared: &Prepared<B>,
    at: usize,
    operands: &[Batch<'_, B::Ciphertext>],
) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
    let (layouts, layout, apart) = (&graph.layouts, &graph.layouts[at], graph.unrelated[at]);
    let (operation, of) = expr.nodes()[at].parts();
    match (operation, of, prepared, operands) {
        (Operation::Bounded { .. }, _, _, [a]) => Ok(a.to_vec()),
        // The second operand is the polynomial's variable, which is not worked with.
        (Operation::Approximation { error, .. }, _, _, [a, _]) => {
            let further = |c: CiphertextOf<B>| {
                let spread = c.spread().shifted(error * c.scale());
                c.with_spread(spread)
            };
            Ok(a.to_vec().into_iter().map(further).collect())
        }
        (Operation::Matmul, &[left, right], Prepared::Cube(cube), [a, b]) => {
            matmul(e, cube, (&layouts[left], *a), (&layouts[right], *b), apart)
        }
        (Operation::Mul, _, _, [a, b]) => layout.zip(e, *a, *b, |x, y| {
            let product = e.mul_rescale(x, y)?;
            if apart {
                return Ok(product);
            }
            let spread = product.spread().of_related((x.spread(), x.scale()), (y.spread(), y.scale()), product.scale());
            Ok(product.with_spread(spread))
        }),
        (operation @ (Operation::Add | Operation::Sub), _, _, [a, b]) => {
            let [x, y] = aligned(e, layout, *a, *b)?;
            let (x, y) = (Batch::from(x.as_slice()), Batch::from(y.as_slice()));
            layout.zip(e, x, y, |x, y| {
                let sum = if *operation == Operation::Add { e.add(x, y)? } else { e.sub(x, y)? };
                if !apart {
                    return Ok(sum);
                }
                let spread = x.spread().sum(y.spread()).shifted((x.scale() - y.scale()).abs() * y.spread().size);
                Ok(sum.with_spread(spread))
            })
        }
        (operation, &[of], prepared, [a]) => {
            let map = || Ok(if let Prepared::Transposition(map) = prepared { map.as_deref() } else { None });
            of_one(e, operation, &layouts[of], map, true, *a)
        }
        (operation, ..) => Err(no_circuit(operation)),
    }
}

/// An operation on the tiles of one matrix, for expressions and contexts. A transpose asks for the map of its layout
/// ([`TileLayout::transposition`]). Slices rotate by the distances of lines if `planned`, otherwise by powers of two.
///
/// # Errors
/// [`MatrixError::NoPlan`] for an operation that circuits do not have, [`MatrixError::He`]; those of `map`.
pub fn of_one<'m, B: Backend>(
    e: &Evaluator<B>,
    operation: &Operation,
    layout: &TileLayout,
    map: impl FnOnce() -> Result<Option<&'m LinearMap<B::Row>>, MatrixError>,
    planned: bool,
    a: Batch<'_, B::Ciphertext>,
) -> Result<Vec<CiphertextOf<B>>, MatrixError>
where
    B::Row: 'm,
{
    match *operation {
        Operation::Neg => layout.map(e, a, |c| e.negate(c)),
        Operation::Scale { by } if is_integer(by) => layout.map(e, a, |c| e.mul_integer(c, by as i64)),
        Operation::Scale { by } => layout.map(e, a, |c| e.mul_constant(c, by)),
        // Only the matrix itself: what is beside it stays zero.
        Operation::Shift { by } => layout.shift(e, a, by),
        Operation::Transpose => layout.transpose(e, map()?, a),
        Operation::Sum { axis: along } => layout.sum(e, axis(along), a),
        Operation::Take { axis: along, lines } => layout.take(e, (axis(along), &lines), planned, a),
        Operation::Repeat { axis: along, size } => layout.repeat(e, axis(along), size, a),
        _ => Err(no_circuit(operation)),
    }
}

/// Levels that an operation takes of the tiles of one matrix, and whether it leaves zeros beside the matrix, whatever was there.
pub fn levels_of_one(operation: &Operation, layout: &TileLayout) -> (usize, bool) {
    match operation {
        Operation::Scale { by } => (usize::from(!is_integer(*by)), false),
        Operation::Transpose | Operation::Sum { .. } => (1, true),
        Operation::Take { axis: along, lines } => {
            let levels = layout.take_levels(axis(*along), lines);
            (levels, levels == 1)
        }
        _ => (0, false),
    }
}

/// The cheaper way to write an operation on tiles of a side, if there may be one.
pub fn cheaper(expr: &Expr, node: usize, tile: usize) -> Option<String> {
    let input = |of: usize| expr.input_at(of).map(|input| &input.name);
    match expr.nodes()[node].parts() {
        (Operation::Transpose, &[of]) => input(of).map(|x| format!("give {x}.T as an input of its own")),
        (Operation::Matmul, &[left, right]) if expr.prepared(left).is_some() && expr.prepared(right).is_some() => {
            Some("a plan of one product alone has faster methods; several are parts of Z.T @ Z, with their inputs side by side in Z".into())
        }
        (Operation::Take { .. }, _) => {
            Some(format!("slices from multiples of {tile} up to such or to the end cost least"))
        }
        _ => None,
    }
}

/// How much larger than its bound the message of a node's ciphertexts may be taken to be: sums run
/// over whole tiles.
pub fn padding(expr: &Expr, node: usize, tile: usize) -> f64 {
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

/// Two operands at one scale: where they differ, that with more levels takes the other's.
fn aligned<B: Backend>(
    e: &Evaluator<B>,
    layout: &TileLayout,
    a: Batch<'_, B::Ciphertext>,
    b: Batch<'_, B::Ciphertext>,
) -> Result<[Vec<CiphertextOf<B>>; 2], MatrixError> {
    let (x, y) = (a.at(0), b.at(0));
    let scaled = |tiles: Batch<'_, B::Ciphertext>, to: f64| layout.map(e, tiles, |c| e.set_scale(c, to));
    Ok(match (same_scale(x.scale(), y.scale()), x.level() >= y.level()) {
        (true, _) => [a.to_vec(), b.to_vec()],
        (_, true) => [scaled(a, y.scale())?, b.to_vec()],
        (_, false) => [a.to_vec(), scaled(b, x.scale())?],
    })
}

/// Tiles of a product: each operand's tiles are brought into the cube once, and each tile of the
/// result is one sum, one relinearisation and one fold.
///
/// # Errors
/// [`MatrixError::He`].
pub fn matmul<B: Backend>(
    e: &Evaluator<B>,
    cube: &Cube<B::Plaintext>,
    (left, a): (&TileLayout, Batch<'_, B::Ciphertext>),
    (right, b): (&TileLayout, Batch<'_, B::Ciphertext>),
    apart: bool,
) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
    let expand = |side: Side, tiles: Batch<'_, B::Ciphertext>| {
        e.each(Order::SideBySide, tiles.len(), |t| vec![tiles.at(t)], |tile| cube.expand(e, side, tile[0]))
    };
    let (left_bars, right_bars) = (expand(Side::Left, a)?, expand(Side::Right, b)?);
    let (a, b) = (Batch::from(left_bars.as_slice()), Batch::from(right_bars.as_slice()));
    let (terms, across) = (left.tiles().1, right.tiles().1);
    let lines = |at: usize| {
        let (row, column) = (at / across * terms, at % across);
        (0..terms).map(|t| a.at(row + t)).chain((0..terms).map(|t| b.at(column + t * across))).collect()
    };
    // An element's error is in a whole row or column of the result.
    let contract = |lines: &[&CiphertextOf<B>]| {
        let out = cube.contract(e, &lines[..terms], &lines[terms..])?;
        let spread = out.spread().occupied(left.cols as f64 / (terms * left.tile) as f64);
        let spread = if apart { spread } else { spread.of_any() };
        Ok(out.with_spread(spread.shared()))
    };
    e.each(Order::SideBySide, left.tiles().0 * across, lines, contract)
}
