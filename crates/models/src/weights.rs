//! A compiled model's file: its plan, and the weights that the plan names by their digest.
//!
//! Little-endian: 8 bytes of a magic, the length of the plan's text (u64), the text, and the weights: the length of a header (u64), the header
//! as JSON, and for each layer, in its order, the bias, for each source its parts, and the polynomial's radius, error and coefficients. The parts
//! of a matrix: of each row its stencil and its first column (u32), of each stencil where it begins and ends and whether it has a mask (u32),
//! columns (u32) and values of entries, and words of masks (u64). Other numbers are doubles.

use crate::approximate::Activation;
use crate::error::{ModelError, format};
use crate::function::Function;
use crate::network::{Layer, Network};
use crate::plan::Plan;
use crate::sparse::{Parts, Sparse};
use crate::tensor::MAX_ELEMENTS;
use serde::{Deserialize, Serialize};
use sudare_he::circuits::polynomial::{Basis, Polynomial};

pub(crate) const MAGIC: &[u8; 8] = b"SUDMODL2";
/// Layers at most.
const MAX_LAYERS: usize = 1 << 14;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    input: Vec<usize>,
    output: Vec<usize>,
    dropped: Option<String>,
    layers: Vec<HeaderLayer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLayer {
    name: String,
    function: Function,
    shape: Vec<usize>,
    sources: Vec<HeaderSource>,
    /// Coefficients of the polynomial, and whether they are of powers.
    polynomial: Option<(usize, bool)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderSource {
    from: usize,
    stencils: usize,
    values: usize,
    masks: usize,
}

/// BLAKE3 of the weights, as a plan has it.
pub(crate) fn digest(weights: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("sudare model weights v1");
    hasher.update(weights);
    hasher.finalize().to_hex().to_string()
}

pub(crate) fn with_plan(plan: &Plan, weights: &[u8]) -> Result<Vec<u8>, ModelError> {
    let text = plan.to_json().as_bytes();
    Ok([MAGIC.as_slice(), &(text.len() as u64).to_le_bytes(), text, weights].concat())
}

/// The plan's text and the weights of a file.
pub(crate) fn split(bytes: &[u8]) -> Result<(&str, &[u8]), ModelError> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return format("it is not a compiled model; name the file that was compiled");
    };
    let mut rest = Reader(rest);
    let text = rest.block()?;
    match std::str::from_utf8(text) {
        Ok(text) => Ok((text, rest.0)),
        Err(_) => format("its plan is not text; copy it again"),
    }
}

pub(crate) fn write(network: &Network, activations: &[Option<Activation>]) -> Result<Vec<u8>, ModelError> {
    let source = |(from, map): &(usize, Sparse)| {
        let Parts { stencils, value, masks, .. } = map.parts();
        HeaderSource { from: *from, stencils: stencils.len(), values: value.len(), masks: masks.len() }
    };
    let layer = |(layer, activation): (&Layer, &Option<Activation>)| HeaderLayer {
        name: layer.name.clone(),
        function: layer.function.clone(),
        shape: layer.shape.clone(),
        sources: layer.sources.iter().map(source).collect(),
        polynomial: activation
            .as_ref()
            .map(|a| (a.polynomial.coefficients().len(), a.polynomial.basis() == Basis::Power)),
    };
    let layers = network.layers.iter().zip(activations).map(layer).collect();
    let header = Header {
        input: network.input.clone(),
        output: network.output.clone(),
        dropped: network.dropped.clone(),
        layers,
    };
    let Ok(header) = serde_json::to_vec(&header) else { return format("a function has a number that is not finite") };
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header);
    for (layer, activation) in network.layers.iter().zip(activations) {
        let doubles = |out: &mut Vec<u8>, all: &[f64]| all.iter().for_each(|x| out.extend(x.to_le_bytes()));
        doubles(&mut out, &layer.bias);
        for (_, map) in &layer.sources {
            let Parts { rows, stencils, offset, value, masks } = map.parts();
            let words = rows.as_flattened().iter().chain(stencils.as_flattened()).chain(offset);
            words.for_each(|x| out.extend(x.to_le_bytes()));
            doubles(&mut out, value);
            masks.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        if let Some(a) = activation {
            doubles(&mut out, &[a.reach, a.error]);
            a.polynomial.coefficients().iter().for_each(|c| doubles(&mut out, &[c.re]));
        }
    }
    Ok(out)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ModelError> {
        match self.0.split_at_checked(count) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => format("it is cut off; copy it again"),
        }
    }

    /// As many bytes as the number before says.
    fn block(&mut self) -> Result<&'a [u8], ModelError> {
        let (chunks, _) = self.take(8)?.as_chunks::<8>();
        let length = chunks.iter().map(|c| u64::from_le_bytes(*c)).sum::<u64>();
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => format("it is cut off; copy it again"),
        }
    }

    /// Nothing is allocated for more numbers than there are bytes.
    fn doubles(&mut self, count: usize) -> Result<Vec<f64>, ModelError> {
        let (chunks, _) = self.take(count.saturating_mul(8))?.as_chunks::<8>();
        Ok(chunks.iter().map(|c| f64::from_le_bytes(*c)).collect())
    }

    fn words(&mut self, count: usize) -> Result<Vec<u32>, ModelError> {
        let (chunks, _) = self.take(count.saturating_mul(4))?.as_chunks::<4>();
        Ok(chunks.iter().map(|c| u32::from_le_bytes(*c)).collect())
    }

    fn groups<const N: usize>(&mut self, count: usize) -> Result<Vec<[u32; N]>, ModelError> {
        Ok(self.words(count.saturating_mul(N))?.as_chunks::<N>().0.to_vec())
    }

    fn masks(&mut self, count: usize) -> Result<Vec<u64>, ModelError> {
        let (chunks, _) = self.take(count.saturating_mul(8))?.as_chunks::<8>();
        Ok(chunks.iter().map(|c| u64::from_le_bytes(*c)).collect())
    }
}

pub(crate) fn read(weights: &[u8]) -> Result<(Network, Vec<Option<Activation>>), ModelError> {
    let mut rest = Reader(weights);
    let Ok(header) = serde_json::from_slice::<Header>(rest.block()?) else {
        return format("its header is damaged; copy it again");
    };
    let count = |shape: &[usize]| {
        let all = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        all.filter(|all| (1..=MAX_ELEMENTS).contains(all))
    };
    let (Some(inputs), Some(outputs)) = (count(&header.input), count(&header.output)) else {
        return format("its shapes are damaged; copy it again");
    };
    if header.layers.is_empty() || header.layers.len() > MAX_LAYERS {
        return format("its layers are damaged; copy it again");
    }
    let (mut sizes, mut layers, mut activations) = (vec![inputs], Vec::new(), Vec::new());
    for layer in header.layers {
        let Some(rows) = count(&layer.shape) else { return format("its shapes are damaged; copy it again") };
        let bias = rest.doubles(rows)?;
        let mut sources = Vec::new();
        for HeaderSource { from, stencils, values, masks } in layer.sources {
            let Some(columns) = sizes.get(from).copied() else { return format("a layer takes what comes after it") };
            let (rows, stencils) = (rest.groups(rows)?, rest.groups(stencils)?);
            let (offset, value, masks) = (rest.words(values)?, rest.doubles(values)?, rest.masks(masks)?);
            let parts = Parts { rows: &rows, stencils, offset: &offset, value: &value, masks: &masks };
            sources.push((from, Sparse::of_parts(columns, &parts)?));
        }
        let activation = match layer.polynomial {
            None => None,
            Some((count, powers)) => {
                let (about, coefficients) = (rest.doubles(2)?, rest.doubles(count)?);
                let (reach, error) = (about[0], about[1]);
                let polynomial = match powers {
                    // As they were scaled: of u = x/reach.
                    true => {
                        let unscaled: Vec<f64> =
                            coefficients.iter().enumerate().map(|(k, c)| c / reach.powi(k as i32)).collect();
                        Polynomial::power(&unscaled, reach)?
                    }
                    false => Polynomial::chebyshev(&coefficients, -reach, reach)?,
                };
                if polynomial.degree() == 0 || !(error.is_finite() && error >= 0.0) {
                    return format("one of its polynomials is damaged; copy it again");
                }
                let square = layer.function == Function::Power(2);
                Some(Activation { reach, polynomial, error, square })
            }
        };
        let identity = layer.function == Function::Identity;
        if bias.is_empty()
            || sources.is_empty()
            || bias.iter().any(|b| !b.is_finite())
            || identity != activation.is_none()
        {
            return format("one of its layers is damaged; copy it again");
        }
        sizes.push(bias.len());
        layers.push(Layer { name: layer.name, sources, bias, function: layer.function, shape: layer.shape });
        activations.push(activation);
    }
    if sizes.last() != Some(&outputs) || !rest.0.is_empty() {
        return format("its shapes are damaged, or there are bytes after its end; copy it again");
    }
    let network = Network { input: header.input, output: header.output, layers, dropped: header.dropped };
    Ok((network, activations))
}
