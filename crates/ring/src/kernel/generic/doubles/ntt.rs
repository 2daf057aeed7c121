//! The transform in doubles. A pass does two or three layers on as many rows in registers; passes over blocks
//! beyond the first cache come first, then each smaller block is finished. The last six layers (the first
//! six of the inverse) work on blocks of 64 values with one transposition.
//!
//! Between passes words hold the bits of doubles: signed integers of magnitude below 2^52.

use super::DoubleLimb;
use super::arith::{Arith, Factor, Pair};
use super::lanes::{Doubles, lanes};
use super::tables::{DoubleTables, LaneBlock};
use crate::kernel::generic::rows::Rows;

/// A block of 64 words, as an 8×8 square.
pub(super) type Square = [[u64; 8]; 8];

/// One that stays in the first cache between two halves of the work: with no register across two lines, wherever
/// the stack begins.
#[repr(align(64))]
struct Half(Square);

/// The squares of a slice of whole blocks of 64.
#[inline(always)]
pub(super) fn squares(a: &mut [u64]) -> &mut [Square] {
    a.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0
}

/// Where the twiddles of the layers of a pass come from: entry `2^l − 1 + i` is that of block `i` in
/// layer `l`. (A trait, since closures cannot be told to inline.)
pub(super) trait Twiddles<L: Doubles>: Copy {
    fn at(self, f: Arith<L>, i: usize) -> Factor<L>;
}

impl<L: Doubles> Twiddles<L> for &[Factor<L>; 7] {
    #[inline(always)]
    fn at(self, _f: Arith<L>, i: usize) -> Factor<L> {
        self[i]
    }
}

/// A twiddle for each lane of the `part`-th register.
#[derive(Clone, Copy)]
pub(super) struct PerLane<'a>(pub &'a LaneBlock, pub usize);

impl<L: Doubles> Twiddles<L> for PerLane<'_> {
    #[inline(always)]
    fn at(self, f: Arith<L>, i: usize) -> Factor<L> {
        let [w, quotient] = &self.0[i];
        (f.l.load(&w.0, self.1), f.l.load(&quotient.0, self.1))
    }
}

/// The twiddles of `R` layers within block `i` of `m`, in all lanes.
#[inline(always)]
fn broadcast<L: Doubles, const R: usize>(f: Arith<L>, table: &[Pair], m: usize, i: usize) -> [Factor<L>; 7] {
    let mut w = [f.splat(&[0.0; 2]); 7];
    for l in 0..R {
        let at = (m + i) << l;
        for (j, pair) in table[at..at + (1 << l)].iter().enumerate() {
            w[(1 << l) - 1 + j] = f.splat(pair);
        }
    }
    w
}

/// One layer: a butterfly of `x`, `y` and twiddle `t`, then for each twiddle index the pairs of rows that share
/// it. Written out, so that rows stay in registers whatever the optimiser's limits on unrolling.
macro_rules! layer {
    ($v:ident, $x:ident $y:ident $t:ident => $step:expr; $($at:literal: $($low:literal $high:literal),+;)+) => {
        $($({
            let ($x, $y, $t) = ($v[$low], $v[$high], $at);
            ($v[$low], $v[$high]) = $step;
        })+)+
    };
}

/// A Cooley–Tukey butterfly: `x + w·y` and `x − w·y`.
#[inline(always)]
fn fold<L: Doubles>(f: Arith<L>, x: L::V, y: L::V, w: Factor<L>) -> (L::V, L::V) {
    let product = f.times(y, w);
    (f.l.add(x, product), f.l.sub(x, product))
}

/// `R` Cooley–Tukey layers on the first `2^R` of eight rows.
#[inline(always)]
fn forward_layers<L: Doubles, const R: usize>(f: Arith<L>, mut v: [L::V; 8], w: impl Twiddles<L>) -> [L::V; 8] {
    match R {
        1 => layer!(v, x y t => fold(f, x, y, w.at(f, t)); 0: 0 1;),
        2 => {
            layer!(v, x y t => fold(f, x, y, w.at(f, t)); 0: 0 2, 1 3;);
            layer!(v, x y t => fold(f, x, y, w.at(f, t)); 1: 0 1; 2: 2 3;);
        }
        _ => {
            layer!(v, x y t => fold(f, x, y, w.at(f, t)); 0: 0 4, 1 5, 2 6, 3 7;);
            layer!(v, x y t => fold(f, x, y, w.at(f, t)); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y t => fold(f, x, y, w.at(f, t)); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
        }
    }
    v
}

/// A Gentleman–Sande butterfly: `x + y`, reduced or not, and `(x − y)·w`.
#[inline(always)]
fn unfold<L: Doubles>(f: Arith<L>, x: L::V, y: L::V, w: Factor<L>, reduce: bool) -> (L::V, L::V) {
    let sum = f.l.add(x, y);
    (if reduce { f.reduce(sum) } else { sum }, f.times(f.l.sub(x, y), w))
}

/// `R` Gentleman–Sande layers. Sums double the bound; with `CAREFUL` they are reduced in every layer but the
/// first, without only the last one of the first row is.
#[inline(always)]
fn inverse_layers<L: Doubles, const R: usize, const CAREFUL: bool>(
    f: Arith<L>,
    mut v: [L::V; 8],
    w: impl Twiddles<L>,
) -> [L::V; 8] {
    match R {
        1 => layer!(v, x y t => unfold(f, x, y, w.at(f, t), false); 0: 0 1;),
        2 => {
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), false); 1: 0 1; 2: 2 3;);
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), CAREFUL); 0: 0 2, 1 3;);
        }
        _ => {
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), false); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), CAREFUL); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), CAREFUL); 0: 0 4, 1 5, 2 6, 3 7;);
        }
    }
    if !CAREFUL || R == 1 {
        v[0] = f.reduce(v[0]);
    }
    v
}

/// The butterfly of the very last layer, `w` for its sum and its difference; to `[0, p)`.
#[inline(always)]
fn finish<L: Doubles>(f: Arith<L>, x: L::V, y: L::V, w: [Factor<L>; 2]) -> (L::V, L::V) {
    (f.positive(f.times(f.l.add(x, y), w[0])), f.positive(f.times(f.l.sub(x, y), w[1])))
}

/// The last inverse layers, with the factor 2^−layers (`last[0]`; `last[1]` is it times the first layer's
/// twiddle), to `[0, p)`.
#[inline(always)]
fn last_layers<L: Doubles, const R: usize, const CAREFUL: bool>(
    f: Arith<L>,
    mut v: [L::V; 8],
    w: impl Twiddles<L>,
    last: [Factor<L>; 2],
) -> [L::V; 8] {
    match R {
        1 => layer!(v, x y _t => finish(f, x, y, last); 0: 0 1;),
        2 => {
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), false); 1: 0 1; 2: 2 3;);
            layer!(v, x y _t => finish(f, x, y, last); 0: 0 2, 1 3;);
        }
        _ => {
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), false); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
            layer!(v, x y t => unfold(f, x, y, w.at(f, t), CAREFUL); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y _t => finish(f, x, y, last); 0: 0 4, 1 5, 2 6, 3 7;);
        }
    }
    v
}

/// What a pass does with the words it meets.
const WORDS: u8 = 0;
pub(super) const PLAIN: u8 = 1;
pub(super) const REDUCED: u8 = 2;

/// `R` layers of the forward transform on the blocks `first ..` of `m`, which stand in `a`. `MODE` says whether
/// they are words as yet, or values whose first halves are to be reduced.
#[inline(always)]
fn forward_pass<L: Doubles, const R: usize, const ROWS: usize, const MODE: u8>(
    f: Arith<L>,
    t: &DoubleTables,
    a: &mut [u64],
    m: usize,
    first: usize,
) {
    let l = f.l;
    let blocks = a.len() * m / (8 * t.forward.len());
    let stride = a.len() / blocks / ROWS;
    for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
        let w = broadcast::<L, R>(f, &t.forward, m, first + b);
        let mut rows = Rows::<ROWS>::new(block, stride);
        for k in (0..stride).step_by(8) {
            let mut columns = rows.columns::<1>(k);
            for part in 0..L::PARTS {
                let mut v = [f.p; 8];
                for (i, x) in v.iter_mut().enumerate().take(ROWS) {
                    *x = match MODE {
                        WORDS => l.load_words(columns.at(i, 0), part),
                        _ => l.load(columns.at(i, 0), part),
                    };
                    if MODE == REDUCED && i < ROWS / 2 {
                        *x = f.reduce(*x);
                    }
                }
                v = forward_layers::<L, R>(f, v, &w);
                for (i, x) in v.into_iter().enumerate().take(ROWS) {
                    l.store(columns.at_mut(i, 0), part, x);
                }
            }
        }
    }
}

/// A pass of any number of layers.
#[inline(always)]
pub(super) fn forward_pass_of<L: Doubles, const MODE: u8>(
    f: Arith<L>,
    t: &DoubleTables,
    a: &mut [u64],
    (m, first, layers): (usize, usize, u32),
) {
    match layers {
        1 => forward_pass::<L, 1, 2, MODE>(f, t, a, m, first),
        2 => forward_pass::<L, 2, 4, MODE>(f, t, a, m, first),
        _ => forward_pass::<L, 3, 8, MODE>(f, t, a, m, first),
    }
}

/// Column by column what stands row by row: the registers of the `group`-th rows, one a column.
#[inline(always)]
pub(super) fn load_columns<L: Doubles>(l: L, square: &Square, group: usize) -> [L::V; 8] {
    let mut v = [l.splat(0.0); 8];
    for part in 0..L::PARTS {
        let mut rows = [l.splat(0.0); 8];
        for (i, x) in rows.iter_mut().enumerate().take(lanes::<L>()) {
            *x = l.load(&square[group * lanes::<L>() + i], part);
        }
        rows = l.transpose(rows);
        for i in 0..lanes::<L>() {
            v[part * lanes::<L>() + i] = rows[i];
        }
    }
    v
}

/// The way back.
#[inline(always)]
pub(super) fn store_columns<L: Doubles>(l: L, square: &mut Square, group: usize, v: [L::V; 8]) {
    for part in 0..L::PARTS {
        let mut rows = [l.splat(0.0); 8];
        for i in 0..lanes::<L>() {
            rows[i] = v[part * lanes::<L>() + i];
        }
        rows = l.transpose(rows);
        for (i, x) in rows.into_iter().enumerate().take(lanes::<L>()) {
            l.store(&mut square[group * lanes::<L>() + i], part, x);
        }
    }
}

#[inline(always)]
fn load_rows<L: Doubles>(l: L, square: &Square, part: usize) -> [L::V; 8] {
    let mut v = [l.splat(0.0); 8];
    for (x, row) in v.iter_mut().zip(square) {
        *x = l.load(row, part);
    }
    v
}

#[inline(always)]
fn store_rows<L: Doubles>(l: L, square: &mut Square, part: usize, v: [L::V; 8]) {
    for (row, x) in square.iter_mut().zip(v) {
        l.store(row, part, x);
    }
}

#[inline(always)]
fn reduce_first_half<L: Doubles, const REDUCE: bool>(f: Arith<L>, mut v: [L::V; 8]) -> [L::V; 8] {
    if REDUCE {
        for x in &mut v[..4] {
            *x = f.reduce(*x);
        }
    }
    v
}

/// The last six layers on the blocks of 64 from block `first` on; values to words in `[0, p)`.
#[inline(always)]
fn forward_tail<L: Doubles, const REDUCE: bool>(f: Arith<L>, t: &DoubleTables, a: &mut [u64], first: usize) {
    let (l, m) = (f.l, t.forward_lanes.len());
    for (b, square) in squares(a).iter_mut().enumerate() {
        let w = broadcast::<L, 3>(f, &t.forward, m, first + b);
        let mut half = Half([[0u64; 8]; 8]);
        for part in 0..L::PARTS {
            let v = reduce_first_half::<L, REDUCE>(f, load_rows(l, square, part));
            store_rows(l, &mut half.0, part, forward_layers::<L, 3>(f, v, &w));
        }
        let lane = &t.forward_lanes[first + b];
        for group in 0..L::PARTS {
            let v = reduce_first_half::<L, REDUCE>(f, load_columns(l, &half.0, group));
            let v = forward_layers::<L, 3>(f, v, PerLane(lane, group));
            for (row, x) in square.iter_mut().zip(v) {
                l.store_words(row, group, f.residue(x));
            }
        }
    }
}

/// The inverse of the last six forward layers on the blocks of 64 from block `first` on; words to values.
#[inline(always)]
fn inverse_head<L: Doubles, const CAREFUL: bool>(f: Arith<L>, t: &DoubleTables, a: &mut [u64], first: usize) {
    let (l, m) = (f.l, t.inverse_lanes.len());
    for (b, square) in squares(a).iter_mut().enumerate() {
        let lane = &t.inverse_lanes[first + b];
        let mut half = Half([[0u64; 8]; 8]);
        for group in 0..L::PARTS {
            let mut v = [f.p; 8];
            for (x, row) in v.iter_mut().zip(square.iter()) {
                *x = l.load_words(row, group);
            }
            let v = inverse_layers::<L, 3, CAREFUL>(f, v, PerLane(lane, group));
            store_columns(l, &mut half.0, group, v);
        }
        let w = broadcast::<L, 3>(f, &t.inverse, m, first + b);
        for part in 0..L::PARTS {
            let v = inverse_layers::<L, 3, CAREFUL>(f, load_rows(l, &half.0, part), &w);
            store_rows(l, square, part, v);
        }
    }
}

/// `R` layers of the inverse on the blocks `first ..` of `m`; with `LAST` those that end at the coefficients.
#[inline(always)]
fn inverse_pass<L: Doubles, const R: usize, const ROWS: usize, const CAREFUL: bool, const LAST: bool>(
    f: Arith<L>,
    t: &DoubleTables,
    a: &mut [u64],
    (m, first): (usize, usize),
    scale: &[Pair; 2],
) {
    let l = f.l;
    let blocks = a.len() * m / (8 * t.inverse.len());
    let stride = a.len() / blocks / ROWS;
    let last = [f.splat(&scale[0]), f.splat(&scale[1])];
    for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
        let w = broadcast::<L, R>(f, &t.inverse, m, first + b);
        let mut rows = Rows::<ROWS>::new(block, stride);
        for k in (0..stride).step_by(8) {
            let mut columns = rows.columns::<1>(k);
            for part in 0..L::PARTS {
                let mut v = [f.p; 8];
                for (i, x) in v.iter_mut().enumerate().take(ROWS) {
                    *x = l.load(columns.at(i, 0), part);
                }
                v = if LAST {
                    last_layers::<L, R, CAREFUL>(f, v, &w, last)
                } else {
                    inverse_layers::<L, R, CAREFUL>(f, v, &w)
                };
                for (i, x) in v.into_iter().enumerate().take(ROWS) {
                    match LAST {
                        true => l.store_words(columns.at_mut(i, 0), part, x),
                        false => l.store(columns.at_mut(i, 0), part, x),
                    }
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn inverse_pass_of<L: Doubles, const CAREFUL: bool, const LAST: bool>(
    f: Arith<L>,
    t: &DoubleTables,
    a: &mut [u64],
    at: (usize, usize),
    layers: u32,
    scale: &[Pair; 2],
) {
    match layers {
        1 => inverse_pass::<L, 1, 2, CAREFUL, LAST>(f, t, a, at, scale),
        2 => inverse_pass::<L, 2, 4, CAREFUL, LAST>(f, t, a, at, scale),
        _ => inverse_pass::<L, 3, 8, CAREFUL, LAST>(f, t, a, at, scale),
    }
}

impl<L: Doubles> DoubleLimb<L> {
    #[inline(always)]
    pub(crate) fn forward(&self, a: &mut [u64]) {
        let (f, t) = (self.arith(), &self.t);
        let passes = &t.passes.all;
        let outer: u32 = passes[..t.passes.outer].iter().sum();
        let (tail, chunks) = (passes.len(), 1usize << outer);
        // Leg 0: the passes over everything. Then each chunk is finished.
        for leg in 0..=chunks {
            let whole = leg == 0;
            let index = leg.saturating_sub(1);
            let size = if whole { self.n } else { self.n / chunks };
            let chunk = &mut a[index * size..][..size];
            let mut depth = 0;
            for (i, layers) in passes.iter().enumerate() {
                if whole == (i < t.passes.outer) {
                    let first = if whole { 0 } else { index << (depth - outer) };
                    let at = (1usize << depth, first, *layers);
                    match (i, t.reduces[i]) {
                        (0, _) => forward_pass_of::<L, WORDS>(f, t, chunk, at),
                        (_, false) => forward_pass_of::<L, PLAIN>(f, t, chunk, at),
                        (_, true) => forward_pass_of::<L, REDUCED>(f, t, chunk, at),
                    }
                }
                depth += layers;
            }
            if !whole {
                let first = index * size / 64;
                match t.reduces[tail] || t.reduces[tail + 1] {
                    false => forward_tail::<L, false>(f, t, chunk, first),
                    true => forward_tail::<L, true>(f, t, chunk, first),
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn inverse(&self, a: &mut [u64]) {
        match self.t.careful {
            false => self.inverse_by::<false>(a),
            true => self.inverse_by::<true>(a),
        }
    }

    #[inline(always)]
    fn inverse_by<const CAREFUL: bool>(&self, a: &mut [u64]) {
        let (f, t) = (self.arith(), &self.t);
        let passes = &t.passes.all;
        let outer: u32 = passes[..t.passes.outer].iter().sum();
        let chunks = 1usize << outer;
        let layers = self.n.trailing_zeros();
        let scale = &t.scales[layers as usize];
        // Each chunk first; the last leg is the passes over everything.
        for leg in 0..=chunks {
            let whole = leg == chunks;
            let (index, size) = if whole { (0, self.n) } else { (leg, self.n / chunks) };
            let chunk = &mut a[index * size..][..size];
            if !whole {
                inverse_head::<L, CAREFUL>(f, t, chunk, index * size / 64);
            }
            let mut depth = layers - super::tables::TAIL_LAYERS;
            for (i, layers) in passes.iter().enumerate().rev() {
                depth -= layers;
                if whole == (i < t.passes.outer) {
                    let first = if whole { 0 } else { index << (depth - outer) };
                    let at = (1usize << depth, first);
                    match i {
                        0 => inverse_pass_of::<L, CAREFUL, true>(f, t, chunk, at, *layers, scale),
                        _ => inverse_pass_of::<L, CAREFUL, false>(f, t, chunk, at, *layers, scale),
                    }
                }
            }
        }
    }
}
