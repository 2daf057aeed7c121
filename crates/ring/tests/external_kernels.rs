//! Digits, rotations, packed products and scaled rows: every family against plain arithmetic.

use sudare_ring::kernel::{Gadget, MAX_COLUMNS, MonomialTable, PackedMatrix, sub_scaled_rows};
use sudare_ring::prime::{is_prime, ntt_primes};
use sudare_ring::{Family, Limb};

const N: usize = 512;

/// A small reproducible generator (SplitMix64); nothing secret is drawn from it.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Words below `bound`, edges among them.
    fn below(&mut self, bound: u64, len: usize) -> Vec<u64> {
        let edges = [bound - 1, 0, 1, bound / 2, bound / 2 + 1, bound - 2];
        (0..len)
            .map(|i| {
                let r = self.next();
                if i == 0 || r.is_multiple_of(4) { edges[(r >> 8) as usize % edges.len()] } else { r % bound }
            })
            .collect()
    }
}

fn limbs() -> Vec<Limb> {
    let mut primes: Vec<u64> =
        [28, 40, 47, 48, 49, 50, 60].into_iter().map(|bits| ntt_primes(N, bits, 1, &[]).unwrap()[0]).collect();
    for bits in [39u32, 49] {
        let first = (1u64 << bits) + 1;
        primes.extend((0..).map(|i| first + i * 2 * N as u64).find(|p| is_prime(*p)));
    }
    let families = |q| Family::ALL.into_iter().filter_map(move |f| Limb::with_family(q, N, f).ok());
    primes.into_iter().flat_map(families).collect()
}

#[test]
fn digits_recompose_and_are_small() {
    let mut words = Words(1);
    for limb in limbs() {
        let (q, bits) = (limb.modulus(), limb.modulus().bits());
        for (base_log, levels) in [(1, 1), (4, 3), (7, 4), (18, 1), (9, 2), (bits, 1), (bits / 3, 3)] {
            if base_log * levels > bits {
                continue;
            }
            let gadget = Gadget { base_log, levels };
            let a = words.below(limb.q(), N);
            let mut digits = vec![1; levels as usize * N];
            digits[..N].copy_from_slice(&a);
            limb.decompose(&mut digits, gadget);
            let (b, mut both) = (words.below(limb.q(), N), vec![1; levels as usize * N]);
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
    let mut words = Words(2);
    for limb in limbs() {
        let q = limb.modulus();
        let a = words.below(limb.q(), N);
        for steps in [0, 1, 7, 8, 255, N - 1, N, N + 1, 2 * N - 1, words.next() as usize % (2 * N)] {
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
    let mut words = Words(3);
    for limb in limbs() {
        let q = limb.modulus();
        let table = MonomialTable::new(&limb);
        for (groups, rows, columns) in [(1, 2, 2), (1, 3, 1), (3, 2, 2), (7, 4, 3), (1, 5, MAX_COLUMNS), (3, 4, 4)] {
            let mut m = PackedMatrix::zeroed(&limb, groups, rows, columns);
            let mut entries = Vec::new();
            for i in 0..groups * rows * columns {
                let values = if i % 3 == 0 { vec![limb.q() - 1; N] } else { words.below(limb.q(), N) };
                m.set(i / columns / rows, i / columns % rows, i % columns, &values);
                entries.push(values);
            }
            let mut back = vec![0; N];
            m.get(groups - 1, rows - 1, columns - 1, &mut back);
            assert_eq!(back, entries[entries.len() - 1]);
            let mut gathered = PackedMatrix::gather(vec![PackedMatrix::zeroed(&limb, 1, 1, 2), m.clone(), m]);
            gathered[0].set(0, 0, 1, &back);
            let (m, _) = (gathered.remove(1), gathered);
            let mut digits = words.below(limb.q(), rows * N);
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

#[test]
fn scaled_rows() {
    let mut words = Words(4);
    for family in Family::ALL.into_iter().filter(|f| f.available()) {
        for (len, count) in [(1, 1), (16, 8), (33, 19), (640, 7)] {
            let rows: Vec<u32> = (0..len * count).map(|_| words.next() as u32).collect();
            let digits: Vec<i32> = (0..count).map(|_| words.next() as i32 >> 20).collect();
            let start: Vec<u32> = (0..len).map(|_| words.next() as u32).collect();
            let mut acc = start.clone();
            sub_scaled_rows(family, &mut acc, &rows, &digits);
            for i in 0..len {
                let sum: i64 = (0..count).map(|r| i64::from(rows[r * len + i]) * i64::from(digits[r])).sum();
                assert_eq!(acc[i], start[i].wrapping_sub(sum as u32));
            }
        }
    }
}
