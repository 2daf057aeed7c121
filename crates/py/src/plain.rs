//! Scores against a table of vectors that the server has in the clear.

use crate::error::Result;
use crate::files::{read_key, write_key};
use crate::index::floats;
use crate::work::{Workers, bytes, long};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use sudare_ring::Threads;
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_search::plain;

/// A plan.
#[pyclass(frozen, module = "sudare._core")]
pub struct PlainIndex(plain::PlainIndex);

#[pymethods]
impl PlainIndex {
    #[new]
    fn new(py: Python<'_>, d: usize) -> Result<Self> {
        long(py, || Ok(Self(plain::PlainIndex::new(d)?)))
    }

    /// Standard deviation of a score's error.
    #[getter]
    fn deviation(&self) -> f64 {
        self.0.deviation()
    }
}

/// Who asks, with the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct PlainClient {
    inner: plain::PlainClient,
    index: plain::PlainIndex,
    threads: Threads,
}

impl PlainClient {
    fn of(index: &PlainIndex, inner: plain::PlainClient, threads: &Workers) -> Self {
        Self { inner, index: index.0.clone(), threads: Threads::new(threads.0) }
    }

    fn with_secret(index: &PlainIndex, secret: &[u8], threads: &Workers) -> Result<Self> {
        let secret = secret_key_from_bytes(index.0.params(), secret)?;
        Ok(Self::of(index, plain::PlainClient::with_secret(&index.0, secret)?, threads))
    }
}

#[pymethods]
impl PlainClient {
    #[new]
    fn new(py: Python<'_>, index: &PlainIndex, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self::of(index, plain::PlainClient::new(&index.0)?, &threads)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, index: &PlainIndex, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || Self::with_secret(index, secret, &threads))
    }

    /// A client with a secret key in a file.
    #[staticmethod]
    fn load(py: Python<'_>, index: &PlainIndex, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || Self::with_secret(index, &read_key(&path)?, &threads))
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

    /// The bytes of a question of some vectors.
    fn query<'py>(&self, py: Python<'py>, vectors: PyReadonlyArray2<'_, f32>) -> Result<Bound<'py, PyBytes>> {
        let vectors = floats(&vectors);
        bytes(py, || Ok(self.threads.run(|| self.inner.query(&vectors))?.to_bytes()?))
    }

    /// Scores of all rows, for each question, of an answer's bytes.
    fn scores(&self, py: Python<'_>, answer: &[u8]) -> Result<Vec<Vec<f64>>> {
        long(py, || {
            let answer = plain::PlainAnswer::from_bytes(&self.index, answer)?;
            Ok(self.threads.run(|| self.inner.scores(&answer))?)
        })
    }
}

/// A table in the clear.
#[pyclass(frozen, module = "sudare._core")]
pub struct PlainTable {
    inner: plain::PlainTable,
    index: plain::PlainIndex,
    threads: Threads,
}

#[pymethods]
impl PlainTable {
    #[new]
    fn new(py: Python<'_>, index: &PlainIndex, vectors: PyReadonlyArray2<'_, f32>, threads: Workers) -> Result<Self> {
        let (vectors, threads) = (floats(&vectors), Threads::new(threads.0));
        long(py, || {
            let inner = threads.run(|| plain::PlainTable::new(&index.0, &vectors))?;
            Ok(Self { inner, index: index.0.clone(), threads })
        })
    }

    /// Rows.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.rows()
    }

    /// The bytes of the answer to a question's bytes.
    fn scores<'py>(&self, py: Python<'py>, query: &[u8]) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || {
            let query = plain::PlainQuery::from_bytes(&self.index, query)?;
            Ok(self.threads.run(|| self.inner.scores(&query))?.to_bytes()?)
        })
    }
}
