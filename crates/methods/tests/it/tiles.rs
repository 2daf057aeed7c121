//! Spread and tiled products, and the operations of tiled expressions, against plain matrices.

use crate::common;

use common::{World, random, small, spec};
use proptest::prelude::*;
use sudare_expr::Matrix;
use sudare_expr::Shape;
use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor, Evaluator};
use sudare_methods::products::spread3d::SpreadOptions;
use sudare_methods::slots::cube::Improvements;
use sudare_methods::slots::tiles::{Axis, TileLayout};
use sudare_methods::{Method, Requirements};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;
use sudare_rlwe::simulated::Simulated;

fn spreads() -> Vec<SpreadOptions> {
    let mut out = Vec::new();
    for real_pairing in [false, true] {
        for fold in [false, true] {
            for unroll in [0, 1, 2] {
                out.push(SpreadOptions { real_pairing, fold, unroll });
            }
        }
    }
    out
}

#[test]
fn spread_counts() {
    for (d, rot) in [(4usize, 1), (8, 2), (16, 3)] {
        let options = SpreadOptions { unroll: 0, ..SpreadOptions::default() };
        let w = World::new(&spec(Shape::new(d, d, d), Method::Spread3d(options), small(12, 1)));
        let (_, c) = w.run(1);
        assert_eq!((c.rot, c.cmult, c.mult), (rot, 0, 1));
        let options = SpreadOptions { fold: false, ..options };
        let w = World::new(&spec(Shape::new(d, d, d), Method::Spread3d(options), small(12, 1)));
        assert_eq!(w.run(2).1.key_switches, 0);
    }
}

#[test]
fn spread_candidates() {
    for decrypt_next in [true, false] {
        let req = Requirements {
            shape: Shape::new(16, 16, 16),
            max_abs: [1.0; 2],
            error: 1e-5,
            security: Security::Bits128,
            fresh: [true; 2],
            decrypt_next,
        };
        let found = sudare_methods::products::spread3d::candidates(&req);
        assert_eq!(found.is_empty(), !decrypt_next);
        for spec in &found {
            let w = World::new(spec);
            let error = w.check(5);
            let predicted = w.figures.error;
            assert!(predicted <= 1e-5 && predicted <= 100.0 * error, "{predicted:e} {error:e}");
        }
    }
}

#[test]
fn tiles_serve_many_shapes() {
    let options = Improvements::ALL;
    for (i, (m, k, n)) in [(9, 17, 5), (8, 8, 8), (1, 20, 1), (13, 1, 9), (20, 3, 2)].into_iter().enumerate() {
        let shape = Shape { m, k, n, batch: 1 + i % 2 };
        let w = World::new(&spec(shape, Method::Tiled { tile: 8, options }, small(10, 2)));
        w.check(i as u64);
        let counters = w.run(3).1;
        // One relinearisation for each tile of the result.
        let tiles = |x: usize| x.div_ceil(8);
        let outputs = tiles(m) * tiles(n) * shape.batch;
        assert_eq!(counters.mult as usize, outputs * tiles(k));
        assert_eq!((counters.key_switches - counters.rot) as usize, outputs);
    }
    let clean = Improvements { clean_output: true, real_pairing: true, ..options };
    World::new(&spec(Shape::new(9, 10, 11), Method::Tiled { tile: 4, options: clean }, small(10, 3))).check(7);
}

#[test]
fn tiled_expressions() {
    let params = small(10, 3).build().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    for (rows, cols, tile, stride) in [(5, 7, 4, 1), (8, 3, 8, 4), (1, 9, 2, 3), (3, 2, 1, 1)] {
        let layout = TileLayout::new(rows, cols, tile, stride).unwrap();
        let top = params.max_level();
        let dry = Evaluator::with_backend(&params, Simulated::new(&params)).unwrap();
        let at = EncodeAt { level: top, scale: params.scale(), max_abs: 1.0 };
        let tiles = [dry.encryptions(at, layout.ciphertexts()).unwrap()];
        layout.transpose(&dry, layout.transposition(&dry, top).unwrap().as_ref(), tiles[..].into()).unwrap();
        for axis in [Axis::Rows, Axis::Columns] {
            layout.sum(&dry, axis, tiles[..].into()).unwrap();
        }
        let elements: Vec<(u64, usize)> = dry.backend().ledger().galois.into_iter().collect();
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
        let e = Evaluator::new(&params, keys).unwrap();
        let map = layout.transposition(&e, top).unwrap();
        let encoder = Encoder::new(&params);
        let encryptor = Encryptor::with_secret_key(&secret).unwrap();
        let (x, y) = (random(1, rows, cols), random(2, rows, cols));
        let encrypt = |m: &Matrix| -> Vec<_> {
            let at: EncodeAt = encoder.at_top(1.0);
            layout.encode(&encoder, m, at).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
        };
        let (a, b) = (encrypt(&x), encrypt(&y));
        let expect = |layout: TileLayout, tiles: &[sudare_he::ckks::Ciphertext], wanted: Matrix| {
            let plains: Vec<_> = tiles.iter().map(|c| Decryptor::new(&secret).decrypt(c).unwrap()).collect();
            let error = layout.decode(&params, &plains).unwrap().max_difference(&wanted);
            assert!(error < 1e-5, "{rows}×{cols} in {tile}: {error:e}");
        };
        let each =
            |f: &dyn Fn(f64, f64) -> f64| Matrix::from_fn(rows, cols, |i, j| f(x.get(i, j), y.get(i, j))).unwrap();
        expect(layout, &layout.zip(&e, a[..].into(), b[..].into(), |x, y| e.add(x, y)).unwrap(), each(&|p, q| p + q));
        expect(layout, &layout.zip(&e, a[..].into(), b[..].into(), |x, y| e.sub(x, y)).unwrap(), each(&|p, q| p - q));
        expect(
            layout,
            &layout.zip(&e, a[..].into(), b[..].into(), |x, y| e.mul_rescale(x, y)).unwrap(),
            each(&|p, q| p * q),
        );
        expect(layout, &layout.add_plain(&e, &a, &y).unwrap(), each(&|p, q| p + q));
        expect(layout, &layout.mul_plain(&e, &a, &y).unwrap(), each(&|p, q| p * q));
        expect(layout, &layout.map(&e, a[..].into(), |x| e.mul_constant(x, -0.3)).unwrap(), each(&|p, _| p * -0.3));
        let turned = layout.transpose(&e, map.as_ref(), a[..].into()).unwrap();
        expect(layout.transposed(), &turned, x.transpose());
        let down = Matrix::from_fn(1, cols, |_, j| (0..rows).map(|i| x.get(i, j)).sum()).unwrap();
        expect(layout.summed(Axis::Rows), &layout.sum(&e, Axis::Rows, a[..].into()).unwrap(), down);
        let along = Matrix::from_fn(rows, 1, |i, _| (0..cols).map(|j| x.get(i, j)).sum()).unwrap();
        expect(layout.summed(Axis::Columns), &layout.sum(&e, Axis::Columns, a[..].into()).unwrap(), along);
        assert!(layout.zip(&e, a[1..].into(), b[..].into(), |x, y| e.add(x, y)).is_err());
    }
    assert!(TileLayout::new(3, 3, 3, 1).is_err() && TileLayout::new(0, 3, 4, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn spread_serves_any_shape(m in 1usize..12, k in 1usize..70, n in 1usize..12, batch in 1usize..5, seed: u32,
                               which in 0usize..12) {
        let shape = Shape { m, k, n, batch };
        World::new(&spec(shape, Method::Spread3d(spreads()[which]), small(10, 1))).check(u64::from(seed));
    }
}
