//! The coefficient product against the plain one.

use sudare_he::ckks::{Decryptor, Encryptor, Evaluator};
use sudare_matrix::{Matrix, Method, Operand, ProductSpec, Requirements, Shape, coefficient};
use sudare_ring::Threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;

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

#[test]
fn any_shape() {
    let shapes =
        [(1, 1, 1, 1), (16, 16, 16, 1), (1, 100, 1, 2), (5, 3, 7, 3), (40, 9, 33, 1), (64, 64, 64, 1), (3, 5000, 2, 1)];
    for (m, k, n, batch) in shapes {
        let req = require(Shape { m, k, n, batch }, [2.0, 3.0], 1e-4);
        let specs = coefficient::candidates(&req);
        assert!(!specs.is_empty());
        for spec in &specs[..2] {
            let (error, predicted) = run(spec, req.max_abs, true);
            assert!(error <= predicted && predicted <= req.error, "{spec:?}: {error:e}, predicted {predicted:e}");
            // The largest of a few errors is small by chance.
            if m * n * batch >= 16 {
                assert!(predicted < 50.0 * error, "{spec:?}: {error:e}, predicted {predicted:e}");
            }
        }
        let (error, predicted) = run(&specs[0], req.max_abs, false);
        assert!(error <= predicted);
    }
}

#[test]
fn small_rings_suffice() {
    let specs = coefficient::candidates(&require(Shape::new(16, 16, 16), [1.0, 1.0], 1e-4));
    let spec = specs.iter().find(|s| s.params.log_n == 12).unwrap();
    assert!(spec.params.p_bits.is_empty());
    let Method::Coefficient(options) = &spec.method else { panic!("another method") };
    assert_eq!(options.block, (16, 16, 16));
    assert_eq!(spec.build().unwrap().ciphertexts(Operand::Left), 1);
}

#[test]
fn refusals() {
    let req = require(Shape::new(4, 4, 4), [1.0, 1.0], 1e-4);
    assert!(coefficient::candidates(&Requirements { decrypt_next: false, ..req }).is_empty());
    assert!(coefficient::candidates(&Requirements { fresh: [true, false], ..req }).is_empty());
    let mut spec = coefficient::candidates(&req).remove(0);
    let product = spec.build().unwrap();
    assert!(product.encode(Operand::Left, &[matrix(4, 5, 1.0, 0)], 1.0).is_err());
    assert!(product.encode(Operand::Left, &[matrix(4, 4, 2.0, 0)], 1.0).is_err());
    assert!(product.encode(Operand::Left, &[], 1.0).is_err());
    let Method::Coefficient(options) = &mut spec.method else { panic!("another method") };
    options.block = (1 << 10, 1 << 10, 1);
    assert!(spec.build().is_err());
}
