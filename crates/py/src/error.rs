//! Which exception each refusal becomes.

use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use sudare_methods::MatrixError;
use sudare_ring::{ErrorKind, Kinded};

/// Why there is no result.
pub enum Refusal {
    /// The layers below refused: the kind and the words.
    Refused(ErrorKind, String),
    /// Python raised something meanwhile, or the system refused: that is an `OSError`, as of all of Python's files.
    Raised(PyErr),
}

/// What every wrapper returns.
pub type Result<T> = std::result::Result<T, Refusal>;

impl<E: Kinded> From<E> for Refusal {
    fn from(error: E) -> Self {
        // What a server has of several parties, and a kind without a class of its own.
        if let Some(MatrixError::Messages { kind, words }) = (&error as &dyn Error).downcast_ref()
            && kind.class() == ErrorKind::Internal.class()
        {
            return crate::remote::raised(kind.name(), words.clone());
        }
        match error.system() {
            Some(kind) => Self::Raised(std::io::Error::new(kind, error.to_string()).into()),
            None => Self::Refused(error.kind(), error.to_string()),
        }
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Refused(kind, words) => Python::attach(|py| raised(py, kind, &words)),
            Refusal::Raised(error) => error,
        }
    }
}

/// The exception of a kind, a class of `sudare._errors`.
pub fn raised(py: Python<'_>, kind: ErrorKind, message: &str) -> PyErr {
    let class = py.import("sudare._errors").and_then(|errors| errors.getattr(kind.class()));
    class.and_then(|class| class.call1((message,))).map_or_else(|e| e, PyErr::from_value)
}

/// The name of the exception of `sudare._errors` for each kind of refusal, by the name that a server answers with.
#[pyfunction]
pub fn error_classes() -> BTreeMap<&'static str, &'static str> {
    ErrorKind::ALL.iter().map(|kind| (kind.name(), kind.class())).collect()
}
