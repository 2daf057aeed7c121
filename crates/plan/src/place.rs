//! Where a plan has an operation.

use super::Plan;
use std::collections::BTreeSet;
use sudare_expr::Operation;
use sudare_methods::MatrixError;

/// How the name of a matrix's contents begins.
const CONTENTS: &str = "plain ";

/// An operand of which it is asked where a plan has it.
#[derive(Clone, Copy, Debug)]
pub enum Sought<'n> {
    /// The value of a node.
    Node(usize),
    /// A matrix that the server sees.
    Plain {
        /// Its rows and columns.
        shape: (usize, usize),
        /// What its giver calls it, or "".
        name: &'n str,
        /// The name of its contents, which an expression gives to a matrix that has no other.
        contents: &'n str,
    },
}

/// A place of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The operation's node.
    pub node: usize,
    /// The nodes that the operands are, in the order in which they were given.
    pub operands: Vec<usize>,
    /// Whether the node has them the other way round.
    pub swapped: bool,
}

impl Plan {
    /// Where the plan's expression has an operation on operands, those that commute in either order. A plain operand is
    /// known by its name or its contents, and without both where one alone of its shape is in such a place.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] where it has none, or several.
    pub fn place(&self, operation: &Operation, operands: &[Sought<'_>]) -> Result<Place, MatrixError> {
        let mut found = Vec::new();
        for swapped in [false, true].into_iter().filter(|swapped| !swapped || operation.commutes()) {
            for (node, at) in self.expression().nodes().iter().enumerate() {
                let mut own = at.operands.clone();
                if swapped {
                    own.reverse();
                }
                let same = at.operation == *operation && own.len() == operands.len();
                if same && own.iter().zip(operands).all(|(node, sought)| self.can_be(*node, sought)) {
                    found.push(Place { node, operands: own, swapped });
                }
            }
        }
        let plain = operands.iter().enumerate().find(|(_, sought)| matches!(sought, Sought::Plain { .. }));
        if let Some((at, Sought::Plain { shape, name, contents })) = plain {
            return self.named(operation, found, (at, *name, *contents), *shape);
        }
        let planned = || self.expression().describe();
        let nothing = || MatrixError::NotPlanned { operation: operation.name(), planned: planned() };
        found.into_iter().next().ok_or_else(nothing)
    }

    /// Whether a node can be an operand, whatever its name.
    fn can_be(&self, node: usize, sought: &Sought<'_>) -> bool {
        match sought {
            Sought::Node(own) => node == *own,
            Sought::Plain { shape, .. } => {
                self.expression().input_at(node).is_some_and(|i| i.plain && (i.rows, i.cols) == *shape)
            }
        }
    }

    /// Of some places the one whose operand at a position is called so.
    fn named(
        &self,
        operation: &Operation,
        found: Vec<Place>,
        (at, name, contents): (usize, &str, &str),
        (rows, cols): (usize, usize),
    ) -> Result<Place, MatrixError> {
        let name_of = |place: &Place| self.expression().input_at(place.operands[at]).map_or("", |i| i.name.as_str());
        let names: BTreeSet<&str> = found.iter().map(name_of).collect();
        let form = format!("{name} (");
        let wanted = |own: &&str| match names.contains(contents) {
            true => *own == contents,
            // A matrix that an expression brought along is known by its contents alone.
            false => !own.starts_with(CONTENTS) && (name.is_empty() || *own == name || own.starts_with(&form)),
        };
        let left: Vec<&str> = names.iter().copied().filter(wanted).collect();
        let one = |place: &&Place| left.as_slice() == [name_of(place)];
        let refuse = |planned: String| Err(MatrixError::NotPlanned { operation: operation.name(), planned });
        if let Some(place) = found.iter().find(one) {
            return Ok(place.clone());
        }
        match left.as_slice() {
            [] => refuse(format!(
                "the plan has no plain {rows}×{cols} matrix in this place; plan with sudare.spec(…, plain=True), or encrypt \
                 the matrix"
            )),
            several => refuse(format!(
                "this plain matrix could be {}; say which by server.plain(matrix, name)",
                several.join(", ")
            )),
        }
    }
}
