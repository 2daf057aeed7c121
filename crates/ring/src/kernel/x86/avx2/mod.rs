//! Kernels for processors with AVX2 and FMA but without AVX-512: doubles for primes below 2^50, and above
//! them vectors of words and plain words with the multiplier of BMI2 and ADX.

pub(super) mod lanes;
mod wide;
mod words;

use super::tokens::Avx2;
use crate::kernel::contract::{Kernels, LimbKernels, WordKernels};
use crate::kernel::features::Proof;
use crate::kernel::generic::doubles::DoubleLimb;
use crate::kernel::generic::limb_kernels_of;
use crate::modulus::Modulus;
use wide::WideLimb;

impl Kernels for Avx2 {
    fn serves(&self, _q: &Modulus) -> bool {
        true
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        match DoubleLimb::<Self>::serves(q) {
            true => Box::new(DoubleLimb::new(*self, q, n, root)),
            false => Box::new(WideLimb::new(*self, q, n, root)),
        }
    }

    fn words(&self) -> &dyn WordKernels {
        self
    }
}

impl Proof<Avx2> for DoubleLimb<Avx2> {
    #[inline(always)]
    fn proof(&self) -> Avx2 {
        self.lanes
    }
}

limb_kernels_of!(DoubleLimb<Avx2>, crate::kernel::x86::tokens::with_avx2, this => this);

limb_kernels_of!(WideLimb, crate::kernel::x86::tokens::with_avx2, this => this.limb, transforms and key switches this);
