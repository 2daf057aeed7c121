//! Arrays of bits and small integers by tables of CKKS ciphertexts.

use crate::context::tried;
use crate::error::Result;
use crate::work::{Workers, long};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use sudare_he::HeError;
use sudare_he::discrete::{DiscreteSet, Gate, Table};
use sudare_methods::MatrixError;
use sudare_session as session;

/// Whether tables take less than TFHE, bootstraps and seconds of tables and of TFHE, from how many values on, and this in words.
type Chosen = (bool, usize, f64, usize, f64, Option<usize>, String);

/// Which set, before there are keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct SmallSet(session::SmallSet);

#[pymethods]
impl SmallSet {
    /// A set by its name; security 0 for none.
    #[new]
    fn new(py: Python<'_>, name: &str, security: u32) -> Result<Self> {
        let (security, name): (_, DiscreteSet) = (tried(security)?, name.parse()?);
        long(py, || Ok(Self(session::SmallSet::new(name, security)?)))
    }

    /// The largest modulus of its integers.
    #[getter]
    fn largest_modulus(&self) -> Result<u64> {
        Ok(self.0.largest_modulus()?)
    }

    /// Elements of a ciphertext.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// Bytes of keys, those for shifts too, of what is prepared, and of a bootstrap's work.
    fn memory(&self, rolls: Vec<i64>) -> Result<u64> {
        Ok(self.0.memory(&rolls)?)
    }

    /// Bytes of a ciphertext.
    #[getter]
    fn ciphertext_bytes(&self) -> usize {
        self.0.ciphertext_bytes()
    }
}

/// An encrypted array, flat, or the forecast of one.
#[pyclass(frozen, module = "sudare._core")]
pub struct SmallArray(session::SmallArray);

#[pymethods]
impl SmallArray {
    /// Elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.len()
    }

    /// Whether they are booleans.
    #[getter]
    fn bits(&self) -> bool {
        self.0.is_bits()
    }

    /// What its integers are known modulo.
    #[getter]
    fn modulus(&self) -> u64 {
        self.0.known().modulus
    }

    /// Least and largest integer before it is reduced.
    #[getter]
    fn range(&self) -> (i64, i64) {
        self.0.known().range
    }

    /// Bound on the errors of slots, below one half.
    #[getter]
    fn error(&self) -> f64 {
        self.0.known().errors.bound
    }

    /// Ciphertexts.
    #[getter]
    fn ciphertexts(&self) -> usize {
        self.0.ciphertexts()
    }

    /// The name of the secret key that it is under; none of a forecast.
    #[getter]
    fn key_id(&self) -> Option<String> {
        self.0.key().map(|key| key.to_string())
    }

    /// The same as integers.
    fn integers(&self) -> Self {
        Self(self.0.integers())
    }
}

/// Computes with evaluation keys, or without any on forecasts.
#[pyclass(frozen, module = "sudare._core")]
pub struct SmallServer(session::SmallServer);

#[pymethods]
impl SmallServer {
    /// One without keys.
    #[staticmethod]
    fn keyless(set: &SmallSet) -> Self {
        Self(session::SmallServer::keyless(set.0.clone()))
    }

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    /// Bytes of keys, and of what is prepared.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.0.bytes()
    }

    /// The forecast of an array.
    fn forecast(&self, size: usize, modulus: u64, most: u64, bits: bool) -> Result<SmallArray> {
        Ok(SmallArray(self.0.forecast(size, (modulus, most), bits)?))
    }

    /// An array that everybody knows, beside another.
    fn public(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray1<'_, u64>,
        modulus: u64,
        bits: bool,
        like: &SmallArray,
    ) -> Result<SmallArray> {
        let values = values.as_array().to_vec();
        long(py, || Ok(SmallArray(self.0.public(&values, modulus, bits, &like.0)?)))
    }

    /// The same elements again and again.
    fn repeated(&self, operand: &SmallArray, size: usize) -> Result<SmallArray> {
        Ok(SmallArray(self.0.repeated(&operand.0, size)?))
    }

    /// Sums.
    fn add(&self, py: Python<'_>, left: &SmallArray, right: &SmallArray) -> Result<SmallArray> {
        long(py, || Ok(SmallArray(self.0.add(&left.0, &right.0)?)))
    }

    /// Differences.
    fn sub(&self, py: Python<'_>, left: &SmallArray, right: &SmallArray) -> Result<SmallArray> {
        long(py, || Ok(SmallArray(self.0.sub(&left.0, &right.0)?)))
    }

    /// Multiples, plus a number.
    fn affine(&self, py: Python<'_>, operand: &SmallArray, factor: i64, addend: i64) -> Result<SmallArray> {
        long(py, || Ok(SmallArray(self.0.affine(&operand.0, factor, addend)?)))
    }

    /// Tables of one array by one bootstrap: values, the modulus of the result, whether it is one of booleans.
    fn tables(
        &self,
        py: Python<'_>,
        operand: &SmallArray,
        tables: Vec<(Vec<u64>, u64, bool)>,
    ) -> Result<Vec<SmallArray>> {
        long(py, || {
            let table = |(values, modulus, bits): &(Vec<u64>, u64, bool)| Ok((Table::new(values, *modulus)?, *bits));
            let all = tables.iter().map(table).collect::<std::result::Result<Vec<_>, HeError>>()?;
            Ok(self.0.tables(&operand.0, &all)?.into_iter().map(SmallArray).collect())
        })
    }

    /// The gate g of two bits: bit 2a + b of the number says g(a, b).
    fn gate(&self, py: Python<'_>, number: u8, left: &SmallArray, right: &SmallArray) -> Result<SmallArray> {
        let none = || MatrixError::NoPlan { reason: format!("the number of a gate is 0 to 15, not {number}") };
        let gate = Gate::new(number).ok_or_else(none)?;
        long(py, || Ok(SmallArray(self.0.gate(gate, &left.0, &right.0)?)))
    }

    /// Elements moved up in a circle.
    fn roll(&self, py: Python<'_>, operand: &SmallArray, by: i64) -> Result<SmallArray> {
        long(py, || Ok(SmallArray(self.0.roll(&operand.0, by)?)))
    }

    /// What forecasts take by tables, and by TFHE.
    fn choice(&self, results: Vec<PyRef<'_, SmallArray>>) -> Result<Chosen> {
        let choice = self.0.choice(&results.iter().map(|result| &result.0).collect::<Vec<_>>())?;
        Ok((
            choice.by_tables(),
            choice.bootstraps(),
            choice.seconds(),
            choice.tfhe_bootstraps(),
            choice.tfhe_seconds(),
            choice.pays_from(),
            choice.to_string(),
        ))
    }
}

/// Encrypts and decrypts, and has a server. Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct SmallContext(session::SmallContext);

#[pymethods]
impl SmallContext {
    #[new]
    fn new(py: Python<'_>, set: &SmallSet, rolls: Vec<i64>, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(session::SmallContext::new(set.0.clone(), &rolls, threads.0)?)))
    }

    /// The side that computes.
    fn server(&self) -> SmallServer {
        SmallServer(self.0.server().clone())
    }

    /// Encrypts values up to `most`.
    fn encrypt(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray1<'_, u64>,
        modulus: u64,
        most: u64,
        bits: bool,
    ) -> Result<SmallArray> {
        let values = values.as_array().to_vec();
        long(py, || Ok(SmallArray(self.0.encrypt(&values, (modulus, most), bits)?)))
    }

    /// Decrypts to values from 0 on.
    fn decrypt<'py>(&self, py: Python<'py>, array: &SmallArray) -> Result<Bound<'py, PyArray1<u64>>> {
        let values = long(py, || Ok(self.0.decrypt(&array.0)?))?;
        Ok(PyArray1::from_vec(py, values))
    }
}
