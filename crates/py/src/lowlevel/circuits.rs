//! Circuits of CKKS: linear maps, polynomials, sums of slots.

use super::arrays::Row;
use super::ckks::{CkksEncoder, CkksParams, place};
use crate::error::{Refusal, Result};
use crate::work::long;
use numpy::{Complex64, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use sudare_he::circuits::linear_map::{Diagonals, LinearMap};
use sudare_he::circuits::matrix_vector::MatrixVector;
use sudare_he::circuits::polynomial::{Basis, Polynomial, PolynomialCircuit};
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::EncodeAt;
use sudare_ring::ErrorKind;

/// A linear map of slots by its diagonals, x ↦ Σ d_t ⊙ Rot_t(x), prepared for ciphertexts up to one level (Halevi–Shoup,
/// ePrint 2014/106).
///
/// - `encoder`: that of the set.
/// - `diagonals`: by t the diagonal at rotation `unit` · t, real or complex: N/2 values, or fewer that repeat (a power of two).
/// - `unit`: the distance of the diagonals in slots.
/// - `babies`: how many steps share a decomposition; about twice the root of their number where nothing is said.
/// - `level`: the level that it is prepared for; the highest where nothing is said.
/// - `scale`: the scale of the diagonals; the prime that the rescale divides by where nothing is said, which keeps a ciphertext's.
///
/// Raises `PlanError` without diagonals, `ShapeError` for a diagonal that does not repeat within N/2 slots, `InputError` for what
/// is no finite number, `LevelError` for a level that there is not.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksLinearMap(pub LinearMap);

/// Diagonals as they come from Python.
type Written<'py> = BTreeMap<i64, Row<'py, Complex64>>;

fn diagonals(written: &Written<'_>) -> Result<Diagonals<Complex64>> {
    written.iter().map(|(t, row)| Ok((*t, row.slice()?.to_vec()))).collect()
}

/// The largest absolute value of all diagonals.
fn largest(diagonals: &Diagonals<Complex64>) -> f64 {
    diagonals.values().flatten().map(|z| z.norm()).fold(0.0, f64::max)
}

#[pymethods]
impl CkksLinearMap {
    #[new]
    #[pyo3(signature = (encoder, diagonals, *, unit = 1, babies = None, level = None, scale = None))]
    fn new(
        py: Python<'_>,
        encoder: &CkksEncoder,
        diagonals: Written<'_>,
        unit: i64,
        babies: Option<usize>,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let diagonals = self::diagonals(&diagonals)?;
        long(py, || {
            let span = diagonals
                .keys()
                .last()
                .zip(diagonals.keys().next())
                .map_or(1, |(most, least)| most.abs_diff(*least) + 1);
            let babies = babies.unwrap_or_else(|| (4 * span).isqrt().next_power_of_two() as usize);
            let at = at(encoder, &diagonals, level, scale)?;
            Ok(Self(LinearMap::new(&encoder.0, &diagonals, unit, babies, at)?))
        })
    }

    /// A map without giant steps: all its rotations come from one decomposition, which several maps can share. Raises as the class.
    #[staticmethod]
    #[pyo3(signature = (encoder, diagonals, *, unit = 1, level = None, scale = None))]
    fn hoisted(
        py: Python<'_>,
        encoder: &CkksEncoder,
        diagonals: Written<'_>,
        unit: i64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let diagonals = self::diagonals(&diagonals)?;
        long(py, || {
            let at = at(encoder, &diagonals, level, scale)?;
            Ok(Self(LinearMap::hoisted(&encoder.0, &diagonals, unit, at)?))
        })
    }

    /// A map of few keys, those of `unit` times 1 … `hoisted` and `hoisted` · `roots`. Raises as the class, and
    /// `PlanError` for a negative diagonal.
    #[staticmethod]
    #[pyo3(signature = (encoder, diagonals, hoisted, roots, *, unit = 1, level = None, scale = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn chained(
        py: Python<'_>,
        encoder: &CkksEncoder,
        diagonals: Written<'_>,
        hoisted: usize,
        roots: usize,
        unit: i64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<Self> {
        let diagonals = self::diagonals(&diagonals)?;
        long(py, || {
            let at = at(encoder, &diagonals, level, scale)?;
            Ok(Self(LinearMap::chained(&encoder.0, &diagonals, unit, (hoisted, roots), at)?))
        })
    }

    /// Galois elements whose keys it needs, each once.
    #[getter]
    fn elements(&self) -> Vec<u64> {
        self.0.elements()
    }

    /// Its keys for `KeyGenerator.eval_keys`: each element with the map's level.
    fn keys(&self) -> Vec<(u64, usize)> {
        self.0.elements().into_iter().map(|element| (element, self.0.level())).collect()
    }

    /// The level it is prepared for.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// The scale of its diagonals.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    /// Bytes of its diagonals in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    fn __repr__(&self) -> String {
        let (diagonals, level, keys) = (self.0.diagonals(), self.0.level(), self.0.elements().len());
        format!("LinearMap({diagonals} diagonals, level {level}, {keys} keys)")
    }
}

/// A matrix that multiplies encrypted vectors, by its diagonals (Halevi–Shoup, ePrint 2014/106, 2018/244).
///
/// - `encoder`: that of the set.
/// - `matrix`: an array of m rows and n columns, real, each side up to N/2.
/// - `level`: the level that it is prepared for; the highest where nothing is said.
///
/// Its scale is the prime that the rescale divides by, so that a vector's scale stays. Raises `PlanError` for an empty matrix or one
/// with a side over N/2, `InputError` for what is no finite number, `LevelError` for a level that there is not.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksMatrixVector(pub MatrixVector);

#[pymethods]
impl CkksMatrixVector {
    #[new]
    #[pyo3(signature = (encoder, matrix, *, level = None))]
    fn new(
        py: Python<'_>,
        encoder: &CkksEncoder,
        matrix: PyReadonlyArray2<'_, f64>,
        level: Option<usize>,
    ) -> Result<Self> {
        let (rows, columns) = matrix.as_array().dim();
        let entries: Vec<f64> = matrix.as_array().iter().copied().collect();
        long(py, || {
            let at = placed(encoder, entries.iter().map(|x| x.abs()).fold(0.0, f64::max), level, None)?;
            Ok(Self(MatrixVector::new(&encoder.0, &entries, rows, columns, at)?))
        })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// A vector as `Evaluator.matrix_vector` expects it: padded, and repeated to fill all slots. Raises `ShapeError` for
    /// another number of values than there are columns.
    fn layout<'py>(
        &self,
        py: Python<'py>,
        params: &CkksParams,
        vector: Row<'_, f64>,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.0.layout(&params.0, vector.slice()?)?))
    }

    /// Its keys for `KeyGenerator.eval_keys`.
    fn keys(&self) -> Vec<(u64, usize)> {
        self.0.keys()
    }
}

/// Level and scale of a map.
fn at(
    encoder: &CkksEncoder,
    diagonals: &Diagonals<Complex64>,
    level: Option<usize>,
    scale: Option<f64>,
) -> Result<EncodeAt> {
    placed(encoder, largest(diagonals), level, scale)
}

/// The same for a bound on the values.
fn placed(encoder: &CkksEncoder, max_abs: f64, level: Option<usize>, scale: Option<f64>) -> Result<EncodeAt> {
    let params = encoder.0.params();
    let level = level.unwrap_or_else(|| params.max_level());
    params.expect_level("a linear map", level)?;
    let scale = scale.unwrap_or_else(|| params.prime_at(level) as f64);
    Ok(place(params, max_abs, Some(level), Some(scale)))
}

/// A polynomial in powers or in Chebyshev polynomials, of real or complex coefficients.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksPolynomial(Polynomial);

#[pymethods]
impl CkksPolynomial {
    /// Σ c_k·x^k, to be evaluated where |x| ≤ `radius`. Raises `PlanError` without coefficients or for a radius that is not above
    /// zero, `InputError` for what is no finite number.
    #[staticmethod]
    fn power(coefficients: Row<'_, Complex64>, radius: f64) -> Result<Self> {
        Ok(Self(Polynomial::power(coefficients.slice()?, radius)?))
    }

    /// Σ c_k·T_k(u), u = (2x − a − b)/(b − a), for real x in the interval (a, b). Raises as `power`.
    #[staticmethod]
    fn chebyshev(coefficients: Row<'_, Complex64>, interval: (f64, f64)) -> Result<Self> {
        Ok(Self(Polynomial::chebyshev(coefficients.slice()?, interval.0, interval.1)?))
    }

    /// "power" or "chebyshev".
    #[getter]
    fn basis(&self) -> &'static str {
        match self.0.basis() {
            Basis::Power => "power",
            Basis::Chebyshev => "chebyshev",
        }
    }

    /// The c_k, of u = (x − centre)/radius.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<Complex64>> {
        PyArray1::from_slice(py, self.0.coefficients())
    }

    /// Centre and radius of the interval or disc on which it is evaluated.
    #[getter]
    fn domain(&self) -> (f64, f64) {
        self.0.domain()
    }

    /// The highest power with a coefficient that is not zero.
    #[getter]
    fn degree(&self) -> usize {
        self.0.degree()
    }

    /// Levels of its evaluation.
    #[getter]
    fn depth(&self) -> usize {
        self.0.depth()
    }

    /// Its value at each of some numbers.
    fn evaluate<'py>(&self, py: Python<'py>, x: Row<'_, Complex64>) -> Result<Bound<'py, PyArray1<Complex64>>> {
        Ok(PyArray1::from_vec(py, x.slice()?.iter().map(|x| self.0.evaluate(*x)).collect()))
    }

    fn __repr__(&self) -> String {
        format!("Polynomial({}, degree {}, {} levels)", self.basis(), self.0.degree(), self.0.depth())
    }
}

/// A polynomial's program for ciphertexts of one level and scale (ePrint 2020/1203).
///
/// - `params`: the set.
/// - `polynomial`: of degree 1 or more.
/// - `level`: the level of its variable; the highest where nothing is said. Its value is `polynomial.depth` levels lower.
/// - `scale`: the scale of its variable; the set's where nothing is said.
/// - `target`: the exact scale of its value; that of the variable where nothing is said.
///
/// A domain of half-width r makes the scale of the variable r times as large and that of its k-th power r^k times. For r over 2, encode
/// at a scale r times smaller and pass it here, or multiply the variable by 1/r first, for one level.
///
/// Raises `LevelError` for a level that there is not or that is too low, `PlanError` for a constant polynomial, for a scale that is no
/// number of at least one, and where the circuit's own error leaves nothing of its values.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksPolynomialCircuit(pub PolynomialCircuit);

#[pymethods]
impl CkksPolynomialCircuit {
    #[new]
    #[pyo3(signature = (params, polynomial, *, level = None, scale = None, target = None))]
    fn new(
        py: Python<'_>,
        params: &CkksParams,
        polynomial: &CkksPolynomial,
        level: Option<usize>,
        scale: Option<f64>,
        target: Option<f64>,
    ) -> Result<Self> {
        let at = place(&params.0, 1.0, level, scale);
        let target = target.unwrap_or(at.scale);
        long(py, || Ok(Self(PolynomialCircuit::new(&params.0, &polynomial.0, at.level, at.scale, target)?)))
    }

    /// The level it is planned for.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// Levels at which it relinearises: what its key has to serve.
    #[getter]
    fn relinearisations(&self) -> Vec<usize> {
        self.0.relinearisations()
    }

    /// Bytes of its constants in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Automorphisms and additions by turns: sums of slots, partial sums, copies.
///
/// - `params`: the set.
/// - `elements`: up to 17 Galois elements, odd and below 2N: for each in turn, its automorphism of the sum so far is added.
///
/// Raises `PlanError` for more than 17, and for one that is none. The static methods have the functions that are in use.
#[pyclass(frozen, eq, module = "sudare._core")]
#[derive(PartialEq)]
pub struct CkksTraceFunction(TraceFunction);

#[pymethods]
impl CkksTraceFunction {
    #[new]
    fn new(params: &CkksParams, elements: Vec<u64>) -> Result<Self> {
        Ok(Self(TraceFunction::new(&params.0, elements)?))
    }

    /// Slot i becomes Σ x[i + j·stride] over 0 ≤ j < count, a power of two. Raises `PlanError` for another count.
    #[staticmethod]
    fn strided_sums(params: &CkksParams, count: usize, stride: i64) -> Result<Self> {
        Ok(Self(TraceFunction::strided_sums(&params.0, count, stride)?))
    }

    /// Every slot becomes the sum of all N/2.
    #[staticmethod]
    fn total_sum(params: &CkksParams) -> Result<Self> {
        Ok(Self(TraceFunction::total_sum(&params.0)?))
    }

    /// Slot i becomes the sum of slots i, …, i + width − 1. Raises as `strided_sums`.
    #[staticmethod]
    fn partial_sums(params: &CkksParams, width: usize) -> Result<Self> {
        Ok(Self(TraceFunction::partial_sums(&params.0, width)?))
    }

    /// Copies the first slot of each block of `width` to the whole block, where all others are zero. Raises as `strided_sums`.
    #[staticmethod]
    fn replication(params: &CkksParams, width: usize) -> Result<Self> {
        Ok(Self(TraceFunction::replication(&params.0, width)?))
    }

    /// Every slot becomes twice the real part of the sum of all.
    #[staticmethod]
    fn field_trace(params: &CkksParams) -> Result<Self> {
        Ok(Self(TraceFunction::field_trace(&params.0)?))
    }

    /// The automorphisms of repeated doubling.
    #[getter]
    fn elements(&self) -> Vec<u64> {
        self.0.elements().to_vec()
    }

    /// Repeated doubling: a key switch for each step, the fewest keys.
    fn doubling(&self) -> CkksTracePlan {
        CkksTracePlan(self.0.doubling())
    }

    /// In fewer iterations, each of one decomposition and more keys. Raises `PlanError` unless there are one to as many as steps.
    fn unrolled(&self, iterations: usize) -> Result<CkksTracePlan> {
        Ok(CkksTracePlan(self.0.unrolled(iterations)?))
    }
}

/// The iterations of a trace.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksTracePlan(pub TracePlan);

#[pymethods]
impl CkksTracePlan {
    /// Iterations.
    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations()
    }

    /// Galois elements whose keys it needs.
    #[getter]
    fn elements(&self) -> Vec<u64> {
        self.0.elements()
    }

    /// Its keys for `KeyGenerator.eval_keys`: each element with a level.
    fn keys(&self, level: usize) -> Vec<(u64, usize)> {
        self.0.keys(level)
    }
}

/// A name that is none of a list.
pub fn unknown(what: &str, name: &str, known: &str) -> Refusal {
    Refusal::Refused(ErrorKind::Usage, format!("there is no {what} {name:?}; there are {known}"))
}
