//! Bootstrapping parameters: a literal checked and laid out.

use super::set::BootstrapLiteral;
use crate::circuits::dft::{Direction, Stage, Transform};
use crate::circuits::mod1::{Mod1, Mod1Literal};
use crate::circuits::trace::TraceFunction;
use crate::circuits::unrolled::TracePlan;
use crate::error::HeError;
use crate::keys::KeySwitchKey;
use crate::params::Params;
use crate::security::SecretDistribution;
use num_complex::Complex64;
use std::collections::BTreeMap;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::prime::ntt_primes;

/// Bits by which the special primes of StC's keys exceed its digit at least.
const LOW_MARGIN: f64 = 2.0;

/// Where each part of the chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Level of an input, on which StC starts.
    pub input: usize,
    /// Level of a refreshed ciphertext.
    pub output: usize,
    /// Level of what leaves the modular reduction: the output's, or one above where there is a mask.
    pub reduced: usize,
    /// Level at which the modular reduction starts.
    pub start: usize,
    /// The highest.
    pub top: usize,
}

struct Inner {
    literal: BootstrapLiteral,
    params: Params,
    /// q_0 … of StC and the first special primes.
    low: Params,
    /// q_0 and p, for the sparse secret.
    gate: Params,
    /// All of Q and p.
    open: Params,
    levels: Levels,
    mod1: Mod1,
    stc: Transform,
    cts: Transform,
}

/// A checked bootstrapping set. Cloning shares it.
#[derive(Clone)]
pub struct BootstrapParams(Arc<Inner>);

impl BootstrapLiteral {
    /// Checks the literal and lays it out.
    ///
    /// # Errors
    /// [`HeError::Parameters`], [`HeError::Insecure`] for the whole set or for the sparse key alone,
    /// [`HeError::Ring`].
    pub fn build(&self) -> Result<BootstrapParams, HeError> {
        BootstrapParams::new(self.clone())
    }
}

impl BootstrapParams {
    fn new(literal: BootstrapLiteral) -> Result<Self, HeError> {
        let fail = |reason: String| Err(HeError::Parameters { reason });
        if literal.log_slots == 0 || literal.log_slots > literal.params.log_n.saturating_sub(1) {
            return fail(format!("2^{} slots do not fit N = 2^{}", literal.log_slots, literal.params.log_n));
        }
        if !(1..=16).contains(&literal.hoisted) || !(0.0..=16.0).contains(&literal.log_radius) {
            return fail("a bootstrap hoists 1 to 16 babies, and −log2 of its radius is at most 16".into());
        }
        if literal.params.secret != SecretDistribution::Ternary {
            return fail("bootstrapping takes a uniform ternary secret; the sparse one is made with the keys".into());
        }
        let mod1 = Mod1::new(Mod1Literal {
            integers: literal.weight / 2,
            radius: (-literal.log_radius).exp2(),
            degree: literal.degree,
            doublings: literal.doublings,
            sines: literal.sines,
        })?;
        let points = 1usize << literal.log_slots;
        let stc = Transform::new(points, &literal.stc, Direction::SlotsToCoefficients, 0)?;
        let mut cts = Transform::new(points, &literal.cts, Direction::CoefficientsToSlots, stc.pending())?;
        let params = literal.params.build()?;
        if points < params.slots() {
            // Imaginary parts stand behind the real ones.
            cts.mask_output(&side_by_side(points, -Complex64::I));
        }
        let levels = levels(&literal, &params, mod1.depth())?;
        let (low, gate, open) = derived(&literal, &params, levels)?;
        Ok(Self(Arc::new(Inner { literal, params, low, gate, open, levels, mod1, stc, cts })))
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &BootstrapLiteral {
        &self.0.literal
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

    pub(crate) fn levels(&self) -> Levels {
        self.0.levels
    }

    /// The modular reduction.
    pub fn mod1(&self) -> &Mod1 {
        &self.0.mod1
    }

    /// The transforms: StC, CtS.
    pub fn transforms(&self) -> [&Transform; 2] {
        [&self.0.stc, &self.0.cts]
    }

    /// Slots that hold values; they repeat in the others.
    pub fn slots(&self) -> usize {
        1 << self.0.literal.log_slots
    }

    /// Whether slots repeat.
    pub fn is_sparse(&self) -> bool {
        self.slots() < self.params().slots()
    }

    /// The lowest level of an input. A ciphertext is of use down to it.
    pub fn input_level(&self) -> usize {
        self.0.levels.input
    }

    /// The level of a refreshed ciphertext.
    pub fn output_level(&self) -> usize {
        self.0.levels.output
    }

    /// Levels that a refreshed ciphertext has for use.
    pub fn usable_levels(&self) -> usize {
        self.0.levels.output - self.0.levels.input
    }

    /// ρ.
    pub fn radius(&self) -> f64 {
        self.0.mod1.literal().radius
    }

    pub(crate) fn q0(&self) -> f64 {
        self.params().prime_at(0) as f64
    }

    /// What StC multiplies a ciphertext's scale by, so that bound · scale = Δ comes out as ρ·q_0.
    pub(crate) fn shrink(&self) -> f64 {
        self.radius() * self.q0() / self.params().scale()
    }

    /// Scale of the modular reduction's input, with values over K + ρ.
    pub(crate) fn start_scale(&self) -> f64 {
        self.params().prime_at(self.levels().start) as f64
    }

    /// Scale of the modular reduction's output: twice it, over q_0, is what the result is scaled by.
    pub(crate) fn reduced_scale(&self) -> f64 {
        self.params().scale() / (2.0 * self.radius())
    }

    /// The trace to the ring of the slots, which the raised ciphertext takes.
    pub(crate) fn trace(&self) -> Result<TracePlan, HeError> {
        let count = self.params().slots() / self.slots();
        Ok(TraceFunction::strided_sums(self.params(), count, self.slots() as i64)?.doubling())
    }

    /// The rotation that undoes what the transforms left.
    pub(crate) fn undo(&self) -> i64 {
        (-self.0.cts.pending()).rem_euclid(self.params().slots() as i64)
    }

    /// For sparse slots: the rotations of the map that masks, folds and undoes at once.
    pub(crate) fn mask_steps(&self) -> [i64; 2] {
        let period = 2 * self.slots() as i64;
        [0, self.slots() as i64].map(|half| (half - self.0.cts.pending()).rem_euclid(period))
    }

    /// Galois elements, each with the level that its key has to reach.
    pub(crate) fn galois_levels(&self) -> Result<BTreeMap<u64, usize>, HeError> {
        let (params, levels) = (self.params(), self.levels());
        let mut out = BTreeMap::new();
        let mut add = |element: u64, level: usize| {
            if element != 1 {
                let entry = out.entry(element).or_insert(level);
                *entry = level.max(*entry);
            }
        };
        for (i, stage) in self.0.cts.stages().iter().enumerate() {
            self.stage_elements(stage).into_iter().for_each(|e| add(e, levels.top - i));
        }
        for stage in self.0.stc.stages() {
            self.stage_elements(stage).into_iter().for_each(|e| add(e, levels.input));
        }
        let conjugation = params.conjugation_element();
        match self.is_sparse() {
            false => {
                add(conjugation, levels.start + 1);
                let undo = params.rotation_element(self.undo());
                add(undo, levels.reduced);
                add(undo * conjugation % (2 * params.degree() as u64), levels.reduced);
            }
            true => {
                add(conjugation, levels.start + 1);
                self.mask_steps().iter().for_each(|s| add(params.rotation_element(*s), levels.reduced));
                self.trace()?.elements().into_iter().for_each(|e| add(e, levels.top));
            }
        }
        Ok(out)
    }

    /// Elements of a stage's chained map.
    pub(super) fn stage_elements(&self, stage: &Stage) -> Vec<u64> {
        let (hoisted, roots) = stage.steps(self.0.literal.hoisted);
        let count = stage.diagonals().keys().last().map_or(1, |t| *t as usize + 1);
        let babies = (1..hoisted.min(count)).chain((roots > 1).then_some(hoisted));
        let giants = (count > hoisted * roots).then_some(hoisted * roots);
        babies.chain(giants).map(|t| self.params().rotation_element(t as i64 * stage.unit())).collect()
    }

    /// Bytes of the keys in memory.
    pub fn key_bytes(&self) -> Result<u64, HeError> {
        let literal = self.params().literal();
        let galois: usize = self.galois_levels()?.values().map(|l| KeySwitchKey::bytes_at(literal, *l)).sum();
        let relin = KeySwitchKey::bytes_at(literal, self.levels().start);
        let gates = KeySwitchKey::bytes_at(self.gate().literal(), 0)
            + KeySwitchKey::bytes_at(self.open().literal(), self.levels().top);
        Ok((galois + relin + gates) as u64)
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

/// 1 in the first `points` slots and `value` in as many more.
pub(super) fn side_by_side(points: usize, value: Complex64) -> Vec<Complex64> {
    [vec![Complex64::ONE; points], vec![value; points]].concat()
}

fn levels(literal: &BootstrapLiteral, params: &Params, depth: usize) -> Result<Levels, HeError> {
    let top = params.max_level();
    let input = literal.stc.len();
    let mask = usize::from(1 << literal.log_slots < params.slots());
    let used = literal.cts.len() + depth + mask;
    let output = top.checked_sub(used).filter(|output| *output > input);
    let Some(output) = output else {
        return Err(HeError::Parameters {
            reason: format!(
                "bootstrapping uses {used} levels above and {input} below the user's, and the set has {top}; add primes"
            ),
        });
    };
    let start = top - literal.cts.len();
    Ok(Levels { input, output, reduced: output + mask, start, top })
}

/// The parameters of StC, of the way to the sparse secret, and of the way back.
fn derived(literal: &BootstrapLiteral, params: &Params, levels: Levels) -> Result<(Params, Params, Params), HeError> {
    let (q, p) = (params.q(), params.p());
    let limbs = levels.input + 1;
    if literal.params.digit_limbs < limbs {
        return Err(HeError::Parameters {
            reason: format!("a digit of key switching holds the {limbs} lowest primes at least"),
        });
    }
    let low_q = q.prefix(limbs);
    let mut special = 0;
    let mut bits = 0.0;
    while bits < low_q.log2_product() + LOW_MARGIN && special < p.len() {
        bits += (p.limb(special).q() as f64).log2();
        special += 1;
    }
    let secret = literal.params.secret;
    let low = params.derived(low_q, p.prefix(special), limbs, secret)?;
    let taken: Vec<u64> = q.primes().chain(p.primes()).collect();
    let gate_prime = ntt_primes(params.degree(), literal.gate_bits, 1, &taken)?;
    if literal.gate_bits < params.literal().q_bits[0] {
        return Err(HeError::Parameters {
            reason: format!("the prime of {} bits beside q_0 is smaller than it", literal.gate_bits),
        });
    }
    let gate_basis = RnsBasis::new(params.degree(), &gate_prime)?;
    let sparse = SecretDistribution::FixedWeight { weight: literal.weight };
    let gate = params.derived(q.prefix(1), gate_basis.clone(), 1, sparse)?;
    let open = params.derived(q.clone(), gate_basis, q.len(), secret)?;
    Ok((low, gate, open))
}
