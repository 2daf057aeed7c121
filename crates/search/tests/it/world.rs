//! What the tests share: vectors by the rules of the public benchmark, a plain search, an owner with a server.

use std::path::Path;
use sudare_search::{Client, Gap, Goal, Index, Mode, Payload, Query, Server};
use sudare_testkit::Random;

pub const D: usize = 128;
pub const GAP: Gap = Gap { low: 0.66, high: 0.82 };
pub const QUIET: &(dyn Fn(usize, usize) + Sync) = &|_, _| ();
pub const MEMORY: u64 = 8 << 30;

pub fn goal(rows: u64) -> Goal {
    Goal { d: D, rows, above: 0.8, gap: GAP, lowest: -1.0, payload: Some(Payload { numbers: 3, bits: 9 }) }
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

    pub fn count(&self, path: &Path, vector: &[f32]) -> Result<u64, sudare_search::SearchError> {
        let database = self.server.open(path, MEMORY)?;
        let answer = self.server.count(&database, &self.query(vector), &[self.client.index().goal().gap], QUIET)?;
        Ok(self.client.counts(&answer)?[0][0])
    }
}
