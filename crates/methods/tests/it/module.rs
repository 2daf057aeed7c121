//! The module method against the plain one.

use crate::common::{World, require, scaled};
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{Encryptor, Evaluator, ParamsLiteral};
use sudare_methods::products::module::{self, ModuleOptions};
use sudare_methods::{Method, ProductSpec};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};

/// The largest error of a product beside the predicted one.
fn run(spec: &ProductSpec, max_abs: [f64; 2], public: bool) -> (f64, f64) {
    let world = World::new(spec);
    (world.run_within(1, max_abs, public, true).0, world.product.figures(max_abs).unwrap().error)
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
            let figures = spec.build().unwrap().figures(req.max_abs).unwrap();
            assert!(figures.error <= req.error);
            assert!(figures.work.key_switches > 0.0 && figures.work.mac + figures.work.mac_narrow > 0.0);
        }
        let (error, predicted) = run(&specs[0], req.max_abs, true);
        assert!(error <= predicted && predicted <= req.error, "{:?}: {error:e}, predicted {predicted:e}", specs[0]);
    }
}

#[test]
fn refusals() {
    let good = spec((8, 8, 8, 1), (8, 1, true), small(&[45, 45], 32));
    let product = good.build().unwrap();
    assert_eq!(product.figures([1.0; 2]).unwrap().keys.galois.len(), 7);
    let secret = SecretKey::generate(product.params()).unwrap();
    let server =
        Evaluator::new(product.params(), KeyGenerator::new(&secret).unwrap().eval_keys(None, &[]).unwrap()).unwrap();
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let plain = product.encode(Operand::Left, &[scaled(1, 8, 8, 1.0)], 1.0).unwrap();
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
