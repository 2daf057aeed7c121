//! Work without a modulus: plain loops that become vector code.

/// See [`WordKernels::round_quotients`](super::super::contract::WordKernels::round_quotients).
#[inline(always)]
pub(crate) fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
    const BLOCK: usize = 64;
    /// Adding 2^52 leaves a small number, rounded to the nearest integer, in the lowest bits.
    const ROUND: f64 = (1u64 << 52) as f64;
    let mut sums = [0f64; BLOCK];
    for (b, out) in v.chunks_mut(BLOCK).enumerate() {
        sums.fill(0.0);
        for (row, r) in y.iter().zip(reciprocal) {
            let row = &row[b * BLOCK..b * BLOCK + out.len()];
            for (s, x) in sums.iter_mut().zip(row) {
                // Words are below 2^61: the signed conversion is the cheaper one.
                *s += *x as i64 as f64 * r;
            }
        }
        for (o, s) in out.iter_mut().zip(&sums) {
            *o = (*s + ROUND).to_bits() & ((1 << 52) - 1);
        }
    }
}

/// 1.5·2^52: what is added to it is rounded to an integer, ties to even, which its lowest bits then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// See [`WordKernels::round_to_i64`](super::super::contract::WordKernels::round_to_i64).
///
/// In halves, whose sums every processor can turn into words by vectors: the upper one is a multiple of 2^32, so that what is left, which is
/// exact, rounds as the whole does.
#[inline(always)]
pub(crate) fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    const HALF: f64 = (1u64 << 32) as f64;
    for (o, x) in out.iter_mut().zip(src) {
        let x = x * scale;
        let high = x * (1.0 / HALF) + ROUND;
        let low = (x - (high - ROUND) * HALF) + ROUND;
        let [high, low] = [high, low].map(|x| x.to_bits().wrapping_sub(ROUND.to_bits()));
        *o = (high << 32).wrapping_add(low) as i64;
    }
}

/// See [`WordKernels::centered_to_f64`](super::super::contract::WordKernels::centered_to_f64).
#[inline(always)]
pub(crate) fn centered_to_f64(out: &mut [f64], src: &[u64], q: u64, factor: f64) {
    // 2^52 and 2^84, to whose lowest bits halves of a word are added; of the upper half's bits the sign is turned.
    const LOW: f64 = (1u64 << 52) as f64;
    const HIGH: f64 = LOW * (1u64 << 32) as f64;
    const SIGN: f64 = (1u64 << 63) as f64;
    for (o, x) in out.iter_mut().zip(src) {
        let above = ((q / 2).wrapping_sub(*x) as i64 >> 63) as u64;
        let x = x.wrapping_sub(q & above) ^ (1 << 63);
        let low = f64::from_bits(x & 0xFFFF_FFFF | LOW.to_bits());
        // Exact until the last sum, which rounds once.
        let high = f64::from_bits(x >> 32 | HIGH.to_bits()) - (HIGH + SIGN + LOW);
        *o = (high + low) * factor;
    }
}

/// Rows that one pass over the accumulator adds.
const ROWS: usize = 8;

/// See [`WordKernels::sub_scaled_rows`](super::super::contract::WordKernels::sub_scaled_rows).
#[inline(always)]
pub(crate) fn sub_scaled_rows(acc: &mut [u32], rows: &[u32], digits: &[i32]) {
    let len = acc.len();
    let mut blocks = rows.chunks_exact(ROWS * len);
    let mut factors = digits.chunks_exact(ROWS);
    for (block, d) in (&mut blocks).zip(&mut factors) {
        let (r0, rest) = block.split_at(len);
        let (r1, rest) = rest.split_at(len);
        let (r2, rest) = rest.split_at(len);
        let (r3, rest) = rest.split_at(len);
        let (r4, rest) = rest.split_at(len);
        let (r5, rest) = rest.split_at(len);
        let (r6, r7) = rest.split_at(len);
        let d: [u32; ROWS] = std::array::from_fn(|i| d[i] as u32);
        for (i, a) in acc.iter_mut().enumerate() {
            let low = r0[i].wrapping_mul(d[0]).wrapping_add(r1[i].wrapping_mul(d[1]));
            let low = low.wrapping_add(r2[i].wrapping_mul(d[2])).wrapping_add(r3[i].wrapping_mul(d[3]));
            let high = r4[i].wrapping_mul(d[4]).wrapping_add(r5[i].wrapping_mul(d[5]));
            let high = high.wrapping_add(r6[i].wrapping_mul(d[6])).wrapping_add(r7[i].wrapping_mul(d[7]));
            *a = a.wrapping_sub(low).wrapping_sub(high);
        }
    }
    for (row, d) in blocks.remainder().chunks_exact(len).zip(factors.remainder()) {
        for (a, x) in acc.iter_mut().zip(row) {
            *a = a.wrapping_sub(x.wrapping_mul(*d as u32));
        }
    }
}

/// See [`WordKernels::add_tensors`](super::super::contract::WordKernels::add_tensors).
#[inline(always)]
pub(crate) fn add_tensors(sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]], fold: u64) {
    let [low, middle, high] = sums;
    let len = low.len();
    let (middle, high) = (&mut middle[..len], &mut high[..len]);
    let times = |x: u32, y: u32| u64::from(x).wrapping_mul(u64::from(y));
    // Two products are below 2^63 − 2^33, so that no sum below 2^63 wraps, and what is left of one above is below 2^63 again.
    let folded = |x: u64| x.wrapping_sub(fold & (x as i64 >> 63) as u64);
    let (mut a, mut b) = (a.chunks_exact(2), b.chunks_exact(2));
    for (a, b) in (&mut a).zip(&mut b) {
        let ([a0, a1], [c0, c1]) = (a[0].map(|row| &row[..len]), a[1].map(|row| &row[..len]));
        let ([b0, b1], [d0, d1]) = (b[0].map(|row| &row[..len]), b[1].map(|row| &row[..len]));
        for i in 0..len {
            low[i] = folded(low[i].wrapping_add(times(a0[i], b0[i])).wrapping_add(times(c0[i], d0[i])));
            high[i] = folded(high[i].wrapping_add(times(a1[i], b1[i])).wrapping_add(times(c1[i], d1[i])));
            let first = folded(middle[i].wrapping_add(times(a0[i], b1[i])).wrapping_add(times(a1[i], b0[i])));
            middle[i] = folded(first.wrapping_add(times(c0[i], d1[i])).wrapping_add(times(c1[i], d0[i])));
        }
    }
    for (a, b) in a.remainder().iter().zip(b.remainder()) {
        let ([a0, a1], [b0, b1]) = (a.map(|row| &row[..len]), b.map(|row| &row[..len]));
        for i in 0..len {
            low[i] = folded(low[i].wrapping_add(times(a0[i], b0[i])));
            high[i] = folded(high[i].wrapping_add(times(a1[i], b1[i])));
            middle[i] = folded(middle[i].wrapping_add(times(a0[i], b1[i])).wrapping_add(times(a1[i], b0[i])));
        }
    }
}
