//! Parts of encrypted matrices, computed with one by one: what many machines work on.
//!
//! A part is a window of blocks, in a store or as containers in memory. A task multiplies a row of parts by a column of
//! parts, with the whole sum over the contraction and one relinearisation in it, and gives the blocks of a part of the
//! result: bit by bit those of the product in one piece. Parts are added block by block, and summed along an axis block by
//! block; what such a sum leaves to add up within a block is added up by whoever decrypts it.

use super::encrypted::{self, Encrypted};
use super::stored::{Stored, application, blocked, from_container, layout, operand_of, to_container};
use super::{Client, Server};
use crate::blocked::accumulate;
use std::ops::Range;
use sudare_expr::Operand;
use sudare_expr::{ExprError, Matrix};
use sudare_he::ckks::{Ciphertext, Decryptor};
use sudare_methods::MatrixError;
use sudare_methods::blocked::Blocked;
use sudare_plan::Plan;
use sudare_ring::threads;
use sudare_store::{Block, BlockSource};

/// Terms of the contraction that are loaded and multiplied together.
const DEPTH: usize = 4;

/// What the blocks of a part hold of their value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// They are sums of several values' blocks.
    pub added: bool,
    /// They are sums over all rows of blocks.
    pub rows: bool,
    /// They are sums over all columns of blocks.
    pub cols: bool,
}

impl Form {
    /// The blocks of the value itself.
    pub const VALUE: Self = Self { added: false, rows: false, cols: false };

    /// As a number of three bits: what a container says after its place. The value itself says nothing.
    pub fn bits(self) -> u8 {
        u8::from(self.added) | u8::from(self.rows) << 1 | u8::from(self.cols) << 2
    }

    /// From such a number.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for one of more bits.
    pub fn of_bits(bits: u8) -> Result<Self, MatrixError> {
        match bits {
            0..8 => Ok(Self { added: bits & 1 > 0, rows: bits & 2 > 0, cols: bits & 4 > 0 }),
            _ => Err(encrypted::corrupt("it is a part of an unknown form")),
        }
    }

    /// Whether a block holds a block's elements, and no sums of several.
    fn is_matrix(self) -> bool {
        !self.rows && !self.cols
    }
}

/// Where the blocks of a part are.
#[derive(Clone, Copy, Debug)]
pub enum Held<'a> {
    /// In a store.
    Stored(&'a Stored),
    /// Here, as containers, row by row.
    Blocks(&'a [&'a [u8]]),
}

/// A window of the blocks of a matrix.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The node of the plan's expression.
    pub node: usize,
    /// What its blocks hold.
    pub form: Form,
    /// Its rows of blocks; of a sum over rows the first alone.
    pub rows: Range<usize>,
    /// Its columns of blocks, likewise.
    pub cols: Range<usize>,
    /// Its blocks.
    pub held: Held<'a>,
}

/// How a value of a plan's product lies in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The node of the plan's expression.
    pub node: usize,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Rows and columns of blocks.
    pub grid: (usize, usize),
    /// Rows and columns of elements in a block.
    pub block: (usize, usize),
}

impl Layout {
    /// Of an operand, or of the product.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a plan whose method has no blocks, or of a batch.
    pub fn of(plan: &Plan, operand: Operand) -> Result<Self, MatrixError> {
        let product = single(plan)?;
        let expr = plan.expression();
        let node = match (operand, expr.as_product()) {
            (Operand::Left, Some((left, _))) => expr.node_of_input(left),
            (Operand::Right, Some((_, right))) => expr.node_of_input(right),
            _ => expr.output(),
        };
        let (grid, block) = (product.grid(operand), product.block_shape(operand));
        Ok(Self { node, shape: expr.info(node).shape, grid, block })
    }
}

/// The plan's product by blocks, of one pair of matrices.
fn single(plan: &Plan) -> Result<&dyn Blocked, MatrixError> {
    let product = blocked(plan)?;
    match plan.batch() {
        1 => Ok(product),
        batch => Err(MatrixError::NotPlanned {
            operation: "a product by parts",
            planned: format!("its batch has {batch} members; plan one product, and make a task of each member"),
        }),
    }
}

/// What a container of a part says of itself.
fn says(plan: &Plan, node: usize, form: Form, place: (usize, usize)) -> Vec<u8> {
    let mut out = application(plan, node, place);
    if form != Form::VALUE {
        out.push(form.bits());
    }
    out
}

fn shapes(operation: &'static str, left: (usize, usize), right: (usize, usize)) -> MatrixError {
    ExprError::Shapes { operation, left, right }.into()
}

impl Part<'_> {
    /// Rows and columns of blocks.
    fn grid(&self) -> (usize, usize) {
        (self.rows.len(), self.cols.len())
    }

    /// Refuses a part that its value does not have.
    fn check(&self, plan: &Plan) -> Result<(), MatrixError> {
        let ((rows, cols), _) = layout(plan, self.node)?;
        let (rows, cols) = (if self.form.rows { 1 } else { rows }, if self.form.cols { 1 } else { cols });
        let within = |part: &Range<usize>, all| part.start < part.end && part.end <= all;
        if !(within(&self.rows, rows) && within(&self.cols, cols)) {
            return Err(shapes("a part of this matrix", (self.rows.end, self.cols.end), (rows, cols)));
        }
        match self.held {
            Held::Stored(stored) if stored.plan() != plan => {
                let (what, found, expected) = ("the store", stored.plan().hash(), plan.hash());
                Err(MatrixError::WrongPlan { what, found, expected })
            }
            Held::Stored(stored) if stored.node() != self.node || self.form != Form::VALUE => {
                Err(encrypted::corrupt("it is a part of another value than its store's"))
            }
            Held::Blocks(blocks) if blocks.len() != self.rows.len() * self.cols.len() => {
                let expected = self.rows.len() * self.cols.len();
                Err(MatrixError::Count { what: "blocks of a part", found: blocks.len(), expected })
            }
            _ => Ok(()),
        }
    }

    /// The ciphertext of a block, counted through the whole matrix.
    fn block(&self, plan: &Plan, (row, col): (usize, usize)) -> Result<Ciphertext, MatrixError> {
        let says = says(plan, self.node, self.form, (row, col));
        match self.held {
            Held::Blocks(blocks) => {
                let at = (row - self.rows.start) * self.cols.len() + col - self.cols.start;
                from_container(plan, &says, blocks[at])
            }
            Held::Stored(stored) => {
                let mut block = Block::zeroed(stored.reader().block_bytes() as usize);
                stored.reader().read(row, col, &mut block)?;
                from_container(plan, &says, stored.reader().container(row, col, &block)?)
            }
        }
    }

    /// The places of its blocks, row by row.
    fn places(&self) -> Vec<(usize, usize)> {
        self.rows.clone().flat_map(|row| self.cols.clone().map(move |col| (row, col))).collect()
    }
}

impl Server {
    /// The product of a row of parts of the left operand by a column of parts of the right one, which together have the
    /// whole contraction in order: the containers of the result's blocks, row by row.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] for parts that do not go together, [`MatrixError::NotPlanned`], [`MatrixError::WrongPlan`],
    /// [`MatrixError::Wire`] and [`MatrixError::Store`] for damaged blocks, [`MatrixError::He`].
    pub fn matmul_parts(&self, left: &[Part<'_>], right: &[Part<'_>]) -> Result<Vec<Vec<u8>>, MatrixError> {
        let (plan, evaluator, pool) = self.real()?;
        let product = single(plan)?;
        let (rows, cols) = fitting(plan, product, left, right)?;
        let (p, q) = (rows.len(), cols.len());
        let output = plan.expression().output();
        let released = plan.release().map(|_| plan.expected()).transpose()?;
        pool.run(|| {
            let mut sums: Vec<Option<Ciphertext>> = vec![None; p * q];
            for (a, b) in left.iter().zip(right) {
                for start in a.cols.clone().step_by(DEPTH) {
                    let terms = start..a.cols.end.min(start + DEPTH);
                    let load = |at: usize| {
                        let (t, i) = (terms.start + at / (p + q), at % (p + q));
                        let (part, operand, place) = match i.checked_sub(p) {
                            None => (a, Operand::Left, (rows.start + i, t)),
                            Some(j) => (b, Operand::Right, (t, cols.start + j)),
                        };
                        product.spread(evaluator, operand, part.block(plan, place)?)
                    };
                    let loaded = threads::map(terms.len() * (p + q), load);
                    let loaded = loaded.into_iter().collect::<Result<Vec<_>, _>>()?;
                    sums = accumulate(evaluator, sums, &loaded, (p, q))?;
                }
            }
            let sums: Vec<Ciphertext> = sums.into_iter().flatten().collect();
            let made = threads::map_into(sums, |at, sum| {
                let block = product.finish(evaluator, sum)?;
                let block = match &released {
                    Some(expected) => block.with_error_of(expected.error),
                    None => block,
                };
                to_container(plan, says(plan, output, Form::VALUE, (rows.start + at / q, cols.start + at % q)), block)
            });
            made.into_iter().collect()
        })
    }

    /// The sum of two parts, block by block. The bounds that travel with the blocks add up; a sum that the modulus
    /// could not hold is refused.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] for other windows, values or sums; [`MatrixError::He`] for a sum that is too large.
    pub fn add_parts(&self, a: &Part<'_>, b: &Part<'_>) -> Result<Vec<Vec<u8>>, MatrixError> {
        let (plan, evaluator, pool) = self.real()?;
        single(plan)?;
        a.check(plan)?;
        b.check(plan)?;
        let same = (&a.rows, &a.cols, a.node) == (&b.rows, &b.cols, b.node);
        if !same || (a.form.rows, a.form.cols) != (b.form.rows, b.form.cols) {
            return Err(shapes("a sum of two parts", a.grid(), b.grid()));
        }
        let (places, form) = (a.places(), Form { added: true, ..a.form });
        pool.run(|| {
            let made = threads::map(places.len(), |at| {
                let sum = evaluator.add(&a.block(plan, places[at])?, &b.block(plan, places[at])?)?;
                to_container(plan, says(plan, a.node, form, places[at]), sum)
            });
            made.into_iter().collect()
        })
    }

    /// The sum of a part's blocks over its rows or its columns of blocks. Sums of all parts along the axis, added by
    /// [`Server::add_parts`], make that of the matrix.
    ///
    /// # Errors
    /// As [`Server::add_parts`]; [`MatrixError::NotPlanned`] for an axis that was summed over.
    pub fn sum_part(&self, a: &Part<'_>, rows: bool) -> Result<Vec<Vec<u8>>, MatrixError> {
        let (plan, evaluator, pool) = self.real()?;
        single(plan)?;
        a.check(plan)?;
        let summed_before = if rows { a.form.rows } else { a.form.cols };
        if summed_before {
            let planned = "it was summed over already; sum over the other axis".into();
            return Err(MatrixError::NotPlanned { operation: "a sum over this axis", planned });
        }
        let form = if rows { Form { rows: true, ..a.form } } else { Form { cols: true, ..a.form } };
        let kept = if rows { a.cols.clone() } else { a.rows.clone() };
        let summed = if rows { a.rows.clone() } else { a.cols.clone() };
        pool.run(|| {
            let made = threads::map(kept.len(), |at| {
                let line = kept.start + at;
                let place = |i: usize| if rows { (i, line) } else { (line, i) };
                let mut sum = a.block(plan, place(summed.start))?;
                for i in summed.start + 1..summed.end {
                    evaluator.add_assign(&mut sum, &a.block(plan, place(i))?)?;
                }
                to_container(plan, says(plan, a.node, form, if rows { (0, line) } else { (line, 0) }), sum)
            });
            made.into_iter().collect()
        })
    }
}

/// The result's rows and columns of blocks, if parts go together.
fn fitting(
    plan: &Plan,
    product: &dyn Blocked,
    left: &[Part<'_>],
    right: &[Part<'_>],
) -> Result<(Range<usize>, Range<usize>), MatrixError> {
    let (Some(a), Some(b)) = (left.first(), right.first()) else {
        return Err(MatrixError::Count { what: "parts", found: left.len().min(right.len()), expected: 1 });
    };
    let mut next = 0;
    for (x, y) in left.iter().zip(right) {
        x.check(plan)?;
        y.check(plan)?;
        let sides = operand_of(plan, x.node) == Some(Operand::Left) && operand_of(plan, y.node) == Some(Operand::Right);
        let lines = x.rows == a.rows && y.cols == b.cols && x.cols == y.rows && x.cols.start == next;
        if !(sides && lines && x.form.is_matrix() && y.form.is_matrix()) {
            return Err(shapes("a product of these parts", x.grid(), y.grid()));
        }
        next = x.cols.end;
    }
    if left.len() != right.len() || next != product.grid(Operand::Left).1 {
        let (found, expected) = (next, product.grid(Operand::Left).1);
        return Err(MatrixError::Count { what: "blocks along the contraction", found, expected });
    }
    Ok((a.rows.clone(), b.cols.clone()))
}

impl Encrypted {
    /// The value whose parts, all of them, these are: a part that is the whole.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a sum, [`MatrixError::Count`] for less than the whole, [`MatrixError::Wire`].
    pub fn of_part(plan: &Plan, part: &Part<'_>) -> Result<Self, MatrixError> {
        part.check(plan)?;
        if part.form != Form::VALUE {
            let planned = "a sum of matrices is not a value of the plan; decrypt it as it is".into();
            return Err(MatrixError::NotPlanned { operation: "taking this part for a value", planned });
        }
        let (rows, cols) = layout(plan, part.node)?.0;
        if part.grid() != (rows, cols) {
            let found = part.rows.len() * part.cols.len();
            return Err(MatrixError::Count { what: "blocks of the value", found, expected: rows * cols });
        }
        let values = part.places().into_iter().map(|place| part.block(plan, place)).collect::<Result<Vec<_>, _>>()?;
        let key = values.first().map(Ciphertext::key).ok_or_else(|| encrypted::corrupt("a part without blocks"))?;
        Self::ckks(plan, part.node, key, values)
    }
}

impl Client {
    /// Decrypts a part, for the owner's eyes: the elements of its window, or what they add up to along the axes that
    /// were summed over. Some blocks are in memory at a time.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`], [`MatrixError::Wire`], [`MatrixError::Store`], [`MatrixError::He`] for another key.
    pub fn decrypt_part(&self, part: &Part<'_>) -> Result<Matrix, MatrixError> {
        let plan = self.plan();
        let product = single(plan)?;
        part.check(plan)?;
        let operand = operand_of(plan, part.node).ok_or_else(|| encrypted::corrupt("a part of no matrix"))?;
        let ((b, c), (m, n)) = (product.block_shape(operand), plan.expression().info(part.node).shape);
        let (decryptor, places) = (Decryptor::new(self.secret_key()), part.places());
        let blocks = self.pool().run(|| {
            threads::map(places.len(), |at| {
                let plain = decryptor.decrypt(&part.block(plan, places[at])?)?;
                product.decode_block(operand, &plain)
            })
        });
        let blocks = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
        let end = |window: &Range<usize>, block: usize, all: usize| all.min(window.end * block) - window.start * block;
        let rows = if part.form.rows { 1 } else { end(&part.rows, b, m) };
        let cols = if part.form.cols { 1 } else { end(&part.cols, c, n) };
        Ok(Matrix::from_fn(rows, cols, |i, j| {
            // Within a block the axes that were summed over are still apart.
            let down = if part.form.rows { 0..b } else { i % b..i % b + 1 };
            let across = if part.form.cols { 0..c } else { j % c..j % c + 1 };
            let block = &blocks[i / b * part.cols.len() + j / c];
            down.map(|r| across.clone().map(|k| block[r * c + k]).sum::<f64>()).sum()
        })?)
    }
}
