//! Running a program on ciphertexts: all of them sum by sum, so that each limb of the
//! relinearisation key is read from memory once for all.

use super::program::{Encoded, Program, Sum, Value};
use crate::ckks::Evaluator;
use crate::ckks::Params;
use crate::error::HeError;
use sudare_ring::ops::{Combination, Ending};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::RlweError;

/// Two parts of a value, over the primes of its level.
pub(crate) type Parts = [Poly<Eval>; 2];

/// The values of one input, as far as they are still needed.
struct Values<'a> {
    input: &'a Parts,
    sums: Vec<Option<Parts>>,
}

impl Values<'_> {
    /// A value; planned programs use none before it is there or after its last use.
    fn get(&self, value: Value) -> Result<&Parts, RlweError> {
        let Some(sum) = value.checked_sub(1) else { return Ok(self.input) };
        let found = self.sums.get(sum).and_then(Option::as_ref);
        found.ok_or(RlweError::Internal { what: "a program uses a value that is not there" })
    }
}

impl Program {
    /// The outputs for each input, all at the input's planned level or above, each by a program of its own;
    /// these differ in scales and constants alone.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if the key does not reach,
    /// `RlweError::Operands` for programs of different sums.
    pub fn run(programs: &[&Self], evaluator: &Evaluator, inputs: &[&Parts]) -> Result<Vec<Vec<Parts>>, HeError> {
        let Some(first) = programs.first() else { return Ok(Vec::new()) };
        let alike = |p: &&&Self| p.plan().operations() == first.plan().operations() && p.outputs == first.outputs;
        if programs.len() != inputs.len() || !programs.iter().all(|p| alike(&p)) {
            let (left, right) = (programs.len(), inputs.len());
            return Err(RlweError::Operands { operation: "a circuit", left, right }.into());
        }
        let sums = first.plan().sums();
        let highest = sums.iter().filter(|s| !s.products.is_empty()).map(|s| s.level).max();
        if let Some(level) = highest {
            evaluator.inner.check_relin(level)?;
        }
        let last_uses = first.last_uses();
        let mut values: Vec<Values<'_>> =
            inputs.iter().map(|input| Values { input, sums: Vec::with_capacity(sums.len()) }).collect();
        for k in 0..sums.len() {
            let parts = Self::sum(programs, evaluator, k, &values)?;
            for (values, parts) in values.iter_mut().zip(parts) {
                values.sums.push(Some(parts));
                for (v, _) in last_uses.iter().enumerate().filter(|(_, last)| **last == k) {
                    values.sums[v] = None;
                }
            }
        }
        evaluator.record(first.plan().counters() * inputs.len());
        let outputs = |v: &Values<'_>| first.outputs.iter().map(|o| v.get(*o).cloned()).collect::<Result<_, _>>();
        Ok(values.iter().map(outputs).collect::<Result<_, _>>()?)
    }

    /// For each sum's value the last sum that reads it; outputs stay.
    fn last_uses(&self) -> Vec<usize> {
        let mut last = vec![usize::MAX; self.plan().sums().len()];
        for (k, sum) in self.plan().sums().iter().enumerate() {
            sum.operands().filter(|v| *v > 0).for_each(|v| last[v - 1] = k);
        }
        self.outputs.iter().filter(|v| **v > 0).for_each(|v| last[v - 1] = usize::MAX);
        last
    }

    /// Sum `k` for all inputs.
    fn sum(programs: &[&Self], evaluator: &Evaluator, k: usize, values: &[Values<'_>]) -> Result<Vec<Parts>, HeError> {
        let Some(first) = programs.first() else { return Ok(Vec::new()) };
        let (params, level) = (&first.params, first.plan().sums()[k].level);
        let mut parts: Vec<Parts> = Vec::with_capacity(values.len());
        let mut squares: Vec<Poly<Eval>> = Vec::new();
        for (program, values) in programs.iter().zip(values) {
            let combination = combination(&program.plan().sums()[k], &program.encoded[k], values)?;
            let mut all = combination.parts(params.q_at(level)).into_iter();
            parts.extend(all.next().zip(all.next()).map(|(c0, c1)| [c0, c1]));
            squares.extend(all.next());
        }
        if squares.is_empty() {
            return parts.iter().map(|p| rescaled(params, level, p)).collect();
        }
        let key = evaluator.keys().relin()?;
        let tables = params.tables(level);
        let none = RlweError::OutOfLevels { operation: "a circuit", needed: 1, level };
        let division = tables.mod_down_rescale.as_ref().ok_or(none)?;
        let endings = parts.iter().map(|p| Ending { division, plus: Some(p.each_ref()), image: None });
        let batch: Vec<_> = squares.iter().zip(endings).collect();
        Ok(tables.gadget.switch_divided_many(&batch, key.pairs()))
    }
}

/// Both parts divided by the last prime.
fn rescaled(params: &Params, level: usize, parts: &Parts) -> Result<Parts, HeError> {
    let none = RlweError::OutOfLevels { operation: "a circuit", needed: 1, level };
    let division = params.tables(level).rescale.as_ref().ok_or(none)?;
    let operation = "a circuit";
    division
        .of(parts)
        .try_into()
        .map_err(|p: Vec<_>| RlweError::Degree { operation, expected: 2, found: p.len() }.into())
}

/// A sum before it is relinearised.
fn combination<'a>(sum: &Sum, encoded: &'a Encoded, values: &'a Values<'_>) -> Result<Combination<'a>, RlweError> {
    let value = |v: &Value| values.get(*v);
    let multiples = sum.multiples.iter().zip(&encoded.multiples);
    Ok(Combination {
        products: sum.products.iter().map(|(a, b)| Ok([value(a)?, value(b)?])).collect::<Result<_, RlweError>>()?,
        factor: sum.factor,
        multiples: multiples.map(|((v, _), by)| Ok((value(v)?, by))).collect::<Result<_, RlweError>>()?,
        constant: encoded.constant.as_ref(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::{ErrorKind, Kinded, RnsBasis};

    /// Before, the input stood for it.
    #[test]
    fn a_value_that_is_not_there_is_an_error() {
        let basis = RnsBasis::new(1024, &[12289]).unwrap();
        let input = [Poly::<Eval>::zero(&basis), Poly::zero(&basis)];
        let values = Values { input: &input, sums: vec![None] };
        assert!(values.get(0).is_ok());
        for missing in [1, 2] {
            assert_eq!(values.get(missing).unwrap_err().kind(), ErrorKind::Internal);
        }
    }
}
