//! Rows and questions at the edges.

use crate::world::*;
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::{Gap, Goal, SearchError};
use sudare_testkit::Random;

/// A row with a given score against `centre`.
fn scoring(random: &mut Random, centre: &[f64], score: f64) -> Vec<f32> {
    let away = random.direction(centre.len());
    let dot: f64 = away.iter().zip(centre).map(|(a, c)| a * c).sum();
    let across = unit(&away.iter().zip(centre).map(|(a, c)| a - dot * c).collect::<Vec<_>>());
    let side = (1.0 - score * score).max(0.0).sqrt();
    floats(&centre.iter().zip(&across).map(|(c, a)| score * c + side * a).collect::<Vec<_>>())
}

#[test]
fn rows_at_the_edges_of_the_gap_and_far_from_it() {
    let mut random = Random(11);
    let world = World::small(Goal { payload: None, ..goal(50_000) });
    let centre = random.direction(D);
    // Copies (score one), opposite rows (score minus one), zeros, both ends of the gap, long rows and tiny ones.
    let scores = [1.0, 1.0, 1.0, -1.0, -1.0, 0.82, 0.9, 0.66, -0.66, 0.0, -0.9, 0.659, 0.8201];
    let mut rows: Vec<f32> = scores.iter().flat_map(|s| scoring(&mut random, &centre, *s)).collect();
    rows.extend(vec![0.0; 3 * D]);
    rows.extend(floats(&centre).iter().map(|x| x * 1e30));
    rows.extend(floats(&centre).iter().map(|x| x * 1e-30));
    let expected = 3 + 3 + 2;
    let data = Data { d: D, rows, payload: vec![], centres: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    assert_eq!(world.count(&path, &floats(&centre)).unwrap(), expected);
    // Opposite rows neither match nor spoil the ciphertext that they are in.
    let opposite: Vec<f32> = centre.iter().map(|x| -*x as f32).collect();
    assert_eq!(world.count(&path, &opposite).unwrap(), 3);
}

/// A count of any number of matches is right or refused.
#[test]
fn many_matches_at_the_upper_end_are_counted_or_told() {
    let mut random = Random(13);
    let gap = Gap { low: 0.71, high: 0.82 };
    let world = World::small(Goal { payload: None, gap, ..goal(6000) });
    let centre = random.direction(D);
    let sure = world.client.index().expected().matches;
    assert!((5..2500).contains(&sure), "{sure}");
    // The score above the gap whose indicator is furthest from one.
    let threshold = world.client.index().threshold();
    let away = |score: f64| (threshold.value(score) - 1.0).abs();
    let furthest =
        (0..=180).map(|i| 0.82 + f64::from(i) / 1000.0).max_by(|a, b| away(*a).total_cmp(&away(*b))).unwrap();
    let row = scoring(&mut random, &centre, furthest);
    for (count, told) in [(sure, false), (6000, true)] {
        let rows = std::iter::repeat_n(row.clone(), count as usize).flatten().collect();
        let data = Data { d: D, rows, payload: vec![], centres: vec![] };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        world.store(&path, &data);
        match world.count(&path, &floats(&centre)) {
            Ok(found) => assert!(found == count && !told, "{found} of {count}"),
            Err(e) => assert!(told && matches!(e, SearchError::ManyMatches { .. }), "{count}: {e}"),
        }
    }
}

#[test]
fn a_score_inside_of_the_gap_is_told() {
    let mut random = Random(12);
    let world = World::small(goal(1000));
    let centre = random.direction(D);
    // The score at which the indicator is a half.
    let (mut low, mut high) = (GAP.low, GAP.high);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if world.client.index().threshold().value(middle) < 0.5 { low = middle } else { high = middle }
    }
    let data = Data { d: D, rows: scoring(&mut random, &centre, low), payload: vec![1, 2, 3], centres: vec![] };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    assert!(matches!(world.count(&path, &floats(&centre)), Err(SearchError::InsideGap { gap: GAP, .. })));
    let database = world.server.open(&path, MEMORY).unwrap();
    let query = world.query(&floats(&centre));
    let answer = world.server.fetch(&database, &query, GAP, QUIET).unwrap();
    assert_eq!(world.client.hits(&answer), Err(SearchError::BlurredPayload { gap: GAP }));
    // Another threshold, without new keys.
    let other = Gap { low: 0.5, high: low - 0.01 };
    let answer = world.server.count(&database, &query, &[other], QUIET).unwrap();
    assert_eq!(world.client.counts(&answer).unwrap(), [[1]]);
}

#[test]
fn what_cannot_be_stored_or_asked_is_refused() {
    let world = World::small(goal(600));
    let folder = tempfile::tempdir().unwrap();
    let mut storing = world.client.store(&folder.path().join("t")).unwrap();
    let row = |x: f32| vec![x; D];
    for bad in [f32::NAN, f32::INFINITY] {
        let rows = [row(1.0), [vec![bad], vec![1.0; D - 1]].concat()].concat();
        assert_eq!(storing.push(&rows, &[0; 6]), Err(SearchError::NotFinite { row: 1 }));
        assert_eq!(world.client.query(&rows).unwrap_err(), SearchError::NotFinite { row: 1 });
    }
    assert!(matches!(storing.push(&[1.0; D + 1], &[0; 3]), Err(SearchError::Shape { .. })));
    assert!(matches!(storing.push(&row(1.0), &[0; 2]), Err(SearchError::Shape { .. })));
    let wide = SearchError::Payload { row: 0, number: 1, bits: 9 };
    assert_eq!(storing.push(&row(1.0), &[511, 512, 0]), Err(wide));
    let many = storing.push(&vec![1.0; 601 * D], &vec![0; 3 * 601]);
    assert_eq!(many, Err(SearchError::TooManyRows { found: 601, planned: 600 }));
    assert_eq!(storing.rows(), 0);
    assert!(matches!(storing.finish(), Err(SearchError::Shape { .. })));

    assert_eq!(world.client.query(&[row(1.0), row(0.0)].concat()).unwrap_err(), SearchError::ZeroQuery { row: 1 });
    assert_eq!(world.client.query(&[]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(world.client.query(&[1.0; D - 1]).unwrap_err().kind(), ErrorKind::Shape);
}
