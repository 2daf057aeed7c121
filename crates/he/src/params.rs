//! Parameters: a plain literal becomes a checked, immutable set with everything precomputed.

use crate::error::HeError;
use crate::security::{SecretDistribution, Security, max_log_qp, security_of};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use sudare_ring::convert::BasisConverter;
use sudare_ring::embedding::Embedding;
use sudare_ring::kernel::{MAX_DEGREE, MIN_DEGREE};
use sudare_ring::prime::ntt_primes;
use sudare_ring::random::Seed;
use sudare_ring::{RnsBasis, Shoup};

/// Standard deviation of every error distribution.
pub const ERROR_SIGMA: f64 = 3.19;
/// Most primes in Q and in P; bounds what a loader allocates.
pub const MAX_PRIMES: usize = 128;

/// Parameters as a person writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamsLiteral {
    /// log2 of the ring degree N, 9 to 17.
    pub log_n: u32,
    /// Bits of each data prime, the last to be dropped first.
    pub q_bits: Vec<u32>,
    /// Bits of each special prime of key switching; empty for parameters that never switch keys.
    pub p_bits: Vec<u32>,
    /// Data primes in one digit of key switching.
    pub digit_limbs: usize,
    /// log2 of the default scale Δ.
    pub log_scale: u32,
    /// Distribution of the secret.
    pub secret: SecretDistribution,
    /// Security claimed; checked against the limits.
    pub security: Security,
}

impl ParamsLiteral {
    /// The set of the 3-D matrix product paper (its Table 4): N = 16384,
    /// {60, 40, 40, 40 | 60}, Δ = 2^40.
    pub fn paper_matmul() -> Self {
        Self {
            log_n: 14,
            q_bits: vec![60, 40, 40, 40],
            p_bits: vec![60],
            digit_limbs: 1,
            log_scale: 40,
            secret: SecretDistribution::Ternary,
            security: Security::Bits128,
        }
    }

    /// The default set for a multiplicative depth: primes below 2^50, the least degree that
    /// holds them at the claimed security.
    ///
    /// # Errors
    /// [`HeError::Parameters`] if no degree up to 2^17 holds the depth.
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
                    return Ok(Self {
                        log_n,
                        q_bits,
                        p_bits: vec![49; k],
                        digit_limbs: k,
                        log_scale: bits,
                        secret: SecretDistribution::Ternary,
                        security,
                    });
                }
            }
        }
        Err(HeError::Parameters {
            reason: format!(
                "no degree up to 131072 holds depth {depth} at scale 2^{bits} and {}-bit security",
                security.bits()
            ),
        })
    }

    /// Checks the literal and precomputes the set.
    ///
    /// # Errors
    /// [`HeError::Parameters`], [`HeError::Insecure`] or [`HeError::Ring`].
    pub fn build(&self) -> Result<Params, HeError> {
        Params::new(self.clone())
    }
}

/// BLAKE3 hash that names a parameter set; every key and ciphertext carries it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ParamsHash(pub [u8; 32]);

impl ParamsHash {
    /// The root of the key that `seed` stands for in this set and scheme: one seed gives keys and
    /// names that have nothing in common in any two of them.
    pub(crate) fn bind(&self, seed: &Seed, scheme: &str) -> Seed {
        let whole: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        seed.derive(&format!("sudare {scheme} key of parameters {whole}"), 0)
    }
}

impl fmt::Display for ParamsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ParamsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Precomputation for key switching of ciphertexts at one level.
pub(crate) struct LevelTables {
    /// q_0 … q_level.
    pub q: RnsBasis,
    /// q_0 … q_level, p_0 … p_{k−1}.
    pub qp: RnsBasis,
    /// Which limbs of `q` each digit holds.
    pub digits: Vec<Range<usize>>,
    /// Mod-up of each digit to all of `qp` (the digit's own limbs are not asked for).
    pub mod_up: Vec<BasisConverter>,
    /// P → q; `None` without special primes.
    pub mod_down: Option<BasisConverter>,
    /// P^−1 mod q_i.
    pub p_inv: Vec<Shoup>,
    /// P mod q_i.
    pub p_mod_q: Vec<Shoup>,
    /// q_level → q_0 … q_{level−1}; `None` at level 0.
    pub drop_last: Option<BasisConverter>,
    /// q_level^−1 mod q_i, i < level.
    pub rescale: Vec<Shoup>,
    /// {q_level} ∪ P → q_0 … q_{level−1}: mod-down and rescale in one step.
    pub mod_down_rescale: Option<BasisConverter>,
    /// (P·q_level)^−1 mod q_i, i < level.
    pub pq_inv: Vec<Shoup>,
}

struct Inner {
    literal: ParamsLiteral,
    hash: ParamsHash,
    q: RnsBasis,
    p: RnsBasis,
    levels: Vec<LevelTables>,
    embedding: Arc<Embedding>,
    log_qp: f64,
}

/// A checked parameter set. Cloning shares it.
#[derive(Clone)]
pub struct Params(Arc<Inner>);

impl Params {
    fn new(literal: ParamsLiteral) -> Result<Self, HeError> {
        let fail = |reason: String| Err(HeError::Parameters { reason });
        let n = 1usize.checked_shl(literal.log_n).unwrap_or(0);
        if !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return fail(format!("log2 N = {} is not in 9..=17", literal.log_n));
        }
        if literal.q_bits.is_empty() || literal.q_bits.len() > MAX_PRIMES || literal.p_bits.len() > MAX_PRIMES {
            return fail(format!("1 to {MAX_PRIMES} data primes and at most {MAX_PRIMES} special primes are possible"));
        }
        if literal.digit_limbs == 0 || literal.digit_limbs > MAX_PRIMES {
            return fail("a digit of key switching holds at least one prime".into());
        }
        if !(1..=120).contains(&literal.log_scale) {
            return fail(format!("log2 Δ = {} is not in 1..=120", literal.log_scale));
        }
        if let SecretDistribution::FixedWeight { weight } = literal.secret
            && (weight == 0 || weight as usize > n)
        {
            return fail(format!("a secret of weight {weight} does not exist at N = {n}"));
        }
        let mut taken = Vec::new();
        let mut pick = |bits: &[u32]| -> Result<Vec<u64>, HeError> {
            bits.iter()
                .map(|b| {
                    let prime = ntt_primes(n, *b, 1, &taken)?[0];
                    taken.push(prime);
                    Ok(prime)
                })
                .collect()
        };
        let (q_primes, p_primes) = (pick(&literal.q_bits)?, pick(&literal.p_bits)?);
        let digit_bits = q_primes
            .chunks(literal.digit_limbs)
            .map(|d| d.iter().map(|q| (*q as f64).log2()).sum::<f64>())
            .fold(0.0, f64::max);
        let p_bits: f64 = p_primes.iter().map(|p| (*p as f64).log2()).sum();
        if !p_primes.is_empty() && digit_bits > p_bits + 1.0 {
            return fail(format!(
                "a digit of {digit_bits:.0} bits needs special primes of as many bits together, and they have {p_bits:.0}"
            ));
        }
        let (q, p) = (RnsBasis::new(n, &q_primes)?, RnsBasis::new(n, &p_primes)?);
        Self::over(literal, q, p, Arc::new(Embedding::new(n)?))
    }

    /// A set over primes that are there already.
    fn over(literal: ParamsLiteral, q: RnsBasis, p: RnsBasis, embedding: Arc<Embedding>) -> Result<Self, HeError> {
        let log_qp = q.log2_product() + p.log2_product();
        // A hair's tolerance: primes sit just below their power of two.
        let limit = max_log_qp(literal.log_n, literal.secret, literal.security).unwrap_or(0);
        if log_qp > f64::from(limit) {
            let (degree, claimed) = (q.degree(), literal.security.bits());
            return Err(HeError::Insecure { log_qp, degree, limit, claimed });
        }
        let levels = (0..q.len()).map(|l| level_tables(&q, &p, l, literal.digit_limbs)).collect::<Result<_, _>>()?;
        let hash = hash_of(&literal, &q, &p);
        Ok(Self(Arc::new(Inner { literal, hash, levels, embedding, log_qp, q, p })))
    }

    /// The same ring over other primes, checked for the same security: what a step of a circuit switches
    /// keys over. Its hash names the primes themselves.
    ///
    /// # Errors
    /// [`HeError::Insecure`], [`HeError::Ring`] for a prime that is in both bases.
    pub(crate) fn derived(
        &self,
        q: RnsBasis,
        p: RnsBasis,
        digit_limbs: usize,
        secret: SecretDistribution,
    ) -> Result<Self, HeError> {
        let bits = |basis: &RnsBasis| basis.limbs().iter().map(|l| l.modulus().bits()).collect();
        let (q_bits, p_bits) = (bits(&q), bits(&p));
        let literal = ParamsLiteral { q_bits, p_bits, digit_limbs, secret, ..self.literal().clone() };
        Self::over(literal, q, p, self.0.embedding.clone())
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The set's name on keys and ciphertexts.
    pub fn hash(&self) -> ParamsHash {
        self.0.hash
    }

    /// Ring degree N.
    pub fn degree(&self) -> usize {
        self.0.q.degree()
    }

    /// log2 N.
    pub fn log_n(&self) -> u32 {
        self.0.literal.log_n
    }

    /// Complex slots of a ciphertext, N/2.
    pub fn slots(&self) -> usize {
        self.degree() / 2
    }

    /// The highest level: how many rescales a fresh ciphertext takes.
    pub fn max_level(&self) -> usize {
        self.0.q.len() - 1
    }

    /// The default scale Δ.
    pub fn scale(&self) -> f64 {
        f64::from(self.0.literal.log_scale).exp2()
    }

    /// All data primes.
    pub fn q(&self) -> &RnsBasis {
        &self.0.q
    }

    /// The special primes.
    pub fn p(&self) -> &RnsBasis {
        &self.0.p
    }

    /// Data primes at a level.
    pub fn q_at(&self, level: usize) -> &RnsBasis {
        &self.0.levels[level].q
    }

    /// Data primes at a level, then the special primes.
    pub fn qp_at(&self, level: usize) -> &RnsBasis {
        &self.0.levels[level].qp
    }

    /// The prime that a rescale at `level` divides by.
    pub fn prime_at(&self, level: usize) -> u64 {
        self.0.q.limb(level).q()
    }

    /// Number of key-switching digits of a ciphertext at a level.
    pub fn digits_at(&self, level: usize) -> usize {
        self.0.levels[level].digits.len()
    }

    /// log2(Q·P): the modulus that the security rests on.
    pub fn log_qp(&self) -> f64 {
        self.0.log_qp
    }

    /// Security that the modulus really has, at least what was claimed.
    pub fn security(&self) -> Security {
        security_of(self.0.literal.log_n, self.0.literal.secret, self.0.log_qp)
    }

    /// The canonical embedding of the ring.
    pub fn embedding(&self) -> &Embedding {
        &self.0.embedding
    }

    pub(crate) fn tables(&self, level: usize) -> &LevelTables {
        &self.0.levels[level]
    }

    /// The Galois element that rotates slots left by `step` (any sign): 5^step mod 2N.
    pub fn rotation_element(&self, step: i64) -> u64 {
        sudare_ring::automorphism::rotation_element(self.degree(), step)
    }

    /// The Galois element of complex conjugation, 2N − 1.
    pub fn conjugation_element(&self) -> u64 {
        sudare_ring::automorphism::conjugation_element(self.degree())
    }

    /// Whether two handles mean the same set.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.hash() == other.hash()
    }

    /// Refuses an object of another set.
    pub(crate) fn expect(&self, what: &'static str, other: &Self) -> Result<(), HeError> {
        if self.same(other) {
            return Ok(());
        }
        Err(HeError::WrongParameters { what, found: other.hash(), expected: self.hash() })
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
            "Params(N = {}, q {:?} | p {:?} bits, scale 2^{}, log QP {:.0}, {} bits, {})",
            self.degree(),
            l.q_bits,
            l.p_bits,
            l.log_scale,
            self.log_qp(),
            self.security().bits(),
            self.hash()
        )
    }
}

fn level_tables(q: &RnsBasis, p: &RnsBasis, level: usize, digit_limbs: usize) -> Result<LevelTables, HeError> {
    let limbs = level + 1;
    let here = q.prefix(limbs);
    let qp = here.concat(p)?;
    let digits: Vec<Range<usize>> =
        (0..limbs).step_by(digit_limbs).map(|start| start..limbs.min(start + digit_limbs)).collect();
    let mod_up = match p.is_empty() {
        true => Vec::new(),
        false => digits.iter().map(|d| BasisConverter::new(&qp.select(d.clone()), &qp)).collect(),
    };
    let product_inverse = |primes: &[u64], count: usize| -> Vec<Shoup> {
        q.limbs()[..count]
            .iter()
            .map(|l| {
                let m = l.modulus();
                let product = primes.iter().fold(1, |acc, x| m.mul(acc, *x));
                m.shoup(m.inv(product).unwrap_or(0))
            })
            .collect()
    };
    let p_primes: Vec<u64> = p.primes().collect();
    let last = [q.limb(level).q()];
    let with_last: Vec<u64> = last.iter().chain(&p_primes).copied().collect();
    let switching = !p.is_empty();
    let lower = q.prefix(level);
    Ok(LevelTables {
        mod_down: switching.then(|| BasisConverter::new(p, &here)),
        p_inv: product_inverse(&p_primes, limbs),
        p_mod_q: here
            .limbs()
            .iter()
            .map(|l| l.modulus().shoup(p_primes.iter().fold(1, |acc, x| l.modulus().mul(acc, *x))))
            .collect(),
        drop_last: (level > 0).then(|| BasisConverter::new(&q.select([level]), &lower)),
        rescale: product_inverse(&last, level),
        mod_down_rescale: match switching && level > 0 {
            true => Some(BasisConverter::new(&q.select([level]).concat(p)?, &lower)),
            false => None,
        },
        pq_inv: product_inverse(&with_last, level),
        q: here,
        qp,
        digits,
        mod_up,
    })
}

fn hash_of(literal: &ParamsLiteral, q: &RnsBasis, p: &RnsBasis) -> ParamsHash {
    let mut hasher = blake3::Hasher::new_derive_key("sudare parameters v1");
    let mut word = |x: u64| {
        hasher.update(&x.to_le_bytes());
    };
    word(u64::from(literal.log_n));
    word(q.len() as u64);
    q.primes().for_each(&mut word);
    word(p.len() as u64);
    p.primes().for_each(&mut word);
    word(literal.digit_limbs as u64);
    word(u64::from(literal.log_scale));
    match literal.secret {
        SecretDistribution::Ternary => word(0),
        SecretDistribution::Gaussian => word(1),
        SecretDistribution::FixedWeight { weight } => {
            word(2);
            word(u64::from(weight));
        }
    }
    word(u64::from(literal.security.bits()));
    ParamsHash(*hasher.finalize().as_bytes())
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
    fn refusals() {
        let good = ParamsLiteral::paper_matmul();
        let refused = |change: fn(&mut ParamsLiteral)| {
            let mut l = good.clone();
            change(&mut l);
            l.build().unwrap_err()
        };
        assert!(matches!(refused(|l| l.log_n = 12), HeError::Insecure { limit: 106, .. }));
        assert!(matches!(refused(|l| l.log_n = 8), HeError::Parameters { .. }));
        assert!(matches!(refused(|l| l.log_n = 40), HeError::Parameters { .. }));
        assert!(matches!(refused(|l| l.q_bits.clear()), HeError::Parameters { .. }));
        assert!(matches!(refused(|l| l.q_bits[0] = 62), HeError::Ring(_)));
        assert!(matches!(refused(|l| l.digit_limbs = 0), HeError::Parameters { .. }));
        assert!(matches!(refused(|l| l.digit_limbs = 4), HeError::Parameters { .. }));
        assert!(matches!(
            refused(|l| l.secret = SecretDistribution::FixedWeight { weight: 64 }),
            HeError::Insecure { .. }
        ));
        let mut play = good.clone();
        (play.log_n, play.security) = (10, Security::Insecure);
        assert_eq!(play.build().unwrap().security(), Security::Insecure);
    }

    #[test]
    fn hashes_tell_sets_apart() {
        let a = ParamsLiteral::paper_matmul();
        let mut b = a.clone();
        b.log_scale = 39;
        assert_eq!(a.build().unwrap().hash(), a.build().unwrap().hash());
        assert_ne!(a.build().unwrap().hash(), b.build().unwrap().hash());
    }

    #[test]
    fn rotation_elements() {
        let p = ParamsLiteral::paper_matmul().build().unwrap();
        assert_eq!(p.rotation_element(0), 1);
        assert_eq!(p.rotation_element(1), 5);
        assert_eq!(p.rotation_element(1) * p.rotation_element(-1) % 32768, 1);
        assert_eq!(p.rotation_element(8192), 1);
    }
}
