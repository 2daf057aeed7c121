//! A set for levels, precision and memory that a program needs.
//!
//! Every named set with all slots is a shape: how many primes each step takes and how large they are beside the
//! user's. A candidate is a shape with other numbers of levels, all primes larger or smaller by the same bits, and
//! as many digits of key switching as its modulus leaves room for. Layout, noise and bytes of one follow from sizes of
//! primes alone, so that all of them are tried.

use super::refresh::Kind;
use super::set::BootstrapLiteral;
use crate::ckks::ParamsLiteral;
use crate::error::{HeError, parameters};
use sudare_rlwe::RlweError;
use sudare_rlwe::params::ParamsLiteral as RlweLiteral;
use sudare_rlwe::security::{SecretDistribution, max_log_qp};

/// Largest prime that the fast kernels take.
const FAST_BITS: u32 = 50;
/// Bits by which all primes of a shape may shrink or grow.
const SHIFTS: std::ops::RangeInclusive<i32> = -12..=4;
/// Bits by which the special primes exceed the largest digit, where there is room.
const MARGIN: u32 = 4;
/// Most digits of key switching.
const MAX_DIGITS: usize = 8;

/// What a set should do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapGoal {
    /// Levels of a refreshed ciphertext for use, at least one.
    pub levels: usize,
    /// −log2 of the root mean square error of complex values of size up to one, at least.
    pub bits: f64,
    /// Most bytes of keys, diagonals and the work on one ciphertext; `None`: any.
    pub memory: Option<u64>,
}

impl BootstrapGoal {
    fn precise(&self, literal: &BootstrapLiteral) -> bool {
        literal.predicted_noise(0.5).is_ok_and(|noise| noise.bits() >= self.bits)
    }

    fn fits(&self, literal: &BootstrapLiteral) -> bool {
        self.memory.is_none_or(|limit| bytes(literal).is_ok_and(|bytes| bytes <= limit))
    }
}

impl BootstrapLiteral {
    /// The set of least estimated time with all slots and 128 bits of security that reaches a goal. Takes a second or so.
    ///
    /// # Errors
    /// `RlweError::Parameters` where there is none, with the most bits that there are for as many levels;
    /// `RlweError::Memory` with the least bytes that a set takes.
    ///
    /// ```
    /// use sudare_he::circuits::bootstrapping::{BootstrapGoal, BootstrapLiteral};
    ///
    /// let goal = BootstrapGoal { levels: 6, bits: 18.0, memory: Some(3 << 30) };
    /// let set = BootstrapLiteral::search(goal)?;
    /// assert!(set.predicted_noise(0.5)?.bits() >= 18.0);
    /// # Ok::<(), sudare_he::HeError>(())
    /// ```
    pub fn search(goal: BootstrapGoal) -> Result<Self, HeError> {
        if goal.levels == 0 || !goal.bits.is_finite() {
            return Err(parameters(format!(
                "a bootstrapping set is searched for at least one level and a finite precision, not for {} and {}",
                goal.levels, goal.bits
            )));
        }
        let shapes = [Self::a(), Self::a12(), Self::b(), Self::c()];
        let mut all = Vec::new();
        for shape in &shapes {
            let switches = switches(shape)?;
            all.extend(candidates(shape, goal).into_iter().map(|literal| (price(&literal, switches), literal)));
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        match all.iter().find(|(_, literal)| goal.fits(literal) && goal.precise(literal)) {
            Some((_, found)) => Ok(found.clone()),
            None => Err(refusal(goal, &shapes, all.iter().map(|(_, literal)| literal))),
        }
    }
}

/// Sets of a shape that are precise enough, one for each number of digits.
fn candidates(shape: &BootstrapLiteral, goal: BootstrapGoal) -> Vec<BootstrapLiteral> {
    // Bits follow the size of the primes, and hardly depend on the digits. The least primes that will do leave the most
    // room for special ones.
    let sized: Vec<_> = SHIFTS.map(|shift| secure(shape, goal.levels, shift)).filter(|all| !all.is_empty()).collect();
    let least = sized.partition_point(|all| !goal.precise(&all[0]));
    sized.into_iter().nth(least).unwrap_or_default()
}

/// A shape with so many levels and primes larger by `shift` bits, for each number of digits with which it is secure.
fn secure(shape: &BootstrapLiteral, levels: usize, shift: i32) -> Vec<BootstrapLiteral> {
    (1..=MAX_DIGITS).filter_map(|digits| sized(shape, levels, shift, digits)).collect()
}

fn sized(shape: &BootstrapLiteral, levels: usize, shift: i32, digits: usize) -> Option<BootstrapLiteral> {
    let larger = |bits: &u32| bits.checked_add_signed(shift).filter(|bits| (20..=FAST_BITS).contains(bits));
    let own = &shape.params.rlwe;
    // StC's primes and the user's; the others stand above. Shapes are those of one refresh.
    let input = shape.stc.len();
    let users = own.q_bits[input + 1..].iter().take_while(|bits| **bits == shape.params.log_scale).count();
    let log_scale = larger(&shape.params.log_scale)?;
    let below = own.q_bits[..=input].iter().map(larger);
    let above = own.q_bits[input + 1 + users..].iter().map(larger);
    let q_bits: Vec<u32> =
        below.chain(std::iter::repeat_n(Some(log_scale), levels)).chain(above).collect::<Option<_>>()?;
    let digit = |length: usize| q_bits.chunks(length).map(|d| d.iter().sum::<u32>()).max();
    // Digits of several lengths have one count: the least are best. Some counts there are not.
    let lengths = (1..=q_bits.len()).filter(|length| q_bits.len().div_ceil(*length) == digits);
    let digit_limbs = lengths.min_by_key(|length| digit(*length))?;
    let (digit, all) = (digit(digit_limbs)?, q_bits.iter().sum::<u32>());
    let sparse = SecretDistribution::FixedWeight { weight: shape.weight };
    let gate = max_log_qp(own.log_n, sparse, own.security)?.checked_sub(q_bits[0])?;
    let room = max_log_qp(own.log_n, own.secret, own.security)?.checked_sub(all + digit)?;
    if gate < q_bits[0] {
        return None;
    }
    // A few bits more than the digit keep the noise of key switching under that of rounding; they are worth no further prime.
    let count = (digit + room.min(1)).div_ceil(FAST_BITS - 1);
    let special = (digit + room.min(MARGIN)).min(count * (FAST_BITS - 1));
    let p_bits = (0..count).map(|i| special / count + u32::from(i < special % count)).collect();
    let rlwe = RlweLiteral { q_bits, p_bits, digit_limbs, ..own.clone() };
    let params = ParamsLiteral { rlwe, log_scale };
    Some(BootstrapLiteral { params, gate_bits: gate.min(FAST_BITS - 1), ..shape.clone() })
}

/// What keys, diagonals and the work on one ciphertext take.
fn bytes(literal: &BootstrapLiteral) -> Result<u64, HeError> {
    Ok(literal.memory()?.into_iter().sum())
}

/// What the closest candidates reach.
fn refusal<'a>(
    goal: BootstrapGoal,
    shapes: &[BootstrapLiteral],
    precise: impl Iterator<Item = &'a BootstrapLiteral>,
) -> HeError {
    if let (Some(needed), Some(limit)) = (precise.filter_map(|literal| bytes(literal).ok()).min(), goal.memory) {
        let what = format!("a bootstrapping set of {} levels and {} bits", goal.levels, goal.bits);
        return HeError::Rlwe(RlweError::Memory { what, needed, limit });
    }
    let wanted = format!("no bootstrapping set has {} levels and {} bits", goal.levels, goal.bits);
    let largest = |shape| SHIFTS.rev().find_map(|shift| secure(shape, goal.levels, shift).into_iter().next());
    let bits =
        shapes.iter().filter_map(largest).filter_map(|literal| literal.predicted_noise(0.5).ok()).map(|n| n.bits());
    let two = BootstrapLiteral::a50();
    let levels = two.levels().map_or(0, |(input, output)| (output - input) / two.level_primes());
    let also = if goal.levels <= levels && goal.precise(&two) { "; two refreshes in one have them (A50)" } else { "" };
    match bits.reduce(f64::max) {
        Some(most) => parameters(format!("{wanted}; with that many levels, {most:.1} bits are the most{also}")),
        None => parameters(format!("{wanted}: no ring has room for that many levels; refresh more often")),
    }
}

/// Key switches of a complex refresh of a shape, and products with the keys of a stage.
fn switches(shape: &BootstrapLiteral) -> Result<[u64; 2], HeError> {
    let all: u64 = shape.operations(Kind::Complex)?.iter().map(|c| c.key_switches).sum();
    let keyed = if shape.keyed { 1 << shape.cts[0] } else { 0 };
    Ok([all - keyed, keyed])
}

/// What so many key switches and products with a stage's keys cost, in butterflies: their transforms, and the reading of a key as
/// half a transform for each of its polynomials. The keys of a stage are of one digit and one special prime.
fn price(literal: &BootstrapLiteral, [switches, keyed]: [u64; 2]) -> f64 {
    let rlwe = &literal.params.rlwe;
    let (limbs, special) = (rlwe.q_bits.len(), rlwe.p_bits.len());
    let digits = limbs.div_ceil(rlwe.digit_limbs);
    let polynomials = limbs + (digits + 2) * (limbs + special);
    let butterflies = (u64::from(rlwe.log_n) << rlwe.log_n) as f64 / 2.0;
    let each = (polynomials + digits * (limbs + special)) as f64;
    butterflies * (switches as f64 * each + (keyed * (limbs as u64 + 1)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::bootstrapping::BootstrapSet;
    use sudare_testkit::sized as sized_by;

    fn goal(levels: usize, bits: f64) -> BootstrapGoal {
        BootstrapGoal { levels, bits, memory: None }
    }

    /// What is found keeps its goal, and is no dearer than the named set that does.
    #[test]
    fn goals_are_reached() {
        let price = |literal: &BootstrapLiteral| price(literal, switches(literal).unwrap());
        let within = BootstrapGoal { memory: Some(3 << 30), ..goal(4, 16.1) };
        let cases = [(within, Some(BootstrapSet::C)), (goal(15, 20.0), None), (goal(9, 26.3), Some(BootstrapSet::A))];
        for (goal, set) in cases.into_iter().take(sized_by(2, 3)) {
            let found = BootstrapLiteral::search(goal).unwrap();
            let (input, output) = found.levels().unwrap();
            assert_eq!(output - input, goal.levels);
            assert!(goal.fits(&found));
            assert!(found.predicted_noise(0.5).unwrap().bits() >= goal.bits, "{goal:?}");
            assert!(set.is_none_or(|set| price(&found) <= 1.02 * price(&set.literal())), "{goal:?}: {found:?}");
            let total: u32 = found.params.q_bits.iter().chain(&found.params.p_bits).sum();
            let rlwe = &found.params.rlwe;
            assert!(total <= max_log_qp(rlwe.log_n, rlwe.secret, rlwe.security).unwrap());
            let sparse = SecretDistribution::FixedWeight { weight: found.weight };
            assert!(rlwe.q_bits[0] + found.gate_bits <= max_log_qp(rlwe.log_n, sparse, rlwe.security).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_figure() {
        let much = BootstrapLiteral::search(goal(9, 40.0)).unwrap_err().to_string();
        assert!(much.ends_with("bits are the most"), "{much}");
        let twice = BootstrapLiteral::search(goal(5, 40.0)).unwrap_err().to_string();
        assert!(twice.ends_with("(A50)"), "{twice}");
        let deep = BootstrapLiteral::search(goal(60, 10.0)).unwrap_err().to_string();
        assert!(deep.contains("refresh more often"), "{deep}");
        let small = BootstrapGoal { memory: Some(1 << 20), ..goal(4, 16.0) };
        let Err(HeError::Rlwe(RlweError::Memory { needed, limit, .. })) = BootstrapLiteral::search(small) else {
            panic!("{small:?}")
        };
        assert!(limit == 1 << 20 && needed > 500 << 20);
        if sized_by(false, true) {
            assert!(BootstrapLiteral::search(BootstrapGoal { memory: Some(needed), ..small }).is_ok());
        }
        assert!(
            BootstrapLiteral::search(goal(0, 10.0)).is_err() && BootstrapLiteral::search(goal(3, f64::NAN)).is_err()
        );
    }
}
