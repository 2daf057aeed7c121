//! Products on a device: the same words as on the processor, by the same lines.

use crate::common::random;
use std::sync::Arc;
use sudare_cuda::{Device, Trial};
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{Ciphertext, Decryptor, Encryptor, Evaluator, ParamsLiteral};
use sudare_methods::products::coefficient::CoefficientOptions;
use sudare_methods::slots::cube::Improvements;
use sudare_methods::{MatrixError, Method, ProductSpec};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_session::{device::download, device::evaluator, device::upload};

/// An insecure set for breadth: `levels` rescales, N = 2^log_n.
fn small(log_n: u32, levels: usize) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: std::iter::once(49).chain(std::iter::repeat_n(38, levels)).collect(),
            p_bits: vec![49],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 38,
    }
}

fn spec(shape: Shape, method: Method, params: ParamsLiteral) -> ProductSpec {
    ProductSpec { shape, method, params }
}

/// The small set with other primes, of both the kernels' families, and digits as long as P.
fn literal(q_bits: &[u32], p_bits: &[u32]) -> ParamsLiteral {
    let mut literal = small(11, 0);
    (literal.rlwe.q_bits, literal.rlwe.p_bits, literal.log_scale) = (q_bits.to_vec(), p_bits.to_vec(), 40);
    literal.rlwe.digit_limbs = p_bits.len().max(1);
    literal
}

/// A batch of products on both, word by word, with room for `wave` bytes of intermediate results on the device.
fn agree(spec: &ProductSpec, wave: usize) {
    let product = spec.build().unwrap();
    let params = product.params().clone();
    let secret = SecretKey::generate(&params).unwrap();
    let demand = product.figures([1.0; 2]).unwrap().keys;
    let keys = match (demand.relin, demand.galois.is_empty()) {
        (None, true) => EvalKeys::new(&params, secret.id()),
        (relin, _) => KeyGenerator::new(&secret).unwrap().eval_keys(relin, &demand.galois).unwrap(),
    };
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let Shape { m, k, n, batch } = spec.shape;
    let matrices = |rows, cols| -> Vec<Matrix> { (0..batch as u64).map(|seed| random(seed, rows, cols)).collect() };
    let (a, b) = (matrices(m, k), matrices(k, n));
    let encrypt = |operand, of: &[Matrix]| -> Vec<Ciphertext> {
        product.encode(operand, of, 1.0).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
    };
    let (left, right) = (encrypt(Operand::Left, &a), encrypt(Operand::Right, &b));
    let host = Evaluator::new(&params, keys.clone()).unwrap();
    let want = product.multiply(&host, &left, &right).unwrap();

    let device = Device::emulator(Trial::default(), 1 << 30);
    device.set_wave(wave);
    let there = evaluator(&device, &params, Arc::new(keys), 1 << 29).unwrap();
    let (x, y) = (upload(&there, &left).unwrap(), upload(&there, &right).unwrap());
    let method = product.on_backends().unwrap();
    let made = method.multiply(&there, &x, &y).unwrap();
    let got = download(&made).unwrap();
    assert_eq!(got.len(), want.len());
    for (i, (x, y)) in got.iter().zip(&want).enumerate() {
        assert_eq!((x.level(), x.parts().len(), x.state()), (y.level(), y.parts().len(), y.state()), "result {i}");
        assert!(x.parts().iter().zip(y.parts()).all(|(a, b)| a.words() == b.words()), "result {i}: another word");
    }
    assert_eq!(there.counters(), host.counters());

    let decryptor = Decryptor::new(&secret);
    let plain: Vec<_> = got.iter().map(|c| decryptor.decrypt(c).unwrap()).collect();
    for ((c, a), b) in product.decode(&plain).unwrap().iter().zip(&a).zip(&b) {
        assert!(c.max_difference(&a.matmul(b).unwrap()) < 1e-3);
    }

    // Too few operands are refused by the method itself.
    assert!(matches!(method.multiply(&there, &x[1..], &y), Err(MatrixError::Count { .. })));
}

const ROOMY: usize = 1 << 28;

#[test]
fn the_coefficient_method() {
    let shape = Shape { m: 10, k: 9, n: 8, batch: 2 };
    for (relinearize, p_bits) in [(false, &[][..]), (true, &[60])] {
        let options = CoefficientOptions { block: (5, 3, 8), relinearize };
        let params = literal(&[60, 45], p_bits);
        agree(&spec(shape, Method::Coefficient(options), params), ROOMY);
    }
}

#[test]
fn the_tiled_method() {
    let shape = Shape { m: 8, k: 12, n: 5, batch: 1 };
    let method = |options| Method::Tiled { tile: 4, options };
    let params = || literal(&[55, 40, 40, 40], &[50, 50]);
    for (options, wave) in [
        (Improvements { clean_output: true, real_pairing: true, ..Improvements::ALL }, ROOMY),
        // As little room as makes batches of two.
        (Improvements::ALL, 1 << 16),
        (Improvements { fused_masks: false, merged_rotations: false, ..Improvements::ALL }, ROOMY),
    ] {
        agree(&spec(shape, method(options), params()), wave);
    }
}

#[test]
fn many_products_by_the_3d_method() {
    let shape = Shape { m: 4, k: 8, n: 4, batch: 7 };
    let method = Method::Improved3d(Improvements { spare_slots: false, ..Improvements::ALL });
    agree(&spec(shape, method, literal(&[50, 40, 40], &[50])), ROOMY);
}

/// What refusals name is what there is.
#[test]
fn the_methods_that_devices_run() {
    let shape = Shape::new(4, 4, 4);
    let tiled = Method::Tiled { tile: 4, options: Improvements::ALL };
    let coefficient = Method::Coefficient(CoefficientOptions { block: (4, 4, 4), relinearize: true });
    let there = [Method::Improved3d(Improvements::ALL), tiled, coefficient];
    for method in there.into_iter().chain([Method::Paper3d, Method::Jiang, Method::JiangBsgs]) {
        let product = spec(shape, method, small(11, 3)).build().unwrap();
        assert_eq!(product.on_backends().is_some(), Method::ON_DEVICES.contains(&product.name()), "{}", product.name());
    }
}
