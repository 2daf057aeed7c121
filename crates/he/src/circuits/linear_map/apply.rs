//! Applying linear maps.

use super::{LinearMap, MapPlan};
use crate::circuits::polynomial::Parts;
use crate::ckks::{Ciphertext, Evaluator, State};
use crate::error::HeError;
use std::sync::Arc;
use sudare_ring::ops::{Digits, Image, Root};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::GaloisKey;
use sudare_rlwe::switching::{self, ExtendedPair};
use sudare_rlwe::{RlweError, Shaped};

/// A root after the first: c_0 over Q_l·P, times P.
struct RootState {
    c0: Poly<Eval>,
    c1: Poly<Eval>,
    digits: Digits,
}

impl LinearMap {
    /// P times the map of each source, over Q_l·P: what one division by P·q_l finishes.
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`, `RlweError::NoSuchLevel` if a key does not reach.
    fn extended(
        &self,
        evaluator: &Evaluator,
        level: usize,
        sources: &[Root<'_>],
    ) -> Result<Vec<ExtendedPair>, HeError> {
        let keys = Keys::of(self, evaluator, level)?;
        let states = self.turned_roots(level, sources, &keys);
        let roots: Vec<Vec<Root<'_>>> = sources
            .iter()
            .zip(&states)
            .map(|(source, states)| {
                let more = states.iter().map(|s| Root { c0: &s.c0, c1: &s.c1, digits: &s.digits });
                std::iter::once(*source).chain(more).collect()
            })
            .collect();
        let babies: Vec<_> = keys.babies.iter().map(|keys| images(keys)).collect();
        let giants = self.plan.giants.iter().zip(&self.rows);
        let terms = giants.map(|(giant, rows)| giant.diagonals.iter().map(|d| d.baby).zip(rows).collect::<Vec<_>>());
        let sums = self.params.tables(level).gadget.hoisted_sums(&roots, &babies, &terms.collect::<Vec<_>>());
        drop(roots);
        drop(states);
        let sums = sums.into_iter().map(|list| list.into_iter().map(|c| ExtendedPair { level, c }).collect()).collect();
        let out = self.join(sums, &keys);
        evaluator.record(self.plan.counters() * sources.len());
        Ok(out)
    }

    /// The roots after the first, for each source.
    fn turned_roots(&self, level: usize, sources: &[Root<'_>], keys: &Keys) -> Vec<Vec<RootState>> {
        let params = &self.params;
        let mut all: Vec<Vec<RootState>> = sources.iter().map(|_| Vec::new()).collect();
        for r in 1..self.plan.roots.len() {
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
    fn join(&self, sums: Vec<Vec<ExtendedPair>>, keys: &Keys) -> Vec<ExtendedPair> {
        let mut steps: Vec<_> = sums.into_iter().map(Vec::into_iter).collect();
        let mut totals: Option<Vec<ExtendedPair>> = None;
        for key in &keys.giants {
            let here: Vec<ExtendedPair> = steps.iter_mut().filter_map(Iterator::next).collect();
            totals = Some(match (key, totals, self.plan.chained) {
                (Some(key), Some(before), true) => ExtendedPair::turned(before, &self.params, key, Some(here)),
                (Some(key), totals, false) => ExtendedPair::turned(here, &self.params, key, totals),
                (_, Some(totals), _) => zip_sum(totals, &here),
                (_, None, _) => here,
            });
        }
        totals.unwrap_or_default()
    }
}

fn zip_sum(mut totals: Vec<ExtendedPair>, here: &[ExtendedPair]) -> Vec<ExtendedPair> {
    totals.iter_mut().zip(here).for_each(|(total, pair)| total.add_assign(pair));
    totals
}

/// What the ring takes of keys.
fn images(keys: &[Option<Arc<GaloisKey>>]) -> Vec<Option<Image<'_>>> {
    keys.iter().map(|key| key.as_deref().map(GaloisKey::image)).collect()
}

/// The keys of a map's steps; `None` where nothing turns.
struct Keys {
    roots: Vec<Option<Arc<GaloisKey>>>,
    babies: Vec<Vec<Option<Arc<GaloisKey>>>>,
    giants: Vec<Option<Arc<GaloisKey>>>,
}

impl Keys {
    fn of(map: &LinearMap, evaluator: &Evaluator, level: usize) -> Result<Self, RlweError> {
        let MapPlan { roots, giants, .. } = &map.plan;
        evaluator.inner.check_keys(&map.elements(), level)?;
        let babies = roots.iter().flat_map(|r| &r.babies);
        let order = roots.iter().map(|r| &r.turn).chain(babies).chain(giants.iter().map(|g| &g.turn));
        evaluator.inner.prefetch(&order.copied().collect::<Vec<_>>());
        let keys = |elements: Vec<u64>| evaluator.inner.galois_keys(&elements, level);
        Ok(Self {
            roots: keys(roots.iter().map(|r| r.turn).collect())?,
            babies: roots.iter().map(|r| keys(r.babies.clone())).collect::<Result<_, _>>()?,
            giants: keys(giants.iter().map(|g| g.turn).collect())?,
        })
    }
}

impl Evaluator {
    /// Applies a linear map and rescales: double hoisting.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`] and [`Evaluator::rescale`].
    pub fn linear_map(&self, a: &Ciphertext, map: &LinearMap) -> Result<Ciphertext, HeError> {
        let hoisted = self.hoist(a)?;
        self.apply_map(a, hoisted.inner.digits(), map)
    }

    /// Applies several linear maps to one ciphertext, with one decomposition for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::linear_map`].
    pub fn linear_maps(&self, a: &Ciphertext, maps: &[&LinearMap]) -> Result<Vec<Ciphertext>, HeError> {
        let hoisted = self.hoist(a)?;
        maps.iter().map(|map| self.apply_map(a, hoisted.inner.digits(), map)).collect()
    }

    fn apply_map(&self, a: &Ciphertext, digits: &Digits, map: &LinearMap) -> Result<Ciphertext, HeError> {
        let operation = "linear map";
        let params = self.params();
        params.expect("the linear map", &map.params)?;
        let lower = a.inner().lower(operation)?;
        let level = a.level();
        if level > map.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: map.level }.into());
        }
        let state = State {
            scale: a.scale * map.plan.scale,
            bound: a.bound * map.plan.row_sum,
            noise: map.plan.noise(params.sketch(), a),
        };
        state.check_fits(operation, params, level)?;
        let source = Root { c0: &a.parts()[0], c1: &a.parts()[1], digits };
        let none = RlweError::Internal { what: "a linear map has no result" };
        let pair = map.extended(self, level, &[source])?.pop().ok_or(none)?;
        let inner = a.inner().with_parts(pair.mod_down_rescale(params)?.into(), lower);
        Ok(Ciphertext::new(inner, self.rescaled(state, level, 2)))
    }
}

impl LinearMap {
    /// The map of two parts that are not in a ciphertext, rescaled.
    pub(crate) fn apply_parts(
        &self,
        evaluator: &Evaluator,
        level: usize,
        inputs: &[&Parts],
    ) -> Result<Vec<Parts>, HeError> {
        let params = &self.params;
        let pairs = self.extended_parts(evaluator, level, inputs)?;
        Ok(pairs.into_iter().map(|pair| pair.mod_down_rescale(params)).collect::<Result<_, _>>()?)
    }

    /// P times the map of two parts that are not in a ciphertext.
    pub(crate) fn extended_parts(
        &self,
        evaluator: &Evaluator,
        level: usize,
        inputs: &[&Parts],
    ) -> Result<Vec<ExtendedPair>, HeError> {
        let gadget = &self.params.tables(level).gadget;
        let digits: Vec<Digits> = inputs.iter().map(|parts| gadget.decompose(&parts[1])).collect();
        let sources = inputs.iter().zip(&digits).map(|([c0, c1], digits)| Root { c0, c1, digits });
        self.extended(evaluator, level, &sources.collect::<Vec<_>>())
    }
}
