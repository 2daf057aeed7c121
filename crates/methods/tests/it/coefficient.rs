//! The coefficient product against the plain one.

use crate::common::{World, require, scaled};
use sudare_expr::{Operand, Shape};
use sudare_methods::products::coefficient;
use sudare_methods::{Method, ProductSpec, Requirements};

/// The largest error of a product beside the predicted one.
fn run(spec: &ProductSpec, max_abs: [f64; 2], public: bool) -> (f64, f64) {
    let world = World::new(spec);
    (world.run_within(1, max_abs, public, true).0, world.product.figures(max_abs).unwrap().error)
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
    assert!(product.encode(Operand::Left, &[scaled(0, 4, 5, 1.0)], 1.0).is_err());
    assert!(product.encode(Operand::Left, &[scaled(0, 4, 4, 2.0)], 1.0).is_err());
    assert!(product.encode(Operand::Left, &[], 1.0).is_err());
    let Method::Coefficient(options) = &mut spec.method else { panic!("another method") };
    options.block = (1 << 10, 1 << 10, 1);
    assert!(spec.build().is_err());
}
