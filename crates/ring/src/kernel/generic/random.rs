//! Kernels of the samplers: plain loops that become vector code. None branches on data or uses it as an
//! address: orders come from the borrow of a subtraction, which 63-bit words leave in bit 63.

use super::super::random::WORD_MASK;

/// See [`WordKernels::count_thresholds`](super::super::contract::WordKernels::count_thresholds); `LANES`
/// draws side by side.
#[inline(always)]
pub(crate) fn count_thresholds<const LANES: usize>(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
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

/// See [`WordKernels::sort`](super::super::contract::WordKernels::sort).
#[inline(always)]
pub(crate) fn sort(words: &mut [u64]) {
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
