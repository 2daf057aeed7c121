//! Work without a modulus, by the family that the platform chose.

use super::platform;
use crate::modulus::Modulus;

/// `v = ⌊Σ_i y_i · r_i⌉` element by element, for `r_i` = 1/q_i and `y_i` in `[0, q_i)`,
/// `q_i < 2^61`.
///
/// Terms are added in order without fused operations, so every machine gets the same bits.
///
/// # Panics
/// If there is not one reciprocal for each row, or a row has another length than `v`.
pub fn round_quotients(v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
    assert!(y.len() == reciprocal.len() && y.iter().all(|row| row.len() == v.len()), "rows and reciprocals differ");
    platform::words().round_quotients(v, y, reciprocal);
}

/// `out = round(src · scale)`, ties to even, for |src · scale| < 2^62; the same on every family.
/// What a product beyond that or a non-finite one gives is unspecified, so bound the source
/// first. [`crate::Limb::from_i64`] takes the result into a limb.
///
/// # Panics
/// If the slices differ in length.
pub fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    assert_eq!(out.len(), src.len());
    platform::words().round_to_i64(out, src, scale);
}

/// `acc −= Σ_r digits[r] · row_r` modulo 2^32, for rows of `acc.len()` words one after the other:
/// the inner loop of an LWE key switch.
///
/// # Panics
/// If the lengths do not fit together.
pub fn sub_scaled_rows(acc: &mut [u32], rows: &[u32], digits: &[i32]) {
    assert!(Some(rows.len()) == acc.len().checked_mul(digits.len()), "rows of another length");
    if !acc.is_empty() {
        platform::words().sub_scaled_rows(acc, rows, digits);
    }
}

/// Adds Σ_j a_j0·b_j0, Σ_j (a_j0·b_j1 + a_j1·b_j0) and Σ_j a_j1·b_j1 to three sums below 2^63, modulo a prime `q < 2^31` of which rows
/// hold residues: sums stay below 2^63 and are not reduced further.
///
/// # Panics
/// If the lengths do not fit together, or the prime is too large.
pub fn add_tensors(q: &Modulus, sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]]) {
    let len = sums[0].len();
    let fit = a.len() == b.len() && a.iter().chain(b).flatten().all(|row| row.len() == len);
    assert!(fit && sums.iter().all(|sum| sum.len() == len) && q.bits() <= 31, "rows and sums differ");
    platform::words().add_tensors(sums, a, b, fold(q));
}

/// The largest multiple under 2^63.
fn fold(q: &Modulus) -> u64 {
    (1 << 63) - (1u64 << 63) % q.value()
}

#[cfg(test)]
mod tests {
    use super::super::Family;
    use super::super::contract::WordKernels;
    use super::*;
    use sudare_testkit::random::word_at;

    fn families() -> impl Iterator<Item = (&'static str, &'static dyn WordKernels)> {
        Family::ALL.into_iter().filter_map(|f| Some((f.name(), platform::kernels(f)?.words())))
    }

    fn word(i: usize) -> u64 {
        word_at(1, i as u64)
    }

    /// Against exact quotients, for primes at both ends of the range: no sum is so near a half that its
    /// rounding in double precision shows, but where the terms are that large themselves.
    #[test]
    fn quotients_round_alike() {
        for (q, len) in [(97u64, 520), ((1 << 40) - 87, 64), ((1 << 61) - 1, 193)] {
            let rows: Vec<Vec<u64>> = (0..7)
                .map(|r| (0..len).map(|i| if i < 3 { (q - 1) * (i & 1) as u64 } else { word(7 * i + r) % q }).collect())
                .collect();
            let rows: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
            let reciprocal = [1.0 / q as f64; 7];
            let exact = |i: usize| {
                (2 * rows.iter().map(|r| u128::from(r[i])).sum::<u128>() + u128::from(q)) / (2 * u128::from(q))
            };
            let mut first: Option<Vec<u64>> = None;
            for (family, kernels) in families() {
                let mut v = vec![7; len];
                kernels.round_quotients(&mut v, &rows, &reciprocal);
                assert!((0..len).all(|i| v[i].abs_diff(exact(i) as u64) <= u64::from(q > 1 << 50)), "{family}, {q}");
                assert_eq!(first.get_or_insert_with(|| v.clone()), &v, "{family}, {q}");
            }
        }
    }

    #[test]
    fn doubles_round_to_even() {
        let mut src: Vec<f64> = (0..100).map(|i| (f64::from(i) - 50.0) / 2.0).collect();
        src.extend([4.6e18, -4.6e18, 1e-300, -0.0, 0.499_999_999_999_999_94, 4_503_599_627_370_497.5]);
        for (family, kernels) in families() {
            for scale in [1.0, 0.25, 0.999] {
                let expected: Vec<i64> = src.iter().map(|x| (x * scale).round_ties_even() as i64).collect();
                let mut found = vec![0; src.len()];
                kernels.round_to_i64(&mut found, &src, scale);
                assert_eq!(found, expected, "{family}");
            }
            let mut out = [0; 4];
            kernels.round_to_i64(&mut out, &[0.5, 1.5, -2.5, 2.5], 1.0);
            assert_eq!(out, [0, 2, -2, 2], "{family}");
        }
    }

    #[test]
    fn centred_residues_become_doubles() {
        for q in [97, (1 << 40) - 87, (1 << 50) - 27, (1 << 61) - 1] {
            let modulus = Modulus::new(q).unwrap();
            let edges = [0, 1, q / 2, q / 2 + 1, q - 1];
            let src: Vec<u64> = edges.into_iter().chain((0..200).map(|i| word(i) % q)).collect();
            for (family, kernels) in families() {
                for factor in [1.0, -0.25, 1.0 / 3.0] {
                    let mut out = vec![7.0; src.len()];
                    kernels.centered_to_f64(&mut out, &src, q, factor);
                    let wanted: Vec<f64> = src.iter().map(|x| modulus.center(*x) as f64 * factor).collect();
                    assert_eq!(out, wanted, "{family}, {q}");
                }
            }
        }
    }

    #[test]
    fn scaled_rows() {
        for (family, kernels) in families() {
            for (len, count) in [(1, 1), (16, 8), (33, 19), (640, 7)] {
                let rows: Vec<u32> = (0..len * count).map(|i| word(i) as u32).collect();
                let digits: Vec<i32> =
                    (0..count).map(|i| if i == 0 { i32::MIN } else { word(i + 5) as i32 >> 20 }).collect();
                let start: Vec<u32> = (0..len).map(|i| word(i + 99) as u32).collect();
                let mut acc = start.clone();
                kernels.sub_scaled_rows(&mut acc, &rows, &digits);
                for i in 0..len {
                    let sum: i64 = (0..count).map(|r| i64::from(rows[r * len + i]) * i64::from(digits[r])).sum();
                    assert_eq!(acc[i], start[i].wrapping_sub(sum as u32), "{family}");
                }
            }
        }
    }

    fn view(rows: &[[Vec<u32>; 2]]) -> Vec<[&[u32]; 2]> {
        rows.iter().map(|pair| pair.each_ref().map(Vec::as_slice)).collect()
    }

    /// Sums of products against wide integers, at the largest prime, with residues at both ends.
    #[test]
    fn tensors_add_up() {
        let q = Modulus::new(2_147_352_577).unwrap();
        let residue = |i: usize| match i % 5 {
            0 => q.value() as u32 - 1,
            1 => 0,
            _ => (word(i) % q.value()) as u32,
        };
        for (family, kernels) in families() {
            for (len, count) in [(1, 1), (8, 2), (37, 5), (512, 16)] {
                let rows = |salt: usize| -> Vec<[Vec<u32>; 2]> {
                    (0..count)
                        .map(|j| [0, 1].map(|p| (0..len).map(|i| residue(salt + 2 * i + p + 97 * j)).collect()))
                        .collect()
                };
                let (a, b) = (rows(0), rows(5));
                let start = [(1u64 << 63) - 1, 0, (1 << 63) - 1];
                let mut sums = start.map(|x| vec![x; len]);
                let [low, middle, high] = &mut sums;
                kernels.add_tensors([low, middle, high], &view(&a), &view(&b), fold(&q));
                for i in 0..len {
                    let sum = |terms: &[(usize, usize)]| -> u128 {
                        let one = |j: usize, (x, y): &(usize, usize)| u128::from(a[j][*x][i]) * u128::from(b[j][*y][i]);
                        (0..count).flat_map(|j| terms.iter().map(move |t| (j, t))).map(|(j, t)| one(j, t)).sum()
                    };
                    let wanted = [sum(&[(0, 0)]), sum(&[(0, 1), (1, 0)]), sum(&[(1, 1)])];
                    for ((found, wanted), start) in sums.iter().zip(wanted).zip(start) {
                        assert!(found[i] < 1 << 63, "{family}");
                        assert_eq!(q.reduce(found[i]), q.reduce_u128(wanted + u128::from(start)), "{family}");
                    }
                }
            }
        }
    }
}
