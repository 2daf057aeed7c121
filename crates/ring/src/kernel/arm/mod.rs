//! The family of 64-bit Arm processors: doubles in NEON registers for primes below 2^50, plain words above.
//!
//! Its type is a token as those of x86-64 are (see [`super::features`]).

mod lanes;

use super::contract::{Kernels, LimbKernels, WordKernels};
use super::features::Proof;
use super::generic::doubles::DoubleLimb;
use super::generic::fourier::fourier_methods;
use super::generic::limb_kernels_of;
use super::generic::scalar::ScalarLimb;
use crate::modulus::Modulus;

/// The family: proof of NEON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neon(());

impl Neon {
    /// The token, where the processor has the feature.
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

impl Proof<Neon> for Neon {
    #[inline(always)]
    fn proof(&self) -> Self {
        *self
    }
}

impl Proof<Neon> for DoubleLimb<Neon> {
    #[inline(always)]
    fn proof(&self) -> Neon {
        self.lanes
    }
}

/// [`with_features`](super::features::with_features) of the token [`Neon`].
macro_rules! with_neon {
    ($($methods:tt)*) => {
        crate::kernel::features::with_features! { "neon", crate::kernel::arm::Neon; $($methods)* }
    };
}

use with_neon;

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

impl WordKernels for Neon {
    fourier_methods!(Neon, crate::kernel::arm::with_neon);
}

limb_kernels_of!(DoubleLimb<Neon>, crate::kernel::arm::with_neon, this => this);
