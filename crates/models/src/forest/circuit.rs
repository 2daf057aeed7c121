//! What is computed of encrypted ranks around the tables, on any backend.

use super::places::{Part, Places};
use crate::error::ModelError;
use crate::layout::babies;
use std::collections::BTreeMap;
use sudare_he::circuits::bootstrapping::BootstrapParams;
use sudare_he::circuits::linear_map::{Diagonals, LinearMap};
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::ckks::spread::Spread;
use sudare_he::ckks::{CiphertextOf, EncodeAt, Evaluator, State};
use sudare_he::discrete::packed_scale;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::Backend;
use sudare_rlwe::simulated::{Ledger, Simulated};

/// What a server runs, and its simulation.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub params: BootstrapParams,
    pub places: Places,
    pub parts: Vec<Part>,
    pub outputs: usize,
    /// The largest value of a leaf.
    pub size: f64,
    /// Bound on scores.
    pub largest: f64,
    /// Bound on their errors.
    pub error: f64,
}

/// Encoded diagonals and values of leaves of a part.
#[derive(Debug)]
pub(crate) struct Encoded<R = PeriodicPoly> {
    pub picking: LinearMap<R>,
    values: Vec<LinearMap<R>>,
}

impl Program {
    /// A product with numbers, slot by slot.
    fn product<B: Backend>(e: &Evaluator<B>, values: Vec<f64>, at: EncodeAt) -> Result<LinearMap<B::Row>, ModelError> {
        let diagonals: Diagonals<f64> = BTreeMap::from([(0, values)]);
        Ok(LinearMap::on(e, &diagonals, 1, 1, at)?)
    }

    /// Encodes a part.
    pub fn encoded<B: Backend>(&self, e: &Evaluator<B>, part: &Part) -> Result<Encoded<B::Row>, ModelError> {
        let (params, level) = (e.params(), self.params.input_level());
        // Ranks keep their scale to the last bit.
        let at = EncodeAt { level: level + 1, scale: params.prime_at(level + 1) as f64, max_abs: 1.0 };
        let picking = LinearMap::on(e, &part.diagonals(), self.places.rows as i64, babies(&part.offsets()), at)?;
        let at = EncodeAt { level, scale: params.prime_at(level) as f64 / self.size, max_abs: self.size };
        let one = |group: usize| Self::product(e, part.values(group).to_vec(), at);
        let values = (0..self.places.groups(self.outputs)).map(one).collect::<Result<_, _>>()?;
        Ok(Encoded { picking, values })
    }

    /// For each group what keeps its scores alone.
    pub fn masks<B: Backend>(&self, e: &Evaluator<B>) -> Result<Vec<LinearMap<B::Row>>, ModelError> {
        let level = self.params.input_level() - 1;
        let at = EncodeAt { level, scale: e.params().prime_at(level) as f64, max_abs: 1.0 };
        let one = |group: usize| {
            let mut kept = vec![0.0; self.places.slots()];
            self.places.of_group(group, self.outputs).for_each(|o| {
                let first = self.places.score(o, 0);
                kept[first..first + self.places.rows].fill(1.0);
            });
            Self::product(e, kept, at)
        };
        (0..self.places.groups(self.outputs)).map(one).collect()
    }

    /// The rotations between both tables.
    pub fn steps(&self) -> Vec<i64> {
        let all = 0..self.places.steps.trailing_zeros();
        all.map(|j| ((self.places.ways * self.places.rows) << j) as i64).collect()
    }

    /// Indicators of a part times values of leaves, summed over ways, group by group.
    pub fn summed<B: Backend>(
        &self,
        e: &Evaluator<B>,
        indicators: &CiphertextOf<B>,
        encoded: &Encoded<B::Row>,
    ) -> Result<Vec<CiphertextOf<B>>, ModelError> {
        let fold = TraceFunction::strided_sums(e.params(), self.places.ways, self.places.rows as i64)?.doubling();
        let one = |values: &LinearMap<B::Row>| {
            let c = e.linear_map(indicators, values)?;
            // At most one way of a tree is followed, so that sums are no larger than scores; partial ones are not, and are no larger than
            // values of all trees.
            let noise = self.error * c.scale();
            Ok(e.trace(&c.settled(self.largest, noise), &fold)?.settled(self.largest, noise))
        };
        encoded.values.iter().map(one).collect()
    }

    /// Sums over parts, with nothing left beside the scores.
    pub fn masked<B: Backend>(
        &self,
        e: &Evaluator<B>,
        sums: &[Vec<CiphertextOf<B>>],
        masks: &[LinearMap<B::Row>],
    ) -> Result<Vec<CiphertextOf<B>>, ModelError> {
        let one = |(group, mask): (usize, &LinearMap<B::Row>)| {
            let missing = ModelError::Mixed { what: "a forest without a part" };
            let mut parts = sums.iter().filter_map(|part| part.get(group));
            let mut sum = parts.next().cloned().ok_or(missing)?;
            for more in parts {
                e.add_assign(&mut sum, more)?;
            }
            let noise = self.error * sum.scale();
            let out = e.linear_map(&sum.settled(self.largest, noise), mask)?;
            Ok(out.settled(self.largest, noise))
        };
        masks.iter().enumerate().map(one).collect()
    }

    /// What a run on one ciphertext takes beside its tables.
    pub fn simulated(&self, scale: f64, max_abs: f64) -> Result<Ledger, ModelError> {
        let (params, level) = (self.params.params(), self.params.input_level());
        let e = Evaluator::with_backend(params, Simulated::new(params))?;
        let input = e.secret_encryptions(EncodeAt { level: level + 1, scale, max_abs }, 1)?;
        let masks = self.masks(&e)?;
        let after = |scale: f64| e.batch(level, 1, State { scale, bound: 1.0, noise: 1.0 }, Spread::UNKNOWN);
        let mut sums = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let encoded = self.encoded(&e, part)?;
            e.linear_map(&input, &encoded.picking)?;
            let counts = after(packed_scale(&self.params, self.places.depth as u64 + 1)?);
            self.steps().into_iter().try_for_each(|step| e.rotate(&counts, step).map(|_| ()))?;
            sums.push(self.summed(&e, &after(packed_scale(&self.params, 2)?), &encoded)?);
        }
        self.masked(&e, &sums, &masks)?;
        Ok(e.backend().ledger())
    }
}
