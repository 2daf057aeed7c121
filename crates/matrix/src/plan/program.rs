//! How a plan computes its expression.

use super::Goal;
use super::circuit::{Circuit, CircuitSpec};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::product::{KeyDemand, Operand, Product, ProductSpec};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use sudare_he::ckks::Params;
use sudare_he::ckks::{Ciphertext, Evaluator, Plaintext};

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

/// A program ready to run.
pub(crate) enum Engine {
    /// One product of two inputs.
    Product {
        /// The method.
        product: Box<dyn Product>,
        /// Positions of the left and the right input.
        inputs: [usize; 2],
        /// The product's node.
        node: usize,
        /// Level and scale of the product.
        result: (usize, f64),
    },
    /// Any expression, on tiled matrices.
    Circuit(Box<Circuit>),
}

impl Program {
    pub(crate) fn build(&self, goal: &Goal) -> Result<Engine, MatrixError> {
        let expr = &goal.expression;
        match self {
            Self::Product { product } => {
                let Some((left, right)) = expr.as_product() else {
                    return Err(MatrixError::NoPlan { reason: format!("{expr} is not one product of two inputs") });
                };
                let (l, r, s) = (&expr.inputs()[left], &expr.inputs()[right], product.shape);
                if (l.rows, l.cols, r.rows, r.cols, goal.batch) != (s.m, s.k, s.k, s.n, s.batch) {
                    return Err(MatrixError::NoPlan {
                        reason: format!("the program's shapes are not those of {expr}"),
                    });
                }
                if product.params.security < goal.security {
                    return Err(MatrixError::NoPlan {
                        reason: format!("the parameters claim less than {}-bit security", goal.security.bits()),
                    });
                }
                let (inputs, node, built) = ([left, right], expr.output(), product.build()?);
                let result = product.result(built.params());
                Ok(Engine::Product { product: built, inputs, node, result })
            }
            Self::Circuit { circuit } => {
                if circuit.params.security < goal.security {
                    return Err(MatrixError::NoPlan {
                        reason: format!("the parameters claim less than {}-bit security", goal.security.bits()),
                    });
                }
                Ok(Engine::Circuit(Box::new(Circuit::new(goal, circuit)?)))
            }
        }
    }
}

impl Engine {
    pub(crate) fn params(&self) -> &Params {
        match self {
            Self::Product { product, .. } => product.params(),
            Self::Circuit(c) => c.params(),
        }
    }

    /// The method's name.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Product { product, .. } => product.name(),
            Self::Circuit(_) => "circuit",
        }
    }

    pub(crate) fn keys(&self) -> KeyDemand {
        match self {
            Self::Product { product, .. } => product.keys(),
            Self::Circuit(c) => c.keys().clone(),
        }
    }

    pub(crate) fn work(&self) -> Work {
        match self {
            Self::Product { product, .. } => product.work(),
            Self::Circuit(c) => c.work(),
        }
    }

    pub(crate) fn predicted_error(&self, goal: &Goal) -> f64 {
        match self {
            Self::Product { product, inputs, .. } => {
                product.predicted_error(inputs.map(|i| goal.expression.inputs()[i].max_abs))
            }
            Self::Circuit(c) => c.error(),
        }
    }

    /// Level and scale of the result, worked out from the program alone.
    pub(crate) fn result(&self, goal: &Goal) -> (usize, f64) {
        match self {
            Self::Product { result, .. } => *result,
            Self::Circuit(c) => c.state(goal.expression.output()),
        }
    }

    /// Ciphertexts and level of a node's value; of an input or of the result.
    pub(crate) fn node_size(&self, goal: &Goal, node: usize) -> Option<(usize, usize)> {
        match self {
            Self::Product { product, .. } => {
                let operand = self.operand(goal, node)?;
                Some((product.ciphertexts(operand), product.level(operand)))
            }
            Self::Circuit(c) => Some(c.size(goal, node)),
        }
    }

    /// Which matrix of its product a node is.
    fn operand(&self, goal: &Goal, at: usize) -> Option<Operand> {
        match self {
            Self::Product { inputs, node, .. } => {
                let place = |i: usize| goal.expression.node_of_input(inputs[i]);
                match at {
                    at if at == *node => Some(Operand::Output),
                    at if at == place(0) => Some(Operand::Left),
                    at if at == place(1) => Some(Operand::Right),
                    _ => None,
                }
            }
            Self::Circuit(_) => None,
        }
    }

    /// Encodes the members of a batch as the value of an input's node.
    pub(crate) fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        match self {
            Self::Product { product, .. } => match self.operand(goal, node) {
                Some(operand @ (Operand::Left | Operand::Right)) => {
                    product.encode(operand, matrices, goal.expression.info(node).max_abs)
                }
                _ => Err(MatrixError::NoPlan { reason: format!("node {node} is no input") }),
            },
            Self::Circuit(c) => c.encode(goal, node, matrices),
        }
    }

    /// Decodes the value of a node.
    pub(crate) fn decode(&self, goal: &Goal, node: usize, values: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        match self {
            Self::Product { product, .. } => match self.operand(goal, node) {
                Some(Operand::Output) => product.decode(values),
                _ => Err(MatrixError::NotPlanned {
                    operation: "decryption of an operand",
                    planned: "the result is decrypted; an operand is encrypted in a form of its own".into(),
                }),
            },
            Self::Circuit(c) => c.decode(node, values),
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
            Self::Product { product, node: own, .. } => match operands {
                [left, right] if node == *own => product.multiply(evaluator, left, right),
                _ => Err(MatrixError::NoPlan { reason: format!("node {node} is not the product") }),
            },
            Self::Circuit(c) => c.evaluate(goal, evaluator, node, operands),
        }
    }
}
