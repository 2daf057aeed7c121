//! Automorphisms: alone, hoisted, and summed with one division for all.

use super::linear::PLAIN_PRODUCT;
use super::{Counters, Evaluator};
use crate::backend::{Backend, Shaped};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::GaloisKey;
use crate::switching::ExtendedPair;
use sudare_ring::ops::{Digits, Ending, Image, RnsGadget};
use sudare_ring::{Eval, Poly};

/// A ciphertext whose c_1 is decomposed, for any number of rotations.
#[derive(Debug)]
pub struct Hoisted<'a> {
    ciphertext: &'a Ciphertext,
    digits: Digits,
}

impl Hoisted<'_> {
    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext {
        self.ciphertext
    }

    /// The digits of its second part.
    pub fn digits(&self) -> &Digits {
        &self.digits
    }
}

impl Evaluator {
    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Backend::check_two_parts`] and [`Evaluator::check_keys`].
    pub fn automorphism(&self, a: &Ciphertext, element: u64, step: i64) -> Result<Ciphertext, RlweError> {
        self.check_two_parts("rotation", a)?;
        if element == 1 {
            return Ok(a.clone());
        }
        let key = self.galois(element, step, a.level())?;
        self.record(Counters::rotations(1));
        let [c0, c1] = a.both();
        let division = self.params().tables(a.level()).by_p()?;
        let end = Ending { division, plus: None, image: Some((c0, key.permutation())) };
        let parts = self.gadget(a).switch_divided(c1, key.key().pairs(), &end);
        Ok(a.with_parts(parts.into(), a.level()))
    }

    /// Decomposes once for many rotations (hoisting).
    ///
    /// # Errors
    /// As [`Backend::check_two_parts`].
    pub fn hoist<'a>(&self, a: &'a Ciphertext) -> Result<Hoisted<'a>, RlweError> {
        self.check_two_parts("hoisting", a)?;
        Ok(Hoisted { ciphertext: a, digits: self.gadget(a).decompose(&a.parts()[1]) })
    }

    /// A rotation of a hoisted ciphertext.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`].
    pub fn rotate_hoisted(&self, hoisted: &Hoisted<'_>, step: i64) -> Result<Ciphertext, RlweError> {
        let a = hoisted.ciphertext;
        self.check(a)?;
        let element = self.params().rotation_element(step);
        if element == 1 {
            return Ok(a.clone());
        }
        let key = self.galois(element, step, a.level())?;
        let mut rotated = self.rotated(hoisted, &[&key])?;
        let Some(rotated) = rotated.pop() else { unreachable!("a rotation for a key") };
        Ok(rotated)
    }

    /// Many rotations with one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`], before any work.
    pub fn rotate_many(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, RlweError> {
        /// Keys that stream past one reading of the digits.
        const TOGETHER: usize = 4;
        let params = self.params();
        let element = |step: &i64| params.rotation_element(*step);
        steps.iter().try_for_each(|step| self.check_key(element(step), *step, a.level()))?;
        self.prefetch(&steps.iter().map(element).collect::<Vec<_>>());
        let hoisted = self.hoist(a)?;
        let mut out = Vec::with_capacity(steps.len());
        for steps in steps.chunks(TOGETHER) {
            let keys = self.galois_keys(&steps.iter().map(element).collect::<Vec<_>>(), a.level())?;
            let given: Vec<&GaloisKey> = keys.iter().flatten().map(|key| &**key).collect();
            let mut rotated = self.rotated(&hoisted, &given)?.into_iter();
            out.extend(keys.iter().filter_map(|key| if key.is_some() { rotated.next() } else { Some(a.clone()) }));
        }
        Ok(out)
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down; `004`, section 3.2). Element 1 is the ciphertext
    /// itself.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`]; [`RlweError::Operands`] without elements.
    pub fn sum_of_automorphisms(&self, a: &Ciphertext, elements: &[u64]) -> Result<Ciphertext, RlweError> {
        let sum = self.sum_of_automorphisms_extended(a, elements)?;
        Ok(a.with_parts(sum.mod_down(self.params()).into(), a.level()))
    }

    /// P times that sum, over Q_l·P.
    ///
    /// # Errors
    /// As there.
    pub fn sum_of_automorphisms_extended(&self, a: &Ciphertext, elements: &[u64]) -> Result<ExtendedPair, RlweError> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        if elements.is_empty() {
            return Err(RlweError::Operands { operation, left: 0, right: 0 });
        }
        self.check_keys(elements, a.level())?;
        self.prefetch(elements);
        let sum = self.images(&self.hoist(a)?, elements)?;
        self.record(Counters { add: elements.len() as u64 - 1, ..Counters::default() });
        Ok(sum)
    }

    /// p ⊙ Σ_ψ ψ(a), rescaled, for a polynomial over Q_l·P: one decomposition, one division by P·q_l (`004`, section
    /// 3.2).
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`]; [`RlweError::OutOfLevels`] at level 0, [`RlweError::Parameters`] for a
    /// polynomial over other primes.
    pub fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        p: &Poly<Eval>,
    ) -> Result<Ciphertext, RlweError> {
        let lower = a.lower("masked sum of rotations")?;
        self.check_two_parts("sum of rotations", a)?;
        if p.basis() != self.params().qp_at(a.level()) {
            let reason = "what multiplies a sum of rotations before its division is over Q_l·P".into();
            return Err(RlweError::Parameters { reason });
        }
        let mut sum = self.sum_of_automorphisms_extended(a, elements)?;
        self.record(PLAIN_PRODUCT);
        sum.c.iter_mut().for_each(|c| c.mul_assign(p));
        Ok(a.with_parts(sum.mod_down_rescale(self.params())?.into(), lower))
    }

    /// Σ_ψ P·ψ(a) over Q_l·P for the automorphisms ψ of some elements, from hoisted digits.
    ///
    /// # Errors
    /// As [`Evaluator::check_keys`].
    pub fn images(&self, hoisted: &Hoisted<'_>, elements: &[u64]) -> Result<ExtendedPair, RlweError> {
        let a = hoisted.ciphertext;
        let keys = self.galois_keys(elements, a.level())?;
        self.record(Counters::rotations(keys.iter().flatten().count()));
        let images: Vec<Option<Image<'_>>> = keys.iter().map(|key| key.as_deref().map(GaloisKey::image)).collect();
        let c = self.gadget(a).sum_of_images(a.both(), &hoisted.digits, &images);
        Ok(ExtendedPair { level: a.level(), c })
    }

    /// Rotations by some keys, which stream past one reading of the digits.
    fn rotated(&self, hoisted: &Hoisted<'_>, keys: &[&GaloisKey]) -> Result<Vec<Ciphertext>, RlweError> {
        let a = hoisted.ciphertext;
        self.record(Counters::rotations(keys.len()));
        let division = self.params().tables(a.level()).by_p()?;
        let end = |key| Ending { division, plus: None, image: Some((&a.parts()[0], GaloisKey::permutation(key))) };
        let keys: Vec<_> = keys.iter().map(|key| (key.key().pairs(), end(*key))).collect();
        let parts = self.gadget(a).products_divided(&hoisted.digits, &keys);
        Ok(parts.into_iter().map(|parts| a.with_parts(parts.into(), a.level())).collect())
    }

    /// The digits at a ciphertext's level.
    fn gadget(&self, a: &Ciphertext) -> &RnsGadget {
        &self.params().tables(a.level()).gadget
    }
}
