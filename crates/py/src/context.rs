//! Contexts: encrypted matrices without a plan.

use crate::array::{array, one, whole};
use crate::client::Release;
use crate::encrypted::Encrypted;
use crate::error::Result;
use crate::plan;
use crate::server::Server;
use crate::work::{Workers, long, with_progress};
use numpy::{PyArray3, PyReadonlyArray3};
use pyo3::prelude::*;
use sudare_rlwe::security::Security;
use sudare_session as session;

/// Bits of security; 0 for none. A context is made and used in one process: its owner may try things without any.
pub fn tried(security: u32) -> Result<Security> {
    if security == 0 { Ok(Security::Insecure) } else { plan::security(security) }
}

/// Encrypts, decrypts, and has a server. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct Context(session::Context);

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (depth, *, scale_bits, security, threads, tile, columns, release, bootstrap, automatic, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        py: Python<'_>,
        depth: usize,
        scale_bits: u32,
        security: u32,
        threads: Workers,
        tile: usize,
        columns: Option<usize>,
        release: Option<&Release>,
        bootstrap: Option<&str>,
        automatic: bool,
        progress: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let security = tried(security)?;
        let (release, bootstrap) = (release.map(|r| r.0), bootstrap.map(str::parse).transpose()?);
        let threads = threads.0;
        let options =
            session::ContextOptions { scale_bits, security, threads, tile, release, bootstrap, automatic, columns };
        with_progress(py, progress, |progress| Ok(Self(session::Context::new_with(depth, &options, progress)?)))
    }

    /// The side that computes.
    fn server(&self) -> Server {
        Server(self.0.server().clone())
    }

    /// Bits of the scale and products in a row between refreshes of a bootstrapping set.
    #[staticmethod]
    fn bootstrap_set(name: &str) -> Result<(u32, usize)> {
        Ok(session::ContextSpec::bootstrap_set(name.parse()?)?)
    }

    /// Encrypts a matrix.
    fn encrypt(&self, py: Python<'_>, values: PyReadonlyArray3<'_, f64>, max_abs: Option<f64>) -> Result<Encrypted> {
        let matrix = one(&values)?;
        long(py, || Ok(Encrypted(self.0.encrypt(&matrix, max_abs)?)))
    }

    /// Results that may still be shown under the key.
    #[getter]
    fn releases_left(&self) -> u64 {
        self.0.releases_left()
    }

    /// How far a released matrix is from the true one.
    fn released_error(&self, value: &Encrypted) -> Result<f64> {
        Ok(self.0.released_error(&value.0)?)
    }

    /// Decrypts a matrix for the owner, or for release.
    fn decrypt<'py>(&self, py: Python<'py>, value: &Encrypted, release: bool) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let matrix = long(py, || match release {
            false => Ok(self.0.decrypt(&value.0)?),
            true => Ok(self.0.decrypt_for_release(&value.0)?),
        })?;
        array(py, vec![matrix])
    }
}

/// Encrypts and decrypts arrays of integers, and has a server that computes with them to any depth. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerContext(session::IntegerContext);

#[pymethods]
impl IntegerContext {
    #[new]
    fn new(py: Python<'_>, set: &str, security: u32, threads: Workers) -> Result<Self> {
        let (set, security) = (set.parse()?, tried(security)?);
        long(py, || Ok(Self(session::IntegerContext::new(set, security, threads.0)?)))
    }

    /// Bytes that the keys of a set and what is prepared will take.
    #[staticmethod]
    fn memory(py: Python<'_>, set: &str, security: u32) -> Result<u64> {
        let (set, security) = (set.parse()?, tried(security)?);
        long(py, || Ok(session::IntegerContext::memory(set, security)?))
    }

    /// The side that computes.
    fn server(&self) -> Server {
        Server(self.0.server().clone())
    }

    /// The prime modulo which it computes.
    #[getter]
    fn modulus(&self) -> Result<u64> {
        Ok(self.0.arrays()?.params().t())
    }

    /// Elements of a ciphertext.
    #[getter]
    fn slots(&self) -> Result<usize> {
        Ok(self.0.arrays()?.params().slots())
    }

    /// Bytes of a fresh ciphertext.
    #[getter]
    fn ciphertext_bytes(&self) -> Result<u64> {
        Ok(self.0.arrays()?.ciphertext_bytes())
    }

    /// Products in a row between two refreshes.
    #[getter]
    fn depth(&self) -> Result<usize> {
        let [_, bgv] = self.0.arrays()?.set().products();
        Ok(bgv)
    }

    /// Encrypts a matrix of integers.
    fn encrypt(&self, py: Python<'_>, values: PyReadonlyArray3<'_, f64>, max_abs: Option<f64>) -> Result<Encrypted> {
        let matrix = one(&values)?;
        long(py, || Ok(Encrypted(self.0.encrypt(&matrix, max_abs)?)))
    }

    /// Decrypts a matrix of integers, its elements one after another.
    fn decrypt_integers<'py>(&self, py: Python<'py>, value: &Encrypted) -> PyResult<Bound<'py, PyAny>> {
        let matrix = long(py, || Ok(self.0.decrypt(&value.0)?))?;
        whole(py, &[matrix])
    }
}
