//! What is precomputed for each level of a parameter set.

use crate::error::RlweError;
use crate::switching::Division;
use std::ops::Range;
use sudare_ring::convert::BasisConverter;
use sudare_ring::{Modulus, RnsBasis, Shoup};

/// Precomputation for key switching and division of ciphertexts at one level.
#[derive(Debug)]
pub struct LevelTables {
    /// q_0 … q_level.
    pub q: RnsBasis,
    /// q_0 … q_level, p_0 … p_{k−1}.
    pub qp: RnsBasis,
    /// Which limbs of `q` each digit holds.
    pub digits: Vec<Range<usize>>,
    /// Mod-up of each digit to all of `qp` (the digit's own limbs are not asked for).
    pub mod_up: Vec<BasisConverter>,
    /// P mod q_i.
    pub p_mod_q: Vec<Shoup>,
    /// Division by P; `None` without special primes.
    pub mod_down: Option<Division>,
    /// Division by q_level; `None` at level 0.
    pub rescale: Option<Division>,
    /// Division by q_level·P: mod-down and rescale in one step.
    pub mod_down_rescale: Option<Division>,
}

impl LevelTables {
    pub(crate) fn new(q: &RnsBasis, p: &RnsBasis, level: usize, digit_limbs: usize) -> Result<Self, RlweError> {
        let limbs = level + 1;
        let here = q.prefix(limbs);
        let qp = here.concat(p)?;
        let digits: Vec<Range<usize>> =
            (0..limbs).step_by(digit_limbs).map(|start| start..limbs.min(start + digit_limbs)).collect();
        let switching = !p.is_empty();
        let mod_up = match switching {
            true => digits.iter().map(|d| BasisConverter::new(&qp.select(d.clone()), &qp)).collect(),
            false => Vec::new(),
        };
        let (last, lower) = (q.select([level]), q.prefix(level));
        let when = |wanted: bool, kept: &RnsBasis, tail: &RnsBasis| match wanted {
            true => Division::new(kept, tail).map(Some),
            false => Ok(None),
        };
        Ok(Self {
            mod_down: when(switching, &here, p)?,
            p_mod_q: here.limbs().iter().map(|l| l.modulus().shoup(product(p, l.modulus()))).collect(),
            rescale: when(level > 0, &lower, &last)?,
            mod_down_rescale: when(switching && level > 0, &lower, &last.concat(p)?)?,
            q: here,
            qp,
            digits,
            mod_up,
        })
    }
}

/// The product of a basis modulo a prime.
pub fn product(basis: &RnsBasis, modulus: &Modulus) -> u64 {
    basis.primes().fold(1, |acc, q| modulus.mul(acc, q))
}

/// The inverse of a residue.
///
/// # Errors
/// [`RlweError::NotCoprime`] if there is none.
pub fn inverse(modulus: &Modulus, value: u64) -> Result<u64, RlweError> {
    modulus.inv(value).ok_or(RlweError::NotCoprime { value, modulus: modulus.value() })
}
