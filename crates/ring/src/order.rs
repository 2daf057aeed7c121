//! The order in which an evaluated polynomial's values stand.
//!
//! Value `i` of the evaluation form is `a(ψ^e)` with `e =` [`exponent`]`(n, i)`, ψ the ring's
//! primitive 2N-th root of unity. It is the bit-reversed order of a decimation-in-time
//! transform, except that each block of 64 values stands transposed as an 8×8 square, so that
//! vector kernels end their last three layers without transposing back. Kernels,
//! automorphisms, keys on the wire and other devices all agree through this file.

/// Bit-reversal of the low `bits` bits of `i`.
#[inline]
pub const fn bit_reverse(i: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) }
}

/// Transposes index `i` within its block of 64 (an involution).
#[inline]
pub const fn transpose64(i: usize) -> usize {
    (i & !63) | ((i & 7) << 3) | ((i >> 3) & 7)
}

/// The odd exponent `e` in `[1, 2n)` such that value `i` is `a(ψ^e)`.
#[inline]
pub const fn exponent(n: usize, i: usize) -> usize {
    2 * bit_reverse(transpose64(i), n.trailing_zeros()) + 1
}

/// The inverse of [`exponent`]: where the value at `ψ^e` stands.
#[inline]
pub const fn index_of(n: usize, e: usize) -> usize {
    transpose64(bit_reverse((e >> 1) & (n - 1), n.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponent_and_index_are_inverse() {
        for n in [512usize, 1024, 4096] {
            let mut seen = vec![false; n];
            for i in 0..n {
                let e = exponent(n, i);
                assert!(e % 2 == 1 && e < 2 * n);
                assert_eq!(index_of(n, e), i);
                seen[e / 2] = true;
            }
            assert!(seen.into_iter().all(|s| s));
        }
    }
}
