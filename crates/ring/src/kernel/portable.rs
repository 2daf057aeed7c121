//! Kernels in plain Rust: the family of every machine.

use super::contract::{Kernels, LimbKernels, WordKernels};
use super::generic::limb_kernels_of;
use super::generic::scalar::ScalarLimb;
use crate::modulus::Modulus;

/// The family.
#[derive(Debug)]
pub(super) struct Portable;

impl Portable {
    /// Every machine has it.
    pub(super) fn detect() -> Option<Self> {
        Some(Self)
    }
}

impl Kernels for Portable {
    fn serves(&self, _q: &Modulus) -> bool {
        true
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        Box::new(ScalarLimb::new(q, n, root))
    }

    fn words(&self) -> &dyn WordKernels {
        self
    }
}

impl WordKernels for Portable {}

limb_kernels_of!(ScalarLimb, crate::kernel::generic::without_features, this => this);
