//! Parameters of the scheme.

use super::noise::{Norms, equation_9};
use crate::error::parameters;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_ring::RnsBasis;
use sudare_ring::kernel::{IFMA_MODULUS_BITS, MAX_DEGREE, MIN_DEGREE};
use sudare_ring::ops::Composition;
use sudare_ring::prime::ntt_primes;
use sudare_ring::random::GaussianSampler;
use sudare_rlwe::noise::ERROR_SIGMA;
use sudare_rlwe::params::MAX_PRIMES;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp, security_of};
use sudare_rlwe::{ParamsHash, RlweError};

/// Largest plaintext modulus, so that t times an error coefficient is a signed word.
pub const MAX_PLAIN_MODULUS: u64 = 1 << 48;
/// Most parts that a ciphertext may be allowed.
pub const MAX_LENGTH: usize = 32;

/// Parameters as a person writes them: the paper's (n, q, t, σ) with the longest ciphertext.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamsLiteral {
    /// log2 of the ring degree n, 9 to 17.
    pub log_n: u32,
    /// Bits of each prime of q.
    pub q_bits: Vec<u32>,
    /// The plaintext modulus, 2 to 2^48.
    pub t: u64,
    /// Standard deviation σ of secret and errors, 3.19 to 64; below 3.19 only where no security is
    /// claimed.
    pub sigma: f64,
    /// Most parts of a ciphertext: two fresh, and one more for each product in it.
    pub max_length: usize,
    /// Security claimed; checked against the limits.
    pub security: Security,
}

impl ParamsLiteral {
    /// The cheapest set for `products` multiplications in a row, in a ring of degree `degree` or
    /// more, with coefficients modulo `t`: the least secure degree, σ = 3.19, and a modulus just
    /// above what correct decryption needs, in primes below 2^50.
    ///
    /// # Errors
    /// `RlweError::Parameters` if no degree up to 2^17 serves.
    pub fn for_products(degree: usize, t: u64, products: usize, security: Security) -> Result<Self, HeError> {
        Self::for_sums(degree, t, products, 1, security)
    }

    /// The same for sums of up to `terms` such results.
    ///
    /// # Errors
    /// As [`ParamsLiteral::for_products`].
    pub fn for_sums(degree: usize, t: u64, products: usize, terms: u64, security: Security) -> Result<Self, HeError> {
        let least = degree.max(MIN_DEGREE).checked_next_power_of_two().map_or(u32::MAX, usize::trailing_zeros);
        if products < MAX_LENGTH - 1 && (2..=MAX_PLAIN_MODULUS).contains(&t) {
            for log_n in least..=MAX_DEGREE.trailing_zeros() {
                let n = 1usize << log_n;
                let factors = products + 1;
                let needed = Norms::of_product(n, t, ERROR_SIGMA, factors).log_modulus();
                let needed = needed.max(equation_9(n, t, ERROR_SIGMA, factors)) + (terms.max(1) as f64).log2();
                // t is smaller than q as well.
                let needed = needed.max((t as f64).log2());
                let limit = max_log_qp(log_n, SecretDistribution::Gaussian, security).unwrap_or(0);
                if let Some(q_bits) = fewest_primes(n, needed, limit) {
                    return Ok(Self { log_n, q_bits, t, sigma: ERROR_SIGMA, max_length: products + 2, security });
                }
            }
        }
        Err(parameters(format!(
            "no ring of degree {degree} to {MAX_DEGREE} holds sums of {terms} results of {products} products in a row \
             modulo t = {t} with {}-bit security; ask for fewer products or terms, or a smaller t",
            security.bits()
        )))
    }

    /// Checks the literal and precomputes the set.
    ///
    /// # Errors
    /// `RlweError::Parameters`, among them a modulus under which the longest product could
    /// decrypt wrongly; `RlweError::Insecure` or `RlweError::Ring`.
    pub fn build(&self) -> Result<Params, HeError> {
        Params::new(self.clone())
    }

    /// Fresh ciphertexts in the longest product.
    fn factors(&self) -> usize {
        self.max_length - 1
    }
}

/// The fewest and smallest primes below 2^50 whose product is over 2^`needed`, at most `limit` bits.
fn fewest_primes(n: usize, needed: f64, limit: u32) -> Option<Vec<u32>> {
    let bits = needed.max(1.0).ceil() as u32;
    for count in bits.div_ceil(IFMA_MODULUS_BITS)..=(limit / 2).min(MAX_PRIMES as u32) {
        for each in bits.div_ceil(count).max(n.trailing_zeros() + 2)..=IFMA_MODULUS_BITS.min(limit / count) {
            // Primes of a large order are well below their power of two.
            let found = ntt_primes(n, each, count as usize, &[]).unwrap_or_default();
            if found.len() == count as usize && found.iter().map(|q| (*q as f64).log2()).sum::<f64>() > needed + 1e-9 {
                return Some(vec![each; count as usize]);
            }
        }
    }
    None
}

struct Inner {
    literal: ParamsLiteral,
    hash: ParamsHash,
    q: RnsBasis,
    sampler: GaussianSampler,
    composition: Composition,
    fresh: Norms,
}

/// A checked parameter set. Cloning shares it.
#[derive(Clone)]
pub struct Params(Arc<Inner>);

impl Params {
    fn new(literal: ParamsLiteral) -> Result<Self, HeError> {
        let fail = |reason: String| Err(parameters(reason));
        let n = 1usize.checked_shl(literal.log_n).unwrap_or(0);
        if !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return fail(format!("log2 N is 9 to 17, not {}", literal.log_n));
        }
        if literal.q_bits.is_empty() || literal.q_bits.len() > MAX_PRIMES {
            return fail(format!("q has 1 to {MAX_PRIMES} primes, not {}", literal.q_bits.len()));
        }
        if !(2..=MAX_PLAIN_MODULUS).contains(&literal.t) {
            return fail(format!("t is 2 to 2^48, not {}", literal.t));
        }
        if !(2..=MAX_LENGTH).contains(&literal.max_length) {
            return fail(format!("ciphertexts have 2 to {MAX_LENGTH} parts, not {}", literal.max_length));
        }
        // The limits are for σ = 3.19; a wider secret and wider errors are no easier to find.
        if literal.security != Security::Insecure && (literal.sigma.is_nan() || literal.sigma < ERROR_SIGMA) {
            return fail(format!(
                "the security limits hold for σ of at least {ERROR_SIGMA}, not {}; take a larger one",
                literal.sigma
            ));
        }
        let mut primes: Vec<u64> = Vec::new();
        for bits in &literal.q_bits {
            let found = ntt_primes(n, *bits, 1, &primes)?;
            primes.extend(found);
        }
        if primes.iter().any(|q| literal.t.is_multiple_of(*q)) {
            return fail(format!("t = {} shares a prime with q; take another one", literal.t));
        }
        let q = RnsBasis::new(n, &primes)?;
        let log_q = q.log2_product();
        let limit = max_log_qp(literal.log_n, SecretDistribution::Gaussian, literal.security).unwrap_or(0);
        if log_q > f64::from(limit) {
            let (degree, claimed) = (n, literal.security.bits());
            return Err(RlweError::Insecure { log_qp: log_q, degree, limit, claimed, weight: None }.into());
        }
        let sampler = match literal.sigma == ERROR_SIGMA {
            true => GaussianSampler::standard().clone(),
            false => GaussianSampler::new(literal.sigma)?,
        };
        let (t, factors) = (literal.t, literal.factors());
        let needed = Norms::of_product(n, t, literal.sigma, factors).log_modulus();
        let needed = needed.max(equation_9(n, t, literal.sigma, factors)).max((t as f64).log2());
        if needed >= log_q {
            return fail(format!(
                "a product of {factors} fresh ciphertexts decrypts for certain if log2 q is over {needed:.2}, and it is {log_q:.2}; take larger or more primes, or a smaller t, σ or max_length"
            ));
        }
        let hash = hash_of(&literal, &q);
        let composition = Composition::new(&q, t);
        let fresh = Norms::fresh(n, t, literal.sigma);
        Ok(Self(Arc::new(Inner { literal, hash, q, sampler, composition, fresh })))
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The set's name on keys and ciphertexts.
    pub fn hash(&self) -> ParamsHash {
        self.0.hash
    }

    /// The ring degree N.
    pub fn degree(&self) -> usize {
        self.0.q.degree()
    }

    /// The plaintext modulus t.
    pub fn t(&self) -> u64 {
        self.0.literal.t
    }

    /// The primes of q.
    pub fn q(&self) -> &RnsBasis {
        &self.0.q
    }

    /// log2 q.
    pub fn log_q(&self) -> f64 {
        self.0.q.log2_product()
    }

    /// Most parts of a ciphertext.
    pub fn max_length(&self) -> usize {
        self.0.literal.max_length
    }

    /// Security that the modulus really has, at least what was claimed.
    pub fn security(&self) -> Security {
        match self.0.literal.sigma >= ERROR_SIGMA {
            true => security_of(self.0.literal.log_n, SecretDistribution::Gaussian, self.log_q()),
            false => Security::Insecure,
        }
    }

    /// Bounds on a fresh phase.
    pub fn fresh_norms(&self) -> Norms {
        self.0.fresh
    }

    pub(crate) fn sampler(&self) -> &GaussianSampler {
        &self.0.sampler
    }

    pub(crate) fn composition(&self) -> &Composition {
        &self.0.composition
    }

    /// Refuses a phase that could wrap around modulo q.
    pub(crate) fn check(&self, operation: &'static str, norms: Norms) -> Result<(), HeError> {
        // Written so that a NaN or an infinity is refused.
        if norms.log_modulus() < self.log_q() {
            return Ok(());
        }
        Err(HeError::MayDecryptWrongly { operation, needed: norms.log_modulus(), modulus: self.log_q() })
    }

    /// Refuses a ciphertext that would be too long.
    pub(crate) fn check_length(&self, operation: &'static str, parts: usize) -> Result<(), HeError> {
        let most = self.max_length();
        if parts <= most {
            return Ok(());
        }
        Err(HeError::TooManyParts { operation, parts, most })
    }

    /// Whether two handles mean the same set.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.hash() == other.hash()
    }

    /// Refuses an object of another set.
    pub(crate) fn require(&self, what: &'static str, other: &Self) -> Result<(), HeError> {
        if self.same(other) { Ok(()) } else { Ok(self.hash().require(what, other.hash())?) }
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let l = self.literal();
        write!(
            f,
            "bv::Params(N = {}, q {:?} bits, t = {}, σ = {}, up to {} parts, {} bits, {})",
            self.degree(),
            l.q_bits,
            l.t,
            l.sigma,
            l.max_length,
            self.security().bits(),
            self.hash()
        )
    }
}

fn hash_of(literal: &ParamsLiteral, q: &RnsBasis) -> ParamsHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"sudare bv parameters v1");
    let mut word = |x: u64| {
        hasher.update(&x.to_le_bytes());
    };
    word(u64::from(literal.log_n));
    word(q.len() as u64);
    q.primes().for_each(&mut word);
    word(literal.t);
    word(literal.sigma.to_bits());
    word(literal.max_length as u64);
    word(u64::from(literal.security.bits()));
    ParamsHash(*hasher.finalize().as_bytes())
}
