//! Twiddle factors of one prime.

use super::Family;
use crate::modulus::{Modulus, Shoup};
use crate::order::bit_reverse;

/// Twiddle tables of the negacyclic transform.
#[derive(Debug)]
pub(crate) struct NttTables {
    /// Ring degree N.
    pub n: usize,
    /// ψ, the primitive 2N-th root of unity.
    pub root: u64,
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks.
    pub forward: Vec<Shoup>,
    /// ψ^−brv(i), in the same places.
    pub inverse: Vec<Shoup>,
    /// N^−1.
    pub n_inv: Shoup,
    /// 2^−layers for every number of layers, for partial transforms.
    pub block_inv: Vec<Shoup>,
}

impl NttTables {
    pub fn new(modulus: &Modulus, n: usize, root: u64, _family: Family) -> Self {
        let bits = n.trailing_zeros();
        let root_inv = modulus.pow(root, 2 * n as u64 - 1);
        let table = |base: u64| {
            let mut powers = vec![0u64; n];
            let mut power = 1;
            for i in 0..n {
                powers[bit_reverse(i, bits)] = power;
                power = modulus.mul(power, base);
            }
            powers.into_iter().map(|w| modulus.shoup(w)).collect::<Vec<_>>()
        };
        let half = (modulus.value() + 1) / 2;
        let block_inv: Vec<_> = (0..=bits).map(|l| modulus.shoup(modulus.pow(half, u64::from(l)))).collect();
        Self { n, root, forward: table(root), inverse: table(root_inv), n_inv: block_inv[bits as usize], block_inv }
    }
}
