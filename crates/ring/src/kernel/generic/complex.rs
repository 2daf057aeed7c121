//! Complex numbers in registers of doubles, real and imaginary parts apart.

use super::reals::Reals;
use crate::kernel::fourier::Eight;

/// A register of complex numbers.
pub(super) struct Complex<L: Reals> {
    pub re: L::V,
    pub im: L::V,
}

impl<L: Reals> Clone for Complex<L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Reals> Copy for Complex<L> {}

impl<L: Reals> Complex<L> {
    #[inline(always)]
    pub fn load(l: L, re: &Eight, im: &Eight, part: usize) -> Self {
        Self { re: l.load(re, part), im: l.load(im, part) }
    }

    #[inline(always)]
    pub fn store(self, l: L, re: &mut Eight, im: &mut Eight, part: usize) {
        l.store(re, part, self.re);
        l.store(im, part, self.im);
    }

    #[inline(always)]
    pub fn add(self, l: L, y: Self) -> Self {
        Self { re: l.add(self.re, y.re), im: l.add(self.im, y.im) }
    }

    #[inline(always)]
    pub fn sub(self, l: L, y: Self) -> Self {
        Self { re: l.sub(self.re, y.re), im: l.sub(self.im, y.im) }
    }

    #[inline(always)]
    pub fn add_sub(self, l: L, y: Self) -> (Self, Self) {
        (self.add(l, y), self.sub(l, y))
    }

    /// `self + i·y`.
    #[inline(always)]
    pub fn add_i(self, l: L, y: Self) -> Self {
        Self { re: l.sub(self.re, y.im), im: l.add(self.im, y.re) }
    }

    /// `self − i·y`.
    #[inline(always)]
    pub fn sub_i(self, l: L, y: Self) -> Self {
        Self { re: l.add(self.re, y.im), im: l.sub(self.im, y.re) }
    }

    #[inline(always)]
    pub fn mul(self, l: L, y: Self) -> Self {
        Self {
            re: l.neg_mul_add(self.im, y.im, l.mul(self.re, y.re)),
            im: l.mul_add(self.im, y.re, l.mul(self.re, y.im)),
        }
    }

    /// Times the conjugate of `y`.
    #[inline(always)]
    pub fn mul_conj(self, l: L, y: Self) -> Self {
        Self {
            re: l.mul_add(self.im, y.im, l.mul(self.re, y.re)),
            im: l.neg_mul_add(self.re, y.im, l.mul(self.im, y.re)),
        }
    }

    /// `self + x·y`.
    #[inline(always)]
    pub fn add_product(self, l: L, x: Self, y: Self) -> Self {
        Self {
            re: l.neg_mul_add(x.im, y.im, l.mul_add(x.re, y.re, self.re)),
            im: l.mul_add(x.im, y.re, l.mul_add(x.re, y.im, self.im)),
        }
    }
}

/// A share of eight eights, transposed: register e has the share of eight e before, and register `source·lanes + i` the
/// `source`-th share of row i afterwards, or the other way round.
#[inline(always)]
pub(super) fn transposed<L: Reals>(l: L, x: [L::V; 8]) -> [L::V; 8] {
    let lanes = 8 / L::PARTS;
    let mut out = x;
    for source in 0..L::PARTS {
        let mut square = x;
        square[..lanes].copy_from_slice(&x[source * lanes..(source + 1) * lanes]);
        out[source * lanes..(source + 1) * lanes].copy_from_slice(&l.transpose(square)[..lanes]);
    }
    out
}

/// Lane i of the registers of `rows` (a part of each), transposed: out\[e\] has element e of the rows
/// `part·lanes..`.
#[inline(always)]
pub(super) fn gather<L: Reals>(l: L, rows: [&Eight; 8], part: usize) -> [L::V; 8] {
    let lanes = 8 / L::PARTS;
    let mut x = [l.splat(0.0); 8];
    for (at, x) in x.iter_mut().enumerate() {
        *x = l.load(rows[part * lanes + at % lanes], at / lanes);
    }
    transposed(l, x)
}
