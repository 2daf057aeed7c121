//! The program that is one product of two inputs.

use super::Goal;
use super::program::{CkksEngine, NodeSize, Sketch};
use crate::error::MatrixError;
use crate::expr::Op;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Operand, Outline, Product, ProductSpec};
use crate::sizing;
use crate::work::Work;
use sudare_he::ckks::{Ciphertext, Evaluator, Expected, Params, Plaintext};
use sudare_rlwe::params::ParamsLiteral;

/// What a product takes and promises, and where its matrices are in an expression.
pub(super) struct ProductSketch {
    outline: Box<dyn Outline>,
    /// Nodes of the left and the right input and of the product.
    nodes: [usize; 3],
    /// Bounds of its operands.
    max_abs: [f64; 2],
}

impl ProductSketch {
    pub(super) fn new(goal: &Goal, product: &ProductSpec) -> Result<Self, MatrixError> {
        let expr = &goal.expression;
        let Some((left, right)) = expr.as_product() else {
            return Err(MatrixError::NoPlan { reason: format!("{expr} is not one product of two inputs") });
        };
        let (l, r, s) = (&expr.inputs()[left], &expr.inputs()[right], product.shape);
        if (l.rows, l.cols, r.rows, r.cols, goal.batch) != (s.m, s.k, s.k, s.n, s.batch) {
            return Err(MatrixError::NoPlan { reason: format!("the program's shapes are not those of {expr}") });
        }
        let nodes = [expr.node_of_input(left), expr.node_of_input(right), expr.output()];
        Ok(Self { outline: product.outline()?, nodes, max_abs: [l.max_abs, r.max_abs] })
    }

    /// Which matrix of the product a node is.
    fn operand(&self, node: usize) -> Option<Operand> {
        let operands = [Operand::Left, Operand::Right, Operand::Output];
        self.nodes.iter().position(|n| *n == node).map(|at| operands[at])
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
        self.outline.error(self.max_abs)
    }

    fn holds(&self) -> bool {
        sizing::holds(self.outline.literal(), &self.outline.peaks(self.max_abs))
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        (self.operand(node) == Some(Operand::Output)).then(|| self.error())
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let operand = self.operand(node)?;
        let (outline, level) = (&self.outline, self.outline.level(operand));
        Some(NodeSize { count: outline.ciphertexts(operand), parts: outline.parts(operand), level })
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
        match self.sketch.operand(node) {
            Some(operand @ (Operand::Left | Operand::Right)) => {
                self.product.encode(operand, matrices, goal.expression.info(node).max_abs)
            }
            _ => Err(MatrixError::NoPlan { reason: format!("node {node} is no input") }),
        }
    }

    fn decode(&self, _: &Goal, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        match self.sketch.operand(node) {
            Some(Operand::Output) => self.product.decode(values),
            _ => Err(MatrixError::NotPlanned {
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
            (Op::Matmul { .. }, [left, right]) => self.product.multiply(evaluator, left, right),
            _ => Err(MatrixError::NoPlan { reason: format!("node {node} is not the product") }),
        }
    }
}
