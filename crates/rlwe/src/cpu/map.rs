//! Sums of products with rotations, with two kinds of steps (double hoisting): what linear maps on slots are made of.

use super::Cpu;
use crate::backend::{Divisor, MapEnd};
use crate::ciphertext::Ciphertext;
use crate::counters::Counters;
use crate::error::RlweError;
use crate::keys::GaloisKey;
use crate::params::Params;
use crate::switching::{self, ExtendedPair};
use std::collections::BTreeSet;
use std::sync::Arc;
use sudare_ring::ops::{Digits, Image, Pair, PeriodicPoly, Root};
use sudare_ring::{Eval, Poly};

/// A ciphertext that babies are hoisted from: the map's input, or the root before turned once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootStep {
    /// Galois element that makes it of the root before; 1 for the input.
    pub turn: u64,
    /// Galois elements of its babies; 1 stands for the root itself.
    pub babies: Vec<u64>,
}

/// A sum of products with babies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiantStep {
    /// Galois element that turns it, or in a chain what has been summed before it.
    pub turn: u64,
    /// Which baby each of its rows multiplies, counted root after root.
    pub babies: Vec<usize>,
}

/// The steps of a linear map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSteps {
    /// What babies are hoisted from.
    pub roots: Vec<RootStep>,
    /// Sums.
    pub giants: Vec<GiantStep>,
    /// Whether giants are summed by Horner's rule, the highest first.
    pub chained: bool,
}

impl MapSteps {
    /// Galois elements whose keys it needs, each once.
    pub fn elements(&self) -> Vec<u64> {
        let babies = self.roots.iter().flat_map(|r| r.babies.iter().copied().chain([r.turn]));
        let all: BTreeSet<u64> = babies.chain(self.giants.iter().map(|g| g.turn)).filter(|e| *e != 1).collect();
        all.into_iter().collect()
    }

    /// Babies, roots and giant steps that are rotations, and products.
    pub fn counts(&self) -> [usize; 4] {
        let turns = |elements: &mut dyn Iterator<Item = u64>| elements.filter(|e| *e != 1).count();
        let babies = turns(&mut self.roots.iter().flat_map(|r| r.babies.iter().copied()));
        let roots = turns(&mut self.roots.iter().map(|r| r.turn));
        let giants = turns(&mut self.giants.iter().map(|g| g.turn));
        [babies, roots, giants, self.giants.iter().map(|g| g.babies.len()).sum()]
    }

    /// What one application does.
    pub fn counters(&self) -> Counters {
        let [babies, roots, giants, rows] = self.counts();
        let rot = (babies + roots + giants) as u64;
        Counters { add: rows as u64 - 1, rot, cmult: rows as u64, mult: 0, relin: 0, key_switches: rot }
    }
}

/// A root after the first: c_0 over Q_l·P, times P.
struct RootState {
    c0: Poly<Eval>,
    c1: Poly<Eval>,
    digits: Digits,
}

/// The keys of a map's steps; `None` where nothing turns.
struct Keys {
    roots: Vec<Option<Arc<GaloisKey>>>,
    babies: Vec<Vec<Option<Arc<GaloisKey>>>>,
    giants: Vec<Option<Arc<GaloisKey>>>,
}

/// A map: its steps, and the diagonals of each giant step.
type Map<'a> = (&'a MapSteps, &'a [Vec<PeriodicPoly>]);

impl Cpu {
    /// Each map of each source, ended.
    pub(super) fn mapped(
        &self,
        sources: &[(&Ciphertext, MapEnd)],
        maps: &[Map<'_>],
        by: &Divisor<'_>,
    ) -> Result<Vec<Vec<Ciphertext>>, RlweError> {
        let (params, level) = (self.context.params(), sources[0].0.level());
        let to = by.level("linear map", level)?;
        let gadget = &params.tables(level).gadget;
        let digits: Vec<Digits> = sources.iter().map(|(a, _)| gadget.decompose(&a.parts()[1])).collect();
        let both = sources.iter().map(|(a, _)| a.both()).zip(&digits);
        let roots: Vec<Root<'_>> = both.map(|([c0, c1], digits)| Root { c0, c1, digits }).collect();
        let one = |map: &Map<'_>| -> Result<Vec<Ciphertext>, RlweError> {
            let mut out = Vec::with_capacity(sources.len());
            for (pair, (a, end)) in self.mapped_extended(level, &roots, *map)?.into_iter().zip(sources) {
                let ended = self.ended(pair, *end, by)?;
                out.extend(ended.into_iter().map(|parts| a.with_parts(parts.into(), to)));
            }
            Ok(out)
        };
        maps.iter().map(one).collect()
    }

    /// What ends a map, divided.
    fn ended(&self, pair: ExtendedPair, end: MapEnd, by: &Divisor<'_>) -> Result<Vec<Pair>, RlweError> {
        let params = self.context.params();
        let divided = |pair: ExtendedPair| match by {
            Divisor::One => Ok(pair.mod_down(params)),
            Divisor::Last => pair.mod_down_rescale(params),
            Divisor::Above(by) => Ok(by.over(params.qp_at(pair.level).len())?.apply(pair.c)),
        };
        if end == MapEnd::Value {
            return Ok(vec![divided(pair)?]);
        }
        let key = self.context.keys().galois(params.conjugation_element(), 0)?;
        let none = RlweError::Internal { what: "a pair has no conjugate" };
        let conjugate = ExtendedPair::turned(vec![pair.clone()], params, &key, None).pop().ok_or(none)?;
        let mut sum = pair.clone();
        sum.add_assign(&conjugate);
        let mut out = vec![divided(sum)?];
        if end == MapEnd::Parts {
            // −i(v − v̄) = i(v̄ − v).
            let mut difference = conjugate;
            difference.sub_assign(&pair);
            difference.c.iter_mut().for_each(|c| c.mul_imaginary_unit(false));
            out.push(divided(difference)?);
        }
        Ok(out)
    }

    /// P times the map of each source, over Q_l·P: what one division by P·q_l finishes.
    fn mapped_extended(
        &self,
        level: usize,
        sources: &[Root<'_>],
        (steps, rows): Map<'_>,
    ) -> Result<Vec<ExtendedPair>, RlweError> {
        let (params, keys) = (self.context.params(), self.map_keys(steps)?);
        let states = turned_roots(params, level, sources, steps, &keys);
        let roots: Vec<Vec<Root<'_>>> = sources
            .iter()
            .zip(&states)
            .map(|(source, states)| {
                let more = states.iter().map(|s| Root { c0: &s.c0, c1: &s.c1, digits: &s.digits });
                std::iter::once(*source).chain(more).collect()
            })
            .collect();
        let babies: Vec<_> = keys.babies.iter().map(|keys| images(keys)).collect();
        let giants = steps.giants.iter().zip(rows);
        let terms = giants.map(|(giant, rows)| giant.babies.iter().copied().zip(rows).collect::<Vec<_>>());
        let sums = params.tables(level).gadget.hoisted_sums(&roots, &babies, &terms.collect::<Vec<_>>());
        drop(roots);
        drop(states);
        let sums = sums.into_iter().map(|list| list.into_iter().map(|c| ExtendedPair { level, c }).collect()).collect();
        Ok(join(params, sums, steps, &keys))
    }

    fn map_keys(&self, steps: &MapSteps) -> Result<Keys, RlweError> {
        let MapSteps { roots, giants, .. } = steps;
        let babies = roots.iter().flat_map(|r| &r.babies);
        let order = roots.iter().map(|r| &r.turn).chain(babies).chain(giants.iter().map(|g| &g.turn));
        self.context.keys().prefetch(&order.copied().collect::<Vec<_>>());
        let keys = |elements: Vec<u64>| self.galois_keys(&elements);
        Ok(Keys {
            roots: keys(roots.iter().map(|r| r.turn).collect())?,
            babies: roots.iter().map(|r| keys(r.babies.clone())).collect::<Result<_, _>>()?,
            giants: keys(giants.iter().map(|g| g.turn).collect())?,
        })
    }
}

/// The roots after the first, for each source.
fn turned_roots(
    params: &Params,
    level: usize,
    sources: &[Root<'_>],
    steps: &MapSteps,
    keys: &Keys,
) -> Vec<Vec<RootState>> {
    let mut all: Vec<Vec<RootState>> = sources.iter().map(|_| Vec::new()).collect();
    for r in 1..steps.roots.len() {
        let Some(key) = &keys.roots[r] else { continue };
        for (source, states) in sources.iter().zip(&mut all) {
            let (c0, digits) = states.last().map_or((source.c0, source.digits), |s| (&s.c0, &s.digits));
            let gadget = &params.tables(level).gadget;
            let [c0, c1] = gadget.image(&Root { c0, c1: source.c1, digits }, &key.image());
            let [c1] = switching::mod_down(params, level, [c1]);
            let digits = gadget.decompose(&c1);
            states.push(RootState { c0, c1, digits });
        }
    }
    all
}

/// The sum of each source's giant steps, turned.
fn join(params: &Params, sums: Vec<Vec<ExtendedPair>>, steps: &MapSteps, keys: &Keys) -> Vec<ExtendedPair> {
    let mut sums: Vec<_> = sums.into_iter().map(Vec::into_iter).collect();
    let mut totals: Option<Vec<ExtendedPair>> = None;
    for key in &keys.giants {
        let here: Vec<ExtendedPair> = sums.iter_mut().filter_map(Iterator::next).collect();
        totals = Some(match (key, totals, steps.chained) {
            (Some(key), Some(before), true) => ExtendedPair::turned(before, params, key, Some(here)),
            (Some(key), totals, false) => ExtendedPair::turned(here, params, key, totals),
            (_, Some(totals), _) => zip_sum(totals, &here),
            (_, None, _) => here,
        });
    }
    totals.unwrap_or_default()
}

fn zip_sum(mut totals: Vec<ExtendedPair>, here: &[ExtendedPair]) -> Vec<ExtendedPair> {
    totals.iter_mut().zip(here).for_each(|(total, pair)| total.add_assign(pair));
    totals
}

/// What the ring takes of keys.
fn images(keys: &[Option<Arc<GaloisKey>>]) -> Vec<Option<Image<'_>>> {
    keys.iter().map(|key| key.as_deref().map(GaloisKey::image)).collect()
}
