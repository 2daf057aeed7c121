//! A limb of every family for primes at the edges.

use sudare_ring::prime::{is_prime, ntt_primes};
use sudare_ring::{Family, Limb};

/// Degree of what does not depend on it.
pub const N: usize = 512;

/// Every family's limb of the smallest prime, of the largest ones of lengths at which kernels change their
/// ways, and of the smallest above some powers of two: the other end of the Barrett bounds.
pub fn limbs() -> Vec<Limb> {
    let largest = [20, 24, 26, 28, 30, 40, 46, 47, 48, 49, 50, 51, 55, 60, 61]
        .map(|bits| ntt_primes(N, bits, 1, &[]).unwrap()[0]);
    let above = [39u32, 40, 46, 47, 48, 49, 60].map(|bits| {
        let first = (1u64 << bits) + 1;
        (0..).map(|i| first + i * 2 * N as u64).find(|p| is_prime(*p)).unwrap()
    });
    let served = |q| Family::ALL.into_iter().filter_map(move |f| Limb::with_family(q, N, f).ok());
    [12289].into_iter().chain(largest).chain(above).flat_map(served).collect()
}
