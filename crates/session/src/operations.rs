//! What each operation is in a context: on tiles, and on tables over whole ciphertexts.

use super::encrypted::Encrypted;
use super::layout::{Layout, Tabled, Tiled};
use super::server::Server;
use super::unplanned::{UnplannedServer, at_level};
use std::borrow::Cow;
use sudare_expr::{Info, Operation, Polynomial};
use sudare_he::HeError;
use sudare_he::circuits::polynomial::fit::{self, Minimax};
use sudare_he::circuits::polynomial::{self, Function, PolynomialCircuit};
use sudare_he::ckks::{Ciphertext, Evaluator};
use sudare_methods::MatrixError;
use sudare_methods::circuit::{cube_plan, is_integer, levels_of_one, matmul, of_one, same_scale};
use sudare_methods::slots::common::{mask_values, plain_mask};
use sudare_methods::slots::cube::{Cube, Improvements};
use sudare_methods::slots::grid::Grid;
use sudare_methods::slots::tiles::{Axis, TileLayout};
use sudare_ring::threads;

/// Ciphertexts of a matrix, an operand's own or new ones.
type Tiles<'c> = Cow<'c, [Ciphertext]>;

/// What a context does of a function, whose polynomial was fitted to it.
pub fn function(f: &Minimax) -> Operation {
    let (low, high) = f.ends();
    let coefficients = f.polynomial.coefficients().iter().map(|c| c.re).collect();
    Operation::Polynomial(Polynomial { coefficients, low, high, error: f.error, beyond: f.beyond })
}

/// The smaller of an element and a number, min(x, c) = (x + c − |x − c|) / 2, for elements from `low` to `high`: |x − c| by
/// its polynomial of a degree, whose largest distance is a bound that the operation carries.
///
/// # Errors
/// [`MatrixError::He`] for an interval or a degree that has no polynomial.
pub fn minimum(c: f64, (low, high): (f64, f64), degree: usize) -> Result<Operation, MatrixError> {
    // The same distance to both sides, as the polynomial of |t| has it.
    let radius = (high - c).max(c - low);
    let absolute = fit::known(Function::Absolute, &[(-1.0, 1.0)], degree)?;
    let mut coefficients: Vec<f64> = absolute.polynomial.coefficients().iter().map(|a| -0.5 * radius * a.re).collect();
    coefficients.resize(coefficients.len().max(2), 0.0);
    coefficients[0] += c;
    coefficients[1] += radius / 2.0;
    let polynomial = polynomial::Polynomial::chebyshev(&coefficients, c - radius, c + radius)?;
    // Its own rounding, and half of the other's distance.
    let exact = Minimax::exact(polynomial)?;
    Ok(function(&Minimax { error: exact.error + absolute.error * radius / 2.0, ..exact }))
}

fn fitted(p: &Polynomial) -> Result<Minimax, HeError> {
    let polynomial = polynomial::Polynomial::chebyshev(&p.coefficients, p.low, p.high)?;
    Ok(Minimax { polynomial, error: p.error, intervals: vec![(p.low, p.high)], beyond: p.beyond })
}

fn along(axis: u8) -> Axis {
    if axis == 0 { Axis::Rows } else { Axis::Columns }
}

impl Server {
    /// `a @ b`: [`Server::apply`] of [`Operation::Matmul`].
    ///
    /// # Errors
    /// As [`Server::apply`].
    pub fn matmul(&self, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        self.apply(&Operation::Matmul, &[a, b])
    }
}

impl UnplannedServer {
    /// Computes an operation on operands of one key, whose shapes go together unless they are tables.
    ///
    /// Levels are used as [`ContextSpec::new`](super::ContextSpec::new) says.
    pub(super) fn apply(
        &self,
        e: &Evaluator,
        operation: &Operation,
        operands: &[&Encrypted],
    ) -> Result<Encrypted, MatrixError> {
        let expected = operation.operands();
        if operands.len() != expected {
            return Err(MatrixError::Count { what: "operands", found: operands.len(), expected });
        }
        for v in operands {
            v.ciphertexts()?.iter().try_for_each(|c| e.check(c))?;
        }
        let mut ready = Vec::with_capacity(operands.len());
        for (v, needed) in operands.iter().zip(self.levels_of(operation, operands)?) {
            ready.push(self.ready(e, v, needed)?);
        }
        let operands: Vec<&Encrypted> = ready.iter().map(|v| &**v).collect();
        for (v, needed) in operands.iter().zip(self.levels_of(operation, &operands)?) {
            self.needs(operation.name(), v.levels_left(), needed)?;
        }
        match (operation, operands.as_slice(), self.spec.columns) {
            (Operation::Matmul, [a, b], None) => self.matmul(e, a, b),
            (Operation::Matmul, [a, b], Some(_)) => self.vector_product(e, a, b),
            (Operation::Add | Operation::Sub, [a, b], _) => self.sum_of(e, *operation == Operation::Sub, a, b),
            (Operation::Mul, [a, b], _) => self.mul(e, a, b),
            (Operation::Bounded { max_abs }, [a], _) => self.bounded(e, a, *max_abs),
            (Operation::Shift { by: 0.0 }, [a], _) => Ok((*a).clone()),
            (Operation::Polynomial(p), [a], _) => self.polynomial(e, a, &fitted(p)?),
            (_, [a], None) => self.of_tiles(e, operation, a),
            (_, [a], Some(_)) => self.of_table(e, operation, a),
            _ => Err(no_such(operation)),
        }
    }

    /// Levels that an operation takes of each operand.
    fn levels_of(&self, operation: &Operation, operands: &[&Encrypted]) -> Result<Vec<usize>, MatrixError> {
        // A sum changes the scale of the operand that has more levels, the left one if they have the same.
        let changed = match operands {
            [a, b] if same_scale(scale_of(a.ciphertexts()?), scale_of(b.ciphertexts()?)) => None,
            [a, b] => Some(usize::from(a.level() < b.level())),
            _ => None,
        };
        let one = |(at, v): (usize, &&Encrypted)| -> Result<usize, MatrixError> {
            Ok(match (operation, v.tiles_and_layout()?.1) {
                (Operation::Matmul, Layout::Tiles(t)) => 2 + usize::from(!t.clean),
                (Operation::Add | Operation::Sub, _) => usize::from(changed == Some(at)),
                (Operation::Mul, _) => 1,
                (operation, Layout::Tiles(t)) => levels_of_one(operation, &t.layout).0,
                (Operation::Scale { by }, _) => usize::from(!is_integer(*by)),
                (Operation::Transpose, Layout::Table(_)) => v.table()?.transpose_levels(),
                (Operation::Sum { axis }, Layout::Table(_)) => {
                    let grid = v.table()?;
                    let sides = [(Axis::Rows, grid.layout.rows), (Axis::Columns, grid.layout.cols)];
                    sides.get(usize::from(*axis)).map_or(0, |(a, n)| if *n == 1 { 0 } else { grid.sum_levels(*a) })
                }
                _ => 0,
            })
        };
        operands.iter().enumerate().map(one).collect()
    }

    fn of_tiles(&self, e: &Evaluator, operation: &Operation, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((cts, Tiled { layout, clean }), level) = (a.tiles()?, a.level());
        let map = || Ok(at_level(&self.transpositions, level, || layout.transposition(e, level))?.as_ref());
        let tiles = of_one(e, operation, layout, map, false, cts.into()).map_err(|refused| match refused {
            MatrixError::NoPlan { .. } => no_such(operation),
            other => other,
        })?;
        let known = Info { shape: a.shape(), max_abs: a.max_abs(), integers: None, plain: false };
        let Info { shape: (rows, cols), max_abs, .. } = operation.infer(&[&known])?;
        let after = TileLayout::new(rows, cols, layout.tile, layout.stride)?;
        let clean = *clean || levels_of_one(operation, layout).1;
        self.made(Layout::Tiles(Tiled { layout: after, clean }), max_abs, a.key(), tiles)
    }

    fn of_table(&self, e: &Evaluator, operation: &Operation, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        let (grid, bound) = (a.table()?, a.max_abs());
        let mapped = |tiles| Grid { tiles: Cow::Owned(tiles), ..grid.clone() };
        match *operation {
            Operation::Neg => self.tabled(a, mapped(each(&grid.tiles, |c| Ok(e.negate(c)?))?), bound),
            Operation::Scale { by } => self.tabled(a, mapped(multiples(e, &grid.tiles, by)?), bound * by.abs()),
            // Only the table itself: what is beside it stays as it is.
            Operation::Shift { by } => {
                self.tabled(a, mapped(a.tiles_and_layout()?.1.shifted(e, &grid.tiles, (by, 0.0))?), bound + by.abs())
            }
            Operation::Transpose => self.tabled(a, grid.transpose(e)?, bound),
            Operation::Take { axis, ref lines } if axis < 2 => self.tabled(a, grid.rows(along(axis), lines)?, bound),
            Operation::Sum { axis } if axis < 2 => {
                let terms = if axis == 0 { grid.layout.rows } else { grid.layout.cols };
                self.tabled(a, grid.sum(e, along(axis))?, terms as f64 * bound)
            }
            _ => Err(no_such(operation)),
        }
    }

    /// f of every element by a polynomial, whose interval holds them as far as their bound tells.
    ///
    /// The variable is brought to the full scale over the interval, [−1, 1] at scale Δ, which takes a level unless it is there
    /// already: further from that, its scale would drift with every square, past the primes or down to nothing. Beside the
    /// matrix stands a point of the interval until the polynomial's value there is taken away.
    fn polynomial(&self, e: &Evaluator, a: &Encrypted, f: &Minimax) -> Result<Encrypted, MatrixError> {
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
            let (cts, layout) = m.tiles_and_layout()?;
            let target = self.full_scale() / radius;
            let near = (0.5..=2.0).contains(&(scale_of(cts) / target));
            Ok((target, near && layout.is_clean()))
        };
        let needed = f.polynomial.depth() + usize::from(!prepared(a)?.1);
        let a = self.ready(e, a, needed)?;
        let (target, as_it_is) = prepared(&a)?;
        self.needs(operation, a.levels_left(), f.polynomial.depth() + usize::from(!as_it_is))?;
        let (cts, layout) = a.tiles_and_layout()?;
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
        let operands = ((&left.layout, (&*x).into()), (&right.layout, (&*y).into()));
        let tiles = matmul(e, cube, operands.0, operands.1, false)?;
        let layout = TileLayout { cols: right.layout.cols, ..left.layout };
        let max_abs = left.layout.cols as f64 * a.max_abs() * b.max_abs();
        self.made(Layout::Tiles(Tiled { layout, clean: false }), max_abs, a.key(), tiles)
    }

    /// Sum or difference: one level where scales differ, of the operand that has more.
    fn sum_of(&self, e: &Evaluator, subtracts: bool, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        if self.spec.columns.is_some() {
            let (x, y) = (a.table()?, b.table()?);
            let (left, right) = aligned(e, (a.level(), &x.tiles), (b.level(), &y.tiles))?;
            let (left, right) = (left.into_owned().into(), right.into_owned().into());
            let (x, y) = (Grid { tiles: left, ..x }, Grid { tiles: right, ..y });
            let sum = if subtracts { x.sub(e, &y)? } else { x.add(e, &y)? };
            return self.tabled(a, sum, a.max_abs() + b.max_abs());
        }
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let (x, y) = aligned(e, (a.level(), x), (b.level(), y))?;
        let (x, y) = ((&*x).into(), (&*y).into());
        let tiles = left.layout.zip(e, x, y, |x, y| if subtracts { e.sub(x, y) } else { e.add(x, y) })?;
        let layout = Layout::Tiles(Tiled { layout: left.layout, clean: left.clean && right.clean });
        self.made(layout, a.max_abs() + b.max_abs(), a.key(), tiles)
    }

    /// One level.
    fn mul(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        if self.spec.columns.is_some() {
            return self.tabled(a, a.table()?.mul(e, &b.table()?)?, a.max_abs() * b.max_abs());
        }
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let tiles = left.layout.zip(e, x.into(), y.into(), |x, y| e.mul_rescale(x, y))?;
        let layout = Layout::Tiles(Tiled { layout: left.layout, clean: left.clean && right.clean });
        self.made(layout, a.max_abs() * b.max_abs(), a.key(), tiles)
    }

    /// A table times a column, or a row times a table: the vector is transposed so that it lies along the axis that is summed.
    fn vector_product(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let transposed = |v: &Encrypted| self.apply(e, &Operation::Transpose, &[v]);
        let times = |x: &Encrypted, y: &Encrypted| self.apply(e, &Operation::Mul, &[x, y]);
        let (product, axis) = match (a.shape(), b.shape()) {
            (_, (_, 1)) => (times(a, &transposed(b)?)?, 1),
            ((1, _), _) => (times(&transposed(a)?, b)?, 0),
            _ => {
                let planned =
                    "a table over whole ciphertexts is multiplied by vectors; for products of matrices make a \
                               context without columns"
                        .into();
                return Err(MatrixError::NotPlanned { operation: "a matrix product of tables", planned });
            }
        };
        self.apply(e, &Operation::Sum { axis }, &[&product])
    }

    fn tabled(&self, like: &Encrypted, grid: Grid<'_>, max_abs: f64) -> Result<Encrypted, MatrixError> {
        let (layout, tiles): (Layout, _) = Tabled::of(grid);
        self.made(layout, max_abs, like.key(), tiles)
    }
}

/// The refusal of an operation that a context does not have.
fn no_such(operation: &Operation) -> MatrixError {
    let planned = "a context has products, sums, transposes, and sums over axes 0 and 1".into();
    MatrixError::NotPlanned { operation: operation.name(), planned }
}

/// Multiples by a number; one level unless it is an integer.
fn multiples(e: &Evaluator, tiles: &[Ciphertext], by: f64) -> Result<Vec<Ciphertext>, MatrixError> {
    match is_integer(by) {
        true => each(tiles, |c| Ok(e.mul_integer(c, by as i64)?)),
        false => each(tiles, |c| Ok(e.mul_constant(c, by)?)),
    }
}

/// Two operands at one scale: where they differ, that with more levels takes the other's.
fn aligned<'c>(
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
