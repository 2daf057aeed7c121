//! Operations element by element, as [`LimbKernels`](crate::kernel::contract::LimbKernels) has them.

use super::{Factor, ScalarLimb, difference};
use crate::modulus::Shoup;

impl ScalarLimb {
    #[inline(always)]
    pub(crate) fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        let word = self.word();
        for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
            *o = word.reduce_square(u128::from(*x) * u128::from(*y));
        }
    }

    #[inline(always)]
    pub(crate) fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        let word = self.word();
        for (x, y) in a.iter_mut().zip(b) {
            *x = word.reduce_square(u128::from(*x) * u128::from(*y));
        }
    }

    // q − 1 + (q − 1)² is still below q².

    #[inline(always)]
    pub(crate) fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let word = self.word();
        for ((o, x), y) in acc.iter_mut().zip(a).zip(b) {
            *o = word.reduce_square(u128::from(*x) * u128::from(*y) + u128::from(*o));
        }
    }

    #[inline(always)]
    pub(crate) fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        let word = self.word();
        for ((x, y), z) in a.iter_mut().zip(b).zip(c) {
            *x = word.reduce_square(u128::from(*x) * u128::from(*y) + u128::from(*z));
        }
    }

    #[inline(always)]
    pub(crate) fn mul_scalar(&self, a: &mut [u64], w: &Shoup) {
        let (word, w) = (self.word(), Factor::from(*w));
        for x in a {
            *x = word.times(*x, w);
        }
    }

    #[inline(always)]
    pub(crate) fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup) {
        let (word, w) = (self.word(), Factor::from(*w));
        for (o, x) in acc.iter_mut().zip(a) {
            // Below 3q.
            *o = word.residue(*o + word.times_lazy(*x, w));
        }
    }

    #[inline(always)]
    pub(crate) fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup) {
        let (word, w) = (self.word(), Factor::from(*w));
        for (x, y) in a.iter_mut().zip(b) {
            *x = word.times(*x + word.q - *y, w);
        }
    }

    #[inline(always)]
    pub(crate) fn reduce(&self, out: &mut [u64], src: &[u64]) {
        let q = &self.q;
        for (o, x) in out.iter_mut().zip(src) {
            *o = q.reduce(*x);
        }
    }

    #[inline(always)]
    pub(crate) fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64) {
        let q = &self.q;
        // x mod q, less p mod q where x stands for x − p.
        let (half, less) = (p / 2, q.reduce(p));
        for (o, x) in out.iter_mut().zip(src) {
            // All ones where x is above the half: words below 2^61 compare by the sign of a difference.
            let upper = (half.wrapping_sub(*x) as i64 >> 63) as u64;
            *o = difference(q.reduce(*x), less & upper, q.value());
        }
    }

    #[inline(always)]
    pub(crate) fn reduce_signed(&self, out: &mut [u64], src: &[i64]) {
        let q = &self.q;
        for (o, x) in out.iter_mut().zip(src) {
            *o = q.reduce_i64(*x);
        }
    }
}
