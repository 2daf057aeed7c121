//! What a refresh takes: keys, operations, memory, learned by running it on a backend that computes nothing.

use super::layout::Layout;
use super::params::BootstrapParams;
use super::refresh::{Bootstrapper, Case, Kind, mask_map};
use crate::circuits::mod1::{Series, Step as Jump};
use crate::ckks::{EncodeAt, Evaluator, State};
use crate::error::HeError;
use std::collections::{BTreeMap, BTreeSet};
use sudare_ring::count::Counts;
use sudare_rlwe::Counters;
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::work::Work;

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Done {
    pub counters: Counters,
    pub counts: Counts,
}

impl Done {
    fn plus(&self, other: &Self) -> Self {
        Self { counters: self.counters + other.counters, counts: self.counts + other.counts }
    }
}

/// What a whole refresh takes.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Galois elements, each with the level that its key has to reach.
    pub galois: BTreeMap<u64, usize>,
    /// Those of StC.
    pub low: BTreeSet<u64>,
    /// The level that the relinearisation key has to reach.
    pub relin: Option<usize>,
    /// Bytes of the transforms' diagonals.
    pub diagonals: u64,
    /// Most bytes of ciphertexts and of what operations work in.
    pub working: u64,
    /// What all steps cost.
    pub cost: Work,
}

impl BootstrapParams {
    /// A refresh of `count` ciphertexts of one kind that fill their scale, by step, and all in all.
    ///
    /// # Errors
    /// None for a set that was built.
    pub(super) fn simulated(&self, kind: Kind, count: usize) -> Result<([Done; 5], Figures), HeError> {
        let layout = self.layout();
        let high = Simulated::new(self.params());
        let low = high.beside(self.low());
        let b = Bootstrapper::on_backends(self, None, high, low)?;
        let prepared = ledgers(&b).iter().map(|ledger| ledger.prepared).sum::<u64>();
        let mask = if layout.is_sparse() { self.mask_bytes()? } else { 0 };
        let (scale, target) = (layout.scale(), layout.scale());
        let at = EncodeAt { level: layout.input_level(), scale: layout.user_scale(), max_abs: 1.0 };
        let beside = Evaluator::with_backend(self.low(), b.low().backend().beside(self.low()))?;
        let input = match self.literal().is_half() {
            true => beside.encryptions(EncodeAt { scale: 1.0, ..at }, 1)?,
            false => b.evaluator().encryptions(at, 1)?,
        };
        let case = |_| -> Result<Case<()>, HeError> {
            let (plan, value) = layout.reduction(scale, target)?;
            Ok(Case { factor: 1, scale, target, program: plan.encode_for(b.evaluator(), vec![value])? })
        };
        let (inputs, mut marks) = (vec![&input; count], Vec::with_capacity(11));
        match self.literal() {
            // A product of the small ring that was packed.
            half if half.is_half() => {
                let product = beside.inner.dot(&[input.inner()], &[input.inner()])?;
                marks.push(sum(&ledgers(&b)));
                let state = State { scale, bound: 1.0, noise: 0.0 };
                let series = b.plan_series(&[&steepest(layout)?], state)?;
                for _ in 0..count {
                    b.series_with_progress(&product, &series, &mut |_| marks.push(sum(&ledgers(&b))))?;
                }
            }
            two if two.is_iterated() => {
                b.iterated(&inputs, kind, &mut |_| marks.push(sum(&ledgers(&b))))?;
            }
            _ => {
                let cases = (0..count).map(case).collect::<Result<Vec<_>, _>>()?;
                b.run(&inputs, &cases, kind, &mut |_| marks.push(sum(&ledgers(&b))))?;
            }
        }
        let after = ledgers(&b);
        marks.push(sum(&after));
        let [up, down] = after;
        let cost = up.work + down.work;
        let mut galois = up.galois;
        for element in down.galois.keys() {
            let level = galois.entry(*element).or_insert(layout.levels.input);
            *level = layout.levels.input.max(*level);
        }
        let figures = Figures {
            galois,
            low: down.galois.into_keys().collect(),
            relin: up.relin,
            diagonals: prepared - mask + layout.keyed().map_or(0, |stage| stage.bytes()),
            working: up.peak,
            cost,
        };
        let one = |i: usize| match (marks.get(i), marks.get(i + 1)) {
            (Some(before), Some(after)) => difference(after, before),
            _ => Done::default(),
        };
        let steps: [Done; 5] = std::array::from_fn(one);
        // Of two refreshes in one those of both.
        let again = |i: usize| match self.literal().is_iterated() {
            true => steps[i].plus(&one(steps.len() + i)),
            false => steps[i],
        };
        Ok((std::array::from_fn(again), figures))
    }

    /// Bytes of the map that undoes the transforms of sparse slots.
    fn mask_bytes(&self) -> Result<u64, HeError> {
        let e = Evaluator::with_backend(self.params(), Simulated::new(self.params()))?;
        mask_map(self.layout(), &e)?;
        Ok(e.backend().ledger().prepared)
    }
}

/// A series of as many terms as the set's largest.
fn steepest(layout: &Layout) -> Result<Series, HeError> {
    let (_, terms) = layout.exponential()?;
    Series::step(Jump { centre: 0.5, near: 0.05, far: 0.25, weight: 1.0 }, terms - 1)
}

fn ledgers(b: &Bootstrapper<Simulated>) -> [Ledger; 2] {
    [b.evaluator(), b.low()].map(|evaluator: &Evaluator<Simulated>| evaluator.backend().ledger())
}

fn sum([a, b]: &[Ledger; 2]) -> Done {
    Done { counters: a.counters, counts: a.counts }.plus(&Done { counters: b.counters, counts: b.counts })
}

/// What was done since.
fn difference(after: &Done, before: &Done) -> Done {
    let (a, b) = (after.counters, before.counters);
    let counters = Counters {
        add: a.add - b.add,
        rot: a.rot - b.rot,
        cmult: a.cmult - b.cmult,
        mult: a.mult - b.mult,
        relin: a.relin - b.relin,
        key_switches: a.key_switches - b.key_switches,
    };
    let (a, b) = (after.counts, before.counts);
    let counts = Counts {
        transforms: a.transforms - b.transforms,
        conversions: a.conversions - b.conversions,
        decompositions: a.decompositions - b.decompositions,
        inner_products: a.inner_products - b.inner_products,
        key_bytes: a.key_bytes - b.key_bytes,
    };
    Done { counters, counts }
}
