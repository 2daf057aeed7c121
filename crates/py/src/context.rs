//! Contexts: encrypted matrices without a plan.

use crate::array::{array, matrices};
use crate::client::Release;
use crate::error::Result;
use crate::plan::security;
use crate::work::{Workers, long, told};
use numpy::{PyArray3, PyReadonlyArray3};
use pyo3::prelude::*;
use sudare_matrix::slots::tiles::Axis;
use sudare_matrix::{Matrix, MatrixError, session};

/// The only matrix of an array of the axes batch, row, column.
fn one(values: &PyReadonlyArray3<'_, f64>) -> Result<Matrix> {
    let mut all = matrices(values)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (_, others) => Err(MatrixError::Count { what: "matrices", found: others + 1, expected: 1 }.into()),
    }
}

/// Encrypts, decrypts, and has a server. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Context(session::Context);

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (depth, *, scale_bits, security, threads, tile, release, bootstrap, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        py: Python<'_>,
        depth: usize,
        scale_bits: u32,
        security: u32,
        threads: Workers,
        tile: usize,
        release: Option<&Release>,
        bootstrap: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let (security, release) = (self::security(security)?, release.map(|r| r.0));
        let bootstrap = bootstrap.map(str::parse).transpose()?;
        let options = session::ContextOptions { scale_bits, security, threads: threads.0, tile, release, bootstrap };
        told(py, progress, |progress| Ok(Self(session::Context::new_with(depth, &options, progress)?)))
    }

    /// The side that computes.
    fn server(&self) -> ContextServer {
        ContextServer(self.0.server().clone())
    }

    /// Encrypts a matrix.
    fn encrypt(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray3<'_, f64>,
        max_abs: Option<f64>,
    ) -> Result<ContextMatrix> {
        let matrix = one(&values)?;
        long(py, || Ok(ContextMatrix(self.0.encrypt(&matrix, max_abs)?)))
    }

    /// Results that may still be shown under the key.
    #[getter]
    fn releases_left(&self) -> u64 {
        self.0.releases_left()
    }

    /// How far a released matrix is from the true one.
    fn released_error(&self, value: &ContextMatrix) -> Result<f64> {
        Ok(self.0.released_error(&value.0)?)
    }

    /// Decrypts a matrix for the owner, or for release.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        value: &ContextMatrix,
        release: bool,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let matrix = long(py, || match release {
            false => Ok(self.0.decrypt(&value.0)?),
            true => Ok(self.0.decrypt_for_release(&value.0)?),
        })?;
        array(py, vec![matrix])
    }
}

/// An encrypted matrix of a context.
#[pyclass(frozen, module = "sudare._core")]
pub struct ContextMatrix(session::ContextMatrix);

#[pymethods]
impl ContextMatrix {
    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// Matrices in it.
    #[getter]
    fn batch(&self) -> usize {
        1
    }

    /// The public bound on its elements.
    #[getter]
    fn max_abs(&self) -> f64 {
        self.0.max_abs()
    }

    /// Levels left.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// Bound on the error of its elements.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// Computes on the matrices of a context with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct ContextServer(session::ContextServer);

#[pymethods]
impl ContextServer {
    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.spec().params.log_n
    }

    /// Levels of a fresh matrix.
    #[getter]
    fn levels(&self) -> usize {
        self.0.levels()
    }

    /// Levels that a matrix has left.
    fn levels_left(&self, operand: &ContextMatrix) -> usize {
        self.0.levels_left(&operand.0)
    }

    /// Bytes of its keys in memory, and of what bootstrapping has prepared.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Bits of the scale and products in a row between refreshes of a bootstrapping set.
    #[staticmethod]
    fn bootstrap_set(name: &str) -> Result<(u32, usize)> {
        Ok(session::ContextSpec::bootstrap_set(name.parse()?)?)
    }

    /// The same matrix with the levels of a fresh one.
    fn refresh(&self, py: Python<'_>, operand: &ContextMatrix, max_abs: Option<f64>) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.refresh(&operand.0, max_abs)?)))
    }

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    /// A matrix that the server sees.
    fn plain(&self, py: Python<'_>, values: PyReadonlyArray3<'_, f64>) -> Result<ContextMatrix> {
        let matrix = one(&values)?;
        long(py, || Ok(ContextMatrix(self.0.plain(&matrix)?)))
    }

    /// The matrix product.
    fn matmul(&self, py: Python<'_>, left: &ContextMatrix, right: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.matmul(&left.0, &right.0)?)))
    }

    /// The sum.
    fn add(&self, py: Python<'_>, left: &ContextMatrix, right: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.add(&left.0, &right.0)?)))
    }

    /// The difference.
    fn subtract(&self, py: Python<'_>, left: &ContextMatrix, right: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.sub(&left.0, &right.0)?)))
    }

    /// The product, element by element.
    fn multiply(&self, py: Python<'_>, left: &ContextMatrix, right: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.mul(&left.0, &right.0)?)))
    }

    /// The negative.
    fn negative(&self, py: Python<'_>, operand: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.neg(&operand.0)?)))
    }

    /// The multiple by a number.
    fn scale(&self, py: Python<'_>, operand: &ContextMatrix, factor: f64) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.scale(&operand.0, factor)?)))
    }

    /// A number added to every element.
    fn shift(&self, py: Python<'_>, operand: &ContextMatrix, number: f64) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.shift(&operand.0, number)?)))
    }

    /// The transpose.
    fn transpose(&self, py: Python<'_>, operand: &ContextMatrix) -> Result<ContextMatrix> {
        long(py, || Ok(ContextMatrix(self.0.transpose(&operand.0)?)))
    }

    /// The sum over an axis, which stays.
    fn sum(&self, py: Python<'_>, operand: &ContextMatrix, axis: u8) -> Result<ContextMatrix> {
        let axis = if axis == 0 { Axis::Rows } else { Axis::Columns };
        long(py, || Ok(ContextMatrix(self.0.sum(&operand.0, axis)?)))
    }
}
