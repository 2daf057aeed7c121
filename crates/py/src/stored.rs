//! Encrypted matrices in stores.

use crate::array::matrices;
use crate::client::{Client, PublicClient};
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::plan::Plan;
use crate::server::Server;
use crate::work::{bytes, long, with_progress};
use numpy::PyReadonlyArray3;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use sudare_session::{self as session, OutOfCore};
use sudare_store::{BlockSource, Existing, layout};

/// An encrypted matrix of a plan in a store.
#[pyclass(frozen, module = "sudare._core")]
pub struct Stored(pub session::Stored);

/// Memory and what is there already.
fn options(memory: u64, resume: bool) -> OutOfCore {
    OutOfCore { memory, existing: if resume { Existing::Resume } else { Existing::Refuse } }
}

#[pymethods]
impl Stored {
    /// Opens a store.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> Result<Self> {
        long(py, || Ok(Self(session::Stored::open(&path)?)))
    }

    /// Stores a value that is in memory.
    #[staticmethod]
    fn save(py: Python<'_>, plan: &Plan, value: &Encrypted, path: PathBuf) -> Result<Self> {
        long(py, || Ok(Self(session::Stored::save(&plan.0, &value.0, &path)?)))
    }

    /// Encrypts an input into a store.
    #[staticmethod]
    fn encrypt(
        py: Python<'_>,
        client: &Client,
        name: &str,
        values: PyReadonlyArray3<'_, f64>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let all = matrices(&values)?;
        with_progress(py, progress, |progress| Ok(Self(client.0.encrypt_stored(name, &all, &path, progress)?)))
    }

    /// The same under a public key.
    #[staticmethod]
    fn encrypt_public(
        py: Python<'_>,
        client: &PublicClient,
        name: &str,
        values: PyReadonlyArray3<'_, f64>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let all = matrices(&values)?;
        with_progress(py, progress, |progress| Ok(Self(client.0.encrypt_stored(name, &all, &path, progress)?)))
    }

    /// All of it in memory.
    fn load(&self, py: Python<'_>) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.load()?)))
    }

    /// Reads all of it and checks every byte.
    fn verify(&self, py: Python<'_>) -> Result<()> {
        long(py, || Ok(self.0.verify()?))
    }

    /// The container of a block.
    fn block<'py>(&self, py: Python<'py>, row: usize, col: usize) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.block(row, col)?))
    }

    /// What a product would read, write and take: for people, and as JSON.
    fn schedule(
        &self,
        py: Python<'_>,
        server: &Server,
        right: &Self,
        path: PathBuf,
        memory: u64,
        resume: bool,
    ) -> Result<(String, String)> {
        long(py, || {
            let schedule = server.0.schedule(&self.0, &right.0, &path, options(memory, resume))?;
            let json = serde_json::to_string(&schedule);
            let json = json.map_err(|e| sudare_methods::MatrixError::PlanFile { reason: e.to_string() })?;
            Ok((schedule.to_string(), json))
        })
    }

    /// The product with another, in a new store; and the bytes that were read.
    #[expect(clippy::too_many_arguments, reason = "arguments of one Python function")]
    fn matmul(
        &self,
        py: Python<'_>,
        server: &Server,
        right: &Self,
        path: PathBuf,
        memory: u64,
        resume: bool,
        progress: Option<Py<PyAny>>,
    ) -> Result<(Self, u64)> {
        with_progress(py, progress, |progress| {
            let done = server.0.matmul_stored(&self.0, &right.0, &path, options(memory, resume), progress)?;
            Ok((Self(done.product), done.read_bytes))
        })
    }

    /// The plan that it brings along.
    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan().clone())
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// The node of the plan's expression.
    #[getter]
    fn node(&self) -> usize {
        self.0.node()
    }

    /// Matrices in it.
    #[getter]
    fn batch(&self) -> usize {
        self.0.batch()
    }

    /// Rows and columns of blocks.
    #[getter]
    fn grid(&self) -> (usize, usize) {
        self.0.reader().grid()
    }

    /// Rows and columns of elements in a block, where the method has blocks.
    #[getter]
    fn block_shape(&self) -> Option<(usize, usize)> {
        self.0.block_shape()
    }

    /// Bytes of a block on the disk.
    #[getter]
    fn block_bytes(&self) -> u64 {
        self.0.reader().block_bytes()
    }

    /// Names its contents.
    #[getter]
    fn digest(&self) -> String {
        layout::hex(&self.0.reader().digest())
    }

    /// The name of the key that it is under.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key().to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
