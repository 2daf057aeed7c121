//! Encrypted search among vectors.

use crate::error::{Refusal, Result};
use crate::files::{read_key, write_key};
use crate::plan::cache_folder;
use crate::work::{Workers, bytes, long, with_progress};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_search::{self as search, Gap, Goal, Keys, Mode, Payload, SearchError};
use sudare_session::machine;

/// Vectors, row by row.
pub fn floats(vectors: &PyReadonlyArray2<'_, f32>) -> Vec<f32> {
    vectors.as_array().iter().copied().collect()
}

/// A plan.
#[pyclass(frozen, module = "sudare._core")]
pub struct Index(search::Index);

#[pymethods]
impl Index {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the fields of a goal")]
    fn new(
        py: Python<'_>,
        d: usize,
        rows: u64,
        above: f64,
        gap: Option<(f64, f64)>,
        lowest: f64,
        payload: Option<(usize, u32, &str)>,
        mode: &str,
        insecure: Option<u32>,
    ) -> Result<Self> {
        long(py, || {
            let typed = |(numbers, bits, dtype): (_, _, &str)| {
                Ok::<_, SearchError>(Payload::new(numbers, bits, dtype.parse()?))
            };
            let payload = payload.map(typed).transpose()?;
            let gap = match gap {
                Some((low, high)) => Gap { low, high },
                None => Goal::above(d, rows, above)?.gap,
            };
            let goal = Goal { d, rows, above, gap, lowest, payload };
            let mode: Mode = mode.parse()?;
            Ok(Self(match insecure {
                None => search::Index::in_mode(goal, mode)?,
                Some(log_n) => search::Index::insecure_in_mode(goal, mode, log_n)?,
            }))
        })
    }

    /// A plan of its text.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        long(py, || Ok(Self(search::Index::from_json(text)?)))
    }

    /// Its text.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// What it is, in a line.
    fn describe(&self) -> String {
        self.0.to_string()
    }

    /// What it takes and promises, at this machine's prices.
    fn explain(&self) -> String {
        let cost = machine::stored(cache_folder().as_deref());
        self.0.explain(&|work, log_n| cost.price(work, log_n, 1))
    }

    /// Seconds of a count on one thread, at this machine's prices.
    fn seconds(&self) -> f64 {
        let cost = machine::stored(cache_folder().as_deref());
        self.0.seconds(&|work, log_n| cost.price(work, log_n, 1))
    }

    /// Coordinates of a vector.
    #[getter]
    fn d(&self) -> usize {
        self.0.goal().d
    }

    /// How many numbers come back with a match, how many bits each has, and of what type they are.
    #[getter]
    fn payload(&self) -> Option<(usize, u32, String)> {
        self.0.goal().payload.map(|p| (p.numbers, p.bits, p.dtype().to_string()))
    }

    /// How the table is encrypted.
    #[getter]
    fn mode(&self) -> String {
        self.0.mode().to_string()
    }

    /// Both ends of the gap.
    #[getter]
    fn gap(&self) -> (f64, f64) {
        let Gap { low, high } = self.0.goal().gap;
        (low, high)
    }

    /// The ends of the gap of another threshold.
    fn gap_of(&self, above: f64) -> (f64, f64) {
        let goal = self.0.goal();
        let Gap { low, high } = goal.gap.moved(goal.above, above);
        (low, high)
    }

    /// Rows of a segment.
    #[getter]
    fn segment_rows(&self) -> usize {
        self.0.segment_rows()
    }

    /// Bytes of the table, keys, a question, answers (count, fetch, scores), the server's memory without rows and with all.
    #[getter]
    fn bytes(&self) -> [u64; 8] {
        let b = self.0.bytes();
        [b.database, b.keys, b.query, b.count, b.fetch, b.scores, b.memory, b.rows]
    }

    /// Bound on a count's error, its noise, and log2 of the probability that it is refused or wrong.
    #[getter]
    fn expected(&self) -> (f64, f64, f64) {
        let e = self.0.expected();
        (e.bias, e.count, e.log2_failure)
    }
}

/// Owns the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct IndexClient {
    inner: search::Client,
    threads: Threads,
}

impl IndexClient {
    fn of(inner: search::Client, threads: &Workers) -> Self {
        Self { inner, threads: Threads::new(threads.0) }
    }
}

#[pymethods]
impl IndexClient {
    #[new]
    fn new(py: Python<'_>, index: &Index, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self::of(search::Client::new(&index.0)?, &threads)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, index: &Index, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(index.0.params(), secret)?;
            Ok(Self::of(search::Client::with_secret(&index.0, secret)?, &threads))
        })
    }

    /// A client with a secret key in a file.
    #[staticmethod]
    fn load(py: Python<'_>, index: &Index, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(index.0.params(), &read_key(&path)?)?;
            Ok(Self::of(search::Client::with_secret(&index.0, secret)?, &threads))
        })
    }

    /// Writes the secret key to a file.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        let secret = self.inner.secret();
        long(py, || write_key(&path, &[&secret_key_to_bytes(secret)?], secret.id(), overwrite))
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(secret_key_to_bytes(self.inner.secret())?))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.inner.secret().id().to_string()
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: Workers) -> Result<IndexServer> {
        long(py, || {
            let keys = self.threads.run(|| self.inner.keys())?;
            IndexServer::of(self.inner.index(), keys, &threads)
        })
    }

    /// Begins a table, or adds to one.
    fn store(&self, py: Python<'_>, path: PathBuf, append: bool) -> Result<IndexStoring> {
        long(py, || {
            let storing = if append { self.inner.append(&path)? } else { self.inner.store(&path)? };
            Ok(IndexStoring { inner: Some(storing), threads: self.threads.count() })
        })
    }

    /// Removes what an unfinished store or append left. Segments removed.
    fn discard(&self, py: Python<'_>, path: PathBuf) -> Result<usize> {
        long(py, || Ok(self.inner.discard(&path)?))
    }

    /// A question of some vectors.
    fn query(&self, py: Python<'_>, vectors: PyReadonlyArray2<'_, f32>) -> Result<IndexQuery> {
        let vectors = floats(&vectors);
        long(py, || Ok(IndexQuery(self.threads.run(|| self.inner.query(&vectors))?)))
    }

    /// Counts: for each question one for each threshold.
    fn counts(&self, py: Python<'_>, answer: &IndexAnswer) -> Result<Vec<Vec<u64>>> {
        long(py, || Ok(self.threads.run(|| self.inner.counts(&answer.0))?))
    }

    /// Matches: for each question their rows, and all payload numbers.
    fn hits(&self, py: Python<'_>, answer: &IndexAnswer) -> Result<Vec<(Vec<u64>, Vec<u64>)>> {
        long(py, || {
            let all = self.threads.run(|| self.inner.hits(&answer.0))?;
            let one = |hits: Vec<search::Hit>| {
                let rows = hits.iter().map(|hit| hit.row).collect();
                (rows, hits.into_iter().flat_map(|hit| hit.payload).collect())
            };
            Ok(all.into_iter().map(one).collect())
        })
    }

    /// Scores of all rows: for each question.
    fn scores(&self, py: Python<'_>, answer: &IndexAnswer) -> Result<Vec<Vec<f64>>> {
        long(py, || Ok(self.threads.run(|| self.inner.scores(&answer.0))?))
    }
}

/// Rows on their way to the disk.
#[pyclass(module = "sudare._core")]
pub struct IndexStoring {
    inner: Option<search::Storing>,
    threads: usize,
}

#[pymethods]
impl IndexStoring {
    /// Takes rows and their payload numbers.
    fn push(
        &mut self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        payload: PyReadonlyArray1<'_, u64>,
    ) -> Result<()> {
        let vectors = floats(&vectors);
        let payload = payload.as_array().to_vec();
        let (inner, threads) = (&mut self.inner, Threads::new(self.threads));
        long(py, || match inner {
            Some(storing) => Ok(threads.run(|| storing.push(&vectors, &payload))?),
            None => Err(SearchError::Mixed { what: "a table that is finished" }.into()),
        })
    }

    /// The end; rows of the table.
    fn finish(&mut self, py: Python<'_>) -> Result<u64> {
        let (inner, threads) = (self.inner.take(), Threads::new(self.threads));
        long(py, || match inner {
            Some(storing) => Ok(threads.run(|| storing.finish())?),
            None => Err(SearchError::Mixed { what: "a table that is finished" }.into()),
        })
    }
}

/// Computes with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct IndexServer {
    inner: Arc<search::Server>,
    keys: Keys,
    threads: Threads,
}

impl IndexServer {
    fn of(index: &search::Index, keys: Keys, threads: &Workers) -> Result<Self> {
        let inner = Arc::new(search::Server::new(index, keys.clone())?);
        Ok(Self { inner, keys, threads: Threads::new(threads.0) })
    }

    /// A segment of a stored table, to be sent.
    pub fn parcel(&self, path: &Path, segment: usize) -> Result<search::Parcel> {
        Ok(search::Parcel::new(self.inner.index(), self.keys.id(), path, segment)?)
    }
}

#[pymethods]
impl IndexServer {
    /// A server of keys' bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, index: &Index, data: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let keys = Keys::from_bytes(&index.0, data)?;
            Self::of(&index.0, keys, &threads)
        })
    }

    /// The keys' bytes.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.keys.to_bytes()?))
    }

    /// The name of the secret key.
    #[getter]
    fn key_id(&self) -> String {
        self.keys.id().to_string()
    }

    /// Threads that work.
    #[getter]
    fn threads(&self) -> usize {
        self.threads.count()
    }

    /// Bytes of the keys in memory.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// The numbers of the segments of a stored table that a copy lacks, whose list is given if there is one: from, and below.
    fn lacking(&self, py: Python<'_>, path: PathBuf, copy: Option<&str>) -> Result<(usize, usize)> {
        long(py, || {
            let here = search::Manifest::load(&path)?;
            let Some(copy) = copy else { return Ok((0, here.segments.len())) };
            let no_list = |_| {
                Refusal::Refused(
                    ErrorKind::Format,
                    "the server's list of segments cannot be read; check that it is a sudare server of this release"
                        .into(),
                )
            };
            let lacking = here.lacking(&serde_json::from_str(copy).map_err(no_list)?)?;
            Ok((lacking.start, lacking.end))
        })
    }

    /// Opens a table within some bytes of memory.
    fn open(&self, py: Python<'_>, path: PathBuf, memory: u64) -> Result<IndexTable> {
        long(py, || {
            let table = self.threads.run(|| self.inner.open(&path, memory))?;
            Ok(IndexTable { server: self.inner.clone(), threads: Threads::new(self.threads.count()), table })
        })
    }
}

/// A table that is open.
#[pyclass(frozen, module = "sudare._core")]
pub struct IndexTable {
    server: Arc<search::Server>,
    threads: Threads,
    table: search::Database,
}

#[pymethods]
impl IndexTable {
    /// Rows.
    #[getter]
    fn rows(&self) -> u64 {
        self.table.rows()
    }

    /// Segments, and how many are held in memory.
    #[getter]
    fn segments(&self) -> (usize, usize) {
        self.table.segments()
    }

    /// Counts above several thresholds.
    fn count(
        &self,
        py: Python<'_>,
        query: &IndexQuery,
        gaps: Vec<(f64, f64)>,
        progress: Option<Py<PyAny>>,
    ) -> Result<IndexAnswer> {
        let gaps: Vec<Gap> = gaps.into_iter().map(|(low, high)| Gap { low, high }).collect();
        with_progress(py, progress, |tell| {
            let tell = |done, all| tell(done, all);
            Ok(IndexAnswer(self.threads.run(|| self.server.count(&self.table, &query.0, &gaps, &tell))?))
        })
    }

    /// Matches with their payloads.
    fn fetch(
        &self,
        py: Python<'_>,
        query: &IndexQuery,
        gap: (f64, f64),
        progress: Option<Py<PyAny>>,
    ) -> Result<IndexAnswer> {
        let gap = Gap { low: gap.0, high: gap.1 };
        with_progress(py, progress, |tell| {
            let tell = |done, all| tell(done, all);
            Ok(IndexAnswer(self.threads.run(|| self.server.fetch(&self.table, &query.0, gap, &tell))?))
        })
    }

    /// Scores of all rows.
    fn scores(&self, py: Python<'_>, query: &IndexQuery, progress: Option<Py<PyAny>>) -> Result<IndexAnswer> {
        with_progress(py, progress, |tell| {
            let tell = |done, all| tell(done, all);
            Ok(IndexAnswer(self.threads.run(|| self.server.scores(&self.table, &query.0, &tell))?))
        })
    }
}

/// A question.
#[pyclass(frozen, module = "sudare._core")]
pub struct IndexQuery(search::Query);

#[pymethods]
impl IndexQuery {
    #[staticmethod]
    fn from_bytes(py: Python<'_>, index: &Index, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(search::Query::from_bytes(&index.0, data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Questions in it.
    #[getter]
    fn count(&self) -> usize {
        self.0.len()
    }
}

/// An answer.
#[pyclass(frozen, module = "sudare._core")]
pub struct IndexAnswer(search::Answer);

#[pymethods]
impl IndexAnswer {
    #[staticmethod]
    fn from_bytes(py: Python<'_>, index: &Index, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(search::Answer::from_bytes(&index.0, data)?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// What was asked: "count", "fetch" or "scores"; and of how many questions and thresholds.
    #[getter]
    fn asked(&self) -> (&'static str, usize, usize) {
        let name = match self.0.asked() {
            search::Asked::Count => "count",
            search::Asked::Fetch => "fetch",
            search::Asked::Scores => "scores",
        };
        (name, self.0.queries(), self.0.gaps().len())
    }
}
