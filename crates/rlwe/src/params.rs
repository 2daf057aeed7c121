//! Parameters: a plain literal becomes a checked, immutable set with everything precomputed.

use crate::error::RlweError;
use crate::ids::ParamsHash;
use crate::multiparty::MAX_PARTIES;
use crate::noise::Sketch;
use crate::security::{SecretDistribution, Security, max_log_qp, security_of};
use crate::switching::LevelTables;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::kernel::{MAX_DEGREE, MIN_DEGREE};
use sudare_ring::memo::Once;
use sudare_ring::prime::ntt_primes;

/// Most primes in Q and in P; bounds what a loader allocates.
pub const MAX_PRIMES: usize = 128;

/// Ring, primes, secret and security, as a person writes them. A scheme's literal has one.
///
/// Primes are ≡ 1 modulo 2N; those below 2^50 have the fastest kernels. Security rests on N, the secret and log2(Q·P):
/// [`max_log_qp`] has the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamsLiteral {
    /// log2 of the ring degree N, 9 to 17.
    pub log_n: u32,
    /// Bits of each data prime, the last to be dropped first: 1 to [`MAX_PRIMES`] of them, up to 61 bits each.
    pub q_bits: Vec<u32>,
    /// Bits of each special prime of key switching; empty for parameters that never switch keys.
    pub p_bits: Vec<u32>,
    /// Data primes in one digit of key switching. The special primes together have to be as large as a digit.
    pub digit_limbs: usize,
    /// Distribution of the secret.
    pub secret: SecretDistribution,
    /// Security claimed; checked against the limits.
    pub security: Security,
}

/// A scheme's word in the hash of a parameter set, so that sets of two schemes have two names: log2 of
/// the default scale for CKKS, 1 for the exact schemes, which have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemeTag(pub u32);

impl ParamsLiteral {
    /// Checks the literal and chooses its primes, under a scheme's word. Tables are made when they are first used.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] for a field out of its range, [`RlweError::Insecure`] where Q·P is larger than the degree
    /// carries at the claimed security, [`RlweError::Ring`] where there are too few primes of a size.
    pub fn build(&self, tag: SchemeTag) -> Result<Params, RlweError> {
        Params::new(self.clone(), tag)
    }

    /// Precomputes the set over data primes and special primes that were chosen elsewhere, in their order; the literal's own
    /// bits of primes count nothing. The set's hash names the primes themselves.
    ///
    /// # Errors
    /// As [`ParamsLiteral::build`]; [`RlweError::Ring`] for a modulus that no transform of this degree serves.
    pub fn build_over(&self, tag: SchemeTag, q: &[u64], p: &[u64]) -> Result<Params, RlweError> {
        let bits = |primes: &[u64]| primes.iter().map(|q| u64::BITS - q.leading_zeros()).collect();
        let literal = Self { q_bits: bits(q), p_bits: bits(p), ..self.clone() };
        literal.check()?;
        let n = 1 << literal.log_n;
        let bases = [RnsBasis::new(n, q)?, RnsBasis::new(n, p)?];
        literal.check_digits(&[q.to_vec(), p.to_vec()])?;
        let [q, p] = bases;
        Params::over_bases(literal, tag, q, p)
    }

    /// Refuses a degree, counts and a secret that no set has.
    fn check(&self) -> Result<(), RlweError> {
        let fail = |reason: String| Err(RlweError::Parameters { reason });
        let n = 1usize.checked_shl(self.log_n).unwrap_or(0);
        if !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return fail(format!("log2 N is 9 to 17, not {}", self.log_n));
        }
        if self.q_bits.is_empty() || self.q_bits.len() > MAX_PRIMES || self.p_bits.len() > MAX_PRIMES {
            let (q, p) = (self.q_bits.len(), self.p_bits.len());
            return fail(format!(
                "1 to {MAX_PRIMES} data primes and at most {MAX_PRIMES} special primes are possible, not {q} and {p}"
            ));
        }
        if self.digit_limbs == 0 || self.digit_limbs > MAX_PRIMES {
            return fail(format!("a digit of key switching holds 1 to {MAX_PRIMES} primes, not {}", self.digit_limbs));
        }
        if let SecretDistribution::FixedWeight { weight } = self.secret
            && (weight == 0 || weight as usize > n)
        {
            return fail(format!("a secret of weight {weight} does not exist at N = {n}; take a weight from 1 to {n}"));
        }
        if let SecretDistribution::TernarySum { parties } = self.secret
            && !(2..=MAX_PARTIES).contains(&parties)
        {
            return fail(format!("2 to {MAX_PARTIES} parties can hold a key together, and not {parties}"));
        }
        Ok(())
    }

    /// Refuses a digit of key switching that is larger than the special primes.
    fn check_digits(&self, [q, p]: &[Vec<u64>; 2]) -> Result<(), RlweError> {
        let log2 = |primes: &[u64]| primes.iter().map(|q| (*q as f64).log2()).sum::<f64>();
        let digit_bits = q.chunks(self.digit_limbs).map(log2).fold(0.0, f64::max);
        let p_bits = log2(p);
        if p.is_empty() || digit_bits <= p_bits + 1.0 {
            return Ok(());
        }
        Err(RlweError::Parameters {
            reason: format!(
                "a digit of {digit_bits:.0} bits needs special primes of as many bits together, and they have \
                 {p_bits:.0}; take more special primes, or fewer primes a digit"
            ),
        })
    }
}

struct Inner {
    literal: ParamsLiteral,
    tag: SchemeTag,
    /// Made when it is first asked for.
    hash: Once<ParamsHash>,
    /// Data primes, then special primes.
    primes: [Vec<u64>; 2],
    /// log2 of the product of the data primes at each level.
    log_q: Vec<f64>,
    sketch: Sketch,
    log_qp: f64,
    /// Tables of all primes, made when they are first asked for: a planner or a simulation never does.
    bases: Once<[RnsBasis; 2]>,
    levels: Once<Vec<LevelTables>>,
}

/// A checked parameter set, named by its [hash](Params::hash) on every key and ciphertext. Cloning shares it.
///
/// Level l has the data primes q_0 … q_l, so the highest level is one less than their number.
#[derive(Clone)]
pub struct Params(Arc<Inner>);

impl Params {
    fn new(literal: ParamsLiteral, tag: SchemeTag) -> Result<Self, RlweError> {
        literal.check()?;
        let n = 1 << literal.log_n;
        // All primes of one size together; those of different sizes are different.
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for bits in literal.q_bits.iter().chain(&literal.p_bits) {
            *counts.entry(*bits).or_default() += 1;
        }
        let found = counts.into_iter().map(|(bits, count)| Ok((bits, ntt_primes(n, bits, count, &[])?.into_iter())));
        let mut found = found.collect::<Result<BTreeMap<_, _>, RlweError>>()?;
        let mut pick = |bits: &[u32]| -> Vec<u64> {
            bits.iter().filter_map(|bits| found.get_mut(bits).and_then(Iterator::next)).collect()
        };
        let primes = [pick(&literal.q_bits), pick(&literal.p_bits)];
        literal.check_digits(&primes)?;
        Self::over(literal, tag, primes, Once::new())
    }

    /// A set over given primes, whose tables may be there already.
    fn over(
        literal: ParamsLiteral,
        tag: SchemeTag,
        primes: [Vec<u64>; 2],
        bases: Once<[RnsBasis; 2]>,
    ) -> Result<Self, RlweError> {
        let log2 = |q: &u64| (*q as f64).log2();
        let mut sum = 0.0;
        let log_q: Vec<f64> = primes[0].iter().map(|q| (sum += log2(q), sum).1).collect();
        let log_qp = sum + primes[1].iter().map(log2).sum::<f64>();
        // A hair's tolerance: primes sit just below their power of two.
        let limit = max_log_qp(literal.log_n, literal.secret, literal.security).unwrap_or(0);
        if log_qp > f64::from(limit) {
            let (degree, claimed) = (1 << literal.log_n, literal.security.bits());
            let weight = match literal.secret {
                SecretDistribution::FixedWeight { weight } => Some(weight),
                _ => None,
            };
            return Err(RlweError::Insecure { log_qp, degree, limit, claimed, weight });
        }
        let [q, p] = [0, 1].map(|i| primes[i].iter().map(|q| *q as f64).collect::<Vec<_>>());
        let sketch = Sketch::new(&literal, q, p);
        let levels = Once::new();
        Ok(Self(Arc::new(Inner { literal, tag, hash: Once::new(), primes, log_q, sketch, log_qp, bases, levels })))
    }

    /// Both bases, with their tables.
    fn bases(&self) -> &[RnsBasis; 2] {
        let n = self.degree();
        self.0.bases.get_or_init(|| {
            Box::new(self.0.primes.each_ref().map(|primes| match RnsBasis::new(n, primes) {
                Ok(basis) => basis,
                Err(e) => unreachable!("primes that were checked: {e}"),
            }))
        })
    }

    fn levels(&self) -> &[LevelTables] {
        self.0.levels.get_or_init(|| {
            let ([q, p], digit_limbs) = (self.bases(), self.0.literal.digit_limbs);
            let level = |l| match LevelTables::new(q, p, l, digit_limbs) {
                Ok(tables) => tables,
                Err(e) => unreachable!("primes that were checked: {e}"),
            };
            Box::new((0..q.len()).map(level).collect())
        })
    }

    /// log2 of the product of the data primes at a level.
    pub fn log_q(&self, level: usize) -> f64 {
        self.0.log_q[level]
    }

    /// The same ring over other primes, checked for the same security: what a step of a circuit switches
    /// keys over. Its hash names the primes themselves.
    ///
    /// # Errors
    /// [`RlweError::Insecure`]; [`RlweError::Ring`] for a prime that is in both bases.
    pub fn derived(
        &self,
        q: RnsBasis,
        p: RnsBasis,
        digit_limbs: usize,
        secret: SecretDistribution,
    ) -> Result<Self, RlweError> {
        let bits = |basis: &RnsBasis| basis.moduli().map(|q| q.bits()).collect();
        let (q_bits, p_bits) = (bits(&q), bits(&p));
        let literal = ParamsLiteral { q_bits, p_bits, digit_limbs, secret, ..self.literal().clone() };
        Self::over_bases(literal, self.tag(), q, p)
    }

    /// A set over primes whose tables are there.
    fn over_bases(literal: ParamsLiteral, tag: SchemeTag, q: RnsBasis, p: RnsBasis) -> Result<Self, RlweError> {
        let primes = [&q, &p].map(|basis| basis.primes().collect());
        // What two bases cannot be concatenated is refused now.
        q.concat(&p)?;
        let bases = Once::new();
        // It is empty: nobody else has it yet.
        let _ = bases.set(Box::new([q, p]));
        Self::over(literal, tag, primes, bases)
    }

    /// The literal that this set was built from.
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The scheme's word in the set's hash.
    pub fn tag(&self) -> SchemeTag {
        self.0.tag
    }

    /// The set's name on keys and ciphertexts.
    pub fn hash(&self) -> ParamsHash {
        let Inner { literal, tag, primes, .. } = &*self.0;
        *self.0.hash.get_or_init(|| Box::new(hash_of(literal, *tag, primes)))
    }

    /// Ring degree N.
    pub fn degree(&self) -> usize {
        1 << self.0.literal.log_n
    }

    /// log2 N.
    pub fn log_n(&self) -> u32 {
        self.0.literal.log_n
    }

    /// The highest level: how many rescales a fresh ciphertext takes.
    pub fn max_level(&self) -> usize {
        self.0.primes[0].len() - 1
    }

    /// All data primes.
    pub fn q(&self) -> &RnsBasis {
        &self.bases()[0]
    }

    /// The special primes.
    pub fn p(&self) -> &RnsBasis {
        &self.bases()[1]
    }

    /// Data primes at a level.
    pub fn q_at(&self, level: usize) -> &RnsBasis {
        self.levels()[level].gadget.q()
    }

    /// Data primes at a level, then the special primes.
    pub fn qp_at(&self, level: usize) -> &RnsBasis {
        self.levels()[level].gadget.qp()
    }

    /// The prime that a rescale at `level` divides by.
    pub fn prime_at(&self, level: usize) -> u64 {
        self.0.primes[0][level]
    }

    /// Number of key-switching digits of a ciphertext at a level.
    pub fn digits_at(&self, level: usize) -> usize {
        self.levels()[level].gadget.digits()
    }

    /// log2(Q·P): the modulus that the security rests on.
    pub fn log_qp(&self) -> f64 {
        self.0.log_qp
    }

    /// Security that the modulus really has, at least what was claimed.
    pub fn security(&self) -> Security {
        security_of(self.0.literal.log_n, self.0.literal.secret, self.0.log_qp)
    }

    /// What its noise depends on.
    pub fn sketch(&self) -> &Sketch {
        &self.0.sketch
    }

    /// What key switching and division at a level need.
    pub fn tables(&self, level: usize) -> &LevelTables {
        &self.levels()[level]
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
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`].
    pub fn require(&self, what: &'static str, other: &Self) -> Result<(), RlweError> {
        if self.same(other) { Ok(()) } else { self.hash().require(what, other.hash()) }
    }

    /// Refuses a level above the highest.
    ///
    /// # Errors
    /// [`RlweError::NoSuchLevel`].
    pub fn expect_level(&self, operation: &'static str, level: usize) -> Result<(), RlweError> {
        let highest = self.max_level();
        if level <= highest { Ok(()) } else { Err(RlweError::NoSuchLevel { operation, wanted: level, highest }) }
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
            "Params(N = {}, q {:?} | p {:?} bits, log QP {:.0}, {} bits, {})",
            self.degree(),
            l.q_bits,
            l.p_bits,
            self.log_qp(),
            self.security().bits(),
            self.hash()
        )
    }
}

fn hash_of(literal: &ParamsLiteral, tag: SchemeTag, [q, p]: &[Vec<u64>; 2]) -> ParamsHash {
    let mut hasher = blake3::Hasher::new_derive_key("sudare parameters v1");
    let mut word = |x: u64| {
        hasher.update(&x.to_le_bytes());
    };
    word(u64::from(literal.log_n));
    word(q.len() as u64);
    q.iter().copied().for_each(&mut word);
    word(p.len() as u64);
    p.iter().copied().for_each(&mut word);
    word(literal.digit_limbs as u64);
    word(u64::from(tag.0));
    match literal.secret {
        SecretDistribution::Ternary => word(0),
        SecretDistribution::Gaussian => word(1),
        SecretDistribution::FixedWeight { weight } => {
            word(2);
            word(u64::from(weight));
        }
        SecretDistribution::TernarySum { parties } => {
            word(3);
            word(u64::from(parties));
        }
    }
    word(u64::from(literal.security.bits()));
    ParamsHash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> ParamsLiteral {
        ParamsLiteral {
            log_n: 14,
            q_bits: vec![60, 40, 40, 40],
            p_bits: vec![60],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Bits128,
        }
    }

    #[test]
    fn refusals() {
        let refused = |change: fn(&mut ParamsLiteral)| {
            let mut l = good();
            change(&mut l);
            l.build(SchemeTag(40)).unwrap_err()
        };
        assert!(matches!(refused(|l| l.log_n = 12), RlweError::Insecure { limit: 106, .. }));
        assert!(matches!(refused(|l| l.log_n = 8), RlweError::Parameters { .. }));
        assert!(matches!(refused(|l| l.log_n = 40), RlweError::Parameters { .. }));
        assert!(matches!(refused(|l| l.q_bits.clear()), RlweError::Parameters { .. }));
        assert!(matches!(refused(|l| l.q_bits[0] = 62), RlweError::Ring(_)));
        assert!(matches!(refused(|l| l.digit_limbs = 0), RlweError::Parameters { .. }));
        assert!(matches!(refused(|l| l.digit_limbs = 4), RlweError::Parameters { .. }));
        assert!(matches!(
            refused(|l| l.secret = SecretDistribution::FixedWeight { weight: 64 }),
            RlweError::Insecure { .. }
        ));
        let mut play = good();
        (play.log_n, play.security) = (10, Security::Insecure);
        assert_eq!(play.build(SchemeTag(40)).unwrap().security(), Security::Insecure);
    }

    #[test]
    fn hashes_tell_sets_and_schemes_apart() {
        let hash = |l: &ParamsLiteral, tag| l.build(SchemeTag(tag)).unwrap().hash();
        let mut other = good();
        other.q_bits[3] = 41;
        assert_eq!(hash(&good(), 40), hash(&good(), 40));
        assert_ne!(hash(&good(), 40), hash(&good(), 39));
        assert_ne!(hash(&good(), 40), hash(&other, 40));
    }

    #[test]
    fn rotation_elements() {
        let p = good().build(SchemeTag(40)).unwrap();
        assert_eq!(p.rotation_element(0), 1);
        assert_eq!(p.rotation_element(1), 5);
        assert_eq!(p.rotation_element(1) * p.rotation_element(-1) % 32768, 1);
        assert_eq!(p.rotation_element(8192), 1);
    }
}
