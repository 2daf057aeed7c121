//! The side that computes.

use crate::array::{Integers, matrices, one};
use crate::device::{name_of, open};
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::operation::operation_of;
use crate::plan::Plan;
use crate::work::{Workers, long, with_progress};
use numpy::PyReadonlyArray3;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use sudare_session as session;
use sudare_store::KeyFile;

/// Computes by a plan with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct Server(pub session::Server);

#[pymethods]
impl Server {
    /// A server from the bytes of evaluation keys.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &Plan, keys: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let keys = session::ServerKeys::from_bytes(&plan.0, keys)?;
            Ok(Self(session::Server::new(&plan.0, keys, threads.0)?))
        })
    }

    /// A server whose evaluation keys stay in their file, within `memory` bytes.
    #[staticmethod]
    fn open(py: Python<'_>, plan: &Plan, path: PathBuf, memory: usize, threads: Workers) -> Result<Self> {
        long(py, || {
            let keys = session::ServerKeys::open(&plan.0, &path, memory)?;
            Ok(Self(session::Server::new(&plan.0, keys, threads.0)?))
        })
    }

    /// The same server, computing on a device; kernels that the folder `ahead` does not have are compiled, and kept in
    /// `cache`. `memory` is the most bytes of the device that all servers there may take.
    fn to_device(
        &self,
        py: Python<'_>,
        name: &str,
        ahead: Option<PathBuf>,
        cache: Option<PathBuf>,
        memory: Option<usize>,
    ) -> Result<Self> {
        long(py, || {
            let device = open(name, ahead, cache)?;
            if let Some(bytes) = memory {
                device.set_limit(bytes);
            }
            Ok(Self(self.0.to_device(&device)?))
        })
    }

    /// The same server, computing on the processor.
    fn to_host(&self) -> Self {
        Self(self.0.to_host())
    }

    /// The device that it computes on, if it is one.
    #[getter]
    fn device(&self) -> Option<String> {
        self.0.device().map(name_of)
    }

    /// A value where this server computes.
    fn bring(&self, py: Python<'_>, operand: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.bring(&operand.0)?)))
    }

    /// Bytes of keys that are held while the rest stays in a file; `None` where all are in memory.
    #[getter]
    fn key_memory(&self) -> Option<usize> {
        self.0.key_file().map(KeyFile::memory)
    }

    /// A server for a plan that takes no keys.
    #[staticmethod]
    fn keyless(py: Python<'_>, plan: &Plan, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(session::Server::keyless(&plan.0, threads.0)?)))
    }

    /// The bytes of its keys.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || {
            let mut bytes = Vec::new();
            self.0.write_keys_to(&mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Bytes of its keys in memory, and of what bootstrapping has prepared.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.0.bytes()
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.keys().params().literal().log_n
    }

    /// Levels of a fresh matrix.
    #[getter]
    fn levels(&self) -> usize {
        self.0.levels()
    }

    /// Columns of a tile, in a context of tables over whole ciphertexts.
    #[getter]
    fn columns(&self) -> Option<usize> {
        self.0.spec()?.columns
    }

    /// The name of the key whose data it computes on.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    /// Operations done so far, by name.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        let c = self.0.counters();
        [("add", c.add), ("rot", c.rot), ("cmult", c.cmult), ("mult", c.mult), ("key_switches", c.key_switches)].into()
    }

    /// An input that the plan gives to the server as it is.
    fn plain(&self, py: Python<'_>, name: &str, values: PyReadonlyArray3<'_, f64>) -> Result<Encrypted> {
        let all = matrices(&values)?;
        long(py, || Ok(Encrypted(self.0.plain(name, &all)?)))
    }

    /// The same of integers.
    fn plain_integers(&self, py: Python<'_>, name: &str, values: Integers<'_>) -> Result<Encrypted> {
        let all = values.matrices()?;
        long(py, || Ok(Encrypted(self.0.plain_integers(name, &all)?)))
    }

    /// In a context, a matrix that the server sees.
    fn lift(&self, py: Python<'_>, values: PyReadonlyArray3<'_, f64>) -> Result<Encrypted> {
        let matrix = one(&values)?;
        long(py, || Ok(Encrypted(self.0.lift(&matrix)?)))
    }

    /// In a context, the same matrix with the levels of a fresh one.
    fn refresh(&self, py: Python<'_>, operand: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.refresh(&operand.0, max_abs)?)))
    }

    /// An operation, given as JSON, on values.
    fn apply(&self, py: Python<'_>, operation: &str, operands: Vec<PyRef<'_, Encrypted>>) -> Result<Encrypted> {
        let operation = operation_of(operation)?;
        let operands: Vec<&session::Encrypted> = operands.iter().map(|operand| &operand.0).collect();
        with_progress(py, None, |_| Ok(Encrypted(self.0.apply(&operation, &operands)?)))
    }
}
