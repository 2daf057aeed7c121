//! Automorphisms in both forms, every family against the definition.

use sudare_ring::automorphism::{EvalPermutation, apply_coeff, conjugation_element, rotation_element};
use sudare_ring::order::{exponent, index_of};
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Family, Limb, Modulus, RingError};
use sudare_testkit::Random;

fn elements(n: usize) -> Vec<u64> {
    let order = 2 * n as u64;
    let mut elements: Vec<u64> = (1..200).step_by(2).collect();
    elements.extend((-5..6).map(|s| rotation_element(n, s)));
    elements.extend([order - 1, order - 3, order / 2 + 1, order / 2 - 1]);
    elements
}

#[test]
fn permutes_as_the_definition_says() {
    for n in [512usize, 1024, 8192] {
        let src: Vec<u64> = (0..n as u64).map(|i| i << 40 | i).collect();
        for g in elements(n) {
            for family in Family::ALL {
                let permutation = match EvalPermutation::with_family(n, g, family) {
                    Err(RingError::KernelMissing { .. }) => continue,
                    found => found.unwrap(),
                };
                let mut out = vec![0; n];
                permutation.apply(&mut out, &src);
                for (i, x) in out.iter().enumerate() {
                    let from = index_of(n, g as usize * exponent(n, i) % (2 * n));
                    assert_eq!(*x, src[from], "n = {n}, g = {g}, {}, value {i}", family.name());
                }
                let modulus = Modulus::new((1 << 55) + 3).unwrap();
                let mut sum: Vec<u64> = (0..n as u64).map(|i| modulus.value() - 1 - i).collect();
                permutation.apply_add(&modulus, &mut sum, &src);
                for (i, x) in sum.iter().enumerate() {
                    assert_eq!(*x, modulus.add(modulus.value() - 1 - i as u64, out[i]), "sum at {i}");
                }
            }
        }
    }
}

#[test]
fn both_forms_commute_with_the_transform() {
    let n = 1024;
    for bits in [40, 60] {
        let q = ntt_primes(n, bits, 1, &[]).unwrap()[0];
        let limb = Limb::new(q, n).unwrap();
        let a = Random(1).words(q, n);
        let mut values = a.clone();
        limb.forward(&mut values);
        for g in [3, rotation_element(n, 7), conjugation_element(n)] {
            let mut moved = vec![0; n];
            apply_coeff(limb.modulus(), g, &mut moved, &a).unwrap();
            limb.forward(&mut moved);
            let mut permuted = vec![0; n];
            EvalPermutation::new(n, g).unwrap().apply(&mut permuted, &values);
            assert_eq!(moved, permuted);
        }
    }
}

#[test]
fn rotation_elements_form_a_cycle() {
    let n = 512;
    assert_eq!(rotation_element(n, 0), 1);
    assert_eq!(rotation_element(n, 1), 5);
    assert_eq!(rotation_element(n, 256), 1);
    for s in -300i64..300 {
        assert_eq!(rotation_element(n, s) * rotation_element(n, -s) % 1024, 1);
    }
}

#[test]
fn refuses_what_names_no_automorphism() {
    for g in [0, 2, 1024, 1025, u64::MAX] {
        assert!(matches!(EvalPermutation::new(512, g), Err(RingError::GaloisElement { .. })), "{g}");
    }
    for n in [0, 256, 513, 1 << 18] {
        assert!(matches!(EvalPermutation::new(n, 3), Err(RingError::Degree { .. })), "{n}");
    }
    let q = sudare_ring::Modulus::new(12289).unwrap();
    assert!(matches!(apply_coeff(&q, 2, &mut [0; 8], &[0; 8]), Err(RingError::GaloisElement { .. })));
    assert!(matches!(apply_coeff(&q, 3, &mut [0; 4], &[0; 8]), Err(RingError::Length { .. })));
    assert!(matches!(apply_coeff(&q, 3, &mut [], &[]), Err(RingError::Degree { .. })));
}
