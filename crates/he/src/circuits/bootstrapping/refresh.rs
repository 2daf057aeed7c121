//! The bootstrapper: what a server prepares once, and the steps of a refresh.

use super::keys::BootstrapKeys;
use super::layout::{Layout, PAIR, RAISE, conjugate_sums, join_counters};
use super::noise::Bounds;
use super::params::BootstrapParams;
use super::raise::raise;
use crate::circuits::dft::Stage;
use crate::circuits::linear_map::LinearMap;
use crate::circuits::polynomial::Parts;
use crate::circuits::polynomial::program::Program;
use crate::circuits::trace::TraceFunction;
use crate::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Params, State};
use crate::error::HeError;
use sudare_ring::interrupt::check;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::GaloisKey;
use sudare_rlwe::switching::ExtendedPair;
use sudare_rlwe::{self as rlwe, Backend, Counters};

/// Largest integer that small values are multiplied by.
const MOST_RAISED: f64 = 256.0;

/// What is planned for one ciphertext.
#[derive(Debug)]
pub(super) struct Case {
    /// The integer that it is multiplied by.
    pub factor: i64,
    /// Its scale times the factor.
    pub scale: f64,
    /// The scale of the result.
    pub target: f64,
    /// Its modular reduction.
    pub program: Program,
}

/// A step of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Slots to coefficients.
    SlotsToCoefficients,
    /// To the sparse secret, to all primes, and back; the trace of sparse slots.
    Raise,
    /// Coefficients to slots.
    CoefficientsToSlots,
    /// Reduction modulo q_0.
    Reduce,
    /// Real and imaginary parts together again.
    Join,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 5] =
        [Self::SlotsToCoefficients, Self::Raise, Self::CoefficientsToSlots, Self::Reduce, Self::Join];
}

/// How far a refresh is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step that begins.
    pub step: Step,
    /// Steps done before it, of [`Step::ALL`].
    pub done: usize,
}

/// Keys and precomputation of a server that refreshes ciphertexts.
#[derive(Debug)]
pub struct Bootstrapper {
    pub(super) keys: BootstrapKeys,
    pub(super) evaluator: Evaluator,
    /// The keys of StC.
    pub(super) low: Evaluator,
    pub(super) stc: Vec<LinearMap>,
    pub(super) cts: Vec<LinearMap>,
    /// For sparse slots: imaginary parts to their place.
    pub(super) mask: Option<LinearMap>,
    pub(super) bounds: Bounds,
}

/// What slots hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Real numbers: about half of the modular reduction.
    Real,
    /// Complex numbers.
    Complex,
    /// Real numbers of two ciphertexts x and y, refreshed as x + iy: the transforms once for both. Sparse slots have
    /// their real and imaginary parts in one ciphertext anyway, and are refreshed alone.
    Pair,
}

impl Bootstrapper {
    /// Prepares diagonals, if keys and they fit in `memory` bytes (`None`: no limit).
    ///
    /// # Errors
    /// [`HeError::Memory`] with both figures, before anything is prepared; `RlweError::Parameters`,
    /// [`HeError::TooLarge`] where scales and primes do not go together.
    pub fn new(keys: BootstrapKeys, memory: Option<u64>) -> Result<Self, HeError> {
        let params = keys.params.clone();
        let layout = params.layout();
        let needed = keys.bytes() as u64 + layout.diagonal_bytes() + layout.working_bytes(1);
        if let Some(limit) = memory.filter(|limit| needed > *limit) {
            let what = format!("a bootstrapper at N = {} and one ciphertext", params.params().degree());
            return Err(HeError::Memory { what, needed, limit });
        }
        let hoisted = params.literal().hoisted;
        Ok(Self {
            evaluator: Evaluator::new(params.params(), keys.keys.clone())?,
            low: Evaluator::new(params.low(), keys.low()?)?,
            stc: maps(layout.stc_stages(), params.low(), hoisted)?,
            cts: maps(layout.cts_stages(), params.params(), hoisted)?,
            mask: if layout.is_sparse() { Some(mask_map(layout, params.params())?) } else { None },
            bounds: Bounds::new(layout),
            keys,
        })
    }

    pub(super) fn layout(&self) -> &Layout {
        self.keys.params.layout()
    }

    /// The set.
    pub fn params(&self) -> &BootstrapParams {
        &self.keys.params
    }

    /// The keys.
    pub fn keys(&self) -> &BootstrapKeys {
        &self.keys
    }

    /// An evaluator with the bootstrapping keys: it relinearises at every level of a refreshed ciphertext.
    pub fn evaluator(&self) -> &Evaluator {
        &self.evaluator
    }

    /// Operations done since the start or the last reset, those of StC with its own keys among them.
    pub fn counters(&self) -> Counters {
        self.evaluator.counters() + self.low.counters()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.evaluator.reset_counters();
        self.low.reset_counters();
    }

    /// Bytes of keys and diagonals.
    pub fn bytes(&self) -> usize {
        let mask = self.mask.as_ref().map_or(0, LinearMap::bytes);
        self.keys.bytes() + self.low.keys().bytes() + self.map_bytes() + mask
    }

    /// Bytes of the transforms' diagonals.
    pub fn map_bytes(&self) -> usize {
        self.stc.iter().chain(&self.cts).map(LinearMap::bytes).sum()
    }

    /// The same complex slots with new levels: at [`BootstrapParams::output_level`], and at the scale Δ
    /// exactly, or at Δ over the next power of two where the bound is above one.
    ///
    /// # Errors
    /// As [`Bootstrapper::refresh_many`].
    pub fn refresh(&self, ciphertext: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.one(ciphertext, Kind::Complex)
    }

    /// [`Bootstrapper::refresh`] of slots that are real, with half of the modular reduction: about seven tenths of the time;
    /// imaginary parts become zero.
    ///
    /// # Errors
    /// As [`Bootstrapper::refresh_many`].
    pub fn refresh_real(&self, ciphertext: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.one(ciphertext, Kind::Real)
    }

    /// Refreshes several ciphertexts together: each key and diagonal is read once for all.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set of tables;
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`; `RlweError::OutOfLevels` below
    /// the input level; [`HeError::TooLarge`] unless bound · scale ≤ Δ.
    pub fn refresh_many(&self, ciphertexts: &[&Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        self.run(ciphertexts, Kind::Complex, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many`] of real slots.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_many_real(&self, ciphertexts: &[&Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        self.run(ciphertexts, Kind::Real, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many_real`] with two and two as the real and imaginary parts of one ([`Kind::Pair`]), and the last of an
    /// odd number alone: about seven tenths of the time. Slots must be real but for errors: the imaginary part of each comes
    /// to the other one's real part, so that each result carries the errors of both.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_pairs(&self, ciphertexts: &[&Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        self.run(ciphertexts, Kind::Pair, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many`] of slots of any kind that tells of each step before it begins. Like all work inside
    /// [`Interrupt::run`](sudare_ring::interrupt::Interrupt::run) it ends early where it is asked to.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_told(
        &self,
        ciphertexts: &[&Ciphertext],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Ciphertext>, HeError> {
        self.run(ciphertexts, kind, tell)
    }

    fn one(&self, ciphertext: &Ciphertext, kind: Kind) -> Result<Ciphertext, HeError> {
        let out = self.run(&[ciphertext], kind, &mut |_| {})?;
        out.into_iter().next().ok_or(RlweError::Operands { operation: "bootstrapping", left: 1, right: 0 }.into())
    }

    fn run(
        &self,
        ciphertexts: &[&Ciphertext],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Ciphertext>, HeError> {
        let kind = if kind == Kind::Pair && self.layout().is_sparse() { Kind::Real } else { kind };
        let together = if kind == Kind::Pair { 2 } else { 1 };
        let cases = ciphertexts.iter().map(|c| self.case(c)).collect::<Result<Vec<_>, _>>()?;
        let operands: Vec<(&Ciphertext, &Case)> = ciphertexts.iter().copied().zip(&cases).collect();
        let groups: Vec<&[(&Ciphertext, &Case)]> = operands.chunks(together).collect();
        // What is left of pairs is real.
        let kinds: Vec<Kind> = groups.iter().map(|g| if g.len() == together { kind } else { Kind::Real }).collect();
        let mut begin = |done: usize| {
            tell(Progress { step: Step::ALL[done], done });
            check();
        };
        begin(0);
        let inputs = groups.iter().map(|group| self.together(group)).collect();
        let low = self.to_coefficients(inputs)?;
        begin(1);
        let raised = low.iter().map(|parts| raise(&self.keys, parts)).collect();
        self.evaluator.record(RAISE * groups.len());
        let raised = self.traced(raised)?;
        begin(2);
        let starts = self.to_slots(raised, &kinds)?;
        begin(3);
        let reduced = self.reduce(&starts, &cases)?;
        drop(starts);
        begin(4);
        let joined = self.join(reduced, kind)?;
        let noises = groups.iter().flat_map(|group| {
            let noise = group.iter().map(|(c, case)| c.noise * case.factor as f64).sum::<f64>();
            std::iter::repeat_n(noise, group.len())
        });
        Ok(joined.into_iter().zip(&operands).zip(noises).map(|((p, o), noise)| self.finish(*o, noise, p)).collect())
    }

    /// Refuses what cannot be refreshed; plans the reduction for the ciphertext's scale.
    pub(super) fn case(&self, c: &Ciphertext) -> Result<Case, HeError> {
        let operation = "bootstrapping";
        self.evaluator.inner.check_two_parts(operation, c.inner())?;
        let layout = self.layout();
        layout.mod1()?;
        if c.level() < layout.levels.input {
            return Err(RlweError::OutOfLevels { operation, needed: layout.levels.input, level: c.level() }.into());
        }
        let most = self.params().largest_product();
        let found = c.bound * c.scale;
        if found > most {
            let (value, scale, modulus) = (c.bound.log2(), c.scale.log2(), layout.scale().log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: c.level() });
        }
        // Values that fill less than they may are raised, as far as an integer does.
        let factor = (most / found.max(1.0)).clamp(1.0, MOST_RAISED).floor();
        let scale = c.scale * factor;
        let target = layout.scale() / c.bound.max(1.0).log2().ceil().exp2();
        let (plan, value) = layout.reduction(scale, target)?;
        Ok(Case { factor: factor as i64, scale, target, program: plan.encode(self.params().params(), vec![value]) })
    }

    /// A ciphertext at StC's level, times its factor.
    pub(super) fn input(&self, c: &Ciphertext, factor: i64) -> Parts {
        let limbs = self.layout().levels.input + 1;
        [&c.parts()[0], &c.parts()[1]].map(|part| {
            let mut part = part.truncated(limbs);
            if factor > 1 {
                let factors = Poly::<Eval>::scalar(part.basis(), factor);
                part.mul_scalars(&factors);
            }
            part
        })
    }

    /// One ciphertext's input, or that of x + i·y.
    fn together(&self, group: &[(&Ciphertext, &Case)]) -> Parts {
        let input = |(c, case): &(&Ciphertext, &Case)| self.input(c, case.factor);
        let [x, y] = group else { return input(&group[0]) };
        self.complex(input(x), input(y))
    }

    /// x + i·y.
    pub(super) fn complex(&self, x: Parts, y: Parts) -> Parts {
        let mut sum = x;
        for (c, mut d) in sum.iter_mut().zip(y) {
            d.mul_imaginary_unit(false);
            c.add_assign(&d);
        }
        self.evaluator.record(PAIR);
        sum
    }

    pub(super) fn to_coefficients(&self, inputs: Vec<Parts>) -> Result<Vec<Parts>, HeError> {
        let mut parts = inputs;
        for (i, map) in self.stc.iter().enumerate() {
            let level = self.layout().levels.input - i;
            parts = map.apply_parts(&self.low, level, &parts.iter().collect::<Vec<_>>())?;
        }
        Ok(parts)
    }

    /// The trace of raised ciphertexts to the ring of the slots.
    pub(super) fn traced(&self, raised: Vec<Parts>) -> Result<Vec<Parts>, HeError> {
        if !self.layout().is_sparse() {
            return Ok(raised);
        }
        let (params, level) = (self.params().params(), self.layout().levels.top);
        let plan = TraceFunction::new(params, self.layout().trace_elements())?.doubling();
        let one = |parts: Parts| -> Result<Parts, HeError> {
            let inner = rlwe::Ciphertext::from_parts(params, self.evaluator.keys().id(), parts.into(), level)?;
            let state = State { scale: self.layout().q0(), bound: self.bounds.raised_slots, noise: 0.0 };
            pair(self.evaluator.trace(&Ciphertext::new(inner, state), &plan)?.inner.into_parts())
        };
        raised.into_iter().map(one).collect()
    }

    /// The coefficients over K + ρ in slots: real parts and imaginary parts of each ciphertext by turns, or
    /// only the real ones; of sparse slots both in one. Each ciphertext has its kind.
    pub(super) fn to_slots(&self, raised: Vec<Parts>, kinds: &[Kind]) -> Result<Vec<Parts>, HeError> {
        let [early @ .., last] = self.cts.as_slice() else { return Ok(raised) };
        let levels = self.layout().levels;
        let mut parts = raised;
        for (i, map) in early.iter().enumerate() {
            parts = map.apply_parts(&self.evaluator, levels.top - i, &parts.iter().collect::<Vec<_>>())?;
        }
        let level = levels.start + 1;
        let params = self.params().params();
        let pairs = last.extended_parts(&self.evaluator, level, &parts.iter().collect::<Vec<_>>())?;
        drop(parts);
        let conjugation = params.conjugation_element();
        self.evaluator.check_keys(&[conjugation], level)?;
        let key = self.evaluator.keys().galois(conjugation, 0)?;
        let mut out = Vec::new();
        for (pair, kind) in pairs.into_iter().zip(kinds) {
            let both = !self.layout().is_sparse() && *kind != Kind::Real;
            let mut sum = pair.clone();
            let none = RlweError::Internal { what: "a pair has no conjugate" };
            let conjugate = ExtendedPair::turned(vec![pair.clone()], params, &key, None).pop().ok_or(none)?;
            sum.add_assign(&conjugate);
            out.push(sum.mod_down_rescale(params)?);
            if both {
                // −i(c − c̄) = i(c̄ − c).
                let mut difference = conjugate;
                difference.sub_assign(&pair);
                difference.c.iter_mut().for_each(|c| c.mul_imaginary_unit(false));
                out.push(difference.mod_down_rescale(params)?);
            }
            self.evaluator.record(conjugate_sums(if both { 2 } else { 1 }));
        }
        Ok(out)
    }

    /// The reductions of what [`Bootstrapper::to_slots`] gives, as many for each case.
    pub(super) fn reduce(&self, starts: &[Parts], cases: &[Case]) -> Result<Vec<Parts>, HeError> {
        let each = starts.len() / cases.len().max(1);
        let programs: Vec<&Program> = cases.iter().flat_map(|c| std::iter::repeat_n(&c.program, each)).collect();
        let values = Program::run(&programs, &self.evaluator, &starts.iter().collect::<Vec<_>>())?;
        Ok(values.into_iter().flatten().collect())
    }

    /// 2·(Im o_u + i·Im o_v) of the reduction's values, or of real ones 2·Im o of each, with the transforms' rotation undone.
    pub(super) fn join(&self, reduced: Vec<Parts>, kind: Kind) -> Result<Vec<Parts>, HeError> {
        let params = self.params().params();
        let level = self.layout().levels.reduced;
        let keys = self.evaluator.keys();
        let conjugation = params.conjugation_element();
        if let Some(mask) = &self.mask {
            let key = keys.galois(conjugation, 0)?;
            let imaginary: Vec<Parts> = reduced
                .iter()
                .map(|o| {
                    let conjugate = switched(params, level, o, Some(&key));
                    let mut difference = switched(params, level, o, None);
                    difference.sub_assign(&conjugate);
                    self.evaluator.record(conjugate_sums(1));
                    self.over_i(params, difference)
                })
                .collect();
            return mask.apply_parts(&self.evaluator, level, &imaginary.iter().collect::<Vec<_>>());
        }
        let undo = params.rotation_element(self.layout().undo());
        let both = undo * conjugation % (2 * params.degree() as u64);
        let rotation = if undo == 1 { None } else { Some(keys.galois(undo, 0)?) };
        let conjugate = keys.galois(both, 0)?;
        let step = if kind == Kind::Complex { 2 } else { 1 };
        let one = |values: &[Parts]| {
            let (w, v) = combined(values);
            let mut difference = switched(params, level, &w, rotation.as_deref());
            difference.sub_assign(&switched(params, level, &v, Some(&conjugate)));
            self.evaluator.record(join_counters(kind, undo != 1));
            self.over_i(params, difference)
        };
        Ok(reduced.chunks(step).map(one).collect())
    }

    /// What a pair over Q_l·P becomes when it is divided by P and by i, or by −i where the series' sign asks
    /// for it.
    fn over_i(&self, params: &Params, pair: ExtendedPair) -> Parts {
        let minus = self.params().reduction().sign() > 0.0;
        let mut parts = pair.mod_down(params);
        parts.iter_mut().for_each(|c| c.mul_imaginary_unit(minus));
        parts
    }

    /// A refreshed ciphertext; `noise` is that of all that were refreshed as one, times their factors.
    fn finish(&self, (input, case): (&Ciphertext, &Case), noise: f64, parts: Parts) -> Ciphertext {
        let layout = self.layout();
        let reduction = (case.program.plan(), case.program.outputs()[0]);
        let error = self.bounds.output(layout, reduction, noise / case.scale, layout.unit(case.scale));
        let inner = input.inner().with_parts(parts.into(), layout.levels.output);
        Ciphertext::new(inner, State { scale: case.target, bound: input.bound, noise: error * case.target })
    }
}

/// W = o_u + i·o_v and V = o_u − i·o_v; of a single value itself, twice.
fn combined(values: &[Parts]) -> (Parts, Parts) {
    let [u, v] = values else { return (values[0].clone(), values[0].clone()) };
    let mut turned = v.clone();
    turned.iter_mut().for_each(|c| c.mul_imaginary_unit(false));
    let part = |i: usize| (u[i].add(&turned[i]), u[i].sub(&turned[i]));
    let ((w0, v0), (w1, v1)) = (part(0), part(1));
    ([w0, w1], [v0, v1])
}

/// P times the image of a ciphertext under a key's automorphism, or itself.
fn switched(params: &Params, level: usize, parts: &Parts, key: Option<&GaloisKey>) -> ExtendedPair {
    let Some(key) = key else {
        let mut pair = ExtendedPair::zero(params, level);
        parts.iter().enumerate().for_each(|(i, c)| pair.add_scaled(params, i, c));
        return pair;
    };
    let c = params.tables(level).gadget.switch(&parts[1], None, key.key().pairs());
    let mut pair = ExtendedPair { level, c };
    pair.add_scaled(params, 0, &parts[0]);
    pair.permuted(key.permutation())
}

fn pair(parts: Vec<Poly<Eval>>) -> Result<Parts, HeError> {
    let found = parts.len();
    parts.try_into().map_err(|_| RlweError::Degree { operation: "bootstrapping", expected: 2, found }.into())
}

/// The maps of a transform's stages: each with its level, factor and scale.
fn maps<'a>(
    stages: impl Iterator<Item = (&'a Stage, usize, f64, f64)>,
    params: &Params,
    hoisted: usize,
) -> Result<Vec<LinearMap>, HeError> {
    let encoder = Encoder::new(params);
    let map = |(stage, level, factor, scale): (&Stage, usize, f64, f64)| {
        stage.map(&encoder, factor, hoisted, EncodeAt { level, scale, max_abs: 1.0 })
    };
    stages.map(map).collect()
}

fn mask_map(layout: &Layout, params: &Params) -> Result<LinearMap, HeError> {
    let (diagonals, scale) = layout.mask();
    let at = EncodeAt { level: layout.levels.reduced, scale, max_abs: 1.0 };
    LinearMap::hoisted(&Encoder::new(params), &diagonals, 1, at)
}
