//! How a bootstrapping set lays its chain out: levels, scales and steps, before any prime is chosen.

use super::keyed::too_few;
use super::noise::integer_variance;
use super::set::{BootstrapLiteral, ReductionLiteral};
use crate::circuits::dft::{Direction, Stage, Transform};
use crate::circuits::linear_map::{Diagonals, MapPlan};
use crate::circuits::mod1::{Exponential, Interpolation, MAX_TABLE, Mod1, Mod1Literal, Reduction, Series};
use crate::circuits::polynomial::program::{Plan, Value};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::collections::BTreeMap;
use sudare_ring::automorphism::rotation_element;
use sudare_rlwe::noise::Sketch;
use sudare_rlwe::security::SecretDistribution;

/// Bits by which the special primes of StC's keys exceed its digit at least.
const LOW_MARGIN: f64 = 2.0;

/// How far scale times bound of an input may lie above Δ: scales drift with products, since primes are no
/// powers of two. The reduction is fitted for it.
pub(crate) const DRIFT: f64 = 1.0 + 1.0 / 64.0;

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

/// A set's levels, transforms and reduction.
#[derive(Debug)]
pub(crate) struct Layout {
    pub literal: BootstrapLiteral,
    pub chain: Sketch,
    /// The primes of StC and of its keys.
    pub low: Sketch,
    /// The prime p beside q_0 of the sparse secret.
    pub gate_prime: f64,
    pub levels: Levels,
    pub reduction: Reduction,
    pub stc: Transform,
    pub cts: Transform,
}

impl Layout {
    /// Lays a literal out over a chain.
    ///
    /// # Errors
    /// `RlweError::Parameters`.
    pub fn new(literal: &BootstrapLiteral, chain: Sketch) -> Result<Self, HeError> {
        check(literal)?;
        let reduction = reduction(literal)?;
        let (points, slots) = (1usize << literal.log_slots, 1usize << (literal.params.log_n - 1));
        let stc = match literal.is_half() {
            true => Transform::none(points),
            false => Transform::new(points, &literal.stc, Direction::SlotsToCoefficients, 0)?,
        };
        let mut cts = Transform::new(points, &literal.cts, Direction::CoefficientsToSlots, stc.pending())?;
        if points < slots {
            // Imaginary parts stand behind the real ones.
            cts.mask_output(&side_by_side(points, -Complex64::I));
        }
        let levels = levels(literal, chain.q().len() - 1, reduction.depth())?;
        let low = low(&chain, levels.input + 1)?;
        let gate_prime = f64::from(literal.gate_bits).exp2();
        let out = Self { literal: literal.clone(), chain, low, gate_prime, levels, reduction, stc, cts };
        match out.keyed().map(|stage| stage.low()) {
            Some(None) => Err(too_few()),
            _ => Ok(out),
        }
    }

    /// N.
    pub fn degree(&self) -> usize {
        1 << self.literal.params.log_n
    }

    /// Slots that hold values.
    pub fn slots(&self) -> usize {
        self.stc.points()
    }

    /// How often they repeat.
    pub fn repeats(&self) -> usize {
        self.degree() / 2 / self.slots()
    }

    /// Whether slots repeat.
    pub fn is_sparse(&self) -> bool {
        self.repeats() > 1
    }

    /// Δ, or of two refreshes in one the scale of each.
    pub fn scale(&self) -> f64 {
        self.user_scale() / f64::from(self.literal.extra_bits).exp2()
    }

    /// Δ.
    pub fn user_scale(&self) -> f64 {
        f64::from(self.literal.params.log_scale).exp2()
    }

    /// Level of what a refresh takes: StC's, or of two refreshes in one that of the prime that sets the scale of both.
    pub fn input_level(&self) -> usize {
        self.levels.input + usize::from(self.literal.is_iterated())
    }

    /// ρ: what values that fill Δ fill of q_0; of tables 1/t.
    pub fn radius(&self) -> f64 {
        match self.literal.reduction {
            ReductionLiteral::Sines { log_radius, .. } => (-log_radius).exp2(),
            ReductionLiteral::Tables { modulus } => 1.0 / modulus as f64,
        }
    }

    /// E(m/q_0 + I)² of a raised coefficient: the sum of h + 1 uniform numbers, of which messages of size one leave
    /// only I and what they fill.
    pub fn spread(&self) -> f64 {
        let integers = integer_variance(self.literal.weight);
        match self.literal.reduction {
            ReductionLiteral::Sines { .. } => integers + self.radius().powi(2) / 3.0,
            ReductionLiteral::Tables { .. } => integers,
        }
    }

    pub fn q0(&self) -> f64 {
        self.chain.q()[0]
    }

    /// What StC multiplies a ciphertext's scale by, so that bound · scale = Δ comes out as ρ·q_0.
    pub fn shrink(&self) -> f64 {
        self.radius() * self.q0() / self.scale()
    }

    /// Scale of the modular reduction's input, with values over K + ρ.
    pub fn start_scale(&self) -> f64 {
        self.chain.q()[self.levels.start]
    }

    /// What of q_0 a value of size one is, at a scale.
    pub fn unit(&self, scale: f64) -> f64 {
        self.radius() * scale / self.scale()
    }

    /// The modular reduction as a program, and its value, whose imaginary parts times 2i have `target` as their
    /// scale for messages that came with `scale`; of tables the one of all numbers as they are.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`.
    pub fn reduction(&self, scale: f64, target: f64) -> Result<(Plan, Value), HeError> {
        let mut plan = Plan::new(self.chain.clone(), self.levels.start, self.start_scale());
        let value = match &self.reduction {
            Reduction::Sines(mod1) => mod1.write(&mut plan, 0, target / (2.0 * self.unit(scale)))?,
            Reduction::Tables { modulus, .. } => {
                let all: Vec<f64> = (0..*modulus).map(|x| x as f64).collect();
                let (written, _, values) = self.tables(&[(Interpolation::new(&all)?.series(), target)])?;
                plan = written;
                values[0]
            }
        };
        Ok((plan, value))
    }

    /// The modular reduction of numbers.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set of tables.
    pub fn mod1(&self) -> Result<&Mod1, HeError> {
        match &self.reduction {
            Reduction::Sines(mod1) => Ok(mod1),
            Reduction::Tables { .. } => Err(parameters(
                "this bootstrapping set evaluates tables of integers and refreshes no numbers; take A to D",
            )),
        }
    }

    /// The exponential before tables, and the most values of one.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set of numbers.
    pub fn exponential(&self) -> Result<(&Exponential, usize), HeError> {
        match &self.reduction {
            Reduction::Tables { exponential, modulus } => Ok((exponential, *modulus)),
            Reduction::Sines(_) => {
                Err(parameters("this bootstrapping set refreshes numbers and has no tables; take G15, L15, S15 or W16"))
            }
        }
    }

    /// Series of one exponential as a program: the exponential's value, and those of the series, whose imaginary parts times
    /// 2i have what stands beside each as their scale.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`; `RlweError::Parameters` for a set that has no tables.
    pub fn tables(&self, tables: &[(&Series, f64)]) -> Result<(Plan, Value, Vec<Value>), HeError> {
        let (exponential, _) = self.exponential()?;
        let mut plan = Plan::new(self.chain.clone(), self.levels.start, self.start_scale());
        let scale = plan.prime(self.levels.start - exponential.depth());
        let e = exponential.write(&mut plan, 0, scale)?;
        // Imaginary parts count twice.
        let halves: Vec<_> = tables.iter().map(|(table, scale)| (*table, scale / 2.0)).collect();
        let values = Series::write(&mut plan, e, &halves)?;
        Ok((plan, e, values))
    }

    /// For each stage of StC its level, its factor and the scale of its diagonals.
    pub fn stc_stages(&self) -> impl Iterator<Item = (&Stage, usize, f64, f64)> {
        let share = self.shrink().powf(1.0 / self.stc.stages().len() as f64);
        let at = move |(i, stage)| {
            let level = self.levels.input - i;
            (stage, level, 1.0, self.chain.q()[level] * share)
        };
        self.stc.stages().iter().enumerate().map(at)
    }

    /// The factor of each stage of CtS, and what it multiplies scales by.
    pub fn cts_shares(&self) -> (f64, f64) {
        let count = 1.0 / self.cts.stages().len() as f64;
        let factor = (1.0 / (2.0 * self.reduction.span() * self.repeats() as f64)).powf(count);
        (factor, (self.start_scale() / self.q0()).powf(count))
    }

    /// The same for CtS, but for a stage in keys.
    pub fn cts_stages(&self) -> impl Iterator<Item = (&Stage, usize, f64, f64)> {
        let (factor, share) = self.cts_shares();
        let at = move |(i, stage)| {
            let level = self.levels.top - i;
            (stage, level, factor, self.chain.q()[level] * share)
        };
        self.cts.stages().iter().skip(usize::from(self.literal.keyed)).enumerate().map(at)
    }

    /// StC's maps without values.
    pub fn stc_plans(&self) -> Vec<MapPlan> {
        let plan = |(stage, _, factor, scale): (&Stage, usize, f64, f64)| {
            stage.plan(self.degree(), factor, self.literal.hoisted, scale)
        };
        self.stc_stages().map(plan).collect()
    }

    /// CtS's maps without values, but for a stage in keys.
    pub fn cts_plans(&self) -> Vec<MapPlan> {
        let plan = |(stage, _, factor, scale): (&Stage, usize, f64, f64)| {
            stage.plan(self.degree(), factor, self.literal.hoisted, scale)
        };
        self.cts_stages().map(plan).collect()
    }

    /// Of sparse slots, what makes u in the first half of 2n slots and v in the second u + i·v in both, and
    /// undoes the transforms' rotation: diagonals and their scale.
    pub fn mask(&self) -> (Diagonals<Complex64>, f64) {
        let n = self.slots();
        let mask = side_by_side(n, Complex64::I);
        let turned: Vec<Complex64> = (0..2 * n).map(|j| mask[(j + n) % (2 * n)]).collect();
        let [own, other] = self.mask_steps();
        (BTreeMap::from([(own, mask), (other, turned)]), self.chain.q()[self.levels.reduced])
    }

    /// The mask's map without values, where there is one.
    pub fn mask_plan(&self) -> Option<MapPlan> {
        self.is_sparse().then(|| {
            let (diagonals, scale) = self.mask();
            MapPlan::flat(self.degree(), &diagonals, 1, usize::MAX, scale).0
        })
    }

    fn mask_steps(&self) -> [i64; 2] {
        let period = 2 * self.slots() as i64;
        [0, self.slots() as i64].map(|half| (half - self.cts.pending()).rem_euclid(period))
    }

    /// The rotation that undoes what the transforms left.
    pub fn undo(&self) -> i64 {
        (-self.cts.pending()).rem_euclid(self.degree() as i64 / 2)
    }

    /// Galois elements of the trace to the ring of the slots.
    pub fn trace_elements(&self) -> Vec<u64> {
        let steps = (0..self.repeats().trailing_zeros()).map(|i| (self.slots() as i64) << i);
        steps.map(|step| rotation_element(self.degree(), step)).collect()
    }
}

/// 1 in the first `points` slots and `value` in as many more.
fn side_by_side(points: usize, value: Complex64) -> Vec<Complex64> {
    [vec![Complex64::ONE; points], vec![value; points]].concat()
}

fn check(literal: &BootstrapLiteral) -> Result<(), HeError> {
    let fail = |reason: String| Err(parameters(reason));
    if !(9..=17).contains(&literal.params.log_n) || !(1..literal.params.log_n).contains(&literal.log_slots) {
        return fail(format!(
            "2^{} slots do not fit N = 2^{}; take log2 N from 9 to 17, and from 2 slots to N/2",
            literal.log_slots, literal.params.log_n
        ));
    }
    if literal.is_iterated() {
        let one = literal.params.log_scale.checked_sub(literal.extra_bits);
        let numbers = matches!(literal.reduction, ReductionLiteral::Sines { .. });
        if one.is_none_or(|one| one < 20) || !numbers || literal.log_slots + 1 != literal.params.log_n {
            return fail(
                "two refreshes in one take a set of numbers in all slots, with at least 20 bits of scale for each"
                    .into(),
            );
        }
    }
    if !(1..=16).contains(&literal.hoisted) {
        return fail(format!("a bootstrap hoists 1 to 16 baby steps, not {}", literal.hoisted));
    }
    match literal.reduction {
        ReductionLiteral::Sines { log_radius, .. } if !(0.0..=16.0).contains(&log_radius) => {
            return fail(format!("−log2 of a bootstrap's radius is from 0 to 16, not {log_radius}"));
        }
        ReductionLiteral::Sines { .. } if literal.is_half() => {
            return fail("half a bootstrap ends with a series; give its set tables in place of sines".into());
        }
        ReductionLiteral::Tables { modulus } if !(2..=MAX_TABLE).contains(&modulus) => {
            return fail(format!("the tables of a set have 2 to {MAX_TABLE} values, not {modulus}"));
        }
        ReductionLiteral::Tables { .. } if literal.log_slots + 1 != literal.params.log_n => {
            return fail("tables are evaluated in all slots; take log_slots = log2 N − 1".into());
        }
        _ => {}
    }
    if literal.keyed && (literal.log_slots + 1 != literal.params.log_n || literal.cts.len() < 2) {
        return fail(
            "the first stage of CtS can be in keys where all slots are in use and there is a second stage; take \
             keyed: false"
                .into(),
        );
    }
    if !(2..=256).contains(&literal.weight) || literal.weight % 2 == 1 {
        return fail(format!(
            "the weight {} of the ephemeral secret is not possible; take an even one from 2 to 256",
            literal.weight
        ));
    }
    if literal.params.secret != SecretDistribution::Ternary {
        return fail(
            "bootstrapping takes a uniform ternary secret; take one, for the sparse one is made with the keys".into(),
        );
    }
    if literal.params.q_bits.first().is_none_or(|q0| *q0 > literal.gate_bits) {
        return fail(format!(
            "the prime of {} bits beside q_0 is smaller than q_0; take more gate_bits",
            literal.gate_bits
        ));
    }
    Ok(())
}

fn reduction(literal: &BootstrapLiteral) -> Result<Reduction, HeError> {
    let BootstrapLiteral { degree, doublings, weight, .. } = *literal;
    Ok(match literal.reduction {
        ReductionLiteral::Sines { terms, log_radius } => {
            let radius = (-log_radius).exp2() * DRIFT;
            let integers = weight / 2;
            Reduction::Sines(Mod1::new(Mod1Literal { integers, radius, degree, doublings, sines: terms })?)
        }
        // Numbers may lie anywhere between −(h + 1)/2 and (h + 1)/2.
        ReductionLiteral::Tables { modulus } => Reduction::Tables {
            exponential: Exponential::whole(f64::from(weight + 1) / 2.0, degree, doublings)?,
            modulus,
        },
    })
}

fn levels(literal: &BootstrapLiteral, top: usize, depth: usize) -> Result<Levels, HeError> {
    let input = literal.stc.len();
    let below = input + usize::from(literal.is_iterated());
    let mask = usize::from(literal.log_slots + 1 < literal.params.log_n);
    let stages = literal.cts.len().saturating_sub(usize::from(literal.keyed));
    let used = stages + depth + mask;
    // Tables may end where the next ones begin.
    let least = match literal.reduction {
        ReductionLiteral::Sines { .. } => below + literal.level_primes(),
        ReductionLiteral::Tables { .. } => below,
    };
    let whole = |output: &usize| *output >= least && (output - below).is_multiple_of(literal.level_primes());
    match top.checked_sub(used).filter(whole) {
        Some(output) => Ok(Levels { input, output, reduced: output + mask, start: top - stages, top }),
        None => Err(parameters(format!(
            "bootstrapping uses {used} levels above and {below} below the user's, of {} each, and the set has {top} in all; \
             add primes",
            literal.level_primes()
        ))),
    }
}

/// The lowest primes, and as many special ones as their keys need.
fn low(chain: &Sketch, limbs: usize) -> Result<Sketch, HeError> {
    if chain.digit_limbs() < limbs {
        return Err(parameters(format!(
            "a digit of key switching has to hold at least the {limbs} lowest primes, and it holds {}",
            chain.digit_limbs()
        )));
    }
    let digit: f64 = chain.q()[..limbs].iter().map(|q| q.log2()).sum();
    let mut bits = 0.0;
    let enough = |p: &&f64| {
        let more = bits < digit + LOW_MARGIN;
        bits += p.log2();
        more
    };
    let special = chain.p().iter().take_while(enough).count();
    Ok(chain.part(limbs, special, limbs))
}
