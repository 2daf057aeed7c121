//! Networks: affine maps of what was kept before, each with a function of every element after it.

mod import;
mod ml;
mod operators;
mod windows;

use crate::error::{ModelError, Unsupported, UnsupportedNodes, format};
use crate::function::Function;
use crate::sparse::{Linear, Sparse};
use crate::tensor::elements;
use std::collections::BTreeMap;

/// An affine map and a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The name of the node that the function is, or of the output.
    pub name: String,
    /// What it takes: 0 for the input, k + 1 for the result of layer k, each with its matrix.
    pub sources: Vec<(usize, Sparse)>,
    /// What is added.
    pub bias: Vec<f64>,
    /// The function of every element.
    pub function: Function,
    /// The shape of its result.
    pub shape: Vec<usize>,
}

impl Layer {
    /// Σ M·x + b, of the values that were kept.
    pub fn affine(&self, kept: &[Vec<f64>]) -> Vec<f64> {
        let mut sum = self.bias.clone();
        for (source, map) in &self.sources {
            sum.iter_mut().zip(map.apply(&kept[*source])).for_each(|(s, x)| *s += x);
        }
        sum
    }
}

/// A network: what it computes of one example.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The shape of an example.
    pub input: Vec<usize>,
    /// The shape of a result.
    pub output: Vec<usize>,
    /// In the order in which they are computed; the last one is the output.
    pub layers: Vec<Layer>,
    /// The function at the end that the client computes: softmax, say.
    pub dropped: Option<String>,
}

impl Network {
    /// A network from an ONNX file. What is linear between two functions is one layer; but where a convolution or a matrix product takes
    /// what another linear operator than a change of index gave, that is a layer without a function, and compiling decides whether the two are
    /// composed.
    ///
    /// # Errors
    /// [`ModelError::Format`] for bytes that are no ONNX file or over a limit; [`ModelError::Unsupported`] lists all nodes that are
    /// not computed on ciphertexts.
    pub fn from_onnx(bytes: &[u8]) -> Result<Self, ModelError> {
        import::import(&crate::onnx::read(bytes)?)
    }

    /// A chain of dense layers, as scikit-learn's estimators have them: for each a matrix of `inputs` × `outputs` numbers row by row, what is
    /// added, and a function.
    ///
    /// # Errors
    /// [`ModelError::Format`] for matrices that do not go together, or numbers that are not finite.
    pub fn dense(inputs: usize, layers: Vec<Dense>) -> Result<Self, ModelError> {
        let mut chain = Chain::new(vec![inputs])?;
        for Dense { name, weights, bias, function } in layers {
            let (rows, columns) = (chain.value.bias.len(), bias.len());
            if columns == 0 || rows.checked_mul(columns) != Some(weights.len()) {
                return format(format!("{name} has {} weights, and {rows} × {columns} are needed", weights.len()));
            }
            let mut map = Sparse::empty(rows);
            let mut entries = Vec::new();
            for c in 0..columns {
                let column = (0..rows).map(|r| (r as u32, weights[r * columns + c]));
                entries.extend(column.filter(|(_, w)| *w != 0.0));
                map.push_row(&mut entries)?;
            }
            chain.value = chain.value.mapped(&map, vec![columns])?.shifted(&bias);
            if function != Function::Identity {
                chain.apply(&name, function)?;
            }
        }
        chain.finish("output", None)
    }

    /// Numbers of an example.
    pub fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    /// Numbers of a result.
    pub fn outputs(&self) -> usize {
        self.output.iter().product()
    }

    /// The values that layers keep: the example itself, then each layer's result by a function of number and values.
    pub(crate) fn run(&self, example: &[f64], mut apply: impl FnMut(usize, Vec<f64>) -> Vec<f64>) -> Vec<Vec<f64>> {
        let mut kept = vec![example.to_vec()];
        for (k, layer) in self.layers.iter().enumerate() {
            let sum = layer.affine(&kept);
            kept.push(apply(k, sum));
        }
        kept
    }

    /// Its result, in the clear.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn evaluate(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        self.check(example)?;
        let function = |k: usize, x: Vec<f64>| x.into_iter().map(|x| self.layers[k].function.value(x)).collect();
        Ok(self.run(example, function).pop().into_iter().flatten().collect())
    }

    /// The network of inputs that were divided by a factor each, or of the same ones without factors.
    pub(crate) fn of_scaled_inputs(&self, factors: &[f64]) -> Result<Self, ModelError> {
        let mut out = self.clone();
        if factors.is_empty() {
            return Ok(out);
        }
        let sources = out.layers.iter_mut().flat_map(|layer| &mut layer.sources);
        for (_, map) in sources.filter(|(source, _)| *source == 0) {
            map.scale_columns(factors)?;
        }
        Ok(out)
    }

    /// Layers without a function that others take: the linear parts of which maps can be composed.
    pub(crate) fn parts(&self) -> Vec<usize> {
        let last = self.layers.len() - 1;
        (0..last).filter(|k| self.layers[*k].function == Function::Identity).collect()
    }

    /// The same function with the parts `kept` alone: maps of the others are composed with those that take them. Of each of its layers the
    /// number here.
    pub(crate) fn composed(&self, kept: &[usize]) -> Result<(Self, Vec<usize>), ModelError> {
        let (parts, mut values) = (self.parts(), vec![Linear::kept(0, self.input.clone())?]);
        let (mut layers, mut numbers) = (Vec::new(), Vec::new());
        for (k, layer) in self.layers.iter().enumerate() {
            let shape = || layer.shape.clone();
            let mut sum = Linear { shape: shape(), terms: BTreeMap::new(), bias: layer.bias.clone() };
            for (source, map) in &layer.sources {
                sum = sum.plus(&values[*source].mapped(map, shape())?)?;
            }
            if parts.contains(&k) && !kept.contains(&k) {
                values.push(sum);
                continue;
            }
            values.push(Linear::kept(layers.len() + 1, shape())?);
            let sources = sum.terms.into_iter().map(|(source, map)| (source, map.compacted())).collect();
            let (name, function) = (layer.name.clone(), layer.function.clone());
            layers.push(Layer { name, sources, bias: sum.bias, function, shape: shape() });
            numbers.push(k);
        }
        let (input, output) = (self.input.clone(), self.output.clone());
        Ok((Self { input, output, layers, dropped: self.dropped.clone() }, numbers))
    }

    fn check(&self, example: &[f64]) -> Result<(), ModelError> {
        let (found, expected) = (example.len(), self.inputs());
        if found == expected { Ok(()) } else { Err(ModelError::Shape { what: "an example", found, expected }) }
    }
}

/// A dense layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Its name in messages.
    pub name: String,
    /// Inputs × outputs, row by row.
    pub weights: Vec<f64>,
    /// One number for each output.
    pub bias: Vec<f64>,
    /// The function of every output.
    pub function: Function,
}

/// A network in the making.
pub(crate) struct Chain {
    input: Vec<usize>,
    layers: Vec<Layer>,
    /// The value of a chain without branches.
    pub value: Linear,
}

impl Chain {
    pub fn new(input: Vec<usize>) -> Result<Self, ModelError> {
        if elements(&input).is_none_or(|count| count == 0) {
            return format(format!("the shape {input:?} of an example has no elements, or too many"));
        }
        Ok(Self { value: Linear::kept(0, input.clone())?, input, layers: Vec::new() })
    }

    /// A function of `value`, which is then its result.
    pub fn apply(&mut self, name: &str, function: Function) -> Result<(), ModelError> {
        let shape = self.value.shape.clone();
        let value = std::mem::replace(&mut self.value, Linear::kept(self.layers.len() + 1, shape.clone())?);
        let (sources, bias) = (value.terms.into_iter().collect(), value.bias);
        self.layers.push(Layer { name: name.to_owned(), sources, bias, function, shape });
        Ok(())
    }

    /// What layer `k` takes the function of.
    pub fn before(&self, k: usize) -> Option<(Linear, &Function)> {
        let layer = self.layers.get(k)?;
        let (terms, bias) = (layer.sources.iter().cloned().collect(), layer.bias.clone());
        Some((Linear { shape: vec![bias.len()], terms, bias }, &layer.function))
    }

    /// The network whose output is `value`.
    pub fn finish(mut self, name: &str, dropped: Option<String>) -> Result<Network, ModelError> {
        let output = self.value.shape.clone();
        let last = self.layers.len();
        let is_last = last > 0
            && self.value.bias.iter().all(|b| *b == 0.0)
            && self.value.terms.len() == 1
            && self.value.terms.get(&last).is_some_and(Sparse::is_identity);
        if !is_last {
            self.apply(name, Function::Identity)?;
        }
        let layers = prune(self.layers);
        let finite = |layer: &Layer| {
            layer.bias.iter().all(|b| b.is_finite()) && layer.sources.iter().all(|(_, m)| m.is_finite())
        };
        if let Some(layer) = layers.iter().find(|layer| !finite(layer)) {
            return format(format!(
                "layer {} has a weight that is not finite; train it again, or scale its inputs",
                layer.name
            ));
        }
        if layers.iter().all(|layer| layer.sources.iter().all(|(source, _)| *source != 0)) {
            return format("its output does not depend on the input");
        }
        Ok(Network { input: self.input, output, layers, dropped })
    }
}

/// Without layers that nothing after them takes, and without matrices of zeros beside others.
fn prune(layers: Vec<Layer>) -> Vec<Layer> {
    let mut used = vec![false; layers.len() + 1];
    used[layers.len()] = true;
    for (k, layer) in layers.iter().enumerate().rev() {
        if used[k + 1] {
            layer.sources.iter().for_each(|(source, _)| used[*source] = true);
        }
    }
    let mut number = vec![0; layers.len() + 1];
    let mut next = 0;
    for k in 1..=layers.len() {
        next += usize::from(used[k]);
        number[k] = next;
    }
    let kept = layers.into_iter().zip(&used[1..]).filter(|(_, used)| **used).map(|(layer, _)| layer);
    kept.map(|mut layer| {
        layer.sources.iter_mut().for_each(|(source, _)| *source = number[*source]);
        if layer.sources.iter().any(|(_, m)| m.entries() > 0) {
            layer.sources.retain(|(_, m)| m.entries() > 0);
        }
        layer
    })
    .collect()
}

/// The one error of all nodes that are not computed.
pub(crate) fn refuse(nodes: Vec<Unsupported>) -> ModelError {
    ModelError::Unsupported(UnsupportedNodes(nodes))
}
