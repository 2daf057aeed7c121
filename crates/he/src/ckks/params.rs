//! Parameters of CKKS: a set of RLWE parameters, a scale, and the embedding that packs slots.

use crate::error::{HeError, parameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::embedding::Embedding;
use sudare_ring::memo::Once;
use sudare_rlwe as rlwe;
use sudare_rlwe::params::SchemeTag;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// Parameters as a person writes them.
///
/// The first prime holds a result: it has to be larger than Δ times the values. Each further prime is a level, and is best
/// near Δ, so that a rescale brings the scale back to what it was.
///
/// ```
/// use sudare_he::ckks::ParamsLiteral;
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// // Three products one after another, about 40 bits behind the point.
/// let literal = ParamsLiteral::with_depth(3, 40, Security::Bits128)?;
/// assert_eq!(literal.q_bits, [49, 40, 40, 40]);
/// let params = literal.build()?;
/// assert_eq!((params.max_level(), params.slots()), (3, params.degree() / 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamsLiteral {
    /// Ring, primes, secret and security.
    #[serde(flatten)]
    pub rlwe: rlwe::params::ParamsLiteral,
    /// log2 of the default scale Δ, 1 to 120.
    pub log_scale: u32,
}

/// A CKKS literal is an RLWE literal with a scale.
impl Deref for ParamsLiteral {
    type Target = rlwe::params::ParamsLiteral;

    fn deref(&self) -> &Self::Target {
        &self.rlwe
    }
}

impl DerefMut for ParamsLiteral {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.rlwe
    }
}

impl ParamsLiteral {
    /// The set of the 3-D matrix product paper (its Table 4): N = 16384,
    /// {60, 40, 40, 40 | 60}, Δ = 2^40.
    pub fn paper_matmul() -> Self {
        Self {
            rlwe: rlwe::params::ParamsLiteral {
                log_n: 14,
                q_bits: vec![60, 40, 40, 40],
                p_bits: vec![60],
                digit_limbs: 1,
                secret: SecretDistribution::Ternary,
                security: Security::Bits128,
            },
            log_scale: 40,
        }
    }

    /// The default set for a multiplicative depth: primes below 2^50, the least degree, 2^12 to 2^17, that
    /// holds them at the claimed security.
    ///
    /// `depth` counts products that follow one another, each with a rescale. `log_scale` is log2 Δ, and is taken as 20 where it
    /// is less and as 49 where it is more. The first prime has nine bits more, but no more than 49: at Δ = 2^40 results may reach 2^8.
    ///
    /// # Errors
    /// `RlweError::Parameters` if no degree up to 2^17 holds the depth.
    pub fn with_depth(depth: usize, log_scale: u32, security: Security) -> Result<Self, HeError> {
        let bits = log_scale.clamp(20, 49);
        let first = (bits + 9).min(49);
        let q_bits: Vec<u32> = std::iter::once(first).chain(std::iter::repeat_n(bits, depth)).collect();
        let total: u32 = q_bits.iter().sum();
        for log_n in 12..=17 {
            // Larger digits need fewer key bytes and more special primes; take the fewest
            // special primes that the degree leaves room for with at most four digits.
            for k in 1..=q_bits.len().div_ceil(2).max(1) {
                let digits = q_bits.len().div_ceil(k);
                let special = 49 * k as u32;
                let limit = max_log_qp(log_n, SecretDistribution::Ternary, security).unwrap_or(0);
                if total + special <= limit && (digits <= 4 || k >= q_bits.len().div_ceil(4)) {
                    let (p_bits, secret) = (vec![49; k], SecretDistribution::Ternary);
                    let rlwe = rlwe::params::ParamsLiteral { log_n, q_bits, p_bits, digit_limbs: k, secret, security };
                    return Ok(Self { rlwe, log_scale: bits });
                }
            }
        }
        Err(parameters(format!(
            "no degree up to 131072 holds depth {depth} at scale 2^{bits} and {}-bit security; take a smaller depth \
             or scale",
            security.bits()
        )))
    }

    /// Checks the literal and chooses its primes. Tables are made when they are first used.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a field out of its range, `RlweError::Insecure` where Q·P is larger than the degree carries at
    /// the claimed security, `RlweError::Ring` where there are too few primes of a size.
    pub fn build(&self) -> Result<Params, HeError> {
        check_scale(self.log_scale)?;
        Params::of(&self.rlwe.build(SchemeTag(self.log_scale))?)
    }
}

fn check_scale(log_scale: u32) -> Result<(), HeError> {
    if (1..=120).contains(&log_scale) {
        return Ok(());
    }
    Err(parameters(format!("log2 of the scale is 1 to 120, not {log_scale}")))
}

struct Inner {
    rlwe: rlwe::Params,
    literal: ParamsLiteral,
    /// Made when something is first encoded.
    embedding: Arc<Once<Embedding>>,
}

/// A checked parameter set. Cloning shares it. It is the set of RLWE parameters that keys belong to, with
/// what the encoding of slots needs.
#[derive(Clone)]
pub struct Params(Arc<Inner>);

impl Params {
    /// The set over RLWE parameters that were built for CKKS: their scheme's word is log2 of the scale.
    ///
    /// # Errors
    /// `RlweError::Parameters` if that is none.
    pub fn of(rlwe: &rlwe::Params) -> Result<Self, HeError> {
        let SchemeTag(log_scale) = rlwe.tag();
        check_scale(log_scale)?;
        Ok(Self::over(rlwe.clone(), log_scale, Arc::default()))
    }

    fn over(rlwe: rlwe::Params, log_scale: u32, embedding: Arc<Once<Embedding>>) -> Self {
        let literal = ParamsLiteral { rlwe: rlwe.literal().clone(), log_scale };
        Self(Arc::new(Inner { rlwe, literal, embedding }))
    }

    /// The same ring and scale over other primes: [`rlwe::Params::derived`].
    pub(crate) fn derived(
        &self,
        q: RnsBasis,
        p: RnsBasis,
        digit_limbs: usize,
        secret: SecretDistribution,
    ) -> Result<Self, HeError> {
        let derived = self.rlwe().derived(q, p, digit_limbs, secret)?;
        Ok(Self::over(derived, self.0.literal.log_scale, self.0.embedding.clone()))
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The RLWE parameters: what keys belong to.
    pub fn rlwe(&self) -> &rlwe::Params {
        &self.0.rlwe
    }

    /// Complex slots of a ciphertext, N/2.
    pub fn slots(&self) -> usize {
        self.degree() / 2
    }

    /// The default scale Δ.
    pub fn scale(&self) -> f64 {
        f64::from(self.0.literal.log_scale).exp2()
    }

    /// The canonical embedding of the ring.
    pub fn embedding(&self) -> &Embedding {
        self.0.embedding.get_or_init(|| match Embedding::new(self.degree()) {
            Ok(embedding) => Box::new(embedding),
            Err(e) => unreachable!("a degree that was checked: {e}"),
        })
    }
}

/// A CKKS set is a set of RLWE parameters with a scale.
impl Deref for Params {
    type Target = rlwe::Params;

    fn deref(&self) -> &rlwe::Params {
        &self.0.rlwe
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scale 2^{}, {:?}", self.0.literal.log_scale, self.0.rlwe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_sets_are_secure() {
        let paper = ParamsLiteral::paper_matmul().build().unwrap();
        assert_eq!(paper.log_qp().round(), 240.0);
        assert_eq!(paper.max_level(), 3);
        for depth in 0..20 {
            let set = ParamsLiteral::with_depth(depth, 40, Security::Bits128).unwrap().build().unwrap();
            assert_eq!(set.max_level(), depth);
            assert!(set.security() >= Security::Bits128);
            assert!(set.q().primes().chain(set.p().primes()).all(|q| q >> 50 == 0));
        }
    }

    #[test]
    fn scales_are_checked_and_name_the_set() {
        let mut literal = ParamsLiteral::paper_matmul();
        let hash = literal.build().unwrap().hash();
        assert_eq!(Params::of(&literal.build().unwrap()).unwrap().literal(), &literal);
        literal.log_scale = 39;
        assert_ne!(literal.build().unwrap().hash(), hash);
        for log_scale in [0, 121] {
            literal.log_scale = log_scale;
            assert!(literal.build().is_err());
        }
    }
}
