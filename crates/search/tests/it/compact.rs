//! The compact mode: the same answers from rows in a tenth of the memory.

use crate::world::*;
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::{Client, Gap, Goal, Index, Keys, Mode, Payload, Query, SearchError, Server};
use sudare_testkit::{Random, sized};

#[test]
fn every_answer_is_that_of_a_plain_search() {
    let mut random = Random(61);
    let data = Data::new(&mut random, 2700, D);
    let world = World::compact(goal(4000));
    let index = world.client.index();
    assert_eq!((index.mode(), index.segment_rows()), (Mode::Compact, 2048));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let queries = data.questions(&mut random);
    let query = world.query(&queries.concat());
    let held = world.server.open(&path, MEMORY).unwrap();
    let streamed = world.server.open(&path, index.bytes().memory).unwrap();
    assert_eq!((held.segments(), streamed.segments(), held.rows()), ((2, 2), (2, 0), 2700));

    world.searches_plainly(&data, &queries, [&held, &streamed]);
    // Scores are the leveled mode's.
    assert_eq!(world.server.scores(&held, &query, QUIET).unwrap_err(), SearchError::NoScores);
}

/// What is known of sums does not grow past the modulus with the number of segments.
#[test]
fn payloads_of_many_segments() {
    let mut random = Random(64);
    let data = Data::new(&mut random, 18 * 2048, D);
    let world = World::compact(goal(18 * 2048));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let database = world.server.open(&path, MEMORY).unwrap();
    assert_eq!(database.segments(), (18, 18));
    let question = data.questions(&mut random).remove(0);
    let answer = world.server.fetch(&database, &world.query(&question), GAP, QUIET).unwrap();
    let hits = world.client.hits(&answer).unwrap().remove(0);
    let found: Vec<(u64, &[u64])> = hits.iter().map(|h| (h.row, h.payload.as_slice())).collect();
    let of_row = |row: u64| (row, &data.payload[3 * row as usize..][..3]);
    assert_eq!(found, data.matches(&question, 0.8).into_iter().map(of_row).collect::<Vec<_>>());
}

/// Errors of sums keep to what the plan says of bias and noise.
#[test]
fn planned_errors_hold() {
    let mut random = Random(62);
    let world = World::compact(Goal { payload: None, ..goal(50_000) });
    world.counts_within_plan(&mut random, 2000, [sized(4, 40), 1]);
    let expected = world.client.index().expected();
    assert!(expected.bias < 0.1, "{expected:?}");
}

/// Rows at the edges of the gap, copies, opposite rows and rows of zeros.
#[test]
fn rows_of_all_kinds() {
    let mut random = Random(63);
    let d = 32;
    let world = World::compact(Goal { d, payload: Some(Payload { numbers: 1, bits: 20, dtype: None }), ..goal(600) });
    let centre = random.direction(d);
    let at = |random: &mut Random, score: f64| -> Vec<f64> {
        let across = unit(&across(random, &centre));
        centre.iter().zip(&across).map(|(c, a)| score * c + (1.0 - score * score).sqrt() * a).collect()
    };
    let scores = [1.0, 0.8201, 0.6599, -0.66, -1.0, 0.0, 0.9, 1.0, -0.82];
    let mut rows: Vec<f32> = scores.iter().flat_map(|s| floats(&at(&mut random, *s))).collect();
    rows.extend(vec![0.0; d]);
    let payload: Vec<u64> = (0..10).map(|_| random.word() >> 44).collect();
    let data = Data { d, rows, payload: payload.clone(), centres: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let database = world.server.open(&path, MEMORY).unwrap();
    let query = world.query(&floats(&centre));
    let hits = world.client.hits(&world.server.fetch(&database, &query, GAP, QUIET).unwrap()).unwrap().remove(0);
    let found: Vec<(u64, Vec<u64>)> = hits.into_iter().map(|h| (h.row, h.payload)).collect();
    assert_eq!(found, [0, 1, 6, 7].map(|row| (row as u64, vec![payload[row]])));
}

#[test]
fn plans_of_both_modes_are_apart() {
    let goal = goal(1000);
    let compact = Index::insecure_in_mode(goal, Mode::Compact, 11).unwrap();
    let again = Index::from_json(&compact.to_json()).unwrap();
    assert_eq!((again.hash(), again.mode()), (compact.hash(), Mode::Compact));
    let leveled = Index::insecure(goal, 11).unwrap();
    assert_ne!(leveled.hash(), compact.hash());
    assert!(compact.explain(&|_, _| 1.0).contains("half a bootstrap"));
    // Keys of a plan of the other mode, and keys by bytes.
    let client = Client::new(&compact).unwrap();
    let bytes = client.keys().unwrap().to_bytes().unwrap();
    let keys = Keys::from_bytes(&compact, &bytes).unwrap();
    assert_eq!((keys.id(), keys.wire_bytes().unwrap()), (client.secret().id(), bytes.len() as u64));
    let expected = compact.bytes().keys as f64;
    assert!((bytes.len() as f64 / expected - 1.0).abs() < 0.2, "{} {expected}", bytes.len());
    assert!(Server::new(&compact, keys).is_ok());
    assert!(Keys::from_bytes(&leveled, &bytes).is_err());
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        assert!(Keys::from_bytes(&compact, &bytes[..cut]).is_err());
    }
    let other = Client::new(&leveled).unwrap();
    assert!(Server::new(&compact, other.keys().unwrap()).is_err());
    let question = client.query(&[1.0; D]).unwrap().to_bytes().unwrap();
    let foretold = question.len() as f64 / compact.bytes().query as f64;
    assert!((0.9..1.1).contains(&foretold), "{foretold}");
    assert_eq!(Query::from_bytes(&leveled, &question).unwrap_err().kind(), ErrorKind::Mismatch);
    // A gap that no series of the set reaches.
    let narrow = Goal { gap: Gap { low: 0.795, high: 0.82 }, ..goal };
    let refused = Index::insecure_in_mode(narrow, Mode::Compact, 11).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Parameters, "{refused}");
}

/// The sizes of the public benchmark.
#[test]
fn the_sizes_of_the_public_benchmark() {
    for (d, rows, low, lowest, database) in [(128, 50_000, 0.66, -0.66, 41e6), (256, 1_000_000, 0.52, -0.52, 1.6e9)] {
        let gap = Gap { low, high: 0.82 };
        let goal = Goal { d, rows, above: 0.8, gap, lowest, payload: None };
        let index = Index::in_mode(goal, Mode::Compact).unwrap();
        let (expected, bytes) = (*index.expected(), index.bytes());
        assert!((bytes.database as f64 / database - 1.0).abs() < 0.08, "{bytes:?}");
        assert!((8e-4..1.1e-3).contains(&expected.score), "{expected:?}");
        assert!(expected.bias < 0.1 && expected.log2_failure < -60.0, "{expected:?}");
        assert_eq!(bytes.rows, rows.div_ceil(32_768) * 32_768 * 8 * d as u64);
        assert!(bytes.keys < 300_000_000 && bytes.count < 700_000, "{bytes:?}");
    }
    // The example of the guide, beside the other mode.
    let gap = Gap { low: 0.75, high: 0.95 };
    let goal = Goal { d: 64, rows: 10_000, above: 0.85, gap, lowest: -1.0, payload: None };
    let [compact, leveled] = [Mode::Compact, Mode::Leveled].map(|mode| Index::in_mode(goal, mode).unwrap().bytes());
    assert!(compact.database < leveled.database / 6 && compact.rows < leveled.rows / 9, "{compact:?} {leveled:?}");
}

/// The set with 128 bits of security.
#[test]
fn a_secure_index() {
    if sized(true, false) {
        return;
    }
    let mut random = Random(64);
    let data = Data::new(&mut random, 5000, D);
    let world = World::new(&Index::in_mode(goal(20_000), Mode::Compact).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let database = world.server.open(&path, 16 << 30).unwrap();
    let query = data.questions(&mut random).remove(0);
    let answer = world.server.count(&database, &world.query(&query), &[GAP], QUIET).unwrap();
    let sum = world.client.sums(&answer).unwrap()[0][0];
    assert!((sum - data.matches(&query, 0.8).len() as f64).abs() < 0.1, "{sum}");
    let answer = world.server.fetch(&database, &world.query(&query), GAP, QUIET).unwrap();
    let rows: Vec<u64> = world.client.hits(&answer).unwrap().remove(0).into_iter().map(|h| h.row).collect();
    assert_eq!(rows, data.matches(&query, 0.8));
    let answer = world.server.count(&database, &world.query(&query), &[GAP], QUIET).unwrap();
    assert_eq!(world.client.counts(&answer).unwrap(), [[rows.len() as u64]]);
}
