//! The transform with 64-bit products emulated from 32-bit ones, for primes below 2^61.

use super::super::NttTables;
use super::super::avx512ntt::{self, Arithmetic, V};
use super::super::vector_tables::{ForwardPlan, InversePlan};
use crate::modulus::Modulus;
use core::arch::x86_64::*;

/// Unit 4q: the quotient's estimate leaves out the lowest partial product and the carries, so
/// it is at most 3 too small.
#[derive(Clone, Copy)]
struct Dq<const WIDE: bool> {
    q: V,
    two_q: V,
    four_q: V,
    eight_q: V,
}

/// `x − m` if that is not negative, else `x`.
#[inline(always)]
unsafe fn subtract_once(x: V, m: V) -> V {
    // SAFETY: the caller has the features.
    unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, m)) }
}

/// The upper halves in the lower ones; what stands in the upper is no matter to a product of
/// lower halves.
#[inline(always)]
unsafe fn upper(x: V) -> V {
    // SAFETY: the caller has the features.
    unsafe { _mm512_castps_si512(_mm512_movehdup_ps(_mm512_castsi512_ps(x))) }
}

/// With `WIDE`, values between layers reach 16q (q < 2^60), else 8q.
impl<const WIDE: bool> Arithmetic for Dq<WIDE> {
    #[inline(always)]
    unsafe fn new(q: u64) -> Self {
        // SAFETY: the caller has the features.
        unsafe {
            let splat = |x: u64| _mm512_set1_epi64(x as i64);
            Self { q: splat(q), two_q: splat(2 * q), four_q: splat(4 * q), eight_q: splat(q.wrapping_mul(8)) }
        }
    }

    #[inline(always)]
    unsafe fn unit(self) -> V {
        self.four_q
    }

    #[inline(always)]
    unsafe fn mul(self, y: V, (w, quotient): (V, V)) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            // Shuffles rather than shifts: they run on the port that the shifts below leave free.
            let y_high = upper(y);
            let quotient_high = upper(quotient);
            let cross0 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(y_high, quotient));
            let cross1 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(y, quotient_high));
            let high = _mm512_mul_epu32(y_high, quotient_high);
            let estimate = _mm512_add_epi64(_mm512_add_epi64(cross0, cross1), high);
            _mm512_sub_epi64(_mm512_mullo_epi64(y, w), _mm512_mullo_epi64(estimate, self.q))
        }
    }

    #[inline(always)]
    unsafe fn butterfly(self, x: V, y: V, w: (V, V), offset: bool) -> (V, V) {
        // SAFETY: the caller has the features.
        unsafe {
            let product = self.mul(y, w);
            let top = if offset { _mm512_add_epi64(x, self.four_q) } else { x };
            (_mm512_add_epi64(x, product), _mm512_sub_epi64(top, product))
        }
    }

    #[inline(always)]
    unsafe fn reduce(self, x: V) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            let x = if WIDE { subtract_once(x, self.eight_q) } else { x };
            subtract_once(x, self.four_q)
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
        unsafe { subtract_once(subtract_once(x, self.two_q), self.q) }
    }
}

/// One entry point per plan, so that each is compiled alone.
macro_rules! entry {
    ($name:ident, $function:ident, $wide:literal, $plan:expr) => {
        #[target_feature(enable = "avx512f,avx512dq")]
        unsafe fn $name(q: &Modulus, t: &NttTables, a: &mut [u64]) {
            // SAFETY: this function has the features, the tables are the limb's own.
            unsafe { avx512ntt::$function::<Dq<$wide>, { $plan as u8 }>(q, &t.vector, a) }
        }
    };
}

entry!(forward_pass, forward, true, ForwardPlan::Pass);
entry!(forward_layer, forward, false, ForwardPlan::Layer);
entry!(inverse_third, inverse, true, InversePlan::Third);
entry!(inverse_layer, inverse, false, InversePlan::Layer);

/// Whether values between layers may reach 16q.
fn wide(t: &NttTables) -> bool {
    t.vector.forward_plan == ForwardPlan::Pass
}

/// # Safety
/// The processor has AVX-512 F and DQ; the tables are of this family.
pub unsafe fn forward(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe { if wide(t) { forward_pass(q, t, a) } else { forward_layer(q, t, a) } }
}

/// # Safety
/// As for [`forward`].
pub unsafe fn inverse(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe { if wide(t) { inverse_third(q, t, a) } else { inverse_layer(q, t, a) } }
}

/// # Safety
/// As for [`forward`].
#[target_feature(enable = "avx512f,avx512dq")]
pub unsafe fn forward_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    // SAFETY: this function has the features, the tables are the limb's own.
    unsafe { avx512ntt::forward_partial::<Dq<false>>(q, &t.vector, a, layers) }
}

/// # Safety
/// As for [`forward`].
#[target_feature(enable = "avx512f,avx512dq")]
pub unsafe fn inverse_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    let scale = &t.block_inv[layers as usize];
    // SAFETY: this function has the features, the tables are the limb's own.
    unsafe { avx512ntt::inverse_partial::<Dq<false>>(q, &t.vector, a, layers, [scale.value, scale.quotient]) }
}
