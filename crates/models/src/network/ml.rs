//! Operators of the domain for estimators, as converters of scikit-learn write them: linear ones, and what the client computes at the end.

use super::import::{LABEL, Operands, Outcome, Value, refused};
use super::operators::{KNOWN, linear, product, values};
use crate::error::{ModelError, format};
use crate::onnx::Node;
use crate::sparse::Linear;
use crate::tensor::Tensor;

/// Their domain.
pub(super) const DOMAIN: &str = "ai.onnx.ml";

/// What a node of that domain gives.
pub(super) fn apply(node: &Node, operands: &Operands<'_>) -> Result<Outcome, ModelError> {
    let Some(x) = operands.linear(0) else { return refused(KNOWN) };
    match node.operator.as_str() {
        "Scaler" => scaled(node, x),
        "LinearRegressor" => match node.text("post_transform", "NONE").as_str() {
            "NONE" => linear(scores(node, x)?),
            other => refused(format!("the function {other} of its scores is not read; leave it to the client")),
        },
        "LinearClassifier" => classified(node, x),
        // Scores with the names of classes.
        "ZipMap" => values(Value::Linear(x.clone())),
        "Normalizer" => refused("it divides by what it computes of the input; normalise inputs before encryption"),
        "TreeEnsembleClassifier" | "TreeEnsembleRegressor" | "SVMClassifier" | "SVMRegressor" => {
            refused("it is compiled from the fitted estimator itself, not from a file that was made of it")
        }
        _ => refused("the operator is not read; do what it does before encryption"),
    }
}

/// Features of a row.
fn features_of(node: &Node, x: &Linear) -> Result<usize, ModelError> {
    match x.shape.last() {
        Some(features) => Ok(*features),
        None => format(format!("layer {}: a number where rows of features belong", node.label())),
    }
}

fn scaled(node: &Node, x: &Linear) -> Result<Outcome, ModelError> {
    let features = features_of(node, x)?;
    // One number for all features, or for each its own.
    let each = |name: &str, default: f64| match node.floats(name) {
        [] => Ok(vec![default; x.bias.len()]),
        [one] => Ok(vec![*one; x.bias.len()]),
        all if all.len() == features => Ok((0..x.bias.len()).map(|i| all[i % features]).collect()),
        all => format(format!("layer {}: {name} has {} numbers for {features}", node.label(), all.len())),
    };
    let (offset, scale): (Vec<f64>, Vec<f64>) = (each("offset", 0.0)?, each("scale", 1.0)?);
    let shift: Vec<f64> = offset.iter().zip(&scale).map(|(offset, scale)| -offset * scale).collect();
    linear(x.scaled(&scale).shifted(&shift))
}

/// Labels, and scores or what the client computes of them.
fn classified(node: &Node, x: &Linear) -> Result<Outcome, ModelError> {
    let scores = scores(node, x)?;
    if scores.shape.last() == Some(&1) {
        return refused("one score for two classes is not read; convert it with a score for each class");
    }
    let label = Value::AtClient(scores.clone(), LABEL.into());
    let made = match node.text("post_transform", "NONE").as_str() {
        "NONE" => Value::Linear(scores),
        "SOFTMAX" => Value::AtClient(scores, "Softmax".into()),
        "LOGISTIC" => Value::AtClient(scores, "Sigmoid".into()),
        other => return refused(format!("the function {other} of its scores is not read; leave it to the client")),
    };
    Ok(Outcome::Values(vec![label, made]))
}

/// A row of coefficients for each score, and what is added to it.
fn scores(node: &Node, x: &Linear) -> Result<Linear, ModelError> {
    let features = features_of(node, x)?;
    let (coefficients, shift) = (node.floats("coefficients"), node.floats("intercepts"));
    let count = coefficients.len() / features.max(1);
    if count == 0 || count * features != coefficients.len() || !(shift.is_empty() || shift.len() == count) {
        return format(format!(
            "layer {}: {} coefficients and {} intercepts for {features} features",
            node.label(),
            coefficients.len(),
            shift.len()
        ));
    }
    let data = (0..coefficients.len()).map(|i| coefficients[i % count * features + i / count]).collect();
    let weights = Value::Constant(Tensor { shape: vec![features, count], data });
    let Some(made) = product(node, &Value::Linear(x.clone()), &weights)? else {
        return format(format!("layer {}: no product", node.label()));
    };
    if shift.is_empty() {
        return Ok(made);
    }
    let bias: Vec<f64> = (0..made.bias.len()).map(|i| shift[i % count]).collect();
    Ok(made.shifted(&bias))
}
