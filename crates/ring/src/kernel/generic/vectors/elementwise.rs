//! Operations element by element. Ranges are those of [`LimbKernels`](super::super::super::contract::LimbKernels);
//! slices are whole vectors of one length.
//!
//! Loops are written out: a closure cannot be told to inline, and one that is not expanded inside a
//! function with the processor's features is a slow one.

use super::lanes::{Field, Lanes, minus};
use crate::modulus::{Modulus, Shoup};

/// Vectors before its use that a stream's memory is asked for, in the operations on three streams.
/// Three leave the hardware's prefetching behind, even in the second level; and limbs lie one after
/// another, so that what comes after a slice is mostly the next operand.
const AHEAD: usize = 32;

type Vectors = [[u64; 8]];

#[inline(always)]
fn vectors(a: &[u64]) -> &Vectors {
    a.as_chunks().0
}

#[inline(always)]
fn vectors_mut(a: &mut [u64]) -> &mut Vectors {
    a.as_chunks_mut().0
}

#[inline(always)]
pub(crate) fn add<F: Field>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    let l = f.lanes();
    for ((o, x), y) in vectors_mut(out).iter_mut().zip(vectors(a)).zip(vectors(b)) {
        l.store(o, f.add(l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn add_assign<F: Field>(f: F, a: &mut [u64], b: &[u64]) {
    let l = f.lanes();
    for (x, y) in vectors_mut(a).iter_mut().zip(vectors(b)) {
        l.store(x, f.add(l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn sub<F: Field>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    let l = f.lanes();
    for ((o, x), y) in vectors_mut(out).iter_mut().zip(vectors(a)).zip(vectors(b)) {
        l.store(o, f.sub(l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn sub_assign<F: Field>(f: F, a: &mut [u64], b: &[u64]) {
    let l = f.lanes();
    for (x, y) in vectors_mut(a).iter_mut().zip(vectors(b)) {
        l.store(x, f.sub(l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn neg_assign<F: Field>(f: F, a: &mut [u64]) {
    let l = f.lanes();
    for x in vectors_mut(a) {
        l.store(x, l.subtract_once(l.sub(f.q(), l.load(x)), f.q()));
    }
}

#[inline(always)]
pub(crate) fn mul<F: Field>(f: F, out: &mut [u64], a: &[u64], b: &[u64]) {
    let l = f.lanes();
    for ((o, x), y) in vectors_mut(out).iter_mut().zip(vectors(a)).zip(vectors(b)) {
        l.store(o, f.mul(l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn mul_assign<F: Field>(f: F, a: &mut [u64], b: &[u64]) {
    let l = f.lanes();
    for (x, y) in vectors_mut(a).iter_mut().zip(vectors(b)) {
        l.store(x, f.mul(l.load(x), l.load(y)));
    }
}

/// Asks for the vector [`AHEAD`] places after the `i`-th of each stream.
#[inline(always)]
fn ask<L: Lanes>(l: L, streams: [*const [u64; 8]; 3], i: usize) {
    for stream in streams {
        l.prefetch_near(stream.wrapping_add(i + AHEAD).cast());
    }
}

#[inline(always)]
pub(crate) fn mul_add<F: Field>(f: F, acc: &mut [u64], a: &[u64], b: &[u64]) {
    let (l, acc, a, b) = (f.lanes(), vectors_mut(acc), vectors(a), vectors(b));
    let streams = [acc.as_ptr(), a.as_ptr(), b.as_ptr()];
    for (i, ((o, x), y)) in acc.iter_mut().zip(a).zip(b).enumerate() {
        ask(l, streams, i);
        l.store(o, f.mul_add(l.load(o), l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn mul_assign_add<F: Field>(f: F, a: &mut [u64], b: &[u64], c: &[u64]) {
    let (l, a, b, c) = (f.lanes(), vectors_mut(a), vectors(b), vectors(c));
    let streams = [a.as_ptr(), b.as_ptr(), c.as_ptr()];
    for (i, ((x, y), z)) in a.iter_mut().zip(b).zip(c).enumerate() {
        ask(l, streams, i);
        l.store(x, f.mul_add(l.load(z), l.load(x), l.load(y)));
    }
}

#[inline(always)]
pub(crate) fn mul_scalar<F: Field>(f: F, a: &mut [u64], w: &Shoup) {
    let (l, w) = (f.lanes(), f.factor(w));
    for x in vectors_mut(a) {
        l.store(x, f.mul_factor(l.load(x), w));
    }
}

#[inline(always)]
pub(crate) fn mul_scalar_add<F: Field>(f: F, acc: &mut [u64], a: &[u64], w: &Shoup) {
    let (l, w) = (f.lanes(), f.factor(w));
    for (o, x) in vectors_mut(acc).iter_mut().zip(vectors(a)) {
        l.store(o, f.mul_factor_add(l.load(o), l.load(x), w));
    }
}

#[inline(always)]
pub(crate) fn sub_mul_scalar<F: Field>(f: F, a: &mut [u64], b: &[u64], w: &Shoup) {
    let (l, w) = (f.lanes(), f.factor(w));
    for (x, y) in vectors_mut(a).iter_mut().zip(vectors(b)) {
        l.store(x, f.mul_factor(l.sub(l.add(l.load(x), f.q()), l.load(y)), w));
    }
}

#[inline(always)]
pub(crate) fn reduce<F: Field>(f: F, out: &mut [u64], src: &[u64]) {
    let l = f.lanes();
    for (o, x) in vectors_mut(out).iter_mut().zip(vectors(src)) {
        l.store(o, f.reduce(l.load(x)));
    }
}

#[inline(always)]
pub(crate) fn reduce_centered<F: Field>(f: F, q: &Modulus, out: &mut [u64], src: &[u64], p: u64) {
    let l = f.lanes();
    let (half, less) = (l.splat(p / 2), l.splat(minus(q, p)));
    for (o, x) in vectors_mut(out).iter_mut().zip(vectors(src)) {
        l.store(o, f.reduce_above(l.load(x), half, less));
    }
}

#[inline(always)]
pub(crate) fn reduce_signed<F: Field>(f: F, out: &mut [u64], src: &[i64]) {
    let l = f.lanes();
    for (o, x) in vectors_mut(out).iter_mut().zip(vectors(bytemuck::cast_slice(src))) {
        l.store(o, f.reduce_signed(l.load(x)));
    }
}
