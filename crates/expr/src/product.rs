//! Shapes of products, and expressions that are one product of inputs, with what is done before and after it.

use crate::error::ExprError;
use crate::expr::Expr;
use crate::input::InputSpec;
use crate::operation::{Node, Operation};
use serde::{Deserialize, Serialize};

/// `batch` independent products of an m×k with a k×n matrix; m, k and n are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Rows of the left matrix and of the result.
    pub m: usize,
    /// Columns of the left matrix, rows of the right one.
    pub k: usize,
    /// Columns of the right matrix and of the result.
    pub n: usize,
    /// Independent products of this shape done together.
    pub batch: usize,
}

impl Shape {
    /// One product.
    pub const fn new(m: usize, k: usize, n: usize) -> Self {
        Self { m, k, n, batch: 1 }
    }

    /// Rows and columns of an operand or the result.
    pub const fn of(&self, operand: Operand) -> (usize, usize) {
        match operand {
            Operand::Left => (self.m, self.k),
            Operand::Right => (self.k, self.n),
            Operand::Output => (self.m, self.n),
        }
    }
}

/// Which matrix of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operand {
    /// The left factor.
    Left,
    /// The right factor.
    Right,
    /// The result.
    Output,
}

/// An input as a product takes it: as it is given, or after operations that its owner does before encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Position of the input.
    pub input: usize,
    /// The node that is taken.
    pub node: usize,
    /// Nodes of the operations, each taking the one before it, the last of them [`Prepared::node`].
    pub steps: Vec<usize>,
}

/// An input that is added to a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addend {
    /// It.
    pub of: Prepared,
    /// The node of the sum or difference.
    pub end: usize,
    /// Whether the product is subtracted from it.
    pub minuend: bool,
    /// Whether it is a difference.
    pub subtracts: bool,
}

/// A product of inputs, and what is done to its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedProduct {
    /// Its factors.
    pub factors: [Prepared; 2],
    /// The node of the product.
    pub product: usize,
    /// The nodes from there to the expression's value, each taking the one before it.
    pub ends: Vec<usize>,
    /// What is added on the way, in this order.
    pub addends: Vec<Addend>,
}

impl Expr {
    /// The product of two inputs.
    ///
    /// # Errors
    /// As [`Expr::new`].
    pub fn product(left: InputSpec, right: InputSpec) -> Result<Self, ExprError> {
        let nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Matmul, &[0, 1])];
        Self::new(vec![left, right], nodes, 2)
    }

    /// The two inputs' positions, if the expression is one product of two different inputs.
    pub fn as_product(&self) -> Option<(usize, usize)> {
        let (left, right) = self.factors(self.output()).filter(|_| self.has_one_result())?;
        let input = |node: usize| self.nodes()[node].operation.input();
        Some((input(left)?, input(right)?)).filter(|(l, r)| l != r)
    }

    /// The factors of a node that is a matrix product.
    pub fn factors(&self, node: usize) -> Option<(usize, usize)> {
        let Node { operation, operands } = &self.nodes()[node];
        (*operation == Operation::Matmul).then(|| (operands[0], operands[1]))
    }

    /// The one product of inputs that it is, with what is done to them before and to the product after: by numbers, and
    /// by inputs that are added to it.
    pub fn ended_product(&self) -> Option<EndedProduct> {
        let (mut ends, mut addends, mut product) = (Vec::new(), Vec::new(), self.output());
        if !self.has_one_result() {
            return None;
        }
        let (left, right) = loop {
            if let Some(factors) = self.factors(product) {
                break factors;
            }
            let Node { operation, operands } = &self.nodes()[product];
            ends.push(product);
            product = match (operation.sign(), operands.as_slice()) {
                (Some(sign), &[left, right]) => {
                    let (of, other) = if self.prepared(right).is_some() { (left, right) } else { (right, left) };
                    let subtracts = sign < 0.0;
                    let minuend = subtracts && other == left;
                    addends.push(Addend { of: self.prepared(other)?, end: product, minuend, subtracts });
                    of
                }
                (_, &[of]) if operation.finishes() => of,
                _ => return None,
            };
        };
        ends.reverse();
        addends.reverse();
        Some(EndedProduct { factors: [self.prepared(left)?, self.prepared(right)?], product, ends, addends })
    }

    /// A node as an input that its owner prepares: operations on one matrix, which take no other.
    pub fn prepared(&self, node: usize) -> Option<Prepared> {
        let (mut steps, mut at) = (Vec::new(), node);
        loop {
            let Node { operation, operands } = &self.nodes()[at];
            if let Some(input) = operation.input() {
                steps.reverse();
                return Some(Prepared { input, node, steps });
            }
            if !operation.prepares() {
                return None;
            }
            steps.push(at);
            at = operands[0];
        }
    }
}
