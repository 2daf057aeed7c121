//! Linear maps with complex diagonals of all periods, in every arrangement of steps.

use crate::world::{Owner, complex, largest_error, literal, mean_square_error};
use num_complex::Complex64;
use std::collections::BTreeMap;
use sudare_he::HeError;
use sudare_he::circuits::linear_map::{Diagonals, LinearMap, MapOperations};
use sudare_he::ckks::Params;
use sudare_he::ckks::{EncodeAt, Encoder};
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_testkit::Random;

fn params() -> Params {
    literal(10, &[50, 42, 42, 42], &[48, 48], 2, 40).build().unwrap()
}

fn diagonals(steps: impl Iterator<Item = i64>, period: impl Fn(i64) -> usize) -> Diagonals<Complex64> {
    let mut numbers = Random(11);
    steps.map(|t| (t, complex(&mut numbers, period(t)))).collect()
}

fn plain(diagonals: &Diagonals<Complex64>, unit: i64, x: &[Complex64]) -> Vec<Complex64> {
    let n = x.len() as i64;
    (0..n)
        .map(|i| {
            let term =
                |(t, d): (&i64, &Vec<Complex64>)| d[i as usize % d.len()] * x[(i + t * unit).rem_euclid(n) as usize];
            diagonals.iter().map(term).sum()
        })
        .collect()
}

#[test]
fn every_arrangement_gives_the_plain_map() {
    let params = params();
    let owner = Owner::new(&params);
    let encoder = Encoder::new(&params);
    let at = EncodeAt { level: 3, scale: 42f64.exp2(), max_abs: 1.0 };
    let mixed = |t: i64| 1usize << (t.rem_euclid(10));
    let cases: Vec<(LinearMap, Diagonals<Complex64>, i64)> = vec![
        {
            let d = diagonals(-5..=5, mixed);
            (LinearMap::new(&encoder, &d, 3, 4, at).unwrap(), d, 3)
        },
        {
            let d = diagonals([-7, 0, 2, 30].into_iter(), mixed);
            (LinearMap::hoisted(&encoder, &d, 1, at).unwrap(), d, 1)
        },
        {
            let d = diagonals(0..15, mixed);
            (LinearMap::chained(&encoder, &d, 5, (2, 2), at).unwrap(), d, 5)
        },
        {
            // Gaps, among babies and among giants.
            let d = diagonals([3, 8, 9, 27].into_iter(), |_| 512);
            (LinearMap::chained(&encoder, &d, 1, (4, 2), at).unwrap(), d, 1)
        },
        {
            let d = diagonals([6].into_iter(), |_| 1);
            (LinearMap::chained(&encoder, &d, 1, (2, 2), at).unwrap(), d, 1)
        },
    ];
    let mut numbers = Random(1);
    for (case, (map, d, unit)) in cases.iter().enumerate() {
        let server = owner.server(&map.elements());
        for level in [3, 2, 1] {
            let x = complex(&mut numbers, 512);
            let input = owner.encrypt(&x, level, params.scale(), 1.0);
            server.reset_counters();
            let y = server.linear_map(&input, map).unwrap();
            let error = largest_error(&owner.decrypt(&y), &plain(d, *unit, &x));
            assert!(error < y.error_bound() && y.error_bound() < 1e-5, "case {case}: {error} {}", y.error_bound());
            assert_eq!(y.level(), level - 1);
            let MapOperations { babies, root_turns, giant_turns, diagonals } = map.operations();
            assert_eq!(server.counters().rot, (babies + root_turns + giant_turns) as u64);
            assert_eq!(server.counters().cmult, diagonals as u64);
        }
    }
    // 15 diagonals from three keys.
    assert_eq!(cases[2].0.elements().len(), 3);
}

#[test]
fn several_maps_share_a_decomposition() {
    let params = params();
    let owner = Owner::new(&params);
    let encoder = Encoder::new(&params);
    let at = EncodeAt { level: 2, scale: 42f64.exp2(), max_abs: 1.0 };
    let (d, e) = (diagonals(0..4, |_| 512), diagonals(1..3, |_| 8));
    let first = LinearMap::hoisted(&encoder, &d, 1, at).unwrap();
    let second = LinearMap::hoisted(&encoder, &e, 2, at).unwrap();
    let server = owner.server(&[first.elements(), second.elements()].concat());
    let x = complex(&mut Random(5), 512);
    let input = owner.encrypt(&x, 2, params.scale(), 1.0);
    let both = server.linear_maps(&input, &[&first, &second]).unwrap();
    assert!(largest_error(&owner.decrypt(&both[0]), &plain(&d, 1, &x)) < 1e-6);
    assert!(largest_error(&owner.decrypt(&both[1]), &plain(&e, 2, &x)) < 1e-6);
}

#[test]
fn variance_within_three_percent() {
    // Small diagonals at a small scale: rounding, switching, turns and the last division all count.
    let params = literal(11, &[50, 30, 30], &[40, 41], 2, 30).build().unwrap();
    let n = params.degree() as f64;
    let scale = 28f64.exp2();
    let input_variance = n * (ERROR_VARIANCE + ROUNDING_VARIANCE) / (scale * scale);
    for (log_diagonal, chained) in [(30.0f64, true), (22.0, true), (33.0, true), (30.0, false)] {
        let at = EncodeAt { level: 2, scale: log_diagonal.exp2(), max_abs: 1.0 };
        let d = diagonals(0..13, |t| if t % 2 == 0 { 1024 } else { 32 });
        let encoder = Encoder::new(&params);
        let map = match chained {
            true => LinearMap::chained(&encoder, &d, 1, (2, 2), at).unwrap(),
            false => LinearMap::new(&encoder, &d, 1, 4, at).unwrap(),
        };
        let (mut measured, mut predicted) = (0.0, 0.0);
        let mut numbers = Random(3);
        for _ in 0..8 {
            let owner = Owner::new(&params);
            let server = owner.server(&map.elements());
            for _ in 0..8 {
                let x = complex(&mut numbers, 1024);
                let message = x.iter().map(|z| z.norm_sqr()).sum::<f64>() / 1024.0;
                let y = server.linear_map(&owner.encrypt(&x, 2, scale, 1.0), &map).unwrap();
                measured += mean_square_error(&owner.decrypt(&y), &plain(&d, 1, &x));
                predicted += map.variance(2, scale, message, input_variance);
            }
        }
        let ratio = measured / predicted;
        assert!((ratio - 1.0).abs() < 0.03, "2^{log_diagonal}: measured variance is {ratio:.4} of the formula's");
    }
}

#[test]
fn same_bits_on_any_threads() {
    let params = params();
    let owner = Owner::new(&params);
    let at = EncodeAt { level: 3, scale: 42f64.exp2(), max_abs: 1.0 };
    let map = LinearMap::chained(&Encoder::new(&params), &diagonals(0..31, |_| 64), 8, (4, 2), at).unwrap();
    let server = owner.server(&map.elements());
    let x = owner.encrypt(&complex(&mut Random(9), 512), 3, params.scale(), 1.0);
    let bits = |threads: usize| {
        let y = Threads::new(threads).run(|| server.linear_map(&x, &map)).unwrap();
        y.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>()
    };
    let one = bits(1);
    assert!(bits(2) == one && bits(3) == one && bits(7) == one);
}

#[test]
fn repeated_diagonals_are_stored_once() {
    let params = params();
    let at = EncodeAt { level: 3, scale: 42f64.exp2(), max_abs: 1.0 };
    let encoder = Encoder::new(&params);
    let bytes = |period: usize| {
        let d: Vec<Complex64> = complex(&mut Random(2), period).into_iter().cycle().take(512).collect();
        LinearMap::hoisted(&encoder, &BTreeMap::from([(1, d)]), 1, at).unwrap().bytes()
    };
    // Six primes, two values for each slot of a period.
    assert_eq!([1, 8, 64, 512].map(bytes), [2, 16, 128, 1024].map(|words| 6 * 8 * words));
}

#[test]
fn refusals_name_the_state() {
    let params = params();
    let owner = Owner::new(&params);
    let encoder = Encoder::new(&params);
    let at = EncodeAt { level: 2, scale: 42f64.exp2(), max_abs: 1.0 };
    let one = |values: Vec<f64>| BTreeMap::from([(1i64, values)]);
    let map = |d: &Diagonals<f64>, at| LinearMap::hoisted(&encoder, d, 1, at);
    assert!(matches!(map(&BTreeMap::new(), at), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(map(&one(vec![1.0; 3]), at), Err(HeError::Rlwe(RlweError::TooManyValues { found: 3, .. }))));
    assert!(matches!(map(&one(vec![1.0; 1024]), at), Err(HeError::Rlwe(RlweError::TooManyValues { .. }))));
    assert!(matches!(map(&one(vec![1.5]), at), Err(HeError::Rlwe(RlweError::OverBound { index: 0, .. }))));
    assert!(matches!(map(&one(vec![0.0, f64::NAN]), at), Err(HeError::NotFinite { index: 1 })));
    assert!(matches!(
        map(&one(vec![1.0]), EncodeAt { level: 4, ..at }),
        Err(HeError::Rlwe(RlweError::NoSuchLevel { .. }))
    ));
    assert!(matches!(map(&one(vec![1.0]), EncodeAt { scale: 63f64.exp2(), ..at }), Err(HeError::TooLarge { .. })));
    let negative = BTreeMap::from([(-1i64, vec![1.0])]);
    assert!(matches!(
        LinearMap::chained(&encoder, &negative, 1, (2, 2), at),
        Err(HeError::Rlwe(RlweError::Parameters { .. }))
    ));

    let good = map(&one(vec![1.0]), at).unwrap();
    let input = |level| owner.encrypt(&[Complex64::ONE], level, params.scale(), 1.0);
    let keyless = owner.server(&[]);
    assert!(matches!(keyless.linear_map(&input(2), &good), Err(HeError::Rlwe(RlweError::MissingRotationKey { .. }))));
    let server = owner.server(&good.elements());
    assert!(matches!(server.linear_map(&input(3), &good), Err(HeError::Rlwe(RlweError::NoSuchLevel { .. }))));
    assert!(matches!(server.linear_map(&input(0), &good), Err(HeError::Rlwe(RlweError::OutOfLevels { .. }))));
}
