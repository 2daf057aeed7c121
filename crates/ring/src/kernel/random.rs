//! Kernels of [`crate::random`]: the ChaCha20 block function, the table comparison of the
//! Gaussian sampler and an oblivious sort.
//!
//! The last two are plain Rust, compiled a second time with AVX-512 enabled, so both versions
//! give the same words. Neither branches on data or uses it as an address: orders come from the
//! borrow of a subtraction, which 63-bit words leave in bit 63.

use once_cell::race::OnceBool;

use crate::kernel::Family;
use crate::modulus::Modulus;

/// Blocks that one step of [`ChaCha::fill`] makes.
pub const GROUP_BLOCKS: usize = 16;
/// Bytes of such a step.
pub const GROUP_BYTES: usize = 64 * GROUP_BLOCKS;
/// Words below `2^63` compare by the borrow of their difference.
pub const WORD_MASK: u64 = u64::MAX >> 1;

/// Whether the AVX-512 versions run: the processor has F and DQ, and `SUDARE_KERNEL` allows
/// them. (A wrong name in that variable is reported where limbs are built; here it means no.)
pub fn wide() -> bool {
    static WIDE: OnceBool = OnceBool::new();
    WIDE.get_or_init(|| Modulus::new(3).and_then(|m| Family::choose(&m)).is_ok_and(|f| f != Family::Portable))
}

/// For each 16-byte draw (little-endian words `lo`, `hi`), the number of thresholds above its
/// 126-bit value `hi mod 2^63 · 2^63 + lo mod 2^63`, negated if bit 63 of `hi` is set.
/// `draws` has two words for each of `out`; thresholds are `[low, high]`, each below `2^63`, and
/// descend.
pub fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
    #[cfg(target_arch = "x86_64")]
    if wide() {
        // SAFETY: `wide` found AVX-512 F and DQ.
        return unsafe { x86::count_thresholds(thresholds, draws, out) };
    }
    count_body::<8>(thresholds, draws, out);
}

/// Sorts words below `2^63` in place by a bitonic network; the length is a power of two. The
/// memory accesses and the instructions depend on the length alone.
pub fn sort(words: &mut [u64]) {
    assert!(words.len().is_power_of_two());
    #[cfg(target_arch = "x86_64")]
    if wide() {
        // SAFETY: `wide` found AVX-512 F and DQ.
        return unsafe { x86::sort(words) };
    }
    sort_body(words);
}

#[inline(always)]
fn count_body<const LANES: usize>(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
    assert_eq!(draws.len(), 2 * out.len());
    let mut groups = out.chunks_exact_mut(LANES);
    let mut words = draws.chunks_exact(2 * LANES);
    for (group, words) in groups.by_ref().zip(words.by_ref()) {
        let group: &mut [i64; LANES] = group.try_into().unwrap_or_else(|_| unreachable!());
        count_group(thresholds, words, group);
    }
    for (sample, pair) in groups.into_remainder().iter_mut().zip(words.remainder().chunks_exact(2)) {
        let mut one = [0i64; 1];
        count_group(thresholds, pair, &mut one);
        *sample = one[0];
    }
}

#[inline(always)]
fn count_group<const LANES: usize>(thresholds: &[[u64; 2]], words: &[u64], out: &mut [i64; LANES]) {
    let (mut lo, mut hi, mut sign) = ([0u64; LANES], [0u64; LANES], [0u64; LANES]);
    for i in 0..LANES {
        lo[i] = words[2 * i] & WORD_MASK;
        hi[i] = words[2 * i + 1] & WORD_MASK;
        sign[i] = words[2 * i + 1] >> 63;
    }
    // Thresholds descend, so those with a high word of zero are the last ones.
    let (head, tail) = thresholds.split_at(thresholds.partition_point(|t| t[1] != 0));
    let mut count = [0u64; LANES];
    for [low, high] in head {
        for i in 0..LANES {
            let borrow = lo[i].wrapping_sub(*low) >> 63;
            count[i] += hi[i].wrapping_sub(*high).wrapping_sub(borrow) >> 63;
        }
    }
    for i in 0..LANES {
        // A draw with a high word above zero is above them all.
        lo[i] |= (hi[i].wrapping_neg() >> 63).wrapping_neg() >> 1;
    }
    for [low, _] in tail {
        for i in 0..LANES {
            count[i] += lo[i].wrapping_sub(*low) >> 63;
        }
    }
    for i in 0..LANES {
        out[i] = ((count[i] ^ sign[i].wrapping_neg()).wrapping_add(sign[i])) as i64;
    }
}

#[inline(always)]
fn sort_body(words: &mut [u64]) {
    let mut size = 2;
    while size <= words.len() {
        // Comparing a block with its own mirror image keeps every later comparison ascending.
        for block in words.chunks_exact_mut(size) {
            let (low, high) = block.split_at_mut(size / 2);
            low.iter_mut().zip(high.iter_mut().rev()).for_each(|(a, b)| order(a, b));
        }
        let mut half = size / 4;
        while half > 0 {
            for block in words.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                low.iter_mut().zip(high).for_each(|(a, b)| order(a, b));
            }
            half /= 2;
        }
        size *= 2;
    }
}

/// Swaps if out of order, without a branch.
#[inline(always)]
fn order(a: &mut u64, b: &mut u64) {
    let swap = (*a ^ *b) & (b.wrapping_sub(*a) >> 63).wrapping_neg();
    *a ^= swap;
    *b ^= swap;
}

/// The ChaCha20 key stream sixteen blocks at a time, with a 64-bit block counter and a 64-bit
/// nonce (words 12, 13 and 14, 15 of the state), as Bernstein defined it.
#[cfg(target_arch = "x86_64")]
#[derive(zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct ChaCha {
    state: [u32; 16],
}

#[cfg(target_arch = "x86_64")]
impl ChaCha {
    /// The stream of a key and a nonce, or nothing where [`wide`] does not hold.
    pub fn new(key: &[u8; 32], nonce: u64) -> Option<Self> {
        if !wide() {
            return None;
        }
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        state[14] = nonce as u32;
        state[15] = (nonce >> 32) as u32;
        Some(Self { state })
    }

    /// Writes the next groups of the stream; `out` is a multiple of [`GROUP_BYTES`] long.
    pub fn fill(&mut self, out: &mut [u8]) {
        assert_eq!(out.len() % GROUP_BYTES, 0);
        for group in out.as_chunks_mut::<GROUP_BYTES>().0 {
            // SAFETY: `new` gives a value only where `wide` found AVX-512 F.
            unsafe { x86::chacha_group(&self.state, group) };
            let counter = u64::from(self.state[12]) | u64::from(self.state[13]) << 32;
            let counter = counter.wrapping_add(GROUP_BLOCKS as u64);
            self.state[12] = counter as u32;
            self.state[13] = (counter >> 32) as u32;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{GROUP_BYTES, count_body, sort_body};
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
        count_body::<64>(thresholds, draws, out);
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn sort(words: &mut [u64]) {
        sort_body(words);
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn quarter_round(x: &mut [__m512i; 16], a: usize, b: usize, c: usize, d: usize) {
        x[a] = _mm512_add_epi32(x[a], x[b]);
        x[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(x[d], x[a]));
        x[c] = _mm512_add_epi32(x[c], x[d]);
        x[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(x[b], x[c]));
        x[a] = _mm512_add_epi32(x[a], x[b]);
        x[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(x[d], x[a]));
        x[c] = _mm512_add_epi32(x[c], x[d]);
        x[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(x[b], x[c]));
    }

    /// Sixteen blocks from the counter in `state`, one to a 32-bit lane.
    #[target_feature(enable = "avx512f")]
    pub fn chacha_group(state: &[u32; 16], out: &mut [u8; GROUP_BYTES]) {
        let mut start = [_mm512_setzero_si512(); 16];
        for (lanes, word) in start.iter_mut().zip(state) {
            *lanes = _mm512_set1_epi32(*word as i32);
        }
        let index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let low = _mm512_add_epi32(start[12], index);
        let carry = _mm512_cmplt_epu32_mask(low, start[12]);
        start[13] = _mm512_mask_add_epi32(start[13], carry, start[13], _mm512_set1_epi32(1));
        start[12] = low;

        let mut x = start;
        for _ in 0..10 {
            quarter_round(&mut x, 0, 4, 8, 12);
            quarter_round(&mut x, 1, 5, 9, 13);
            quarter_round(&mut x, 2, 6, 10, 14);
            quarter_round(&mut x, 3, 7, 11, 15);
            quarter_round(&mut x, 0, 5, 10, 15);
            quarter_round(&mut x, 1, 6, 11, 12);
            quarter_round(&mut x, 2, 7, 8, 13);
            quarter_round(&mut x, 3, 4, 9, 14);
        }
        for (lanes, first) in x.iter_mut().zip(&start) {
            *lanes = _mm512_add_epi32(*lanes, *first);
        }

        // Transpose: within 128-bit quarters first, then the quarters themselves.
        // quads[w][c], quarter k: words 4w..4w+4 of block 4k + c.
        let mut quads = [[_mm512_setzero_si512(); 4]; 4];
        for w in 0..4 {
            let ab0 = _mm512_unpacklo_epi32(x[4 * w], x[4 * w + 1]);
            let ab1 = _mm512_unpackhi_epi32(x[4 * w], x[4 * w + 1]);
            let cd0 = _mm512_unpacklo_epi32(x[4 * w + 2], x[4 * w + 3]);
            let cd1 = _mm512_unpackhi_epi32(x[4 * w + 2], x[4 * w + 3]);
            quads[w] = [
                _mm512_unpacklo_epi64(ab0, cd0),
                _mm512_unpackhi_epi64(ab0, cd0),
                _mm512_unpacklo_epi64(ab1, cd1),
                _mm512_unpackhi_epi64(ab1, cd1),
            ];
        }
        let (blocks, _) = out.as_chunks_mut::<64>();
        for c in 0..4 {
            let p0 = _mm512_shuffle_i32x4::<0x44>(quads[0][c], quads[1][c]);
            let p1 = _mm512_shuffle_i32x4::<0xee>(quads[0][c], quads[1][c]);
            let p2 = _mm512_shuffle_i32x4::<0x44>(quads[2][c], quads[3][c]);
            let p3 = _mm512_shuffle_i32x4::<0xee>(quads[2][c], quads[3][c]);
            let four = [
                _mm512_shuffle_i32x4::<0x88>(p0, p2),
                _mm512_shuffle_i32x4::<0xdd>(p0, p2),
                _mm512_shuffle_i32x4::<0x88>(p1, p3),
                _mm512_shuffle_i32x4::<0xdd>(p1, p3),
            ];
            for (k, block) in four.into_iter().enumerate() {
                // SAFETY: the target is a block of exactly 64 bytes; the store needs no alignment.
                unsafe { _mm512_storeu_si512(blocks[4 * k + c].as_mut_ptr().cast(), block) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that need no good generator, below 2^64.
    fn words(count: usize) -> Vec<u64> {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        let step = |_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn sorts() {
        for log in 0..=13 {
            let mut found: Vec<u64> = words(1 << log).iter().map(|w| w & WORD_MASK).collect();
            found[0] = WORD_MASK;
            found[(1 << log) / 2] = 0;
            let (mut expected, mut portable) = (found.clone(), found.clone());
            expected.sort_unstable();
            sort(&mut found);
            sort_body(&mut portable);
            assert_eq!(found, expected);
            assert_eq!(portable, expected);
        }
    }

    #[test]
    fn counts_at_the_edges_of_the_thresholds() {
        let value = |t: [u64; 2]| u128::from(t[1]) << 63 | u128::from(t[0]);
        let thresholds =
            [[5, WORD_MASK], [0, 1 << 62], [WORD_MASK, 1 << 40], [7, 1 << 40], [WORD_MASK, 0], [1, 0], [0, 0]];
        let mut draws = words(2 * 333);
        for (i, t) in thresholds.iter().enumerate() {
            for (j, delta) in [-1i64, 0, 1].into_iter().enumerate() {
                let near = value(*t).wrapping_add_signed(i128::from(delta)) & ((1 << 126) - 1);
                draws[2 * (3 * i + j)] = near as u64 & WORD_MASK | (j as u64) << 63;
                draws[2 * (3 * i + j) + 1] = (near >> 63) as u64 | (i as u64 & 1) << 63;
            }
        }
        let expected: Vec<i64> = draws
            .chunks_exact(2)
            .map(|d| {
                let draw = value([d[0] & WORD_MASK, d[1] & WORD_MASK]);
                let count = thresholds.iter().filter(|t| draw < value(**t)).count() as i64;
                if d[1] >> 63 == 1 { -count } else { count }
            })
            .collect();
        let mut found = vec![9; expected.len()];
        count_thresholds(&thresholds, &draws, &mut found);
        assert_eq!(found, expected);
        count_body::<8>(&thresholds, &draws, &mut found);
        assert_eq!(found, expected);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn chacha_agrees_with_the_library() {
        use chacha20::ChaCha20Rng;
        use chacha20::rand_core::{Rng, SeedableRng};
        let key: [u8; 32] = core::array::from_fn(|i| (7 * i) as u8);
        // The counter starts where its low word is about to overflow.
        for (nonce, start) in [(0, 0), (0x0123_4567_89ab_cdef, 0xffff_fff8u64)] {
            let Some(mut ours) = ChaCha::new(&key, nonce) else { return };
            ours.state[12] = start as u32;
            let mut theirs = ChaCha20Rng::from_seed(key);
            theirs.set_stream(nonce);
            theirs.set_word_pos(16 * u128::from(start));
            let (mut a, mut b) = (vec![0; 4 * GROUP_BYTES], vec![0; 4 * GROUP_BYTES]);
            ours.fill(&mut a);
            theirs.fill_bytes(&mut b);
            assert_eq!(a, b);
        }
    }
}
