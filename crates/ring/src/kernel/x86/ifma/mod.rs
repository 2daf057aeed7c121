//! AVX-512 IFMA kernels, for primes below 2^50.

mod arith;
mod external;
mod gemm;
mod ntt;
mod packed;
mod sums;

use super::limb_kernels;
use super::tokens::Ifma;
use crate::kernel::contract::{Kernels, LimbKernels, Monomials, Rows, RowsMut, WordKernels};
use crate::kernel::features::Proof;
use crate::kernel::generic::digits;
use crate::kernel::generic::vectors::elementwise;
use crate::kernel::generic::vectors::tables::{LaneWord, VectorTables};
use crate::kernel::{Ahead, Gadget, IFMA_MODULUS_BITS, PackedMatrix};
use crate::modulus::{Modulus, Shoup};
use crate::packed::PackedBlocks;
use arith::IfmaField;

impl Kernels for Ifma {
    fn serves(&self, q: &Modulus) -> bool {
        q.bits() <= IFMA_MODULUS_BITS
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        Box::new(IfmaLimb { token: *self, q: *q, n, t: VectorTables::new(q, n, root, LaneWord::Bits52) })
    }

    fn words(&self) -> &dyn WordKernels {
        self.avx512()
    }
}

/// One prime below 2^50 and its twiddles.
#[derive(Debug)]
struct IfmaLimb {
    token: Ifma,
    q: Modulus,
    n: usize,
    t: VectorTables,
}

impl Proof<Ifma> for IfmaLimb {
    #[inline(always)]
    fn proof(&self) -> Ifma {
        self.token
    }
}

impl IfmaLimb {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn field(&self) -> IfmaField {
        IfmaField::new(self.token, &self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        elementwise::mul_add(self.field(), acc, a, b);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        elementwise::mul_assign_add(self.field(), a, b, c);
    }
}

limb_kernels!(IfmaLimb, with_ifma);
