//! Counts, matches and scores are those of a plain search.

use crate::world::*;
use sudare_ring::threads::Threads;
use sudare_search::{Answer, Gap, Goal, Index, Payload};
use sudare_testkit::{Random, sized};

#[test]
fn every_answer_is_that_of_a_plain_search() {
    let mut random = Random(1);
    let data = Data::new(&mut random, 1300, D);
    let world = World::small(goal(2000));
    let index = world.client.index();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let queries = data.questions(&mut random);
    let query = world.query(&queries.concat());

    let held = world.server.open(&path, MEMORY).unwrap();
    let streamed = world.server.open(&path, index.bytes().memory).unwrap();
    assert_eq!((held.segments(), streamed.segments(), held.rows()), ((3, 3), (3, 0), 1300));

    world.searches_plainly(&data, &queries, [&held, &streamed]);

    let answer = world.server.scores(&held, &query, QUIET).unwrap();
    let bytes = answer.to_bytes().unwrap();
    assert_eq!(bytes, world.server.scores(&streamed, &query, QUIET).unwrap().to_bytes().unwrap());
    let scores = world.client.scores(&Answer::from_bytes(index, &bytes).unwrap()).unwrap();
    for (query, scores) in queries.iter().zip(&scores) {
        let expected = data.scores(query);
        assert_eq!(scores.len(), expected.len());
        let worst = scores.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4, "{worst}");
    }
}

#[test]
fn answers_have_one_size_whatever_matches() {
    let mut random = Random(2);
    let data = Data::new(&mut random, 700, D);
    let world = World::small(goal(1000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let database = world.server.open(&path, MEMORY).unwrap();
    let queries = data.questions(&mut random);
    let sizes = |query: &Vec<f32>| {
        let query = world.query(query);
        let count = world.server.count(&database, &query, &[GAP], QUIET).unwrap();
        let fetch = world.server.fetch(&database, &query, GAP, QUIET).unwrap();
        [query.to_bytes(), count.to_bytes(), fetch.to_bytes()].map(|b| b.unwrap().len())
    };
    assert_eq!(sizes(&queries[0]), sizes(&queries[2]));
}

/// Sixteen-bit payloads and wide ones, of many matches.
#[test]
fn payloads_of_all_widths() {
    let mut random = Random(3);
    for (numbers, bits, d) in [(2, 16, 32), (1, 64, 32), (5, 1, 32)] {
        let gap = Gap { low: 0.2, high: 0.9 };
        let world = World::small(Goal {
            d,
            gap,
            lowest: -1.0,
            rows: 1100,
            above: 0.5,
            payload: Some(Payload { numbers, bits, dtype: None }),
        });
        let centre = random.direction(d);
        // Exact copies, few enough that hardly ever four of them hide each other, and rows across.
        let mut rows = Vec::new();
        for i in 0..1100 {
            let across = across(&mut random, &centre);
            rows.extend(floats(if i % 70 == 0 { &centre } else { &across }));
        }
        let payload: Vec<u64> = (0..1100 * numbers).map(|_| random.word() >> (64 - bits)).collect();
        let data = Data { d, rows, payload, centres: vec![] };
        let folder = tempfile::tempdir().unwrap();
        world.store(&folder.path().join("t"), &data);
        let database = world.server.open(&folder.path().join("t"), MEMORY).unwrap();
        let query = world.query(&floats(&centre));
        let hits = world.client.hits(&world.server.fetch(&database, &query, gap, QUIET).unwrap()).unwrap().remove(0);
        assert_eq!(hits.len(), 16);
        for hit in hits {
            assert_eq!(hit.row % 70, 0);
            assert_eq!(hit.payload, data.payload[hit.row as usize * numbers..][..numbers]);
        }
    }
}

/// The set with 128 bits of security, few rows, the widest digits of payloads.
#[test]
fn a_secure_index() {
    let mut random = Random(4);
    let (d, count) = (sized(24, 128), sized(300, 20_000));
    let gap = Gap { low: 0.72, high: 0.9 };
    let goal = Goal {
        d,
        gap,
        rows: 20_000,
        lowest: -1.0,
        above: 0.85,
        payload: Some(Payload { numbers: 1, bits: 64, dtype: None }),
    };
    let world = World::new(&Index::new(goal).unwrap());
    let centre = random.direction(d);
    let mut rows = Vec::new();
    while rows.len() < count * d {
        let near_one = (rows.len() / d) % 60 == 0;
        let row = if near_one { centre.clone() } else { random.direction(d) };
        let dot: f64 = row.iter().zip(&centre).map(|(a, b)| a * b).sum();
        if near_one || dot < 0.72 {
            rows.extend(floats(&row));
        }
    }
    let data = Data { d, rows, payload: (0..count).map(|_| random.word()).collect(), centres: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    Threads::new(2).run(|| {
        world.store(&path, &data);
        let database = world.server.open(&path, MEMORY).unwrap();
        let query = world.query(&floats(&centre));
        let hits = world.client.hits(&world.server.fetch(&database, &query, gap, QUIET).unwrap()).unwrap().remove(0);
        let expected = data.matches(&floats(&centre), 0.85);
        assert_eq!(hits.iter().map(|h| h.row).collect::<Vec<_>>(), expected);
        assert!(hits.iter().all(|hit| hit.payload == [data.payload[hit.row as usize]]));
        // Most places have no row.
        let answer = world.server.count(&database, &query, &[gap], QUIET).unwrap();
        assert_eq!(world.client.counts(&answer).unwrap(), [[expected.len() as u64]]);
    });
}
