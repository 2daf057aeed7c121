//! Expressions on matrices: what a plan computes.
//!
//! An [`Expr`] is a graph in the order of evaluation; each node names earlier ones. It is checked
//! when it is made, so that shapes and value bounds of every node are known from then on.

use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::slots::lines::Lines;
use serde::{Deserialize, Serialize};
use std::fmt;
use sudare_he::HeError;
use sudare_he::circuits::polynomial::fit;
use sudare_ring::error::told;
use sudare_rlwe::RlweError;

/// Most nodes of an expression.
pub const MAX_NODES: usize = 1024;
/// Most rows or columns of a matrix.
pub const MAX_SIDE: usize = 1 << 24;
/// Most elements of a matrix.
pub const MAX_ELEMENTS: usize = 1 << 28;
/// Most bytes of an input's name.
pub const MAX_NAME: usize = 64;
/// Largest bound of a table's column, and the inverse of the least: its square is a double.
const MAX_COLUMN_BOUND: f64 = 1e150;

/// A matrix that goes in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Bound on the absolute value of its elements, finite and above zero.
    pub max_abs: f64,
    /// Whether the server knows it: it is not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// For integers, which are computed with exactly, the bound to the last digit; `max_abs` is the double next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integers: Option<u128>,
    /// For a table of which statistics are found, a bound for each column; `max_abs` is the largest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<f64>,
}

impl InputSpec {
    /// An encrypted input.
    pub fn new(name: &str, (rows, cols): (usize, usize), max_abs: f64) -> Self {
        Self { name: name.to_owned(), rows, cols, max_abs, plain: false, integers: None, columns: Vec::new() }
    }

    /// An encrypted input of integers.
    pub fn integers(name: &str, shape: (usize, usize), bound: u128) -> Self {
        Self { integers: Some(bound), ..Self::new(name, shape, bound as f64) }
    }

    /// The bound of integers.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a bound of more than 127 bits.
    pub(crate) fn integer_bound(&self) -> Result<i128, MatrixError> {
        let real = RlweError::Internal { what: "an exact computation has an input of real numbers" };
        let bound = self.integers.ok_or(real).map_err(HeError::from)?;
        i128::try_from(bound).map_err(|_| MatrixError::NoPlan {
            reason: format!("the bound {bound} of {} passes 127 bits; declare a smaller one", self.name),
        })
    }

    /// An encrypted table with a bound for each of its columns.
    pub fn table(name: &str, rows: usize, columns: Vec<f64>) -> Self {
        let largest = columns.iter().copied().fold(0.0, f64::max);
        Self { cols: columns.len(), columns, ..Self::new(name, (rows, 0), largest) }
    }

    /// Refuses a matrix of another shape or with elements over their bounds.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`], [`MatrixError::OverBound`].
    pub fn check(&self, matrix: &Matrix) -> Result<(), MatrixError> {
        let expected = (self.rows, self.cols);
        if matrix.shape() != expected {
            return Err(MatrixError::PlannedShape { what: "the matrix", found: matrix.shape(), expected });
        }
        let bound = |col: usize| self.columns.get(col).copied().unwrap_or(self.max_abs);
        let places = matrix.data().iter().enumerate().map(|(at, x)| (at / self.cols, at % self.cols, x));
        match places.into_iter().find(|(_, col, x)| x.abs() > bound(*col)) {
            Some((row, col, _)) => Err(MatrixError::OverBound { row, col, bound: bound(col) }),
            None => Ok(()),
        }
    }
}

/// An operation; numbers are positions of earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "op", deny_unknown_fields)]
#[non_exhaustive]
pub enum Op {
    /// An input, by its position among the inputs.
    Input {
        /// Position.
        input: usize,
    },
    /// Matrix product.
    Matmul {
        /// Left factor.
        left: usize,
        /// Right factor.
        right: usize,
    },
    /// Sum, element by element.
    Add {
        /// Left operand.
        left: usize,
        /// Right operand.
        right: usize,
    },
    /// Difference, element by element.
    Sub {
        /// Left operand.
        left: usize,
        /// Right operand.
        right: usize,
    },
    /// Product, element by element.
    Mul {
        /// Left operand.
        left: usize,
        /// Right operand.
        right: usize,
    },
    /// Negation.
    Neg {
        /// Operand.
        of: usize,
    },
    /// Product with a number.
    Scale {
        /// Operand.
        of: usize,
        /// The number.
        by: f64,
    },
    /// A number added to every element.
    Shift {
        /// Operand.
        of: usize,
        /// The number.
        by: f64,
    },
    /// Transpose.
    Transpose {
        /// Operand.
        of: usize,
    },
    /// Sum over the rows (axis 0: one row comes out) or over the columns (axis 1: one column).
    Sum {
        /// Operand.
        of: usize,
        /// 0 or 1.
        axis: u8,
    },
    /// The operand, of whose elements a bound is known that the operations before do not tell.
    Bounded {
        /// Operand.
        of: usize,
        /// The bound on their absolute values.
        max_abs: f64,
    },
    /// Rows (axis 0) or columns (axis 1) in other places of a new matrix.
    Take {
        /// Operand.
        of: usize,
        /// 0 or 1.
        axis: u8,
        /// Which, and where to.
        lines: Lines,
    },
    /// The only row (axis 0) or column (axis 1), `size` times.
    Repeat {
        /// Operand.
        of: usize,
        /// 0 or 1.
        axis: u8,
        /// How many times.
        size: usize,
    },
    /// The operand, a polynomial's value, which stands for a function that it is `error` away from at most, where the
    /// polynomial's variable lies between `low` and `high`; a bound on it that is over both ends is refused.
    Approximation {
        /// Operand.
        of: usize,
        /// The variable's node.
        variable: usize,
        /// Largest distance to the function.
        error: f64,
        /// Least value of the variable.
        low: f64,
        /// Largest value of the variable.
        high: f64,
    },
    /// Means of the columns in the first row, and under it their covariances with n − 1 degrees of freedom.
    Moments {
        /// Operand.
        of: usize,
    },
}

impl Op {
    /// The nodes it takes, one or two; none for an input.
    pub fn operands(&self) -> impl Iterator<Item = usize> + use<> {
        let (a, b) = match *self {
            Self::Input { .. } => (None, None),
            Self::Matmul { left, right }
            | Self::Add { left, right }
            | Self::Sub { left, right }
            | Self::Mul { left, right } => (Some(left), Some(right)),
            Self::Neg { of }
            | Self::Scale { of, .. }
            | Self::Shift { of, .. }
            | Self::Transpose { of }
            | Self::Bounded { of, .. }
            | Self::Moments { of }
            | Self::Take { of, .. }
            | Self::Repeat { of, .. }
            | Self::Approximation { of, .. }
            | Self::Sum { of, .. } => (Some(of), None),
        };
        a.into_iter().chain(b)
    }

    /// The same operation on nodes of other numbers.
    fn renamed(self, f: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Input { input } => Self::Input { input },
            Self::Matmul { left, right } => Self::Matmul { left: f(left), right: f(right) },
            Self::Add { left, right } => Self::Add { left: f(left), right: f(right) },
            Self::Sub { left, right } => Self::Sub { left: f(left), right: f(right) },
            Self::Mul { left, right } => Self::Mul { left: f(left), right: f(right) },
            Self::Neg { of } => Self::Neg { of: f(of) },
            Self::Scale { of, by } => Self::Scale { of: f(of), by },
            Self::Shift { of, by } => Self::Shift { of: f(of), by },
            Self::Transpose { of } => Self::Transpose { of: f(of) },
            Self::Sum { of, axis } => Self::Sum { of: f(of), axis },
            Self::Bounded { of, max_abs } => Self::Bounded { of: f(of), max_abs },
            Self::Take { of, axis, lines } => Self::Take { of: f(of), axis, lines },
            Self::Repeat { of, axis, size } => Self::Repeat { of: f(of), axis, size },
            Self::Approximation { of, variable, error, low, high } => {
                Self::Approximation { of: f(of), variable: f(variable), error, low, high }
            }
            Self::Moments { of } => Self::Moments { of: f(of) },
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Matmul { .. } => "matrix product",
            Self::Add { .. } => "addition",
            Self::Sub { .. } => "subtraction",
            Self::Mul { .. } => "element-wise product",
            Self::Neg { .. } => "negation",
            Self::Scale { .. } => "product with a number",
            Self::Shift { .. } => "addition of a number",
            Self::Transpose { .. } => "transpose",
            Self::Sum { .. } => "sum",
            Self::Bounded { .. } => "known bound",
            Self::Take { .. } => "slice",
            Self::Repeat { .. } => "broadcast",
            Self::Approximation { .. } => "approximation",
            Self::Moments { .. } => "means and covariances",
        }
    }
}

/// What is known of a node before anything is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeInfo {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Bound on the absolute values.
    pub max_abs: f64,
}

/// An input as a product takes it: as it is given, or after operations that its owner does before encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Position of the input.
    pub input: usize,
    /// The node that is taken.
    pub node: usize,
    /// Nodes of the operations, each taking the one before it, the last of them [`Prepared::node`].
    pub steps: Vec<usize>,
}

/// An input that is added to a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addend {
    /// It.
    pub of: Prepared,
    /// The node of the sum or difference.
    pub end: usize,
    /// Whether the product is subtracted from it.
    pub minuend: bool,
}

/// A product of inputs, and what is done to its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedProduct {
    /// Its factors.
    pub factors: [Prepared; 2],
    /// The node of the product.
    pub product: usize,
    /// The nodes from there to the expression's value, each taking the one before it.
    pub ends: Vec<usize>,
    /// What is added on the way, in this order.
    pub addends: Vec<Addend>,
}

/// An expression as it is written down: unchecked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    inputs: Vec<InputSpec>,
    nodes: Vec<Op>,
    output: usize,
}

/// A checked expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Expr {
    written: Written,
    info: Vec<NodeInfo>,
}

impl TryFrom<Written> for Expr {
    type Error = MatrixError;
    fn try_from(w: Written) -> Result<Self, MatrixError> {
        Self::new(w.inputs, w.nodes, w.output)
    }
}

impl From<Expr> for Written {
    fn from(e: Expr) -> Self {
        e.written
    }
}

fn refuse<T>(reason: String) -> Result<T, MatrixError> {
    Err(MatrixError::Expression { reason })
}

impl Expr {
    /// An expression of `inputs` and `nodes` whose value is that of node `output`.
    ///
    /// # Errors
    /// [`MatrixError::Expression`] for a graph that makes no sense or is too large,
    /// [`MatrixError::Shapes`] for shapes that do not go together.
    pub fn new(inputs: Vec<InputSpec>, nodes: Vec<Op>, output: usize) -> Result<Self, MatrixError> {
        if inputs.is_empty() || nodes.is_empty() || nodes.len() > MAX_NODES || inputs.len() > MAX_NODES {
            return refuse(format!("it takes 1 to {MAX_NODES} inputs and nodes"));
        }
        for (i, input) in inputs.iter().enumerate() {
            check_input(input)?;
            if inputs[..i].iter().any(|other| other.name == input.name) {
                return refuse(format!("two inputs are called {:?}", input.name));
            }
        }
        if output >= nodes.len() {
            return refuse(format!("its value is node {output}, and there are {}", nodes.len()));
        }
        let (nodes, output) = merge_equal(&nodes, output)?;
        let mut info: Vec<NodeInfo> = Vec::with_capacity(nodes.len());
        for op in &nodes {
            info.push(infer(op, &inputs, &info)?);
        }
        let mut used = vec![false; nodes.len()];
        used[output] = true;
        for (at, op) in nodes.iter().enumerate().rev() {
            if used[at] {
                op.operands().for_each(|o| used[o] = true);
            }
        }
        if let Some(at) = used.iter().position(|u| !u) {
            return refuse(format!("node {at} ({}) does not matter to its value; leave it out", nodes[at].name()));
        }
        for (i, input) in inputs.iter().enumerate() {
            let uses = nodes.iter().filter(|op| matches!(op, Op::Input { input } if *input == i)).count();
            if uses != 1 {
                return refuse(format!("input {:?} stands in {uses} nodes, not in one", input.name));
            }
        }
        if inputs.iter().all(|i| i.plain) {
            return refuse("nothing in it is encrypted".into());
        }
        check_kind(&inputs, &nodes, output)?;
        let expr = Self { written: Written { inputs, nodes, output }, info };
        expr.check_intervals()?;
        Ok(expr)
    }

    /// Refuses a function of what may be outside of its interval.
    fn check_intervals(&self) -> Result<(), MatrixError> {
        for op in self.nodes() {
            let Op::Approximation { variable, low, high, .. } = *op else { continue };
            let (bound, reach) = (self.info(variable).max_abs, low.abs().max(high.abs()));
            if !fit::reaches(reach, bound) {
                let what = Shown { expr: self, node: variable }.to_string();
                return Err(MatrixError::NoPlan { reason: fit::outside(&what, bound, reach) });
            }
        }
        Ok(())
    }

    /// The bound on the values of an expression as it is written, as far as its value and whatever else is in it.
    ///
    /// # Errors
    /// As [`Expr::from_json`].
    pub fn bound_of_json(text: &str) -> Result<f64, MatrixError> {
        let Written { inputs, nodes, output } =
            serde_json::from_str(text).map_err(|e| MatrixError::Expression { reason: told(e) })?;
        let mut info: Vec<NodeInfo> = Vec::with_capacity(nodes.len());
        for (at, op) in nodes.iter().enumerate().take_while(|(at, _)| *at <= output) {
            check_order(at, op)?;
            info.push(infer(op, &inputs, &info)?);
        }
        match info.get(output) {
            Some(found) => Ok(found.max_abs),
            None => refuse(format!("its value is node {output}, and there are {}", nodes.len())),
        }
    }

    /// The product of two inputs.
    ///
    /// # Errors
    /// As [`Expr::new`].
    pub fn product(left: InputSpec, right: InputSpec) -> Result<Self, MatrixError> {
        let nodes = vec![Op::Input { input: 0 }, Op::Input { input: 1 }, Op::Matmul { left: 0, right: 1 }];
        Self::new(vec![left, right], nodes, 2)
    }

    /// Means and covariances of a table's columns.
    ///
    /// # Errors
    /// As [`Expr::new`].
    pub fn moments(table: InputSpec) -> Result<Self, MatrixError> {
        Self::new(vec![table], vec![Op::Input { input: 0 }, Op::Moments { of: 0 }], 1)
    }

    /// Reads `{"inputs": […], "nodes": […], "output": …}`.
    ///
    /// # Errors
    /// As [`Expr::new`]; [`MatrixError::Expression`] for text that is no expression.
    pub fn from_json(text: &str) -> Result<Self, MatrixError> {
        let written: Written = serde_json::from_str(text).map_err(|e| MatrixError::Expression { reason: told(e) })?;
        written.try_into()
    }

    /// What is computed, in words.
    pub fn describe(&self) -> String {
        format!("it computes {self}")
    }

    /// The inputs.
    pub fn inputs(&self) -> &[InputSpec] {
        &self.written.inputs
    }

    /// The operations, in the order of evaluation.
    pub fn nodes(&self) -> &[Op] {
        &self.written.nodes
    }

    /// The node whose value is the expression's.
    pub fn output(&self) -> usize {
        self.written.output
    }

    /// What is known of a node.
    pub fn info(&self, node: usize) -> &NodeInfo {
        &self.info[node]
    }

    /// The position of an input by its name.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs().iter().position(|i| i.name == name)
    }

    /// The node of an input.
    pub fn node_of_input(&self, input: usize) -> usize {
        let at = self.nodes().iter().position(|op| matches!(op, Op::Input { input: i } if *i == input));
        at.unwrap_or(usize::MAX)
    }

    /// The two inputs' positions, if the expression is one product of two different inputs.
    pub fn as_product(&self) -> Option<(usize, usize)> {
        let Op::Matmul { left, right } = self.nodes()[self.output()] else { return None };
        match (self.nodes()[left], self.nodes()[right]) {
            (Op::Input { input: l }, Op::Input { input: r }) if l != r => Some((l, r)),
            _ => None,
        }
    }

    /// The one product of inputs that it is, with what is done to them before and to the product after: by numbers, and
    /// by inputs that are added to it.
    pub fn ended_product(&self) -> Option<EndedProduct> {
        let (mut ends, mut addends, mut at) = (Vec::new(), Vec::new(), self.output());
        loop {
            let of = match self.nodes()[at] {
                Op::Matmul { left, right } => {
                    let factors = [self.prepared(left)?, self.prepared(right)?];
                    ends.reverse();
                    addends.reverse();
                    return Some(EndedProduct { factors, product: at, ends, addends });
                }
                Op::Scale { by: 0.0, .. } => return None,
                Op::Neg { of }
                | Op::Scale { of, .. }
                | Op::Shift { of, .. }
                | Op::Transpose { of }
                | Op::Bounded { of, .. } => of,
                Op::Add { left, right } | Op::Sub { left, right } => {
                    let (of, other) = if self.prepared(right).is_some() { (left, right) } else { (right, left) };
                    let minuend = matches!(self.nodes()[at], Op::Sub { .. }) && other == left;
                    addends.push(Addend { of: self.prepared(other)?, end: at, minuend });
                    of
                }
                _ => return None,
            };
            ends.push(at);
            at = of;
        }
    }

    /// A node as an input that its owner prepares: operations on one matrix, which take no other.
    pub(crate) fn prepared(&self, node: usize) -> Option<Prepared> {
        let (mut steps, mut at) = (Vec::new(), node);
        loop {
            let of = match self.nodes()[at] {
                Op::Input { input } => {
                    steps.reverse();
                    return Some(Prepared { input, node, steps });
                }
                Op::Scale { by: 0.0, .. } => return None,
                Op::Neg { of }
                | Op::Scale { of, .. }
                | Op::Shift { of, .. }
                | Op::Transpose { of }
                | Op::Bounded { of, .. }
                | Op::Take { of, .. }
                | Op::Repeat { of, .. }
                | Op::Sum { of, .. } => of,
                _ => return None,
            };
            steps.push(at);
            at = of;
        }
    }

    /// Whether its inputs are integers and it is computed exactly.
    pub fn is_exact(&self) -> bool {
        self.inputs().iter().any(|i| i.integers.is_some())
    }

    /// The table, if it is the means and covariances of one that are computed.
    pub fn as_moments(&self) -> Option<&InputSpec> {
        matches!(self.nodes()[self.output()], Op::Moments { .. }).then(|| &self.inputs()[0])
    }

    /// Whether a node's value is known to the server without any key.
    pub fn is_plain(&self, node: usize) -> bool {
        match self.nodes()[node] {
            Op::Input { input } => self.inputs()[input].plain,
            op => op.operands().all(|o| self.is_plain(o)),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, node: usize, binding: u8) -> fmt::Result {
        let paren = |f: &mut fmt::Formatter<'_>, own: u8, body: &dyn Fn(&mut fmt::Formatter<'_>) -> fmt::Result| {
            if own >= binding {
                return body(f);
            }
            write!(f, "(")?;
            body(f)?;
            write!(f, ")")
        };
        let infix = |f: &mut fmt::Formatter<'_>, own: u8, l: usize, sign: &str, r: usize| {
            paren(f, own, &|f| {
                self.write(f, l, own)?;
                write!(f, " {sign} ")?;
                self.write(f, r, own + 1)
            })
        };
        match self.nodes()[node] {
            Op::Input { input } => write!(f, "{}", self.inputs()[input].name),
            Op::Matmul { left, right } => infix(f, 2, left, "@", right),
            Op::Mul { left, right } => infix(f, 2, left, "*", right),
            Op::Add { left, right } => infix(f, 1, left, "+", right),
            Op::Sub { left, right } => infix(f, 1, left, "-", right),
            Op::Neg { of } => paren(f, 3, &|f| {
                write!(f, "-")?;
                self.write(f, of, 3)
            }),
            Op::Scale { of, by } => paren(f, 2, &|f| {
                write!(f, "{by} * ")?;
                self.write(f, of, 3)
            }),
            Op::Shift { of, by } => paren(f, 1, &|f| {
                self.write(f, of, 1)?;
                write!(f, " + {by}")
            }),
            Op::Transpose { of } => {
                self.write(f, of, 4)?;
                write!(f, ".T")
            }
            Op::Sum { of, axis } => {
                self.write(f, of, 4)?;
                write!(f, ".sum({axis})")
            }
            Op::Bounded { of, max_abs } => {
                self.write(f, of, 4)?;
                write!(f, ".bounded({max_abs})")
            }
            Op::Take { of, axis, lines } => {
                let Lines { start, step, count, at, stride, size } = lines;
                self.write(f, of, 4)?;
                write!(f, ".take({start}:{step}:{count} to {at}:{stride} of {size}, {axis})")
            }
            Op::Repeat { of, axis, size } => {
                self.write(f, of, 4)?;
                write!(f, ".repeat({size}, {axis})")
            }
            Op::Approximation { of, error, low, high, .. } => {
                write!(f, "approximation(")?;
                self.write(f, of, 0)?;
                write!(f, " on [{low}, {high}] within {error:.1e})")
            }
            Op::Moments { of } => {
                write!(f, "moments(")?;
                self.write(f, of, 0)?;
                write!(f, ")")
            }
        }
    }
}

/// A node's value in words.
struct Shown<'e> {
    expr: &'e Expr,
    node: usize,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expr, node } = *self;
        // Shared nodes are written out at each use; a deep expression is told by its size.
        let mut size = vec![1u64; node + 1];
        for (at, op) in expr.nodes()[..=node].iter().enumerate() {
            size[at] = op.operands().fold(1, |s, o| s.saturating_add(size[o]));
        }
        if size[node] > 64 {
            return write!(f, "an expression of {} operations", node + 1);
        }
        expr.write(f, node, 0)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { expr: self, node: self.output() }.fmt(f)
    }
}

/// The same graph with equal operations done once: two nodes that read alike are one value.
fn merge_equal(nodes: &[Op], output: usize) -> Result<(Vec<Op>, usize), MatrixError> {
    let mut merged: Vec<Op> = Vec::with_capacity(nodes.len());
    let mut place: Vec<usize> = Vec::with_capacity(nodes.len());
    for (at, op) in nodes.iter().enumerate() {
        check_order(at, op)?;
        let op = op.renamed(|o| place[o]);
        place.push(merged.iter().position(|m| *m == op).unwrap_or(merged.len()));
        if place[at] == merged.len() {
            merged.push(op);
        }
    }
    Ok((merged, place[output]))
}

/// Refuses what is not computed of earlier nodes.
fn check_order(at: usize, op: &Op) -> Result<(), MatrixError> {
    let variable = if let Op::Approximation { variable, .. } = op { Some(*variable) } else { None };
    match op.operands().chain(variable).any(|o| o >= at) {
        true => refuse(format!("node {at} names a node that does not come before it")),
        false => Ok(()),
    }
}

fn check_input(input: &InputSpec) -> Result<(), MatrixError> {
    let InputSpec { name, rows, cols, max_abs, .. } = input;
    let printable = name.chars().all(|c| !c.is_control());
    if name.is_empty() || name.len() > MAX_NAME || !printable {
        return refuse(format!("an input's name has 1 to {MAX_NAME} bytes, all printable"));
    }
    // A table's rows are no side of a product.
    let most = if input.columns.is_empty() { MAX_SIDE } else { MAX_ELEMENTS };
    let sides = (1..=most).contains(rows) && (1..=MAX_SIDE).contains(cols);
    if !sides || rows.saturating_mul(*cols) > MAX_ELEMENTS {
        return refuse(format!(
            "{name} is {rows}×{cols}, and 1×1 to {MAX_SIDE} a side and {MAX_ELEMENTS} elements are possible"
        ));
    }
    if let Some(bound) = input.integers {
        if bound == 0 || *max_abs != bound as f64 {
            return refuse(format!("the bound on the integers of {name} is {bound}, and max_abs says {max_abs}"));
        }
        return Ok(());
    }
    if !input.columns.is_empty() {
        return check_columns(input);
    }
    if !(max_abs.is_finite() && *max_abs > 0.0 && *max_abs <= 1e15 && *max_abs >= 1e-15) {
        return refuse(format!("the bound on {name} is {max_abs}, and it has to be from 1e-15 to 1e15"));
    }
    Ok(())
}

/// Refuses bounds of columns that are none, or others than as many as there are columns.
fn check_columns(input: &InputSpec) -> Result<(), MatrixError> {
    let (name, bounds) = (&input.name, &input.columns);
    if let Some(bound) = bounds.iter().find(|b| !(**b >= 1.0 / MAX_COLUMN_BOUND && **b <= MAX_COLUMN_BOUND)) {
        return refuse(format!("a column's max_abs is above zero, 1e-150 to 1e150, not {bound}"));
    }
    if bounds.len() != input.cols || bounds.iter().copied().fold(0.0, f64::max) != input.max_abs {
        return refuse(format!(
            "{name} has {} columns up to {}, and bounds for {} of them",
            input.cols,
            input.max_abs,
            bounds.len()
        ));
    }
    Ok(())
}

/// Refuses what mixes the kinds of expressions: on real matrices, on integers, moments of a table.
fn check_kind(inputs: &[InputSpec], nodes: &[Op], output: usize) -> Result<(), MatrixError> {
    let exact = inputs.iter().filter(|i| i.integers.is_some()).count();
    if exact != 0 && exact != inputs.len() {
        return refuse(
            "integer and real matrices do not mix; describe all inputs as integers (dtype=int), or none".into(),
        );
    }
    let tables = inputs.iter().filter(|i| !i.columns.is_empty()).count();
    let moments = nodes.iter().any(|op| matches!(op, Op::Moments { .. }));
    let alone = matches!(nodes[output], Op::Moments { .. }) && nodes.len() == 2 && exact == 0;
    if (moments || tables != 0) && !(alone && tables == 1 && !inputs[0].plain) {
        let reason = "means and covariances are those of one encrypted table with a bound for each column, and nothing \
                      else is computed of it";
        return refuse(reason.into());
    }
    Ok(())
}

/// Rows or columns of a shape, by the axis.
fn line_count((rows, cols): (usize, usize), axis: u8) -> Result<usize, MatrixError> {
    match axis {
        0 => Ok(rows),
        1 => Ok(cols),
        _ => refuse(format!("a matrix has axes 0 and 1, not {axis}")),
    }
}

fn infer(op: &Op, inputs: &[InputSpec], info: &[NodeInfo]) -> Result<NodeInfo, MatrixError> {
    let same = |left: usize, right: usize| {
        let (l, r) = (info[left], info[right]);
        if l.shape != r.shape {
            return Err(MatrixError::Shapes { operation: op.name(), left: l.shape, right: r.shape });
        }
        Ok((l, r))
    };
    let number = |by: f64| {
        if by.is_finite() { Ok(()) } else { refuse(format!("{} by {by}", op.name())) }
    };
    let node = match *op {
        Op::Input { input } => match inputs.get(input) {
            Some(i) => NodeInfo { shape: (i.rows, i.cols), max_abs: i.max_abs },
            None => return refuse(format!("it asks for input {input}, and there are {}", inputs.len())),
        },
        Op::Matmul { left, right } => {
            let (l, r) = (info[left], info[right]);
            if l.shape.1 != r.shape.0 {
                return Err(MatrixError::Shapes { operation: op.name(), left: l.shape, right: r.shape });
            }
            NodeInfo { shape: (l.shape.0, r.shape.1), max_abs: l.max_abs * r.max_abs * l.shape.1 as f64 }
        }
        Op::Add { left, right } | Op::Sub { left, right } => {
            let (l, r) = same(left, right)?;
            NodeInfo { max_abs: l.max_abs + r.max_abs, ..l }
        }
        Op::Mul { left, right } => {
            let (l, r) = same(left, right)?;
            NodeInfo { max_abs: l.max_abs * r.max_abs, ..l }
        }
        Op::Neg { of } => info[of],
        Op::Scale { of, by } => {
            number(by)?;
            NodeInfo { max_abs: info[of].max_abs * by.abs(), ..info[of] }
        }
        Op::Shift { of, by } => {
            number(by)?;
            NodeInfo { max_abs: info[of].max_abs + by.abs(), ..info[of] }
        }
        Op::Transpose { of } => {
            let (rows, cols) = info[of].shape;
            NodeInfo { shape: (cols, rows), ..info[of] }
        }
        Op::Sum { of, axis } => {
            let (rows, cols) = info[of].shape;
            match axis {
                0 => NodeInfo { shape: (1, cols), max_abs: info[of].max_abs * rows as f64 },
                1 => NodeInfo { shape: (rows, 1), max_abs: info[of].max_abs * cols as f64 },
                _ => return refuse(format!("a matrix has axes 0 and 1, not {axis}")),
            }
        }
        Op::Bounded { of, max_abs } => {
            if !(max_abs.is_finite() && max_abs >= 1e-15) {
                return refuse(format!("a known bound is a number from 1e-15, not {max_abs}"));
            }
            NodeInfo { max_abs: max_abs.min(info[of].max_abs), ..info[of] }
        }
        Op::Take { of, axis, lines } => {
            let (held, (rows, cols)) = (line_count(info[of].shape, axis)?, info[of].shape);
            if !lines.fit(held) {
                return refuse(format!("{lines:?} are no lines of a {rows}×{cols} matrix along axis {axis}"));
            }
            let shape = if axis == 0 { (lines.size, cols) } else { (rows, lines.size) };
            NodeInfo { shape, ..info[of] }
        }
        Op::Repeat { of, axis, size } => {
            let (held, (rows, cols)) = (line_count(info[of].shape, axis)?, info[of].shape);
            if held != 1 || size == 0 {
                return refuse(format!(
                    "one row or column is repeated, and a {rows}×{cols} matrix has {held} along axis {axis}"
                ));
            }
            NodeInfo { shape: if axis == 0 { (size, cols) } else { (rows, size) }, ..info[of] }
        }
        Op::Approximation { of, error, low, high, .. } => {
            number(low).and(number(high))?;
            if !(error.is_finite() && error >= 0.0 && low < high) {
                return refuse(format!("an approximation on [{low}, {high}] within {error} is none"));
            }
            info[of]
        }
        Op::Moments { of } => {
            let (NodeInfo { shape: (_, cols), max_abs }, means) = (info[of], 1);
            // n / (n − 1) is at most two.
            NodeInfo { shape: (means + cols, cols), max_abs: max_abs.max(2.0 * max_abs * max_abs) }
        }
    };
    if node.shape.0.saturating_mul(node.shape.1) > MAX_ELEMENTS {
        return refuse(format!("{} makes a {}×{} matrix, too large", op.name(), node.shape.0, node.shape.1));
    }
    // Bounds of inputs were checked, and covariances are as large as theirs allow.
    let largest = if matches!(op, Op::Input { .. } | Op::Moments { .. }) { f64::MAX } else { 1e100 };
    if node.max_abs.is_nan() || node.max_abs > largest {
        return refuse(format!("{} makes values of up to {:e}, too large", op.name(), node.max_abs));
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, shape: (usize, usize)) -> InputSpec {
        InputSpec::new(name, shape, 2.0)
    }

    #[test]
    fn shapes_and_bounds() {
        let inputs = vec![input("A", (3, 4)), input("B", (4, 5)), input("C", (3, 5))];
        let nodes = vec![
            Op::Input { input: 0 },
            Op::Input { input: 1 },
            Op::Matmul { left: 0, right: 1 },
            Op::Input { input: 2 },
            Op::Sub { left: 2, right: 3 },
            Op::Scale { of: 4, by: -0.5 },
            Op::Transpose { of: 5 },
            Op::Sum { of: 6, axis: 0 },
        ];
        let e = Expr::new(inputs, nodes, 7).unwrap();
        assert_eq!(e.info(7), &NodeInfo { shape: (1, 3), max_abs: 45.0 });
        assert_eq!(e.to_string(), "(-0.5 * (A @ B - C)).T.sum(0)");
        assert_eq!(e.as_product(), None);
        let json = serde_json::to_string(&e).unwrap();
        assert_eq!(Expr::from_json(&json).unwrap(), e);
    }

    #[test]
    fn products() {
        let e = Expr::product(input("A", (3, 4)), input("B", (4, 5))).unwrap();
        assert_eq!(e.as_product(), Some((0, 1)));
        assert_eq!(e.to_string(), "A @ B");
        assert!(matches!(
            Expr::product(input("A", (3, 4)), input("B", (3, 5))),
            Err(MatrixError::Shapes { left: (3, 4), right: (3, 5), .. })
        ));
        assert!(Expr::product(input("A", (3, 4)), input("A", (4, 5))).is_err());
    }

    #[test]
    fn refusals() {
        for bad in [
            "",
            "{}",
            r#"{"inputs":[],"nodes":[],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":0,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":-1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":1}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":1}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"neg","of":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1,"plain":true}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1,"colour":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":99999999999,"cols":99999999999,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
        ] {
            assert!(Expr::from_json(bad).is_err(), "{bad}");
        }
    }
}
