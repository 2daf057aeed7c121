//! Reductions in 52-bit lanes.
//!
//! IFMA multiplies the low 52 bits of each lane and adds the low or the high 52 bits of the
//! product to a 64-bit accumulator. Every value below is exact modulo 2^52 and its true value
//! lies under 2^52 wherever it is masked.

use super::super::lanes::{add_mod, csub, splat, sub_mod};
use super::super::tokens::{Avx512, Ifma, with_ifma};
use crate::kernel::features::Proof;
use crate::kernel::generic::vectors::lanes::Field;
use crate::modulus::{Modulus, Shoup};
use std::arch::x86_64::*;

/// Low 52 bits.
const MASK52: u64 = (1 << 52) - 1;
/// Fewest bits of a modulus for which [`IfmaField::reduce_word`] holds: degree 2^9 or more and
/// q ≡ 1 (mod 2N) leave no prime below 12289.
const MIN_BITS: u32 = 14;

/// The constants of one prime, `q < 2^50` of `n` bits, in every lane.
#[derive(Clone, Copy)]
pub(super) struct IfmaField {
    token: Ifma,
    /// q.
    pub q: __m512i,
    /// 2q.
    pub two_q: __m512i,
    /// 2^52 − q: adding a multiple of it subtracts that multiple of q modulo 2^52.
    neg_q: __m512i,
    mask: __m512i,
    /// floor(2^(n+51) / q), below 2^52.
    mu: __m512i,
    /// floor(2^(n+50) / q).
    mu_word: __m512i,
    /// n − 2.
    low_shift: __m512i,
    /// 54 − n.
    high_shift: __m512i,
    /// 52 − n.
    factor_shift: __m512i,
    /// 2^52 mod q and its quotient.
    r52: __m512i,
    r52_quotient: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn lo(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52lo_epu64(acc, a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn hi(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52hi_epu64(acc, a, b)
}

impl IfmaField {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub fn new(token: Ifma, q: &Modulus) -> Self {
        let n = q.bits();
        debug_assert!((MIN_BITS..=50).contains(&n));
        // floor(2^e / q) is a shift of floor(2^128 / q): no division, so small calls stay cheap.
        let (ratio_high, ratio_low) = q.barrett_ratio();
        let ratio = u128::from(ratio_high) << 64 | u128::from(ratio_low);
        let power = |e: u32| ratio >> (128 - e);
        // 2^52 = k·q + r52, and floor(r52·2^52/q) = floor(2^104/q) − k·2^52.
        let k = power(52);
        let r52 = (1 << 52) - k as u64 * q.value();
        let r52_quotient = (power(104) - (k << 52)) as u64;
        Self {
            token,
            q: splat(q.value()),
            two_q: splat(2 * q.value()),
            neg_q: splat((1 << 52) - q.value()),
            mask: splat(MASK52),
            mu: splat(power(n + 51) as u64),
            mu_word: splat(power(n + 50) as u64),
            low_shift: splat(u64::from(n - 2)),
            high_shift: splat(u64::from(54 - n)),
            factor_shift: splat(u64::from(52 - n)),
            r52: splat(r52),
            r52_quotient: splat(r52_quotient),
        }
    }

    /// Barrett's last steps for a product `P < q²` given `top = floor(P / 2^(n−2)) < 2^52` and
    /// `low ≡ P` modulo 2^52. The quotient lags by less than 2^(n−2)/q < 1/2 from the cut, 1/2
    /// from μ (its error is under one in 2^53 / top) and 1 from its own floor, so `r < 2q`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn barrett(&self, top: __m512i, low: __m512i) -> __m512i {
        let quotient = _mm512_srli_epi64::<1>(hi(_mm512_setzero_si512(), top, self.mu));
        csub(_mm512_and_si512(lo(low, quotient, self.neg_q), self.mask), self.q)
    }

    /// `a · b`, all in `[0, q)`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn product(&self, a: __m512i, b: __m512i) -> __m512i {
        // Shifted factors make the high half the cut product itself: (52 − n) + 2 = 52 − (n − 2).
        let (a_high, b_high) = (_mm512_sllv_epi64(a, self.factor_shift), _mm512_slli_epi64::<2>(b));
        let zero = _mm512_setzero_si512();
        self.barrett(hi(zero, a_high, b_high), lo(zero, a, b))
    }

    /// `c + a · b`, all in `[0, q)`: q − 1 + (q − 1)² is still under q².
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn product_add(&self, c: __m512i, a: __m512i, b: __m512i) -> __m512i {
        let (low, high) = (lo(c, a, b), hi(_mm512_setzero_si512(), a, b));
        let top = _mm512_add_epi64(_mm512_sllv_epi64(high, self.high_shift), _mm512_srlv_epi64(low, self.low_shift));
        self.barrett(top, low)
    }

    /// `x` in `[0, 2^63]` to `[0, 2q)`. The quotient lags by less than 1/2 from the cut,
    /// 2^(65−n)/2^52 ≤ 1/2 from μ (n ≥ 14) and 1 from its floor.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn reduce_word(&self, x: __m512i) -> __m512i {
        let quotient = hi(_mm512_setzero_si512(), _mm512_srlv_epi64(x, self.low_shift), self.mu_word);
        _mm512_and_si512(lo(x, quotient, self.neg_q), self.mask)
    }

    /// `c + x · w` in `[0, 2q)` more than `c`, for `x < 2^52`, `c < 2^50`, and `w < q` with its
    /// quotient floor(w·2^52/q) (Shoup).
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn mul_shoup_add(&self, c: __m512i, x: __m512i, w: __m512i, quotient: __m512i) -> __m512i {
        let estimate = hi(_mm512_setzero_si512(), x, quotient);
        _mm512_and_si512(lo(lo(c, x, w), estimate, self.neg_q), self.mask)
    }

    /// `low + high · 2^52` to `[0, q)`. With `WIDE`, for any `low` and `high < 2^63 − 2^12`;
    /// without, for `low < 2^62` and `high < 2^52`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub fn reduce_sum<const WIDE: bool>(&self, mut low: __m512i, mut high: __m512i) -> __m512i {
        if WIDE {
            high = self.reduce_word(_mm512_add_epi64(high, _mm512_srli_epi64::<52>(low)));
            low = _mm512_and_si512(low, self.mask);
        }
        let folded = self.mul_shoup_add(_mm512_setzero_si512(), high, self.r52, self.r52_quotient);
        csub(self.reduce_word(_mm512_add_epi64(folded, low)), self.q)
    }
}

/// Adds the halves of `a · b` to `low` and `high`; reads 52 bits of each factor.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
pub(super) fn accumulate(low: &mut __m512i, high: &mut __m512i, a: __m512i, b: __m512i) {
    *low = lo(*low, a, b);
    *high = hi(*high, a, b);
}

/// Adds `a · b`, which is below 2^52, to `low`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
pub(super) fn accumulate_low(low: &mut __m512i, a: __m512i, b: __m512i) {
    *low = lo(*low, a, b);
}

/// Whether `terms` products below `a·b` (exclusive bounds) need [`IfmaField::reduce_sum`]'s wide form.
pub(super) fn needs_wide(terms: usize, a: u64, b: u64) -> bool {
    terms > 512 || (u128::from(a) * u128::from(b)).saturating_mul(terms as u128) >> 104 != 0
}

/// A constant in every lane, and its quotient floor(w·2^52/q).
#[derive(Clone, Copy)]
pub(super) struct Factor {
    value: __m512i,
    quotient: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn factor(w: &Shoup) -> Factor {
    Factor { value: splat(w.value), quotient: splat(w.quotient52) }
}

impl IfmaField {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn times(&self, x: __m512i, w: Factor) -> __m512i {
        csub(self.mul_shoup_add(_mm512_setzero_si512(), x, w.value, w.quotient), self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn times_add(&self, c: __m512i, x: __m512i, w: Factor) -> __m512i {
        // Under 3q.
        let sum = self.mul_shoup_add(c, x, w.value, w.quotient);
        csub(csub(sum, self.two_q), self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn residue(&self, x: __m512i) -> __m512i {
        csub(self.reduce_word(x), self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn residue_above(&self, x: __m512i, half: __m512i, less: __m512i) -> __m512i {
        let r = self.residue(x);
        let upper = _mm512_cmpgt_epu64_mask(x, half);
        csub(_mm512_mask_add_epi64(r, upper, r, less), self.q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn residue_signed(&self, x: __m512i) -> __m512i {
        let r = self.residue(_mm512_abs_epi64(x));
        let negative = _mm512_cmplt_epi64_mask(x, _mm512_setzero_si512());
        csub(_mm512_mask_sub_epi64(r, negative, self.q, r), self.q)
    }
}

impl Proof<Ifma> for IfmaField {
    #[inline(always)]
    fn proof(&self) -> Ifma {
        self.token
    }
}

impl Field for IfmaField {
    type Lanes = Avx512;
    type Factor = Factor;

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        *self.token.avx512()
    }

    #[inline(always)]
    fn q(self) -> __m512i {
        self.q
    }

    with_ifma! { this: IfmaField;
        fn add(a: __m512i, b: __m512i) -> __m512i = add_mod(a, b, this.q);
        fn sub(a: __m512i, b: __m512i) -> __m512i = sub_mod(a, b, this.q);
        fn mul(a: __m512i, b: __m512i) -> __m512i = this.product(a, b);
        fn mul_add(c: __m512i, a: __m512i, b: __m512i) -> __m512i = this.product_add(c, a, b);
        fn factor(w: &Shoup) -> Factor = factor(w);
        fn mul_factor(x: __m512i, w: Factor) -> __m512i = this.times(x, w);
        fn mul_factor_add(c: __m512i, x: __m512i, w: Factor) -> __m512i = this.times_add(c, x, w);
        fn reduce(x: __m512i) -> __m512i = this.residue(x);
        fn reduce_above(x: __m512i, half: __m512i, less: __m512i) -> __m512i = this.residue_above(x, half, less);
        fn reduce_signed(x: __m512i) -> __m512i = this.residue_signed(x);
    }
}
