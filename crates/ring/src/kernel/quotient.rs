//! Rounded quotients in double precision, for centred basis conversion.

/// `v = ⌊Σ_i y_i · r_i⌉` element by element, for `r_i` = 1/q_i and `y_i` in `[0, q_i)`.
///
/// Terms are added in order without fused operations, so every machine gets the same bits.
pub fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
    const BLOCK: usize = 64;
    let mut sums = [0f64; BLOCK];
    for (b, out) in v.chunks_mut(BLOCK).enumerate() {
        sums.fill(0.5);
        for (row, r) in y.iter().zip(reciprocal) {
            let row = &row[b * BLOCK..b * BLOCK + out.len()];
            for (s, x) in sums.iter_mut().zip(row) {
                // Words are below 2^61: the signed conversion is the cheaper one.
                *s += *x as i64 as f64 * r;
            }
        }
        for (o, s) in out.iter_mut().zip(&sums) {
            *o = *s as i64 as u64;
        }
    }
}
