//! Ciphertexts in batches on a GPU: the operations of [`sudare_rlwe::Backend`], many ciphertexts at a time, word by
//! word what the processor computes.
//!
//! [`Ciphertexts`] go to a device once and stay there; [`Evaluator`] is the backend of an `rlwe::Evaluator` that computes on them with a server's keys, which it
//! keeps on the device up to a budget; [`Ciphertexts::to_host`] brings results back. What a ciphertext says of its
//! message (scale, bounds) is its scheme's, and no matter of this crate.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

/// The guide's page, whose examples run with the tests of this crate.
#[cfg(all(doctest, feature = "emulate"))]
#[doc = include_str!("../../../docs/guide/4-operating/05-gpu.md")]
pub mod guide {}

mod ciphertexts;
mod error;
mod evaluator;
mod keys;
mod levels;

pub use ciphertexts::Ciphertexts;
pub use error::{GpuError, Result};
pub use evaluator::{Evaluator, Row};
