//! Products and relinearisation.

use super::linear::ADDITION;
use super::{Counters, Evaluator};
use crate::backend::{Backend, Shaped};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use sudare_ring::ops::{Division, Ending, tensor, tensor_add};

impl Evaluator {
    /// Σ_i a_i · b_i with three parts, at the lowest of all levels.
    ///
    /// # Errors
    /// As [`Backend::check_two_parts`]; [`RlweError::Operands`].
    pub fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        let level = self.check_dot(a, b)?;
        let [a_parts, b_parts] = [a, b].map(|side| side.iter().map(|c| c.both()).collect::<Vec<_>>());
        let parts = tensor(self.params().q_at(level), &a_parts, &b_parts);
        self.record_products(a.len());
        Ok(a[0].with_parts(parts.into(), level))
    }

    /// `acc += Σ_i a_i · b_i`, in place where `acc` has three parts and no operand is below it; `acc` keeps its value on
    /// error.
    ///
    /// # Errors
    /// As [`Evaluator::dot`] and [`Evaluator::check`].
    pub fn dot_assign(&self, acc: &mut Ciphertext, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<(), RlweError> {
        let level = acc.level();
        if self.check_dot(a, b)? < level || acc.parts().len() != 3 {
            return self.add_assign(acc, &self.dot(a, b)?);
        }
        self.check(acc)?;
        let [a_parts, b_parts] = [a, b].map(|side| side.iter().map(|c| c.both()).collect::<Vec<_>>());
        if let Some(parts) = acc.parts_mut().first_chunk_mut() {
            tensor_add(self.params().q_at(level), parts, &a_parts, &b_parts);
        }
        self.record_products(a.len());
        self.record(ADDITION);
        Ok(())
    }

    /// Counts a sum of products that a scheme computes in its own way.
    pub fn record_products(&self, terms: usize) {
        let terms = terms as u64;
        self.record(Counters { mult: terms, add: terms.saturating_sub(1), ..Counters::default() });
    }

    /// Three parts to two; two stay as they are.
    ///
    /// # Errors
    /// As [`Evaluator::check`] and [`Evaluator::check_relin`].
    pub fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let [_, _, _] = a.parts() else { return Ok(a.clone()) };
        self.check_relin(a.level())?;
        self.relinearized(a, self.params().tables(a.level()).by_p()?)
    }

    /// Relinearise and rescale with one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`] and [`Evaluator::rescale`].
    pub fn relinearize_rescale(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        a.lower("rescale")?;
        self.check(a)?;
        match (a.parts(), &self.params().tables(a.level()).mod_down_rescale) {
            ([_, _, _], Some(division)) => self.relinearized(a, division),
            _ => self.rescale(&self.relinearize(a)?),
        }
    }

    /// Relinearise and divide by P and some of the last primes, times a factor: ⌊F·(P·a) / (P·D)⌉ by a
    /// division that the scheme made.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`]; [`RlweError::Degree`] without a third part,
    /// [`RlweError::NoSuchLevel`] for a division over other primes.
    pub fn relinearize_divide(&self, a: &Ciphertext, division: &Division) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let (operation, kept) = ("relinearisation", division.kept().len());
        if kept == 0 || kept + division.tail().len() != self.params().qp_at(a.level()).len() {
            return Err(RlweError::NoSuchLevel { operation, wanted: kept, highest: a.level() });
        }
        self.relinearized(a, division)
    }

    /// ⌊(P·(c_0, c_1) + the switched c_2)/D⌉, at the level of the primes that stay.
    fn relinearized(&self, a: &Ciphertext, division: &Division) -> Result<Ciphertext, RlweError> {
        self.check(a)?;
        let [c0, c1, c2] = a.parts() else {
            let (operation, found) = ("relinearisation", a.parts().len());
            return Err(RlweError::Degree { operation, expected: 3, found });
        };
        self.check_relin(a.level())?;
        let key = self.keys.relin()?;
        self.record(Counters { relin: 1, key_switches: 1, ..Counters::default() });
        let end = Ending { division, plus: Some([c0, c1]), image: None };
        let parts = self.params().tables(a.level()).gadget.switch_divided(c2, key.pairs(), &end);
        Ok(a.with_parts(parts.into(), division.kept().len() - 1))
    }
}
