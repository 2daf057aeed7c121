//! A function by its polynomial, and the operations that an expression has in its place.

use crate::error::{ExprError, refuse};
use crate::operation::{Info, Node, Operation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Degrees below this are sums of multiples.
const BABIES: usize = 4;
/// Highest degree.
pub const MAX_DEGREE: usize = 512;

/// A polynomial that stands for a function between two numbers: up to [`MAX_DEGREE`], and not constant.
///
/// ```
/// use sudare_expr::{Expr, InputSpec, Node, Operation, Polynomial};
///
/// // u³ = (3·T_1(u) + T_3(u))/4 on [−1, 1].
/// let cube = Polynomial { coefficients: vec![0.0, 0.75, 0.0, 0.25], low: -1.0, high: 1.0, error: 0.0, beyond: None };
/// let nodes = vec![Node::input(0), Node::new(Operation::Polynomial(cube), &[0])];
/// let expr = Expr::new(vec![InputSpec::new("x", (4, 4), 1.0)], nodes, 1)?;
/// let found = expr.approximations().next();
/// assert_eq!(found.map(|at| (at.low, at.high, at.error)), Some((-1.0, 1.0, 0.0)));
/// # Ok::<(), sudare_expr::ExprError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Polynomial {
    /// Σ c_k·T_k(u) of u = (x − middle) / radius, in Chebyshev's polynomials T_k on the interval.
    pub coefficients: Vec<f64>,
    /// Least value of its variable.
    pub low: f64,
    /// Largest value of its variable.
    pub high: f64,
    /// Largest distance to the function.
    pub error: f64,
    /// Where values may be over both ends, up to which size, and the distance as far as that. A context takes it; an
    /// expression, whose bounds are no powers of two, does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<(f64, f64)>,
}

/// A value of a polynomial: a number, or a step.
#[derive(Clone, Copy)]
enum Value {
    Number(f64),
    Step(usize),
}

/// The steps so far; number 0 is the variable.
struct Steps {
    nodes: Vec<Node>,
    /// T_k by its k.
    known: BTreeMap<usize, usize>,
}

impl Steps {
    fn push(&mut self, operation: Operation, operands: &[usize]) -> usize {
        self.nodes.push(Node::new(operation, operands));
        self.nodes.len()
    }

    fn bounded(&mut self, of: usize) -> usize {
        self.push(Operation::Bounded { max_abs: 1.0 }, &[of])
    }

    /// T_2k = 2·T_k² − 1 and T_2k+1 = 2·T_k·T_k+1 − u, each between −1 and 1.
    fn term(&mut self, k: usize) -> usize {
        if let Some(found) = self.known.get(&k) {
            return *found;
        }
        let half = self.term(k / 2);
        let other = if k.is_multiple_of(2) { half } else { self.term(k - k / 2) };
        let product = self.push(Operation::Mul, &[half, other]);
        let double = self.push(Operation::Scale { by: 2.0 }, &[product]);
        let term = match self.known.get(&1) {
            Some(u) if k % 2 == 1 => self.push(Operation::Sub, &[double, *u]),
            _ => self.push(Operation::Shift { by: -1.0 }, &[double]),
        };
        let term = self.bounded(term);
        self.known.insert(k, term);
        term
    }

    /// Σ c_k·T_k: p = q·T_m + r with m a power of two (Paterson and Stockmeyer 1973, in Chebyshev's basis).
    fn value(&mut self, c: &[f64]) -> Value {
        let Some(degree) = c.iter().rposition(|c| *c != 0.0) else { return Value::Number(0.0) };
        if degree < BABIES {
            let mut sum = None;
            for k in (1..=degree).filter(|k| c[*k] != 0.0) {
                let term = self.term(k);
                let part = self.push(Operation::Scale { by: c[k] }, &[term]);
                sum = Some(sum.map_or(part, |sum| self.push(Operation::Add, &[sum, part])));
            }
            return match sum {
                Some(sum) => Value::Step(self.push(Operation::Shift { by: c[0] }, &[sum])),
                None => Value::Number(c[0]),
            };
        }
        let m = 1 << degree.ilog2();
        // T_i·T_m = (T_m+i + T_m−i) / 2.
        let quotient: Vec<f64> = (0..=degree - m).map(|i| if i == 0 { c[m] } else { 2.0 * c[m + i] }).collect();
        let rest = |k: usize| if k > 0 && 2 * m - k <= degree { c[k] - c[2 * m - k] } else { c[k] };
        let remainder: Vec<f64> = (0..m).map(rest).collect();
        let term = self.term(m);
        let high = match self.value(&quotient) {
            Value::Number(by) => self.push(Operation::Scale { by }, &[term]),
            Value::Step(q) => self.push(Operation::Mul, &[term, q]),
        };
        Value::Step(match self.value(&remainder) {
            Value::Number(by) => self.push(Operation::Shift { by }, &[high]),
            Value::Step(r) => self.push(Operation::Add, &[high, r]),
        })
    }
}

impl Polynomial {
    /// Both ends' larger absolute value.
    pub fn reach(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The operations that compute it, as [`Operation::steps`] numbers them.
    ///
    /// # Errors
    /// [`ExprError::Expression`] for a constant, an interval that is none, and numbers that are not finite.
    pub fn steps(&self) -> Result<Vec<Node>, ExprError> {
        let Self { coefficients, low, high, error, .. } = self;
        let middle = (low + high) / 2.0;
        let radius = (high - low) / 2.0;
        let finite = coefficients.iter().chain([error, low, high]).all(|x| x.is_finite());
        if !finite || low >= high || coefficients.len() > MAX_DEGREE + 1 {
            let (found, most) = (coefficients.len(), MAX_DEGREE + 1);
            return refuse(format!(
                "a polynomial with {found} coefficients on [{low}, {high}]: it takes up to {most} finite ones, and an \
                 interval with finite ends, the lower one first"
            ));
        }
        if coefficients.iter().skip(1).all(|c| *c == 0.0) {
            return refuse("a polynomial of degree 0 is a number: write that number".into());
        }
        let mut steps = Steps { nodes: Vec::new(), known: BTreeMap::new() };
        let mut u = 0;
        if middle != 0.0 {
            u = steps.push(Operation::Shift { by: -middle }, &[u]);
        }
        if radius != 1.0 {
            u = steps.push(Operation::Scale { by: 1.0 / radius }, &[u]);
        }
        let u = steps.bounded(u);
        steps.known.insert(1, u);
        if let Value::Step(value) = steps.value(coefficients) {
            steps.push(Operation::Approximation { error: *error, low: *low, high: *high }, &[value, 0]);
        }
        Ok(steps.nodes)
    }

    /// What is known of its value.
    pub(crate) fn infer(&self, operands: &[&Info]) -> Result<Info, ExprError> {
        let [of] = operands else {
            let operation = Operation::Polynomial(self.clone()).name();
            return Err(ExprError::Operands { operation, found: operands.len(), expected: 1 });
        };
        let mut known = vec![**of];
        for Node { operation, operands } in self.steps()? {
            let made = operation.infer(&operands.iter().map(|o| &known[*o]).collect::<Vec<_>>())?;
            known.push(made);
        }
        Ok(known[known.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    /// The sum of Chebyshev's polynomials by their definition, cos(k·arccos u).
    #[test]
    fn steps_are_the_polynomial() {
        for degree in [1usize, 2, 3, 4, 5, 7, 8, 15, 23, 31] {
            let coefficients: Vec<f64> = (0..=degree).map(|k| ((k * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
            let p = Polynomial { coefficients: coefficients.clone(), low: -1.0, high: 3.0, error: 0.0, beyond: None };
            let x = Matrix::from_fn(1, 9, |_, j| j as f64 / 2.0 - 1.0).unwrap();
            let mut values = vec![x.clone()];
            for Node { operation, operands } in p.steps().unwrap() {
                let operands: Vec<_> = operands.iter().map(|o| &values[*o]).collect();
                let made = operation.of_plain(&operands).unwrap();
                values.push(made);
            }
            let wanted = |x: f64| {
                let angle = ((x - 1.0) / 2.0).acos();
                coefficients.iter().enumerate().map(|(k, c)| c * (k as f64 * angle).cos()).sum::<f64>()
            };
            let wanted = x.map(|x| Some(wanted(x))).unwrap();
            assert!(values[values.len() - 1].max_difference(&wanted) < 1e-12, "degree {degree}");
        }
        let constant = Polynomial { coefficients: vec![2.0], low: 0.0, high: 1.0, error: 0.0, beyond: None };
        assert!(constant.steps().unwrap_err().to_string().contains("degree 0"));
    }
}
