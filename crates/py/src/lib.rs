//! What is in the extension module `sudare._core`: one-line wrappers of plans and sessions, without logic. The module
//! itself is `sudare-extension`'s.
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
mod files;
mod genome;
mod index;
mod lowlevel;
mod models;
mod operation;
mod part;
mod parties;
mod plain;
mod plan;
mod polynomial;
mod remote;
mod server;
mod small;
mod stored;
mod work;

pub use bits::{BitsArray, BitsClient, BitsParams, BitsPublicKey, BitsServer};
pub use client::{Client, PublicClient, Release};
pub use context::{Context, IntegerContext};
pub use device::devices;
pub use encrypted::Encrypted;
pub use error::error_classes;
pub use files::{peek, peek_file, write_file};
pub use genome::{GenomeClient, GenomePanel, GenomeServer, GenomeSites};
pub use index::{Index, IndexAnswer, IndexClient, IndexQuery, IndexServer, IndexStoring, IndexTable};
pub use lowlevel::{
    BfvCiphertext, BfvDecryptor, BfvEncryptor, BfvEvaluator, BfvExchange, BfvRefresher, BgvCiphertext, BgvDecryptor,
    BgvEncryptor, BgvEvaluator, BgvExchange, BgvRefresher, CkksBootstrapKeys, CkksBootstrapParams, CkksBootstrapper,
    CkksCiphertext, CkksDecryptor, CkksEncoder, CkksEncryptor, CkksEvaluator, CkksExchange, CkksExpected,
    CkksLinearMap, CkksMatrixVector, CkksParams, CkksPlaintext, CkksPolynomial, CkksPolynomialCircuit,
    CkksTraceFunction, CkksTracePlan, EvalKeys, IntegerEncoder, IntegerParams, IntegerPlaintext, KeyGenerator,
    PublicKey, RefreshKeys, RefreshParams, Requirements, RlweExchange, RlweParams, SecretKey, TfheBit, TfheClientKey,
    TfheInt, TfheLookupTable, TfheParams, TfheServerKey, division_bound, relinearisation_bound, slot_modulus,
    switched_bound, switching_bound,
};
pub use models::{Model, ModelAnswer, ModelClient, ModelPlan, ModelRequest, ModelServer};
pub use operation::infer;
pub use part::{add_parts, decrypt_part, layouts, load_part, matmul_parts, sum_part};
pub use parties::{Member, Room};
pub use plain::{PlainClient, PlainIndex, PlainTable};
pub use plan::Plan;
pub use polynomial::Polynomial;
pub use remote::Remote;
pub use server::Server;
pub use small::{SmallArray, SmallContext, SmallServer, SmallSet};
pub use stored::Stored;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sudare_ring::Family;

/// Limits kernels to the best family that `SUDARE_KERNEL` names, where it is set.
///
/// # Errors
/// `ValueError` for a name that is none, or a family that this machine has not.
pub fn limit_kernels() -> PyResult<()> {
    let Some(name) = std::env::var_os("SUDARE_KERNEL") else { return Ok(()) };
    let limited = name.to_string_lossy().parse::<Family>().and_then(Family::limit);
    limited.map_err(|error| PyValueError::new_err(format!("SUDARE_KERNEL: {error}")))
}
