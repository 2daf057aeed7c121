//! Radix 2 in plain Rust, which becomes vector code where it is expanded.

use super::SpecialFft;
use crate::order::bit_reverse;

fn reverse(re: &mut [f64], im: &mut [f64]) {
    let bits = re.len().trailing_zeros();
    for i in 0..re.len() {
        let j = bit_reverse(i, bits);
        if i < j {
            re.swap(i, j);
            im.swap(i, j);
        }
    }
}

#[inline(always)]
pub fn inverse(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    for (k, w) in t.layers.iter().enumerate().skip(1).rev() {
        let half = 1 << (k - 1);
        for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
            let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
            for j in 0..half {
                let (dr, di) = (re0[j] - re1[j], im0[j] - im1[j]);
                re0[j] += re1[j];
                im0[j] += im1[j];
                re1[j] = dr * w.re[j] + di * w.im[j];
                im1[j] = di * w.re[j] - dr * w.im[j];
            }
        }
    }
    reverse(re, im);
    let scale = 1.0 / t.points as f64;
    re.iter_mut().chain(im).for_each(|x| *x *= scale);
}

#[inline(always)]
pub fn forward(t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
    reverse(re, im);
    for (k, w) in t.layers.iter().enumerate().skip(1) {
        let half = 1 << (k - 1);
        for (re, im) in re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half)) {
            let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
            for j in 0..half {
                let vr = re1[j] * w.re[j] - im1[j] * w.im[j];
                let vi = im1[j] * w.re[j] + re1[j] * w.im[j];
                (re1[j], im1[j]) = (re0[j] - vr, im0[j] - vi);
                re0[j] += vr;
                im0[j] += vi;
            }
        }
    }
}
