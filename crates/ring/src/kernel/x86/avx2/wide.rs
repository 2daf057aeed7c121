//! Primes of 51 to 60 bits: transforms in vectors of words, from the 32×32-bit multiplier; everything else, and
//! primes of 61 bits, in plain words.
//!
//! A butterfly takes nine such products and some twenty other operations for four words, where plain words
//! take three 64-bit products each. Words stay below 2^63, so that the sign of a difference tells its order:
//! lazy products are below 4q, values between layers below 8q.

use super::super::tokens::{Avx2, with_avx2};
use super::lanes::{load_half, store_half, transpose};
use crate::kernel::features::Proof;
use crate::kernel::generic::scalar::ScalarLimb;
use crate::kernel::generic::vectors::lanes::Lanes;
use crate::kernel::generic::vectors::ntt::{Arithmetic, Transform};
use crate::kernel::generic::vectors::tables::{ForwardPlan, InversePlan, LaneWord, VectorTables};
use crate::modulus::Modulus;
use std::arch::x86_64::*;

/// Eight words in two registers.
type Words = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn add(x: Words, y: Words) -> Words {
    [_mm256_add_epi64(x[0], y[0]), _mm256_add_epi64(x[1], y[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn sub(x: Words, y: Words) -> Words {
    [_mm256_sub_epi64(x[0], y[0]), _mm256_sub_epi64(x[1], y[1])]
}

/// `x` in `[0, 2m)` to `[0, m)`, for `2m ≤ 2^63`: a negative difference leaves `x`.
#[inline]
#[target_feature(enable = "avx2")]
fn subtract_once(x: Words, m: Words) -> Words {
    let mut out = sub(x, m);
    for (d, x) in out.iter_mut().zip(x) {
        let [difference, x] = [_mm256_castsi256_pd(*d), _mm256_castsi256_pd(x)];
        *d = _mm256_castpd_si256(_mm256_blendv_pd(difference, x, difference));
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn reverse(x: Words) -> Words {
    [_mm256_permute4x64_epi64::<0b00_01_10_11>(x[1]), _mm256_permute4x64_epi64::<0b00_01_10_11>(x[0])]
}

/// Four squares of 4×4.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose8(v: [Words; 8]) -> [Words; 8] {
    let mut out = v;
    for i in 0..2 {
        for j in 0..2 {
            let mut rows = [_mm256_setzero_pd(); 8];
            for k in 0..4 {
                rows[k] = _mm256_castsi256_pd(v[4 * i + k][j]);
            }
            rows = transpose(rows);
            for k in 0..4 {
                out[4 * j + k][i] = _mm256_castpd_si256(rows[k]);
            }
        }
    }
    out
}

impl Lanes for Avx2 {
    type V = Words;
    const SIXTEEN: bool = false;

    with_avx2! { this: Avx2;
        fn splat(x: u64) -> Words = [_mm256_set1_epi64x(x as i64); 2];
        fn load(x: &[u64; 8]) -> Words = [load_half(x, 0), load_half(x, 1)];
        fn store(x: &mut [u64; 8], v: Words) = {
            store_half(x, 0, v[0]);
            store_half(x, 1, v[1]);
        };
        fn add(x: Words, y: Words) -> Words = add(x, y);
        fn sub(x: Words, y: Words) -> Words = sub(x, y);
        fn subtract_once(x: Words, m: Words) -> Words = subtract_once(x, m);
        fn reverse(x: Words) -> Words = reverse(x);
        fn transpose(v: [Words; 8]) -> [Words; 8] = transpose8(v);
        fn prefetch(line: *const u8) = _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
}

/// Constants of a prime in every lane.
#[derive(Clone, Copy)]
struct Butterflies {
    token: Avx2,
    q: Words,
    two_q: Words,
    four_q: Words,
}

/// `x · y` modulo 2^64.
#[inline]
#[target_feature(enable = "avx2")]
fn low_product(x: __m256i, y: __m256i) -> __m256i {
    let (x_upper, y_upper) = (_mm256_srli_epi64::<32>(x), _mm256_srli_epi64::<32>(y));
    let cross = _mm256_add_epi64(_mm256_mul_epu32(x, y_upper), _mm256_mul_epu32(x_upper, y));
    _mm256_add_epi64(_mm256_mul_epu32(x, y), _mm256_slli_epi64::<32>(cross))
}

/// floor(x·y / 2^64), less at most 2.
#[inline]
#[target_feature(enable = "avx2")]
fn high_product(x: __m256i, y: __m256i) -> __m256i {
    let (x_upper, y_upper) = (_mm256_srli_epi64::<32>(x), _mm256_srli_epi64::<32>(y));
    let lh = _mm256_srli_epi64::<32>(_mm256_mul_epu32(x, y_upper));
    let hl = _mm256_srli_epi64::<32>(_mm256_mul_epu32(x_upper, y));
    _mm256_add_epi64(_mm256_mul_epu32(x_upper, y_upper), _mm256_add_epi64(lh, hl))
}

/// `y · w` in `[0, 4q)` for any `y`: the quotient lags by under 1 from the constant's, 2 from the approximate
/// product and 1 from its floor.
#[inline]
#[target_feature(enable = "avx2")]
fn mul(q: Words, y: Words, (w, quotient): (Words, Words)) -> Words {
    let mut out = y;
    for i in 0..2 {
        let estimate = high_product(y[i], quotient[i]);
        out[i] = _mm256_sub_epi64(low_product(y[i], w[i]), low_product(estimate, q[i]));
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn butterfly(f: Butterflies, x: Words, y: Words, w: (Words, Words), offset: bool) -> (Words, Words) {
    let product = mul(f.q, y, w);
    let top = if offset { add(x, f.four_q) } else { x };
    (add(x, product), sub(top, product))
}

impl Butterflies {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn residue(self, x: Words) -> Words {
        subtract_once(subtract_once(x, self.two_q), self.q)
    }
}

impl Proof<Avx2> for Butterflies {
    #[inline(always)]
    fn proof(&self) -> Avx2 {
        self.token
    }
}

impl Arithmetic for Butterflies {
    type Lanes = Avx2;

    #[inline(always)]
    fn lanes(self) -> Avx2 {
        self.token
    }

    #[inline(always)]
    fn unit(self) -> Words {
        self.four_q
    }

    with_avx2! { this: Butterflies;
        fn mul(y: Words, w: (Words, Words)) -> Words = mul(this.q, y, w);
        fn butterfly(x: Words, y: Words, w: (Words, Words), offset: bool) -> (Words, Words)
            = butterfly(this, x, y, w, offset);
        fn reduce(x: Words) -> Words = subtract_once(x, this.four_q);
        fn finish(x: Words) -> Words = this.residue(subtract_once(x, this.four_q));
        fn finish_product(x: Words) -> Words = this.residue(x);
    }
}

/// A prime of 51 bits or more.
#[derive(Debug)]
pub(super) struct WideLimb {
    token: Avx2,
    /// What vectors do not do better.
    pub(super) limb: ScalarLimb,
    /// For primes of up to 60 bits.
    tables: Option<VectorTables>,
}

impl Proof<Avx2> for WideLimb {
    #[inline(always)]
    fn proof(&self) -> Avx2 {
        self.token
    }
}

impl WideLimb {
    pub(super) fn new(token: Avx2, q: &Modulus, n: usize, root: u64) -> Self {
        let tables = (q.bits() <= 60).then(|| VectorTables::new(q, n, root, LaneWord::Bits64, Avx2::SIXTEEN));
        Self { token, limb: ScalarLimb::new(q, n, root), tables }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    fn transform(&self, t: &VectorTables) -> Transform<Butterflies, false> {
        let multiple = |k: u64| Lanes::splat(self.token, self.limb.q.value() * k);
        let (q, two_q, four_q) = (multiple(1), multiple(2), multiple(4));
        Transform::new(Butterflies { token: self.token, q, two_q, four_q }, t)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    pub(super) fn forward(&self, a: &mut [u64]) {
        match &self.tables {
            Some(t) => self.transform(t).forward::<{ ForwardPlan::Layer as u8 }, 1>(t, a),
            None => self.limb.forward(a),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    pub(super) fn inverse(&self, a: &mut [u64]) {
        match &self.tables {
            Some(t) => self.transform(t).inverse::<{ InversePlan::Layer as u8 }, 1>(t, a),
            None => self.limb.inverse(a),
        }
    }
}
