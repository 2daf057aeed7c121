//! Rounded quotients in double precision, for centred basis conversion.

use super::Family;

/// `v = ⌊Σ_i y_i · r_i⌉` element by element, for `r_i` = 1/q_i and `y_i` in `[0, q_i)`,
/// `q_i < 2^61`.
///
/// Terms are added in order without fused operations, so every machine gets the same bits.
///
/// # Panics
/// If there is not one reciprocal for each row, or a row has another length than `v`.
pub fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
    assert!(y.len() == reciprocal.len() && y.iter().all(|row| row.len() == v.len()), "rows and reciprocals differ");
    #[cfg(target_arch = "x86_64")]
    if Family::Avx512Dq.available() {
        // SAFETY: the features were found.
        return unsafe { avx512(v, y, reciprocal) };
    }
    plain(v, y, reciprocal);
}

/// The plain loop with conversions eight at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn avx512(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
    plain(v, y, reciprocal);
}

#[inline(always)]
fn plain(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_form_equals_plain_form() {
        let rows: Vec<Vec<u64>> = (0..5u64)
            .map(|r| {
                (0..520u64).map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(r as u32) >> 3).collect()
            })
            .collect();
        let rows: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
        let reciprocal = [1.0 / 2.31e18, 1.0 / 2.305e18, 1.0 / 2.306e18, 1.0 / 2.307e18, 1.0 / 2.4e18];
        let (mut a, mut b) = (vec![0; 520], vec![0; 520]);
        round_quotients(&mut a, &rows, &reciprocal);
        plain(&mut b, &rows, &reciprocal);
        assert_eq!(a, b);
    }
}
