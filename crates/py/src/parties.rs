//! Parties that hold a key together.

use crate::array::{array, whole};
use crate::encrypted::Encrypted;
use crate::error::{Refusal, Result};
use crate::plan::Plan;
use crate::remote::Remote;
use crate::server::Server;
use crate::work::{Workers, bytes, long};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use sudare_ring::ErrorKind;
use sudare_rlwe::wire::Wire;
use sudare_serve::RemoteRoom;
use sudare_session as session;
use sudare_session::parties::{self, Folder, Messages, Opened, Request};

/// Where the messages are: a folder, or a server's room of a name.
#[derive(FromPyObject)]
pub enum At<'py> {
    Room(PyRef<'py, Remote>, String),
    Folder(PathBuf),
}

impl From<At<'_>> for Arc<dyn Messages> {
    fn from(at: At<'_>) -> Self {
        match at {
            At::Room(remote, name) => RemoteRoom::new(remote.0.clone(), &name),
            At::Folder(path) => Folder::at(&path),
        }
    }
}

/// What all parties see.
#[pyclass(frozen, module = "sudare._core")]
pub struct Room(parties::Room);

#[pymethods]
impl Room {
    /// Begins a session for a plan, and names the parties.
    #[staticmethod]
    fn create(py: Python<'_>, at: At<'_>, plan: &Plan, names: Vec<String>) -> Result<Self> {
        let at = at.into();
        long(py, || Ok(Self(parties::Room::create(at, &plan.0, &names)?)))
    }

    /// The session that was begun.
    #[staticmethod]
    fn open(py: Python<'_>, at: At<'_>) -> Result<Self> {
        let at = at.into();
        long(py, || Ok(Self(parties::Room::open(at)?)))
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
    fn missing(&self, py: Python<'_>) -> Result<Vec<(&'static str, Vec<String>)>> {
        let missing = long(py, || Ok(self.0.missing()?))?;
        Ok(missing.into_iter().map(|missing| (missing.step.name(), missing.names)).collect())
    }

    /// Puts an encrypted value where all see it.
    fn put(&self, py: Python<'_>, name: &str, value: &Encrypted) -> Result<()> {
        long(py, || Ok(self.0.put(name, &value.0)?))
    }

    /// The encrypted value of a name, where it has been put.
    fn value(&self, py: Python<'_>, name: &str) -> Result<Option<Encrypted>> {
        long(py, || Ok(self.0.value(name)?.map(Encrypted)))
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
    fn fingerprint(&self, py: Python<'_>, name: &str) -> Result<String> {
        long(py, || Ok(self.0.key_of(name)?.fingerprint()))
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
                Refusal::Refused(ErrorKind::Internal, "a step of this party failed before; open the party anew".into())
            })?;
            work(&mut own)
        })
    }
}

#[pymethods]
impl Member {
    /// Joins under a name.
    #[new]
    fn new(py: Python<'_>, at: At<'_>, name: &str, home: PathBuf, threads: Workers) -> Result<Self> {
        let at = at.into();
        long(py, || Ok(Self(Mutex::new(parties::Member::join(at, name, &home, threads.0)?))))
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
        let found = self.with(py, |own| {
            let request = asked.map_or_else(|| own.room().asked(&value.0), Ok)?;
            own.share(&value.0, &request)?;
            Ok(request)
        })?;
        Ok((found.parties, found.receivers))
    }

    /// Opens a result for this receiver.
    fn combine<'py>(&self, py: Python<'py>, value: &Encrypted) -> PyResult<Bound<'py, PyAny>> {
        match self.with(py, |own| Ok(own.combine(&value.0)?))? {
            Opened::Reals(matrices) => Ok(array(py, matrices)?.into_any()),
            Opened::Integers(matrices) => whole(py, &matrices),
        }
    }
}
