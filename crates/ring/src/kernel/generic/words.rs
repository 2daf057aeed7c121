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

/// See [`WordKernels::round_to_i64`](super::super::contract::WordKernels::round_to_i64).
#[inline(always)]
pub(crate) fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    for (o, x) in out.iter_mut().zip(src) {
        *o = (x * scale).round_ties_even() as i64;
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
