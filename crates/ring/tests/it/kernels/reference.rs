//! Transforms by the layers' definition: what every family is compared with.

use sudare_ring::order::{bit_reverse, transpose64};
use sudare_ring::{Limb, Modulus};

/// The layers of the transforms of one limb, a butterfly at a time, every value reduced.
pub struct Reference {
    q: Modulus,
    /// ψ^brv(i) and its inverse at `i`.
    twiddles: Vec<[u64; 2]>,
}

impl Reference {
    /// For the limb's prime, degree and root.
    pub fn new(limb: &Limb) -> Self {
        let (q, n) = (*limb.modulus(), limb.degree());
        let inverse = q.inv(limb.root()).unwrap();
        let mut twiddles = vec![[0; 2]; n];
        let mut powers = [1, 1];
        for i in 0..n {
            twiddles[bit_reverse(i, n.trailing_zeros())] = powers;
            powers = [q.mul(powers[0], limb.root()), q.mul(powers[1], inverse)];
        }
        Self { q, twiddles }
    }

    pub fn forward_partial(&self, a: &mut [u64], layers: u32) {
        let q = &self.q;
        for layer in 0..layers {
            let half = a.len() >> (layer + 1);
            for (i, block) in a.chunks_exact_mut(2 * half).enumerate() {
                let [w, _] = self.twiddles[(1 << layer) + i];
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let t = q.mul(*y, w);
                    (*x, *y) = (q.add(*x, t), q.sub(*x, t));
                }
            }
        }
    }

    pub fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        let q = &self.q;
        let half_of_one = q.value().div_ceil(2);
        for layer in (0..layers).rev() {
            let half = a.len() >> (layer + 1);
            for (i, block) in a.chunks_exact_mut(2 * half).enumerate() {
                let [_, w] = self.twiddles[(1 << layer) + i];
                let (low, high) = block.split_at_mut(half);
                for (x, y) in low.iter_mut().zip(high) {
                    let (sum, difference) = (q.add(*x, *y), q.mul(q.sub(*x, *y), w));
                    (*x, *y) = (q.mul(sum, half_of_one), q.mul(difference, half_of_one));
                }
            }
        }
    }

    pub fn forward(&self, a: &mut [u64]) {
        self.forward_partial(a, a.len().trailing_zeros());
        transpose(a);
    }

    pub fn inverse(&self, a: &mut [u64]) {
        transpose(a);
        self.inverse_partial(a, a.len().trailing_zeros());
    }
}

/// Every block of 64 in its other order.
fn transpose(a: &mut [u64]) {
    for i in 0..a.len() {
        let j = transpose64(i);
        if i < j {
            a.swap(i, j);
        }
    }
}
