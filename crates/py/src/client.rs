//! The sides that encrypt.

use crate::array::{Integers, array, matrices, whole};
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::files::{hold_key, read_key, write_key};
use crate::plan::Plan;
use crate::server::Server;
use crate::work::{Workers, bytes, long, with_progress};
use numpy::{PyArray3, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_session as session;

/// How many results will be shown under a key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Release(pub ReleasePolicy);

#[pymethods]
impl Release {
    /// A number of results, each with bits of statistical security. Raises `PlanError` out of range.
    #[new]
    fn new(count: u64, security: u32) -> Result<Self> {
        Ok(Self(ReleasePolicy::new(count, security)?))
    }

    /// A bound on the error of a released value, of so many, whose error is at most `error`.
    fn released_error(&self, values: usize, error: f64) -> f64 {
        self.0.released_error(values, error)
    }
}

/// Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Client(pub session::Client);

#[pymethods]
impl Client {
    #[new]
    fn new(py: Python<'_>, plan: &Plan, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(session::Client::new(&plan.0, threads.0)?)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &Plan, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(plan.0.params(), secret)?;
            Ok(Self(session::Client::with_secret_key(&plan.0, secret, threads.0)?))
        })
    }

    /// A client with a secret key in a file.
    #[staticmethod]
    fn load(py: Python<'_>, plan: &Plan, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(plan.0.params(), &read_key(&path)?)?;
            Ok(Self(session::Client::with_secret_key(&plan.0, secret, threads.0)?))
        })
    }

    /// Writes the secret key to a file. In the place of a copy of it the larger count of releases stays.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        let secret = self.0.secret_key();
        long(py, || {
            let counted = hold_key(&path, secret.id())?;
            if counted.is_some() {
                secret.count_with(&secret_key_from_bytes(secret.params(), &read_key(&path)?)?)?;
            }
            write_key(&path, &[&secret_key_to_bytes(secret)?], secret.id(), overwrite)
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(secret_key_to_bytes(self.0.secret_key())?))
    }

    /// The bytes of a new public key.
    fn public_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.public_key()?.to_bytes()?))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: Workers, progress: Option<Py<PyAny>>) -> Result<Server> {
        with_progress(py, progress, |progress| {
            let keys = self.0.server_keys(progress)?;
            Ok(Server(session::Server::new(self.0.plan(), keys, threads.0)?))
        })
    }

    /// Encrypts an input.
    fn encrypt(
        &self,
        py: Python<'_>,
        name: &str,
        values: PyReadonlyArray3<'_, f64>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Encrypted> {
        let all = matrices(&values)?;
        with_progress(py, progress, |progress| Ok(Encrypted(self.0.encrypt_batch(name, &all, progress)?)))
    }

    /// Encrypts an input of integers.
    fn encrypt_integers(
        &self,
        py: Python<'_>,
        name: &str,
        values: Integers<'_>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Encrypted> {
        let all = values.matrices()?;
        with_progress(py, progress, |progress| Ok(Encrypted(self.0.encrypt_integers_batch(name, &all, progress)?)))
    }

    /// Results that may still be shown under the key.
    #[getter]
    fn releases_left(&self) -> u64 {
        self.0.releases_left()
    }

    /// Decrypts the result for the owner, or for release.
    fn decrypt<'py>(&self, py: Python<'py>, value: &Encrypted, release: bool) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let all = long(py, || match release {
            false => Ok(self.0.decrypt_batch(&value.0)?),
            true => Ok(self.0.decrypt_batch_for_release(&value.0)?),
        })?;
        array(py, all)
    }

    /// Decrypts results of integers, row by row: an array of 64-bit ones, or a list where one does not fit.
    fn decrypt_integers<'py>(&self, py: Python<'py>, value: &Encrypted) -> PyResult<Bound<'py, PyAny>> {
        whole(py, &long(py, || Ok(self.0.decrypt_integers_batch(&value.0)?))?)
    }
}

/// Encrypts under a public key.
#[pyclass(frozen, module = "sudare._core")]
pub struct PublicClient(pub session::PublicClient);

#[pymethods]
impl PublicClient {
    #[new]
    fn new(py: Python<'_>, plan: &Plan, public: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let public = PublicKey::from_bytes(plan.0.params(), public)?;
            Ok(Self(session::PublicClient::new(&plan.0, public, threads.0)?))
        })
    }

    /// Encrypts an input.
    fn encrypt(
        &self,
        py: Python<'_>,
        name: &str,
        values: PyReadonlyArray3<'_, f64>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Encrypted> {
        let all = matrices(&values)?;
        with_progress(py, progress, |progress| Ok(Encrypted(self.0.encrypt_batch(name, &all, progress)?)))
    }

    /// Encrypts an input of integers.
    fn encrypt_integers(
        &self,
        py: Python<'_>,
        name: &str,
        values: Integers<'_>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Encrypted> {
        let all = values.matrices()?;
        with_progress(py, progress, |progress| Ok(Encrypted(self.0.encrypt_integers_batch(name, &all, progress)?)))
    }
}
