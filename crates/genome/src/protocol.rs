//! The three protocols.

use crate::GenomeError;
use std::fmt;
use std::str::FromStr;
use sudare_rlwe::wire::WireError;

/// The protocol that computes a search. All protocols give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Leveled TFHE over the trie of the window: one round, no evaluation keys.
    Trie,
    /// Table lookups at encrypted indices with a bootstrap after each: the panel's tables may be encrypted too.
    Lookup,
    /// BGV over slots: haplotypes side by side, many queries at once.
    Simd,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Trie, Self::Lookup, Self::Simd];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trie => "trie",
            Self::Lookup => "lookup",
            Self::Simd => "simd",
        }
    }

    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Trie => 1,
            Self::Lookup => 2,
            Self::Simd => 3,
        }
    }

    pub(crate) fn from_code(code: u32) -> Result<Self, WireError> {
        let found = Self::ALL.into_iter().find(|p| p.code() == code);
        found.ok_or(WireError::Corrupt { what: "an unknown protocol" })
    }

    pub(crate) fn require(self, expected: Self) -> Result<(), GenomeError> {
        if self == expected {
            return Ok(());
        }
        Err(GenomeError::WrongProtocol { found: self.name(), expected: expected.name() })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = GenomeError;

    fn from_str(text: &str) -> Result<Self, GenomeError> {
        let found = Self::ALL.into_iter().find(|p| p.name() == text);
        found.ok_or(GenomeError::WrongProtocol { found: "of another name", expected: "trie, lookup or simd" })
    }
}
