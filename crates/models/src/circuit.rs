//! A model's layers on ciphertexts of any backend: diagonals, folds, polynomials.

use crate::approximate::{Activation, largest};
use crate::error::ModelError;
use crate::layout::{babies, diagonals, period, slots};
use crate::network::{Layer, Network};
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{CiphertextOf, EncodeAt, Evaluator, Params};
use sudare_rlwe::Backend;

/// Where a layer begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Of its maps' operands.
    pub from: usize,
    /// Of its result.
    pub to: usize,
}

/// Levels of all layers: as low as the longest chain of layers to the output allows.
pub(crate) fn levels(network: &Network, activations: &[Option<Activation>]) -> Vec<Levels> {
    let depth = |k: usize| 1 + activations[k].as_ref().map_or(0, Activation::depth);
    // Level that each kept value has at least, from the end.
    let layers = network.layers.len();
    let mut needed = vec![0; layers + 1];
    for k in (0..layers).rev() {
        let from = needed[k + 1] + depth(k);
        for (source, _) in &network.layers[k].sources {
            needed[*source] = needed[*source].max(from);
        }
    }
    // A branch that is short begins no higher than where its operands are.
    (0..layers).map(|k| Levels { from: needed[k + 1] + depth(k), to: needed[k + 1] }).collect()
}

/// What a layer's computation holds of it: encoded diagonals and constants.
pub(crate) struct Step<R> {
    maps: Vec<(usize, LinearMap<R>, TracePlan)>,
    function: After<R>,
}

/// What follows the maps.
enum After<R> {
    Nothing,
    Square,
    Polynomial(Box<PolynomialCircuit<R>>),
}

/// Scales after a layer's maps and after its function: Δ/size, but that a square's operand has the scale whose square is rescaled to that.
pub(crate) fn scales(params: &Params, activation: Option<&Activation>, levels: Levels, sizes: [f64; 2]) -> [f64; 2] {
    let [before, after] = sizes.map(|size| params.scale() / size);
    match activation {
        Some(a) if a.square => [(after * params.prime_at(levels.from - 1) as f64).sqrt(), after],
        _ => [before, after],
    }
}

/// Bounds that a layer's values and errors are known to keep.
///
/// A value is at the scale Δ/size, so that all are of the size of one: the powers of a polynomial's variable keep their scale then, which
/// otherwise doubles its distance from Δ with each product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// On absolute values after the maps, and after the function.
    pub sizes: [f64; 2],
    /// On errors, in the same places.
    pub errors: [f64; 2],
}

impl<R> Step<R> {
    pub fn new<B: Backend<Row = R>>(
        e: &Evaluator<B>,
        layer: &Layer,
        activation: Option<&Activation>,
        (levels, images): (Levels, usize),
        (size, known): (impl Fn(usize) -> f64, Known),
    ) -> Result<Self, ModelError> {
        let params = e.params();
        let [before, after] = scales(params, activation, levels, known.sizes);
        let mut maps = Vec::new();
        for (source, map) in &layer.sources {
            let (diagonals, copies) = diagonals(map, images);
            let max_abs = diagonals.values().map(largest).fold(f64::MIN_POSITIVE, f64::max);
            // From the operand's scale to that of the sum.
            let scale = params.prime_at(levels.from) as f64 * before / (params.scale() / size(*source));
            let at = EncodeAt { level: levels.from, scale, max_abs };
            let babies = babies(&diagonals);
            let prepared = LinearMap::on(e, &diagonals, images as i64, babies, at)?;
            let stride = (period(map.rows()) * images) as i64;
            maps.push((*source, prepared, TraceFunction::strided_sums(params, copies, stride)?.doubling()));
        }
        let function = match activation {
            None => After::Nothing,
            Some(a) if a.square => After::Square,
            Some(a) => {
                After::Polynomial(Box::new(PolynomialCircuit::on(e, &a.polynomial, levels.from - 1, before, after)?))
            }
        };
        Ok(Self { maps, function })
    }

    pub fn run<B: Backend<Row = R>>(
        &self,
        e: &Evaluator<B>,
        (layer, levels, images): (&Layer, Levels, usize),
        known: Known,
        kept: &[CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ModelError> {
        let mut sum: Option<CiphertextOf<B>> = None;
        for (source, map, fold) in &self.maps {
            let x = e.drop_to(&kept[*source], levels.from)?;
            let y = e.trace(&e.linear_map(&x, map)?, fold)?;
            sum = Some(match sum {
                None => y,
                Some(sum) => e.add(&sum, &y)?,
            });
        }
        let Some(sum) = sum else { return Err(ModelError::Mixed { what: "a layer without a source" }) };
        let max_abs = largest(&layer.bias);
        let bias = || {
            let same: Vec<&[f64]> = vec![&layer.bias; images];
            slots(&same, images, e.params().slots())
        };
        let sum = if max_abs > 0.0 { e.add_slots(&sum, max_abs, bias)? } else { sum };
        let errors = |c: CiphertextOf<B>, i: usize| {
            let noise = known.errors[i] * c.scale();
            c.settled(known.sizes[i], noise)
        };
        let sum = errors(sum, 0);
        match &self.function {
            After::Nothing => Ok(sum),
            After::Square => Ok(errors(e.mul_rescale(&sum, &sum)?, 1)),
            After::Polynomial(polynomial) => Ok(errors(e.polynomial(&sum, polynomial)?, 1)),
        }
    }
}

/// Bits of the lowest prime over those of the largest value, for its sign and bounds on errors.
const SPARE: u32 = 4;

/// Bits of the lowest prime, so that the output's maps hold whatever their operands are.
pub(crate) fn lowest_prime(network: &Network, sizes: &[[f64; 2]], input: f64, log_scale: u32) -> u32 {
    let (Some(layer), Some([before, _])) = (network.layers.last(), sizes.last()) else { return log_scale };
    let one = |(source, map): &(usize, crate::sparse::Sparse)| {
        let size = source.checked_sub(1).map_or(input, |s| sizes[s][1]);
        let (diagonals, copies) = diagonals(map, 1);
        let mut sums = vec![0.0; diagonals.values().next().map_or(1, Vec::len)];
        diagonals.values().for_each(|d| sums.iter_mut().zip(d).for_each(|(s, x)| *s += x.abs()));
        largest(&sums) * size * copies as f64
    };
    let most = (layer.sources.iter().map(one).sum::<f64>() + largest(&layer.bias)) / before;
    log_scale + most.max(1.0).log2().ceil() as u32 + SPARE
}

/// Parameters' slots that a network takes for one example.
pub(crate) fn widest(network: &Network) -> usize {
    let maps = network.layers.iter().flat_map(|l| &l.sources).map(|(_, m)| m.rows().max(m.columns()));
    // A network of constants has no map and takes a slot.
    period(maps.fold(1, usize::max))
}

/// Whether parameters hold a network's layers for so many examples.
pub(crate) fn fits(network: &Network, images: usize, params: &Params) -> bool {
    widest(network).checked_mul(images).is_some_and(|all| all <= params.slots())
}
