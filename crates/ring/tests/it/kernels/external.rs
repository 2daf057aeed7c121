//! Digits, rotations and packed products against plain arithmetic.

use super::support::{N, limbs};
use sudare_ring::kernel::{Gadget, MAX_COLUMNS, MAX_GROUPS, MonomialTable, PackedMatrix};
use sudare_testkit::Random;

#[test]
fn digits_recompose_and_are_small() {
    let mut words = Random(1);
    for limb in limbs() {
        let (q, bits) = (limb.modulus(), limb.modulus().bits());
        for (base_log, levels) in [(1, 1), (4, 3), (7, 4), (18, 1), (9, 2), (bits, 1), (bits / 3, 3)] {
            if base_log * levels > bits {
                continue;
            }
            let gadget = Gadget { base_log, levels };
            let a = words.edges(limb.q(), N);
            let mut digits = vec![1; levels as usize * N];
            digits[..N].copy_from_slice(&a);
            limb.decompose(&mut digits, gadget);
            let (b, mut both) = (words.edges(limb.q(), N), vec![1; levels as usize * N]);
            let mut part: Vec<u64> = a.iter().zip(&b).map(|(x, y)| q.sub(*x, *y)).collect();
            limb.add_decompose(&mut part, &b, gadget, &mut both);
            assert!(part == a && both == digits);
            for i in 0..N {
                let mut sum = 0i128;
                for l in 0..levels {
                    let digit = q.center(digits[l as usize * N + i]);
                    let half = 1i64 << (base_log - 1);
                    assert!(digit >= -half && (digit < half || l == 0 && digit == half), "{gadget:?} {digit}");
                    sum += i128::from(digit) << gadget.log_weight(bits, l);
                }
                let error = sum - i128::from(q.center(a[i]));
                assert!(2 * error.abs() <= 1 << gadget.dropped(bits), "{gadget:?} {error}");
            }
        }
    }
}

#[test]
fn rotations() {
    let mut words = Random(2);
    for limb in limbs() {
        let q = limb.modulus();
        let a = words.edges(limb.q(), N);
        for steps in [0, 1, 7, 8, 255, N - 1, N, N + 1, 2 * N - 1, words.word() as usize % (2 * N)] {
            let (mut rotated, mut difference) = (vec![0; N], vec![0; N]);
            limb.rotate(&mut rotated, &a, steps);
            limb.rotate_minus(&mut difference, &a, steps);
            for i in 0..N {
                let to = (i + steps) % (2 * N);
                let value = if to < N { a[i] } else { q.neg(a[i]) };
                assert_eq!(rotated[to % N], value);
                assert_eq!(difference[to % N], q.sub(value, a[to % N]));
            }
        }
    }
}

#[test]
fn packed_products() {
    let mut words = Random(3);
    for limb in limbs() {
        let q = limb.modulus();
        let table = MonomialTable::new(&limb);
        for (groups, rows, columns) in
            [(1, 2, 2), (1, 3, 1), (3, 2, 2), (MAX_GROUPS, 4, 3), (1, 5, MAX_COLUMNS), (3, 4, 4)]
        {
            let mut m = PackedMatrix::zeroed(&limb, groups, rows, columns);
            let mut entries = Vec::new();
            for i in 0..groups * rows * columns {
                let values = if i % 3 == 0 { vec![limb.q() - 1; N] } else { words.edges(limb.q(), N) };
                m.set(i / columns / rows, i / columns % rows, i % columns, &values);
                entries.push(values);
            }
            let mut back = vec![0; N];
            m.get(groups - 1, rows - 1, columns - 1, &mut back);
            assert_eq!(back, entries[entries.len() - 1]);
            let mut gathered = PackedMatrix::gather(vec![PackedMatrix::zeroed(&limb, 1, 1, 2), m.clone(), m]);
            gathered[0].set(0, 0, 1, &back);
            let (m, _) = (gathered.remove(1), gathered);
            let mut digits = words.edges(limb.q(), rows * N);
            digits[..N].fill(limb.q() - 1);
            let exponents: Vec<usize> = (0..groups).map(|g| [0, 1, N, 2 * N - 1, 77, 640, 1000][g]).collect();
            let mut out = vec![5; columns * N];
            if groups == 1 {
                limb.external_product(&mut out, &digits, &m);
            } else {
                limb.external_product_monomials(&mut out, &digits, &m, &table, &exponents);
            }
            let monomials: Vec<Vec<u64>> = exponents
                .iter()
                .map(|e| {
                    let mut x = vec![0; N];
                    x[e % N] = if *e < N { 1 } else { limb.q() - 1 };
                    limb.forward(&mut x);
                    x.iter().map(|v| if groups == 1 { 1 } else { q.sub(*v, 1) }).collect()
                })
                .collect();
            for c in 0..columns {
                for i in 0..N {
                    let mut sum = 0;
                    for g in 0..groups {
                        for r in 0..rows {
                            let x = q.mul(digits[r * N + i], monomials[g][i]);
                            sum = q.add(sum, q.mul(x, entries[(g * rows + r) * columns + c][i]));
                        }
                    }
                    assert_eq!(out[c * N + i], sum, "{} {} {groups} {rows} {columns}", limb.family().name(), limb.q());
                }
            }
        }
    }
}
