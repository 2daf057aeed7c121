//! A parameter set together with a plaintext modulus, and what exact schemes precompute for both.

use super::modulus::PlainModulus;
use super::noise::NoiseModel;
use super::scale::{Division, ProductTables};
use crate::error::HeError;
use crate::params::Params;
use std::fmt;
use std::sync::Arc;
use sudare_ring::memo::Memo;
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Limb, RnsBasis, Shoup};

/// Bits of the auxiliary primes of BFV products: the largest that need no reduction within a
/// transform.
pub(crate) const AUX_BITS: u32 = 47;

/// Which levels and primes a division is for.
type DivisionKey = (usize, usize, bool, u64);

struct Inner {
    params: Params,
    t: PlainModulus,
    /// The transform modulo t, where t has slots.
    slots: Option<Limb>,
    /// t^−1 modulo each data prime.
    t_inv: Vec<Shoup>,
    /// t modulo each data prime.
    t_mod_q: Vec<Shoup>,
    /// Q_l mod t for each level.
    q_mod_t: Vec<u64>,
    /// The plaintext factor of fresh and switched BGV ciphertexts at each level.
    bgv_factor: Vec<u64>,
    /// The auxiliary basis of BFV products.
    aux: RnsBasis,
    noise: NoiseModel,
    divisions: Memo<DivisionKey, Arc<Division>>,
    products: Memo<(usize, usize, usize), Arc<ProductTables>>,
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
    /// [`HeError::Parameters`] if t is out of range, shares a factor with a data prime, or leaves
    /// no room for a message at the top level; [`HeError::Ring`].
    pub fn new(params: &Params, t: u64) -> Result<Self, HeError> {
        let modulus = PlainModulus::new(t)?;
        if let Some(q) = params.q().primes().find(|q| t.is_multiple_of(*q)) {
            return Err(HeError::Parameters {
                reason: format!("plaintext modulus {t} shares the factor {q} with the ciphertext modulus"),
            });
        }
        let n = params.degree();
        let aux = auxiliary_basis(params, t)?;
        let noise = NoiseModel::of(params, t, aux.primes());
        if !noise.fits(params.max_level(), noise.secret_encryption() + noise.message()) {
            return Err(HeError::Parameters {
                reason: format!(
                    "a modulus of {:.0} bits holds no fresh ciphertext of plaintext modulus {t} at N = {n}",
                    params.q().log2_product()
                ),
            });
        }
        let slots =
            if sudare_ring::prime::is_prime(t) && t % (2 * n as u64) == 1 { Some(Limb::new(t, n)?) } else { None };
        let limbs = params.q().limbs();
        // t and the primes are coprime, so every inverse exists.
        let t_inv = limbs.iter().map(|l| l.modulus().shoup(l.modulus().inv(t).unwrap_or(0))).collect();
        let t_mod_q = limbs.iter().map(|l| l.modulus().shoup(t)).collect();
        let q_mod_t: Vec<u64> = params
            .q()
            .primes()
            .scan(1 % t, |product, q| {
                *product = modulus.mul(*product, q);
                Some(*product)
            })
            .collect();
        let bgv_factor = bgv_factors(&noise, &modulus, params);
        Ok(Self(Arc::new(Inner {
            params: params.clone(),
            t: modulus,
            slots,
            t_inv,
            t_mod_q,
            q_mod_t,
            bgv_factor,
            aux,
            noise,
            divisions: Memo::new(),
            products: Memo::new(),
        })))
    }

    /// The parameter set: what keys belong to.
    pub fn params(&self) -> &Params {
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

    /// Ring degree N: coefficients, and slots if there are any.
    pub fn degree(&self) -> usize {
        self.0.params.degree()
    }

    /// Whether t has slots: it is a prime ≡ 1 modulo 2N.
    pub fn has_slots(&self) -> bool {
        self.0.slots.is_some()
    }

    /// Slots in a row: N/2. Rotations turn both rows.
    pub fn row(&self) -> usize {
        self.degree() / 2
    }

    /// The noise model of this set.
    pub fn noise(&self) -> &NoiseModel {
        &self.0.noise
    }

    /// The Galois element that swaps both rows of slots, 2N − 1.
    pub fn row_swap_element(&self) -> u64 {
        self.0.params.conjugation_element()
    }

    pub(crate) fn slot_transform(&self) -> Result<&Limb, HeError> {
        self.0.slots.as_ref().ok_or(HeError::NoSlots { modulus: self.t(), degree: self.degree() })
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

    pub(crate) fn bgv_factor(&self, level: usize) -> u64 {
        self.0.bgv_factor[level]
    }

    /// Refuses a level above the highest.
    pub(crate) fn check_level(&self, operation: &'static str, level: usize) -> Result<(), HeError> {
        let highest = self.0.params.max_level();
        if level > highest {
            return Err(HeError::NoSuchLevel { operation, wanted: level, highest });
        }
        Ok(())
    }

    /// Refuses an object of another set or plaintext modulus.
    pub(crate) fn expect(&self, what: &'static str, other: &Self) -> Result<(), HeError> {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ok(());
        }
        self.0.params.expect(what, &other.0.params)?;
        if self.t() != other.t() {
            return Err(HeError::WrongPlainModulus { what, found: other.t(), expected: self.t() });
        }
        Ok(())
    }

    /// ⌊factor·c / D⌉ of polynomials over q_0 … q_high, then P if `special`: D is the product
    /// of everything above q_low. `None` if the factor is no unit modulo a prime that stays.
    pub(crate) fn division(&self, high: usize, low: usize, special: bool, factor: u64) -> Option<Arc<Division>> {
        let (cache, key) = (&self.0.divisions, (high, low, special, factor));
        if let Some(found) = cache.get(&key) {
            return Some(found.clone());
        }
        let params = &self.0.params;
        let dropped = params.q().select(low + 1..=high);
        let tail = if special { dropped.concat(params.p()).ok()? } else { dropped };
        let made = Arc::new(Division::new(params.q_at(low), &tail, factor)?);
        // Factors of uneven additions come in any number; the usual ones are few.
        Some(if cache.len() < MAX_CACHED { cache.insert(key, made).clone() } else { made })
    }

    /// Tables of BFV products from level `high` to `low` with `aux` auxiliary primes.
    pub(crate) fn product_tables(&self, high: usize, low: usize, aux: usize) -> Option<Arc<ProductTables>> {
        if let Some(found) = self.0.products.get(&(high, low, aux)) {
            return Some(found.clone());
        }
        let q = self.0.params.q();
        let made = ProductTables::new(&q.prefix(high + 1), &q.prefix(low + 1), &self.0.aux.prefix(aux), self.t())?;
        Some(self.0.products.insert((high, low, aux), Arc::new(made)).clone())
    }

    /// Whether two handles mean the same set and plaintext modulus.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.params().same(other.params()) && self.t() == other.t())
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
        write!(f, "IntegerParams(t = {}, {:?})", self.t(), self.params())
    }
}

/// Primes of their own, enough to hold Q with twenty bits to spare at every level.
fn auxiliary_basis(params: &Params, t: u64) -> Result<RnsBasis, HeError> {
    let n = params.degree();
    let mut taken: Vec<u64> = params.q().primes().chain(params.p().primes()).collect();
    let count = ((params.q().log2_product() + 24.0) / (f64::from(AUX_BITS) - 0.1)).ceil() as usize;
    let mut primes = Vec::with_capacity(count);
    while primes.len() < count {
        let prime = ntt_primes(n, AUX_BITS, 1, &taken)?[0];
        taken.push(prime);
        if !t.is_multiple_of(prime) {
            primes.push(prime);
        }
    }
    Ok(RnsBasis::new(n, &primes)?)
}

/// Plaintext factors by level: 1 at the top; a product of two ciphertexts at a level, switched as
/// far as its noise asks, has the factor of its new level (the exact counterpart of CKKS scale
/// management by level, Kim–Papadimitriou–Polyakov, ePrint 2020/1118).
fn bgv_factors(noise: &NoiseModel, t: &PlainModulus, params: &Params) -> Vec<u64> {
    let top = params.max_level();
    let mut factors = vec![0; top + 1];
    let inverse = |q: u64| t.inv(q).unwrap_or(0);
    factors[top] = 1 % t.value();
    let mut level = top;
    while level > 0 {
        let operand = (level, 2.0 * noise.division(2));
        let product = noise.bgv_product(&[[operand, operand]]).noise;
        let target = noise.bgv_target(level, product).min(level - 1);
        let mut plain = factors[level];
        for (l, factor) in factors.iter_mut().enumerate().take(level).skip(target).rev() {
            plain = t.mul(plain, inverse(params.q().limb(l + 1).q()));
            *factor = plain;
        }
        factors[target] = t.mul(plain, factors[level]);
        level = target;
    }
    factors
}

impl IntegerParams {
    /// Galois elements whose keys a sum over all slots needs, in order.
    pub fn sum_elements(&self, columns: bool) -> Vec<u64> {
        let steps = (0..self.row().trailing_zeros()).map(|k| self.params().rotation_element(1 << k));
        steps.chain(columns.then(|| self.row_swap_element())).collect()
    }
}
