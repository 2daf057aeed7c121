//! Expressions on matrices: what a plan computes.
//!
//! An [`Expr`] is a graph in the order of evaluation; each node names earlier ones. It is checked
//! when it is made, so that shapes and value bounds of every node are known from then on.

use crate::error::{ExprError, refuse};
use crate::input::InputSpec;
use crate::operation::{Info, Node, Operation};
use serde::{Deserialize, Serialize};
use sudare_ring::error::told;

/// Most nodes of an expression.
pub const MAX_NODES: usize = 1024;
/// Most rows or columns of a matrix.
pub const MAX_SIDE: usize = 1 << 24;
/// Most elements of a matrix.
pub const MAX_ELEMENTS: usize = 1 << 28;
/// Most bytes of an input's name.
pub const MAX_NAME: usize = 64;

/// An expression as it is written down: unchecked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    inputs: Vec<InputSpec>,
    nodes: Vec<Node>,
    output: usize,
    /// Nodes whose values are results as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<usize>,
}

impl Written {
    /// The same with the steps of its polynomials, and with equal operations done once: two nodes that read alike are one
    /// value. What is known of each node comes with it.
    fn flat(self) -> Result<(Self, Vec<Info>), ExprError> {
        let Self { inputs, nodes: written, output, others } = self;
        let (mut nodes, mut info) = (Vec::<Node>::with_capacity(written.len()), Vec::with_capacity(written.len()));
        // The place of each node that is written.
        let mut place = Vec::<usize>::with_capacity(written.len());
        let mut add = |node: Node| -> Result<usize, ExprError> {
            if let Some(at) = nodes.iter().position(|n| *n == node) {
                return Ok(at);
            }
            info.push(match node.operation.input() {
                Some(input) if node.operands.is_empty() => match inputs.get(input) {
                    Some(spec) => spec.info(),
                    None => {
                        return refuse(format!(
                            "a node takes input {input}, and there are {} inputs, counted from 0",
                            inputs.len()
                        ));
                    }
                },
                _ => node.operation.infer(&node.operands.iter().map(|o| &info[*o]).collect::<Vec<_>>())?,
            });
            nodes.push(node);
            Ok(nodes.len() - 1)
        };
        for (at, Node { operation, operands }) in written.into_iter().enumerate() {
            let earlier = |o: &usize| place.get(*o).copied();
            let Some(operands) = operands.iter().map(earlier).collect::<Option<Vec<usize>>>() else {
                return refuse(format!(
                    "node {at} has an operand that does not come before it; put nodes in the order in which they are \
                     computed"
                ));
            };
            let Some(steps) = operation.steps()? else {
                place.push(add(Node { operation, operands })?);
                continue;
            };
            let mut made = operands;
            for Node { operation, operands } in steps {
                let operands = operands.iter().map(|o| made[*o]).collect();
                made.push(add(Node { operation, operands })?);
            }
            place.extend(made.last());
        }
        let at = |result: usize| match place.get(result) {
            Some(at) => Ok(*at),
            None => refuse(format!("its result is node {result}, and there are {} nodes, counted from 0", place.len())),
        };
        let (output, others) = (at(output)?, others.into_iter().map(at).collect::<Result<_, _>>()?);
        Ok((Self { inputs, nodes, output, others }, info))
    }
}

/// A polynomial's value that stands for a function's, within `error` where its variable is from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approximation {
    /// The variable's node.
    pub variable: usize,
    /// Largest distance to the function.
    pub error: f64,
    /// Least value of the variable.
    pub low: f64,
    /// Largest value of the variable.
    pub high: f64,
}

/// A checked expression: 1 to [`MAX_NODES`] operations on 1 to [`MAX_NODES`] named inputs, in the order of evaluation.
///
/// Shapes and bounds of every node are known ([`Expr::info`]). Equal operations on equal operands are one node, and a
/// polynomial has become the operations that compute it, so positions of nodes are those of [`Expr::nodes`] and not those that
/// were handed in.
///
/// ```
/// use sudare_expr::Expr;
///
/// let expr = Expr::from_json(
///     r#"{"inputs": [{"name": "x", "rows": 4, "cols": 2, "max_abs": 3.0}],
///         "nodes": [{"op": "input", "input": 0}, {"op": "sum", "axis": 0, "operands": [0]}], "output": 1}"#,
/// )?;
/// let sum = expr.info(expr.output());
/// assert_eq!((sum.shape, sum.max_abs), ((1, 2), 12.0));
/// # Ok::<(), sudare_expr::ExprError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Expr {
    written: Written,
    info: Vec<Info>,
}

impl TryFrom<Written> for Expr {
    type Error = ExprError;
    fn try_from(w: Written) -> Result<Self, ExprError> {
        Self::checked(w)
    }
}

impl From<Expr> for Written {
    fn from(e: Expr) -> Self {
        e.written
    }
}

impl Expr {
    /// An expression of `inputs` and `nodes` whose value is that of node `output`.
    ///
    /// # Errors
    /// [`ExprError::Expression`] for a graph that makes no sense or is too large,
    /// [`ExprError::Shapes`] for shapes that do not go together.
    pub fn new(inputs: Vec<InputSpec>, nodes: Vec<Node>, output: usize) -> Result<Self, ExprError> {
        Self::checked(Written { inputs, nodes, output, others: Vec::new() })
    }

    fn checked(written: Written) -> Result<Self, ExprError> {
        let Written { inputs, nodes, .. } = &written;
        let size = |count: usize| (1..=MAX_NODES).contains(&count);
        let sizes = |inputs: usize, nodes: usize| {
            refuse(format!(
                "it has {inputs} inputs and {nodes} nodes, and 1 to {MAX_NODES} of each are possible; plan it in parts"
            ))
        };
        let count = inputs.len();
        if !size(count) || !size(nodes.len()) {
            return sizes(count, nodes.len());
        }
        for (i, input) in inputs.iter().enumerate() {
            input.check()?;
            if inputs[..i].iter().any(|other| other.name == input.name) {
                return refuse(format!("two inputs are called {:?}; give each a name of its own", input.name));
            }
        }
        let (Written { inputs, nodes, output, others }, info) = written.flat()?;
        if !size(nodes.len()) {
            return sizes(count, nodes.len());
        }
        let mut used = vec![false; nodes.len()];
        others.iter().chain([&output]).for_each(|result| used[*result] = true);
        for (at, node) in nodes.iter().enumerate().rev() {
            if used[at] {
                node.operands.iter().for_each(|o| used[*o] = true);
            }
        }
        if let Some(at) = used.iter().position(|u| !u) {
            let name = nodes[at].operation.name();
            return refuse(format!("node {at} ({name}) has no effect on the result; leave it out"));
        }
        for (i, input) in inputs.iter().enumerate() {
            let uses = nodes.iter().filter(|node| node.operation.input() == Some(i)).count();
            match uses {
                1 => {}
                0 => return refuse(format!("input {:?} is not used; leave it out", input.name)),
                _ => {
                    return refuse(format!(
                        "input {:?} is read by {uses} nodes; read it once, and name that node as the operand of all",
                        input.name
                    ));
                }
            }
        }
        if inputs.iter().all(|i| i.plain) {
            return refuse(
                "all of its inputs are plain; compute it without encryption, or have one of them encrypted".into(),
            );
        }
        check_kind(&inputs, &nodes, output)?;
        if !others.is_empty() && (inputs.iter().any(|i| i.integers.is_some()) || info[output].plain) {
            return refuse(
                "several results are those of real matrices that are encrypted; make a plan for each result".into(),
            );
        }
        Ok(Self { written: Written { inputs, nodes, output, others }, info })
    }

    /// Means and covariances of a table's columns.
    ///
    /// # Errors
    /// As [`Expr::new`].
    pub fn moments(table: InputSpec) -> Result<Self, ExprError> {
        Self::new(vec![table], vec![Node::input(0), Node::new(Operation::Moments, &[0])], 1)
    }

    /// Reads `{"inputs": […], "nodes": […], "output": …}`, and `"others": […]` where nodes have further results.
    ///
    /// # Errors
    /// As [`Expr::new`]; [`ExprError::Expression`] for text that is no expression.
    pub fn from_json(text: &str) -> Result<Self, ExprError> {
        serde_json::from_str(text).map_err(|e| ExprError::Expression { reason: told(e) })
    }

    /// What is computed, in words.
    pub fn describe(&self) -> String {
        format!("it computes {self}")
    }

    /// The inputs.
    pub fn inputs(&self) -> &[InputSpec] {
        &self.written.inputs
    }

    /// The operations, in the order of evaluation.
    pub fn nodes(&self) -> &[Node] {
        &self.written.nodes
    }

    /// The node whose value is the expression's.
    pub fn output(&self) -> usize {
        self.written.output
    }

    /// The nodes whose values are results: the expression's value first.
    pub fn results(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.output()).chain(self.written.others.iter().copied())
    }

    /// Whether it has one value.
    pub fn has_one_result(&self) -> bool {
        self.written.others.is_empty()
    }

    /// What is known of a node.
    pub fn info(&self, node: usize) -> &Info {
        &self.info[node]
    }

    /// The position of an input by its name.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs().iter().position(|i| i.name == name)
    }

    /// The node of an input.
    pub fn node_of_input(&self, input: usize) -> usize {
        let at = self.nodes().iter().position(|node| node.operation.input() == Some(input));
        at.unwrap_or(usize::MAX)
    }

    /// The input that a node is, if it is one.
    pub fn input_at(&self, node: usize) -> Option<&InputSpec> {
        Some(&self.inputs()[self.nodes()[node].operation.input()?])
    }

    /// Where polynomials stand for functions.
    pub fn approximations(&self) -> impl Iterator<Item = Approximation> {
        self.nodes().iter().filter_map(|node| {
            let (error, low, high) = node.operation.stands_for()?;
            Some(Approximation { variable: node.operands[1], error, low, high })
        })
    }

    /// Whether its inputs are integers and it is computed exactly.
    pub fn is_exact(&self) -> bool {
        self.inputs().iter().any(|i| i.integers.is_some())
    }

    /// The table, if it is the means and covariances of one that are computed.
    pub fn as_moments(&self) -> Option<&InputSpec> {
        (self.nodes()[self.output()].operation == Operation::Moments).then(|| &self.inputs()[0])
    }

    /// Whether a node's value is known to the server without any key.
    pub fn is_plain(&self, node: usize) -> bool {
        self.info[node].plain
    }
}

/// Refuses what mixes the kinds of expressions: on real matrices, on integers, moments of a table.
fn check_kind(inputs: &[InputSpec], nodes: &[Node], output: usize) -> Result<(), ExprError> {
    let exact = inputs.iter().filter(|i| i.integers.is_some()).count();
    if exact != 0 && exact != inputs.len() {
        return refuse(
            "integer and real matrices do not mix; describe all inputs as integers (dtype=int), or none".into(),
        );
    }
    let tables = inputs.iter().filter(|i| !i.columns.is_empty()).count();
    let moments = nodes.iter().any(|node| node.operation == Operation::Moments);
    let alone = nodes[output].operation == Operation::Moments && nodes.len() == 2 && exact == 0;
    if (moments || tables != 0) && !(alone && tables == 1 && !inputs[0].plain) {
        let reason = "means and covariances are computed of one encrypted table with a bound for each column, and of \
                      nothing else; make another plan for what else is computed of it";
        return refuse(reason.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, shape: (usize, usize)) -> InputSpec {
        InputSpec::new(name, shape, 2.0)
    }

    #[test]
    fn shapes_and_bounds() {
        let inputs = vec![input("A", (3, 4)), input("B", (4, 5)), input("C", (3, 5))];
        let nodes = vec![
            Node::input(0),
            Node::input(1),
            Node::new(Operation::Matmul, &[0, 1]),
            Node::input(2),
            Node::new(Operation::Sub, &[2, 3]),
            Node::new(Operation::Scale { by: -0.5 }, &[4]),
            Node::new(Operation::Transpose, &[5]),
            Node::new(Operation::Sum { axis: 0 }, &[6]),
        ];
        let e = Expr::new(inputs, nodes, 7).unwrap();
        assert_eq!(e.info(7), &Info { shape: (1, 3), max_abs: 45.0, integers: None, plain: false });
        assert_eq!(e.to_string(), "(-0.5 * (A @ B - C)).T.sum(0)");
        assert_eq!(e.as_product(), None);
        let json = serde_json::to_string(&e).unwrap();
        assert_eq!(Expr::from_json(&json).unwrap(), e);
    }

    #[test]
    fn several_results() {
        let graph = |more: &str, dtype: &str| {
            format!(
                r#"{{"inputs":[{{"name":"A","rows":2,"cols":3,"max_abs":1{dtype}}}],"nodes":[{{"op":"input","input":0}},
                {{"op":"sum","axis":0,"operands":[0]}},{{"op":"mul","operands":[0,0]}}],"output":2{more}}}"#
            )
        };
        // The sum matters to a result of its own alone.
        assert!(Expr::from_json(&graph("", "")).is_err());
        let e = Expr::from_json(&graph(r#","others":[1]"#, "")).unwrap();
        assert_eq!(e.results().collect::<Vec<_>>(), [2, 1]);
        assert_eq!(e.to_string(), "A * A, A.sum(0)");
        assert!(!e.has_one_result() && e.ended_product().is_none());
        assert_eq!(Expr::from_json(&serde_json::to_string(&e).unwrap()).unwrap(), e);
        assert!(Expr::from_json(&graph(r#","others":[3]"#, "")).is_err());
        assert!(Expr::from_json(&graph(r#","others":[1]"#, r#","integers":1"#)).is_err());
    }

    #[test]
    fn products() {
        let e = Expr::product(input("A", (3, 4)), input("B", (4, 5))).unwrap();
        assert_eq!(e.as_product(), Some((0, 1)));
        assert_eq!(e.to_string(), "A @ B");
        assert!(matches!(
            Expr::product(input("A", (3, 4)), input("B", (3, 5))),
            Err(ExprError::Shapes { left: (3, 4), right: (3, 5), .. })
        ));
        assert!(Expr::product(input("A", (3, 4)), input("A", (4, 5))).is_err());
    }

    #[test]
    fn refusals() {
        for bad in [
            "",
            "{}",
            r#"{"inputs":[],"nodes":[],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":0,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":-1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":1}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":1}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1}],"nodes":[{"op":"neg","operands":[0]}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1,"plain":true}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":1,"cols":1,"max_abs":1,"colour":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
            r#"{"inputs":[{"name":"A","rows":99999999999,"cols":99999999999,"max_abs":1}],"nodes":[{"op":"input","input":0}],"output":0}"#,
        ] {
            assert!(Expr::from_json(bad).is_err(), "{bad}");
        }
    }
}
