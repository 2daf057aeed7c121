//! Exchange with Lattigo: parameters, keys, plaintexts and ciphertexts of CKKS, BFV and BGV in its binary format.

use super::ckks::{CkksCiphertext, CkksParams, CkksPlaintext};
use super::exact::{BfvCiphertext, BgvCiphertext, IntegerParams, IntegerPlaintext};
use super::keys::{EvalKeys, PublicKey, SecretKey};
use super::params::{Claim, claimed};
use crate::error::{Refusal, Result, raised};
use crate::work::{bytes, long};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use sudare_exact as exact;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_he::ckks;
use sudare_lattigo::{Claim as Bounds, Exchange, Noise, Packing, params};
use sudare_ring::ErrorKind;
use sudare_ring::random::Seed;
use sudare_rlwe::KeyId;

/// The name of a secret key: of something under it, or 16 bytes.
pub struct Named(KeyId);

impl<'a, 'py> FromPyObject<'a, 'py> for Named {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(key) = given.cast::<SecretKey>() {
            return Ok(Self(key.get().0.id()));
        }
        if let Ok(key) = given.cast::<PublicKey>() {
            return Ok(Self(key.get().0.id()));
        }
        if let Ok(keys) = given.cast::<EvalKeys>() {
            return Ok(Self(keys.get().0.id()));
        }
        let name = given.extract::<&[u8]>().ok().and_then(|name| name.try_into().ok());
        name.map(|name| Self(KeyId(name))).ok_or_else(|| {
            let text = "a key is named by a SecretKey, PublicKey or EvalKeys under it, or by 16 bytes of your own";
            raised(given.py(), ErrorKind::Usage, text)
        })
    }
}

/// A name that nothing has yet.
fn random() -> Result<KeyId> {
    let mut name = [0; 16];
    Seed::from_entropy()?.stream(0).fill_bytes(&mut name);
    Ok(KeyId(name))
}

/// What is said of a ciphertext's noise: "secret_key" or "public_key" for a fresh encryption under such a key, or a bound.
pub struct Said(Noise);

impl<'a, 'py> FromPyObject<'a, 'py> for Said {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let fresh = match given.extract::<&str>() {
            Ok("secret_key") => Some(Noise::FreshSecretKey),
            Ok("public_key") => Some(Noise::FreshPublicKey),
            _ => None,
        };
        fresh.or_else(|| given.extract().ok().map(Noise::Bound)).map(Self).ok_or_else(|| {
            let text =
                "noise is \"secret_key\" or \"public_key\" for what was just encrypted under one, or a bound on it";
            raised(given.py(), ErrorKind::Usage, text)
        })
    }
}

/// Slots that hold a message; 0 for one in coefficients.
fn slots(packing: Packing) -> usize {
    match packing {
        Packing::Slots { log_rows, log_columns } => 1 << (log_rows + log_columns),
        Packing::Coefficients => 0,
    }
}

/// Where a message stands in slots of so many rows.
fn packing(slots: usize, log_rows: u32) -> Result<Packing> {
    match slots {
        0 => Ok(Packing::Coefficients),
        _ if slots.is_power_of_two() && slots.ilog2() >= log_rows => {
            Ok(Packing::Slots { log_rows, log_columns: slots.ilog2() - log_rows })
        }
        _ => {
            let least = 1 << log_rows;
            let words =
                format!("slots is a power of two from {least}, or 0 for a message in coefficients, not {slots}");
            Err(Refusal::Refused(ErrorKind::Usage, words))
        }
    }
}

/// The exchange of a set, which every scheme's keys go through alike.
enum Set {
    Ckks(Arc<Exchange<ckks::Params>>),
    Integer(Arc<Exchange<exact::IntegerParams>>),
}

macro_rules! through {
    ($set:expr, $exchange:ident => $work:expr) => {
        match $set {
            Set::Ckks($exchange) => $work,
            Set::Integer($exchange) => $work,
        }
    };
}

/// Keys as Lattigo has them, of any scheme.
#[pyclass(frozen, subclass, module = "sudare._core")]
pub struct RlweExchange(Set);

#[pymethods]
impl RlweExchange {
    /// Reads a secret key (`rlwe.SecretKey`). Lattigo names no keys: without a `key`, which is 16 bytes or something under the
    /// same key, its name here is random. Raises `FormatError` for other bytes, `PlanError` for what is no secret of the set.
    #[pyo3(signature = (data, key = None))]
    fn read_secret_key(&self, py: Python<'_>, data: &[u8], key: Option<Named>) -> Result<SecretKey> {
        long(py, || {
            let key = key.map_or_else(random, |key| Ok(key.0))?;
            Ok(SecretKey(Arc::new(through!(&self.0, exchange => exchange.read_secret_key(key, data))?)))
        })
    }

    /// The bytes of a secret key. Whoever reads them reads everything. Raises `KeyMismatchError` for a key of another set.
    fn write_secret_key<'py>(&self, py: Python<'py>, secret: &SecretKey) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(through!(&self.0, exchange => exchange.write_secret_key(&secret.0))?))
    }

    /// Reads a public key (`rlwe.PublicKey`) under a `key`, which is 16 bytes or something under it. Raises `FormatError` for
    /// other bytes, `UnsupportedError` for a compressed one.
    fn read_public_key(&self, py: Python<'_>, data: &[u8], key: Named) -> Result<PublicKey> {
        long(py, || Ok(PublicKey(Arc::new(through!(&self.0, exchange => exchange.read_public_key(key.0, data))?))))
    }

    /// The bytes of a new public key of the secret key: Lattigo's covers the special primes too, and ours does not. Raises
    /// `KeyMismatchError` for a key of another set.
    fn write_public_key<'py>(&self, py: Python<'py>, secret: &SecretKey) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(through!(&self.0, exchange => exchange.write_public_key(&secret.0))?))
    }

    /// Reads a server's keys (`rlwe.MemEvaluationKeySet`) under a `key`, which is 16 bytes or something under it. Raises as
    /// `read_public_key`, and `UnsupportedError` for digits that are none of ours.
    fn read_eval_keys(&self, py: Python<'_>, data: &[u8], key: Named) -> Result<EvalKeys> {
        long(py, || Ok(EvalKeys(Arc::new(through!(&self.0, exchange => exchange.read_eval_keys(key.0, data))?))))
    }

    /// The bytes of a server's keys. Raises `KeyMismatchError` for keys of another set, `UnsupportedError` where a digit has
    /// not as many data primes as there are special primes.
    fn write_eval_keys<'py>(&self, py: Python<'py>, keys: &EvalKeys) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(through!(&self.0, exchange => exchange.write_eval_keys(&keys.0))?))
    }
}

/// Reads and writes objects of one set of CKKS in the binary format of Lattigo v6. Its bytes say nothing of bounds: whoever
/// reads a ciphertext states them, and too small ones give wrong numbers.
///
/// - `params`: the set; `Exchange.from_json` takes Lattigo's own.
#[pyclass(frozen, extends = RlweExchange, module = "sudare._core")]
pub struct CkksExchange(Arc<Exchange<ckks::Params>>);

impl CkksExchange {
    fn class(py: Python<'_>, params: ckks::Params) -> Result<PyClassInitializer<Self>> {
        let exchange = Arc::new(long(py, || Ok(Exchange::new(params)?))?);
        Ok(PyClassInitializer::from(RlweExchange(Set::Ckks(exchange.clone()))).add_subclass(Self(exchange)))
    }

    fn packing(&self, slots: Option<usize>) -> Result<Packing> {
        slots.map_or_else(|| Ok(self.0.all_slots()), |slots| packing(slots, 0))
    }
}

#[pymethods]
impl CkksExchange {
    #[new]
    fn new(py: Python<'_>, params: &CkksParams) -> Result<PyClassInitializer<Self>> {
        Self::class(py, params.0.clone())
    }

    /// The exchange of the set that a `ckks.Parameters` is as JSON. Security is claimed and checked as for `Params`. Raises
    /// `FormatError` for other text, `UnsupportedError` for another ring, secret or error, and as `Params`.
    #[staticmethod]
    #[pyo3(signature = (json, security = None))]
    fn from_json(py: Python<'_>, json: &str, security: Option<Claim>) -> Result<Py<Self>> {
        let made = long(py, || Ok(params::ckks_from_json(json.as_bytes(), claimed(security))?))?;
        Py::new(py, Self::class(py, made)?).map_err(Refusal::Raised)
    }

    /// The set as Lattigo reads it. Raises `UnsupportedError` for a secret that Lattigo has not.
    fn to_json(&self) -> Result<String> {
        Ok(params::ckks_to_json(self.0.params())?)
    }

    /// The set.
    #[getter]
    fn params(&self, py: Python<'_>) -> Result<Py<CkksParams>> {
        Py::new(py, CkksParams::class(self.0.params().clone())).map_err(Refusal::Raised)
    }

    /// Reads a ciphertext under a `key`, which is 16 bytes or something under it, and how many slots its message fills: fewer
    /// than the ring has repeat among all of them, and 0 is a message in coefficients.
    ///
    /// `bound` is on the absolute values of slots, of coefficients on their Euclidean norm. `noise` is "secret_key" or
    /// "public_key" for what was just encrypted under one, or a bound as `Ciphertext.noise`. Raises `FormatError` for other
    /// bytes, `InputError` for bounds that are no numbers, `PrecisionError` for a bound that the level does not hold.
    #[pyo3(signature = (data, key, *, bound, noise))]
    fn read_ciphertext(
        &self,
        py: Python<'_>,
        data: &[u8],
        key: Named,
        bound: f64,
        noise: Said,
    ) -> Result<(CkksCiphertext, usize)> {
        let bounds = Bounds { bound, noise: noise.0 };
        let (read, packing) = long(py, || Ok(self.0.read_ciphertext(key.0, data, bounds)?))?;
        Ok((CkksCiphertext(read), slots(packing)))
    }

    /// The bytes of a ciphertext whose message fills `slots` slots, all where nothing is said, or with 0 coefficients. Raises
    /// `KeyMismatchError` for one of another set, `UnsupportedError` for slots that the ring does not have.
    #[pyo3(signature = (ciphertext, slots = None))]
    fn write_ciphertext<'py>(
        &self,
        py: Python<'py>,
        ciphertext: &CkksCiphertext,
        slots: Option<usize>,
    ) -> Result<Bound<'py, PyBytes>> {
        let packing = self.packing(slots)?;
        bytes(py, || Ok(self.0.write_ciphertext(&ciphertext.0, packing)?))
    }

    /// Reads a plaintext whose values have a bound, and how many slots its message fills. Raises as `read_ciphertext`.
    fn read_plaintext(&self, py: Python<'_>, data: &[u8], bound: f64) -> Result<(CkksPlaintext, usize)> {
        let (read, packing) = long(py, || Ok(self.0.read_plaintext(data, bound)?))?;
        Ok((CkksPlaintext::from(read), slots(packing)))
    }

    /// The bytes of a plaintext. As `write_ciphertext`.
    #[pyo3(signature = (plaintext, slots = None))]
    fn write_plaintext<'py>(
        &self,
        py: Python<'py>,
        plaintext: &CkksPlaintext,
        slots: Option<usize>,
    ) -> Result<Bound<'py, PyBytes>> {
        let packing = self.packing(slots)?;
        bytes(py, || Ok(self.0.write_plaintext(&plaintext.encoded(), packing)?))
    }
}

/// A scheme's class.
macro_rules! integers {
    ($Scheme:ident, $Exchange:ident, $Ciphertext:ident) => {
        /// Reads and writes objects of one set of BFV or BGV in the binary format of Lattigo v6, whose scheme `bgv` is both. Its
        /// bytes say nothing of noise: whoever reads a ciphertext states it, and too little gives wrong numbers.
        ///
        /// - `params`: the set; `Exchange.from_json` takes Lattigo's own.
        ///
        /// Raises `UnsupportedError` for a plaintext modulus that Lattigo does not take.
        #[pyclass(frozen, extends = RlweExchange, module = "sudare._core")]
        pub struct $Exchange(Arc<Exchange<exact::IntegerParams>>);

        impl $Exchange {
            fn class(py: Python<'_>, params: exact::IntegerParams) -> Result<PyClassInitializer<Self>> {
                let exchange = Arc::new(long(py, || Ok(Exchange::new(params)?))?);
                Ok(PyClassInitializer::from(RlweExchange(Set::Integer(exchange.clone()))).add_subclass(Self(exchange)))
            }

            fn packing(&self, slots: Option<usize>) -> Result<Packing> {
                match slots {
                    Some(slots) => packing(slots, 1),
                    None if self.0.params().has_slots() => Ok(self.0.all_slots()?),
                    None => Ok(Packing::Coefficients),
                }
            }
        }

        #[pymethods]
        impl $Exchange {
            #[new]
            fn new(py: Python<'_>, params: &IntegerParams) -> Result<PyClassInitializer<Self>> {
                Self::class(py, params.0.clone())
            }

            /// The exchange of the set that a `bgv.Parameters` is as JSON. Security is claimed and checked as for
            /// `IntegerParams`. Raises `FormatError` for other text, `UnsupportedError` for another ring, secret or error, and
            /// as `IntegerParams`.
            #[staticmethod]
            #[pyo3(signature = (json, security = None))]
            fn from_json(py: Python<'_>, json: &str, security: Option<Claim>) -> Result<Py<Self>> {
                let made = long(py, || Ok(params::integer_from_json(json.as_bytes(), claimed(security))?))?;
                Py::new(py, Self::class(py, made)?).map_err(Refusal::Raised)
            }

            /// The set as Lattigo reads it. Raises `UnsupportedError` for a secret that Lattigo has not.
            fn to_json(&self) -> Result<String> {
                Ok(params::integer_to_json(self.0.params())?)
            }

            /// The set.
            #[getter]
            fn params(&self, py: Python<'_>) -> Result<Py<IntegerParams>> {
                Py::new(py, IntegerParams::class(self.0.params().clone())).map_err(Refusal::Raised)
            }

            /// The scale at which Lattigo should encode for BFV at a level, so that reading multiplies no noise. Raises
            /// `LevelError` for a level that there is not.
            fn bfv_scale(&self, level: usize) -> Result<u64> {
                Ok(self.0.bfv_scale(level)?)
            }

            /// Reads a ciphertext under a `key`, which is 16 bytes or something under it, and how many slots its message
            /// fills, of which 0 is a message in coefficients. `noise` is "secret_key" or "public_key" for what was just
            /// encrypted under one, or a bound as `Ciphertext.noise`.
            ///
            /// Raises `FormatError` for other bytes, `InputError` for a bound that is no number, `PrecisionError` for noise
            /// that no such ciphertext has, `KeyMismatchError` for another plaintext modulus.
            #[pyo3(signature = (data, key, *, noise))]
            fn read_ciphertext(
                &self,
                py: Python<'_>,
                data: &[u8],
                key: Named,
                noise: Said,
            ) -> Result<($Ciphertext, usize)> {
                let (read, packing) = long(py, || Ok(self.0.read_ciphertext::<$Scheme>(key.0, data, noise.0)?))?;
                Ok(($Ciphertext(read), slots(packing)))
            }

            /// The bytes of a ciphertext whose message fills `slots` slots, all where nothing is said, or with 0
            /// coefficients. Raises `KeyMismatchError` for one of another set, `UnsupportedError` for slots that t does not
            /// have.
            #[pyo3(signature = (ciphertext, slots = None))]
            fn write_ciphertext<'py>(
                &self,
                py: Python<'py>,
                ciphertext: &$Ciphertext,
                slots: Option<usize>,
            ) -> Result<Bound<'py, PyBytes>> {
                let packing = self.packing(slots)?;
                bytes(py, || Ok(self.0.write_ciphertext(&ciphertext.0, packing)?))
            }

            /// Reads a plaintext, and how many slots its message fills. Raises as `read_ciphertext`.
            fn read_plaintext(&self, py: Python<'_>, data: &[u8]) -> Result<(IntegerPlaintext, usize)> {
                let (read, packing) = long(py, || Ok(self.0.read_plaintext(data)?))?;
                Ok((IntegerPlaintext(read), slots(packing)))
            }

            /// The bytes of a plaintext at a level, the highest where nothing is said. As `write_ciphertext`, and raises
            /// `LevelError` for a level that there is not.
            #[pyo3(signature = (plaintext, slots = None, *, level = None))]
            fn write_plaintext<'py>(
                &self,
                py: Python<'py>,
                plaintext: &IntegerPlaintext,
                slots: Option<usize>,
                level: Option<usize>,
            ) -> Result<Bound<'py, PyBytes>> {
                let (packing, level) = (self.packing(slots)?, level.unwrap_or_else(|| self.0.params().max_level()));
                bytes(py, || Ok(self.0.write_plaintext(&plaintext.0, level, packing)?))
            }
        }
    };
}

integers!(Bfv, BfvExchange, BfvCiphertext);
integers!(Bgv, BgvExchange, BgvCiphertext);
