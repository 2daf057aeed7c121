//! Bootstrapping parameters: a literal checked, laid out, and with its primes.

use super::layout::{DRIFT, Layout};
use super::noise::PredictedNoise;
use super::refresh::Kind;
use super::set::{BootstrapLiteral, ReductionLiteral};
use super::simulated::Figures;
use crate::circuits::dft::Transform;
use crate::circuits::mod1::Reduction;
use crate::ckks::Params;
use crate::error::HeError;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::count::Counts;
use sudare_ring::memo::Memo;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::noise::Sketch;
use sudare_rlwe::security::SecretDistribution;
use sudare_rlwe::wire::packing::packed_bytes;
use sudare_rlwe::work::Work;
use sudare_rlwe::{Counters, ParamsHash};

struct Inner {
    layout: Layout,
    params: Params,
    /// q_0 … of StC and the first special primes.
    low: Params,
    /// q_0 and p, for the sparse secret.
    gate: rlwe::Params,
    /// All of Q and p.
    open: rlwe::Params,
    figures: Memo<(), Figures>,
}

/// A checked bootstrapping set. Cloning shares it.
#[derive(Clone)]
pub struct BootstrapParams(Arc<Inner>);

/// Sizes of a literal's primes: the powers of two below which they lie. [`Sketch::of`] counts a twentieth of a
/// bit less for each, and the bits that a refresh keeps follow from quotients of single primes.
pub(super) fn planned(literal: &BootstrapLiteral) -> Sketch {
    let sizes = |bits: &[u32]| bits.iter().map(|b| f64::from(*b).exp2()).collect::<Vec<_>>();
    Sketch::new(&literal.params, sizes(&literal.params.q_bits), sizes(&literal.params.p_bits))
}

impl BootstrapLiteral {
    /// Checks the literal and chooses its primes.
    ///
    /// # Errors
    /// `RlweError::Parameters`, `RlweError::Insecure` for the whole set or for the sparse key alone,
    /// `RlweError::Ring`.
    pub fn build(&self) -> Result<BootstrapParams, HeError> {
        // What does not fit together is refused before anything large is built.
        Layout::new(self, planned(self))?;
        let params = self.params.build()?;
        let mut layout = Layout::new(self, params.sketch().clone())?;
        let (q, p) = (params.q(), params.p());
        let limbs = layout.levels.input + 1;
        let dense = self.params.secret;
        let low = params.derived(q.prefix(limbs), p.prefix(layout.low.p().len()), limbs, dense)?;
        let taken: Vec<u64> = q.primes().chain(p.primes()).collect();
        let gate_basis = RnsBasis::new(params.degree(), &ntt_primes(params.degree(), self.gate_bits, 1, &taken)?)?;
        // Diagonals in keys are scaled by the prime itself.
        layout.gate_prime = gate_basis.primes().map(|p| p as f64).product();
        let sparse = SecretDistribution::FixedWeight { weight: self.weight };
        let gate = params.rlwe().derived(q.prefix(1), gate_basis.clone(), 1, sparse)?;
        let open = params.rlwe().derived(q.clone(), gate_basis, q.len(), dense)?;
        Ok(BootstrapParams(Arc::new(Inner { layout, params, low, gate, open, figures: Memo::default() })))
    }

    /// What a refresh of one ciphertext or pair does, by step, before there are keys.
    ///
    /// # Errors
    /// As [`BootstrapLiteral::build`].
    pub fn operations(&self, kind: Kind) -> Result<[Counters; 5], HeError> {
        self.build()?.operations(kind)
    }

    /// What a refresh of one ciphertext or pair is made of, by step, before there are keys.
    ///
    /// # Errors
    /// As [`BootstrapLiteral::build`].
    pub fn work(&self, kind: Kind) -> Result<[Counts; 5], HeError> {
        self.build()?.work(kind)
    }

    /// The lowest level of an input and the level of a refreshed ciphertext, before anything is built.
    ///
    /// # Errors
    /// `RlweError::Parameters`.
    pub fn levels(&self) -> Result<(usize, usize), HeError> {
        let layout = Layout::new(self, planned(self))?;
        Ok((layout.input_level(), layout.levels.output))
    }

    /// Bytes of the keys, of the diagonals, and of what a refresh of one ciphertext works in, before there are any.
    ///
    /// # Errors
    /// As [`BootstrapLiteral::build`].
    pub fn memory(&self) -> Result<[u64; 3], HeError> {
        let params = self.build()?;
        Ok([params.key_bytes()?, params.diagonal_bytes()?, params.working_bytes(1)?])
    }

    /// Variances that a refresh of complex slots with mean square `message` adds, before anything is built.
    ///
    /// # Errors
    /// `RlweError::Parameters`.
    pub fn predicted_noise(&self, message: f64) -> Result<PredictedNoise, HeError> {
        PredictedNoise::of(&Layout::new(self, planned(self))?, message)
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

    /// The name of the set, the sparse key's primes included: that of its keys on the wire.
    pub fn hash(&self) -> ParamsHash {
        let sets = [self.0.params.rlwe(), &self.0.gate, &self.0.open];
        let primes = ParamsHash::of_all(&sets.map(rlwe::Params::hash));
        // Keys that hold a stage depend on its diagonals.
        let literal = self.literal();
        if !literal.keyed {
            return primes;
        }
        let reduction = match literal.reduction {
            ReductionLiteral::Sines { log_radius, .. } => [0, log_radius.to_bits()],
            ReductionLiteral::Tables { modulus } => [1, modulus as u64],
        };
        let shape = [u64::from(literal.weight), literal.stc.len() as u64, literal.cts.len() as u64];
        let layers = literal.stc.iter().chain(&literal.cts).map(|layers| u64::from(*layers));
        primes.with(&shape.into_iter().chain(reduction).chain(layers).collect::<Vec<_>>())
    }

    pub(crate) fn low(&self) -> &Params {
        &self.0.low
    }

    pub(crate) fn gate(&self) -> &rlwe::Params {
        &self.0.gate
    }

    pub(crate) fn open(&self) -> &rlwe::Params {
        &self.0.open
    }

    /// The exponential and what follows it.
    pub fn reduction(&self) -> &Reduction {
        &self.0.layout.reduction
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
        self.0.layout.input_level()
    }

    /// The level of a refreshed ciphertext.
    pub fn output_level(&self) -> usize {
        self.0.layout.levels.output
    }

    /// The most that bound · scale of an input may be: Δ, and a little for scales that have drifted. Scales drift farther with
    /// levels of two primes, and two refreshes in one set them anew.
    pub fn largest_product(&self) -> f64 {
        self.layout().user_scale() * if self.literal().is_iterated() { 2.0 } else { DRIFT }
    }

    /// Levels that a refreshed ciphertext has for use, of [`BootstrapLiteral::level_primes`] primes each.
    pub fn usable_levels(&self) -> usize {
        (self.output_level() - self.input_level()) / self.literal().level_primes()
    }

    /// Variances that a refresh of complex slots with mean square `message` adds; of real ones about half.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set of tables.
    pub fn predicted_noise(&self, message: f64) -> Result<PredictedNoise, HeError> {
        PredictedNoise::of(self.layout(), message)
    }

    /// What is learned of a complex refresh of one ciphertext by simulating it, once for the set.
    pub(crate) fn figures(&self) -> Result<&Figures, HeError> {
        match self.0.figures.get(&()) {
            Some(known) => Ok(known),
            None => Ok(self.0.figures.insert((), self.simulated(Kind::Complex, 1)?.1)),
        }
    }

    /// What a refresh of one ciphertext or pair does, by step ([`Step::ALL`](super::Step::ALL)), as
    /// [`Bootstrapper::counters`](super::Bootstrapper::counters) counts it.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn operations(&self, kind: Kind) -> Result<[Counters; 5], HeError> {
        Ok(self.simulated(kind, if kind == Kind::Pair { 2 } else { 1 })?.0.map(|step| step.counters))
    }

    /// What a refresh of one ciphertext or pair is made of, by step, as [`sudare_ring::count`] counts it.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn work(&self, kind: Kind) -> Result<[Counts; 5], HeError> {
        Ok(self.simulated(kind, if kind == Kind::Pair { 2 } else { 1 })?.0.map(|step| step.counts))
    }

    /// What a refresh of one ciphertext or pair costs.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn cost(&self, kind: Kind) -> Result<Work, HeError> {
        Ok(self.simulated(kind, if kind == Kind::Pair { 2 } else { 1 })?.1.cost)
    }

    /// Bytes of the keys in memory.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn key_bytes(&self) -> Result<u64, HeError> {
        let (literal, figures) = (&self.literal().params.rlwe, self.figures()?);
        let levels = figures.galois.values().copied().chain(figures.relin);
        let keys: usize = levels.map(|level| KeySwitchKey::bytes_at(literal, level)).sum();
        let to_sparse = self.literal().entries() * KeySwitchKey::bytes_at(self.gate().literal(), 0);
        let to_dense = KeySwitchKey::bytes_at(self.open().literal(), self.layout().levels.top);
        Ok((keys + to_sparse + self.keys_back() * to_dense) as u64)
    }

    /// Keys from the sparse secret to the dense one: one, or one for each diagonal of a stage in keys.
    fn keys_back(&self) -> usize {
        self.layout().keyed().map_or(1, |stage| stage.elements().len())
    }

    /// Bytes of the keys as they travel, seeds in place of masks, but for headers.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn wire_bytes(&self) -> Result<u64, HeError> {
        let digits = |set: &rlwe::Params, level: usize| set.digits_at(level) as u64 * packed_bytes(set.qp_at(level));
        let figures = self.figures()?;
        let levels = figures.galois.values().copied().chain(figures.relin);
        let keys: u64 = levels.map(|level| digits(self.params().rlwe(), level)).sum();
        let to_sparse = self.literal().entries() as u64 * digits(self.gate(), 0);
        Ok(keys + to_sparse + self.keys_back() as u64 * digits(self.open(), self.layout().levels.top))
    }

    /// Bytes of the diagonals of both transforms, before there are any; those of a stage in keys as a server has them.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn diagonal_bytes(&self) -> Result<u64, HeError> {
        Ok(self.figures()?.diagonals)
    }

    /// Bytes that a refresh of some complex ciphertexts works in at once, at its largest step, with these.
    ///
    /// # Errors
    /// None for a set that was built.
    pub fn working_bytes(&self, count: usize) -> Result<u64, HeError> {
        Ok(if count == 1 { self.figures()?.working } else { self.simulated(Kind::Complex, count)?.1.working })
    }
}

impl std::fmt::Debug for BootstrapParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "BootstrapParams({} slots, {} levels to use of {}, {:?})",
            self.slots(),
            self.usable_levels(),
            self.params().max_level() / self.literal().level_primes(),
            self.params()
        )
    }
}
