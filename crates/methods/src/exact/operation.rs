//! What each operation is on encrypted integers: the forms of its operands, its noise, and what is computed of them.

use super::blocks::{Blocks, Role};
use super::engine::{Side, no_operand};
use super::request::{Along, Form, Known, Request, View, refuse};
use crate::error::MatrixError;
use sudare_exact::ExactError;
use sudare_exact::bgv::{Ciphertext, Evaluator};
use sudare_exact::{Packing, Plaintext};
use sudare_expr::{Operation, operation::whole};

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

/// Whether it multiplies its operands with each other.
pub(super) fn multiplies(operation: &Operation) -> bool {
    matches!(operation, Operation::Matmul | Operation::Mul)
}

/// The number that it adds to every element, if it does.
pub(super) fn number_added(operation: &Operation) -> Option<i128> {
    if let Operation::Shift { by } = operation { whole(*by) } else { None }
}

impl Request {
    /// What is known of a node by what is known of its operands.
    pub(super) fn learn(&self, node: usize) -> Result<Known, MatrixError> {
        let (at, bound, factors) = (&self.expr.nodes()[node], self.bound(node)?, self.degree(node)?);
        let any = |of: fn(&Known) -> bool| at.operands.iter().any(|o| of(&self.known[*o]));
        let elementwise = any(|k| k.elementwise) || (at.operation == Operation::Mul && factors != 0);
        let sums = match at.operation {
            Operation::Matmul => true,
            Operation::Sum { .. } => elementwise,
            _ => false,
        };
        if factors == 0 && bound == i128::MAX {
            return refuse(format!("plain values of {} can pass 127 bits; state tighter bounds", self.expr));
        }
        Ok(Known { bound, factors, elementwise, spread: factors != 0 && (sums || any(|k| k.spread)) })
    }

    /// The bound of a node, which is saturated: bounds that are stated may cut it again.
    fn bound(&self, node: usize) -> Result<i128, MatrixError> {
        let operation = &self.expr.nodes()[node].operation;
        match (self.expr.info(node).integers, operation) {
            (Some(bound), _) => Ok(bound),
            (None, Operation::Scale { by } | Operation::Shift { by }) => refuse(format!(
                "{} by {by}: integers are computed with exactly, and doubles are integers below 2^53; give a matrix of larger \
                 ones as a plain input, and divide after decryption",
                operation.name()
            )),
            (None, _) => refuse(format!(
                "{} is not computed of integers exactly; + - * @, transposes, sums, slices and what is put together of \
                 them are. Describe the inputs as real numbers (dtype=float) for it",
                operation.name()
            )),
        }
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
        for (node, at) in self.expr.nodes().iter().enumerate() {
            let inner = |k: usize| k.div_ceil(blocks.b) as f64;
            let product = |left: usize, right: usize, terms: f64, noise: &[f64]| match (factors(left), factors(right)) {
                (0, 0) => 0.0,
                (0, _) => terms * norm(left) * noise[right],
                (_, 0) => terms * norm(right) * noise[left],
                _ => terms * t * noise[left] * noise[right],
            };
            let found = match at.parts() {
                _ if factors(node) == 0 => 0.0,
                (Operation::Input { .. }, _) => fresh,
                (Operation::Matmul, &[left, right]) => {
                    product(left, right, inner(self.expr.info(left).shape.1), &noise)
                }
                (Operation::Mul, &[left, right]) => {
                    let (rows, cols) = self.expr.info(node).shape;
                    let longest = self.forms[node].iter().filter_map(|f| f.view.sums((rows, cols))).max();
                    product(left, right, longest.map_or(1.0, |k| inner(k.max(rows).max(cols))), &noise)
                }
                (Operation::Add | Operation::Sub, &[left, right]) => match (factors(left), factors(right)) {
                    (0, _) => noise[right] + message,
                    (_, 0) => noise[left] + message,
                    (x, y) if x == y => noise[left] + noise[right],
                    // The one of fewer factors gets the plaintext factor of the other.
                    (x, y) if x < y => noise[left] * t / 2.0 + noise[right],
                    _ => noise[left] + noise[right] * t / 2.0,
                },
                (&Operation::Scale { by }, &[of]) => noise[of] * number(by),
                (Operation::Shift { .. }, &[of]) => noise[of] + message,
                (_, operands) => operands.iter().map(|o| noise[*o]).sum(),
            };
            noise.push(found);
        }
        noise[self.expr.output()]
    }

    /// Encryptions, products and other operations on ciphertexts, results.
    pub(super) fn operations(&self, blocks: Blocks) -> [f64; 4] {
        let (mut fresh, mut products, mut others) = (0.0, 0.0, 0.0);
        for (node, at) in self.expr.nodes().iter().enumerate().filter(|(node, _)| self.factors(*node) != 0) {
            let count = self.ciphertexts(blocks, node) as f64;
            match at.parts() {
                (Operation::Input { .. }, _) => fresh += count,
                (Operation::Matmul, &[left, _]) => {
                    products += count * self.expr.info(left).shape.1.div_ceil(blocks.b) as f64;
                }
                (Operation::Mul, _) => products += count,
                (operation, _) if moves(operation) => {}
                _ => others += count,
            }
        }
        [fresh, products, others, self.ciphertexts(blocks, self.expr.output()) as f64]
    }
}

/// One block of an operation that works block by block.
pub(super) fn elementwise(
    e: &Evaluator,
    operation: &Operation,
    found: &[(&Side<'_>, usize)],
    added: Option<&Plaintext>,
    at: usize,
) -> Result<Ciphertext, ExactError> {
    match (operation, found) {
        (moved, [(Side::Encrypted(_, x), p)]) if moves(moved) => Ok(x[p + at].clone()),
        (Operation::Neg, [(Side::Encrypted(_, x), p)]) => e.negate(&x[p + at]),
        (&Operation::Scale { by }, [(Side::Encrypted(_, x), p)]) => e.mul_integer(&x[p + at], by as i64),
        (Operation::Shift { .. }, [(Side::Encrypted(_, x), p)]) => match added {
            Some(number) => e.add_plain(&x[p + at], number),
            None => Err(no_operand()),
        },
        (Operation::Add, [(Side::Encrypted(_, x), p), (Side::Encrypted(_, y), q)]) => {
            combined(e, &x[p + at], &y[q + at], Evaluator::add)
        }
        (Operation::Sub, [(Side::Encrypted(_, x), p), (Side::Encrypted(_, y), q)]) => {
            combined(e, &x[p + at], &y[q + at], Evaluator::sub)
        }
        (Operation::Add, [(Side::Encrypted(_, x), p), (Side::Plain(_, y), q)])
        | (Operation::Add, [(Side::Plain(_, y), q), (Side::Encrypted(_, x), p)]) => e.add_plain(&x[p + at], &y[q + at]),
        (Operation::Sub, [(Side::Encrypted(_, x), p), (Side::Plain(_, y), q)]) => e.sub_plain(&x[p + at], &y[q + at]),
        (Operation::Sub, [(Side::Plain(_, x), p), (Side::Encrypted(_, y), q)]) => {
            e.add_plain(&e.negate(&y[q + at])?, &x[p + at])
        }
        (Operation::Mul, [(Side::Encrypted(_, x), p), (Side::Encrypted(_, y), q)]) => e.mul(&x[p + at], &y[q + at]),
        (Operation::Mul, [(Side::Encrypted(_, x), p), (Side::Factor(_, y), q)])
        | (Operation::Mul, [(Side::Factor(_, y), q), (Side::Encrypted(_, x), p)]) => {
            e.mul_factor(&x[p + at], &y[q + at])
        }
        _ => Err(no_operand()),
    }
}

/// A sum or difference under one plaintext factor: that of the operand with more parts, whose noise is the larger one.
fn combined(
    e: &Evaluator,
    x: &Ciphertext,
    y: &Ciphertext,
    combine: fn(&Evaluator, &Ciphertext, &Ciphertext) -> Result<Ciphertext, ExactError>,
) -> Result<Ciphertext, ExactError> {
    match x.parts().len().cmp(&y.parts().len()) {
        std::cmp::Ordering::Less => combine(e, &e.with_factor(x, y.factor())?, y),
        std::cmp::Ordering::Equal => combine(e, x, y),
        std::cmp::Ordering::Greater => combine(e, x, &e.with_factor(y, x.factor())?),
    }
}
