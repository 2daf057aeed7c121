//! Exact arithmetic modulo a prime `p < 2^50` in doubles, for processors with fused multiplication and
//! addition.
//!
//! # The product
//! For an integer `a` with `|a| < 2^52` and a constant `w` in `[−p/2, p/2]` with `w' = w/p` rounded:
//! `c = round(a·w')`, `h = a·w` rounded, `l = a·w − h`, `d = h − c·p`, and `r = d + l` is `a·w − c·p`.
//! Every step is exact:
//! - `c`: `fma(a, w', M) − M` with `M = 1.5·2^52`. `|a·w'| < 2^51`, so the sum stays where doubles are one
//!   apart, and the single rounding is that to the nearest integer. `w'` is off by at most 2^−54 (it is below
//!   1/2), hence `|a·w' − a·w/p| ≤ |a|·2^−54` and **|r| ≤ p·(1/2 + |a|·2^−54)**, at most 3p/4.
//! - `l`: the rounding error of a product, which is a double. `h` is an integer multiple of its last place
//!   2^k, k ≤ 48 as `|a·w| < 2^101`, so `|l| ≤ 2^47`.
//! - `d`: an integer with `|d| ≤ |r| + |l| < 2^51`, so the fused operation does not round; nor does `d + l`.
//!
//! Where neither factor is constant (`0 ≤ a, b ≤ p` or of that magnitude), `c = round(h·p')` with
//! `p' = 1/p` rounded: `h·p'` is off by at most `p·2^−52 ≤ 1/4`, so again `|r| ≤ 3p/4`. With a summand the
//! quotient comes from the rounded `h + c`: another `p·2^−53`, and `|r| ≤ 7p/8`.
//!
//! # Sums
//! Layers of a transform add such an `r` to an integer `x` without a reduction as long as all values stay
//! below 2^52 in magnitude: starting below p, 17 layers do for `p < 2^46`, and three for all primes. See
//! [`super::tables`], which counts it out for each prime.
//!
//! Terms `a·b` of a sum are split on the fly ([`Sum`]): with an accumulator that starts at
//! `C = 1.5·2^(52+K)` and stays in the same binade, `H' = fma(a, b, H)` rounds to a multiple of 2^K,
//! `H' − H` is the exact share that the term left there, and `fma(a, b, −(H' − H))`, of magnitude up to
//! 2^(K−1), is the exact rest, which a second accumulator takes. Four operations a term. `T` terms of
//! magnitude up to `B` are exact if `T·B ≤ 2^(51+K)` and `T·2^(K−1) ≤ 2^52`: with `K = ⌈log2 B / 2⌉ + 1`,
//! `T = 2^(53−K)`: 4096 terms of 40-bit primes, 64 of 46-bit ones, 4 of 50-bit ones.

use super::lanes::{Doubles, Reals};
use crate::kernel::generic::signed::{Constant, Eight, Signed};
use crate::modulus::{Modulus, Shoup};

/// Primes below this many bits are served.
pub(crate) const DOUBLE_MODULUS_BITS: u32 = 50;

/// `1.5 · 2^52`: adding it to a number of magnitude below 2^51 rounds that to the nearest integer.
const MAGIC: f64 = (3u64 << 51) as f64;

/// A constant factor in `[−p/2, p/2]` and its quotient by p.
pub(crate) type Pair = [f64; 2];

/// A factor and its quotient, in lanes.
pub(crate) type Factor<L> = (<L as Reals>::V, <L as Reals>::V);

/// The pair of the residue `w`.
pub(crate) fn pair(q: &Modulus, w: u64) -> Pair {
    let centered = q.center(w) as f64;
    [centered, centered / q.value() as f64]
}

impl Constant for Pair {
    type Eights = [Eight; 2];

    fn new(q: &Modulus, w: u64) -> Self {
        pair(q, w)
    }

    fn eights(lanes: [Self; 8]) -> [Eight; 2] {
        [0, 1].map(|i| Eight(lanes.map(|pair| pair[i].to_bits())))
    }
}

/// The constants of one prime in every lane.
#[derive(Clone, Copy)]
pub(crate) struct Arith<L: Doubles> {
    pub l: L,
    /// p.
    pub p: L::V,
    /// 1/p.
    pub inverse: L::V,
    magic: L::V,
}

impl<L: Doubles> Arith<L> {
    #[inline(always)]
    pub(crate) fn new(l: L, q: &Modulus) -> Self {
        let p = q.value() as f64;
        Self { l, p: l.splat(p), inverse: l.splat(1.0 / p), magic: l.splat(MAGIC) }
    }

    /// A pair in every lane.
    #[inline(always)]
    pub(crate) fn splat(self, w: &Pair) -> Factor<L> {
        (self.l.splat(w[0]), self.l.splat(w[1]))
    }

    /// A constant in every lane.
    #[inline(always)]
    pub(crate) fn factor(self, q: &Modulus, w: &Shoup) -> Factor<L> {
        self.splat(&pair(q, w.value))
    }

    /// The integer nearest to `x·y`, of magnitude below 2^51.
    #[inline(always)]
    fn round(self, x: L::V, y: L::V) -> L::V {
        self.l.sub(self.l.mul_add(x, y, self.magic), self.magic)
    }

    /// `a·w` of magnitude up to `p·(1/2 + |a|·2^−54)`, for `|a| < 2^52`.
    #[inline(always)]
    pub(crate) fn times(self, a: L::V, w: Factor<L>) -> L::V {
        let l = self.l;
        let c = self.round(a, w.1);
        let h = l.mul(a, w.0);
        let rest = l.mul_sub(a, w.0, h);
        l.add(l.neg_mul_add(c, self.p, h), rest)
    }

    /// `a·b + c` of magnitude up to 7p/8, for factors of magnitude up to p and `|c| ≤ p`.
    #[inline(always)]
    pub(crate) fn product_add(self, c: L::V, a: L::V, b: L::V) -> L::V {
        let l = self.l;
        let h = l.mul(a, b);
        let rest = l.add(l.mul_sub(a, b, h), c);
        let quotient = self.round(l.add(h, c), self.inverse);
        l.add(l.neg_mul_add(quotient, self.p, h), rest)
    }

    /// `a·b` of magnitude up to 3p/4, for factors of magnitude up to p.
    #[inline(always)]
    pub(crate) fn product(self, a: L::V, b: L::V) -> L::V {
        let l = self.l;
        let h = l.mul(a, b);
        let rest = l.mul_sub(a, b, h);
        let quotient = self.round(h, self.inverse);
        l.add(l.neg_mul_add(quotient, self.p, h), rest)
    }

    /// An integer to one of magnitude up to `p/2 + 1`.
    #[inline(always)]
    pub(crate) fn reduce(self, x: L::V) -> L::V {
        self.l.neg_mul_add(self.round(x, self.inverse), self.p, x)
    }

    /// `(−p, p)` to `[0, p)`.
    #[inline(always)]
    pub(crate) fn positive(self, x: L::V) -> L::V {
        self.l.add_if_negative(x, self.p)
    }

    /// An integer to `[0, p)`.
    #[inline(always)]
    pub(crate) fn residue(self, x: L::V) -> L::V {
        self.positive(self.reduce(x))
    }
}

impl<L: Doubles> Signed for Arith<L> {
    type V = L::V;
    type Constant = Pair;
    type Factor = Factor<L>;
    const PARTS: usize = L::PARTS;

    #[inline(always)]
    fn zero(self) -> L::V {
        self.l.splat(0.0)
    }

    #[inline(always)]
    fn load(self, x: &[u64; 8], part: usize) -> L::V {
        self.l.load(x, part)
    }

    #[inline(always)]
    fn store(self, x: &mut [u64; 8], part: usize, v: L::V) {
        self.l.store(x, part, v);
    }

    #[inline(always)]
    fn load_words(self, x: &[u64; 8], part: usize) -> L::V {
        self.l.load_words(x, part)
    }

    #[inline(always)]
    fn store_words(self, x: &mut [u64; 8], part: usize, v: L::V) {
        self.l.store_words(x, part, v);
    }

    #[inline(always)]
    fn transpose(self, v: [L::V; 8]) -> [L::V; 8] {
        self.l.transpose(v)
    }

    #[inline(always)]
    fn splat(self, w: &Pair) -> Factor<L> {
        Self::splat(self, w)
    }

    #[inline(always)]
    fn per_lane(self, [w, quotient]: &[Eight; 2], part: usize) -> Factor<L> {
        (self.l.load(&w.0, part), self.l.load(&quotient.0, part))
    }

    #[inline(always)]
    fn add(self, x: L::V, y: L::V) -> L::V {
        self.l.add(x, y)
    }

    #[inline(always)]
    fn sub(self, x: L::V, y: L::V) -> L::V {
        self.l.sub(x, y)
    }

    #[inline(always)]
    fn times(self, x: L::V, w: Factor<L>) -> L::V {
        Self::times(self, x, w)
    }

    #[inline(always)]
    fn reduce(self, x: L::V) -> L::V {
        Self::reduce(self, x)
    }

    #[inline(always)]
    fn reduce_sum(self, x: L::V) -> L::V {
        Self::reduce(self, x)
    }

    #[inline(always)]
    fn positive(self, x: L::V) -> L::V {
        Self::positive(self, x)
    }

    #[inline(always)]
    fn residue(self, x: L::V) -> L::V {
        Self::residue(self, x)
    }
}

/// How a sum of products is split, see above.
#[derive(Clone, Copy)]
pub(crate) struct Split<L: Doubles> {
    /// C.
    start: L::V,
    /// 2^−K.
    down: L::V,
    /// 2^K modulo p.
    weight: Factor<L>,
    /// Terms between two reductions.
    pub terms: usize,
}

impl<L: Doubles> Split<L> {
    /// For products of magnitude up to `2^bits`, `bits ≤ 102`.
    #[inline(always)]
    pub(crate) fn new(f: Arith<L>, q: &Modulus, bits: u32) -> Self {
        let k = bits.div_ceil(2) + 1;
        let power = |e: u32| f64::from_bits(u64::from(1023 + e) << 52);
        let weight = q.reduce_u128(1 << k);
        Self {
            start: f.l.splat(1.5 * power(52 + k)),
            down: f.l.splat(1.0 / power(k)),
            weight: f.splat(&pair(q, weight)),
            terms: 1 << (53 - k).min(12),
        }
    }
}

/// A sum of products in two accumulators.
#[derive(Clone, Copy)]
pub(crate) struct Sum<L: Doubles> {
    high: L::V,
    low: L::V,
}

impl<L: Doubles> Sum<L> {
    /// The sum that starts with an integer of magnitude up to p.
    #[inline(always)]
    pub(crate) fn new(split: &Split<L>, start: L::V) -> Self {
        Self { high: split.start, low: start }
    }

    /// Adds `a·b`.
    #[inline(always)]
    pub(crate) fn add(&mut self, l: L, a: L::V, b: L::V) {
        let high = l.mul_add(a, b, self.high);
        let share = l.sub(high, self.high);
        self.low = l.add(self.low, l.mul_sub(a, b, share));
        self.high = high;
    }

    /// The sum modulo p, of magnitude up to `p/2 + 1`. The upper part in units of 2^K is below 2^51, the
    /// lower one below 2^52 + p, and with the upper one's product it is an integer still.
    #[inline(always)]
    pub(crate) fn reduce(self, f: Arith<L>, split: &Split<L>) -> L::V {
        let high = f.l.mul(f.l.sub(self.high, split.start), split.down);
        f.reduce(f.l.add(f.times(high, split.weight), self.low))
    }
}
