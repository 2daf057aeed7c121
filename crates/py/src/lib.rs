//! The extension module `sudare._core`: one-line wrappers of plans and sessions, without logic.
//!
//! Matrices pass as C-ordered arrays with the axes batch, row, column, of doubles or of integers. The interpreter
//! lock is released wherever work is done, and signals end it (`work`). Errors become the classes of
//! `sudare._errors`.
#![forbid(unsafe_code)]

mod array;
mod bits;
mod client;
mod context;
mod device;
mod encrypted;
mod error;
mod genome;
mod part;
mod plan;
mod polynomial;
mod server;
mod stored;
mod work;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sudare_ring::Family;

/// What `sudare` is made of.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::limit_kernels()
    }

    #[pymodule_export]
    use crate::bits::{BitsArray, BitsClient, BitsParams, BitsServer};
    #[pymodule_export]
    use crate::client::{Client, PublicClient, Release};
    #[pymodule_export]
    use crate::context::Context;
    #[pymodule_export]
    use crate::device::devices;
    #[pymodule_export]
    use crate::encrypted::Encrypted;
    #[pymodule_export]
    use crate::genome::{GenomeClient, GenomePanel, GenomeServer, GenomeSites};
    #[pymodule_export]
    use crate::part::{add_parts, decrypt_part, layouts, load_part, matmul_parts, sum_part};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::polynomial::Polynomial;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::stored::Stored;

    #[pymodule_export]
    use crate::{command, peek};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// The command `sudare` with its words, the first of which is its name; its exit code.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| sudare_cli::run(words))
}

/// What an object is, by its header: number and name of its type, its length, and the name of the key that it is under.
#[pyfunction]
fn peek(data: &[u8]) -> error::Result<(u16, String, u64, String)> {
    let header = sudare_rlwe::wire::peek(data)?;
    let key = header.key().0.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((header.object().code(), header.object().to_string(), header.total_bytes(), key))
}

/// `SUDARE_KERNEL` names the best kernel family that may be used.
fn limit_kernels() -> PyResult<()> {
    let Some(name) = std::env::var_os("SUDARE_KERNEL") else { return Ok(()) };
    let limited = name.to_string_lossy().parse::<Family>().and_then(Family::limit);
    limited.map_err(|error| PyValueError::new_err(format!("SUDARE_KERNEL: {error}")))
}
