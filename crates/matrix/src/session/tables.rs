//! The operations of a context whose matrices are tables over whole ciphertexts.

use super::encrypted::Encrypted;
use super::free::{Free, aligned, each, multiples, no_such, operand_count};
use super::layout::{Layout, Tabled};
use crate::error::MatrixError;
use crate::expr::Op;
use crate::slots::grid::Grid;
use crate::slots::tiles::Axis;
use sudare_he::ckks::Evaluator;

impl Free {
    /// An operation on operands that have the levels for it. Shapes go together as NumPy has them.
    pub(super) fn table(&self, e: &Evaluator, op: Op, operands: &[&Encrypted]) -> Result<Encrypted, MatrixError> {
        match (op, operands) {
            (Op::Matmul { .. }, [a, b]) => self.vector_product(e, a, b),
            (Op::Add { .. } | Op::Sub { .. }, [a, b]) => {
                let (mut x, mut y) = (a.table()?, b.table()?);
                let (left, right) = aligned(e, (a.level(), &x.tiles), (b.level(), &y.tiles))?;
                (x, y) =
                    (Grid { tiles: left.into_owned().into(), ..x }, Grid { tiles: right.into_owned().into(), ..y });
                let sum = if matches!(op, Op::Add { .. }) { x.add(e, &y)? } else { x.sub(e, &y)? };
                self.tabled(a, sum, a.max_abs() + b.max_abs())
            }
            (Op::Mul { .. }, [a, b]) => self.tabled(a, a.table()?.mul(e, &b.table()?)?, a.max_abs() * b.max_abs()),
            (_, [a]) => self.unary_table(e, op, a),
            _ => Err(operand_count(op, operands.len())),
        }
    }

    fn unary_table(&self, e: &Evaluator, op: Op, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        let (grid, bound) = (a.table()?, a.max_abs());
        let mapped = |tiles| Grid { tiles: std::borrow::Cow::Owned(tiles), ..grid.clone() };
        match op {
            Op::Bounded { max_abs, .. } => self.bounded(e, a, max_abs),
            Op::Neg { .. } => self.tabled(a, mapped(each(&grid.tiles, |c| Ok(e.negate(c)?))?), bound),
            Op::Scale { by, .. } => self.tabled(a, mapped(multiples(e, &grid.tiles, by)?), bound * by.abs()),
            Op::Shift { by: 0.0, .. } => Ok(a.clone()),
            // Only the table itself: what is beside it stays as it is.
            Op::Shift { by, .. } => {
                self.tabled(a, mapped(a.laid()?.1.shifted(e, &grid.tiles, (by, 0.0))?), bound + by.abs())
            }
            Op::Transpose { .. } => self.tabled(a, grid.transpose(e)?, bound),
            Op::Sum { axis: 0, .. } => self.tabled(a, grid.sum(e, Axis::Rows)?, grid.layout.rows as f64 * bound),
            Op::Sum { axis: 1, .. } => self.tabled(a, grid.sum(e, Axis::Columns)?, grid.layout.cols as f64 * bound),
            _ => Err(no_such(op)),
        }
    }

    /// A table times a column, or a row times a table: the vector is turned so that it lies along the axis that is summed.
    fn vector_product(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let turned = |v: &Encrypted| self.apply(e, Op::Transpose { of: v.node() }, &[v]);
        let times = |x: &Encrypted, y: &Encrypted| self.apply(e, Op::Mul { left: x.node(), right: y.node() }, &[x, y]);
        let (product, axis) = match (a.shape(), b.shape()) {
            (_, (_, 1)) => (times(a, &turned(b)?)?, 1),
            ((1, _), _) => (times(&turned(a)?, b)?, 0),
            _ => {
                let planned =
                    "a table over whole ciphertexts is multiplied by vectors; for products of matrices make a \
                               context without columns"
                        .into();
                return Err(MatrixError::NotPlanned { operation: "a matrix product of tables", planned });
            }
        };
        self.apply(e, Op::Sum { of: product.node(), axis }, &[&product])
    }

    fn tabled(&self, like: &Encrypted, grid: Grid<'_>, max_abs: f64) -> Result<Encrypted, MatrixError> {
        let (layout, tiles): (Layout, _) = Tabled::of(grid);
        self.made(layout, max_abs, like.key(), tiles)
    }
}
