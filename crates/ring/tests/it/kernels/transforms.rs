//! Transforms against the definition, and against each other at every degree.

use super::reference::Reference;
use sudare_ring::kernel::Ahead;
use sudare_ring::order::{bit_reverse, exponent};
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Family, Limb, Modulus};
use sudare_testkit::{Random, sized};

const DEGREES: std::ops::RangeInclusive<u32> = 9..=17;
const BITS: [u32; 11] = [20, 30, 40, 46, 47, 48, 49, 50, 55, 60, 61];

/// The largest friendly prime of that many bits: the edge of the range.
fn prime(n: usize, bits: u32) -> u64 {
    ntt_primes(n, bits, 1, &[]).expect("a prime exists")[0]
}

fn families(q: u64) -> Vec<Family> {
    let modulus = Modulus::new(q).expect("in range");
    Family::ALL.into_iter().filter(|f| f.serves(&modulus)).collect()
}

fn limb(q: u64, n: usize, family: Family) -> Limb {
    Limb::with_family(q, n, family).expect("served")
}

fn unit(n: usize, at: usize, value: u64) -> Vec<u64> {
    let mut a = vec![0; n];
    a[at] = value;
    a
}

/// Random words, the extremes, words that alternate between them, and single coefficients, in `make test` up to N = 2^14.
fn inputs(n: usize, q: u64) -> Vec<Vec<u64>> {
    let extremes = |mask: usize| (0..n).map(|i| if i & mask == 0 { q - 1 } else { 0 }).collect::<Vec<_>>();
    let mut all = vec![Random(q ^ n as u64).words(q, n), vec![0; n], vec![q - 1; n], extremes(1), extremes(n / 2)];
    if n <= sized(1 << 14, usize::MAX) {
        all.extend([0, 1, 7, 8, 63, 64, n / 2, n - 1].map(|at| unit(n, at, q - 1)));
    }
    all
}

fn evaluate(q: &Modulus, a: &[u64], x: u64) -> u64 {
    a.iter().rev().fold(0, |sum, c| q.add(q.mul(sum, x), *c))
}

#[test]
fn asking_ahead_changes_nothing() {
    let bytes = vec![1u8; 5 << 16];
    for bits in [30, 46, 48, 49, 50, 60] {
        for log_n in DEGREES {
            let n = 1usize << log_n;
            let q = prime(n, bits);
            for family in families(q) {
                let (limb, a) = (limb(q, n, family), Random(8).words(q, n));
                let (mut plain, mut ahead) = (a.clone(), a.clone());
                limb.forward(&mut plain);
                let mut key = Ahead::of(&bytes);
                // Some transforms have all they may ask for, one a part, the last nothing.
                for _ in 0..=bytes.len() / (16 * n) {
                    ahead.copy_from_slice(&a);
                    limb.forward_ahead(&mut ahead, &mut key);
                    assert_eq!(ahead, plain, "{family:?} N = {n}, q = {q}");
                }
                for bytes in [&bytes[..], &bytes[..100], &[]] {
                    let mut back = plain.clone();
                    limb.inverse_ahead(&mut back, &mut Ahead::of(bytes));
                    assert_eq!(back, a, "{family:?} N = {n}, q = {q}");
                }
            }
        }
    }
}

#[test]
fn values_are_those_of_the_definition() {
    for bits in BITS {
        for (log_n, step) in [(9u32, 1usize), (10, 97), (12, 997), (13, 2503), (14, 4999), (15, 9973), (17, 65_521)] {
            let n = 1usize << log_n;
            let q = prime(n, bits);
            let a = Random(3).words(q, n);
            for family in families(q) {
                let limb = limb(q, n, family);
                let mut values = a.clone();
                limb.forward(&mut values);
                for i in (0..n).step_by(step) {
                    let x = limb.modulus().pow(limb.root(), exponent(n, i) as u64);
                    assert_eq!(
                        values[i],
                        evaluate(limb.modulus(), &a, x),
                        "{family:?} {bits} bits, n = {n}, value {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn families_agree_bit_for_bit_and_invert() {
    for log_n in DEGREES {
        let n = 1usize << log_n;
        for bits in BITS {
            let q = prime(n, bits);
            let limbs: Vec<_> = families(q).into_iter().map(|f| limb(q, n, f)).collect();
            let reference = Reference::new(&limbs[0]);
            for (which, a) in inputs(n, q).into_iter().enumerate() {
                let mut want = a.clone();
                reference.forward(&mut want);
                let mut back = want.clone();
                reference.inverse(&mut back);
                assert!(back == a, "reference, {bits} bits, n = {n}, input {which}");
                // The input as values as well, whose inverse has the largest sums.
                reference.inverse(&mut back);
                for other in &limbs {
                    let what = format!("{:?}, {bits} bits, n = {n}, input {which}", other.family());
                    let mut got = a.clone();
                    other.forward(&mut got);
                    assert!(got == want, "forward, {what}");
                    other.inverse(&mut got);
                    assert!(got == a, "round trip, {what}");
                    other.inverse(&mut got);
                    assert!(got == back, "inverse, {what}");
                    got.fill(7);
                    other.inverse_of(&mut got, &a);
                    assert!(got == back, "inverse of a row, {what}");
                    // a·want + a, whose terms are the largest where a's are.
                    let mut sum = a.clone();
                    limbs[0].mul_assign_add(&mut sum, &want, &a);
                    reference.inverse(&mut sum);
                    other.inverse_of_sum(&mut got, &a, &want, &a);
                    assert!(got == sum, "inverse of a sum, {what}");
                }
            }
        }
    }
}

#[test]
fn partial_transforms_agree_for_all_layers() {
    for log_n in [9u32, 10, 11, 13, 14] {
        let n = 1usize << log_n;
        for bits in BITS {
            let q = prime(n, bits);
            let limbs: Vec<_> = families(q).into_iter().map(|f| limb(q, n, f)).collect();
            let reference = Reference::new(&limbs[0]);
            for a in [Random(5).words(q, n), vec![q - 1; n], unit(n, 3, 1)] {
                for layers in 0..=log_n {
                    let mut want = a.clone();
                    reference.forward_partial(&mut want, layers);
                    let mut back = a.clone();
                    reference.inverse_partial(&mut back, layers);
                    for other in &limbs {
                        let what = format!("{:?}, {bits} bits, n = {n}, {layers} layers", other.family());
                        let mut got = a.clone();
                        other.forward_partial(&mut got, layers);
                        assert!(got == want, "forward, {what}");
                        other.inverse_partial(&mut got, layers);
                        assert!(got == a, "round trip, {what}");
                        other.inverse_partial(&mut got, layers);
                        assert!(got == back, "inverse, {what}");
                    }
                }
            }
        }
    }
}

#[test]
fn partial_transforms_are_residues() {
    let (n, layers) = (512usize, 5u32);
    for bits in BITS {
        let q = prime(n, bits);
        for family in families(q) {
            let limb = limb(q, n, family);
            let modulus = limb.modulus();
            let a = Random(11).words(q, n);
            let mut got = a.clone();
            limb.forward_partial(&mut got, layers);
            let d = n >> layers;
            for (i, block) in got.chunks_exact(d).enumerate() {
                let omega = modulus.pow(limb.root(), (d * (2 * bit_reverse(i, layers) + 1)) as u64);
                for (j, value) in block.iter().enumerate() {
                    let coefficients: Vec<u64> = a.iter().skip(j).step_by(d).copied().collect();
                    assert_eq!(*value, evaluate(modulus, &coefficients, omega), "{family:?}, {bits} bits");
                }
            }
        }
    }
}

#[test]
fn transforms_need_no_alignment() {
    let n = 1 << 12;
    for bits in BITS {
        let q = prime(n, bits);
        for family in families(q) {
            let limb = limb(q, n, family);
            let a = Random(13).words(q, n);
            let mut want = a.clone();
            limb.forward(&mut want);
            for offset in 1..8 {
                let mut buffer = vec![0; n + 8];
                buffer[offset..offset + n].copy_from_slice(&a);
                limb.forward(&mut buffer[offset..offset + n]);
                assert!(buffer[offset..offset + n] == want, "{family:?}");
                limb.inverse(&mut buffer[offset..offset + n]);
                assert!(buffer[offset..offset + n] == a && buffer[offset + n..].iter().all(|x| *x == 0), "{family:?}");
            }
        }
    }
}
