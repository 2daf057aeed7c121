//! Sets for tables of integers, with 128 bits of security.

use crate::circuits::bootstrapping::BootstrapLiteral;
use crate::error::{HeError, parameters};
use std::fmt;
use std::str::FromStr;

/// The sets by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscreteSet {
    /// [`BootstrapLiteral::g15`]: gates.
    G15,
    /// [`BootstrapLiteral::l15`]: bits with levels.
    L15,
    /// [`BootstrapLiteral::s15`]: integers modulo up to 16.
    S15,
    /// [`BootstrapLiteral::w16`]: integers modulo up to 256.
    W16,
}

impl DiscreteSet {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::G15, Self::L15, Self::S15, Self::W16];

    /// The set itself.
    pub fn literal(self) -> BootstrapLiteral {
        match self {
            Self::G15 => BootstrapLiteral::g15(),
            Self::L15 => BootstrapLiteral::l15(),
            Self::S15 => BootstrapLiteral::s15(),
            Self::W16 => BootstrapLiteral::w16(),
        }
    }
}

impl FromStr for DiscreteSet {
    type Err = HeError;

    fn from_str(name: &str) -> Result<Self, HeError> {
        let found = Self::ALL.into_iter().find(|set| set.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| parameters(format!("there is no set {name:?} for tables; take G15, L15, S15 or W16")))
    }
}

impl fmt::Display for DiscreteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
