//! Which exception each refusal becomes.

use pyo3::prelude::*;
use sudare_he::HeError;
use sudare_he::tfhe::TfheError;
use sudare_he::wire::WireError;
use sudare_matrix::MatrixError;

/// Why there is no result.
pub enum Refusal {
    /// The layers below refused.
    Refused(MatrixError),
    /// Python raised something meanwhile.
    Raised(PyErr),
}

/// What every wrapper returns.
pub type Result<T> = std::result::Result<T, Refusal>;

impl<E: Into<MatrixError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

fn of_scheme(error: &HeError) -> &'static str {
    match error {
        HeError::Insecure { .. } => "SecurityError",
        HeError::WrongParameters { .. } | HeError::WrongKey { .. } => "KeyMismatchError",
        HeError::OutOfLevels { .. } | HeError::NoSuchLevel { .. } => "LevelError",
        HeError::ScaleMismatch { .. } | HeError::TooLarge { .. } | HeError::NoPrecision { .. } => "PrecisionError",
        HeError::NotFinite { .. } | HeError::OverBound { .. } => "InputError",
        HeError::TooManyValues { .. } | HeError::Operands { .. } => "ShapeError",
        HeError::MissingRotationKey { .. } | HeError::MissingRelinKey => "MissingKeyError",
        HeError::ReleasesUsedUp { .. } | HeError::OtherRelease { .. } | HeError::NotAsComputed { .. } => "ReleaseError",
        HeError::Parameters { .. } | HeError::ReleasePolicy { .. } => "PlanError",
        _ => "SudareError",
    }
}

fn of_bits(error: &TfheError) -> &'static str {
    match error {
        TfheError::Insecure { .. } => "SecurityError",
        TfheError::WrongParameters { .. } | TfheError::WrongKey { .. } => "KeyMismatchError",
        TfheError::Shape { .. } => "ShapeError",
        TfheError::Message { .. } => "InputError",
        TfheError::Parameters { .. } => "UnsupportedError",
        TfheError::NoiseBudget { .. } | TfheError::CarrySpace { .. } => "PrecisionError",
        _ => "SudareError",
    }
}

fn of_wire(error: &WireError) -> &'static str {
    match error {
        WireError::He(e) => of_scheme(e),
        WireError::Tfhe(e) => of_bits(e),
        WireError::WrongParameters { .. } | WireError::WrongKey { .. } => "KeyMismatchError",
        _ => "FormatError",
    }
}

fn class(error: &MatrixError) -> &'static str {
    match error {
        MatrixError::He(e) => of_scheme(e),
        MatrixError::Wire(e) => of_wire(e),
        MatrixError::Shapes { .. }
        | MatrixError::PlannedShape { .. }
        | MatrixError::Elements { .. }
        | MatrixError::Count { .. } => "ShapeError",
        MatrixError::NotFinite { .. } | MatrixError::OverBound { .. } => "InputError",
        MatrixError::Method { .. }
        | MatrixError::NoPlan { .. }
        | MatrixError::Expression { .. }
        | MatrixError::NotPlanned { .. } => "PlanError",
        MatrixError::OutOfDepth { .. } => "LevelError",
        MatrixError::NoBootstrap => "UnsupportedError",
        MatrixError::NoRelease { .. } => "ReleaseError",
        MatrixError::PlanFile { .. } | MatrixError::PlanField { .. } => "FormatError",
        MatrixError::WrongPlan { .. } => "KeyMismatchError",
        _ => "SudareError",
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        let error = match refusal {
            Refusal::Refused(error) => error,
            Refusal::Raised(error) => return error,
        };
        Python::attach(|py| raised(py, class(&error), &error.to_string()))
    }
}

/// An exception of `sudare._errors` by its name.
pub fn raised(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made =
        py.import("sudare._errors").and_then(|errors| errors.getattr(class)).and_then(|class| class.call1((message,)));
    made.map_or_else(|e| e, PyErr::from_value)
}
