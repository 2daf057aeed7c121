//! Plaintext moduli of an exact computation.

use sudare_exact::Packing;
use sudare_ring::prime::is_prime;

/// Bits of the largest plaintext modulus.
const MODULUS_BITS: u32 = 59;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least integer whose power is not under `x`, below 2^60, the same on every machine.
fn root(x: u128, power: u32) -> u128 {
    let reaches = |r: u128| r.checked_pow(power).is_none_or(|p| p >= x);
    // Near it, but for the last bits of doubles.
    let mut r = (x as f64).powf(1.0 / f64::from(power)) as u128;
    while !reaches(r) {
        r += 1;
    }
    while r > 1 && reaches(r - 1) {
        r -= 1;
    }
    r
}

/// `count` coprime odd moduli, as small as they may be, with a product over twice the bound. For slots they are primes ≡ 1
/// modulo 2N.
pub(super) fn moduli(bound: i128, count: usize, packing: Packing, log_n: u32) -> Option<Vec<u64>> {
    let needed = 2 * bound as u128 + 1;
    // Too large a root, and one whose estimate by doubles would be far off.
    if needed >> (count as u32 * MODULUS_BITS).min(127) != 0 {
        return None;
    }
    let root = root(needed, count as u32);
    if root >> MODULUS_BITS != 0 || (count > 1 && root < 1 << 12) {
        return None;
    }
    let (first, step) = match packing {
        Packing::Coefficients => ((root as u64).max(3) | 1, 2),
        Packing::Slots => (((root as u64) >> (log_n + 1) << (log_n + 1)) + 1, 1 << (log_n + 1)),
    };
    let mut found: Vec<u64> = Vec::new();
    let mut next = first;
    while found.len() < count {
        let fits = match packing {
            Packing::Coefficients => found.iter().all(|t| gcd(*t, next) == 1),
            Packing::Slots => next >= root as u64 && is_prime(next),
        };
        if fits {
            found.push(next);
        }
        next += step;
        if next >> (MODULUS_BITS + 1) != 0 {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_exact() {
        for (r, power) in [(1 << 58, 2), ((1 << 58) + 1, 2), (12_345_678_901, 3), (536_870_909, 4)] {
            let x = u128::pow(r, power);
            assert_eq!([root(x - 1, power), root(x, power), root(x + 1, power)], [r, r, r + 1], "{r}^{power}");
        }
        assert_eq!(root((1 << 58) + 5, 1), (1 << 58) + 5);
    }

    #[test]
    fn slots_have_primes_of_their_ring() {
        for (bound, count, log_n) in
            [(0, 1, 10), (1 << 20, 1, 12), (1 << 40, 1, 15), (1 << 80, 2, 13), (1 << 116, 4, 14)]
        {
            let found = moduli(bound, count, Packing::Slots, log_n).unwrap();
            assert!(found.iter().all(|t| is_prime(*t) && t % (2 << log_n) == 1), "{found:?}");
            let product = found.iter().fold(1u128, |all, t| all * u128::from(*t));
            assert!(product > 2 * bound as u128, "{found:?} hold {bound}");
        }
    }
}
