//! What stands beside every backend: the keys of a server, what was done with them, and what is refused before it begins.

use crate::backend::Shaped;
use crate::counters::{AtomicCounters, Counters};
use crate::error::RlweError;
use crate::keys::KeySource;
use crate::params::Params;
use std::sync::Arc;

/// A server's keys, and a count of what was done with them.
#[derive(Debug)]
pub struct Context {
    keys: Arc<dyn KeySource>,
    counters: AtomicCounters,
}

impl Context {
    /// Of a server's keys.
    pub fn new(keys: impl Into<Arc<dyn KeySource>>) -> Self {
        Self { keys: keys.into(), counters: AtomicCounters::default() }
    }

    /// Their parameters.
    pub fn params(&self) -> &Params {
        self.keys.params()
    }

    /// The keys.
    pub fn keys(&self) -> &Arc<dyn KeySource> {
        &self.keys
    }

    /// Operations done since the start or the last reset.
    pub fn counters(&self) -> Counters {
        self.counters.load()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.counters.reset();
    }

    /// Counts operations.
    pub fn record(&self, done: Counters) {
        self.counters.add(done);
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`].
    pub fn check(&self, a: &impl Shaped) -> Result<(), RlweError> {
        self.params().require("the ciphertext", a.params())?;
        self.keys.id().require("the ciphertext", a.key())
    }

    /// The same, and refuses ciphertexts of three parts.
    ///
    /// # Errors
    /// As [`Context::check`]; [`RlweError::Degree`].
    pub fn check_two_parts(&self, operation: &'static str, a: &impl Shaped) -> Result<(), RlweError> {
        self.check(a)?;
        match a.polynomials() {
            2 => Ok(()),
            found => Err(RlweError::Degree { operation, expected: 2, found }),
        }
    }

    /// Refuses operands that have no sum of products; the lowest of their levels.
    ///
    /// # Errors
    /// As [`Context::check_two_parts`]; [`RlweError::Operands`] for none, or sides of different lengths.
    pub fn check_dot<C: Shaped>(&self, a: &[&C], b: &[&C]) -> Result<usize, RlweError> {
        let operation = "product";
        if a.len() != b.len() {
            return Err(RlweError::Operands { operation, left: a.len(), right: b.len() });
        }
        let all = || a.iter().chain(b);
        all().try_for_each(|c| self.check_two_parts(operation, *c))?;
        let none = RlweError::Operands { operation, left: 0, right: 0 };
        all().map(|c| c.level()).min().ok_or(none)
    }

    /// Refuses before any work what a missing key would refuse in the middle. Loads no key.
    ///
    /// # Errors
    /// [`RlweError::MissingRotationKey`], [`RlweError::NoSuchLevel`] if a key does not reach.
    pub fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError> {
        elements.iter().try_for_each(|e| self.check_key(*e, 0, level))
    }

    /// The same of one key; `step` only names it in the error.
    ///
    /// # Errors
    /// As there.
    pub fn check_key(&self, element: u64, step: i64, level: usize) -> Result<(), RlweError> {
        if element == 1 {
            return Ok(());
        }
        let highest = self.keys.galois_level(element).ok_or(RlweError::MissingRotationKey { step, element })?;
        expect_reach("rotation", level, highest)
    }

    /// Refuses before any work what relinearisation at a level would refuse after the product. Loads no
    /// key.
    ///
    /// # Errors
    /// [`RlweError::MissingRelinKey`], [`RlweError::NoSuchLevel`] if the key does not reach.
    pub fn check_relin(&self, level: usize) -> Result<(), RlweError> {
        expect_reach("relinearisation", level, self.keys.relin_level().ok_or(RlweError::MissingRelinKey)?)
    }
}

fn expect_reach(operation: &'static str, wanted: usize, highest: usize) -> Result<(), RlweError> {
    if wanted <= highest { Ok(()) } else { Err(RlweError::NoSuchLevel { operation, wanted, highest }) }
}
