//! A parameter set together with a plaintext modulus, and what exact schemes precompute for both.

use super::noise::NoiseModel;
use super::plaintext::embedded_sizes;
use crate::error::{ExactError, parameters};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use sudare_ring::embedding::Embedding;
use sudare_ring::kernel::MIN_DEGREE;
use sudare_ring::memo::Memo;
use sudare_ring::ops::Division;
use sudare_ring::prime::{is_prime, ntt_primes};
use sudare_ring::{Limb, Modulus, PlainModulus, RingError, RnsBasis, Shoup};
use sudare_rlwe::{Params, RlweError, ScalingTables};

/// Bits of the auxiliary primes of BFV products: the largest that need no reduction within a
/// transform.
pub(crate) const AUX_BITS: u32 = 47;

/// Which levels and primes a division is for.
type DivisionKey = (usize, usize, bool, u64);

struct Inner {
    params: Params,
    t: PlainModulus,
    /// Slots of t, where it has them: N, or N/2 for polynomials in X².
    slots: Option<usize>,
    /// The transform modulo t of this degree. Tables are made when somebody asks for them: a simulation does not.
    slot_transform: Memo<(), Limb>,
    /// t^−1 modulo each data prime.
    t_inv: Vec<Shoup>,
    /// t modulo each data prime.
    t_mod_q: Vec<Shoup>,
    /// Q_l mod t for each level.
    q_mod_t: Vec<u64>,
    /// The plaintext factor of fresh and switched BGV ciphertexts at each level.
    bgv_factor: Vec<u64>,
    /// Primes of the auxiliary basis of BFV products, and the basis.
    aux_primes: Vec<u64>,
    aux: Memo<(), RnsBasis>,
    noise: NoiseModel,
    /// For the norms of plaintexts that multiply; built when the first does.
    embedding: Memo<(), Embedding>,
    divisions: Memo<DivisionKey, Arc<Division>>,
    products: Memo<(usize, usize, usize), Arc<ScalingTables>>,
}

/// Parameters of exact arithmetic modulo t over a [`Params`] set. Cloning shares it.
///
/// Keys belong to the [`Params`] alone, so several plaintext moduli share them.
#[derive(Clone)]
pub struct IntegerParams(Arc<Inner>);

impl IntegerParams {
    /// Binds a plaintext modulus, 2 ≤ t < 2^60, to a parameter set.
    ///
    /// # Errors
    /// `RingError::PlainModulus` if t is out of range; `RlweError::Parameters` if it shares a factor with a data
    /// prime, or leaves no room for a message at the top level; `RlweError::Ring`.
    pub fn new(params: &Params, t: u64) -> Result<Self, ExactError> {
        let modulus = PlainModulus::new(t)?;
        let primes: Vec<u64> = (0..=params.max_level()).map(|level| params.prime_at(level)).collect();
        if let Some(q) = primes.iter().find(|q| t.is_multiple_of(**q)) {
            return Err(parameters(format!(
                "plaintext modulus {t} shares the factor {q} with the ciphertext modulus; take another one"
            )));
        }
        let n = params.degree();
        let log_q = primes.iter().map(|q| (*q as f64).log2()).sum();
        let aux_primes = auxiliary_primes(params, primes.clone(), log_q, t)?;
        let noise = NoiseModel::new(params.sketch().clone(), t, aux_primes.iter().map(|p| *p as f64));
        if !noise.fits(params.max_level(), noise.secret_encryption() + noise.message()) {
            return Err(parameters(format!(
                "a modulus of {:.0} bits holds no fresh ciphertext of plaintext modulus {t} at N = {n}; take more or \
                 larger primes, or a smaller plaintext modulus",
                log_q
            )));
        }
        let of_degree = |n: usize| is_prime(t) && t % (2 * n as u64) == 1;
        let slots = [n, n / 2].into_iter().find(|n| *n >= MIN_DEGREE && of_degree(*n));
        let moduli = primes.iter().map(|q| Modulus::new(*q)).collect::<Result<Vec<_>, _>>()?;
        let t_inv = moduli.iter().map(|q| Ok(q.shoup(q.inverse(t)?)));
        let t_inv = t_inv.collect::<Result<_, RingError>>()?;
        let t_mod_q = moduli.iter().map(|q| q.shoup(t)).collect();
        let q_mod_t: Vec<u64> = primes
            .iter()
            .scan(1 % t, |product, q| {
                *product = modulus.mul(*product, *q);
                Some(*product)
            })
            .collect();
        let bgv_factor = bgv_factors(&noise, &modulus, params)?;
        Ok(Self(Arc::new(Inner {
            params: params.clone(),
            t: modulus,
            slots,
            slot_transform: Memo::new(),
            t_inv,
            t_mod_q,
            q_mod_t,
            bgv_factor,
            aux_primes,
            aux: Memo::new(),
            noise,
            embedding: Memo::new(),
            divisions: Memo::new(),
            products: Memo::new(),
        })))
    }

    /// The RLWE parameters: what keys belong to.
    pub fn rlwe(&self) -> &Params {
        &self.0.params
    }

    /// The plaintext modulus.
    pub fn modulus(&self) -> &PlainModulus {
        &self.0.t
    }

    /// t.
    pub fn t(&self) -> u64 {
        self.0.t.value()
    }

    /// Whether t has slots: it is a prime ≡ 1 modulo 2N, or modulo N for N/2 slots.
    pub fn has_slots(&self) -> bool {
        self.0.slots.is_some()
    }

    /// Values in slots: N, or N/2 where t is ≡ 1 modulo N alone. N without slots.
    pub fn slots(&self) -> usize {
        self.0.slots.unwrap_or(self.degree())
    }

    /// Slots in a row, half of them. Rotations turn both rows.
    pub fn row(&self) -> usize {
        self.slots() / 2
    }

    /// Bounds on the embedded values of a polynomial in a power of X ([`embedded_sizes`]).
    pub(crate) fn embedded_sizes(&self, coefficients: &[i64]) -> Result<Vec<f64>, ExactError> {
        Ok(embedded_sizes(self.embedding()?, coefficients))
    }

    /// The noise model of this set.
    pub fn noise(&self) -> &NoiseModel {
        &self.0.noise
    }

    /// The Galois element that swaps both rows of slots, 2N − 1.
    pub fn row_swap_element(&self) -> u64 {
        self.0.params.conjugation_element()
    }

    /// The canonical embedding of the ring.
    pub(crate) fn embedding(&self) -> Result<&Embedding, ExactError> {
        match self.0.embedding.get(&()) {
            Some(made) => Ok(made),
            None => Ok(self.0.embedding.insert((), Embedding::new(self.degree())?)),
        }
    }

    pub(crate) fn slot_transform(&self) -> Result<&Limb, ExactError> {
        let slots = self.0.slots.ok_or(ExactError::NoSlots { modulus: self.t(), degree: self.degree() })?;
        match self.0.slot_transform.get(&()) {
            Some(made) => Ok(made),
            None => Ok(self.0.slot_transform.insert((), Limb::new(self.t(), slots)?)),
        }
    }

    pub(crate) fn t_inv(&self, level: usize) -> &[Shoup] {
        &self.0.t_inv[..=level]
    }

    pub(crate) fn t_mod_q(&self, level: usize) -> &[Shoup] {
        &self.0.t_mod_q[..=level]
    }

    /// Q_l mod t.
    pub(crate) fn q_mod_t(&self, level: usize) -> u64 {
        self.0.q_mod_t[level]
    }

    /// q_(low+1) ··· q_high mod t.
    pub(crate) fn dropped_mod_t(&self, high: usize, low: usize) -> u64 {
        let t = self.modulus();
        (low + 1..=high).fold(1 % t.value(), |acc, i| t.mul(acc, self.prime_at(i)))
    }

    pub(crate) fn bgv_factor(&self, level: usize) -> u64 {
        self.0.bgv_factor[level]
    }

    /// Refuses an object of another set or plaintext modulus.
    pub(crate) fn require(&self, what: &'static str, other: &Self) -> Result<(), ExactError> {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ok(());
        }
        self.0.params.require(what, &other.0.params)?;
        if self.t() != other.t() {
            return Err(ExactError::Rlwe(RlweError::WrongPlainModulus { what, found: other.t(), expected: self.t() }));
        }
        Ok(())
    }

    /// ⌊factor·c / D⌉ of polynomials over q_0 … q_high, then P if `special`: D is the product
    /// of everything above q_low.
    ///
    /// # Errors
    /// `RingError::NotCoprime` if the factor is no unit modulo a prime that stays.
    pub(crate) fn division(
        &self,
        high: usize,
        low: usize,
        special: bool,
        factor: u64,
    ) -> Result<Arc<Division>, RlweError> {
        let (cache, key) = (&self.0.divisions, (high, low, special, factor));
        if let Some(found) = cache.get(&key) {
            return Ok(found.clone());
        }
        let params = &self.0.params;
        let dropped = params.q().select(low + 1..=high);
        let tail = if special { dropped.concat(params.p())? } else { dropped };
        let made = Arc::new(Division::scaled(params.q_at(low), &tail, factor)?);
        // Factors of uneven additions come in any number; the usual ones are few.
        Ok(if cache.len() < MAX_CACHED { cache.insert(key, made).clone() } else { made })
    }

    /// Whether an integer has an inverse modulo each prime of a level.
    pub(crate) fn is_unit(&self, value: i64, level: usize) -> bool {
        (0..=level).all(|l| !value.unsigned_abs().is_multiple_of(self.prime_at(l)))
    }

    /// Tables of BFV products from level `high` to `low` with `aux` auxiliary primes.
    ///
    /// # Errors
    /// `RingError::NotCoprime` if primes are equal.
    pub(crate) fn product_tables(&self, high: usize, low: usize, aux: usize) -> Result<Arc<ScalingTables>, RlweError> {
        if let Some(found) = self.0.products.get(&(high, low, aux)) {
            return Ok(found.clone());
        }
        let q = self.0.params.q();
        let basis = match self.0.aux.get(&()) {
            Some(made) => made,
            None => self.0.aux.insert((), RnsBasis::new(self.degree(), &self.0.aux_primes)?),
        };
        let made = ScalingTables::new(&q.prefix(high + 1), &q.prefix(low + 1), &basis.prefix(aux), self.t())?;
        Ok(self.0.products.insert((high, low, aux), Arc::new(made)).clone())
    }

    /// Whether two handles mean the same set and plaintext modulus.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.rlwe().same(other) && self.t() == other.t())
    }
}

/// An exact set is a set of RLWE parameters with a plaintext modulus.
impl Deref for IntegerParams {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.0.params
    }
}

/// Most divisions that are kept.
const MAX_CACHED: usize = 256;

impl PartialEq for IntegerParams {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl fmt::Debug for IntegerParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntegerParams(t = {}, {:?})", self.t(), self.rlwe())
    }
}

/// Primes of their own, enough to hold Q with twenty bits to spare at every level.
fn auxiliary_primes(params: &Params, mut taken: Vec<u64>, log_q: f64, t: u64) -> Result<Vec<u64>, ExactError> {
    // Tables of special primes are built only where there are some.
    if !params.literal().p_bits.is_empty() {
        taken.extend(params.p().primes());
    }
    let count = ((log_q + 24.0) / (f64::from(AUX_BITS) - 0.1)).ceil() as usize;
    // One of this size can divide t.
    let mut primes = ntt_primes(params.degree(), AUX_BITS, count + 1, &taken)?;
    primes.retain(|prime| !t.is_multiple_of(*prime));
    primes.truncate(count);
    Ok(primes)
}

/// Plaintext factors by level: 1 at the top; a product of two ciphertexts at a level, switched as
/// far as its noise asks, has the factor of its new level (the exact counterpart of CKKS scale
/// management by level, Kim–Papadimitriou–Polyakov, ePrint 2020/1118).
fn bgv_factors(noise: &NoiseModel, t: &PlainModulus, params: &Params) -> Result<Vec<u64>, ExactError> {
    let top = params.max_level();
    let mut factors = vec![0; top + 1];
    factors[top] = 1 % t.value();
    let mut level = top;
    while level > 0 {
        let operand = (level, 2.0 * noise.division(2));
        let product = noise.bgv_product(&[[operand, operand]]).noise;
        let target = noise.bgv_target(level, product).min(level - 1);
        let mut plain = factors[level];
        for (l, factor) in factors.iter_mut().enumerate().take(level).skip(target).rev() {
            plain = t.mul(plain, t.inverse(params.prime_at(l + 1))?);
            *factor = plain;
        }
        factors[target] = t.mul(plain, factors[level]);
        level = target;
    }
    Ok(factors)
}

impl IntegerParams {
    /// Galois elements whose keys a sum over all slots needs, in order.
    pub fn sum_elements(&self, columns: bool) -> Vec<u64> {
        let steps = (0..self.row().trailing_zeros()).map(|k| self.rotation_element(1 << k));
        steps.chain(columns.then(|| self.row_swap_element())).collect()
    }
}
