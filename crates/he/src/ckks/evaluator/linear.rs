//! Linear maps on slots, with products by plaintexts over Q_l·P.
//!
//! A sum Σ_t p_t ⊙ Rot_t(a) needs one decomposition for all its rotations and one division by P
//! for all its terms, fused with the rescale (Bossuat–Mouchet–Troncoso-Pastoriza–Hubaux, ePrint
//! 2020/1203, "double hoisting"; `004`, section 3.2).

use super::{Evaluator, count};
use crate::ckks::noise::{division_bound, switching_bound};
use crate::ckks::{Ciphertext, EncodeAt, Encoder};
use crate::error::HeError;
use crate::keyswitch::{self, Decomposed, ExtendedPair};
use crate::params::Params;
use std::collections::BTreeMap;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::{Coeff, Eval, Poly};

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
            return Err(HeError::NoSuchLevel { operation, wanted: level, highest: self.level });
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
        let params = plain.params().clone();
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
    /// As [`Encoder::encode_extended`]; [`HeError::Parameters`] for a map without diagonals, and
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
            return Err(HeError::Parameters { reason: "a linear map needs a diagonal".into() });
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

    /// The level it is prepared for.
    pub fn level(&self) -> usize {
        self.level
    }
}

impl Encoder {
    /// The parameters that it encodes for.
    pub fn params(&self) -> &Params {
        &self.params
    }
}

impl Evaluator {
    /// Σ_ψ P·ψ(a) over Q_l·P for the automorphisms ψ of some elements, from hoisted digits.
    fn images(&self, a: &Ciphertext, decomposed: &Decomposed, elements: &[u64]) -> Result<ExtendedPair, HeError> {
        let keys = elements
            .iter()
            .map(|e| if *e == 1 { Ok(None) } else { self.galois_key(*e, 0, a.level).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(keyswitch::sum_of_images(self.params(), [&a.parts[0], &a.parts[1]], decomposed, &keys))
    }

    /// Refuses before any work what a missing key would refuse in the middle.
    pub(crate) fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), HeError> {
        elements.iter().filter(|e| **e != 1).try_for_each(|e| self.galois_key(*e, 0, level).map(|_| ()))
    }

    fn count_rotation(&self) {
        count(&self.counters.rot);
        count(&self.counters.key_switches);
    }

    /// i · a in every slot, exactly and at no cost in levels: X^(N/2) is the constant i.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`].
    pub fn mul_imaginary_unit(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let mut monomial = vec![0i64; self.params().degree()];
        monomial[self.params().slots()] = 1;
        let monomial = Poly::<Coeff>::from_signed(self.params().q_at(a.level), &monomial).into_eval();
        let mut out = a.clone();
        out.parts.iter_mut().for_each(|x| x.mul_assign(&monomial));
        Ok(out)
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
        self.check_two_parts(operation, a)?;
        let params = self.params();
        p.check(operation, params, a.level)?;
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation, needed: 1, level: 0 });
        }
        self.check_keys(elements, a.level)?;
        let terms = elements.len() as f64;
        let prime = params.prime_at(a.level) as f64;
        let inner = (a.noise + switching_bound(params, a.level)) * terms;
        let mut out = a.shell();
        out.bound = a.bound * terms * p.bound;
        out.noise = inner * (p.bound * p.scale + p.noise) + a.bound * terms * a.scale * p.noise;
        out.scale = a.scale * p.scale;
        out.check_fits(operation)?;
        out.scale /= prime;
        out.noise = out.noise / prime + division_bound(params, 2);
        out.level = a.level - 1;
        let decomposed = keyswitch::decompose(params, a.level, &a.parts[1]);
        elements.iter().filter(|e| **e != 1).for_each(|_| self.count_rotation());
        (1..elements.len()).for_each(|_| count(&self.counters.add));
        let sum = self.images(a, &decomposed, elements)?;
        count(&self.counters.cmult);
        let mask = p.at(a.level);
        out.parts = sum
            .c
            .into_iter()
            .map(|mut c| {
                c.mul_assign(&mask);
                keyswitch::mod_down_rescale(params, a.level, c)
            })
            .collect();
        Ok(out)
    }

    /// Applies a linear map and rescales: double hoisting.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`] and [`Evaluator::rescale`].
    pub fn linear_map(&self, a: &Ciphertext, map: &LinearMap) -> Result<Ciphertext, HeError> {
        self.check_two_parts("linear map", a)?;
        let decomposed = keyswitch::decompose(self.params(), a.level, &a.parts[1]);
        self.apply_map(a, &decomposed, map)
    }

    /// Applies several linear maps to one ciphertext, with one decomposition for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::linear_map`].
    pub fn linear_maps(&self, a: &Ciphertext, maps: &[&LinearMap]) -> Result<Vec<Ciphertext>, HeError> {
        self.check_two_parts("linear map", a)?;
        let decomposed = keyswitch::decompose(self.params(), a.level, &a.parts[1]);
        maps.iter().map(|map| self.apply_map(a, &decomposed, map)).collect()
    }

    fn apply_map(&self, a: &Ciphertext, decomposed: &Decomposed, map: &LinearMap) -> Result<Ciphertext, HeError> {
        let operation = "linear map";
        let params = self.params();
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation, needed: 1, level: 0 });
        }
        self.check_keys(&map.elements(), a.level)?;
        let level = a.level;
        let switching = switching_bound(params, level);
        let mut noise = 0.0;
        for (element, terms) in &map.giants {
            for (_, p) in terms {
                p.check(operation, params, level)?;
                noise += (a.noise + switching) * (p.bound * p.scale + p.noise) + a.bound * a.scale * p.noise;
            }
            noise += if *element == 1 { 0.0 } else { switching + division_bound(params, 2) };
        }
        let prime = params.prime_at(level) as f64;
        let mut out = a.shell();
        (out.bound, out.scale, out.noise) = (a.bound * map.row_sum, a.scale * map.scale, noise);
        out.check_fits(operation)?;
        out.scale /= prime;
        out.noise = noise / prime + division_bound(params, 2);
        out.level = level - 1;
        let babies =
            map.babies.iter().map(|element| self.images(a, decomposed, &[*element])).collect::<Result<Vec<_>, _>>()?;
        map.babies.iter().filter(|e| **e != 1).for_each(|_| self.count_rotation());
        let basis = params.qp_at(level);
        let mut sum: Option<ExtendedPair> = None;
        for (element, terms) in &map.giants {
            terms.iter().for_each(|_| count(&self.counters.cmult));
            (1..terms.len()).for_each(|_| count(&self.counters.add));
            let plains: Vec<_> = terms.iter().map(|(_, p)| p.at(level)).collect();
            let plains: Vec<&Poly<Eval>> = plains.iter().map(|p| &**p).collect();
            let part = |i: usize| {
                let images: Vec<&Poly<Eval>> = terms.iter().map(|(baby, _)| &babies[*baby].c[i]).collect();
                Poly::dot(basis, &images, &plains)
            };
            let mut pair = ExtendedPair { level, c: [part(0), part(1)] };
            if *element != 1 {
                let key = self.galois_key(*element, 0, level)?;
                let [mut c0, c1] = pair.c;
                let c1 = keyswitch::mod_down(params, level, c1);
                let [switched, c1] = keyswitch::switch(params, level, &c1, &key.key).c;
                c0.add_assign(&switched);
                pair = ExtendedPair { level, c: [c0, c1].map(|c| c.permuted(&key.permutation)) };
                self.count_rotation();
            }
            match &mut sum {
                None => sum = Some(pair),
                Some(sum) => {
                    count(&self.counters.add);
                    sum.add_assign(&pair);
                }
            }
        }
        let sum = sum.unwrap_or_else(|| ExtendedPair::zero(params, level));
        out.parts = sum.c.into_iter().map(|c| keyswitch::mod_down_rescale(params, level, c)).collect();
        Ok(out)
    }
}
