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

impl DiscreteSet {
    /// Units that a bootstrap with one table takes, as measured: of gates, a refresh of two real ciphertexts, random tables
    /// (`bench/runs/discrete-2026-11-24.json`).
    pub fn units(self) -> f64 {
        match self {
            Self::G15 => 22_770.0,
            Self::L15 => 30_551.0,
            Self::S15 => 30_831.0,
            Self::W16 => 133_980.0,
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
