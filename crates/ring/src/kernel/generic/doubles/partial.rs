//! The first layers of the transforms alone: blocks in coefficient order, every value reduced in every pass.

use super::DoubleLimb;
use super::arith::Arith;
use super::lanes::Doubles;
use crate::kernel::generic::signed::ntt::{
    PLAIN, PerLane, REDUCED, Twiddles, forward_pass_of, inverse_pass_of, load_columns, squares, store_columns,
};
use crate::kernel::generic::signed::tables::{Sums, split};

/// The first `layers ≤ 3` of three forward layers on eight rows.
#[inline(always)]
fn forward_rows<L: Doubles>(f: Arith<L>, v: &mut [L::V; 8], w: impl Twiddles<Arith<L>>, layers: u32) {
    for l in 0..layers {
        let half = 4 >> l;
        for i in 0..4 {
            let (block, x) = (i / half, i / half * 2 * half + i % half);
            let product = f.times(v[x + half], w.at(f, (1 << l) - 1 + block));
            let kept = f.reduce(v[x]);
            (v[x], v[x + half]) = (f.l.add(kept, product), f.l.sub(kept, product));
        }
    }
}

/// The way back.
#[inline(always)]
fn inverse_rows<L: Doubles>(f: Arith<L>, v: &mut [L::V; 8], w: impl Twiddles<Arith<L>>, layers: u32) {
    for l in (0..layers).rev() {
        let half = 4 >> l;
        for i in 0..4 {
            let (block, x) = (i / half, i / half * 2 * half + i % half);
            let difference = f.l.sub(v[x], v[x + half]);
            v[x] = f.reduce(f.l.add(v[x], v[x + half]));
            v[x + half] = f.times(difference, w.at(f, (1 << l) - 1 + block));
        }
    }
}

impl<L: Doubles> DoubleLimb<L> {
    /// Layers that passes over rows do, and those that are left within eights.
    #[inline(always)]
    fn parts(&self, layers: u32) -> (Vec<u32>, u32) {
        let rows = layers.min(self.n.trailing_zeros() - 3);
        (split(rows, L::RADIX as u32), layers - rows)
    }

    /// Words to values.
    #[inline(always)]
    fn enter(&self, a: &mut [u64]) {
        for eight in a.as_chunks_mut::<8>().0 {
            for part in 0..L::PARTS {
                let x = self.lanes.load_words(eight, part);
                self.lanes.store(eight, part, x);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn forward_partial(&self, a: &mut [u64], layers: u32) {
        let (f, l) = (self.arith(), self.lanes);
        let (passes, left) = self.parts(layers);
        self.enter(a);
        let mut depth = 0;
        for layers in passes {
            let at = (1usize << depth, 0, layers);
            match depth {
                0 => forward_pass_of::<_, PLAIN>(f, &self.t, a, at),
                _ => forward_pass_of::<_, REDUCED>(f, &self.t, a, at),
            }
            depth += layers;
        }
        if left > 0 {
            for (square, lane) in squares(a).iter_mut().zip(&self.t.forward_lanes) {
                for group in 0..L::PARTS {
                    let mut v = load_columns(f, square, group);
                    forward_rows(f, &mut v, PerLane(lane, group), left);
                    store_columns(f, square, group, v);
                }
            }
        }
        for eight in a.as_chunks_mut::<8>().0 {
            for part in 0..L::PARTS {
                let x = f.residue(l.load(eight, part));
                l.store_words(eight, part, x);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        let f = self.arith();
        if layers == 0 {
            return;
        }
        let (passes, left) = self.parts(layers);
        self.enter(a);
        if left > 0 {
            for (square, lane) in squares(a).iter_mut().zip(&self.t.inverse_lanes) {
                for group in 0..L::PARTS {
                    let mut v = load_columns(f, square, group);
                    inverse_rows(f, &mut v, PerLane(lane, group), left);
                    store_columns(f, square, group, v);
                }
            }
        }
        let scale = &self.t.scales[layers as usize];
        let mut depth: u32 = passes.iter().sum();
        for layers in passes.into_iter().rev() {
            depth -= layers;
            let at = (1usize << depth, 0);
            match depth {
                0 => inverse_pass_of::<_, { Sums::Later as u8 }, true>(f, &self.t, a, at, layers, scale),
                _ => inverse_pass_of::<_, { Sums::Later as u8 }, false>(f, &self.t, a, at, layers, scale),
            }
        }
    }
}
