//! What an expression of integers asks for: forms of its values, bounds, noise.
//!
//! Values of nodes are plain, linear in what is encrypted, or products of two such: encrypted values are multiplied
//! once, without a key. What is linear is pushed to the inputs, which their owner encrypts in each [`Form`] that is asked
//! for: transposed, summed over rows or columns, sliced, put in its place among others, as a left or a right factor. So
//! transposes, sums, slices and concatenation cost nothing.

use super::blocks::{Blocks, Role};
use crate::error::MatrixError;
use crate::holders::Holders;
use sudare_exact::{IntegerParams, Packing};
use sudare_expr::Shape;
use sudare_expr::{Expr, Lines, Matrix};
use sudare_rlwe::multiparty::Flooding;
use sudare_rlwe::noise::NEGLIGIBLE;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security};

/// Largest absolute value of a result.
pub(super) const MAX_RESULT: i128 = 1 << 117;

/// What is done along one axis of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
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

    fn of(self, matrix: &Matrix<i128>, axis: u8) -> Result<Matrix<i128>, MatrixError> {
        Ok(match self {
            Self::Sum => matrix.sum(axis),
            Self::Take(lines) => matrix.take(axis, &lines),
            Self::Repeat(size) => matrix.repeat(axis, size),
        }?)
    }

    /// Whether some lines that come out are zero.
    fn pads(self) -> bool {
        matches!(self, Self::Take(lines) if lines.count < lines.size)
    }
}

/// A matrix as a product takes it: with its rows and its columns summed, moved and repeated, then perhaps transposed, then
/// perhaps in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What is done along each axis, in this order.
    pub(super) axes: [Vec<Along>; 2],
    pub(super) transposed: bool,
    /// Then all elements in one row, in as many equal rows.
    pub(super) flat: Option<usize>,
}

impl View {
    fn of(&self, matrix: &Matrix<i128>) -> Result<Matrix<i128>, MatrixError> {
        let mut out = matrix.clone();
        for (axis, steps) in [0, 1].into_iter().zip(&self.axes) {
            for step in steps {
                out = step.of(&out, axis)?;
            }
        }
        let out = if self.transposed { out.transpose() } else { out };
        match self.flat {
            Some(rows) => Ok(Matrix::<i128>::new(1, out.data().len(), out.data().to_vec())?.repeat(0, rows)?),
            None => Ok(out),
        }
    }

    /// The view of what an operation along an axis makes, as one of its operand, which has so many lines along it.
    pub(super) fn after(mut self, axis: usize, step: Along, lines: usize) -> Self {
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
    pub(super) fn sums(&self, (rows, cols): (usize, usize)) -> Option<usize> {
        let along = [self.summed(0, rows), self.summed(1, cols)].into_iter().flatten();
        along.map(|(_, k, _)| k).reduce(usize::saturating_mul)
    }
}

/// How a node's value is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub role: Role,
    pub view: View,
}

impl Form {
    /// The plain matrix in this form, a list of blocks.
    pub(super) fn blocks(
        &self,
        request: &Request,
        blocks: Blocks,
        matrix: &Matrix<i128>,
    ) -> Result<Vec<Vec<i128>>, MatrixError> {
        let (matrix, (rows, columns)) = (self.view.of(matrix)?, blocks.grid(request.shape, self.role));
        let one = |at: usize| blocks.block(request.packing, self.role, &matrix, (at / columns, at % columns));
        Ok((0..rows * columns).map(one).collect())
    }
}

/// An expression of integers, ready to be cut into blocks.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) expr: Expr,
    pub(super) batch: usize,
    pub(super) security: Security,
    /// Who holds the key together, if it is several parties.
    pub(super) holders: Option<Holders>,
    /// Rows and columns of the result, and the longest sum of products.
    pub(super) shape: Shape,
    pub(super) packing: Packing,
    pub(super) known: Vec<Known>,
    /// Forms in which each encrypted node is computed or encrypted.
    pub(super) forms: Vec<Vec<Form>>,
    /// Most elements of a plain node that are summed to one before it is encoded.
    pub(super) terms: Vec<i128>,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Bound on the absolute values.
    pub bound: i128,
    /// Encrypted factors: 0 for a plain one, up to 2.
    pub factors: u8,
    /// Whether there is a product element by element in it.
    pub elementwise: bool,
    /// Whether its entries, as a result, are sums of neighbouring slots.
    pub spread: bool,
}

pub(super) fn refuse<T>(reason: String) -> Result<T, MatrixError> {
    Err(MatrixError::NoPlan { reason })
}

impl Request {
    /// What an expression with inputs of integers asks for, for so many sets of inputs.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for what is not computed exactly, with what to write instead, and for results of more
    /// than 117 bits.
    pub fn new(expr: Expr, batch: usize, security: Security) -> Result<Self, MatrixError> {
        if expr.inputs().iter().any(|i| i.integers.is_none()) {
            return refuse(
                "the inputs of an exact computation have to be integers; describe all of them with dtype=int".into(),
            );
        }
        let wide = expr.inputs().iter().find(|i| i.integers.is_some_and(|bound| i128::try_from(bound).is_err()));
        if let Some(input) = wide {
            let reason = format!("the bound on {} passes 127 bits; declare a smaller one", input.name);
            return refuse(reason);
        }
        let (m, n) = expr.info(expr.output()).shape;
        let shape = Shape::new(m, 1, n);
        let (forms, terms) = (vec![Vec::new(); expr.nodes().len()], vec![1; expr.nodes().len()]);
        let (packing, known) = (Packing::Coefficients, Vec::with_capacity(terms.len()));
        let mut request = Self { expr, batch, security, holders: None, shape, packing, known, forms, terms };
        for node in 0..request.forms.len() {
            let known = request.learn(node)?;
            request.known.push(known);
        }
        let output = request.known[request.expr.output()];
        if output.bound >= MAX_RESULT {
            return refuse(format!("results of {} can pass 117 bits; declare smaller bounds", request.expr));
        }
        if output.elementwise {
            request.packing = Packing::Slots;
        }
        request.demand(Form { role: Role::Result, view: View::default() })?;
        Ok(request)
    }

    /// The same under a key that several parties hold, who see all of what they decrypt.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a product of encrypted values or of matrices, which leaves sums beside its result.
    pub fn held_by(self, holders: Holders) -> Result<Self, MatrixError> {
        let factor = |form: &Form| matches!(form.role, Role::Left(_) | Role::Right(_));
        if self.factors(self.expr.output()) > 1 || self.forms.iter().flatten().any(factor) {
            return refuse(format!(
                "{} multiplies, and an exact product leaves sums beside its result, which parties would see; let each compute its part \
                 in the clear and add the encrypted parts, or describe the inputs as real numbers (dtype=float)",
                self.expr
            ));
        }
        Ok(Self { holders: Some(holders), ..self })
    }

    /// The distribution of the secret that the key has.
    pub(super) fn secret(&self) -> SecretDistribution {
        self.holders.map_or(SecretDistribution::Ternary, |holders| holders.secret())
    }

    /// Ciphertexts of a result, under so many moduli.
    pub(super) fn opened(&self, blocks: Blocks, moduli: usize) -> usize {
        self.batch.saturating_mul(self.count(blocks, Role::Result)).saturating_mul(moduli)
    }

    /// The policy by which parties open each ciphertext of a result; none where one owner holds the key.
    pub(super) fn policy(&self, blocks: Blocks, moduli: usize) -> Result<Option<ReleasePolicy>, MatrixError> {
        self.holders.map(|holders| holders.policy(self.opened(blocks, moduli))).transpose()
    }

    /// The noise of a decryption: that of the computation, and what parties add to hide it.
    pub(super) fn shown(
        &self,
        (blocks, moduli): (Blocks, usize),
        params: &IntegerParams,
        noise: f64,
    ) -> Result<f64, MatrixError> {
        let (Some(holders), Some(policy)) = (self.holders, self.policy(blocks, moduli)?) else { return Ok(noise) };
        let flooding = Flooding::new(policy, noise)?;
        Ok(noise + flooding.bound(&NEGLIGIBLE, params.degree(), holders.threshold as usize))
    }

    /// What is computed.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// How matrices are packed.
    pub fn packing(&self) -> Packing {
        self.packing
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

    /// Factors of a product element by element, or of a sum of such products over an axis.
    pub(super) fn elementwise(
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
        self.require_result(form.role)?;
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
                    sums[usize::from(view.transposed)].map_or(1, |(.., after)| after.iter().fold(1, |n, s| s.lines(n)));
                factors.flat = Some(rows);
                view.transposed
            }
            [down, _] => down.is_some(),
        };
        Ok(both(if down != view.transposed { Role::Right(k) } else { Role::Left(k) }, factors))
    }

    /// Refuses a matrix product, or a sum of products, that is a factor itself.
    pub(super) fn require_result(&self, role: Role) -> Result<(), MatrixError> {
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
}
