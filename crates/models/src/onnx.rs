//! ONNX files: the graph as it is written, within limits.
//!
//! Field numbers are those of `onnx.proto`. External data, functions of the file and graphs inside of nodes are refused: a model is
//! one file.

use crate::error::{ModelError, format};
use crate::protobuf::{Field, Message};
use crate::tensor::{MAX_ELEMENTS, Tensor, elements};
use std::collections::BTreeMap;

/// Oldest and newest operator set whose operators are read as they are meant.
pub(crate) const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;
/// Nodes at most.
const MAX_NODES: usize = 1 << 14;
/// Dimensions of a tensor at most.
const MAX_RANK: usize = 8;
/// Numbers of all constants at most.
const MAX_CONSTANTS: usize = 1 << 28;

/// An attribute's value.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    Float(f64),
    Integer(i64),
    Text(String),
    Tensor(Tensor),
    Floats(Vec<f64>),
    Integers(Vec<i64>),
    Other,
}

/// An operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub name: String,
    pub operator: String,
    pub domain: String,
    pub attributes: BTreeMap<String, Attribute>,
}

impl Node {
    /// Its name, or that of its first result.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { self.outputs.first().map_or("?", String::as_str) } else { &self.name }
    }

    pub fn integer(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Integer(value)) => *value,
            _ => default,
        }
    }

    pub fn float(&self, name: &str, default: f64) -> f64 {
        match self.attributes.get(name) {
            Some(Attribute::Float(value)) => *value,
            _ => default,
        }
    }

    pub fn integers(&self, name: &str) -> Option<&[i64]> {
        match self.attributes.get(name) {
            Some(Attribute::Integers(values)) => Some(values),
            _ => None,
        }
    }

    pub fn floats(&self, name: &str) -> &[f64] {
        match self.attributes.get(name) {
            Some(Attribute::Floats(values)) => values,
            _ => &[],
        }
    }

    pub fn text(&self, name: &str, default: &str) -> String {
        match self.attributes.get(name) {
            Some(Attribute::Text(value)) => value.clone(),
            _ => default.to_owned(),
        }
    }
}

/// The graph of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub opset: i64,
    pub nodes: Vec<Node>,
    pub constants: BTreeMap<String, Tensor>,
    /// Names and dimensions; none for a symbolic one.
    pub inputs: Vec<(String, Vec<Option<usize>>)>,
    pub outputs: Vec<String>,
}

/// The graph of a model file.
pub(crate) fn read(bytes: &[u8]) -> Result<Graph, ModelError> {
    let (mut graph, mut opset, mut message) = (None, None, Message(bytes));
    while let Some((number, field)) = message.next()? {
        match number {
            7 if graph.is_some() => return format("the file has two graphs; export it anew"),
            7 => graph = Some(read_graph(field.bytes()?)?),
            8 => {
                let (domain, version) = read_opset(field.bytes()?)?;
                if domain.is_empty() || domain == "ai.onnx" {
                    if opset.is_some_and(|known| known != version) {
                        return format("the file imports two versions of the operator set; export it anew");
                    }
                    opset = Some(version);
                }
            }
            25 => return format("the file defines functions of its own; export it with functions expanded"),
            _ => {}
        }
    }
    let Some(mut graph) = graph else { return format("there is no graph in it; is it an ONNX file?") };
    graph.opset = match opset {
        Some(version) if OPSETS.contains(&version) => version,
        Some(version) => {
            return format(format!(
                "it uses operator set {version}, and those from {} to {} are read; export it with one of these",
                OPSETS.start(),
                OPSETS.end()
            ));
        }
        None => return format("it does not say which operator set it uses; export it anew"),
    };
    // Older files list constants among the inputs.
    let constants = &graph.constants;
    graph.inputs.retain(|(name, _)| !constants.contains_key(name));
    Ok(graph)
}

fn read_opset(bytes: &[u8]) -> Result<(String, i64), ModelError> {
    let (mut domain, mut version, mut message) = (String::new(), 0, Message(bytes));
    while let Some((number, field)) = message.next()? {
        match number {
            1 => domain = field.text()?,
            2 => version = field.integer()?,
            _ => {}
        }
    }
    Ok((domain, version))
}

fn read_graph(bytes: &[u8]) -> Result<Graph, ModelError> {
    let (mut graph, mut all, mut message) = (Graph::default(), 0, Message(bytes));
    while let Some((number, field)) = message.next()? {
        match number {
            1 => {
                if graph.nodes.len() == MAX_NODES {
                    return format(format!("it has more than {MAX_NODES} nodes; use a smaller network"));
                }
                graph.nodes.push(read_node(field.bytes()?)?);
            }
            5 => {
                let (name, tensor) = read_tensor(field.bytes()?)?;
                all += tensor.data.len();
                if all > MAX_CONSTANTS {
                    return format(format!(
                        "its constants have more than {MAX_CONSTANTS} numbers; use a smaller network"
                    ));
                }
                graph.constants.insert(name, tensor);
            }
            11 => graph.inputs.push(read_value_info(field.bytes()?)?),
            12 => graph.outputs.push(read_value_info(field.bytes()?)?.0),
            15 => return format("it has sparse constants; export it with dense ones"),
            _ => {}
        }
    }
    Ok(graph)
}

fn read_node(bytes: &[u8]) -> Result<Node, ModelError> {
    let (mut node, mut message) = (Node::default(), Message(bytes));
    while let Some((number, field)) = message.next()? {
        match number {
            1 => node.inputs.push(field.text()?),
            2 => node.outputs.push(field.text()?),
            3 => node.name = field.text()?,
            4 => node.operator = field.text()?,
            5 => {
                let (name, attribute) = read_attribute(field.bytes()?)?;
                node.attributes.insert(name, attribute);
            }
            7 => node.domain = field.text()?,
            _ => {}
        }
    }
    Ok(node)
}

fn read_attribute(bytes: &[u8]) -> Result<(String, Attribute), ModelError> {
    let (mut name, mut kind, mut message) = (String::new(), 0, Message(bytes));
    let (mut float, mut integer, mut text, mut tensor) = (None, None, None, None);
    let (mut floats, mut integers) = (Vec::new(), Vec::new());
    while let Some((number, field)) = message.next()? {
        match number {
            1 => name = field.text()?,
            2 => float = Some(field.float()?),
            3 => integer = Some(field.integer()?),
            4 => text = Some(field.text()?),
            5 => tensor = Some(read_tensor(field.bytes()?)?.1),
            7 => field.floats(4, &mut floats)?,
            8 => field.integers(&mut integers)?,
            20 => kind = field.integer()?,
            _ => {}
        }
    }
    // A value of zero may be left out; the type is always written.
    let attribute = match kind {
        1 => Attribute::Float(float.unwrap_or_default()),
        2 => Attribute::Integer(integer.unwrap_or_default()),
        3 => Attribute::Text(text.unwrap_or_default()),
        4 => tensor.map_or(Attribute::Other, Attribute::Tensor),
        6 => Attribute::Floats(floats),
        7 => Attribute::Integers(integers),
        _ => Attribute::Other,
    };
    Ok((name, attribute))
}

fn read_tensor(bytes: &[u8]) -> Result<(String, Tensor), ModelError> {
    let (mut name, mut kind, mut dims, mut raw, mut message) = (String::new(), 0, Vec::new(), None, Message(bytes));
    let (mut floats, mut integers, mut texts) = (Vec::new(), Vec::new(), 0_u32);
    while let Some((number, field)) = message.next()? {
        match number {
            1 => field.integers(&mut dims)?,
            2 => kind = field.integer()?,
            4 => field.floats(4, &mut floats)?,
            5 | 7 => field.integers(&mut integers)?,
            6 => texts += 1,
            8 => name = field.text()?,
            9 => raw = Some(field.bytes()?),
            10 => field.floats(8, &mut floats)?,
            13 => return external(),
            14 if field != Field::Varint(0) => return external(),
            _ => {}
        }
    }
    let shape = dims.iter().map(|d| usize::try_from(*d)).collect::<Result<Vec<_>, _>>();
    let Ok(shape) = shape else { return format(format!("constant {name} has a negative dimension")) };
    let count = elements(&shape).filter(|_| shape.len() <= MAX_RANK);
    let Some(count) = count else {
        return format(format!("constant {name} has more than {MAX_RANK} dimensions or {MAX_ELEMENTS} numbers"));
    };
    let data = match raw {
        Some(raw) => read_raw(kind, raw),
        None => match kind {
            1 | 11 => Some(floats),
            // 16-bit types stand in the integers, bit by bit.
            10 => Some(integers.iter().map(|x| half(*x as u16)).collect()),
            16 => Some(integers.iter().map(|x| bfloat(*x as u16)).collect()),
            // Texts name classes, of which the places are enough.
            8 => Some((0..texts).map(f64::from).collect()),
            2..=7 | 9 | 12 | 13 => Some(integers.iter().map(|x| *x as f64).collect()),
            _ => None,
        },
    };
    match data {
        Some(data) if data.len() == count => Ok((name, Tensor { shape, data })),
        Some(data) => format(format!("constant {name} has {} numbers, and its shape has {count}", data.len())),
        None => format(format!("constant {name} is of type {kind}, which is not read; export it in floats")),
    }
}

fn external<T>() -> Result<T, ModelError> {
    format("its constants are in other files; save it as one file (in torch.onnx.export by external_data=False)")
}

fn read_raw(kind: i64, raw: &[u8]) -> Option<Vec<f64>> {
    fn all<const N: usize>(raw: &[u8], one: impl Fn([u8; N]) -> f64) -> Option<Vec<f64>> {
        let (chunks, rest) = raw.as_chunks::<N>();
        rest.is_empty().then(|| chunks.iter().map(|c| one(*c)).collect())
    }
    match kind {
        1 => all(raw, |b| f64::from(f32::from_le_bytes(b))),
        11 => all(raw, f64::from_le_bytes),
        10 => all(raw, |b| half(u16::from_le_bytes(b))),
        16 => all(raw, |b| bfloat(u16::from_le_bytes(b))),
        2 | 9 => all(raw, |[b]: [u8; 1]| f64::from(b)),
        3 => all(raw, |b| f64::from(i8::from_le_bytes(b))),
        6 => all(raw, |b| f64::from(i32::from_le_bytes(b))),
        7 => all(raw, |b| i64::from_le_bytes(b) as f64),
        12 => all(raw, |b| f64::from(u32::from_le_bytes(b))),
        13 => all(raw, |b| u64::from_le_bytes(b) as f64),
        _ => None,
    }
}

/// A number of IEEE 754's binary16.
fn half(bits: u16) -> f64 {
    let (sign, exponent, mantissa) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => mantissa * (-24f64).exp2(),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * f64::from(exponent - 25).exp2(),
    };
    if sign == 1 { -size } else { size }
}

fn bfloat(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

/// Name and dimensions.
fn read_value_info(bytes: &[u8]) -> Result<(String, Vec<Option<usize>>), ModelError> {
    let (mut name, mut dims, mut message) = (String::new(), Vec::new(), Message(bytes));
    // A message of a message: the one in the first field with a number.
    let inner = |bytes, wanted| -> Result<Vec<&[u8]>, ModelError> {
        let (mut found, mut message) = (Vec::new(), Message(bytes));
        while let Some((number, field)) = message.next()? {
            if number == wanted {
                found.push(field.bytes()?);
            }
        }
        Ok(found)
    };
    while let Some((number, field)) = message.next()? {
        match number {
            1 => name = field.text()?,
            2 => {
                for tensor in inner(field.bytes()?, 1)? {
                    for shape in inner(tensor, 2)? {
                        for dim in inner(shape, 1)? {
                            dims.push(read_dim(dim)?);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    if dims.len() > MAX_RANK {
        return format(format!("{name} has more than {MAX_RANK} dimensions"));
    }
    Ok((name, dims))
}

fn read_dim(bytes: &[u8]) -> Result<Option<usize>, ModelError> {
    let (mut dim, mut message) = (None, Message(bytes));
    while let Some((number, field)) = message.next()? {
        if number == 1 {
            dim = usize::try_from(field.integer()?).ok().filter(|d| *d > 0);
        }
    }
    Ok(dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits() {
        assert_eq!([0x3c00, 0xc000, 0x0001, 0x7bff].map(half), [1.0, -2.0, (-24f64).exp2(), 65504.0]);
        assert!(half(0x7c00).is_infinite() && half(0x7c01).is_nan());
        assert_eq!(bfloat(0x3f80), 1.0);
    }
}
