//! Slot-packed products against plain ones: results, predicted errors, operation counts.

use crate::common;

use common::{World, require, small, spec};
use proptest::prelude::*;
use sudare_expr::Shape;
use sudare_he::ckks::ParamsLiteral;
use sudare_methods::slots::cube::Improvements;
use sudare_methods::{Method, Requirements};
use sudare_rlwe::security::Security;

#[test]
fn paper_counts_and_errors() {
    // d, Table 7's mean of the largest errors.
    for (d, table) in [(4usize, 1.34e-5), (8, 2.36e-5), (16, 3.91e-5)] {
        let w = World::new(&spec(Shape::new(d, d, d), Method::Paper3d, ParamsLiteral::paper_matmul()));
        let log = u64::from(d.trailing_zeros());
        let mut sum = 0.0;
        let runs = if d == 4 { 20 } else { 3 };
        for seed in 0..runs {
            let (error, c) = w.run(seed);
            assert_eq!((c.add, c.rot, c.cmult, c.mult), (5 * log, 7 * log, 3, 1), "d = {d}");
            sum += error;
        }
        let mean = sum / runs as f64;
        assert!(mean <= table, "d = {d}: {mean:e}");
        let predicted = w.figures.error;
        assert!(mean <= predicted && predicted <= 30.0 * mean, "d = {d}: {mean:e}, predicted {predicted:e}");
    }
}

#[test]
fn jiang_counts() {
    for (d, rot) in [(4usize, 19), (8, 36), (16, 65)] {
        let w = World::new(&spec(Shape::new(d, d, d), Method::Jiang, small(10, 3)));
        let (error, c) = w.run(d as u64);
        let wide = d as u64;
        // Four of the laid-out rotations are by zero and not counted.
        assert_eq!((c.add, c.rot + 4, c.cmult, c.mult), (6 * wide - 6, rot, 4 * wide - 2, wide), "d = {d}");
        let predicted = w.figures.error;
        assert!(error <= predicted && predicted <= 100.0 * error, "d = {d}: {error:e}, predicted {predicted:e}");
    }
}

#[test]
fn jiang_serves_shapes_and_batches() {
    let shapes = [(1, 1, 1, 1), (1, 5, 1, 3), (3, 2, 4, 2), (4, 4, 4, 40), (8, 3, 5, 8), (16, 16, 16, 2), (2, 9, 7, 1)];
    for (i, (m, k, n, batch)) in shapes.into_iter().enumerate() {
        let shape = Shape { m, k, n, batch };
        World::new(&spec(shape, Method::Jiang, small(10, 3))).check(i as u64);
        World::new(&spec(shape, Method::JiangBsgs, small(10, 3))).check(i as u64);
    }
}

fn every_improvement() -> Vec<Improvements> {
    let mut out = Vec::new();
    for bits in 0..64u32 {
        for unroll in [0, 1, 2, 3] {
            let on = |i: u32| bits >> i & 1 == 1;
            out.push(Improvements {
                merged_rotations: on(0),
                exact_ring: on(1),
                spare_slots: on(2),
                real_pairing: on(3),
                unroll,
                rescale_first: on(4),
                fused_masks: on(5) && unroll > 0,
                clean_output: unroll % 2 == 1,
            });
        }
    }
    out
}

#[test]
fn every_combination_of_improvements_is_right() {
    // A ring of exactly d³ slots, and one with room to spare, in turn.
    for (i, options) in every_improvement().into_iter().enumerate() {
        let d = if options.exact_ring && i % 2 == 0 && !options.real_pairing { 8 } else { 4 };
        let shape = Shape { batch: 1 + i % 3, ..Shape::new(d, d, d) };
        World::new(&spec(shape, Method::Improved3d(options), small(10, options.depth()))).check(i as u64);
    }
}

#[test]
fn rotations_are_merged_and_masks_saved() {
    let count = |options: Improvements| {
        let shape = Shape::new(8, 8, 8);
        World::new(&spec(shape, Method::Improved3d(options), small(11, options.depth()))).run(1).1
    };
    let printed = count(Improvements::NONE);
    assert_eq!((printed.add, printed.rot, printed.cmult, printed.mult), (15, 21, 3, 1));
    let merged = count(Improvements { merged_rotations: true, ..Improvements::NONE });
    assert_eq!((merged.rot, merged.cmult), (15, 3));
    let exact = count(Improvements { merged_rotations: true, exact_ring: true, ..Improvements::NONE });
    assert_eq!((exact.rot, exact.cmult), (15, 2));
    let options = Improvements { merged_rotations: true, exact_ring: true, real_pairing: true, ..Improvements::NONE };
    assert_eq!(count(options).rot, 14);
}

#[test]
fn candidates_hold_what_they_promise() {
    for (d, error) in [(4usize, 1.34e-5), (16, 3.91e-5)] {
        for decrypt_next in [true, false] {
            let req = Requirements {
                shape: Shape::new(d, d, d),
                max_abs: [1.0; 2],
                error,
                security: Security::Bits128,
                fresh: [false; 2],
                decrypt_next,
            };
            let found = sudare_methods::products::improved3d::candidates(&req);
            assert!(!found.is_empty());
            let least = found.iter().map(|s| s.params.log_n).min();
            assert_eq!(least, Some(13), "{found:?}");
            let spec = found.iter().find(|s| Some(s.params.log_n) == least).unwrap();
            let w = World::new(spec);
            let measured = w.check(3);
            let predicted = w.figures.error;
            assert!(predicted <= error && predicted <= 100.0 * measured, "{predicted:e} {measured:e}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn improved_serves_any_shape(m in 1usize..9, k in 1usize..9, n in 1usize..9, batch in 1usize..5, seed: u32,
                                 real_pairing: bool, clean_output: bool) {
        let options = Improvements { real_pairing, clean_output, ..Improvements::ALL };
        let shape = Shape { m, k, n, batch };
        World::new(&spec(shape, Method::Improved3d(options), small(10, options.depth()))).check(u64::from(seed));
    }
}

/// Sides that are coprime, that have to be raised, and of one.
#[test]
fn bicyclic_products() {
    for (m, k, n, batch) in [(3, 5, 7, 1), (8, 8, 8, 2), (4, 6, 10, 1), (1, 9, 1, 1), (12, 1, 5, 2)] {
        let w = World::new(&spec(Shape { m, k, n, batch }, Method::Bicyclic, small(11, 1)));
        let (error, counters) = w.run(k as u64);
        assert!(error <= w.figures.error, "{m}×{k}×{n}: {error:e}, predicted {:e}", w.figures.error);
        assert_eq!(counters.rot, (2 * (k - 1) * batch) as u64);
    }
    let specs = sudare_methods::products::bicyclic::candidates(&require(Shape::new(20, 6, 9), [2.0, 3.0], 1e-5));
    assert!(World::new(&specs[0]).run_within(3, [2.0, 3.0], true, true).0 <= 1e-5);
    let many = spec(Shape::new(4, 65, 4), Method::Bicyclic, small(11, 1));
    assert!(matches!(many.build(), Err(sudare_methods::MatrixError::Method { .. })));
}
