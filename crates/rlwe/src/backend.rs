//! What computes on ciphertexts: the processor on one at a time, a device on a batch of them. A scheme's evaluator and
//! what is built of its operations are written once, for both; every word of a result is the same.

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::evaluator::{Blocks, Counters, Evaluator, MapSteps};
use crate::ids::KeyId;
use crate::keys::KeySource;
use crate::params::Params;
use std::borrow::Cow;
use std::sync::Arc;
use sudare_ring::ops::{PeriodicPoly, Root};
use sudare_ring::{Eval, Poly};
use zeroize::Zeroize;

/// What is known of a ciphertext, or of a batch of ciphertexts alike, without reading it.
pub trait Shaped: Clone {
    /// Its parameters.
    fn params(&self) -> &Params;

    /// The name of the secret key it is under.
    fn key(&self) -> KeyId;

    /// Rescales left.
    fn level(&self) -> usize;

    /// Polynomials of a ciphertext: two, or three after a product.
    fn polynomials(&self) -> usize;

    /// How many of a list of ciphertexts it stands for: one, but in a simulation.
    fn count(&self) -> usize {
        1
    }

    /// The next level down.
    ///
    /// # Errors
    /// [`RlweError::OutOfLevels`] at level 0.
    fn lower(&self, operation: &'static str) -> Result<usize, RlweError> {
        self.level().checked_sub(1).ok_or(RlweError::OutOfLevels { operation, needed: 1, level: 0 })
    }
}

impl Shaped for Ciphertext {
    fn params(&self) -> &Params {
        self.params()
    }

    fn key(&self) -> KeyId {
        self.key()
    }

    fn level(&self) -> usize {
        self.level()
    }

    fn polynomials(&self) -> usize {
        self.parts().len()
    }
}

/// The operations of [`Evaluator`] on whatever its ciphertexts are. Each does and refuses what the method of that name there
/// says; a device refuses by [`RlweError::Device`] besides.
pub trait Backend: Sync {
    /// A ciphertext, or a batch of ciphertexts of one level under one key.
    type Ciphertext: Shaped + Send + Sync;

    /// A polynomial that is added or multiplied, as the backend keeps it.
    type Plaintext: Clone + Send + Sync + Zeroize;

    /// A polynomial over the primes of a level, or these and the special ones, for later operations; `make` is called if
    /// the backend has a use for its words.
    ///
    /// # Errors
    /// Those of `make`.
    fn prepare<E>(
        &self,
        level: usize,
        over: Over,
        make: impl FnOnce() -> Result<Poly<Eval>, E>,
    ) -> Result<Self::Plaintext, E>;

    /// A polynomial over Q·P of a level, for a lower one.
    fn narrowed<'p>(&self, p: &'p Self::Plaintext, from: usize, level: usize) -> Cow<'p, Self::Plaintext>;

    /// A polynomial of a linear map, as the backend keeps it.
    type Row: Clone + Send + Sync;

    /// A row, as [`Backend::prepare`].
    ///
    /// # Errors
    /// Those of `make`.
    fn prepare_row<E>(
        &self,
        level: usize,
        period: usize,
        make: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<Self::Row, E>;

    /// Σ over giant steps ψ of ψ(Σ p ⊙ baby), rescaled: a linear map (double hoisting); several by one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::check_keys`]; [`RlweError::OutOfLevels`] at level 0, and on a backend without it
    /// [`RlweError::Operands`].
    fn linear_maps(
        &self,
        a: &Self::Ciphertext,
        maps: &[(&MapSteps, &[Vec<Self::Row>])],
    ) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// The operands of `count` circuits that are alike, if the backend runs but one of them for all.
    fn taken(&self, _operands: &[&Self::Ciphertext], _count: usize) -> Option<Vec<Self::Ciphertext>> {
        None
    }

    /// What such a circuit made, as the value of all.
    fn returned(&self, made: &Self::Ciphertext) -> Self::Ciphertext {
        made.clone()
    }

    /// `count` ciphertexts like this one as one, if the backend computes but one of what is alike.
    fn assembled(&self, _like: &Self::Ciphertext, _count: usize) -> Option<Self::Ciphertext> {
        None
    }

    /// [`Evaluator::keys`].
    fn keys(&self) -> &Arc<dyn KeySource>;
    /// [`Evaluator::counters`].
    fn counters(&self) -> Counters;
    /// [`Evaluator::reset_counters`].
    fn reset_counters(&self);
    /// [`Evaluator::record`].
    fn record(&self, done: Counters);
    /// [`Evaluator::check`].
    fn check(&self, a: &Self::Ciphertext) -> Result<(), RlweError>;
    /// [`Evaluator::check_keys`].
    fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError>;
    /// [`Evaluator::check_relin`].
    fn check_relin(&self, level: usize) -> Result<(), RlweError>;
    /// [`Evaluator::add`].
    fn add(&self, a: &Self::Ciphertext, b: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::sub`].
    fn sub(&self, a: &Self::Ciphertext, b: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::add_assign`].
    fn add_assign(&self, acc: &mut Self::Ciphertext, b: &Self::Ciphertext) -> Result<(), RlweError>;
    /// [`Evaluator::negate`].
    fn negate(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::add_poly`].
    fn add_poly(&self, a: &Self::Ciphertext, p: &Self::Plaintext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::sub_poly`].
    fn sub_poly(&self, a: &Self::Ciphertext, p: &Self::Plaintext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::mul_poly`].
    fn mul_poly(&self, a: &Self::Ciphertext, p: &Self::Plaintext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::mul_poly_rescale`].
    fn mul_poly_rescale(&self, a: &Self::Ciphertext, p: &Self::Plaintext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::mul_imaginary_unit`].
    fn mul_imaginary_unit(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::mul_integer`].
    fn mul_integer(&self, a: &Self::Ciphertext, value: i64) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::rescale`].
    fn rescale(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::drop_to`].
    fn drop_to(&self, a: &Self::Ciphertext, level: usize) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::dot`].
    fn dot(&self, a: &[&Self::Ciphertext], b: &[&Self::Ciphertext]) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::dot_assign`]; in two steps unless the backend has one for both.
    fn dot_assign(
        &self,
        acc: &mut Self::Ciphertext,
        a: &[&Self::Ciphertext],
        b: &[&Self::Ciphertext],
    ) -> Result<(), RlweError> {
        self.add_assign(acc, &self.dot(a, b)?)
    }
    /// [`Evaluator::relinearize`].
    fn relinearize(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::relinearize_rescale`].
    fn relinearize_rescale(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::automorphism`].
    fn automorphism(&self, a: &Self::Ciphertext, element: u64, step: i64) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::rotate_many`].
    fn rotate_many(&self, a: &Self::Ciphertext, steps: &[i64]) -> Result<Vec<Self::Ciphertext>, RlweError>;
    /// [`Evaluator::sum_of_automorphisms`].
    fn sum_of_automorphisms(&self, a: &Self::Ciphertext, elements: &[u64]) -> Result<Self::Ciphertext, RlweError>;
    /// [`Evaluator::sum_of_automorphisms_mul_rescale`].
    fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Self::Ciphertext,
        elements: &[u64],
        mask: &Self::Plaintext,
    ) -> Result<Self::Ciphertext, RlweError>;

    /// [`Evaluator::block_products`]: the operands of both sides in order, or in a simulation one batch each.
    fn block_products(
        &self,
        left: &[&Self::Ciphertext],
        right: &[&Self::Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// How many ciphertexts like this one the backend takes at a time: more than one only if that is faster than one after the other.
    fn together(&self, a: &Self::Ciphertext) -> usize;

    /// Batches of one shape as one batch. On the processor a ciphertext is a batch of one, and is gathered alone.
    fn gather(&self, batches: &[&Self::Ciphertext]) -> Result<Self::Ciphertext, RlweError>;

    /// The reverse: what was gathered of `count` batches.
    fn split(&self, batch: &Self::Ciphertext, count: usize) -> Result<Vec<Self::Ciphertext>, RlweError>;

    /// As [`Backend::check`], and refuses ciphertexts of three parts.
    fn check_two_parts(&self, operation: &'static str, a: &Self::Ciphertext) -> Result<(), RlweError> {
        self.check(a)?;
        match a.polynomials() {
            2 => Ok(()),
            found => Err(RlweError::Degree { operation, expected: 2, found }),
        }
    }

    /// Refuses operands that have no sum of products; the lowest of their levels.
    fn check_dot(&self, a: &[&Self::Ciphertext], b: &[&Self::Ciphertext]) -> Result<usize, RlweError> {
        let operation = "product";
        if a.len() != b.len() {
            return Err(RlweError::Operands { operation, left: a.len(), right: b.len() });
        }
        let all = || a.iter().chain(b);
        all().try_for_each(|c| self.check_two_parts(operation, c))?;
        let none = RlweError::Operands { operation, left: 0, right: 0 };
        all().map(|c| c.level()).min().ok_or(none)
    }
}

/// What a polynomial is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The data primes of a level.
    Q,
    /// These and the special primes.
    QP,
}

/// A polynomial over Q·P of level `from`, for a lower level.
pub fn narrowed(p: &Poly<Eval>, from: usize, level: usize) -> Cow<'_, Poly<Eval>> {
    if level == from {
        return Cow::Borrowed(p);
    }
    let all = p.basis().len();
    let indices: Vec<usize> = (0..=level).chain(from + 1..all).collect();
    Cow::Owned(p.select(&indices))
}

impl Backend for Evaluator {
    type Ciphertext = Ciphertext;
    type Plaintext = Poly<Eval>;

    fn prepare<E>(&self, _: usize, _: Over, make: impl FnOnce() -> Result<Poly<Eval>, E>) -> Result<Poly<Eval>, E> {
        make()
    }

    fn narrowed<'p>(&self, p: &'p Poly<Eval>, from: usize, level: usize) -> Cow<'p, Poly<Eval>> {
        narrowed(p, from, level)
    }

    type Row = PeriodicPoly;

    fn prepare_row<E>(
        &self,
        _: usize,
        _: usize,
        make: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<PeriodicPoly, E> {
        make()
    }

    fn linear_maps(
        &self,
        a: &Ciphertext,
        maps: &[(&MapSteps, &[Vec<PeriodicPoly>])],
    ) -> Result<Vec<Ciphertext>, RlweError> {
        let lower = a.lower("linear map")?;
        maps.iter().try_for_each(|(steps, _)| self.check_keys(&steps.elements(), a.level()))?;
        let hoisted = self.hoist(a)?;
        let [c0, c1] = a.both();
        let source = Root { c0, c1, digits: hoisted.digits() };
        let one = |(steps, rows): &(&MapSteps, &[Vec<PeriodicPoly>])| -> Result<Ciphertext, RlweError> {
            let pair = self.linear_map_extended(a.level(), &[source], steps, rows)?.pop();
            let none = RlweError::Internal { what: "a linear map has no result" };
            Ok(a.with_parts(pair.ok_or(none)?.mod_down_rescale(self.params())?.into(), lower))
        };
        maps.iter().map(one).collect()
    }

    fn keys(&self) -> &Arc<dyn KeySource> {
        self.keys()
    }

    fn counters(&self) -> Counters {
        self.counters()
    }

    fn reset_counters(&self) {
        self.reset_counters();
    }

    fn record(&self, done: Counters) {
        self.record(done);
    }

    fn check(&self, a: &Ciphertext) -> Result<(), RlweError> {
        self.check(a)
    }

    fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError> {
        self.check_keys(elements, level)
    }

    fn check_relin(&self, level: usize) -> Result<(), RlweError> {
        self.check_relin(level)
    }

    fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.add(a, b)
    }

    fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.sub(a, b)
    }

    fn add_assign(&self, acc: &mut Ciphertext, b: &Ciphertext) -> Result<(), RlweError> {
        self.add_assign(acc, b)
    }

    fn negate(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.negate(a)
    }

    fn add_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.add_poly(a, p)
    }

    fn sub_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.sub_poly(a, p)
    }

    fn mul_poly(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.mul_poly(a, p)
    }

    fn mul_poly_rescale(&self, a: &Ciphertext, p: &Poly<Eval>) -> Result<Ciphertext, RlweError> {
        self.mul_poly_rescale(a, p)
    }

    fn mul_imaginary_unit(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.mul_imaginary_unit(a)
    }

    fn mul_integer(&self, a: &Ciphertext, value: i64) -> Result<Ciphertext, RlweError> {
        self.mul_integer(a, value)
    }

    fn rescale(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.rescale(a)
    }

    fn drop_to(&self, a: &Ciphertext, level: usize) -> Result<Ciphertext, RlweError> {
        self.drop_to(a, level)
    }

    fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        self.dot(a, b)
    }

    fn dot_assign(&self, acc: &mut Ciphertext, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<(), RlweError> {
        self.dot_assign(acc, a, b)
    }

    fn relinearize(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.relinearize(a)
    }

    fn relinearize_rescale(&self, a: &Ciphertext) -> Result<Ciphertext, RlweError> {
        self.relinearize_rescale(a)
    }

    fn automorphism(&self, a: &Ciphertext, element: u64, step: i64) -> Result<Ciphertext, RlweError> {
        self.automorphism(a, element, step)
    }

    fn rotate_many(&self, a: &Ciphertext, steps: &[i64]) -> Result<Vec<Ciphertext>, RlweError> {
        self.rotate_many(a, steps)
    }

    fn sum_of_automorphisms(&self, a: &Ciphertext, elements: &[u64]) -> Result<Ciphertext, RlweError> {
        self.sum_of_automorphisms(a, elements)
    }

    fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        mask: &Poly<Eval>,
    ) -> Result<Ciphertext, RlweError> {
        self.sum_of_automorphisms_mul_rescale(a, elements, mask)
    }

    fn block_products(
        &self,
        left: &[&Ciphertext],
        right: &[&Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<Ciphertext>, RlweError> {
        self.block_products(left, right, blocks)
    }

    fn together(&self, _: &Ciphertext) -> usize {
        1
    }

    fn gather(&self, batches: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        match batches {
            [one] => Ok((*one).clone()),
            more => Err(alone(more.len())),
        }
    }

    fn split(&self, batch: &Ciphertext, count: usize) -> Result<Vec<Ciphertext>, RlweError> {
        if count == 1 { Ok(vec![batch.clone()]) } else { Err(alone(count)) }
    }
}

/// The processor takes one ciphertext at a time.
fn alone(found: usize) -> RlweError {
    RlweError::Operands { operation: "a batch on the processor", left: found, right: 1 }
}
