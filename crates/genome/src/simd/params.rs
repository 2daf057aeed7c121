//! Parameters of the protocol "simd".

use crate::GenomeError;
use crate::bytes::{Put, flag};
use crate::error::in_range;
use sudare_exact::IntegerParams;
use sudare_exact::plan::Requirements;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::{Fields, WireError};

/// t: counts of matching haplotypes stay below it.
pub const MODULUS: u64 = 65_537;
/// Longest window, log2.
const MAX_LOG_SITES: u32 = 10;

/// The contents that a set must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// log2 of the longest window, rounded up.
    pub log_sites: u32,
    /// Whether the start may be hidden among several.
    pub hidden: bool,
    /// A set without any security, for tests of breadth.
    pub insecure: bool,
}

impl Set {
    /// The set for windows of up to `sites` sites.
    ///
    /// # Errors
    /// [`GenomeError::Range`] over 1024 sites.
    pub fn new(sites: usize, hidden: bool) -> Result<Self, GenomeError> {
        in_range("sites of a window in slots", sites as u64, 1, 1 << MAX_LOG_SITES)?;
        Ok(Self { log_sites: sites.next_power_of_two().trailing_zeros(), hidden, insecure: false })
    }

    /// The same without security.
    #[must_use]
    pub fn insecure_test(self) -> Self {
        Self { insecure: true, ..self }
    }

    /// Products in a row: prefixes double log2 q times; the comparison with the panel before and the random factors
    /// after them, and the choice of the start, take as much as one each.
    pub fn depth(&self) -> usize {
        self.log_sites as usize + 2 + usize::from(self.hidden)
    }

    /// Picks ring and modulus.
    ///
    /// # Errors
    /// [`GenomeError::Exact`] if no ring holds it.
    pub fn build(&self) -> Result<IntegerParams, GenomeError> {
        let security = if self.insecure { Security::Insecure } else { Security::Bits128 };
        // A row has to hold the blocks of a window twice over.
        let values = if self.insecure { 1 << 11 } else { 1 << 13 };
        let values = values.max(8 << self.log_sites);
        let wanted = Requirements::new(MODULUS).depth(self.depth()).rotations(1).slots().values(values);
        Ok(wanted.security(security).bgv()?)
    }

    pub(super) fn write(&self, meta: &mut Vec<u8>) {
        meta.u32(self.log_sites);
        meta.u32(self.hidden.into());
        meta.u32(self.insecure.into());
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let log_sites = fields.u32()?;
        if log_sites > MAX_LOG_SITES {
            return Err(WireError::Oversize {
                what: "a number of sites' bits",
                found: log_sites.into(),
                limit: MAX_LOG_SITES.into(),
            });
        }
        Ok(Self { log_sites, hidden: flag(fields)?, insecure: flag(fields)? })
    }
}
