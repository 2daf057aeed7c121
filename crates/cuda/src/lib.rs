//! Batches of polynomials on a GPU: many ciphertexts in one launch, bit by bit what the processor computes.
//!
//! A [`Device`] is a card, found at run time, or (with the feature `emulate`) the emulator, which runs the very same
//! kernels on the processor and finds races and accesses beyond a buffer. [`Batch`]es hold polynomials there; what is
//! done with them is [`ops`]. Knows no keys and no schemes.
//!
//! `unsafe` is what the driver's functions are: each use says why it holds. Kernels read and write what the launches of
//! [`ops`] name, and those check shapes, devices and numbers of items before.

mod arena;
mod batch;
mod device;
mod driver;
mod error;
pub mod ops;
mod tables;

pub use batch::Batch;
pub use device::Device;
#[cfg(feature = "emulate")]
pub use driver::emulator::{Trial, kernels};
pub use driver::image::{Cache, Kernels, image_name, source};
pub use driver::{Counted, Info, Launched};
pub use error::{CudaError, LEAST_DRIVER, Result};
pub use ops::divide::Division;
pub use ops::gadget::{Digits, Gadget, Pairs};
