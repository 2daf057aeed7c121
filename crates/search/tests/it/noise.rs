//! What plans foretell of errors, measured.

use crate::world::*;
use sudare_search::Goal;
use sudare_testkit::{Random, sized};

/// Errors of indicators add up over all rows: the mean error times the rows of the plan stays under a tenth.
#[test]
fn the_bias_of_indicators_is_small() {
    let mut random = Random(21);
    let planned = 50_000;
    let world = World::small(Goal { payload: None, ..goal(planned) });
    let (rows, batches) = (1500, sized(4, 25));
    let data = Data::new(&mut random, rows, D);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let database = world.server.open(&path, MEMORY).unwrap();
    let mut errors = Vec::new();
    for _ in 0..batches {
        let queries: Vec<Vec<f32>> = (0..4).map(|_| floats(&random.direction(D))).collect();
        let answer = world.server.count(&database, &world.query(&queries.concat()), &[GAP], QUIET).unwrap();
        for (query, sum) in queries.iter().zip(world.client.sums(&answer).unwrap()) {
            errors.push(sum[0] - data.matches(query, 0.8).len() as f64);
        }
    }
    let count = errors.len() as f64;
    let bias = errors.iter().sum::<f64>() / count / rows as f64;
    assert!((bias * planned as f64).abs() < 0.1, "{bias}");
    // The bound of the plan holds for each.
    let expected = world.client.index().expected();
    let places = rows.next_multiple_of(512) as f64;
    let most = world.client.index().threshold().error_at_zero() * places + 8.0 * expected.indicator * places.sqrt();
    assert!(errors.iter().all(|e| e.abs() < most), "{errors:?} {most}");
}
