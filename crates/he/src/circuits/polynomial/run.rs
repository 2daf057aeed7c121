//! Running a program on ciphertexts: all of them sum by sum, so that each limb of the
//! relinearisation key is read from memory once for all.

use super::program::{Encoded, Program, Sum, Value};
use crate::circuits::periodic::{Term, weighted_sum};
use crate::ckks::Evaluator;
use crate::ckks::Params;
use crate::error::HeError;
use sudare_ring::buffer::Buffer;
use sudare_ring::{Eval, Poly, threads};
use sudare_rlwe::RlweError;
use sudare_rlwe::switching::{self, ExtendedPair};

/// Two parts of a value, over the primes of its level.
pub(crate) type Parts = [Poly<Eval>; 2];

/// The values of one input, as far as they are still needed.
struct Values<'a> {
    input: &'a Parts,
    sums: Vec<Option<Parts>>,
}

impl Values<'_> {
    /// A value; planned programs use none before it is there or after its last use.
    fn get(&self, value: Value) -> &Parts {
        match value {
            0 => self.input,
            _ => self.sums[value - 1].as_ref().unwrap_or(self.input),
        }
    }
}

impl Program {
    /// The output for each input, all at the input's planned level or above, each by a program of its own;
    /// these differ in scales and constants alone.
    ///
    /// # Errors
    /// `RlweError::MissingRelinKey`, `RlweError::NoSuchLevel` if the key does not reach,
    /// `RlweError::Operands` for programs of different sums.
    pub fn run(programs: &[&Self], evaluator: &Evaluator, inputs: &[&Parts]) -> Result<Vec<Parts>, HeError> {
        let Some(first) = programs.first() else { return Ok(Vec::new()) };
        let alike = |p: &&&Self| p.plan().operations() == first.plan().operations() && p.output == first.output;
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
        Ok(values.iter().map(|v| v.get(first.output).clone()).collect())
    }

    /// For each sum's value the last sum that reads it.
    fn last_uses(&self) -> Vec<usize> {
        let mut last = vec![usize::MAX; self.plan().sums().len()];
        for (k, sum) in self.plan().sums().iter().enumerate() {
            sum.operands().filter(|v| *v > 0).for_each(|v| last[v - 1] = k);
        }
        last
    }

    /// Sum `k` for all inputs.
    fn sum(programs: &[&Self], evaluator: &Evaluator, k: usize, values: &[Values<'_>]) -> Result<Vec<Parts>, HeError> {
        let Some(first) = programs.first() else { return Ok(Vec::new()) };
        let (params, level) = (&first.params, first.plan().sums()[k].level);
        let ones = first.encoded[k].constant.is_some().then(|| ones(params.degree()));
        let mut parts: Vec<Parts> = Vec::with_capacity(values.len());
        let mut squares: Vec<Poly<Eval>> = Vec::new();
        for (program, values) in programs.iter().zip(values) {
            let (sum, encoded) = (&program.plan().sums()[k], &program.encoded[k]);
            let row = |part: usize| program.part(sum, encoded, values, ones.as_deref(), part);
            parts.push([row(0), row(1)]);
            if !sum.products.is_empty() {
                squares.push(row(2));
            }
        }
        if squares.is_empty() {
            return Ok(parts.into_iter().map(|p| p.map(|c| switching::rescale(params, level, &c))).collect());
        }
        let key = evaluator.keys().relin()?;
        let mut pairs: Vec<ExtendedPair> = squares.iter().map(|_| ExtendedPair::dirty(params, level)).collect();
        switching::switch_into(params, level, &squares.iter().collect::<Vec<_>>(), &key, &mut pairs);
        let finish = |(mut pair, parts): (ExtendedPair, Parts)| {
            parts.iter().enumerate().for_each(|(i, c)| pair.add_scaled(params, i, c));
            pair.c.map(|c| switching::mod_down_rescale(params, level, c))
        };
        Ok(pairs.into_iter().zip(parts).map(finish).collect())
    }

    /// Part 0, 1 or 2 of a sum before it is relinearised.
    fn part(&self, sum: &Sum, encoded: &Encoded, values: &Values<'_>, ones: Option<&[u64]>, part: usize) -> Poly<Eval> {
        let params: &Params = &self.params;
        let basis = params.q_at(sum.level);
        let mut out = Poly::dirty(basis);
        threads::for_each_chunk(out.words_mut(), params.degree(), |t, x| {
            let limb = basis.limb(t);
            let row = |value: Value, part: usize| values.get(value)[part].limb(t);
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (a, b) in &sum.products {
                for i in part.saturating_sub(1)..=part.min(1) {
                    left.push(row(*a, i));
                    right.push(row(*b, part - i));
                }
            }
            let mut terms: Vec<Term<'_>> = Vec::new();
            if part < 2 {
                terms.extend(sum.multiples.iter().zip(&encoded.multiples).map(|((v, _), p)| (row(*v, part), p, t)));
            }
            if let (0, Some(p), Some(ones)) = (part, &encoded.constant, ones) {
                terms.push((ones, p, t));
            }
            match (left.is_empty(), terms.is_empty()) {
                (true, true) => x.fill(0),
                (true, false) => weighted_sum(limb, x, &terms),
                (false, empty) => {
                    limb.dot(x, &left, &right);
                    if sum.factor > 1 {
                        limb.mul_scalar(x, &limb.modulus().shoup(sum.factor));
                    }
                    if !empty {
                        let mut more = Buffer::dirty(x.len());
                        weighted_sum(limb, &mut more, &terms);
                        limb.add_assign(x, &more);
                    }
                }
            }
        });
        out
    }
}

/// The polynomial one, evaluated modulo any prime.
fn ones(n: usize) -> Buffer {
    let mut out = Buffer::dirty(n);
    out.fill(1);
    out
}
