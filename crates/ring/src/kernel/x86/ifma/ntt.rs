//! The transform with 52-bit multiply-add, for primes below 2^50.
//!
//! A lane's *true* value stays below 2^52 between layers; what additions leave above bit 52 is
//! ignored by the multiplications and masked off at the end.

use super::super::lanes::splat;
use super::super::tokens::{Avx512, Ifma, with_ifma};
use super::IfmaLimb;
use crate::kernel::Ahead;
use crate::kernel::contract::Source;
use crate::kernel::features::Proof;
use crate::kernel::generic::vectors::ntt::{Arithmetic, Transform};
use crate::kernel::generic::vectors::tables::{ForwardPlan, InversePlan};
use std::arch::x86_64::*;

/// Unit 2q: the product less its estimated quotient times q.
#[derive(Clone, Copy)]
struct Butterflies {
    token: Ifma,
    q: __m512i,
    /// 2^52 − q: multiplying by it subtracts modulo 2^52.
    negative_q: __m512i,
    /// floor(2^52 / q).
    ratio: __m512i,
}

/// `acc + t` with `t ≡ y·w` in `[0, 2q)`, for `y` below 2^52.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn mul_add(f: &Butterflies, acc: __m512i, y: __m512i, (w, quotient): (__m512i, __m512i)) -> __m512i {
    let estimate = _mm512_madd52hi_epu64(_mm512_setzero_si512(), y, quotient);
    _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(acc, y, w), estimate, f.negative_q)
}

/// The product is summed onto `x`, and the difference is 2x less that sum: five operations.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn butterfly(f: &Butterflies, x: __m512i, y: __m512i, w: (__m512i, __m512i), offset: bool) -> (__m512i, __m512i) {
    let sum = mul_add(f, x, y, w);
    let mut twice = _mm512_add_epi64(x, x);
    if offset {
        twice = _mm512_add_epi64(twice, _mm512_add_epi64(f.q, f.q));
    }
    (sum, _mm512_sub_epi64(twice, sum))
}

/// Barrett: below 2^52 to below 2q.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn reduce(f: &Butterflies, x: __m512i) -> __m512i {
    let estimate = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, f.ratio);
    _mm512_madd52lo_epu64(x, estimate, f.negative_q)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn finish_product(f: &Butterflies, x: __m512i) -> __m512i {
    let x = _mm512_and_si512(x, splat((1 << 52) - 1));
    _mm512_min_epu64(x, _mm512_sub_epi64(x, f.q))
}

impl Proof<Ifma> for Butterflies {
    #[inline(always)]
    fn proof(&self) -> Ifma {
        self.token
    }
}

impl Arithmetic for Butterflies {
    type Lanes = Avx512;

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        *self.token.avx512()
    }

    with_ifma! { this: Butterflies;
        fn unit() -> __m512i = _mm512_add_epi64(this.q, this.q);
        fn mul(y: __m512i, w: (__m512i, __m512i)) -> __m512i = mul_add(&this, _mm512_setzero_si512(), y, w);
        fn butterfly(x: __m512i, y: __m512i, w: (__m512i, __m512i), offset: bool) -> (__m512i, __m512i)
            = butterfly(&this, x, y, w, offset);
        fn reduce(x: __m512i) -> __m512i = reduce(&this, x);
        fn finish(x: __m512i) -> __m512i = finish_product(&this, reduce(&this, x));
        fn finish_product(x: __m512i) -> __m512i = finish_product(&this, x);
    }
}

impl IfmaLimb {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn transform(&self) -> Transform<Butterflies, false> {
        let q = self.q.value();
        let butterflies = Butterflies {
            token: self.token,
            q: splat(q),
            negative_q: splat((1 << 52) - q),
            ratio: splat((1 << 52) / q),
        };
        Transform::new(butterflies, &self.t)
    }

    // Each plan is compiled alone. A forward transform that asks for bytes ahead is another one than that which does not;
    // an inverse one has time to ask, be it for nothing.

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn forward_by<const PLAN: u8>(&self, a: &mut [u64]) {
        self.transform().forward::<PLAN, 2>(&self.t, a);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn forward_ahead_by<const PLAN: u8>(&self, a: &mut [u64], ahead: &[u8]) {
        self.transform().asking(a, Some(ahead)).forward::<PLAN, 2>(&self.t, a);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    fn inverse_by<const PLAN: u8>(&self, a: &mut [u64], ahead: &mut Ahead<'_>, source: Option<Source<'_>>) {
        let ahead = ahead.take(8 * self.n * (self.t.inverse_passes.len() + 1));
        self.transform().asking(a, ahead).inverse::<PLAN, 2>(&self.t, a, source);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn forward(&self, a: &mut [u64], ahead: &mut Ahead<'_>) {
        // Blind rotations, which ask, have primes below 2^49.
        if self.t.forward_plan == ForwardPlan::Layer {
            return self.forward_by::<{ ForwardPlan::Layer as u8 }>(a);
        }
        match (self.t.forward_plan, ahead.take(8 * self.n * (self.t.forward_passes.len() + 1))) {
            (ForwardPlan::Never, None) => self.forward_by::<{ ForwardPlan::Never as u8 }>(a),
            (ForwardPlan::Never, Some(bytes)) => self.forward_ahead_by::<{ ForwardPlan::Never as u8 }>(a, bytes),
            (ForwardPlan::PassShift, None) => self.forward_by::<{ ForwardPlan::PassShift as u8 }>(a),
            (ForwardPlan::PassShift, Some(bytes)) => {
                self.forward_ahead_by::<{ ForwardPlan::PassShift as u8 }>(a, bytes);
            }
            (_, None) => self.forward_by::<{ ForwardPlan::Pass as u8 }>(a),
            (_, Some(bytes)) => self.forward_ahead_by::<{ ForwardPlan::Pass as u8 }>(a, bytes),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn inverse(&self, a: &mut [u64], ahead: &mut Ahead<'_>, source: Option<Source<'_>>) {
        match self.t.inverse_plan {
            InversePlan::Pass => self.inverse_by::<{ InversePlan::Pass as u8 }>(a, ahead, source),
            InversePlan::Third => self.inverse_by::<{ InversePlan::Third as u8 }>(a, ahead, source),
            InversePlan::Layer => self.inverse_by::<{ InversePlan::Layer as u8 }>(a, ahead, source),
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn forward_partial(&self, a: &mut [u64], layers: u32) {
        self.transform().forward_partial(&self.t, a, layers as usize);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        let scale = &self.t.layer_inverses[layers as usize];
        self.transform().inverse_partial(&self.t, a, layers as usize, scale);
    }
}
