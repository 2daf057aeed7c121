//! How a plan computes its expression.

use super::Goal;
use super::circuit::{self, Circuit, CircuitSpec};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Operand, Outline, Product, ProductSpec};
use crate::sizing;
use crate::work::Work;
use serde::{Deserialize, Serialize};
use sudare_he::ckks::{Ciphertext, Evaluator, Plaintext};
use sudare_he::params::{Params, ParamsLiteral};

/// The computation that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Program {
    /// One product of two inputs, each encrypted in the form that its method likes best.
    Product {
        /// Shape, method and parameters.
        product: ProductSpec,
    },
    /// Any expression, on tiled matrices.
    Circuit {
        /// Tiles and parameters.
        circuit: CircuitSpec,
    },
}

/// The two inputs of a product, and where its nodes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Positions of the left and the right input.
    inputs: [usize; 2],
    /// Nodes of the left and the right input and of the product.
    nodes: [usize; 3],
}

impl Places {
    fn new(goal: &Goal, product: &ProductSpec) -> Result<Self, MatrixError> {
        let expr = &goal.expression;
        let Some((left, right)) = expr.as_product() else {
            return Err(MatrixError::NoPlan { reason: format!("{expr} is not one product of two inputs") });
        };
        let (l, r, s) = (&expr.inputs()[left], &expr.inputs()[right], product.shape);
        if (l.rows, l.cols, r.rows, r.cols, goal.batch) != (s.m, s.k, s.k, s.n, s.batch) {
            return Err(MatrixError::NoPlan { reason: format!("the program's shapes are not those of {expr}") });
        }
        let nodes = [expr.node_of_input(left), expr.node_of_input(right), expr.output()];
        Ok(Self { inputs: [left, right], nodes })
    }

    /// Which matrix of the product a node is.
    fn operand(&self, node: usize) -> Option<Operand> {
        let operands = [Operand::Left, Operand::Right, Operand::Output];
        self.nodes.iter().position(|n| *n == node).map(|at| operands[at])
    }

    fn max_abs(&self, goal: &Goal) -> [f64; 2] {
        self.inputs.map(|i| goal.expression.inputs()[i].max_abs)
    }
}

/// What a program takes and promises, read off its literals.
pub(crate) enum Sketch<'a> {
    /// A product, where its matrices are, and the bounds of its operands.
    Product(&'a dyn Outline, Places, [f64; 2]),
    /// A circuit and its output.
    Circuit(&'a circuit::Sketch, usize),
}

/// Ciphertexts of a node's value.
pub(crate) struct NodeSize {
    /// How many.
    pub count: usize,
    /// Polynomials of each.
    pub parts: usize,
    /// Their level.
    pub level: usize,
}

impl Sketch<'_> {
    /// The method's name.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Product(outline, ..) => outline.name(),
            Self::Circuit(..) => "circuit",
        }
    }

    pub(crate) fn literal(&self) -> &ParamsLiteral {
        match self {
            Self::Product(outline, ..) => outline.literal(),
            Self::Circuit(c, _) => c.literal(),
        }
    }

    pub(crate) fn keys(&self) -> KeyDemand {
        match self {
            Self::Product(outline, ..) => outline.keys(),
            Self::Circuit(c, _) => c.keys().clone(),
        }
    }

    pub(crate) fn work(&self) -> Work {
        match self {
            Self::Product(outline, ..) => outline.work(),
            Self::Circuit(c, _) => c.work(),
        }
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        match self {
            Self::Product(outline, ..) => outline.table_bytes(),
            Self::Circuit(c, _) => c.table_bytes(),
        }
    }

    /// Largest error of a result element that is promised.
    pub(crate) fn error(&self) -> f64 {
        match self {
            Self::Product(outline, _, max_abs) => outline.error(*max_abs),
            Self::Circuit(c, output) => c.error(*output),
        }
    }

    /// Whether the modulus holds all values that arise.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Product(outline, _, max_abs) => sizing::holds(outline.literal(), &outline.peaks(*max_abs)),
            Self::Circuit(c, _) => sizing::holds(c.literal(), c.peaks()),
        }
    }

    /// Ciphertexts of the input or result that has most.
    pub(crate) fn most_ciphertexts(&self, goal: &Goal) -> usize {
        goal.ends().filter_map(|node| self.size(node)).map(|size| size.count).max().unwrap_or(0)
    }

    /// Largest error of a node's elements, once they are read: of the result of a product, of any
    /// node of a circuit.
    pub(crate) fn node_error(&self, node: usize) -> Option<f64> {
        match self {
            Self::Product(_, places, _) => (places.operand(node) == Some(Operand::Output)).then(|| self.error()),
            Self::Circuit(c, _) => Some(c.error(node)),
        }
    }

    /// Ciphertexts of an input or of the result; of a circuit, of any node.
    pub(crate) fn size(&self, node: usize) -> Option<NodeSize> {
        match self {
            Self::Product(outline, places, _) => {
                let operand = places.operand(node)?;
                let (count, parts) = (outline.ciphertexts(operand), outline.parts(operand));
                Some(NodeSize { count, parts, level: outline.level(operand) })
            }
            Self::Circuit(c, _) => {
                let (count, level) = c.size(node);
                Some(NodeSize { count, parts: 2, level })
            }
        }
    }
}

impl Program {
    /// Runs `read` on what the program takes and promises; nothing is built for it.
    pub(crate) fn sketched<T>(&self, goal: &Goal, read: impl FnOnce(Sketch<'_>) -> T) -> Result<T, MatrixError> {
        Ok(match self {
            Self::Product { product } => {
                let (places, outline) = (Places::new(goal, product)?, product.outline()?);
                read(Sketch::Product(&*outline, places, places.max_abs(goal)))
            }
            Self::Circuit { circuit } => {
                read(Sketch::Circuit(&circuit::Sketch::of(goal, circuit)?, goal.expression.output()))
            }
        })
    }

    /// The parameters, unbuilt.
    pub(crate) fn literal(&self) -> &ParamsLiteral {
        match self {
            Self::Product { product } => &product.params,
            Self::Circuit { circuit } => &circuit.params,
        }
    }

    /// The program under built parameters.
    pub(crate) fn build(&self, goal: &Goal) -> Result<Engine, MatrixError> {
        Ok(match self {
            Self::Product { product } => {
                let places = Places::new(goal, product)?;
                let built = product.build()?;
                let result = product.result(built.params());
                Engine::Product { product: built, places, max_abs: places.max_abs(goal), result }
            }
            Self::Circuit { circuit } => {
                let params = circuit.params.build()?;
                Engine::Circuit(Box::new(Circuit::new(goal, circuit, &params)?), goal.expression.output())
            }
        })
    }
}

/// A program under built parameters. Its tables are made by [`Engine::prepare`].
pub(crate) enum Engine {
    /// One product of two inputs.
    Product {
        /// The method.
        product: Box<dyn Product>,
        /// Where its matrices are.
        places: Places,
        /// Bounds of its operands.
        max_abs: [f64; 2],
        /// Level and scale of the product.
        result: (usize, f64),
    },
    /// Any expression, on tiled matrices, and its output.
    Circuit(Box<Circuit>, usize),
}

impl Engine {
    pub(crate) fn params(&self) -> &Params {
        match self {
            Self::Product { product, .. } => product.params(),
            Self::Circuit(c, _) => c.params(),
        }
    }

    pub(crate) fn sketch(&self) -> Sketch<'_> {
        match self {
            Self::Product { product, places, max_abs, .. } => Sketch::Product(product.outline(), *places, *max_abs),
            Self::Circuit(c, output) => Sketch::Circuit(c.sketch(), *output),
        }
    }

    pub(crate) fn keys(&self) -> KeyDemand {
        self.sketch().keys()
    }

    /// Makes the tables that computing needs, unless they are there.
    pub(crate) fn prepare(&self, goal: &Goal) -> Result<(), MatrixError> {
        match self {
            Self::Product { product, .. } => product.prepare(),
            Self::Circuit(c, _) => c.prepare(goal).map(|_| ()),
        }
    }

    /// Level and scale of the result, worked out from the program alone.
    pub(crate) fn result(&self) -> (usize, f64) {
        match self {
            Self::Product { result, .. } => *result,
            Self::Circuit(c, output) => c.sketch().state(*output),
        }
    }

    /// Encodes the members of a batch as the value of an input's node.
    pub(crate) fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        match self {
            Self::Product { product, places, .. } => match places.operand(node) {
                Some(operand @ (Operand::Left | Operand::Right)) => {
                    product.encode(operand, matrices, goal.expression.info(node).max_abs)
                }
                _ => Err(MatrixError::NoPlan { reason: format!("node {node} is no input") }),
            },
            Self::Circuit(c, _) => c.encode(goal, node, matrices),
        }
    }

    /// Decodes the value of a node.
    pub(crate) fn decode(&self, goal: &Goal, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        match self {
            Self::Product { product, places, .. } => match places.operand(node) {
                Some(Operand::Output) => product.decode(values),
                _ => Err(MatrixError::NotPlanned {
                    operation: "decryption of an operand",
                    planned: "the result is decrypted; an operand is encrypted in a form of its own".into(),
                }),
            },
            Self::Circuit(c, _) => c.decode(goal, node, values),
        }
    }

    /// Computes a node from its operands' values.
    pub(crate) fn evaluate(
        &self,
        goal: &Goal,
        evaluator: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        match self {
            Self::Product { product, places, .. } => match operands {
                [left, right] if node == places.nodes[2] => product.multiply(evaluator, left, right),
                _ => Err(MatrixError::NoPlan { reason: format!("node {node} is not the product") }),
            },
            Self::Circuit(c, _) => c.evaluate(goal, evaluator, node, operands),
        }
    }
}
