//! Applying linear maps.

use super::{LinearMap, MapPlan};
use crate::circuits::periodic::{Term, weighted_sum};
use crate::circuits::polynomial::Parts;
use crate::ckks::{Ciphertext, Evaluator, Params, State};
use crate::error::HeError;
use std::sync::Arc;
use sudare_ring::buffer::Buffer;
use sudare_ring::{Eval, Poly, threads};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::GaloisKey;
use sudare_rlwe::switching::{self, Decomposed, ExtendedPair};

/// A ciphertext's two parts and the digits of its second.
pub(crate) struct Source<'a> {
    pub parts: [&'a Poly<Eval>; 2],
    pub digits: &'a Decomposed,
}

/// A hoisting root: c_0 over Q_l, or times P over Q_l·P; c_1 over Q_l; the digits of c_1.
struct RootState {
    c0: Poly<Eval>,
    c1: Poly<Eval>,
    digits: Decomposed,
}

/// The same by reference.
#[derive(Clone, Copy)]
struct RootRef<'a> {
    c0: &'a Poly<Eval>,
    c1: &'a Poly<Eval>,
    digits: &'a Decomposed,
}

impl LinearMap {
    /// P times the map of each source, over Q_l·P: what one division by P·q_l finishes.
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`, `RlweError::NoSuchLevel` if a key does not reach.
    pub(crate) fn extended(
        &self,
        evaluator: &Evaluator,
        level: usize,
        sources: &[Source<'_>],
    ) -> Result<Vec<ExtendedPair>, HeError> {
        let keys = Keys::of(self, evaluator, level)?;
        let states = self.turned_roots(level, sources, &keys);
        let roots: Vec<Vec<RootRef<'_>>> = sources
            .iter()
            .zip(&states)
            .map(|(source, states)| {
                let first = RootRef { c0: source.parts[0], c1: source.parts[1], digits: source.digits };
                let more = states.iter().map(|s| RootRef { c0: &s.c0, c1: &s.c1, digits: &s.digits });
                std::iter::once(first).chain(more).collect()
            })
            .collect();
        let sums = self.sums(level, &roots, &keys);
        drop(roots);
        drop(states);
        let out = self.join(level, sums, &keys);
        evaluator.record(self.plan.counters() * sources.len());
        Ok(out)
    }

    /// The roots after the first, for each source.
    fn turned_roots(&self, level: usize, sources: &[Source<'_>], keys: &Keys) -> Vec<Vec<RootState>> {
        let params = &self.params;
        let mut all: Vec<Vec<RootState>> = sources.iter().map(|_| Vec::new()).collect();
        for r in 1..self.plan.roots.len() {
            let Some(key) = &keys.roots[r] else { continue };
            for (source, states) in sources.iter().zip(&mut all) {
                let (c0, digits) = states.last().map_or((source.parts[0], source.digits), |s| (&s.c0, &s.digits));
                let mut pair = switching::inner_product(params, digits, key.key());
                add_first(params, &mut pair, c0);
                let [c0, c1] = pair.c.map(|c| c.permuted(key.permutation()));
                let c1 = switching::mod_down(params, level, c1);
                let digits = switching::decompose(params, level, &c1);
                states.push(RootState { c0, c1, digits });
            }
        }
        all
    }

    /// Σ_i d_i ⊙ baby_i for each giant step of each source, limb by limb: a limb's babies stay in the
    /// cache while every giant step reads them.
    fn sums(&self, level: usize, roots: &[Vec<RootRef<'_>>], keys: &Keys) -> Vec<Vec<ExtendedPair>> {
        let params = &self.params;
        let (n, limbs) = (params.degree(), params.qp_at(level).len());
        let mut out: Vec<Vec<ExtendedPair>> = roots
            .iter()
            .map(|_| self.plan.giants.iter().map(|_| ExtendedPair::dirty(params, level)).collect())
            .collect();
        let mut rows: Vec<Vec<[&mut [u64]; 2]>> = (0..limbs).map(|_| Vec::new()).collect();
        for pair in out.iter_mut().flatten() {
            let [x, y] = &mut pair.c;
            let pairs = x.words_mut().chunks_exact_mut(n).zip(y.words_mut().chunks_exact_mut(n));
            rows.iter_mut().zip(pairs).for_each(|(limb, (x, y))| limb.push([x, y]));
        }
        threads::for_each_mut(&mut rows, |t, outs| {
            let count: usize = self.plan.roots.iter().map(|r| r.babies.len()).sum();
            let mut babies = Buffer::dirty(2 * n * count);
            for (roots, outs) in roots.iter().zip(outs.chunks_mut(self.plan.giants.len())) {
                self.baby_rows((level, t), roots, keys, &mut babies);
                for (g, out) in outs.iter_mut().enumerate() {
                    self.giant_rows((level, t), g, &babies, out);
                }
            }
        });
        out
    }

    /// Limb `t` of every baby: two rows each.
    fn baby_rows(&self, (level, t): (usize, usize), roots: &[RootRef<'_>], keys: &Keys, out: &mut [u64]) {
        let tables = self.params.tables(level);
        let (n, limb) = (self.params.degree(), tables.qp.limb(t));
        let mut rows = out.chunks_exact_mut(2 * n);
        let (mut u, mut v) = (Buffer::dirty(n), Buffer::dirty(n));
        for (root, keys) in roots.iter().zip(&keys.babies) {
            let digits = root.digits.limb(t);
            let scaled = |c: &Poly<Eval>| {
                let mut out = Buffer::from_slice(c.limb(t));
                limb.mul_scalar(&mut out, &tables.p_mod_q[t]);
                out
            };
            // c_0 times P: computed of the input's, there already for the others, zero modulo P.
            let times_p = (root.c0.basis().len() <= level + 1 && t <= level).then(|| scaled(root.c0));
            let start = match &times_p {
                Some(row) => Some(&**row),
                None if root.c0.basis().len() > level + 1 => Some(root.c0.limb(t)),
                None => None,
            };
            for key in keys {
                let Some(baby) = rows.next() else { return };
                let (x, y) = baby.split_at_mut(n);
                match key {
                    Some(key) => {
                        limb.dot_pair_packed([&mut u, &mut v], &digits, key.key().limb(level, t), start);
                        key.permutation().apply(x, &u);
                        key.permutation().apply(y, &v);
                    }
                    None => {
                        match start {
                            Some(start) => x.copy_from_slice(start),
                            None => x.fill(0),
                        }
                        match t <= level {
                            true => y.copy_from_slice(&scaled(root.c1)),
                            false => y.fill(0),
                        }
                    }
                }
            }
        }
    }

    fn giant_rows(&self, (level, t): (usize, usize), giant: usize, babies: &[u64], out: &mut [&mut [u64]; 2]) {
        let n = self.params.degree();
        let limb = self.params.qp_at(level).limb(t);
        // The special primes stand behind those of the level that the map is prepared for.
        let stored = if t <= level { t } else { t + self.level - level };
        for (part, out) in out.iter_mut().enumerate() {
            let row = |baby: usize| &babies[(2 * baby + part) * n..][..n];
            let diagonals = self.plan.giants[giant].diagonals.iter().zip(&self.rows[giant]);
            let terms: Vec<Term<'_>> = diagonals.map(|(d, rows)| (row(d.baby), rows, stored)).collect();
            match terms.is_empty() {
                true => out.fill(0),
                false => weighted_sum(limb, out, &terms),
            }
        }
    }

    /// The sum of each source's giant steps, turned.
    fn join(&self, level: usize, sums: Vec<Vec<ExtendedPair>>, keys: &Keys) -> Vec<ExtendedPair> {
        let mut steps: Vec<_> = sums.into_iter().map(Vec::into_iter).collect();
        let mut totals: Vec<Option<ExtendedPair>> = steps.iter().map(|_| None).collect();
        for key in &keys.giants {
            let here: Vec<ExtendedPair> = steps.iter_mut().filter_map(Iterator::next).collect();
            totals = match (key, self.plan.chained) {
                (None, _) => zip_sum(totals, here),
                (Some(key), false) => zip_sum(totals, self.turn(level, here, key)),
                (Some(key), true) => {
                    let before = totals.into_iter().flatten().collect();
                    zip_sum(self.turn(level, before, key).into_iter().map(Some).collect(), here)
                }
            };
        }
        totals.into_iter().flatten().collect()
    }

    /// Rotates pairs over Q_l·P: c_1 is divided by P, cut into digits and switched; c_0 stays.
    fn turn(&self, level: usize, pairs: Vec<ExtendedPair>, key: &GaloisKey) -> Vec<ExtendedPair> {
        let params = &self.params;
        let (firsts, seconds): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .map(|pair| {
                let [c0, c1] = pair.c;
                (c0, switching::mod_down(params, level, c1))
            })
            .unzip();
        let mut switched: Vec<ExtendedPair> = firsts.iter().map(|_| ExtendedPair::dirty(params, level)).collect();
        switching::switch_into(params, level, &seconds.iter().collect::<Vec<_>>(), key.key(), &mut switched);
        switched
            .into_iter()
            .zip(firsts)
            .map(|(mut pair, c0)| {
                pair.c[0].add_assign(&c0);
                pair.permuted(key.permutation())
            })
            .collect()
    }
}

/// Adds c_0 to a pair's first part: times P if it is over Q_l.
fn add_first(params: &Params, pair: &mut ExtendedPair, c0: &Poly<Eval>) {
    match c0.basis().len() == pair.c[0].basis().len() {
        true => pair.c[0].add_assign(c0),
        false => pair.add_scaled(params, 0, c0),
    }
}

fn zip_sum(totals: Vec<Option<ExtendedPair>>, here: Vec<ExtendedPair>) -> Vec<Option<ExtendedPair>> {
    let sum = |(total, mut pair): (Option<ExtendedPair>, ExtendedPair)| {
        if let Some(total) = total {
            pair.add_assign(&total);
        }
        Some(pair)
    };
    totals.into_iter().zip(here).map(sum).collect()
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

    fn apply_map(&self, a: &Ciphertext, digits: &Decomposed, map: &LinearMap) -> Result<Ciphertext, HeError> {
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
        let source = Source { parts: [&a.parts()[0], &a.parts()[1]], digits };
        let parts = map.extended(self, level, &[source])?.into_iter().flat_map(|pair| pair.mod_down_rescale(params));
        let inner = a.inner().with_parts(parts.collect(), lower);
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
        let digits: Vec<Decomposed> =
            inputs.iter().map(|parts| switching::decompose(params, level, &parts[1])).collect();
        let sources: Vec<Source<'_>> = inputs
            .iter()
            .zip(&digits)
            .map(|(parts, digits)| Source { parts: [&parts[0], &parts[1]], digits })
            .collect();
        let pairs = self.extended(evaluator, level, &sources)?;
        let finish = |pair: ExtendedPair| pair.c.map(|c| switching::mod_down_rescale(params, level, c));
        Ok(pairs.into_iter().map(finish).collect())
    }
}
