//! Statistics of tables: errors beside moments, correlations, releases.

use sudare_expr::{ExprError, Matrix, Operation};
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, State};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_rlwe::RlweError;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{Bundle, Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_session::Moments;
use sudare_session::{Client, Encrypted, PublicClient};

/// Rows of heights in metres, incomes, a constant and what follows from the first.
fn table(rows: usize) -> Matrix {
    Matrix::from_fn(rows, 4, |i, j| {
        let x = ((i * 37 + 11) % 101) as f64 / 101.0;
        let noise = ((i * 53 + 7) % 97) as f64 / 97.0;
        [1.5 + 0.4 * x, 1e5 * noise, 7.0, 1e-3 * (x + 0.1 * noise)][j]
    })
    .unwrap()
}

const BOUNDS: [f64; 4] = [2.0, 2e5, 10.0, 2e-3];

/// Means and covariances as they are.
fn moments(table: &Matrix) -> (Vec<f64>, Matrix) {
    let (rows, columns) = table.shape();
    let mean: Vec<f64> = (0..columns).map(|j| (0..rows).map(|i| table.get(i, j)).sum::<f64>() / rows as f64).collect();
    let covariance = Matrix::from_fn(columns, columns, |j, k| {
        let term = |i: usize| (table.get(i, j) - mean[j]) * (table.get(i, k) - mean[k]);
        (0..rows).map(term).sum::<f64>() / (rows - 1) as f64
    });
    (mean, covariance.unwrap())
}

/// The largest share of its error that a moment is off by.
fn share(found: &Moments, table: &Matrix) -> f64 {
    let (mean, covariance) = moments(table);
    let means = found.mean.iter().zip(&mean).zip(&found.mean_error).map(|((a, b), e)| (a - b).abs() / e);
    let pairs = found.covariance.data().iter().zip(covariance.data()).zip(found.covariance_error.data());
    means.chain(pairs.map(|((a, b), e)| (a - b).abs() / e)).fold(0.0, f64::max)
}

fn client(rows: usize, release: Option<ReleasePolicy>) -> Client {
    let goal = Goal { release, ..Goal::moments(rows, BOUNDS.to_vec()).unwrap() };
    Client::new(&Planner::new(CostModel::default()).plan(&goal).unwrap(), 2).unwrap()
}

fn encrypted(client: &Client, table: &Matrix) -> Encrypted {
    client.server().unwrap().apply(&Operation::Moments, &[&client.encrypt("table", table).unwrap()]).unwrap()
}

/// What is promised of each mean, and of each covariance.
fn promised(client: &Client) -> (Vec<f64>, Matrix) {
    let errors = client.plan().errors(true).unwrap();
    let covariance = Matrix::from_fn(4, 4, |j, k| errors.get(j + 1, k)).unwrap();
    ((0..4).map(|j| errors.get(0, j)).collect(), covariance)
}

#[test]
fn every_moment_is_within_its_error() {
    let (client, table) = (client(60, None), table(60));
    let found = client.decrypt_moments(&encrypted(&client, &table)).unwrap();
    assert!(share(&found, &table) < 1.0, "{}", share(&found, &table));
    assert_eq!((found.mean_error.clone(), found.covariance_error.clone()), promised(&client));
    // Columns of very different size have errors of their own size: seven digits and more of each.
    for (j, bound) in BOUNDS.iter().enumerate() {
        assert!(found.mean_error[j] < 1e-8 * bound);
        for (k, other) in BOUNDS.iter().enumerate() {
            assert!(found.covariance_error.get(j, k) < 1e-8 * bound * other);
        }
    }
    // The constant column has no correlation; the others have theirs.
    let correlation = found.correlation();
    let (_, covariance) = moments(&table);
    for (at, found) in correlation.iter().enumerate() {
        let (j, k) = (at / 4, at % 4);
        if j == 2 || k == 2 {
            assert!(found.is_nan(), "({j}, {k}): {found}");
        } else {
            let want = covariance.get(j, k) / (covariance.get(j, j) * covariance.get(k, k)).sqrt();
            assert!((found - want).abs() < 1e-5, "({j}, {k}): {found} {want}");
        }
    }
    assert!(found.to_string().contains('±'));
    let refused = client.decrypt_moments_for_release(&encrypted(&client, &table));
    assert_eq!(refused, Err(MatrixError::NoRelease { what: "plan" }));
    // As a matrix: means above, covariances below.
    let all = client.decrypt(&encrypted(&client, &table)).unwrap();
    assert_eq!(all.shape(), (5, 4));
    // Its table is not given back, is no matrix of another shape, and is encrypted under the secret key.
    let x = client.encrypt("table", &table).unwrap();
    assert!(matches!(client.decrypt(&x), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(client.encrypt("table", &table.transpose()), Err(MatrixError::PlannedShape { .. })));
    let over = Matrix::from_fn(60, 4, |i, j| if (i, j) == (3, 3) { 0.0021 } else { 0.0 }).unwrap();
    let refused = client.encrypt("table", &over);
    assert!(matches!(refused, Err(MatrixError::Expr(ExprError::OverBound { row: 3, col: 3, .. }))), "{refused:?}");
    let public = PublicClient::new(client.plan(), client.public_key().unwrap(), 1);
    assert!(matches!(public, Err(MatrixError::NotPlanned { .. })));
}

#[test]
fn released_moments_keep_their_promise_and_are_counted() {
    let policy = ReleasePolicy::new(3, 30).unwrap();
    let (client, table) = (client(60, Some(policy)), table(60));
    let secret = encrypted(&client, &table);
    let private = client.decrypt_moments(&secret).unwrap();
    assert!(share(&private, &table) < 1.0);
    let shown = client.decrypt_moments_for_release(&secret).unwrap();
    assert!(share(&shown, &table) < 1.0 && share(&shown, &table) > 0.01, "{}", share(&shown, &table));
    // Its noise is told, and far above what is hidden.
    assert!(shown.covariance_error.get(1, 1) > 1e5 * private.covariance_error.get(1, 1));
    assert!(shown.covariance_error.get(1, 1) < 1e-4 * BOUNDS[1] * BOUNDS[1]);
    assert_eq!(shown.covariance, shown.covariance.transpose());
    assert_eq!((shown.mean_error.clone(), shown.covariance_error.clone()), promised(&client));
    assert!(shown.correlation()[2 * 4].is_nan());
    assert_eq!(client.releases_left(), 2);

    let forged = |scale: f64, noise: f64| {
        let bundle = Bundle::from_bytes(client.secret_key().params(), &secret.to_bytes().unwrap()).unwrap();
        let change = |c: &Ciphertext| {
            let state = State { scale: c.scale() * scale, noise: c.noise() * noise, ..c.state() };
            Ciphertext::from_parts(c.inner().clone(), state).unwrap()
        };
        let cts = bundle.ciphertexts().iter().map(change).collect();
        let bundle = Bundle::new(bundle.params(), bundle.key(), bundle.application().to_vec(), cts).unwrap();
        Encrypted::from_bytes(client.plan(), &bundle.to_bytes().unwrap()).unwrap()
    };
    for (scale, noise) in [(1.0, 0.0), (0.5, 1.0), (2.0, 1.0)] {
        let refused = client.decrypt_for_release(&forged(scale, noise));
        assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::NotAsComputed { .. })))), "{refused:?}");
    }
    assert_eq!(client.releases_left(), 2);

    let saved = secret_key_to_bytes(client.secret_key()).unwrap();
    let key = secret_key_from_bytes(client.secret_key().params(), &saved).unwrap();
    let again = Client::with_secret_key(client.plan(), key, 1).unwrap();
    again.decrypt_for_release(&secret).unwrap();
    again.decrypt_for_release(&secret).unwrap();
    let refused = again.decrypt_for_release(&secret);
    assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 3 })))));
}
