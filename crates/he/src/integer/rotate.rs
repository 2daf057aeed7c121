//! Key switching of exact ciphertexts: relinearisation and automorphisms, by the keys and with the
//! hoisting of CKKS.

use super::ciphertext::{Ciphertext, check_fits};
use super::evaluator::Evaluator;
use super::scheme::Scheme;
use crate::error::HeError;
use crate::keys::GaloisKey;
use crate::keyswitch::{self, Decomposed, ExtendedPair};
use sudare_ring::Poly;

/// A ciphertext whose c_1 is decomposed, for any number of rotations.
pub struct Hoisted<'a, S: Scheme> {
    ciphertext: &'a Ciphertext<S>,
    decomposed: Decomposed,
}

impl<S: Scheme> Hoisted<'_, S> {
    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext<S> {
        self.ciphertext
    }
}

impl<S: Scheme> Evaluator<S> {
    /// Three parts to two, at the same level.
    ///
    /// # Errors
    /// [`HeError::MissingRelinKey`], [`HeError::NoSuchLevel`] if the key does not reach,
    /// [`HeError::NoBudget`].
    pub fn relinearize(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        let operation = "relinearisation";
        self.check(a)?;
        if a.parts.len() < 3 {
            return Ok(a.clone());
        }
        let key = self.keys.relin()?;
        keyswitch::check_key(key, operation, a.level)?;
        let noise = a.noise + self.params.noise().switched(a.level);
        check_fits(&self.params, operation, a.level, noise)?;
        let params = self.params.params();
        let pair = keyswitch::switch(params, a.level, &a.parts[2], key);
        Ok(Ciphertext { parts: self.finish_relin(a, pair), noise, ..a.shell() })
    }

    /// (c_0, c_1) + the switched c_2 divided by P.
    pub(crate) fn finish_relin(&self, a: &Ciphertext<S>, pair: ExtendedPair) -> Vec<Poly<sudare_ring::Eval>> {
        let params = self.params.params();
        let down = |c| keyswitch::mod_down(params, a.level, c);
        let mut parts: Vec<_> = pair.c.into_iter().map(down).collect();
        parts.iter_mut().zip(&a.parts).for_each(|(x, y)| x.add_assign(y));
        parts
    }

    fn galois_key(&self, element: u64, step: i64, level: usize) -> Result<&GaloisKey, HeError> {
        let key = self.keys.galois(element, step)?;
        keyswitch::check_key(&key.key, "rotation", level)?;
        Ok(key)
    }

    /// Rotates both rows of slots left by `step`: slot i of a row gets what slot i + step held.
    ///
    /// # Errors
    /// [`HeError::MissingRotationKey`], [`HeError::NoSuchLevel`], [`HeError::Degree`],
    /// [`HeError::NoBudget`].
    pub fn rotate_rows(&self, a: &Ciphertext<S>, step: i64) -> Result<Ciphertext<S>, HeError> {
        self.automorphism(a, self.params.params().rotation_element(step), step)
    }

    /// Swaps both rows of slots: the rotation of each column.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn rotate_columns(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, HeError> {
        self.automorphism(a, self.params.row_swap_element(), 0)
    }

    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn automorphism(&self, a: &Ciphertext<S>, element: u64, step: i64) -> Result<Ciphertext<S>, HeError> {
        self.check_two_parts("rotation", a)?;
        if element == 1 {
            return Ok(a.clone());
        }
        let key = self.galois_key(element, step, a.level)?;
        self.check_rotation(a)?;
        let pair = keyswitch::switch(self.params.params(), a.level, &a.parts[1], &key.key);
        Ok(self.finish_rotation(a, key, pair))
    }

    fn check_rotation(&self, a: &Ciphertext<S>) -> Result<f64, HeError> {
        let noise = a.noise + self.params.noise().switched(a.level);
        check_fits(&self.params, "rotation", a.level, noise)?;
        Ok(noise)
    }

    /// Decomposes once for many rotations (hoisting).
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`], [`HeError::Degree`].
    pub fn hoist<'a>(&self, a: &'a Ciphertext<S>) -> Result<Hoisted<'a, S>, HeError> {
        self.check_two_parts("hoisting", a)?;
        let decomposed = keyswitch::decompose(self.params.params(), a.level, &a.parts[1]);
        Ok(Hoisted { ciphertext: a, decomposed })
    }

    /// A rotation of a hoisted ciphertext.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn rotate_hoisted(&self, hoisted: &Hoisted<'_, S>, step: i64) -> Result<Ciphertext<S>, HeError> {
        let (a, params) = (hoisted.ciphertext, self.params.params());
        self.check(a)?;
        let element = params.rotation_element(step);
        if element == 1 {
            return Ok(a.clone());
        }
        let key = self.galois_key(element, step, a.level)?;
        self.check_rotation(a)?;
        let pair = keyswitch::inner_product(params, &hoisted.decomposed, &key.key);
        Ok(self.finish_rotation(a, key, pair))
    }

    /// Many rotations of rows with one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn rotate_many(&self, a: &Ciphertext<S>, steps: &[i64]) -> Result<Vec<Ciphertext<S>>, HeError> {
        let hoisted = self.hoist(a)?;
        steps.iter().map(|step| self.rotate_hoisted(&hoisted, *step)).collect()
    }

    /// Divides by P, adds c_0 and applies the automorphism.
    fn finish_rotation(&self, a: &Ciphertext<S>, key: &GaloisKey, pair: ExtendedPair) -> Ciphertext<S> {
        let params = self.params.params();
        let down = |c, plus| keyswitch::mod_down_permuted(params, a.level, c, plus, &key.permutation);
        let [c0, c1] = pair.c;
        let noise = a.noise + self.params.noise().switched(a.level);
        Ciphertext { parts: vec![down(c0, Some(&a.parts[0])), down(c1, None)], noise, ..a.shell() }
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down). Element 1 is the ciphertext itself.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`]; [`HeError::Operands`] without elements.
    pub fn sum_of_automorphisms(&self, a: &Ciphertext<S>, elements: &[u64]) -> Result<Ciphertext<S>, HeError> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        if elements.is_empty() {
            return Err(HeError::Operands { operation, left: 0, right: 0 });
        }
        let (params, model) = (self.params.params(), self.params.noise());
        let keys = elements
            .iter()
            .map(|e| if *e == 1 { Ok(None) } else { self.galois_key(*e, 0, a.level).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        let switched = keys.iter().flatten().count() as f64;
        let noise = a.noise * elements.len() as f64 + model.switching(a.level) * switched + model.division(2);
        check_fits(&self.params, operation, a.level, noise)?;
        let decomposed = keyswitch::decompose(params, a.level, &a.parts[1]);
        let sum = keyswitch::sum_of_images(params, [&a.parts[0], &a.parts[1]], &decomposed, &keys);
        let parts = sum.c.into_iter().map(|c| keyswitch::mod_down(params, a.level, c)).collect();
        Ok(Ciphertext { parts, noise, ..a.shell() })
    }

    /// The sum of all slots of each row, in every slot of the row, or with `columns` of both rows
    /// in all slots: log2 N − 1 rotations by powers of two, and one swap.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn sum_slots(&self, a: &Ciphertext<S>, columns: bool) -> Result<Ciphertext<S>, HeError> {
        self.params.slot_transform()?;
        let mut sum = a.clone();
        for element in self.params.sum_elements(columns) {
            sum = self.sum_of_automorphisms(&sum, &[1, element])?;
        }
        Ok(sum)
    }
}
