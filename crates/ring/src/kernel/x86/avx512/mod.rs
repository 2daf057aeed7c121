//! AVX-512 F + DQ kernels: doubles for primes below 2^50, 32-bit products for those up to 61 bits.

mod arith;
mod doubles;
mod gemm;
mod ntt;
mod sums;

use super::limb_kernels;
use super::tokens::Avx512;
use crate::kernel::contract::{Kernels, LimbKernels, Monomials, Rows, RowsMut, WordKernels};
use crate::kernel::features::Proof;
use crate::kernel::generic::digits;
use crate::kernel::generic::doubles::DoubleLimb;
use crate::kernel::generic::scalar::external;
use crate::kernel::generic::vectors::elementwise;
use crate::kernel::generic::vectors::tables::{LaneWord, VectorTables};
use crate::kernel::{Ahead, Gadget, PackedMatrix};
use crate::modulus::{Modulus, Shoup};
use crate::packed::PackedBlocks;
use arith::DqField;

impl Kernels for Avx512 {
    fn serves(&self, _q: &Modulus) -> bool {
        true
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        match DoubleLimb::<Self>::serves(q) {
            true => Box::new(DoubleLimb::new(*self, q, n, root)),
            false => Box::new(DqLimb { token: *self, q: *q, n, t: VectorTables::new(q, n, root, LaneWord::Bits64) }),
        }
    }

    fn words(&self) -> &dyn WordKernels {
        self
    }
}

/// One prime of 51 bits or more and its twiddles.
#[derive(Debug)]
struct DqLimb {
    token: Avx512,
    q: Modulus,
    n: usize,
    t: VectorTables,
}

impl Proof<Avx512> for DqLimb {
    #[inline(always)]
    fn proof(&self) -> Avx512 {
        self.token
    }
}

impl DqLimb {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn field(&self) -> DqField {
        DqField::new(self.token, &self.q)
    }

    // The two ways of a product with a sum are compiled apart.

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let f = self.field();
        match f.near() {
            true => elementwise::mul_add(f.assume_near(true), acc, a, b),
            false => elementwise::mul_add(f.assume_near(false), acc, a, b),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        let f = self.field();
        match f.near() {
            true => elementwise::mul_assign_add(f.assume_near(true), a, b, c),
            false => elementwise::mul_assign_add(f.assume_near(false), a, b, c),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn dot_pair_packed(&self, out: [&mut [u64]; 2], a: &[&[u64]], b: PackedBlocks<'_>, start: Option<&[u64]>) {
        self.dot_pair_words(out, a, b, start);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn external_product(&self, out: &mut [u64], digits: &[u64], m: &PackedMatrix, monomials: Option<Monomials<'_>>) {
        external::product(&self.q, out, digits, m, monomials);
    }
}

limb_kernels!(DqLimb, with_avx512);
