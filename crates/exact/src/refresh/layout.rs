//! At which level each step of a refresh works, and with what noise: the same bounds that guard every operation.

use super::map::{MapPlan, largest_mask, masked_error};
use super::removal::Removal;
use super::set::RefreshLiteral;
use super::slots::Slots;
use super::transform::{Direction, Stage, Transform};
use crate::error::{ExactError, parameters};
use crate::{IntegerParams, NoiseModel};
use std::collections::BTreeMap;
use sudare_rlwe as rlwe;

/// Largest part of a unit by which what is switched to t² may miss an integer: rounding itself is up to one half for each
/// coefficient of the sparse secret and one more, together h/2 + ½.
const LARGEST_MISS: f64 = 0.49;
/// Standard deviations of one coefficient of a sum of rounding errors: exp(−u²/2)·2^17 < 2^-140.
const COEFFICIENT_TAIL: f64 = 15.0;
/// Divisions before a product leave at most so much more than rounding.
const SETTLED: f64 = 4.0;

/// A linear map between two levels.
#[derive(Clone, Debug)]
pub(super) struct MapStep {
    pub map: MapPlan,
    pub level: usize,
    /// The level after its division.
    pub to: usize,
}

/// The steps of a refresh.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// StC, modulo t.
    pub stc: Vec<MapStep>,
    /// Level to which the product with the sparse secret is divided.
    pub masked: usize,
    /// Polynomials that the sparse secret and its mask are cut into: both have a slot for each coefficient of one.
    pub shares: usize,
    /// The largest norm of a share of the mask in that product.
    pub mask: f64,
    /// CtS, modulo t².
    pub cts: Vec<MapStep>,
    /// z − H(z).
    pub removal: Removal,
    /// Galois element that undoes the rotation which is left.
    pub turn: u64,
    /// The largest noise at StC's level.
    pub largest_noise: f64,
}

impl Layout {
    /// The layout over plaintext moduli t and t² with the parameters of the sparse key.
    ///
    /// # Errors
    /// `RlweError::Parameters` where the chain has no room, or shapes do not go together.
    pub fn new(
        literal: &RefreshLiteral,
        [low, high]: [&IntegerParams; 2],
        gate: &rlwe::Params,
    ) -> Result<Self, ExactError> {
        let [slots, square] = [Slots::modulo_t(low)?, Slots::modulo_square(low)?];
        let log = slots.points().trailing_zeros();
        for layers in [&literal.stc, &literal.cts] {
            if layers.iter().sum::<u32>() != log || layers.contains(&0) {
                let columns = slots.points();
                return Err(parameters(format!(
                    "stages of {layers:?} layers do not serve {columns} columns; take stages of one layer or more \
                     that add up to {log}"
                )));
            }
        }
        if literal.base == 0 || literal.base > low.max_level() || literal.hoisted == 0 {
            return Err(parameters("a refresh needs at least one prime for q_0, one above it and one baby step"));
        }
        if !literal.weight.is_multiple_of(2) {
            return Err(parameters(format!(
                "the weight {} of the sparse secret is odd; take an even one",
                literal.weight
            )));
        }
        let hoisted = literal.hoisted;
        let stc = Transform::new(&slots, &literal.stc, Direction::SlotsToCoefficients, hoisted, 0);
        let cts = Transform::new(&square, &literal.cts, Direction::CoefficientsToSlots, hoisted, stc.pending);
        let plans = |params: &IntegerParams, slots: &Slots, stages: &[Stage]| {
            stages.iter().map(|stage| MapPlan::of(params, slots, stage)).collect::<Result<Vec<_>, ExactError>>()
        };
        let (stc_maps, cts_maps) = (plans(low, &slots, &stc.stages)?, plans(high, &square, &cts.stages)?);
        let (stc, largest_noise) = slots_to_coefficients(stc_maps, [low, high], gate)?;
        let shares = low.degree() / (2 * slots.points());
        let mask = largest_mask(low.degree() / shares, high.t());
        let secret =
            shares as f64 * masked_error(high.noise(), mask) + f64::from(literal.weight) / high.t() as f64 * mask;
        let (masked, cts_steps, noise) = coefficients_to_slots(cts_maps, high, secret)?;
        let level = cts_steps.last().map_or(masked, |step| step.to);
        let removal = Removal::plan(high, u64::from(literal.weight / 2), low.t(), (level, noise))?;
        let lowest = stc[0].level;
        if removal.result().0 < lowest {
            return Err(parameters(
                "a refreshed ciphertext would be below the level that a refresh takes; take more primes",
            ));
        }
        Ok(Self {
            stc,
            masked,
            shares,
            mask,
            cts: cts_steps,
            removal,
            turn: low.rotation_element(-cts.pending),
            largest_noise,
        })
    }

    /// The lowest level of an input.
    pub fn input_level(&self) -> usize {
        self.stc[0].level
    }

    /// Galois elements and the highest level of each.
    pub fn galois_levels(&self) -> BTreeMap<u64, usize> {
        let mut out = BTreeMap::new();
        let maps =
            self.stc.iter().chain(&self.cts).flat_map(|step| step.map.elements().into_iter().map(|e| (e, step.level)));
        for (element, level) in maps.chain([(self.turn, self.removal.summed_at())]).filter(|(e, _)| *e != 1) {
            let highest = out.entry(element).or_insert(level);
            *highest = level.max(*highest);
        }
        out
    }

    /// The level of z, at which products begin.
    pub fn start(&self) -> usize {
        self.cts.last().map_or(self.masked, |step| step.to)
    }

    /// Words of a limb that diagonals take, times limbs: bytes of all of them.
    pub fn diagonal_bytes(&self, params: &rlwe::Params) -> u64 {
        let bytes = |step: &MapStep| 8 * step.map.row_words() * params.qp_at(step.level).len();
        self.stc.iter().chain(&self.cts).map(|step| bytes(step) as u64).sum()
    }
}

/// What a division by the primes above `to` leaves of noise, without its own rounding.
fn inherited(model: &NoiseModel, noise: f64, level: usize, to: usize) -> f64 {
    model.dropped(noise, 2, (level, to), 1.0) - if to < level { model.division(2) } else { 0.0 }
}

/// The lowest level at which rounding adds at most a quarter.
fn settled(model: &NoiseModel, noise: f64, level: usize, least: usize) -> usize {
    let enough = SETTLED * model.division(2);
    (least..=level).find(|to| inherited(model, noise, level, *to) >= enough).unwrap_or(level)
}

/// StC from the lowest level at which what it leaves at q_0 gives the digit rightly; the largest noise there.
fn slots_to_coefficients(
    maps: Vec<MapPlan>,
    [low, high]: [&IntegerParams; 2],
    gate: &rlwe::Params,
) -> Result<(Vec<MapStep>, f64), ExactError> {
    let (model, base) = (low.noise(), gate.max_level());
    let rounding = low.sketch().division(2).variance()
        + gate.sketch().switching(base).variance()
        + gate.sketch().division(2).variance();
    let unit = (low.log_q(base) - (high.t() as f64).log2()).exp2();
    let room = LARGEST_MISS * unit - COEFFICIENT_TAIL * rounding.sqrt();
    // Levels of every stage for an input with noise, and what is left of it at q_0 besides rounding.
    let run = |start: usize, noise: f64, levels: Option<&[(usize, usize)]>| -> Option<(Vec<(usize, usize)>, f64)> {
        let (mut level, mut noise, mut left, mut out) = (start, noise, noise, Vec::new());
        for (i, map) in maps.iter().enumerate() {
            noise = map.noise(model, level, noise);
            let last = i + 1 == maps.len();
            let to = levels.map_or_else(|| if last { base } else { settled(model, noise, level, base) }, |l| l[i].1);
            if !model.fits(level, noise) {
                return None;
            }
            // A map ends with a division by P, whatever else it divides by.
            left = inherited(model, noise, level, to);
            noise = left + model.division(2);
            out.push((level, to));
            level = to;
        }
        Some((out, left))
    };
    let usual = SETTLED * model.division(2);
    for start in base + 1..=low.max_level() {
        let Some((levels, left)) = run(start, usual, None) else { continue };
        if left > room {
            continue;
        }
        let fits = |noise: f64| run(start, noise, Some(&levels)).is_some_and(|(_, left)| left <= room);
        let mut largest = usual;
        while fits(largest * 1.0625) {
            largest *= 1.0625;
        }
        let step = |(map, (level, to)): (MapPlan, (usize, usize))| MapStep { map, level, to };
        return Ok((maps.into_iter().zip(levels).map(step).collect(), largest));
    }
    Err(parameters("the primes have no room for slots-to-coefficients; take more bits under the user's primes"))
}

/// The level of the masked secret, whose noise is given but for c_0, then CtS and the noise of what it makes.
fn coefficients_to_slots(
    maps: Vec<MapPlan>,
    high: &IntegerParams,
    secret: f64,
) -> Result<(usize, Vec<MapStep>, f64), ExactError> {
    let (model, top) = (high.noise(), high.max_level());
    let no_room = || parameters("the primes have no room for coefficients-to-slots; take larger primes at the top");
    // c_0 is up to half a unit a coefficient.
    let mut noise = secret + model.message();
    if !model.fits(top, noise) {
        return Err(no_room());
    }
    let masked = settled(model, noise, top, 0);
    noise = model.dropped(noise, 2, (top, masked), 1.0);
    let (mut level, count, mut steps) = (masked, maps.len(), Vec::new());
    for (i, map) in maps.into_iter().enumerate() {
        noise = map.noise(model, level, noise);
        if !model.fits(level, noise) {
            return Err(no_room());
        }
        let to = if i + 1 == count { model.bgv_target(level, noise) } else { settled(model, noise, level, 0) };
        noise = inherited(model, noise, level, to) + model.division(2);
        if !model.fits(to, noise) {
            return Err(no_room());
        }
        steps.push(MapStep { map, level, to });
        level = to;
    }
    Ok((masked, steps, noise))
}
