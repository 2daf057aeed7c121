//! Fresh seeds for what is published.

#[cfg(feature = "testing")]
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MaskSeed, Seed};
use crate::error::RingError;

/// The randomness of one published object: its masks come from a public seed, its errors from a
/// secret one, in streams by number.
///
/// For one object alone. Two under the same seeds have the same masks and the same errors, and the
/// difference of their bodies is that of their messages.
#[derive(Debug)]
pub struct ObjectSeeds {
    /// Seed of the masks; published with the object.
    pub masks: MaskSeed,
    /// Seed of the errors.
    pub errors: Seed,
}

impl ObjectSeeds {
    /// The seeds that `seed` gives the object with this name and number.
    pub fn derive(seed: &Seed, domain: &str, index: u64) -> Self {
        Self { masks: seed.derive_mask(domain, index), errors: seed.derive(domain, index) }
    }
}

/// What seeds are drawn for: the domains in which those of masks and of errors are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// Domain of mask seeds.
    pub masks: &'static str,
    /// Domain of error seeds.
    pub errors: &'static str,
}

impl Purpose {
    /// Masks and errors in one domain; what they are for keeps them apart.
    pub const fn new(domain: &'static str) -> Self {
        Self { masks: domain, errors: domain }
    }
}

/// Where the seeds of published objects come from: the operating system, asked anew for every
/// object, or for every batch of objects that one call makes.
///
/// It holds nothing. A seed or a counter that outlived the call would be copied by `fork` and by a
/// snapshot of a virtual machine, and both copies would encrypt under the same masks and errors.
/// (The system's generator does not repeat: `getrandom` reads the kernel's, and keeps no state in
/// the process.)
///
/// Tests that need reproducible objects enable the cargo feature `testing`, whose constructor
/// `Entropy::fixed` does not exist otherwise.
#[derive(Debug)]
pub struct Entropy {
    /// A seed, and how many objects it has been asked for.
    #[cfg(feature = "testing")]
    fixed: Option<(Seed, AtomicU64)>,
}

impl Entropy {
    /// The operating system's.
    ///
    /// # Errors
    /// [`RingError::Entropy`] if it gives none, which is found here and not in the midst of work.
    pub fn system() -> Result<Self, RingError> {
        Seed::from_entropy()?;
        Ok(Self {
            #[cfg(feature = "testing")]
            fixed: None,
        })
    }

    /// For known answers: object i gets the seeds that `seed` derives for number i. Two of one seed
    /// give everything away.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn fixed(seed: Seed) -> Self {
        Self { fixed: Some((seed, AtomicU64::new(0))) }
    }

    /// Fresh seeds for one object.
    ///
    /// # Errors
    /// [`RingError::Entropy`] if the system gives none.
    pub fn object(&self, purpose: Purpose) -> Result<ObjectSeeds, RingError> {
        Ok(self.batch(purpose, 1)?.seeds(0))
    }

    /// Fresh seeds for `count` objects that one call makes.
    ///
    /// # Errors
    /// [`RingError::Entropy`] if the system gives none.
    pub fn batch(&self, purpose: Purpose, count: usize) -> Result<Batch, RingError> {
        #[cfg(feature = "testing")]
        if let Some((seed, drawn)) = &self.fixed {
            let first = drawn.fetch_add(count as u64, Ordering::Relaxed);
            return Ok(Batch { root: seed.again(), first, count, purpose });
        }
        Ok(Batch { root: Seed::from_entropy()?, first: 0, count, purpose })
    }
}

/// The seeds of the objects that one call makes: all from one draw, which goes with it.
#[derive(Debug)]
pub struct Batch {
    root: Seed,
    first: u64,
    count: usize,
    purpose: Purpose,
}

impl Batch {
    /// The seeds of object `i`.
    ///
    /// # Panics
    /// If the batch has no more than `i` objects.
    pub fn seeds(&self, i: usize) -> ObjectSeeds {
        assert!(i < self.count, "object {i} of a batch of {}", self.count);
        let index = self.first + i as u64;
        ObjectSeeds {
            masks: self.root.derive_mask(self.purpose.masks, index),
            errors: self.root.derive(self.purpose.errors, index),
        }
    }
}
