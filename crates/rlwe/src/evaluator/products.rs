//! Products and relinearisation.

use super::{Counters, Evaluator};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use sudare_ring::ops::{Division, Ending, tensor};

impl Evaluator {
    /// Σ_i a_i · b_i with three parts, at the lowest of all levels.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`]; [`RlweError::Operands`].
    pub fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        let level = self.check_dot(a, b)?;
        let [a_parts, b_parts] = [a, b].map(|side| side.iter().map(|c| c.both()).collect::<Vec<_>>());
        let parts = tensor(self.params().q_at(level), &a_parts, &b_parts);
        self.record_products(a.len());
        Ok(a[0].with_parts(parts.into(), level))
    }

    /// Refuses operands that have no sum of products; the lowest of their levels.
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn check_dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<usize, RlweError> {
        let operation = "product";
        if a.len() != b.len() {
            return Err(RlweError::Operands { operation, left: a.len(), right: b.len() });
        }
        let all = || a.iter().chain(b);
        all().try_for_each(|c| self.check_two_parts(operation, c))?;
        let none = RlweError::Operands { operation, left: 0, right: 0 };
        all().map(|c| c.level()).min().ok_or(none)
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
