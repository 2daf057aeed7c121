//! Arrays of encrypted integers and booleans.

use crate::error::Result;
use crate::files::{read_key, write_key};
use crate::work::{Workers, bytes, long, with_progress};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::str::FromStr;
use sudare_ring::Threads;
use sudare_rlwe::wire::{WireError, peek};
use sudare_tfhe::array::{ArrayEvaluator, Divisor, ElementType, Elementwise, EncryptedArray, Reduction};
use sudare_tfhe::radix::Shift;
use sudare_tfhe::{self as tfhe, TfheError, TfheLiteral};

/// What a name stands for.
fn named<T: FromStr<Err = TfheError>>(name: &str) -> Result<T> {
    Ok(name.parse()?)
}

/// A parameter set for integers, or for booleans alone.
#[pyclass(frozen, module = "sudare._core")]
#[derive(Clone)]
pub struct BitsParams(tfhe::TfheParams);

#[pymethods]
impl BitsParams {
    /// A set by its name.
    #[new]
    fn new(py: Python<'_>, name: &str) -> Result<Self> {
        let literal: TfheLiteral = named(name)?;
        long(py, || Ok(Self(literal.build()?)))
    }

    /// A set of before.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(sudare_tfhe::wire::tfhe_params_from_bytes(data)?.build()?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &sudare_tfhe::wire::tfhe_params_to_bytes(&self.0)?))
    }

    /// Bits of security; 0 for none.
    #[getter]
    fn security(&self) -> u32 {
        self.0.literal().security.bits()
    }

    /// LWE dimension and log2 of the ring degree.
    #[getter]
    fn dimensions(&self) -> (usize, u32) {
        (self.0.literal().lwe_dimension, self.0.literal().log_n)
    }

    /// Bytes in memory of a block's ciphertext.
    #[getter]
    fn block_bytes(&self) -> usize {
        8 * (self.0.context().lwe_dimension() + 1)
    }

    /// log2 of the largest probability that a bootstrap fails.
    #[getter]
    fn log_failure(&self) -> f64 {
        self.0.log_failure()
    }
}

/// An encrypted array.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsArray(EncryptedArray);

#[pymethods]
impl BitsArray {
    /// Reads an array.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &BitsParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(sudare_tfhe::wire::tfhe_array_from_bytes(&params.0, data)?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>, params: &BitsParams) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(sudare_tfhe::wire::tfhe_array_to_bytes(&params.0, &self.0)?))
    }

    /// Its shape.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    /// The name of its elements' type.
    #[getter]
    fn element(&self) -> String {
        self.0.element().to_string()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_len()
    }

    /// Whether a carry waits in it that no operation has propagated yet.
    #[getter]
    fn waits(&self) -> bool {
        self.0.waits()
    }

    /// The name of the secret key that it is under.
    #[getter]
    fn key_id(&self) -> String {
        self.0.owner().1.to_string()
    }

    /// Elements by number, as an array of a shape.
    fn take(&self, py: Python<'_>, shape: Vec<usize>, indices: Vec<usize>) -> Result<Self> {
        long(py, || Ok(Self(self.0.take(shape, &indices)?)))
    }

    /// Arrays one after the other, flat.
    #[staticmethod]
    fn concatenated(arrays: Vec<PyRef<'_, Self>>) -> Result<Self> {
        let all: Vec<&EncryptedArray> = arrays.iter().map(|a| &a.0).collect();
        Ok(Self(EncryptedArray::concatenated(&all)?))
    }
}

/// Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsClient(sudare_tfhe::ClientKey, Threads);

#[pymethods]
impl BitsClient {
    #[new]
    fn new(py: Python<'_>, params: &BitsParams, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(sudare_tfhe::ClientKey::generate(&params.0)?, Threads::new(threads.0))))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, params: &BitsParams, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            Ok(Self(sudare_tfhe::wire::tfhe_client_key_from_bytes(&params.0, secret)?, Threads::new(threads.0)))
        })
    }

    /// A client with a secret key in a file, after its parameters.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, threads: Workers) -> Result<(BitsParams, Self)> {
        long(py, || {
            let bytes = read_key(&path)?;
            let length = usize::try_from(peek(bytes.as_slice())?.total_bytes()).ok();
            let ends = WireError::Corrupt { what: "a file that ends within its parameters" };
            let (params, secret) = length.and_then(|length| bytes.split_at_checked(length)).ok_or(ends)?;
            let params = sudare_tfhe::wire::tfhe_params_from_bytes(params)?.build()?;
            let key = sudare_tfhe::wire::tfhe_client_key_from_bytes(&params, secret)?;
            Ok((BitsParams(params), Self(key, Threads::new(threads.0))))
        })
    }

    /// Writes the secret key to a file, after its parameters.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        long(py, || {
            let params = sudare_tfhe::wire::tfhe_params_to_bytes(self.0.params())?;
            let secret = sudare_tfhe::wire::tfhe_client_key_to_bytes(&self.0)?;
            write_key(&path, &[&params, &secret], self.0.id(), overwrite)
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &sudare_tfhe::wire::tfhe_client_key_to_bytes(&self.0)?))
    }

    /// The secret key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.0.id().to_string()
    }

    /// A key that encrypts for this client, as it travels.
    fn public_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(sudare_tfhe::wire::tfhe_public_key_to_bytes(&self.0.public_key()?)?))
    }

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: Workers) -> Result<BitsServer> {
        long(py, || {
            let key = self.1.run(|| self.0.server_key())?;
            Ok(BitsServer(key, Threads::new(threads.0)))
        })
    }

    /// Encrypts values in C order, as two's complement.
    fn encrypt(
        &self,
        py: Python<'_>,
        element: &str,
        shape: Vec<usize>,
        values: PyReadonlyArray1<'_, u64>,
    ) -> Result<BitsArray> {
        let (element, values) = (named::<ElementType>(element)?, values.as_array().to_vec());
        long(py, || Ok(BitsArray(self.1.run(|| self.0.encrypt_array(element, shape, &values))?)))
    }

    /// Decrypts to values in C order, as two's complement.
    fn decrypt<'py>(&self, py: Python<'py>, value: &BitsArray) -> Result<Bound<'py, PyArray1<u64>>> {
        let values = long(py, || Ok(self.1.run(|| self.0.decrypt_array(&value.0))?))?;
        Ok(PyArray1::from_vec(py, values))
    }
}

/// Encrypts for a client, and can do no more.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsPublicKey(sudare_tfhe::PublicKey, Threads);

#[pymethods]
impl BitsPublicKey {
    /// Reads a key.
    #[new]
    fn new(py: Python<'_>, params: &BitsParams, data: &[u8], threads: Workers) -> Result<Self> {
        let read = || Ok(sudare_tfhe::wire::tfhe_public_key_from_bytes(&params.0, data)?);
        Ok(Self(long(py, read)?, Threads::new(threads.0)))
    }

    /// The name of the secret key that it encrypts for.
    #[getter]
    fn key_id(&self) -> String {
        self.0.id().to_string()
    }

    /// Encrypts values in C order, as two's complement.
    fn encrypt(
        &self,
        py: Python<'_>,
        element: &str,
        shape: Vec<usize>,
        values: PyReadonlyArray1<'_, u64>,
    ) -> Result<BitsArray> {
        let (element, values) = (named::<ElementType>(element)?, values.as_array().to_vec());
        long(py, || Ok(BitsArray(self.1.run(|| self.0.encrypt_array(element, shape, &values))?)))
    }
}

/// Numbers for each element of an array: public ones in C order, as two's complement, or encrypted ones.
#[derive(FromPyObject)]
enum Numbers<'py> {
    Public(PyReadonlyArray1<'py, u64>),
    Encrypted(Py<BitsArray>),
}

/// The same, read without the interpreter's lock.
enum Given {
    Public(Vec<u64>),
    Encrypted(Py<BitsArray>),
}

impl From<Numbers<'_>> for Given {
    fn from(numbers: Numbers<'_>) -> Self {
        match numbers {
            Numbers::Public(values) => Self::Public(values.as_array().to_vec()),
            Numbers::Encrypted(array) => Self::Encrypted(array),
        }
    }
}

/// Computes with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsServer(sudare_tfhe::ServerKey, Threads);

impl BitsServer {
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&dyn ArrayEvaluator) -> std::result::Result<T, TfheError> + Send,
    ) -> Result<T> {
        with_progress(py, progress, |progress| Ok(self.1.run(|| work(&*self.0.arrays_with(progress)?))?))
    }

    fn array(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&dyn ArrayEvaluator) -> std::result::Result<EncryptedArray, TfheError> + Send,
    ) -> Result<BitsArray> {
        self.work(py, progress, work).map(BitsArray)
    }
}

#[pymethods]
impl BitsServer {
    /// A server from the bytes of evaluation keys.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &BitsParams, keys: &[u8], threads: Workers) -> Result<Self> {
        let threads = Threads::new(threads.0);
        long(py, || Ok(Self(threads.run(|| sudare_tfhe::wire::tfhe_server_key_from_bytes(&params.0, keys))?, threads)))
    }

    /// The bytes of its evaluation keys.
    fn keys_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = long(py, || {
            let mut out = Vec::new();
            sudare_tfhe::wire::write_tfhe_server_key(&self.0, &mut out)?;
            Ok(out)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Bytes of its keys in memory.
    #[getter]
    fn key_bytes(&self) -> usize {
        self.0.byte_len()
    }

    /// Bytes of its keys on the wire.
    #[getter]
    fn wire_bytes(&self) -> Result<u64> {
        Ok(sudare_tfhe::wire::tfhe_server_key_bytes(&self.0)?)
    }

    /// The name of the key whose data it computes on.
    #[getter]
    fn key_id(&self) -> String {
        self.0.id().to_string()
    }

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.1.count()
    }

    /// An array that the server sees.
    fn plain(
        &self,
        py: Python<'_>,
        element: &str,
        shape: Vec<usize>,
        values: PyReadonlyArray1<'_, u64>,
    ) -> Result<BitsArray> {
        let (element, values) = (named::<ElementType>(element)?, values.as_array().to_vec());
        self.array(py, None, |e| e.public_array(element, shape, &values))
    }

    /// An operation by NumPy's name for it.
    fn elementwise(
        &self,
        py: Python<'_>,
        name: &str,
        left: &BitsArray,
        right: &BitsArray,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        let operation: Elementwise = named(name)?;
        self.array(py, progress, |e| e.elementwise(operation, &left.0, &right.0))
    }

    /// The negative.
    fn negative(&self, py: Python<'_>, operand: &BitsArray, progress: Option<Py<PyAny>>) -> Result<BitsArray> {
        self.array(py, progress, |e| e.negative(&operand.0))
    }

    /// Every bit flipped.
    fn invert(&self, py: Python<'_>, operand: &BitsArray, progress: Option<Py<PyAny>>) -> Result<BitsArray> {
        self.array(py, progress, |e| e.inverted(&operand.0))
    }

    /// Elements of the first where the condition holds, else of the second.
    fn choice(
        &self,
        py: Python<'_>,
        condition: &BitsArray,
        first: &BitsArray,
        second: &BitsArray,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        self.array(py, progress, |e| e.choice(&condition.0, &first.0, &second.0))
    }

    /// The lines along the first axis joined by an operation, by NumPy's name for it, or by `any` or `all`.
    fn reduce(
        &self,
        py: Python<'_>,
        name: &str,
        operand: &BitsArray,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        match name.parse::<Reduction>() {
            Ok(how) => {
                let shape = operand.0.line_shape().to_vec();
                self.array(py, progress, |e| e.reduced(how, &operand.0, shape))
            }
            Err(_) => {
                let operation: Elementwise = named(name)?;
                self.array(py, progress, |e| e.folded(operation, &operand.0))
            }
        }
    }

    /// The first line along the first axis, the first two joined, the first three, …, by NumPy's name for the operation.
    fn scan(&self, py: Python<'_>, name: &str, operand: &BitsArray, progress: Option<Py<PyAny>>) -> Result<BitsArray> {
        let operation: Elementwise = named(name)?;
        self.array(py, progress, |e| e.scanned(operation, &operand.0))
    }

    /// Sorted along the first axis.
    fn sort(&self, py: Python<'_>, operand: &BitsArray, progress: Option<Py<PyAny>>) -> Result<BitsArray> {
        self.array(py, progress, |e| e.sorted(&operand.0))
    }

    /// The number of the first of the largest, or of the least, along the first axis.
    fn first_best(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        largest: bool,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        self.array(py, progress, |e| e.first_best(&operand.0, largest))
    }

    /// Quotients rounded down, and remainders.
    fn divide(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        by: Numbers<'_>,
        progress: Option<Py<PyAny>>,
    ) -> Result<(BitsArray, BitsArray)> {
        let by = Given::from(by);
        let (quotient, rest) = self.work(py, progress, |e| match &by {
            Given::Public(by) => e.divided(&operand.0, Divisor::Public(by)),
            Given::Encrypted(by) => e.divided(&operand.0, Divisor::Encrypted(&by.get().0)),
        })?;
        Ok((BitsArray(quotient), BitsArray(rest)))
    }

    /// A public power.
    fn power(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        exponent: u64,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        self.array(py, progress, |e| e.raised(&operand.0, exponent))
    }

    /// The matrix products of two batches.
    fn matmul(
        &self,
        py: Python<'_>,
        left: &BitsArray,
        right: &BitsArray,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        self.array(py, progress, |e| e.matrix_product(&left.0, &right.0))
    }

    /// The same array with no carry waiting.
    fn settle(&self, py: Python<'_>, operand: &BitsArray, progress: Option<Py<PyAny>>) -> Result<BitsArray> {
        self.array(py, progress, |e| e.settled(&operand.0))
    }

    /// A shift, by NumPy's name for it, by a public or an encrypted number for each element.
    fn shift(
        &self,
        py: Python<'_>,
        name: &str,
        operand: &BitsArray,
        by: Numbers<'_>,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        let (shift, by) = (named::<Shift>(name)?, Given::from(by));
        self.array(py, progress, |e| match &by {
            Given::Public(by) => e.shifted(shift, &operand.0, by),
            Given::Encrypted(by) => e.shifted_by(shift, &operand.0, &by.get().0),
        })
    }

    /// The table's entry for each element.
    fn lookup(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        table: PyReadonlyArray1<'_, u64>,
        element: &str,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        let (element, table) = (named::<ElementType>(element)?, table.as_array().to_vec());
        self.array(py, progress, |e| e.looked_up(&operand.0, &table, element))
    }

    /// The same numbers as another type.
    fn convert(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        element: &str,
        progress: Option<Py<PyAny>>,
    ) -> Result<BitsArray> {
        let element = named::<ElementType>(element)?;
        self.array(py, progress, |e| e.converted(&operand.0, element))
    }
}
