//! The transform with 64-bit products emulated from 32-bit ones, for primes below 2^61.

use super::super::lanes::{csub, splat};
use super::super::tokens::{Avx512, with_avx512};
use super::DqLimb;
use crate::kernel::Ahead;
use crate::kernel::contract::Source;
use crate::kernel::features::Proof;
use crate::kernel::generic::vectors::ntt::{Arithmetic, Transform};
use crate::kernel::generic::vectors::tables::{ForwardPlan, InversePlan};
use std::arch::x86_64::*;

/// Unit 4q: the quotient's estimate leaves out the lowest partial product and the carries, so
/// it is at most 3 too small. With `WIDE`, values between layers reach 16q (q < 2^60), else 8q.
#[derive(Clone, Copy)]
struct Butterflies<const WIDE: bool> {
    token: Avx512,
    q: __m512i,
    two_q: __m512i,
    four_q: __m512i,
    eight_q: __m512i,
}

/// The upper halves in the lower ones; what stands in the upper is no matter to a product of
/// lower halves.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn upper(x: __m512i) -> __m512i {
    _mm512_castps_si512(_mm512_movehdup_ps(_mm512_castsi512_ps(x)))
}

/// `t ≡ y·w` in `[0, 4q)`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mul(q: __m512i, y: __m512i, (w, quotient): (__m512i, __m512i)) -> __m512i {
    // Shuffles rather than shifts: they run on the port that the shifts below leave free.
    let y_high = upper(y);
    let quotient_high = upper(quotient);
    let cross0 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(y_high, quotient));
    let cross1 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(y, quotient_high));
    let high = _mm512_mul_epu32(y_high, quotient_high);
    let estimate = _mm512_add_epi64(_mm512_add_epi64(cross0, cross1), high);
    _mm512_sub_epi64(_mm512_mullo_epi64(y, w), _mm512_mullo_epi64(estimate, q))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn butterfly(
    (q, four_q): (__m512i, __m512i),
    x: __m512i,
    y: __m512i,
    w: (__m512i, __m512i),
    offset: bool,
) -> (__m512i, __m512i) {
    let product = mul(q, y, w);
    let top = if offset { _mm512_add_epi64(x, four_q) } else { x };
    (_mm512_add_epi64(x, product), _mm512_sub_epi64(top, product))
}

impl<const WIDE: bool> Butterflies<WIDE> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn below_unit(&self, x: __m512i) -> __m512i {
        let x = if WIDE { csub(x, self.eight_q) } else { x };
        csub(x, self.four_q)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn residue(&self, x: __m512i) -> __m512i {
        csub(csub(x, self.two_q), self.q)
    }
}

impl<const WIDE: bool> Proof<Avx512> for Butterflies<WIDE> {
    #[inline(always)]
    fn proof(&self) -> Avx512 {
        self.token
    }
}

impl<const WIDE: bool> Arithmetic for Butterflies<WIDE> {
    type Lanes = Avx512;

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        self.token
    }

    #[inline(always)]
    fn unit(self) -> __m512i {
        self.four_q
    }

    with_avx512! { [const WIDE: bool] this: Butterflies<WIDE>;
        fn mul(y: __m512i, w: (__m512i, __m512i)) -> __m512i = mul(this.q, y, w);
        fn butterfly(x: __m512i, y: __m512i, w: (__m512i, __m512i), offset: bool) -> (__m512i, __m512i)
            = butterfly((this.q, this.four_q), x, y, w, offset);
        fn reduce(x: __m512i) -> __m512i = this.below_unit(x);
        fn finish(x: __m512i) -> __m512i = this.residue(this.below_unit(x));
        fn finish_product(x: __m512i) -> __m512i = this.residue(x);
    }
}

impl DqLimb {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn transform<const WIDE: bool>(&self) -> Transform<Butterflies<WIDE>, false> {
        let q = self.q.value();
        let multiple = |k: u64| splat(q.wrapping_mul(k));
        let butterflies = Butterflies {
            token: self.token,
            q: multiple(1),
            two_q: multiple(2),
            four_q: multiple(4),
            eight_q: multiple(8),
        };
        Transform::new(butterflies, &self.t)
    }

    // Each plan is compiled alone.

    #[target_feature(enable = "avx512f,avx512dq")]
    fn forward_by<const WIDE: bool, const PLAN: u8>(&self, a: &mut [u64]) {
        self.transform::<WIDE>().forward::<PLAN, 2>(&self.t, a);
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    fn inverse_by<const WIDE: bool, const PLAN: u8>(&self, a: &mut [u64], source: Option<Source<'_>>) {
        self.transform::<WIDE>().inverse::<PLAN, 2>(&self.t, a, source);
    }

    /// Whether values between layers may reach 16q.
    fn wide(&self) -> bool {
        self.t.forward_plan == ForwardPlan::Pass
    }

    // The multiplier leaves no time to ask for bytes ahead.

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn forward(&self, a: &mut [u64], _ahead: &mut Ahead<'_>) {
        match self.wide() {
            true => self.forward_by::<true, { ForwardPlan::Pass as u8 }>(a),
            false => self.forward_by::<false, { ForwardPlan::Layer as u8 }>(a),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn inverse(&self, a: &mut [u64], _ahead: &mut Ahead<'_>, source: Option<Source<'_>>) {
        match self.wide() {
            true => self.inverse_by::<true, { InversePlan::Third as u8 }>(a, source),
            false => self.inverse_by::<false, { InversePlan::Layer as u8 }>(a, source),
        }
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn forward_partial(&self, a: &mut [u64], layers: u32) {
        self.transform::<false>().forward_partial(&self.t, a, layers as usize);
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        let scale = &self.t.layer_inverses[layers as usize];
        self.transform::<false>().inverse_partial(&self.t, a, layers as usize, scale);
    }
}
