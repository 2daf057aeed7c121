//! Measured variances against the formulas: a few keys here, as many as 3 % takes in `sudare-bench tfhe-noise`.

use crate::measure::{SUITES, Tally};

/// Within 3 % of the formula, or within what chance gives with the few keys of a test.
fn check(suite: &str) {
    let suite = SUITES.iter().find(|s| s.name == suite).unwrap();
    let mut tally = Tally::default();
    for number in 0..suite.keys {
        let mut one = Tally::default();
        (suite.measure)(number, &mut one).unwrap();
        tally.merge(&one);
    }
    for (operation, figure) in tally.figures() {
        let (ratio, error) = (figure.ratio(), figure.error());
        assert_eq!(figure.keys() as u64, suite.keys, "{operation}");
        println!("{operation}: {ratio:.4} ± {error:.4}, {} samples", figure.samples());
        assert!((ratio - 1.0).abs() < 0.03 + 4.0 * error && error < 0.3, "{operation}: {ratio} ± {error}");
    }
}

macro_rules! suites {
    ($($name:ident: $suite:literal),*) => {
        $(#[test]
        fn $name() {
            check($suite);
        })*

        #[test]
        fn every_suite_is_tested() {
            assert!(SUITES.iter().all(|s| [$($suite),*].contains(&s.name)));
        }
    };
}

suites! {
    glwe: "glwe",
    packing: "packing",
    exchange: "exchange",
    lwe: "lwe",
    module_switch: "module switch",
    blind_rotation: "blind rotation",
    several_tables: "several tables",
    leveled_lookup: "leveled lookup",
    trace: "trace",
    scheme_switch: "scheme switch",
    circuit_bootstrap: "circuit bootstrap",
    fhew: "fhew"
}
