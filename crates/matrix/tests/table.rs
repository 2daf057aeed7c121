//! Statistics of tables: errors beside moments, correlations, releases.

use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, ReleasePolicy};
use sudare_he::security::Security;
use sudare_he::wire::{Bundle, Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_matrix::session::{EncryptedMoments, TableClient, TableMoments, TableSpec};
use sudare_matrix::{Matrix, MatrixError};

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
fn share(found: &TableMoments, table: &Matrix) -> f64 {
    let (mean, covariance) = moments(table);
    let means = found.mean.iter().zip(&mean).zip(&found.mean_error).map(|((a, b), e)| (a - b).abs() / e);
    let pairs = found.covariance.data().iter().zip(covariance.data()).zip(found.covariance_error.data());
    means.chain(pairs.map(|((a, b), e)| (a - b).abs() / e)).fold(0.0, f64::max)
}

fn client(rows: usize, release: Option<ReleasePolicy>) -> TableClient {
    let spec = TableSpec::new(rows, BOUNDS.to_vec(), Security::Bits128, release).unwrap();
    TableClient::new(&spec, 2).unwrap()
}

fn encrypted(client: &TableClient, table: &Matrix) -> EncryptedMoments {
    client.server().unwrap().moments(&client.encrypt(table).unwrap()).unwrap()
}

#[test]
fn every_moment_is_within_its_error() {
    let (client, table) = (client(60, None), table(60));
    let found = client.decrypt(&encrypted(&client, &table)).unwrap();
    assert!(share(&found, &table) < 1.0, "{}", share(&found, &table));
    assert_eq!((found.mean_error.clone(), found.covariance_error.clone()), client.spec().errors().unwrap());
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
    assert_eq!(client.decrypt_for_release(&encrypted(&client, &table)), Err(MatrixError::NoRelease { what: "table" }));
}

#[test]
fn released_moments_keep_their_promise_and_are_counted() {
    let policy = ReleasePolicy::new(3, 30).unwrap();
    let (client, table) = (client(60, Some(policy)), table(60));
    let secret = encrypted(&client, &table);
    let private = client.decrypt(&secret).unwrap();
    assert!(share(&private, &table) < 1.0);
    let shown = client.decrypt_for_release(&secret).unwrap();
    assert!(share(&shown, &table) < 1.0 && share(&shown, &table) > 0.01, "{}", share(&shown, &table));
    // Its noise is told, and far above what is hidden.
    assert!(shown.covariance_error.get(1, 1) > 1e5 * private.covariance_error.get(1, 1));
    assert!(shown.covariance_error.get(1, 1) < 1e-4 * BOUNDS[1] * BOUNDS[1]);
    assert_eq!(shown.covariance, shown.covariance.transpose());
    assert_eq!((shown.mean_error.clone(), shown.covariance_error.clone()), client.spec().errors().unwrap());
    assert!(shown.correlation()[2 * 4].is_nan());
    assert_eq!(client.releases_left(), 2);

    let forged = |scale: f64, noise: f64| {
        let bundle = Bundle::from_bytes(client.secret_key().params(), &secret.to_bytes().unwrap()).unwrap();
        let change = |c: &Ciphertext| {
            let state = (c.scale() * scale, c.bound(), c.noise() * noise);
            Ciphertext::from_parts(c.params(), c.key(), c.parts().to_vec(), c.level(), state).unwrap()
        };
        let cts = bundle.ciphertexts().iter().map(change).collect();
        let bundle = Bundle::new(bundle.params(), bundle.key(), bundle.application().to_vec(), cts).unwrap();
        EncryptedMoments::from_bytes(client.spec(), &bundle.to_bytes().unwrap()).unwrap()
    };
    for (scale, noise) in [(1.0, 0.0), (0.5, 1.0), (2.0, 1.0)] {
        let refused = client.decrypt_for_release(&forged(scale, noise));
        assert!(matches!(refused, Err(MatrixError::He(HeError::NotAsComputed { .. }))), "{refused:?}");
    }
    assert_eq!(client.releases_left(), 2);

    let saved = secret_key_to_bytes(client.secret_key()).unwrap();
    let key = secret_key_from_bytes(client.secret_key().params(), &saved).unwrap();
    let again = TableClient::with_secret_key(client.spec(), key, 1).unwrap();
    again.decrypt_for_release(&secret).unwrap();
    again.decrypt_for_release(&secret).unwrap();
    let refused = again.decrypt_for_release(&secret);
    assert!(matches!(refused, Err(MatrixError::He(HeError::ReleasesUsedUp { declared: 3 }))));
}

#[test]
fn what_leaves_no_digits_is_refused_with_the_figure() {
    let spec = |rows, columns, release| TableSpec::new(rows, vec![1.0; columns], Security::Bits128, release);
    let most = ReleasePolicy::new(1 << 24, 64).unwrap();
    for (rows, release, remedy) in [(1usize << 40, None, "fewer rows"), (100, Some(most), "fewer results")] {
        let refused = spec(rows, 3, release).unwrap_err().to_string();
        assert!(refused.contains("wrong by up to") && refused.contains(remedy), "{refused}");
    }
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e160] {
        assert!(TableSpec::new(5, vec![bound], Security::Bits128, None).is_err(), "{bound}");
    }
    for security in [Security::Bits192, Security::Bits256] {
        let release = Some(ReleasePolicy::new(10, 30).unwrap());
        assert!(TableSpec::new(1000, vec![1.0; 20], security, release).is_ok());
    }
}
