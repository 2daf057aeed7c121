//! Inner products and combinations.

use super::DoubleLimb;
use super::arith::{Arith, Split, Sum, pair};
use super::lanes::{Doubles, Reals};
use crate::packed::{BLOCK, PackedBlocks, Width};

/// The sums of eight words, a register each for as many as there are.
type Sums<L> = [Sum<L>; 4];

/// What sums of one call have in common.
#[derive(Clone, Copy)]
struct Adder<L: Doubles> {
    f: Arith<L>,
    split: Split<L>,
}

impl<L: Doubles> Adder<L> {
    #[inline(always)]
    fn zero(&self) -> Sums<L> {
        [Sum::new(&self.split, self.f.l.splat(0.0)); 4]
    }

    /// Sums that go on from their residues.
    #[inline(always)]
    fn fold(&self, sums: &mut Sums<L>) {
        for sum in &mut sums[..L::PARTS] {
            *sum = Sum::new(&self.split, sum.reduce(self.f, &self.split));
        }
    }

    #[inline(always)]
    fn store(&self, out: &mut [u64; 8], sums: &Sums<L>) {
        for (part, sum) in sums[..L::PARTS].iter().enumerate() {
            self.f.l.store_words(out, part, self.f.positive(sum.reduce(self.f, &self.split)));
        }
    }

    /// Adds `x·y` to the sums of each second factor.
    #[inline(always)]
    fn add<const P: usize>(&self, sums: &mut [Sums<L>; P], x: &[u64; 8], y: [Registers<L>; P]) {
        let x = load(self.f.l, x);
        for (sums, y) in sums.iter_mut().zip(y) {
            for part in 0..L::PARTS {
                sums[part].add(self.f.l, x[part], y[part]);
            }
        }
    }
}

/// Eight residues, in as many registers as it takes.
type Registers<L> = [<L as Reals>::V; 4];

#[inline(always)]
fn load<L: Doubles>(l: L, words: &[u64; 8]) -> Registers<L> {
    let mut x = [l.splat(0.0); 4];
    for (part, x) in x[..L::PARTS].iter_mut().enumerate() {
        *x = l.load_words(words, part);
    }
    x
}

/// The eight words from `8·i` on.
#[inline(always)]
fn eight(row: &[u64], i: usize) -> &[u64; 8] {
    &row[8 * i..8 * i + 8].as_chunks().0[0]
}

/// Eight residues of a unit of pairs.
#[inline(always)]
fn load_packed<L: Doubles, const BYTES: usize>(l: L, unit: &[u64], v: usize) -> Registers<L> {
    if BYTES == 8 {
        return load(l, eight(unit, v));
    }
    let (low, high) = unit.split_at(BLOCK / 2);
    let low: &[u32; 8] = &bytemuck::cast_slice::<u64, u32>(low).as_chunks().0[v];
    let mut x = [l.splat(0.0); 4];
    for (part, x) in x[..L::PARTS].iter_mut().enumerate() {
        *x = match BYTES {
            5 => l.join_bytes(low, &bytemuck::cast_slice::<u64, u8>(high).as_chunks().0[v], part),
            _ => l.join_shorts(low, &bytemuck::cast_slice::<u64, u16>(high).as_chunks().0[v], part),
        };
    }
    x
}

impl<L: Doubles> DoubleLimb<L> {
    #[inline(always)]
    fn adder(&self, bits: u32) -> Adder<L> {
        let f = self.arith();
        Adder { f, split: Split::new(f, &self.q, bits) }
    }

    #[inline(always)]
    fn dots<const P: usize>(&self, out: [&mut [u64]; P], a: &[&[u64]], b: [&[&[u64]]; P]) {
        let adder = self.adder(2 * self.q.bits());
        let l = self.lanes;
        let mut out = out;
        for i in 0..out[0].len() / 8 {
            let mut sums = [adder.zero(); P];
            for (j, x) in a.iter().enumerate() {
                if j > 0 && j % adder.split.terms == 0 {
                    for sums in &mut sums {
                        adder.fold(sums);
                    }
                }
                let mut y = [[l.splat(0.0); 4]; P];
                for (y, b) in y.iter_mut().zip(b) {
                    *y = load(l, eight(b[j], i));
                }
                adder.add(&mut sums, eight(x, i), y);
            }
            for (out, sums) in out.iter_mut().zip(&sums) {
                adder.store(&mut out.as_chunks_mut::<8>().0[i], sums);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        self.dots([out], a, [b]);
    }

    #[inline(always)]
    pub(crate) fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        self.dots(out, a, [b0, b1]);
    }

    #[inline(always)]
    pub(crate) fn dot_pair_packed(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        match b.width() {
            Width::Bytes5 => self.dot_packed::<5>(out, a, b, start),
            Width::Bytes6 => self.dot_packed::<6>(out, a, b, start),
            Width::Bytes8 => self.dot_packed::<8>(out, a, b, start),
        }
    }

    #[inline(always)]
    fn dot_packed<const BYTES: usize>(
        &self,
        [out0, out1]: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        let adder = self.adder(2 * self.q.bits());
        let (l, unit) = (self.lanes, BYTES * BLOCK / 8);
        let blocks = out0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(out1.as_chunks_mut::<BLOCK>().0);
        for (at, (out0, out1)) in blocks.enumerate() {
            let units = b.block(at);
            for line in b.ahead(at).chunks(8) {
                l.prefetch(line.as_ptr().cast());
            }
            let eights = out0.as_chunks_mut::<8>().0.iter_mut().zip(out1.as_chunks_mut::<8>().0);
            for (v, (out0, out1)) in eights.enumerate() {
                let mut sums = [adder.zero(); 2];
                if let Some(start) = start {
                    for (part, sum) in sums[0][..L::PARTS].iter_mut().enumerate() {
                        *sum = Sum::new(&adder.split, l.load_words(eight(start, at * BLOCK / 8 + v), part));
                    }
                }
                for (j, (x, pair)) in a.iter().zip(units.chunks_exact(2 * unit)).enumerate() {
                    if j > 0 && j % adder.split.terms == 0 {
                        for sums in &mut sums {
                            adder.fold(sums);
                        }
                    }
                    let (y0, y1) = pair.split_at(unit);
                    let y = [load_packed::<L, BYTES>(l, y0, v), load_packed::<L, BYTES>(l, y1, v)];
                    adder.add(&mut sums, eight(x, at * BLOCK / 8 + v), y);
                }
                adder.store(out0, &sums[0]);
                adder.store(out1, &sums[1]);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
        let centered = |w: u64| pair(&self.q, w)[0];
        if bound_bits <= 52 {
            let w: Vec<[f64; 2]> = w.iter().map(|w| [centered(*w), 0.0]).collect();
            self.combine_by::<false>(out, src, &w, self.q.bits() - 1 + bound_bits);
        } else {
            // Halves of 32 bits, the upper one with a weight of its own.
            let weight = self.q.shoup(1 << 32);
            let w: Vec<[f64; 2]> = w.iter().map(|w| [centered(*w), centered(self.q.mul_shoup(*w, &weight))]).collect();
            self.combine_by::<true>(out, src, &w, self.q.bits() - 1 + 32);
        }
    }

    #[inline(always)]
    fn combine_by<const HALVES: bool>(&self, out: &mut [u64], src: &[&[u64]], w: &[[f64; 2]], bits: u32) {
        let adder = self.adder(bits);
        let l = self.lanes;
        let terms = if HALVES { (adder.split.terms / 2).max(1) } else { adder.split.terms };
        for (i, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mut sums = adder.zero();
            for (j, (x, w)) in src.iter().zip(w).enumerate() {
                if j > 0 && j % terms == 0 {
                    adder.fold(&mut sums);
                }
                let (x, w, upper_w) = (eight(x, i), l.splat(w[0]), l.splat(w[1]));
                for (part, sum) in sums[..L::PARTS].iter_mut().enumerate() {
                    if HALVES {
                        let [upper, lower] = l.load_halves(x, part);
                        sum.add(l, upper, upper_w);
                        sum.add(l, lower, w);
                    } else {
                        sum.add(l, l.load_words(x, part), w);
                    }
                }
            }
            adder.store(out, &sums);
        }
    }
}
