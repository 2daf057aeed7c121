//! The special FFT: radix-4 passes, blocked for L1, and the last three layers in registers together
//! with the bit reversal. One source for registers of any width.
//!
//! With `Q = len/4`, 5^Q ≡ 1 − len modulo 4·len for Q ≥ 2, so `w_len[j + Q] = −i·w_len[j]`, and
//! `w_len[j]² = w_(len/2)[j]`: a radix-4 butterfly needs w, w² and w³.

use super::complex::{Complex, gather, transposed};
use super::reals::Reals;
use crate::buffer::Buffer;
use crate::kernel::fourier::Eight;
use crate::kernel::special_fft::{SpecialFft, is_radix4};
use crate::order::bit_reverse;

/// log2 of the points whose parts fill two thirds of L1.
const L1_POINTS_LOG: u32 = 11;

/// The most registers that eight doubles take.
const MOST_PARTS: usize = 4;

/// A block's parts.
type Parts<'a> = (&'a mut [Eight], &'a mut [Eight]);

/// The first eights of roots.
#[inline(always)]
fn eights([re, im]: &[Buffer; 2], count: usize) -> (&[Eight], &[Eight]) {
    (&re.as_chunks().0[..count], &im.as_chunks().0[..count])
}

/// One layer of a block of `2^k` points.
#[inline(always)]
fn radix2<L: Reals, const INVERSE: bool>(l: L, t: &SpecialFft, k: u32, re: &mut [Eight], im: &mut [Eight]) {
    let half = re.len() / 2;
    let w = eights(&t.layers[k as usize].roots, half);
    let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
    let (re1, im0, im1) = (&mut re1[..half], &mut im0[..half], &mut im1[..half]);
    for j in 0..half {
        for part in 0..L::PARTS {
            let mut x = Complex::load(l, &re0[j], &im0[j], part);
            let mut y = Complex::load(l, &re1[j], &im1[j], part);
            let w = Complex::load(l, &w.0[j], &w.1[j], part);
            (x, y) = match INVERSE {
                true => (x.add(l, y), x.sub(l, y).mul_conj(l, w)),
                false => x.add_sub(l, y.mul(l, w)),
            };
            x.store(l, &mut re0[j], &mut im0[j], part);
            y.store(l, &mut re1[j], &mut im1[j], part);
        }
    }
}

/// Two layers of a block of `2^k` points.
#[inline(always)]
fn radix4<L: Reals, const INVERSE: bool>(l: L, t: &SpecialFft, k: u32, re: &mut [Eight], im: &mut [Eight]) {
    let quarter = re.len() / 4;
    let (first, second) = (&t.layers[k as usize], &t.layers[k as usize - 1]);
    let (w1, w2, w3) = (eights(&first.roots, quarter), eights(&second.roots, quarter), eights(&first.cubes, quarter));
    let (re01, re23) = re.split_at_mut(2 * quarter);
    let (im01, im23) = im.split_at_mut(2 * quarter);
    let ((re0, re1), (re2, re3)) = (re01.split_at_mut(quarter), re23.split_at_mut(quarter));
    let ((im0, im1), (im2, im3)) = (im01.split_at_mut(quarter), im23.split_at_mut(quarter));
    let (re1, re2, re3) = (&mut re1[..quarter], &mut re2[..quarter], &mut re3[..quarter]);
    let (im0, im1, im2, im3) = (&mut im0[..quarter], &mut im1[..quarter], &mut im2[..quarter], &mut im3[..quarter]);
    for j in 0..quarter {
        for part in 0..L::PARTS {
            let w1 = Complex::load(l, &w1.0[j], &w1.1[j], part);
            let w2 = Complex::load(l, &w2.0[j], &w2.1[j], part);
            let w3 = Complex::load(l, &w3.0[j], &w3.1[j], part);
            let mut x0 = Complex::load(l, &re0[j], &im0[j], part);
            let mut x1 = Complex::load(l, &re1[j], &im1[j], part);
            let mut x2 = Complex::load(l, &re2[j], &im2[j], part);
            let mut x3 = Complex::load(l, &re3[j], &im3[j], part);
            if INVERSE {
                let (s02, d02, s13, d13) = (x0.add(l, x2), x0.sub(l, x2), x1.add(l, x3), x1.sub(l, x3));
                x0 = s02.add(l, s13);
                x1 = s02.sub(l, s13).mul_conj(l, w2);
                x2 = d02.add_i(l, d13).mul_conj(l, w1);
                x3 = d02.sub_i(l, d13).mul_conj(l, w3);
            } else {
                let (s01, d01) = x0.add_sub(l, x1.mul(l, w2));
                let (y2, y3) = (x2.mul(l, w1), x3.mul(l, w3));
                let (s23, d23) = y2.add_sub(l, y3);
                (x0, x2) = s01.add_sub(l, s23);
                (x1, x3) = (d01.sub_i(l, d23), d01.add_i(l, d23));
            }
            x0.store(l, &mut re0[j], &mut im0[j], part);
            x1.store(l, &mut re1[j], &mut im1[j], part);
            x2.store(l, &mut re2[j], &mut im2[j], part);
            x3.store(l, &mut re3[j], &mut im3[j], part);
        }
    }
}

/// The layers of more than 8 points. Blocks of L1 are done one after the other, larger ones when all of their parts are there or
/// before any is taken apart.
#[inline(always)]
fn layers<L: Reals, const INVERSE: bool>(l: L, t: &SpecialFft, (re, im): Parts<'_>) {
    let (mut passes, mut count, mut k) = ([0; usize::BITS as usize], 0, t.points.trailing_zeros());
    let mut step = 0;
    while k > 3 {
        (passes[count], count) = (k, count + 1);
        step = step.max((1usize << k.min(L1_POINTS_LOG)) / 8);
        k -= if is_radix4(k) { 2 } else { 1 };
    }
    for first in (0..t.points / 8).step_by(step) {
        let end = first + step;
        for i in 0..count {
            let k = passes[if INVERSE { i } else { count - 1 - i }];
            let block = (1usize << k) / 8;
            let work = block.max(step);
            let at = if INVERSE { first } else { end };
            if at % block != 0 {
                continue;
            }
            let range = if INVERSE { first..first + work } else { end - work..end };
            for (re, im) in re[range.clone()].chunks_exact_mut(block).zip(im[range].chunks_exact_mut(block)) {
                match is_radix4(k) {
                    true => radix4::<L, INVERSE>(l, t, k, re, im),
                    false => radix2::<L, INVERSE>(l, t, k, re, im),
                }
            }
        }
    }
}

/// The layers of 2, 4 and 8 points and the bit reversal.
///
/// Eight `t·M/64 + g` of the array (`t` the top three bits) holds the points 8·(t·M/64 + g) + j,
/// whose reversed indices are rev(j)·M/8 + 8·rev(g) + rev(t). So the eights of `g`,
/// transposed, become those of rev(g), and pairs are exchanged in place.
struct Ends<L: Reals> {
    /// w_2, then w_4, then w_8.
    w: [Complex<L>; 7],
    scale: L::V,
    groups: usize,
}

impl<L: Reals> Ends<L> {
    #[inline(always)]
    fn new(l: L, t: &SpecialFft) -> Self {
        let mut w = [Complex { re: l.splat(0.0), im: l.splat(0.0) }; 7];
        for k in 1..=3 {
            let (layer, half) = (&t.layers[k], 1 << (k - 1));
            let [re, im] = &layer.roots;
            for (j, (x, y)) in re.iter().zip(im.iter()).enumerate() {
                w[half - 1 + j] = Complex { re: l.splat(f64::from_bits(*x)), im: l.splat(f64::from_bits(*y)) };
            }
        }
        Self { w, scale: l.splat(1.0 / t.points as f64), groups: t.points / 64 }
    }

    /// Where eight `i` of a group is.
    #[inline(always)]
    fn place(&self, i: usize, g: usize) -> usize {
        bit_reverse(i, 3) * self.groups + g
    }

    /// One layer of butterflies between registers `HALF` apart.
    #[inline(always)]
    fn layer<const HALF: usize, const INVERSE: bool>(&self, l: L, x: &mut [Complex<L>; 8]) {
        for j in 0..4 {
            let (low, w) = (j + j / HALF * HALF, self.w[HALF - 1 + j % HALF]);
            let (a, b) = (x[low], x[low + HALF]);
            (x[low], x[low + HALF]) = match INVERSE {
                true => (a.add(l, b), a.sub(l, b).mul_conj(l, w)),
                false => a.add_sub(l, b.mul(l, w)),
            };
        }
    }

    /// What a group's eights become, share by share: as [`transposed`] leaves them forward, and eight by eight inverse.
    #[inline(always)]
    fn apply<const INVERSE: bool>(
        &self,
        l: L,
        (re, im): (&[Eight], &[Eight]),
        g: usize,
    ) -> [[Complex<L>; 8]; MOST_PARTS] {
        let (mut rows_re, mut rows_im) = ([&re[g]; 8], [&im[g]; 8]);
        for (i, (row_re, row_im)) in rows_re.iter_mut().zip(&mut rows_im).enumerate() {
            let at = self.place(i, g);
            (*row_re, *row_im) = (&re[at], &im[at]);
        }
        let mut out = [[Complex { re: self.scale, im: self.scale }; 8]; MOST_PARTS];
        for (part, x) in out.iter_mut().enumerate().take(L::PARTS) {
            if INVERSE {
                let (re, im) = (gather(l, rows_re, part), gather(l, rows_im, part));
                for (x, (re, im)) in x.iter_mut().zip(re.into_iter().zip(im)) {
                    *x = Complex { re, im };
                }
                self.layer::<4, true>(l, x);
                self.layer::<2, true>(l, x);
                self.layer::<1, true>(l, x);
                for x in x {
                    *x = Complex { re: l.mul(x.re, self.scale), im: l.mul(x.im, self.scale) };
                }
            } else {
                for (x, (re, im)) in x.iter_mut().zip(rows_re.into_iter().zip(rows_im)) {
                    *x = Complex::load(l, re, im, part);
                }
                self.layer::<1, false>(l, x);
                self.layer::<2, false>(l, x);
                self.layer::<4, false>(l, x);
                let (mut re, mut im) = ([self.scale; 8], [self.scale; 8]);
                for (x, (re, im)) in x.iter().zip(re.iter_mut().zip(&mut im)) {
                    (*re, *im) = (x.re, x.im);
                }
                for (x, (re, im)) in x.iter_mut().zip(transposed(l, re).into_iter().zip(transposed(l, im))) {
                    *x = Complex { re, im };
                }
            }
        }
        out
    }

    #[inline(always)]
    fn store<const INVERSE: bool>(&self, l: L, (re, im): &mut Parts<'_>, g: usize, x: &[[Complex<L>; 8]; MOST_PARTS]) {
        let lanes = 8 / L::PARTS;
        for (part, x) in x.iter().enumerate().take(L::PARTS) {
            for (i, x) in x.iter().enumerate() {
                let (row, share) = if INVERSE { (i, part) } else { (part * lanes + i % lanes, i / lanes) };
                let at = self.place(row, g);
                x.store(l, &mut re[at], &mut im[at], share);
            }
        }
    }

    #[inline(always)]
    fn run<const INVERSE: bool>(&self, l: L, mut all: Parts<'_>) {
        let bits = self.groups.trailing_zeros();
        for g in 0..self.groups {
            let h = bit_reverse(g, bits);
            if h < g {
                continue;
            }
            let x = self.apply::<INVERSE>(l, (&*all.0, &*all.1), g);
            if h > g {
                let y = self.apply::<INVERSE>(l, (&*all.0, &*all.1), h);
                self.store::<INVERSE>(l, &mut all, g, &y);
            }
            self.store::<INVERSE>(l, &mut all, h, &x);
        }
    }
}

/// See [`WordKernels::fft_inverse`](crate::kernel::contract::WordKernels::fft_inverse).
#[inline(always)]
pub(crate) fn inverse<L: Reals>(l: L, t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    let (re, im) = (bytemuck::cast_slice_mut(re).as_chunks_mut().0, bytemuck::cast_slice_mut(im).as_chunks_mut().0);
    layers::<L, true>(l, t, (&mut *re, &mut *im));
    Ends::new(l, t).run::<true>(l, (re, im));
}

/// See [`WordKernels::fft_forward`](crate::kernel::contract::WordKernels::fft_forward).
#[inline(always)]
pub(crate) fn forward<L: Reals>(l: L, t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    let (re, im) = (bytemuck::cast_slice_mut(re).as_chunks_mut().0, bytemuck::cast_slice_mut(im).as_chunks_mut().0);
    Ends::new(l, t).run::<false>(l, (&mut *re, &mut *im));
    layers::<L, false>(l, t, (re, im));
}
