//! NTT-friendly primes and roots of unity.

use crate::error::RingError;
use crate::memo::PerProcess;
use crate::modulus::Modulus;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Primes by the order of the root of unity that they have and their bits, the largest first.
type Known = Mutex<BTreeMap<(u64, u32), Vec<u64>>>;

/// Whether `x` is prime (Miller–Rabin with bases that decide every 64-bit number).
pub fn is_prime(x: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    for p in BASES {
        if x.is_multiple_of(p) {
            return x == p;
        }
    }
    if x < 2 {
        return false;
    }
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(x)) as u64;
    let s = (x - 1).trailing_zeros();
    let odd = (x - 1) >> s;
    'base: for base in BASES {
        let (mut y, mut square, mut e) = (1u64, base % x, odd);
        while e > 0 {
            if e & 1 == 1 {
                y = mul(y, square);
            }
            square = mul(square, square);
            e >>= 1;
        }
        if y == 1 || y == x - 1 {
            continue;
        }
        for _ in 1..s {
            y = mul(y, y);
            if y == x - 1 {
                continue 'base;
            }
        }
        return false;
    }
    true
}

/// `count` distinct primes ≡ 1 modulo `2n`, nearest to `2^bits` first among those not in
/// `taken`, alternating around `2^bits` only below it: every prime has exactly `bits` bits.
///
/// # Errors
/// [`RingError::TooFewPrimes`] if the range holds fewer, [`RingError::ModulusRange`] if `bits` > 61.
pub fn ntt_primes(n: usize, bits: u32, count: usize, taken: &[u64]) -> Result<Vec<u64>, RingError> {
    let order = 2 * n as u64;
    let too_few = RingError::TooFewPrimes { bits, count, order };
    if !(2..=crate::modulus::MAX_MODULUS_BITS).contains(&bits) {
        return Err(too_few);
    }
    let (low, high) = (1u64 << (bits - 1), 1u64 << bits);
    if high <= order {
        return Err(too_few);
    }
    // Found once for each ring and size: planners ask for the same chains hundreds of times.
    static KNOWN: PerProcess<Known> = PerProcess::new();
    let mut known = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.entry((order, bits)).or_default();
    let mut found = Vec::with_capacity(count);
    let mut at = 0;
    while found.len() < count {
        if at == known.len() {
            let mut candidate = known.last().copied().unwrap_or(high + 1);
            loop {
                match candidate.checked_sub(order).filter(|next| *next >= low) {
                    Some(next) => candidate = next,
                    None => return Err(too_few),
                }
                if is_prime(candidate) {
                    break;
                }
            }
            known.push(candidate);
        }
        if !taken.contains(&known[at]) {
            found.push(known[at]);
        }
        at += 1;
    }
    Ok(found)
}

/// The least primitive root of unity of order `2n` modulo the prime `q ≡ 1 (mod 2n)`.
///
/// The least one, so that every machine and every release picks the same.
pub fn primitive_root(q: &Modulus, n: usize) -> Option<u64> {
    let order = 2 * n as u64;
    if !(q.value() - 1).is_multiple_of(order) || !is_prime(q.value()) {
        return None;
    }
    let cofactor = (q.value() - 1) / order;
    let root = (2..q.value()).map(|g| q.pow(g, cofactor)).find(|r| q.pow(*r, n as u64) == q.value() - 1)?;
    let step = q.mul(root, root);
    let (mut power, mut least) = (root, root);
    for _ in 1..n {
        power = q.mul(power, step);
        least = least.min(power);
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primality_agrees_with_trial_division() {
        let slow = |x: u64| x >= 2 && (2..).take_while(|d| d * d <= x).all(|d| !x.is_multiple_of(d));
        for x in 0..20_000 {
            assert_eq!(is_prime(x), slow(x), "{x}");
        }
        // Strong pseudoprimes to the first bases, and the largest 61-bit prime.
        assert!(!is_prime(3_215_031_751) && !is_prime(3_825_123_056_546_413_051));
        assert!(is_prime((1 << 61) - 1));
    }

    #[test]
    fn chains_are_distinct_and_friendly() {
        let first = ntt_primes(1 << 14, 40, 3, &[]).unwrap();
        let more = ntt_primes(1 << 14, 40, 3, &first).unwrap();
        for p in first.iter().chain(&more) {
            assert!(is_prime(*p) && p % (1 << 15) == 1 && p >> 39 == 1);
        }
        assert!(first.iter().all(|p| !more.contains(p)));
        assert!(ntt_primes(1 << 17, 19, 1, &[]).is_err());
        assert!(ntt_primes(1 << 14, 20, 1000, &[]).is_err());
    }

    #[test]
    fn roots_have_the_exact_order() {
        for (n, bits) in [(512usize, 30u32), (4096, 50), (16384, 60)] {
            let q = Modulus::new(ntt_primes(n, bits, 1, &[]).unwrap()[0]).unwrap();
            let root = primitive_root(&q, n).unwrap();
            assert_eq!(q.pow(root, n as u64), q.value() - 1);
        }
        assert_eq!(primitive_root(&Modulus::new(97).unwrap(), 512), None);
    }
}
