//! BFV and BGV: integers modulo t. Both are one text, a macro of their types.

use super::arrays::{Row, polynomial, residues};
use super::ckks::Key;
use super::keys::{EvalKeys, PublicKey, SecretKey};
use super::params::{Claim, RlweParams, Written, claimed, travelling};
use super::{counted, on, pool};
use crate::error::{Refusal, Result, raised};
use crate::work::{Workers, bytes, long};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::{self, EXACT};
use sudare_exact::{self as exact, ExactError, Packing, Wrap};
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::{self, KeySource};
use sudare_rlwe::wire::Wire;

/// A set of parameters: a ring with primes, and a plaintext modulus t. Keys belong to the ring alone, so that several
/// moduli share them.
///
/// - `log_n`: log2 of the ring degree N, 9 to 17.
/// - `t`: the plaintext modulus, 2 to 2^60 − 1. A prime ≡ 1 modulo 2N has N slots; one ≡ 1 modulo N alone has N/2.
/// - `q_bits`: bits of each data prime, up to 61, the last to be dropped first; a set has a level less than primes.
/// - `p_bits`: bits of each special prime of key switching; none for sets that switch no keys.
/// - `q`, `p`: the primes themselves, ≡ 1 modulo 2N, in place of their bits.
/// - `digit_limbs`: data primes in a digit of key switching; the special primes together are at least as large as a digit.
/// - `secret`: "ternary", "gaussian", or "fixed_weight" with `weight` coefficients that are not zero.
/// - `security`: 128 bits where nothing is said, 192 or 256, checked against log2(Q·P); "insecure" claims nothing, and is for play
///   and for tests.
///
/// Raises `SecurityError` for a modulus over the limit, `PlanError` for a set or a t that makes no sense. `Requirements` chooses a set.
#[pyclass(frozen, eq, extends = RlweParams, module = "sudare._core")]
#[derive(PartialEq)]
pub struct IntegerParams(pub exact::IntegerParams);

impl IntegerParams {
    pub(super) fn class(params: exact::IntegerParams) -> PyClassInitializer<Self> {
        PyClassInitializer::from(RlweParams(params.rlwe().clone())).add_subclass(Self(params))
    }
}

#[pymethods]
impl IntegerParams {
    #[new]
    #[pyo3(signature = (
        *, log_n, t, q_bits = None, p_bits = None, q = None, p = None, digit_limbs = 1, secret = "ternary",
        weight = None, security = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        py: Python<'_>,
        log_n: u32,
        t: u64,
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
        Ok(Self::class(long(py, || Ok(exact::IntegerParams::new(&written.build(EXACT)?, t)?))?))
    }

    /// A set of before. Raises `FormatError` for other bytes, `SecurityError` for a claim that does not hold.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Py<Self>> {
        let made = || Ok(exact::integer_params_from_bytes(data)?.build()?);
        Py::new(py, Self::class(long(py, made)?)).map_err(Refusal::Raised)
    }

    /// Its bytes on the wire. Raises `UnsupportedError` for primes of one's own: what travels are their bits.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &travelling(&self.0, exact::integer_params_to_bytes(&self.0)?)?))
    }

    /// The plaintext modulus.
    #[getter]
    fn t(&self) -> u64 {
        self.0.t()
    }

    /// Whether t has slots: it is a prime ≡ 1 modulo 2N, or modulo N for half as many.
    #[getter]
    fn has_slots(&self) -> bool {
        self.0.has_slots()
    }

    /// Values in slots.
    #[getter]
    fn slots(&self) -> usize {
        self.0.slots()
    }

    /// Slots in a row, half of them; rotations turn both rows.
    #[getter]
    fn row(&self) -> usize {
        self.0.row()
    }

    /// The Galois element that exchanges both rows of slots.
    fn row_swap_element(&self) -> u64 {
        self.0.row_swap_element()
    }

    /// Galois elements whose keys a sum over all slots needs, of each row or with `columns` of both.
    fn sum_elements(&self, columns: bool) -> Vec<u64> {
        self.0.sum_elements(columns)
    }

    /// log2 of the noise at which decryption at a level can fail. Raises `LevelError` for a level that there is not.
    fn log_limit(&self, level: usize) -> Result<f64> {
        self.0.expect_level("a bound on noise", level)?;
        Ok(self.0.noise().log_limit(level))
    }

    fn __hash__(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0.hash().0[i]))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A computation from which a set is chosen: products that follow one another, and what is done between them.
///
/// - `t`: the plaintext modulus, 2 to 2^60 − 1.
/// - `depth`: products in a row.
/// - `additions`: ciphertexts that are added to another before each product and at the end.
/// - `rotations`: rotations of a ciphertext before each product and at the end.
/// - `values`: values that one ciphertext holds at least.
/// - `slots`: whether values stand in slots; t is then a prime ≡ 1 modulo N.
/// - `public_key`: whether operands are encrypted under the public key, whose noise is larger.
/// - `security`: 128 bits where nothing is said, 192 or 256, or "insecure".
#[pyclass(frozen, module = "sudare._core")]
pub struct Requirements(plan::Requirements);

#[pymethods]
impl Requirements {
    #[new]
    #[pyo3(signature = (
        t, *, depth = 0, additions = 0, rotations = 0, values = 0, slots = false, public_key = false,
        security = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn new(
        t: u64,
        depth: usize,
        additions: u64,
        rotations: u64,
        values: usize,
        slots: bool,
        public_key: bool,
        security: Option<Claim>,
    ) -> Self {
        let made = plan::Requirements::new(t).depth(depth).additions(additions).rotations(rotations).values(values);
        let made = made.security(claimed(security));
        let made = if slots { made.slots() } else { made };
        Self(if public_key { made.public_key() } else { made })
    }

    /// The least set for BFV that holds it. Raises `PlanError` where none does, and for slots of a modulus without.
    fn bfv(&self, py: Python<'_>) -> Result<Py<IntegerParams>> {
        Py::new(py, IntegerParams::class(long(py, || Ok(self.0.bfv()?))?)).map_err(Refusal::Raised)
    }

    /// The least set for BGV that holds it. Raises as `bfv`.
    fn bgv(&self, py: Python<'_>) -> Result<Py<IntegerParams>> {
        Py::new(py, IntegerParams::class(long(py, || Ok(self.0.bgv()?))?)).map_err(Refusal::Raised)
    }
}

/// The largest prime below 2^`bits` with slots at ring degree 2^`log_n` and below. Raises `PlanError` if there is none.
#[pyfunction]
pub fn slot_modulus(bits: u32, log_n: u32) -> Result<u64> {
    Ok(plan::slot_modulus(bits, log_n)?)
}

/// Where values stand: "slots" or "coefficients".
struct Place(Packing);

impl<'a, 'py> FromPyObject<'a, 'py> for Place {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<&str>() {
            Ok("slots") => Ok(Self(Packing::Slots)),
            Ok("coefficients") => Ok(Self(Packing::Coefficients)),
            _ => {
                let shown = given.repr()?;
                let text = format!("a packing is \"slots\" or \"coefficients\", not {shown}");
                Err(raised(given.py(), ErrorKind::Usage, &text))
            }
        }
    }
}

/// The packing where nothing is said: slots where there are some.
fn packing(params: &exact::IntegerParams, given: Option<Place>) -> Packing {
    let usual = if params.has_slots() { Packing::Slots } else { Packing::Coefficients };
    given.map_or(usual, |place| place.0)
}

/// An encoded message: N coefficients modulo t.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerPlaintext(pub exact::Plaintext);

#[pymethods]
impl IntegerPlaintext {
    /// Of N coefficients below t. Raises `ShapeError` for another number of them, `InputError` for one that is not below t.
    #[staticmethod]
    fn from_coefficients(params: &IntegerParams, coefficients: Row<'_, u64>) -> Result<Self> {
        Ok(Self(exact::Plaintext::from_coefficients(&params.0, coefficients.slice()?.to_vec())?))
    }

    /// A plaintext of before. Raises `FormatError` for other bytes and `KeyMismatchError` for one of another set.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, params: &IntegerParams, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(exact::Plaintext::from_bytes(&params.0, data)?)))
    }

    /// Its bytes on the wire.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// Its coefficients, from 0 to t − 1.
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, self.0.coefficients())
    }
}

/// Encodes integers into slots or coefficients, and back.
///
/// - `params`: the set; a plaintext has up to `params.slots` values in slots, or N in coefficients.
#[pyclass(frozen, module = "sudare._core")]
pub struct IntegerEncoder(exact::Encoder);

impl IntegerEncoder {
    fn packed(&self, place: Option<Place>, modulo: bool) -> (Packing, Wrap) {
        (packing(self.0.params(), place), if modulo { Wrap::Modulo } else { Wrap::Refuse })
    }
}

#[pymethods]
impl IntegerEncoder {
    #[new]
    fn new(params: &IntegerParams) -> Self {
        Self(exact::Encoder::new(&params.0))
    }

    /// Integers with a sign, from −t/2 up to t/2, to the first slots or coefficients; the rest are zero. `packing` is "slots", which is taken
    /// where t has some, or "coefficients". With `modulo` values are taken modulo t. Raises `InputError` for a
    /// value that t does not hold, `ShapeError` for too many, `PlanError` for slots that there are not.
    #[pyo3(signature = (values, packing = None, *, modulo = false))]
    fn encode_signed(
        &self,
        py: Python<'_>,
        values: Row<'_, i64>,
        packing: Option<Place>,
        modulo: bool,
    ) -> Result<IntegerPlaintext> {
        let (values, (packing, wrap)) = (values.slice()?, self.packed(packing, modulo));
        long(py, || Ok(IntegerPlaintext(self.0.encode_signed(values, packing, wrap)?)))
    }

    /// Integers from 0 to t − 1. As `encode_signed` otherwise, and raises as it.
    #[pyo3(signature = (values, packing = None, *, modulo = false))]
    fn encode_unsigned(
        &self,
        py: Python<'_>,
        values: Row<'_, u64>,
        packing: Option<Place>,
        modulo: bool,
    ) -> Result<IntegerPlaintext> {
        let (values, (packing, wrap)) = (values.slice()?, self.packed(packing, modulo));
        long(py, || Ok(IntegerPlaintext(self.0.encode_unsigned(values, packing, wrap)?)))
    }

    /// All values, from −t/2 up to t/2. Raises `KeyMismatchError` for a plaintext of another set, `PlanError` for slots that there are not.
    #[pyo3(signature = (plaintext, packing = None))]
    fn decode_signed<'py>(
        &self,
        py: Python<'py>,
        plaintext: &IntegerPlaintext,
        packing: Option<Place>,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let packing = self::packing(self.0.params(), packing);
        Ok(PyArray1::from_vec(py, long(py, || Ok(self.0.decode_signed(&plaintext.0, packing)?))?))
    }

    /// All values, from 0 to t − 1. Raises as `decode_signed`.
    #[pyo3(signature = (plaintext, packing = None))]
    fn decode_unsigned<'py>(
        &self,
        py: Python<'py>,
        plaintext: &IntegerPlaintext,
        packing: Option<Place>,
    ) -> Result<Bound<'py, PyArray1<u64>>> {
        let packing = self::packing(self.0.params(), packing);
        Ok(PyArray1::from_vec(py, long(py, || Ok(self.0.decode_unsigned(&plaintext.0, packing)?))?))
    }
}

/// A scheme's classes.
macro_rules! scheme {
    ($Scheme:ident, $Ciphertext:ident, $Encryptor:ident, $Decryptor:ident, $Evaluator:ident) => {
        /// A ciphertext: parts that decrypt as Σ c_i·s^i, with level, plaintext factor and a bound on the noise, which travel openly.
        #[pyclass(frozen, module = "sudare._core")]
        pub struct $Ciphertext(pub exact::Ciphertext<$Scheme>);

        #[pymethods]
        impl $Ciphertext {
            /// A ciphertext of before. Raises `FormatError` for other bytes and `KeyMismatchError` for one of another set or scheme.
            #[staticmethod]
            fn from_bytes(py: Python<'_>, params: &IntegerParams, data: &[u8]) -> Result<Self> {
                long(py, || Ok(Self(exact::Ciphertext::from_bytes(&params.0, data)?)))
            }

            /// Its bytes on the wire: half for one that is straight from encryption under a secret key.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
                bytes(py, || Ok(self.0.to_bytes()?))
            }

            /// Primes left to drop.
            #[getter]
            fn level(&self) -> usize {
                self.0.level()
            }

            /// The plaintext factor g: the polynomial holds g times the message.
            #[getter]
            fn factor(&self) -> u64 {
                self.0.factor()
            }

            /// Static bound on the canonical norm of the noise.
            #[getter]
            fn noise(&self) -> f64 {
                self.0.noise()
            }

            /// Bits of noise that the ciphertext takes yet, by its bound.
            #[getter]
            fn headroom(&self) -> f64 {
                self.0.headroom()
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

            /// Its parts c_0, c_1 and after a product c_2: each an array of level + 1 rows of N residues, the coefficients
            /// modulo each prime.
            fn parts<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyArray2<u64>>>> {
                let parts = || Ok(self.0.parts().iter().map(|c| c.clone().into_coeff()).collect::<Vec<_>>());
                long(py, parts)?.iter().map(|c| residues(py, c).map_err(Refusal::Raised)).collect()
            }

            /// A ciphertext of other parts, two or three, under the same key and of the same level, factor and bound, which
            /// the caller knows to hold. Raises `InputError` or `ShapeError` for arrays that are no residues of its primes.
            fn with_parts(&self, parts: Vec<PyReadonlyArray2<'_, u64>>) -> Result<Self> {
                let (c, basis) = (&self.0, self.0.params().q_at(self.0.level()));
                let parts = parts.iter().map(|rows| polynomial(basis, rows)).collect::<Result<Vec<_>>>()?;
                let inner = rlwe::Ciphertext::from_parts(c.params().rlwe(), c.key(), parts, c.level())?;
                Ok(Self(exact::Ciphertext::from_parts(c.params(), inner, c.state())?))
            }

            fn __repr__(&self) -> String {
                format!("{:?}", self.0)
            }
        }

        /// Encrypts under a secret or a public key, each ciphertext from fresh entropy.
        #[pyclass(frozen, module = "sudare._core")]
        pub struct $Encryptor(exact::IntegerParams, Key, Threads);

        #[pymethods]
        impl $Encryptor {
            /// Encrypts under a secret key, on `threads` threads, of which 0 or `None` is one for each processor: less noise,
            /// and ciphertexts that travel at half their size.
            #[staticmethod]
            #[pyo3(signature = (params, secret, *, threads = None))]
            fn with_secret_key(params: &IntegerParams, secret: &SecretKey, threads: Option<Workers>) -> Self {
                Self(params.0.clone(), Key::Secret(secret.0.clone()), pool(threads))
            }

            /// Encrypts under a public key, whose noise is larger. `threads` as for `with_secret_key`.
            #[staticmethod]
            #[pyo3(signature = (params, key, *, threads = None))]
            fn with_public_key(params: &IntegerParams, key: &PublicKey, threads: Option<Workers>) -> Self {
                Self(params.0.clone(), Key::Public(key.0.clone()), pool(threads))
            }

            /// Encrypts a plaintext, at the highest level where none is given. Raises `KeyMismatchError` for one of another
            /// set, `LevelError` for a level that there is not, `PrecisionError` for one that holds no fresh ciphertext.
            #[pyo3(signature = (plaintext, *, level = None))]
            fn encrypt(
                &self,
                py: Python<'_>,
                plaintext: &IntegerPlaintext,
                level: Option<usize>,
            ) -> Result<$Ciphertext> {
                on(py, &self.2, || {
                    let encryptor = match &self.1 {
                        Key::Secret(key) => exact::Encryptor::with_secret_key(&self.0, key)?,
                        Key::Public(key) => exact::Encryptor::with_public_key(&self.0, key)?,
                    };
                    let level = level.unwrap_or_else(|| self.0.max_level());
                    Ok($Ciphertext(encryptor.encrypt_at(&plaintext.0, level)?))
                })
            }
        }

        /// Decrypts for the owner of the secret key.
        ///
        /// - `params`: the ring with the plaintext modulus; one key serves several moduli.
        /// - `secret`: the key.
        /// - `threads`: how many work; 0 or `None` is one for each processor.
        #[pyclass(frozen, module = "sudare._core")]
        pub struct $Decryptor(exact::IntegerParams, Arc<keys::SecretKey>, Threads);

        #[pymethods]
        impl $Decryptor {
            #[new]
            #[pyo3(signature = (params, secret, *, threads = None))]
            fn new(params: &IntegerParams, secret: &SecretKey, threads: Option<Workers>) -> Self {
                Self(params.0.clone(), secret.0.clone(), pool(threads))
            }

            /// Decrypts. Raises `KeyMismatchError` for a ciphertext of another set, modulus or key.
            fn decrypt(&self, py: Python<'_>, ciphertext: &$Ciphertext) -> Result<IntegerPlaintext> {
                on(py, &self.2, || {
                    let decryptor = exact::Decryptor::<$Scheme>::new(&self.0, &self.1)?;
                    Ok(IntegerPlaintext(decryptor.decrypt(&ciphertext.0)?))
                })
            }

            /// Bits of noise that the ciphertext could still take, measured with the secret key: at or below zero it
            /// decrypts wrongly. Never less than its `headroom`. Raises as `decrypt`.
            fn noise_budget(&self, py: Python<'_>, ciphertext: &$Ciphertext) -> Result<f64> {
                on(py, &self.2, || Ok(exact::Decryptor::<$Scheme>::new(&self.0, &self.1)?.noise_budget(&ciphertext.0)?))
            }

            fn __repr__(&self) -> String {
                format!("Decryptor(key {}, hidden)", self.1.id())
            }
        }

        /// Computes on ciphertexts with a server's keys. Operands are never changed.
        ///
        /// - `params`: the ring with the plaintext modulus; evaluators for several moduli share keys.
        /// - `keys`: relinearisation and rotation keys; an operation without its key is refused.
        /// - `threads`: how many work; 0 or `None` is one for each processor.
        ///
        /// Raises `KeyMismatchError` for keys of another set.
        #[pyclass(frozen, module = "sudare._core")]
        pub struct $Evaluator(exact::Evaluator<$Scheme>, Threads);

        impl $Evaluator {
            pub(super) fn of(evaluator: exact::Evaluator<$Scheme>, threads: Threads) -> Self {
                Self(evaluator, threads)
            }

            fn one<F>(&self, py: Python<'_>, work: F) -> Result<$Ciphertext>
            where
                F: FnOnce(&exact::Evaluator<$Scheme>) -> std::result::Result<exact::Ciphertext<$Scheme>, ExactError>
                    + Send,
            {
                on(py, &self.1, || Ok($Ciphertext(work(&self.0)?)))
            }
        }

        #[pymethods]
        impl $Evaluator {
            #[new]
            #[pyo3(signature = (params, keys, *, threads = None))]
            fn new(params: &IntegerParams, keys: &EvalKeys, threads: Option<Workers>) -> Result<Self> {
                let keys: Arc<dyn KeySource> = keys.0.clone();
                Ok(Self(exact::Evaluator::new(&params.0, keys)?, pool(threads)))
            }

            /// Operations done since the start or the last reset: additions, rotations, products with plaintexts
            /// (`cmult`) and of ciphertexts (`mult`), relinearisations and key switches.
            fn counters(&self) -> BTreeMap<&'static str, u64> {
                counted(self.0.counters())
            }

            /// Sets all counters to zero.
            fn reset_counters(&self) {
                self.0.reset_counters();
            }

            /// a + b. Raises `PrecisionError` for noise that the modulus does not hold, `KeyMismatchError` for ciphertexts of
            /// another set, modulus or key.
            fn add(&self, py: Python<'_>, a: &$Ciphertext, b: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.add(&a.0, &b.0))
            }

            /// a − b. Raises as `add`.
            fn sub(&self, py: Python<'_>, a: &$Ciphertext, b: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.sub(&a.0, &b.0))
            }

            /// −a. Raises `KeyMismatchError` for a ciphertext of another set, modulus or key.
            fn negate(&self, py: Python<'_>, a: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.negate(&a.0))
            }

            /// a + p. Raises as `add`.
            fn add_plain(&self, py: Python<'_>, a: &$Ciphertext, p: &IntegerPlaintext) -> Result<$Ciphertext> {
                self.one(py, |e| e.add_plain(&a.0, &p.0))
            }

            /// a − p. Raises as `add`.
            fn sub_plain(&self, py: Python<'_>, a: &$Ciphertext, p: &IntegerPlaintext) -> Result<$Ciphertext> {
                self.one(py, |e| e.sub_plain(&a.0, &p.0))
            }

            /// a · p. Raises as `add`.
            fn mul_plain(&self, py: Python<'_>, a: &$Ciphertext, p: &IntegerPlaintext) -> Result<$Ciphertext> {
                self.one(py, |e| e.mul_plain(&a.0, &p.0))
            }

            /// a · value for an integer. Raises as `add`.
            fn mul_integer(&self, py: Python<'_>, a: &$Ciphertext, value: i64) -> Result<$Ciphertext> {
                self.one(py, |e| e.mul_integer(&a.0, value))
            }

            /// The same message with another plaintext factor, invertible modulo t. Raises `FormatError` for one that is not, and
            /// as `add`.
            fn with_factor(&self, py: Python<'_>, a: &$Ciphertext, factor: u64) -> Result<$Ciphertext> {
                self.one(py, |e| e.with_factor(&a.0, factor))
            }

            /// The same message at a lower level, with its noise divided by the primes that go. Raises `LevelError` for a
            /// higher level, `PrecisionError` for one that does not hold the noise.
            fn drop_to(&self, py: Python<'_>, a: &$Ciphertext, level: usize) -> Result<$Ciphertext> {
                self.one(py, |e| e.drop_to(&a.0, level))
            }

            /// a · b with three parts: for results that are added up or decrypted next. Raises `ShapeError` for an operand of three parts, and as `add`.
            fn mul(&self, py: Python<'_>, a: &$Ciphertext, b: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.mul(&a.0, &b.0))
            }

            /// Σ a_i · b_i with three parts: one relinearisation after it serves all products. Raises as `mul`, and
            /// `ShapeError` for lists that are empty or not equally long.
            fn dot(&self, py: Python<'_>, a: Vec<Py<$Ciphertext>>, b: Vec<Py<$Ciphertext>>) -> Result<$Ciphertext> {
                let [a, b] = [&a, &b].map(|all| all.iter().map(|c| &c.get().0).collect::<Vec<_>>());
                self.one(py, |e| e.dot(&a, &b))
            }

            /// a · b as the scheme multiplies: relinearised, and in BGV with its modulus switched until the noise is about that of
            /// rounding. Raises as `mul` and `relinearize`.
            fn mul_relin(&self, py: Python<'_>, a: &$Ciphertext, b: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.mul_relin(&a.0, &b.0))
            }

            /// a², as `mul_relin`, and raises as it.
            fn square(&self, py: Python<'_>, a: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.square(&a.0))
            }

            /// Σ a_i · b_i as `mul_relin`: one relinearisation for all. Raises as `dot` and `relinearize`.
            fn dot_relin(
                &self,
                py: Python<'_>,
                a: Vec<Py<$Ciphertext>>,
                b: Vec<Py<$Ciphertext>>,
            ) -> Result<$Ciphertext> {
                let [a, b] = [&a, &b].map(|all| all.iter().map(|c| &c.get().0).collect::<Vec<_>>());
                self.one(py, |e| e.dot_relin(&a, &b))
            }

            /// Three parts to two. Raises `MissingKeyError` without the relinearisation key, `LevelError` if it serves lower
            /// levels, and as `add`.
            fn relinearize(&self, py: Python<'_>, a: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.relinearize(&a.0))
            }

            /// Both rows of slots turned left by a step of any sign. Raises `MissingKeyError` for a step without a key, and as
            /// `add`.
            fn rotate_rows(&self, py: Python<'_>, a: &$Ciphertext, step: i64) -> Result<$Ciphertext> {
                self.one(py, |e| e.rotate_rows(&a.0, step))
            }

            /// Both rows of slots exchanged. Raises as `rotate_rows`.
            fn rotate_columns(&self, py: Python<'_>, a: &$Ciphertext) -> Result<$Ciphertext> {
                self.one(py, |e| e.rotate_columns(&a.0))
            }

            /// X ↦ X^element, an odd number below 2N. Raises as `rotate_rows`.
            fn automorphism(&self, py: Python<'_>, a: &$Ciphertext, element: u64) -> Result<$Ciphertext> {
                self.one(py, |e| e.automorphism(&a.0, element, 0))
            }

            /// Rotations of one ciphertext by several steps, which share one decomposition (hoisting). Raises as
            /// `rotate_rows`.
            fn rotate_many(&self, py: Python<'_>, a: &$Ciphertext, steps: Vec<i64>) -> Result<Vec<$Ciphertext>> {
                on(py, &self.1, || Ok(self.0.rotate_many(&a.0, &steps)?.into_iter().map($Ciphertext).collect()))
            }

            /// Σ of the images under automorphisms, of which 1 is the ciphertext itself. Raises as `rotate_rows`.
            fn sum_of_automorphisms(&self, py: Python<'_>, a: &$Ciphertext, elements: Vec<u64>) -> Result<$Ciphertext> {
                self.one(py, |e| e.sum_of_automorphisms(&a.0, &elements))
            }

            /// The sum of each row's slots in all of them, with `columns` of both rows. Raises as `rotate_rows`.
            fn sum_slots(&self, py: Python<'_>, a: &$Ciphertext, columns: bool) -> Result<$Ciphertext> {
                self.one(py, |e| e.sum_slots(&a.0, columns))
            }
        }
    };
}

scheme!(Bfv, BfvCiphertext, BfvEncryptor, BfvDecryptor, BfvEvaluator);
scheme!(Bgv, BgvCiphertext, BgvEncryptor, BgvDecryptor, BgvEvaluator);
