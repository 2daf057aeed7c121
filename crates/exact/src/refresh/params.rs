//! A set that was checked, laid out, and has its primes.

use super::layout::Layout;
use super::set::RefreshLiteral;
use crate::error::{ExactError, parameters};
use crate::plan::EXACT;
use crate::{Ciphertext, IntegerParams, Scheme};
use std::fmt;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::security::SecretDistribution;
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::work::Work;
use sudare_rlwe::{Counters, ParamsHash, Quotient, Shaped};

struct Inner {
    literal: RefreshLiteral,
    /// Modulo t.
    params: IntegerParams,
    /// Modulo t².
    square: IntegerParams,
    /// q_0 and the primes of the key to the sparse secret.
    gate: rlwe::Params,
    layout: Layout,
}

/// A checked set for the refresh of BFV and BGV. Cloning shares it.
#[derive(Clone)]
pub struct RefreshParams(Arc<Inner>);

impl RefreshLiteral {
    /// Checks the literal, chooses its primes and lays out every step: seconds at full size, for the norms of all diagonals.
    ///
    /// # Errors
    /// `RlweError::Insecure` for the whole set or for the sparse key alone; [`ExactError::NoSlots`]; `RlweError::Parameters`
    /// where shapes do not go together or a step has no room; `RlweError::Ring`.
    pub fn build(&self) -> Result<RefreshParams, ExactError> {
        if self.t >> 30 != 0 {
            return Err(parameters(format!(
                "plaintext modulus {} has no square below 2^60; take a smaller one",
                self.t
            )));
        }
        if self.gate_bits.is_empty() {
            return Err(parameters("the key to the sparse secret needs special primes; give gate_bits"));
        }
        let rlwe = self.params.build(EXACT)?;
        let params = IntegerParams::new(&rlwe, self.t)?;
        params.slot_transform()?;
        let base = self.base.clamp(1, rlwe.max_level());
        let mut taken: Vec<u64> = rlwe.q().primes().chain(rlwe.p().primes()).collect();
        let mut gate_primes = Vec::new();
        for bits in &self.gate_bits {
            let prime = ntt_primes(rlwe.degree(), *bits, 1, &taken)?[0];
            taken.push(prime);
            gate_primes.push(prime);
        }
        let sparse = SecretDistribution::FixedWeight { weight: self.weight };
        let gate = rlwe.derived(rlwe.q().prefix(base), RnsBasis::new(rlwe.degree(), &gate_primes)?, base, sparse)?;
        let square = IntegerParams::new(&rlwe, self.t * self.t)?;
        let layout = Layout::new(self, [&params, &square], &gate)?;
        Ok(RefreshParams(Arc::new(Inner { literal: self.clone(), params, square, gate, layout })))
    }
}

impl RefreshParams {
    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &RefreshLiteral {
        &self.0.literal
    }

    /// The parameters of its ciphertexts.
    pub fn params(&self) -> &IntegerParams {
        &self.0.params
    }

    pub(super) fn square(&self) -> &IntegerParams {
        &self.0.square
    }

    pub(super) fn gate(&self) -> &rlwe::Params {
        &self.0.gate
    }

    /// The name of the set, the sparse key's primes included: that of its keys on the wire.
    pub fn hash(&self) -> ParamsHash {
        ParamsHash::of_all(&[self.params().hash(), self.gate().hash()])
    }

    /// The lowest level of an input, and the largest noise bound that it may have there.
    pub fn input(&self) -> (usize, f64) {
        (self.layout().input_level(), self.layout().largest_noise)
    }

    /// The level of a refreshed ciphertext, and its noise bound.
    pub fn output(&self) -> (usize, f64) {
        self.layout().removal.result()
    }

    /// The largest digit that noise becomes: h/2.
    pub fn digit(&self) -> u32 {
        self.literal().weight / 2
    }

    /// Products in a row, each of two such results, that a refreshed ciphertext has before the next refresh: of BFV, of BGV.
    pub fn products(&self) -> [usize; 2] {
        let model = self.params().noise();
        let bfv = |level: usize, noise: f64| {
            let plan = model.bfv_product(&[[(level, noise), (level, noise)]]);
            (plan.level, plan.noise + model.switched(plan.level))
        };
        let bgv = |level: usize, noise: f64| {
            let product = model.bgv_product(&[[(level, noise), (level, noise)]]).noise;
            let target = model.bgv_target(level, product);
            (target, model.bgv_switched(product, level, target))
        };
        [self.count(bfv), self.count(bgv)]
    }

    fn count(&self, product: impl Fn(usize, f64) -> (usize, f64)) -> usize {
        let (model, (mut level, mut noise), mut count) = (self.params().noise(), self.output(), 0);
        loop {
            (level, noise) = product(level, noise);
            if !model.fits(level, noise) || !self.reaches(level, noise) {
                return count;
            }
            count += 1;
        }
    }

    /// Whether a refresh takes a ciphertext, by its level and noise bound.
    pub fn takes<S: Scheme, C: Shaped>(&self, ciphertext: &Ciphertext<S, C>) -> bool {
        self.reaches(ciphertext.level(), ciphertext.noise())
    }

    fn reaches(&self, level: usize, noise: f64) -> bool {
        let ((input, largest), model) = (self.input(), self.params().noise());
        level >= input && model.dropped(noise, 2, (level, input), 1.0) <= largest
    }

    /// Element and level of every evaluation key of the set, the relinearisation key (element 0) first.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (u64, usize)> {
        std::iter::once((0, self.layout().start())).chain(self.layout().galois_levels())
    }

    /// What a refresh does, as [`Refresher::counters`](super::Refresher::counters) counts it.
    pub fn operations(&self) -> Counters {
        let layout = self.layout();
        let maps = layout.stc.iter().chain(&layout.cts).map(|step| step.map.steps().counters());
        let shares = layout.shares as u64;
        let digit = Counters { cmult: shares, add: shares - 1, ..Counters::default() };
        maps.sum::<Counters>() + digit + layout.removal.counters()
    }

    /// What a refresh costs: its maps on a backend that computes nothing, the products by their levels.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn work(&self) -> Result<Work, ExactError> {
        let (layout, set) = (self.layout(), self.params().rlwe());
        let e = rlwe::Evaluator::with_backend(Simulated::new(set));
        for (params, steps) in [(self.params(), &layout.stc), (self.square(), &layout.cts)] {
            for step in steps {
                let (map, level) = (step.map.steps(), step.level);
                let rows: Vec<Vec<()>> = map.giants.iter().map(|giant| vec![(); giant.babies.len()]).collect();
                let tables = || params.division(level, step.to, true, 1);
                e.linear_map_divided(
                    &e.backend().batch(level, 1),
                    (map, &rows),
                    Quotient { to: step.to, tables: &tables },
                )?;
            }
        }
        let (literal, top) = (set.literal(), set.max_level());
        let shares = layout.shares as f64;
        let digit = Work::transforms_at(literal, top, shares + 1.0) + Work::passes_at(literal, top, 2.0 * shares);
        Ok(e.backend().work() + digit + layout.removal.work(literal))
    }

    /// Bytes of the keys in memory.
    pub fn key_bytes(&self) -> u64 {
        let literal = self.params().literal();
        let keys: usize = self.wanted().map(|(_, level)| KeySwitchKey::bytes_at(literal, level)).sum();
        let secrets = self.layout().shares * 2 * 8 * self.params().degree() * literal.q_bits.len();
        (keys + secrets + KeySwitchKey::bytes_at(self.gate().literal(), self.gate().max_level())) as u64
    }

    /// Bytes of the diagonals in memory.
    pub fn diagonal_bytes(&self) -> u64 {
        self.layout().diagonal_bytes(self.params())
    }
}

impl fmt::Debug for RefreshParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bfv, bgv] = self.products();
        write!(f, "RefreshParams({bfv} products of BFV or {bgv} of BGV between refreshes, {:?})", self.params())
    }
}
