//! A model's layers on ciphertexts of any backend: diagonals, folds, polynomials, refreshes.

use crate::approximate::{Activation, largest};
use crate::error::ModelError;
use crate::layout::{Layout, babies, diagonals};
use crate::network::Network;
use crate::placement::Levels;
use crate::sparse::Sparse;
use std::sync::Arc;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Ciphertext, CiphertextOf, EncodeAt, Evaluator, Params, PlainMatrix, State};
use sudare_ring::interrupt;
use sudare_rlwe::Backend;

/// What is computed: a network, its polynomials, and where values stand and lie.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub network: Arc<Network>,
    pub activations: Arc<[Option<Activation>]>,
    /// Of the input, and of each layer's result.
    pub layouts: Vec<Layout>,
    pub levels: Vec<Levels>,
    pub known: Vec<Known>,
    /// Bound on inputs.
    pub input: f64,
    /// Examples of a ciphertext.
    pub images: usize,
    /// Whether each number of an example has a ciphertext of its own, in which an example is a slot; else each example has a vector.
    pub apart: bool,
}

/// Bounds that a layer's values and errors are known to keep.
///
/// A value is at the scale Δ/size, so that all are of the size of one: the powers of a polynomial's variable keep their scale then, which
/// otherwise doubles its distance from Δ with each product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// On absolute values after the maps, and after the function.
    pub sizes: [f64; 2],
    /// On errors, in the same places, refreshes included.
    pub errors: [f64; 2],
}

/// What a layer's computation holds of it: encoded diagonals and constants.
pub(crate) struct Step<R> {
    pub maps: Maps<R>,
    pub function: After<R>,
}

/// A layer's maps, each with its source.
pub(crate) enum Maps<R> {
    /// Diagonals, and the copies to fold.
    Together(Vec<(usize, LinearMap<R>, TracePlan)>),
    /// Constants.
    Apart(Vec<(usize, PlainMatrix)>),
}

/// What follows the maps.
pub(crate) enum After<R> {
    Nothing,
    Square,
    Polynomial(Box<PolynomialCircuit<R>>),
}

/// Scales after a layer's maps and after its function: Δ/size, but that a square's operand has the scale whose square is rescaled to that.
pub(crate) fn scales(params: &Params, activation: Option<&Activation>, levels: Levels, sizes: [f64; 2]) -> [f64; 2] {
    let [before, after] = sizes.map(|size| params.scale() / size);
    match activation {
        Some(a) if a.square => [(after * params.prime_at(levels.start) as f64).sqrt(), after],
        _ => [before, after],
    }
}

/// New levels for a ciphertext whose scale times bound is that of the parameters.
pub(crate) type Refresh<'r, B> = &'r (dyn Fn(&CiphertextOf<B>) -> Result<CiphertextOf<B>, ModelError> + Sync);

/// A ciphertext with new levels. It is refreshed as a value of size one, whatever its size, and so keeps its scale.
fn refreshed<B: Backend>(
    e: &Evaluator<B>,
    c: CiphertextOf<B>,
    refresh: Refresh<'_, B>,
) -> Result<CiphertextOf<B>, ModelError> {
    let own = c.state();
    let unit = Ciphertext::from_parts(c.into_inner(), State { scale: e.params().scale(), bound: 1.0, ..own })?;
    let fresh = refresh(&unit)?;
    let noise = fresh.noise();
    Ok(Ciphertext::from_parts(fresh.into_inner(), State { noise, ..own })?)
}

impl Program {
    pub fn layers(&self) -> usize {
        self.network.layers.len()
    }

    /// Bound on a value that is kept.
    pub fn size(&self, source: usize) -> f64 {
        source.checked_sub(1).map_or(self.input, |k| self.known[k].sizes[1])
    }

    /// A layer's diagonals and constants.
    pub fn step<B: Backend>(&self, e: &Evaluator<B>, k: usize) -> Result<Step<B::Row>, ModelError> {
        let (params, layer, levels) = (e.params(), &self.network.layers[k], self.levels[k]);
        let [before, _] = scales(params, self.activations[k].as_ref(), levels, self.known[k].sizes);
        // From an operand's scale to that of the sum.
        let scale = |source: usize| params.prime_at(levels.from) as f64 * before / (params.scale() / self.size(source));
        let function = self.function(e, k)?;
        if self.apart {
            let one = |(source, map): &(usize, Sparse)| {
                let row = |r: usize| map.row(r).map(|(c, v)| (c as u32, v)).collect();
                let rows: Vec<Vec<(u32, f64)>> = (0..map.rows()).map(row).collect();
                Ok((*source, PlainMatrix::new(map.columns(), &rows, scale(*source))?))
            };
            let maps = layer.sources.iter().map(one).collect::<Result<_, ModelError>>()?;
            return Ok(Step { maps: Maps::Apart(maps), function });
        }
        let to = &self.layouts[k + 1];
        let mut maps = Vec::new();
        for (source, map) in &layer.sources {
            let (diagonals, copies) = diagonals(map, [&self.layouts[*source], to], self.images);
            let max_abs = diagonals.values().map(largest).fold(f64::MIN_POSITIVE, f64::max);
            let at = EncodeAt { level: levels.from, scale: scale(*source), max_abs };
            let babies = babies(&diagonals.keys().copied().collect::<Vec<_>>());
            let prepared = LinearMap::on(e, &diagonals, self.images as i64, babies, at)?;
            let stride = (to.period() * self.images) as i64;
            maps.push((*source, prepared, TraceFunction::strided_sums(params, copies, stride)?.doubling()));
        }
        Ok(Step { maps: Maps::Together(maps), function })
    }

    /// What follows a layer's maps.
    pub fn function<B: Backend>(&self, e: &Evaluator<B>, k: usize) -> Result<After<B::Row>, ModelError> {
        let (levels, activation) = (self.levels[k], self.activations[k].as_ref());
        let [before, after] = scales(e.params(), activation, levels, self.known[k].sizes);
        Ok(match activation {
            None => After::Nothing,
            Some(a) if a.square => After::Square,
            Some(a) => {
                After::Polynomial(Box::new(PolynomialCircuit::on(e, &a.polynomial, levels.start, before, after)?))
            }
        })
    }

    /// A layer's function of the sum of its maps, and refreshes.
    pub fn finished<B: Backend>(
        &self,
        (e, refresh): (&Evaluator<B>, Refresh<'_, B>),
        (k, function): (usize, &After<B::Row>),
        sum: CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, ModelError> {
        let (levels, known) = (self.levels[k], self.known[k]);
        // What is known of a value, after a refresh where there is one.
        let settled = |c: CiphertextOf<B>, i: usize| {
            let noise = known.errors[i] * c.scale();
            let c = c.settled(known.sizes[i], noise);
            if !levels.refreshed[i] {
                return Ok(c);
            }
            Ok::<_, ModelError>(refreshed(e, c, refresh)?.settled(known.sizes[i], noise))
        };
        let sum = e.drop_to(&settled(sum, 0)?, levels.start)?;
        match function {
            After::Nothing => Ok(sum),
            After::Square => settled(e.mul_rescale(&sum, &sum)?, 1),
            After::Polynomial(polynomial) => settled(e.polynomial(&sum, polynomial)?, 1),
        }
    }

    /// A layer on the values that were kept.
    fn layer<B: Backend>(
        &self,
        (e, refresh): (&Evaluator<B>, Refresh<'_, B>),
        (k, step): (usize, &Step<B::Row>),
        kept: &[CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, ModelError> {
        let (layer, levels, missing) = (&self.network.layers[k], self.levels[k], "a layer without a source");
        let Maps::Together(maps) = &step.maps else {
            return Err(ModelError::Mixed { what: "a layer of another layout" });
        };
        let mut sum: Option<CiphertextOf<B>> = None;
        for (source, map, fold) in maps {
            let x = e.drop_to(&kept[*source], levels.from)?;
            let y = e.trace(&e.linear_map(&x, map)?, fold)?;
            sum = Some(match sum {
                None => y,
                Some(sum) => e.add(&sum, &y)?,
            });
        }
        let Some(sum) = sum else { return Err(ModelError::Mixed { what: missing }) };
        let max_abs = largest(&layer.bias);
        let bias = || {
            let same: Vec<&[f64]> = vec![&layer.bias; self.images];
            self.layouts[k + 1].slots(&same, self.images, e.params().slots())
        };
        let sum = if max_abs > 0.0 { e.add_slots(&sum, max_abs, bias)? } else { sum };
        self.finished((e, refresh), (k, &step.function), sum)
    }

    /// All layers on one ciphertext; `step` gives what each holds.
    pub fn run<B: Backend, S: AsRef<Step<B::Row>>>(
        &self,
        (e, refresh): (&Evaluator<B>, Refresh<'_, B>),
        input: CiphertextOf<B>,
        step: impl Fn(usize) -> Result<S, ModelError>,
    ) -> Result<CiphertextOf<B>, ModelError> {
        let mut kept = vec![input];
        for k in 0..self.layers() {
            interrupt::check();
            let out = self.layer((e, refresh), (k, step(k)?.as_ref()), &kept)?;
            kept.push(out);
        }
        match kept.pop() {
            Some(out) => Ok(out),
            None => Err(ModelError::Mixed { what: "a network without layers" }),
        }
    }
}

impl<R> AsRef<Self> for Step<R> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Bits over those of the largest value, for its sign and bounds on errors.
const SPARE: u32 = 4;

/// Bits of the modulus that the output takes, so that it holds whatever the last maps make of operands in their intervals.
pub(crate) fn output_bits(
    network: &Network,
    layouts: &[Layout],
    (sizes, input): (&[[f64; 2]], f64),
    log_scale: u32,
) -> u32 {
    let (Some(layer), Some([before, _]), Some(to)) = (network.layers.last(), sizes.last(), layouts.last()) else {
        return log_scale;
    };
    let one = |(source, map): &(usize, Sparse)| {
        let size = source.checked_sub(1).map_or(input, |s| sizes[s][1]);
        let (diagonals, copies) = diagonals(map, [&layouts[*source], to], 1);
        let mut sums = vec![0.0; diagonals.values().next().map_or(1, Vec::len)];
        diagonals.values().for_each(|d| sums.iter_mut().zip(d).for_each(|(s, x)| *s += x.abs()));
        largest(&sums) * size * copies as f64
    };
    let most = (layer.sources.iter().map(one).sum::<f64>() + largest(&layer.bias)) / before;
    log_scale + most.max(1.0).log2().ceil() as u32 + SPARE
}
