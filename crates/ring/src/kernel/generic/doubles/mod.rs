//! Kernels in doubles with fused multiplication and addition, for primes below 2^50: one source for AVX2 (4
//! lanes), AVX-512 (8) and NEON (2). [`arith`] has the arithmetic and its proof.

pub(crate) mod arith;
mod elementwise;
mod external;
mod gemm;
pub(crate) mod lanes;
mod narrow;
mod partial;
mod sums;
mod tables;

use super::additive::additive_methods;
use super::signed::ntt;
use super::signed::tables::Sums;
use crate::kernel::contract::Source;
use crate::modulus::Modulus;
use arith::{Arith, DOUBLE_MODULUS_BITS};
use lanes::Doubles;
use tables::DoubleTables;

/// One prime below 2^50 and its twiddles.
#[derive(Debug)]
pub(crate) struct DoubleLimb<L: Doubles> {
    pub lanes: L,
    pub q: Modulus,
    pub n: usize,
    t: DoubleTables,
}

impl<L: Doubles> DoubleLimb<L> {
    /// Whether doubles serve a prime.
    pub(crate) fn serves(q: &Modulus) -> bool {
        q.bits() <= DOUBLE_MODULUS_BITS
    }

    /// For degree `n` and its root ψ.
    pub(crate) fn new(lanes: L, q: &Modulus, n: usize, root: u64) -> Self {
        Self { lanes, q: *q, n, t: tables::tables(q, n, root, L::RADIX) }
    }

    #[inline(always)]
    fn arith(&self) -> Arith<L> {
        Arith::new(self.lanes, &self.q)
    }

    #[inline(always)]
    pub(crate) fn forward(&self, a: &mut [u64]) {
        ntt::forward(self.arith(), &self.t, a);
    }

    #[inline(always)]
    pub(crate) fn inverse(&self, a: &mut [u64], source: Option<Source<'_>>) {
        match self.t.sums {
            Sums::Last => ntt::inverse::<_, { Sums::Last as u8 }>(self.arith(), &self.t, a, source),
            _ => ntt::inverse::<_, { Sums::Later as u8 }>(self.arith(), &self.t, a, source),
        }
    }

    additive_methods!();
}

#[cfg(test)]
mod plain;
