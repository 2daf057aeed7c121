//! Contexts: operations without a plan, against plain matrices.

use crate::common::random;
use sudare_expr::{Expr, ExprError, InputSpec, Matrix, Operation};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_ring::count::counted;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_session::{Client, Encrypted, Server};
use sudare_session::{Context, ContextOptions, ContextSpec, QUIET};

const ERROR: f64 = 1e-4;

fn context(depth: usize) -> Context {
    let options = ContextOptions { security: Security::Insecure, tile: 4, threads: 2, ..ContextOptions::default() };
    Context::new(depth, &options).unwrap()
}

fn close(context: &Context, value: &Encrypted, expected: &Matrix) {
    let error = context.decrypt(value).unwrap().max_difference(expected);
    assert!(error < ERROR, "{error:e}");
    // What it shows of itself is a bound.
    assert!(error <= value.error().unwrap(), "{error:e} of {value}");
}

fn map2(a: &Matrix, b: &Matrix, f: impl Fn(f64, f64) -> f64) -> Matrix {
    Matrix::from_fn(a.rows(), a.cols(), |i, j| f(a.get(i, j), b.get(i, j))).unwrap()
}

#[test]
fn products_in_a_row() {
    let c = context(3);
    let [a, b, d, f] = [(5, 7), (7, 3), (3, 6), (6, 2)].map(|(m, n)| random((m * 100 + n) as u64, m, n));
    let [x, y, z, w] = [&a, &b, &d, &f].map(|m| c.encrypt(m, None).unwrap());
    let s = c.server();
    let all = s.matmul(&s.matmul(&s.matmul(&x, &y).unwrap(), &z).unwrap(), &w).unwrap();
    let expected = a.matmul(&b).unwrap().matmul(&d).unwrap().matmul(&f).unwrap();
    close(&c, &all, &expected);
    // One level is left: for a transpose, say, and no more.
    let turned = s.apply(&Operation::Transpose, &[&all]).unwrap();
    close(&c, &turned, &expected.transpose());
    assert!(matches!(
        s.apply(&Operation::Sum { axis: 0 }, &[&turned]),
        Err(MatrixError::OutOfDepth { needed: 1, level: 0, depth: 3, .. })
    ));
    assert!(matches!(s.matmul(&all, &all), Err(MatrixError::Expr(ExprError::Shapes { .. }))));
}

#[test]
fn operations_together() {
    let c = context(2);
    let s = c.server();
    let (a, b) = (random(1, 5, 6), random(2, 6, 5));
    let (x, y) = (c.encrypt(&a, Some(1.0)).unwrap(), c.encrypt(&b, Some(1.0)).unwrap());
    let product = a.matmul(&b).unwrap();
    let xy = s.matmul(&x, &y).unwrap();
    // Copies that the product leaves do not reach sums, transposes and further products.
    let sums = |axis: u8| {
        let (rows, cols) = if axis == 0 { (1, 5) } else { (5, 1) };
        Matrix::from_fn(rows, cols, |i, j| {
            (0..5).map(|k| if axis == 0 { product.get(k, j) } else { product.get(i, k) }).sum()
        })
        .unwrap()
    };
    for axis in [0, 1] {
        close(&c, &s.apply(&Operation::Sum { axis }, &[&xy]).unwrap(), &sums(axis));
    }
    let gram = s.matmul(&s.apply(&Operation::Transpose, &[&xy]).unwrap(), &x).unwrap();
    close(&c, &gram, &product.transpose().matmul(&a).unwrap());
    // Of different histories: scales and levels are brought together.
    let yt = s.apply(&Operation::Transpose, &[&y]).unwrap();
    let mixed = s
        .apply(
            &Operation::Sub,
            &[&s.apply(&Operation::Add, &[&x, &yt]).unwrap(), &s.apply(&Operation::Mul, &[&x, &yt]).unwrap()],
        )
        .unwrap();
    close(&c, &mixed, &map2(&a, &b.transpose(), |p, q| p + q - p * q));
    let square = s.apply(&Operation::Mul, &[&xy, &s.lift(&product).unwrap()]).unwrap();
    let moved = s
        .apply(
            &Operation::Shift { by: 3.0 },
            &[&s.apply(&Operation::Scale { by: 0.25 }, &[&s.apply(&Operation::Neg, &[&square]).unwrap()]).unwrap()],
        )
        .unwrap();
    let moved = s.apply(&Operation::Add, &[&s.apply(&Operation::Scale { by: 2.0 }, &[&moved]).unwrap(), &xy]).unwrap();
    close(&c, &moved, &map2(&product, &product, |p, _| 2.0 * (3.0 - p * p * 0.25) + p));
    close(&c, &s.matmul(&xy, &x).unwrap(), &product.matmul(&a).unwrap());
    assert!(matches!(s.matmul(&moved, &x), Err(MatrixError::OutOfDepth { needed: 3, level: 2, depth: 2, .. })));
    let text = format!("{xy} {c:?} {s:?}");
    let shown = format!("<sudare ckks (5, 5) float64 up to 6 ± {:.1e}, level 4/6", xy.error().unwrap());
    assert!(text.starts_with(&shown), "{text}");
}

#[test]
fn refusals() {
    let options = ContextOptions { tile: 4, ..ContextOptions::default() };
    for (depth, options) in [
        (0, options),
        (17, options),
        (2, ContextOptions { scale_bits: 20, ..options }),
        (2, ContextOptions { tile: 12, ..options }),
    ] {
        assert!(matches!(ContextSpec::new(depth, &options), Err(MatrixError::NoPlan { .. })));
    }
    for (depth, log_n) in [(1, 14), (2, 14), (3, 15)] {
        let spec = ContextSpec::new(depth, &ContextOptions::default()).unwrap();
        assert_eq!(spec.params.log_n, log_n, "{spec:?}");
        spec.params.build().unwrap();
    }
    assert!((4..=16).all(|depth| ContextSpec::new(depth, &options).is_ok()));
    let (one, other) = (context(1), context(1));
    let m = random(3, 2, 2);
    let x = one.encrypt(&m, None).unwrap();
    assert_eq!(x.max_abs(), 1.0);
    assert!(matches!(other.decrypt(&x), Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))));
    assert!(matches!(
        other.server().apply(&Operation::Neg, &[&x]),
        Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))
    ));
    let refused = other.server().refresh(&x, None);
    assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))));
    assert!(matches!(one.encrypt(&m, Some(1e-9)), Err(MatrixError::Expr(ExprError::OverBound { .. }))));
    assert!(matches!(one.encrypt(&m, Some(1e60)), Err(MatrixError::He(HeError::TooLarge { .. }))));
    // Half a context from what may leave it, and a whole one from its secret.
    let spec = one.spec();
    let mut keys = Vec::new();
    one.server().write_keys_to(&mut keys).unwrap();
    let keys = EvalKeys::from_bytes(one.secret_key().params(), &keys).unwrap();
    let server = Server::of_context(spec, keys, 1).unwrap();
    close(&one, &server.apply(&Operation::Neg, &[&x]).unwrap(), &map2(&m, &m, |p, _| -p));
    let bytes = secret_key_to_bytes(one.secret_key()).unwrap();
    let secret = secret_key_from_bytes(one.secret_key().params(), &bytes).unwrap();
    let again = Context::with_secret_key(spec, secret, 1, QUIET).unwrap();
    close(&again, &x, &m);
}

#[test]
fn releases_keep_their_promise_and_are_counted() {
    let policy = ReleasePolicy::new(3, 30).unwrap();
    let options = ContextOptions {
        security: Security::Insecure,
        tile: 4,
        threads: 2,
        scale_bits: 55,
        release: Some(policy),
        ..ContextOptions::default()
    };
    let c = Context::new(1, &options).unwrap();
    let (a, b) = (random(1, 3, 4), random(2, 4, 3));
    let (x, y) = (c.encrypt(&a, Some(1.0)).unwrap(), c.encrypt(&b, Some(1.0)).unwrap());
    let z = c.server().matmul(&x, &y).unwrap();
    let (want, promised) = (a.matmul(&b).unwrap(), c.released_error(&z).unwrap());
    assert!(promised < 0.01 && promised > 1e5 * z.error().unwrap(), "{promised:e} {z}");
    for left in [2, 1, 0] {
        let difference = c.decrypt_for_release(&z).unwrap().max_difference(&want);
        assert!(difference < promised && difference > promised / 100.0, "{difference:e} {promised:e}");
        assert_eq!(c.releases_left(), left);
    }
    let refused = c.decrypt_for_release(&z);
    assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 3 })))));
    close(&c, &z, &want);
    // The count is the key's: it goes where the key's bytes go.
    let bytes = secret_key_to_bytes(c.secret_key()).unwrap();
    let secret = secret_key_from_bytes(c.secret_key().params(), &bytes).unwrap();
    let again = Context::with_secret_key(c.spec(), secret, 1, QUIET).unwrap();
    assert_eq!(again.releases_left(), 0);
    assert!(again.decrypt_for_release(&z).is_err());

    // Too little precision for its noise, or none declared.
    let coarse = Context::new(1, &ContextOptions { scale_bits: 30, ..options }).unwrap();
    let (x, y) = (coarse.encrypt(&a, Some(1.0)).unwrap(), coarse.encrypt(&b, Some(1.0)).unwrap());
    let refused = coarse.decrypt_for_release(&coarse.server().matmul(&x, &y).unwrap());
    assert!(matches!(refused, Err(MatrixError::He(HeError::NoPrecision { .. }))), "{refused:?}");
    assert_eq!(coarse.releases_left(), 3);
    let plain = context(1);
    let x = plain.encrypt(&a, None).unwrap();
    assert_eq!(plain.decrypt_for_release(&x), Err(MatrixError::NoRelease { what: "context" }));
    assert_eq!(plain.released_error(&x), Err(MatrixError::NoRelease { what: "context" }));
}

/// Products beyond any depth, refreshed between: values up to one, larger ones, and what a context without keys says.
#[test]
fn refreshed_matrices_go_on() {
    let options = ContextOptions {
        security: Security::Insecure,
        tile: 4,
        threads: 2,
        scale_bits: 43,
        bootstrap: Some(BootstrapSet::A),
        ..ContextOptions::default()
    };
    let c = Context::new(3, &options).unwrap();
    let s = c.server();
    assert_eq!(s.levels(), 9);
    // A rotation of the plane: its powers stay within one.
    let turn = Matrix::from_fn(2, 2, |i, j| [[0.8, -0.6], [0.6, 0.8]][i][j]).unwrap();
    let x = c.encrypt(&turn, Some(1.0)).unwrap();
    assert_eq!(x.levels_left(), 9);
    let (mut y, mut wanted) = (x.clone(), turn.clone());
    let mut refreshes = 0;
    for _ in 0..12 {
        if y.levels_left() < 3 {
            y = s.refresh(&y, Some(1.0)).unwrap();
            assert_eq!(y.levels_left(), 9);
            refreshes += 1;
        }
        y = s.matmul(&y, &x).unwrap();
        wanted = wanted.matmul(&turn).unwrap();
    }
    assert!(refreshes >= 3);
    close(&c, &y, &wanted);
    // Elements up to 20: one level, and bits in proportion.
    let large = Matrix::from_fn(6, 5, |i, j| 20.0 * random(3, 6, 5).get(i, j)).unwrap();
    let z = s.refresh(&c.encrypt(&large, Some(20.0)).unwrap(), None).unwrap();
    close(&c, &s.apply(&Operation::Transpose, &[&z]).unwrap(), &large.transpose());
    assert!(s.refresh(&z, Some(f64::NAN)).is_err());
    // A written specification says so; sets that do not fit a context, and contexts without keys, are refused.
    let secure = ContextSpec::new(3, &ContextOptions { security: Security::Bits128, tile: 16, ..options }).unwrap();
    let written = serde_json::to_string(&secure).unwrap();
    assert_eq!(serde_json::from_str::<ContextSpec>(&written).unwrap(), secure);
    assert!(serde_json::from_str::<ContextSpec>(&written.replace("\"A\"", "\"A12\"")).is_err());
    for wrong in [
        ContextOptions { bootstrap: Some(BootstrapSet::D), scale_bits: 35, ..options },
        ContextOptions { scale_bits: 40, ..options },
        ContextOptions { security: Security::Bits192, ..options },
    ] {
        assert!(matches!(ContextSpec::new(3, &wrong), Err(MatrixError::NoPlan { .. })));
    }
    assert!(matches!(ContextSpec::new(4, &options), Err(MatrixError::NoPlan { .. })));
    let plain = context(1);
    let p = plain.encrypt(&turn, None).unwrap();
    assert!(matches!(plain.server().refresh(&p, None), Err(MatrixError::NoBootstrap)));
}

/// Tiles of a matrix are refreshed two and two as one, and an odd one alone; any number of threads gives the same numbers.
#[test]
fn tiles_are_refreshed_in_pairs() {
    let refreshed = |threads: usize| {
        let options = ContextOptions {
            security: Security::Insecure,
            tile: 4,
            threads,
            scale_bits: 43,
            bootstrap: Some(BootstrapSet::A),
            ..ContextOptions::default()
        };
        let c = Context::new(3, &options).unwrap();
        let s = c.server();
        [1, 2, 3].map(|tiles| {
            let m = random(7, 4 * tiles, 3);
            let x = c.encrypt(&m, Some(1.0)).unwrap();
            let (y, work) = counted(|| s.refresh(&x, None).unwrap());
            close(&c, &y, &m);
            assert_eq!(y.levels_left(), 9);
            (work.inner_products, work.key_bytes)
        })
    };
    let [one, two, three] = refreshed(1);
    // 139 of a complex refresh and two more to part them, against 123 of each alone.
    assert!(two.0 < 13 * one.0 / 10 && two.1 < 15 * one.1 / 10, "{one:?} {two:?}");
    assert_eq!((three.0, three.1), (one.0 + two.0, one.1 + two.1));
    assert_eq!(refreshed(3), [one, two, three]);
}

/// The same server and the same values as a plan's, which are not taken for one another.
#[test]
fn contexts_and_plans_do_not_mix() {
    let c = context(1);
    let m = random(3, 2, 2);
    let x = c.encrypt(&m, None).unwrap();
    let input = |name| InputSpec::new(name, (2, 2), 1.0);
    let goal = Goal::new(Expr::product(input("A"), input("B")).unwrap(), 1e-3);
    let plan = Planner::new(CostModel::default()).plan(&goal).unwrap();
    let client = Client::new(&plan, 1).unwrap();
    let (server, y) = (client.server().unwrap(), client.encrypt("A", &m).unwrap());
    assert!(matches!(server.matmul(&x, &x), Err(MatrixError::WrongPlan { .. })));
    assert!(matches!(c.server().matmul(&y, &y), Err(MatrixError::WrongPlan { .. })));
    assert!(matches!(c.decrypt(&y), Err(MatrixError::WrongPlan { .. })));
    assert!(matches!(client.decrypt(&x), Err(MatrixError::WrongPlan { .. })));
    let planned = |e: MatrixError| matches!(e, MatrixError::NotPlanned { .. });
    assert!(planned(server.refresh(&y, None).unwrap_err()) && planned(server.lift(&m).unwrap_err()));
    assert!(
        planned(c.server().plain("A", &[m]).unwrap_err())
            && planned(c.server().run(std::slice::from_ref(&x)).unwrap_err())
    );
    assert!(planned(c.server().apply(&Operation::Moments, &[&x]).unwrap_err()));
    let sum = c.server().apply(&Operation::Sum { axis: 2 }, &[&x]);
    assert!(matches!(sum, Err(MatrixError::Expr(ExprError::Expression { .. }))));
    assert!(planned(x.to_bytes().unwrap_err()));
}
