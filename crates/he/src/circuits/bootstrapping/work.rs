//! What a refresh is made of: transforms, conversions, decompositions, inner products and bytes of keys, by step, from
//! the sizes of a set's primes alone. [`sudare_ring::count`] counts the same where it is done.

use super::layout::Layout;
use super::refresh::Kind;
use crate::circuits::linear_map::{MapOperations, MapPlan};
use crate::error::HeError;
use sudare_ring::count::Counts;
use sudare_ring::ops::PolyPairs;

/// The primes of some ciphertexts and of their keys, by size.
struct Primes<'a> {
    n: usize,
    q: &'a [u32],
    p: &'a [u32],
    digit_limbs: usize,
}

/// So many transforms and conversions.
fn passes(transforms: usize, conversions: usize) -> Counts {
    Counts { transforms: transforms as u64, conversions: conversions as u64, ..Counts::default() }
}

impl Primes<'_> {
    fn digits(&self, level: usize) -> usize {
        (level + 1).div_ceil(self.digit_limbs)
    }

    /// A decomposition at a level: all limbs one way, and every digit over all other primes back.
    fn decomposition(&self, level: usize) -> Counts {
        let digits = self.digits(level);
        Counts { decompositions: 1, ..passes(digits * (level + 1 + self.p.len()), digits) }
    }

    /// An inner product at a level.
    fn product(&self, level: usize) -> Counts {
        let bits = self.q[..=level].iter().chain(self.p).copied();
        let key_bytes = PolyPairs::bytes_of(self.n, bits, self.digits(level)) as u64;
        Counts { inner_products: 1, key_bytes, ..Counts::default() }
    }

    /// Divisions of some polynomials at a level by all special primes, with the last data prime or without: each prime
    /// that goes is transformed back, and each that stays forth.
    fn divisions(&self, polynomials: usize, level: usize) -> Counts {
        passes(polynomials * (level + 1 + self.p.len()), polynomials)
    }

    /// P times a ciphertext under an automorphism, again P times one: c_1 is divided by P and switched.
    fn turned(&self, level: usize) -> Counts {
        self.divisions(1, level) + self.decomposition(level) + self.product(level)
    }

    /// A linear map and its rescale. A root's turn ends with a decomposition, a giant step's begins with it.
    fn map(&self, plan: &MapPlan, level: usize) -> Counts {
        let MapOperations { babies, root_turns, giant_turns, .. } = plan.operations();
        let turns = self.turned(level) * (root_turns + giant_turns);
        self.decomposition(level) + self.product(level) * babies + turns + self.divisions(2, level)
    }
}

impl Layout {
    /// What a refresh of one ciphertext or pair is made of, by step.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`.
    pub fn work(&self, kind: Kind) -> Result<[Counts; 5], HeError> {
        if kind == Kind::Pair && self.is_sparse() {
            return Ok(self.work(Kind::Real)?.map(|step| step * 2));
        }
        let (literal, levels, n) = (&self.literal.params.rlwe, self.levels, self.degree());
        let (q, p) = (literal.q_bits.as_slice(), literal.p_bits.as_slice());
        let high = Primes { n, q, p, digit_limbs: literal.digit_limbs };
        let limbs = levels.input + 1;
        let low = Primes { n, q: &q[..limbs], p: &p[..self.low.p().len()], digit_limbs: limbs };
        let gate_bits = [self.literal.gate_bits];
        let gate = Primes { n, q: &q[..1], p: &gate_bits, digit_limbs: 1 };
        let open = Primes { n, q, p: &gate_bits, digit_limbs: q.len() };
        let both = kind != Kind::Real && !self.is_sparse();

        let stc = self.stc_stages().zip(self.stc_plans()).map(|((_, level, ..), plan)| low.map(&plan, level)).sum();
        // Both parts are lifted, c_1 to p as well; as one digit it needs no decomposition.
        let lifts = passes(levels.top + 2, 1) + passes(levels.top + 1, 1);
        let raise = gate.decomposition(0) + gate.product(0) + gate.divisions(2, 0);
        let raise = raise + lifts + open.product(levels.top) + open.divisions(2, levels.top);
        let image = high.decomposition(levels.top) + high.product(levels.top) + high.divisions(2, levels.top);
        let trace = if self.is_sparse() { image * self.trace_elements().len() } else { Counts::default() };

        let cts: Counts =
            self.cts_stages().zip(self.cts_plans()).map(|((_, level, ..), plan)| high.map(&plan, level)).sum();
        // The conjugate, and a second sum with it.
        let last = levels.start + 1;
        let cts = cts + high.turned(last) + if both { high.divisions(2, last) } else { Counts::default() };

        let (plan, _) = self.reduction(self.scale(), self.scale())?;
        let sum = |(level, switched): (usize, bool)| match switched {
            true => high.decomposition(level) + high.product(level) + high.divisions(2, level),
            // Two parts are divided by one prime.
            false => passes(2 * (level + 1), 2),
        };
        let sums = plan.sums().iter().map(|s| sum((s.level, !s.products.is_empty())));
        let reduce = sums.sum::<Counts>() * if both { 2 } else { 1 };

        let switch = high.decomposition(levels.reduced) + high.product(levels.reduced);
        let divided = high.divisions(2, levels.reduced);
        let join = match self.mask_plan() {
            Some(mask) => switch + divided + high.map(&mask, levels.reduced),
            None => {
                let one = switch * if self.undo() == 0 { 1 } else { 2 } + divided;
                one * if kind == Kind::Pair { 2 } else { 1 }
            }
        };
        Ok([stc, raise + trace, cts, reduce, join])
    }
}
