//! Slot-packed products against plain ones: results, predicted errors, operation counts.

use proptest::prelude::*;
use sudare_he::ckks::{Counters, Decryptor, Encryptor, Evaluator};
use sudare_he::keys::{KeyGenerator, PublicKey, SecretKey};
use sudare_he::params::ParamsLiteral;
use sudare_he::security::{SecretDistribution, Security};
use sudare_matrix::slots::cube::Improvements;
use sudare_matrix::{Matrix, Method, Operand, Product, ProductSpec, Requirements, Shape};

fn random(seed: u64, rows: usize, cols: usize) -> Matrix {
    let unit = |i: u64| {
        let x = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((x ^ (x >> 32)) >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    Matrix::from_fn(rows, cols, |i, j| unit((i * cols + j) as u64)).unwrap()
}

struct World {
    product: Box<dyn Product>,
    secret: SecretKey,
    public: PublicKey,
    server: Evaluator,
}

impl World {
    fn new(spec: &ProductSpec) -> Self {
        let product = spec.build().unwrap();
        assert_eq!(spec.keys().unwrap(), product.keys());
        assert_eq!(spec.work().unwrap(), product.work());
        let secret = SecretKey::generate(product.params()).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let demand = product.keys();
        let keys = generator.eval_keys(demand.relin, &demand.galois).unwrap();
        let public = generator.public_key().unwrap();
        Self { product, public, server: Evaluator::new(keys), secret }
    }

    /// Multiplies random matrices; returns the largest error and the operations done.
    fn run(&self, seed: u64) -> (f64, Counters) {
        let shape = self.product.shape();
        let make = |operand: Operand, salt: u64| -> Vec<Matrix> {
            let (rows, cols) = shape.of(operand);
            (0..shape.batch as u64).map(|t| random(seed * 1009 + t * 31 + salt, rows, cols)).collect()
        };
        let (a, b) = (make(Operand::Left, 1), make(Operand::Right, 2));
        let encryptor = Encryptor::with_public_key(&self.public).unwrap();
        let encrypt = |operand, matrices: &[Matrix]| -> Vec<_> {
            let plains = self.product.encode(operand, matrices, 1.0).unwrap();
            assert_eq!(plains.len(), self.product.ciphertexts(operand));
            plains.iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
        };
        let (left, right) = (encrypt(Operand::Left, &a), encrypt(Operand::Right, &b));
        self.server.reset_counters();
        let output = self.product.multiply(&self.server, &left, &right).unwrap();
        let counters = self.server.counters();
        assert_eq!(output.len(), self.product.ciphertexts(Operand::Output));
        let decryptor = Decryptor::new(&self.secret);
        let plains: Vec<_> = output.iter().map(|c| decryptor.decrypt(c).unwrap()).collect();
        let results = self.product.decode(&plains).unwrap();
        assert_eq!(results.len(), shape.batch);
        let error = results
            .iter()
            .zip(a.iter().zip(&b))
            .map(|(c, (a, b))| c.max_difference(&a.matmul(b).unwrap()))
            .fold(0.0, f64::max);
        (error, counters)
    }

    /// Asserts that the error is as predicted: not more, and not far less.
    #[track_caller]
    fn check(&self, seed: u64) -> f64 {
        let (error, _) = self.run(seed);
        let predicted = self.product.predicted_error([1.0; 2]);
        let (name, shape) = (self.product.name(), self.product.shape());
        assert!(error <= predicted, "{name} {shape:?}: error {error:e} over the predicted {predicted:e}");
        error
    }
}

/// An insecure set for breadth: `levels` rescales, N = 2^log_n.
fn small(log_n: u32, levels: usize) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        q_bits: std::iter::once(49).chain(std::iter::repeat_n(38, levels)).collect(),
        p_bits: vec![49],
        digit_limbs: 1,
        log_scale: 38,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    }
}

fn spec(shape: Shape, method: Method, params: ParamsLiteral) -> ProductSpec {
    ProductSpec { shape, method, params }
}

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
        let predicted = w.product.predicted_error([1.0; 2]);
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
        let predicted = w.product.predicted_error([1.0; 2]);
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
            let found = sudare_matrix::slots::improved3d::candidates(&req);
            assert!(!found.is_empty());
            let least = found.iter().map(|s| s.params.log_n).min();
            assert_eq!(least, Some(13), "{found:?}");
            let spec = found.iter().find(|s| Some(s.params.log_n) == least).unwrap();
            let w = World::new(spec);
            let measured = w.check(3);
            let predicted = w.product.predicted_error([1.0; 2]);
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
