//! Parameters picked from what a computation needs: plaintext modulus, depth, additions, shape.
//!
//! Candidates are run through the same noise model that guards every operation, so a picked set
//! holds the declared computation by the worst-case bounds, at the smallest ring degree whose
//! security allows it.

use super::noise::NoiseModel;
use super::params::{AUX_BITS, IntegerParams};
use crate::error::{ExactError, parameters};
use sudare_ring::PlainModulus;
use sudare_ring::prime::{is_prime, ntt_primes};
use sudare_rlwe::noise::{Sketch, planned_prime};
use sudare_rlwe::params::{MAX_PRIMES, ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// The exact schemes' word in the hash of a parameter set: they have no scale.
pub const EXACT: SchemeTag = SchemeTag(1);
/// Most bits of a picked prime: the largest that transforms serve without reductions.
const PRIME_BITS: u32 = 47;
/// Extra bits of special primes, so that key switching adds less than rounding does.
const SPECIAL_EXTRA: u32 = 3;

/// A computation as parameters see it.
///
/// `depth` products follow one another. Before each, and at the end, up to `additions` further
/// ciphertexts of the same kind are added and `rotations` key switches done.
///
/// ```
/// use sudare_exact::plan::Requirements;
///
/// # fn main() -> Result<(), sudare_exact::ExactError> {
/// // Two products in a row on slots of integers modulo 65537, and eight ciphertexts summed before each.
/// let params = Requirements::new(65537).depth(2).additions(8).slots().values(4096).bfv()?;
/// assert!(params.slots() >= 4096 && params.security().bits() >= 128);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    t: u64,
    depth: usize,
    additions: u64,
    rotations: u64,
    degree: usize,
    slots: bool,
    public_key: bool,
    security: Security,
}

/// The largest prime of `bits` bits with slots at ring degree 2^`log_n` and below.
///
/// ```
/// use sudare_exact::plan::slot_modulus;
///
/// assert_eq!(slot_modulus(17, 15)?, 65537);
/// # Ok::<(), sudare_exact::ExactError>(())
/// ```
///
/// # Errors
/// `RlweError::Ring` if there is none.
pub fn slot_modulus(bits: u32, log_n: u32) -> Result<u64, ExactError> {
    let n = 1usize.checked_shl(log_n).unwrap_or(0);
    Ok(ntt_primes(n, bits, 1, &[])?[0])
}

impl Requirements {
    /// No products, no additions, any packing, 128 bits, encryption under the secret key.
    pub const fn new(t: u64) -> Self {
        Self {
            t,
            depth: 0,
            additions: 0,
            rotations: 0,
            degree: 0,
            slots: false,
            public_key: false,
            security: Security::Bits128,
        }
    }

    /// Products in a row.
    #[must_use]
    pub const fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Ciphertexts added to another before each product and at the end.
    #[must_use]
    pub const fn additions(mut self, additions: u64) -> Self {
        self.additions = additions;
        self
    }

    /// Rotations of a ciphertext before each product and at the end.
    #[must_use]
    pub const fn rotations(mut self, rotations: u64) -> Self {
        self.rotations = rotations;
        self
    }

    /// Values that one ciphertext holds at least: the least ring degree.
    #[must_use]
    pub const fn values(mut self, count: usize) -> Self {
        self.degree = count;
        self
    }

    /// Asks for slots.
    #[must_use]
    pub const fn slots(mut self) -> Self {
        self.slots = true;
        self
    }

    /// Encryption under the public key, whose noise is larger.
    #[must_use]
    pub const fn public_key(mut self) -> Self {
        self.public_key = true;
        self
    }

    /// The claimed security.
    #[must_use]
    pub const fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// Parameters for BFV.
    ///
    /// # Errors
    /// `RlweError::Parameters` if no degree up to 2^17 holds the computation,
    /// [`ExactError::NoSlots`] if slots are asked of a modulus without them.
    pub fn bfv(&self) -> Result<IntegerParams, ExactError> {
        self.build(&self.bfv_literal()?)
    }

    /// Parameters for BGV.
    ///
    /// # Errors
    /// As [`Requirements::bfv`].
    pub fn bgv(&self) -> Result<IntegerParams, ExactError> {
        self.build(&self.bgv_literal()?)
    }

    /// The literal behind [`Requirements::bfv`].
    ///
    /// # Errors
    /// As there.
    pub fn bfv_literal(&self) -> Result<ParamsLiteral, ExactError> {
        self.search(Self::bfv_primes)
    }

    /// The literal behind [`Requirements::bgv`].
    ///
    /// # Errors
    /// As there.
    pub fn bgv_literal(&self) -> Result<ParamsLiteral, ExactError> {
        self.search(Self::bgv_primes)
    }

    fn build(&self, literal: &ParamsLiteral) -> Result<IntegerParams, ExactError> {
        let out = IntegerParams::new(&literal.build(EXACT)?, self.t)?;
        if self.slots {
            out.slot_transform()?;
        }
        Ok(out)
    }

    fn search(
        &self,
        primes: impl Fn(&Self, u32, u32) -> Option<(Vec<u32>, Vec<u32>, usize)>,
    ) -> Result<ParamsLiteral, ExactError> {
        PlainModulus::new(self.t)?;
        let least = self.degree.max(1).next_power_of_two().trailing_zeros().max(10);
        for log_n in least..=17 {
            if self.slots && !(is_prime(self.t) && self.t % (2 << log_n) == 1) {
                return Err(ExactError::NoSlots { modulus: self.t, degree: 1 << log_n });
            }
            let limit = max_log_qp(log_n, SecretDistribution::Ternary, self.security).unwrap_or(0);
            // A claim of nothing still ends somewhere.
            let limit = limit.min(PRIME_BITS * MAX_PRIMES as u32);
            if let Some((q_bits, p_bits, digit_limbs)) = primes(self, log_n, limit) {
                let (secret, security) = (SecretDistribution::Ternary, self.security);
                return Ok(ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security });
            }
        }
        Err(parameters(format!(
            "no degree up to 131072 holds {} products in a row modulo {} with {} additions between them at {}-bit \
             security; ask for fewer products or additions, or a smaller modulus",
            self.depth,
            self.t,
            self.additions,
            self.security.bits()
        )))
    }

    /// The noise of parameters that do not exist yet; the auxiliary primes are those of BFV products.
    fn model(&self, log_n: u32, q_bits: &[u32], (p_bits, digit_limbs): (&[u32], usize), aux: &[u32]) -> NoiseModel {
        let (secret, security) = (SecretDistribution::Ternary, self.security);
        let (q_bits, p_bits) = (q_bits.to_vec(), p_bits.to_vec());
        let literal = ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security };
        NoiseModel::new(Sketch::of(&literal), self.t, aux.iter().map(|bits| planned_prime(*bits)))
    }

    fn start(&self, model: &NoiseModel) -> f64 {
        model.message() + if self.public_key { model.public_encryption() } else { model.secret_encryption() }
    }

    /// Rotations and additions between two products.
    fn between(&self, model: &NoiseModel, level: usize, noise: f64) -> f64 {
        let rotated = noise + self.rotations as f64 * model.switched(level);
        rotated * (self.additions as f64 + 1.0)
    }

    /// Whether the computation fits, product by product.
    fn runs(&self, model: &NoiseModel, top: usize, product: impl Fn(usize, f64) -> Option<(usize, f64)>) -> bool {
        let (mut level, mut noise) = (top, self.start(model));
        for _ in 0..self.depth {
            noise = self.between(model, level, noise);
            match product(level, noise) {
                Some(next) if model.fits(level, noise) => (level, noise) = next,
                _ => return false,
            }
        }
        model.fits(level, self.between(model, level, noise))
    }

    /// As few primes as hold it, as small as they may be.
    fn bfv_primes(&self, log_n: u32, limit: u32) -> Option<(Vec<u32>, Vec<u32>, usize)> {
        let least = least_bits(log_n);
        let holds = |count: usize, bits: u32| {
            let aux = vec![AUX_BITS; (count as u32 * bits + 24).div_ceil(AUX_BITS) as usize];
            let special = special_bits(bits);
            let model = self.model(log_n, &vec![bits; count], (&[special], 1), &aux);
            self.runs(&model, count - 1, |level, noise| {
                let plan = model.bfv_product(&[[(level, noise), (level, noise)]]);
                let noise = plan.noise + model.relinearised(plan.level);
                model.fits(plan.level, noise).then_some((plan.level, noise))
            })
        };
        for count in 1..=MAX_PRIMES.min((limit / least) as usize) {
            if !holds(count, PRIME_BITS) {
                continue;
            }
            let bits = (least..=PRIME_BITS).find(|bits| holds(count, *bits)).unwrap_or(PRIME_BITS);
            let q_bits = vec![bits; count];
            if let Some((p_bits, digit_limbs)) = special_primes(&q_bits, limit) {
                return Some((q_bits, p_bits, digit_limbs));
            }
            return None;
        }
        None
    }

    /// One prime (or two, for large t) for each product, as large as its noise asks.
    fn bgv_primes(&self, log_n: u32, limit: u32) -> Option<(Vec<u32>, Vec<u32>, usize)> {
        let least = least_bits(log_n);
        (0..4).find_map(|extra| {
            // Sizes from the noise of each product in turn; switching noise is that of one digit
            // under special primes of its size.
            let model = self.model(log_n, &[PRIME_BITS - SPECIAL_EXTRA], (&[PRIME_BITS], 1), &[]);
            let split = |bits: f64| {
                let bits = (bits + 0.1).ceil().max(1.0) as u32 + extra;
                let count = bits.div_ceil(PRIME_BITS);
                vec![bits.div_ceil(count).max(least); count as usize]
            };
            let rounding = model.division(2);
            let mut noise = self.between(&model, 0, self.start(&model));
            let mut chain = Vec::new();
            for _ in 0..self.depth {
                let product = self.t as f64 * noise * noise;
                let primes = split((product / (1.9 * rounding)).log2());
                let dropped: f64 = primes.iter().map(|b| f64::from(*b) - 0.05).sum();
                let inherited = (product + self.t as f64 * model.relinearisation(0)) * (-dropped).exp2();
                noise = self.between(&model, 0, inherited + rounding);
                chain.push(primes);
            }
            chain.push(split((2.0 * self.t as f64 * noise).log2()));
            let q_bits: Vec<u32> = chain.into_iter().rev().flatten().collect();
            if q_bits.len() > MAX_PRIMES {
                return None;
            }
            let (p_bits, digit_limbs) = special_primes(&q_bits, limit)?;
            let model = self.model(log_n, &q_bits, (&p_bits, digit_limbs), &[]);
            let runs = self.runs(&model, q_bits.len() - 1, |level, noise| {
                let product = model.bgv_product(&[[(level, noise), (level, noise)]]).noise;
                let target = model.bgv_target(level, product);
                let switched = model.bgv_switched(product, level, target);
                (model.fits(level, product) && model.fits(target, switched)).then_some((target, switched))
            });
            runs.then_some((q_bits, p_bits, digit_limbs))
        })
    }
}

/// Bits under which there may be too few primes ≡ 1 modulo 2N.
fn least_bits(log_n: u32) -> u32 {
    log_n + 9
}

fn special_bits(bits: u32) -> u32 {
    (bits + SPECIAL_EXTRA).min(PRIME_BITS)
}

/// Special primes and limbs of a digit: those with the fewest transforms and key words among
/// what the limit leaves room for.
fn special_primes(q_bits: &[u32], limit: u32) -> Option<(Vec<u32>, usize)> {
    let (total, count) = (q_bits.iter().sum::<u32>(), q_bits.len());
    let largest = q_bits.iter().copied().max()?;
    (1..=count)
        .filter_map(|limbs| {
            let digit: u32 = q_bits.chunks(limbs).map(|d| d.iter().sum()).max()?;
            let each = special_bits(largest);
            let special = digit.div_ceil(each).max(1);
            // All of one size, together at least as large as a digit.
            let each = digit.div_ceil(special).max(each.min(digit.div_ceil(special) + SPECIAL_EXTRA));
            let (special, digits) = (special as usize, count.div_ceil(limbs));
            if total + each * special as u32 > limit || each > PRIME_BITS || special > MAX_PRIMES {
                return None;
            }
            let wide = count + special;
            // Transforms of mod-up and both mod-downs, and the key's words at a third of one.
            let cost = 3 * (digits * wide - count + 2 * wide) + 2 * digits * wide;
            Some((cost, vec![each; special], limbs))
        })
        .min_by_key(|(cost, ..)| *cost)
        .map(|(_, p_bits, limbs)| (p_bits, limbs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_sets_are_secure_and_use_fast_primes() {
        for t in [2, 17, 65537, (1 << 32) - 5, (1u64 << 59) - 55] {
            for depth in [0, 1, 3, 6] {
                let wish = Requirements::new(t).depth(depth).additions(7);
                for literal in [wish.bfv_literal().unwrap(), wish.bgv_literal().unwrap()] {
                    assert!(literal.q_bits.iter().chain(&literal.p_bits).all(|b| *b <= PRIME_BITS), "{literal:?}");
                    let sum: u32 = literal.q_bits.iter().chain(&literal.p_bits).sum();
                    let limit = max_log_qp(literal.log_n, literal.secret, Security::Bits128).unwrap();
                    assert!(sum <= limit, "{literal:?}");
                }
            }
        }
    }

    #[test]
    fn degrees_follow_the_depth() {
        let degree = |depth: usize| Requirements::new(65537).depth(depth).slots().bfv_literal().unwrap().log_n;
        assert!(
            degree(0) <= 12 && degree(1) <= 13 && degree(3) <= 14 && degree(6) <= 14,
            "{:?}",
            [0, 1, 3, 6].map(degree)
        );
        assert!(matches!(Requirements::new(65536).slots().bfv_literal(), Err(ExactError::NoSlots { .. })));
        assert!(Requirements::new(65537).depth(200).bfv_literal().is_err());
        assert_eq!(Requirements::new(257).values(1 << 13).bfv_literal().unwrap().log_n, 13);
    }
}
