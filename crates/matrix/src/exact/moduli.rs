//! Plaintext moduli of an exact product.

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

/// `count` coprime odd moduli, as small as they may be, with a product over twice the bound.
pub(super) fn moduli(bound: i128, count: usize) -> Option<Vec<u64>> {
    let needed = 2 * bound as u128 + 1;
    // Too large a root, and one whose estimate by doubles would be far off.
    if needed >> (count as u32 * MODULUS_BITS).min(127) != 0 {
        return None;
    }
    let root = root(needed, count as u32);
    if root >> MODULUS_BITS != 0 || (count > 1 && root < 1 << 12) {
        return None;
    }
    let mut next = (root as u64).max(3) | 1;
    let mut found: Vec<u64> = Vec::new();
    while found.len() < count {
        if found.iter().all(|t| gcd(*t, next) == 1) {
            found.push(next);
        }
        next += 2;
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
}
