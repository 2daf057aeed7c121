//! Computing without a plan: every operation at every level.

use super::context::{ContextSpec, public_bound};
use super::encrypted::{Encrypted, Unplanned};
use super::layout::{Layout, Tiled};
use super::server::trivial;
use crate::error::MatrixError;
use crate::expr::Op;
use crate::matrix::Matrix;
use crate::plan::PlanHash;
use crate::plan::circuit::{TOGETHER, cube_plan, is_integer, matmul, same_scale};
use crate::product::KeyDemand;
use crate::slots::common::{KeyList, mask_values, plain_mask, stages};
use crate::slots::cube::{Cube, Improvements, Side};
use crate::slots::grid::GridLayout;
use crate::slots::tiles::{Axis, TileLayout};
use std::borrow::Cow;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::circuits::polynomial::fit::{self, Minimax};
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Plaintext, State};
use sudare_ring::memo::Memo;
use sudare_ring::threads;
use sudare_rlwe::{KeyId, RlweError};

/// Ciphertexts of a matrix, an operand's own or new ones.
type Tiles<'c> = Cow<'c, [Ciphertext]>;
/// Things that are made once for each level that asks for them.
type PerLevel<T> = Memo<usize, T>;

/// What a server of a context has beside keys: tables for each level, made when one is first asked for.
pub(super) struct Free {
    spec: ContextSpec,
    hash: PlanHash,
    bootstrapper: Option<Bootstrapper>,
    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    levels: (usize, usize),
    cubes: PerLevel<Cube>,
    transpositions: PerLevel<Option<LinearMap>>,
    masks: PerLevel<Plaintext>,
}

/// What a level has, made if it is asked for the first time.
fn at_level<T>(
    known: &PerLevel<T>,
    level: usize,
    make: impl FnOnce() -> Result<T, MatrixError>,
) -> Result<&T, MatrixError> {
    match known.get(&level) {
        Some(found) => Ok(found),
        None => Ok(known.insert(level, make()?)),
    }
}

impl Free {
    pub(super) fn new(spec: &ContextSpec, bootstrapper: Option<Bootstrapper>) -> Result<Self, MatrixError> {
        Ok(Self {
            spec: spec.clone(),
            hash: spec.hash()?,
            bootstrapper,
            levels: spec.levels()?,
            cubes: Memo::new(),
            transpositions: Memo::new(),
            masks: Memo::new(),
        })
    }

    /// What it was made for.
    pub(super) fn spec(&self) -> &ContextSpec {
        &self.spec
    }

    /// The name on its matrices.
    pub(super) fn hash(&self) -> PlanHash {
        self.hash
    }

    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    pub(super) fn levels(&self) -> (usize, usize) {
        self.levels
    }

    /// Bytes of what bootstrapping has prepared.
    pub(super) fn bytes(&self) -> usize {
        self.bootstrapper.as_ref().map_or(0, Bootstrapper::bytes)
    }

    /// The keys of all operations, at the highest level that each can meet.
    pub(super) fn demand(spec: &ContextSpec) -> Result<KeyDemand, MatrixError> {
        let (literal, (_, top)) = (&spec.params, spec.levels()?);
        let mut keys = KeyList::new(literal);
        if let Some(columns) = spec.columns {
            keys.demanded(&GridLayout::new(1, 1, columns, literal)?.sum_keys(literal, top));
            return Ok(keys.demand(Some(top)));
        }
        let cube = cube_plan(literal, spec.tile, Improvements::ALL, top)?;
        cube.expand_keys(Side::Left, &mut keys);
        cube.expand_keys(Side::Right, &mut keys);
        cube.contract_keys(&mut keys);
        for unit in [spec.stride(), spec.tile * spec.stride()] {
            keys.stages(&stages(spec.tile, unit as i64, 2), top);
        }
        let tiles = spec.tiles(spec.tile, spec.tile)?;
        keys.demanded(&tiles.transposition_keys(literal, top));
        keys.demanded(&tiles.line_keys(literal, top));
        Ok(keys.demand(Some(top)))
    }

    /// How a matrix is encoded.
    pub(super) fn fresh(&self, encoder: &Encoder, bound: f64) -> EncodeAt {
        EncodeAt { level: self.levels.1, ..encoder.at_top(bound) }
    }

    /// A matrix of this context.
    pub(super) fn made(
        &self,
        layout: Layout,
        max_abs: f64,
        key: KeyId,
        tiles: Vec<Ciphertext>,
    ) -> Result<Encrypted, MatrixError> {
        Encrypted::unplanned(self.hash, key, Unplanned { layout, levels: self.levels }, max_abs, tiles)
    }

    fn needs(&self, operation: &'static str, level: usize, needed: usize) -> Result<(), MatrixError> {
        match level < needed {
            true => Err(MatrixError::OutOfDepth { operation, needed, level, depth: self.spec.depth }),
            false => Ok(()),
        }
    }

    /// A matrix that the server sees, ready to compute with encrypted ones.
    pub(super) fn plain(&self, e: &Evaluator, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        let (layout, key) = (self.spec.layout(matrix.rows(), matrix.cols())?, e.keys().id());
        let (bound, encoder) = (public_bound(matrix), Encoder::new(e.params()));
        let plain = layout.encode(&encoder, matrix, self.fresh(&encoder, bound))?;
        let tiles = plain.iter().map(|p| Ok(trivial(e.params(), key, p)?)).collect::<Result<Vec<_>, MatrixError>>()?;
        self.made(layout, bound, key, tiles)
    }

    /// The same matrix, of which the caller knows that elements are up to `max_abs`. One level where a table has something
    /// beside it, for which that need not hold.
    pub(super) fn bounded(&self, e: &Evaluator, a: &Encrypted, max_abs: f64) -> Result<Encrypted, MatrixError> {
        let bound = known(a, Some(max_abs))?;
        let (layout, tiles) = self.stated(e, a, bound, scale_of(a.ciphertexts()?))?;
        self.made(layout, bound, a.key(), tiles)
    }

    /// The tiles of a matrix with a bound that the caller knows, at a scale. One level if that is another one, or if a
    /// table has to be cleaned of what lies beside it.
    ///
    /// Elements and what they stand for are within the bound, imaginary parts of their slots among them, which are errors
    /// alone; so that no error is over twice of it: the bound on errors that travels, made for the worst case of every operation, grows no further than that (a
    /// refresh adds that of the other one of its pair).
    fn stated(
        &self,
        e: &Evaluator,
        a: &Encrypted,
        bound: f64,
        scale: f64,
    ) -> Result<(Layout, Vec<Ciphertext>), MatrixError> {
        let (cts, layout) = a.laid()?;
        let unknown = bound < a.max_abs() && matches!(layout, Layout::Table(_)) && !layout.is_clean();
        let same = scale == scale_of(cts);
        if unknown || !same {
            self.needs("a bound of its own", a.levels_left(), 1)?;
        }
        let (layout, tiles) = match (unknown, same) {
            (true, _) => (layout.cleaned(), layout.masked(e, cts, scale)?),
            (_, true) => (*layout, cts.to_vec()),
            _ => (*layout, each(cts, |c| Ok(e.set_scale(c, scale)?))?),
        };
        let state = |c: &Ciphertext| {
            let noise = c.noise().min(2.0 * bound * c.scale());
            Ok(Ciphertext::from_parts(
                c.inner().clone(),
                State { scale: c.scale(), bound: c.bound().min(bound), noise },
            )?)
        };
        Ok((layout, tiles.iter().map(state).collect::<Result<_, MatrixError>>()?))
    }

    /// The same matrix with the levels of a fresh one.
    pub(super) fn refresh(&self, e: &Evaluator, a: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let bound = known(a, max_abs)?;
        let b = self.bootstrapper.as_ref().ok_or(MatrixError::NoBootstrap)?;
        let scale = scale_of(a.ciphertexts()?);
        let scale = match scale * bound <= b.params().largest_product() {
            true => scale,
            false => self.full_scale() / bound.max(1.0).log2().ceil().exp2(),
        };
        let (layout, tiles) = self.stated(e, a, bound, scale)?;
        // A pair at a time: each takes as much memory as keys do.
        let mut out = Vec::new();
        for some in tiles.chunks(TOGETHER) {
            out.extend(b.refresh_pairs(&some.iter().collect::<Vec<_>>())?);
        }
        self.made(layout, bound, a.key(), out)
    }

    fn full_scale(&self) -> f64 {
        f64::from(self.spec.params.log_scale).exp2()
    }

    /// The matrix with at least `needed` levels, in a context that refreshes by itself: one is kept for the refresh, of which
    /// large values take it.
    fn ready<'m>(&self, e: &Evaluator, m: &'m Encrypted, needed: usize) -> Result<Cow<'m, Encrypted>, MatrixError> {
        match self.spec.automatic && needed > 0 && m.levels_left() < needed + 1 {
            true => Ok(Cow::Owned(self.refresh(e, m, None)?)),
            false => Ok(Cow::Borrowed(m)),
        }
    }

    /// f of every element by a polynomial, whose interval holds them as far as their bound tells.
    ///
    /// The variable is brought to the full scale over the interval, [−1, 1] at scale Δ, which takes a level unless it is there
    /// already: further from that, its scale would drift with every square, past the primes or down to nothing. Beside the
    /// matrix stands a point of the interval until the polynomial's value there is taken away.
    pub(super) fn polynomial(&self, e: &Evaluator, a: &Encrypted, f: &Minimax) -> Result<Encrypted, MatrixError> {
        let (operation, (centre, radius)) = ("a polynomial", f.polynomial.domain());
        // What is known of the elements, and how far the polynomial is from the function there.
        let (over, distance) = match f.beyond {
            _ if f.holds(a.max_abs()) => (None, f.error),
            Some((max_abs, error)) if a.max_abs() <= max_abs => (Some(max_abs), error),
            _ => return Err(f.outside(a.max_abs()).into()),
        };
        let largest = over.unwrap_or(centre.abs() + radius);
        let aside = if centre.abs() <= radius { 0.0 } else { centre };
        let prepared = |m: &Encrypted| -> Result<(f64, bool), MatrixError> {
            let (cts, layout) = m.laid()?;
            let target = self.full_scale() / radius;
            let near = (0.5..=2.0).contains(&(scale_of(cts) / target));
            Ok((target, near && layout.is_clean()))
        };
        let needed = f.polynomial.depth() + usize::from(!prepared(a)?.1);
        let a = self.ready(e, a, needed)?;
        let (target, as_it_is) = prepared(&a)?;
        self.needs(operation, a.levels_left(), f.polynomial.depth() + usize::from(!as_it_is))?;
        let (cts, layout) = a.laid()?;
        let tiles = match (as_it_is, layout.is_clean()) {
            (true, _) => Cow::Borrowed(cts),
            (_, true) => Cow::Owned(each(cts, |c| Ok(e.set_scale(c, target)?))?),
            _ => Cow::Owned(layout.masked(e, cts, target)?),
        };
        let tiles = layout.shifted(e, &tiles, (0.0, aside))?;
        let (level, scale) = (tiles.iter().map(Ciphertext::level).min().unwrap_or(0), scale_of(&tiles));
        let mut circuit = PolynomialCircuit::new(e.params(), &f.polynomial, level, scale, self.full_scale())?;
        if let Some(max_abs) = over {
            // Larger values than the modulus holds are those outside of the interval.
            circuit = circuit.over(e.params(), fit::hull(&f.extended(max_abs))).map_err(|_| f.outside(max_abs))?;
        }
        let values = each(&tiles, |c| {
            let y = e.polynomial(&c.clone().with_bound(c.bound().min(largest)), &circuit)?;
            let error = y.error_bound() + distance;
            Ok(y.with_error_of(error))
        })?;
        let bound = values.iter().map(Ciphertext::bound).fold(0.0, f64::max);
        let values = layout.shifted(e, &values, (0.0, -f.polynomial.evaluate(aside).re))?;
        self.made(layout.cleaned(), bound, a.key(), values)
    }

    /// Computes an operation on operands of one key; which nodes it names does not matter.
    ///
    /// Levels are used as [`ContextSpec::new`] says.
    pub(super) fn apply(&self, e: &Evaluator, op: Op, operands: &[&Encrypted]) -> Result<Encrypted, MatrixError> {
        for v in operands {
            v.ciphertexts()?.iter().try_for_each(|c| e.check(c))?;
        }
        let mut ready = Vec::with_capacity(operands.len());
        for (v, needed) in operands.iter().zip(self.levels_of(op, operands)?) {
            ready.push(self.ready(e, v, needed)?);
        }
        let operands: Vec<&Encrypted> = ready.iter().map(|v| &**v).collect();
        for (v, needed) in operands.iter().zip(self.levels_of(op, &operands)?) {
            self.needs(op.name(), v.levels_left(), needed)?;
        }
        if self.spec.columns.is_some() {
            return self.table(e, op, &operands);
        }
        match (op, operands.as_slice()) {
            (Op::Matmul { .. }, [a, b]) => self.matmul(e, a, b),
            (Op::Add { .. } | Op::Sub { .. }, [a, b]) => self.sum_of(e, op, a, b),
            (Op::Mul { .. }, [a, b]) => self.mul(e, a, b),
            (_, [a]) => self.unary(e, op, a),
            _ => Err(operand_count(op, operands.len())),
        }
    }

    /// Levels that an operation takes of each operand.
    fn levels_of(&self, op: Op, operands: &[&Encrypted]) -> Result<Vec<usize>, MatrixError> {
        // A sum changes the scale of the operand that has more levels, the left one if they have the same.
        let changed = match operands {
            [a, b] if same_scale(scale_of(a.ciphertexts()?), scale_of(b.ciphertexts()?)) => None,
            [a, b] => Some(usize::from(a.level() < b.level())),
            _ => None,
        };
        let one = |(at, v): (usize, &&Encrypted)| -> Result<usize, MatrixError> {
            Ok(match (op, v.laid()?.1) {
                (Op::Matmul { .. }, Layout::Tiles(t)) => 2 + usize::from(!t.clean),
                (Op::Add { .. } | Op::Sub { .. }, _) => usize::from(changed == Some(at)),
                (Op::Mul { .. }, _) => 1,
                (Op::Scale { by, .. }, _) => usize::from(!is_integer(by)),
                (Op::Transpose { .. } | Op::Sum { .. }, Layout::Tiles(_)) => 1,
                (Op::Take { axis: 0, lines, .. }, Layout::Tiles(t)) => t.layout.take_levels(Axis::Rows, &lines),
                (Op::Take { lines, .. }, Layout::Tiles(t)) => t.layout.take_levels(Axis::Columns, &lines),
                (Op::Transpose { .. }, Layout::Table(_)) => v.table()?.transpose_levels(),
                (Op::Sum { axis, .. }, Layout::Table(_)) => {
                    let grid = v.table()?;
                    let along = [(Axis::Rows, grid.layout.rows), (Axis::Columns, grid.layout.cols)];
                    along.get(usize::from(axis)).map_or(0, |(a, n)| if *n == 1 { 0 } else { grid.sum_levels(*a) })
                }
                _ => 0,
            })
        };
        operands.iter().enumerate().map(one).collect()
    }

    fn unary(&self, e: &Evaluator, op: Op, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((cts, Tiled { layout, clean }), bound, level) = (a.tiles()?, a.max_abs(), a.level());
        let (layout_after, max_abs, clean, tiles) = match op {
            Op::Bounded { max_abs, .. } => return self.bounded(e, a, max_abs),
            Op::Neg { .. } => (*layout, bound, *clean, each(cts, |c| Ok(e.negate(c)?))?),
            Op::Scale { by, .. } => (*layout, bound * by.abs(), *clean, multiples(e, cts, by)?),
            Op::Shift { by: 0.0, .. } => return Ok(a.clone()),
            Op::Shift { by, .. } => {
                // Only the matrix itself: what is beside it stays zero.
                let all = Matrix::from_fn(layout.rows, layout.cols, |_, _| by)?;
                (*layout, bound + by.abs(), *clean, layout.add_plain(e, cts, &all)?)
            }
            Op::Transpose { .. } => {
                let map = at_level(&self.transpositions, level, || layout.transposition(e.params(), level))?;
                (layout.transposed(), bound, true, layout.transpose(e, map.as_ref(), cts)?)
            }
            Op::Take { axis: axis @ (0 | 1), lines, .. } => {
                let (along, held) = line_count(layout, axis);
                if !lines.fit(held) {
                    let reason = format!("{lines:?} are no lines of {held}");
                    return Err(MatrixError::Expression { reason });
                }
                let clean = *clean || layout.take_levels(along, &lines) == 1;
                let after = with_lines(layout, along, lines.size)?;
                (after, bound, clean, layout.take(e, (along, &lines), false, cts)?)
            }
            Op::Repeat { axis: axis @ (0 | 1), size, .. } => {
                let (along, held) = line_count(layout, axis);
                if held != 1 || size == 0 {
                    let reason = format!("one row or column is repeated, and there are {held}");
                    return Err(MatrixError::Expression { reason });
                }
                let after = with_lines(layout, along, size)?;
                (after, bound, *clean, layout.repeat(e, along, size, cts)?)
            }
            Op::Sum { axis: axis @ (0 | 1), .. } => {
                let (along, terms) = if axis == 0 { (Axis::Rows, layout.rows) } else { (Axis::Columns, layout.cols) };
                (layout.summed(along), terms as f64 * bound, true, layout.sum(e, along, cts)?)
            }
            _ => return Err(no_such(op)),
        };
        self.made(Layout::Tiles(Tiled { layout: layout_after, clean }), max_abs, a.key(), tiles)
    }

    /// The matrix with zeros beside its tiles, as a matrix product takes it. One level if it is
    /// not so already.
    fn clean<'m>(&self, e: &Evaluator, m: &'m Encrypted) -> Result<Cow<'m, [Ciphertext]>, MatrixError> {
        let (level, (cts, Tiled { layout, clean })) = (m.level(), m.tiles()?);
        if *clean {
            return Ok(Cow::Borrowed(cts));
        }
        let mask = at_level(&self.masks, level, || {
            let (slots, square) = (e.params().slots(), layout.tile * layout.tile * layout.stride);
            plain_mask(e.params(), level, &mask_values(slots, 1.0, |i| i < square))
        })?;
        each(cts, |c| Ok(e.rescale(&e.mul_plain(c, mask)?)?.with_bound(c.bound()))).map(Cow::Owned)
    }

    /// Two levels, and one more if an operand comes from a matrix product.
    fn matmul(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let (left, right) = (a.tiles()?.1, b.tiles()?.1);
        let (x, y) = (self.clean(e, a)?, self.clean(e, b)?);
        let level = x.iter().chain(&*y).map(Ciphertext::level).min().unwrap_or(0);
        let cube = at_level(&self.cubes, level, || {
            let plan = cube_plan(&self.spec.params, self.spec.tile, Improvements::ALL, level)?;
            Cube::new(e.params(), plan)
        })?;
        let tiles = matmul(e, cube, (&left.layout, &x), (&right.layout, &y))?;
        let layout = TileLayout { cols: right.layout.cols, ..left.layout };
        let max_abs = left.layout.cols as f64 * a.max_abs() * b.max_abs();
        self.made(Layout::Tiles(Tiled { layout, clean: false }), max_abs, a.key(), tiles)
    }

    /// Sum or difference: one level where scales differ, of the operand that has more.
    fn sum_of(&self, e: &Evaluator, op: Op, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let (x, y) = aligned(e, (a.level(), x), (b.level(), y))?;
        let tiles = match op {
            Op::Sub { .. } => left.layout.sub(e, &x, &y)?,
            _ => left.layout.add(e, &x, &y)?,
        };
        let layout = Layout::Tiles(Tiled { layout: left.layout, clean: left.clean && right.clean });
        self.made(layout, a.max_abs() + b.max_abs(), a.key(), tiles)
    }

    /// One level.
    fn mul(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let tiles = left.layout.mul(e, x, y)?;
        let layout = Layout::Tiles(Tiled { layout: left.layout, clean: left.clean && right.clean });
        self.made(layout, a.max_abs() * b.max_abs(), a.key(), tiles)
    }
}

/// Rows (axis 0) or columns of a matrix.
fn line_count(layout: &TileLayout, axis: u8) -> (Axis, usize) {
    if axis == 0 { (Axis::Rows, layout.rows) } else { (Axis::Columns, layout.cols) }
}

/// The layout of another number of rows or columns, if there may be as many.
fn with_lines(layout: &TileLayout, along: Axis, lines: usize) -> Result<TileLayout, MatrixError> {
    let TileLayout { rows, cols, tile, stride } = layout.with_lines(along, lines);
    TileLayout::new(rows, cols, tile, stride)
}

/// What is known of a matrix's elements: the caller's word, where it is less than the bound that travels.
fn known(a: &Encrypted, max_abs: Option<f64>) -> Result<f64, MatrixError> {
    let bound = max_abs.unwrap_or(a.max_abs());
    if bound.is_nan() || bound <= 0.0 {
        return Err(RlweError::Parameters { reason: format!("a bound is a number above zero, not {bound}") }.into());
    }
    Ok(bound.min(a.max_abs()))
}

/// The refusal of an operation that a context does not have.
pub(super) fn no_such(op: Op) -> MatrixError {
    let planned = "a context has products, sums, transposes, and sums over axes 0 and 1".into();
    MatrixError::NotPlanned { operation: op.name(), planned }
}

/// The refusal of another number of operands than an operation takes.
pub(super) fn operand_count(op: Op, found: usize) -> MatrixError {
    MatrixError::Count { what: "operands", found, expected: op.operands().count() }
}

/// Multiples by a number; one level unless it is an integer.
pub(super) fn multiples(e: &Evaluator, tiles: &[Ciphertext], by: f64) -> Result<Vec<Ciphertext>, MatrixError> {
    match is_integer(by) {
        true => each(tiles, |c| Ok(e.mul_integer(c, by as i64)?)),
        false => each(tiles, |c| Ok(e.mul_constant(c, by)?)),
    }
}

/// Two operands at one scale: where they differ, that with more levels takes the other's.
pub(super) fn aligned<'c>(
    e: &Evaluator,
    (level_x, x): (usize, &'c [Ciphertext]),
    (level_y, y): (usize, &'c [Ciphertext]),
) -> Result<(Tiles<'c>, Tiles<'c>), MatrixError> {
    let to = |tiles: &[Ciphertext], scale: f64| each(tiles, |c| Ok(e.set_scale(c, scale)?)).map(Cow::Owned);
    Ok(match (same_scale(scale_of(x), scale_of(y)), level_x >= level_y) {
        (true, _) => (Cow::Borrowed(x), Cow::Borrowed(y)),
        (_, true) => (to(x, scale_of(y))?, Cow::Borrowed(y)),
        (_, false) => (Cow::Borrowed(x), to(y, scale_of(x))?),
    })
}

/// The scale of tiles, which is one.
pub(super) fn scale_of(tiles: &[Ciphertext]) -> f64 {
    tiles.first().map_or(1.0, Ciphertext::scale)
}

/// One ciphertext from each, on all threads.
pub(super) fn each(
    tiles: &[Ciphertext],
    work: impl Fn(&Ciphertext) -> Result<Ciphertext, MatrixError> + Sync,
) -> Result<Vec<Ciphertext>, MatrixError> {
    threads::map(tiles.len(), |i| work(&tiles[i])).into_iter().collect()
}
