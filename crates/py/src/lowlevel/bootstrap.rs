//! Bootstrapping of CKKS.

use super::ckks::{CkksCiphertext, CkksEvaluator, CkksParams, inner};
use super::keys::SecretKey;
use super::{counted, on, pool};
use crate::error::{Refusal, Result};
use crate::work::{Workers, bytes, long, with_progress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use sudare_he::circuits::bootstrapping::{
    BootstrapGoal, BootstrapKeys, BootstrapLiteral, BootstrapParams, Bootstrapper, Kind, Progress,
};
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::Wire;

/// A set of parameters with levels for a bootstrap (ePrint 2020/1203, 2022/024).
///
/// - `name`: "A" has 9 levels and 26 bits at N = 2^16, "A12" 12 levels, "A50" 48 bits and 5 levels of two primes by two
///   refreshes in one (ePrint 2022/1167), "B" 5 levels in less time; "C" has N = 2^15 and 4 levels, "D"
///   1024 slots, whose values are repeated over all N/2.
/// - `insecure`: log2 of a small ring for the same shape, for tests; without it the set has 128 bits of security.
///
/// Raises `PlanError` for a name that is none. `BootstrapParams.search` chooses a set for a goal.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksBootstrapParams(BootstrapParams);

#[pymethods]
impl CkksBootstrapParams {
    #[new]
    #[pyo3(signature = (name, *, insecure = None))]
    fn new(py: Python<'_>, name: &str, insecure: Option<u32>) -> Result<Self> {
        let literal = BootstrapLiteral::named(name)?;
        long(py, || {
            let literal = insecure.map_or_else(|| Ok(literal.clone()), |log_n| literal.clone().insecure(log_n))?;
            Ok(Self(literal.build()?))
        })
    }

    /// The quickest set with levels and bits of precision, whose keys and work fit in `memory` bytes. Raises `PlanError` where there is none.
    #[staticmethod]
    #[pyo3(signature = (levels, bits, memory = None))]
    fn search(py: Python<'_>, levels: usize, bits: f64, memory: Option<u64>) -> Result<Self> {
        long(py, || Ok(Self(BootstrapLiteral::search(BootstrapGoal { levels, bits, memory })?.build()?)))
    }

    /// The parameters of ciphertexts and keys.
    #[getter]
    fn params(&self, py: Python<'_>) -> Result<Py<CkksParams>> {
        Py::new(py, CkksParams::class(self.0.params().clone())).map_err(Refusal::Raised)
    }

    /// How many values it refreshes: N/2, or fewer, as "D" has. Fewer have to stand in all slots, repeated: what differs from one
    /// repetition to the next comes out wrong.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// The least level that a bootstrap takes.
    #[getter]
    fn input_level(&self) -> usize {
        self.0.input_level()
    }

    /// The level of its result.
    #[getter]
    fn output_level(&self) -> usize {
        self.0.output_level()
    }

    /// Levels for use between two bootstraps; those of "A50" have two primes, and products are rescaled by both.
    #[getter]
    fn usable_levels(&self) -> usize {
        self.0.usable_levels()
    }

    /// Bytes of its keys.
    #[getter]
    fn key_bytes(&self) -> Result<u64> {
        Ok(self.0.key_bytes()?)
    }

    /// Predicted bits of precision, by the root of the mean square of errors of values of that size.
    fn predicted_bits(&self, message: f64) -> Result<f64> {
        Ok(self.0.predicted_noise(message)?.bits())
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A server's keys for bootstraps and everything between them. Nothing in them is secret.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksBootstrapKeys(BootstrapKeys);

#[pymethods]
impl CkksBootstrapKeys {
    /// Fresh keys of a secret key of the set's parameters, made on `threads` threads, of which 0 or `None` is one for each
    /// processor. Raises `KeyMismatchError` for another's.
    #[staticmethod]
    #[pyo3(signature = (secret, params, *, threads = None))]
    fn generate(
        py: Python<'_>,
        secret: &SecretKey,
        params: &CkksBootstrapParams,
        threads: Option<Workers>,
    ) -> Result<Self> {
        on(py, &pool(threads), || Ok(Self(BootstrapKeys::generate(&secret.0, &params.0)?)))
    }

    /// Keys of before. Raises `FormatError` for other bytes and `KeyMismatchError` for keys of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &CkksBootstrapParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(BootstrapKeys::from_bytes(&params.0, data)?)))
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

/// Refreshes ciphertexts: the same values with new levels.
///
/// - `keys`: those of the set.
/// - `memory`: the most bytes that keys and diagonals may take; `None` is any number.
/// - `threads`: how many work; 0 or `None` is one for each processor.
///
/// Raises `SudareError` with both figures where keys and diagonals do not fit.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksBootstrapper(Bootstrapper, Threads);

impl CkksBootstrapper {
    fn refreshed(
        &self,
        py: Python<'_>,
        ciphertexts: &[Py<CkksCiphertext>],
        kind: Kind,
        progress: Option<Py<PyAny>>,
    ) -> Result<Vec<CkksCiphertext>> {
        let all = inner(ciphertexts);
        with_progress(py, progress, |progress| {
            let mut steps = 0;
            let mut tell = |at: Progress| {
                steps = at.all;
                progress(at.done, at.all);
            };
            let done = self.1.run(|| self.0.refresh_with_progress(&all, kind, &mut tell))?;
            progress(steps, steps);
            Ok(done.into_iter().map(CkksCiphertext).collect())
        })
    }
}

#[pymethods]
impl CkksBootstrapper {
    #[new]
    #[pyo3(signature = (keys, memory = None, *, threads = None))]
    fn new(py: Python<'_>, keys: &CkksBootstrapKeys, memory: Option<u64>, threads: Option<Workers>) -> Result<Self> {
        let threads = pool(threads);
        let made = on(py, &threads, || Ok(Bootstrapper::new(keys.0.clone(), memory)?))?;
        Ok(Self(made, threads))
    }

    /// An evaluator with the keys of the bootstrap, for what is computed between two of them.
    fn evaluator(&self) -> Result<CkksEvaluator> {
        let keys = self.0.keys().ok_or(RlweError::Internal { what: "the keys of a bootstrapper" })?;
        CkksEvaluator::with_keys(self.0.params().params(), keys.eval_keys().clone(), Threads::new(self.1.count()))
    }

    /// The same complex slots at the set's output level. Where the set has fewer `slots` than N/2, values are repeated over all of
    /// them; no server can see whether they are. Raises `LevelError` below its input level, `PrecisionError` unless
    /// bound · scale is at most the set's scale, `KeyMismatchError` for a ciphertext of another set or key.
    ///
    /// `progress` is called with the steps done and those there are.
    #[pyo3(signature = (ciphertext, *, progress = None))]
    fn refresh(
        &self,
        py: Python<'_>,
        ciphertext: Py<CkksCiphertext>,
        progress: Option<Py<PyAny>>,
    ) -> Result<CkksCiphertext> {
        one(self.refreshed(py, &[ciphertext], Kind::Complex, progress)?)
    }

    /// The same of slots that are real: about seven tenths of the time; imaginary parts become zero. Raises as `refresh`.
    #[pyo3(signature = (ciphertext, *, progress = None))]
    fn refresh_real(
        &self,
        py: Python<'_>,
        ciphertext: Py<CkksCiphertext>,
        progress: Option<Py<PyAny>>,
    ) -> Result<CkksCiphertext> {
        one(self.refreshed(py, &[ciphertext], Kind::Real, progress)?)
    }

    /// Several ciphertexts together: each key and diagonal is read once for all. Raises as `refresh`.
    #[pyo3(signature = (ciphertexts, *, progress = None))]
    fn refresh_many(
        &self,
        py: Python<'_>,
        ciphertexts: Vec<Py<CkksCiphertext>>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Vec<CkksCiphertext>> {
        self.refreshed(py, &ciphertexts, Kind::Complex, progress)
    }

    /// Operations done since it was made.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        counted(self.0.counters())
    }

    /// Bytes of keys and diagonals.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The only one of a list.
fn one(mut all: Vec<CkksCiphertext>) -> Result<CkksCiphertext> {
    let none = RlweError::Internal { what: "a refreshed ciphertext" };
    all.pop().ok_or_else(|| none.into())
}
