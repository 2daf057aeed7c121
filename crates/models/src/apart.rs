//! A slot for each example: every number of an example has a ciphertext of its own, and a map is products with constants, which take no key.

use crate::circuit::{Maps, Program, Step};
use crate::error::ModelError;
use crate::network::Network;
use crate::placement::Levels;
use std::borrow::Cow;
use sudare_he::ckks::spread::Spread;
use sudare_he::ckks::{Ciphertext, Evaluator, Params, PlainMatrix, State};
use sudare_ring::ops::{IntegerMatrix, PeriodicPoly};
use sudare_ring::{interrupt, threads};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::work::Work;

/// Bytes of operands that the last-level cache has: those of a request that was just read.
const CACHED: usize = 8 << 20;
/// Copying a limb of such an operand for a product, and reading the copy, in passes over one that is nearer, whatever the prime (measured:
/// 1.6 µs and 0.5 µs for 4,096 words, where a pass takes 1.3 µs).
const COPIED: f64 = 2.0;

impl Program {
    /// All layers on the ciphertexts of some examples' numbers; `step` gives what each holds.
    pub fn run_apart<S: AsRef<Step<PeriodicPoly>>>(
        &self,
        e: &Evaluator,
        input: &[Ciphertext],
        step: impl Fn(usize) -> Result<S, ModelError>,
    ) -> Result<Vec<Ciphertext>, ModelError> {
        let last_uses = last_uses(&self.network);
        let mut kept = vec![Cow::Borrowed(input)];
        for k in 0..self.layers() {
            interrupt::check();
            let out = self.layer_apart(e, (k, step(k)?.as_ref()), &kept)?;
            kept.push(Cow::Owned(out));
            kept.iter_mut()
                .zip(&last_uses)
                .filter(|(_, last)| **last == k)
                .for_each(|(values, _)| *values = Cow::Borrowed(&[]));
        }
        match kept.pop() {
            Some(out) => Ok(out.into_owned()),
            None => Err(ModelError::Mixed { what: "a network without layers" }),
        }
    }

    fn layer_apart(
        &self,
        e: &Evaluator,
        (k, step): (usize, &Step<PeriodicPoly>),
        kept: &[Cow<'_, [Ciphertext]>],
    ) -> Result<Vec<Ciphertext>, ModelError> {
        let (layer, level) = (&self.network.layers[k], self.levels[k].from);
        let Maps::Apart(maps) = &step.maps else { return Err(ModelError::Mixed { what: "a layer of another layout" }) };
        let product = |(source, matrix): &(usize, PlainMatrix)| {
            let operand = |c| {
                if Ciphertext::level(c) == level { Ok(Cow::Borrowed(c)) } else { e.drop_to(c, level).map(Cow::Owned) }
            };
            let operands = kept[*source].iter().map(operand).collect::<Result<Vec<Cow<'_, Ciphertext>>, _>>()?;
            Ok(e.matrix_products(matrix, &operands.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
        };
        let sums = maps.iter().map(product).collect::<Result<Vec<_>, ModelError>>()?;
        let one = |row: usize| {
            interrupt::check();
            let mut terms = sums.iter().filter_map(|all| all.get(row));
            let Some(first) = terms.next() else { return Err(ModelError::Mixed { what: "a layer without a source" }) };
            let sum = terms.try_fold(first.clone(), |sum, term| e.add(&sum, term))?;
            let sum = e.add_constant(&e.rescale(&sum)?, layer.bias[row])?;
            let none = |_: &Ciphertext| Err(ModelError::Mixed { what: "a refresh" });
            self.finished((e, &none), (k, &step.function), sum)
        };
        threads::map_alone(layer.bias.len(), one).into_iter().collect()
    }

    /// What a run takes, without one: keys, operations, work; bytes of ciphertexts at most.
    pub fn simulated_apart(&self, params: &Params) -> Result<Ledger, ModelError> {
        let literal = &params.literal().rlwe;
        let mut all = Ledger::default();
        for (k, layer) in self.network.layers.iter().enumerate() {
            let (e, levels) = (Evaluator::with_backend(params, Simulated::new(params))?, self.levels[k]);
            let [size, _] = self.known[k].sizes;
            let [scale, _] = crate::circuit::scales(params, self.activations[k].as_ref(), levels, self.known[k].sizes);
            let state = State { scale, bound: size, noise: scale };
            let sum = e.batch(levels.start, 1, state, Spread::UNKNOWN);
            let none = |_: &_| Err(ModelError::Mixed { what: "a refresh" });
            self.finished((&e, &none), (k, &self.function(&e, k)?), sum)?;
            let (rows, one) = (layer.bias.len(), e.backend().ledger());
            let entries = layer.sources.iter().map(|(_, map)| map.entries()).sum::<usize>() as f64;
            all.relin = all.relin.max(one.relin);
            all.work += (one.work + Work::rescale(literal, levels.from)) * rows as f64;
            // Sums in place take operands from where they are, a pass each.
            let in_place = layer.sources.iter().all(|(_, map)| IntegerMatrix::sums_in_place(rows, map.columns()));
            all.work += match in_place {
                true => Work::passes_at(literal, levels.from, 2.0 * entries).summed(),
                false => Work::integer_products(literal, levels.from, entries),
            };
            // Operands that caches do not hold are read from memory once.
            let operands: usize = layer.sources.iter().map(|(_, map)| map.columns()).sum();
            let bytes = operands * (levels.from + 1) * 16 * params.degree();
            all.work += match bytes {
                0..=CACHED if in_place => Work::default(),
                0..=CACHED => Work { sums: COPIED * (2 * operands * (levels.from + 1)) as f64, ..Work::default() },
                _ => Work { operand_bytes: bytes as f64, ..Work::default() },
            };
            all.counts = all.counts + one.counts * rows;
            all.counters = all.counters + one.counters * rows;
            all.prepared += (8.0 * entries) as u64 + one.prepared;
            all.peak = all.peak.max(self.bytes(params, (k, levels)));
        }
        Ok(all)
    }

    /// Bytes of ciphertexts while a layer is computed.
    fn bytes(&self, params: &Params, (k, levels): (usize, Levels)) -> u64 {
        let last_uses = last_uses(&self.network);
        let one = |level: usize| ((level + 1) * 16 * params.degree()) as u64;
        let values = |v: usize| match v.checked_sub(1) {
            None => self.network.inputs() as u64 * one(self.levels[0].from),
            Some(k) => self.network.layers[k].bias.len() as u64 * one(self.levels[k].to),
        };
        let live = (0..=k).filter(|v| last_uses[*v] >= k).map(values).sum::<u64>();
        let operands: usize = self.network.layers[k].sources.iter().map(|(_, m)| m.columns()).sum();
        live + (operands + 2 * self.network.layers[k].bias.len()) as u64 * one(levels.from)
    }
}

/// The last layer that takes each kept value.
fn last_uses(network: &Network) -> Vec<usize> {
    let mut last = vec![0; network.layers.len() + 1];
    for (k, layer) in network.layers.iter().enumerate() {
        layer.sources.iter().for_each(|(source, _)| last[*source] = k);
    }
    last[network.layers.len()] = usize::MAX;
    last
}
