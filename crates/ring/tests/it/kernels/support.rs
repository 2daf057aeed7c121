//! Words at the edges, and a limb of every family for primes at the edges.

use sudare_ring::prime::{is_prime, ntt_primes};
use sudare_ring::{Family, Limb};

/// Degree of what does not depend on it.
pub const N: usize = 512;

/// A small reproducible generator (SplitMix64); nothing secret is drawn from it.
pub struct Words(pub u64);

impl Words {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Words below `bound`: edges first, then a mix of edges and random ones.
    pub fn below(&mut self, bound: u64, len: usize) -> Vec<u64> {
        let edges = [bound - 1, 0, 1, bound / 2, bound / 2 + 1, bound - 2];
        (0..len)
            .map(|i| {
                let r = self.next();
                let edge = edges[(r >> 8) as usize % edges.len()].min(bound - 1);
                if i == 0 || r.is_multiple_of(4) { edge } else { self.next() % bound }
            })
            .collect()
    }
}

/// Every family's limb of the smallest prime, of the largest ones of lengths at which kernels change their
/// ways, and of the smallest above some powers of two: the other end of the Barrett bounds.
pub fn limbs() -> Vec<Limb> {
    let largest =
        [20, 28, 30, 40, 46, 47, 48, 49, 50, 51, 55, 60, 61].map(|bits| ntt_primes(N, bits, 1, &[]).unwrap()[0]);
    let above = [39u32, 40, 46, 47, 48, 49, 60].map(|bits| {
        let first = (1u64 << bits) + 1;
        (0..).map(|i| first + i * 2 * N as u64).find(|p| is_prime(*p)).unwrap()
    });
    let served = |q| Family::ALL.into_iter().filter_map(move |f| Limb::with_family(q, N, f).ok());
    [12289].into_iter().chain(largest).chain(above).flat_map(served).collect()
}
