//! CKKS.

use super::arrays::{Row, polynomial, residues};
use super::circuits::{CkksLinearMap, CkksMatrixVector, CkksPolynomialCircuit, CkksTracePlan};
use super::keys::{EvalKeys, PublicKey, SecretKey};
use super::params::{Claim, RlweParams, Written, claimed};
use super::{counted, on, pool};
use crate::client::Release;
use crate::error::{Refusal, Result};
use crate::work::{Workers, bytes, long};
use numpy::{Complex64, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::ckks::{self, EncodeAt, State, noise};
use sudare_ring::{Eval, Poly, Threads};
use sudare_rlwe::keys::{self, KeySource};
use sudare_rlwe::params::SchemeTag;
use sudare_rlwe::wire::{Wire, params_from_bytes, params_to_bytes};
use sudare_rlwe::{self as rlwe, RlweError};

/// A set of parameters: a ring with primes, and a scale. It holds N/2 complex numbers in slots.
///
/// - `log_n`: log2 of the ring degree N, 9 to 17.
/// - `log_scale`: log2 of the default scale Δ, 1 to 120.
/// - `q_bits`: bits of each data prime, up to 61, the last to be dropped first; a set has a level less than primes.
/// - `p_bits`: bits of each special prime of key switching; none for sets that switch no keys.
/// - `q`, `p`: the primes themselves, ≡ 1 modulo 2N, in place of their bits.
/// - `digit_limbs`: data primes in a digit of key switching; the special primes together are at least as large as a digit.
/// - `secret`: "ternary", "gaussian", or "fixed_weight" with `weight` coefficients that are not zero.
/// - `security`: 128 bits where nothing is said, 192 or 256, checked against log2(Q·P); "insecure" claims nothing, and is for play
///   and for tests.
///
/// Raises `SecurityError` for a modulus over the limit, `PlanError` for a set that makes no sense. `Params.with_depth` chooses a set.
#[pyclass(frozen, extends = RlweParams, module = "sudare._core")]
pub struct CkksParams(pub ckks::Params);

impl CkksParams {
    pub(super) fn class(params: ckks::Params) -> PyClassInitializer<Self> {
        PyClassInitializer::from(RlweParams(params.rlwe().clone())).add_subclass(Self(params))
    }
}

#[pymethods]
impl CkksParams {
    #[new]
    #[pyo3(signature = (
        *, log_n, log_scale, q_bits = None, p_bits = None, q = None, p = None, digit_limbs = 1, secret = "ternary",
        weight = None, security = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        py: Python<'_>,
        log_n: u32,
        log_scale: u32,
        q_bits: Option<Vec<u32>>,
        p_bits: Option<Vec<u32>>,
        q: Option<Vec<u64>>,
        p: Option<Vec<u64>>,
        digit_limbs: usize,
        secret: &str,
        weight: Option<u32>,
        security: Option<Claim>,
    ) -> Result<PyClassInitializer<Self>> {
        let secret = secret.into();
        let written = Written { log_n, q_bits, p_bits, q, p, digit_limbs, secret, weight, security };
        Ok(Self::class(long(py, || Ok(ckks::Params::of(&written.build(SchemeTag(log_scale))?)?))?))
    }

    /// The default set for `depth` products in a row at a scale of 2^`log_scale`: the least degree that holds it at the
    /// claimed security. Raises `PlanError` where none does.
    #[staticmethod]
    #[pyo3(signature = (depth, log_scale, security = None))]
    fn with_depth(py: Python<'_>, depth: usize, log_scale: u32, security: Option<Claim>) -> Result<Py<Self>> {
        let made = || Ok(ckks::ParamsLiteral::with_depth(depth, log_scale, claimed(security))?.build()?);
        Py::new(py, Self::class(long(py, made)?)).map_err(Refusal::Raised)
    }

    /// A set of before. Raises `FormatError` for other bytes, `SecurityError` for a claim that does not hold.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Py<Self>> {
        let made = || Ok(ckks::Params::of(&params_from_bytes(data)?.build()?)?);
        Py::new(py, Self::class(long(py, made)?)).map_err(Refusal::Raised)
    }

    /// Its bytes on the wire. Raises `UnsupportedError` for primes of one's own: what travels are their bits.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &super::params::travelling(&self.0, params_to_bytes(&self.0)?)?))
    }

    /// Complex slots of a ciphertext, N/2.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// The default scale Δ.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// An encoded vector: an integer polynomial that stands for the scale times the message.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksPlaintext(Plain);

/// A plaintext in the form it was made in.
enum Plain {
    /// By an encoder, or of a file.
    Encoded(ckks::Plaintext),
    /// By a decryption.
    Opened(ckks::Decrypted),
}

/// What `$plain`, in either form, gives.
macro_rules! of_plain {
    ($of:expr, $plain:ident => $what:expr) => {
        match &$of.0 {
            Plain::Encoded($plain) => $what,
            Plain::Opened($plain) => $what,
        }
    };
}

impl From<ckks::Plaintext> for CkksPlaintext {
    fn from(plain: ckks::Plaintext) -> Self {
        Self(Plain::Encoded(plain))
    }
}

impl CkksPlaintext {
    /// The form that ciphertexts meet.
    pub fn encoded(&self) -> Cow<'_, ckks::Plaintext> {
        match &self.0 {
            Plain::Encoded(plain) => Cow::Borrowed(plain),
            Plain::Opened(plain) => Cow::Owned(plain.encoded()),
        }
    }
}

#[pymethods]
impl CkksPlaintext {
    /// A plaintext of before. Raises `FormatError` for other bytes and `KeyMismatchError` for one of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &CkksParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(ckks::Plaintext::from_bytes(params.0.rlwe(), data)?.into()))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.encoded().to_bytes()?))
    }

    /// Its level: the index of its last prime.
    #[getter]
    fn level(&self) -> usize {
        of_plain!(self, plain => plain.level())
    }

    /// Its scale.
    #[getter]
    fn scale(&self) -> f64 {
        of_plain!(self, plain => plain.scale())
    }

    /// Declared bound on the absolute values of its slots.
    #[getter]
    fn bound(&self) -> f64 {
        of_plain!(self, plain => plain.bound())
    }

    /// Static bound on the error of a slot, in units of the message.
    #[getter]
    fn error_bound(&self) -> f64 {
        of_plain!(self, plain => plain.error_bound())
    }

    /// The polynomial's coefficients modulo each prime: an array of level + 1 rows of N residues.
    fn poly<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray2<u64>>> {
        let poly = long(py, || {
            Ok(match &self.0 {
                Plain::Encoded(plain) => plain.poly().to_coeff(),
                Plain::Opened(plain) => plain.poly().clone(),
            })
        })?;
        residues(py, &poly).map_err(Refusal::Raised)
    }

    fn __repr__(&self) -> String {
        let (level, scale, bound) = (self.level(), self.scale().log2(), self.bound());
        format!("Plaintext(level {level}, scale 2^{scale:.2}, up to {bound:e})")
    }
}

/// Encodes vectors into slots or coefficients, and back.
///
/// - `params`: the set; a plaintext has up to N/2 values in slots, or N in coefficients.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksEncoder(pub ckks::Encoder);

/// Level and scale of an encoding, the highest and the default where nothing is said.
pub fn place(params: &ckks::Params, max_abs: f64, level: Option<usize>, scale: Option<f64>) -> EncodeAt {
    let (level, scale) = (level.unwrap_or_else(|| params.max_level()), scale.unwrap_or_else(|| params.scale()));
    EncodeAt { level, scale, max_abs }
}

#[pymethods]
impl CkksEncoder {
    #[new]
    fn new(params: &CkksParams) -> Self {
        Self(ckks::Encoder::new(&params.0))
    }

    /// Real values to the first slots, the rest zero, at the highest level and the default scale if none is given.
    ///
    /// `max_abs` bounds the values; it travels openly with a ciphertext, so that overflow is refused beforehand. Raises
    /// `InputError` for a value over it or that is no number, `ShapeError` for more than N/2 values, `PrecisionError` where the
    /// modulus does not hold them.
    #[pyo3(signature = (values, max_abs, *, level = None, scale = None))]
    fn encode(
        &self,
        py: Python<'_>,
        values: Row<'_, f64>,
        max_abs: f64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<CkksPlaintext> {
        let (values, at) = (values.slice()?, place(self.0.params(), max_abs, level, scale));
        long(py, || Ok(CkksPlaintext::from(self.0.encode_at(values, at)?)))
    }

    /// Complex values to the first slots, the rest zero. Raises as `encode`.
    #[pyo3(signature = (values, max_abs, *, level = None, scale = None))]
    fn encode_complex(
        &self,
        py: Python<'_>,
        values: Row<'_, Complex64>,
        max_abs: f64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<CkksPlaintext> {
        let (values, at) = (values.slice()?, place(self.0.params(), max_abs, level, scale));
        long(py, || Ok(CkksPlaintext::from(self.0.encode_complex(values, at)?)))
    }

    /// Real values as the first coefficients of a polynomial; products are convolutions modulo X^N + 1. `max_abs` bounds
    /// their Euclidean norm. Raises as `encode`.
    #[pyo3(signature = (values, max_abs, *, level = None, scale = None))]
    fn encode_coefficients(
        &self,
        py: Python<'_>,
        values: Row<'_, f64>,
        max_abs: f64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<CkksPlaintext> {
        let (values, at) = (values.slice()?, place(self.0.params(), max_abs, level, scale));
        long(py, || Ok(CkksPlaintext::from(self.0.encode_coefficients(values, at)?)))
    }

    /// One value in every slot. Raises as `encode`.
    #[pyo3(signature = (value, max_abs, *, level = None, scale = None))]
    fn encode_constant(
        &self,
        value: f64,
        max_abs: f64,
        level: Option<usize>,
        scale: Option<f64>,
    ) -> Result<CkksPlaintext> {
        Ok(CkksPlaintext::from(self.0.encode_constant(value, place(self.0.params(), max_abs, level, scale))?))
    }

    /// The real parts of all N/2 slots. Raises `KeyMismatchError` for a plaintext of another set.
    fn decode<'py>(&self, py: Python<'py>, plaintext: &CkksPlaintext) -> Result<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, long(py, || Ok(of_plain!(plaintext, plain => self.0.decode(plain))?))?))
    }

    /// All N/2 slots. Raises as `decode`.
    fn decode_complex<'py>(
        &self,
        py: Python<'py>,
        plaintext: &CkksPlaintext,
    ) -> Result<Bound<'py, PyArray1<Complex64>>> {
        Ok(PyArray1::from_vec(py, long(py, || Ok(of_plain!(plaintext, plain => self.0.decode_complex(plain))?))?))
    }

    /// All N coefficients, divided by the scale. Raises as `decode`.
    fn decode_coefficients<'py>(
        &self,
        py: Python<'py>,
        plaintext: &CkksPlaintext,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, long(py, || Ok(of_plain!(plaintext, plain => self.0.decode_coefficients(plain))?))?))
    }
}

/// A ciphertext: parts that decrypt as Σ c_i·s^i, with level, scale, and bounds on message and noise, which travel openly.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksCiphertext(pub ckks::Ciphertext);

#[pymethods]
impl CkksCiphertext {
    /// A ciphertext of before. Raises `FormatError` for other bytes and `KeyMismatchError` for one of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &CkksParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(ckks::Ciphertext::from_bytes(params.0.rlwe(), data)?)))
    }

    /// Its bytes on the wire: half for one that is straight from encryption under a secret key.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Rescales left.
    #[getter]
    fn level(&self) -> usize {
        self.0.level()
    }

    /// The exact scale.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    /// Bound on the message.
    #[getter]
    fn bound(&self) -> f64 {
        self.0.bound()
    }

    /// Static bound on the canonical norm of the error, in integer units.
    #[getter]
    fn noise(&self) -> f64 {
        self.0.noise()
    }

    /// Static bound on the error of a slot, in units of the message.
    #[getter]
    fn error_bound(&self) -> f64 {
        self.0.error_bound()
    }

    /// Bits of a message of size one above the noise bound.
    #[getter]
    fn precision_bits(&self) -> f64 {
        self.0.precision_bits()
    }

    /// The primes of its level.
    #[getter]
    fn primes(&self) -> Vec<u64> {
        self.0.params().q_at(self.0.level()).primes().collect()
    }

    /// The name of the secret key that it is under.
    #[getter]
    fn key(&self) -> String {
        self.0.key().to_string()
    }

    /// Bytes in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// Its parts c_0, c_1 and after a product c_2: each an array of level + 1 rows of N residues, the coefficients modulo
    /// each prime.
    fn parts<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyArray2<u64>>>> {
        let parts = long(py, || Ok(self.0.parts().iter().map(|c| c.clone().into_coeff()).collect::<Vec<_>>()))?;
        parts.iter().map(|c| residues(py, c).map_err(Refusal::Raised)).collect()
    }

    /// A ciphertext of other parts, two or three, under the same key and of the same level, scale and bounds, which the
    /// caller knows to hold. Raises `InputError` or `ShapeError` for arrays that are no residues of its primes.
    fn with_parts(&self, parts: Vec<PyReadonlyArray2<'_, u64>>) -> Result<Self> {
        let (c, basis) = (&self.0, self.0.params().q_at(self.0.level()));
        let parts = parts.iter().map(|rows| polynomial(basis, rows)).collect::<Result<Vec<Poly<Eval>>>>()?;
        let inner = rlwe::Ciphertext::from_parts(c.params(), c.key(), parts, c.level())?;
        Ok(Self(ckks::Ciphertext::from_parts(inner, c.state())?))
    }

    /// The same with another bound on the message, which the caller knows to hold.
    fn with_bound(&self, bound: f64) -> Result<Self> {
        let State { scale, noise, .. } = self.0.state();
        Ok(Self(ckks::Ciphertext::from_parts(self.0.inner().clone(), State { scale, bound, noise })?))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// What a ciphertext is encrypted with.
pub enum Key {
    Secret(Arc<keys::SecretKey>),
    Public(Arc<keys::PublicKey>),
}

/// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksEncryptor(Key, Threads);

#[pymethods]
impl CkksEncryptor {
    /// Encrypts under a secret key, on `threads` threads, of which 0 or `None` is one for each processor: less noise, and
    /// ciphertexts that travel at half their size.
    #[staticmethod]
    #[pyo3(signature = (secret, *, threads = None))]
    fn with_secret_key(secret: &SecretKey, threads: Option<Workers>) -> Self {
        Self(Key::Secret(secret.0.clone()), pool(threads))
    }

    /// Encrypts under a public key, whose noise is larger. `threads` as for `with_secret_key`.
    #[staticmethod]
    #[pyo3(signature = (key, *, threads = None))]
    fn with_public_key(key: &PublicKey, threads: Option<Workers>) -> Self {
        Self(Key::Public(key.0.clone()), pool(threads))
    }

    /// Encrypts a plaintext at its level. Raises `KeyMismatchError` for one of another set, `PrecisionError` where the
    /// modulus does not hold it.
    fn encrypt(&self, py: Python<'_>, plaintext: &CkksPlaintext) -> Result<CkksCiphertext> {
        on(py, &self.1, || {
            let encryptor = match &self.0 {
                Key::Secret(key) => ckks::Encryptor::with_secret_key(key)?,
                Key::Public(key) => ckks::Encryptor::with_public_key(key)?,
            };
            Ok(CkksCiphertext(encryptor.encrypt(&plaintext.encoded())?))
        })
    }
}

/// What a computation gives, worked out by whoever decrypts its result and not read from it.
///
/// - `level`: the level of the result.
/// - `scale`: its scale.
/// - `error`: a bound on the error of a value, in units of the message.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksExpected(ckks::Expected);

#[pymethods]
impl CkksExpected {
    #[new]
    fn new(level: usize, scale: f64, error: f64) -> Self {
        Self(ckks::Expected { level, scale, error })
    }

    /// Of a ciphertext that this process made or computed itself; never of one that came from elsewhere.
    #[staticmethod]
    fn of(ciphertext: &CkksCiphertext) -> Self {
        Self(ckks::Expected::of(&ciphertext.0))
    }

    /// Level.
    #[getter]
    fn level(&self) -> usize {
        self.0.level
    }

    /// Scale.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale
    }

    /// Bound on the error of a value.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error
    }
}

/// Decrypts for the owner of the secret key.
///
/// - `secret`: the key.
/// - `threads`: how many work; 0 or `None` is one for each processor.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksDecryptor(Arc<keys::SecretKey>, Threads);

#[pymethods]
impl CkksDecryptor {
    #[new]
    #[pyo3(signature = (secret, *, threads = None))]
    fn new(secret: &SecretKey, threads: Option<Workers>) -> Self {
        Self(secret.0.clone(), pool(threads))
    }

    /// Private decryption, for the owner's eyes: whoever sees the result and the ciphertext can compute the key
    /// (Li–Micciancio, ePrint 2020/1533). Raises `KeyMismatchError` for a ciphertext of another set or key.
    fn decrypt(&self, py: Python<'_>, ciphertext: &CkksCiphertext) -> Result<CkksPlaintext> {
        on(py, &self.1, || Ok(CkksPlaintext(Plain::Opened(ckks::Decryptor::new(&self.0).decrypt(&ciphertext.0)?))))
    }

    /// The largest distance of a slot from the value that it should hold, in units of the message: the measured error beside
    /// the ciphertext's `error_bound`. Slots past the values should be zero. Raises as `decrypt`, and `ShapeError`
    /// for more than N/2 values.
    fn error(&self, py: Python<'_>, ciphertext: &CkksCiphertext, values: Row<'_, Complex64>) -> Result<f64> {
        let values = values.slice()?;
        on(py, &self.1, || {
            let params = ckks::Params::of(ciphertext.0.params())?;
            if values.len() > params.slots() {
                return Err(RlweError::TooManyValues { found: values.len(), capacity: params.slots() }.into());
            }
            let plain = ckks::Decryptor::new(&self.0).decrypt(&ciphertext.0)?;
            let slots = ckks::Encoder::new(&params).decode_complex(&plain)?;
            let wanted = values.iter().copied().chain(std::iter::repeat(Complex64::default()));
            Ok(slots.iter().zip(wanted).map(|(slot, value)| (slot - value).norm()).fold(0.0, f64::max))
        })
    }

    /// The real parts of all slots, for others to see: one of the key's releases, with noise that hides the error. Level,
    /// scale and error are the expected ones, which the owner works out; nothing of the ciphertext is believed. Raises
    /// `ReleaseError` where all releases are used or the ciphertext is not as expected, `PrecisionError` if the noise would
    /// leave nothing, and as `decrypt`.
    fn decrypt_for_release<'py>(
        &self,
        py: Python<'py>,
        encoder: &CkksEncoder,
        ciphertext: &CkksCiphertext,
        expected: &CkksExpected,
        policy: &Release,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        let values = on(py, &self.1, || {
            let decryptor = ckks::Decryptor::new(&self.0);
            Ok(decryptor.decrypt_for_release(&encoder.0, &ciphertext.0, &expected.0, policy.0)?)
        })?;
        Ok(PyArray1::from_vec(py, values))
    }

    fn __repr__(&self) -> String {
        format!("Decryptor(key {}, hidden)", self.0.id())
    }
}

/// Computes on ciphertexts with a server's keys. Operands are never changed.
///
/// - `params`: the set.
/// - `keys`: relinearisation and rotation keys; an operation without its key is refused.
/// - `threads`: how many work; 0 or `None` is one for each processor.
///
/// Raises `KeyMismatchError` for keys of another set.
#[pyclass(frozen, module = "sudare._core")]
pub struct CkksEvaluator(ckks::Evaluator, Threads);

type Made = std::result::Result<ckks::Ciphertext, HeError>;
type ManyMade = std::result::Result<Vec<ckks::Ciphertext>, HeError>;

impl CkksEvaluator {
    pub(super) fn with_keys(params: &ckks::Params, keys: keys::EvalKeys, threads: Threads) -> Result<Self> {
        Ok(Self(ckks::Evaluator::new(params, keys)?, threads))
    }

    fn one(&self, py: Python<'_>, work: impl FnOnce(&ckks::Evaluator) -> Made + Send) -> Result<CkksCiphertext> {
        on(py, &self.1, || Ok(CkksCiphertext(work(&self.0)?)))
    }

    fn many(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&ckks::Evaluator) -> ManyMade + Send,
    ) -> Result<Vec<CkksCiphertext>> {
        on(py, &self.1, || Ok(work(&self.0)?.into_iter().map(CkksCiphertext).collect()))
    }
}

/// The ciphertexts of a list.
pub fn inner(all: &[Py<CkksCiphertext>]) -> Vec<&ckks::Ciphertext> {
    all.iter().map(|c| &c.get().0).collect()
}

#[pymethods]
impl CkksEvaluator {
    #[new]
    #[pyo3(signature = (params, keys, *, threads = None))]
    fn new(params: &CkksParams, keys: &EvalKeys, threads: Option<Workers>) -> Result<Self> {
        let keys: Arc<dyn KeySource> = keys.0.clone();
        Ok(Self(ckks::Evaluator::new(&params.0, keys)?, pool(threads)))
    }

    /// Operations done since the start or the last reset: additions, rotations, products with plaintexts (`cmult`) and of
    /// ciphertexts (`mult`), relinearisations and key switches.
    fn counters(&self) -> BTreeMap<&'static str, u64> {
        counted(self.0.counters())
    }

    /// Sets all counters to zero.
    fn reset_counters(&self) {
        self.0.reset_counters();
    }

    /// a + b, at the lower of both levels. Raises `PrecisionError` for scales that differ and for a sum that the
    /// modulus does not hold, `KeyMismatchError` for ciphertexts of another set or key.
    fn add(&self, py: Python<'_>, a: &CkksCiphertext, b: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.add(&a.0, &b.0))
    }

    /// a − b, at the lower of both levels. Raises as `add`.
    fn sub(&self, py: Python<'_>, a: &CkksCiphertext, b: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.sub(&a.0, &b.0))
    }

    /// −a. Raises `KeyMismatchError` for a ciphertext of another set or key.
    fn negate(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.negate(&a.0))
    }

    /// a + p for a plaintext of at least the ciphertext's level. Raises as `add`, and `LevelError` if its level is too low.
    fn add_plain(&self, py: Python<'_>, a: &CkksCiphertext, p: &CkksPlaintext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.add_plain(&a.0, &p.encoded()))
    }

    /// a − p. Raises as `add_plain`.
    fn sub_plain(&self, py: Python<'_>, a: &CkksCiphertext, p: &CkksPlaintext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.sub_plain(&a.0, &p.encoded()))
    }

    /// a + value in every slot. Raises as `add`, and `InputError` for what is no finite number.
    fn add_constant(&self, py: Python<'_>, a: &CkksCiphertext, value: f64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.add_constant(&a.0, value))
    }

    /// a · p; the scales multiply, and a `rescale` is due. Raises `PrecisionError` for a product that the modulus does not
    /// hold, and as `add_plain`.
    fn mul_plain(&self, py: Python<'_>, a: &CkksCiphertext, p: &CkksPlaintext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_plain(&a.0, &p.encoded()))
    }

    /// a · p rescaled, without storing the product before it is divided. Raises as `mul_plain` and `rescale`.
    fn mul_plain_rescale(&self, py: Python<'_>, a: &CkksCiphertext, p: &CkksPlaintext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_plain_rescale(&a.0, &p.encoded()))
    }

    /// a · value for an integer, at no cost in levels. Raises as `mul_plain`.
    fn mul_integer(&self, py: Python<'_>, a: &CkksCiphertext, value: i64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_integer(&a.0, value))
    }

    /// a · value for a real constant: one level is used and the scale stays as it is. Raises `LevelError` without a level,
    /// `InputError` for what is no finite number, and as `mul_integer`.
    fn mul_constant(&self, py: Python<'_>, a: &CkksCiphertext, value: f64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_constant(&a.0, value))
    }

    /// The same message at `factor` times the scale, for an integer, at no cost in levels. Raises as `mul_integer`.
    fn refine(&self, py: Python<'_>, a: &CkksCiphertext, factor: i64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.refine(&a.0, factor))
    }

    /// i · a, at no cost in levels. Raises `KeyMismatchError` for a ciphertext of another set or key.
    fn mul_imaginary_unit(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_imaginary_unit(&a.0))
    }

    /// a · b with three parts: `relinearize` and `rescale` are due. Raises `PrecisionError` for a product that the modulus
    /// does not hold, `ShapeError` for an operand of three parts, `KeyMismatchError` for one of another set or key.
    fn mul(&self, py: Python<'_>, a: &CkksCiphertext, b: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul(&a.0, &b.0))
    }

    /// Σ a_i · b_i with three parts: one relinearisation after it serves all products. Raises as `mul`, and `ShapeError`
    /// for lists that are empty or not equally long.
    fn dot(&self, py: Python<'_>, a: Vec<Py<CkksCiphertext>>, b: Vec<Py<CkksCiphertext>>) -> Result<CkksCiphertext> {
        let (a, b) = (inner(&a), inner(&b));
        self.one(py, |e| e.dot(&a, &b))
    }

    /// Three parts to two. Raises `MissingKeyError` without the relinearisation key, `LevelError` if it serves lower levels.
    fn relinearize(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.relinearize(&a.0))
    }

    /// Relinearised and rescaled in one division. Raises as `relinearize` and `rescale`.
    fn relinearize_rescale(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.relinearize_rescale(&a.0))
    }

    /// a · b relinearised. Raises as `mul` and `relinearize`.
    fn mul_relin(&self, py: Python<'_>, a: &CkksCiphertext, b: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_relin(&a.0, &b.0))
    }

    /// a · b relinearised and rescaled. Raises as `mul` and `relinearize_rescale`.
    fn mul_rescale(&self, py: Python<'_>, a: &CkksCiphertext, b: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.mul_rescale(&a.0, &b.0))
    }

    /// Divides by the last prime: the level goes down by one, and the scale by the prime. Raises `LevelError` at level 0.
    fn rescale(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.rescale(&a.0))
    }

    /// The same message at a lower level. Raises `LevelError` for a higher one.
    fn drop_to(&self, py: Python<'_>, a: &CkksCiphertext, level: usize) -> Result<CkksCiphertext> {
        self.one(py, |e| e.drop_to(&a.0, level))
    }

    /// The same message at another scale, one level lower. Raises `LevelError` at level 0, `PrecisionError` where
    /// nothing of the message would be left.
    fn set_scale(&self, py: Python<'_>, a: &CkksCiphertext, scale: f64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.set_scale(&a.0, scale))
    }

    /// Slot i becomes slot i + step; slots wrap around. Raises `MissingKeyError` for a step without a key.
    fn rotate(&self, py: Python<'_>, a: &CkksCiphertext, step: i64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.rotate(&a.0, step))
    }

    /// The complex conjugates of all slots. Raises `MissingKeyError` without its key.
    fn conjugate(&self, py: Python<'_>, a: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.conjugate(&a.0))
    }

    /// X ↦ X^element, an odd number below 2N. Raises `MissingKeyError` without its key.
    fn automorphism(&self, py: Python<'_>, a: &CkksCiphertext, element: u64) -> Result<CkksCiphertext> {
        self.one(py, |e| e.automorphism(&a.0, element, 0))
    }

    /// Rotations of one ciphertext by several steps, which share one decomposition (hoisting). Raises as `rotate`.
    fn rotate_many(&self, py: Python<'_>, a: &CkksCiphertext, steps: Vec<i64>) -> Result<Vec<CkksCiphertext>> {
        self.many(py, |e| e.rotate_many(&a.0, &steps))
    }

    /// Σ of the images under automorphisms, of which 1 is the ciphertext itself: one decomposition and one division by the
    /// special primes for all. Raises as `automorphism`.
    fn sum_of_automorphisms(&self, py: Python<'_>, a: &CkksCiphertext, elements: Vec<u64>) -> Result<CkksCiphertext> {
        self.one(py, |e| e.sum_of_automorphisms(&a.0, &elements))
    }

    /// Sums of slots by a plan. Raises `MissingKeyError` without one of its keys.
    fn trace(&self, py: Python<'_>, a: &CkksCiphertext, plan: &CkksTracePlan) -> Result<CkksCiphertext> {
        self.one(py, |e| e.trace(&a.0, &plan.0))
    }

    /// ⟨x, y⟩ over the slots that a plan sums, rescaled. Raises as `mul_rescale` and `trace`.
    fn inner_product(
        &self,
        py: Python<'_>,
        x: &CkksCiphertext,
        y: &CkksCiphertext,
        plan: &CkksTracePlan,
    ) -> Result<CkksCiphertext> {
        self.one(py, |e| e.inner_product(&x.0, &y.0, &plan.0))
    }

    /// The same with a plaintext. Raises as `mul_plain_rescale` and `trace`.
    fn inner_product_plain(
        &self,
        py: Python<'_>,
        x: &CkksCiphertext,
        y: &CkksPlaintext,
        plan: &CkksTracePlan,
    ) -> Result<CkksCiphertext> {
        self.one(py, |e| e.inner_product_plain(&x.0, &y.encoded(), &plan.0))
    }

    /// A linear map of the slots, rescaled: one decomposition for all baby steps, and divisions by the special primes for
    /// giant steps alone (double hoisting). Raises `MissingKeyError` without one of its keys, `LevelError` for a ciphertext
    /// above the map's level or at level 0.
    fn linear_map(&self, py: Python<'_>, a: &CkksCiphertext, map: &CkksLinearMap) -> Result<CkksCiphertext> {
        self.one(py, |e| e.linear_map(&a.0, &map.0))
    }

    /// Several hoisted linear maps of one ciphertext, which share one decomposition. Raises as `linear_map`.
    fn linear_maps(
        &self,
        py: Python<'_>,
        a: &CkksCiphertext,
        maps: Vec<Py<CkksLinearMap>>,
    ) -> Result<Vec<CkksCiphertext>> {
        let maps: Vec<_> = maps.iter().map(|map| &map.get().0).collect();
        self.many(py, |e| e.linear_maps(&a.0, &maps))
    }

    /// M · x for a vector in the matrix's layout, rescaled: slot i holds entry i. Raises as `linear_map` and `trace`.
    fn matrix_vector(&self, py: Python<'_>, matrix: &CkksMatrixVector, x: &CkksCiphertext) -> Result<CkksCiphertext> {
        self.one(py, |e| e.matrix_vector(&matrix.0, &x.0))
    }

    /// A polynomial of every slot. Raises `LevelError` below the circuit's level, `PrecisionError` for another scale
    /// than the circuit's and for a bound that says that values are out of its interval, `MissingKeyError` without the
    /// relinearisation key.
    fn polynomial(
        &self,
        py: Python<'_>,
        x: &CkksCiphertext,
        circuit: &CkksPolynomialCircuit,
    ) -> Result<CkksCiphertext> {
        self.one(py, |e| e.polynomial(&x.0, &circuit.0))
    }
}

/// A level that there is.
fn existing(params: &CkksParams, level: usize) -> Result<&ckks::Params> {
    params.0.expect_level("a bound on noise", level)?;
    Ok(&params.0)
}

/// Bound on the rounding of so many parts when a ciphertext is divided, in integer units.
#[pyfunction]
pub fn division_bound(params: &CkksParams, parts: usize) -> f64 {
    noise::division_bound(&params.0, parts)
}

/// Bound on the noise of key switching at a level, without the rounding of its division. Raises `LevelError` for a level that
/// there is not.
#[pyfunction]
pub fn switching_bound(params: &CkksParams, level: usize) -> Result<f64> {
    Ok(noise::switching_bound(existing(params, level)?, level))
}

/// The same by the relinearisation key. Raises as `switching_bound`.
#[pyfunction]
pub fn relinearisation_bound(params: &CkksParams, level: usize) -> Result<f64> {
    Ok(noise::relinearisation_bound(existing(params, level)?, level))
}

/// Bound on the noise of key switching with its division. Raises as `switching_bound`.
#[pyfunction]
pub fn switched_bound(params: &CkksParams, level: usize) -> Result<f64> {
    Ok(noise::switched_bound(existing(params, level)?, level))
}
