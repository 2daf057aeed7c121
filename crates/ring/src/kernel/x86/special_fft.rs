//! The special FFT: radix-4 passes, blocked for L1, and the last three layers in registers together
//! with the bit reversal.
//!
//! With `Q = len/4`, 5^Q ≡ 1 − len modulo 4·len for Q ≥ 2, so `w_len[j + Q] = −i·w_len[j]`, and
//! `w_len[j]² = w_(len/2)[j]`: a radix-4 butterfly needs w, w² and w³.

use super::lanes;
use crate::buffer::Buffer;
use crate::kernel::special_fft::{SpecialFft, is_radix4};
use crate::order::bit_reverse;
use std::arch::x86_64::*;
use zeroize::Zeroize;

/// Points whose parts fill two thirds of L1.
const L1_POINTS: usize = 2048;

/// Eight complex numbers.
#[derive(Clone, Copy)]
struct C8 {
    re: __m512d,
    im: __m512d,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_one(x: &[f64; 8]) -> __m512d {
    // SAFETY: the array is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_pd(x.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(re: &[f64; 8], im: &[f64; 8]) -> C8 {
    C8 { re: load_one(re), im: load_one(im) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_one(place: &mut [f64; 8], x: __m512d) {
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_pd(place.as_mut_ptr(), x) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(re: &mut [f64; 8], im: &mut [f64; 8], x: C8) {
    store_one(re, x.re);
    store_one(im, x.im);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(x: f64) -> __m512d {
    _mm512_set1_pd(x)
}

impl C8 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> Self {
        Self { re: _mm512_setzero_pd(), im: _mm512_setzero_pd() }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(self, y: Self) -> Self {
        Self { re: _mm512_add_pd(self.re, y.re), im: _mm512_add_pd(self.im, y.im) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sub(self, y: Self) -> Self {
        Self { re: _mm512_sub_pd(self.re, y.re), im: _mm512_sub_pd(self.im, y.im) }
    }

    /// `self + i·y`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add_i(self, y: Self) -> Self {
        Self { re: _mm512_sub_pd(self.re, y.im), im: _mm512_add_pd(self.im, y.re) }
    }

    /// `self − i·y`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sub_i(self, y: Self) -> Self {
        Self { re: _mm512_add_pd(self.re, y.im), im: _mm512_sub_pd(self.im, y.re) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn mul(self, w: Self) -> Self {
        Self {
            re: _mm512_fmsub_pd(self.re, w.re, _mm512_mul_pd(self.im, w.im)),
            im: _mm512_fmadd_pd(self.im, w.re, _mm512_mul_pd(self.re, w.im)),
        }
    }

    /// Times the conjugate of `w`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn mul_conj(self, w: Self) -> Self {
        Self {
            re: _mm512_fmadd_pd(self.re, w.re, _mm512_mul_pd(self.im, w.im)),
            im: _mm512_fmsub_pd(self.im, w.re, _mm512_mul_pd(self.re, w.im)),
        }
    }
}

/// A block's parts as vectors.
type Parts<'a> = (&'a mut [[f64; 8]], &'a mut [[f64; 8]]);

/// One pass over every block of `2^k` points: two layers if [`is_radix4`], else one.
#[inline]
#[target_feature(enable = "avx512f")]
fn pass<const INVERSE: bool>(t: &SpecialFft, k: u32, re: &mut [[f64; 8]], im: &mut [[f64; 8]]) {
    let vectors = (1 << k) / 8;
    let layer = &t.layers[k as usize];
    for block in re.chunks_exact_mut(vectors).zip(im.chunks_exact_mut(vectors)) {
        if is_radix4(k) {
            radix4::<INVERSE>(t, k, block);
        } else {
            let (w_re, w_im) = (layer.re.as_chunks::<8>().0, layer.im.as_chunks::<8>().0);
            let ((re0, re1), (im0, im1)) = (block.0.split_at_mut(vectors / 2), block.1.split_at_mut(vectors / 2));
            let (low, high) = (re0.iter_mut().zip(im0), re1.iter_mut().zip(im1));
            for (((re0, im0), (re1, im1)), (w_re, w_im)) in low.zip(high).zip(w_re.iter().zip(w_im)) {
                let (x, y, w) = (load(re0, im0), load(re1, im1), load(w_re, w_im));
                if INVERSE {
                    store(re0, im0, x.add(y));
                    store(re1, im1, x.sub(y).mul_conj(w));
                } else {
                    let y = y.mul(w);
                    store(re0, im0, x.add(y));
                    store(re1, im1, x.sub(y));
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn radix4<const INVERSE: bool>(t: &SpecialFft, k: u32, (re, im): Parts) {
    let quarter = re.len() / 4;
    let (first, second) = (&t.layers[k as usize], &t.layers[k as usize - 1]);
    let w1 = (&first.re.as_chunks::<8>().0[..quarter], &first.im.as_chunks::<8>().0[..quarter]);
    let w2 = (&second.re.as_chunks::<8>().0[..quarter], &second.im.as_chunks::<8>().0[..quarter]);
    let w3 = (&first.cube_re.as_chunks::<8>().0[..quarter], &first.cube_im.as_chunks::<8>().0[..quarter]);
    let (re01, re23) = re.split_at_mut(2 * quarter);
    let (im01, im23) = im.split_at_mut(2 * quarter);
    let ((re0, re1), (re2, re3)) = (re01.split_at_mut(quarter), re23.split_at_mut(quarter));
    let ((im0, im1), (im2, im3)) = (im01.split_at_mut(quarter), im23.split_at_mut(quarter));
    let (re1, re2, re3) = (&mut re1[..quarter], &mut re2[..quarter], &mut re3[..quarter]);
    let (im0, im1, im2, im3) = (&mut im0[..quarter], &mut im1[..quarter], &mut im2[..quarter], &mut im3[..quarter]);
    for j in 0..quarter {
        let (w1, w2, w3) = (load(&w1.0[j], &w1.1[j]), load(&w2.0[j], &w2.1[j]), load(&w3.0[j], &w3.1[j]));
        let x0 = load(&re0[j], &im0[j]);
        let x1 = load(&re1[j], &im1[j]);
        let x2 = load(&re2[j], &im2[j]);
        let x3 = load(&re3[j], &im3[j]);
        let z = if INVERSE {
            let (s02, d02, s13, d13) = (x0.add(x2), x0.sub(x2), x1.add(x3), x1.sub(x3));
            [s02.add(s13), s02.sub(s13).mul_conj(w2), d02.add_i(d13).mul_conj(w1), d02.sub_i(d13).mul_conj(w3)]
        } else {
            let (x1, x2, x3) = (x1.mul(w2), x2.mul(w1), x3.mul(w3));
            let (s01, d01, s23, d23) = (x0.add(x1), x0.sub(x1), x2.add(x3), x2.sub(x3));
            [s01.add(s23), d01.sub_i(d23), s01.sub(s23), d01.add_i(d23)]
        };
        store(&mut re0[j], &mut im0[j], z[0]);
        store(&mut re1[j], &mut im1[j], z[1]);
        store(&mut re2[j], &mut im2[j], z[2]);
        store(&mut re3[j], &mut im3[j], z[3]);
    }
}

/// The layers of blocks of more than 8 points, within a block of `2^k`.
#[target_feature(enable = "avx512f")]
fn layers<const INVERSE: bool>(t: &SpecialFft, k: u32, re: &mut [[f64; 8]], im: &mut [[f64; 8]]) {
    let step = if is_radix4(k) { 2 } else { 1 };
    if 1 << k > L1_POINTS {
        if INVERSE {
            pass::<true>(t, k, re, im);
        }
        let part = re.len() >> step;
        for (re, im) in re.chunks_exact_mut(part).zip(im.chunks_exact_mut(part)) {
            layers::<INVERSE>(t, k - step, re, im);
        }
        if !INVERSE {
            pass::<false>(t, k, re, im);
        }
        return;
    }
    // The blocks of an even k are halved once; from then on every pass takes two layers.
    let odd = if is_radix4(k) { k } else { k - 1 };
    if INVERSE {
        if odd != k {
            pass::<true>(t, k, re, im);
        }
        (5..=odd).rev().step_by(2).for_each(|k| pass::<true>(t, k, re, im));
    } else {
        (5..=odd).step_by(2).for_each(|k| pass::<false>(t, k, re, im));
        if odd != k {
            pass::<false>(t, k, re, im);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(r: &mut [__m512d; 8]) {
    let mut a = *r;
    for i in 0..4 {
        a[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
    }
    for p in 0..2 {
        let even = _mm512_shuffle_f64x2::<0x88>(a[p], a[2 + p]);
        let odd = _mm512_shuffle_f64x2::<0xDD>(a[p], a[2 + p]);
        let even2 = _mm512_shuffle_f64x2::<0x88>(a[4 + p], a[6 + p]);
        let odd2 = _mm512_shuffle_f64x2::<0xDD>(a[4 + p], a[6 + p]);
        r[p] = _mm512_shuffle_f64x2::<0x88>(even, even2);
        r[2 + p] = _mm512_shuffle_f64x2::<0x88>(odd, odd2);
        r[4 + p] = _mm512_shuffle_f64x2::<0xDD>(even, even2);
        r[6 + p] = _mm512_shuffle_f64x2::<0xDD>(odd, odd2);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_complex(x: &mut [C8; 8]) {
    let (mut re, mut im) = ([_mm512_setzero_pd(); 8], [_mm512_setzero_pd(); 8]);
    for (i, x) in x.iter().enumerate() {
        (re[i], im[i]) = (x.re, x.im);
    }
    transpose(&mut re);
    transpose(&mut im);
    for (i, x) in x.iter_mut().enumerate() {
        *x = C8 { re: re[i], im: im[i] };
    }
}

/// The layers of 2, 4 and 8 points and the bit reversal.
///
/// Vector `t·M/64 + g` of the array (`t` the top three bits) holds the points 8·(t·M/64 + g) + j,
/// whose reversed indices are rev(j)·M/8 + 8·rev(g) + rev(t). So the eight vectors of `g`,
/// transposed, become the eight vectors of rev(g), and pairs are exchanged in place.
struct Ends {
    /// w_2, then w_4, then w_8.
    w: [C8; 7],
    scale: __m512d,
    groups: usize,
}

impl Ends {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(t: &SpecialFft) -> Self {
        let mut w = [C8::zero(); 7];
        for k in 1..=3 {
            let (layer, half) = (&t.layers[k], 1 << (k - 1));
            for j in 0..half {
                w[half - 1 + j] = C8 { re: splat(layer.re[j]), im: splat(layer.im[j]) };
            }
        }
        Self { w, scale: splat(1.0 / t.points as f64), groups: t.points / 64 }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(&self, re: &[[f64; 8]], im: &[[f64; 8]], g: usize) -> [C8; 8] {
        let mut x = [C8::zero(); 8];
        for (i, x) in x.iter_mut().enumerate() {
            let at = bit_reverse(i, 3) * self.groups + g;
            *x = load(&re[at], &im[at]);
        }
        x
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(&self, re: &mut [[f64; 8]], im: &mut [[f64; 8]], g: usize, x: [C8; 8]) {
        for (i, x) in x.into_iter().enumerate() {
            let at = bit_reverse(i, 3) * self.groups + g;
            store(&mut re[at], &mut im[at], x);
        }
    }

    /// One layer of butterflies between registers `HALF` apart.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn layer<const HALF: usize, const INVERSE: bool>(&self, x: &mut [C8; 8]) {
        for j in 0..4 {
            let (low, w) = (j + j / HALF * HALF, self.w[HALF - 1 + j % HALF]);
            let (a, b) = (x[low], x[low + HALF]);
            if INVERSE {
                (x[low], x[low + HALF]) = (a.add(b), a.sub(b).mul_conj(w));
            } else {
                let b = b.mul(w);
                (x[low], x[low + HALF]) = (a.add(b), a.sub(b));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn apply<const INVERSE: bool>(&self, x: &mut [C8; 8]) {
        if INVERSE {
            transpose_complex(x);
            self.layer::<4, true>(x);
            self.layer::<2, true>(x);
            self.layer::<1, true>(x);
            for x in x.iter_mut() {
                *x = C8 { re: _mm512_mul_pd(x.re, self.scale), im: _mm512_mul_pd(x.im, self.scale) };
            }
        } else {
            self.layer::<1, false>(x);
            self.layer::<2, false>(x);
            self.layer::<4, false>(x);
            transpose_complex(x);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn run<const INVERSE: bool>(&self, re: &mut [[f64; 8]], im: &mut [[f64; 8]]) {
        let bits = self.groups.trailing_zeros();
        for g in 0..self.groups {
            let h = bit_reverse(g, bits);
            if h < g {
                continue;
            }
            let mut x = self.load(re, im, g);
            self.apply::<INVERSE>(&mut x);
            if h > g {
                let mut y = self.load(re, im, h);
                self.apply::<INVERSE>(&mut y);
                self.store(re, im, g, y);
            }
            self.store(re, im, h, x);
        }
    }
}

/// Buffers of aligned memory for parts that are not: copying costs less than lines that straddle. The
/// parts lie in it from the first word and from the number given on.
fn aligned_copy(re: &[f64], im: &[f64]) -> Option<(Buffer, usize)> {
    /// Words between the parts, so that they fall into different cache sets.
    const GAP: usize = 64;
    let aligned = |x: &[f64]| x.as_ptr().addr().is_multiple_of(64);
    if aligned(re) && aligned(im) {
        return None;
    }
    let second = re.len() + GAP;
    let mut scratch = Buffer::dirty(second + im.len());
    let words: &mut [f64] = bytemuck::cast_slice_mut(&mut scratch);
    words[..re.len()].copy_from_slice(re);
    words[second..].copy_from_slice(im);
    Some((scratch, second))
}

/// A transform of parts that may not be aligned.
macro_rules! on_aligned {
    ($name:ident, $transform:ident) => {
        #[target_feature(enable = "avx512f")]
        pub(super) fn $name(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
            let Some((mut scratch, second)) = aligned_copy(re, im) else { return $transform(t, re, im) };
            let (x, y) = bytemuck::cast_slice_mut(&mut scratch).split_at_mut(second);
            let x = &mut x[..re.len()];
            $transform(t, x, y);
            re.copy_from_slice(x);
            im.copy_from_slice(y);
            // The values may be secret, and the buffer is kept for reuse.
            scratch.zeroize();
        }
    };
}

on_aligned!(inverse_aligned, inverse);
on_aligned!(forward_aligned, forward);

#[target_feature(enable = "avx512f")]
fn inverse(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    let (re, im) = (re.as_chunks_mut::<8>().0, im.as_chunks_mut::<8>().0);
    layers::<true>(t, t.points.trailing_zeros(), re, im);
    Ends::new(t).run::<true>(re, im);
}

#[target_feature(enable = "avx512f")]
fn forward(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    let (re, im) = (re.as_chunks_mut::<8>().0, im.as_chunks_mut::<8>().0);
    Ends::new(t).run::<false>(re, im);
    layers::<false>(t, t.points.trailing_zeros(), re, im);
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    let (out, out_rest) = out.as_chunks_mut::<8>();
    let (src, src_rest) = src.as_chunks::<8>();
    let factor = splat(scale);
    for (o, x) in out.iter_mut().zip(src) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        let rounded = _mm512_cvt_roundpd_epi64::<NEAREST>(_mm512_mul_pd(load_one(x), factor));
        lanes::store(bytemuck::cast_mut(o), rounded);
    }
    for (o, x) in out_rest.iter_mut().zip(src_rest) {
        *o = (x * scale).round_ties_even() as i64;
    }
}
