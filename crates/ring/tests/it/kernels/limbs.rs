//! Element-wise operations, inner products and matrix products against plain 128-bit arithmetic.

use super::support::{N, limbs};
use sudare_ring::kernel::MAX_TERMS;
use sudare_ring::packed::PackedPairs;
use sudare_ring::{Family, Limb};
use sudare_testkit::Random;

fn mul(a: u64, b: u64, q: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(q)) as u64
}

fn check(limb: &Limb, what: &str, found: &[u64], expected: impl Fn(usize) -> u64) {
    for (i, x) in found.iter().enumerate() {
        assert_eq!(*x, expected(i), "{what}, {}, q = {}, lane {i}", limb.family().name(), limb.q());
    }
}

#[test]
fn every_family_runs_where_it_should() {
    for limb in limbs() {
        assert!(limb.family() != Family::Avx512Ifma || limb.q() < 1 << 50);
    }
}

#[test]
fn element_wise() {
    let mut words = Random(1);
    for limb in limbs() {
        let q = limb.q();
        for len in [8, 16, 40, 512] {
            for worst in [true, false] {
                let mut draw = || if worst { vec![q - 1; len] } else { words.edges(q, len) };
                let (a, b, c) = (draw(), draw(), draw());
                let mut out = vec![7; len];
                limb.add(&mut out, &a, &b);
                check(&limb, "add", &out, |i| ((u128::from(a[i]) + u128::from(b[i])) % u128::from(q)) as u64);
                let mut x = a.clone();
                limb.add_assign(&mut x, &b);
                assert_eq!(x, out);
                limb.sub(&mut out, &a, &b);
                check(&limb, "sub", &out, |i| (a[i] + (q - b[i])) % q);
                let mut x = a.clone();
                limb.sub_assign(&mut x, &b);
                assert_eq!(x, out);
                let mut x = a.clone();
                limb.neg_assign(&mut x);
                check(&limb, "neg", &x, |i| (q - a[i]) % q);
                limb.mul(&mut out, &a, &b);
                check(&limb, "mul", &out, |i| mul(a[i], b[i], q));
                let mut x = a.clone();
                limb.mul_assign(&mut x, &b);
                assert_eq!(x, out);
                let mut x = c.clone();
                limb.mul_add(&mut x, &a, &b);
                check(&limb, "mul_add", &x, |i| (mul(a[i], b[i], q) + c[i]) % q);
                let mut y = a.clone();
                limb.mul_assign_add(&mut y, &b, &c);
                assert_eq!(x, y);
                for w in [q - 1, 0, 1, q / 2, b[0], words.word() % q] {
                    let shoup = limb.modulus().shoup(w);
                    let mut x = a.clone();
                    limb.mul_scalar(&mut x, &shoup);
                    check(&limb, "mul_scalar", &x, |i| mul(a[i], w, q));
                    let mut x = c.clone();
                    limb.mul_scalar_add(&mut x, &a, &shoup);
                    check(&limb, "mul_scalar_add", &x, |i| (mul(a[i], w, q) + c[i]) % q);
                    let mut x = a.clone();
                    limb.sub_mul_scalar(&mut x, &c, &shoup);
                    check(&limb, "sub_mul_scalar", &x, |i| mul((a[i] + (q - c[i])) % q, w, q));
                }
            }
        }
    }
}

#[test]
fn words_of_other_moduli() {
    let mut words = Random(2);
    for limb in limbs() {
        let q = limb.q();
        for bits in [10, 40, 52, 53, 62] {
            let src = words.edges(1 << bits, 64);
            let mut out = vec![0; 64];
            limb.reduce(&mut out, &src);
            check(&limb, "reduce", &out, |i| src[i] % q);
        }
        for p in [3, 65537, q, (1 << 40) + 15, (1 << 50) - 27, (1 << 61) - 1] {
            let src = words.edges(p, 64);
            let mut out = vec![0; 64];
            limb.reduce_centered(&mut out, &src, p);
            check(&limb, "reduce_centered", &out, |i| {
                let x = i128::from(src[i]);
                let centered = if src[i] > p / 2 { x - i128::from(p) } else { x };
                centered.rem_euclid(i128::from(q)) as u64
            });
        }
        let mut src: Vec<i64> = (0..64).map(|_| words.word() as i64).collect();
        let qi = q as i64;
        src[..12].copy_from_slice(&[i64::MIN, i64::MAX, 0, -1, 1, qi, -qi, qi - 1, 1 - qi, qi + 1, 2 * qi, -3 * qi]);
        let mut out = vec![0; 64];
        limb.from_i64(&mut out, &src);
        check(&limb, "from_i64", &out, |i| i128::from(src[i]).rem_euclid(i128::from(q)) as u64);
    }
}

fn views(rows: &[Vec<u64>]) -> Vec<&[u64]> {
    rows.iter().map(Vec::as_slice).collect()
}

fn sum(q: u64, terms: impl Iterator<Item = (u64, u64)>) -> u64 {
    terms.fold(0, |s, (a, b)| (mul(a, b, q) + s) % q)
}

#[test]
fn inner_products() {
    let mut words = Random(3);
    for limb in limbs() {
        let q = limb.q();
        for terms in [0usize, 1, 2, 3, 4, 5, 16, 17, 57, 113] {
            let mut rows = |worst: bool| -> Vec<Vec<u64>> {
                (0..terms).map(|_| if worst { vec![q - 1; 56] } else { words.edges(q, 56) }).collect()
            };
            for worst in [true, false] {
                let (a, b, c) = (rows(worst), rows(worst), rows(worst));
                let (ar, br, cr) = (views(&a), views(&b), views(&c));
                let (mut x, mut y) = (vec![7; 56], vec![7; 56]);
                limb.dot(&mut x, &ar, &br);
                check(&limb, "dot", &x, |i| sum(q, (0..terms).map(|j| (a[j][i], b[j][i]))));
                limb.dot_pair([&mut x, &mut y], &ar, &br, &cr);
                check(&limb, "dot_pair 0", &x, |i| sum(q, (0..terms).map(|j| (a[j][i], b[j][i]))));
                check(&limb, "dot_pair 1", &y, |i| sum(q, (0..terms).map(|j| (a[j][i], c[j][i]))));
            }
        }
    }
}

#[test]
fn inner_products_with_packed_pairs() {
    let mut words = Random(9);
    for limb in limbs() {
        let q = limb.q();
        for terms in [0usize, 1, 2, 5, 17] {
            let mut rows = |worst: bool| -> Vec<Vec<u64>> {
                (0..terms).map(|_| if worst { vec![q - 1; N] } else { words.edges(q, N) }).collect()
            };
            for worst in [true, false] {
                let (a, b, c, start) = (rows(worst), rows(worst), rows(worst), vec![q - 1; N]);
                let pairs: Vec<[&[u64]; 2]> = b.iter().zip(&c).map(|(b, c)| [&b[..], &c[..]]).collect();
                let packed = PackedPairs::new(&limb, &pairs);
                assert_eq!(packed.bytes(), PackedPairs::bytes_of(N, limb.modulus().bits(), terms));
                let mut row = vec![7; N];
                for j in 0..terms {
                    packed.unpack(j, 0, &mut row);
                    assert_eq!(row, b[j]);
                    packed.unpack(j, 1, &mut row);
                    assert_eq!(row, c[j]);
                }
                // A key of a higher level has more pairs than a product asks for.
                for used in [terms, terms / 2] {
                    let (mut x, mut y) = (vec![7; N], vec![7; N]);
                    limb.dot_pair_packed([&mut x, &mut y], &views(&a)[..used], &packed, Some(&start));
                    check(&limb, "packed 0", &x, |i| (sum(q, (0..used).map(|j| (a[j][i], b[j][i]))) + q - 1) % q);
                    check(&limb, "packed 1", &y, |i| sum(q, (0..used).map(|j| (a[j][i], c[j][i]))));
                    limb.dot_pair_packed([&mut x, &mut y], &views(&a)[..used], &packed, None);
                    check(&limb, "packed", &x, |i| sum(q, (0..used).map(|j| (a[j][i], b[j][i]))));
                }
            }
        }
    }
}

#[test]
fn most_terms_of_the_worst_case() {
    for limb in limbs() {
        let q = limb.q();
        let row = vec![q - 1; 8];
        let rows = vec![row.as_slice(); MAX_TERMS];
        let expected = (MAX_TERMS as u64) % q;
        let (mut x, mut y) = (vec![0; 8], vec![0; 8]);
        limb.dot(&mut x, &rows, &rows);
        check(&limb, "dot", &x, |_| expected);
        limb.dot_pair([&mut x, &mut y], &rows, &rows, &rows);
        check(&limb, "dot_pair", &x, |_| expected);
        check(&limb, "dot_pair", &y, |_| expected);
        for bits in [40, 50, 52, 53, 61] {
            let row = vec![(1u64 << bits) - 1; 8];
            let rows = vec![row.as_slice(); MAX_TERMS];
            limb.combine(&mut x, &rows, &vec![q - 1; MAX_TERMS], bits);
            let term = mul(row[0], q - 1, q);
            check(&limb, "combine", &x, |_| mul(term, MAX_TERMS as u64, q));
        }
    }
}

#[test]
fn combinations() {
    let mut words = Random(4);
    for limb in limbs() {
        let q = limb.q();
        for bits in [30, 50, 52, 53, 60, 61] {
            for terms in [0usize, 1, 2, 7, 30, 60] {
                let src: Vec<Vec<u64>> = (0..terms).map(|_| words.edges(1 << bits, 48)).collect();
                let refs = views(&src);
                let w = words.edges(q, terms);
                let mut out = vec![7; 48];
                limb.combine(&mut out, &refs, &w, bits);
                check(&limb, "combine", &out, |i| sum(q, (0..terms).map(|j| (src[j][i], w[j]))));
            }
        }
    }
}

#[test]
fn matrix_products() {
    let mut words = Random(5);
    let shapes =
        [(1, 1, 8), (3, 5, 24), (4, 16, 16), (16, 16, 16), (7, 57, 40), (9, 300, 32), (10, 257, 48), (101, 260, 16)];
    for limb in limbs() {
        let q = limb.q();
        for (m, k, n) in shapes {
            // The largest residue, and the largest that is centred.
            let largest = [Some(q - 1), Some(q / 2), None];
            for (largest, accumulate) in largest.into_iter().flat_map(|x| [(x, true), (x, false)]) {
                let (lda, ldb, ldc) = (k + 3, n + 8, n + 5);
                let mut draw = |len: usize| largest.map_or_else(|| words.edges(q, len), |x| vec![x; len]);
                // Just as long as shape and stride say.
                let a = draw((m - 1) * lda + k);
                let b = draw((k - 1) * ldb + n);
                let before = draw((m - 1) * ldc + n);
                let mut c = before.clone();
                limb.gemm(&mut c, ldc, &a, lda, &b, ldb, (m, k, n), accumulate);
                check(&limb, "gemm", &c, |at| {
                    let (i, j) = (at / ldc, at % ldc);
                    if j >= n {
                        return before[at];
                    }
                    let start = if accumulate { (before[at], 1) } else { (0, 0) };
                    sum(q, (0..k).map(|t| (a[i * lda + t], b[t * ldb + j])).chain([start]))
                });
            }
        }
    }
}
