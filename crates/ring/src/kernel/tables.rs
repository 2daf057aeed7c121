//! Twiddle factors of one prime.

use super::Family;
#[cfg(target_arch = "x86_64")]
use super::vector_tables::VectorTables;
use crate::modulus::{Modulus, Shoup};
use crate::order::bit_reverse;

/// Twiddle tables of the negacyclic transform. Each family builds only what it reads.
#[derive(Debug)]
pub(crate) struct NttTables {
    /// Ring degree N.
    pub n: usize,
    /// ψ, the primitive 2N-th root of unity.
    pub root: u64,
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks.
    /// Portable family only.
    pub forward: Vec<Shoup>,
    /// ψ^−brv(i), in the same places. Portable family only.
    pub inverse: Vec<Shoup>,
    /// N^−1.
    pub n_inv: Shoup,
    /// 2^−layers for every number of layers, for partial transforms.
    pub block_inv: Vec<Shoup>,
    /// The layout of the AVX-512 families.
    #[cfg(target_arch = "x86_64")]
    pub vector: VectorTables,
}

impl NttTables {
    pub fn new(modulus: &Modulus, n: usize, root: u64, family: Family) -> Self {
        let bits = n.trailing_zeros();
        let powers = |base: u64| {
            let mut powers = vec![0u64; n];
            let mut power = 1;
            for i in 0..n {
                powers[bit_reverse(i, bits)] = power;
                power = modulus.mul(power, base);
            }
            powers
        };
        let portable = |base: u64| match family {
            Family::Portable => powers(base).into_iter().map(|w| modulus.shoup(w)).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let half = modulus.value().div_ceil(2);
        let block_inv: Vec<_> = (0..=bits).map(|l| modulus.shoup(modulus.pow(half, u64::from(l)))).collect();
        let root_inv = modulus.pow(root, 2 * n as u64 - 1);
        let n_inv = block_inv[bits as usize];
        Self {
            n,
            root,
            forward: portable(root),
            inverse: portable(root_inv),
            n_inv,
            block_inv,
            #[cfg(target_arch = "x86_64")]
            vector: match family {
                Family::Portable => VectorTables::default(),
                _ => VectorTables::new(modulus, &powers(root), &powers(root_inv), n_inv.value, family),
            },
        }
    }
}
