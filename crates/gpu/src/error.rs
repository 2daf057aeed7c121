//! What is refused: by the device, or for the ciphertexts.

use sudare_cuda::CudaError;
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::RlweError;

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The device is not there, has no room, or met operands of different shapes.
    #[error(transparent)]
    Device(#[from] CudaError),
    /// Parameters, keys or levels do not serve the operation.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
}

impl Kinded for GpuError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Device(error) => error.kind(),
            Self::Rlwe(error) => error.kind(),
        }
    }
}

impl From<GpuError> for RlweError {
    fn from(error: GpuError) -> Self {
        match error {
            GpuError::Rlwe(error) => error,
            GpuError::Device(error) => Self::Device { kind: error.kind(), reason: error.to_string() },
        }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, GpuError>;
/// The same as a scheme has it.
pub(crate) type Refused<T> = std::result::Result<T, RlweError>;
