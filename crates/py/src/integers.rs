//! Exact products of integer matrices.

use crate::error::{Refusal, Result};
use crate::plan::security;
use crate::work::{Workers, long};
use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sudare_he::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_matrix::exact::{self, ExactPlan, ExactSpec};
use sudare_matrix::packing::IntMatrix;
use sudare_matrix::{MatrixError, Operand, Shape};

fn operand(left: bool) -> Operand {
    if left { Operand::Left } else { Operand::Right }
}

/// What both sides of an exact product agree on.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerPlan(ExactPlan);

#[pymethods]
impl IntegerPlan {
    /// Plans m×k times k×n.
    #[staticmethod]
    fn make(py: Python<'_>, sides: (usize, usize, usize), left: u64, right: u64, security: u32) -> Result<Self> {
        let spec = ExactSpec {
            shape: Shape::new(sides.0, sides.1, sides.2),
            left,
            right,
            security: self::security(security)?,
        };
        long(py, || Ok(Self(ExactPlan::new(&spec)?)))
    }

    /// Reads a plan and checks it.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        long(py, || Ok(Self(ExactPlan::from_json(text)?)))
    }

    fn to_json(&self) -> Result<String> {
        Ok(self.0.to_json()?)
    }

    /// (m, k, n).
    #[getter]
    fn sides(&self) -> (usize, usize, usize) {
        let Shape { m, k, n, .. } = self.0.spec.shape;
        (m, k, n)
    }

    /// Bounds of both operands.
    #[getter]
    fn bounds(&self) -> (u64, u64) {
        (self.0.spec.left, self.0.spec.right)
    }

    /// The bound on the result.
    #[getter]
    fn result_bound(&self) -> i128 {
        self.0.spec.result()
    }

    /// Bits of security that the parameters have.
    #[getter]
    fn security(&self) -> u32 {
        self.0.security().bits()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// Encrypts operands and decrypts results. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerClient(exact::ExactClient);

#[pymethods]
impl IntegerClient {
    #[new]
    fn new(py: Python<'_>, plan: &IntegerPlan, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(exact::ExactClient::new(&plan.0, threads.0)?)))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, plan: &IntegerPlan, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = secret_key_from_bytes(&plan.0.params.build()?, secret)?;
            Ok(Self(exact::ExactClient::with_secret_key(&plan.0, secret, threads.0)?))
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || Ok(secret_key_to_bytes(self.0.secret_key())?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Encrypts an operand.
    fn encrypt(&self, py: Python<'_>, left: bool, values: PyReadonlyArray2<'_, i64>) -> Result<EncryptedIntegers> {
        let [rows, cols] = <[usize; 2]>::try_from(values.shape()).unwrap_or_default();
        let data = values.as_array().iter().map(|x| i128::from(*x)).collect();
        let matrix = IntMatrix::new(rows, cols, data)?;
        long(py, || Ok(EncryptedIntegers(self.0.encrypt(operand(left), &matrix)?)))
    }

    /// Decrypts a result whose elements fit 64 bits, row by row.
    fn decrypt<'py>(&self, py: Python<'py>, value: &EncryptedIntegers) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let found = long(py, || Ok(self.0.decrypt(&value.0)?))?;
        let narrow = |(at, x): (usize, &i128)| {
            let (row, col) = (at / found.shape().1, at % found.shape().1);
            let (low, high) = (i64::MIN.into(), i64::MAX.into());
            i64::try_from(*x).map_err(|_| Refusal::from(MatrixError::OutOfRange { row, col, low, high }))
        };
        let values = found.data().iter().enumerate().map(narrow).collect::<Result<Vec<_>>>()?;
        Ok(PyArray1::from_vec(py, values))
    }

    /// Decrypts a result of any size, row by row.
    fn decrypt_wide(&self, py: Python<'_>, value: &EncryptedIntegers) -> Result<Vec<i128>> {
        long(py, || Ok(self.0.decrypt(&value.0)?.data().to_vec()))
    }
}

/// Multiplies; holds no key.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerServer(exact::ExactServer);

#[pymethods]
impl IntegerServer {
    #[new]
    fn new(py: Python<'_>, plan: &IntegerPlan, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(exact::ExactServer::new(&plan.0, threads.0)?)))
    }

    /// The product.
    fn multiply(
        &self,
        py: Python<'_>,
        left: &EncryptedIntegers,
        right: &EncryptedIntegers,
    ) -> Result<EncryptedIntegers> {
        long(py, || Ok(EncryptedIntegers(self.0.multiply(&left.0, &right.0)?)))
    }
}

/// An encrypted integer matrix.
#[pyclass(frozen, module = "sudare._core")]
pub struct EncryptedIntegers(exact::EncryptedIntegers);

#[pymethods]
impl EncryptedIntegers {
    /// Reads a matrix of a plan.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, plan: &IntegerPlan, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(exact::EncryptedIntegers::from_bytes(&plan.0, data)?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || Ok(self.0.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// `left`, `right` or `output`.
    #[getter]
    fn operand(&self) -> &'static str {
        match self.0.operand() {
            Operand::Left => "left",
            Operand::Right => "right",
            Operand::Output => "output",
        }
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
}
