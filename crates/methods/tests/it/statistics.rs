//! Means and covariances of encrypted columns against plain sums.

use sudare_he::HeError;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, Params};
use sudare_methods::statistics::{ColumnStatistics, Moments};
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::Security;
use sudare_testkit::random::unit_at;

fn small(released: bool) -> Params {
    let mut literal = ColumnStatistics::literal(Security::Bits128, released);
    (literal.log_n, literal.security) = (9, Security::Insecure);
    literal.build().unwrap()
}

/// Values with a mean far from zero, as real columns have.
fn value(i: usize, j: usize) -> f64 {
    let noise = (unit_at(1, i, j) + 1.0) / 2.0;
    0.9 - 0.3 * noise * ((j % 3) as f64 + 0.1) - (i % 7) as f64 * 0.02
}

/// A sum whose own rounding is far below the errors that are compared with it (Kahan and Babuška's).
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, lost) = values.fold((0f64, 0f64), |(sum, lost), x| {
        let next = sum + x;
        let (large, little) = if sum.abs() >= x.abs() { (sum, x) } else { (x, sum) };
        (next, lost + ((large - next) + little))
    });
    sum + lost
}

fn plain(rows: usize, columns: usize) -> Moments {
    let n = rows as f64;
    let mean: Vec<f64> = (0..columns).map(|j| sum((0..rows).map(|i| value(i, j))) / n).collect();
    let covariance = (0..columns * columns)
        .map(|at| {
            let (j, k) = (at / columns, at % columns);
            sum((0..rows).map(|i| (value(i, j) - mean[j]) * (value(i, k) - mean[k]))) / (n - 1.0)
        })
        .collect();
    Moments { mean, covariance }
}

#[test]
fn moments_of_any_shape() {
    for released in [false, true] {
        moments_with(&small(released));
    }
}

fn moments_with(params: &Params) {
    let mut nearest = 0f64;
    let secret = SecretKey::generate(params).unwrap();
    // Fewer rows than results, chunks that are full and not, one column and many.
    for (rows, columns) in
        [(2, 1), (3, 9), (5, 3), (100, 7), (128, 4), (256, 3), (300, 2), (700, 3), (512, 1), (4000, 12), (100_000, 2)]
    {
        let statistics = ColumnStatistics::new(params, rows, columns).unwrap();
        let (keys, figures) = (KeyGenerator::new(&secret).unwrap(), statistics.figures());
        let keys = keys.eval_keys(figures.keys.relin, &figures.keys.galois).unwrap();
        let encryptor = Encryptor::with_secret_key(&secret).unwrap();
        let table: Vec<_> = statistics.encode(value).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect();
        assert_eq!(table.len(), statistics.table_ciphertexts());
        let server = Evaluator::new(params, keys).unwrap();
        let results = statistics.compute(&server, table[..].into()).unwrap();
        // The same lines, with no key but those that the simulation names.
        assert_eq!(Some(server.counters()), figures.counters, "{rows}×{columns}");
        let slots: Vec<Vec<f64>> = results
            .iter()
            .map(|c| Encoder::new(params).decode(&Decryptor::new(&secret).decrypt(c).unwrap()).unwrap())
            .collect();
        let (found, wanted) = (statistics.decode(&slots).unwrap(), plain(rows, columns));
        let (errors, expected) = (statistics.errors(), statistics.expected());
        for c in &results {
            // What is expected is worked out without them, and they say no less.
            assert_eq!(c.level(), expected.level);
            assert_eq!(c.scale(), expected.scale, "{rows}×{columns}");
            assert!(c.error_bound() >= expected.error * (1.0 - 1e-12));
        }
        for (what, found, wanted, bound) in [
            ("means", &found.mean, &wanted.mean, errors.mean),
            ("covariances", &found.covariance, &wanted.covariance, errors.covariance),
        ] {
            let largest = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest <= bound, "{rows}×{columns} {what}: {largest:e} of {bound:e}");
            assert!(bound < if params.scale() > 1e15 { 1e-12 } else { 1e-8 }, "{rows}×{columns} {what}: {bound:e}");
            nearest = nearest.max(largest / bound);
        }
        // Others count as many ciphertexts, and threads change nothing.
        assert!(matches!(
            statistics.compute(&server, table[1..].into()),
            Err(HeError::Rlwe(RlweError::Operands { .. }))
        ));
        assert!(matches!(statistics.decode(&slots[1..]), Err(HeError::Rlwe(RlweError::Operands { .. }))));
        let again = Threads::new(3).run(|| statistics.compute(&server, table[..].into())).unwrap();
        assert!(results.iter().zip(&again).all(|(a, b)| a.parts()[0].words() == b.parts()[0].words()));
    }
    assert!(nearest > 0.01, "the bounds say something: the nearest error is {nearest:e} of its bound");
}

#[test]
fn refusals() {
    let params = small(false);
    for (rows, columns) in [(0, 1), (1, 1), (5, 0), (5, 1 << 13)] {
        assert!(matches!(
            ColumnStatistics::new(&params, rows, columns),
            Err(HeError::Rlwe(RlweError::Parameters { .. }))
        ));
    }
    let mut shallow = params.literal().clone();
    shallow.q_bits = vec![45, 40, 40];
    let shallow = shallow.build().unwrap();
    assert!(matches!(ColumnStatistics::new(&shallow, 4, 1), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    let statistics = ColumnStatistics::new(&params, 40, 3).unwrap();
    assert!(matches!(statistics.encode(|_, _| 1.01), Err(HeError::Rlwe(RlweError::OverBound { .. }))));
    assert!(matches!(statistics.encode(|_, _| f64::NAN), Err(HeError::NotFinite { .. })));
    let secret = SecretKey::generate(&params).unwrap();
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let table: Vec<_> = statistics.encode(value).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect();
    let generator = KeyGenerator::new(&secret).unwrap();
    let keys = &statistics.figures().keys;
    let no_relin = Evaluator::new(&params, generator.eval_keys(None, &keys.galois).unwrap()).unwrap();
    assert!(matches!(statistics.compute(&no_relin, table[..].into()), Err(HeError::Rlwe(RlweError::MissingRelinKey))));
    let fewer = Evaluator::new(&params, generator.eval_keys(keys.relin, &keys.galois[1..]).unwrap()).unwrap();
    assert!(matches!(
        statistics.compute(&fewer, table[..].into()),
        Err(HeError::Rlwe(RlweError::MissingRotationKey { .. }))
    ));
    for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
        assert!(ColumnStatistics::literal(security, false).build().is_ok());
        assert!(ColumnStatistics::literal(security, true).build().is_ok());
    }
}
