//! Linear maps on slots, with products by plaintexts over Q_l·P.
//!
//! A sum Σ_t p_t ⊙ Rot_t(a) needs one decomposition for all its rotations and one division by P
//! for all its terms, fused with the rescale (Bossuat–Mouchet–Troncoso-Pastoriza–Hubaux, ePrint
//! 2020/1203, "double hoisting"; `004`, section 3.2).

use super::{Evaluator, Hoisted};
use crate::ckks::noise::{division_bound, switching_bound};
use crate::ckks::{Ciphertext, EncodeAt, Encoder, State};
use crate::error::{HeError, parameters};
use std::collections::BTreeMap;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::switching::ExtendedPair;
use sudare_rlwe::{Counters, Params, RlweError};

/// A plaintext over Q_l·P, to multiply what is not yet divided by P.
#[derive(Clone, Debug)]
pub struct ExtendedPlaintext {
    params: Params,
    poly: Poly<Eval>,
    level: usize,
    scale: f64,
    bound: f64,
    noise: f64,
}

impl ExtendedPlaintext {
    /// Its level.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Its limbs for a ciphertext at `level`.
    fn at(&self, level: usize) -> std::borrow::Cow<'_, Poly<Eval>> {
        if level == self.level {
            return std::borrow::Cow::Borrowed(&self.poly);
        }
        let all = self.poly.basis().len();
        let indices: Vec<usize> = (0..=level).chain(self.level + 1..all).collect();
        std::borrow::Cow::Owned(self.poly.select(&indices))
    }

    fn check(&self, operation: &'static str, params: &Params, level: usize) -> Result<(), HeError> {
        params.expect("the plaintext", &self.params)?;
        if level > self.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: self.level }.into());
        }
        Ok(())
    }
}

impl Encoder {
    /// Real values to the first slots, the rest zero, over Q_l·P.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`]; [`HeError::TooLarge`] also where |value|·scale reaches 2^62.
    pub fn encode_extended(&self, values: &[f64], at: EncodeAt) -> Result<ExtendedPlaintext, HeError> {
        let plain = self.encode_at(values, at)?;
        let params = self.params();
        if at.max_abs.max(1e-300).log2() + at.scale.log2() >= 62.0 {
            let (operation, modulus) = ("encoding", 62.0);
            let (value, scale) = (at.max_abs.log2(), at.scale.log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: at.level });
        }
        let mut re = values.to_vec();
        re.resize(params.slots(), 0.0);
        let mut im = vec![0.0; re.len()];
        params.embedding().embed_inverse_split(&mut re, &mut im);
        re.append(&mut im);
        let mut rounded = vec![0i64; re.len()];
        round_to_i64(&mut rounded, &re, at.scale);
        let poly = Poly::<Coeff>::from_signed(params.qp_at(at.level), &rounded).into_eval();
        let (bound, noise) = (plain.bound(), plain.error_bound() * at.scale);
        let params = params.rlwe().clone();
        Ok(ExtendedPlaintext { params, poly, level: at.level, scale: at.scale, bound, noise })
    }
}

/// A linear map Σ_t d_t ⊙ Rot_t in baby and giant steps.
#[derive(Clone, Debug)]
pub struct LinearMap {
    level: usize,
    scale: f64,
    /// max_i Σ_t |d_t\[i\]|.
    row_sum: f64,
    babies: Vec<u64>,
    /// A giant step's Galois element, and its terms: index of the baby step, diagonal.
    giants: Vec<(u64, Vec<(usize, ExtendedPlaintext)>)>,
}

impl LinearMap {
    /// Prepares the map whose diagonal at rotation `unit · t` is `diagonals[t]`; `babies` of
    /// these steps share a decomposition.
    ///
    /// # Errors
    /// As [`Encoder::encode_extended`]; `RlweError::Parameters` for a map without diagonals, and
    /// [`HeError::TooManyValues`] for a diagonal that is not of N/2 values.
    pub fn new(
        encoder: &Encoder,
        diagonals: &BTreeMap<i64, Vec<f64>>,
        unit: i64,
        babies: usize,
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        let params = encoder.params();
        let (slots, step) = (params.slots(), babies.clamp(1, i64::MAX as usize) as i64);
        if diagonals.is_empty() {
            return Err(parameters("a linear map needs a diagonal"));
        }
        let mut sums = vec![0.0; slots];
        let mut used = BTreeMap::new();
        let mut giants: BTreeMap<i64, Vec<(i64, ExtendedPlaintext)>> = BTreeMap::new();
        for (t, diagonal) in diagonals {
            if diagonal.len() != slots {
                return Err(HeError::TooManyValues { found: diagonal.len(), capacity: slots });
            }
            sums.iter_mut().zip(diagonal).for_each(|(s, x)| *s += x.abs());
            let baby = if step == i64::MAX { *t } else { t.rem_euclid(step) };
            let giant = t - baby;
            let back = (giant * unit).rem_euclid(slots as i64) as usize;
            // Rot_g(p ⊙ x) = Rot_g(p) ⊙ Rot_g(x): the diagonal is turned back beforehand.
            let mut turned = diagonal.clone();
            turned.rotate_right(back);
            used.insert(baby, 0usize);
            giants.entry(giant).or_default().push((baby, encoder.encode_extended(&turned, at)?));
        }
        used.values_mut().enumerate().for_each(|(i, index)| *index = i);
        Ok(Self {
            level: at.level,
            scale: at.scale,
            row_sum: sums.into_iter().fold(0.0, f64::max),
            babies: used.keys().map(|t| params.rotation_element(t * unit)).collect(),
            giants: giants
                .into_iter()
                .map(|(g, terms)| {
                    let terms = terms.into_iter().map(|(baby, p)| (used[&baby], p)).collect();
                    (params.rotation_element(g * unit), terms)
                })
                .collect(),
        })
    }

    /// Prepares a map without giant steps: all its rotations come from one decomposition, which
    /// several maps can share ([`Evaluator::linear_maps`]).
    ///
    /// # Errors
    /// As [`LinearMap::new`].
    pub fn hoisted(
        encoder: &Encoder,
        diagonals: &BTreeMap<i64, Vec<f64>>,
        unit: i64,
        at: EncodeAt,
    ) -> Result<Self, HeError> {
        Self::new(encoder, diagonals, unit, usize::MAX, at)
    }

    /// Galois elements whose keys it needs.
    pub fn elements(&self) -> Vec<u64> {
        self.babies.iter().chain(self.giants.iter().map(|(g, _)| g)).copied().filter(|e| *e != 1).collect()
    }

    /// The Galois element of each giant step.
    fn turns(&self) -> Vec<u64> {
        self.giants.iter().map(|(element, _)| *element).collect()
    }

    /// The level it is prepared for.
    pub fn level(&self) -> usize {
        self.level
    }
}

impl Evaluator {
    /// i · a in every slot, exactly and at no cost in levels: X^(N/2) is the constant i.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn mul_imaginary_unit(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let mut monomial = vec![0i64; self.params().degree()];
        monomial[self.params().slots()] = 1;
        let monomial = Poly::<Coeff>::from_signed(self.params().q_at(a.level()), &monomial).into_eval();
        Ok(Ciphertext::new(self.inner.mul_monomial(&a.inner, &monomial)?, a.state()))
    }

    /// p ⊙ Σ_ψ ψ(a), rescaled: one decomposition, one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`] and [`Evaluator::rescale`].
    pub fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        p: &ExtendedPlaintext,
    ) -> Result<Ciphertext, HeError> {
        let operation = "masked sum of rotations";
        self.inner.check_two_parts(operation, &a.inner)?;
        let (params, level) = (self.params(), a.level());
        p.check(operation, params, level)?;
        let lower = a.inner.lower(operation)?;
        self.check_keys(elements, level)?;
        let terms = elements.len() as f64;
        let inner = (a.noise + switching_bound(params, level)) * terms;
        let state = State {
            scale: a.scale * p.scale,
            bound: a.bound * terms * p.bound,
            noise: inner * (p.bound * p.scale + p.noise) + a.bound * terms * a.scale * p.noise,
        };
        state.check_fits(operation, params, level)?;
        let mut sum = self.inner.sum_of_automorphisms_extended(&a.inner, elements)?;
        self.inner.record(Counters { cmult: 1, ..Counters::default() });
        let mask = p.at(level);
        sum.c.iter_mut().for_each(|c| c.mul_assign(&mask));
        let inner = a.inner.with_parts(sum.mod_down_rescale(params), lower);
        Ok(Ciphertext::new(inner, self.rescaled(state, level, 2)))
    }

    /// Applies a linear map and rescales: double hoisting.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`] and [`Evaluator::rescale`].
    pub fn linear_map(&self, a: &Ciphertext, map: &LinearMap) -> Result<Ciphertext, HeError> {
        self.apply_map(&self.hoist(a)?, map)
    }

    /// Applies several linear maps to one ciphertext, with one decomposition for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::linear_map`].
    pub fn linear_maps(&self, a: &Ciphertext, maps: &[&LinearMap]) -> Result<Vec<Ciphertext>, HeError> {
        let hoisted = self.hoist(a)?;
        maps.iter().map(|map| self.apply_map(&hoisted, map)).collect()
    }

    fn apply_map(&self, hoisted: &Hoisted<'_>, map: &LinearMap) -> Result<Ciphertext, HeError> {
        let operation = "linear map";
        let (a, params) = (hoisted.ciphertext, self.params());
        let lower = a.inner.lower(operation)?;
        self.check_keys(&map.elements(), a.level())?;
        let level = a.level();
        let switching = switching_bound(params, level);
        let mut noise = 0.0;
        for (element, terms) in &map.giants {
            for (_, p) in terms {
                p.check(operation, params, level)?;
                noise += (a.noise + switching) * (p.bound * p.scale + p.noise) + a.bound * a.scale * p.noise;
            }
            noise += if *element == 1 { 0.0 } else { switching + division_bound(params, 2) };
        }
        let state = State { scale: a.scale * map.scale, bound: a.bound * map.row_sum, noise };
        state.check_fits(operation, params, level)?;
        let babies = map.babies.iter().map(|element| self.inner.images(&hoisted.inner, &[*element]));
        let babies = babies.collect::<Result<Vec<_>, _>>()?;
        let mut sum: Option<ExtendedPair> = None;
        for ((element, terms), key) in map.giants.iter().zip(self.inner.galois_keys(&map.turns(), level)?) {
            let cmult = terms.len() as u64;
            self.inner.record(Counters { cmult, add: cmult - 1, ..Counters::default() });
            let plains: Vec<_> = terms.iter().map(|(_, p)| p.at(level)).collect();
            let plains: Vec<&Poly<Eval>> = plains.iter().map(|p| &**p).collect();
            let images: Vec<&ExtendedPair> = terms.iter().map(|(baby, _)| &babies[*baby]).collect();
            let mut pair = ExtendedPair::dot(params, level, &images, &plains);
            if let Some(key) = key {
                debug_assert!(*element == key.element());
                pair = pair.turned(params, &key);
                self.inner.record(Counters::rotations(1));
            }
            match &mut sum {
                None => sum = Some(pair),
                Some(sum) => {
                    self.inner.record(Counters { add: 1, ..Counters::default() });
                    sum.add_assign(&pair);
                }
            }
        }
        let sum = sum.unwrap_or_else(|| ExtendedPair::zero(params, level));
        let inner = a.inner.with_parts(sum.mod_down_rescale(params), lower);
        Ok(Ciphertext::new(inner, self.rescaled(state, level, 2)))
    }
}
