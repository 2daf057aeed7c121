//! Encrypted values.

use crate::device::name_of;
use crate::error::Result;
use crate::plan::Plan;
use crate::work::{bytes, long};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sudare_session as session;

/// The value of a node of a plan, or a matrix of a context, encrypted.
#[pyclass(frozen, module = "sudare._core")]
pub struct Encrypted(pub session::Encrypted);

#[pymethods]
impl Encrypted {
    /// Reads a value of a plan.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &Plan, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(session::Encrypted::from_bytes(&plan.0, data)?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// Matrices in it.
    #[getter]
    fn batch(&self) -> usize {
        self.0.batch()
    }

    /// The node of the plan's expression.
    #[getter]
    fn node(&self) -> usize {
        self.0.node()
    }

    /// Levels left.
    #[getter]
    fn level(&self) -> usize {
        self.0.levels_left()
    }

    /// Bound on the absolute values of its elements.
    #[getter]
    fn max_abs(&self) -> f64 {
        self.0.max_abs()
    }

    /// Bound on the error of its elements, if the plan promises one.
    #[getter]
    fn error(&self) -> Option<f64> {
        self.0.error()
    }

    /// Whether it holds integers, which are computed with exactly.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    /// What its integers are known modulo, if they may be too large to be told apart by it.
    #[getter]
    fn modulus(&self) -> Option<u64> {
        self.0.modulus()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// The same value on the processor.
    fn to_host(&self, py: Python<'_>) -> Result<Self> {
        long(py, || Ok(Self(self.0.to_host()?)))
    }

    /// The device that it is on, if it is on one.
    #[getter]
    fn device(&self) -> Option<String> {
        self.0.device().map(name_of)
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}
