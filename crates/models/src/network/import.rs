//! A network of a graph: node by node, constants are folded, what is linear is composed, and functions end layers.

use super::{Chain, Network, ml, operators, refuse};
use crate::error::{ModelError, Unsupported, format};
use crate::function::{Function, MAX_POWER};
use crate::onnx::{Attribute, Graph, Node};
use crate::sparse::{Linear, Sparse};
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// What a name of the graph stands for.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Constant(Tensor),
    Linear(Linear),
    /// What the client computes of this value after decryption.
    AtClient(Linear, String),
    /// The result of a node that is not computed.
    Unknown,
}

impl Value {
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Constant(t) => &t.shape,
            Self::Linear(v) | Self::AtClient(v, _) => &v.shape,
            Self::Unknown => &[],
        }
    }
}

/// The function of the client that gives a label.
pub(super) const LABEL: &str = "ArgMax";

/// What a node gives, or why it is not computed.
pub(super) enum Outcome {
    Values(Vec<Value>),
    Function(Linear, Function),
    Refused(String),
}

/// Why a value cannot be used, as an outcome.
pub(super) fn refused(remedy: impl Into<String>) -> Result<Outcome, ModelError> {
    Ok(Outcome::Refused(remedy.into()))
}

/// The operands of a node; those that are left out are none.
pub(super) struct Operands<'v>(pub Vec<Option<&'v Value>>);

impl<'v> Operands<'v> {
    pub fn get(&self, i: usize) -> Option<&'v Value> {
        self.0.get(i).copied().flatten()
    }

    pub fn constant(&self, i: usize) -> Option<&'v Tensor> {
        match self.get(i) {
            Some(Value::Constant(t)) => Some(t),
            _ => None,
        }
    }

    pub fn linear(&self, i: usize) -> Option<&'v Linear> {
        match self.get(i) {
            Some(Value::Linear(v)) => Some(v),
            _ => None,
        }
    }
}

pub(super) fn import(graph: &Graph) -> Result<Network, ModelError> {
    let [(input, dims)] = graph.inputs.as_slice() else {
        let names: Vec<&str> = graph.inputs.iter().map(|(name, _)| name.as_str()).collect();
        return format(format!(
            "it has {} inputs ({}), and one is possible; export it with one",
            names.len(),
            names.join(", ")
        ));
    };
    if dims.iter().skip(1).any(Option::is_none) {
        return format(format!("the input {input} has a symbolic dimension after the first; export it with its sizes"));
    }
    // A symbolic first dimension counts examples.
    let shape: Vec<usize> = dims.iter().map(|d| d.unwrap_or(1)).collect();
    let mut chain = Chain::new(shape.clone())?;
    let mut values: BTreeMap<String, Value> =
        graph.constants.iter().map(|(name, t)| (name.clone(), Value::Constant(t.clone()))).collect();
    values.insert(input.clone(), Value::Linear(chain.value.clone()));
    let mut unsupported = Vec::new();
    for node in &graph.nodes {
        keep_operands(node, &mut values, &mut chain)?;
        let made = one(graph, node, &values, &chain, &mut unsupported)?;
        let made = match made {
            Outcome::Values(made) => made,
            Outcome::Function(of, function) => {
                chain.value = of;
                chain.apply(node.label(), function)?;
                vec![Value::Linear(chain.value.clone())]
            }
            Outcome::Refused(remedy) => {
                unsupported.push(Unsupported {
                    layer: node.label().to_owned(),
                    operator: node.operator.clone(),
                    remedy,
                });
                Vec::new()
            }
        };
        let rest = std::iter::repeat(Value::Unknown);
        for (name, value) in node.outputs.iter().zip(made.into_iter().chain(rest)) {
            if !name.is_empty() && values.insert(name.clone(), value).is_some() {
                return format(format!("the name {name} is given to two values; export it anew"));
            }
        }
    }
    if !unsupported.is_empty() {
        return Err(refuse(unsupported));
    }
    let (name, value, dropped) = output(graph, &values)?;
    chain.value = value;
    chain.finish(&name, dropped)
}

/// The name of the output, its value, and what the client computes of that. Several outputs that the client computes of one value, as
/// labels and probabilities are, are one.
fn output(graph: &Graph, values: &BTreeMap<String, Value>) -> Result<(String, Linear, Option<String>), ModelError> {
    let mut found: Option<(String, Linear, Option<String>)> = None;
    for name in &graph.outputs {
        let (value, function) = match values.get(name) {
            Some(Value::Linear(value)) => (value, None),
            Some(Value::AtClient(value, function)) => (value, Some(function.clone())),
            Some(Value::Constant(_)) => return format("its output does not depend on the input"),
            Some(Value::Unknown) | None => {
                return format(format!("no node computes its output {name}; export it anew"));
            }
        };
        found = Some(match found {
            None => (name.clone(), value.clone(), function),
            Some((_, known, _)) if known != *value => {
                return format(format!(
                    "it has {} outputs, and one is possible, or labels and probabilities of one value; export it with one",
                    graph.outputs.len()
                ));
            }
            // The value itself says most, a label least.
            Some((_, known, Some(label))) if label == LABEL => (name.clone(), known, function),
            Some((_, known, Some(_))) if function.is_none() => (name.clone(), known, None),
            Some(found) => found,
        });
    }
    found.map_or_else(|| format("it has no output; export it with one"), Ok)
}

/// Operators whose product with a linear map before them may have more diagonals than both.
const MIXING: [&str; 3] = ["Conv", "Gemm", "MatMul"];

/// Operands of such an operator that are sums of several numbers become layers of their own.
fn keep_operands(node: &Node, values: &mut BTreeMap<String, Value>, chain: &mut Chain) -> Result<(), ModelError> {
    if !MIXING.contains(&node.operator.as_str()) {
        return Ok(());
    }
    for name in &node.inputs {
        let Some(Value::Linear(value)) = values.get_mut(name) else { continue };
        if !value.terms.values().all(Sparse::is_thin) {
            chain.value = value.clone();
            chain.apply(name, Function::Identity)?;
            *value = chain.value.clone();
        }
    }
    Ok(())
}

/// What a node gives.
fn one(
    graph: &Graph,
    node: &Node,
    values: &BTreeMap<String, Value>,
    chain: &Chain,
    unsupported: &mut Vec<Unsupported>,
) -> Result<Outcome, ModelError> {
    let mut operands = Vec::new();
    for name in &node.inputs {
        operands.push(match name.as_str() {
            "" => None,
            _ => match values.get(name) {
                Some(value) => Some(value),
                None => {
                    return format(format!(
                        "layer {}: no node before it computes its input {name}; export it anew",
                        node.label()
                    ));
                }
            },
        });
    }
    let of_estimators = node.domain == ml::DOMAIN;
    if !(node.domain.is_empty() || node.domain == "ai.onnx" || of_estimators) {
        let remedy = format!("operators of the domain {} are not read; export with ONNX's own", node.domain);
        return refused(remedy);
    }
    // The first node that is not computed is named, not those after it, unless they are not computed either.
    if operands.iter().flatten().any(|v| matches!(v, Value::Unknown)) {
        if let Some(remedy) = operators::never(&node.operator) {
            let (layer, operator) = (node.label().to_owned(), node.operator.clone());
            unsupported.push(Unsupported { layer, operator, remedy: remedy.into() });
        }
        return Ok(Outcome::Values(Vec::new()));
    }
    for operand in operands.iter().flatten() {
        if let Value::AtClient(value, name) = operand {
            return at_client(node, value, name);
        }
    }
    let operands = Operands(operands);
    if of_estimators {
        return ml::apply(node, &operands);
    }
    if let (Some(x), Some(function)) = (operands.get(0), function(graph, node, &operands)?) {
        return Ok(match x {
            Value::Linear(x) => Outcome::Function(x.clone(), function),
            Value::Constant(t) => {
                let data = t.data.iter().map(|x| function.value(*x)).collect();
                Outcome::Values(vec![Value::Constant(Tensor { shape: t.shape.clone(), data })])
            }
            Value::AtClient(..) | Value::Unknown => Outcome::Values(Vec::new()),
        });
    }
    if let ("Mul", Some(a), Some(b)) = (node.operator.as_str(), operands.linear(0), operands.linear(1)) {
        return Ok(product(chain, a, b));
    }
    operators::apply(graph.opset, node, &operands)
}

/// What the client computes further of a value, as converters of estimators write it: tables of probabilities with names, labels by the
/// places of the largest scores.
fn at_client(node: &Node, value: &Linear, name: &str) -> Result<Outcome, ModelError> {
    let name = match node.operator.as_str() {
        "Identity" | "Cast" | "Reshape" | "ZipMap" | "Normalizer" => name,
        "ArgMax" | "ArrayFeatureExtractor" => LABEL,
        _ => {
            return refused(format!(
                "{name} is left to the client, which is possible at the end of the network alone; take it out from \
                 inside of it"
            ));
        }
    };
    Ok(Outcome::Values(vec![Value::AtClient(value.clone(), name.to_owned())]))
}

/// The product of two encrypted values, where one is a function of the other.
fn product(chain: &Chain, a: &Linear, b: &Linear) -> Outcome {
    if let Some(ratio) = a.over(b).filter(|_| a.shape == b.shape) {
        return match ratio == 1.0 {
            true => Outcome::Function(b.clone(), Function::Power(2)),
            false => Outcome::Refused("a product of two multiples of one value; square it and scale the square".into()),
        };
    }
    for (gate, other) in [(a, b), (b, a)] {
        if let Some((of, function)) = gated(chain, gate, other) {
            return Outcome::Function(Linear { shape: other.shape.clone(), ..of }, function);
        }
    }
    Outcome::Refused(
        "a product of two encrypted values has to be a square or a gate x·f(x); attention and squeeze-and-excitation \
         are not computed yet"
            .into(),
    )
}

/// x·(gain·f(x) + shift), if `gate` is that function of a layer whose variable is a multiple of `x`.
fn gated(chain: &Chain, gate: &Linear, x: &Linear) -> Option<(Linear, Function)> {
    let mut terms = gate.terms.iter();
    let (Some((source, map)), None) = (terms.next(), terms.next()) else { return None };
    let (before, function) = chain.before(source.checked_sub(1)?)?;
    let gain = map.row(0).next()?.1;
    let shift = *gate.bias.first()?;
    let diagonal = map.rows() == map.columns() && (0..map.rows()).all(|r| map.row(r).eq([(r, gain)]));
    let same = gate.shape == x.shape && diagonal && gate.bias.iter().all(|b| *b == shift);
    // x is `factor` times the function's variable.
    let factor = x.over(&before).filter(|_| same)?;
    Some((before, Function::Gated { by: Box::new(function.clone()), gain: gain * factor, shift: shift * factor }))
}

/// The function of every element that a node is.
fn function(graph: &Graph, node: &Node, operands: &Operands<'_>) -> Result<Option<Function>, ModelError> {
    let single = |i: usize| operands.constant(i).filter(|t| t.data.len() == 1).map(|t| t.data[0]);
    Ok(Some(match node.operator.as_str() {
        "Relu" => Function::Relu,
        "LeakyRelu" => Function::LeakyRelu(node.float("alpha", 0.01)),
        "PRelu" => match single(1) {
            Some(slope) => Function::LeakyRelu(slope),
            None => return Ok(None),
        },
        "Elu" => Function::Elu { alpha: node.float("alpha", 1.0), gamma: 1.0 },
        "Selu" => Function::Elu {
            alpha: node.float("alpha", 1.673_263_242_354_377_2),
            gamma: node.float("gamma", 1.050_700_987_355_480_5),
        },
        "Sigmoid" => Function::Sigmoid,
        "Tanh" => Function::Tanh,
        "Swish" => Function::Swish(node.float("alpha", 1.0)),
        "Gelu" if node.text("approximate", "none") == "tanh" => Function::GeluTanh,
        "Gelu" => Function::Gelu,
        "Erf" => Function::Erf,
        "Exp" => Function::Exp,
        "Softplus" => Function::Softplus,
        "Softsign" => Function::Softsign,
        "HardSigmoid" => Function::HardSigmoid { alpha: node.float("alpha", 0.2), beta: node.float("beta", 0.5) },
        "HardSwish" => {
            let by = Box::new(Function::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 });
            Function::Gated { by, gain: 1.0, shift: 0.0 }
        }
        "Clip" => {
            let bound = |i: usize, name: &str, default: f64| match node.attributes.get(name) {
                Some(Attribute::Float(x)) if graph.opset < 11 => *x,
                _ => single(i).unwrap_or(default),
            };
            Function::Clip { low: bound(1, "min", f64::MIN), high: bound(2, "max", f64::MAX) }
        }
        "Pow" if operands.linear(0).is_some() => match single(1) {
            Some(n) if n.fract() == 0.0 && (2.0..=f64::from(MAX_POWER)).contains(&n) => Function::Power(n as u32),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    }))
}
