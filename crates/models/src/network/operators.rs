//! ONNX's linear operators and changes of index, on constants and on affine functions of kept values.
//!
//! The semantics are those of the operators' specification; opsets differ where a comment says so.

use super::import::{Operands, Outcome, Value, refused};
use super::windows::Windows;
use crate::error::{ModelError, format};
use crate::onnx::{Attribute, Node};
use crate::sparse::{Linear, Sparse};
use crate::tensor::{Indices, Tensor, axis_of, common_shape, elements, strides};

/// Why an operator is never computed, and what to write instead.
pub(super) fn never(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "MaxPool" | "GlobalMaxPool" => {
            "a maximum is not a polynomial of low degree; use average pools (AvgPool2d) and fine-tune the network, \
             which costs no level"
        }
        "LayerNormalization"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "LpNormalization"
        | "MeanVarianceNormalization" => {
            "it divides by what it computes of the input; use batch normalisation, which is linear once trained"
        }
        "LSTM" | "GRU" | "RNN" => "recurrent layers are not unrolled; unroll them when exporting",
        "If" | "Loop" | "Scan" => "control flow is not computed on ciphertexts; export without it",
        "Where" | "Greater" | "Less" | "Equal" | "Not" | "And" | "Or" | "Max" | "Min" | "Sign" | "Floor" | "Ceil"
        | "Round" | "Mod" | "TopK" | "NonZero" | "ReduceMax" | "ReduceMin" | "Argmin" => {
            "comparisons are not computed on ciphertexts; use a smooth function in its place, or leave it to the client"
        }
        "Sqrt" | "Log" | "Reciprocal" | "ReduceL2" | "ReduceProd" | "ReduceLogSumExp" => {
            "it has no polynomial that serves near zero; leave it out, or to the client"
        }
        "ConvTranspose" | "Resize" | "Upsample" => "it is not read yet; use a convolution or a reshape in its place",
        _ => return None,
    })
}

pub(super) const KNOWN: &str =
    "the operator is not read; see the guide's list of operators, or leave what it does to the client";

/// What a node gives that is no function of every element.
pub(super) fn apply(opset: i64, node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.get(0) else {
        return match node.operator.as_str() {
            "Constant" => constant(node),
            _ => format(format!("layer {}: {} has no operand", node.label(), node.operator)),
        };
    };
    let all_constant = operands.0.iter().flatten().all(|v| matches!(v, Value::Constant(_)));
    let shape = x.shape();
    let rank = shape.len();
    match node.operator.as_str() {
        "Identity" | "Dropout" => values(x.clone()),
        // To a floating point type, or what is a constant.
        "Cast" if all_constant || [1, 10, 11, 16].contains(&node.integer("to", 0)) => values(x.clone()),
        "Cast" => refused("a cast of encrypted numbers to integers rounds; leave it out"),
        "Shape" => {
            let (start, end) = (node.integer("start", 0), node.integer("end", rank as i64));
            let clamp = |i: i64| (if i < 0 { i + rank as i64 } else { i }).clamp(0, rank as i64) as usize;
            let dims: Vec<f64> = shape.iter().map(|d| *d as f64).collect();
            let (start, end) = (clamp(start), clamp(end));
            values(Value::Constant(Tensor::vector(dims.get(start..end.max(start)).unwrap_or(&[]).to_vec())))
        }
        "ConstantOfShape" => {
            let Some(sizes) = operands.constant(0) else { return refused(STATIC) };
            let value = match node.attributes.get("value") {
                Some(Attribute::Tensor(t)) if t.data.len() == 1 => t.data[0],
                _ => 0.0,
            };
            let shape = lengths(&sizes.integers()?)?;
            let Some(count) = elements(&shape) else { return format("a constant is too large") };
            values(Value::Constant(Tensor { shape, data: vec![value; count] }))
        }
        "Flatten" => {
            let axis = node.integer("axis", 1);
            let axis = if axis == rank as i64 { rank } else { axis_of(axis, rank)? };
            let sides = vec![shape[..axis].iter().product(), shape[axis..].iter().product()];
            taken(x, &Indices::reshaped(sides, shape.iter().product())?, 0.0)
        }
        "Reshape" => {
            let Some(wanted) = operands.constant(1) else { return refused(STATIC) };
            let wanted = reshaped(shape, &wanted.integers()?, node.integer("allowzero", 0) != 0)?;
            taken(x, &Indices::reshaped(wanted, shape.iter().product())?, 0.0)
        }
        "Squeeze" | "Unsqueeze" => {
            let axes = axes(opset >= 13, node, operands)?;
            let Some(new) = squeezed(&node.operator, shape, axes)? else { return refused(STATIC) };
            taken(x, &Indices::reshaped(new, shape.iter().product())?, 0.0)
        }
        "Transpose" => {
            let order = match node.integers("perm") {
                Some(order) => order.iter().map(|a| axis_of(*a, rank)).collect::<Result<Vec<_>, _>>()?,
                None => (0..rank).rev().collect(),
            };
            transposed(x, &order)
        }
        "Expand" => {
            let Some(wanted) = operands.constant(1) else { return refused(STATIC) };
            let wanted = common_shape(shape, &lengths(&wanted.integers()?)?)?;
            taken(x, &Indices::broadcast(shape, wanted)?, 0.0)
        }
        "Gather" => gather(node, operands),
        "Slice" => slice(opset, node, operands),
        "Split" => split(opset, node, operands),
        "Pad" => pad(opset, node, operands),
        "Concat" => concat(node, operands),
        "Neg" => match x {
            Value::Linear(v) => values(Value::Linear(v.scaled(&vec![-1.0; v.bias.len()]))),
            _ => constants(operands, |a, _| -a),
        },
        "Sqrt" if all_constant => constants(operands, |a, _| a.sqrt()),
        "Pow" if all_constant => constants(operands, f64::powf),
        "Add" | "Sub" | "Mul" | "Div" => arithmetic(node, operands),
        "Sum" | "Mean" => sum(node, operands),
        "Gemm" => gemm(node, operands),
        "MatMul" => matmul(node, x, operands.get(1)),
        "Conv" => convolution(node, operands),
        "BatchNormalization" => normalisation(node, operands),
        "AveragePool" | "GlobalAveragePool" => average_pool(node, operands),
        "ReduceMean" => reduce(opset >= 18, node, operands, true),
        "ReduceSum" => reduce(opset >= 13, node, operands, false),
        "Softmax" | "LogSoftmax" | "ArgMax" => match x {
            Value::Linear(v) => values(Value::AtClient(v.clone(), node.operator.clone())),
            _ => refused(KNOWN),
        },
        "PRelu" => refused("slopes that differ are not read yet; use one slope for all channels"),
        "Pow" => refused("whole exponents from 2 to 8 are computed; write others by these, or approximate them"),
        other => refused(never(other).unwrap_or(KNOWN)),
    }
}

const STATIC: &str = "its sizes are computed of the input; export the network with constant sizes";

pub(super) fn values(value: Value) -> Result<Outcome, ModelError> {
    Ok(Outcome::Values(vec![value]))
}

pub(super) fn linear(value: Linear) -> Result<Outcome, ModelError> {
    values(Value::Linear(value))
}

/// Elements of a value in other places.
fn at(value: &Value, indices: &Indices, padding: f64) -> Result<Value, ModelError> {
    Ok(match value {
        Value::Constant(t) => Value::Constant(indices.take(&t.data, padding)),
        Value::Linear(v) | Value::AtClient(v, _) => Value::Linear(v.taken(indices, padding)?),
        Value::Unknown => Value::Unknown,
    })
}

fn taken(value: &Value, indices: &Indices, padding: f64) -> Result<Outcome, ModelError> {
    values(at(value, indices, padding)?)
}

fn lengths(sizes: &[i64]) -> Result<Vec<usize>, ModelError> {
    match sizes.iter().map(|s| usize::try_from(*s)).collect() {
        Ok(lengths) => Ok(lengths),
        Err(_) => format(format!("the shape {sizes:?} has a size below zero")),
    }
}

fn constant(node: &Node) -> Result<Outcome, ModelError> {
    let numbers = |all: &[i64]| all.iter().map(|x| *x as f64).collect();
    for (name, attribute) in &node.attributes {
        let tensor = match (name.as_str(), attribute) {
            ("value", Attribute::Tensor(t)) => t.clone(),
            ("value_float", Attribute::Float(x)) => Tensor::scalar(*x),
            ("value_int", Attribute::Integer(x)) => Tensor::scalar(*x as f64),
            ("value_floats", Attribute::Floats(all)) => Tensor::vector(all.clone()),
            ("value_ints", Attribute::Integers(all)) => Tensor::vector(numbers(all)),
            _ => continue,
        };
        return values(Value::Constant(tensor));
    }
    refused("a constant of this kind is not read; write it as a tensor of floats")
}

/// Sizes of a reshape: 0 keeps a dimension (unless `allow_zero`), −1 takes what is left.
fn reshaped(shape: &[usize], wanted: &[i64], allow_zero: bool) -> Result<Vec<usize>, ModelError> {
    let count: usize = shape.iter().product();
    let mut out = Vec::with_capacity(wanted.len());
    for (i, size) in wanted.iter().enumerate() {
        out.push(match (*size, shape.get(i)) {
            (-1, _) => 1,
            (0, Some(own)) if !allow_zero => *own,
            (size, _) => match usize::try_from(size) {
                Ok(size) => size,
                Err(_) => return format(format!("a reshape to {wanted:?} has a size below −1")),
            },
        });
    }
    if let Some(free) = wanted.iter().position(|s| *s == -1) {
        let known = elements(&out).filter(|known| *known > 0 && count.is_multiple_of(*known));
        match known {
            Some(known) => out[free] = count / known,
            None => return format(format!("{count} numbers do not fit the shape {wanted:?}")),
        }
    }
    Ok(out)
}

/// The axes of a node: an attribute in older opsets, then an operand. None if neither is there; an error if they are not constant.
fn axes(as_operand: bool, node: &Node, operands: &Operands<'_>) -> Result<Option<Vec<i64>>, ModelError> {
    match (as_operand, operands.get(1)) {
        (true, Some(Value::Constant(t))) => Ok(Some(t.integers()?)),
        (true, Some(_)) => format(format!("layer {}: {STATIC}", node.label())),
        _ => Ok(node.integers("axes").map(<[i64]>::to_vec)),
    }
}

fn squeezed(operator: &str, shape: &[usize], axes: Option<Vec<i64>>) -> Result<Option<Vec<usize>>, ModelError> {
    if operator == "Squeeze" {
        let gone: Vec<usize> = match axes {
            Some(axes) => axes.iter().map(|a| axis_of(*a, shape.len())).collect::<Result<_, _>>()?,
            None => (0..shape.len()).filter(|i| shape[*i] == 1).collect(),
        };
        if gone.iter().any(|i| shape[*i] != 1) {
            return format(format!(
                "a squeeze of the axes {gone:?} does not fit the shape {shape:?}: only axes of length 1 can go"
            ));
        }
        let kept = shape.iter().enumerate().filter(|(i, _)| !gone.contains(i));
        return Ok(Some(kept.map(|(_, d)| *d).collect()));
    }
    let Some(axes) = axes else { return Ok(None) };
    let rank = shape.len() + axes.len();
    let new = axes.iter().map(|a| axis_of(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = shape.iter();
    let dims: Option<Vec<usize>> =
        (0..rank).map(|i| if new.contains(&i) { Some(1) } else { rest.next().copied() }).collect();
    match dims {
        Some(dims) if rest.next().is_none() => Ok(Some(dims)),
        _ => format(format!("two of the new axes {axes:?} are equal")),
    }
}

fn transposed(x: &Value, order: &[usize]) -> Result<Outcome, ModelError> {
    values(transpose(x, order)?)
}

fn transpose(x: &Value, order: &[usize]) -> Result<Value, ModelError> {
    let shape = x.shape();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..shape.len()) {
        return format(format!("a transpose to the axes {order:?} does not fit the shape {shape:?}"));
    }
    let to: Vec<usize> = order.iter().map(|a| shape[*a]).collect();
    let indices = Indices::new(to, shape, |at, from| {
        order.iter().zip(at).for_each(|(axis, i)| from[*axis] = *i);
        true
    })?;
    at(x, &indices, 0.0)
}

fn gather(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let (Some(x), Some(which)) = (operands.get(0), operands.constant(1)) else { return refused(STATIC) };
    let shape = x.shape();
    let axis = axis_of(node.integer("axis", 0), shape.len())?;
    let which_at = which.integers()?.into_iter().map(|i| axis_of(i, shape[axis])).collect::<Result<Vec<_>, _>>()?;
    let to = [&shape[..axis], &which.shape, &shape[axis + 1..]].concat();
    let steps = strides(&which.shape);
    let inner = which.shape.len();
    let indices = Indices::new(to, shape, |place, from| {
        let number: usize = place[axis..axis + inner].iter().zip(&steps).map(|(i, s)| i * s).sum();
        from[..axis].copy_from_slice(&place[..axis]);
        from[axis] = which_at[number];
        from[axis + 1..].copy_from_slice(&place[axis + inner..]);
        true
    })?;
    taken(x, &indices, 0.0)
}

fn slice(opset: i64, node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.get(0) else { return refused(STATIC) };
    let shape = x.shape();
    let rank = shape.len();
    // Attributes before opset 10.
    let field = |i: usize, name: &str| -> Result<Option<Vec<i64>>, ModelError> {
        match operands.get(i) {
            Some(Value::Constant(t)) => Ok(Some(t.integers()?)),
            Some(_) => format(format!("layer {}: {STATIC}", node.label())),
            None if opset < 10 => Ok(node.integers(name).map(<[i64]>::to_vec)),
            None => Ok(None),
        }
    };
    let (Some(starts), Some(ends)) = (field(1, "starts")?, field(2, "ends")?) else { return refused(STATIC) };
    let axes = field(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = field(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if starts.len() != ends.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return format(format!("layer {}: it has different numbers of starts, ends, axes and steps", node.label()));
    }
    let (mut to, mut first, mut by) = (shape.to_vec(), vec![0i64; rank], vec![1i64; rank]);
    for i in 0..starts.len() {
        let axis = axis_of(axes[i], rank)?;
        let size = shape[axis] as i64;
        let from_end = |place: i64| if place < 0 { place.saturating_add(size) } else { place };
        let (start, end, step) = (from_end(starts[i]), from_end(ends[i]), steps[i]);
        let (start, end) = match step {
            0 => return format(format!("layer {}: a slice has a step of 0", node.label())),
            1.. => (start.clamp(0, size), end.clamp(0, size)),
            _ => (start.clamp(-1, size - 1), end.clamp(-1, size - 1)),
        };
        let count = if step > 0 { (end - start).max(0) } else { (start - end).max(0) };
        (first[axis], by[axis]) = (start, step);
        to[axis] = (count as u64).div_ceil(step.unsigned_abs()) as usize;
    }
    let indices = Indices::new(to, shape, |at, from| {
        (0..rank).for_each(|i| from[i] = (first[i] + at[i] as i64 * by[i]) as usize);
        true
    })?;
    taken(x, &indices, 0.0)
}

fn split(opset: i64, node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.get(0) else { return refused(STATIC) };
    let shape = x.shape();
    let axis = axis_of(node.integer("axis", 0), shape.len())?;
    let given = match (opset >= 13, operands.get(1)) {
        (true, Some(Value::Constant(t))) => Some(lengths(&t.integers()?)?),
        (true, Some(_)) => return refused(STATIC),
        _ => node.integers("split").map(lengths).transpose()?,
    };
    let parts = given.unwrap_or_else(|| {
        let each = shape[axis].div_ceil(node.outputs.len().max(1));
        (0..node.outputs.len()).map(|i| each.min(shape[axis].saturating_sub(i * each))).collect()
    });
    if parts.iter().sum::<usize>() != shape[axis] {
        return format(format!("layer {}: parts of the lengths {parts:?} do not make {}", node.label(), shape[axis]));
    }
    let (mut start, mut out) = (0, Vec::new());
    for size in parts {
        let mut to = shape.to_vec();
        to[axis] = size;
        let indices = Indices::new(to, shape, |at, from| {
            from.copy_from_slice(at);
            from[axis] += start;
            true
        })?;
        out.push(at(x, &indices, 0.0)?);
        start += size;
    }
    Ok(Outcome::Values(out))
}

fn pad(opset: i64, node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.get(0) else { return refused(STATIC) };
    let shape = x.shape();
    let rank = shape.len();
    // Attributes before opset 11; axes from 18 on.
    let (pads, value) = match opset < 11 {
        true => (node.integers("pads").map(<[i64]>::to_vec), node.float("value", 0.0)),
        false => {
            let value = operands.constant(2).and_then(|t| t.data.first().copied());
            (operands.constant(1).map(Tensor::integers).transpose()?, value.unwrap_or(0.0))
        }
    };
    let Some(pads) = pads else { return refused(STATIC) };
    let axes = match operands.constant(3) {
        Some(t) => t.integers()?.into_iter().map(|a| axis_of(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return format(format!(
            "layer {}: the pads {pads:?} are not two for each of {} axes",
            node.label(),
            axes.len()
        ));
    }
    let (mut begin, mut to) = (vec![0i64; rank], shape.to_vec());
    for (i, axis) in axes.iter().enumerate() {
        let (before, after) = (pads[i], pads[i + axes.len()]);
        let Some(size) = (shape[*axis] as i64).checked_add(before).and_then(|s| s.checked_add(after)) else {
            return format("a padding is too large");
        };
        (begin[*axis], to[*axis]) = (before, lengths(&[size])?[0]);
    }
    let mode = node.text("mode", "constant");
    if !["constant", "edge", "reflect", "wrap"].contains(&mode.as_str()) || shape.contains(&0) {
        return refused(format!("the mode {mode} is not read; use constant, edge, reflect or wrap"));
    }
    let indices = Indices::new(to, shape, |at, from| {
        (0..rank).all(|i| {
            let (size, place) = (shape[i] as i64, at[i] as i64 - begin[i]);
            let inside = match mode.as_str() {
                "edge" => place.clamp(0, size - 1),
                "wrap" => place.rem_euclid(size),
                "reflect" if size > 1 => {
                    let period = 2 * (size - 1);
                    let place = place.rem_euclid(period);
                    place.min(period - place)
                }
                "reflect" => 0,
                _ => place,
            };
            from[i] = inside.clamp(0, size - 1) as usize;
            (0..size).contains(&inside)
        })
    })?;
    taken(x, &indices, value)
}

fn concat(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let parts: Vec<&Value> = operands.0.iter().flatten().copied().collect();
    let Some(first) = parts.first().map(|p| p.shape().to_vec()) else { return refused(STATIC) };
    let axis = axis_of(node.integer("axis", 0), first.len())?;
    let alike = |p: &&Value| {
        let s = p.shape();
        s.len() == first.len() && s.iter().zip(&first).enumerate().all(|(i, (a, b))| i == axis || a == b)
    };
    if !parts.iter().all(alike) {
        return format(format!("layer {}: the shapes of what is concatenated do not go together", node.label()));
    }
    let mut to = first.clone();
    to[axis] = parts.iter().map(|p| p.shape()[axis]).sum();
    let mut sum: Option<Value> = None;
    let mut start = 0;
    for part in parts {
        let size = part.shape()[axis];
        let indices = Indices::new(to.clone(), part.shape(), |at, from| {
            from.copy_from_slice(at);
            let inside = (start..start + size).contains(&at[axis]);
            from[axis] = if inside { at[axis] - start } else { 0 };
            inside
        })?;
        let placed = at(part, &indices, 0.0)?;
        sum = Some(match sum {
            None => placed,
            Some(sum) => plus(&sum, &placed)?,
        });
        start += size;
    }
    match sum {
        Some(sum) => values(sum),
        None => refused(STATIC),
    }
}

/// The sum of two of one shape.
fn plus(a: &Value, b: &Value) -> Result<Value, ModelError> {
    Ok(match (a, b) {
        (Value::Constant(a), Value::Constant(b)) => {
            let data = a.data.iter().zip(&b.data).map(|(x, y)| x + y).collect();
            Value::Constant(Tensor { shape: a.shape.clone(), data })
        }
        (Value::Linear(a), Value::Linear(b)) => Value::Linear(a.plus(b)?),
        (Value::Linear(v), Value::Constant(t)) | (Value::Constant(t), Value::Linear(v)) => {
            Value::Linear(v.clone().shifted(&t.data))
        }
        _ => Value::Unknown,
    })
}

/// Both operands in their common shape.
fn extended(a: &Value, b: &Value) -> Result<(Value, Value), ModelError> {
    let shape = common_shape(a.shape(), b.shape())?;
    let one = |v: &Value| match v.shape() == shape {
        true => Ok(v.clone()),
        false => at(v, &Indices::broadcast(v.shape(), shape.clone())?, 0.0),
    };
    Ok((one(a)?, one(b)?))
}

/// A function of constants.
fn constants(operands: &Operands<'_>, f: impl Fn(f64, f64) -> f64) -> Result<Outcome, ModelError> {
    let Some(a) = operands.get(0) else { return refused(STATIC) };
    let (a, b) = extended(a, operands.get(1).unwrap_or(a))?;
    match (a, b) {
        (Value::Constant(a), Value::Constant(b)) => {
            let data = a.data.iter().zip(&b.data).map(|(x, y)| f(*x, *y)).collect();
            values(Value::Constant(Tensor { shape: a.shape, data }))
        }
        _ => refused(KNOWN),
    }
}

fn arithmetic(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let (Some(a), Some(b)) = (operands.get(0), operands.get(1)) else { return refused(STATIC) };
    let operator = node.operator.as_str();
    if let (Value::Constant(x), Value::Constant(y)) = (a, b) {
        let whole = |t: &Tensor| t.data.iter().all(|x| x.fract() == 0.0);
        return match operator {
            "Add" => constants(operands, |x, y| x + y),
            "Sub" => constants(operands, |x, y| x - y),
            "Mul" => constants(operands, |x, y| x * y),
            // Integers are divided with a remainder, and types are not kept.
            _ if whole(x) && whole(y) && x.data.len() == 1 && y.data.len() == 1 && x.data[0] % y.data[0] != 0.0 => {
                refused("a quotient of constants that may be one of integers; let the exporter fold constants")
            }
            _ => constants(operands, |x, y| x / y),
        };
    }
    let (a, b) = extended(a, b)?;
    let negated = |v: Value| match v {
        Value::Linear(v) => Value::Linear(v.scaled(&vec![-1.0; v.bias.len()])),
        Value::Constant(t) => Value::Constant(Tensor { data: t.data.iter().map(|x| -x).collect(), ..t }),
        other => other,
    };
    match (operator, &a, &b) {
        ("Add", ..) => values(plus(&a, &b)?),
        ("Sub", ..) => values(plus(&a, &negated(b))?),
        ("Mul", Value::Linear(v), Value::Constant(t)) | ("Mul", Value::Constant(t), Value::Linear(v)) => {
            linear(v.scaled(&t.data))
        }
        ("Div", Value::Linear(v), Value::Constant(t)) => {
            linear(v.scaled(&t.data.iter().map(|x| x.recip()).collect::<Vec<_>>()))
        }
        ("Div", ..) => {
            refused("division by an encrypted value has no polynomial that serves near zero; leave it to the client")
        }
        _ => refused(KNOWN),
    }
}

fn sum(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let mut parts = operands.0.iter().flatten().copied();
    let Some(mut sum) = parts.next().cloned() else { return refused(STATIC) };
    for part in parts {
        let (a, b) = extended(&sum, part)?;
        sum = plus(&a, &b)?;
    }
    let count = operands.0.len() as f64;
    match (node.operator.as_str(), sum) {
        ("Mean", Value::Linear(v)) => linear(v.scaled(&vec![1.0 / count; v.bias.len()])),
        ("Mean", _) => refused(KNOWN),
        (_, sum) => values(sum),
    }
}

fn gemm(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let (Some(a), Some(b)) = (operands.get(0), operands.get(1)) else { return refused(STATIC) };
    if a.shape().len() != 2 || b.shape().len() != 2 {
        return format(format!(
            "layer {}: Gemm takes two matrices, not the shapes {:?} and {:?}",
            node.label(),
            a.shape(),
            b.shape()
        ));
    }
    let side = |v: &Value, name: &str| match node.integer(name, 0) {
        0 => Ok(v.clone()),
        _ => transpose(v, &[1, 0]),
    };
    let (a, b) = (side(a, "transA")?, side(b, "transB")?);
    let product = match product(node, &a, &b)? {
        Some(product) => product.scaled(&vec![node.float("alpha", 1.0); product.bias.len()]),
        None => return refused(BOTH),
    };
    let Some(c) = operands.get(2) else { return linear(product) };
    let (c, beta) = (at(c, &Indices::broadcast(c.shape(), product.shape.clone())?, 0.0)?, node.float("beta", 1.0));
    let c = match c {
        Value::Linear(c) => Value::Linear(c.scaled(&vec![beta; c.bias.len()])),
        Value::Constant(t) => Value::Constant(Tensor { data: t.data.iter().map(|x| beta * x).collect(), ..t }),
        other => other,
    };
    values(plus(&Value::Linear(product), &c)?)
}

const BOTH: &str =
    "one factor has to be a constant; products of two encrypted matrices (attention) are not computed yet";

fn matmul(node: &Node, a: &Value, b: Option<&Value>) -> Result<Outcome, ModelError> {
    let Some(b) = b else { return refused(STATIC) };
    match product(node, a, b)? {
        Some(product) => linear(product),
        None => refused(BOTH),
    }
}

/// The matrix product as NumPy has it, of an encrypted and a constant factor; none for two of a kind.
pub(super) fn product(node: &Node, a: &Value, b: &Value) -> Result<Option<Linear>, ModelError> {
    let (v, t, right) = match (a, b) {
        (Value::Linear(v), Value::Constant(t)) => (v, t, true),
        (Value::Constant(t), Value::Linear(v)) => (v, t, false),
        _ => return Ok(None),
    };
    let mut left_shape = a.shape().to_vec();
    let mut right_shape = b.shape().to_vec();
    let vectors = (left_shape.len() == 1, right_shape.len() == 1);
    if vectors.0 {
        left_shape.insert(0, 1);
    }
    if vectors.1 {
        right_shape.push(1);
    }
    let (p, q) = (left_shape.len(), right_shape.len());
    if p < 2 || q < 2 || left_shape[p - 1] != right_shape[q - 2] {
        return format(format!(
            "layer {}: the shapes {:?} and {:?} of a product do not go together",
            node.label(),
            a.shape(),
            b.shape()
        ));
    }
    let (m, k, n) = (left_shape[p - 2], left_shape[p - 1], right_shape[q - 1]);
    let batch = common_shape(&left_shape[..p - 2], &right_shape[..q - 2])?;
    let lefts = Indices::broadcast(&left_shape[..p - 2], batch.clone())?;
    let rights = Indices::broadcast(&right_shape[..q - 2], batch.clone())?;
    let mut map = Sparse::empty(v.bias.len());
    let mut entries = Vec::new();
    for (left, right_place) in lefts.from.iter().zip(&rights.from) {
        let (Some(left), Some(right_place)) = (left, right_place) else { continue };
        for i in 0..m {
            for j in 0..n {
                for l in 0..k {
                    let (x, y) = (left * m * k + i * k + l, right_place * k * n + l * n + j);
                    let (column, weight) = if right { (x, t.data[y]) } else { (y, t.data[x]) };
                    if weight != 0.0 {
                        entries.push((column as u32, weight));
                    }
                }
                map.push_row(&mut entries)?;
            }
        }
    }
    let mut shape = batch;
    shape.extend((!vectors.0).then_some(m));
    shape.extend((!vectors.1).then_some(n));
    Ok(Some(v.mapped(&map, shape)?))
}

fn convolution(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let (Some(x), Some(w)) = (operands.linear(0), operands.constant(1)) else {
        return refused(
            "its input has to be encrypted and its kernel constant; export the network with constant kernels",
        );
    };
    let rank = x.shape.len();
    if rank < 3 || w.shape.len() != rank {
        return format(format!(
            "layer {}: a kernel of the shape {:?} does not fit an input of the shape {:?}",
            node.label(),
            w.shape,
            x.shape
        ));
    }
    let Some(group) = usize::try_from(node.integer("group", 1)).ok().filter(|g| *g > 0) else {
        return format(format!("layer {}: the number of groups is not above zero", node.label()));
    };
    let (examples, channels, features, each) = (x.shape[0], x.shape[1], w.shape[0], w.shape[1]);
    if each.checked_mul(group) != Some(channels) || !features.is_multiple_of(group) {
        return format(format!(
            "layer {}: {group} groups of a kernel of the shape {:?} do not fit {channels} channels",
            node.label(),
            w.shape
        ));
    }
    let windows = Windows::new(node, &x.shape[2..], &w.shape[2..])?;
    let plane: usize = x.shape[2..].iter().product();
    let taps: usize = windows.kernel.iter().product();
    let count: usize = windows.output.iter().product();
    let places: Vec<_> = (0..count).map(|window| windows.places(window)).collect();
    let (mut map, mut entries) = (Sparse::empty(x.bias.len()), Vec::new());
    for example in 0..examples {
        for feature in 0..features {
            let first = feature / (features / group) * each;
            for window in &places {
                for channel in 0..each {
                    let base = (example * channels + first + channel) * plane;
                    let kernel = &w.data[(feature * each + channel) * taps..][..taps];
                    let inside = window.iter().filter_map(|(tap, place)| Some((*tap, (*place)?)));
                    entries.extend(
                        inside.map(|(tap, place)| ((base + place) as u32, kernel[tap])).filter(|(_, v)| *v != 0.0),
                    );
                }
                map.push_row(&mut entries)?;
            }
        }
    }
    let shape = [&[examples, features], windows.output.as_slice()].concat();
    let out = x.mapped(&map, shape.clone())?;
    match operands.get(2) {
        None => linear(out),
        Some(Value::Constant(b)) if b.data.len() == features => {
            let bias: Vec<f64> = (0..examples * features * count).map(|i| b.data[i / count % features]).collect();
            linear(out.shifted(&bias))
        }
        Some(_) => refused("what is added has to be a constant for each channel"),
    }
}

fn normalisation(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.linear(0) else { return refused(KNOWN) };
    let (Some(gamma), Some(beta), Some(mean), Some(variance)) =
        (operands.constant(1), operands.constant(2), operands.constant(3), operands.constant(4))
    else {
        return refused("its statistics have to be constants; export the network in evaluation mode");
    };
    if node.integer("training_mode", 0) != 0 {
        return refused("it is in training mode; export the network in evaluation mode");
    }
    let Some(channels) = x.shape.get(1).copied() else {
        return format(format!(
            "layer {}: a normalisation needs channels, and its input has the shape {:?}",
            node.label(),
            x.shape
        ));
    };
    if [gamma, beta, mean, variance].iter().any(|t| t.data.len() != channels) {
        return format(format!("layer {}: its statistics are not those of {channels} channels", node.label()));
    }
    let plane: usize = x.shape.iter().skip(2).product();
    let epsilon = node.float("epsilon", 1e-5);
    let factor: Vec<f64> = (0..channels).map(|c| gamma.data[c] / (variance.data[c] + epsilon).sqrt()).collect();
    let channel = |i: usize| i / plane.max(1) % channels.max(1);
    let by: Vec<f64> = (0..x.bias.len()).map(|i| factor[channel(i)]).collect();
    let shift: Vec<f64> =
        (0..x.bias.len()).map(|i| beta.data[channel(i)] - mean.data[channel(i)] * factor[channel(i)]).collect();
    linear(x.scaled(&by).shifted(&shift))
}

fn average_pool(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.linear(0) else { return refused(KNOWN) };
    if x.shape.len() < 3 {
        return format(format!(
            "layer {}: a pool needs at least three axes, and its input has the shape {:?}",
            node.label(),
            x.shape
        ));
    }
    let axes = &x.shape[2..];
    let kernel = match node.operator.as_str() {
        "GlobalAveragePool" => axes.to_vec(),
        _ => match node.integers("kernel_shape") {
            Some(kernel) => lengths(kernel)?,
            None => return format(format!("layer {}: the pool has no kernel_shape", node.label())),
        },
    };
    let windows = Windows::new(node, axes, &kernel)?;
    let with_padding = node.integer("count_include_pad", 0) != 0;
    let plane: usize = axes.iter().product();
    let count: usize = windows.output.iter().product();
    let places: Vec<_> = (0..count).map(|window| windows.places(window)).collect();
    let (mut map, mut entries) = (Sparse::empty(x.bias.len()), Vec::new());
    for channel in 0..x.shape[0] * x.shape[1] {
        for window in &places {
            let inside = window.iter().filter_map(|(_, place)| *place);
            let divisor = if with_padding { window.len() } else { inside.clone().count() };
            entries.extend(inside.map(|place| ((channel * plane + place) as u32, 1.0 / divisor as f64)));
            map.push_row(&mut entries)?;
        }
    }
    let shape = [&x.shape[..2], windows.output.as_slice()].concat();
    linear(x.mapped(&map, shape)?)
}

fn reduce(as_operand: bool, node: &Node, operands: &Operands<'_>, mean: bool) -> Result<Outcome, ModelError> {
    let axes = axes(as_operand, node, operands)?.filter(|axes| !axes.is_empty());
    let Some(x) = operands.linear(0) else { return refused(KNOWN) };
    let rank = x.shape.len();
    if axes.is_none() && node.integer("noop_with_empty_axes", 0) != 0 {
        return linear(x.clone());
    }
    let gone = match axes {
        Some(axes) => axes.iter().map(|a| axis_of(*a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let kept: Vec<usize> = (0..rank).map(|i| if gone.contains(&i) { 1 } else { x.shape[i] }).collect();
    let to = Indices::broadcast(&kept, x.shape.clone())?;
    let count: usize = kept.iter().product();
    let mut rows = vec![Vec::new(); count];
    for (i, place) in to.from.iter().enumerate() {
        if let Some(place) = place {
            rows[*place].push((i as u32, 1.0));
        }
    }
    let mut map = Sparse::empty(x.bias.len());
    for row in &mut rows {
        let each = if mean { 1.0 / row.len() as f64 } else { 1.0 };
        row.iter_mut().for_each(|(_, v)| *v = each);
        map.push_row(row)?;
    }
    let shape = match node.integer("keepdims", 1) {
        0 => (0..rank).filter(|i| !gone.contains(i)).map(|i| x.shape[i]).collect(),
        _ => kept,
    };
    linear(x.mapped(&map, shape)?)
}
