//! Kernels in plain Rust: the family of every other machine and the reference of the others.
//!
//! Ranges are those of the methods of [`super::Limb`] with the same names.

use super::NttTables;
use crate::modulus::{Modulus, Shoup};
use crate::order::transpose64;

/// Transposes every block of 64 values in place (see [`crate::order`]).
fn transpose_blocks(a: &mut [u64]) {
    for block in a.chunks_exact_mut(64) {
        for i in 0..64 {
            let j = transpose64(i);
            if i < j {
                block.swap(i, j);
            }
        }
    }
}

/// Cooley–Tukey layers, Harvey's lazy butterflies: in and between layers in `[0, 4q)`.
fn forward_layers(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    let two_q = 2 * q.value();
    let mut half = t.n;
    for layer in 0..layers {
        let blocks = 1usize << layer;
        half >>= 1;
        for (block, w) in a.chunks_exact_mut(2 * half).zip(&t.forward[blocks..2 * blocks]) {
            let (low, high) = block.split_at_mut(half);
            for (x, y) in low.iter_mut().zip(high) {
                let u = if *x >= two_q { *x - two_q } else { *x };
                let v = q.mul_shoup_lazy(*y, w);
                *x = u + v;
                *y = u + two_q - v;
            }
        }
    }
}

/// Gentleman–Sande layers, lazy: in and between layers in `[0, 2q)`.
fn inverse_layers(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    let two_q = 2 * q.value();
    for layer in (0..layers).rev() {
        let blocks = 1usize << layer;
        let half = t.n / (2 * blocks);
        for (block, w) in a.chunks_exact_mut(2 * half).zip(&t.inverse[blocks..2 * blocks]) {
            let (low, high) = block.split_at_mut(half);
            for (x, y) in low.iter_mut().zip(high) {
                let sum = *x + *y;
                let difference = *x + two_q - *y;
                *x = if sum >= two_q { sum - two_q } else { sum };
                *y = q.mul_shoup_lazy(difference, w);
            }
        }
    }
}

fn full_reduce(q: &Modulus, a: &mut [u64]) {
    let two_q = 2 * q.value();
    for x in a {
        let r = if *x >= two_q { *x - two_q } else { *x };
        *x = if r >= q.value() { r - q.value() } else { r };
    }
}

pub fn forward(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    forward_layers(q, t, a, t.n.trailing_zeros());
    full_reduce(q, a);
    transpose_blocks(a);
}

pub fn inverse(q: &Modulus, t: &NttTables, a: &mut [u64]) {
    transpose_blocks(a);
    inverse_layers(q, t, a, t.n.trailing_zeros());
    a.iter_mut().for_each(|x| *x = q.mul_shoup(*x, &t.n_inv));
}

pub fn forward_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    forward_layers(q, t, a, layers);
    full_reduce(q, a);
}

pub fn inverse_partial(q: &Modulus, t: &NttTables, a: &mut [u64], layers: u32) {
    inverse_layers(q, t, a, layers);
    a.iter_mut().for_each(|x| *x = q.mul_shoup(*x, &t.block_inv[layers as usize]));
}

pub fn add(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = q.add(*x, *y);
    }
}

pub fn add_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = q.add(*x, *y);
    }
}

pub fn sub(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = q.sub(*x, *y);
    }
}

pub fn sub_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = q.sub(*x, *y);
    }
}

pub fn neg_assign(q: &Modulus, a: &mut [u64]) {
    a.iter_mut().for_each(|x| *x = q.neg(*x));
}

pub fn mul(q: &Modulus, out: &mut [u64], a: &[u64], b: &[u64]) {
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = q.mul(*x, *y);
    }
}

pub fn mul_assign(q: &Modulus, a: &mut [u64], b: &[u64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = q.mul(*x, *y);
    }
}

pub fn mul_add(q: &Modulus, acc: &mut [u64], a: &[u64], b: &[u64]) {
    for ((o, x), y) in acc.iter_mut().zip(a).zip(b) {
        *o = q.reduce_u128(u128::from(*x) * u128::from(*y) + u128::from(*o));
    }
}

pub fn mul_assign_add(q: &Modulus, a: &mut [u64], b: &[u64], c: &[u64]) {
    for ((x, y), z) in a.iter_mut().zip(b).zip(c) {
        *x = q.reduce_u128(u128::from(*x) * u128::from(*y) + u128::from(*z));
    }
}

pub fn mul_scalar(q: &Modulus, a: &mut [u64], w: &Shoup) {
    a.iter_mut().for_each(|x| *x = q.mul_shoup(*x, w));
}

pub fn mul_scalar_add(q: &Modulus, acc: &mut [u64], a: &[u64], w: &Shoup) {
    for (o, x) in acc.iter_mut().zip(a) {
        *o = q.add(*o, q.mul_shoup(*x, w));
    }
}

pub fn sub_mul_scalar(q: &Modulus, a: &mut [u64], b: &[u64], w: &Shoup) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = q.mul_shoup(*x + q.value() - *y, w);
    }
}

pub fn reduce(q: &Modulus, out: &mut [u64], src: &[u64]) {
    for (o, x) in out.iter_mut().zip(src) {
        *o = q.reduce(*x);
    }
}

pub fn reduce_centered(q: &Modulus, out: &mut [u64], src: &[u64], p: u64) {
    // x mod q, less p mod q where x stands for x − p.
    let p_mod_q = q.reduce(p);
    for (o, x) in out.iter_mut().zip(src) {
        let r = q.reduce(*x);
        *o = if *x > p / 2 { q.sub(r, p_mod_q) } else { r };
    }
}

pub fn from_i64(q: &Modulus, out: &mut [u64], src: &[i64]) {
    for (o, x) in out.iter_mut().zip(src) {
        *o = q.reduce_i64(*x);
    }
}

/// Sums of products of numbers below 2^61 fit 128 bits for 64 terms; reduce in between.
const LAZY_TERMS: usize = 32;

fn sum_of_products(q: &Modulus, terms: usize, product: impl Fn(usize) -> u128) -> u64 {
    let mut total = 0u64;
    let mut start = 0;
    while start < terms {
        let end = terms.min(start + LAZY_TERMS);
        let sum = (start..end).fold(u128::from(total), |s, j| s + product(j));
        total = q.reduce_u128(sum);
        start = end;
    }
    total
}

pub fn dot(q: &Modulus, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = sum_of_products(q, a.len(), |j| u128::from(a[j][i]) * u128::from(b[j][i]));
    }
}

pub fn dot_pair(q: &Modulus, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
    let [out0, out1] = out;
    dot(q, out0, a, b0);
    dot(q, out1, a, b1);
}

pub fn combine(q: &Modulus, out: &mut [u64], src: &[&[u64]], w: &[u64], _bound_bits: u32) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = sum_of_products(q, src.len(), |j| u128::from(src[j][i]) * u128::from(w[j]));
    }
}

#[allow(clippy::too_many_arguments)]
pub fn gemm(
    q: &Modulus,
    c: &mut [u64],
    ldc: usize,
    a: &[u64],
    lda: usize,
    b: &[u64],
    ldb: usize,
    (m, k, n): (usize, usize, usize),
    accumulate: bool,
) {
    let mut sums = vec![0u128; n];
    for i in 0..m {
        let row = &mut c[i * ldc..i * ldc + n];
        for (s, x) in sums.iter_mut().zip(row.iter()) {
            *s = if accumulate { u128::from(*x) } else { 0 };
        }
        for (t, x) in a[i * lda..i * lda + k].iter().enumerate() {
            for (s, y) in sums.iter_mut().zip(&b[t * ldb..t * ldb + n]) {
                *s += u128::from(*x) * u128::from(*y);
            }
            if t % LAZY_TERMS == LAZY_TERMS - 1 {
                sums.iter_mut().for_each(|s| *s = u128::from(q.reduce_u128(*s)));
            }
        }
        for (s, x) in sums.iter().zip(row) {
            *x = q.reduce_u128(*s);
        }
    }
}
