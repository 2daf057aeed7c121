//! A server on another machine.

use crate::error::{Refusal, Result};
use crate::index::IndexServer;
use crate::work::{away, long};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sudare_ring::ErrorKind;
use sudare_ring::error::told;
use sudare_serve::{Digest, Patience, RemoteError};

/// A tenant's way to a server. Requests of several threads go side by side.
#[pyclass(frozen, module = "sudare._core")]
pub struct Remote(pub sudare_serve::Remote);

/// The exception for what a remote server refused, or for no answer: the class of the kind, or else a `RemoteError`.
fn refused(error: RemoteError) -> Refusal {
    let (kind, words) = match &error {
        RemoteError::Refused(problem) => {
            let known = ErrorKind::named(problem.name());
            if let Some(known) = known.filter(|known| known.class() != ErrorKind::Internal.class()) {
                return Refusal::Refused(known, told(problem.detail()));
            }
            (problem.name(), error.to_string())
        }
        RemoteError::Unreachable { .. } => ("unreachable", error.to_string()),
        RemoteError::Slow { .. } => ("slow", error.to_string()),
        RemoteError::Answer(_) => ("answer", error.to_string()),
        _ => return error.into(),
    };
    raised(kind, words)
}

/// A `RemoteError` of a kind.
pub fn raised(kind: &str, words: String) -> Refusal {
    Refusal::Raised(Python::attach(|py| {
        let class = py.import("sudare._errors").and_then(|errors| errors.getattr("RemoteError"));
        class.and_then(|class| class.call1((words, kind))).map_or_else(|e| e, PyErr::from_value)
    }))
}

/// The name of an object.
fn named(name: &str) -> Result<Digest> {
    name.parse().map_err(|e| Refusal::Refused(ErrorKind::Input, format!("{e}, not {:?}", told(name))))
}

/// Seconds, at least a hundredth.
fn seconds(given: f64) -> Duration {
    Duration::try_from_secs_f64(given.max(0.01)).unwrap_or(Duration::MAX)
}

#[pymethods]
impl Remote {
    /// The way to an address with a token, and the PEM of authorities other than the system's. `patience` are the seconds of
    /// an answer, of a piece of an object and of a job, and the number of tries.
    #[new]
    #[pyo3(signature = (url, token, ca = None, patience = None))]
    fn new(url: &str, token: &str, ca: Option<Vec<u8>>, patience: Option<(f64, f64, f64, u32)>) -> Result<Self> {
        let remote = sudare_serve::Remote::new(url, token, ca.as_deref()).map_err(refused)?;
        let Some((answer, piece, job, tries)) = patience else { return Ok(Self(remote)) };
        let (answer, piece, job) = (seconds(answer), seconds(piece), seconds(job));
        let patience = Patience { answer, piece, job, tries, wait: Duration::ZERO };
        Ok(Self(remote.with_patience(patience)))
    }

    /// Its address.
    #[getter]
    fn url(&self) -> String {
        self.0.address().to_owned()
    }

    /// Version, limits and panels of the server, as JSON.
    fn config(&self, py: Python<'_>) -> Result<String> {
        let remote = self.0.clone();
        let found = away(py, None, refused, move |_| remote.config())?;
        Ok(serde_json::Value::Object(found).to_string())
    }

    /// Sends an object unless the server has it; its name.
    fn send(&self, py: Python<'_>, data: PyBackedBytes) -> Result<String> {
        let remote = self.0.clone();
        let name = away(py, None, refused, move |_| remote.send(&mut Cursor::new(&*data)))?;
        Ok(name.to_string())
    }

    /// An object by its name.
    fn fetch<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyBytes>> {
        let (remote, name) = (self.0.clone(), named(name)?);
        let found = away(py, None, refused, move |_| {
            let mut out = Vec::new();
            remote.fetch(name, &mut out).map(|_| out)
        })?;
        Ok(PyBytes::new(py, &found))
    }

    /// The tenant's objects, the longest unused first: name, kind, bytes, and milliseconds since 1970 of the last use.
    fn objects(&self, py: Python<'_>) -> Result<Vec<(String, String, u64, u64)>> {
        let remote = self.0.clone();
        let found = away(py, None, refused, move |_| remote.objects())?;
        Ok(found.into_iter().map(|o| (o.digest.to_string(), o.kind, o.bytes, o.used)).collect())
    }

    /// Removes an object.
    fn delete_object(&self, py: Python<'_>, name: &str) -> Result<()> {
        let (remote, name) = (self.0.clone(), named(name)?);
        away(py, None, refused, move |_| remote.delete_object(name))
    }

    /// The description of a panel.
    fn sites<'py>(&self, py: Python<'py>, panel: String) -> Result<Bound<'py, PyBytes>> {
        let remote = self.0.clone();
        let found = away(py, None, refused, move |_| remote.sites(&panel))?;
        Ok(PyBytes::new(py, &found))
    }

    /// The text of a model's plan.
    fn model_plan(&self, py: Python<'_>, model: String) -> Result<String> {
        let remote = self.0.clone();
        let found = away(py, None, refused, move |_| remote.model_plan(&model))?;
        String::from_utf8(found)
            .map_err(|_| refused(RemoteError::Answer("it sends a model's plan that is not text".into())))
    }

    /// The names of the tenant's tables.
    fn tables(&self, py: Python<'_>) -> Result<Vec<String>> {
        let remote = self.0.clone();
        away(py, None, refused, move |_| remote.tables())
    }

    /// A table: its rows, the text of its plan, and its list of segments; none where there is no such.
    fn table(&self, py: Python<'_>, name: String) -> Result<Option<(u64, String, String)>> {
        let remote = self.0.clone();
        let found = away(py, None, refused, move |_| remote.table(&name))?;
        Ok(found.map(|view| (view.rows, view.plan, view.manifest.to_string())))
    }

    /// Removes a table.
    fn delete_table(&self, py: Python<'_>, name: String) -> Result<()> {
        let remote = self.0.clone();
        away(py, None, refused, move |_| remote.delete_table(&name))
    }

    /// Sends a segment of a stored table; with the first one the names of plan and keys.
    fn append(
        &self,
        py: Python<'_>,
        name: String,
        server: &IndexServer,
        path: PathBuf,
        segment: usize,
        begin: Option<(String, String)>,
    ) -> Result<()> {
        let (remote, begin) =
            (self.0.clone(), begin.map(|(plan, keys)| Ok::<_, Refusal>((named(&plan)?, named(&keys)?))));
        let (begin, mut parcel) = (begin.transpose()?, long(py, || server.parcel(&path, segment))?);
        away(py, None, refused, move |_| remote.append(&name, &mut parcel, begin))
    }

    /// The names of the tenant's rooms.
    fn rooms(&self, py: Python<'_>) -> Result<Vec<String>> {
        let remote = self.0.clone();
        away(py, None, refused, move |_| remote.rooms())
    }

    /// Removes a room.
    fn delete_room(&self, py: Python<'_>, name: String) -> Result<()> {
        let remote = self.0.clone();
        away(py, None, refused, move |_| remote.delete_room(&name))
    }

    /// The result of a job that is asked for, given as JSON. What is raised meanwhile cancels the job.
    #[pyo3(signature = (request, progress = None))]
    fn run<'py>(&self, py: Python<'py>, request: &str, progress: Option<Py<PyAny>>) -> Result<Bound<'py, PyBytes>> {
        let found = self.done(py, request, progress, |remote, result, _| {
            let mut out = Vec::new();
            remote.fetch(result, &mut out).map(|_| out)
        });
        Ok(PyBytes::new(py, &found?))
    }

    /// The same, but the result stays there: its name and length.
    #[pyo3(signature = (request, progress = None))]
    fn make(&self, py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> Result<(String, u64)> {
        self.done(py, request, progress, |_, result, bytes| Ok((result.to_string(), bytes)))
    }
}

impl Remote {
    /// What becomes of the result of a job, by its name and length.
    fn done<T: Send + 'static>(
        &self,
        py: Python<'_>,
        request: &str,
        progress: Option<Py<PyAny>>,
        take: fn(&sudare_serve::Remote, Digest, u64) -> std::result::Result<T, RemoteError>,
    ) -> Result<T> {
        let request = serde_json::from_str(request)
            .map_err(|e| Refusal::Refused(ErrorKind::Input, format!("this is not a request: {}", told(e))))?;
        let mut patience = self.0.patience();
        if progress.is_some() {
            // Short waits where somebody looks.
            patience.wait = patience.wait.min(Duration::from_secs(1));
        }
        let (remote, job) = (self.0.clone().with_patience(patience), Arc::new(Mutex::new(None)));
        let asked = job.clone();
        let found = away(py, progress, refused, move |progress| {
            let id = remote.submit(&request, None)?.id;
            *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
            let (result, bytes) = remote.wait(&id, progress)?;
            take(&remote, result, bytes)
        });
        if matches!(&found, Err(Refusal::Raised(raised)) if !raised.is_instance_of::<pyo3::exceptions::PyOSError>(py)) {
            let id = job.lock().unwrap_or_else(PoisonError::into_inner).take();
            let remote = self.0.clone();
            if let Some(id) = id {
                // Whether it was heard is nobody's concern any more.
                let _ = away(py, None, refused, move |_| remote.delete_job(&id));
            }
        }
        found
    }
}
