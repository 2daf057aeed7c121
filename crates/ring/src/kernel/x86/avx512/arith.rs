//! Products and reductions in 64-bit lanes, from the 32×32-bit multiplier.
//!
//! High halves of products are approximated from below: leaving out the carries saves five
//! instructions of fourteen, and Barrett quotients that lag a little only make the remainder a
//! few q larger, for which words of 64 bits have room (8q < 2^64).

use super::super::lanes::{add_mod, csub, splat, sub_mod};
use super::super::tokens::{Avx512, with_avx512};
use crate::kernel::features::Proof;
use crate::kernel::generic::vectors::lanes::Field;
use crate::modulus::{Modulus, Shoup};
use std::arch::x86_64::*;

/// A factor with its upper 32 bits at hand.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    word: __m512i,
    upper: __m512i,
}

impl Wide {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(word: __m512i) -> Self {
        Self { word, upper: _mm512_srli_epi64::<32>(word) }
    }

    /// One word in every lane, for products alone: the lanes hold each half twice, which the
    /// multiplier does not read. Two broadcasts from memory leave the vector ports free.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn splat([lower, upper]: [u32; 2]) -> Self {
        Self { word: _mm512_set1_epi32(lower as i32), upper: _mm512_set1_epi32(upper as i32) }
    }
}

/// floor(a·b / 2^64), less at most 2, for any words.
#[inline]
#[target_feature(enable = "avx512f")]
fn high_product(a: Wide, b: Wide) -> __m512i {
    let lh = _mm512_mul_epu32(a.word, b.upper);
    let hl = _mm512_mul_epu32(a.upper, b.word);
    let middle = _mm512_add_epi64(_mm512_srli_epi64::<32>(lh), _mm512_srli_epi64::<32>(hl));
    _mm512_add_epi64(_mm512_mul_epu32(a.upper, b.upper), middle)
}

/// The same, less at most 1, for factors under 2^63: the sum of the middle products fits a word.
#[inline]
#[target_feature(enable = "avx512f")]
fn high_product_joined(a: Wide, b: Wide) -> __m512i {
    let middle = _mm512_add_epi64(_mm512_mul_epu32(a.word, b.upper), _mm512_mul_epu32(a.upper, b.word));
    _mm512_add_epi64(_mm512_mul_epu32(a.upper, b.upper), _mm512_srli_epi64::<32>(middle))
}

/// The constants of one prime `q < 2^61` of `n` bits, in every lane.
#[derive(Clone, Copy)]
pub(super) struct DqField {
    token: Avx512,
    /// Whether [`DqField::product_add`] may take its short way: the primes just below a power of two,
    /// as parameter sets have them, of up to 60 bits.
    near: bool,
    /// q.
    pub q: __m512i,
    /// 2q.
    two_q: __m512i,
    /// 4q.
    four_q: __m512i,
    /// floor(2^(n+62) / q), below 2^63.
    mu: Wide,
    /// floor(2^64 / q).
    mu_word: Wide,
    /// 64 − n.
    factor_shift: __m512i,
    /// 63 − n.
    near_shift: __m512i,
    /// 2^64 mod q and its quotient.
    r64: Factor,
}

/// A constant factor and its quotient floor(w·2^64/q).
#[derive(Clone, Copy)]
pub(super) struct Factor {
    value: __m512i,
    quotient: Wide,
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(w: &Shoup) -> Self {
        Self { value: splat(w.value), quotient: Wide::new(splat(w.quotient)) }
    }
}

impl DqField {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn new(token: Avx512, q: &Modulus) -> Self {
        let n = q.bits();
        // Every constant is a part of floor(2^128 / q): no division, so small calls stay cheap.
        let (ratio_high, ratio_low) = q.barrett_ratio();
        let ratio = u128::from(ratio_high) << 64 | u128::from(ratio_low);
        // 2^64 = k·q + r64 with k the high word, and floor(r64·2^64/q) the low one.
        let r64 = ratio_high.wrapping_mul(q.value()).wrapping_neg();
        Self {
            token,
            near: q.bits() <= 60 && q.value() >> (q.bits() - 2) == 0b11,
            q: splat(q.value()),
            two_q: splat(2 * q.value()),
            four_q: splat(4 * q.value()),
            mu: Wide::new(splat((ratio >> (66 - n)) as u64)),
            mu_word: Wide::new(splat(ratio_high)),
            factor_shift: splat(u64::from(64 - n)),
            near_shift: splat(u64::from(63 - n)),
            r64: Factor { value: splat(r64), quotient: Wide::new(splat(ratio_low)) },
        }
    }

    /// Whether products with a sum take their short way.
    #[inline(always)]
    pub(super) fn near(&self) -> bool {
        self.near
    }

    /// The same field where that is known to be so when a loop is compiled.
    #[inline(always)]
    pub(super) fn assume_near(self, near: bool) -> Self {
        Self { near, ..self }
    }

    /// `low − quotient · q`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn remainder(&self, low: __m512i, quotient: __m512i) -> __m512i {
        _mm512_sub_epi64(low, _mm512_mullo_epi64(quotient, self.q))
    }

    /// `x` in `[0, 4q)` to `[0, q)`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn reduce_4q(&self, x: __m512i) -> __m512i {
        csub(csub(x, self.two_q), self.q)
    }

    /// `a · b` in `[0, 4q)`, factors in `[0, q)`. The cut product lags by under 3 ulps of
    /// 2^(n−2), so the quotient lags by under 3/2 from it, 2^(n+2)/2^64 ≤ 1/2 from μ, and 2 from
    /// its own floor.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn mul_lazy(&self, a: __m512i, b: __m512i) -> __m512i {
        let top =
            high_product(Wide::new(_mm512_sllv_epi64(a, self.factor_shift)), Wide::new(_mm512_slli_epi64::<2>(b)));
        let quotient = high_product_joined(Wide::new(top), self.mu);
        self.remainder(_mm512_mullo_epi64(a, b), quotient)
    }

    /// `c + a · b`, all in `[0, q)`.
    ///
    /// The short way, for which q ≥ 3·2^(n−2) and n ≤ 60: the shifted factors are under 2^63, so
    /// their middle products add up in one word and the cut product lags by under 2 ulps of
    /// 2^(n−2), the quotient by under 2/3 from it, 1/4 from μ and 2 from its own floor: with `c`
    /// the remainder stays under 4q.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn product_add(&self, c: __m512i, a: __m512i, b: __m512i) -> __m512i {
        if !self.near {
            // Under 2q + q.
            return self.reduce_4q(_mm512_add_epi64(csub(self.mul_lazy(a, b), self.two_q), c));
        }
        let (x, y) = (Wide::new(_mm512_sllv_epi64(a, self.near_shift)), Wide::new(_mm512_slli_epi64::<3>(b)));
        let top = Wide::new(high_product_joined(x, y));
        let quotient = high_product_joined(top, self.mu);
        self.reduce_4q(self.remainder(_mm512_add_epi64(_mm512_mullo_epi64(a, b), c), quotient))
    }

    /// `x · w` in `[0, 4q)`, any `x`: the quotient lags by under 1 from the constant's and 3
    /// from the approximate product.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn mul_shoup_lazy(&self, x: __m512i, w: &Factor) -> __m512i {
        let quotient = high_product(Wide::new(x), w.quotient);
        self.remainder(_mm512_mullo_epi64(x, w.value), quotient)
    }

    /// Any word to `[0, 4q)`; the bounds are those of [`DqField::mul_shoup_lazy`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn reduce_word_lazy(&self, x: __m512i) -> __m512i {
        self.remainder(x, high_product(Wide::new(x), self.mu_word))
    }
}

/// A sum of products of words below 2^61: `low + middle · 2^32 + high · 2^64`.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

/// Products that a [`Sum`] takes between two calls of [`Sum::fold`]: each adds under
/// 2^62 − 2^32 to `middle`, on top of a rest under 2^32.
pub(super) const FOLD_TERMS: usize = 4;
/// Products that a [`Sum`] takes in all: each adds under 2^58 to `high`, and the folds little.
pub(super) const SUM_TERMS: usize = 56;

impl Sum {
    /// The sum that starts with a word below 2^62.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(start: __m512i) -> Self {
        let zero = _mm512_setzero_si512();
        Self { low: start, middle: zero, high: zero }
    }

    /// Adds `a · b`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn add(&mut self, a: Wide, b: Wide) {
        let ll = _mm512_mul_epu32(a.word, b.word);
        let cross = _mm512_add_epi64(_mm512_mul_epu32(a.word, b.upper), _mm512_mul_epu32(a.upper, b.word));
        self.low = _mm512_add_epi64(self.low, _mm512_and_si512(ll, splat(0xFFFF_FFFF)));
        self.middle = _mm512_add_epi64(self.middle, _mm512_add_epi64(cross, _mm512_srli_epi64::<32>(ll)));
        self.high = _mm512_add_epi64(self.high, _mm512_mul_epu32(a.upper, b.upper));
    }

    /// Carries `middle` into `high`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn fold(&mut self) {
        self.high = _mm512_add_epi64(self.high, _mm512_srli_epi64::<32>(self.middle));
        self.middle = _mm512_and_si512(self.middle, splat(0xFFFF_FFFF));
    }

    /// The folded sum modulo q, in `[0, q)`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn reduce(mut self, f: &DqField) -> __m512i {
        self.fold();
        let middle = _mm512_add_epi64(self.middle, _mm512_srli_epi64::<32>(self.low));
        let high = _mm512_add_epi64(self.high, _mm512_srli_epi64::<32>(middle));
        let low = _mm512_or_si512(_mm512_slli_epi64::<32>(middle), _mm512_and_si512(self.low, splat(0xFFFF_FFFF)));
        // Each part under 4q, together under 8q < 2^64.
        let sum = _mm512_add_epi64(f.mul_shoup_lazy(high, &f.r64), f.reduce_word_lazy(low));
        f.reduce_4q(csub(sum, f.four_q))
    }
}

impl DqField {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn product(&self, a: __m512i, b: __m512i) -> __m512i {
        self.reduce_4q(self.mul_lazy(a, b))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn times(&self, x: __m512i, w: &Factor) -> __m512i {
        self.reduce_4q(self.mul_shoup_lazy(x, w))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn times_add(&self, c: __m512i, x: __m512i, w: &Factor) -> __m512i {
        self.reduce_4q(_mm512_add_epi64(csub(self.mul_shoup_lazy(x, w), self.two_q), c))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn residue(&self, x: __m512i) -> __m512i {
        self.reduce_4q(self.reduce_word_lazy(x))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn residue_above(&self, x: __m512i, half: __m512i, less: __m512i) -> __m512i {
        let r = self.residue(x);
        let upper = _mm512_cmpgt_epu64_mask(x, half);
        csub(_mm512_mask_add_epi64(r, upper, r, less), self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn residue_signed(&self, x: __m512i) -> __m512i {
        let r = self.residue(_mm512_abs_epi64(x));
        let negative = _mm512_cmplt_epi64_mask(x, _mm512_setzero_si512());
        csub(_mm512_mask_sub_epi64(r, negative, self.q, r), self.q)
    }
}

impl Proof<Avx512> for DqField {
    #[inline(always)]
    fn proof(&self) -> Avx512 {
        self.token
    }
}

impl Field for DqField {
    type Lanes = Avx512;
    type Factor = Factor;

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        self.token
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.q
    }

    with_avx512! { this: DqField;
        fn add(a: __m512i, b: __m512i) -> __m512i = add_mod(a, b, this.q);
        fn sub(a: __m512i, b: __m512i) -> __m512i = sub_mod(a, b, this.q);
        fn mul(a: __m512i, b: __m512i) -> __m512i = this.product(a, b);
        fn mul_add(c: __m512i, a: __m512i, b: __m512i) -> __m512i = this.product_add(c, a, b);
        fn factor(w: &Shoup) -> Factor = Factor::new(w);
        fn mul_factor(x: __m512i, w: Factor) -> __m512i = this.times(x, &w);
        fn mul_factor_add(c: __m512i, x: __m512i, w: Factor) -> __m512i = this.times_add(c, x, &w);
        fn reduce(x: __m512i) -> __m512i = this.residue(x);
        fn reduce_above(x: __m512i, half: __m512i, less: __m512i) -> __m512i = this.residue_above(x, half, less);
        fn reduce_signed(x: __m512i) -> __m512i = this.residue_signed(x);
    }
}
