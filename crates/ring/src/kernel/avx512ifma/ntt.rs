//! The transform with 52-bit multiply-add, for primes below 2^50.
//!
//! A lane's *true* value stays below 2^52 between layers; what additions leave above bit 52 is
//! ignored by the multiplications and masked off at the end.

use super::super::NttTables;
use super::super::avx512ntt::{self, Arithmetic, V};
use super::super::vector_tables::{ForwardPlan, InversePlan};
use crate::modulus::Modulus;
use core::arch::x86_64::*;

/// Unit 2q: the product less its estimated quotient times q.
#[derive(Clone, Copy)]
struct Ifma {
    q: V,
    /// 2^52 − q: multiplying by it subtracts modulo 2^52.
    negative_q: V,
    /// floor(2^52 / q).
    ratio: V,
}

impl Ifma {
    /// `acc + t` with `t ≡ y·w` in `[0, 2q)`, for `y` below 2^52.
    #[inline(always)]
    unsafe fn mul_add(self, acc: V, y: V, (w, quotient): (V, V)) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            let estimate = _mm512_madd52hi_epu64(_mm512_setzero_si512(), y, quotient);
            _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(acc, y, w), estimate, self.negative_q)
        }
    }
}

impl Arithmetic for Ifma {
    #[inline(always)]
    unsafe fn new(q: u64) -> Self {
        // SAFETY: the caller has the features.
        unsafe {
            Self {
                q: _mm512_set1_epi64(q as i64),
                negative_q: _mm512_set1_epi64(((1u64 << 52) - q) as i64),
                ratio: _mm512_set1_epi64(((1u64 << 52) / q) as i64),
            }
        }
    }

    #[inline(always)]
    unsafe fn unit(self) -> V {
        // SAFETY: the caller has the features.
        unsafe { _mm512_add_epi64(self.q, self.q) }
    }

    #[inline(always)]
    unsafe fn mul(self, y: V, w: (V, V)) -> V {
        // SAFETY: the caller has the features.
        unsafe { self.mul_add(_mm512_setzero_si512(), y, w) }
    }

    /// The product is summed onto `x`, and the difference is 2x less that sum: five operations.
    #[inline(always)]
    unsafe fn butterfly(self, x: V, y: V, w: (V, V), offset: bool) -> (V, V) {
        // SAFETY: the caller has the features.
        unsafe {
            let sum = self.mul_add(x, y, w);
            let mut twice = _mm512_add_epi64(x, x);
            if offset {
                twice = _mm512_add_epi64(twice, self.unit());
            }
            (sum, _mm512_sub_epi64(twice, sum))
        }
    }

    /// Barrett: below 2^52 to below 2q.
    #[inline(always)]
    unsafe fn reduce(self, x: V) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            let estimate = _mm512_madd52hi_epu64(_mm512_setzero_si512(), x, self.ratio);
            _mm512_madd52lo_epu64(x, estimate, self.negative_q)
        }
    }

    #[inline(always)]
    unsafe fn finish(self, x: V) -> V {
        // SAFETY: the caller has the features.
        unsafe { self.finish_product(self.reduce(x)) }
    }

    #[inline(always)]
    unsafe fn finish_product(self, x: V) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            let x = _mm512_and_si512(x, _mm512_set1_epi64((1 << 52) - 1));
            _mm512_min_epu64(x, _mm512_sub_epi64(x, self.q))
        }
    }
}

/// One entry point per plan, so that each is compiled alone.
macro_rules! entry {
    ($name:ident, $function:ident, $plan:expr) => {
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
        unsafe fn $name(q: &Modulus, t: &NttTables, a: &mut [u64]) {
            // SAFETY: this function has the features, the tables are the limb's own.
            unsafe { avx512ntt::$function::<Ifma, { $plan as u8 }>(q, &t.vector, a) }
        }
    };
}

/// The same for transforms that ask for bytes ahead.
macro_rules! entry_ahead {
    ($name:ident, $function:ident, $plan:expr) => {
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
        unsafe fn $name(q: &Modulus, t: &NttTables, a: &mut [u64], ahead: &[u8]) {
            // SAFETY: this function has the features, the tables are the limb's own.
            unsafe { avx512ntt::$function::<Ifma, { $plan as u8 }>(q, &t.vector, a, ahead) }
        }
    };
}

entry!(forward_never, forward, ForwardPlan::Never);
entry!(forward_pass_shift, forward, ForwardPlan::PassShift);
entry!(forward_pass, forward, ForwardPlan::Pass);
entry!(forward_layer, forward, ForwardPlan::Layer);
entry!(inverse_pass, inverse, InversePlan::Pass);
entry!(inverse_third, inverse, InversePlan::Third);
entry!(inverse_layer, inverse, InversePlan::Layer);
entry_ahead!(forward_never_ahead, forward_ahead, ForwardPlan::Never);
entry_ahead!(forward_pass_shift_ahead, forward_ahead, ForwardPlan::PassShift);
entry_ahead!(forward_pass_ahead, forward_ahead, ForwardPlan::Pass);
entry_ahead!(forward_layer_ahead, forward_ahead, ForwardPlan::Layer);
entry_ahead!(inverse_pass_ahead, inverse_ahead, InversePlan::Pass);
entry_ahead!(inverse_third_ahead, inverse_ahead, InversePlan::Third);
entry_ahead!(inverse_layer_ahead, inverse_ahead, InversePlan::Layer);

/// # Safety
/// As for [`forward`].
pub unsafe fn forward_ahead(q: &Modulus, t: &NttTables, a: &mut [u64], ahead: &[u8]) {
    // SAFETY: as the caller's.
    unsafe {
        match t.vector.forward_plan {
            ForwardPlan::Never => forward_never_ahead(q, t, a, ahead),
            ForwardPlan::PassShift => forward_pass_shift_ahead(q, t, a, ahead),
            ForwardPlan::Pass => forward_pass_ahead(q, t, a, ahead),
            ForwardPlan::Layer => forward_layer_ahead(q, t, a, ahead),
        }
    }
}

/// # Safety
/// As for [`forward`].
pub unsafe fn inverse_ahead(q: &Modulus, t: &NttTables, a: &mut [u64], ahead: &[u8]) {
    // SAFETY: as the caller's.
    unsafe {
        match t.vector.inverse_plan {
            InversePlan::Pass => inverse_pass_ahead(q, t, a, ahead),
            InversePlan::Third => inverse_third_ahead(q, t, a, ahead),
            InversePlan::Layer => inverse_layer_ahead(q, t, a, ahead),
        }
    }
}

/// # Safety
/// The processor has AVX-512 F, DQ and IFMA; the tables are of this family.
pub unsafe fn forward(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe {
        match t.vector.forward_plan {
            ForwardPlan::Never => forward_never(q, t, a),
            ForwardPlan::PassShift => forward_pass_shift(q, t, a),
            ForwardPlan::Pass => forward_pass(q, t, a),
            ForwardPlan::Layer => forward_layer(q, t, a),
        }
    }
}

/// # Safety
/// As for [`forward`].
pub unsafe fn inverse(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe {
        match t.vector.inverse_plan {
            InversePlan::Pass => inverse_pass(q, t, a),
            InversePlan::Third => inverse_third(q, t, a),
            InversePlan::Layer => inverse_layer(q, t, a),
        }
    }
}

/// # Safety
/// As for [`forward`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub unsafe fn forward_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    // SAFETY: this function has the features, the tables are the limb's own.
    unsafe { avx512ntt::forward_partial::<Ifma>(q, &t.vector, a, layers) }
}

/// # Safety
/// As for [`forward`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub unsafe fn inverse_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    let scale = &t.block_inv[layers as usize];
    // SAFETY: this function has the features, the tables are the limb's own.
    unsafe { avx512ntt::inverse_partial::<Ifma>(q, &t.vector, a, layers, [scale.value, scale.quotient52]) }
}
