//! Parameters as Lattigo's JSON: what `MarshalJSON` and `MarshalBinary` of `ckks.Parameters` and `bgv.Parameters` give.
//!
//! Theirs name the primes; security is not among them, so whoever reads states what is claimed. The first prime of P belongs
//! to a digit's first prime of Q and so on: a digit has as many data primes as there are special primes.

use crate::THEIR_SIGMA;
use crate::error::{LattigoError, unsupported};
use serde::{Deserialize, Serialize};
use sudare_exact::IntegerParams;
use sudare_he::ckks;
use sudare_ring::error::told;
use sudare_ring::random::SIGMA;
use sudare_rlwe as rlwe;
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};

/// The word of BFV and BGV in a set's hash.
const EXACT: SchemeTag = SchemeTag(1);
/// Where six standard deviations cut their errors off.
const THEIR_BOUND: f64 = 19.2;
/// How far a number of JSON may be from the one that is meant.
const NEAR: f64 = 1e-9;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Literal {
    log_n: u32,
    /// log2 of the order of the roots that primes were chosen for.
    #[serde(default)]
    log_nth_root: u32,
    #[serde(default)]
    q: Option<Vec<u64>>,
    #[serde(default)]
    p: Option<Vec<u64>>,
    #[serde(default, skip_serializing)]
    log_q: Option<Vec<u32>>,
    #[serde(default, skip_serializing)]
    log_p: Option<Vec<u32>>,
    #[serde(default)]
    xe: Option<Distribution>,
    #[serde(default)]
    xs: Option<Distribution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ring_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_default_scale: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plaintext_modulus: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "Type", deny_unknown_fields)]
enum Distribution {
    Ternary {
        /// Probability that a coefficient is not zero.
        #[serde(rename = "P", default, skip_serializing_if = "Option::is_none")]
        density: Option<f64>,
        /// Coefficients that are not zero.
        #[serde(rename = "H", default, skip_serializing_if = "Option::is_none")]
        weight: Option<u32>,
    },
    DiscreteGaussian {
        #[serde(rename = "Sigma")]
        sigma: f64,
        #[serde(rename = "Bound")]
        bound: f64,
    },
}

const WHAT: &str = "the parameters";

fn read(json: &[u8]) -> Result<Literal, LattigoError> {
    serde_json::from_slice(json).map_err(|e| LattigoError::Text { what: WHAT, reason: told(e) })
}

impl Literal {
    fn build(&self, tag: SchemeTag, security: Security) -> Result<rlwe::Params, LattigoError> {
        let unsupported = |reason: &str| Err(unsupported(WHAT, reason));
        let (Some(q), None, None) = (&self.q, &self.log_q, &self.log_p) else {
            return unsupported("their primes are not named; write the parameters in Lattigo, and not their literal");
        };
        if self.ring_type.as_deref().is_some_and(|ring| ring != "Standard") {
            return unsupported("the only ring here is Z[X]/(X^N + 1), Lattigo's Standard");
        }
        match &self.xe {
            None => {}
            Some(Distribution::DiscreteGaussian { sigma, bound })
                if (SIGMA - NEAR..=THEIR_SIGMA + NEAR).contains(sigma) && *bound <= THEIR_BOUND + NEAR => {}
            Some(_) => {
                return unsupported(
                    "noise is bounded here for Gaussian errors of a standard deviation from 3.19 to 3.2; take \
                     Lattigo's default",
                );
            }
        }
        let secret = match &self.xs {
            None => SecretDistribution::Ternary,
            Some(Distribution::Ternary { density: Some(p), weight: None | Some(0) })
                if (p - 2.0 / 3.0).abs() < NEAR =>
            {
                SecretDistribution::Ternary
            }
            Some(Distribution::Ternary { density: None, weight: Some(weight) }) => {
                SecretDistribution::FixedWeight { weight: *weight }
            }
            Some(_) => return unsupported("a secret has to be uniform ternary, or ternary of a fixed weight"),
        };
        let p = self.p.as_deref().unwrap_or(&[]);
        let digit_limbs = p.len().max(1);
        let literal =
            ParamsLiteral { log_n: self.log_n, q_bits: Vec::new(), p_bits: Vec::new(), digit_limbs, secret, security };
        Ok(literal.build_over(tag, q, p)?)
    }

    fn of(params: &rlwe::Params) -> Result<Self, LattigoError> {
        let (density, weight) = match params.literal().secret {
            SecretDistribution::Ternary => (Some(2.0 / 3.0), None),
            SecretDistribution::FixedWeight { weight } => (None, Some(weight)),
            _ => return Err(unsupported(WHAT, "a secret has to be uniform ternary, or ternary of a fixed weight")),
        };
        Ok(Self {
            log_n: params.log_n(),
            log_nth_root: params.log_n() + 1,
            q: Some(params.q().primes().collect()),
            p: Some(params.p().primes().collect()),
            log_q: None,
            log_p: None,
            xe: Some(Distribution::DiscreteGaussian { sigma: THEIR_SIGMA, bound: THEIR_BOUND }),
            xs: Some(Distribution::Ternary { density, weight }),
            ring_type: None,
            log_default_scale: None,
            plaintext_modulus: None,
        })
    }

    fn text(&self) -> Result<String, LattigoError> {
        serde_json::to_string(self).map_err(|e| LattigoError::Text { what: WHAT, reason: e.to_string() })
    }
}

/// The CKKS parameters of a `ckks.Parameters`, for which this security is claimed.
///
/// # Errors
/// [`LattigoError::Text`]; [`LattigoError::Unsupported`] for another ring, secret or error; `RingError::ModulusRange` for a
/// prime of 2^61 or more, `RlweError::Parameters` for a degree, a scale or digits that are not possible here, and
/// `RlweError::Insecure`.
pub fn ckks_from_json(json: &[u8], security: Security) -> Result<ckks::Params, LattigoError> {
    let literal = read(json)?;
    let Some(log_scale) = literal.log_default_scale else {
        return Err(LattigoError::Text {
            what: WHAT,
            reason: "they have no LogDefaultScale, so they are not of CKKS".into(),
        });
    };
    Ok(ckks::Params::of(&literal.build(SchemeTag(log_scale), security)?)?)
}

/// The same parameters for Lattigo.
///
/// # Errors
/// [`LattigoError::Unsupported`] for another secret than a ternary one.
pub fn ckks_to_json(params: &ckks::Params) -> Result<String, LattigoError> {
    let log_default_scale = Some(params.literal().log_scale);
    Literal { log_default_scale, ring_type: Some("Standard".into()), ..Literal::of(params.rlwe())? }.text()
}

/// The parameters of BFV and BGV of a `bgv.Parameters`, for which this security is claimed.
///
/// # Errors
/// As [`ckks_from_json`].
pub fn integer_from_json(json: &[u8], security: Security) -> Result<IntegerParams, LattigoError> {
    let literal = read(json)?;
    let Some(t) = literal.plaintext_modulus else {
        let reason = "they have no PlaintextModulus, so they are not of BFV or BGV".into();
        return Err(LattigoError::Text { what: WHAT, reason });
    };
    Ok(IntegerParams::new(&literal.build(EXACT, security)?, t)?)
}

/// The same parameters for Lattigo.
///
/// # Errors
/// As [`ckks_to_json`].
pub fn integer_to_json(params: &IntegerParams) -> Result<String, LattigoError> {
    Literal { plaintext_modulus: Some(params.t()), ..Literal::of(params.rlwe())? }.text()
}
