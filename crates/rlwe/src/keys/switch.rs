//! Key-switching keys.

use crate::error::RlweError;
use crate::params::{Params, ParamsLiteral};
use crate::switching::mod_down;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::{Division, Pair, PolyPairs, mask};
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly, RnsBasis};

/// A hybrid key-switching key from s' to s: for each digit j the pair (b_j, a_j) over Q·P with
/// b_j = −a_j·s + e_j + P·g_j·s', g_j ≡ 1 modulo the primes of digit j and 0 modulo the others.
/// Serves ciphertexts up to its level.
#[derive(Clone, Debug)]
pub struct KeySwitchKey {
    params: Params,
    level: usize,
    /// What the a_j are expanded from, where a seed stands for them.
    seed: Option<MaskSeed>,
    pairs: PolyPairs,
}

impl KeySwitchKey {
    /// Puts a key together from what travels: its level, the b_j, and the seed of the a_j.
    ///
    /// # Errors
    /// [`RlweError::NoSuchLevel`], or [`RlweError::Parameters`] if the b_j are too few, too many or
    /// over other primes.
    pub fn from_parts(params: &Params, level: usize, seed: MaskSeed, b: Vec<Poly<Eval>>) -> Result<Self, RlweError> {
        Self::check_digits(params, level, &b)?;
        let a: Vec<_> = (0..b.len() as u64).map(|j| mask(params.qp_at(level), &seed, j)).collect();
        Ok(Self::pack(params, level, Some(seed), &b, &a))
    }

    /// Puts a key together whose a_j no seed stands for.
    ///
    /// # Errors
    /// As [`KeySwitchKey::from_parts`], of the a_j too.
    pub fn from_pairs(params: &Params, level: usize, b: &[Poly<Eval>], a: &[Poly<Eval>]) -> Result<Self, RlweError> {
        Self::check_digits(params, level, b)?;
        Self::check_digits(params, level, a)?;
        Ok(Self::pack(params, level, None, b, a))
    }

    fn check_digits(params: &Params, level: usize, digits: &[Poly<Eval>]) -> Result<(), RlweError> {
        params.expect_level("key switching", level)?;
        let (basis, count) = (params.qp_at(level), params.digits_at(level));
        if params.p().is_empty() || digits.len() != count || digits.iter().any(|p| p.basis() != basis) {
            return Err(RlweError::Parameters {
                reason: format!("a key-switching key has to have {count} digits over all primes of its level"),
            });
        }
        Ok(())
    }

    /// From all pairs, and the seed of the a_j if there is one.
    pub(crate) fn pack(
        params: &Params,
        level: usize,
        seed: Option<MaskSeed>,
        b: &[Poly<Eval>],
        a: &[Poly<Eval>],
    ) -> Self {
        Self { params: params.clone(), level, seed, pairs: PolyPairs::new(b, a) }
    }

    /// The highest level of the ciphertexts it serves.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The seed of the a_j, where one stands for them.
    pub fn seed(&self) -> Option<&MaskSeed> {
        self.seed.as_ref()
    }

    /// Number of digits.
    pub fn digits(&self) -> usize {
        self.params.digits_at(self.level)
    }

    /// b_j, over Q·P of the key's level.
    ///
    /// # Panics
    /// If there are no more than `j` digits.
    pub fn b(&self, j: usize) -> Poly<Eval> {
        self.pairs.get(j, 0)
    }

    /// a_j, as [`KeySwitchKey::b`].
    ///
    /// # Panics
    /// If there are no more than `j` digits.
    pub fn a(&self, j: usize) -> Poly<Eval> {
        self.pairs.get(j, 1)
    }

    /// The same key over the first primes of its set: digit 0 modulo them, divided by the special primes that
    /// `low` lacks. Rounding makes its error about √(N/18). No seed stands for its a_0.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] unless both bases of `low` are the first primes of the key's, all of its data
    /// primes in digit 0.
    pub fn reduced(&self, low: &Params) -> Result<Self, RlweError> {
        let (params, level) = (&self.params, low.max_level());
        let (limbs, kept, special) = (level + 1, low.p().len(), params.p().len());
        let first = |part: &RnsBasis, all: &RnsBasis| part.len() <= all.len() && *part == all.prefix(part.len());
        let one_digit = limbs <= params.literal().digit_limbs && low.digits_at(level) == 1;
        if level > self.level || !one_digit || !first(low.q(), params.q()) || !first(low.p(), params.p()) {
            return Err(RlweError::Parameters {
                reason: "a key can only be reduced to the first primes of its set, within its first digit".into(),
            });
        }
        let selected: Vec<usize> = (0..limbs).chain(self.level + 1..self.level + 1 + special).collect();
        let dropped = (kept < special).then(|| params.p().select(kept..special));
        let division = dropped.map(|dropped| Division::new(low.qp_at(level), &dropped)).transpose()?;
        let [b, a] = [0, 1].map(|part| {
            let poly = self.pairs.get(0, part).select(&selected);
            division.iter().fold(poly, |poly, division| division.apply_by_columns(poly))
        });
        Ok(Self::pack(low, level, None, &[b], &[a]))
    }

    /// The pairs (b_j, a_j), as the operations of the ring take them.
    pub fn pairs(&self) -> &PolyPairs {
        &self.pairs
    }

    /// Both parts of a ciphertext at the key's level, under the secret that the key leads to.
    ///
    /// # Panics
    /// For parts over other primes.
    pub fn switched(&self, [c0, c1]: [&Poly<Eval>; 2]) -> Pair {
        let gadget = &self.params.tables(self.level).gadget;
        let mut parts = mod_down(&self.params, self.level, gadget.switch(c1, None, &self.pairs));
        parts[0].add_assign(c0);
        parts
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.pairs.bytes()
    }

    /// Bytes of such a key in memory, before there is one. On the wire it takes about half where
    /// the a_j travel as a seed.
    pub fn bytes_at(literal: &ParamsLiteral, level: usize) -> usize {
        let (n, digits) = (1usize << literal.log_n, (level + 1).div_ceil(literal.digit_limbs.max(1)));
        let bits = literal.q_bits.iter().take(level + 1).chain(&literal.p_bits);
        PolyPairs::bytes_of(n, bits.copied(), digits)
    }
}

/// The key of one automorphism X → X^g.
///
/// It switches from s to ψ_g^−1(s), so that the automorphism itself is applied after the inner
/// product, once, and hoisted digits serve every g (Bossuat et al., ePrint 2020/1203; `004`,
/// section 3.2).
#[derive(Clone, Debug)]
pub struct GaloisKey {
    element: u64,
    key: KeySwitchKey,
    permutation: EvalPermutation,
}

impl GaloisKey {
    /// Puts a key together.
    ///
    /// # Errors
    /// [`RlweError::Ring`] if `element` is no Galois element of the ring.
    pub fn from_parts(element: u64, key: KeySwitchKey) -> Result<Self, RlweError> {
        let permutation = EvalPermutation::new(key.params.degree(), element)?;
        Ok(Self { element, key, permutation })
    }

    /// g.
    pub fn element(&self) -> u64 {
        self.element
    }

    /// The automorphism on values.
    pub fn permutation(&self) -> &EvalPermutation {
        &self.permutation
    }

    /// The key-switching key inside.
    pub fn key(&self) -> &KeySwitchKey {
        &self.key
    }
}
