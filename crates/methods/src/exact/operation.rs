//! What each operation is on encrypted integers: the forms of its operands, and what is computed of them.

use super::blocks::Role;
use super::request::{Along, Form, Known, Request, View, refuse};
use crate::error::MatrixError;
use sudare_exact::bgv::Bgv;
use sudare_exact::{CiphertextOf, Evaluator, ExactError, PlainFactor, Plaintext};
use sudare_expr::{Expr, Operation, operation::whole};
use sudare_rlwe::{Backend, RlweError, Shaped};

/// Whether it only says where elements stand, or bounds them: inputs are encrypted as it leaves them.
fn moves(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Transpose
            | Operation::Sum { .. }
            | Operation::Bounded { .. }
            | Operation::Take { .. }
            | Operation::Repeat { .. }
    )
}

/// Whether every element of a matrix of this shape, as an operand, keeps its place in the order of rows, and is an integer.
pub(super) fn stays(operation: &Operation, (rows, cols): (usize, usize)) -> bool {
    let single = |axis: u8| (if axis == 0 { rows } else { cols }) == 1;
    match operation {
        Operation::Add | Operation::Sub | Operation::Mul | Operation::Neg | Operation::Bounded { .. } => true,
        Operation::Scale { by } | Operation::Shift { by } => whole(*by).is_some(),
        Operation::Transpose => rows == 1 || cols == 1,
        Operation::Sum { axis } => single(*axis),
        Operation::Repeat { size, .. } => *size == 1,
        _ => false,
    }
}

/// Whether it multiplies its operands with each other.
pub(super) fn multiplies(operation: &Operation) -> bool {
    matches!(operation, Operation::Matmul | Operation::Mul)
}

/// The number that it adds to every element, if it does.
pub(super) fn number_added(operation: &Operation) -> Option<i128> {
    if let Operation::Shift { by } = operation { whole(*by) } else { None }
}

pub(super) fn no_operand() -> ExactError {
    RlweError::Internal { what: "an exact operation has no such operand" }.into()
}

/// The bound of a node, which is saturated: bounds that are stated may cut it again.
///
/// # Errors
/// [`MatrixError::NoPlan`] for what is not computed of integers, with what to write instead.
pub(super) fn bound_of(expr: &Expr, node: usize) -> Result<i128, MatrixError> {
    let operation = &expr.nodes()[node].operation;
    match (expr.info(node).integers, operation) {
        (Some(bound), _) => Ok(bound),
        (None, Operation::Scale { by } | Operation::Shift { by }) => refuse(format!(
            "{} by {by}: the number has to be an integer below 2^53, for integers are computed exactly; give larger \
             ones as a plain input, and divide after decryption",
            operation.name()
        )),
        (None, _) => refuse(format!(
            "{} is not computed of integers exactly; keep to + - * @, transposes, sums, slices and what is put \
             together of them, or describe the inputs as real numbers (dtype=float)",
            operation.name()
        )),
    }
}

/// Refuses plain values that 127 bits may not hold.
///
/// # Errors
/// [`MatrixError::NoPlan`].
pub(super) fn check_plain(expr: &Expr, bound: i128) -> Result<(), MatrixError> {
    if bound == i128::MAX {
        return refuse(format!("plain values of {expr} can pass 127 bits; declare smaller bounds"));
    }
    Ok(())
}

impl Request {
    /// What is known of a node by what is known of its operands.
    pub(super) fn learn(&self, node: usize) -> Result<Known, MatrixError> {
        let (at, bound, factors) = (&self.expr.nodes()[node], bound_of(&self.expr, node)?, self.degree(node)?);
        let any = |of: fn(&Known) -> bool| at.operands.iter().any(|o| of(&self.known[*o]));
        let elementwise = any(|k| k.elementwise) || (at.operation == Operation::Mul && factors != 0);
        let sums = match at.operation {
            Operation::Matmul => true,
            Operation::Sum { .. } => elementwise,
            _ => false,
        };
        if factors == 0 {
            check_plain(&self.expr, bound)?;
        }
        Ok(Known { bound, factors, elementwise, spread: factors != 0 && (sums || any(|k| k.spread)) })
    }

    fn degree(&self, node: usize) -> Result<u8, MatrixError> {
        let at = &self.expr.nodes()[node];
        let factors = at.operands.iter().map(|o| self.known[*o].factors);
        let degree = match at.operation {
            Operation::Input { .. } => u8::from(!self.expr.is_plain(node)),
            _ if multiplies(&at.operation) => factors.sum(),
            _ => factors.max().unwrap_or_default(),
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
        Ok(match self.expr.nodes()[node].parts() {
            (Operation::Matmul, &[left, right]) => {
                self.require_result(*role)?;
                let (View { axes: [down, across], transposed, .. }, k) = (view.clone(), shape(left).1);
                let left = (left, View { axes: [down, Vec::new()], transposed, flat: None });
                let right = (right, View { axes: [Vec::new(), across], transposed, flat: None });
                let (x, y) = if transposed { (right, left) } else { (left, right) };
                vec![(x.0, Form { role: Role::Left(k), view: x.1 }), (y.0, Form { role: Role::Right(k), view: y.1 })]
            }
            (Operation::Mul, &[left, right]) => self.elementwise(node, (left, right), form)?,
            (Operation::Transpose, &[of]) => {
                let View { axes: [down, across], transposed, flat } = view.clone();
                vec![(of, Form { role: *role, view: View { axes: [across, down], transposed: !transposed, flat } })]
            }
            (&Operation::Sum { axis }, &[of]) => along(of, axis, Along::Sum),
            (&Operation::Take { axis, lines }, &[of]) => along(of, axis, Along::Take(lines)),
            (&Operation::Repeat { axis, size }, &[of]) => along(of, axis, Along::Repeat(size)),
            (_, operands) => operands.iter().map(|o| (*o, form.clone())).collect(),
        })
    }
}

/// What one block of an operation that works block by block is made of.
pub(super) enum Term<'a, B: Backend> {
    Encrypted(&'a CiphertextOf<Bgv, B>),
    /// None in a simulation.
    Plain(Option<&'a Plaintext>),
    Factor(&'a PlainFactor<B::Plaintext>),
}

/// One block of an operation that works block by block.
pub(super) fn elementwise<B: Backend>(
    e: &Evaluator<Bgv, B>,
    operation: &Operation,
    terms: &[Term<'_, B>],
) -> Result<CiphertextOf<Bgv, B>, ExactError> {
    use Term::{Encrypted, Factor, Plain};
    match (operation, terms) {
        (moved, [Encrypted(x)]) if moves(moved) => Ok((*x).clone()),
        (Operation::Neg, [Encrypted(x)]) => e.negate(x),
        (&Operation::Scale { by }, [Encrypted(x)]) => e.mul_integer(x, by as i64),
        (Operation::Add, [Encrypted(x), Encrypted(y)]) => combined(e, x, y, Evaluator::add),
        (Operation::Sub, [Encrypted(x), Encrypted(y)]) => combined(e, x, y, Evaluator::sub),
        (Operation::Shift { .. } | Operation::Add, [Encrypted(x), Plain(y)])
        | (Operation::Add, [Plain(y), Encrypted(x)]) => e.add_made(x, || y.ok_or_else(no_operand)),
        (Operation::Sub, [Encrypted(x), Plain(y)]) => e.sub_made(x, || y.ok_or_else(no_operand)),
        (Operation::Sub, [Plain(x), Encrypted(y)]) => e.add_made(&e.negate(y)?, || x.ok_or_else(no_operand)),
        (Operation::Mul, [Encrypted(x), Encrypted(y)]) => e.mul(x, y),
        (Operation::Mul, [Encrypted(x), Factor(y)] | [Factor(y), Encrypted(x)]) => e.mul_factor(x, y),
        _ => Err(no_operand()),
    }
}

/// How two ciphertexts are added or subtracted.
type Combine<B> =
    fn(&Evaluator<Bgv, B>, &CiphertextOf<Bgv, B>, &CiphertextOf<Bgv, B>) -> Result<CiphertextOf<Bgv, B>, ExactError>;

/// A sum or difference under one plaintext factor: that of the operand with more parts, whose noise is the larger one.
fn combined<B: Backend>(
    e: &Evaluator<Bgv, B>,
    x: &CiphertextOf<Bgv, B>,
    y: &CiphertextOf<Bgv, B>,
    combine: Combine<B>,
) -> Result<CiphertextOf<Bgv, B>, ExactError> {
    match x.inner().polynomials().cmp(&y.inner().polynomials()) {
        std::cmp::Ordering::Less => combine(e, &e.with_factor(x, y.factor())?, y),
        std::cmp::Ordering::Equal => combine(e, x, y),
        std::cmp::Ordering::Greater => combine(e, x, &e.with_factor(y, x.factor())?),
    }
}
