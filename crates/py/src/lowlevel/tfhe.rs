//! TFHE: encrypted bits and small integers, with a bootstrap in every step.

use super::arrays::{Row, lwe};
use super::circuits::unknown;
use super::params::Claim;
use super::{on, pool};
use crate::error::{Refusal, Result, raised};
use crate::work::{Workers, bytes, long};
use numpy::PyArray1;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sudare_ring::{ErrorKind, Threads};
use sudare_tfhe::array::{ElementType, EncryptedArray};
use sudare_tfhe::params::derive::{Wanted, derive};
use sudare_tfhe::wire as on_wire;
use sudare_tfhe::{
    self as tfhe, EncryptedBit, EncryptedInt, Gate, LookupTable, Noise, Plaintext, TfheError, TfheLiteral,
};

/// What a ciphertext holds: "bit", or bits of message and carry.
struct Held(Plaintext);

impl<'a, 'py> FromPyObject<'a, 'py> for Held {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.extract::<&str>().is_ok_and(|name| name == "bit") {
            return Ok(Self(Plaintext::Bit));
        }
        let bits = given.extract::<(u32, u32)>().ok();
        bits.map(|(message_bits, carry_bits)| Self(Plaintext::Integer { message_bits, carry_bits })).ok_or_else(|| {
            let text = "a plaintext is \"bit\", or a tuple of the bits of message and carry, such as (2, 2)";
            raised(given.py(), ErrorKind::Usage, text)
        })
    }
}

/// A distribution of noise: its name and its parameter.
struct Errors(Noise);

impl<'a, 'py> FromPyObject<'a, 'py> for Errors {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let found = match given.extract::<(String, f64)>() {
            Ok((name, sigma)) if name == "gaussian" => Some(Noise::Gaussian { sigma }),
            Ok((name, bits)) if name == "t_uniform" && bits.fract() == 0.0 => {
                u32::try_from(bits as i64).ok().map(|bits| Noise::TUniform { bits })
            }
            Ok((name, bound)) if name == "uniform" && bound.fract() == 0.0 => {
                u64::try_from(bound as i64).ok().map(|bound| Noise::Uniform { bound })
            }
            _ => None,
        };
        found.map(Self).ok_or_else(|| {
            let text = "noise is (\"gaussian\", sigma), (\"uniform\", bound) or (\"t_uniform\", bits)";
            raised(given.py(), ErrorKind::Usage, text)
        })
    }
}

/// A distribution as it is written in Python.
fn written(noise: Noise) -> Result<(&'static str, f64)> {
    match noise {
        Noise::Gaussian { sigma } => Ok(("gaussian", sigma)),
        Noise::TUniform { bits } => Ok(("t_uniform", bits.into())),
        // At most 2^46.
        Noise::Uniform { bound } => Ok(("uniform", bound as f64)),
        _ => Err(sudare_rlwe::RlweError::Internal { what: "the name of a distribution of noise" }.into()),
    }
}

/// A set of parameters: that of a name, or one of one's own, which says where it differs from a named one.
///
/// - `name`: "gates" for bits and "message_2_carry_2" for integers, each with "_failure_64" and "_failure_40" behind it for a larger
///   probability of failure; "message_2_carry_2_lwe_switch"; for tests "insecure_test" and "insecure_test_gates".
/// - `plaintext`: "bit", or a pair with the bits of message and of carry.
/// - `lwe_dimension`, `lwe_noise`: n, and the noise in units of 2^−32.
/// - `log_n`, `rank`: log2 of the ring degree N, and the rank k of GLWE ciphertexts.
/// - `modulus_bits`, `glwe_noise`: bits of the prime q, and the noise in units of 1/q.
/// - `bootstrap_digits`, `switch_digits`: log2 of the base, and levels, of the blind rotation and of the key switch.
/// - `module_switch`: whether keys are switched in the ring and not coefficient by coefficient.
/// - `unroll`: key bits in a step of the blind rotation.
/// - `noise_factor`: what linear operations may multiply the variance of the noise by.
/// - `log_failure`: log2 of the largest probability that a bootstrap fails.
/// - `security`: 128 bits or "insecure".
///
/// Noise is ("gaussian", sigma), ("uniform", bound) or ("t_uniform", bits). Raises `SecurityError` for noise under the claim,
/// `PrecisionError` for a set that fails too often, `PlanError` or `UnsupportedError` for one that makes no sense.
#[pyclass(frozen, eq, module = "sudare._core")]
pub struct TfheParams(tfhe::TfheParams);

impl PartialEq for TfheParams {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash() == other.0.hash()
    }
}

#[pymethods]
impl TfheParams {
    #[new]
    #[pyo3(signature = (
        name, *, plaintext = None, lwe_dimension = None, lwe_noise = None, log_n = None, rank = None,
        modulus_bits = None, glwe_noise = None, bootstrap_digits = None, switch_digits = None, module_switch = None,
        unroll = None, noise_factor = None, log_failure = None, security = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        py: Python<'_>,
        name: &str,
        plaintext: Option<Held>,
        lwe_dimension: Option<usize>,
        lwe_noise: Option<Errors>,
        log_n: Option<u32>,
        rank: Option<usize>,
        modulus_bits: Option<u32>,
        glwe_noise: Option<Errors>,
        bootstrap_digits: Option<(u32, u32)>,
        switch_digits: Option<(u32, u32)>,
        module_switch: Option<bool>,
        unroll: Option<usize>,
        noise_factor: Option<u64>,
        log_failure: Option<f64>,
        security: Option<Claim>,
    ) -> Result<Self> {
        let named: TfheLiteral = name.parse()?;
        let literal = TfheLiteral {
            plaintext: plaintext.map_or(named.plaintext, |held| held.0),
            lwe_dimension: lwe_dimension.unwrap_or(named.lwe_dimension),
            lwe_noise: lwe_noise.map_or(named.lwe_noise, |errors| errors.0),
            log_n: log_n.unwrap_or(named.log_n),
            rank: rank.unwrap_or(named.rank),
            modulus_bits: modulus_bits.unwrap_or(named.modulus_bits),
            glwe_noise: glwe_noise.map_or(named.glwe_noise, |errors| errors.0),
            bootstrap_digits: bootstrap_digits.unwrap_or(named.bootstrap_digits),
            switch_digits: switch_digits.unwrap_or(named.switch_digits),
            module_switch: module_switch.unwrap_or(named.module_switch),
            unroll: unroll.unwrap_or(named.unroll),
            noise_factor: noise_factor.unwrap_or(named.noise_factor),
            log_failure: log_failure.unwrap_or(named.log_failure),
            security: security.map_or(named.security, |claim| claim.0),
        };
        long(py, || Ok(Self(literal.build()?)))
    }

    /// The set whose bootstrap a cost model finds quickest for a plaintext, a factor by which linear operations may multiply
    /// the variance of noise, and log2 of the largest probability of failure. Raises `PlanError` where there is none.
    #[staticmethod]
    fn derive(py: Python<'_>, plaintext: Held, noise_factor: u64, log_failure: f64) -> Result<Self> {
        let wanted = Wanted { plaintext: plaintext.0, noise_factor, log_failure };
        long(py, || Ok(Self(derive(&wanted)?.literal.build()?)))
    }

    /// A set of before. Raises `FormatError` for other bytes, `SecurityError` for a claim that does not hold.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(on_wire::tfhe_params_from_bytes(data)?.build()?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &on_wire::tfhe_params_to_bytes(&self.0)?))
    }

    /// The set in plain numbers, as the class takes them.
    #[getter]
    fn literal<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let l = self.0.literal();
        let plaintext = match l.plaintext {
            Plaintext::Integer { message_bits, carry_bits } => (message_bits, carry_bits).into_bound_py_any(py),
            _ => "bit".into_bound_py_any(py),
        };
        let security = match l.security.bits() {
            0 => "insecure".into_bound_py_any(py),
            bits => bits.into_bound_py_any(py),
        };
        let noises = (written(l.lwe_noise)?, written(l.glwe_noise)?);
        let fill = || {
            let all = PyDict::new(py);
            all.set_item("plaintext", plaintext?)?;
            all.set_item("lwe_dimension", l.lwe_dimension)?;
            all.set_item("lwe_noise", noises.0)?;
            all.set_item("log_n", l.log_n)?;
            all.set_item("rank", l.rank)?;
            all.set_item("modulus_bits", l.modulus_bits)?;
            all.set_item("glwe_noise", noises.1)?;
            all.set_item("bootstrap_digits", l.bootstrap_digits)?;
            all.set_item("switch_digits", l.switch_digits)?;
            all.set_item("module_switch", l.module_switch)?;
            all.set_item("unroll", l.unroll)?;
            all.set_item("noise_factor", l.noise_factor)?;
            all.set_item("log_failure", l.log_failure)?;
            all.set_item("security", security?)?;
            Ok(all)
        };
        fill().map_err(Refusal::Raised)
    }

    /// The set's name on keys and ciphertexts, in hexadecimal digits.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash().to_string()
    }

    /// The NTT prime q.
    #[getter]
    fn q(&self) -> u64 {
        self.0.context().q()
    }

    /// Values that message and carry hold together; two for bits.
    #[getter]
    fn space(&self) -> u64 {
        self.0.space()
    }

    /// log2 of the probability that a bootstrap of the noisiest ciphertext allowed fails.
    #[getter]
    fn log_failure(&self) -> f64 {
        self.0.log_failure()
    }

    /// Variance of a bootstrap's output, as a fraction of q².
    #[getter]
    fn output_variance(&self) -> f64 {
        self.0.output_variance()
    }

    /// Variance at the decision of a bootstrap whose input has `factor` times the variance of an output, as a fraction of q².
    fn decision_variance(&self, factor: u64) -> f64 {
        self.0.decision_variance(factor)
    }

    /// Variance of a ciphertext of variance `input` after the key switch to dimension n.
    fn switched_variance(&self, input: f64) -> f64 {
        self.0.switched_variance(input)
    }

    fn __hash__(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0.hash().0[i]))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// An encrypted bit: an LWE ciphertext whose phase is 1/8 of the modulus for true, and −1/8 for false.
#[pyclass(frozen, module = "sudare._core")]
pub struct TfheBit(EncryptedBit);

#[pymethods]
impl TfheBit {
    /// A bit of before. Raises `FormatError` for other bytes and `KeyMismatchError` for one of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &TfheParams, data: &[u8]) -> Result<Self> {
        long(py, || {
            let array = on_wire::tfhe_array_from_bytes(&params.0, data)?;
            match array.blocks() {
                [one] if array.element() == ElementType::Bool => {
                    let (params, key) = one.owner();
                    Ok(Self(EncryptedBit::from_parts(one.ciphertext().clone(), params, key)))
                }
                blocks => Err(TfheError::Shape { what: "bits of an array", expected: 1, found: blocks.len() }.into()),
            }
        })
    }

    /// Its bytes on the wire: an array of one boolean.
    fn to_bytes<'py>(&self, py: Python<'py>, params: &TfheParams) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || {
            let block = EncryptedInt::from_parts(self.0.ciphertext().clone(), self.0.owner(), 1, 1);
            let array = EncryptedArray::from_blocks(ElementType::Bool, Vec::new(), self.0.owner(), vec![block])?;
            Ok(on_wire::tfhe_array_to_bytes(&params.0, &array)?)
        })
    }

    /// The mask's words and the body, modulo `modulus`.
    fn words<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        lwe(py, self.0.ciphertext())
    }

    /// The modulus.
    #[getter]
    fn modulus(&self) -> u64 {
        self.0.ciphertext().modulus().value()
    }

    /// The name of the secret key that it is under.
    #[getter]
    fn key(&self) -> String {
        self.0.owner().1.to_string()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// An encrypted number of message and carry bits: an LWE ciphertext under one bit of padding. It knows the largest value that it
/// can hold and how much noise it can have.
#[pyclass(frozen, module = "sudare._core")]
pub struct TfheInt(EncryptedInt);

#[pymethods]
impl TfheInt {
    /// The largest value that it can hold: by its type and the operations, never by its value.
    #[getter]
    fn largest(&self) -> u64 {
        self.0.largest()
    }

    /// Its noise's deviation in units of a bootstrap's output, at worst.
    #[getter]
    fn noise(&self) -> u64 {
        self.0.noise()
    }

    /// The mask's words and the body, modulo `modulus`.
    fn words<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        lwe(py, self.0.ciphertext())
    }

    /// The modulus.
    #[getter]
    fn modulus(&self) -> u64 {
        self.0.ciphertext().modulus().value()
    }

    /// The name of the secret key that it is under.
    #[getter]
    fn key(&self) -> String {
        self.0.owner().1.to_string()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A ciphertext of either kind.
#[derive(FromPyObject)]
enum Measured {
    Bit(Py<TfheBit>),
    Int(Py<TfheInt>),
}

/// The owner's key: it encrypts and decrypts. It is wiped when it is dropped, and never shown.
#[pyclass(frozen, module = "sudare._core")]
pub struct TfheClientKey(tfhe::ClientKey, Threads);

#[pymethods]
impl TfheClientKey {
    /// A fresh key, whose server keys are made on `threads` threads, of which 0 or `None` is one for each processor.
    #[staticmethod]
    #[pyo3(signature = (params, *, threads = None))]
    fn generate(py: Python<'_>, params: &TfheParams, threads: Option<Workers>) -> Result<Self> {
        long(py, || Ok(Self(tfhe::ClientKey::generate(&params.0)?, pool(threads))))
    }

    /// A key of before; `threads` as for `generate`. Raises `FormatError` for other bytes and `KeyMismatchError` for a key of
    /// another set.
    #[staticmethod]
    #[pyo3(signature = (params, data, *, threads = None))]
    fn from_bytes(py: Python<'_>, params: &TfheParams, data: &[u8], threads: Option<Workers>) -> Result<Self> {
        long(py, || Ok(Self(on_wire::tfhe_client_key_from_bytes(&params.0, data)?, pool(threads))))
    }

    /// The key's bytes. Whoever reads them reads everything.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &on_wire::tfhe_client_key_to_bytes(&self.0)?))
    }

    /// The key's public name, in hexadecimal digits.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// A server's key, fresh: of the bootstrap and of the key switch.
    fn server_key(&self, py: Python<'_>) -> Result<TfheServerKey> {
        let key = on(py, &self.1, || Ok(self.0.server_key()?))?;
        Ok(TfheServerKey(key, Threads::new(self.1.count())))
    }

    /// Encrypts a bit. Raises `UnsupportedError` for parameters of integers.
    fn encrypt_bit(&self, bit: bool) -> Result<TfheBit> {
        Ok(TfheBit(self.0.encrypt_bit(bit)?))
    }

    /// Decrypts a bit. Raises `KeyMismatchError` for one of another set or key.
    fn decrypt_bit(&self, bit: &TfheBit) -> Result<bool> {
        Ok(self.0.decrypt_bit(&bit.0)?)
    }

    /// Encrypts a message, with its carry bits free. Raises `InputError` for a number that needs carry bits, `UnsupportedError`
    /// for parameters of bits.
    fn encrypt_int(&self, value: u64) -> Result<TfheInt> {
        Ok(TfheInt(self.0.encrypt_int(value)?))
    }

    /// Encrypts a number that may fill message and carry. Raises as `encrypt_int`.
    fn encrypt_int_with_carry(&self, value: u64) -> Result<TfheInt> {
        Ok(TfheInt(self.0.encrypt_int_with_carry(value)?))
    }

    /// Decrypts a number of message and carry. Raises `KeyMismatchError` for one of another set or key.
    fn decrypt_int(&self, value: &TfheInt) -> Result<u64> {
        Ok(self.0.decrypt_int(&value.0)?)
    }

    /// The measured noise: how far the phase is from that of the nearest message, as a fraction of q with its sign. Raises
    /// `KeyMismatchError` for a ciphertext of another set or key.
    fn noise(&self, ciphertext: Measured) -> Result<f64> {
        let params = self.0.params();
        let (c, unit, offset) = match &ciphertext {
            Measured::Bit(bit) => {
                self.0.decrypt_bit(&bit.get().0)?;
                (bit.get().0.ciphertext(), 0.25, 0.125)
            }
            Measured::Int(int) => {
                self.0.decrypt_int(&int.get().0)?;
                (int.get().0.ciphertext(), 0.5 / params.space() as f64, 0.0)
            }
        };
        // Both are below 2^49.
        let phase = self.0.extracted().phase(c)? as f64 / c.modulus().value() as f64 - offset;
        Ok(phase - (phase / unit).round() * unit)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A table, ready to be the accumulator of a bootstrap.
///
/// - `params`: the set.
/// - `values`: the values of 0, 1, …, one for each number of message and carry (`params.space` of them), each below that number.
///
/// Raises `ShapeError` for another number of them, `InputError` for a value that does not fit.
#[pyclass(frozen, module = "sudare._core")]
pub struct TfheLookupTable(LookupTable);

#[pymethods]
impl TfheLookupTable {
    #[new]
    fn new(params: &TfheParams, values: Row<'_, u64>) -> Result<Self> {
        let values = values.slice()?;
        let (found, expected) = (values.len(), params.0.space() as usize);
        if found != expected {
            return Err(TfheError::Shape { what: "table entries", expected, found }.into());
        }
        Ok(Self(LookupTable::interleaved(&params.0, &[values.to_vec()])?))
    }

    /// Several tables for one blind rotation; tables of p entries are for messages below p. Raises `ShapeError` where message
    /// and carry have no room for them, `InputError` for a value that does not fit.
    #[staticmethod]
    fn interleaved(params: &TfheParams, tables: Vec<Row<'_, u64>>) -> Result<Self> {
        let tables = tables.iter().map(|row| Ok(row.slice()?.to_vec())).collect::<Result<Vec<_>>>()?;
        Ok(Self(LookupTable::interleaved(&params.0, &tables)?))
    }

    /// Tables that there are.
    #[getter]
    fn tables(&self) -> usize {
        self.0.tables()
    }

    /// The test polynomial's coefficients, modulo q.
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, self.0.coefficients())
    }
}

/// A server's key: it computes, and reads nothing.
#[pyclass(frozen, module = "sudare._core")]
pub struct TfheServerKey(tfhe::ServerKey, Threads);

/// The gates by name.
const GATES: [(&str, Gate); 8] = [
    ("and", Gate::And),
    ("nand", Gate::Nand),
    ("or", Gate::Or),
    ("nor", Gate::Nor),
    ("xor", Gate::Xor),
    ("xnor", Gate::Xnor),
    ("and_not", Gate::AndNot),
    ("or_not", Gate::OrNot),
];

fn gate(name: &str) -> Result<Gate> {
    let found = GATES.iter().find(|(known, _)| *known == name).map(|(_, gate)| *gate);
    found.ok_or_else(|| {
        unknown("gate", name, "and, nand, or, nor, xor, xnor, and_not (a and not b), or_not (a or not b)")
    })
}

impl TfheServerKey {
    fn bit(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&tfhe::ServerKey) -> std::result::Result<EncryptedBit, TfheError> + Send,
    ) -> Result<TfheBit> {
        on(py, &self.1, || Ok(TfheBit(work(&self.0)?)))
    }

    fn int(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&tfhe::ServerKey) -> std::result::Result<EncryptedInt, TfheError> + Send,
    ) -> Result<TfheInt> {
        on(py, &self.1, || Ok(TfheInt(work(&self.0)?)))
    }
}

#[pymethods]
impl TfheServerKey {
    /// A key of before, on `threads` threads, of which 0 or `None` is one for each processor. Raises `FormatError` for other bytes and
    /// `KeyMismatchError` for a key of another set.
    #[staticmethod]
    #[pyo3(signature = (params, data, *, threads = None))]
    fn from_bytes(py: Python<'_>, params: &TfheParams, data: &[u8], threads: Option<Workers>) -> Result<Self> {
        let threads = pool(threads);
        let key = on(py, &threads, || Ok(on_wire::tfhe_server_key_from_bytes(&params.0, data)?))?;
        Ok(Self(key, threads))
    }

    /// Its bytes on the wire: about half of those in memory.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || {
            let mut out = Vec::new();
            on_wire::write_tfhe_server_key(&self.0, &mut out)?;
            Ok(out)
        })
    }

    /// The name of the secret key that it belongs to.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_len()
    }

    /// The bit that everybody knows. Raises `UnsupportedError` for parameters of integers.
    fn trivial_bit(&self, bit: bool) -> Result<TfheBit> {
        Ok(TfheBit(self.0.trivial_bit(bit)?))
    }

    /// A gate of two bits, by one bootstrap: "and", "nand", "or", "nor", "xor", "xnor", "and_not" (a and not b) or "or_not". Raises
    /// `InputError` for another name, `KeyMismatchError` for a bit of another set or key.
    fn gate(&self, py: Python<'_>, gate: &str, a: &TfheBit, b: &TfheBit) -> Result<TfheBit> {
        let gate = self::gate(gate)?;
        self.bit(py, |key| key.gate(gate, &a.0, &b.0))
    }

    /// Many gates side by side: of each its name and its bits. Raises as `gate`.
    fn gates(&self, py: Python<'_>, gates: Vec<(String, Py<TfheBit>, Py<TfheBit>)>) -> Result<Vec<TfheBit>> {
        let gates = gates.iter().map(|(name, a, b)| Ok((gate(name)?, &a.get().0, &b.get().0)));
        let gates = gates.collect::<Result<Vec<_>>>()?;
        on(py, &self.1, || Ok(self.0.gates(&gates)?.into_iter().map(TfheBit).collect()))
    }

    /// The bit's opposite, without a bootstrap. Raises `KeyMismatchError` for a bit of another set or key.
    #[pyo3(name = "not_")]
    fn not(&self, py: Python<'_>, a: &TfheBit) -> Result<TfheBit> {
        self.bit(py, |key| key.not(&a.0))
    }

    /// a where the condition is true, and b otherwise. Raises as `gate`.
    fn mux(&self, py: Python<'_>, condition: &TfheBit, a: &TfheBit, b: &TfheBit) -> Result<TfheBit> {
        self.bit(py, |key| key.mux(&condition.0, &a.0, &b.0))
    }

    /// Many choices side by side: of each the condition and both bits. Raises as `gate`.
    fn muxes(&self, py: Python<'_>, choices: Vec<(Py<TfheBit>, Py<TfheBit>, Py<TfheBit>)>) -> Result<Vec<TfheBit>> {
        let choices: Vec<_> = choices.iter().map(|(c, a, b)| (&c.get().0, &a.get().0, &b.get().0)).collect();
        on(py, &self.1, || Ok(self.0.muxes(&choices)?.into_iter().map(TfheBit).collect()))
    }

    /// Values of the message alone.
    #[getter]
    fn message_space(&self) -> u64 {
        self.0.message_space()
    }

    /// Largest noise that a bootstrap takes, in units of an output's deviation.
    #[getter]
    fn largest_noise(&self) -> u64 {
        self.0.largest_noise()
    }

    /// The number that everybody knows. Raises `InputError` for one that does not fit, `UnsupportedError` for parameters of bits.
    fn trivial_int(&self, value: u64) -> Result<TfheInt> {
        Ok(TfheInt(self.0.trivial_int(value)?))
    }

    /// a + b, without a bootstrap. Raises `PrecisionError` for a sum that message and carry, or noise that a bootstrap, do not
    /// hold, `KeyMismatchError` for a number of another set or key.
    fn add_int(&self, py: Python<'_>, a: &TfheInt, b: &TfheInt) -> Result<TfheInt> {
        self.int(py, |key| key.add_int(&a.0, &b.0))
    }

    /// a + value for a public value, without a bootstrap. Raises as `add_int`.
    fn add_plain_int(&self, py: Python<'_>, a: &TfheInt, value: u64) -> Result<TfheInt> {
        self.int(py, |key| key.add_plain_int(&a.0, value))
    }

    /// value − a for a public value that is at least a's largest, without a bootstrap. Raises as `add_int`.
    fn sub_from_plain_int(&self, py: Python<'_>, value: u64, a: &TfheInt) -> Result<TfheInt> {
        self.int(py, |key| key.sub_from_plain_int(value, &a.0))
    }

    /// factor · a for a public factor, without a bootstrap. Raises as `add_int`.
    fn mul_plain_int(&self, py: Python<'_>, a: &TfheInt, factor: u64) -> Result<TfheInt> {
        self.int(py, |key| key.mul_plain_int(&a.0, factor))
    }

    /// The table's value at a, by one bootstrap, with a bootstrap's noise. Raises `PrecisionError` for noise that it does not
    /// hold, `ShapeError` for a table of several, `KeyMismatchError` for a number of another set or key.
    fn lookup(&self, py: Python<'_>, a: &TfheInt, table: &TfheLookupTable) -> Result<TfheInt> {
        self.int(py, |key| key.lookup(&a.0, &table.0))
    }

    /// The table's value at a · `message_space` + b for two messages, by one bootstrap. Raises as `lookup` and `add_int`.
    fn lookup2(&self, py: Python<'_>, a: &TfheInt, b: &TfheInt, table: &TfheLookupTable) -> Result<TfheInt> {
        self.int(py, |key| key.lookup2(&a.0, &b.0, &table.0))
    }

    /// Interleaved tables of a by one blind rotation (ePrint 2021/729). Raises as `lookup`, and `PrecisionError` if a can be
    /// larger than the tables.
    fn lookup_many(&self, py: Python<'_>, a: &TfheInt, tables: &TfheLookupTable) -> Result<Vec<TfheInt>> {
        on(py, &self.1, || Ok(self.0.lookup_many(&a.0, &tables.0)?.into_iter().map(TfheInt).collect()))
    }

    /// Several tables of all values of message and carry by one blind rotation, with more noise (ePrint 2018/622). Raises as
    /// `lookup`, and `ShapeError` or `InputError` for other tables.
    fn lookup_multi(&self, py: Python<'_>, a: &TfheInt, tables: Vec<Row<'_, u64>>) -> Result<Vec<TfheInt>> {
        let tables = tables.iter().map(|row| Ok(row.slice()?.to_vec())).collect::<Result<Vec<_>>>()?;
        on(py, &self.1, || Ok(self.0.lookup_multi(&a.0, &tables)?.into_iter().map(TfheInt).collect()))
    }

    /// A table for each of many numbers, side by side. Raises as `lookup`.
    fn lookups(&self, py: Python<'_>, items: Vec<(Py<TfheInt>, Py<TfheLookupTable>)>) -> Result<Vec<TfheInt>> {
        let items: Vec<_> = items.iter().map(|(a, table)| (&a.get().0, &table.get().0)).collect();
        on(py, &self.1, || Ok(self.0.lookups(&items)?.into_iter().map(TfheInt).collect()))
    }

    fn __repr__(&self) -> String {
        format!("ServerKey({:.1} MB, key {})", self.0.byte_len() as f64 / 1e6, self.0.id())
    }
}
