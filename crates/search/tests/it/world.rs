//! What the tests share: vectors by the rules of the public benchmark, a plain search, an owner with a server.

use std::path::Path;
use sudare_ring::threads::Threads;
use sudare_search::{Answer, Client, Database, Gap, Goal, Index, Mode, Payload, Query, Server};
use sudare_testkit::Random;

pub const D: usize = 128;
pub const GAP: Gap = Gap { low: 0.66, high: 0.82 };
pub const QUIET: &(dyn Fn(usize, usize) + Sync) = &|_, _| ();
pub const MEMORY: u64 = 8 << 30;

pub fn goal(rows: u64) -> Goal {
    Goal { d: D, rows, above: 0.8, gap: GAP, lowest: -1.0, payload: Some(Payload { numbers: 3, bits: 9, dtype: None }) }
}

pub fn unit(v: &[f64]) -> Vec<f64> {
    let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    v.iter().map(|x| x / norm).collect()
}

/// A point near a centre.
pub fn near(random: &mut Random, centre: &[f64]) -> Vec<f64> {
    let away = random.direction(centre.len());
    unit(&centre.iter().zip(away).map(|(c, a)| c + 0.3 * a).collect::<Vec<_>>())
}

/// A vector at right angles to a centre, of any length.
pub fn across(random: &mut Random, centre: &[f64]) -> Vec<f64> {
    let away = random.direction(centre.len());
    let dot: f64 = away.iter().zip(centre).map(|(a, c)| a * c).sum();
    away.iter().zip(centre).map(|(a, c)| a - dot * c).collect()
}

/// Rows, their payloads, and centres that half of the rows are near to.
pub struct Data {
    pub d: usize,
    pub rows: Vec<f32>,
    pub payload: Vec<u64>,
    pub centres: Vec<Vec<f64>>,
}

impl Data {
    pub fn new(random: &mut Random, count: usize, d: usize) -> Self {
        let centres: Vec<Vec<f64>> = (0..(count / 32).max(1)).map(|_| random.direction(d)).collect();
        let mut rows = Vec::new();
        for _ in 0..count {
            let row = match random.chance(50) {
                true => {
                    let centre = random.index(centres.len());
                    near(random, &centres[centre])
                }
                false => random.direction(d),
            };
            rows.extend(row.into_iter().map(|x| x as f32));
        }
        Self { d, rows, payload: random.words(512, 3 * count), centres }
    }

    /// Two questions near centres, and one that is near none.
    pub fn questions(&self, random: &mut Random) -> Vec<Vec<f32>> {
        let near_one = |random: &mut Random| {
            let centre = random.index(self.centres.len());
            floats(&near(random, &self.centres[centre]))
        };
        vec![near_one(random), near_one(random), floats(&random.direction(self.d))]
    }

    pub fn scores(&self, query: &[f32]) -> Vec<f64> {
        let norm = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let dot = |row: &[f32]| row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        self.rows.chunks(self.d).map(|row| dot(row) / (norm(row) * norm(query)).max(1e-300)).collect()
    }

    pub fn matches(&self, query: &[f32], above: f64) -> Vec<u64> {
        self.scores(query).iter().enumerate().filter(|(_, s)| **s > above).map(|(i, _)| i as u64).collect()
    }
}

pub fn floats(v: &[f64]) -> Vec<f32> {
    v.iter().map(|x| *x as f32).collect()
}

/// An owner, and a server with its keys.
pub struct World {
    pub client: Client,
    pub server: Server,
}

impl World {
    pub fn new(index: &Index) -> Self {
        let client = Client::new(index).unwrap();
        let server = Server::new(index, client.keys().unwrap()).unwrap();
        Self { client, server }
    }

    /// In a ring of degree 512, where a segment has 512 rows.
    pub fn small(goal: Goal) -> Self {
        Self::new(&Index::insecure(goal, 9).unwrap())
    }

    /// In compact mode, where a segment has 2,048 rows in four blocks.
    pub fn compact(goal: Goal) -> Self {
        Self::new(&Index::insecure_in_mode(goal, Mode::Compact, 11).unwrap())
    }

    pub fn store(&self, path: &Path, data: &Data) {
        let mut storing = self.client.store(path).unwrap();
        let payload = if self.client.index().goal().payload.is_some() { data.payload.as_slice() } else { &[] };
        storing.push(&data.rows, payload).unwrap();
        assert_eq!(storing.finish().unwrap() as usize, data.rows.len() / data.d);
    }

    /// One that went by bytes.
    pub fn query(&self, vectors: &[f32]) -> Query {
        let bytes = self.client.query(vectors).unwrap().to_bytes().unwrap();
        Query::from_bytes(self.client.index(), &bytes).unwrap()
    }

    /// Counts and matches of three questions are those of a plain search of rows above 0.8, with payloads of three numbers: from memory and from
    /// the disk, on one thread and on three, word for word alike.
    pub fn searches_plainly(&self, data: &Data, queries: &[Vec<f32>], [held, streamed]: [&Database; 2]) {
        let (index, query) = (self.client.index(), self.query(&queries.concat()));
        // Several thresholds of one batch.
        let gaps = [GAP, Gap { low: 0.55, high: 0.85 }];
        let count = |database| self.server.count(database, &query, &gaps, QUIET).unwrap().to_bytes().unwrap();
        let bytes = count(held);
        assert_eq!(bytes, count(streamed));
        assert_eq!(bytes, Threads::new(3).run(|| count(held)));
        assert_eq!(bytes, Threads::new(3).run(|| count(streamed)));
        let counts = self.client.counts(&Answer::from_bytes(index, &bytes).unwrap()).unwrap();
        for (query, counts) in queries.iter().zip(&counts) {
            let expected = data.matches(query, 0.8).len() as u64;
            assert_eq!(counts, &[expected, expected]);
        }
        assert!(counts[0][0] > 3 && counts[2][0] == 0, "{counts:?}");

        // The plan counts the key switches of a question: of its expansion, of segments, of the sum over slots.
        let before = self.server.counters().key_switches;
        self.server.count(held, &self.query(&queries[0]), &[GAP], QUIET).unwrap();
        let made = self.server.counters().key_switches - before;
        assert_eq!(made as usize, index.key_switches(held.segments().0));

        let fetch = |database| self.server.fetch(database, &query, GAP, QUIET).unwrap().to_bytes().unwrap();
        let bytes = fetch(held);
        assert_eq!(bytes, fetch(streamed));
        let hits = self.client.hits(&Answer::from_bytes(index, &bytes).unwrap()).unwrap();
        for (query, hits) in queries.iter().zip(&hits) {
            assert_eq!(hits.iter().map(|h| h.row).collect::<Vec<_>>(), data.matches(query, 0.8));
            for hit in hits {
                assert_eq!(hit.payload, data.payload[3 * hit.row as usize..][..3]);
            }
        }
    }

    /// Errors of counts, of batches of `each` random questions: the mean error of a row times the rows of the plan stays under a tenth, and each
    /// error within the plan's bound.
    pub fn counts_within_plan(&self, random: &mut Random, rows: usize, [batches, each]: [usize; 2]) {
        let data = Data::new(random, rows, D);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        self.store(&path, &data);
        let database = self.server.open(&path, MEMORY).unwrap();
        let mut errors = Vec::new();
        for _ in 0..batches {
            let queries: Vec<Vec<f32>> = (0..each).map(|_| floats(&random.direction(D))).collect();
            let answer = self.server.count(&database, &self.query(&queries.concat()), &[GAP], QUIET).unwrap();
            for (query, sum) in queries.iter().zip(self.client.sums(&answer).unwrap()) {
                errors.push(sum[0] - data.matches(query, 0.8).len() as f64);
            }
        }
        let index = self.client.index();
        let bias = errors.iter().sum::<f64>() / errors.len() as f64 / rows as f64;
        assert!((bias * index.goal().rows as f64).abs() < 0.1, "{bias}");
        let (expected, places) = (index.expected(), rows.next_multiple_of(index.segment_rows()) as f64);
        let most = index.threshold().error_at_zero() * places + 8.0 * expected.indicator * places.sqrt();
        assert!(errors.iter().all(|e| e.abs() < most), "{errors:?} {most}");
    }

    pub fn count(&self, path: &Path, vector: &[f32]) -> Result<u64, sudare_search::SearchError> {
        let database = self.server.open(path, MEMORY)?;
        let answer = self.server.count(&database, &self.query(vector), &[self.client.index().goal().gap], QUIET)?;
        Ok(self.client.counts(&answer)?[0][0])
    }
}
