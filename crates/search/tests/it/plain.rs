//! Scores against a table in the clear.

use crate::world::floats;
use sudare_ring::threads::Threads;
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::plain::{PlainAnswer, PlainClient, PlainIndex, PlainQuery, PlainTable};
use sudare_testkit::Random;

#[test]
fn scores_are_those_of_a_plain_search() {
    let (d, count, mut random) = (128, 4096, Random(41));
    let index = PlainIndex::new(d).unwrap();
    let rows: Vec<Vec<f64>> = (0..count).map(|_| random.direction(d)).collect();
    let table = PlainTable::new(&index, &floats(&rows.concat())).unwrap();
    let client = PlainClient::new(&index).unwrap();
    // A copy of a row, its opposite, and any.
    let opposite: Vec<f64> = rows[7].iter().map(|x| -x).collect();
    let queries = [rows[7].clone(), opposite, random.direction(d)];
    let bytes = client.query(&floats(&queries.concat())).unwrap().to_bytes().unwrap();
    assert!(bytes.len() / 3 < 1_600_000);
    let query = PlainQuery::from_bytes(&index, &bytes).unwrap();
    let answer = table.scores(&query).unwrap().to_bytes().unwrap();
    assert_eq!(answer, Threads::new(3).run(|| table.scores(&query)).unwrap().to_bytes().unwrap());
    assert!(answer.len() / 3 < 50_000, "{}", answer.len());
    let scores = client.scores(&PlainAnswer::from_bytes(&index, &answer).unwrap()).unwrap();
    let mut square = 0.0;
    for (query, scores) in queries.iter().zip(&scores) {
        assert_eq!(scores.len(), count);
        for (row, score) in rows.iter().zip(scores) {
            let exact: f64 = row.iter().zip(query).map(|(a, b)| a * b).sum();
            square += (score - exact).powi(2) / (3 * count) as f64;
            assert!((score - exact).abs() < 8.0 * index.deviation());
        }
    }
    // Errors of one question's rows share its ciphertexts: 12,288 of them scatter by a few per cent.
    let ratio = square / index.deviation().powi(2);
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
}

#[test]
fn what_is_no_question_is_refused() {
    let index = PlainIndex::new(4).unwrap();
    let (client, other) = (PlainClient::new(&index).unwrap(), PlainClient::new(&index).unwrap());
    let table = PlainTable::new(&index, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
    assert!(PlainIndex::new(0).is_err());
    assert!(PlainTable::new(&index, &[1.0; 3]).is_err() && PlainTable::new(&index, &[f32::NAN; 4]).is_err());
    assert!(client.query(&[0.0; 4]).is_err() && client.query(&[1.0; 5]).is_err() && client.query(&[]).is_err());
    let answer = table.scores(&client.query(&[1.0; 4]).unwrap()).unwrap();
    assert!(client.scores(&answer).unwrap()[0][1].abs() < 0.01);
    assert_eq!(other.scores(&answer).unwrap_err().kind(), ErrorKind::Mismatch);
    let wide = PlainIndex::new(3).unwrap();
    let query = PlainClient::new(&wide).unwrap().query(&[1.0; 3]).unwrap();
    assert_eq!(table.scores(&query).unwrap_err().kind(), ErrorKind::Mismatch);
    // Four questions of three coordinates are no three of four.
    let bytes = PlainClient::new(&wide).unwrap().query(&[1.0; 12]).unwrap().to_bytes().unwrap();
    assert_eq!(PlainQuery::from_bytes(&index, &bytes).unwrap_err().kind(), ErrorKind::Mismatch);
    let bytes = client.query(&[1.0; 4]).unwrap().to_bytes().unwrap();
    assert!(PlainQuery::from_bytes(&index, &bytes[..bytes.len() - 1]).is_err());
    assert!(PlainAnswer::from_bytes(&index, &bytes).is_err());
}
