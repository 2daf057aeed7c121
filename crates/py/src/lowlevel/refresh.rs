//! The refresh of BFV and BGV.

use super::exact::{BfvCiphertext, BfvEvaluator, BgvCiphertext, BgvEvaluator, IntegerParams};
use super::keys::SecretKey;
use super::{counted, on, pool};
use crate::error::{Refusal, Result};
use crate::work::{Workers, bytes, long, with_progress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use sudare_exact::refresh::{self, RefreshSet, Step};
use sudare_ring::Threads;
use sudare_rlwe::wire::Wire;

/// A set of parameters with levels for a refresh, and its plaintext modulus 65537.
///
/// - `name`: "X15" has 3 products after a refresh at N = 2^15, "X16" 20 at N = 2^16.
/// - `insecure`: log2 of a small ring for the same shape, for tests; without it the set has 128 bits of security.
///
/// Raises `PlanError` for a name that is none.
#[pyclass(frozen, module = "sudare._core")]
pub struct RefreshParams(refresh::RefreshParams);

#[pymethods]
impl RefreshParams {
    #[new]
    #[pyo3(signature = (name, *, insecure = None))]
    fn new(py: Python<'_>, name: &str, insecure: Option<u32>) -> Result<Self> {
        let literal = name.parse::<RefreshSet>()?.literal();
        long(py, || {
            let literal = insecure.map_or_else(|| Ok(literal.clone()), |log_n| literal.clone().insecure(log_n))?;
            Ok(Self(literal.build()?))
        })
    }

    /// The parameters of ciphertexts and keys.
    #[getter]
    fn params(&self, py: Python<'_>) -> Result<Py<IntegerParams>> {
        Py::new(py, IntegerParams::class(self.0.params().clone())).map_err(Refusal::Raised)
    }

    /// The least level that a refresh takes, and the largest noise there.
    #[getter]
    fn input(&self) -> (usize, f64) {
        self.0.input()
    }

    /// Level and noise of its result.
    #[getter]
    fn output(&self) -> (usize, f64) {
        self.0.output()
    }

    /// Products in a row after a refresh, of BFV and of BGV.
    #[getter]
    fn products(&self) -> (usize, usize) {
        self.0.products().into()
    }

    /// Bytes of its keys.
    #[getter]
    fn key_bytes(&self) -> u64 {
        self.0.key_bytes()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A server's keys for refreshes and everything between them. Nothing in them is secret.
#[pyclass(frozen, module = "sudare._core")]
pub struct RefreshKeys(refresh::RefreshKeys);

#[pymethods]
impl RefreshKeys {
    /// Fresh keys of a secret key of the set's parameters, made on `threads` threads, of which 0 or `None` is one for each
    /// processor. Raises `KeyMismatchError` for another's.
    #[staticmethod]
    #[pyo3(signature = (secret, params, *, threads = None))]
    fn generate(py: Python<'_>, secret: &SecretKey, params: &RefreshParams, threads: Option<Workers>) -> Result<Self> {
        on(py, &pool(threads), || Ok(Self(refresh::RefreshKeys::generate(&secret.0, &params.0)?)))
    }

    /// Keys of before. Raises `FormatError` for other bytes and `KeyMismatchError` for keys of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &RefreshParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(refresh::RefreshKeys::from_bytes(&params.0, data)?)))
    }

    /// Their bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
}

/// A scheme's refresher.
macro_rules! refresher {
    ($Refresher:ident, $Ciphertext:ident, $Evaluator:ident) => {
        /// Refreshes ciphertexts: the same values with the noise and level of a fresh one, exactly.
        ///
        /// - `keys`: those of the set.
        /// - `memory`: the most bytes that keys and diagonals may take; `None` is any number.
        /// - `threads`: how many work; 0 or `None` is one for each processor.
        ///
        /// Raises `SudareError` with both figures where keys and diagonals do not fit.
        #[pyclass(frozen, module = "sudare._core")]
        pub struct $Refresher(refresh::Refresher, Threads);

        #[pymethods]
        impl $Refresher {
            #[new]
            #[pyo3(signature = (keys, memory = None, *, threads = None))]
            fn new(py: Python<'_>, keys: &RefreshKeys, memory: Option<u64>, threads: Option<Workers>) -> Result<Self> {
                let threads = pool(threads);
                let made = on(py, &threads, || Ok(refresh::Refresher::new(keys.0.clone(), memory)?))?;
                Ok(Self(made, threads))
            }

            /// An evaluator with the keys of the refresh, for what is computed between two of them.
            fn evaluator(&self) -> Result<$Evaluator> {
                Ok($Evaluator::of(self.0.evaluator()?, Threads::new(self.1.count())))
            }

            /// The same slots with new levels. Raises `LevelError` below the set's input level, `PrecisionError` for noise over
            /// the largest there, `KeyMismatchError` for a ciphertext of another set, modulus or key.
            ///
            /// `progress` is called with the steps done and those there are.
            #[pyo3(signature = (ciphertext, *, progress = None))]
            fn refresh(
                &self,
                py: Python<'_>,
                ciphertext: &$Ciphertext,
                progress: Option<Py<PyAny>>,
            ) -> Result<$Ciphertext> {
                let steps = Step::ALL.len();
                with_progress(py, progress, |progress| {
                    let mut done = 0;
                    let mut next = |_| {
                        progress(done, steps);
                        done += 1;
                    };
                    let refreshed = self.1.run(|| self.0.refresh_with(&ciphertext.0, &mut next))?;
                    progress(steps, steps);
                    Ok($Ciphertext(refreshed))
                })
            }

            /// Operations done since it was made.
            fn counters(&self) -> BTreeMap<&'static str, u64> {
                counted(self.0.counters())
            }

            /// Bytes of keys and diagonals.
            #[getter]
            fn nbytes(&self) -> u64 {
                self.0.bytes()
            }
        }
    };
}

refresher!(BfvRefresher, BfvCiphertext, BfvEvaluator);
refresher!(BgvRefresher, BgvCiphertext, BgvEvaluator);
