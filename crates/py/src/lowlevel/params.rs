//! Parameters of rings: what those of CKKS, BFV and BGV have in common.

use crate::error::{Refusal, Result, raised};
use pyo3::prelude::*;
use sudare_ring::ErrorKind;
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::{self as rlwe, RlweError};

/// A claim of security: 128, 192 or 256 bits, or none by the name "insecure".
#[derive(Clone, Copy)]
pub struct Claim(pub Security);

/// The claim where nothing is said.
pub fn claimed(claim: Option<Claim>) -> Security {
    claim.map_or(Security::Bits128, |claim| claim.0)
}

impl<'a, 'py> FromPyObject<'a, 'py> for Claim {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let by_name = given.extract::<&str>().ok().filter(|name| *name == "insecure").map(|_| Security::Insecure);
        by_name.or_else(|| given.extract().ok().and_then(Security::from_bits)).map(Self).ok_or_else(|| {
            let shown = given.repr().map_or_else(|_| "that".into(), |shown| shown.to_string());
            let text = format!("security is 128, 192 or 256 bits, or none by the name \"insecure\", not {shown}");
            raised(given.py(), ErrorKind::Usage, &text)
        })
    }
}

/// A set's ring, primes and secret as they are written in Python.
pub struct Written {
    pub log_n: u32,
    pub q_bits: Option<Vec<u32>>,
    pub p_bits: Option<Vec<u32>>,
    pub q: Option<Vec<u64>>,
    pub p: Option<Vec<u64>>,
    pub digit_limbs: usize,
    pub secret: String,
    pub weight: Option<u32>,
    pub security: Option<Claim>,
}

fn usage(words: impl Into<String>) -> Refusal {
    Refusal::Refused(ErrorKind::Usage, words.into())
}

fn distribution(secret: &str, weight: Option<u32>) -> Result<SecretDistribution> {
    match (secret, weight) {
        ("ternary", None) => Ok(SecretDistribution::Ternary),
        ("gaussian", None) => Ok(SecretDistribution::Gaussian),
        ("fixed_weight", Some(weight)) => Ok(SecretDistribution::FixedWeight { weight }),
        _ => {
            let with = weight.map_or_else(|| "without a weight".into(), |weight| format!("with weight={weight}"));
            Err(usage(format!(
                "a secret is \"ternary\" or \"gaussian\" without a weight, or \"fixed_weight\" with one, not \
                 {secret:?} {with}"
            )))
        }
    }
}

impl Written {
    /// Checks and builds the set, under a scheme's word.
    pub fn build(self, tag: SchemeTag) -> Result<rlwe::Params> {
        let Self { log_n, q_bits, p_bits, q, p, digit_limbs, .. } = self;
        let secret = distribution(&self.secret, self.weight)?;
        let written = |q_bits, p_bits| ParamsLiteral {
            log_n,
            q_bits,
            p_bits,
            digit_limbs,
            secret,
            security: claimed(self.security),
        };
        // Whoever names no special primes has none: a set without key switching.
        match (q_bits, p_bits, q, p) {
            (Some(q_bits), p_bits, None, None) => Ok(written(q_bits, p_bits.unwrap_or_default()).build(tag)?),
            (None, None, Some(q), p) => {
                Ok(written(Vec::new(), Vec::new()).build_over(tag, &q, &p.unwrap_or_default())?)
            }
            _ => Err(usage("give either q_bits and p_bits, or the primes themselves as q and p")),
        }
    }
}

/// A set of parameters of a ring: what keys belong to. Sets of CKKS, BFV and BGV are such sets with more.
#[pyclass(frozen, eq, subclass, module = "sudare._core")]
#[derive(PartialEq)]
pub struct RlweParams(pub rlwe::Params);

#[pymethods]
impl RlweParams {
    /// The ring degree N.
    #[getter]
    fn degree(&self) -> usize {
        self.0.degree()
    }

    /// log2 of the ring degree.
    #[getter]
    fn log_n(&self) -> u32 {
        self.0.log_n()
    }

    /// The highest level: how many primes a fresh ciphertext can lose.
    #[getter]
    fn max_level(&self) -> usize {
        self.0.max_level()
    }

    /// The data primes q_0, q_1, …; a ciphertext at level l is modulo the first l + 1.
    #[getter]
    fn q(&self) -> Vec<u64> {
        self.0.q().primes().collect()
    }

    /// The special primes of key switching.
    #[getter]
    fn p(&self) -> Vec<u64> {
        self.0.p().primes().collect()
    }

    /// Bits of each data prime.
    #[getter]
    fn q_bits(&self) -> Vec<u32> {
        self.0.literal().q_bits.clone()
    }

    /// Bits of each special prime.
    #[getter]
    fn p_bits(&self) -> Vec<u32> {
        self.0.literal().p_bits.clone()
    }

    /// Data primes in one digit of key switching.
    #[getter]
    fn digit_limbs(&self) -> usize {
        self.0.literal().digit_limbs
    }

    /// The secret's distribution: "ternary", "gaussian", "fixed_weight", or "ternary_sum" of several parties.
    #[getter]
    fn secret(&self) -> Result<&'static str> {
        match self.0.literal().secret {
            SecretDistribution::Ternary => Ok("ternary"),
            SecretDistribution::Gaussian => Ok("gaussian"),
            SecretDistribution::FixedWeight { .. } => Ok("fixed_weight"),
            SecretDistribution::TernarySum { .. } => Ok("ternary_sum"),
            _ => Err(RlweError::Internal { what: "the name of a secret's distribution" }.into()),
        }
    }

    /// Coefficients of the secret that are not zero, where their number is fixed.
    #[getter]
    fn weight(&self) -> Option<u32> {
        match self.0.literal().secret {
            SecretDistribution::FixedWeight { weight } => Some(weight),
            _ => None,
        }
    }

    /// log2 of the whole modulus Q·P, which the security rests on.
    #[getter]
    fn log_qp(&self) -> f64 {
        self.0.log_qp()
    }

    /// Bits of security that the set has against classical attacks, at least those claimed: 256, 192, 128, or 0 for less.
    #[getter]
    fn security(&self) -> u32 {
        self.0.security().bits()
    }

    /// The set's name on keys and ciphertexts, in hexadecimal digits.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash().to_string()
    }

    /// log2 of the modulus at a level. Raises `LevelError` for a level that there is not.
    fn log_q(&self, level: usize) -> Result<f64> {
        self.0.expect_level("log2 of a modulus", level)?;
        Ok(self.0.log_q(level))
    }

    /// The prime that a rescale at a level divides by. Raises as `log_q`.
    fn prime_at(&self, level: usize) -> Result<u64> {
        self.0.expect_level("a prime", level)?;
        Ok(self.0.prime_at(level))
    }

    /// Digits of key switching at a level. Raises as `log_q`.
    fn digits_at(&self, level: usize) -> Result<usize> {
        self.0.expect_level("digits of key switching", level)?;
        Ok(self.0.digits_at(level))
    }

    /// The Galois element that rotates slots left by a step of any sign, 5^step modulo 2N.
    fn rotation_element(&self, step: i64) -> u64 {
        self.0.rotation_element(step)
    }

    /// The Galois element of complex conjugation, or of the exchange of both rows of integers: 2N − 1.
    fn conjugation_element(&self) -> u64 {
        self.0.conjugation_element()
    }

    fn __hash__(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0.hash().0[i]))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The bytes of a set, if whoever reads them builds the same set: they hold the bits of primes.
pub fn travelling<B>(params: &rlwe::Params, bytes: B) -> Result<B> {
    let rebuilt = params.literal().build(params.tag());
    match rebuilt.is_ok_and(|rebuilt| rebuilt.same(params)) {
        true => Ok(bytes),
        false => Err(Refusal::Refused(
            ErrorKind::Unsupported,
            "primes that you gave yourself do not travel with their parameters; send q and p, and make the parameters \
             of them again"
                .into(),
        )),
    }
}
