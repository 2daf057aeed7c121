//! Products element by element, as [`LimbKernels`](crate::kernel::contract::LimbKernels) has them.

use super::DoubleLimb;
use super::arith::{Arith, Factor};
use super::lanes::Doubles;
use crate::modulus::Shoup;

type Eights = [[u64; 8]];

#[inline(always)]
fn eights(a: &[u64]) -> &Eights {
    a.as_chunks().0
}

#[inline(always)]
fn eights_mut(a: &mut [u64]) -> &mut Eights {
    a.as_chunks_mut().0
}

/// `c + r` to `[0, p)` for `|r| < p` and `c` in `[0, p)`.
#[inline(always)]
fn positive_sum<L: Doubles>(f: Arith<L>, c: L::V, r: L::V) -> L::V {
    f.positive(f.positive(f.l.add(r, f.l.sub(c, f.p))))
}

/// What a word `upper · 2^32 + lower` needs to be reduced.
#[derive(Clone, Copy)]
struct Halves<L: Doubles> {
    /// 2^32 modulo p.
    weight: Factor<L>,
    /// Taken off the upper half: 2^31 for signed words whose sign bit was flipped.
    bias: L::V,
}

impl<L: Doubles> DoubleLimb<L> {
    #[inline(always)]
    pub(crate) fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        let (f, l) = (self.arith(), self.lanes);
        for ((o, x), y) in eights_mut(out).iter_mut().zip(eights(a)).zip(eights(b)) {
            for part in 0..L::PARTS {
                let r = f.product(l.load_words(x, part), l.load_words(y, part));
                l.store_words(o, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        let (f, l) = (self.arith(), self.lanes);
        for (x, y) in eights_mut(a).iter_mut().zip(eights(b)) {
            for part in 0..L::PARTS {
                let r = f.product(l.load_words(x, part), l.load_words(y, part));
                l.store_words(x, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let (f, l) = (self.arith(), self.lanes);
        for ((o, x), y) in eights_mut(acc).iter_mut().zip(eights(a)).zip(eights(b)) {
            for part in 0..L::PARTS {
                let r = f.product_add(l.load_words(o, part), l.load_words(x, part), l.load_words(y, part));
                l.store_words(o, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        let (f, l) = (self.arith(), self.lanes);
        for ((x, y), z) in eights_mut(a).iter_mut().zip(eights(b)).zip(eights(c)) {
            for part in 0..L::PARTS {
                let r = f.product_add(l.load_words(z, part), l.load_words(x, part), l.load_words(y, part));
                l.store_words(x, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn mul_scalar(&self, a: &mut [u64], w: &Shoup) {
        let (f, l) = (self.arith(), self.lanes);
        let w = f.factor(&self.q, w);
        for x in eights_mut(a) {
            for part in 0..L::PARTS {
                let r = f.times(l.load_words(x, part), w);
                l.store_words(x, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup) {
        let (f, l) = (self.arith(), self.lanes);
        let w = f.factor(&self.q, w);
        for (o, x) in eights_mut(acc).iter_mut().zip(eights(a)) {
            for part in 0..L::PARTS {
                let r = f.times(l.load_words(x, part), w);
                l.store_words(o, part, positive_sum(f, l.load_words(o, part), r));
            }
        }
    }

    #[inline(always)]
    pub(crate) fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup) {
        let (f, l) = (self.arith(), self.lanes);
        let w = f.factor(&self.q, w);
        for (x, y) in eights_mut(a).iter_mut().zip(eights(b)) {
            for part in 0..L::PARTS {
                let r = f.times(l.sub(l.load_words(x, part), l.load_words(y, part)), w);
                l.store_words(x, part, f.positive(r));
            }
        }
    }

    #[inline(always)]
    fn halves(&self, bias: f64) -> Halves<L> {
        let f = self.arith();
        Halves { weight: f.splat(&super::arith::pair(&self.q, 1 << 32)), bias: self.lanes.splat(bias) }
    }

    /// Eight words modulo p: the upper half's product is below p and the lower half below 2^32.
    #[inline(always)]
    fn reduce_eight(&self, halves: Halves<L>, o: &mut [u64; 8], x: &[u64; 8]) {
        let (f, l) = (self.arith(), self.lanes);
        for part in 0..L::PARTS {
            let [upper, lower] = l.load_halves(x, part);
            let r = l.add(f.times(l.sub(upper, halves.bias), halves.weight), lower);
            l.store_words(o, part, f.residue(r));
        }
    }

    #[inline(always)]
    pub(crate) fn reduce(&self, out: &mut [u64], src: &[u64]) {
        let halves = self.halves(0.0);
        for (o, x) in eights_mut(out).iter_mut().zip(eights(src)) {
            self.reduce_eight(halves, o, x);
        }
    }

    #[inline(always)]
    pub(crate) fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64) {
        let halves = self.halves((1u64 << 31) as f64);
        for (o, x) in eights_mut(out).iter_mut().zip(eights(src)) {
            let mut centered = [0u64; 8];
            for (c, x) in centered.iter_mut().zip(x) {
                // All ones where x is above the half: words below 2^61 compare by the sign of a difference.
                let upper = ((p / 2).wrapping_sub(*x) as i64 >> 63) as u64;
                *c = x.wrapping_sub(p & upper) ^ 1 << 63;
            }
            self.reduce_eight(halves, o, &centered);
        }
    }

    #[inline(always)]
    pub(crate) fn reduce_signed(&self, out: &mut [u64], src: &[i64]) {
        let halves = self.halves((1u64 << 31) as f64);
        for (o, x) in eights_mut(out).iter_mut().zip(eights(bytemuck::cast_slice(src))) {
            self.reduce_eight(halves, o, &x.map(|x| x ^ 1 << 63));
        }
    }
}
