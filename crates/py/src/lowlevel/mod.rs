//! The schemes themselves, by the names that they have in Rust: parameters, keys, ciphertexts and evaluators of CKKS,
//! BFV, BGV and TFHE. Python has them as `sudare.ckks`, `sudare.bfv`, `sudare.bgv` and `sudare.tfhe`.

mod arrays;
mod bootstrap;
mod circuits;
mod ckks;
mod exact;
mod exchange;
mod keys;
mod params;
mod refresh;
mod tfhe;

pub use bootstrap::{CkksBootstrapKeys, CkksBootstrapParams, CkksBootstrapper};
pub use circuits::{
    CkksLinearMap, CkksMatrixVector, CkksPolynomial, CkksPolynomialCircuit, CkksTraceFunction, CkksTracePlan,
};
pub use ckks::{
    CkksCiphertext, CkksDecryptor, CkksEncoder, CkksEncryptor, CkksEvaluator, CkksExpected, CkksParams, CkksPlaintext,
    division_bound, relinearisation_bound, switched_bound, switching_bound,
};
pub use exact::{
    BfvCiphertext, BfvDecryptor, BfvEncryptor, BfvEvaluator, BgvCiphertext, BgvDecryptor, BgvEncryptor, BgvEvaluator,
    IntegerEncoder, IntegerParams, IntegerPlaintext, Requirements, slot_modulus,
};
pub use exchange::{BfvExchange, BgvExchange, CkksExchange, RlweExchange};
pub use keys::{EvalKeys, KeyGenerator, PublicKey, SecretKey};
pub use params::RlweParams;
pub use refresh::{BfvRefresher, BgvRefresher, RefreshKeys, RefreshParams};
pub use tfhe::{TfheBit, TfheClientKey, TfheInt, TfheLookupTable, TfheParams, TfheServerKey};

use crate::error::Result;
use crate::work::{Workers, long};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use sudare_ring::Threads;
use sudare_rlwe::Counters;

/// Runs work on some threads without the interpreter's lock; signals end it.
fn on<T: Send>(py: Python<'_>, threads: &Threads, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    long(py, || threads.run(work))
}

/// The threads that an object is given: one for each processor where nothing is said.
fn pool(threads: Option<Workers>) -> Threads {
    Threads::new(threads.map_or(0, |threads| threads.0))
}

/// Operations by name.
fn counted(counters: Counters) -> BTreeMap<&'static str, u64> {
    let Counters { add, rot, cmult, mult, relin, key_switches } = counters;
    [("add", add), ("rot", rot), ("cmult", cmult), ("mult", mult), ("relin", relin), ("key_switches", key_switches)]
        .into()
}
