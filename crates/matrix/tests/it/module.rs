//! The module method against the plain one.

use sudare_he::ckks::{Decryptor, Encryptor, Evaluator, ParamsLiteral};
use sudare_matrix::module::{self, ModuleOptions};
use sudare_matrix::{Matrix, Method, Operand, ProductSpec, Requirements, Shape};
use sudare_ring::Threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};

fn matrix(rows: usize, cols: usize, max_abs: f64, salt: u64) -> Matrix {
    let unit = |k: u64| ((k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64) * 2.0 - 1.0;
    Matrix::from_fn(rows, cols, |i, j| max_abs * unit(1 + (i * cols + j) as u64 + salt * 104_729)).unwrap()
}

fn require(shape: Shape, max_abs: [f64; 2], error: f64) -> Requirements {
    Requirements { shape, max_abs, error, security: Security::Bits128, fresh: [true, true], decrypt_next: true }
}

/// Encrypts, multiplies and decrypts; returns the largest error beside the predicted one.
fn run(spec: &ProductSpec, max_abs: [f64; 2], public: bool) -> (f64, f64) {
    let product = spec.build().unwrap();
    let (params, shape) = (product.params(), product.shape());
    let secret = SecretKey::generate(params).unwrap();
    let demand = product.keys();
    let generator = KeyGenerator::new(&secret).unwrap();
    let server = Evaluator::new(params, generator.eval_keys(demand.relin, &demand.galois).unwrap()).unwrap();
    let key = generator.public_key().unwrap();
    let encryptor =
        if public { Encryptor::with_public_key(&key) } else { Encryptor::with_secret_key(&secret) }.unwrap();
    let make = |rows, cols, bound, salt| -> Vec<Matrix> {
        (0..shape.batch as u64).map(|b| matrix(rows, cols, bound, salt + 2 * b)).collect()
    };
    let (left, right) = (make(shape.m, shape.k, max_abs[0], 1), make(shape.k, shape.n, max_abs[1], 2));
    let encrypt = |operand, matrices: &[Matrix], bound| -> Vec<_> {
        let plain = product.encode(operand, matrices, bound).unwrap();
        assert_eq!(plain.len(), product.ciphertexts(operand));
        plain.iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
    };
    let (a, b) = (encrypt(Operand::Left, &left, max_abs[0]), encrypt(Operand::Right, &right, max_abs[1]));
    let c = product.multiply(&server, &a, &b).unwrap();
    let shared = Threads::new(3).run(|| product.multiply(&server, &a, &b)).unwrap();
    assert!(c.iter().zip(&shared).all(|(x, y)| x.parts().iter().zip(y.parts()).all(|(x, y)| x.words() == y.words())));
    let decryptor = Decryptor::new(&secret);
    let plain: Vec<_> = c.iter().map(|c| decryptor.decrypt(c).unwrap()).collect();
    let results = product.decode(&plain).unwrap();
    let errors = results.iter().zip(left.iter().zip(&right)).map(|(c, (a, b))| c.max_difference(&a.matmul(b).unwrap()));
    (errors.fold(0.0, f64::max), product.predicted_error(max_abs))
}

/// A ring too small to be secure, for tests: N = 512, one digit.
fn small(q_bits: &[u32], log_scale: u32) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n: 9,
            q_bits: q_bits.to_vec(),
            p_bits: q_bits.to_vec(),
            digit_limbs: q_bits.len(),
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale,
    }
}

fn spec(shape: (usize, usize, usize, usize), options: (usize, usize, bool), params: ParamsLiteral) -> ProductSpec {
    let shape = Shape { m: shape.0, k: shape.1, n: shape.2, batch: shape.3 };
    let options = ModuleOptions { side: options.0, slots: options.1, relinearize: options.2 };
    ProductSpec { shape, method: Method::Module(options), params }
}

#[test]
fn any_shape_and_layout() {
    let cases = [
        ((8, 8, 8, 1), (8, 1, false)),
        ((1, 1, 1, 1), (8, 32, true)),
        ((16, 16, 16, 5), (16, 16, true)),
        ((16, 5, 11, 3), (16, 2, false)),
        ((3, 200, 20, 1), (16, 1, true)),
        ((33, 7, 17, 9), (16, 4, false)),
        ((40, 40, 70, 1), (64, 1, true)),
        ((130, 3, 5, 2), (128, 2, false)),
    ];
    for (shape, options) in cases {
        for (q_bits, digit_limbs) in [(vec![45, 45], 2), (vec![40, 40, 40], 1)] {
            let mut params = small(&q_bits, 32);
            params.digit_limbs = digit_limbs;
            if digit_limbs == 1 {
                params.p_bits = vec![40];
            }
            let spec = spec(shape, options, params);
            let (error, predicted) = run(&spec, [2.0, 3.0], true);
            assert!(error <= predicted, "{spec:?}: {error:e}, predicted {predicted:e}");
            // The largest of a few errors is small by chance.
            if shape.0 * shape.2 * shape.3 >= 16 {
                assert!(predicted < 50.0 * error, "{spec:?}: {error:e}, predicted {predicted:e}");
            }
        }
    }
}

#[test]
fn many_slots() {
    // As many slots as a transform of its own serves.
    let mut params = small(&[45, 45], 32);
    params.log_n = 13;
    let (error, predicted) = run(&spec((16, 9, 16, 256), (16, 256, false), params), [1.0, 1.0], true);
    assert!(error <= predicted && predicted < 50.0 * error, "{error:e}, predicted {predicted:e}");
}

#[test]
fn proposals_hold() {
    for (m, k, n, batch) in [(16, 16, 16, 200), (60, 60, 60, 1)] {
        let req = require(Shape { m, k, n, batch }, [1.0, 1.0], 1e-4);
        let specs = module::candidates(&req);
        assert!(!specs.is_empty());
        for spec in &specs {
            let product = spec.build().unwrap();
            assert!(product.predicted_error(req.max_abs) <= req.error);
            assert!(product.work().key_switches > 0.0 && product.work().mac > 0.0);
        }
        let (error, predicted) = run(&specs[0], req.max_abs, true);
        assert!(error <= predicted && predicted <= req.error, "{:?}: {error:e}, predicted {predicted:e}", specs[0]);
    }
}

#[test]
fn refusals() {
    let good = spec((8, 8, 8, 1), (8, 1, true), small(&[45, 45], 32));
    let product = good.build().unwrap();
    assert_eq!(product.keys().galois.len(), 7);
    let secret = SecretKey::generate(product.params()).unwrap();
    let server =
        Evaluator::new(product.params(), KeyGenerator::new(&secret).unwrap().eval_keys(None, &[]).unwrap()).unwrap();
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let plain = product.encode(Operand::Left, &[matrix(8, 8, 1.0, 1)], 1.0).unwrap();
    let a: Vec<_> = plain.iter().map(|p| encryptor.encrypt(p).unwrap()).collect();
    assert!(product.multiply(&server, &a, &a).is_err(), "no keys");
    assert!(product.multiply(&server, &a, &[]).is_err());
    for (side, slots) in [(12, 1), (4, 1), (256, 1), (8, 64), (8, 3)] {
        assert!(spec((8, 8, 8, 1), (side, slots, true), small(&[45, 45], 32)).build().is_err(), "{side} {slots}");
    }
    let mut keyless = good;
    keyless.params.p_bits.clear();
    assert!(keyless.build().is_err());
}
