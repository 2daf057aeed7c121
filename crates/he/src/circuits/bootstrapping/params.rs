//! Bootstrapping parameters: a literal checked, laid out, and with its primes.

use super::layout::{DRIFT, Layout};
use super::noise::PredictedNoise;
use super::refresh::Kind;
use super::set::BootstrapLiteral;
use crate::circuits::dft::Transform;
use crate::circuits::mod1::Mod1;
use crate::ckks::Counters;
use crate::ckks::chain::Chain;
use crate::error::HeError;
use crate::params::Params;
use crate::security::SecretDistribution;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::prime::ntt_primes;

struct Inner {
    layout: Layout,
    params: Params,
    /// q_0 … of StC and the first special primes.
    low: Params,
    /// q_0 and p, for the sparse secret.
    gate: Params,
    /// All of Q and p.
    open: Params,
}

/// A checked bootstrapping set. Cloning shares it.
#[derive(Clone)]
pub struct BootstrapParams(Arc<Inner>);

impl BootstrapLiteral {
    /// Checks the literal and chooses its primes.
    ///
    /// # Errors
    /// [`HeError::Parameters`], [`HeError::Insecure`] for the whole set or for the sparse key alone,
    /// [`HeError::Ring`].
    pub fn build(&self) -> Result<BootstrapParams, HeError> {
        // What does not fit together is refused before anything large is built.
        Layout::new(self, Chain::of_literal(&self.params))?;
        let params = self.params.build()?;
        let layout = Layout::new(self, Chain::of(&params))?;
        let (q, p) = (params.q(), params.p());
        let limbs = layout.levels.input + 1;
        let dense = self.params.secret;
        let low = params.derived(q.prefix(limbs), p.prefix(layout.low.special.len()), limbs, dense)?;
        let taken: Vec<u64> = q.primes().chain(p.primes()).collect();
        let gate_basis = RnsBasis::new(params.degree(), &ntt_primes(params.degree(), self.gate_bits, 1, &taken)?)?;
        let sparse = SecretDistribution::FixedWeight { weight: self.weight };
        let gate = params.derived(q.prefix(1), gate_basis.clone(), 1, sparse)?;
        let open = params.derived(q.clone(), gate_basis, q.len(), dense)?;
        Ok(BootstrapParams(Arc::new(Inner { layout, params, low, gate, open })))
    }

    /// What a refresh of one ciphertext does, by step, before anything is built.
    ///
    /// # Errors
    /// [`HeError::Parameters`].
    pub fn operations(&self, kind: Kind) -> Result<[Counters; 5], HeError> {
        Layout::new(self, Chain::of_literal(&self.params))?.operations(kind)
    }

    /// The lowest level of an input and the level of a refreshed ciphertext, before anything is built.
    ///
    /// # Errors
    /// [`HeError::Parameters`].
    pub fn levels(&self) -> Result<(usize, usize), HeError> {
        let levels = Layout::new(self, Chain::of_literal(&self.params))?.levels;
        Ok((levels.input, levels.output))
    }

    /// Variances that a refresh of complex slots with mean square `message` adds, before anything is built.
    ///
    /// # Errors
    /// [`HeError::Parameters`].
    pub fn predicted_noise(&self, message: f64) -> Result<PredictedNoise, HeError> {
        PredictedNoise::of(&Layout::new(self, Chain::of_literal(&self.params))?, message)
    }
}

impl BootstrapParams {
    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &BootstrapLiteral {
        &self.0.layout.literal
    }

    /// The parameters of its ciphertexts.
    pub fn params(&self) -> &Params {
        &self.0.params
    }

    pub(crate) fn low(&self) -> &Params {
        &self.0.low
    }

    pub(crate) fn gate(&self) -> &Params {
        &self.0.gate
    }

    pub(crate) fn open(&self) -> &Params {
        &self.0.open
    }

    /// The modular reduction.
    pub fn mod1(&self) -> &Mod1 {
        &self.0.layout.mod1
    }

    /// The transforms: StC, CtS.
    pub fn transforms(&self) -> [&Transform; 2] {
        [&self.0.layout.stc, &self.0.layout.cts]
    }

    /// Slots that hold values; they repeat in the others.
    pub fn slots(&self) -> usize {
        self.0.layout.slots()
    }

    /// The lowest level of an input. A ciphertext is of use down to it.
    pub fn input_level(&self) -> usize {
        self.0.layout.levels.input
    }

    /// The level of a refreshed ciphertext.
    pub fn output_level(&self) -> usize {
        self.0.layout.levels.output
    }

    /// The most that bound · scale of an input may be: Δ, and a little for scales that have drifted.
    pub fn largest_product(&self) -> f64 {
        self.layout().scale() * DRIFT
    }

    /// Levels that a refreshed ciphertext has for use.
    pub fn usable_levels(&self) -> usize {
        self.output_level() - self.input_level()
    }

    /// Variances that a refresh of complex slots with mean square `message` adds; of real ones about half.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn predicted_noise(&self, message: f64) -> Result<PredictedNoise, HeError> {
        PredictedNoise::of(self.layout(), message)
    }

    /// What a refresh of one ciphertext does, by step ([`Step::ALL`](super::Step::ALL)), as
    /// [`Bootstrapper::counters`](super::Bootstrapper::counters) counts it.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn operations(&self, kind: Kind) -> Result<[Counters; 5], HeError> {
        self.layout().operations(kind)
    }

    /// Bytes of the keys in memory.
    pub fn key_bytes(&self) -> u64 {
        self.0.layout.key_bytes()
    }

    /// Bytes of the diagonals, before there are any.
    pub fn diagonal_bytes(&self) -> u64 {
        self.0.layout.diagonal_bytes()
    }

    /// Bytes that a refresh of some complex ciphertexts works in, at its largest step.
    pub fn working_bytes(&self, count: usize) -> u64 {
        self.0.layout.working_bytes(count)
    }
}

impl std::fmt::Debug for BootstrapParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "BootstrapParams({} slots, {} levels to use of {}, {:?})",
            self.slots(),
            self.usable_levels(),
            self.params().max_level(),
            self.params()
        )
    }
}
