//! Keys of rings, which CKKS, BFV and BGV share.

use super::params::RlweParams;
use super::{on, pool};
use crate::error::Result;
use crate::work::{Workers, bytes, long};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use sudare_ring::Threads;
use sudare_rlwe::keys::{self, KeySource};
use sudare_rlwe::wire::{Wire, secret_key_from_bytes, secret_key_to_bytes};

/// A secret key. Whoever has it reads everything; it is wiped when it is dropped, and never shown.
#[pyclass(frozen, module = "sudare._core")]
pub struct SecretKey(pub Arc<keys::SecretKey>);

#[pymethods]
impl SecretKey {
    /// A fresh key of the distribution that its parameters state.
    #[staticmethod]
    fn generate(py: Python<'_>, params: &RlweParams) -> Result<Self> {
        long(py, || Ok(Self(Arc::new(keys::SecretKey::generate(&params.0)?))))
    }

    /// A key of before. Raises `FormatError` for other bytes and `KeyMismatchError` for a key of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &RlweParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(Arc::new(secret_key_from_bytes(&params.0, data)?))))
    }

    /// The key's bytes, with the count of its releases. Whoever reads them reads everything.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &secret_key_to_bytes(&self.0)?))
    }

    /// The key's public name, in hexadecimal digits.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Releases that may still be taken, if a policy was declared.
    #[getter]
    fn releases_left(&self) -> Option<u64> {
        self.0.releases().map(|releases| releases.left())
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A public key: it encrypts, and reads nothing.
#[pyclass(frozen, module = "sudare._core")]
pub struct PublicKey(pub Arc<keys::PublicKey>);

#[pymethods]
impl PublicKey {
    /// A key of before. Raises `FormatError` for other bytes and `KeyMismatchError` for a key of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &RlweParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(Arc::new(keys::PublicKey::from_bytes(&params.0, data)?))))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// The name of the secret key that it encrypts for.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn __repr__(&self) -> String {
        format!("PublicKey({})", self.0.id())
    }
}

/// A server's keys: relinearisation and automorphisms. Nothing in them is secret.
#[pyclass(frozen, module = "sudare._core")]
pub struct EvalKeys(pub Arc<keys::EvalKeys>);

#[pymethods]
impl EvalKeys {
    /// Keys of before. Raises `FormatError` for other bytes and `KeyMismatchError` for keys of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &RlweParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(Arc::new(keys::EvalKeys::from_bytes(&params.0, data)?))))
    }

    /// Their bytes on the wire: about half of those in memory.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// The name of the secret key that they belong to.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// The highest level that the relinearisation key serves; `None` without one.
    #[getter]
    fn relin_level(&self) -> Option<usize> {
        self.0.relin_level()
    }

    /// The highest level that each automorphism's key serves, by Galois element.
    #[getter]
    fn galois_levels(&self) -> BTreeMap<u64, usize> {
        self.0.galois_keys().map(|key| (key.element(), key.key().level())).collect()
    }

    fn __repr__(&self) -> String {
        let relin = if self.0.relin_level().is_some() { "relinearisation, " } else { "" };
        let (count, bytes) = (self.0.galois_keys().count(), self.0.bytes() as f64 / 1e6);
        format!("EvalKeys({relin}{count} automorphisms, {bytes:.1} MB, key {})", self.0.id())
    }
}

/// Makes keys from a secret key, each from fresh entropy.
///
/// - `secret`: the key that they belong to.
/// - `threads`: how many work; 0 or `None` is one for each processor.
#[pyclass(frozen, module = "sudare._core")]
pub struct KeyGenerator(Arc<keys::SecretKey>, Threads);

#[pymethods]
impl KeyGenerator {
    #[new]
    #[pyo3(signature = (secret, *, threads = None))]
    fn new(secret: &SecretKey, threads: Option<Workers>) -> Self {
        Self(secret.0.clone(), pool(threads))
    }

    /// A public key.
    fn public_key(&self, py: Python<'_>) -> Result<PublicKey> {
        on(py, &self.1, || Ok(PublicKey(Arc::new(keys::KeyGenerator::new(&self.0)?.public_key()?))))
    }

    /// A server's keys, and only those that are asked for: relinearisation up to level `relin_level`, and automorphisms.
    ///
    /// `elements` are pairs of a Galois element and the highest level that its key serves; `steps` are rotations up to
    /// `level`, the highest one where nothing is said, and with `conjugation` its key is made for that level as well.
    /// Raises `LevelError` for a level that there is not, `PlanError` for an element that is no odd number below 2N and without
    /// special primes.
    #[pyo3(signature = (relin_level = None, elements = None, *, steps = None, conjugation = false, level = None))]
    fn eval_keys(
        &self,
        py: Python<'_>,
        relin_level: Option<usize>,
        elements: Option<Vec<(u64, usize)>>,
        steps: Option<Vec<i64>>,
        conjugation: bool,
        level: Option<usize>,
    ) -> Result<EvalKeys> {
        let params = self.0.params();
        let level = level.unwrap_or_else(|| params.max_level());
        let mut all = elements.unwrap_or_default();
        all.extend(steps.iter().flatten().map(|step| (params.rotation_element(*step), level)));
        all.extend(conjugation.then(|| (params.conjugation_element(), level)));
        on(py, &self.1, || Ok(EvalKeys(Arc::new(keys::KeyGenerator::new(&self.0)?.eval_keys(relin_level, &all)?))))
    }

    fn __repr__(&self) -> String {
        format!("KeyGenerator(key {})", self.0.id())
    }
}
