//! Linear maps on slots, by diagonals: x ↦ Σ_t d_t ⊙ Rot_t(x) (Halevi–Shoup, ePrint 2014/106).
//!
//! Rotations are t = giant + baby. Babies come from one decomposition each hoisting root, their products
//! with diagonals are summed over Q_l·P, and only a giant step divides by P again (double hoisting,
//! Bossuat et al., ePrint 2020/1203). Diagonals are complex; one that repeats is stored once.
//!
//! | | keys | for |
//! |---|---|---|
//! | [`LinearMap::new`] | one for each baby and each giant step | speed: a single decomposition |
//! | [`LinearMap::hoisted`] | one for each diagonal | several maps of one ciphertext, few diagonals |
//! | [`LinearMap::chained`] | `hoisted` + 1 whatever the number of diagonals | large keys: further hoisting roots come from the one before, giant steps are Horner's rule |
//!
//! In all of them c_0 stays over Q_l·P until the end, and a giant step divides c_1 alone.

mod apply;
mod noise;

use super::periodic::{encode_rounded, period};
use crate::ckks::Params;
use crate::ckks::noise::TAIL;
use crate::ckks::{EncodeAt, Encoder, Evaluator};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::collections::{BTreeMap, BTreeSet};
use sudare_ring::automorphism::rotation_element;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::noise::{ROUNDING_VARIANCE, canonical_bound};
use sudare_rlwe::{Backend, GiantStep, MapSteps, Over, RlweError, RootStep};

/// Bits of a scaled value that double precision rounds as it should.
const MOST_BITS: f64 = 62.0;

/// What is known of a diagonal without its values.
#[derive(Clone, Debug)]
struct Diagonal {
    /// Which baby step it multiplies.
    baby: usize,
    period: usize,
    /// max |d|.
    bound: f64,
    /// Mean of |d|².
    mean_square: f64,
    /// Mean square of the error that rounding leaves in a slot, in integer units: expected before the diagonal
    /// is encoded, known then.
    rounding: f64,
}

/// A ciphertext that babies are hoisted from: the map's input, or the root before turned once.
#[derive(Clone, Debug)]
struct Root {
    /// Galois element that makes it of the root before; 1 for the input.
    turn: u64,
    /// Galois elements of its babies; 1 stands for the root itself.
    babies: Vec<u64>,
}

/// A sum of products with babies.
#[derive(Clone, Debug)]
struct Giant {
    /// Galois element that turns it, or in a chain what has been summed before it.
    turn: u64,
    diagonals: Vec<Diagonal>,
}

/// The steps of a linear map and the sizes of its diagonals, without their values.
#[derive(Clone, Debug)]
pub(crate) struct MapPlan {
    degree: usize,
    scale: f64,
    /// max_i Σ_t |d_t\[i\]|.
    row_sum: f64,
    roots: Vec<Root>,
    giants: Vec<Giant>,
    /// Whether giants are summed by Horner's rule, the highest first.
    chained: bool,
}

/// A linear map of the N/2 slots, prepared for ciphertexts up to one level. Applied
/// ([`Evaluator::linear_map`](crate::ckks::Evaluator::linear_map)), it takes a level: slot i of the result is
/// Σ_t diagonals\[t\]\[i\]·x\[i + unit·t\]. Its rotation keys are those of [`LinearMap::elements`] at its level.
///
/// ```
/// use std::collections::BTreeMap;
/// use sudare_he::circuits::linear_map::LinearMap;
/// use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, ParamsLiteral};
/// use sudare_rlwe::keys::{KeyGenerator, SecretKey};
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
/// let (encoder, level) = (Encoder::new(&params), params.max_level());
/// // Differences of neighbours, x[i + 1] − x[i]; each diagonal repeats from slot to slot.
/// let diagonals = BTreeMap::from([(0, vec![-1.0]), (1, vec![1.0])]);
/// let at = EncodeAt { level, scale: params.prime_at(level) as f64, max_abs: 1.0 };
/// let map = LinearMap::hoisted(&encoder, &diagonals, 1, at)?;
///
/// let secret = SecretKey::generate(&params)?;
/// let elements: Vec<_> = map.elements().into_iter().map(|element| (element, level)).collect();
/// let keys = KeyGenerator::new(&secret)?.eval_keys(None, &elements)?;
/// let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[1.0, 4.0, 2.0], 4.0)?)?;
/// let y = Evaluator::new(&params, keys)?.linear_map(&x, &map)?;
///
/// let y = encoder.decode(&Decryptor::new(&secret).decrypt(&y)?)?;
/// assert!((y[0] - 3.0).abs() < 1e-6 && (y[1] + 2.0).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LinearMap<R = PeriodicPoly> {
    params: Params,
    level: usize,
    plan: MapPlan,
    steps: MapSteps,
    /// The diagonals of each giant step, over Q_l·P.
    rows: Vec<Vec<R>>,
}

/// The diagonals of each giant step, turned back by it.
type Turned = Vec<Vec<Vec<Complex64>>>;

/// A giant step that is not encoded yet: how the map turns it, how far that is in slots, and which
/// diagonal meets which baby.
struct Step<'a, T> {
    turn: u64,
    rotation: i64,
    terms: Vec<(usize, &'a [T])>,
}

/// By giant step its diagonals, each after the place of its baby.
type FlatOrder = Vec<(i64, Vec<(usize, i64)>)>;

/// Babies of diagonals that share one decomposition, and in which order the diagonals are summed.
fn flat_order(diagonals: impl Iterator<Item = i64>, babies: usize) -> (Vec<i64>, FlatOrder) {
    let step = babies.clamp(1, i64::MAX as usize) as i64;
    let baby_of = |t: i64| if step == i64::MAX { t } else { t.rem_euclid(step) };
    let mut order: Vec<(i64, i64)> = diagonals.map(|t| (t - baby_of(t), t)).collect();
    order.sort_unstable();
    let mut used: Vec<i64> = order.iter().map(|(giant, t)| t - giant).collect();
    used.sort_unstable();
    used.dedup();
    let term = |(giant, t): &(i64, i64)| (used.partition_point(|baby| *baby < t - giant), *t);
    let giants = order.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(term).collect())).collect();
    (used, giants)
}

/// Diagonals by the number of rotation units, each with its values or with one period of them.
pub type Diagonals<T> = BTreeMap<i64, Vec<T>>;

impl LinearMap {
    /// Prepares the map whose diagonal at rotation `unit · t` is `diagonals[t]`, real or complex;
    /// `babies` of these steps share a decomposition. A diagonal has N/2 values, or fewer that repeat (a
    /// power of two).
    ///
    /// # Errors
    /// `RlweError::Parameters` for a map without diagonals, `RlweError::TooManyValues` for a diagonal
    /// that does not repeat within N/2 slots, [`HeError::NotFinite`], `RlweError::OverBound` for a value
    /// over `at.max_abs`, `RlweError::NoSuchLevel`, [`HeError::TooLarge`] where |value|·scale reaches 2^62.
    pub fn new<T: Copy + Into<Complex64>>(
        encoder: &Encoder,
        diagonals: &Diagonals<T>,
        unit: i64,
        babies: usize,
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        check(encoder.params(), diagonals, at)?;
        let plan = MapPlan::flat(encoder.params().degree(), diagonals, unit, babies, at.scale);
        Self::encode(encoder.params(), plan, at, |_, make| make())
    }

    /// Prepares a map without giant steps: all its rotations come from one decomposition, which
    /// several maps can share ([`Evaluator::linear_maps`](crate::ckks::Evaluator::linear_maps)).
    ///
    /// # Errors
    /// As [`LinearMap::new`].
    pub fn hoisted<T: Copy + Into<Complex64>>(
        encoder: &Encoder,
        diagonals: &Diagonals<T>,
        unit: i64,
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        Self::new(encoder, diagonals, unit, usize::MAX, at)
    }

    /// Prepares a map of few keys, those of `unit` times 1 … `hoisted` and `hoisted · roots`: babies
    /// below `hoisted` come from each of `roots` decompositions, further babies from turning a root by
    /// `hoisted`, giants of `hoisted · roots` from Horner's rule. Diagonals start at 0.
    ///
    /// # Errors
    /// As [`LinearMap::new`]; `RlweError::Parameters` for a negative diagonal.
    pub fn chained<T: Copy + Into<Complex64>>(
        encoder: &Encoder,
        diagonals: &Diagonals<T>,
        unit: i64,
        (hoisted, roots): (usize, usize),
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        if diagonals.keys().any(|t| *t < 0) || hoisted == 0 || roots == 0 {
            return Err(parameters(
                "a chained map needs diagonals from 0 on and at least one baby step; rotate its output for others",
            ));
        }
        check(encoder.params(), diagonals, at)?;
        let plan = MapPlan::chained(encoder.params().degree(), diagonals, unit, (hoisted, roots), at.scale);
        Self::encode(encoder.params(), plan, at, |_, make| make())
    }

    /// Number of its diagonals.
    pub fn diagonals(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Bytes of its diagonals in memory.
    pub fn bytes(&self) -> usize {
        self.rows.iter().flatten().map(PeriodicPoly::bytes).sum()
    }
}

impl<B: Backend> Evaluator<B> {
    /// The map whose diagonal at rotation `unit · t` is one where `keep(t, slot)` says so, `ones[t]` slots in all, and no
    /// slot in two of them; `babies` of these steps share a decomposition.
    ///
    /// # Errors
    /// As [`LinearMap::new`].
    pub fn mask_map(
        &self,
        level: usize,
        ones: &BTreeMap<i64, usize>,
        (unit, babies): (i64, usize),
        keep: impl Fn(i64, usize) -> bool,
    ) -> Result<LinearMap<B::Row>, HeError> {
        let params = self.params();
        let (slots, scale) = (params.slots(), params.prime_at(level) as f64);
        let (used, order) = flat_order(ones.keys().copied(), babies);
        let element = |t: i64| rotation_element(params.degree(), t * unit);
        let (mut giants, mut rows) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
        for (turn, terms) in order {
            let (mut diagonals, mut all) = (Vec::with_capacity(terms.len()), Vec::with_capacity(terms.len()));
            for (baby, t) in terms {
                let mut rounding = ROUNDING_VARIANCE * (2 * slots) as f64;
                all.push(self.backend().prepare_row((level, Over::QP), slots, || {
                    let one = |s: usize| Complex64::from(if keep(t, s) { 1.0 } else { 0.0 });
                    let mut values: Vec<Complex64> = (0..slots).map(one).collect();
                    values.rotate_right((turn * unit).rem_euclid(slots as i64) as usize);
                    let (row, found) = encode_rounded(params, params.qp_at(level), &values, scale);
                    rounding = found;
                    Ok::<_, HeError>(row)
                })?);
                let mean_square = ones[&t] as f64 / slots as f64;
                diagonals.push(Diagonal { baby, period: slots, bound: 1.0, mean_square, rounding });
            }
            giants.push(Giant { turn: element(turn), diagonals });
            rows.push(all);
        }
        let roots = vec![Root { turn: 1, babies: used.into_iter().map(element).collect() }];
        let plan = MapPlan { degree: params.degree(), scale, row_sum: 1.0, roots, giants, chained: false };
        let steps = plan.steps();
        Ok(LinearMap { params: params.clone(), level, plan, steps, rows })
    }
}

/// Makes a row for a backend: of a period, by a function that encodes it.
type Make<'a> = &'a mut dyn FnMut() -> Result<PeriodicPoly, HeError>;

impl<R> LinearMap<R> {
    fn encode(
        params: &Params,
        (mut plan, values): (MapPlan, Turned),
        at: EncodeAt,
        prepare: impl Fn(usize, Make<'_>) -> Result<R, HeError>,
    ) -> Result<Self, HeError> {
        let mut rows = Vec::new();
        for (giant, values) in plan.giants.iter_mut().zip(values) {
            let mut all = Vec::new();
            for (diagonal, values) in giant.diagonals.iter_mut().zip(values) {
                let (period, rounding) = (diagonal.period, &mut diagonal.rounding);
                all.push(prepare(period, &mut || {
                    let (encoded, found) = encode_rounded(params, params.qp_at(at.level), &values, at.scale);
                    *rounding = found;
                    Ok(encoded)
                })?);
            }
            rows.push(all);
        }
        let steps = plan.steps();
        Ok(Self { params: params.clone(), level: at.level, plan, steps, rows })
    }

    /// As [`LinearMap::new`], with its diagonals as a backend keeps them.
    ///
    /// # Errors
    /// As [`LinearMap::new`].
    pub fn on<B: Backend<Row = R>, T: Copy + Into<Complex64>>(
        evaluator: &Evaluator<B>,
        diagonals: &Diagonals<T>,
        unit: i64,
        babies: usize,
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        let params = evaluator.params();
        check(params, diagonals, at)?;
        let plan = MapPlan::flat(params.degree(), diagonals, unit, babies, at.scale);
        Self::encode(params, plan, at, |period, make| {
            evaluator.backend().prepare_row((at.level, Over::QP), period, make)
        })
    }

    /// A planned map, as a backend keeps it.
    ///
    /// # Errors
    /// As [`LinearMap::new`].
    pub(crate) fn planned<B: Backend<Row = R>>(
        evaluator: &Evaluator<B>,
        diagonals: &Diagonals<Complex64>,
        plan: (MapPlan, Turned),
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        let params = evaluator.params();
        check(params, diagonals, at)?;
        Self::encode(params, plan, at, |period, make| {
            evaluator.backend().prepare_row((at.level, Over::QP), period, make)
        })
    }

    /// Galois elements whose keys it needs, each once.
    pub fn elements(&self) -> Vec<u64> {
        self.steps.elements()
    }

    /// The level it is prepared for.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The scale of its diagonals.
    pub fn scale(&self) -> f64 {
        self.plan.scale
    }

    /// What one application does.
    pub fn operations(&self) -> MapOperations {
        self.plan.operations()
    }

    /// Its steps, with the rounding of its diagonals as it came out.
    #[cfg(test)]
    pub(crate) fn plan(&self) -> &MapPlan {
        &self.plan
    }
}

impl MapPlan {
    /// One decomposition, and giant steps with a key each.
    pub fn flat<T: Copy + Into<Complex64>>(
        degree: usize,
        diagonals: &Diagonals<T>,
        unit: i64,
        babies: usize,
        scale: f64,
    ) -> (Self, Turned) {
        let (used, order) = flat_order(diagonals.keys().copied(), babies);
        let element = |t: i64| rotation_element(degree, t * unit);
        let roots = vec![Root { turn: 1, babies: used.into_iter().map(element).collect() }];
        let step = |(giant, terms): (i64, Vec<(usize, i64)>)| {
            let terms = terms.into_iter().map(|(baby, t)| (baby, diagonals[&t].as_slice())).collect();
            Step { turn: element(giant), rotation: giant * unit, terms }
        };
        let giants = order.into_iter().map(step).collect();
        Self::of(degree, scale, roots, giants, false)
    }

    /// Several roots, and giant steps by Horner's rule; the diagonals' indices are not negative.
    pub fn chained<T: Copy + Into<Complex64>>(
        degree: usize,
        diagonals: &Diagonals<T>,
        unit: i64,
        (hoisted, roots): (usize, usize),
        scale: f64,
    ) -> (Self, Turned) {
        let babies = hoisted * roots;
        let element = |t: usize| rotation_element(degree, t as i64 * unit);
        let used: BTreeSet<usize> = diagonals.keys().map(|t| *t as usize % babies).collect();
        let most = used.last().map_or(0, |last| last / hoisted);
        let mut index = BTreeMap::new();
        let mut all = Vec::new();
        for root in 0..=most {
            let own: Vec<usize> = (0..hoisted).filter(|b| used.contains(&(root * hoisted + b))).collect();
            for b in &own {
                index.insert(root * hoisted + b, index.len());
            }
            let turn = if root == 0 { 1 } else { element(hoisted) };
            all.push(Root { turn, babies: own.into_iter().map(element).collect() });
        }
        let highest = diagonals.keys().last().map_or(0, |t| *t as usize / babies);
        let mut giants = Vec::new();
        for giant in (0..=highest).rev() {
            let here = (giant * babies) as i64..((giant + 1) * babies) as i64;
            let terms: Vec<(usize, &[T])> =
                diagonals.range(here).map(|(t, d)| (index[&(*t as usize % babies)], d.as_slice())).collect();
            let turn = if giant == highest { 1 } else { element(babies) };
            giants.push(Step { turn, rotation: (giant * babies) as i64 * unit, terms });
        }
        Self::of(degree, scale, all, giants, true)
    }

    fn of<T: Copy + Into<Complex64>>(
        degree: usize,
        scale: f64,
        roots: Vec<Root>,
        steps: Vec<Step<'_, T>>,
        chained: bool,
    ) -> (Self, Turned) {
        let longest = steps.iter().flat_map(|s| &s.terms).map(|(_, d)| d.len()).max().unwrap_or(1);
        let mut sums = vec![0.0; longest];
        let (mut giants, mut turned) = (Vec::new(), Vec::new());
        for Step { turn, rotation, terms } in steps {
            let (mut diagonals, mut all) = (Vec::new(), Vec::new());
            for (baby, values) in terms {
                let mut values: Vec<Complex64> = values.iter().map(|x| (*x).into()).collect();
                sums.iter_mut().zip(values.iter().cycle()).for_each(|(s, x)| *s += size(*x));
                // Rot_g(p ⊙ x) = Rot_g(p) ⊙ Rot_g(x): the diagonal is turned back beforehand.
                let back = rotation.rem_euclid(values.len() as i64) as usize;
                values.rotate_right(back);
                diagonals.push(Diagonal::of(baby, &values));
                all.push(values);
            }
            giants.push(Giant { turn, diagonals });
            turned.push(all);
        }
        let row_sum = sums.into_iter().fold(0.0, f64::max);
        (Self { degree, scale, row_sum, roots, giants, chained }, turned)
    }

    /// The same as a backend takes them.
    pub fn steps(&self) -> MapSteps {
        let root = |r: &Root| RootStep { turn: r.turn, babies: r.babies.clone() };
        let giant = |g: &Giant| GiantStep { turn: g.turn, babies: g.diagonals.iter().map(|d| d.baby).collect() };
        let (roots, giants) = (self.roots.iter().map(root).collect(), self.giants.iter().map(giant).collect());
        MapSteps { roots, giants, chained: self.chained }
    }

    /// Number of its diagonals.
    pub fn diagonals(&self) -> usize {
        self.giants.iter().map(|g| g.diagonals.len()).sum()
    }

    /// The rounds of one application.
    pub fn operations(&self) -> MapOperations {
        let [babies, root_turns, giant_turns, diagonals] = self.steps().counts();
        MapOperations { babies, root_turns, giant_turns, diagonals }
    }

    /// The scale of its diagonals.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

/// The parts of one application of a [`LinearMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapOperations {
    /// Babies that are rotations: an inner product each.
    pub babies: usize,
    /// Roots after the first: an inner product, a division of c_1 by P and a decomposition each.
    pub root_turns: usize,
    /// Giant steps: the same.
    pub giant_turns: usize,
    /// Products with diagonals.
    pub diagonals: usize,
}

impl Diagonal {
    fn of(baby: usize, values: &[Complex64]) -> Self {
        let period = period(values);
        let values = &values[..period];
        let bound = values.iter().map(|z| size(*z)).fold(0.0, f64::max);
        let mean_square = values.iter().map(|z| z.norm_sqr()).sum::<f64>() / period as f64;
        Self { baby, period, bound, mean_square, rounding: ROUNDING_VARIANCE * (2 * period) as f64 }
    }

    /// Bound on the error of a slot at a scale, in integer units: rounding, and double precision's own.
    fn noise(&self, degree: usize, scale: f64) -> f64 {
        let transform = (degree as f64).log2() * f64::EPSILON;
        canonical_bound(&TAIL, (2 * self.period) as f64, ROUNDING_VARIANCE, 1) + self.bound * scale * transform
    }
}

/// |z|, of real numbers without a root.
fn size(z: Complex64) -> f64 {
    if z.im == 0.0 { z.re.abs() } else { z.norm() }
}

fn check<T: Copy + Into<Complex64>>(params: &Params, diagonals: &Diagonals<T>, at: EncodeAt) -> Result<(), HeError> {
    let operation = "preparing a linear map";
    let highest = params.max_level();
    if at.level > highest {
        return Err(RlweError::NoSuchLevel { operation, wanted: at.level, highest }.into());
    }
    if !(at.scale.is_finite() && at.scale >= 1.0 && at.max_abs.is_finite() && at.max_abs >= 0.0) {
        return Err(parameters("scale and max_abs have to be finite, the scale at least 1 and max_abs at least 0"));
    }
    if at.max_abs.max(1e-300).log2() + at.scale.log2() >= MOST_BITS {
        let (value, scale, level) = (at.max_abs.log2(), at.scale.log2(), at.level);
        return Err(HeError::TooLarge { operation, value, scale, modulus: MOST_BITS, level });
    }
    if diagonals.is_empty() {
        return Err(parameters("a linear map needs at least one diagonal"));
    }
    diagonals.values().try_for_each(|diagonal| {
        if !diagonal.len().is_power_of_two() || diagonal.len() > params.slots() {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found: diagonal.len(), capacity: params.slots() }));
        }
        let size = |x: &T| size((*x).into());
        let limit = at.max_abs * (1.0 + 1e-12);
        match diagonal.iter().position(|x| size(x).is_nan() || size(x) > limit) {
            Some(index) if size(&diagonal[index]).is_finite() => {
                Err(HeError::Rlwe(RlweError::OverBound { index, bound: at.max_abs }))
            }
            Some(index) => Err(HeError::NotFinite { index }),
            None => Ok(()),
        }
    })
}
