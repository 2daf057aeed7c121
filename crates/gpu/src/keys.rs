//! Evaluation keys on the device: resident up to a budget, and copied there again past it.

use crate::error::Result;
use std::collections::HashMap;
use std::sync::Arc;
use sudare_cuda::{Device, Pairs};
use sudare_rlwe::keys::KeySwitchKey;

/// Which key: that of a Galois element, or the relinearisation key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    Relin,
    Galois(u64),
}

/// Keys that are on the device. Of those that are too many, the one that was used longest ago goes first; the launches
/// that read it are in the queue before whatever takes its memory.
#[derive(Debug)]
pub(crate) struct Resident {
    budget: usize,
    keys: HashMap<Which, (Arc<Pairs>, u64)>,
    bytes: usize,
    uses: u64,
    copied: u64,
}

impl Resident {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, keys: HashMap::new(), bytes: 0, uses: 0, copied: 0 }
    }

    /// A key that is on the device.
    pub(crate) fn get(&mut self, which: Which) -> Option<Arc<Pairs>> {
        self.uses += 1;
        let (pairs, used) = self.keys.get_mut(&which)?;
        *used = self.uses;
        Some(pairs.clone())
    }

    /// Copies a key to the device. One larger than the whole budget is not kept after its use.
    pub(crate) fn load(&mut self, device: &Device, which: Which, key: &KeySwitchKey) -> Result<Arc<Pairs>> {
        // Room is made before: the budget bounds what is there at any time, but for the key in use.
        let wanted = key.pairs().basis().degree() * key.pairs().basis().len() * key.pairs().terms() * 16;
        while self.bytes + wanted > self.budget {
            let Some(oldest) = self.keys.iter().min_by_key(|(_, (_, used))| *used).map(|(which, _)| *which) else {
                break;
            };
            if let Some((gone, _)) = self.keys.remove(&oldest) {
                self.bytes -= gone.bytes();
            }
        }
        let pairs = Arc::new(Pairs::from_host(device, key.pairs())?);
        self.copied += 1;
        if self.bytes + pairs.bytes() <= self.budget {
            self.bytes += pairs.bytes();
            self.keys.insert(which, (pairs.clone(), self.uses));
        }
        Ok(pairs)
    }

    /// Bytes of keys that stay, and how many were copied there since the start.
    pub(crate) fn held(&self) -> (usize, u64) {
        (self.bytes, self.copied)
    }
}
