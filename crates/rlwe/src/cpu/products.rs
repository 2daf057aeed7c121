//! Products and relinearisation.

use super::Cpu;
use crate::backend::Divisor;
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use sudare_ring::ops::{Division, Ending, tensor, tensor_add, tensors};

impl Cpu {
    /// Σ_i a_i · b_i with three parts, at the lowest of all levels.
    pub(super) fn products(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Ciphertext {
        let level = a.iter().chain(b).map(|c| c.level()).min().unwrap_or(0);
        let [a_parts, b_parts] = [a, b].map(|side| side.iter().map(|c| c.both()).collect::<Vec<_>>());
        let parts = tensor(self.context.params().q_at(level), &a_parts, &b_parts);
        a[0].with_parts(parts.into(), level)
    }

    /// The same of each list of some with one, all at the lowest level of any operand.
    pub(crate) fn products_of_lists(&self, lists: &[&[&Ciphertext]], b: &[&Ciphertext]) -> Vec<Ciphertext> {
        let all = lists.iter().flat_map(|a| a.iter()).chain(b);
        let level = all.map(|c| c.level()).min().unwrap_or(0);
        let parts: Vec<Vec<_>> = lists.iter().map(|a| a.iter().map(|c| c.both()).collect()).collect();
        let parts: Vec<&[_]> = parts.iter().map(Vec::as_slice).collect();
        let b_parts: Vec<_> = b.iter().map(|c| c.both()).collect();
        let made = tensors(self.context.params().q_at(level), &parts, &b_parts);
        made.into_iter().map(|parts| b[0].with_parts(parts.into(), level)).collect()
    }

    /// `acc += Σ_i a_i · b_i`, in place where `acc` has three parts and no operand is below it.
    pub(super) fn add_products(&self, acc: &mut Ciphertext, a: &[&Ciphertext], b: &[&Ciphertext]) {
        let level = acc.level();
        if a.iter().chain(b).any(|c| c.level() < level) || acc.parts().len() != 3 {
            return Self::accumulate(acc, &self.products(a, b));
        }
        let [a_parts, b_parts] = [a, b].map(|side| side.iter().map(|c| c.both()).collect::<Vec<_>>());
        if let Some(parts) = acc.parts_mut().first_chunk_mut() {
            tensor_add(self.context.params().q_at(level), parts, &a_parts, &b_parts);
        }
    }

    /// Three parts to two, divided by P and some data primes.
    pub(super) fn relinearized(&self, a: &Ciphertext, by: &Divisor<'_>) -> Result<Ciphertext, RlweError> {
        let params = self.context.params();
        let tables = params.tables(a.level());
        match (by, &tables.mod_down_rescale) {
            (Divisor::One, _) => self.switched_square(a, tables.by_p()?),
            (Divisor::Last, Some(division)) => self.switched_square(a, division),
            (Divisor::Last, None) => Self::rescaled(&self.switched_square(a, tables.by_p()?)?),
            (Divisor::Above(by), _) => self.switched_square(a, &*by.over(params.qp_at(a.level()).len())?),
        }
    }

    /// ⌊(P·(c_0, c_1) + the switched c_2)/D⌉, at the level of the primes that stay.
    fn switched_square(&self, a: &Ciphertext, division: &Division) -> Result<Ciphertext, RlweError> {
        let [c0, c1, c2] = a.parts() else {
            let (operation, found) = ("relinearisation", a.parts().len());
            return Err(RlweError::Degree { operation, expected: 3, found });
        };
        let key = self.context.keys().relin()?;
        let end = Ending { division, plus: Some([c0, c1]), image: None };
        let parts = self.context.params().tables(a.level()).gadget.switch_divided(c2, key.pairs(), &end);
        Ok(a.with_parts(parts.into(), division.kept().len() - 1))
    }
}
