//! Transforms with two layers a pass: four words meet in registers, four products wait for one another
//! as little as may be. Values lie in `[0, 4q)` between forward layers and in `[0, 2q)` between inverse
//! ones (Harvey); `4q < 2^63`.

use super::{Factor, ScalarLimb, Word, subtract_once};
use crate::kernel::contract::Source;
use crate::order::transpose64;

/// Two words and the twiddle between them, forward.
#[inline(always)]
fn butterfly(word: Word, x: u64, y: u64, w: Factor) -> (u64, u64) {
    let (x, t) = (subtract_once(x, word.two_q), word.times_lazy(y, w));
    (x + t, x + word.two_q - t)
}

/// Two words and the twiddle between them, inverse: the sum is left in `[0, 4q)`.
#[inline(always)]
fn unfold(word: Word, x: u64, y: u64, w: Factor) -> (u64, u64) {
    (x + y, word.times_lazy(x + word.two_q - y, w))
}

/// The twiddles of two layers within block `i` of `m`: that of the outer layer, then both of the inner.
#[inline(always)]
fn three(table: &[Factor], m: usize, i: usize) -> [Factor; 3] {
    [table[m + i], table[2 * (m + i)], table[2 * (m + i) + 1]]
}

#[inline(always)]
fn forward_four(word: Word, v: [u64; 4], w: [Factor; 3]) -> [u64; 4] {
    let (a, c) = butterfly(word, v[0], v[2], w[0]);
    let (b, d) = butterfly(word, v[1], v[3], w[0]);
    let (a, b) = butterfly(word, a, b, w[1]);
    let (c, d) = butterfly(word, c, d, w[2]);
    [a, b, c, d]
}

#[inline(always)]
fn inverse_four(word: Word, v: [u64; 4], w: [Factor; 3]) -> [u64; 4] {
    let (a, b) = unfold(word, v[0], v[1], w[1]);
    let (c, d) = unfold(word, v[2], v[3], w[2]);
    let (a, c) = unfold(word, subtract_once(a, word.two_q), subtract_once(c, word.two_q), w[0]);
    let (b, d) = unfold(word, b, d, w[0]);
    [subtract_once(a, word.two_q), subtract_once(b, word.two_q), c, d]
}

/// `step` on every four words that are a quarter of `block` apart.
#[inline(always)]
fn each_four(block: &mut [u64], mut step: impl FnMut([u64; 4]) -> [u64; 4]) {
    let quarter = block.len() / 4;
    let (low, high) = block.split_at_mut(2 * quarter);
    let ((r0, r1), (r2, r3)) = (low.split_at_mut(quarter), high.split_at_mut(quarter));
    for ((a, b), (c, d)) in r0.iter_mut().zip(r1).zip(r2.iter_mut().zip(r3)) {
        [*a, *b, *c, *d] = step([*a, *b, *c, *d]);
    }
}

/// The same for each block of a length known at compile time, whose number is given to `step`.
#[inline(always)]
fn each_block<const LEN: usize>(a: &mut [u64], mut step: impl FnMut(usize, [u64; 4]) -> [u64; 4]) {
    for (i, block) in a.as_chunks_mut::<LEN>().0.iter_mut().enumerate() {
        each_four(block, |v| step(i, v));
    }
}

impl ScalarLimb {
    /// Two layers on the `m` blocks of the first.
    #[inline(always)]
    fn forward_pass(&self, word: Word, a: &mut [u64], m: usize) {
        let t = &self.forward;
        match self.n / m {
            4 => each_block::<4>(a, |i, v| forward_four(word, v, three(t, m, i))),
            16 => each_block::<16>(a, |i, v| forward_four(word, v, three(t, m, i))),
            len => {
                for (i, block) in a.chunks_exact_mut(len).enumerate() {
                    let w = three(t, m, i);
                    each_four(block, |v| forward_four(word, v, w));
                }
            }
        }
    }

    /// The first layers, to `[0, 4q)`.
    #[inline(always)]
    fn forward_layers(&self, word: Word, a: &mut [u64], layers: u32) {
        if layers % 2 == 1 {
            let (low, high) = a.split_at_mut(self.n / 2);
            for (x, y) in low.iter_mut().zip(high) {
                (*x, *y) = butterfly(word, *x, *y, self.forward[1]);
            }
        }
        for layer in (layers % 2..layers).step_by(2) {
            self.forward_pass(word, a, 1 << layer);
        }
    }

    #[inline(always)]
    fn inverse_pass(&self, word: Word, a: &mut [u64], m: usize) {
        let t = &self.inverse;
        match self.n / m {
            4 => each_block::<4>(a, |i, v| inverse_four(word, v, three(t, m, i))),
            16 => each_block::<16>(a, |i, v| inverse_four(word, v, three(t, m, i))),
            len => {
                for (i, block) in a.chunks_exact_mut(len).enumerate() {
                    let w = three(t, m, i);
                    each_four(block, |v| inverse_four(word, v, w));
                }
            }
        }
    }

    /// The inverse of the first layers, with the factor 2^−layers in the last pass; to `[0, q)`.
    #[inline(always)]
    fn inverse_layers(&self, word: Word, a: &mut [u64], layers: u32) {
        let [scale, scaled] = self.scales[layers as usize];
        if layers == 0 {
            return;
        }
        let first = if layers % 2 == 1 { 1 } else { 2 };
        for layer in (first..layers).step_by(2).rev() {
            self.inverse_pass(word, a, 1 << layer);
        }
        // The last layer's products make its residues clean, those of sums included.
        let last = |x: u64, y: u64| (word.times(x + y, scale), word.times(x + word.two_q - y, scaled));
        if first == 1 {
            let (low, high) = a.split_at_mut(self.n / 2);
            for (x, y) in low.iter_mut().zip(high) {
                (*x, *y) = last(*x, *y);
            }
        } else {
            let w = [self.inverse[2], self.inverse[3]];
            each_four(a, |v| {
                let (a, b) = unfold(word, v[0], v[1], w[0]);
                let (c, d) = unfold(word, v[2], v[3], w[1]);
                let (a, c) = last(subtract_once(a, word.two_q), subtract_once(c, word.two_q));
                let (b, d) = last(b, d);
                [a, b, c, d]
            });
        }
    }

    /// Words that go to the nearest cache together.
    const NEAR: usize = 2048;

    /// Every block of 64 in its other order, each word through `finish`.
    #[inline(always)]
    fn transpose(a: &mut [u64], finish: impl Fn(u64) -> u64) {
        for block in a.as_chunks_mut::<64>().0 {
            let rows = *block;
            for (i, x) in block.iter_mut().enumerate() {
                *x = finish(rows[transpose64(i)]);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn forward(&self, a: &mut [u64]) {
        let word = self.word();
        self.forward_layers(word, a, self.n.trailing_zeros());
        Self::transpose(a, |x| word.residue(x));
    }

    #[inline(always)]
    pub(crate) fn inverse(&self, a: &mut [u64], source: Option<Source<'_>>) {
        for (i, part) in a.chunks_mut(Self::NEAR).enumerate() {
            if let Some(source) = &source {
                source.fill(i * Self::NEAR, part);
            }
            Self::transpose(part, |x| x);
        }
        self.inverse_layers(self.word(), a, self.n.trailing_zeros());
    }

    #[inline(always)]
    pub(crate) fn forward_partial(&self, a: &mut [u64], layers: u32) {
        let word = self.word();
        self.forward_layers(word, a, layers);
        for x in a {
            *x = word.residue(*x);
        }
    }

    #[inline(always)]
    pub(crate) fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        self.inverse_layers(self.word(), a, layers);
    }
}
