//! Primes of 51 to 60 bits: transforms in words that are multiplied by halves, and inner products of key switching; everything
//! else, and primes of 61 bits, in plain words.
//!
//! # The product
//! A value `y` of magnitude below 2^63 − 2^32 is `y_1·2^32 + y_0` with signed halves. For a constant w, tables have
//! `w_0 ≡ w` and `w_1 ≡ w·2^32` modulo q, and the integers `g_i` nearest to `w_i·2^32/q`; of the two representatives that
//! are near `q/2` the one whose `g_i` is in `[−2^31, 2^31)`. With
//!
//! ```text
//! c = ⌊(y_0·g_0 + y_1·g_1 + 2^31) / 2^32⌋,  r = y_0·w_0 + y_1·w_1 − c·q
//! ```
//!
//! the sum in c stays below 2^63, and c, which is a signed half itself, differs from `(y_0·w_0 + y_1·w_1)/q` by less than 1/2 for
//! its rounding and by at most `(|y_0| + |y_1|)/2^33`, 1/2, for that of the `g_i`. So **|r| < q**, and r is known from its
//! residue modulo 2^64: two products for c and, since only their lower words count, six for r.
//!
//! # Values
//! Below 8q in magnitude, `8q < 2^63`. A forward layer adds at most q, so that a pass of three layers may begin at 4q, to
//! which [`Signed::reduce`] brings what only additions touch. Inverse passes take and give values up to 2q: every sum is of two values
//! up to 2q, and [`Signed::reduce_sum`] halves it unless it is of two products.

mod sums;

use super::super::tokens::{Avx2, with_avx2};
use super::lanes::{load_half, store_half, transpose};
use crate::kernel::contract::Source;
use crate::kernel::features::Proof;
use crate::kernel::generic::scalar::ScalarLimb;
use crate::kernel::generic::signed::tables::{Passes, Sums, Tables};
use crate::kernel::generic::signed::{Constant, Eight, Signed, ntt};
use crate::modulus::Modulus;
use std::arch::x86_64::*;

/// Largest prime of the transforms, in bits.
const BITS: u32 = 60;

/// Lower and upper half of `w_0`, of `w_1`, and both `g_i`.
type Halves = [i32; 6];

/// [`Halves`] in lanes, each in the lower half of a lane.
type Factor = [__m256i; 6];

/// A signed number as `upper·2^32 + lower` with signed halves.
fn halves(x: i64) -> [i32; 2] {
    let lower = x as i32;
    [lower, ((x - i64::from(lower)) >> 32) as i32]
}

impl Constant for Halves {
    type Eights = [Eight; 3];

    fn new(q: &Modulus, w: u64) -> Self {
        let q = i128::from(q.value());
        let part = |w: i128| {
            let quotient = ((w << 33) + q) / (2 * q);
            let turn = i128::from(quotient >> 31 != 0);
            (halves((w - turn * q) as i64), (quotient - (turn << 32)) as i32)
        };
        let ([a, b], g0) = part(i128::from(w));
        let ([c, d], g1) = part((i128::from(w) << 32) % q);
        [a, b, c, d, g0, g1]
    }

    fn eights(lanes: [Self; 8]) -> [Eight; 3] {
        [0, 2, 4].map(|i| Eight(lanes.map(|w| u64::from(w[i + 1] as u32) << 32 | u64::from(w[i] as u32))))
    }
}

/// Constants of a prime in every lane.
#[derive(Clone, Copy)]
struct Split {
    token: Avx2,
    /// The halves of q.
    q: [__m256i; 2],
    /// 2^31.
    half: __m256i,
    /// 4q, 2q and q, and their negatives.
    steps: [[__m256i; 2]; 3],
}

impl Split {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(token: Avx2, q: u64) -> Self {
        let q = q as i64;
        let multiple = |k: i64| [_mm256_set1_epi64x(k * q), _mm256_set1_epi64x(-k * q)];
        let [lower, upper] = halves(q);
        Self {
            token,
            q: [_mm256_set1_epi32(lower), _mm256_set1_epi32(upper)],
            half: _mm256_set1_epi64x(1 << 31),
            steps: [multiple(4), multiple(2), multiple(1)],
        }
    }
}

/// What stands in the upper halves, in the lower ones. (A shuffle: it leaves the multipliers' pipes alone.)
#[inline]
#[target_feature(enable = "avx2")]
fn upper(x: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_movehdup_ps(_mm256_castsi256_ps(x)))
}

/// The sum of the products of two lower halves.
#[inline]
#[target_feature(enable = "avx2")]
fn products([x, y]: [__m256i; 2], [a, b]: [__m256i; 2]) -> __m256i {
    _mm256_add_epi64(_mm256_mul_epi32(x, a), _mm256_mul_epi32(y, b))
}

/// See the product above.
#[inline]
#[target_feature(enable = "avx2")]
fn times(f: Split, y: __m256i, [a, b, c, d, g0, g1]: Factor) -> __m256i {
    let y = [y, upper(_mm256_add_epi64(y, f.half))];
    let quotient = upper(_mm256_add_epi64(products(y, [g0, g1]), f.half));
    let high = _mm256_sub_epi64(products(y, [b, d]), _mm256_mul_epi32(quotient, f.q[1]));
    let low = _mm256_sub_epi64(products(y, [a, c]), _mm256_mul_epi32(quotient, f.q[0]));
    _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high))
}

/// `x − m` for `x ≥ 0` and `x + m` below: up to 2m in magnitude to up to m.
#[inline]
#[target_feature(enable = "avx2")]
fn step(x: __m256i, [m, minus]: [__m256i; 2]) -> __m256i {
    let [m, minus] = [_mm256_castsi256_pd(m), _mm256_castsi256_pd(minus)];
    let change = _mm256_blendv_pd(minus, m, _mm256_castsi256_pd(x));
    _mm256_add_epi64(x, _mm256_castpd_si256(change))
}

/// `x + q` where `x` is negative.
#[inline]
#[target_feature(enable = "avx2")]
fn positive(f: Split, x: __m256i) -> __m256i {
    let [q, x_bits] = [_mm256_castsi256_pd(f.steps[2][0]), _mm256_castsi256_pd(x)];
    _mm256_add_epi64(x, _mm256_castpd_si256(_mm256_blendv_pd(_mm256_setzero_pd(), q, x_bits)))
}

/// Steps leave `[−4q, 4q)`, `[−2q, 2q)`, `[−q, q)` of what is below 8q in magnitude.
#[inline]
#[target_feature(enable = "avx2")]
fn residue(f: Split, x: __m256i) -> __m256i {
    positive(f, step(step(step(x, f.steps[0]), f.steps[1]), f.steps[2]))
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves_of(w: &Halves) -> Factor {
    let [a, b, c, d, g0, g1] = *w;
    [
        _mm256_set1_epi32(a),
        _mm256_set1_epi32(b),
        _mm256_set1_epi32(c),
        _mm256_set1_epi32(d),
        _mm256_set1_epi32(g0),
        _mm256_set1_epi32(g1),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn per_lane([first, second, quotients]: &[Eight; 3], part: usize) -> Factor {
    let (x, y, g) = (load_half(&first.0, part), load_half(&second.0, part), load_half(&quotients.0, part));
    [x, upper(x), y, upper(y), g, upper(g)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn transpose_words(v: [__m256i; 8]) -> [__m256i; 8] {
    let mut rows = [_mm256_setzero_pd(); 8];
    for (row, x) in rows.iter_mut().zip(v) {
        *row = _mm256_castsi256_pd(x);
    }
    rows = transpose(rows);
    let mut out = v;
    for (x, row) in out.iter_mut().zip(rows) {
        *x = _mm256_castpd_si256(row);
    }
    out
}

impl Proof<Avx2> for Split {
    #[inline(always)]
    fn proof(&self) -> Avx2 {
        self.token
    }
}

impl Signed for Split {
    type V = __m256i;
    type Constant = Halves;
    type Factor = Factor;
    const PARTS: usize = 2;

    with_avx2! { this: Split;
        fn zero() -> __m256i = _mm256_setzero_si256();
        fn load(x: &[u64; 8], part: usize) -> __m256i = load_half(x, part);
        fn store(x: &mut [u64; 8], part: usize, v: __m256i) = store_half(x, part, v);
        fn load_words(x: &[u64; 8], part: usize) -> __m256i = load_half(x, part);
        fn store_words(x: &mut [u64; 8], part: usize, v: __m256i) = store_half(x, part, v);
        fn transpose(v: [__m256i; 8]) -> [__m256i; 8] = transpose_words(v);
        fn splat(w: &Halves) -> Factor = halves_of(w);
        fn per_lane(w: &[Eight; 3], part: usize) -> Factor = per_lane(w, part);
        fn add(x: __m256i, y: __m256i) -> __m256i = _mm256_add_epi64(x, y);
        fn sub(x: __m256i, y: __m256i) -> __m256i = _mm256_sub_epi64(x, y);
        fn times(x: __m256i, w: Factor) -> __m256i = times(this, x, w);
        fn reduce(x: __m256i) -> __m256i = step(x, this.steps[0]);
        fn reduce_sum(x: __m256i) -> __m256i = step(x, this.steps[1]);
        fn positive(x: __m256i) -> __m256i = positive(this, x);
        fn residue(x: __m256i) -> __m256i = residue(this, x);
    }
}

/// Where a forward transform reduces: before a pass that would reach 8q.
fn reductions(passes: &Passes) -> Vec<bool> {
    let mut bound = 1;
    let pass = |layers| {
        let reduce = bound + layers >= 8;
        bound = if reduce { 4 + layers } else { bound + layers };
        reduce
    };
    passes.with_tail().map(pass).collect()
}

/// A prime of 51 bits or more.
#[derive(Debug)]
pub(super) struct WideLimb {
    token: Avx2,
    /// What vectors do not do better.
    pub(super) limb: ScalarLimb,
    /// For primes of up to 60 bits.
    tables: Option<Tables<Halves>>,
}

impl Proof<Avx2> for WideLimb {
    #[inline(always)]
    fn proof(&self) -> Avx2 {
        self.token
    }
}

impl WideLimb {
    pub(super) fn new(token: Avx2, q: &Modulus, n: usize, root: u64) -> Self {
        let tables = (q.bits() <= BITS).then(|| Tables::new(q, (n, root), 3, reductions, Sums::Every));
        Self { token, limb: ScalarLimb::new(q, n, root), tables }
    }

    with_avx2! { this: &WideLimb;
        fn arith() -> Split = Split::new(this.token, this.limb.q.value());
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    pub(super) fn forward(&self, a: &mut [u64]) {
        match &self.tables {
            Some(t) => ntt::forward(self.arith(), t, a),
            None => self.limb.forward(a),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,bmi2,adx")]
    pub(super) fn inverse(&self, a: &mut [u64], source: Option<Source<'_>>) {
        match &self.tables {
            Some(t) => ntt::inverse::<_, { Sums::Every as u8 }>(self.arith(), t, a, source),
            None => self.limb.inverse(a, source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prime::ntt_primes;
    use sudare_testkit::Random;

    /// Products at the edges of halves and of the range, with factors near q/2, of whose representatives one has a quotient of a half.
    #[test]
    fn products_are_below_q() {
        let Some(token) = Avx2::detect() else { return };
        let mut random = Random(7);
        for bits in [51, 55, 60] {
            let modulus = Modulus::new(ntt_primes(512, bits, 1, &[]).unwrap()[0]).unwrap();
            let split = WideLimb::new(token, &modulus, 512, 1).arith();
            let q = modulus.value() as i64;
            let near = [0, 1, q / 2 - 1, q / 2, q / 2 + 1, q / 2 + (q >> 34), q / 2 - (q >> 34), q - 1];
            let factors: Vec<i64> = near.into_iter().chain((0..40).map(|_| (random.word() >> 1) as i64 % q)).collect();
            let limit = 7 * q;
            let edges = [0i64, 1, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, limit, limit - 1, limit >> 32 << 32];
            let values: Vec<i64> = edges
                .into_iter()
                .chain([(limit >> 32 << 32) - (1 << 31), (limit >> 32 << 32) - (1 << 31) - 1])
                .chain((0..53).map(|_| (random.word() >> 1) as i64 % limit))
                .flat_map(|y| [y, -y])
                .collect();
            for w in factors {
                let factor = split.splat(&Halves::new(&modulus, w as u64));
                for eight in values.as_chunks::<8>().0 {
                    let mut out = eight.map(|y| y as u64);
                    for part in 0..2 {
                        let product = split.times(split.load(&out, part), factor);
                        split.store(&mut out, part, product);
                    }
                    for (y, r) in eight.iter().zip(out.map(|r| r as i64)) {
                        assert!(r.abs() < q, "{y} · {w} modulo {q}");
                        assert_eq!(
                            (i128::from(*y) * i128::from(w) - i128::from(r)) % i128::from(q),
                            0,
                            "{y} · {w}, {q}"
                        );
                    }
                }
            }
        }
    }
}
