//! The bootstrapper: what a server prepares once, and the steps of a refresh.

use super::keys::BootstrapKeys;
use super::layout::{DRIFT, Layout};
use super::noise::Bounds;
use super::params::BootstrapParams;
use crate::circuits::dft::Stage;
use crate::circuits::linear_map::{LinearMap, MapPlan};
use crate::circuits::polynomial::program::Program;
use crate::circuits::trace::TraceFunction;
use crate::ckks::{Ciphertext, CiphertextOf, EncodeAt, Evaluator, State};
use crate::error::HeError;
use sudare_ring::interrupt::check;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::{Backend, Counters, Cpu, MapEnd, Raise, RlweError, Shaped};

/// Largest integer that small values are multiplied by.
const MOST_RAISED: f64 = 256.0;

/// What is planned for one ciphertext.
#[derive(Debug)]
pub(super) struct Case<R = PeriodicPoly> {
    /// The integer that it is multiplied by.
    pub factor: i64,
    /// Its scale times the factor.
    pub scale: f64,
    /// The scale of the result.
    pub target: f64,
    /// Its modular reduction.
    pub program: Program<R>,
}

/// A ciphertext, and what is planned for it.
type Operand<'a, B> = (&'a CiphertextOf<B>, &'a Case<<B as Backend>::Row>);

/// A step of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Slots to coefficients.
    SlotsToCoefficients,
    /// To the sparse secret, to all primes, and back, with the first stage of the next step where keys hold it; the trace of
    /// sparse slots.
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
    /// Steps done before it.
    pub done: usize,
    /// Steps there are: [`Step::ALL`], or of two refreshes in one twice as many.
    pub all: usize,
}

/// Keys and precomputation of a server that refreshes ciphertexts, on any backend.
///
/// An input is at [`BootstrapParams::input_level`] or above it, with bound · scale of at most Δ. A result is at
/// [`BootstrapParams::output_level`]; its error grows by what [`BootstrapParams::predicted_noise`] says.
///
/// ```
/// use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper};
/// use sudare_he::ckks::{Decryptor, Encoder, Encryptor};
/// use sudare_rlwe::keys::SecretKey;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// // A small ring is no secure one: `BootstrapLiteral::c().build()?` is.
/// let set = BootstrapLiteral::c().insecure(9)?.build()?;
/// let (params, secret) = (set.params(), SecretKey::generate(set.params())?);
/// let server = Bootstrapper::new(BootstrapKeys::generate(&secret, &set)?, None)?;
///
/// let encoder = Encoder::new(params);
/// let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.5, -0.25], 1.0)?)?;
/// let used = server.evaluator().drop_to(&x, set.input_level())?;
/// let fresh = server.refresh(&used)?;
/// assert_eq!(fresh.level() - set.input_level(), set.usable_levels());
///
/// let y = encoder.decode(&Decryptor::new(&secret).decrypt(&fresh)?)?;
/// assert!((y[0] - 0.5).abs() < 1e-3 && (y[1] + 0.25).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Bootstrapper<B: Backend = Cpu> {
    params: BootstrapParams,
    keys: Option<BootstrapKeys>,
    pub(super) raise: Raise,
    pub(super) evaluator: Evaluator<B>,
    /// The keys of StC.
    low: Evaluator<B>,
    pub(super) stc: Vec<LinearMap<B::Row>>,
    pub(super) cts: Vec<LinearMap<B::Row>>,
    /// For sparse slots: imaginary parts to their place.
    mask: Option<LinearMap<B::Row>>,
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
    /// `RlweError::Memory` with both figures, before anything is prepared; `RlweError::Parameters`,
    /// [`HeError::TooLarge`] where scales and primes do not go together.
    pub fn new(keys: BootstrapKeys, memory: Option<u64>) -> Result<Self, HeError> {
        let params = &keys.params;
        if let Some(limit) = memory {
            let needed = keys.bytes() as u64 + params.diagonal_bytes()? + params.working_bytes(1)?;
            if needed > limit {
                let what = format!("a bootstrapper at N = {} and one ciphertext", params.params().degree());
                return Err(HeError::Rlwe(RlweError::Memory { what, needed, limit }));
            }
        }
        Self::on(keys, Cpu::new)
    }

    /// Bytes of keys and diagonals.
    pub fn bytes(&self) -> usize {
        let keys = self.keys().map_or(0, BootstrapKeys::bytes) + self.low.keys().bytes();
        keys + self.map_bytes() + self.mask.as_ref().map_or(0, LinearMap::bytes)
    }

    /// Bytes of the transforms' diagonals.
    pub fn map_bytes(&self) -> usize {
        let keyed = self.raise.map.iter().flat_map(|map| &map.rows).map(PeriodicPoly::bytes).sum::<usize>();
        keyed + self.stc.iter().chain(&self.cts).map(LinearMap::bytes).sum::<usize>()
    }
}

impl<B: Backend> Bootstrapper<B> {
    /// On the backend that `make` makes for a set of keys: once for those of the refreshed ciphertexts, once for those of StC.
    ///
    /// # Errors
    /// As [`Bootstrapper::new`], but for memory.
    pub fn on(keys: BootstrapKeys, make: impl Fn(EvalKeys) -> B) -> Result<Self, HeError> {
        let (high, low, params) = (make(keys.keys.clone()), make(keys.low()?), keys.params.clone());
        Self::on_backends(&params, Some(keys), high, low)
    }

    /// With keys, or without any in a simulation.
    pub(super) fn on_backends(
        params: &BootstrapParams,
        keys: Option<BootstrapKeys>,
        high: B,
        low: B,
    ) -> Result<Self, HeError> {
        let layout = params.layout();
        let (evaluator, low) =
            (Evaluator::with_backend(params.params(), high)?, Evaluator::with_backend(params.low(), low)?);
        Ok(Self {
            raise: Raise {
                gate: params.gate().clone(),
                open: params.open().clone(),
                top: layout.levels.top,
                entries: params.literal().entries(),
                map: layout.keyed().map(|stage| stage.map(params, keys.is_some())).transpose()?,
                keys: keys.as_ref().map(|keys| keys.gates.clone()),
            },
            stc: maps(layout, layout.stc_stages(), &low)?,
            cts: maps(layout, layout.cts_stages(), &evaluator)?,
            mask: if layout.is_sparse() { Some(mask_map(layout, &evaluator)?) } else { None },
            bounds: Bounds::new(layout),
            params: params.clone(),
            evaluator,
            low,
            keys,
        })
    }

    pub(super) fn layout(&self) -> &Layout {
        self.params.layout()
    }

    /// The set.
    pub fn params(&self) -> &BootstrapParams {
        &self.params
    }

    /// The keys; a simulation has none.
    pub fn keys(&self) -> Option<&BootstrapKeys> {
        self.keys.as_ref()
    }

    /// An evaluator with the bootstrapping keys: it relinearises at every level of a refreshed ciphertext.
    pub fn evaluator(&self) -> &Evaluator<B> {
        &self.evaluator
    }

    /// The evaluator of StC.
    pub(super) fn low(&self) -> &Evaluator<B> {
        &self.low
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

    /// The same complex slots with new levels: at [`BootstrapParams::output_level`], and at the scale Δ
    /// exactly, or at Δ over the next power of two where the bound is above one.
    ///
    /// The set decides whether that is one refresh, or two for twice the bits ([`BootstrapLiteral::a50`](super::BootstrapLiteral::a50)).
    ///
    /// # Errors
    /// As [`Bootstrapper::refresh_many`].
    pub fn refresh(&self, ciphertext: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.one(ciphertext, Kind::Complex)
    }

    /// [`Bootstrapper::refresh`] of slots that are real, with half of the modular reduction: about seven tenths of the time;
    /// imaginary parts become zero.
    ///
    /// # Errors
    /// As [`Bootstrapper::refresh_many`].
    pub fn refresh_real(&self, ciphertext: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        self.one(ciphertext, Kind::Real)
    }

    /// Refreshes several ciphertexts together: each key and diagonal is read once for all, but for those of raising.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set of tables;
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`; `RlweError::OutOfLevels` below
    /// the input level; [`HeError::TooLarge`] unless bound · scale ≤ Δ.
    pub fn refresh_many(&self, ciphertexts: &[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        self.refreshed(ciphertexts, Kind::Complex, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many`] of real slots.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_many_real(&self, ciphertexts: &[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        self.refreshed(ciphertexts, Kind::Real, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many_real`] with two and two as the real and imaginary parts of one ([`Kind::Pair`]), and the last of an
    /// odd number alone: about seven tenths of the time. Slots must be real but for errors: the imaginary part of each comes
    /// to the other one's real part, so that each result carries the errors of both.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_pairs(&self, ciphertexts: &[&CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        self.refreshed(ciphertexts, Kind::Pair, &mut |_| {})
    }

    /// [`Bootstrapper::refresh_many`] of slots of any kind that tells of each step before it begins. Like all work inside
    /// [`Interrupt::run`](sudare_ring::interrupt::Interrupt::run) it ends early where it is asked to.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_with_progress(
        &self,
        ciphertexts: &[&CiphertextOf<B>],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        self.refreshed(ciphertexts, kind, tell)
    }

    fn one(&self, ciphertext: &CiphertextOf<B>, kind: Kind) -> Result<CiphertextOf<B>, HeError> {
        let out = self.refreshed(&[ciphertext], kind, &mut |_| {})?;
        out.into_iter().next().ok_or(RlweError::Operands { operation: "bootstrapping", left: 1, right: 0 }.into())
    }

    fn refreshed(
        &self,
        ciphertexts: &[&CiphertextOf<B>],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        if self.params.literal().is_iterated() {
            return self.iterated(ciphertexts, kind, tell);
        }
        let cases = ciphertexts.iter().map(|c| self.case(c)).collect::<Result<Vec<_>, _>>()?;
        self.run(ciphertexts, &cases, kind, tell)
    }

    /// All steps, of ciphertexts that are planned for.
    pub(super) fn run(
        &self,
        ciphertexts: &[&CiphertextOf<B>],
        cases: &[Case<B::Row>],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let kind = if kind == Kind::Pair && self.layout().is_sparse() { Kind::Real } else { kind };
        let together = if kind == Kind::Pair { 2 } else { 1 };
        let operands: Vec<Operand<'_, B>> = ciphertexts.iter().copied().zip(cases).collect();
        let groups: Vec<&[Operand<'_, B>]> = operands.chunks(together).collect();
        // What is left of pairs is real.
        let kinds: Vec<Kind> = groups.iter().map(|g| if g.len() == together { kind } else { Kind::Real }).collect();
        let mut begin = |done: usize| {
            tell(Progress { step: Step::ALL[done], done, all: Step::ALL.len() });
            check();
        };
        begin(0);
        let inputs = groups.iter().map(|group| self.together(group)).collect::<Result<_, _>>()?;
        let low = self.to_coefficients(inputs)?;
        begin(1);
        let raised = low.iter().map(|c| self.raised(c)).collect::<Result<_, _>>()?;
        drop(low);
        begin(2);
        let starts = self.to_slots(raised, &kinds)?;
        begin(3);
        let reduced = self.reduce(&starts, cases)?;
        drop(starts);
        begin(4);
        let joined = self.join(reduced, kind)?;
        let noises = groups.iter().flat_map(|group| {
            let noise = group.iter().map(|(c, case)| c.noise * case.factor as f64).sum::<f64>();
            std::iter::repeat_n(noise, group.len())
        });
        Ok(joined.into_iter().zip(&operands).zip(noises).map(|((c, o), noise)| self.finish(*o, noise, c)).collect())
    }

    /// Refuses what cannot be refreshed; plans the reduction for the ciphertext's scale.
    pub(super) fn case(&self, c: &CiphertextOf<B>) -> Result<Case<B::Row>, HeError> {
        let operation = "bootstrapping";
        self.evaluator.inner.check_two_parts(operation, c.inner())?;
        let layout = self.layout();
        layout.mod1()?;
        if c.level() < layout.levels.input {
            return Err(RlweError::OutOfLevels { operation, needed: layout.levels.input, level: c.level() }.into());
        }
        let most = layout.scale() * DRIFT;
        let found = c.bound * c.scale;
        if found > most {
            let (value, scale, modulus) = (c.bound.log2(), c.scale.log2(), layout.scale().log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: c.level() });
        }
        // Values that fill less than they may are raised, as far as an integer does.
        let factor = (most / found.max(1.0)).clamp(1.0, MOST_RAISED).floor();
        let scale = c.scale * factor;
        let target = layout.scale() / c.bound.max(1.0).log2().ceil().exp2();
        self.planned(factor as i64, scale, target)
    }

    /// Plans a modular reduction for a scale and that of the result.
    pub(super) fn planned(&self, factor: i64, scale: f64, target: f64) -> Result<Case<B::Row>, HeError> {
        let (plan, value) = self.layout().reduction(scale, target)?;
        Ok(Case { factor, scale, target, program: plan.encode_for(&self.evaluator, vec![value])? })
    }

    /// A ciphertext at StC's level and under its parameters, times its factor.
    pub(super) fn input(&self, c: &CiphertextOf<B>, factor: i64) -> Result<B::Ciphertext, HeError> {
        let dropped = self.evaluator.inner.drop_to(c.inner(), self.layout().levels.input)?;
        let multiple = self.evaluator.inner.mul_integer(&dropped, factor)?;
        Ok(self.evaluator.inner.under(&multiple, self.params.low())?)
    }

    /// One ciphertext's input, or that of x + i·y.
    fn together(&self, group: &[Operand<'_, B>]) -> Result<B::Ciphertext, HeError> {
        let input = |(c, case): &Operand<'_, B>| self.input(c, case.factor);
        let [x, y] = group else { return input(&group[0]) };
        self.complex(input(x)?, &input(y)?)
    }

    /// x + i·y.
    pub(super) fn complex(&self, mut x: B::Ciphertext, y: &B::Ciphertext) -> Result<B::Ciphertext, HeError> {
        self.low.inner.add_assign(&mut x, &self.low.inner.mul_imaginary_unit(y, false)?)?;
        Ok(x)
    }

    pub(super) fn to_coefficients(&self, inputs: Vec<B::Ciphertext>) -> Result<Vec<B::Ciphertext>, HeError> {
        self.stc.iter().try_fold(inputs, |all, map| map.apply(&self.low, &ended(&all)))
    }

    /// A ciphertext modulo q_0 at the highest level, and what a stage in keys makes of it; of sparse slots the trace to their ring.
    pub(super) fn raised(&self, c: &B::Ciphertext) -> Result<B::Ciphertext, HeError> {
        let own = self.low.inner.under(c, self.params.params())?;
        let mut raised = self.evaluator.inner.raise(&own, &self.raise)?;
        let plan = TraceFunction::new(self.params.params(), self.layout().trace_elements())?.doubling();
        if self.layout().is_sparse() {
            for terms in plan.terms() {
                raised = self.evaluator.inner.sum_of_automorphisms(&raised, terms)?;
            }
        }
        Ok(raised)
    }

    /// The coefficients over K + ρ in slots: real parts and imaginary parts of each ciphertext by turns, or
    /// only the real ones; of sparse slots both in one. Each ciphertext has its kind.
    pub(super) fn to_slots(&self, raised: Vec<B::Ciphertext>, kinds: &[Kind]) -> Result<Vec<B::Ciphertext>, HeError> {
        let [early @ .., last] = self.cts.as_slice() else { return Ok(raised) };
        let all = early.iter().try_fold(raised, |all, map| map.apply(&self.evaluator, &ended(&all)))?;
        let end = |kind: &Kind| match self.layout().is_sparse() || *kind == Kind::Real {
            true => MapEnd::Real,
            false => MapEnd::Parts,
        };
        last.apply(&self.evaluator, &all.iter().zip(kinds.iter().map(end)).collect::<Vec<_>>())
    }

    /// The reductions of what [`Bootstrapper::to_slots`] gives, as many for each case.
    pub(super) fn reduce(
        &self,
        starts: &[B::Ciphertext],
        cases: &[Case<B::Row>],
    ) -> Result<Vec<B::Ciphertext>, HeError> {
        // Real parts alone of what is left of pairs, and both of others.
        let each = starts.len() / cases.len().max(1);
        let programs: Vec<_> = cases.iter().flat_map(|c| std::iter::repeat_n(&c.program, each)).collect();
        let values = Program::run(&programs, &self.evaluator, &starts.iter().collect::<Vec<_>>())?;
        Ok(values.into_iter().flatten().collect())
    }

    /// 2·(Im o_u + i·Im o_v) of the reduction's values, or of real ones 2·Im o of each, with the transforms' rotation undone.
    pub(super) fn join(&self, reduced: Vec<B::Ciphertext>, kind: Kind) -> Result<Vec<B::Ciphertext>, HeError> {
        let (params, inner, level) = (self.params.params(), &self.evaluator.inner, self.layout().levels.reduced);
        // Shorter tables end above.
        let reduced = reduced.iter().map(|c| inner.drop_to(c, level)).collect::<Result<Vec<_>, _>>()?;
        let conjugation = params.conjugation_element();
        if let Some(mask) = &self.mask {
            let imaginary =
                reduced.iter().map(|o| self.over_i(inner.difference_of_automorphisms((o, 1), (o, conjugation))?));
            let imaginary = imaginary.collect::<Result<Vec<_>, _>>()?;
            return mask.apply(&self.evaluator, &ended(&imaginary));
        }
        let undo = params.rotation_element(self.layout().undo());
        let both = undo * conjugation % (2 * params.degree() as u64);
        let step = if kind == Kind::Complex { 2 } else { 1 };
        let one = |values: &[B::Ciphertext]| match values {
            // W = o_u + i·o_v and V = o_u − i·o_v.
            [u, v] => {
                let turned = inner.mul_imaginary_unit(v, false)?;
                let (w, v) = (inner.add(u, &turned)?, inner.sub(u, &turned)?);
                self.over_i(inner.difference_of_automorphisms((&w, undo), (&v, both))?)
            }
            _ => self.over_i(inner.difference_of_automorphisms((&values[0], undo), (&values[0], both))?),
        };
        reduced.chunks(step).map(one).collect()
    }

    /// A difference over i, or over −i where the series' sign asks for it.
    fn over_i(&self, difference: B::Ciphertext) -> Result<B::Ciphertext, HeError> {
        let minus = self.params.reduction().sign() > 0.0;
        Ok(self.evaluator.inner.mul_imaginary_unit(&difference, minus)?)
    }

    /// A refreshed ciphertext; `noise` is that of all that were refreshed as one, times their factors.
    fn finish(&self, (input, case): Operand<'_, B>, noise: f64, made: B::Ciphertext) -> CiphertextOf<B> {
        let layout = self.layout();
        let reduction = (case.program.plan(), case.program.outputs()[0]);
        let error = self.bounds.output(layout, reduction, noise / case.scale, layout.unit(case.scale));
        Ciphertext::new(made, State { scale: case.target, bound: input.bound, noise: error * case.target })
    }
}

/// Ciphertexts whose map ends with a rescale.
fn ended<C: Shaped>(all: &[C]) -> Vec<(&C, MapEnd)> {
    all.iter().map(|c| (c, MapEnd::Value)).collect()
}

/// The maps of a transform's stages: each with its level, factor and scale.
fn maps<'a, B: Backend>(
    layout: &Layout,
    stages: impl Iterator<Item = (&'a Stage, usize, f64, f64)>,
    evaluator: &Evaluator<B>,
) -> Result<Vec<LinearMap<B::Row>>, HeError> {
    let map = |(stage, level, factor, scale): (&Stage, usize, f64, f64)| {
        stage.map_on(evaluator, factor, layout.literal.hoisted, EncodeAt { level, scale, max_abs: 1.0 })
    };
    stages.map(map).collect()
}

/// Of sparse slots what undoes the transforms.
pub(super) fn mask_map<B: Backend>(layout: &Layout, evaluator: &Evaluator<B>) -> Result<LinearMap<B::Row>, HeError> {
    let (diagonals, scale) = layout.mask();
    let at = EncodeAt { level: layout.levels.reduced, scale, max_abs: 1.0 };
    let plan = MapPlan::flat(layout.degree(), &diagonals, 1, usize::MAX, scale);
    LinearMap::planned(evaluator, &diagonals, plan, at)
}
