//! The passes of a transform. A pass does two or three layers on as many rows in registers; passes over blocks
//! beyond the first cache come first, then each smaller block is finished. The last six layers (the first
//! six of the inverse) work on blocks of 64 values with one transposition.
//!
//! Between passes memory holds signed values as their arithmetic keeps them, beyond `[0, q)`.

use super::tables::{Sums, TAIL_LAYERS, Tables};
use super::{Constant, Signed};
use crate::kernel::contract::Source;
use crate::kernel::generic::rows::Rows;

/// A block of 64 words, as an 8×8 square.
pub(crate) type Square = [[u64; 8]; 8];

/// One that stays in the first cache between two halves of the work: with no register across two lines, wherever
/// the stack begins.
#[repr(align(64))]
struct Half(Square);

/// The squares of a slice of whole blocks of 64.
#[inline(always)]
pub(crate) fn squares(a: &mut [u64]) -> &mut [Square] {
    a.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0
}

/// Where the twiddles of the layers of a pass come from: entry `2^l − 1 + i` is that of block `i` in
/// layer `l`. (A trait, since closures cannot be told to inline.)
pub(crate) trait Twiddles<A: Signed>: Copy {
    fn at(self, f: A, i: usize) -> A::Factor;
}

impl<A: Signed> Twiddles<A> for &[A::Factor; 7] {
    #[inline(always)]
    fn at(self, _f: A, i: usize) -> A::Factor {
        self[i]
    }
}

/// A twiddle for each lane of the `part`-th register.
#[derive(Clone, Copy)]
pub(crate) struct PerLane<'a, E>(pub &'a [E; 7], pub usize);

impl<A: Signed> Twiddles<A> for PerLane<'_, <A::Constant as Constant>::Eights> {
    #[inline(always)]
    fn at(self, f: A, i: usize) -> A::Factor {
        f.per_lane(&self.0[i], self.1)
    }
}

/// The twiddles of `R` layers within block `i` of `m`, in all lanes.
#[inline(always)]
fn broadcast<A: Signed, const R: usize>(f: A, table: &[A::Constant], m: usize, i: usize) -> [A::Factor; 7] {
    let mut w = [f.splat(&table[m + i]); 7];
    for l in 0..R {
        let at = (m + i) << l;
        for (j, constant) in table[at..at + (1 << l)].iter().enumerate() {
            w[(1 << l) - 1 + j] = f.splat(constant);
        }
    }
    w
}

/// One layer: a butterfly of `x`, `y` and twiddle `t`, then for each twiddle index the pairs of rows that share
/// it; `row` is the first of a pair. Written out, so that rows stay in registers whatever the optimiser's limits on unrolling.
macro_rules! layer {
    ($v:ident, $x:ident $y:ident $t:ident $row:ident => $step:expr; $($at:literal: $($low:literal $high:literal),+;)+) => {
        $($({
            let ($x, $y, $t, $row) = ($v[$low], $v[$high], $at, $low);
            ($v[$low], $v[$high]) = $step;
        })+)+
    };
}

/// A Cooley–Tukey butterfly: `x + w·y` and `x − w·y`.
#[inline(always)]
fn fold<A: Signed>(f: A, x: A::V, y: A::V, w: A::Factor) -> (A::V, A::V) {
    let product = f.times(y, w);
    (f.add(x, product), f.sub(x, product))
}

/// `R` Cooley–Tukey layers on the first `2^R` of eight rows.
#[inline(always)]
fn forward_layers<A: Signed, const R: usize>(f: A, mut v: [A::V; 8], w: impl Twiddles<A>) -> [A::V; 8] {
    match R {
        1 => layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 0: 0 1;),
        2 => {
            layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 0: 0 2, 1 3;);
            layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 1: 0 1; 2: 2 3;);
        }
        _ => {
            layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 0: 0 4, 1 5, 2 6, 3 7;);
            layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y t _row => fold(f, x, y, w.at(f, t)); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
        }
    }
    v
}

/// A Gentleman–Sande butterfly: `x + y`, reduced or not, and `(x − y)·w`.
#[inline(always)]
fn unfold<A: Signed>(f: A, x: A::V, y: A::V, w: A::Factor, reduce: bool) -> (A::V, A::V) {
    let sum = f.add(x, y);
    (if reduce { f.reduce_sum(sum) } else { sum }, f.times(f.sub(x, y), w))
}

/// Whether a layer of an inverse pass (its first is 0) reduces the sum that `row` gets, by [`Sums`].
const fn reduced(sums: u8, layer: u32, row: u32) -> bool {
    match layer {
        0 => sums == Sums::Every as u8,
        // A sum of two products of the layer before.
        _ if row >> (layer - 1) & 1 == 1 => sums == Sums::Later as u8,
        _ => sums != Sums::Last as u8,
    }
}

/// `R` Gentleman–Sande layers; `SUMS` is one of [`Sums`].
#[inline(always)]
fn inverse_layers<A: Signed, const R: usize, const SUMS: u8>(f: A, mut v: [A::V; 8], w: impl Twiddles<A>) -> [A::V; 8] {
    match R {
        1 => layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 0, row)); 0: 0 1;),
        2 => {
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 0, row)); 1: 0 1; 2: 2 3;);
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 1, row)); 0: 0 2, 1 3;);
        }
        _ => {
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 0, row)); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 1, row)); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 2, row)); 0: 0 4, 1 5, 2 6, 3 7;);
        }
    }
    if SUMS == Sums::Last as u8 || (R == 1 && SUMS == Sums::Later as u8) {
        v[0] = f.reduce_sum(v[0]);
    }
    v
}

/// The butterfly of the very last layer, `w` for its sum and its difference; to `[0, q)`.
#[inline(always)]
fn finish<A: Signed>(f: A, x: A::V, y: A::V, w: [A::Factor; 2]) -> (A::V, A::V) {
    (f.positive(f.times(f.add(x, y), w[0])), f.positive(f.times(f.sub(x, y), w[1])))
}

/// The last inverse layers, with the factor 2^−layers (`last[0]`; `last[1]` is it times the first layer's
/// twiddle), to `[0, q)`.
#[inline(always)]
fn last_layers<A: Signed, const R: usize, const SUMS: u8>(
    f: A,
    mut v: [A::V; 8],
    w: impl Twiddles<A>,
    last: [A::Factor; 2],
) -> [A::V; 8] {
    match R {
        1 => layer!(v, x y _t _row => finish(f, x, y, last); 0: 0 1;),
        2 => {
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 0, row)); 1: 0 1; 2: 2 3;);
            layer!(v, x y _t _row => finish(f, x, y, last); 0: 0 2, 1 3;);
        }
        _ => {
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 0, row)); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
            layer!(v, x y t row => unfold(f, x, y, w.at(f, t), reduced(SUMS, 1, row)); 1: 0 2, 1 3; 2: 4 6, 5 7;);
            layer!(v, x y _t _row => finish(f, x, y, last); 0: 0 4, 1 5, 2 6, 3 7;);
        }
    }
    v
}

/// What a pass does with the words it meets.
const WORDS: u8 = 0;
pub(crate) const PLAIN: u8 = 1;
pub(crate) const REDUCED: u8 = 2;

/// `R` layers of the forward transform on the blocks `first ..` of `m`, which stand in `a`. `MODE` says whether
/// they are words as yet, or values whose first halves are to be reduced.
#[inline(always)]
fn forward_pass<A: Signed, const R: usize, const ROWS: usize, const MODE: u8>(
    f: A,
    t: &Tables<A::Constant>,
    a: &mut [u64],
    m: usize,
    first: usize,
) {
    let blocks = a.len() * m / (8 * t.forward.len());
    let stride = a.len() / blocks / ROWS;
    for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
        let w = broadcast::<A, R>(f, &t.forward, m, first + b);
        let mut rows = Rows::<ROWS>::new(block, stride);
        for k in (0..stride).step_by(8) {
            let mut columns = rows.columns::<1>(k);
            for part in 0..A::PARTS {
                let mut v = [f.zero(); 8];
                for (i, x) in v.iter_mut().enumerate().take(ROWS) {
                    *x = match MODE {
                        WORDS => f.load_words(columns.at(i, 0), part),
                        _ => f.load(columns.at(i, 0), part),
                    };
                    if MODE == REDUCED && i < ROWS / 2 {
                        *x = f.reduce(*x);
                    }
                }
                v = forward_layers::<A, R>(f, v, &w);
                for (i, x) in v.into_iter().enumerate().take(ROWS) {
                    f.store(columns.at_mut(i, 0), part, x);
                }
            }
        }
    }
}

/// A pass of any number of layers.
#[inline(always)]
pub(crate) fn forward_pass_of<A: Signed, const MODE: u8>(
    f: A,
    t: &Tables<A::Constant>,
    a: &mut [u64],
    (m, first, layers): (usize, usize, u32),
) {
    match layers {
        1 => forward_pass::<A, 1, 2, MODE>(f, t, a, m, first),
        2 => forward_pass::<A, 2, 4, MODE>(f, t, a, m, first),
        _ => forward_pass::<A, 3, 8, MODE>(f, t, a, m, first),
    }
}

/// Values of a register.
const fn lanes<A: Signed>() -> usize {
    8 / A::PARTS
}

/// Column by column what stands row by row: the registers of the `group`-th rows, one a column.
#[inline(always)]
pub(crate) fn load_columns<A: Signed>(f: A, square: &Square, group: usize) -> [A::V; 8] {
    let mut v = [f.zero(); 8];
    for part in 0..A::PARTS {
        let mut rows = [f.zero(); 8];
        for (i, x) in rows.iter_mut().enumerate().take(lanes::<A>()) {
            *x = f.load(&square[group * lanes::<A>() + i], part);
        }
        rows = f.transpose(rows);
        for i in 0..lanes::<A>() {
            v[part * lanes::<A>() + i] = rows[i];
        }
    }
    v
}

/// The way back.
#[inline(always)]
pub(crate) fn store_columns<A: Signed>(f: A, square: &mut Square, group: usize, v: [A::V; 8]) {
    for part in 0..A::PARTS {
        let mut rows = [f.zero(); 8];
        for i in 0..lanes::<A>() {
            rows[i] = v[part * lanes::<A>() + i];
        }
        rows = f.transpose(rows);
        for (i, x) in rows.into_iter().enumerate().take(lanes::<A>()) {
            f.store(&mut square[group * lanes::<A>() + i], part, x);
        }
    }
}

#[inline(always)]
fn load_rows<A: Signed>(f: A, square: &Square, part: usize) -> [A::V; 8] {
    let mut v = [f.zero(); 8];
    for (x, row) in v.iter_mut().zip(square) {
        *x = f.load(row, part);
    }
    v
}

#[inline(always)]
fn store_rows<A: Signed>(f: A, square: &mut Square, part: usize, v: [A::V; 8]) {
    for (row, x) in square.iter_mut().zip(v) {
        f.store(row, part, x);
    }
}

#[inline(always)]
fn reduce_first_half<A: Signed, const REDUCE: bool>(f: A, mut v: [A::V; 8]) -> [A::V; 8] {
    if REDUCE {
        for x in &mut v[..4] {
            *x = f.reduce(*x);
        }
    }
    v
}

/// The last six layers on the blocks of 64 from block `first` on; values to words in `[0, q)`.
#[inline(always)]
fn forward_tail<A: Signed, const REDUCE: bool>(f: A, t: &Tables<A::Constant>, a: &mut [u64], first: usize) {
    let m = t.forward_lanes.len();
    for (b, square) in squares(a).iter_mut().enumerate() {
        let w = broadcast::<A, 3>(f, &t.forward, m, first + b);
        let mut half = Half([[0u64; 8]; 8]);
        for part in 0..A::PARTS {
            let v = reduce_first_half::<A, REDUCE>(f, load_rows(f, square, part));
            store_rows(f, &mut half.0, part, forward_layers::<A, 3>(f, v, &w));
        }
        let lane = &t.forward_lanes[first + b];
        for group in 0..A::PARTS {
            let v = reduce_first_half::<A, REDUCE>(f, load_columns(f, &half.0, group));
            let v = forward_layers::<A, 3>(f, v, PerLane(lane, group));
            for (row, x) in square.iter_mut().zip(v) {
                f.store_words(row, group, f.residue(x));
            }
        }
    }
}

/// The inverse of the last six forward layers on the blocks of 64 from block `first` on; words to values.
#[inline(always)]
fn inverse_head<A: Signed, const SUMS: u8>(f: A, t: &Tables<A::Constant>, a: &mut [u64], first: usize) {
    let m = t.inverse_lanes.len();
    for (b, square) in squares(a).iter_mut().enumerate() {
        let lane = &t.inverse_lanes[first + b];
        let mut half = Half([[0u64; 8]; 8]);
        for group in 0..A::PARTS {
            let mut v = [f.zero(); 8];
            for (x, row) in v.iter_mut().zip(square.iter()) {
                *x = f.load_words(row, group);
            }
            let v = inverse_layers::<A, 3, SUMS>(f, v, PerLane(lane, group));
            store_columns(f, &mut half.0, group, v);
        }
        let w = broadcast::<A, 3>(f, &t.inverse, m, first + b);
        for part in 0..A::PARTS {
            let v = inverse_layers::<A, 3, SUMS>(f, load_rows(f, &half.0, part), &w);
            store_rows(f, square, part, v);
        }
    }
}

/// `R` layers of the inverse on the blocks `first ..` of `m`; with `LAST` those that end at the coefficients.
#[inline(always)]
fn inverse_pass<A: Signed, const R: usize, const ROWS: usize, const SUMS: u8, const LAST: bool>(
    f: A,
    t: &Tables<A::Constant>,
    a: &mut [u64],
    (m, first): (usize, usize),
    scale: &[A::Constant; 2],
) {
    let blocks = a.len() * m / (8 * t.inverse.len());
    let stride = a.len() / blocks / ROWS;
    let last = [f.splat(&scale[0]), f.splat(&scale[1])];
    for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
        let w = broadcast::<A, R>(f, &t.inverse, m, first + b);
        let mut rows = Rows::<ROWS>::new(block, stride);
        for k in (0..stride).step_by(8) {
            let mut columns = rows.columns::<1>(k);
            for part in 0..A::PARTS {
                let mut v = [f.zero(); 8];
                for (i, x) in v.iter_mut().enumerate().take(ROWS) {
                    *x = f.load(columns.at(i, 0), part);
                }
                v = if LAST {
                    last_layers::<A, R, SUMS>(f, v, &w, last)
                } else {
                    inverse_layers::<A, R, SUMS>(f, v, &w)
                };
                for (i, x) in v.into_iter().enumerate().take(ROWS) {
                    match LAST {
                        true => f.store_words(columns.at_mut(i, 0), part, x),
                        false => f.store(columns.at_mut(i, 0), part, x),
                    }
                }
            }
        }
    }
}

#[inline(always)]
pub(crate) fn inverse_pass_of<A: Signed, const SUMS: u8, const LAST: bool>(
    f: A,
    t: &Tables<A::Constant>,
    a: &mut [u64],
    at: (usize, usize),
    layers: u32,
    scale: &[A::Constant; 2],
) {
    match layers {
        1 => inverse_pass::<A, 1, 2, SUMS, LAST>(f, t, a, at, scale),
        2 => inverse_pass::<A, 2, 4, SUMS, LAST>(f, t, a, at, scale),
        _ => inverse_pass::<A, 3, 8, SUMS, LAST>(f, t, a, at, scale),
    }
}

/// The forward transform, words to words.
#[inline(always)]
pub(crate) fn forward<A: Signed>(f: A, t: &Tables<A::Constant>, a: &mut [u64]) {
    let passes = &t.passes.all;
    let outer: u32 = passes[..t.passes.outer].iter().sum();
    let (tail, chunks, n) = (passes.len(), 1usize << outer, a.len());
    // Leg 0: the passes over everything. Then each chunk is finished.
    for leg in 0..=chunks {
        let whole = leg == 0;
        let index = leg.saturating_sub(1);
        let size = if whole { n } else { n / chunks };
        let chunk = &mut a[index * size..][..size];
        let mut depth = 0;
        for (i, layers) in passes.iter().enumerate() {
            if whole == (i < t.passes.outer) {
                let first = if whole { 0 } else { index << (depth - outer) };
                let at = (1usize << depth, first, *layers);
                match (i, t.reduces[i]) {
                    (0, _) => forward_pass_of::<A, WORDS>(f, t, chunk, at),
                    (_, false) => forward_pass_of::<A, PLAIN>(f, t, chunk, at),
                    (_, true) => forward_pass_of::<A, REDUCED>(f, t, chunk, at),
                }
            }
            depth += layers;
        }
        if !whole {
            let first = index * size / 64;
            match t.reduces[tail] || t.reduces[tail + 1] {
                false => forward_tail::<A, false>(f, t, chunk, first),
                true => forward_tail::<A, true>(f, t, chunk, first),
            }
        }
    }
}

/// The inverse transform, words to words, with sums as the tables have it; of `source`, if there is one.
#[inline(always)]
pub(crate) fn inverse<A: Signed, const SUMS: u8>(
    f: A,
    t: &Tables<A::Constant>,
    a: &mut [u64],
    source: Option<Source<'_>>,
) {
    let passes = &t.passes.all;
    let outer: u32 = passes[..t.passes.outer].iter().sum();
    let (chunks, n) = (1usize << outer, a.len());
    let layers = n.trailing_zeros();
    let scale = &t.scales[layers as usize];
    // Each chunk first; the last leg is the passes over everything.
    for leg in 0..=chunks {
        let whole = leg == chunks;
        let (index, size) = if whole { (0, n) } else { (leg, n / chunks) };
        let chunk = &mut a[index * size..][..size];
        if !whole {
            if let Some(source) = &source {
                source.fill(index * size, chunk);
            }
            inverse_head::<A, SUMS>(f, t, chunk, index * size / 64);
        }
        let mut depth = layers - TAIL_LAYERS;
        for (i, layers) in passes.iter().enumerate().rev() {
            depth -= layers;
            if whole == (i < t.passes.outer) {
                let first = if whole { 0 } else { index << (depth - outer) };
                let at = (1usize << depth, first);
                match i {
                    0 => inverse_pass_of::<A, SUMS, true>(f, t, chunk, at, *layers, scale),
                    _ => inverse_pass_of::<A, SUMS, false>(f, t, chunk, at, *layers, scale),
                }
            }
        }
    }
}
