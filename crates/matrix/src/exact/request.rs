//! What an expression of integers asks for: forms of its values, bounds, noise.
//!
//! Values of nodes are plain, linear in what is encrypted, or products of two such: encrypted values are multiplied
//! once, without a key. What is linear is pushed to the inputs, which their owner encrypts in each [`Form`] that is asked
//! for: turned, summed over rows or columns, sliced, put in its place among others, as a left or a right factor. So
//! transposes, sums, slices and concatenation cost nothing.

use super::blocks::{Blocks, Role};
use crate::error::MatrixError;
use crate::expr::{Expr, Op};
use crate::packing::IntMatrix;
use crate::plan::Goal;
use crate::product::Shape;
use crate::slots::lines::Lines;
use sudare_he::integer::Packing;
use sudare_rlwe::security::Security;

/// Largest absolute value of a result.
pub(super) const MAX_RESULT: i128 = 1 << 117;
/// Numbers under this are integers, whatever they were made of.
const DOUBLES: f64 = 9_007_199_254_740_992.0;

/// What is done along one axis of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Along {
    /// Its lines are summed.
    Sum,
    /// They go to other places, with zeros where none goes.
    Take(Lines),
    /// The only one, so many times.
    Repeat(usize),
}

impl Along {
    /// Lines that come out of so many.
    fn lines(self, count: usize) -> usize {
        match self {
            Self::Sum => 1,
            Self::Take(lines) => lines.size,
            Self::Repeat(size) => {
                debug_assert_eq!(count, 1);
                size
            }
        }
    }

    fn of(self, matrix: &IntMatrix, axis: usize) -> Result<IntMatrix, MatrixError> {
        match self {
            Self::Sum => matrix.sum(axis),
            Self::Take(lines) => matrix.take(axis, &lines),
            Self::Repeat(size) => matrix.repeat(axis, size),
        }
    }

    /// Whether some lines that come out are zero.
    fn pads(self) -> bool {
        matches!(self, Self::Take(lines) if lines.count < lines.size)
    }
}

/// A matrix as a product takes it: with its rows and its columns summed, moved and repeated, then perhaps turned, then
/// perhaps in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// What is done along each axis, in this order.
    axes: [Vec<Along>; 2],
    turned: bool,
    /// Then all elements in one row, in as many equal rows.
    flat: Option<usize>,
}

impl View {
    fn of(&self, matrix: &IntMatrix) -> Result<IntMatrix, MatrixError> {
        let mut out = matrix.clone();
        for (axis, steps) in self.axes.iter().enumerate() {
            for step in steps {
                out = step.of(&out, axis)?;
            }
        }
        let out = if self.turned { out.transpose() } else { out };
        match self.flat {
            Some(rows) => IntMatrix::new(1, out.data().len(), out.data().to_vec())?.repeat(0, rows),
            None => Ok(out),
        }
    }

    /// The view of what an operation along an axis makes, as one of its operand, which has so many lines along it.
    fn after(mut self, axis: usize, step: Along, lines: usize) -> Self {
        // There is nothing to sum along a side of one.
        if !(step == Along::Sum && lines == 1) {
            self.axes[axis].insert(0, step);
        }
        self
    }

    /// Most elements of a matrix that are summed to one.
    fn terms(&self, (rows, cols): (usize, usize)) -> i128 {
        let along = |steps: &[Along], side: usize| {
            let sum = |(most, lines): (i128, usize), step: &Along| {
                let most = if *step == Along::Sum { most.saturating_mul(lines as i128) } else { most };
                (most, step.lines(lines))
            };
            steps.iter().fold((1, side), sum).0
        };
        along(&self.axes[0], rows).saturating_mul(along(&self.axes[1], cols))
    }

    /// Along an axis with so many lines: what is done before they are summed, how many are, and what is done after.
    fn summed(&self, axis: usize, lines: usize) -> Option<(&[Along], usize, &[Along])> {
        let steps = &self.axes[axis];
        let at = steps.iter().position(|step| *step == Along::Sum)?;
        let (before, after) = (&steps[..at], &steps[at + 1..]);
        Some((before, before.iter().fold(lines, |n, step| step.lines(n)), after))
    }

    /// How many elements of a product element by element are summed to one, if any are.
    fn sums(&self, (rows, cols): (usize, usize)) -> Option<usize> {
        let along = [self.summed(0, rows), self.summed(1, cols)].into_iter().flatten();
        along.map(|(_, k, _)| k).reduce(usize::saturating_mul)
    }
}

/// How a node's value is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub role: Role,
    pub view: View,
}

impl Form {
    /// The plain matrix in this form, a list of blocks.
    pub(super) fn blocks(
        &self,
        request: &Request,
        blocks: Blocks,
        matrix: &IntMatrix,
    ) -> Result<Vec<Vec<i128>>, MatrixError> {
        let (matrix, (rows, columns)) = (self.view.of(matrix)?, blocks.grid(request.shape, self.role));
        let one = |at: usize| blocks.block(request.packing, self.role, &matrix, (at / columns, at % columns));
        Ok((0..rows * columns).map(one).collect())
    }
}

/// An expression of integers, ready to be cut into blocks.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) expr: Expr,
    pub(super) batch: usize,
    pub(super) security: Security,
    /// Rows and columns of the result, and the longest sum of products.
    pub(super) shape: Shape,
    pub(super) packing: Packing,
    known: Vec<Known>,
    /// Forms in which each encrypted node is computed or encrypted.
    forms: Vec<Vec<Form>>,
    /// Most elements of a plain node that are summed to one before it is encoded.
    terms: Vec<i128>,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Bound on the absolute values.
    bound: i128,
    /// Encrypted factors: 0 for a plain one, up to 2.
    factors: u8,
    /// Whether there is a product element by element in it.
    elementwise: bool,
    /// Whether its entries, as a result, are sums of neighbouring slots.
    spread: bool,
}

fn refuse<T>(reason: String) -> Result<T, MatrixError> {
    Err(MatrixError::NoPlan { reason })
}

/// A number of the expression as an integer.
fn integer(op: &Op, by: f64) -> Result<i128, MatrixError> {
    match by.fract() == 0.0 && by.abs() < DOUBLES {
        true => Ok(by as i128),
        false => refuse(format!(
            "{} by {by}: integers are computed with exactly, and doubles are integers below 2^53; give a matrix of larger ones as \
             a plain input, and divide after decryption",
            op.name()
        )),
    }
}

impl Request {
    /// What a goal with inputs of integers asks for.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for what is not computed exactly, with what to write instead, and for results of more
    /// than 117 bits.
    pub(crate) fn new(goal: &Goal) -> Result<Self, MatrixError> {
        if goal.error != 0.0 || goal.release.is_some() {
            return refuse("an exact result has no error and no release; leave them out".into());
        }
        let expr = goal.expression.clone();
        if expr.inputs().iter().any(|i| i.integers.is_none()) {
            return refuse("the inputs of an exact computation are integers".into());
        }
        let (m, n) = expr.info(expr.output()).shape;
        let (batch, security, shape) = (goal.batch, goal.security, Shape::new(m, 1, n));
        let (forms, terms) = (vec![Vec::new(); expr.nodes().len()], vec![1; expr.nodes().len()]);
        let (packing, known) = (Packing::Coefficients, Vec::with_capacity(terms.len()));
        let mut request = Self { expr, batch, security, shape, packing, known, forms, terms };
        for node in 0..request.forms.len() {
            let known = request.learn(node)?;
            request.known.push(known);
        }
        let output = request.known[request.expr.output()];
        if output.bound >= MAX_RESULT {
            return refuse(format!("results of {} can pass 117 bits; state tighter bounds", request.expr));
        }
        if output.elementwise {
            request.packing = Packing::Slots;
        }
        request.demand(Form { role: Role::Result, view: View::default() })?;
        Ok(request)
    }

    /// What is known of a node by what is known of its operands.
    fn learn(&self, node: usize) -> Result<Known, MatrixError> {
        let (op, bound, factors) = (self.expr.nodes()[node], self.bound(node)?, self.degree(node)?);
        let any = |of: fn(&Known) -> bool| op.operands().any(|o| of(&self.known[o]));
        let elementwise = any(|k| k.elementwise) || (matches!(op, Op::Mul { .. }) && factors != 0);
        let sums = match op {
            Op::Matmul { .. } => true,
            Op::Sum { .. } => elementwise,
            _ => false,
        };
        if factors == 0 && bound == i128::MAX {
            return refuse(format!("plain values of {} can pass 127 bits; state tighter bounds", self.expr));
        }
        Ok(Known { bound, factors, elementwise, spread: factors != 0 && (sums || any(|k| k.spread)) })
    }

    /// The bound of a node whose operands' are known; saturated, since bounds that are stated may cut it again.
    fn bound(&self, node: usize) -> Result<i128, MatrixError> {
        let (op, shape) = (&self.expr.nodes()[node], |of: usize| self.expr.info(of).shape);
        let of = |o: usize| self.known[o].bound;
        Ok(match *op {
            Op::Input { input } => self.expr.inputs()[input].integer_bound()?,
            Op::Matmul { left, right } => of(left).saturating_mul(of(right)).saturating_mul(shape(left).1 as i128),
            Op::Mul { left, right } => of(left).saturating_mul(of(right)),
            Op::Add { left, right } | Op::Sub { left, right } => of(left).saturating_add(of(right)),
            Op::Neg { of: o } | Op::Transpose { of: o } | Op::Take { of: o, .. } | Op::Repeat { of: o, .. } => of(o),
            Op::Scale { of: o, by } => of(o).saturating_mul(integer(op, by)?.abs()),
            Op::Shift { of: o, by } => of(o).saturating_add(integer(op, by)?.abs()),
            Op::Sum { of: o, axis } => of(o).saturating_mul(if axis == 0 { shape(o).0 } else { shape(o).1 } as i128),
            Op::Bounded { of: o, max_abs } => of(o).min(max_abs as i128),
            _ => {
                return refuse(format!(
                    "{} is not computed of integers exactly; + - * @, transposes, sums, slices and what is put together of \
                     them are. Describe the inputs as real numbers (dtype=float) for it",
                    op.name()
                ));
            }
        })
    }

    fn degree(&self, node: usize) -> Result<u8, MatrixError> {
        let of = |o: usize| self.known[o].factors;
        let degree = match self.expr.nodes()[node] {
            Op::Input { input } => u8::from(!self.expr.inputs()[input].plain),
            Op::Matmul { left, right } | Op::Mul { left, right } => of(left) + of(right),
            op => op.operands().map(of).max().unwrap_or(0),
        };
        match degree {
            0..=2 => Ok(degree),
            _ => refuse(format!(
                "{} multiplies more than two encrypted values with each other; an exact plan multiplies once: decrypt the \
                 product and encrypt it for a second plan, or describe the inputs as real numbers (dtype=float)",
                self.expr
            )),
        }
    }

    /// Asks for the result in a form, and for what that takes of the nodes before.
    fn demand(&mut self, form: Form) -> Result<(), MatrixError> {
        let output = self.expr.output();
        self.forms[output].push(form);
        for node in (0..=output).rev() {
            for form in self.forms[node].clone() {
                for (operand, form) in self.operands(node, &form)? {
                    if let Role::Left(k) | Role::Right(k) = form.role {
                        self.shape.k = self.shape.k.max(k);
                    }
                    if self.known[operand].factors == 0 {
                        let terms = form.view.terms(self.expr.info(operand).shape);
                        self.terms[operand] = self.terms[operand].max(terms);
                    } else if !self.forms[operand].contains(&form) {
                        self.forms[operand].push(form);
                    }
                }
            }
        }
        Ok(())
    }

    /// What a node in a form is computed from: operands and their forms.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a product that is wanted where only what is linear can be.
    pub(super) fn operands(&self, node: usize, form: &Form) -> Result<Vec<(usize, Form)>, MatrixError> {
        let Form { role, view } = form;
        let shape = |of: usize| self.expr.info(of).shape;
        let along = |of: usize, axis: u8, step: Along| {
            let (axis, (rows, cols)) = (usize::from(axis != 0), shape(of));
            let view = view.clone().after(axis, step, if axis == 0 { rows } else { cols });
            vec![(of, Form { role: *role, view })]
        };
        Ok(match self.expr.nodes()[node] {
            Op::Input { .. } => Vec::new(),
            Op::Matmul { left, right } => {
                self.expect_result(*role)?;
                let (View { axes: [down, across], turned, .. }, k) = (view.clone(), shape(left).1);
                let left = (left, View { axes: [down, Vec::new()], turned, flat: None });
                let right = (right, View { axes: [Vec::new(), across], turned, flat: None });
                let (x, y) = if turned { (right, left) } else { (left, right) };
                vec![(x.0, Form { role: Role::Left(k), view: x.1 }), (y.0, Form { role: Role::Right(k), view: y.1 })]
            }
            Op::Mul { left, right } => self.elementwise(node, (left, right), form)?,
            Op::Transpose { of } => {
                let View { axes: [down, across], turned, flat } = view.clone();
                vec![(of, Form { role: *role, view: View { axes: [across, down], turned: !turned, flat } })]
            }
            Op::Sum { of, axis } => along(of, axis, Along::Sum),
            Op::Take { of, axis, lines } => along(of, axis, Along::Take(lines)),
            Op::Repeat { of, axis, size } => along(of, axis, Along::Repeat(size)),
            op => op.operands().map(|o| (o, form.clone())).collect(),
        })
    }

    /// Factors of a product element by element, or of a sum of such products over an axis.
    fn elementwise(
        &self,
        node: usize,
        (left, right): (usize, usize),
        form: &Form,
    ) -> Result<Vec<(usize, Form)>, MatrixError> {
        let ((rows, cols), view) = (self.expr.info(node).shape, &form.view);
        let both =
            |role: Role, view: View| vec![(left, Form { role, view: view.clone() }), (right, Form { role, view })];
        let (sums, Some(k)) = ([view.summed(0, rows), view.summed(1, cols)], view.sums((rows, cols))) else {
            if form.role != Role::Result {
                return Ok(both(form.role, view.clone()));
            }
            return Ok(match (self.known[left].spread, self.known[right].spread) {
                (false, false) => both(Role::Result, view.clone()),
                (true, true) => return self.again(),
                (first, _) => {
                    let role = |spread: bool| if spread { Role::Result } else { Role::Everywhere };
                    let [l, r] = [role(first), role(!first)].map(|role| Form { role, view: view.clone() });
                    vec![(left, l), (right, r)]
                }
            });
        };
        self.expect_result(form.role)?;
        // A sum stands in every row or column of a result, whose form has none to leave out or to sum again.
        let after = sums.iter().flatten().flat_map(|(_, _, after)| after.iter());
        if after.into_iter().any(|step| step.pads() || *step == Along::Sum) {
            return refuse(format!(
                "{} puts sums of products together with others, or sums them again; do it after decryption",
                self.expr
            ));
        }
        let mut factors = view.clone();
        for (steps, sum) in factors.axes.iter_mut().zip(&sums) {
            if let Some((before, ..)) = sum {
                *steps = before.to_vec();
            }
        }
        let down = match sums {
            [Some(_), Some(_)] => {
                let rows =
                    sums[usize::from(view.turned)].map_or(1, |(.., after)| after.iter().fold(1, |n, s| s.lines(n)));
                factors.flat = Some(rows);
                view.turned
            }
            [down, _] => down.is_some(),
        };
        Ok(both(if down != view.turned { Role::Right(k) } else { Role::Left(k) }, factors))
    }

    /// Refuses a matrix product, or a sum of products, that is a factor itself.
    fn expect_result(&self, role: Role) -> Result<(), MatrixError> {
        if role == Role::Result { Ok(()) } else { self.again() }
    }

    fn again<T>(&self) -> Result<T, MatrixError> {
        refuse(format!(
            "{} takes a matrix product or a sum of products as a factor, and an exact plan has each in a form that is decrypted \
             next: decrypt it and encrypt it for a second plan, multiply plain matrices first, or describe the inputs as real \
             numbers (dtype=float)",
            self.expr
        ))
    }

    /// Bound on the absolute values of the result.
    pub(super) fn result(&self) -> i128 {
        self.known[self.expr.output()].bound
    }

    /// Forms in which a node is computed or encrypted; none of a plain one.
    pub(super) fn forms(&self, node: usize) -> &[Form] {
        &self.forms[node]
    }

    /// Encrypted factors of a node.
    pub(super) fn factors(&self, node: usize) -> u8 {
        self.known[node].factors
    }

    /// Ciphertexts of a form, one matrix of a batch.
    pub(super) fn count(&self, blocks: Blocks, role: Role) -> usize {
        let (rows, columns) = blocks.grid(self.shape, role);
        rows * columns
    }

    /// Where the ciphertexts of a matrix of the batch in a form begin, among those of a list of forms.
    pub(super) fn place(&self, blocks: Blocks, forms: &[Form], form: &Form, member: usize) -> usize {
        let before = forms.iter().take_while(|f| *f != form);
        let before: usize = before.map(|f| self.batch * self.count(blocks, f.role)).sum();
        before + member * self.count(blocks, form.role)
    }

    /// Ciphertexts of a node for each plaintext modulus.
    pub(super) fn ciphertexts(&self, blocks: Blocks, node: usize) -> usize {
        self.forms[node].iter().map(|f| self.batch * self.count(blocks, f.role)).sum()
    }

    /// The bound on the noise of the result, of fresh encryptions with noise `fresh` at ring degree `n`.
    pub(super) fn noise(&self, blocks: Blocks, (n, t): (f64, f64), fresh: f64) -> f64 {
        let mut noise: Vec<f64> = Vec::with_capacity(self.known.len());
        // A plaintext's own part; and most that a factor of the plaintext or of a number multiplies noise by.
        let (message, number) = (n / 2.0, |by: f64| by.abs().clamp(1.0, t / 2.0));
        let factors = |node: usize| self.known[node].factors;
        let norm = |node: usize| {
            let largest = (self.known[node].bound as f64 * self.terms[node] as f64).clamp(1.0, t / 2.0);
            let most = match self.packing {
                Packing::Coefficients => largest * (blocks.b * blocks.a.max(blocks.c)) as f64,
                Packing::Slots => n * t / 2.0,
            };
            // It is rounded up to a power of two.
            most.log2().ceil().exp2()
        };
        for (node, op) in self.expr.nodes().iter().enumerate() {
            let inner = |k: usize| k.div_ceil(blocks.b) as f64;
            let product = |left: usize, right: usize, terms: f64, noise: &[f64]| match (factors(left), factors(right)) {
                (0, 0) => 0.0,
                (0, _) => terms * norm(left) * noise[right],
                (_, 0) => terms * norm(right) * noise[left],
                _ => terms * t * noise[left] * noise[right],
            };
            let found = match *op {
                _ if factors(node) == 0 => 0.0,
                Op::Input { .. } => fresh,
                Op::Matmul { left, right } => product(left, right, inner(self.expr.info(left).shape.1), &noise),
                Op::Mul { left, right } => {
                    let (rows, cols) = self.expr.info(node).shape;
                    let longest = self.forms[node].iter().filter_map(|f| f.view.sums((rows, cols))).max();
                    product(left, right, longest.map_or(1.0, |k| inner(k.max(rows).max(cols))), &noise)
                }
                Op::Add { left, right } | Op::Sub { left, right } => match (factors(left), factors(right)) {
                    (0, _) => noise[right] + message,
                    (_, 0) => noise[left] + message,
                    (x, y) if x == y => noise[left] + noise[right],
                    // The one of fewer factors gets the plaintext factor of the other.
                    (x, y) if x < y => noise[left] * t / 2.0 + noise[right],
                    _ => noise[left] + noise[right] * t / 2.0,
                },
                Op::Scale { of, by } => noise[of] * number(by),
                Op::Shift { of, .. } => noise[of] + message,
                op => op.operands().map(|o| noise[o]).sum(),
            };
            noise.push(found);
        }
        noise[self.expr.output()]
    }

    /// Encryptions, products and other operations on ciphertexts, results.
    pub(super) fn operations(&self, blocks: Blocks) -> [f64; 4] {
        let (mut fresh, mut products, mut others) = (0.0, 0.0, 0.0);
        for (node, op) in self.expr.nodes().iter().enumerate().filter(|(node, _)| self.factors(*node) != 0) {
            let count = self.ciphertexts(blocks, node) as f64;
            match op {
                Op::Input { .. } => fresh += count,
                Op::Matmul { left, .. } => products += count * self.expr.info(*left).shape.1.div_ceil(blocks.b) as f64,
                Op::Mul { .. } => products += count,
                Op::Transpose { .. } | Op::Sum { .. } | Op::Bounded { .. } | Op::Take { .. } | Op::Repeat { .. } => {}
                _ => others += count,
            }
        }
        [fresh, products, others, self.ciphertexts(blocks, self.expr.output()) as f64]
    }

    /// The computation that an expression of doubles would be if its elements were integers.
    pub(crate) fn of_doubles(goal: &Goal) -> Option<Goal> {
        let expr = &goal.expression;
        let mut inputs = expr.inputs().to_vec();
        for input in &mut inputs {
            // Between −1 and 1 there is hardly an integer.
            if !(2.0..9e18).contains(&input.max_abs) {
                return None;
            }
            input.max_abs = input.max_abs.floor();
            input.integers = Some(input.max_abs as u128);
        }
        let expression = Expr::new(inputs, expr.nodes().to_vec(), expr.output()).ok()?;
        Some(Goal { expression, error: 0.0, release: None, ..goal.clone() })
    }
}
