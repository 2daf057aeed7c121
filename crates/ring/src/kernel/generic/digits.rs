//! Signed digits of residues and rotations by monomials: plain loops that become vector code.

use super::super::gadget::Gadget;
use crate::modulus::Modulus;

/// Values that are decomposed together: their digits stay in registers or in the L1 cache.
const BLOCK: usize = 64;

/// What the digits of a block need to know.
#[derive(Clone, Copy)]
struct Digits {
    q: i64,
    half_q: u64,
    drop: u32,
    base_log: u32,
    levels: usize,
}

impl Digits {
    #[inline(always)]
    fn new(q: &Modulus, gadget: Gadget) -> Self {
        Self {
            q: q.value() as i64,
            half_q: q.value() / 2,
            drop: gadget.dropped(q.bits()),
            base_log: gadget.base_log,
            levels: gadget.levels as usize,
        }
    }

    /// The rounded quotient by the last weight, of the representative in `(−q/2, q/2]`.
    #[inline(always)]
    fn rounded(self, x: u64) -> i64 {
        let centered = x as i64 - if x > self.half_q { self.q } else { 0 };
        (centered + ((1i64 << self.drop) >> 1)) >> self.drop
    }

    /// Digits of a block of rounded quotients, to rows of n words.
    #[inline(always)]
    fn write(self, t: &mut [i64; BLOCK], out: &mut [u64], n: usize, at: usize) {
        let (half, mask) = (1i64 << (self.base_log - 1), (1i64 << self.base_log) - 1);
        for l in (1..self.levels).rev() {
            for (o, t) in out[l * n + at..l * n + at + BLOCK].iter_mut().zip(t.iter_mut()) {
                let digit = ((*t + half) & mask) - half;
                *t = (*t - digit) >> self.base_log;
                *o = (digit + (self.q & (digit >> 63))) as u64;
            }
        }
        for (o, t) in out[at..at + BLOCK].iter_mut().zip(t.iter()) {
            *o = (*t + (self.q & (*t >> 63))) as u64;
        }
    }
}

/// See [`LimbKernels::decompose`](super::super::contract::LimbKernels::decompose).
#[inline(always)]
pub(crate) fn decompose(q: &Modulus, n: usize, out: &mut [u64], gadget: Gadget) {
    let digits = Digits::new(q, gadget);
    let mut t = [0i64; BLOCK];
    for at in (0..n).step_by(BLOCK) {
        for (t, x) in t.iter_mut().zip(&out[at..at + BLOCK]) {
            *t = digits.rounded(*x);
        }
        digits.write(&mut t, out, n, at);
    }
}

/// See [`LimbKernels::add_decompose`](super::super::contract::LimbKernels::add_decompose).
#[inline(always)]
pub(crate) fn add_decompose(q: &Modulus, acc: &mut [u64], b: &[u64], gadget: Gadget, out: &mut [u64]) {
    let (digits, n) = (Digits::new(q, gadget), acc.len());
    let mut t = [0i64; BLOCK];
    for at in (0..n).step_by(BLOCK) {
        for ((t, x), y) in t.iter_mut().zip(&mut acc[at..at + BLOCK]).zip(&b[at..at + BLOCK]) {
            let sum = *x + *y;
            *x = sum.min(sum.wrapping_sub(q.value()));
            *t = digits.rounded(*x);
        }
        digits.write(&mut t, out, n, at);
    }
}

/// See [`LimbKernels::rotate_minus`](super::super::contract::LimbKernels::rotate_minus).
#[inline(always)]
pub(crate) fn rotate_minus(q: &Modulus, out: &mut [u64], src: &[u64], steps: usize) {
    let (n, q) = (src.len(), q.value());
    let (shift, negative) = if steps >= n { (steps - n, true) } else { (steps, false) };
    let (wrapped, straight) = out.split_at_mut(shift);
    // Coefficient i of X^shift · a is −a[n − shift + i] below `shift`, a[i − shift] from there on.
    let segment = |out: &mut [u64], from: &[u64], own: &[u64], negative: bool| {
        if negative {
            for ((o, x), y) in out.iter_mut().zip(from).zip(own) {
                // −x − y, in (−2q, 0].
                let sum = *x + *y;
                let r = 2 * q - sum;
                let r = r.min(r.wrapping_sub(q));
                *o = r.min(r.wrapping_sub(q));
            }
        } else {
            for ((o, x), y) in out.iter_mut().zip(from).zip(own) {
                let r = x.wrapping_sub(*y);
                *o = r.min(r.wrapping_add(q));
            }
        }
    };
    segment(wrapped, &src[n - shift..], &src[..shift], !negative);
    segment(straight, &src[..n - shift], &src[shift..], negative);
}

/// See [`LimbKernels::rotate`](super::super::contract::LimbKernels::rotate).
#[inline(always)]
pub(crate) fn rotate(q: &Modulus, out: &mut [u64], src: &[u64], steps: usize) {
    let n = src.len();
    let (shift, negative) = if steps >= n { (steps - n, true) } else { (steps, false) };
    let (wrapped, straight) = out.split_at_mut(shift);
    let segment = |out: &mut [u64], from: &[u64], negative: bool| {
        if negative {
            out.iter_mut().zip(from).for_each(|(o, x)| *o = q.neg(*x));
        } else {
            out.copy_from_slice(from);
        }
    };
    segment(wrapped, &src[n - shift..], !negative);
    segment(straight, &src[..n - shift], negative);
}
