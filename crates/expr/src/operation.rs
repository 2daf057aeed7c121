//! What can be asked of matrices: the one list, with shapes, bounds, text and what each operation is on plain matrices.

use crate::error::{ExprError, refuse};
use crate::expr::MAX_ELEMENTS;
use crate::lines::Lines;
use crate::matrix::{Element, Matrix};
use crate::polynomial::Polynomial;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Numbers under this are integers, whatever they were made of.
const DOUBLES: f64 = 9_007_199_254_740_992.0;
/// Largest bound of a value; of integers every larger one is this.
const LARGEST: f64 = 1e100;
/// Least bound that may be stated.
const LEAST_BOUND: f64 = 1e-15;

/// What can be asked of matrices: the one list for expressions, sessions, requests, Python and Dask.
///
/// Matrices have two axes; a vector is a row or a column. [`Operation::infer`] has the shapes that go together and the bound of
/// a result, [`Operation::of_plain`] the value.
///
/// As JSON it is `{"op": "matmul"}` or `{"op": "sum", "axis": 0}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// An input, by its position among the inputs.
    Input {
        /// Position.
        input: usize,
    },
    /// The matrix product, m×k times k×n.
    Matmul,
    /// The sum of two matrices of one shape, element by element.
    Add,
    /// The difference of two matrices of one shape, element by element.
    Sub,
    /// The product of two matrices of one shape, element by element.
    Mul,
    /// The negative.
    Neg,
    /// The product with a number.
    Scale {
        /// The number.
        by: f64,
    },
    /// A number added to every element.
    Shift {
        /// The number.
        by: f64,
    },
    /// The transpose.
    Transpose,
    /// The sum over the rows (axis 0: one row comes out) or over the columns (axis 1: one column).
    Sum {
        /// 0 or 1.
        axis: u8,
    },
    /// The same matrix, of which the caller knows a bound that the operations before do not tell. It must hold.
    Bounded {
        /// The bound on absolute values.
        max_abs: f64,
    },
    /// Rows (axis 0) or columns (axis 1) in other places of a new matrix: slices, and what is put together.
    Take {
        /// 0 or 1.
        axis: u8,
        /// Which, and where to.
        lines: Lines,
    },
    /// The only row (axis 0) or column (axis 1), `size` times.
    Repeat {
        /// 0 or 1.
        axis: u8,
        /// How many times.
        size: usize,
    },
    /// A function of every element by its polynomial. An expression has the operations in its place that it is made of.
    Polynomial(Polynomial),
    /// The first operand, a polynomial's value, as that of a function: it is within `error` of the function where the second
    /// operand, the polynomial's variable, lies between `low` and `high`. A variable whose bound is over both is refused.
    Approximation {
        /// Largest distance to the function.
        error: f64,
        /// Least value of the variable.
        low: f64,
        /// Largest value of the variable.
        high: f64,
    },
    /// Of an n×p table the means of the columns in the first row, and under it their p×p covariances with n − 1 degrees of
    /// freedom: (p + 1)×p in all.
    Moments,
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Serde lets unknown fields of an operation without numbers pass; here none does.
impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let fields = Map::deserialize(deserializer)?;
        let bare = fields.len() == 1;
        let read = Self::deserialize(Value::Object(fields)).map_err(D::Error::custom)?;
        match bare || !matches!(serde_json::to_value(&read), Ok(Value::Object(written)) if written.len() == 1) {
            true => Ok(read),
            false => {
                Err(D::Error::custom(format!("{} takes no fields but its name; leave the others out", read.name())))
            }
        }
    }
}

/// What is known of a value before anything is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Bound on the absolute values.
    pub max_abs: f64,
    /// For integers the bound to the last digit, as far as 127 bits hold it.
    pub integers: Option<i128>,
    /// Whether the server knows it without any key.
    pub plain: bool,
}

/// An operation of an expression and the earlier nodes that it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The operation.
    #[serde(flatten)]
    pub operation: Operation,
    /// Numbers of the nodes that it takes, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<usize>,
}

impl Node {
    /// An operation on nodes.
    pub fn new(operation: Operation, operands: &[usize]) -> Self {
        Self { operation, operands: operands.to_vec() }
    }

    /// An input, by its position among the inputs.
    pub fn input(input: usize) -> Self {
        Self::new(Operation::Input { input }, &[])
    }

    /// Operation and operands, to match both.
    pub fn parts(&self) -> (&Operation, &[usize]) {
        (&self.operation, &self.operands)
    }
}

/// How an operation is written: around its operands, each with the least binding of what stands there bare.
pub(crate) struct Written {
    /// How tightly it binds itself.
    pub own: u8,
    pub before: String,
    pub operands: &'static [u8],
    pub between: &'static str,
    pub after: String,
}

/// A number that is an integer, however it was made, and no larger than doubles hold every integer.
pub fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < DOUBLES).then_some(number as i128)
}

impl Operation {
    /// How many operands it takes.
    pub fn operands(&self) -> usize {
        match self {
            Self::Input { .. } => 0,
            Self::Matmul | Self::Add | Self::Sub | Self::Mul | Self::Approximation { .. } => 2,
            _ => 1,
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Matmul => "matrix product",
            Self::Add => "addition",
            Self::Sub => "subtraction",
            Self::Mul => "element-wise product",
            Self::Neg => "negation",
            Self::Scale { .. } => "product with a number",
            Self::Shift { .. } => "addition of a number",
            Self::Transpose => "transpose",
            Self::Sum { .. } => "sum",
            Self::Bounded { .. } => "known bound",
            Self::Take { .. } => "slice",
            Self::Repeat { .. } => "broadcast",
            Self::Polynomial(_) => "polynomial",
            Self::Approximation { .. } => "approximation",
            Self::Moments => "means and covariances",
        }
    }

    pub(crate) fn written(&self, input: impl Fn(usize) -> String) -> Written {
        type Parts = (u8, String, &'static [u8], &'static str, String);
        let infix = |own: u8, operands: &'static [u8], between: &'static str| -> Parts {
            (own, String::new(), operands, between, String::new())
        };
        let (own, before, operands, between, after): Parts = match self {
            Self::Input { input: at } => (4, input(*at), &[], "", String::new()),
            Self::Matmul => infix(2, &[2, 3], " @ "),
            Self::Mul => infix(2, &[2, 3], " * "),
            Self::Add => infix(1, &[1, 2], " + "),
            Self::Sub => infix(1, &[1, 2], " - "),
            Self::Neg => (3, "-".into(), &[3], "", String::new()),
            Self::Scale { by } => (2, format!("{by} * "), &[3], "", String::new()),
            Self::Shift { by } => (1, String::new(), &[1], "", format!(" + {by}")),
            Self::Transpose => (4, String::new(), &[4], "", ".T".into()),
            Self::Sum { axis } => (4, String::new(), &[4], "", format!(".sum({axis})")),
            Self::Bounded { max_abs } => (4, String::new(), &[4], "", format!(".bounded({max_abs})")),
            Self::Take { axis, lines: Lines { start, step, count, at, stride, size } } => {
                let taken = format!(".take({start}:{step}:{count} to {at}:{stride} of {size}, {axis})");
                (4, String::new(), &[4], "", taken)
            }
            Self::Repeat { axis, size } => (4, String::new(), &[4], "", format!(".repeat({size}, {axis})")),
            Self::Polynomial(p) => (4, "polynomial(".into(), &[0], "", format!(" on [{}, {}])", p.low, p.high)),
            Self::Approximation { error, low, high } => {
                (4, "approximation(".into(), &[0], "", format!(" on [{low}, {high}] within {error:.1e})"))
            }
            Self::Moments => (4, "moments(".into(), &[0], "", ")".into()),
        };
        Written { own, before, operands, between, after }
    }

    /// Rows and columns of its result, of operands with these.
    ///
    /// # Errors
    /// [`ExprError::Operands`] for another number of operands, [`ExprError::Shapes`] for shapes that do not go together,
    /// [`ExprError::Expression`] for lines or an axis that the operand does not have.
    pub fn shape(&self, operands: &[(usize, usize)]) -> Result<(usize, usize), ExprError> {
        let [left, right] = match *operands {
            _ if operands.len() != self.operands() => {
                let (operation, found, expected) = (self.name(), operands.len(), self.operands());
                return Err(ExprError::Operands { operation, found, expected });
            }
            [left, right] => [left, right],
            [of] => [of, of],
            _ => {
                return refuse(
                    "an input has the shape that it was described with, and no operand to infer it from".into(),
                );
            }
        };
        let (rows, cols) = left;
        let lines = |axis: u8| match axis {
            0 => Ok(rows),
            1 => Ok(cols),
            _ => refuse(format!("a matrix has axes 0 and 1, not {axis}")),
        };
        let with = |axis: u8, lines: usize| if axis == 0 { (lines, cols) } else { (rows, lines) };
        Ok(match self {
            Self::Matmul if cols == right.0 => (rows, right.1),
            Self::Add | Self::Sub | Self::Mul | Self::Approximation { .. } if left == right => left,
            Self::Matmul | Self::Add | Self::Sub | Self::Mul | Self::Approximation { .. } => {
                return Err(ExprError::Shapes { operation: self.name(), left, right });
            }
            Self::Transpose => (cols, rows),
            Self::Sum { axis } => lines(*axis).map(|_| with(*axis, 1))?,
            Self::Take { axis, lines: taken } => match taken.fit(lines(*axis)?) {
                true => with(*axis, taken.size),
                false => return refuse(taken.misfit((rows, cols), *axis)),
            },
            Self::Repeat { axis, size } => match (lines(*axis)?, size) {
                (1, 1..) => with(*axis, *size),
                (held, _) => {
                    return refuse(format!(
                        "one row or column is repeated, at least once; a {rows}×{cols} matrix has {held} along axis \
                         {axis}, and {size} repetitions were asked for"
                    ));
                }
            },
            Self::Moments => (1 + cols, cols),
            _ => left,
        })
    }

    /// What is known of its result by what is known of its operands.
    ///
    /// # Errors
    /// As [`Operation::shape`]; [`ExprError::Expression`] for numbers that are none, and results that are too large.
    pub fn infer(&self, operands: &[&Info]) -> Result<Info, ExprError> {
        if let Self::Polynomial(p) = self {
            return p.infer(operands);
        }
        let shapes: Vec<_> = operands.iter().map(|o| o.shape).collect();
        let shape = self.shape(&shapes)?;
        let number = |by: f64| match by.is_finite() {
            true => Ok(by),
            false => refuse(format!("{}: {by} is not a finite number", self.name())),
        };
        let (l, r) = (operands[0], operands[operands.len() - 1]);
        let terms = match self {
            Self::Matmul => shapes[0].1,
            Self::Sum { axis: 0 } => shapes[0].0,
            Self::Sum { .. } => shapes[0].1,
            _ => 1,
        };
        let both = |f: fn(i128, i128) -> i128| l.integers.zip(r.integers).map(|(a, b)| f(a, b));
        let with = |by: f64, f: fn(i128, i128) -> i128| l.integers.zip(whole(by)).map(|(a, b)| f(a, b.abs()));
        let summed = |bound: Option<i128>| bound.map(|b| b.saturating_mul(terms as i128));
        let (max_abs, integers) = match *self {
            Self::Matmul => (l.max_abs * r.max_abs * terms as f64, summed(both(i128::saturating_mul))),
            Self::Add | Self::Sub => (l.max_abs + r.max_abs, both(i128::saturating_add)),
            Self::Mul => (l.max_abs * r.max_abs, both(i128::saturating_mul)),
            Self::Scale { by } => (l.max_abs * number(by)?.abs(), with(by, i128::saturating_mul)),
            Self::Shift { by } => (l.max_abs + number(by)?.abs(), with(by, i128::saturating_add)),
            Self::Sum { .. } => (l.max_abs * terms as f64, summed(l.integers)),
            Self::Bounded { max_abs } if max_abs.is_finite() && max_abs >= LEAST_BOUND => {
                (max_abs.min(l.max_abs), l.integers.map(|b| b.min(max_abs as i128)))
            }
            Self::Bounded { max_abs } => {
                return refuse(format!("a known bound is a finite number of at least {LEAST_BOUND:e}, not {max_abs}"));
            }
            Self::Approximation { error, low, high } => {
                number(low).and(number(high))?;
                if !(error.is_finite() && error >= 0.0 && low < high) {
                    return refuse(format!(
                        "an approximation on [{low}, {high}] within {error}: the interval begins at its lower end, \
                         and the error is a finite number that is not below zero"
                    ));
                }
                (l.max_abs, None)
            }
            // n / (n − 1) is at most two.
            Self::Moments => (l.max_abs.max(2.0 * l.max_abs * l.max_abs), None),
            _ => (l.max_abs, l.integers),
        };
        let (rows, cols) = shape;
        if rows.saturating_mul(cols) > MAX_ELEMENTS {
            return refuse(format!(
                "{} makes a {rows}×{cols} matrix, and {MAX_ELEMENTS} elements are the most; compute it in parts",
                self.name()
            ));
        }
        // Covariances are as large as checked bounds of inputs allow.
        let largest = if *self == Self::Moments { f64::MAX } else { LARGEST };
        // Integers modulo a number may pass every bound.
        let max_abs = if integers.is_some() { max_abs.min(LARGEST) } else { max_abs };
        if max_abs.is_nan() || max_abs > largest {
            return refuse(format!(
                "{} makes values of up to {max_abs:e}, and {largest:e} is the largest possible; declare smaller bounds",
                self.name()
            ));
        }
        Ok(Info { shape, max_abs, integers, plain: operands.iter().all(|o| o.plain) })
    }

    /// What it makes of plain matrices.
    ///
    /// # Errors
    /// As [`Operation::shape`] and the operations of [`Matrix`]; [`ExprError::Expression`] for a function, and statistics.
    pub fn of_plain<T: Element>(&self, operands: &[&Matrix<T>]) -> Result<Matrix<T>, ExprError> {
        self.shape(&operands.iter().map(|m| m.shape()).collect::<Vec<_>>())?;
        let (x, y) = (operands[0], operands[operands.len() - 1]);
        let number = |by: f64| {
            T::of(by).map_or_else(|| refuse(format!("{}: {by} is not an integer below 2^53", self.name())), Ok)
        };
        match *self {
            Self::Matmul => x.matmul(y),
            Self::Add => x.zip(self.name(), y, T::plus),
            Self::Sub => x.zip(self.name(), y, |a, b| a.plus(b.negative()?)),
            Self::Mul => x.zip(self.name(), y, T::times),
            Self::Neg => x.map(T::negative),
            Self::Scale { by } => number(by).and_then(|by| x.map(|a| a.times(by))),
            Self::Shift { by } => number(by).and_then(|by| x.map(|a| a.plus(by))),
            Self::Transpose => Ok(x.transpose()),
            Self::Sum { axis } => x.sum(axis),
            Self::Take { axis, lines } => x.take(axis, &lines),
            Self::Repeat { axis, size } => x.repeat(axis, size),
            Self::Bounded { .. } | Self::Approximation { .. } => Ok(x.clone()),
            Self::Input { .. } | Self::Polynomial(_) | Self::Moments => {
                refuse(format!("{} is not computed of plain matrices; encrypt the operand", self.name()))
            }
        }
    }

    /// The position of an input, if it is one.
    pub fn input(&self) -> Option<usize> {
        if let Self::Input { input } = self { Some(*input) } else { None }
    }

    /// What it multiplies each element by before anything else is done to it: −1, a number, or 1.
    pub fn factor(&self) -> f64 {
        match self {
            Self::Neg => -1.0,
            Self::Scale { by } => *by,
            _ => 1.0,
        }
    }

    /// Whether its value rounds, of doubles.
    pub fn rounds(&self) -> bool {
        matches!(self, Self::Scale { .. } | Self::Shift { .. } | Self::Sum { .. })
    }

    /// Whether the owner of its one operand can do it before encryption; nothing that forgets the operand.
    pub(crate) fn prepares(&self) -> bool {
        self.operands() == 1 && self.factor() != 0.0 && !matches!(self, Self::Moments | Self::Polynomial(_))
    }

    /// The same of a result after decryption: only what keeps every element.
    pub(crate) fn finishes(&self) -> bool {
        self.prepares() && !matches!(self, Self::Sum { .. } | Self::Take { .. } | Self::Repeat { .. })
    }

    /// By what it multiplies its right operand before it adds both: 1 or −1; `None` for what is no sum.
    pub(crate) fn sign(&self) -> Option<f64> {
        match self {
            Self::Add => Some(1.0),
            Self::Sub => Some(-1.0),
            _ => None,
        }
    }

    /// Its distance to the function and both ends of the interval, if it says what a polynomial stands for.
    pub(crate) fn stands_for(&self) -> Option<(f64, f64, f64)> {
        if let Self::Approximation { error, low, high } = self { Some((*error, *low, *high)) } else { None }
    }

    /// Whether its operands may be exchanged.
    pub fn commutes(&self) -> bool {
        matches!(self, Self::Add | Self::Mul)
    }

    /// The same operations one after the other that an expression has in its place: each takes those before it by their
    /// numbers from 1, and the operand as number 0. `None` for any other operation, which is its own.
    ///
    /// # Errors
    /// [`ExprError::Expression`] for a polynomial that is none.
    pub fn steps(&self) -> Result<Option<Vec<Node>>, ExprError> {
        if let Self::Polynomial(p) = self { p.steps().map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_strictly() {
        for text in [
            r#"{"op":"matmul"}"#,
            r#"{"op":"scale","by":2.5}"#,
            r#"{"op":"take","axis":1,"lines":{"start":3,"step":-1,"count":2,"at":0,"stride":1,"size":2}}"#,
            r#"{"op":"polynomial","coefficients":[0.0,1.0],"low":-1.0,"high":1.0,"error":0.0}"#,
        ] {
            let read: Operation = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            let node = format!("{}{}", &text[..text.len() - 1], r#","operands":[0,1]}"#);
            let read: Node = serde_json::from_str(&node).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), node);
            let more = |text: &str| format!("{}{}", &text[..text.len() - 1], r#","colour":1}"#);
            assert!(serde_json::from_str::<Operation>(&more(text)).is_err(), "{text}");
            assert!(serde_json::from_str::<Node>(&more(&node)).is_err(), "{node}");
        }
        for wrong in [r#"{"op":"scale"}"#, r#"{"op":"shrink"}"#, r#"{"by":1}"#, "[]", r#"{"op":"sum","axis":-1}"#] {
            assert!(serde_json::from_str::<Operation>(wrong).is_err(), "{wrong}");
        }
    }

    /// Bounds of integers stay exact where doubles end, and end where 127 bits do.
    #[test]
    fn integers_have_bounds_to_the_last_digit() {
        let info = |bound: i128| Info { shape: (2, 2), max_abs: bound as f64, integers: Some(bound), plain: true };
        let (x, huge) = (info((1 << 60) + 1), info(i128::MAX / 2));
        let bound = |operation: Operation, operands: &[&Info]| operation.infer(operands).unwrap().integers;
        assert_eq!(bound(Operation::Matmul, &[&x, &x]), Some(2 * ((1 << 60) + 1) * ((1 << 60) + 1)));
        assert_eq!(bound(Operation::Scale { by: -3.0 }, &[&x]), Some(3 * ((1 << 60) + 1)));
        assert_eq!(bound(Operation::Mul, &[&huge, &x]), Some(i128::MAX));
        // What is no integer has no such bound.
        assert_eq!(bound(Operation::Scale { by: 0.5 }, &[&x]), None);
    }

    #[test]
    fn shapes_that_do_not_go_together_are_refused() {
        let refused = |operation: &Operation, shapes: &[(usize, usize)]| operation.shape(shapes).unwrap_err();
        assert!(matches!(refused(&Operation::Matmul, &[(2, 3), (2, 3)]), ExprError::Shapes { .. }));
        assert!(matches!(refused(&Operation::Neg, &[(2, 3), (2, 3)]), ExprError::Operands { found: 2, .. }));
        assert!(matches!(refused(&Operation::Input { input: 0 }, &[]), ExprError::Expression { .. }));
        assert!(matches!(refused(&Operation::Sum { axis: 2 }, &[(2, 3)]), ExprError::Expression { .. }));
        assert!(matches!(refused(&Operation::Repeat { axis: 0, size: 4 }, &[(2, 3)]), ExprError::Expression { .. }));
        assert_eq!(Operation::Repeat { axis: 0, size: 4 }.shape(&[(1, 3)]).unwrap(), (4, 3));
    }
}
