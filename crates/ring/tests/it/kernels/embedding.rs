//! The canonical embedding against its definition, every family.

use num_complex::Complex64;
use sudare_ring::embedding::{Embedding, Parts};
use sudare_ring::{Family, RingError};
use sudare_testkit::Random;

fn families(n: usize) -> Vec<(Family, Embedding)> {
    Family::ALL.into_iter().filter_map(|f| Embedding::with_family(n, f).ok().map(|e| (f, e))).collect()
}

/// Numbers in the unit square, the same on every run.
fn sample(count: usize) -> Vec<Complex64> {
    let mut random = Random(7);
    (0..count).map(|_| Complex64::new(random.unit(), random.unit())).collect()
}

fn largest(x: &[Complex64]) -> f64 {
    x.iter().map(|x| x.norm()).fold(0.0, f64::max)
}

fn distance(x: &[Complex64], y: &[Complex64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max)
}

#[test]
fn slots_are_values_at_powers_of_five() {
    for n in [512usize, 1024] {
        let packed = sample(n / 2);
        let coefficient = |i: usize| if i < n / 2 { packed[i].re } else { packed[i - n / 2].im };
        let roots: Vec<Complex64> =
            (0..2 * n).map(|k| Complex64::from_polar(1.0, std::f64::consts::PI * k as f64 / n as f64)).collect();
        let mut exponent = 1;
        let mut expected = Vec::new();
        for _ in 0..n / 2 {
            expected.push((0..n).map(|i| roots[i * exponent % (2 * n)] * coefficient(i)).sum::<Complex64>());
            exponent = exponent * 5 % (2 * n);
        }
        for (family, embedding) in families(n) {
            let mut slots = packed.clone();
            embedding.embed(&mut slots);
            let error = distance(&slots, &expected) / largest(&expected);
            assert!(error < 1e-13, "n = {n}, {}: {error:e}", family.name());
            embedding.embed_inverse(&mut slots);
            let error = distance(&slots, &packed) / largest(&packed);
            assert!(error < 1e-13, "n = {n}, {}: {error:e}", family.name());
        }
    }
}

#[test]
fn families_agree_and_round_trip_at_every_degree() {
    for bits in 9..=17 {
        let n = 1usize << bits;
        let start = sample(n / 2);
        let mut reference: Option<Vec<Complex64>> = None;
        for (family, embedding) in families(n) {
            assert_eq!(embedding.slots(), n / 2);
            let mut x = start.clone();
            embedding.embed_inverse(&mut x);
            let first = reference.get_or_insert_with(|| x.clone());
            let error = distance(&x, first) / largest(first);
            assert!(error < 1e-13, "n = {n}, {}: {error:e}", family.name());
            embedding.embed(&mut x);
            let error = distance(&x, &start) / largest(&start);
            assert!(error < 1e-13, "n = {n}, {}: {error:e}", family.name());
        }
    }
}

#[test]
fn a_product_of_polynomials_is_one_of_slots() {
    let n = 512;
    let e = Embedding::new(n).unwrap();
    // X^3 times X^510 is −X: coefficient 1 as a real part, 510 as an imaginary one.
    let monomial = |i: usize, sign: f64| {
        let mut x = vec![Complex64::ZERO; n / 2];
        x[i % (n / 2)] = if i < n / 2 { Complex64::new(sign, 0.0) } else { Complex64::new(0.0, sign) };
        e.embed(&mut x);
        x
    };
    let product: Vec<Complex64> = monomial(3, 1.0).iter().zip(monomial(510, 1.0)).map(|(x, y)| x * y).collect();
    assert!(distance(&product, &monomial(1, -1.0)) < 1e-13);
}

#[test]
fn refuses_bad_degrees() {
    for n in [0, 256, 1000, 1 << 18] {
        assert!(matches!(Embedding::new(n), Err(RingError::Degree { .. })), "{n}");
    }
}

/// Slices that are not aligned give the bits of those that are.
#[test]
fn parts_lie_anywhere() {
    let n = 1024;
    let slots = n / 2;
    for (family, embedding) in families(n) {
        let mut parts = Parts::zeroed(slots);
        let (re, im) = parts.split_mut();
        for (i, x) in sample(slots).into_iter().enumerate() {
            (re[i], im[i]) = (x.re, x.im);
        }
        let mut words: Vec<f64> = [&[0.0][..], re, im].concat();
        let (x, y) = words[1..].split_at_mut(slots);
        embedding.embed_inverse_split(re, im);
        embedding.embed_inverse_split(x, y);
        assert!(x == re && y == im, "{}", family.name());
        embedding.embed_split(re, im);
        embedding.embed_split(x, y);
        assert!(x == re && y == im, "{}", family.name());
        assert_eq!(parts.split().0, &words[1..=slots]);
    }
}
