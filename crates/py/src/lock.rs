//! A file that one process at a time replaces.

use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// A file that no other process holds, the command included, until it is let go.
#[pyclass(frozen, module = "sudare._core")]
pub struct LockedFile(Mutex<Option<sudare_store::LockedFile>>);

#[pymethods]
impl LockedFile {
    /// Waits for the file.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(py.detach(|| sudare_store::LockedFile::wait(&path))?))))
    }

    /// Lets it go.
    fn release(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }
}
