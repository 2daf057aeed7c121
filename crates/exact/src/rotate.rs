//! Key switching of exact ciphertexts: relinearisation and automorphisms, by the keys and with the
//! hoisting of all RLWE schemes.

use super::ciphertext::{CiphertextOf, check_fits};
use super::evaluator::Evaluator;
use super::scheme::Scheme;
use crate::error::ExactError;
use sudare_rlwe::{Backend, Shaped};

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// Three parts to two, at the same level.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if the key does not reach,
    /// `RlweError::NoBudget`.
    pub fn relinearize(&self, a: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check(a)?;
        if a.inner().polynomials() < 3 {
            return Ok(a.clone());
        }
        self.inner.check_relin(a.level())?;
        let noise = a.noise + self.params.noise().relinearised(a.level());
        check_fits(&self.params, "relinearisation", a.level(), noise)?;
        Ok(a.with(self.inner.relinearize(a.inner())?, noise))
    }

    /// Rotates both rows of slots left by `step`, of any sign: slot i of a row gets what slot i + step held, modulo the row's
    /// [length](crate::IntegerParams::row).
    ///
    /// # Errors
    /// `RlweError::MissingRotationKey`, `RlweError::NoSuchLevel`, `RlweError::Degree`,
    /// `RlweError::NoBudget`.
    pub fn rotate_rows(&self, a: &CiphertextOf<S, B>, step: i64) -> Result<CiphertextOf<S, B>, ExactError> {
        self.automorphism(a, self.params.rotation_element(step), step)
    }

    /// Swaps both rows of slots: the rotation of each column.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn rotate_columns(&self, a: &CiphertextOf<S, B>) -> Result<CiphertextOf<S, B>, ExactError> {
        self.automorphism(a, self.params.row_swap_element(), 0)
    }

    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn automorphism(
        &self,
        a: &CiphertextOf<S, B>,
        element: u64,
        step: i64,
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        self.check_two_parts("rotation", a)?;
        let noise = self.rotated(a, element)?;
        Ok(a.with(self.inner.automorphism(a.inner(), element, step)?, noise))
    }

    /// The noise of a ciphertext after a rotation.
    fn rotated(&self, a: &CiphertextOf<S, B>, element: u64) -> Result<f64, ExactError> {
        if element == 1 {
            return Ok(a.noise);
        }
        let noise = a.noise + self.params.noise().switched(a.level());
        check_fits(&self.params, "rotation", a.level(), noise)?;
        Ok(noise)
    }

    /// Many rotations of rows with one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn rotate_many(&self, a: &CiphertextOf<S, B>, steps: &[i64]) -> Result<Vec<CiphertextOf<S, B>>, ExactError> {
        self.check(a)?;
        let noise = |step: &i64| self.rotated(a, self.params.rotation_element(*step));
        let noises = steps.iter().map(noise).collect::<Result<Vec<_>, _>>()?;
        let images = self.inner.rotate_many(a.inner(), steps)?;
        Ok(images.into_iter().zip(noises).map(|(inner, noise)| a.with(inner, noise)).collect())
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down). Element 1 is the ciphertext itself.
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`]; `RlweError::Operands` without elements.
    pub fn sum_of_automorphisms(
        &self,
        a: &CiphertextOf<S, B>,
        elements: &[u64],
    ) -> Result<CiphertextOf<S, B>, ExactError> {
        let (operation, model) = ("sum of rotations", self.params.noise());
        self.check_two_parts(operation, a)?;
        self.inner.check_keys(elements, a.level())?;
        let switched = elements.iter().filter(|e| **e != 1).count() as f64;
        let noise = a.noise * elements.len() as f64 + model.switching(a.level()) * switched + model.division(2);
        check_fits(&self.params, operation, a.level(), noise)?;
        Ok(a.with(self.inner.sum_of_automorphisms(a.inner(), elements)?, noise))
    }

    /// The sum of all slots of each row, in every slot of the row, or with `columns` of both rows
    /// in all slots: log2 N − 1 rotations by powers of two, and one swap.
    ///
    /// ```
    /// use sudare_exact::bfv::{Decryptor, Encryptor, Evaluator};
    /// use sudare_exact::plan::Requirements;
    /// use sudare_exact::{Encoder, Packing, Wrap};
    /// use sudare_rlwe::keys::{KeyGenerator, SecretKey};
    ///
    /// # fn main() -> Result<(), sudare_exact::ExactError> {
    /// let params = Requirements::new(65537).additions(1 << 13).rotations(16).slots().bfv()?;
    /// let secret = SecretKey::generate(&params)?;
    /// let elements = params.sum_elements(true).into_iter().map(|element| (element, params.max_level()));
    /// let keys = KeyGenerator::new(&secret)?.eval_keys(None, &elements.collect::<Vec<_>>())?;
    ///
    /// let encoder = Encoder::new(&params);
    /// let x = encoder.encode_unsigned(&[3, 5, 7], Packing::Slots, Wrap::Refuse)?;
    /// let x = Encryptor::with_secret_key(&params, &secret)?.encrypt(&x)?;
    /// let sum = Evaluator::new(&params, keys)?.sum_slots(&x, true)?;
    ///
    /// let sums = encoder.decode_unsigned(&Decryptor::new(&params, &secret)?.decrypt(&sum)?, Packing::Slots)?;
    /// assert!(sums.iter().all(|sum| *sum == 15));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Evaluator::rotate_rows`].
    pub fn sum_slots(&self, a: &CiphertextOf<S, B>, columns: bool) -> Result<CiphertextOf<S, B>, ExactError> {
        self.params.slot_transform()?;
        let mut sum = a.clone();
        for element in self.params.sum_elements(columns) {
            sum = self.sum_of_automorphisms(&sum, &[1, element])?;
        }
        Ok(sum)
    }
}
