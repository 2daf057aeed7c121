//! The side that computes.

use crate::array::matrices;
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::plan::Plan;
use crate::work::{Workers, long};
use numpy::PyReadonlyArray3;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use sudare_he::keys::EvalKeys;
use sudare_he::wire::Wire;
use sudare_matrix::session;

/// Computes by a plan with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct Server(pub session::Server);

#[pymethods]
impl Server {
    /// A server from the bytes of evaluation keys.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &Plan, keys: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let keys = EvalKeys::from_bytes(plan.0.params(), keys)?;
            Ok(Self(session::Server::new(&plan.0, keys, threads.0)?))
        })
    }

    /// The bytes of its evaluation keys.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || Ok(self.0.evaluator().keys().to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Bytes of its keys in memory.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.0.evaluator().keys().bytes()
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
        let c = self.0.evaluator().counters();
        [("add", c.add), ("rot", c.rot), ("cmult", c.cmult), ("mult", c.mult), ("key_switches", c.key_switches)].into()
    }

    /// An input that the plan gives to the server as it is.
    fn plain(&self, py: Python<'_>, name: &str, values: PyReadonlyArray3<'_, f64>) -> Result<Encrypted> {
        let all = matrices(&values)?;
        long(py, || Ok(Encrypted(self.0.plain(name, &all)?)))
    }

    /// The matrix product.
    fn matmul(&self, py: Python<'_>, left: &Encrypted, right: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.matmul(&left.0, &right.0)?)))
    }

    /// The sum.
    fn add(&self, py: Python<'_>, left: &Encrypted, right: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.add(&left.0, &right.0)?)))
    }

    /// The difference.
    fn subtract(&self, py: Python<'_>, left: &Encrypted, right: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.sub(&left.0, &right.0)?)))
    }

    /// The product, element by element.
    fn multiply(&self, py: Python<'_>, left: &Encrypted, right: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.mul(&left.0, &right.0)?)))
    }

    /// The negative.
    fn negative(&self, py: Python<'_>, operand: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.neg(&operand.0)?)))
    }

    /// The multiple by a number.
    fn scale(&self, py: Python<'_>, operand: &Encrypted, factor: f64) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.scale(&operand.0, factor)?)))
    }

    /// A number added to every element.
    fn shift(&self, py: Python<'_>, operand: &Encrypted, number: f64) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.shift(&operand.0, number)?)))
    }

    /// The transpose.
    fn transpose(&self, py: Python<'_>, operand: &Encrypted) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.transpose(&operand.0)?)))
    }

    /// The sum over an axis, which stays.
    fn sum(&self, py: Python<'_>, operand: &Encrypted, axis: u8) -> Result<Encrypted> {
        long(py, || Ok(Encrypted(self.0.sum(&operand.0, axis)?)))
    }
}
