//! Contexts whose matrices are tables over whole ciphertexts, against plain matrices.

use crate::common::random;
use sudare_expr::{ExprError, Matrix, Operation};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_he::circuits::polynomial::Function;
use sudare_he::circuits::polynomial::fit::{self, Distance};
use sudare_methods::MatrixError;
use sudare_rlwe::security::Security;
use sudare_session::Encrypted;
use sudare_session::{Context, ContextOptions, ContextSpec, function, minimum};

const ERROR: f64 = 1e-4;

fn options() -> ContextOptions {
    ContextOptions { security: Security::Insecure, threads: 2, columns: Some(8), ..ContextOptions::default() }
}

/// Set A's shape over a ring of 1024 slots: tiles of 128×8.
fn bootstrapped(automatic: bool) -> Context {
    let (scale_bits, bootstrap) = (43, Some(BootstrapSet::A));
    Context::new(3, &ContextOptions { scale_bits, bootstrap, automatic, ..options() }).unwrap()
}

#[track_caller]
fn close(c: &Context, value: &Encrypted, wanted: impl Fn(usize, usize) -> f64) {
    let (rows, cols) = value.shape();
    let error = c.decrypt(value).unwrap().max_difference(&Matrix::from_fn(rows, cols, wanted).unwrap());
    assert!(error < ERROR, "{error:e} of {value}");
    // What it shows of itself is a bound.
    assert!(error <= value.error().unwrap(), "{error:e} of {value}");
}

/// Within the distance that it states, which is hardly more than the largest that there is.
#[test]
fn a_minimum_with_a_number() {
    for (number, columns) in [(0.25, Some(8)), (-0.5, None)] {
        let c = Context::new(5, &ContextOptions { columns, tile: 4, ..options() }).unwrap();
        let m = random(7, 30, 5);
        let x = c.encrypt(&m, Some(1.0)).unwrap();
        let operation = minimum(number, (-1.0, 1.0), 15).unwrap();
        let y = c.server().apply(&operation, &[&x]).unwrap();
        let error = c.decrypt(&y).unwrap().max_difference(&m.map(|x| Some(x.min(number))).unwrap());
        let Operation::Polynomial(p) = operation else { panic!("another operation") };
        assert!(error <= p.error + ERROR && error <= y.error().unwrap(), "{error:e} of {y}");
        assert!(p.error < 2.0 * error, "{:e} stated, {error:e} found", p.error);
    }
    assert!(minimum(f64::NAN, (-1.0, 1.0), 15).is_err() && minimum(0.0, (2.0, -2.0), 15).is_err());
}

#[test]
fn operations_broadcast_and_sum() {
    let c = Context::new(2, &options()).unwrap();
    let s = c.server();
    // Several tiles each way, none of them full.
    let (a, row, column, number) = (random(1, 150, 11), random(2, 1, 11), random(3, 150, 1), random(4, 1, 1));
    let [x, r, k, n] = [&a, &row, &column, &number].map(|m| c.encrypt(m, Some(1.0)).unwrap());
    close(&c, &s.apply(&Operation::Add, &[&x, &r]).unwrap(), |i, j| a.get(i, j) + row.get(0, j));
    close(&c, &s.apply(&Operation::Sub, &[&k, &x]).unwrap(), |i, j| column.get(i, 0) - a.get(i, j));
    close(&c, &s.apply(&Operation::Mul, &[&x, &n]).unwrap(), |i, j| a.get(i, j) * number.get(0, 0));
    close(&c, &s.apply(&Operation::Mul, &[&k, &r]).unwrap(), |i, j| column.get(i, 0) * row.get(0, j));
    close(&c, &s.apply(&Operation::Mul, &[&x, &s.lift(&row).unwrap()]).unwrap(), |i, j| a.get(i, j) * row.get(0, j));
    let moved = s
        .apply(
            &Operation::Shift { by: 3.0 },
            &[&s.apply(&Operation::Scale { by: 0.25 }, &[&s.apply(&Operation::Neg, &[&x]).unwrap()]).unwrap()],
        )
        .unwrap();
    close(&c, &moved, |i, j| 3.0 - 0.25 * a.get(i, j));
    // A number that was added stands beside the table nowhere.
    let total: f64 = (0..150).flat_map(|i| (0..11).map(move |j| (i, j))).map(|(i, j)| 3.0 - 0.25 * a.get(i, j)).sum();
    let sum =
        s.apply(&Operation::Sum { axis: 1 }, &[&s.apply(&Operation::Sum { axis: 0 }, &[&moved]).unwrap()]).unwrap();
    assert!((c.decrypt(&sum).unwrap().get(0, 0) - total).abs() < 1e-3);
    // Vectors from either side, lying as they are summed or not.
    let (w, v) = (random(5, 11, 1), random(6, 1, 150));
    let (w_, v_) = (c.encrypt(&w, Some(1.0)).unwrap(), c.encrypt(&v, Some(1.0)).unwrap());
    let dot = |i: usize| (0..11).map(|j| a.get(i, j) * w.get(j, 0)).sum::<f64>();
    close(&c, &s.matmul(&x, &w_).unwrap(), |i, _| dot(i));
    close(&c, &s.matmul(&v_, &x).unwrap(), |_, j| (0..150).map(|i| v.get(0, i) * a.get(i, j)).sum());
    assert!(matches!(s.matmul(&x, &c.encrypt(&random(7, 11, 2), None).unwrap()), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(s.apply(&Operation::Transpose, &[&x]), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(s.apply(&Operation::Add, &[&x, &w_]), Err(MatrixError::Expr(ExprError::Shapes { .. }))));
    assert!(matches!(s.refresh(&x, None), Err(MatrixError::NoBootstrap)));
}

#[test]
fn polynomials_on_any_interval() {
    let c = Context::new(3, &options()).unwrap();
    let s = c.server();
    let unit = random(1, 20, 5);
    let stretched = |centre: f64, radius: f64| Matrix::from_fn(20, 5, |i, j| centre + radius * unit.get(i, j)).unwrap();
    // About [−1, 1]: no level more; a wide interval far from zero, and a narrow one.
    for (from, to, f, degree, levels) in [
        (-1.0, 1.0, f64::exp as fn(f64) -> f64, 7, 3),
        (-24.0, 24.0, |t: f64| 1.0 / (1.0 + (-t / 4.0).exp()), 31, 6),
        (100.0, 164.0, f64::sqrt, 7, 4),
        (0.01, 0.03, |t: f64| t / (1.0 + t), 3, 3),
    ] {
        let p = fit::minimax(f, &[(from, to)], degree).unwrap();
        let m = stretched((from + to) / 2.0, (to - from) / 2.0);
        let x = c.encrypt(&m, Some(f64::max(-from, to))).unwrap();
        let y = s.apply(&function(&p), &[&x]).unwrap();
        assert_eq!(x.levels_left() - y.levels_left(), levels, "[{from}, {to}]");
        let error = c.decrypt(&y).unwrap().max_difference(&Matrix::from_fn(20, 5, |i, j| f(m.get(i, j))).unwrap());
        assert!(error <= p.error + 1e-6, "[{from}, {to}]: {error:e}, {:e} fitted", p.error);
        assert!(error <= y.error().unwrap());
        // Values beside the table are gone: its sums are its own.
        let column: f64 = (0..20).map(|i| f(m.get(i, 2))).sum();
        assert!(
            (c.decrypt(&s.apply(&Operation::Sum { axis: 0 }, &[&y]).unwrap()).unwrap().get(0, 2) - column).abs()
                < 20.0 * (p.error + 1e-6)
        );
    }
    // What stands beside is cleaned first where it is not known: one level.
    let p = fit::minimax(|t| 1.0 / t, &[(1.0, 3.0)], 15).unwrap();
    let (two, half) = (Matrix::from_fn(20, 5, |_, _| 2.0).unwrap(), Matrix::from_fn(1, 5, |_, _| 0.5).unwrap());
    let x = s.apply(&Operation::Add, &[&c.encrypt(&two, None).unwrap(), &c.encrypt(&half, None).unwrap()]).unwrap();
    let y = s.apply(&function(&p), &[&x]).unwrap();
    assert_eq!(x.levels_left() - y.levels_left(), 5);
    close(&c, &y, |_, _| 0.4);
    let deep = fit::minimax(|t| 1.0 / t, &[(0.3, 1.5)], 31).unwrap();
    assert!(matches!(s.apply(&function(&deep), &[&y]), Err(MatrixError::OutOfDepth { needed: 5, level: 4, .. })));
    let square = Context::new(3, &ContextOptions { columns: None, tile: 4, ..options() }).unwrap();
    let m = random(9, 6, 5);
    let x = square.encrypt(&m, None).unwrap();
    let p = fit::minimax(f64::exp, &[(-1.0, 1.0)], 7).unwrap();
    let y = square.server().apply(&function(&p), &[&x]).unwrap();
    close(&square, &square.server().apply(&Operation::Sum { axis: 0 }, &[&y]).unwrap(), |_, j| {
        (0..6).map(|i| m.get(i, j).exp()).sum()
    });
}

/// Elements that are known to be outside of an interval are refused; where they may be, the error says so.
#[test]
fn polynomials_outside_of_their_interval() {
    let of = Distance::Bounded(Function::Sigmoid);
    let f = |t: f64| Function::Sigmoid.value(t);
    for columns in [Some(8), None] {
        let c = Context::new(3, &ContextOptions { columns, tile: 4, ..options() }).unwrap();
        let s = c.server();
        let data = |largest: f64| Matrix::from_fn(4, 5, |i, j| largest * (1.0 - (5 * i + j) as f64 / 10.0)).unwrap();
        let fitted = fit::known(Function::Sigmoid, &[(-3.5, 3.5)], 7).unwrap();
        // The bound is the power of two above, 4.
        let (inside, outside) = (data(3.5), data(3.9));
        let x = c.encrypt(&inside, None).unwrap();
        assert!(matches!(s.apply(&function(&fitted), &[&x]), Err(MatrixError::He(HeError::Approximation { .. }))));
        let wide = fitted.clone().up_to(x.max_abs(), of).unwrap();
        for m in [inside, outside] {
            let x = c.encrypt(&m, None).unwrap();
            let y = s.apply(&function(&wide), &[&x]).unwrap();
            let wanted = Matrix::from_fn(4, 5, |i, j| f(m.get(i, j))).unwrap();
            let error = c.decrypt(&y).unwrap().max_difference(&wanted);
            assert!(error <= y.error().unwrap() && y.error().unwrap() < 0.05, "{error:e} of {:?}", y.error());
            assert!(c.decrypt(&y).unwrap().max_abs() <= y.max_abs() + y.error().unwrap());
        }
        // Inside it is as near as the interval promises.
        let m = data(3.5);
        let y = s.apply(&function(&fitted), &[&c.encrypt(&m, Some(3.5)).unwrap()]).unwrap();
        assert!(y.error().unwrap() <= fitted.error + 1e-6);
        let x = c.encrypt(&data(8.0), None).unwrap();
        assert!(fitted.clone().up_to(x.max_abs(), of).is_err());
        let refused = s.apply(&function(&wide), &[&x]).unwrap_err().to_string();
        assert!(refused.contains("up to 8") && refused.contains("ends at 3.5"), "{refused}");
        assert!(s.apply(&function(&fitted), &[&s.apply(&Operation::Bounded { max_abs: 3.5 }, &[&x]).unwrap()]).is_ok());
    }
}

/// A power iteration of a matrix with eigenvalues 1 and 1/2, refreshed where it is asked for.
#[test]
fn refreshes_go_on() {
    let c = bootstrapped(false);
    let s = c.server();
    let m = Matrix::from_fn(2, 2, |i, j| if i == j { 0.75 } else { 0.25 }).unwrap();
    let x = c.encrypt(&m, Some(1.0)).unwrap();
    let mut v = c.encrypt(&Matrix::from_fn(1, 2, |_, j| [1.0, 0.0][j]).unwrap(), Some(1.0)).unwrap();
    let shown = v.to_string();
    assert!(shown.contains("9 of 9 levels to the next refresh"), "{shown}");
    for _ in 0..10 {
        // v M: turned, multiplied, summed.
        if v.levels_left() < 4 {
            v = s.refresh(&v, Some(1.0)).unwrap();
            assert_eq!(v.levels_left(), 9);
        }
        v = s.matmul(&v, &x).unwrap();
    }
    let power = 0.5f64.powi(10);
    close(&c, &v, |_, j| 0.5 + [0.5, -0.5][j] * power);
    // A bound that is known: what stands beside is cleaned, since it need not keep to it.
    let sum = s.apply(&Operation::Add, &[&x, &v]).unwrap();
    let bounded = s.apply(&Operation::Bounded { max_abs: 1.5 }, &[&sum]).unwrap();
    assert_eq!((bounded.max_abs(), sum.levels_left() - bounded.levels_left()), (1.5, 1));
    close(&c, &s.refresh(&bounded, None).unwrap(), |i, j| m.get(i, j) + 0.5 + [0.5, -0.5][j] * power);
    assert!(s.apply(&Operation::Bounded { max_abs: -1.0 }, &[&sum]).is_err());
}

#[test]
fn automatic_contexts_refresh_where_levels_end() {
    let c = bootstrapped(true);
    let s = c.server();
    let m = random(1, 3, 3);
    let x = c.encrypt(&m, Some(1.0)).unwrap();
    let (mut y, mut wanted) = (x.clone(), m.clone());
    for _ in 0..20 {
        y = s.apply(&Operation::Bounded { max_abs: 1.0 }, &[&s.apply(&Operation::Mul, &[&y, &x]).unwrap()]).unwrap();
        wanted = Matrix::from_fn(3, 3, |i, j| wanted.get(i, j) * m.get(i, j)).unwrap();
    }
    close(&c, &y, |i, j| wanted.get(i, j));
    let p = fit::minimax(|t: f64| t.cos(), &[(-1.0, 1.0)], 15).unwrap();
    for _ in 0..3 {
        y = s.apply(&Operation::Bounded { max_abs: 1.0 }, &[&s.apply(&function(&p), &[&y]).unwrap()]).unwrap();
        wanted = Matrix::from_fn(3, 3, |i, j| wanted.get(i, j).cos()).unwrap();
    }
    close(&c, &y, |i, j| wanted.get(i, j));
    assert!(matches!(
        ContextSpec::new(3, &ContextOptions { automatic: true, ..options() }),
        Err(MatrixError::NoPlan { .. })
    ));
}

#[test]
fn columns_that_no_tile_has() {
    for columns in [0, 3, 12, 1 << 20] {
        let refused = ContextSpec::new(1, &ContextOptions { columns: Some(columns), ..options() });
        assert!(matches!(refused, Err(MatrixError::Method { .. } | MatrixError::NoPlan { .. })), "{columns}");
    }
    let c = Context::new(1, &options()).unwrap();
    let written = serde_json::to_string(c.spec()).unwrap();
    assert!(written.contains("\"columns\":8"));
    let secure = ContextSpec::new(1, &ContextOptions { security: Security::Bits128, ..options() }).unwrap();
    assert_eq!(serde_json::from_str::<ContextSpec>(&serde_json::to_string(&secure).unwrap()).unwrap(), secure);
    // Neither layout's matrices are taken for the other's.
    let other = Context::new(1, &ContextOptions { columns: None, tile: 4, ..options() }).unwrap();
    let x = other.encrypt(&random(1, 2, 2), None).unwrap();
    assert!(matches!(c.server().apply(&Operation::Neg, &[&x]), Err(MatrixError::WrongPlan { .. })));
    let huge = c.encrypt(&random(1, 2, 2), Some(1e60));
    assert!(matches!(huge, Err(MatrixError::He(HeError::TooLarge { .. }))));
}
