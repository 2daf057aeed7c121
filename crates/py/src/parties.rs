//! Parties that hold a key together.

use crate::array::array;
use crate::encrypted::Encrypted;
use crate::error::{Refusal, Result};
use crate::plan::Plan;
use crate::server::Server;
use crate::work::{Workers, bytes, long};
use numpy::PyArray3;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Mutex;
use sudare_ring::ErrorKind;
use sudare_rlwe::wire::Wire;
use sudare_session as session;
use sudare_session::parties::{self, Request};

/// The folder that all parties see.
#[pyclass(frozen, module = "sudare._core")]
pub struct Room(parties::Room);

#[pymethods]
impl Room {
    /// Makes the folder for a plan, and names the parties.
    #[staticmethod]
    fn create(py: Python<'_>, folder: PathBuf, plan: &Plan, names: Vec<String>) -> Result<Self> {
        long(py, || Ok(Self(parties::Room::create(&folder, &plan.0, &names)?)))
    }

    /// The folder that was made.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> Result<Self> {
        long(py, || Ok(Self(parties::Room::open(&folder)?)))
    }

    /// The plan.
    #[getter]
    fn plan(&self) -> Plan {
        Plan(self.0.plan().clone())
    }

    /// Names of the parties.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names().to_vec()
    }

    /// Whose messages of key generation have not come: step and names.
    fn missing(&self) -> Vec<(&'static str, Vec<String>)> {
        self.0.missing().into_iter().map(|missing| (missing.step.name(), missing.names)).collect()
    }

    /// The parties that have not answered for a result.
    fn unanswered(&self, py: Python<'_>, value: &Encrypted) -> Result<Vec<String>> {
        long(py, || Ok(self.0.unanswered(&value.0)?))
    }

    /// Who was asked to decrypt a result, and for whom.
    fn request(&self, py: Python<'_>, value: &Encrypted) -> Result<Option<(Vec<String>, Vec<String>)>> {
        long(py, || Ok(self.0.request(&value.0)?.map(|r| (r.parties, r.receivers))))
    }

    /// What is to be compared of a name's key.
    fn fingerprint(&self, name: &str) -> Result<String> {
        Ok(self.0.key_of(name)?.fingerprint())
    }

    /// The bytes of the common public key.
    fn public_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.public_key()?.to_bytes()?))
    }

    /// The server with the common keys.
    fn server(&self, py: Python<'_>, threads: Workers) -> Result<Server> {
        long(py, || Ok(Server(session::Server::new(self.0.plan(), self.0.server_keys()?, threads.0)?)))
    }
}

/// A party, or a receiver of results, with the folder that it keeps.
#[pyclass(frozen, module = "sudare._core")]
pub struct Member(Mutex<parties::Member>);

impl Member {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut parties::Member) -> Result<T> + Send) -> Result<T> {
        long(py, || {
            let mut own = self.0.lock().map_err(|_| {
                Refusal::Refused(ErrorKind::Internal, "a step of this party failed before; open it anew".into())
            })?;
            work(&mut own)
        })
    }
}

#[pymethods]
impl Member {
    /// Joins under a name.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, name: &str, home: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(Mutex::new(parties::Member::join(&folder, name, &home, threads.0)?))))
    }

    /// Sends what can be sent by now, and takes over what came.
    fn round(&self, py: Python<'_>) -> Result<()> {
        self.with(py, |own| Ok(own.round()?))
    }

    /// What others compare of its key.
    fn fingerprint(&self, py: Python<'_>) -> Result<String> {
        self.with(py, |own| Ok(own.fingerprint()))
    }

    /// Releases that it answered.
    fn releases(&self, py: Python<'_>) -> Result<u64> {
        self.with(py, |own| Ok(own.releases()))
    }

    /// Answers for a result: the parties that decrypt and the receivers, or what was asked.
    fn share(
        &self,
        py: Python<'_>,
        value: &Encrypted,
        asked: Option<(Vec<String>, Vec<String>)>,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let asked = asked.map(|(parties, receivers)| Request { parties, receivers });
        let found = self.with(py, |own| Ok(own.share(&value.0, asked.as_ref())?))?;
        Ok((found.parties, found.receivers))
    }

    /// Opens a result for this receiver.
    fn combine<'py>(&self, py: Python<'py>, value: &Encrypted) -> PyResult<Bound<'py, PyArray3<f64>>> {
        array(py, self.with(py, |own| Ok(own.combine(&value.0)?))?)
    }
}
