//! Statistics of encrypted tables.

use crate::array::{array, matrices};
use crate::client::Release;
use crate::error::Result;
use crate::plan::security;
use crate::work::{Workers, long, told};
use numpy::{PyArray1, PyArray3, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sudare_he::keys::EvalKeys;
use sudare_he::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_matrix::{Matrix, MatrixError, session};

/// Means, and covariances with the axes batch (one), row, column.
type Moments<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray3<f64>>);

fn moments(py: Python<'_>, mean: Vec<f64>, covariance: Matrix) -> PyResult<Moments<'_>> {
    Ok((PyArray1::from_vec(py, mean), array(py, vec![covariance])?))
}

/// The size of a table and the bounds of its columns.
#[pyclass(frozen, module = "sudare._core")]
pub struct TableSpec(session::TableSpec);

#[pymethods]
impl TableSpec {
    #[new]
    fn new(rows: usize, max_abs: Vec<f64>, security: u32, release: Option<&Release>) -> Result<Self> {
        Ok(Self(session::TableSpec::new(rows, max_abs, self::security(security)?, release.map(|r| r.0))?))
    }

    /// Bounds on the errors of means and covariances.
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Moments<'py>> {
        let (mean, covariance) = long(py, || Ok(self.0.errors()?))?;
        moments(py, mean, covariance)
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// The bounds of the columns.
    #[getter]
    fn max_abs(&self) -> Vec<f64> {
        self.0.max_abs.clone()
    }
}

/// Encrypts tables and decrypts their statistics. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct TableClient(session::TableClient);

#[pymethods]
impl TableClient {
    #[new]
    fn new(py: Python<'_>, spec: &TableSpec, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(session::TableClient::new(&spec.0, threads.0)?)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, spec: &TableSpec, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(&spec.0.params.build()?, secret)?;
            Ok(Self(session::TableClient::with_secret_key(&spec.0, secret, threads.0)?))
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || Ok(secret_key_to_bytes(self.0.secret_key())?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: Workers, progress: Option<Py<PyAny>>) -> Result<TableServer> {
        told(py, progress, |progress| {
            let keys = self.0.eval_keys(progress)?;
            Ok(TableServer(session::TableServer::new(self.0.spec(), keys, threads.0)?))
        })
    }

    /// Encrypts a table.
    fn encrypt(&self, py: Python<'_>, values: PyReadonlyArray3<'_, f64>) -> Result<EncryptedTable> {
        let mut all: Vec<Matrix> = matrices(&values)?;
        let Some(table) = all.pop() else {
            return Err(MatrixError::Count { what: "tables", found: 0, expected: 1 }.into());
        };
        long(py, || Ok(EncryptedTable(self.0.encrypt(&table)?)))
    }

    /// Results that may still be shown under the key.
    #[getter]
    fn releases_left(&self) -> u64 {
        self.0.releases_left()
    }

    /// Decrypts statistics for the owner, or for release; bounds on their errors come second.
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        value: &EncryptedMoments,
        release: bool,
    ) -> PyResult<(Moments<'py>, Moments<'py>)> {
        let found = long(py, || match release {
            false => Ok(self.0.decrypt(&value.0)?),
            true => Ok(self.0.decrypt_for_release(&value.0)?),
        })?;
        Ok((moments(py, found.mean, found.covariance)?, moments(py, found.mean_error, found.covariance_error)?))
    }
}

/// Computes statistics with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct TableServer(session::TableServer);

#[pymethods]
impl TableServer {
    /// A server from the bytes of evaluation keys.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, spec: &TableSpec, keys: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let keys = EvalKeys::from_bytes(&spec.0.params.build()?, keys)?;
            Ok(Self(session::TableServer::new(&spec.0, keys, threads.0)?))
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

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    /// Means and covariances.
    fn moments(&self, py: Python<'_>, table: &EncryptedTable) -> Result<EncryptedMoments> {
        long(py, || Ok(EncryptedMoments(self.0.moments(&table.0)?)))
    }
}

/// An encrypted table.
#[pyclass(frozen, module = "sudare._core")]
pub struct EncryptedTable(session::EncryptedTable);

/// Encrypted means and covariances.
#[pyclass(frozen, module = "sudare._core")]
pub struct EncryptedMoments(session::EncryptedMoments);

macro_rules! travels {
    ($name:ident) => {
        #[pymethods]
        impl $name {
            /// Reads one of a specification.
            #[staticmethod]
            fn from_bytes(py: Python<'_>, spec: &TableSpec, data: &[u8]) -> Result<Self> {
                long(py, || Ok(Self(session::$name::from_bytes(&spec.0, data)?)))
            }

            /// Its bytes on the wire.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
                let bytes = long(py, || Ok(self.0.to_bytes()?))?;
                Ok(PyBytes::new(py, &bytes))
            }

            /// Rows and columns of the table.
            #[getter]
            fn shape(&self) -> (usize, usize) {
                self.0.shape()
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
    };
}

travels!(EncryptedTable);
travels!(EncryptedMoments);
