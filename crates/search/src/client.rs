//! The owner of rows and questions.

use crate::error::SearchError;
use crate::files::{Files, Manifest, Part, SegmentRecord, Table};
use crate::keys::Keys;
use crate::layout::{block_column, inverse, positions};
use crate::message::{Answer, Asked, Query};
use crate::peel::{Left, peel};
use crate::plan::{CHUNK, CLEAR, INDICATOR_LEVEL, Index, QUERY_SCALE, ROW_SCALE, ROWS_LEVEL};
use crate::threshold::{ERROR_AT_ONE, Threshold};
use std::path::Path;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::BootstrapKeys;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor};
use sudare_ring::random::{MaskSeed, Seed};
use sudare_ring::threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::wire::{Bundle, Wire};
use sudare_store::StoreError;
use sudare_store::layout::hex;
use zeroize::{Zeroize, Zeroizing};

/// Bound on a slot of two coordinates: √2, and rounding.
const PAIR: f64 = 1.5;
/// How far slots of one sum are from each other, at most.
const ALIKE: f64 = 0.1;

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The row, in the order in which rows were stored.
    pub row: u64,
    /// Its payload.
    pub payload: Vec<u64>,
}

/// Stores rows, asks, and reads answers. Holds the secret key.
/// Cloning shares it.
#[derive(Clone, Debug)]
pub struct Client {
    index: Index,
    secret: Arc<SecretKey>,
    /// The secret of the compact mode's small ring, which follows from the other.
    small: Option<Arc<SecretKey>>,
}

/// A vector of length one in the direction of another; zeros stay zeros.
pub(crate) fn normalised(vector: &[f32], row: usize) -> Result<Vec<f64>, SearchError> {
    let wide: Vec<f64> = vector.iter().map(|x| f64::from(*x)).collect();
    if wide.iter().any(|x| !x.is_finite()) {
        return Err(SearchError::NotFinite { row });
    }
    // Squares of floats neither overflow nor vanish as doubles.
    let norm = wide.iter().map(|x| x * x).sum::<f64>().sqrt();
    Ok(if norm == 0.0 { wide } else { wide.iter().map(|x| x / norm).collect() })
}

impl Client {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`SearchError::He`] if the system gives no entropy.
    pub fn new(index: &Index) -> Result<Self, SearchError> {
        Self::with_secret(index, SecretKey::generate(index.params())?)
    }

    /// A client with a key that was kept.
    ///
    /// # Errors
    /// [`SearchError::He`] for a key of other parameters.
    pub fn with_secret(index: &Index, secret: SecretKey) -> Result<Self, SearchError> {
        index.params().hash().require("the secret key", secret.params().hash())?;
        let mut client = Self { index: index.clone(), secret: Arc::new(secret), small: None };
        if let Some(compact) = index.compact() {
            let seed = client.seed("sudare search small ring");
            client.small = Some(Arc::new(SecretKey::from_seed(&compact.small, &seed)?));
        }
        Ok(client)
    }

    /// The plan.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The secret key, for its owner's file.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// What the server computes with: a relinearisation key and the automorphism keys of the plan, and in compact mode those of half a
    /// bootstrap.
    ///
    /// # Errors
    /// [`SearchError::He`].
    pub fn keys(&self) -> Result<Keys, SearchError> {
        let (relin, galois) = self.index.keys()?;
        let eval = KeyGenerator::new(&self.secret)?.eval_keys(Some(relin), &galois)?;
        match (self.index.compact(), &self.small) {
            (Some(compact), Some(small)) => {
                Keys::together(BootstrapKeys::packing(&self.secret, small, &compact.half)?, eval)
            }
            _ => Ok(eval.into()),
        }
    }

    /// A seed of this key for a purpose.
    fn seed(&self, purpose: &str) -> Seed {
        let mut bytes: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(self.secret.coefficients().len()));
        bytes.extend(self.secret.coefficients().iter().map(|c| *c as u8));
        let mut hasher = blake3::Hasher::new_derive_key("sudare search seed v1");
        hasher.update(&bytes);
        let mut hash = hasher.finalize();
        let seed = Seed::from_bytes(*hash.as_bytes());
        hash.zeroize();
        hasher.zeroize();
        seed.derive(purpose, 0)
    }

    /// The order of rows of a table.
    pub(crate) fn order(&self, index: &str) -> Seed {
        self.seed("sudare search order").derive(index, 0)
    }

    /// Begins a table, or goes on with one that was not finished: rows that were stored come again, and whole segments that are there are
    /// taken as they are.
    ///
    /// # Errors
    /// [`StoreError::Exists`] for a finished table or another folder; [`SearchError::Mixed`] for a table of another plan or key.
    pub fn store(&self, path: &Path) -> Result<Storing, SearchError> {
        let files = Files::new(path);
        if files.is_finished() {
            return Err(StoreError::Exists { path: path.into() }.into());
        }
        let name = *MaskSeed::from_entropy()?.as_bytes();
        let Some(name) = name.first_chunk() else { unreachable!("a seed has 32 bytes") };
        let table = files.begin(&self.index, self.secret.id(), *name)?;
        let manifest = Manifest { index: table.index.clone(), segments: Vec::new() };
        Ok(Storing::new(self, files, table, manifest))
    }

    /// Adds rows to a finished table: a segment of their own for each lot, so lots of [`Index::segment_rows`] are best.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::Unfinished`]; [`SearchError::Mixed`].
    pub fn append(&self, path: &Path) -> Result<Storing, SearchError> {
        let files = Files::new(path);
        let (table, manifest) = files.open(&self.index, self.secret.id())?;
        Ok(Storing::new(self, files, table, manifest))
    }

    /// Removes segments of a `store` or an `append` that was not finished, so that other rows can take their place. Their number.
    ///
    /// # Errors
    /// As [`Client::append`], but for an unfinished table; what the disk refuses.
    pub fn discard(&self, path: &Path) -> Result<usize, SearchError> {
        Files::new(path).discard(&self.index, self.secret.id())
    }

    /// A question of one or more vectors, row by row.
    ///
    /// # Errors
    /// [`SearchError::Shape`], [`SearchError::NotFinite`], [`SearchError::ZeroQuery`].
    pub fn query(&self, vectors: &[f32]) -> Result<Query, SearchError> {
        let d = self.index.goal().d;
        if vectors.is_empty() || !vectors.len().is_multiple_of(d) {
            let (what, found) = ("a question", vectors.len());
            return Err(SearchError::Shape { what, found, expected: d * vectors.len().div_ceil(d).max(1) });
        }
        let unit = |(row, vector): (usize, &[f32])| {
            let unit = Zeroizing::new(normalised(vector, row)?);
            if unit.iter().all(|x| *x == 0.0) { Err(SearchError::ZeroQuery { row }) } else { Ok(unit) }
        };
        let units = vectors.chunks_exact(d).enumerate().map(unit).collect::<Result<Vec<_>, _>>()?;
        if let (Some(compact), Some(small)) = (self.index.compact(), &self.small) {
            let (encoder, encryptor) = (Encoder::new(&compact.small), Encryptor::with_secret_key(small)?);
            let one = |x: &f64| {
                let plain = encoder.encode_constant(x.clamp(-1.0, 1.0), compact.query_at())?;
                Ok::<_, SearchError>(encryptor.encrypt(&plain)?)
            };
            let all = units.iter().flat_map(|unit| unit.iter().map(one));
            return Query::new(&self.index, all.collect::<Result<_, _>>()?);
        }
        let expansion = self.index.expansion()?;
        let (encoder, encryptor) = (Encoder::new(self.index.params()), Encryptor::with_secret_key(&self.secret)?);
        let at = EncodeAt { level: ROWS_LEVEL, scale: QUERY_SCALE / expansion.factor(), max_abs: 1.0 };
        let one = |unit: &Zeroizing<Vec<f64>>| {
            let mut coefficients = Zeroizing::new(vec![0.0; self.index.params().degree()]);
            unit.iter().enumerate().for_each(|(j, x)| coefficients[expansion.place(j)] = x.clamp(-1.0, 1.0));
            // The norm of all coefficients is one.
            let plain = encoder.encode_coefficients(&coefficients, at)?.with_bound(1.0);
            Ok(encryptor.encrypt(&plain)?)
        };
        Query::new(&self.index, units.iter().map(one).collect::<Result<_, SearchError>>()?)
    }

    fn require(&self, answer: &Answer, wanted: Asked) -> Result<(), SearchError> {
        match answer.asked() == wanted {
            true => Ok(()),
            false => Err(SearchError::OtherAnswer { found: answer.asked().name(), wanted: wanted.name() }),
        }
    }

    fn slots(&self, ciphertext: &Ciphertext) -> Result<Vec<num_complex::Complex64>, SearchError> {
        let plain = Decryptor::new(&self.secret).decrypt(ciphertext)?;
        Ok(Encoder::new(self.index.params()).decode_complex(&plain)?)
    }

    /// The sums of indicators of a count as they come out: for each question one for each threshold.
    ///
    /// # Errors
    /// [`SearchError::OtherAnswer`]; [`SearchError::NoSum`] for ciphertexts that hold no sum; [`SearchError::He`] for an answer
    /// under another key.
    pub fn sums(&self, answer: &Answer) -> Result<Vec<Vec<f64>>, SearchError> {
        self.require(answer, Asked::Count)?;
        // All slots hold the sum, which is real.
        let one = |c: &Ciphertext| {
            let slots = self.slots(c)?;
            let mean = slots.iter().map(|z| z.re).sum::<f64>() / slots.len() as f64;
            let alike = slots.iter().all(|z| (z.re - mean).abs() < ALIKE && z.im.abs() < CLEAR);
            if alike { Ok(mean) } else { Err(SearchError::NoSum) }
        };
        let all = answer.ciphertexts().iter().map(one).collect::<Result<Vec<f64>, _>>()?;
        Ok(all.chunks(answer.gaps().len().max(1)).map(<[f64]>::to_vec).collect())
    }

    /// How many rows match: for each question one number for each threshold.
    ///
    /// # Errors
    /// As [`Client::sums`]; [`SearchError::ManyMatches`] for more than errors of indicators allow for;
    /// [`SearchError::InsideGap`] for a sum that is no whole number.
    pub fn counts(&self, answer: &Answer) -> Result<Vec<Vec<u64>>, SearchError> {
        let sums = self.sums(answer)?;
        let thresholds = answer.gaps().iter().map(|gap| self.index.threshold_of(*gap));
        let thresholds = thresholds.collect::<Result<Vec<_>, _>>()?;
        let counts = |sums: Vec<f64>| {
            sums.into_iter().zip(&thresholds).map(|(sum, t)| self.whole(sum, t, answer.rows())).collect()
        };
        sums.into_iter().map(counts).collect()
    }

    /// The whole number that a sum of indicators of `rows` rows stands for.
    fn whole(&self, sum: f64, threshold: &Threshold, rows: u64) -> Result<u64, SearchError> {
        let count = sum.round().max(0.0);
        if !(-1.0..=1.0 + (1.0 + ERROR_AT_ONE) * rows as f64).contains(&sum) {
            return Err(SearchError::NoSum);
        }
        // Each match is off by up to `each`, and there are `most` of them at most.
        let (bias, each) = (self.index.bias(threshold), threshold.error_at_one());
        let most = (sum.max(0.0) + CLEAR + bias) / (1.0 - each);
        let off = bias + each * most;
        match (sum - count).abs() < CLEAR {
            true if off < 2.0 * CLEAR => Ok(count as u64),
            false if off < CLEAR => Err(SearchError::InsideGap { found: sum, gap: threshold.gap() }),
            _ => Err(SearchError::ManyMatches { found: count as u64, sure: ((CLEAR - bias) / each) as u64 }),
        }
    }

    /// The matches of each question, in the order of their rows.
    ///
    /// # Errors
    /// [`SearchError::OtherAnswer`], [`SearchError::BlurredPayload`], [`SearchError::Unresolved`]; [`SearchError::He`] for an
    /// answer under another key.
    pub fn hits(&self, answer: &Answer) -> Result<Vec<Vec<Hit>>, SearchError> {
        self.require(answer, Asked::Fetch)?;
        let Some(payloads) = self.index.payloads() else { return Err(SearchError::NoPayload) };
        let (shape, about) = (self.index.shape(), answer.about());
        let order = self.order(&about.index);
        let Some(gap) = about.gaps.first().copied() else { return Err(SearchError::Mixed { what: "the answer" }) };
        let mut starts = vec![0u64];
        starts.extend(about.segments.iter().scan(0, |sum, rows| {
            *sum += u64::from(*rows);
            Some(*sum)
        }));
        let each = payloads.ciphertexts();
        let mut out = Vec::new();
        for ciphertexts in answer.ciphertexts().chunks(2 * each) {
            let mut sums = [0, 1].map(|_| vec![vec![0.0; 2 * each]; shape.slots]);
            for (i, ciphertext) in ciphertexts.iter().enumerate() {
                let (sum, column) = (&mut sums[i / each], 2 * (i % each));
                for (cell, z) in sum.iter_mut().zip(self.slots(ciphertext)?) {
                    (cell[column], cell[column + 1]) = (z.re, z.im);
                }
            }
            let halves = 2 * about.segments.len() as u64;
            // A column beyond the last is half of a ciphertext.
            sums.iter_mut().flatten().for_each(|columns| columns.truncate(payloads.columns()));
            let found = peel(&payloads, shape, halves, &mut sums).map_err(|left| match left {
                Left::Together(left) => SearchError::Unresolved { left },
                Left::Blurred => SearchError::BlurredPayload { gap },
            })?;
            let mut rows: Vec<Hit> = Vec::with_capacity(found.len());
            let mut orders = std::collections::BTreeMap::new();
            for f in found {
                let segment = f.half / 2;
                let Some(stored) = about.segments.get(segment as usize).copied() else {
                    return Err(SearchError::Unresolved { left: 1 });
                };
                let inverse = orders
                    .entry(segment)
                    .or_insert_with(|| inverse(&positions(&order, segment, shape.places(stored as usize))));
                let row = inverse.get(shape.position((f.half % 2) as usize, f.slot)).copied();
                let Some(row) = row.filter(|row| *row < stored) else {
                    return Err(SearchError::Unresolved { left: 1 });
                };
                rows.push(Hit { row: starts[segment as usize] + u64::from(row), payload: f.numbers });
            }
            rows.sort_by_key(|hit| hit.row);
            out.push(rows);
        }
        Ok(out)
    }

    /// The scores of all rows with each question, in the order of rows.
    ///
    /// # Errors
    /// [`SearchError::OtherAnswer`]; [`SearchError::He`] for an answer under another key.
    pub fn scores(&self, answer: &Answer) -> Result<Vec<Vec<f64>>, SearchError> {
        self.require(answer, Asked::Scores)?;
        if self.index.compact().is_some() {
            return Err(SearchError::NoScores);
        }
        let (shape, about) = (self.index.shape(), answer.about());
        let order = self.order(&about.index);
        let each = about.segments.len().max(1);
        let one = |ciphertexts: &[Ciphertext]| {
            let segments = threads::map_jobs(ciphertexts.len(), |k| {
                let slots = self.slots(&ciphertexts[k])?;
                let rows = about.segments[k] as usize;
                let scores = positions(&order, k as u64, shape.rows()).into_iter().take(rows).map(|p| {
                    let (half, slot) = shape.place(p as usize);
                    if half == 0 { slots[slot].re } else { slots[slot].im }
                });
                Ok(scores.collect::<Vec<f64>>())
            });
            Ok(segments.into_iter().collect::<Result<Vec<_>, SearchError>>()?.concat())
        };
        answer.ciphertexts().chunks(each).map(one).collect()
    }
}

/// Rows on their way to the disk, segment by segment. Dropped before [`Storing::finish`], or killed, it leaves whole segments, from
/// which [`Client::store`] goes on.
#[derive(Debug)]
pub struct Storing {
    client: Client,
    files: Files,
    table: Table,
    manifest: Manifest,
    rows: Vec<f32>,
    numbers: Vec<u64>,
}

impl Storing {
    fn new(client: &Client, files: Files, table: Table, manifest: Manifest) -> Self {
        Self { client: client.clone(), files, table, manifest, rows: Vec::new(), numbers: Vec::new() }
    }

    /// Rows that are stored or wait.
    pub fn rows(&self) -> u64 {
        self.manifest.rows() + (self.rows.len() / self.client.index.goal().d) as u64
    }

    /// Takes rows and their payloads, and stores the segments that they fill.
    ///
    /// # Errors
    /// [`SearchError::Shape`], [`SearchError::NotFinite`], [`SearchError::Payload`], [`SearchError::TooManyRows`],
    /// [`SearchError::TooManySegments`], before anything is taken. After rows were taken, [`SearchError::OtherRows`] if others
    /// were stored before, and what the disk refuses: what was stored whole stays, and another [`Client::store`] or
    /// [`Client::append`] of the same rows goes on from it.
    pub fn push(&mut self, vectors: &[f32], payload: &[u64]) -> Result<(), SearchError> {
        let goal = *self.client.index.goal();
        if !vectors.len().is_multiple_of(goal.d) {
            let (found, expected) = (vectors.len(), vectors.len().next_multiple_of(goal.d));
            return Err(SearchError::Shape { what: "vectors", found, expected });
        }
        let count = vectors.len() / goal.d;
        let expected = count * goal.payload.map_or(0, |p| p.numbers);
        if payload.len() != expected {
            return Err(SearchError::Shape { what: "payloads", found: payload.len(), expected });
        }
        let found = self.rows() + count as u64;
        if found > goal.rows {
            return Err(SearchError::TooManyRows { found, planned: goal.rows });
        }
        let waiting = (self.rows.len() / goal.d + count) as u64;
        let most = self.client.index.segment_rows();
        let (segments, planned) =
            (self.manifest.segments.len() as u64 + waiting.div_ceil(most as u64), self.client.index.most_segments());
        if segments > planned {
            return Err(SearchError::TooManySegments { planned, rows: most as u64 });
        }
        if let Some(p) = goal.payload
            && let Some(at) = payload.iter().position(|x| p.bits < 64 && x >> p.bits != 0)
        {
            return Err(SearchError::Payload { row: at / p.numbers, number: at % p.numbers, bits: p.bits });
        }
        let units = vectors.chunks_exact(goal.d).enumerate().map(|(row, v)| normalised(v, row));
        let units: Vec<Vec<f64>> = units.collect::<Result<_, _>>()?;
        self.rows.extend(units.into_iter().flatten().map(|x| x as f32));
        self.numbers.extend(payload);
        while self.rows.len() >= most * goal.d {
            self.segment(most)?;
        }
        Ok(())
    }

    /// Stores the first `count` rows that wait as a segment.
    fn segment(&mut self, count: usize) -> Result<(), SearchError> {
        let index = &self.client.index;
        let (goal, shape, segment) = (index.goal(), index.shape(), self.manifest.segments.len());
        let numbers = goal.payload.map_or(0, |p| p.numbers);
        let (rows, payload) = (&self.rows[..count * goal.d], &self.numbers[..count * numbers]);
        let (secret, params) = (&*self.client.secret, index.params());
        let positions = positions(&self.client.order(&self.table.index), segment as u64, shape.places(count));
        let work = self.fingerprint(segment, rows, payload);
        let (encoder, encryptor) = (Encoder::new(params), Encryptor::with_secret_key(secret)?);
        let about = (&self.table, index, secret.id());
        let encrypted = |slots: &[num_complex::Complex64], at| {
            let plain = encoder.encode_complex(slots, at)?;
            Ok::<_, SearchError>(encryptor.encrypt(&plain)?.to_bytes()?)
        };
        let place = (segment, Part::Rows);
        let digest = match (index.compact(), &self.client.small) {
            (Some(compact), Some(small)) => {
                let (encoder, encryptor) = (Encoder::new(&compact.small), Encryptor::with_secret_key(small)?);
                let (inverse, blocks) = (inverse(&positions), positions.len() / compact.block());
                let column = |block: usize, j| {
                    let rows_of_block = &inverse[block * compact.block()..][..compact.block()];
                    let values = block_column(rows, goal.d, rows_of_block, j);
                    let plain = encoder.encode_coefficients(&values, compact.rows_at())?;
                    Ok::<_, SearchError>(encryptor.encrypt(&plain)?)
                };
                let group = |block, group| {
                    let coordinates = (group * CHUNK..goal.d).take(CHUNK);
                    let all = coordinates.map(|j| column(block, j)).collect::<Result<_, _>>()?;
                    let bundle = Bundle::new(compact.small.rlwe(), small.id(), Vec::new(), all)?;
                    Ok::<_, SearchError>(bundle.to_bytes()?)
                };
                self.files.store(place, work, (blocks, goal.d.div_ceil(CHUNK)), about, group)?
            }
            _ => {
                let at = EncodeAt { level: ROWS_LEVEL, scale: ROW_SCALE, max_abs: PAIR };
                let column = |_, j| encrypted(&shape.column(rows, goal.d, &positions, j), at);
                self.files.store(place, work, (1, goal.d), about, column)?
            }
        };
        let mut stored = None;
        if let Some(payloads) = index.payloads() {
            let each = payloads.ciphertexts();
            let at = EncodeAt { level: INDICATOR_LEVEL, scale: payloads.scale(), max_abs: payloads.bound() * PAIR };
            let halves = [0, 1].map(|half| {
                let number = 2 * segment as u64 + half;
                let of_half = payload.chunks_exact(numbers).zip(&positions).filter_map(|(numbers, position)| {
                    let (h, slot) = shape.place(*position as usize);
                    (h as u64 == half).then(|| (slot, payloads.encode(numbers, number)))
                });
                let cells: Vec<_> = of_half.collect();
                let rotated: Vec<_> =
                    cells.iter().map(|(s, c)| (shape.rotated(*s, number as i64), c.clone())).collect();
                [payloads.slots(shape, &cells), payloads.slots(shape, &rotated)].concat()
            });
            let column = |half: usize, c: usize| encrypted(&halves[half][c], at);
            let work = *blake3::hash(&work).as_bytes();
            let digest = self.files.store((segment, Part::Payload), work, (2, 2 * each), about, column)?;
            stored = Some(hex(&digest));
        }
        self.manifest.segments.push(SegmentRecord { rows: count as u32, digest: hex(&digest), payload: stored });
        self.rows.drain(..count * goal.d);
        self.numbers.drain(..count * numbers);
        Ok(())
    }

    /// Names a segment's rows to who has the key.
    fn fingerprint(&self, segment: usize, rows: &[f32], payload: &[u64]) -> [u8; 32] {
        let mut key = Zeroizing::new([0; 32]);
        let seed = self.client.seed("sudare search rows").derive(&self.table.index, segment as u64);
        seed.stream(0).fill_bytes(&mut *key);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        rows.iter().for_each(|x| {
            hasher.update(&x.to_le_bytes());
        });
        payload.iter().for_each(|x| {
            hasher.update(&x.to_le_bytes());
        });
        let work = *hasher.finalize().as_bytes();
        hasher.zeroize();
        work
    }

    /// Stores what waits, and the list of all segments. Rows of the table.
    ///
    /// # Errors
    /// [`SearchError::Shape`] for a table without rows; what the disk refuses.
    pub fn finish(mut self) -> Result<u64, SearchError> {
        let left = self.rows.len() / self.client.index.goal().d;
        if left > 0 {
            self.segment(left)?;
        }
        if self.manifest.segments.is_empty() {
            return Err(SearchError::Shape { what: "a table", found: 0, expected: self.client.index.goal().d });
        }
        self.files.finish(&self.manifest)?;
        Ok(self.manifest.rows())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AboutAnswer;
    use crate::{Gap, Goal};
    use num_complex::Complex64;

    const GAP: Gap = Gap { low: 0.5, high: 0.8 };

    fn client() -> Client {
        let goal = Goal { d: 2, rows: 1000, above: 0.7, gap: GAP, lowest: -1.0, payload: None };
        Client::new(&Index::insecure(goal, 9).unwrap()).unwrap()
    }

    fn about(segments: Vec<u32>) -> AboutAnswer {
        AboutAnswer { index: "t".into(), asked: Asked::Count, queries: 1, gaps: vec![GAP], segments }
    }

    /// A count is refused that no table of ten rows has, or that is not the same in all slots.
    #[test]
    fn spoiled_counts_are_refused() {
        let client = client();
        let index = client.index();
        let counted = |sum: f64, apart: Complex64| {
            let mut slots = vec![Complex64::from(sum); index.params().slots()];
            slots[7] += apart;
            let at = EncodeAt { level: INDICATOR_LEVEL, scale: 33f64.exp2(), max_abs: 64.0 };
            let plain = Encoder::new(index.params()).encode_complex(&slots, at).unwrap();
            let sum = Encryptor::with_secret_key(client.secret()).unwrap().encrypt(&plain).unwrap();
            client.counts(&Answer::new(index, about(vec![10]), vec![sum]).unwrap())
        };
        let none = Complex64::ZERO;
        assert_eq!(counted(3.0, none).unwrap(), [[3]]);
        for (sum, apart) in [(3.0, 1.0.into()), (3.0, Complex64::I), (12.0, none), (-2.0, none)] {
            assert_eq!(counted(sum, apart), Err(SearchError::NoSum), "{sum} {apart}");
        }
        assert_eq!(counted(3.5, none).map_err(|e| e.to_string().contains("inside of the gap")), Err(true));
    }

    /// Segments of one size take no room in a header, and one that is too long is known before any work.
    #[test]
    fn headers_of_large_tables_fit() {
        let client = client();
        let many = about(vec![512; 32_768]);
        let text = serde_json::to_string(&many).unwrap();
        assert_eq!(serde_json::from_str::<AboutAnswer>(&text).unwrap(), many);
        assert!(many.fits(client.index()).unwrap());
        assert!(!about((1..20_000).collect()).fits(client.index()).unwrap());
        assert!(serde_json::from_str::<AboutAnswer>(&text.replace("32768", "32769")).is_err());
    }
}
