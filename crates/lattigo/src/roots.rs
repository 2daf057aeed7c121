//! Which roots of unity Lattigo transforms by, and how they are powers of ours.
//!
//! Theirs is g^((q − 1)/2n) for the least primitive root g ≥ 3 of the prime q, ours the least root of order 2n
//! ([`sudare_ring::prime::primitive_root`]). To know primitive roots is to know the prime factors of q − 1.

use std::collections::BTreeSet;
use sudare_ring::prime::is_prime;
use sudare_ring::{Modulus, RingError};

/// Divisors up to here are tried one by one.
const TRIED: u64 = 1 << 10;

/// Lattigo's root of order 2n modulo a prime q.
///
/// # Errors
/// [`RingError::NotNttFriendly`] unless q ≡ 1 modulo 2n.
pub(crate) fn theirs(q: &Modulus, n: usize) -> Result<u64, RingError> {
    let (order, wanted) = (q.value() - 1, 2 * n as u64);
    let factors = prime_factors(order);
    let primitive = |g: &u64| factors.iter().all(|p| q.pow(*g, order / p) != 1);
    let generator = (3..q.value()).find(primitive).filter(|_| order.is_multiple_of(wanted));
    let generator = generator.ok_or(RingError::NotNttFriendly { value: q.value(), order: wanted })?;
    Ok(q.pow(generator, order / wanted))
}

/// The odd exponent e < 2n with root^e = `power`, for two roots of order 2n: bit after bit, n being a power of two.
///
/// # Errors
/// [`RingError::NotNttFriendly`] if they are no such roots.
pub(crate) fn exponent(q: &Modulus, n: usize, root: u64, power: u64) -> Result<u64, RingError> {
    let (order, bits) = (2 * n as u64, n.trailing_zeros() + 1);
    let wrong = RingError::NotNttFriendly { value: q.value(), order };
    let inverse = q.inverse(root)?;
    let mut e = 0;
    for bit in 0..bits {
        // What is left is root^(2^bit·…); its power of order two says the next bit.
        let left = q.mul(power, q.pow(inverse, e));
        match q.pow(left, order >> (bit + 1)) {
            1 => {}
            x if x == q.value() - 1 => e |= 1 << bit,
            _ => return Err(wrong),
        }
    }
    if e % 2 == 1 && q.pow(root, e) == q.reduce(power) { Ok(e) } else { Err(wrong) }
}

/// The distinct prime factors of a number.
fn prime_factors(mut number: u64) -> BTreeSet<u64> {
    let mut factors = BTreeSet::new();
    for p in 2..TRIED {
        while number.is_multiple_of(p) {
            number /= p;
            factors.insert(p);
        }
    }
    let mut left = vec![number];
    while let Some(number) = left.pop() {
        if number == 1 {
            continue;
        }
        if is_prime(number) {
            factors.insert(number);
            continue;
        }
        let divisor = divisor(number);
        left.extend([divisor, number / divisor]);
    }
    factors
}

/// A proper divisor of an odd composite number: Pollard's ρ, with one greatest common divisor for many steps (Brent 1980).
fn divisor(number: u64) -> u64 {
    const TOGETHER: usize = 128;
    let Ok(m) = Modulus::new(number) else { return 1 };
    for c in 1.. {
        let step = |x: u64| m.add(m.mul(x, x), c);
        let (mut slow, mut fast) = (2, 2);
        loop {
            let before = (slow, fast);
            let mut product = 1;
            for _ in 0..TOGETHER {
                (slow, fast) = (step(slow), step(step(fast)));
                product = m.mul(product, slow.abs_diff(fast));
            }
            let found = gcd(product, number);
            if found == 1 {
                continue;
            }
            if found < number {
                return found;
            }
            // All factors at once: the same steps one by one.
            (slow, fast) = before;
            let single = loop {
                (slow, fast) = (step(slow), step(step(fast)));
                match gcd(slow.abs_diff(fast), number) {
                    1 => {}
                    found => break found,
                }
            };
            if single < number {
                return single;
            }
            break;
        }
    }
    unreachable!("some polynomial x² + c parts the factors")
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::prime::{ntt_primes, primitive_root};

    #[test]
    fn numbers_fall_into_their_primes() {
        for primes in [vec![2u64, 3], vec![1_000_003, 1_000_033], vec![4_294_967_291, 268_435_399], vec![65_537]] {
            assert_eq!(prime_factors(primes.iter().product()), primes.iter().copied().collect());
        }
        assert_eq!(prime_factors(1_000_003 * 1_000_003), [1_000_003].into());
        assert_eq!(prime_factors((1 << 61) - 1), [(1 << 61) - 1].into());
    }

    #[test]
    fn roots_are_powers_of_each_other() {
        for (n, bits) in [(512usize, 30u32), (1024, 50), (1 << 14, 60), (1 << 15, 61)] {
            for q in ntt_primes(n, bits, 3, &[]).unwrap() {
                let q = Modulus::new(q).unwrap();
                let (ours, theirs) = (primitive_root(&q, n).unwrap(), theirs(&q, n).unwrap());
                assert_eq!(q.pow(theirs, n as u64), q.value() - 1);
                let e = exponent(&q, n, ours, theirs).unwrap();
                assert_eq!((e % 2, q.pow(ours, e)), (1, theirs));
                assert!(exponent(&q, n, ours, 1).is_err() && exponent(&q, n, ours, 2).is_err());
            }
        }
    }

    #[test]
    fn a_known_root() {
        // 11 is the least primitive root of 12289.
        let q = Modulus::new(12289).unwrap();
        assert_eq!(theirs(&q, 512).unwrap(), q.pow(11, 12));
        assert!(theirs(&q, 1 << 13).is_err());
    }
}
