//! The sides that encrypt.

use crate::array::{array, matrices};
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::plan::Plan;
use crate::server::Server;
use numpy::{PyArray3, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sudare_he::ckks::ReleasePolicy;
use sudare_he::keys::PublicKey;
use sudare_he::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_matrix::session;

/// Reports to a Python callable of (done, all). What it raises is dropped: it only shows.
pub fn reporter(callback: &Option<Py<PyAny>>) -> impl Fn(usize, usize) + Sync + '_ {
    move |done, all| {
        if let Some(callback) = callback {
            Python::attach(|py| drop(callback.call1(py, (done, all))));
        }
    }
}

/// How many results will be shown under a key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Release(pub ReleasePolicy);

#[pymethods]
impl Release {
    #[new]
    fn new(count: u64, security: u32) -> Result<Self> {
        Ok(Self(ReleasePolicy::new(count, security)?))
    }
}

/// Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Client(session::Client);

#[pymethods]
impl Client {
    #[new]
    fn new(py: Python<'_>, plan: &Plan, threads: usize) -> Result<Self> {
        py.detach(|| Ok(Self(session::Client::new(&plan.0, threads)?)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &Plan, secret: &[u8], threads: usize) -> Result<Self> {
        py.detach(|| {
            let secret = secret_key_from_bytes(plan.0.params(), secret)?;
            Ok(Self(session::Client::with_secret_key(&plan.0, secret, threads)?))
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| secret_key_to_bytes(self.0.secret_key()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The bytes of a new public key.
    fn public_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| Ok::<_, sudare_matrix::MatrixError>(self.0.public_key()?.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.0.key_id().to_string()
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: usize, progress: Option<Py<PyAny>>) -> Result<Server> {
        py.detach(|| {
            let keys = self.0.eval_keys_with(&reporter(&progress))?;
            Ok(Server(session::Server::new(self.0.plan(), keys, threads)?))
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
        py.detach(|| Ok(Encrypted(self.0.encrypt_batch(name, &all, &reporter(&progress))?)))
    }

    /// Results that may still be shown under the key.
    #[getter]
    fn releases_left(&self) -> u64 {
        self.0.releases_left()
    }

    /// Decrypts the result for the owner, or for release.
    fn decrypt<'py>(&self, py: Python<'py>, value: &Encrypted, release: bool) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let all = py.detach(|| match release {
            false => self.0.decrypt_batch(&value.0),
            true => self.0.decrypt_batch_for_release(&value.0),
        });
        array(py, all.map_err(crate::error::Refusal::from)?)
    }
}

/// Encrypts under a public key.
#[pyclass(frozen, module = "sudare._core")]
pub struct PublicClient(session::PublicClient);

#[pymethods]
impl PublicClient {
    #[new]
    fn new(py: Python<'_>, plan: &Plan, public: &[u8], threads: usize) -> Result<Self> {
        py.detach(|| {
            let public = PublicKey::from_bytes(plan.0.params(), public)?;
            Ok(Self(session::PublicClient::new(&plan.0, public, threads)?))
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
        py.detach(|| Ok(Encrypted(self.0.encrypt_batch(name, &all, &reporter(&progress))?)))
    }
}
