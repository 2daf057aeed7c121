//! Hybrid key switching, by the operations of [`sudare_ring::ops`] (`004`, Algorithms 2.4.1–2.4.4).
//!
//! With the gadget of [`crate::keys::KeySwitchKey`], Σ_j c_j·(b_j, a_j) encrypts P·c·s' over Q_l·P for the digits c_j of c;
//! dividing by P gives c·s' under s. The decomposition does not depend on the key (hoisting), and sums over Q_l·P
//! need one division together (lazy mod-down).

use crate::error::RlweError;
use crate::keys::GaloisKey;
use crate::params::Params;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::{Division, Image, Pair, RnsGadget};
use sudare_ring::{Eval, Poly, RnsBasis};

/// Why a set of parameters has no keys to switch with.
pub(crate) const NO_SPECIAL_PRIMES: &str = "key switching needs special primes; give p_bits";

/// What is precomputed for key switching and division of ciphertexts at one level.
#[derive(Debug)]
pub struct LevelTables {
    /// Digits over q_0 … q_level and the special primes.
    pub gadget: RnsGadget,
    /// Division by P; `None` without special primes.
    pub mod_down: Option<Division>,
    /// Division by q_level; `None` at level 0.
    pub rescale: Option<Division>,
    /// Division by q_level·P: mod-down and rescale in one step.
    pub mod_down_rescale: Option<Division>,
}

impl LevelTables {
    pub(crate) fn new(q: &RnsBasis, p: &RnsBasis, level: usize, digit_limbs: usize) -> Result<Self, RlweError> {
        let here = q.prefix(level + 1);
        let (last, lower) = (q.select([level]), q.prefix(level));
        let when = |wanted: bool, kept: &RnsBasis, tail: &RnsBasis| match wanted {
            true => Division::new(kept, tail).map(Some),
            false => Ok(None),
        };
        let switching = !p.is_empty();
        Ok(Self {
            mod_down: when(switching, &here, p)?,
            rescale: when(level > 0, &lower, &last)?,
            mod_down_rescale: when(switching && level > 0, &lower, &last.concat(p)?)?,
            gadget: RnsGadget::new(&here, p, digit_limbs)?,
        })
    }

    /// Division by P.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] without special primes.
    pub fn by_p(&self) -> Result<&Division, RlweError> {
        self.mod_down.as_ref().ok_or_else(|| RlweError::Parameters { reason: NO_SPECIAL_PRIMES.into() })
    }
}

/// A pair (c_0, c_1) over Q_l·P: P times what a ciphertext's parts will be.
#[derive(Clone, Debug)]
pub struct ExtendedPair {
    /// Its level.
    pub level: usize,
    /// Both polynomials.
    pub c: Pair,
}

impl ExtendedPair {
    /// The zero pair.
    pub fn zero(params: &Params, level: usize) -> Self {
        Self { level, c: [Poly::zero(params.qp_at(level)), Poly::zero(params.qp_at(level))] }
    }

    /// `self += other`.
    pub fn add_assign(&mut self, other: &Self) {
        self.c.iter_mut().zip(&other.c).for_each(|(x, y)| x.add_assign(y));
    }

    /// `self −= other`.
    pub fn sub_assign(&mut self, other: &Self) {
        self.c.iter_mut().zip(&other.c).for_each(|(x, y)| x.sub_assign(y));
    }

    /// `c_i += P · p` for a polynomial over Q_l.
    pub fn add_scaled(&mut self, params: &Params, i: usize, p: &Poly<Eval>) {
        params.tables(self.level).gadget.add_scaled(&mut self.c[i], p);
    }

    /// Both polynomials under an automorphism.
    #[must_use]
    pub fn permuted(self, permutation: &EvalPermutation) -> Self {
        Self { level: self.level, c: self.c.map(|c| c.permuted(permutation)) }
    }

    /// Both divided by P: the parts of a ciphertext.
    #[must_use]
    pub fn mod_down(self, params: &Params) -> Pair {
        mod_down(params, self.level, self.c)
    }

    /// Both divided by P and the last prime: the parts of a ciphertext one level down.
    ///
    /// # Errors
    /// [`RlweError::Internal`] at level 0, and for parameters without special primes: whoever has a pair there refuses
    /// the rescale before it begins.
    pub fn mod_down_rescale(self, params: &Params) -> Result<Pair, RlweError> {
        let division = params.tables(self.level).mod_down_rescale.as_ref();
        let division =
            division.ok_or(RlweError::Internal { what: "a pair has no division by P and the last prime" })?;
        Ok(division.apply(self.c))
    }

    /// Applies an automorphism to P times each of some ciphertexts at one level, and adds as many pairs of that level:
    /// c_1 is divided by P and switched, c_0 stays as it is.
    #[must_use]
    pub fn turned(pairs: Vec<Self>, params: &Params, key: &GaloisKey, plus: Option<Vec<Self>>) -> Vec<Self> {
        let Some(level) = pairs.first().map(|pair| pair.level) else { return pairs };
        let halves = pairs.into_iter().map(|Self { c: [c0, c1], .. }| {
            let [c1] = mod_down(params, level, [c1]);
            (c0, c1)
        });
        let (firsts, seconds): (Vec<_>, Vec<_>) = halves.unzip();
        let batch: Vec<_> = firsts.iter().zip(&seconds).map(|(c0, c1)| [c0, c1]).collect();
        let plus = plus.map(|plus| plus.into_iter().map(|pair| pair.c).collect());
        let turned = params.tables(level).gadget.turn_many(&batch, &key.image(), plus);
        turned.into_iter().map(|c| Self { level, c }).collect()
    }
}

/// Divides polynomials over Q_l·P by P: RNSModDown (`004`, Algorithm 2.4.2).
pub fn mod_down<const K: usize>(params: &Params, level: usize, batch: [Poly<Eval>; K]) -> [Poly<Eval>; K] {
    match &params.tables(level).mod_down {
        Some(division) => division.apply(batch),
        None => batch,
    }
}

impl GaloisKey {
    /// What a sum of images takes of it.
    pub fn image(&self) -> Image<'_> {
        Image { pairs: self.key().pairs(), permutation: self.permutation() }
    }
}
