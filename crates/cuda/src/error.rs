//! What can be wrong with a device or with what it is asked to do.

use sudare_ring::{ErrorKind, Kinded, RingError};

/// The oldest driver whose functions are called: that of CUDA 12.0. Which kernels it loads is another question: machine code
/// of any CUDA 12, and of CUDA 13 from driver 580 on.
pub const LEAST_DRIVER: i32 = 12_000;

/// A device that is not there or has no room, or operands that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The machine has no NVIDIA driver.
    #[error("this machine has no NVIDIA driver (libcuda.so.1): install driver 525 or newer, or work on the processor")]
    NoDriver,
    /// The driver is older than the kernels.
    #[error("the NVIDIA driver serves CUDA {}.{}, and the kernels need {}.{}: install driver 525 or newer",
        found / 1000, found % 1000 / 10, LEAST_DRIVER / 1000, LEAST_DRIVER % 1000 / 10)]
    OldDriver {
        /// The CUDA version of the driver, 1000·major + 10·minor.
        found: i32,
    },
    /// There is no card of this number.
    #[error("there is no CUDA device {index}: this machine shows {count}, counted from 0")]
    NoDevice {
        /// Number asked for.
        index: usize,
        /// Devices that there are.
        count: usize,
    },
    /// Neither compiled kernels nor a compiler for them.
    #[error(
        "there are no kernels for compute capability {}.{}: {reason}; install NVIDIA's run-time compiler \
         (pip install \"sudare[cuda]\", or libnvrtc.so of CUDA 12 or 13), or compile them ahead with `make cuda-kernels`",
        capability.0,
        capability.1
    )]
    NoKernels {
        /// Of the card.
        capability: (u32, u32),
        /// What failed.
        reason: String,
    },
    /// The card's memory is used up.
    #[error(
        "the device has no room for {wanted} more bytes: {free} of {total} are free; work on fewer ciphertexts at a \
         time, or drop results that are not needed"
    )]
    OutOfMemory {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes free.
        free: usize,
        /// Bytes of the card.
        total: usize,
    },
    /// A block of threads needs more shared memory than the card has.
    #[error(
        "{what} needs {wanted} bytes of shared memory in a block, and this device has {available}: use a smaller ring \
         or digits of fewer primes, or another card"
    )]
    SharedMemory {
        /// The operation.
        what: &'static str,
        /// Bytes needed.
        wanted: usize,
        /// Bytes that a block may have.
        available: usize,
    },
    /// A call of the driver failed.
    #[error("CUDA's {call} failed: {reason}")]
    Driver {
        /// The call.
        call: &'static str,
        /// What the driver says of it.
        reason: String,
    },
    /// A call failed in a way after which the driver refuses this process everything.
    #[error("CUDA's {call} failed: {reason}; this process can use the device no more: start it again")]
    Lost {
        /// The call.
        call: &'static str,
        /// What the driver says of it.
        reason: String,
    },
    /// The process is a fork of one that used the driver.
    #[error(
        "CUDA does not survive a fork: this process was forked from one that had used a device; \
         start workers afresh (multiprocessing.get_context(\"spawn\")), or use devices in the workers alone"
    )]
    Forked,
    /// A kernel of the emulator did what no kernel may.
    #[error("the emulator stopped, which is an error in Sudare: {0}; please report it")]
    Emulator(String),
    /// A ring that the kernels do not serve.
    #[error(
        "the GPU's transforms serve ring degrees 2^10 to 2^16, and not {degree}; take such a ring, or work on the \
         processor"
    )]
    Degree {
        /// The degree.
        degree: usize,
    },
    /// Operands that do not go together.
    #[error("{0}")]
    Mismatch(&'static str),
    /// Constants that do not exist.
    #[error(transparent)]
    Ring(#[from] RingError),
}

impl Kinded for CudaError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDriver
            | Self::OldDriver { .. }
            | Self::NoDevice { .. }
            | Self::NoKernels { .. }
            | Self::OutOfMemory { .. }
            | Self::SharedMemory { .. }
            | Self::Driver { .. }
            | Self::Lost { .. }
            | Self::Forked => ErrorKind::Machine,
            Self::Emulator(_) => ErrorKind::Internal,
            Self::Degree { .. } => ErrorKind::Parameters,
            Self::Mismatch(_) => ErrorKind::Shape,
            Self::Ring(error) => error.kind(),
        }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, CudaError>;
