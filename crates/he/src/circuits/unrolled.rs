//! Unrolled trace-type functions: fewer iterations, each a sum of hoisted automorphisms
//! (`004`, Algorithms 3.2.1 and 3.2.2; Ishimaki–Yamana, IEEE Access 2021).
//!
//! An iteration of m steps is Σ ψ over the 2^m products of their automorphisms: one decomposition
//! and one division by P for all of them, and 2^m − 1 keys instead of m. (The printed Algorithm
//! 3.2.1 starts its sums from the first term and adds that term again; the sums here start from
//! zero and hold the ciphertext itself as the empty product.)

use crate::ckks::{CiphertextOf, Evaluator, ParamsLiteral};
use crate::error::HeError;
use std::collections::BTreeSet;
use sudare_rlwe::Backend;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::KeySwitchKey;

/// A trace-type function cut into h iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePlan {
    /// For each iteration the Galois elements of its terms, 1 (the ciphertext itself) first.
    iterations: Vec<Vec<u64>>,
}

impl TracePlan {
    /// From the groups of Galois elements of the iterations.
    pub(super) fn new<'a>(degree: usize, groups: impl Iterator<Item = &'a [u64]>) -> Self {
        let order = 2 * degree as u64;
        let products = |group: &[u64]| {
            group.iter().fold(vec![1u64], |mut products, k| {
                products.extend_from_within(..);
                let half = products.len() / 2;
                products[half..].iter_mut().for_each(|p| *p = *p * k % order);
                products
            })
        };
        Self { iterations: groups.map(products).collect() }
    }

    /// h.
    pub fn iterations(&self) -> usize {
        self.iterations.len()
    }

    /// The Galois elements of each iteration's terms.
    pub fn terms(&self) -> &[Vec<u64>] {
        &self.iterations
    }

    /// Automorphisms, each with an inner product: Σ (2^m − 1).
    pub fn automorphisms(&self) -> usize {
        self.iterations.iter().flatten().filter(|e| **e != 1).count()
    }

    /// The Galois elements whose keys it needs, ascending, each once.
    pub fn elements(&self) -> Vec<u64> {
        let all: BTreeSet<u64> = self.iterations.iter().flatten().copied().filter(|e| *e != 1).collect();
        all.into_iter().collect()
    }

    /// The same with the level that the keys have to reach, as
    /// [`KeyGenerator::eval_keys`](sudare_rlwe::keys::KeyGenerator::eval_keys) takes them.
    pub fn keys(&self, level: usize) -> Vec<(u64, usize)> {
        self.elements().into_iter().map(|e| (e, level)).collect()
    }

    /// Bytes of these keys in memory.
    pub fn key_bytes(&self, literal: &ParamsLiteral, level: usize) -> u64 {
        self.elements().len() as u64 * KeySwitchKey::bytes_at(literal, level) as u64
    }

    /// Refuses a plan whose keys do not fit, before any of them is made.
    ///
    /// # Errors
    /// `RlweError::Memory` with both figures.
    pub fn check_memory(&self, literal: &ParamsLiteral, level: usize, limit: u64) -> Result<(), HeError> {
        let needed = self.key_bytes(literal, level);
        if needed > limit {
            let what = format!("the {} keys of a trace in {} iterations", self.elements().len(), self.iterations());
            return Err(HeError::Rlwe(RlweError::Memory { what, needed, limit }));
        }
        Ok(())
    }
}

impl<B: Backend> Evaluator<B> {
    /// A trace-type function (`004`, Algorithm 3.2.2). Level and scale stay.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`]; a missing key is found before any work.
    pub fn trace(&self, a: &CiphertextOf<B>, plan: &TracePlan) -> Result<CiphertextOf<B>, HeError> {
        self.check(a)?;
        self.check_keys(&plan.elements(), a.level())?;
        self.inner.prefetch(&plan.terms().iter().flatten().copied().collect::<Vec<_>>());
        let mut sum = None;
        for terms in plan.terms() {
            sum = Some(self.sum_of_automorphisms(sum.as_ref().unwrap_or(a), terms)?);
        }
        Ok(sum.unwrap_or_else(|| a.clone()))
    }
}
