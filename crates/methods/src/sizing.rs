//! Noise and modulus sizes from a parameter literal alone, for choosing parameters before any
//! table is built.

use sudare_he::ckks::ParamsLiteral;
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

/// log2 of the probability with which an error may pass what is promised of it.
const LOG_FAILURE: f64 = -30.0;

/// The size that the largest of `count` Gaussian values of a variance passes with probability
/// 2^-30.
pub fn largest(count: f64, variance: f64) -> f64 {
    let log = 1.0 + count.max(1.0).log2() - LOG_FAILURE;
    (2.0 * variance * log * std::f64::consts::LN_2).sqrt()
}

/// Equal primes for a modulus that holds values up to 2^`bits`, sign included.
pub fn chain(bits: f64) -> Vec<u32> {
    // Primes sit just below their power of two; half a bit covers them all.
    let bits = bits + 0.5;
    let limbs = (bits / f64::from(PRIME_BITS)).ceil().max(1.0);
    vec![((bits / limbs).ceil() as u32).max(LEAST_PRIME_BITS); limbs as usize]
}

/// The same of narrow primes, by which products of matrices take least: of up to 24 bits, sums of 127 products are exact in doubles.
pub fn narrow_chain(bits: f64, log_n: u32) -> Vec<u32> {
    /// Bits of a prime at most.
    const MOST: f64 = 24.0;
    // At least a dozen primes, whose distances cost up to a bit together.
    let least = (log_n + 9).max(22);
    let limbs = ((bits + 1.0) / MOST).ceil().max(1.0);
    vec![(((bits + 1.0) / limbs).ceil() as u32).max(least); limbs as usize]
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
