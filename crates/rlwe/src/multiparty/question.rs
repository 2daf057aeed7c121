//! What a message answers, in 32 bytes.

use super::Session;
use crate::wire::packing::pack;
use std::fmt;
use sudare_ring::{Eval, Poly};

/// BLAKE3 of a question with all that an answer depends on: session, step, records, ciphertext, set of parties, noise. Two
/// answers to one question are the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// In hexadecimal.
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A question, as it is put together.
pub(super) struct Question(blake3::Hasher);

impl Question {
    /// Of a step of a session.
    pub(super) fn of(session: &Session, step: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sudare multiparty question v1");
        hasher.update(&session.id().0);
        Self(hasher).bytes(step.as_bytes())
    }

    /// With bytes, after their number.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    /// With numbers.
    pub(super) fn numbers(self, numbers: impl IntoIterator<Item = u64>) -> Self {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        self.bytes(&bytes)
    }

    /// With public polynomials.
    pub(super) fn polys<'a>(self, polys: impl IntoIterator<Item = &'a Poly<Eval>>) -> Self {
        polys.into_iter().fold(self, |question, poly| {
            let mut bytes = Vec::new();
            pack(poly, &mut bytes);
            question.bytes(&bytes)
        })
    }

    pub(super) fn digest(self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}
