//! Powers of a root of unity, as every family's twiddles begin.

use crate::modulus::{Modulus, Shoup};
use crate::order::bit_reverse;

/// `base^brv(i)` at `i`, for the `n` powers from 0.
pub(crate) fn reversed_powers(modulus: &Modulus, n: usize, base: u64) -> Vec<u64> {
    let bits = n.trailing_zeros();
    let mut powers = vec![0u64; n];
    let mut power = 1;
    for i in 0..n {
        powers[bit_reverse(i, bits)] = power;
        power = modulus.mul(power, base);
    }
    powers
}

/// 2^−layers for every number of layers of a transform of degree `n`, N^−1 the last.
pub(crate) fn layer_inverses(modulus: &Modulus, n: usize) -> impl Iterator<Item = Shoup> {
    let half = modulus.value().div_ceil(2);
    (0..=n.trailing_zeros()).map(move |l| modulus.shoup(modulus.pow(half, u64::from(l))))
}

/// ψ^−1 of the 2N-th root ψ.
pub(crate) fn inverse_root(modulus: &Modulus, n: usize, root: u64) -> u64 {
    modulus.pow(root, 2 * n as u64 - 1)
}
