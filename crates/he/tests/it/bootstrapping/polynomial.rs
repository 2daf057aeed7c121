//! Polynomials of ciphertexts against plain evaluation and against the noise formula.

use crate::world::{Owner, complex, largest_error, literal, mean_square_error, reals};
use num_complex::Complex64;
use sudare_he::HeError;
use sudare_he::circuits::polynomial::{Basis, Polynomial, PolynomialCircuit, fit};
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_testkit::{Random, sized};

fn coefficients(count: usize, seed: u64) -> Vec<Complex64> {
    let mut numbers = Random(seed);
    (0..count).map(|_| Complex64::new(numbers.unit(), numbers.unit()) / (count as f64).sqrt()).collect()
}

fn polynomial(basis: Basis, count: usize, seed: u64) -> Polynomial {
    match basis {
        Basis::Power => Polynomial::power(&coefficients(count, seed), 1.0),
        Basis::Chebyshev => Polynomial::chebyshev(&coefficients(count, seed), -1.0, 1.0),
    }
    .unwrap()
}

#[test]
fn all_degrees_in_both_bases() {
    let params = literal(10, &[vec![50], vec![45; 6]].concat(), &[48, 48], 2, 45).build().unwrap();
    let owner = Owner::new(&params);
    let server = owner.server(&[]);
    let mut numbers = Random(1);
    for basis in [Basis::Power, Basis::Chebyshev] {
        for degree in [1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 21, 31, 37, 63] {
            let p = polynomial(basis, degree + 1, degree as u64);
            let x = match basis {
                Basis::Power => complex(&mut numbers, 512),
                Basis::Chebyshev => reals(&mut numbers, 512),
            };
            // One level above what it needs, and an input above that.
            let level = p.depth();
            let (scale, target) = (44.2f64.exp2(), 45.7f64.exp2());
            let circuit = PolynomialCircuit::new(&params, &p, level, scale, target).unwrap();
            let input = owner.encrypt(&x, params.max_level(), scale, 1.0);
            let y = server.polynomial(&input, &circuit).unwrap();
            assert_eq!(y.level(), 0, "{basis:?} of degree {degree}");
            assert!((y.scale() / target - 1.0).abs() < 1e-13);
            let wanted: Vec<Complex64> = x.iter().map(|x| p.evaluate(*x)).collect();
            let error = largest_error(&owner.decrypt(&y), &wanted);
            assert!(error < y.error_bound(), "{basis:?} of degree {degree}: {error} and {}", y.error_bound());
            assert!(y.error_bound() < 1e-4 && error < 1e-6, "{basis:?} of degree {degree}: {error}");
            assert!(wanted.iter().all(|w| w.norm() <= y.bound()));
        }
    }
}

#[test]
fn intervals_and_discs_of_any_size() {
    let params = literal(10, &[vec![50], vec![45; 4]].concat(), &[48, 48], 2, 45).build().unwrap();
    let owner = Owner::new(&params);
    let server = owner.server(&[]);
    let mut numbers = Random(2);
    let fitted = fit::minimax(|x| 1.0 / x, &[(0.5, 8.0)], 15).unwrap();
    let x: Vec<Complex64> = (0..512).map(|_| (4.25 + 3.75 * numbers.unit()).into()).collect();
    let circuit = PolynomialCircuit::new(&params, &fitted.polynomial, 4, 40f64.exp2(), 40f64.exp2()).unwrap();
    let y = server.polynomial(&owner.encrypt(&x, 4, 40f64.exp2(), 8.0), &circuit).unwrap();
    let wanted: Vec<Complex64> = x.iter().map(|x| 1.0 / x).collect();
    let error = largest_error(&owner.decrypt(&y), &wanted);
    assert!(error < 1.001 * fitted.error + y.error_bound(), "{error}, {}, {}", fitted.error, y.error_bound());

    let c = [1.0, -0.5, 0.25, 0.125];
    let p = Polynomial::power(&c, 20.0).unwrap();
    let x: Vec<Complex64> = complex(&mut numbers, 512).iter().map(|z| z * 20.0).collect();
    let circuit = PolynomialCircuit::new(&params, &p, 2, 40f64.exp2(), 36f64.exp2()).unwrap();
    let y = server.polynomial(&owner.encrypt(&x, 2, 40f64.exp2(), 20.0), &circuit).unwrap();
    let wanted: Vec<Complex64> = x.iter().map(|x| 1.0 - 0.5 * x + 0.25 * x * x + 0.125 * x * x * x).collect();
    assert!(largest_error(&owner.decrypt(&y), &wanted) < y.error_bound());
}

#[test]
fn variance_is_that_of_the_formula() {
    let (keys, tolerance) = sized((50, 0.06), (200, 0.03));
    let params = literal(11, &[vec![50], vec![42; 5]].concat(), &[47, 47], 2, 42).build().unwrap();
    for (basis, count) in [(Basis::Chebyshev, 32), (Basis::Power, 14)] {
        let p = polynomial(basis, count, 5);
        let (level, scale) = (params.max_level(), 41f64.exp2());
        let circuit = PolynomialCircuit::new(&params, &p, level, scale, 41f64.exp2()).unwrap();
        let n = params.degree() as f64;
        let input_variance = n * (ERROR_VARIANCE + ROUNDING_VARIANCE) / (scale * scale);
        let (mut measured, mut predicted) = (0.0, 0.0);
        let mut numbers = Random(3);
        // Noise differs by keys more than by inputs: so many of those that the tolerance is six deviations.
        for _ in 0..keys {
            let owner = Owner::new(&params);
            let server = owner.server(&[]);
            for _ in 0..2 {
                let x = reals(&mut numbers, params.slots());
                let y = server.polynomial(&owner.encrypt(&x, level, scale, 1.0), &circuit).unwrap();
                let wanted: Vec<Complex64> = x.iter().map(|x| p.evaluate(*x)).collect();
                measured += mean_square_error(&owner.decrypt(&y), &wanted);
                predicted += circuit.variance(&x, input_variance);
            }
        }
        let ratio = measured / predicted;
        assert!((ratio - 1.0).abs() < tolerance, "{basis:?}: measured variance is {ratio:.4} of the formula's");
    }
}

#[test]
fn same_bits_on_any_threads_and_operations_as_planned() {
    let params = literal(10, &[vec![50], vec![45; 5]].concat(), &[48, 48, 48], 3, 45).build().unwrap();
    let owner = Owner::new(&params);
    let server = owner.server(&[]);
    let p = polynomial(Basis::Chebyshev, 32, 7);
    let circuit = PolynomialCircuit::new(&params, &p, 5, params.scale(), params.scale()).unwrap();
    let x = owner.encrypt(&reals(&mut Random(4), 512), 5, params.scale(), 1.0);
    let bits = |threads: usize| {
        let y = Threads::new(threads).run(|| server.polynomial(&x, &circuit)).unwrap();
        y.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>()
    };
    let one = bits(1);
    assert!(bits(2) == one && bits(3) == one && bits(5) == one);
    server.reset_counters();
    server.polynomial(&x, &circuit).unwrap();
    let (done, planned) = (server.counters(), circuit.operations());
    assert_eq!((planned.products, planned.relinearisations), (13, 10));
    assert_eq!((done.mult, done.key_switches, done.rot), (13, 10, 0));
}

#[test]
fn refusals_name_the_state() {
    let params = literal(10, &[50, 45, 45], &[50], 1, 45).build().unwrap();
    let owner = Owner::new(&params);
    let server = owner.server(&[]);
    let p = polynomial(Basis::Chebyshev, 4, 1);
    let scale = params.scale();
    let planned = |level, scale| PolynomialCircuit::new(&params, &p, level, scale, scale);
    assert!(matches!(planned(1, scale), Err(HeError::Rlwe(RlweError::OutOfLevels { needed: 2, level: 1, .. }))));
    assert!(matches!(planned(3, scale), Err(HeError::Rlwe(RlweError::NoSuchLevel { .. }))));
    assert!(matches!(planned(2, 0.0), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    let circuit = planned(2, scale).unwrap();
    let x = |level, scale, bound| owner.encrypt(&[Complex64::ZERO], level, scale, bound);
    assert!(matches!(
        server.polynomial(&x(1, scale, 1.0), &circuit),
        Err(HeError::Rlwe(RlweError::NoSuchLevel { .. }))
    ));
    assert!(matches!(server.polynomial(&x(2, scale * 1.01, 1.0), &circuit), Err(HeError::ScaleMismatch { .. })));
    assert!(matches!(server.polynomial(&x(2, scale, 1.5), &circuit), Err(HeError::TooLarge { .. })));
    let stranger = Owner::new(&params);
    let foreign = stranger.encrypt(&[Complex64::ZERO], 2, scale, 1.0);
    assert!(matches!(server.polynomial(&foreign, &circuit), Err(HeError::Rlwe(RlweError::WrongKey { .. }))));
    let constant = Polynomial::power(&[2.0], 1.0).unwrap();
    assert!(PolynomialCircuit::new(&params, &constant, 2, scale, scale).is_err());
}
