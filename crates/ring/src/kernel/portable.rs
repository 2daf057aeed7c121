//! Kernels in plain Rust: the family of every machine.

use super::contract::{Kernels, LimbKernels, Rows, RowsMut, WordKernels};
use super::generic::roots::{inverse_root, layer_inverses, reversed_powers};
use crate::modulus::{Modulus, Shoup};
use crate::order::transpose64;

/// The family.
#[derive(Debug)]
pub(super) struct Portable;

impl Portable {
    /// Every machine has it.
    pub(super) fn detect() -> Option<Self> {
        Some(Self)
    }
}

impl Kernels for Portable {
    fn serves(&self, _q: &Modulus) -> bool {
        true
    }

    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels> {
        Box::new(PortableLimb::new(q, n, root))
    }

    fn words(&self) -> &dyn WordKernels {
        self
    }
}

impl WordKernels for Portable {}

/// One prime and its twiddles.
#[derive(Debug)]
struct PortableLimb {
    q: Modulus,
    n: usize,
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks.
    forward: Vec<Shoup>,
    /// ψ^−brv(i), in the same places.
    inverse: Vec<Shoup>,
    /// 2^−layers for every number of layers.
    layer_inverses: Vec<Shoup>,
}

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

impl PortableLimb {
    fn new(q: &Modulus, n: usize, root: u64) -> Self {
        let twiddles = |base: u64| reversed_powers(q, n, base).into_iter().map(|w| q.shoup(w)).collect();
        Self {
            q: *q,
            n,
            forward: twiddles(root),
            inverse: twiddles(inverse_root(q, n, root)),
            layer_inverses: layer_inverses(q, n).collect(),
        }
    }

    /// Cooley–Tukey layers, Harvey's lazy butterflies: in and between layers in `[0, 4q)`.
    fn forward_layers(&self, a: &mut [u64], layers: u32) {
        let (q, two_q) = (&self.q, 2 * self.q.value());
        let mut half = self.n;
        for layer in 0..layers {
            let blocks = 1usize << layer;
            half >>= 1;
            for (block, w) in a.chunks_exact_mut(2 * half).zip(&self.forward[blocks..2 * blocks]) {
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
    fn inverse_layers(&self, a: &mut [u64], layers: u32) {
        let (q, two_q) = (&self.q, 2 * self.q.value());
        for layer in (0..layers).rev() {
            let blocks = 1usize << layer;
            let half = self.n / (2 * blocks);
            for (block, w) in a.chunks_exact_mut(2 * half).zip(&self.inverse[blocks..2 * blocks]) {
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let sum = *x + *y;
                    let difference = *x + two_q - *y;
                    *x = if sum >= two_q { sum - two_q } else { sum };
                    *y = q.mul_shoup_lazy(difference, w);
                }
            }
        }
        let scale = &self.layer_inverses[layers as usize];
        a.iter_mut().for_each(|x| *x = q.mul_shoup(*x, scale));
    }

    /// `[0, 4q)` to `[0, q)`.
    fn full_reduce(&self, a: &mut [u64]) {
        let (q, two_q) = (self.q.value(), 2 * self.q.value());
        for x in a {
            let r = if *x >= two_q { *x - two_q } else { *x };
            *x = if r >= q { r - q } else { r };
        }
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

impl LimbKernels for PortableLimb {
    fn modulus(&self) -> &Modulus {
        &self.q
    }

    fn degree(&self) -> usize {
        self.n
    }

    fn forward(&self, a: &mut [u64]) {
        self.forward_layers(a, self.n.trailing_zeros());
        self.full_reduce(a);
        transpose_blocks(a);
    }

    fn inverse(&self, a: &mut [u64]) {
        transpose_blocks(a);
        self.inverse_layers(a, self.n.trailing_zeros());
    }

    fn forward_partial(&self, a: &mut [u64], layers: u32) {
        self.forward_layers(a, layers);
        self.full_reduce(a);
    }

    fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        self.inverse_layers(a, layers);
    }

    fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        let q = &self.q;
        for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
            *o = q.add(*x, *y);
        }
    }

    fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        let q = &self.q;
        for (x, y) in a.iter_mut().zip(b) {
            *x = q.add(*x, *y);
        }
    }

    fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        let q = &self.q;
        for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
            *o = q.sub(*x, *y);
        }
    }

    fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        let q = &self.q;
        for (x, y) in a.iter_mut().zip(b) {
            *x = q.sub(*x, *y);
        }
    }

    fn neg_assign(&self, a: &mut [u64]) {
        let q = &self.q;
        a.iter_mut().for_each(|x| *x = q.neg(*x));
    }

    fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        let q = &self.q;
        for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
            *o = q.mul(*x, *y);
        }
    }

    fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        let q = &self.q;
        for (x, y) in a.iter_mut().zip(b) {
            *x = q.mul(*x, *y);
        }
    }

    fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let q = &self.q;
        for ((o, x), y) in acc.iter_mut().zip(a).zip(b) {
            *o = q.reduce_u128(u128::from(*x) * u128::from(*y) + u128::from(*o));
        }
    }

    fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        let q = &self.q;
        for ((x, y), z) in a.iter_mut().zip(b).zip(c) {
            *x = q.reduce_u128(u128::from(*x) * u128::from(*y) + u128::from(*z));
        }
    }

    fn mul_scalar(&self, a: &mut [u64], w: &Shoup) {
        let q = &self.q;
        a.iter_mut().for_each(|x| *x = q.mul_shoup(*x, w));
    }

    fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup) {
        let q = &self.q;
        for (o, x) in acc.iter_mut().zip(a) {
            *o = q.add(*o, q.mul_shoup(*x, w));
        }
    }

    fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup) {
        let q = &self.q;
        for (x, y) in a.iter_mut().zip(b) {
            *x = q.mul_shoup(*x + q.value() - *y, w);
        }
    }

    fn reduce(&self, out: &mut [u64], src: &[u64]) {
        let q = &self.q;
        for (o, x) in out.iter_mut().zip(src) {
            *o = q.reduce(*x);
        }
    }

    fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64) {
        let q = &self.q;
        // x mod q, less p mod q where x stands for x − p.
        let p_mod_q = q.reduce(p);
        for (o, x) in out.iter_mut().zip(src) {
            let r = q.reduce(*x);
            *o = if *x > p / 2 { q.sub(r, p_mod_q) } else { r };
        }
    }

    fn reduce_signed(&self, out: &mut [u64], src: &[i64]) {
        let q = &self.q;
        for (o, x) in out.iter_mut().zip(src) {
            *o = q.reduce_i64(*x);
        }
    }

    fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        let q = &self.q;
        for (i, o) in out.iter_mut().enumerate() {
            *o = sum_of_products(q, a.len(), |j| u128::from(a[j][i]) * u128::from(b[j][i]));
        }
    }

    fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        let [out0, out1] = out;
        self.dot(out0, a, b0);
        self.dot(out1, a, b1);
    }

    fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], _bound_bits: u32) {
        let q = &self.q;
        for (i, o) in out.iter_mut().enumerate() {
            *o = sum_of_products(q, src.len(), |j| u128::from(src[j][i]) * u128::from(w[j]));
        }
    }

    fn gemm(&self, c: RowsMut<'_>, a: Rows<'_>, b: Rows<'_>, (m, k, n): (usize, usize, usize), accumulate: bool) {
        let q = &self.q;
        let mut sums = vec![0u128; n];
        for i in 0..m {
            let row = &mut c.words[i * c.stride..][..n];
            for (s, x) in sums.iter_mut().zip(row.iter()) {
                *s = if accumulate { u128::from(*x) } else { 0 };
            }
            for (t, x) in a.words[i * a.stride..][..k].iter().enumerate() {
                for (s, y) in sums.iter_mut().zip(&b.words[t * b.stride..][..n]) {
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
}
