//! Computing on ciphertexts: everything linear and shared, without what a scheme says of a message. Operands and keys are
//! checked here, once for every backend, before any work; and what is done is counted here.

use crate::backend::{Backend, Combination, Divisor, MapEnd, Quotient, Raise, ScaledProduct, Shaped, conjugation};
use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::counters::Counters;
use crate::cpu::{Blocks, Cpu, MapSteps};
use crate::error::RlweError;
use crate::keys::KeySource;
use crate::params::Params;
use std::sync::Arc;
use sudare_ring::ops::IntegerMatrix;
use sudare_ring::{Eval, Poly};

const NONE: Counters = Counters { add: 0, rot: 0, cmult: 0, mult: 0, relin: 0, key_switches: 0 };
const ADDITION: Counters = Counters { add: 1, ..NONE };
const PLAIN_PRODUCT: Counters = Counters { cmult: 1, ..NONE };
const RELINEARISATION: Counters = Counters { relin: 1, key_switches: 1, ..NONE };

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
#[derive(Debug)]
pub struct Evaluator<B = Cpu> {
    backend: B,
}

/// A ciphertext that a backend made.
type Made<B> = Result<<B as Backend>::Ciphertext, RlweError>;

impl Evaluator {
    /// An evaluator on the processor with a server's keys.
    pub fn new(keys: impl Into<Arc<dyn KeySource>>) -> Self {
        Self::with_backend(Cpu::new(keys))
    }

    /// Σ_i a_i · b_i with three parts for each list a of some: what b has is read once for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn dots(&self, lists: &[&[&Ciphertext]], b: &[&Ciphertext]) -> Result<Vec<Ciphertext>, RlweError> {
        lists.iter().try_for_each(|a| self.check_dot(a, b).map(|_| ()))?;
        self.record(products(b.len(), 1) * lists.len());
        Ok(self.backend.products_of_lists(lists, b))
    }

    /// Σ_j m_ij·v_j for each row i of a matrix of integers, at the lowest level of the ciphertexts v_j, which have as many parts each.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::Operands`] for another number of ciphertexts than columns, or none;
    /// [`RlweError::Degree`] for ciphertexts of two and of three parts.
    pub fn integer_products(
        &self,
        matrix: &IntegerMatrix,
        values: &[&Ciphertext],
    ) -> Result<Vec<Ciphertext>, RlweError> {
        let operation = "a product with a matrix of integers";
        let (columns, found) = (matrix.columns(), values.len());
        let Some(level) = values.iter().map(|v| v.level()).min().filter(|_| columns == found) else {
            return Err(RlweError::Operands { operation, left: columns, right: found });
        };
        let (params, key, expected) = (self.params(), values[0].key(), values[0].parts().len());
        for value in values {
            self.check(value)?;
            let found = value.parts().len();
            if found != expected {
                return Err(RlweError::Degree { operation, expected, found });
            }
        }
        let mut made: Vec<Vec<Poly<Eval>>> = vec![Vec::with_capacity(expected); matrix.rows()];
        for i in 0..expected {
            let parts: Vec<&Poly<Eval>> = values.iter().map(|v| &v.parts()[i]).collect();
            made.iter_mut().zip(matrix.apply(params.q_at(level), &parts)).for_each(|(made, part)| made.push(part));
        }
        self.record(PLAIN_PRODUCT * matrix.products());
        made.into_iter().map(|parts| Ciphertext::from_parts(params, key, parts, level)).collect()
    }
}

impl<B: Backend> Evaluator<B> {
    /// An evaluator on a backend, which has the keys.
    pub fn with_backend(backend: B) -> Self {
        Self { backend }
    }

    /// What does the work.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Keys, counters and checks.
    pub fn context(&self) -> &Context {
        self.backend.context()
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        self.context().params()
    }

    /// Its keys.
    pub fn keys(&self) -> &Arc<dyn KeySource> {
        self.context().keys()
    }

    /// Operations done since the start or the last reset, each ciphertext's counted.
    pub fn counters(&self) -> Counters {
        self.context().counters()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.context().reset_counters();
    }

    /// Counts operations that a scheme does without these methods.
    pub fn record(&self, done: Counters) {
        self.context().record(done);
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`].
    pub fn check(&self, a: &B::Ciphertext) -> Result<(), RlweError> {
        self.context().check(a)
    }

    /// [`Context::check_keys`].
    ///
    /// # Errors
    /// As there.
    pub fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError> {
        self.context().check_keys(elements, level)
    }

    /// [`Context::check_relin`].
    ///
    /// # Errors
    /// As there.
    pub fn check_relin(&self, level: usize) -> Result<(), RlweError> {
        self.context().check_relin(level)
    }

    /// [`Context::check_two_parts`].
    ///
    /// # Errors
    /// As there.
    pub fn check_two_parts(&self, operation: &'static str, a: &B::Ciphertext) -> Result<(), RlweError> {
        self.context().check_two_parts(operation, a)
    }

    /// [`Context::check_dot`].
    ///
    /// # Errors
    /// As there.
    pub fn check_dot(&self, a: &[&B::Ciphertext], b: &[&B::Ciphertext]) -> Result<usize, RlweError> {
        self.context().check_dot(a, b)
    }

    /// Says in which order the keys of these elements will be asked for ([`KeySource::prefetch`]).
    pub fn prefetch(&self, elements: &[u64]) {
        self.keys().prefetch(elements);
    }

    /// `a + b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn add(&self, a: &B::Ciphertext, b: &B::Ciphertext) -> Made<B> {
        self.sum((a, 1), (b, 1))
    }

    /// `a − b`, at the lower of both levels.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn sub(&self, a: &B::Ciphertext, b: &B::Ciphertext) -> Made<B> {
        self.sum((a, 1), (b, -1))
    }

    /// `e·a + f·b` for integers and operands of one level: one addition.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for operands of two levels.
    pub fn combination(&self, (a, e): (&B::Ciphertext, i64), (b, f): (&B::Ciphertext, i64)) -> Made<B> {
        if a.level() != b.level() {
            return Err(RlweError::NoSuchLevel { operation: "addition", wanted: a.level(), highest: b.level() });
        }
        self.sum((a, e), (b, f))
    }

    fn sum(&self, a: (&B::Ciphertext, i64), b: (&B::Ciphertext, i64)) -> Made<B> {
        self.check(a.0)?;
        self.check(b.0)?;
        let sum = self.backend.sum(&[a, b])?;
        self.record(ADDITION * sum.count());
        Ok(sum)
    }

    /// `acc += b`, in place where `b` has the level and no more parts than `acc`; `acc` keeps its value on
    /// error.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn add_assign(&self, acc: &mut B::Ciphertext, b: &B::Ciphertext) -> Result<(), RlweError> {
        self.check(acc)?;
        self.check(b)?;
        self.backend.add_assign(acc, b)?;
        self.record(ADDITION * acc.count());
        Ok(())
    }

    /// `−a`. Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn negate(&self, a: &B::Ciphertext) -> Made<B> {
        self.mul_integer(a, -1)
    }

    /// `a + p` for a polynomial over the primes of at least the ciphertext's level. Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for a polynomial over fewer primes.
    pub fn add_poly(&self, a: &B::Ciphertext, p: &B::Plaintext) -> Made<B> {
        self.check(a)?;
        self.backend.add_plain(a, p, false)
    }

    /// `a − p`, as [`Evaluator::add_poly`].
    ///
    /// # Errors
    /// As there.
    pub fn sub_poly(&self, a: &B::Ciphertext, p: &B::Plaintext) -> Made<B> {
        self.check(a)?;
        self.backend.add_plain(a, p, true)
    }

    /// `a · p` for a polynomial over the primes of at least the ciphertext's level.
    ///
    /// # Errors
    /// As [`Evaluator::add_poly`].
    pub fn mul_poly(&self, a: &B::Ciphertext, p: &B::Plaintext) -> Made<B> {
        self.check(a)?;
        let product = self.backend.mul_plain(a, p, false)?;
        self.record(PLAIN_PRODUCT * a.count());
        Ok(product)
    }

    /// ⌊a · p / q_l⌉, one level down: the product is not stored before it is divided.
    ///
    /// # Errors
    /// As [`Evaluator::mul_poly`] and [`Evaluator::rescale`].
    pub fn mul_poly_rescale(&self, a: &B::Ciphertext, p: &B::Plaintext) -> Made<B> {
        self.check(a)?;
        a.lower("rescale")?;
        let product = self.backend.mul_plain(a, p, true)?;
        self.record(PLAIN_PRODUCT * a.count());
        Ok(product)
    }

    /// `a · X^(N/2)`, or with `minus` `a · X^(−N/2)`: not counted, since its noise stays what it is.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn mul_imaginary_unit(&self, a: &B::Ciphertext, minus: bool) -> Made<B> {
        self.check(a)?;
        self.backend.mul_imaginary_unit(a, minus)
    }

    /// `a · value`. Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`].
    pub fn mul_integer(&self, a: &B::Ciphertext, value: i64) -> Made<B> {
        self.check(a)?;
        if value == 1 { self.copied(a) } else { self.backend.sum(&[(a, value)]) }
    }

    /// The same ciphertext, in memory of its own: a simulation notes that.
    fn copied(&self, a: &B::Ciphertext) -> Made<B> {
        self.backend.drop_to(a, a.params(), a.level())
    }

    /// ⌊a / q_l⌉, one level down.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::OutOfLevels`] at level 0.
    pub fn rescale(&self, a: &B::Ciphertext) -> Made<B> {
        self.check(a)?;
        a.lower("rescale")?;
        self.backend.divide(a, &Divisor::Last)
    }

    /// ⌊F·a/D⌉ by tables that the scheme made, D a product of the last primes: as many levels down. Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] for tables over other primes.
    pub fn divide(&self, a: &B::Ciphertext, by: Quotient<'_>) -> Made<B> {
        self.check(a)?;
        let by = Divisor::Above(by);
        by.level("division", a.level())?;
        self.backend.divide(a, &by)
    }

    /// The same phase modulo fewer primes.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`] if `level` is above the ciphertext's.
    pub fn drop_to(&self, a: &B::Ciphertext, level: usize) -> Made<B> {
        self.check(a)?;
        if level > a.level() {
            return Err(RlweError::NoSuchLevel { operation: "dropping levels", wanted: level, highest: a.level() });
        }
        self.backend.drop_to(a, a.params(), level)
    }

    /// Σ_i a_i · b_i with three parts, at the lowest of all levels.
    ///
    /// # Errors
    /// As [`Evaluator::check_dot`].
    pub fn dot(&self, a: &[&B::Ciphertext], b: &[&B::Ciphertext]) -> Made<B> {
        self.check_dot(a, b)?;
        let sum = self.backend.dot(a, b)?;
        self.record(products(a.len(), 1) * sum.count());
        Ok(sum)
    }

    /// ⌊t/R·Σ_i a_i·b_i⌉ with three parts by tables that the scheme made: the products of BFV.
    ///
    /// # Errors
    /// As [`Evaluator::check_dot`]; [`RlweError::NoSuchLevel`] for an operand below the level of the result.
    pub fn dot_scaled(&self, a: &[&B::Ciphertext], b: &[&B::Ciphertext], by: &ScaledProduct<'_>) -> Made<B> {
        let (operation, lowest) = ("product", self.check_dot(a, b)?);
        if lowest < by.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: by.level, highest: lowest });
        }
        let sum = self.backend.dot_scaled(a, b, by)?;
        self.record(products(a.len(), 1) * sum.count());
        Ok(sum)
    }

    /// `acc += Σ_i a_i · b_i`; `acc` keeps its value on error.
    ///
    /// # Errors
    /// As [`Evaluator::dot`] and [`Evaluator::check`].
    pub fn dot_assign(
        &self,
        acc: &mut B::Ciphertext,
        a: &[&B::Ciphertext],
        b: &[&B::Ciphertext],
    ) -> Result<(), RlweError> {
        self.check_dot(a, b)?;
        self.check(acc)?;
        self.backend.dot_assign(acc, a, b)?;
        self.record(products(a.len(), 0) * acc.count());
        Ok(())
    }

    /// a · b, relinearised.
    ///
    /// # Errors
    /// As [`Evaluator::check_dot`] and [`Evaluator::check_relin`].
    pub fn mul_relin(&self, a: &B::Ciphertext, b: &B::Ciphertext) -> Made<B> {
        self.product(a, b, Divisor::One)
    }

    /// a · b, relinearised and rescaled with one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`]; [`RlweError::OutOfLevels`] at level 0.
    pub fn mul_rescale(&self, a: &B::Ciphertext, b: &B::Ciphertext) -> Made<B> {
        self.product(a, b, Divisor::Last)
    }

    fn product(&self, a: &B::Ciphertext, b: &B::Ciphertext, by: Divisor<'_>) -> Made<B> {
        let level = self.check_dot(&[a], &[b])?;
        by.level("rescale", level)?;
        self.check_relin(level)?;
        let out = self.backend.product(a, b, &by)?;
        self.record((products(1, 1) + RELINEARISATION) * out.count());
        Ok(out)
    }

    /// Three parts to two; two stay as they are.
    ///
    /// # Errors
    /// As [`Evaluator::check`] and [`Evaluator::check_relin`].
    pub fn relinearize(&self, a: &B::Ciphertext) -> Made<B> {
        self.check(a)?;
        if a.polynomials() < 3 {
            return Ok(a.clone());
        }
        self.relinearized(a, Divisor::One)
    }

    fn relinearized(&self, a: &B::Ciphertext, by: Divisor<'_>) -> Made<B> {
        self.check_relin(a.level())?;
        let out = self.backend.relinearize(a, &by)?;
        self.record(RELINEARISATION * a.count());
        Ok(out)
    }

    /// Relinearise and rescale with one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`] and [`Evaluator::rescale`].
    pub fn relinearize_rescale(&self, a: &B::Ciphertext) -> Made<B> {
        a.lower("rescale")?;
        if a.polynomials() < 3 {
            return self.rescale(a);
        }
        self.check(a)?;
        self.relinearized(a, Divisor::Last)
    }

    /// Relinearise and divide by P and some of the last primes, times a factor: ⌊F·(P·a)/(P·D)⌉ by tables that the scheme made.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`]; [`RlweError::Degree`] without a third part, [`RlweError::NoSuchLevel`] for tables over
    /// other primes.
    pub fn relinearize_divide(&self, a: &B::Ciphertext, by: Quotient<'_>) -> Made<B> {
        let (operation, by) = ("relinearisation", Divisor::Above(by));
        self.check(a)?;
        by.level(operation, a.level())?;
        if a.polynomials() < 3 {
            return Err(RlweError::Degree { operation, expected: 3, found: a.polynomials() });
        }
        self.relinearized(a, by)
    }

    /// The automorphism X → X^element; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`] and [`Evaluator::check_keys`].
    pub fn automorphism(&self, a: &B::Ciphertext, element: u64, step: i64) -> Made<B> {
        self.check_two_parts("rotation", a)?;
        if element == 1 {
            return self.copied(a);
        }
        self.context().check_key(element, step, a.level())?;
        let out = self.backend.automorphisms(a, &[element])?.pop();
        self.record(Counters::rotations(a.count()));
        out.ok_or(RlweError::Internal { what: "an automorphism has no image" })
    }

    /// Many rotations with one decomposition.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`], before any work.
    pub fn rotate_many(&self, a: &B::Ciphertext, steps: &[i64]) -> Result<Vec<B::Ciphertext>, RlweError> {
        self.check_two_parts("hoisting", a)?;
        let elements: Vec<u64> = steps.iter().map(|step| self.params().rotation_element(*step)).collect();
        let mut named = elements.iter().zip(steps);
        named.try_for_each(|(element, step)| self.context().check_key(*element, *step, a.level()))?;
        self.prefetch(&elements);
        let out = self.backend.automorphisms(a, &elements)?;
        self.record(Counters::rotations(switched(&elements)) * a.count());
        Ok(out)
    }

    /// The sum of the ciphertext's images under automorphisms, with one decomposition and one
    /// division by P for all (lazy mod-down; `004`, section 3.2). Element 1 is the ciphertext
    /// itself.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`]; [`RlweError::Operands`] without elements.
    pub fn sum_of_automorphisms(&self, a: &B::Ciphertext, elements: &[u64]) -> Made<B> {
        self.images(a, elements, None)
    }

    /// p ⊙ Σ_ψ ψ(a), rescaled, for a polynomial over Q·P of at least the ciphertext's level: one decomposition, one division by
    /// P·q_l (`004`, section 3.2).
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`]; [`RlweError::OutOfLevels`] at level 0, [`RlweError::Parameters`] for a
    /// polynomial over other primes.
    pub fn sum_of_automorphisms_mul_rescale(&self, a: &B::Ciphertext, elements: &[u64], p: &B::Plaintext) -> Made<B> {
        a.lower("masked sum of rotations")?;
        let out = self.images(a, elements, Some(p))?;
        self.record(PLAIN_PRODUCT * a.count());
        Ok(out)
    }

    fn images(&self, a: &B::Ciphertext, elements: &[u64], mask: Option<&B::Plaintext>) -> Made<B> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        if elements.is_empty() {
            return Err(RlweError::Operands { operation, left: 0, right: 0 });
        }
        self.check_keys(elements, a.level())?;
        self.prefetch(elements);
        let sum = self.backend.sum_of_automorphisms(a, elements, mask)?;
        let done = Counters { add: elements.len() as u64 - 1, ..Counters::rotations(switched(elements)) };
        self.record(done * a.count());
        Ok(sum)
    }

    /// ψ(a) − φ(b) for two automorphisms of ciphertexts at one level, with one division by P.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`]; [`RlweError::NoSuchLevel`] for operands of two levels.
    pub fn difference_of_automorphisms(&self, a: (&B::Ciphertext, u64), b: (&B::Ciphertext, u64)) -> Made<B> {
        let (operation, level) = ("difference of rotations", a.0.level());
        self.check_two_parts(operation, a.0)?;
        self.check_two_parts(operation, b.0)?;
        if b.0.level() != level {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: b.0.level() });
        }
        let elements = [a.1, b.1];
        self.check_keys(&elements, level)?;
        self.prefetch(&elements);
        let out = self.backend.difference_of_automorphisms(a, b)?;
        self.record(Counters { add: 1, ..Counters::rotations(switched(&elements)) } * out.count());
        Ok(out)
    }

    /// Linear maps of ciphertexts of one level: Σ over giant steps ψ of ψ(Σ p ⊙ baby), rescaled. Each ciphertext is decomposed once
    /// for all maps, and each key is read once for all ciphertexts. For each map the values of all ciphertexts in turn, as
    /// many as their ends make.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`] and [`Evaluator::check_keys`]; [`RlweError::OutOfLevels`] at level 0,
    /// [`RlweError::NoSuchLevel`] for ciphertexts of two levels.
    pub fn linear_maps(
        &self,
        sources: &[(&B::Ciphertext, MapEnd)],
        maps: &[(&MapSteps, &[Vec<B::Row>])],
    ) -> Result<Vec<Vec<B::Ciphertext>>, RlweError> {
        self.maps(sources, maps, &Divisor::Last)
    }

    /// A linear map whose sum over Q·P is divided by P and the last primes together by tables that the scheme made: exact
    /// schemes divide so that the message stays.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`] and [`Evaluator::check_keys`]; [`RlweError::NoSuchLevel`] for tables over other
    /// primes.
    pub fn linear_map_divided(&self, a: &B::Ciphertext, map: (&MapSteps, &[Vec<B::Row>]), by: Quotient<'_>) -> Made<B> {
        let made = self.maps(&[(a, MapEnd::Value)], &[map], &Divisor::Above(by))?.into_iter().flatten().next();
        made.ok_or(RlweError::Internal { what: "a linear map has no result" })
    }

    fn maps(
        &self,
        sources: &[(&B::Ciphertext, MapEnd)],
        maps: &[(&MapSteps, &[Vec<B::Row>])],
        by: &Divisor<'_>,
    ) -> Result<Vec<Vec<B::Ciphertext>>, RlweError> {
        let operation = "linear map";
        let Some((first, _)) = sources.first() else { return Ok(maps.iter().map(|_| Vec::new()).collect()) };
        let level = first.level();
        for (a, _) in sources {
            by.level(operation, a.level())?;
            self.check_two_parts(operation, a)?;
            if a.level() != level {
                return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: a.level() });
            }
        }
        maps.iter().try_for_each(|(steps, _)| self.check_keys(&steps.elements(), level))?;
        if sources.iter().any(|(_, end)| *end != MapEnd::Value) {
            self.check_keys(&[conjugation(*first)], level)?;
        }
        let out = self.backend.linear_maps(sources, maps, by)?;
        for (steps, _) in maps {
            for (a, end) in sources {
                let ended = match end {
                    MapEnd::Value => NONE,
                    _ => Counters { add: end.values() as u64, ..Counters::rotations(1) },
                };
                self.record((steps.counters() + ended) * a.count());
            }
        }
        Ok(out)
    }

    /// Sums of products and multiples at one level, to which all operands are brought down, each relinearised and rescaled once;
    /// the key is read once for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`] and, where there are products, [`Evaluator::check_relin`];
    /// [`RlweError::OutOfLevels`] at level 0, [`RlweError::NoSuchLevel`] for operands below the level.
    pub fn combinations(
        &self,
        sums: &[Combination<'_, B::Ciphertext, B::Row>],
        level: usize,
    ) -> Result<Vec<B::Ciphertext>, RlweError> {
        let operation = "a circuit";
        if level == 0 {
            return Err(RlweError::OutOfLevels { operation, needed: 1, level });
        }
        for a in sums.iter().flat_map(Combination::operands) {
            self.check_two_parts(operation, a)?;
            if a.level() < level {
                return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: a.level() });
            }
        }
        if sums.iter().any(|sum| !sum.products.is_empty()) {
            self.check_relin(level)?;
        }
        let out = self.backend.combinations(sums, level)?;
        for (sum, made) in sums.iter().zip(&out) {
            let (products, multiples) = (sum.products.len() as u64, sum.multiples.len() as u64);
            let switched = if products == 0 { NONE } else { RELINEARISATION };
            let add = (products + multiples).max(1) - 1;
            self.record((Counters { add, mult: products, cmult: multiples, ..NONE } + switched) * made.count());
        }
        Ok(out)
    }

    /// A ciphertext modulo q_0 at a higher level, by way of a sparse secret: a key switch for each part after the first, and one back,
    /// or a linear map that keys hold.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::Degree`] for another number of parts; [`RlweError::NoSuchLevel`] above level 0.
    pub fn raise(&self, a: &B::Ciphertext, by: &Raise) -> Made<B> {
        let operation = "raising a ciphertext";
        self.check(a)?;
        let (expected, found) = (1 + by.entries, a.polynomials());
        if found != expected {
            return Err(RlweError::Degree { operation, expected, found });
        }
        if a.level() > 0 {
            return Err(RlweError::NoSuchLevel { operation, wanted: 0, highest: a.level() });
        }
        let out = self.backend.raise(a, by)?;
        self.record(by.counters() * a.count());
        Ok(out)
    }

    /// A ciphertext as one under other parameters of the same ring, whose primes begin with those of its level; both have its key.
    /// Not counted.
    ///
    /// # Errors
    /// As [`Evaluator::check`]; [`RlweError::NoSuchLevel`], [`RlweError::Parameters`] for other primes.
    pub fn under(&self, a: &B::Ciphertext, params: &Params) -> Made<B> {
        self.check(a)?;
        params.expect_level("a ciphertext under other parameters", a.level())?;
        let same = (0..=a.level()).all(|l| params.prime_at(l) == self.params().prime_at(l));
        if params.degree() != self.params().degree() || !same {
            return Err(RlweError::Parameters {
                reason: "the other parameters have other primes; take a set with the same ones".into(),
            });
        }
        self.backend.drop_to(a, params, a.level())
    }

    /// The rows of products of block rows with block columns; see [`Blocks`] for their order.
    ///
    /// # Errors
    /// As [`Evaluator::check_two_parts`], [`Evaluator::check_keys`] for [`Blocks::elements`] and, for results of two parts,
    /// [`Evaluator::check_relin`]; [`RlweError::Operands`], [`RlweError::Parameters`] without special primes or for blocks that
    /// the ring has not.
    pub fn block_products(
        &self,
        left: &[&B::Ciphertext],
        right: &[&B::Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<B::Ciphertext>, RlweError> {
        let count = |side: &[&B::Ciphertext]| side.iter().map(|a| a.count()).sum();
        blocks.check(self.params().degree(), [count(left), count(right)])?;
        let level = self.check_blocks(left, right)?;
        self.check_keys(&Blocks::elements(self.params().degree(), blocks.side).collect::<Vec<_>>(), level)?;
        if blocks.relinearize {
            self.check_relin(level)?;
        }
        let out = self.backend.block_products(left, right, blocks)?;
        self.record(blocks.counters());
        Ok(out)
    }

    fn check_blocks(&self, left: &[&B::Ciphertext], right: &[&B::Ciphertext]) -> Result<usize, RlweError> {
        let operation = "block product";
        let all = || left.iter().chain(right);
        all().try_for_each(|a| self.check_two_parts(operation, a))?;
        all().map(|a| a.level()).min().ok_or(RlweError::Operands { operation, left: 0, right: 0 })
    }
}

/// Products that are summed, the first of them to nothing or to what is there.
fn products(terms: usize, alone: usize) -> Counters {
    Counters { mult: terms as u64, add: terms.saturating_sub(alone) as u64, ..NONE }
}

/// How many of these automorphisms are key switches.
fn switched(elements: &[u64]) -> usize {
    elements.iter().filter(|e| **e != 1).count()
}
