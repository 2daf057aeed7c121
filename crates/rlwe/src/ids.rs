//! Names of parameter sets and secret keys, which everything made from them carries.

use crate::error::RlweError;
use serde::{Deserialize, Serialize};
use std::fmt;
use sudare_ring::random::Seed;

/// BLAKE3 hash that names a parameter set; every key and ciphertext carries it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ParamsHash(pub [u8; 32]);

/// Names a secret key on everything made from it; random, and says nothing of the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 16]);

impl ParamsHash {
    /// Refuses an object of another set.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`].
    pub fn require(self, what: &'static str, found: Self) -> Result<(), RlweError> {
        if found == self { Ok(()) } else { Err(RlweError::WrongParameters { what, found, expected: self }) }
    }

    /// The name of what needs several sets.
    #[must_use]
    pub fn of_all(sets: &[Self]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sudare parameter sets v1");
        sets.iter().for_each(|set| {
            hasher.update(&set.0);
        });
        Self(*hasher.finalize().as_bytes())
    }

    /// The name of a set of which these words say more.
    #[must_use]
    pub fn with(self, words: &[u64]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sudare parameters in detail v1");
        hasher.update(&self.0);
        words.iter().for_each(|word| {
            hasher.update(&word.to_le_bytes());
        });
        Self(*hasher.finalize().as_bytes())
    }

    /// The root of the key that `seed` stands for in this set and scheme: one seed gives keys and
    /// names that have nothing in common in any two of them.
    #[must_use]
    pub fn bind(&self, seed: &Seed, scheme: &str) -> Seed {
        let whole: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        seed.derive(&format!("sudare {scheme} key of parameters {whole}"), 0)
    }
}

impl KeyId {
    /// The key id of what belongs to no key.
    pub const NONE: Self = Self([0; 16]);

    /// Refuses an object of another key.
    ///
    /// # Errors
    /// [`RlweError::WrongKey`].
    pub fn require(self, what: &'static str, found: Self) -> Result<(), RlweError> {
        if found == self { Ok(()) } else { Err(RlweError::WrongKey { what, found, expected: self }) }
    }
}

fn write_start(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
}

impl fmt::Display for ParamsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_start(f, &self.0)
    }
}

impl fmt::Debug for ParamsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_start(f, &self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
