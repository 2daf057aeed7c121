//! The family of 64-bit Arm processors: doubles in NEON registers for primes below 2^50, plain words above.
//!
//! Every such processor has NEON, so its intrinsics need no detection; only loads and stores are unsafe.

mod lanes;

use super::contract::{Kernels, LimbKernels, WordKernels};
use super::generic::doubles::DoubleLimb;
use super::generic::limb_kernels_of;
use super::generic::scalar::ScalarLimb;
use crate::modulus::Modulus;

/// The family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neon;

impl Neon {
    /// Every machine that this is compiled for has it.
    pub(super) fn detect() -> Option<Self> {
        Some(Self)
    }
}

impl Kernels for Neon {
    fn serves(&self, _q: &Modulus) -> bool {
        true
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        match DoubleLimb::<Self>::serves(q) {
            true => Box::new(DoubleLimb::new(*self, q, n, root)),
            false => Box::new(ScalarLimb::new(q, n, root)),
        }
    }

    fn words(&self) -> &dyn WordKernels {
        self
    }
}

impl WordKernels for Neon {}

limb_kernels_of!(DoubleLimb<Neon>, crate::kernel::generic::without_features, this => this);
