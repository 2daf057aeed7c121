//! Which exception each refusal becomes.

use pyo3::prelude::*;
use sudare_matrix::MatrixError;
use sudare_ring::ErrorKind;

/// Why there is no result.
pub enum Refusal {
    /// The layers below refused: the kind and the words.
    Refused(ErrorKind, String),
    /// Python raised something meanwhile.
    Raised(PyErr),
}

/// What every wrapper returns.
pub type Result<T> = std::result::Result<T, Refusal>;

impl<E: Into<MatrixError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        let error = error.into();
        Self::Refused(error.kind(), error.to_string())
    }
}

/// The exception of `sudare._errors` for each kind of refusal.
pub fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Parameters | ErrorKind::NotPlanned => "PlanError",
        ErrorKind::Insecure => "SecurityError",
        ErrorKind::Mismatch => "KeyMismatchError",
        ErrorKind::MissingKey => "MissingKeyError",
        ErrorKind::Levels => "LevelError",
        ErrorKind::Precision => "PrecisionError",
        ErrorKind::Input => "InputError",
        ErrorKind::Shape => "ShapeError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Release => "ReleaseError",
        ErrorKind::Format | ErrorKind::WrongType => "FormatError",
        ErrorKind::Io | ErrorKind::Machine | ErrorKind::Internal => "SudareError",
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Refused(kind, words) => Python::attach(|py| raised(py, class(kind), &words)),
            Refusal::Raised(error) => error,
        }
    }
}

/// An exception of `sudare._errors` by its name.
pub fn raised(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made =
        py.import("sudare._errors").and_then(|errors| errors.getattr(class)).and_then(|class| class.call1((message,)));
    made.map_or_else(|e| e, PyErr::from_value)
}
