//! Running a program on ciphertexts: all of them sum by sum, so that each limb of the
//! relinearisation key is read from memory once for all.

use super::program::{Encoded, Program, Sum, Value};
use crate::ckks::Evaluator;
use crate::error::HeError;
use sudare_rlwe::{Backend, Combination, RlweError};

/// The values of one input, as far as they are still needed.
struct Values<'a, C> {
    input: &'a C,
    sums: Vec<Option<C>>,
}

impl<C> Values<'_, C> {
    /// A value; planned programs use none before it is there or after its last use.
    fn get(&self, value: Value) -> Result<&C, RlweError> {
        let Some(sum) = value.checked_sub(1) else { return Ok(self.input) };
        let found = self.sums.get(sum).and_then(Option::as_ref);
        found.ok_or(RlweError::Internal { what: "a program uses a value that is not there" })
    }
}

impl<R> Program<R> {
    /// The outputs for each input, all at the input's planned level or above, each by a program of its own;
    /// these differ in scales and constants alone.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if the key does not reach,
    /// `RlweError::Operands` for programs of different sums.
    pub fn run<B: Backend<Row = R>>(
        programs: &[&Self],
        evaluator: &Evaluator<B>,
        inputs: &[&B::Ciphertext],
    ) -> Result<Vec<Vec<B::Ciphertext>>, HeError> {
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
        let mut values: Vec<Values<'_, B::Ciphertext>> =
            inputs.iter().map(|input| Values { input: *input, sums: Vec::with_capacity(sums.len()) }).collect();
        for (k, sum) in sums.iter().enumerate() {
            let each = programs.iter().zip(&values);
            let each =
                each.map(|(program, values)| combination(&program.plan().sums()[k], &program.encoded[k], values));
            let made = evaluator.inner.combinations(&each.collect::<Result<Vec<_>, _>>()?, sum.level)?;
            for (values, value) in values.iter_mut().zip(made) {
                values.sums.push(Some(value));
                for (v, _) in last_uses.iter().enumerate().filter(|(_, last)| **last == k) {
                    values.sums[v] = None;
                }
            }
        }
        let outputs =
            |v: &Values<'_, B::Ciphertext>| first.outputs.iter().map(|o| v.get(*o).cloned()).collect::<Result<_, _>>();
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
}

/// A sum before it is relinearised.
fn combination<'a, C, R>(
    sum: &Sum,
    encoded: &'a Encoded<R>,
    values: &'a Values<'_, C>,
) -> Result<Combination<'a, C, R>, RlweError> {
    let value = |v: &Value| values.get(*v);
    let multiples = sum.multiples.iter().zip(&encoded.multiples);
    Ok(Combination {
        like: values.input,
        products: sum.products.iter().map(|(a, b)| Ok([value(a)?, value(b)?])).collect::<Result<_, RlweError>>()?,
        factor: sum.factor,
        multiples: multiples.map(|((v, _), by)| Ok((value(v)?, by))).collect::<Result<_, RlweError>>()?,
        constant: encoded.constant.as_ref(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::{ErrorKind, Kinded};

    /// Before, the input stood for it.
    #[test]
    fn a_value_that_is_not_there_is_an_error() {
        let values = Values { input: &(), sums: vec![None] };
        assert!(values.get(0).is_ok());
        for missing in [1, 2] {
            assert_eq!(values.get(missing).unwrap_err().kind(), ErrorKind::Internal);
        }
    }
}
