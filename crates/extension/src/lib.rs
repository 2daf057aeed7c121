//! The extension module `sudare._core`: the classes of `sudare-py`, and the command `sudare` where it is built in.
//!
//! A module of Python is linked when every library below it is compiled. So it is a crate of a page, and what there is
//! to compile for Python is in `sudare-py`, beside the crates that it wraps.
#![forbid(unsafe_code)]

use pyo3::prelude::*;

/// What `sudare` is made of.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        sudare_py::limit_kernels()
    }

    #[pymodule_export]
    use sudare_py::{
        BitsArray, BitsClient, BitsParams, BitsServer, Client, Context, Encrypted, GenomeClient, GenomePanel,
        GenomeServer, GenomeSites, Index, IndexAnswer, IndexClient, IndexQuery, IndexServer, IndexStoring, IndexTable,
        Plan, Polynomial, PublicClient, Release, Server, Stored,
    };
    #[pymodule_export]
    use sudare_py::{
        add_parts, decrypt_part, devices, error_classes, infer, layouts, load_part, matmul_parts, peek, sum_part,
        write_file,
    };

    #[pymodule_export]
    use crate::command;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// The command `sudare` with its words, the first of which is its name; its exit code. `None` from a build without it.
#[pyfunction]
#[cfg_attr(not(feature = "command"), expect(unused_variables, reason = "there is no command to hand them to"))]
fn command(py: Python<'_>, words: Vec<std::ffi::OsString>) -> Option<u8> {
    #[cfg(feature = "command")]
    return Some(py.detach(|| sudare_cli::run(words)));
    #[cfg(not(feature = "command"))]
    None
}
