//! Noise and modulus sizes from a parameter literal alone, for choosing parameters before any
//! table is built.

use crate::product::Peak;
use sudare_he::HeError;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::ckks::noise::TAIL;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_rlwe::wire::ALIGNMENT;

/// Most bits of a prime that the fastest kernels serve.
pub const PRIME_BITS: u32 = 49;
/// Fewest bits of a prime in a proposed chain: below, NTT-friendly primes run out.
pub const LEAST_PRIME_BITS: u32 = 26;

/// Largest scale of a proposed product, in bits: past it, doubles hold no more of a message.
pub const MAX_LOG_SCALE: u32 = 60;

/// A literal without a chain yet, for a ternary secret.
pub fn bare(log_n: u32, log_scale: u32, security: Security) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: Vec::new(),
            p_bits: Vec::new(),
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security,
        },
        log_scale,
    }
}

/// Primes of a chain as long as any that a product without rescales has.
const MOST_PRIMES: usize = 18;

/// A literal whose modulus holds whatever a product without rescales makes, to learn how much it takes.
pub fn ample(log_n: u32, log_scale: u32) -> ParamsLiteral {
    let mut literal = bare(log_n, log_scale, Security::Insecure);
    literal.q_bits = vec![PRIME_BITS; MOST_PRIMES];
    literal
}

/// The ring degree.
pub fn degree(literal: &ParamsLiteral) -> f64 {
    f64::from(literal.log_n).exp2()
}

/// N · the variance of a secret's coefficient: what a product with s does to a variance.
pub fn secret_energy(literal: &ParamsLiteral) -> f64 {
    let n = degree(literal);
    match literal.secret {
        SecretDistribution::FixedWeight { weight } => f64::from(weight),
        SecretDistribution::Gaussian => n * ERROR_VARIANCE,
        _ => n * 2.0 / 3.0,
    }
}

/// Variance of a coefficient of a fresh public-key encryption, encoding included.
pub fn fresh_variance(literal: &ParamsLiteral) -> f64 {
    ERROR_VARIANCE * (1.0 + degree(literal) * 2.0 / 3.0 + secret_energy(literal)) + ROUNDING_VARIANCE
}

/// The static canonical bound that such an encryption carries.
pub fn fresh_bound(literal: &ParamsLiteral) -> f64 {
    let n = degree(literal);
    TAIL[1] * (n * fresh_variance(literal)).sqrt() + TAIL[0] * (n * ROUNDING_VARIANCE).sqrt()
}

/// Variance of the rounding of a division with `parts` parts.
pub fn division_variance(literal: &ParamsLiteral, parts: usize) -> f64 {
    let s = secret_energy(literal);
    ROUNDING_VARIANCE * (1.0 + s + if parts > 2 { 2.0 * s * s } else { 0.0 })
}

/// Variance of a key switch at the top level, without its division's rounding.
pub fn switching_variance(literal: &ParamsLiteral) -> f64 {
    let p: u32 = literal.p_bits.iter().sum();
    let digits = literal.q_bits.chunks(literal.digit_limbs);
    let sizes: f64 = digits.map(|d| (2.0 * (f64::from(d.iter().sum::<u32>()) - f64::from(p))).exp2()).sum();
    degree(literal) * ERROR_VARIANCE * ROUNDING_VARIANCE * sizes
}

/// log2 of the probability with which an error may pass what is promised of it.
const LOG_FAILURE: f64 = -30.0;

/// The size that the largest of `count` Gaussian values of a variance passes with probability
/// 2^-30.
pub fn largest(count: f64, variance: f64) -> f64 {
    let log = 1.0 + count.max(1.0).log2() - LOG_FAILURE;
    (2.0 * variance * log * std::f64::consts::LN_2).sqrt()
}

/// Bits by which a prime may be smaller than its power of two.
const SHORT_BITS: f64 = 0.02;

/// log2 of the modulus at a level, from the bits of its primes.
fn modulus_bits(literal: &ParamsLiteral, level: usize) -> f64 {
    literal.q_bits.iter().take(level + 1).map(|b| f64::from(*b) - SHORT_BITS).sum()
}

/// Refuses parameters whose modulus does not hold every value that arises.
pub fn check_holds(literal: &ParamsLiteral, peaks: &[Peak]) -> Result<(), HeError> {
    let over = peaks.iter().find(|p| p.bits > modulus_bits(literal, p.level));
    over.map_or(Ok(()), |p| {
        let (level, modulus) = (p.level, modulus_bits(literal, p.level));
        Err(HeError::TooLarge { operation: "product", value: p.bits, scale: 0.0, modulus, level })
    })
}

/// Equal primes for a modulus that holds values up to 2^`bits`, sign included.
pub fn chain(bits: f64) -> Vec<u32> {
    // Primes sit just below their power of two; half a bit covers them all.
    let bits = bits + 0.5;
    let limbs = (bits / f64::from(PRIME_BITS)).ceil().max(1.0);
    vec![((bits / limbs).ceil() as u32).max(LEAST_PRIME_BITS); limbs as usize]
}

/// Whether the claimed security allows the literal's whole modulus.
pub fn secure(literal: &ParamsLiteral) -> bool {
    let total: u32 = literal.q_bits.iter().chain(&literal.p_bits).sum();
    max_log_qp(literal.log_n, literal.secret, literal.security).is_some_and(|limit| total <= limit)
}

/// Bytes of a polynomial as it is sent, over Q_level or Q_level·P: residues of whole bytes, a
/// checksum, and the next one starts at a page.
pub fn sent_bytes(literal: &sudare_rlwe::params::ParamsLiteral, level: usize, extended: bool) -> u64 {
    let special: &[u32] = if extended { &literal.p_bits } else { &[] };
    let residues: u64 =
        literal.q_bits.iter().take(level + 1).chain(special).map(|bits| u64::from(bits.div_ceil(8))).sum();
    ((residues << literal.log_n) + 1).next_multiple_of(ALIGNMENT)
}
