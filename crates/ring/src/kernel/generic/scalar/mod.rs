//! Arithmetic of one prime in plain 64-bit words: the portable family, and, compiled for a processor's
//! multiplier, what its family does for primes that its vectors do not serve.
//!
//! No loop divides or branches on data. Transforms keep Harvey's lazy ranges, constants carry Shoup's
//! quotients, products take one Barrett step, and sums are added up in 128 bits before they are reduced.

mod elementwise;
pub(crate) mod external;
mod ntt;
mod sums;

use super::additive::{additive_methods, difference, subtract_once};
use super::roots::{inverse_root, layer_inverses, reversed_powers};
use crate::kernel::PackedMatrix;
use crate::kernel::contract::Monomials;
use crate::modulus::{Modulus, Shoup};

/// A constant and its quotient floor(w·2^64/q).
#[derive(Clone, Copy, Debug)]
struct Factor {
    value: u64,
    quotient: u64,
}

impl From<Shoup> for Factor {
    #[inline(always)]
    fn from(w: Shoup) -> Self {
        Self { value: w.value, quotient: w.quotient }
    }
}

/// One prime below 2^61 and its twiddles.
#[derive(Debug)]
pub(crate) struct ScalarLimb {
    pub q: Modulus,
    pub n: usize,
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks.
    forward: Vec<Factor>,
    /// ψ^−brv(i), in the same places.
    inverse: Vec<Factor>,
    /// 2^−layers for every number of layers, and each times the inverse twiddle of the first layer.
    scales: Vec<[Factor; 2]>,
}

impl ScalarLimb {
    /// For degree `n` and its root ψ.
    pub(crate) fn new(q: &Modulus, n: usize, root: u64) -> Self {
        let twiddles =
            |base: u64| -> Vec<Factor> { reversed_powers(q, n, base).into_iter().map(|w| q.shoup(w).into()).collect() };
        let inverse = twiddles(inverse_root(q, n, root));
        let first = inverse[1].value;
        let scales = layer_inverses(q, n).map(|w| [w.into(), q.shoup(q.mul(w.value, first)).into()]).collect();
        Self { q: *q, n, forward: twiddles(root), inverse, scales }
    }
}

/// Arithmetic with the constants of one prime at hand.
#[derive(Clone, Copy)]
struct Word {
    q: u64,
    two_q: u64,
    /// Bits of q.
    bits: u32,
    /// floor(2^(bits+62) / q), below 2^63.
    mu: u64,
}

/// The high word of a product.
#[inline(always)]
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

impl Word {
    #[inline(always)]
    fn new(q: &Modulus) -> Self {
        let (high, low) = q.barrett_ratio();
        let ratio = u128::from(high) << 64 | u128::from(low);
        let mu = (ratio >> (66 - q.bits())) as u64;
        Self { q: q.value(), two_q: 2 * q.value(), bits: q.bits(), mu }
    }

    /// `x · w` in `[0, 2q)`, any `x` (Shoup).
    #[inline(always)]
    fn times_lazy(self, x: u64, w: Factor) -> u64 {
        x.wrapping_mul(w.value).wrapping_sub(high(x, w.quotient).wrapping_mul(self.q))
    }

    /// `x · w` in `[0, q)`, any `x`.
    #[inline(always)]
    fn times(self, x: u64, w: Factor) -> u64 {
        subtract_once(self.times_lazy(x, w), self.q)
    }

    /// `P < q²` modulo q (Barrett). The quotient lags by less than 2^(bits−2)/q ≤ 1/2 from the cut,
    /// 2^(bits+2)/2^64 ≤ 1/2 from μ and 1 from its own floor, so the remainder is below 2q.
    #[inline(always)]
    fn reduce_square(self, product: u128) -> u64 {
        subtract_once(self.remainder(product), self.q)
    }

    /// `x < 2^(bits+62)` modulo q: as a square, but that the quotient lags by up to 1 from μ, so that the remainder is below 3q.
    #[inline(always)]
    fn reduce_sum(self, x: u128) -> u64 {
        self.residue(self.remainder(x))
    }

    /// `x` less its approximate quotient times q.
    #[inline(always)]
    fn remainder(self, x: u128) -> u64 {
        // The shift is below 64; it is said where the compiler sees it.
        let quotient = high((x >> ((self.bits - 2) & 63)) as u64, self.mu);
        (x as u64).wrapping_sub(quotient.wrapping_mul(self.q))
    }

    /// `[0, 4q)` to `[0, q)`.
    #[inline(always)]
    fn residue(self, x: u64) -> u64 {
        subtract_once(subtract_once(x, self.two_q), self.q)
    }
}

impl ScalarLimb {
    #[inline(always)]
    fn word(&self) -> Word {
        Word::new(&self.q)
    }

    #[inline(always)]
    pub(crate) fn external_product(
        &self,
        out: &mut [u64],
        digits: &[u64],
        m: &PackedMatrix,
        monomials: Option<Monomials<'_>>,
    ) {
        external::product(&self.q, out, digits, m, monomials);
    }

    additive_methods!();
}
