//! The program that is one product of inputs, and what is done to its result.
//!
//! Each input is encrypted as its role asks: transposed, or in both forms where it stands on both sides. What ends the
//! expression (negation, numbers as factors and summands, a transpose) is public and can be undone by anybody, so that the
//! server has nothing to do for it: it is done to the decrypted product.

use super::Goal;
use super::program::{CkksEngine, NodeSize, Sketch};
use crate::error::MatrixError;
use crate::expr::{EndedProduct, Expr, Factor, NodeInfo, Op};
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Operand, Outline, Product, ProductSpec};
use crate::sizing;
use crate::work::Work;
use sudare_he::ckks::{Ciphertext, Evaluator, Expected, Params, Plaintext};
use sudare_rlwe::params::ParamsLiteral;

/// What a product takes and promises, and where its matrices are in an expression.
pub(super) struct ProductSketch {
    outline: Box<dyn Outline>,
    /// What it is a product of, and what is done to it.
    product: EndedProduct,
    /// Nodes of both inputs.
    inputs: [usize; 2],
    /// Bounds of its operands.
    max_abs: [f64; 2],
    /// Error of the product and of each node after it.
    errors: Vec<(usize, f64)>,
}

/// The product of an expression and what is known of its factors, if the expression is one.
pub(super) fn factors(expr: &Expr) -> Option<(EndedProduct, [&NodeInfo; 2])> {
    let product = expr.ended_product()?;
    let node = |f: Factor| expr.info(f.node.unwrap_or(expr.node_of_input(f.input)));
    let infos = product.factors.map(node);
    Some((product, infos))
}

/// How far errors grow from the product to the result.
pub(super) fn growth(expr: &Expr, product: &EndedProduct) -> f64 {
    product.ends.iter().map(|at| grown(expr.nodes()[*at])).product()
}

/// How far one operation lets errors grow.
fn grown(op: Op) -> f64 {
    if let Op::Scale { by, .. } = op { by.abs() } else { 1.0 }
}

impl ProductSketch {
    pub(super) fn new(goal: &Goal, product: &ProductSpec) -> Result<Self, MatrixError> {
        let expr = &goal.expression;
        let Some((ended, infos)) = factors(expr) else {
            return Err(MatrixError::NoPlan { reason: format!("{expr} is not one product of inputs") });
        };
        let (s, [l, r], max_abs) = (product.shape, infos.map(|i| i.shape), infos.map(|i| i.max_abs));
        if (l.0, l.1, r.0, r.1, goal.batch) != (s.m, s.k, s.k, s.n, s.batch) {
            return Err(MatrixError::NoPlan { reason: format!("the program's shapes are not those of {expr}") });
        }
        let (outline, inputs) = (product.outline()?, ended.factors.map(|f| expr.node_of_input(f.input)));
        let mut errors = vec![(ended.product, outline.error(max_abs))];
        for at in &ended.ends {
            let (before, rounded) = (errors[errors.len() - 1].1, expr.info(*at).max_abs * f64::EPSILON);
            errors.push((*at, grown(expr.nodes()[*at]) * before + rounded));
        }
        Ok(Self { outline, product: ended, inputs, max_abs, errors })
    }

    /// The forms of the product's operands that a node has: both, for an input on both sides.
    fn roles(&self, node: usize) -> impl Iterator<Item = (Operand, Factor)> {
        let both = [Operand::Left, Operand::Right].into_iter().zip(self.inputs).zip(self.product.factors);
        both.filter(move |((_, input), factor)| *input == node || factor.node == Some(node))
            .map(|((operand, _), factor)| (operand, factor))
    }

    /// The operands among a node's ciphertexts.
    fn forms(&self, node: usize) -> impl Iterator<Item = Operand> {
        let input = self.roles(node).next().map(|(_, factor)| factor.input);
        let both = [Operand::Left, Operand::Right].into_iter().zip(self.product.factors);
        both.filter(move |(_, factor)| Some(factor.input) == input).map(|(operand, _)| operand)
    }

    /// Of a factor's ciphertexts those that are the operand.
    fn part<'c>(&self, operand: Operand, cts: &'c [Ciphertext]) -> &'c [Ciphertext] {
        let count = self.outline.ciphertexts(operand);
        match operand {
            Operand::Right => &cts[cts.len().saturating_sub(count)..],
            _ => &cts[..count.min(cts.len())],
        }
    }

    /// The operations from the product to a node.
    fn ends(&self, node: usize) -> Option<&[usize]> {
        if node == self.product.product {
            return Some(&[]);
        }
        let at = self.product.ends.iter().position(|end| *end == node)?;
        Some(&self.product.ends[..=at])
    }
}

impl Sketch for ProductSketch {
    fn method(&self) -> &'static str {
        self.outline.name()
    }

    fn literal(&self) -> &ParamsLiteral {
        self.outline.literal()
    }

    fn keys(&self) -> KeyDemand {
        self.outline.keys()
    }

    fn work(&self) -> Work {
        self.outline.work()
    }

    fn table_bytes(&self) -> u64 {
        self.outline.table_bytes()
    }

    fn error(&self) -> f64 {
        self.errors.last().map_or(f64::NAN, |(_, error)| *error)
    }

    fn holds(&self) -> bool {
        sizing::holds(self.outline.literal(), &self.outline.peaks(self.max_abs))
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        self.errors.iter().find(|(at, _)| *at == node).map(|(_, error)| *error)
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let outline = &self.outline;
        let size = |operand: Operand| NodeSize {
            count: outline.ciphertexts(operand),
            parts: outline.parts(operand),
            level: outline.level(operand),
        };
        let both = |a: NodeSize, b: NodeSize| NodeSize {
            count: a.count + b.count,
            parts: a.parts.max(b.parts),
            level: a.level.max(b.level),
        };
        match self.ends(node) {
            Some(_) => Some(size(Operand::Output)),
            // What is named as a transpose is its input's ciphertexts.
            None => self.forms(node).map(size).reduce(both),
        }
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        if self.inputs[0] == self.inputs[1] {
            out.push(("forms", "the input is encrypted twice, once as each factor".to_owned()));
        }
        if !self.product.ends.is_empty() {
            out.push(("ends", "numbers and transposes after the product are done to what is decrypted".to_owned()));
        }
        out
    }
}

/// A product under built parameters.
pub(super) struct ProductEngine {
    sketch: ProductSketch,
    product: Box<dyn Product>,
    /// Level and scale of the product.
    result: (usize, f64),
}

impl ProductEngine {
    pub(super) fn new(goal: &Goal, spec: &ProductSpec) -> Result<Self, MatrixError> {
        let (sketch, product) = (ProductSketch::new(goal, spec)?, spec.build()?);
        let result = spec.result(product.params());
        Ok(Self { sketch, product, result })
    }
}

impl CkksEngine for ProductEngine {
    fn params(&self) -> &Params {
        self.product.params()
    }

    fn sketch(&self) -> &dyn Sketch {
        &self.sketch
    }

    fn product(&self) -> Option<&dyn Product> {
        Some(&*self.product)
    }

    fn prepare(&self, _: &Goal) -> Result<(), MatrixError> {
        self.product.prepare()
    }

    fn expected(&self) -> Expected {
        let (level, scale) = self.result;
        Expected { level, scale, error: self.sketch.error() }
    }

    fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let max_abs = goal.expression.info(node).max_abs;
        let mut out = Vec::new();
        for (operand, factor) in self.sketch.roles(node) {
            out.extend(match factor.node {
                Some(_) => {
                    let turned: Vec<Matrix> = matrices.iter().map(Matrix::transpose).collect();
                    self.product.encode(operand, &turned, max_abs)?
                }
                None => self.product.encode(operand, matrices, max_abs)?,
            });
        }
        match out.is_empty() {
            true => Err(MatrixError::NoPlan { reason: format!("node {node} is no input") }),
            false => Ok(out),
        }
    }

    fn decode(&self, goal: &Goal, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        match self.sketch.ends(node) {
            Some(ends) => {
                let ended = |m: Matrix| ends.iter().try_fold(m, |m, at| applied(goal.expression.nodes()[*at], m));
                self.product.decode(values)?.into_iter().map(ended).collect()
            }
            None => Err(MatrixError::NotPlanned {
                operation: "decryption of an operand",
                planned: "the result is decrypted; an operand is encrypted in a form of its own".into(),
            }),
        }
    }

    fn evaluate(
        &self,
        goal: &Goal,
        evaluator: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        match (goal.expression.nodes()[node], operands) {
            (Op::Matmul { .. }, [left, right]) => {
                let (left, right) = (self.sketch.part(Operand::Left, left), self.sketch.part(Operand::Right, right));
                self.product.multiply(evaluator, left, right)
            }
            // Inputs are encrypted as their role asks, and ends are done to what is decrypted.
            (_, [of]) => Ok(of.to_vec()),
            _ => Err(MatrixError::NoPlan { reason: format!("node {node} is not the product") }),
        }
    }
}

/// One of a result's last operations, on the result.
fn applied(op: Op, m: Matrix) -> Result<Matrix, MatrixError> {
    let each = |f: &dyn Fn(f64) -> f64| Matrix::from_fn(m.rows(), m.cols(), |i, j| f(m.get(i, j)));
    match op {
        Op::Neg { .. } => each(&|x| -x),
        Op::Scale { by, .. } => each(&|x| x * by),
        Op::Shift { by, .. } => each(&|x| x + by),
        Op::Transpose { .. } => Ok(m.transpose()),
        _ => Ok(m),
    }
}
