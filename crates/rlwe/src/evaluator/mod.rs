//! Computing on ciphertexts: everything linear and shared, without what a scheme says of a message.

mod blocks;
mod counters;
mod linear;
mod map;
mod products;
mod rotations;

pub use blocks::Blocks;
pub use counters::Counters;
pub use map::{GiantStep, MapSteps, RootStep};
pub use rotations::Hoisted;

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::{GaloisKey, KeySource};
use crate::params::Params;
use counters::AtomicCounters;
use std::sync::Arc;

/// Evaluates on ciphertexts with a server's keys. Operands are never changed.
#[derive(Debug)]
pub struct Evaluator {
    keys: Arc<dyn KeySource>,
    counters: AtomicCounters,
}

impl Evaluator {
    /// An evaluator with a server's keys.
    pub fn new(keys: impl Into<Arc<dyn KeySource>>) -> Self {
        Self { keys: keys.into(), counters: AtomicCounters::default() }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        self.keys.params()
    }

    /// Its keys.
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

    /// Counts operations that a circuit does without these methods.
    pub fn record(&self, done: Counters) {
        self.counters.add(done);
    }

    /// Refuses a ciphertext of other parameters or under another key.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`].
    pub fn check(&self, a: &Ciphertext) -> Result<(), RlweError> {
        self.params().expect("the ciphertext", a.params())?;
        self.keys.id().expect("the ciphertext", a.key())
    }

    /// Refuses before any work what a missing key would refuse in the middle. Loads no key.
    ///
    /// # Errors
    /// [`RlweError::MissingRotationKey`], [`RlweError::NoSuchLevel`] if a key does not reach.
    pub fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError> {
        elements.iter().try_for_each(|e| self.check_key(*e, 0, level))
    }

    fn check_key(&self, element: u64, step: i64, level: usize) -> Result<(), RlweError> {
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

    /// Says in which order the keys of these elements will be asked for ([`KeySource::prefetch`]).
    pub fn prefetch(&self, elements: &[u64]) {
        self.keys.prefetch(elements);
    }

    /// The key of an automorphism, which serves `level`.
    fn galois(&self, element: u64, step: i64, level: usize) -> Result<Arc<GaloisKey>, RlweError> {
        self.check_key(element, step, level)?;
        self.keys.galois(element, step)
    }

    /// The keys of automorphisms; none for element 1, the identity.
    ///
    /// # Errors
    /// As [`Evaluator::check_keys`].
    pub fn galois_keys(&self, elements: &[u64], level: usize) -> Result<Vec<Option<Arc<GaloisKey>>>, RlweError> {
        let key = |e: &u64| if *e == 1 { Ok(None) } else { self.galois(*e, 0, level).map(Some) };
        elements.iter().map(key).collect()
    }
}

fn expect_reach(operation: &'static str, wanted: usize, highest: usize) -> Result<(), RlweError> {
    if wanted <= highest { Ok(()) } else { Err(RlweError::NoSuchLevel { operation, wanted, highest }) }
}
