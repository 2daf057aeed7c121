//! Arrays of encrypted integers and booleans.

use crate::error::{Refusal, Result};
use crate::work::{Workers, long};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sudare_ring::Threads;
use sudare_tfhe::array::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray, Reduction};
use sudare_tfhe::radix::{BitOperation, Comparison, IntegerType, Shift};
use sudare_tfhe::{self as tfhe, Plaintext, TfheError, TfheLiteral};

/// A refusal of the scheme, as the layers above know it.
fn refused(error: TfheError) -> Refusal {
    Refusal::Refused(error.kind(), error.to_string())
}

fn unknown<T>(what: &str, name: &str) -> Result<T> {
    Err(refused(TfheError::Parameters { reason: format!("there is no {what} {name:?}") }))
}

/// bool, uint8, int16, …
fn element(name: &str) -> Result<ElementType> {
    let (signed, bits) = match (name, name.strip_prefix("uint"), name.strip_prefix("int")) {
        ("bool", ..) => return Ok(ElementType::Bool),
        (_, Some(bits), _) => (false, bits),
        (_, _, Some(bits)) => (true, bits),
        _ => return unknown("element type", name),
    };
    match bits.parse().map(|bits| IntegerType::new(bits, signed)) {
        Ok(kind) => Ok(ElementType::Integer(kind.map_err(refused)?)),
        Err(_) => unknown("element type", name),
    }
}

fn elementwise(name: &str) -> Result<Elementwise> {
    Ok(match name {
        "add" => Elementwise::Add,
        "subtract" => Elementwise::Sub,
        "multiply" => Elementwise::Mul,
        "minimum" => Elementwise::Min,
        "maximum" => Elementwise::Max,
        "bitwise_and" => Elementwise::Bits(BitOperation::And),
        "bitwise_or" => Elementwise::Bits(BitOperation::Or),
        "bitwise_xor" => Elementwise::Bits(BitOperation::Xor),
        "equal" => Elementwise::Compare(Comparison::Eq),
        "not_equal" => Elementwise::Compare(Comparison::Ne),
        "less" => Elementwise::Compare(Comparison::Lt),
        "less_equal" => Elementwise::Compare(Comparison::Le),
        "greater" => Elementwise::Compare(Comparison::Gt),
        "greater_equal" => Elementwise::Compare(Comparison::Ge),
        _ => return unknown("operation", name),
    })
}

fn shift(name: &str) -> Result<Shift> {
    Ok(match name {
        "left_shift" => Shift::Left,
        "right_shift" => Shift::Right,
        "rotate_left" => Shift::RotateLeft,
        "rotate_right" => Shift::RotateRight,
        _ => return unknown("shift", name),
    })
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
        let literal = match name {
            "message_2_carry_2" => TfheLiteral::message_2_carry_2(),
            "message_2_carry_2_lwe_switch" => TfheLiteral::message_2_carry_2_lwe_switch(),
            "message_2_carry_2_failure_64" => TfheLiteral::message_2_carry_2_failure_64(),
            "message_2_carry_2_failure_40" => TfheLiteral::message_2_carry_2_failure_40(),
            "gates" => TfheLiteral::gates(),
            "gates_failure_64" => TfheLiteral::gates_failure_64(),
            "gates_failure_40" => TfheLiteral::gates_failure_40(),
            "insecure_test" => TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 }),
            "insecure_test_gates" => TfheLiteral::insecure_test(Plaintext::Bit),
            _ => return unknown("parameter set", name),
        };
        long(py, || Ok(Self(literal.build().map_err(refused)?)))
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
        let bytes = long(py, || Ok(sudare_tfhe::wire::tfhe_array_to_bytes(&params.0, &self.0)?))?;
        Ok(PyBytes::new(py, &bytes))
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

    /// The name of the secret key that it is under.
    #[getter]
    fn key_id(&self) -> String {
        self.0.owner().1.to_string()
    }

    /// Elements by number, as an array of a shape.
    fn take(&self, py: Python<'_>, shape: Vec<usize>, indices: Vec<usize>) -> Result<Self> {
        long(py, || Ok(Self(self.0.take(shape, &indices).map_err(refused)?)))
    }

    /// Arrays one after the other, flat.
    #[staticmethod]
    fn concatenated(arrays: Vec<PyRef<'_, Self>>) -> Result<Self> {
        let all: Vec<&EncryptedArray> = arrays.iter().map(|a| &a.0).collect();
        Ok(Self(EncryptedArray::concatenated(&all).map_err(refused)?))
    }
}

/// Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsClient(sudare_tfhe::ClientKey, Threads);

#[pymethods]
impl BitsClient {
    #[new]
    fn new(py: Python<'_>, params: &BitsParams, threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(sudare_tfhe::ClientKey::generate(&params.0).map_err(refused)?, Threads::new(threads.0))))
    }

    /// A client with a secret key of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, params: &BitsParams, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || {
            Ok(Self(sudare_tfhe::wire::tfhe_client_key_from_bytes(&params.0, secret)?, Threads::new(threads.0)))
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

    /// A server with new evaluation keys.
    fn server(&self, py: Python<'_>, threads: Workers) -> Result<BitsServer> {
        long(py, || {
            let key = self.1.run(|| self.0.server_key()).map_err(refused)?;
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
        let (element, values) = (self::element(element)?, values.as_array().to_vec());
        long(py, || Ok(BitsArray(self.1.run(|| self.0.encrypt_array(element, shape, &values)).map_err(refused)?)))
    }

    /// Decrypts to values in C order, as two's complement.
    fn decrypt<'py>(&self, py: Python<'py>, value: &BitsArray) -> Result<Bound<'py, PyArray1<u64>>> {
        let values = long(py, || self.1.run(|| self.0.decrypt_array(&value.0)).map_err(refused))?;
        Ok(PyArray1::from_vec(py, values))
    }
}

/// Computes with evaluation keys.
#[pyclass(frozen, module = "sudare._core")]
pub struct BitsServer(sudare_tfhe::ServerKey, Threads);

impl BitsServer {
    fn work(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn ArrayEvaluator) -> std::result::Result<EncryptedArray, TfheError> + Send,
    ) -> Result<BitsArray> {
        long(py, || Ok(BitsArray(self.1.run(|| work(&*self.0.arrays()?)).map_err(refused)?)))
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
        let (element, values) = (self::element(element)?, values.as_array().to_vec());
        self.work(py, |e| e.public_array(element, shape, &values))
    }

    /// An operation by NumPy's name for it.
    fn elementwise(&self, py: Python<'_>, name: &str, left: &BitsArray, right: &BitsArray) -> Result<BitsArray> {
        let operation = elementwise(name)?;
        self.work(py, |e| e.elementwise(operation, &left.0, &right.0))
    }

    /// The negative.
    fn negative(&self, py: Python<'_>, operand: &BitsArray) -> Result<BitsArray> {
        self.work(py, |e| e.negative(&operand.0))
    }

    /// Every bit flipped.
    fn invert(&self, py: Python<'_>, operand: &BitsArray) -> Result<BitsArray> {
        self.work(py, |e| e.inverted(&operand.0))
    }

    /// Elements of the first where the condition holds, else of the second.
    fn choice(
        &self,
        py: Python<'_>,
        condition: &BitsArray,
        first: &BitsArray,
        second: &BitsArray,
    ) -> Result<BitsArray> {
        self.work(py, |e| e.choice(&condition.0, &first.0, &second.0))
    }

    /// Whether any (or all) of the booleans along the first axis are true.
    fn reduce(&self, py: Python<'_>, name: &str, operand: &BitsArray, shape: Vec<usize>) -> Result<BitsArray> {
        let how = match name {
            "any" => Reduction::Any,
            "all" => Reduction::All,
            _ => return unknown("reduction", name),
        };
        self.work(py, |e| e.reduced(how, &operand.0, shape))
    }

    /// The same array with no carry waiting.
    fn settle(&self, py: Python<'_>, operand: &BitsArray) -> Result<BitsArray> {
        self.work(py, |e| e.settled(&operand.0))
    }

    /// A shift by a public number for each element.
    fn shift(
        &self,
        py: Python<'_>,
        name: &str,
        operand: &BitsArray,
        by: PyReadonlyArray1<'_, u64>,
    ) -> Result<BitsArray> {
        let (shift, by) = (shift(name)?, by.as_array().to_vec());
        self.work(py, |e| e.shifted(shift, &operand.0, &by))
    }

    /// A shift by an encrypted number for each element.
    fn shift_by(&self, py: Python<'_>, name: &str, operand: &BitsArray, by: &BitsArray) -> Result<BitsArray> {
        let shift = shift(name)?;
        self.work(py, |e| e.shifted_by(shift, &operand.0, &by.0))
    }

    /// The table's entry for each element.
    fn lookup(
        &self,
        py: Python<'_>,
        operand: &BitsArray,
        table: PyReadonlyArray1<'_, u64>,
        element: &str,
    ) -> Result<BitsArray> {
        let (element, table) = (self::element(element)?, table.as_array().to_vec());
        self.work(py, |e| e.looked_up(&operand.0, &table, element))
    }

    /// The same numbers as another type.
    fn convert(&self, py: Python<'_>, operand: &BitsArray, element: &str) -> Result<BitsArray> {
        let element = self::element(element)?;
        self.work(py, |e| e.converted(&operand.0, element))
    }
}
