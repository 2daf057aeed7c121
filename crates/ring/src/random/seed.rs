//! Secret seeds and public mask seeds.

use core::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::Stream;
use crate::error::RingError;

/// A secret seed: the root of secret and noise streams. Wiped when dropped; it cannot be copied,
/// read back or printed.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

/// A public seed of uniform masks (the `a` of a key or a fresh ciphertext): the one kind of seed
/// that is written to disk or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaskSeed([u8; 32]);

/// What a derived seed is for; part of its derivation, so that a published mask seed never
/// equals a secret one.
#[derive(Clone, Copy)]
enum Role {
    Secret = 0,
    Mask = 1,
}

/// BLAKE3 keyed with the parent, over a tag, the role, the domain with its length, and the index.
///
/// A keyed hash rather than ChaCha output at some offset: it takes a domain of any length without
/// squeezing it into a nonce, and stays one-way and separated whatever the parent's own streams
/// have given out.
fn derive(parent: &[u8; 32], role: Role, domain: &str, index: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(parent);
    hasher.update(b"sudare seed v1");
    hasher.update(&[role as u8]);
    hasher.update(&(domain.len() as u64).to_le_bytes());
    hasher.update(domain.as_bytes());
    hasher.update(&index.to_le_bytes());
    let mut hash = hasher.finalize();
    let child = *hash.as_bytes();
    hash.zeroize();
    hasher.zeroize();
    child
}

fn entropy() -> Result<[u8; 32], RingError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| RingError::Entropy)?;
    Ok(bytes)
}

impl Seed {
    /// A fresh seed from the operating system.
    ///
    /// # Errors
    /// [`RingError::Entropy`] if it gives none.
    pub fn from_entropy() -> Result<Self, RingError> {
        entropy().map(Self)
    }

    /// The seed with these bytes, for known answers and for keys derived elsewhere. The caller
    /// wipes its own copy.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A second handle on the same bytes.
    #[cfg(feature = "testing")]
    pub(super) const fn again(&self) -> Self {
        Self(self.0)
    }

    /// The sub-seed for a domain (say, `"noise"`) and an index in it. Different arguments give
    /// independent seeds, and none tells anything about another or about the parent.
    #[must_use]
    pub fn derive(&self, domain: &str, index: u64) -> Self {
        Self(derive(&self.0, Role::Secret, domain, index))
    }

    /// A mask seed for a domain and an index. Publishing it tells nothing about this seed or the
    /// seeds that [`Seed::derive`] makes, equal arguments included.
    #[must_use]
    pub fn derive_mask(&self, domain: &str, index: u64) -> MaskSeed {
        MaskSeed(derive(&self.0, Role::Mask, domain, index))
    }

    /// The stream with number `nonce`; different numbers are independent.
    #[must_use]
    pub fn stream(&self, nonce: u64) -> Stream {
        Stream::new(&self.0, nonce)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl MaskSeed {
    /// A fresh mask seed from the operating system.
    ///
    /// # Errors
    /// [`RingError::Entropy`] if it gives none.
    pub fn from_entropy() -> Result<Self, RingError> {
        entropy().map(Self)
    }

    /// The mask seed with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The mask sub-seed for a domain and an index.
    #[must_use]
    pub fn derive(&self, domain: &str, index: u64) -> Self {
        Self(derive(&self.0, Role::Mask, domain, index))
    }

    /// The stream with number `nonce`: ChaCha20 with these bytes as its key, `nonce` as its
    /// 64-bit nonce, and a 64-bit block counter from 0.
    #[must_use]
    pub fn stream(&self, nonce: u64) -> Stream {
        Stream::new(&self.0, nonce)
    }
}
