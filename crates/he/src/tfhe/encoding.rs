//! Messages as phases and back, in time that depends on neither: no division, whose time depends on
//! its operands on many processors, and no branch.

use sudare_ring::Modulus;

/// A message modulo `2^log_p` as a phase: `m·q/2^log_p` rounded, modulo q. `log_p` is at least 1.
pub(super) fn encode(q: &Modulus, m: u64, log_p: u32) -> u64 {
    let half = 1u128 << (log_p - 1);
    q.reduce_u128((u128::from(m) * u128::from(q.value()) + half) >> log_p)
}

/// The message modulo `2^log_p` nearest to a phase below q: `phase·2^log_p/q` rounded. `log_p` is at
/// most 63.
pub(super) fn decode(q: &Modulus, phase: u64, log_p: u32) -> u64 {
    let x = (u128::from(phase) << log_p) + u128::from(q.value() / 2);
    // A multiple of q, whose quotient is a product with q^−1 modulo 2^64: the bits that are wanted
    // are its low ones.
    let multiple = x - u128::from(q.reduce_u128(x));
    (multiple as u64).wrapping_mul(inverse_of_word(q.value())) & ((1 << log_p) - 1)
}

/// q^−1 modulo 2^64 of an odd q, by Newton's iteration: q is its own inverse modulo 8, and each
/// step doubles the bits.
const fn inverse_of_word(q: u64) -> u64 {
    let (mut inverse, mut bits) = (q, 3);
    while bits < 64 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain_encode(q: u64, m: u64, log_p: u32) -> u64 {
        let (q, p) = (u128::from(q), 1u128 << log_p);
        ((u128::from(m) * q + p / 2) / p % q) as u64
    }

    fn plain_decode(q: u64, phase: u64, log_p: u32) -> u64 {
        let (q, p) = (u128::from(q), 1u128 << log_p);
        ((u128::from(phase) * p + q / 2) / q % p) as u64
    }

    /// Every boundary between two messages, one step to both sides, at the smallest and the largest
    /// moduli and message spaces.
    #[test]
    fn edges_agree_with_plain_division() {
        for value in [3, 5, 12289, (1 << 32) - 5, (1 << 47) + 5, (1 << 61) - 1] {
            let q = Modulus::new(value).unwrap();
            for log_p in [1, 2, 5, 17, 40, 63] {
                for m in [0, 1, 2, 3, (1u64 << log_p) / 2, (1 << log_p) - 1, 1 << log_p, u64::MAX >> 1, u64::MAX] {
                    assert_eq!(encode(&q, m, log_p), plain_encode(value, m, log_p), "{value} {log_p} {m}");
                    let boundary = ((u128::from(m) * 2 + 1) * u128::from(value)) >> (log_p + 1);
                    let near = (boundary % u128::from(value)) as u64;
                    for phase in [near.saturating_sub(1), near, near + 1, 0, 1, value / 2, value / 2 + 1, value - 1] {
                        let phase = phase.min(value - 1);
                        assert_eq!(decode(&q, phase, log_p), plain_decode(value, phase, log_p), "{value} {phase}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn random_values_agree_with_plain_division(q in 1u64..1 << 60, m: u64, phase: u64, log_p in 1u32..=63) {
            let value = 2 * q + 1;
            let q = Modulus::new(value).unwrap();
            prop_assert_eq!(encode(&q, m, log_p), plain_encode(value, m, log_p));
            prop_assert_eq!(decode(&q, phase % value, log_p), plain_decode(value, phase % value, log_p));
        }
    }
}
