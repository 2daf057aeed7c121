//! The policy of a panel's owner: limits on what answers reveal.

use crate::GenomeError;
use crate::bytes::Put;
use sudare_rlwe::wire::{Fields, WireError};

/// Limits of the queries that a server answers. Answers tell of the panel; these say how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Least number of haplotypes that a match has to be shared by.
    pub least_eps: u32,
    /// Most sites of a window.
    pub most_sites: u32,
    /// Most candidate starts.
    pub most_starts: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { least_eps: 1, most_sites: 4096, most_starts: 1 << 16 }
    }
}

impl Policy {
    /// Refuses a query beyond the limits.
    ///
    /// # Errors
    /// [`GenomeError::Policy`], [`GenomeError::Empty`].
    pub fn check(&self, sites: usize, starts: usize, eps: u32) -> Result<(), GenomeError> {
        for (what, most, found) in [
            ("the largest number of sites of a window", self.most_sites, sites),
            ("the largest number of starts", self.most_starts, starts),
        ] {
            if found == 0 {
                return Err(GenomeError::Empty { what: "sites or starts" });
            }
            if found as u64 > u64::from(most) {
                return Err(GenomeError::Policy { what, allowed: most.into(), found: found as u64 });
            }
        }
        if eps < self.least_eps.max(1) {
            let allowed = self.least_eps.max(1).into();
            return Err(GenomeError::Policy {
                what: "the least number of haplotypes that share a match",
                allowed,
                found: eps.into(),
            });
        }
        Ok(())
    }

    pub(super) fn write(&self, meta: &mut Vec<u8>) {
        [self.least_eps, self.most_sites, self.most_starts].into_iter().for_each(|x| meta.u32(x));
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let (least_eps, most_sites, most_starts) = (fields.u32()?, fields.u32()?, fields.u32()?);
        if [least_eps, most_sites, most_starts].contains(&0) || most_sites > MAX_WINDOW || most_starts > MAX_STARTS {
            return Err(WireError::Corrupt { what: "a policy that nobody has" });
        }
        Ok(Self { least_eps, most_sites, most_starts })
    }
}

/// Most sites of any window.
pub const MAX_WINDOW: u32 = 1 << 16;
/// Most candidate starts of any query.
pub const MAX_STARTS: u32 = 1 << 20;
