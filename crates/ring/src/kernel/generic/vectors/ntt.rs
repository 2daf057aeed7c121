//! The number-theoretic transform on vectors of eight words, for every family with such vectors.
//!
//! A family supplies the arithmetic of a lane ([`Arithmetic`]); the passes over memory, the
//! order of reductions and the transposition are the same. A pass does up to four layers on as
//! many rows of vectors in registers; the last six layers (the first six of the inverse) work
//! on blocks of 64 values with one transposition. Passes over blocks that do not fit the L1
//! cache come first, then each smaller block is finished.
//!
//! Forward, in a layer: `x + w·y` and `x − w·y` with `y` unreduced, so values grow by one unit a
//! layer (the bound of a lazy product); [`ForwardPlan`] says when `x` is reduced. Inverse: a
//! plain 2-, 4- or 8-point transform with constant roots, then one product per value but the
//! first, so a pass takes and gives values below one unit.
//!
//! Everything here is expanded into the family's entry points, which have the processor's features.

use super::super::rows::{Columns, Rows};
use super::lanes::Lanes;
use super::tables::{ForwardPlan, InversePlan, LaneBlock, Pair, VectorTables};
use crate::kernel::contract::Source;

/// A vector of a family's lanes.
pub(crate) type V<A> = <<A as Arithmetic>::Lanes as Lanes>::V;

/// A twiddle and its quotient in every lane, or one of each for each lane.
pub(crate) type Twiddle<A> = (V<A>, V<A>);

/// Lane arithmetic modulo q of one family. A *unit* is the bound of a lazy product.
pub(crate) trait Arithmetic: Copy {
    /// The vectors.
    type Lanes: Lanes;
    /// The vectors.
    fn lanes(self) -> Self::Lanes;
    /// The unit, a multiple of q, in every lane.
    fn unit(self) -> V<Self>;
    /// `t ≡ y·w` in `[0, unit)`; `y` any value of the family's word, `w` with its quotient.
    fn mul(self, y: V<Self>, w: Twiddle<Self>) -> V<Self>;
    /// `x + t` and `x − t` for such a `t`, the latter plus a unit if `offset` says so (or `x` is
    /// known to be above one).
    fn butterfly(self, x: V<Self>, y: V<Self>, w: Twiddle<Self>, offset: bool) -> (V<Self>, V<Self>);
    /// From the widest range that a plan allows to `[0, unit)`.
    fn reduce(self, x: V<Self>) -> V<Self>;
    /// From the widest range that a plan allows to `[0, q)`, clean.
    fn finish(self, x: V<Self>) -> V<Self>;
    /// From `[0, unit)` to `[0, q)`, clean.
    fn finish_product(self, x: V<Self>) -> V<Self>;
}

const NEVER: u8 = ForwardPlan::Never as u8;
const PASS_SHIFT: u8 = ForwardPlan::PassShift as u8;
const PASS: u8 = ForwardPlan::Pass as u8;
const LAYER: u8 = ForwardPlan::Layer as u8;
const INVERSE_PASS: u8 = InversePlan::Pass as u8;
const INVERSE_LAYER: u8 = InversePlan::Layer as u8;

/// What a layer does to `x` before its butterfly.
#[derive(Clone, Copy)]
struct Layer {
    reduce: bool,
    shift: bool,
    /// Add a unit to the difference, which no shift keeps positive.
    offset: bool,
}

const fn layer_of(plan: u8, first_pass: bool, layer: usize) -> Layer {
    match plan {
        NEVER => Layer { reduce: false, shift: first_pass && layer == 0, offset: false },
        PASS_SHIFT => Layer { reduce: !first_pass && layer == 0, shift: layer == 0, offset: false },
        // Four layers from one reduction would make five units.
        PASS => Layer { reduce: layer == 3 || (!first_pass && layer == 0), shift: false, offset: true },
        _ => Layer { reduce: !first_pass || layer > 0, shift: false, offset: true },
    }
}

/// The transform of one prime. With `AHEAD`, every vector that a pass loads also asks for the cache line
/// `distance` bytes further: with nothing to ask for, for its own.
#[derive(Clone, Copy)]
pub(crate) struct Transform<A: Arithmetic, const AHEAD: bool> {
    arithmetic: A,
    shift: V<A>,
    distance: isize,
    /// What a pass adds to the distance.
    per_pass: isize,
}

#[inline(always)]
fn splat<L: Lanes>(lanes: L, pair: &Pair) -> (L::V, L::V) {
    (lanes.splat(pair[0]), lanes.splat(pair[1]))
}

#[inline(always)]
fn splat_all<L: Lanes, const COUNT: usize>(lanes: L, pairs: &[Pair]) -> [(L::V, L::V); COUNT] {
    let mut all = [splat(lanes, &[0; 2]); COUNT];
    for (wide, pair) in all.iter_mut().zip(pairs) {
        *wide = splat(lanes, pair);
    }
    all
}

/// Where the twiddles of the layers of a pass come from: entry `2^l − 1 + i` is that of block
/// `i` in layer `l`. (A trait, since closures cannot be told to inline, and a vector function
/// that is not inlined into one with the processor features is a slow one.)
trait Twiddles<L: Lanes>: Copy {
    fn at(self, lanes: L, i: usize) -> (L::V, L::V);
}

/// One twiddle for all lanes, in registers.
impl<L: Lanes, const COUNT: usize> Twiddles<L> for &[(L::V, L::V); COUNT] {
    #[inline(always)]
    fn at(self, _lanes: L, i: usize) -> (L::V, L::V) {
        self[i]
    }
}

/// One twiddle for all lanes, from the table: the entries of the three layers of a block.
#[derive(Clone, Copy)]
struct Broadcast<'a> {
    one: &'a Pair,
    two: &'a [Pair; 2],
    four: &'a [Pair; 4],
}

impl<L: Lanes> Twiddles<L> for Broadcast<'_> {
    #[inline(always)]
    fn at(self, lanes: L, i: usize) -> (L::V, L::V) {
        let pair = match i {
            0 => self.one,
            1 | 2 => &self.two[i - 1],
            _ => &self.four[i - 3],
        };
        splat(lanes, pair)
    }
}

/// A twiddle for each lane.
#[derive(Clone, Copy)]
struct PerLane<'a>(&'a LaneBlock);

impl<L: Lanes> Twiddles<L> for PerLane<'_> {
    #[inline(always)]
    fn at(self, lanes: L, i: usize) -> (L::V, L::V) {
        (lanes.load(&self.0[2 * i].0), lanes.load(&self.0[2 * i + 1].0))
    }
}

/// The negated inverses of the mirrored block's twiddles are those of the block.
#[derive(Clone, Copy)]
struct Mirrored<'a>(&'a LaneBlock);

impl<L: Lanes> Twiddles<L> for Mirrored<'_> {
    #[inline(always)]
    fn at(self, lanes: L, i: usize) -> (L::V, L::V) {
        const MIRROR: [usize; 7] = [0, 2, 1, 6, 5, 4, 3];
        let (w, quotient) = PerLane(self.0).at(lanes, MIRROR[i]);
        (lanes.reverse(w), lanes.reverse(quotient))
    }
}

/// A block of 64 words, as an 8×8 square.
type Square = [[u64; 8]; 8];

#[inline(always)]
fn load_square<L: Lanes>(lanes: L, square: &Square) -> [L::V; 8] {
    let mut v = [lanes.splat(0); 8];
    for (x, row) in v.iter_mut().zip(square) {
        *x = lanes.load(row);
    }
    v
}

#[inline(always)]
fn store_square<L: Lanes>(lanes: L, square: &mut Square, v: [L::V; 8]) {
    for (row, x) in square.iter_mut().zip(v) {
        lanes.store(row, x);
    }
}

/// The squares of a slice of whole blocks of 64.
#[inline(always)]
fn squares(a: &mut [u64]) -> &mut [Square] {
    a.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0
}

/// The butterflies of one layer: twiddle index, then the pairs of rows that share it. Written
/// out, so that rows stay in registers whatever the optimiser's limits on unrolling.
macro_rules! butterflies {
    ($kernel:expr, $v:ident, $w:ident, $layer:expr; $($t:literal: $($x:literal $y:literal),+;)+) => {{
        let (layer, lanes) = ($layer, $kernel.arithmetic.lanes());
        $($(
            for (v, w) in $v.iter_mut().zip($w) {
                (v[$x], v[$y]) = $kernel.butterfly(v[$x], v[$y], w.at(lanes, $t), layer);
            }
        )+)+
    }};
}

impl<A: Arithmetic> Transform<A, false> {
    /// The transform with the tables of `arithmetic`'s prime.
    #[inline(always)]
    pub(crate) fn new(arithmetic: A, t: &VectorTables) -> Self {
        Self { arithmetic, shift: arithmetic.lanes().splat(t.shift), distance: 0, per_pass: 0 }
    }

    /// The same, which asks for `ahead`, if there is any, to be brought near while it transforms `a`.
    #[inline(always)]
    pub(crate) fn asking(self, a: &[u64], ahead: Option<&[u8]>) -> Transform<A, true> {
        let (distance, per_pass) = match ahead {
            Some(bytes) => ((bytes.as_ptr() as isize).wrapping_sub(a.as_ptr() as isize), 8 * a.len() as isize),
            None => (0, 0),
        };
        Transform { arithmetic: self.arithmetic, shift: self.shift, distance, per_pass }
    }
}

impl<A: Arithmetic, const AHEAD: bool> Transform<A, AHEAD> {
    #[inline(always)]
    fn ask(self, address: *const u64) {
        if AHEAD {
            self.arithmetic.lanes().prefetch(address.wrapping_byte_offset(self.distance).cast());
        }
    }

    /// A vector of a pass's rows.
    #[inline(always)]
    fn load<const ROWS: usize, const C: usize>(self, columns: &Columns<'_, ROWS, C>, i: usize, c: usize) -> V<A> {
        self.ask(columns.address(i, c));
        self.arithmetic.lanes().load(columns.at(i, c))
    }

    /// A block of the last six layers.
    #[inline(always)]
    fn load_square(self, square: &Square) -> [V<A>; 8] {
        for row in square {
            self.ask(row.as_ptr());
        }
        load_square(self.arithmetic.lanes(), square)
    }

    /// One Cooley–Tukey butterfly.
    #[inline(always)]
    fn butterfly(self, x: V<A>, y: V<A>, w: Twiddle<A>, layer: Layer) -> (V<A>, V<A>) {
        let mut x = x;
        if layer.reduce {
            x = self.arithmetic.reduce(x);
        }
        if layer.shift {
            x = self.arithmetic.lanes().add(x, self.shift);
        }
        self.arithmetic.butterfly(x, y, w, layer.offset)
    }

    /// `R` layers on `ROWS` rows, of which `2^R` form a block; `C` columns side by side, so that
    /// one fills the time in which another waits for its products.
    #[inline(always)]
    fn layers<const PLAN: u8, const R: usize, const ROWS: usize, const FIRST: bool, const C: usize>(
        self,
        mut v: [[V<A>; ROWS]; C],
        w: [impl Twiddles<A::Lanes>; C],
    ) -> [[V<A>; ROWS]; C] {
        match ROWS {
            2 => butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 1;),
            4 => {
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 2, 1 3;);
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 1); 1: 0 1; 2: 2 3;);
            }
            8 => {
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 4, 1 5, 2 6, 3 7;);
                if R > 1 {
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 1); 1: 0 2, 1 3; 2: 4 6, 5 7;);
                }
                if R > 2 {
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 2); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
                }
            }
            _ => {
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 0);
                    0: 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15;);
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 1);
                    1: 0 4, 1 5, 2 6, 3 7; 2: 8 12, 9 13, 10 14, 11 15;);
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 2);
                    3: 0 2, 1 3; 4: 4 6, 5 7; 5: 8 10, 9 11; 6: 12 14, 13 15;);
                butterflies!(self, v, w, layer_of(PLAN, FIRST, 3);
                    7: 0 1; 8: 2 3; 9: 4 5; 10: 6 7; 11: 8 9; 12: 10 11; 13: 12 13; 14: 14 15;);
            }
        }
        v
    }

    /// `R` layers of the forward transform on blocks `first ..` of the `m` blocks of one layer,
    /// which stand in `a`, each `ROWS·stride` words.
    #[inline(always)]
    fn pass<const PLAN: u8, const R: usize, const ROWS: usize, const FIRST: bool, const C: usize>(
        self,
        twiddles: &[Pair],
        a: &mut [u64],
        m: usize,
        first: usize,
        stride: usize,
    ) {
        let lanes = self.arithmetic.lanes();
        for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
            let zero = [0u64; 2];
            let mut w = [zero; 16];
            for l in 0..R {
                let at = (m + first + b) << l;
                for (i, pair) in twiddles[at..at + (1 << l)].iter().enumerate() {
                    w[(1 << l) - 1 + i] = *pair;
                }
            }
            let mut wide = [splat(lanes, &zero); 16];
            for i in 0..ROWS - 1 {
                wide[i] = splat(lanes, &w[i]);
            }
            let mut rows = Rows::<ROWS>::new(block, stride);
            for k in (0..stride).step_by(8 * C) {
                let mut columns = rows.columns::<C>(k);
                let mut v = [[lanes.splat(0); ROWS]; C];
                for (c, column) in v.iter_mut().enumerate() {
                    for (i, x) in column.iter_mut().enumerate() {
                        *x = self.load(&columns, i, c);
                    }
                }
                v = self.layers::<PLAN, R, ROWS, FIRST, C>(v, [&wide; C]);
                for (c, column) in v.into_iter().enumerate() {
                    for (i, x) in column.into_iter().enumerate() {
                        lanes.store(columns.at_mut(i, c), x);
                    }
                }
            }
        }
    }

    /// The last six layers on blocks of 64 values; values to `[0, q)`.
    #[inline(always)]
    fn tail<const PLAN: u8, const C: usize>(self, t: &VectorTables, a: &mut [u64], m: usize, first: usize) {
        let lanes = self.arithmetic.lanes();
        let blocks = a.len() / 64;
        // Twiddles of C blocks at a time.
        let one = t.forward[m + first..m + first + blocks].as_chunks::<C>().0;
        let two = t.forward[2 * (m + first)..2 * (m + first + blocks)].as_chunks::<2>().0.as_chunks::<C>().0;
        let four = t.forward[4 * (m + first)..4 * (m + first + blocks)].as_chunks::<4>().0.as_chunks::<C>().0;
        let per_lane = t.forward_lanes[first..first + blocks].as_chunks::<C>().0;
        let groups = squares(a).as_chunks_mut::<C>().0;
        for ((((group, one), two), four), per_lane) in groups.iter_mut().zip(one).zip(two).zip(four).zip(per_lane) {
            let mut v = [[lanes.splat(0); 8]; C];
            let mut w = [Broadcast { one: &one[0], two: &two[0], four: &four[0] }; C];
            let mut lane = [PerLane(&per_lane[0]); C];
            for c in 0..C {
                v[c] = self.load_square(&group[c]);
                w[c] = Broadcast { one: &one[c], two: &two[c], four: &four[c] };
                lane[c] = PerLane(&per_lane[c]);
            }
            v = self.layers::<PLAN, 3, 8, false, C>(v, w);
            for column in &mut v {
                *column = lanes.transpose(*column);
            }
            v = self.layers::<PLAN, 3, 8, false, C>(v, lane);
            for (square, column) in group.iter_mut().zip(v) {
                self.finish_square(square, column);
            }
        }
    }

    /// Stores eight rows reduced to `[0, q)`.
    #[inline(always)]
    fn finish_square(self, square: &mut Square, v: [V<A>; 8]) {
        for (row, x) in square.iter_mut().zip(v) {
            self.arithmetic.lanes().store(row, self.arithmetic.finish(x));
        }
    }

    /// One pass of the radices of [`VectorTables`], over blocks of at least `C` vectors a row.
    #[inline(always)]
    fn pass_of<const PLAN: u8, const FIRST: bool, const C: usize>(
        self,
        t: &VectorTables,
        a: &mut [u64],
        m: usize,
        first: usize,
        stride: usize,
        radix: usize,
    ) {
        match radix {
            2 => self.pass::<PLAN, 2, 4, FIRST, C>(&t.forward, a, m, first, stride),
            4 => self.pass::<PLAN, 4, 16, FIRST, 1>(&t.forward, a, m, first, stride),
            _ => self.pass::<PLAN, 3, 8, FIRST, C>(&t.forward, a, m, first, stride),
        }
    }

    /// The forward transform of a whole limb, with a plan known at compile time; `C` columns side by side.
    // Each pass is expanded where it is called, and the bodies are large: one call for the first
    // pass and one for all the others keep the compiler's work small.
    #[inline(always)]
    pub(crate) fn forward<const PLAN: u8, const C: usize>(mut self, t: &VectorTables, a: &mut [u64]) {
        let n = a.len();
        let Some((&lead, rest)) = t.forward_passes.split_first() else { return };
        self.pass_of::<PLAN, true, C>(t, a, 1, 0, n >> lead, lead);
        self.distance += self.per_pass;
        let (outer, inner) = rest.split_at(t.forward_outer.saturating_sub(1));
        let outer_depth = if t.forward_outer == 0 { 0 } else { lead + outer.iter().sum::<usize>() };
        // Leg 0: the other passes over everything. Then each chunk is finished.
        for leg in 0..=1usize << outer_depth {
            let size = if leg == 0 { n } else { n >> outer_depth };
            let index = leg.saturating_sub(1);
            let chunk = &mut a[index * size..(index + 1) * size];
            let (passes, depth) = if leg == 0 { (outer, lead) } else { (inner, outer_depth.max(lead)) };
            let (mut m, mut first) = (1 << depth, index);
            let mut kernel = self;
            for &radix in passes {
                kernel.pass_of::<PLAN, false, C>(t, chunk, m, first, (n / m) >> radix, radix);
                kernel.distance += kernel.per_pass;
                m <<= radix;
                first <<= radix;
            }
            if leg > 0 {
                kernel.tail::<PLAN, C>(t, chunk, m, first);
            } else {
                self = kernel;
            }
        }
    }

    /// The first layers alone, every value reduced in every layer.
    #[inline(always)]
    pub(crate) fn forward_partial(self, t: &VectorTables, a: &mut [u64], layers: usize) {
        let lanes = self.arithmetic.lanes();
        let n = a.len();
        let rows = layers.min(n.trailing_zeros() as usize - 3);
        let mut depth = 0;
        while depth < rows {
            let radix = (rows - depth).min(3);
            let (m, stride) = (1 << depth, n >> (depth + radix));
            match radix {
                1 => self.pass::<LAYER, 1, 2, false, 1>(&t.forward, a, m, 0, stride),
                2 => self.pass::<LAYER, 2, 4, false, 1>(&t.forward, a, m, 0, stride),
                _ => self.pass::<LAYER, 3, 8, false, 1>(&t.forward, a, m, 0, stride),
            }
            depth += radix;
        }
        for (square, lane) in squares(a).iter_mut().zip(&t.forward_lanes) {
            let mut v = load_square(lanes, square);
            match layers - rows {
                0 => {}
                1 => [v] = self.layers::<LAYER, 1, 8, false, 1>([lanes.transpose(v)], [PerLane(lane)]),
                2 => [v] = self.layers::<LAYER, 2, 8, false, 1>([lanes.transpose(v)], [PerLane(lane)]),
                _ => [v] = self.layers::<LAYER, 3, 8, false, 1>([lanes.transpose(v)], [PerLane(lane)]),
            }
            if layers > rows {
                v = lanes.transpose(v);
            }
            self.finish_square(square, v);
        }
    }

    #[inline(always)]
    fn reduce_if<const C: usize>(self, x: [V<A>; C], when: bool) -> [V<A>; C] {
        let mut out = x;
        if when {
            for x in &mut out {
                *x = self.arithmetic.reduce(*x);
            }
        }
        out
    }

    /// `x + y` and `x − y + units·unit`.
    #[inline(always)]
    fn sum_difference<const C: usize>(self, x: [V<A>; C], y: [V<A>; C], units: usize) -> ([V<A>; C], [V<A>; C]) {
        let lanes = self.arithmetic.lanes();
        let unit = self.arithmetic.unit();
        let mut offset = unit;
        for _ in 1..units {
            offset = lanes.add(offset, unit);
        }
        let (mut sum, mut difference) = (x, x);
        for c in 0..C {
            sum[c] = lanes.add(x[c], y[c]);
            difference[c] = lanes.sub(lanes.add(x[c], offset), y[c]);
        }
        (sum, difference)
    }

    /// [`Arithmetic::butterfly`] of each column.
    #[inline(always)]
    fn twist<const C: usize>(self, x: [V<A>; C], y: [V<A>; C], w: Twiddle<A>, offset: bool) -> ([V<A>; C], [V<A>; C]) {
        let (mut sum, mut difference) = (x, x);
        for c in 0..C {
            (sum[c], difference[c]) = self.arithmetic.butterfly(x[c], y[c], w, offset);
        }
        (sum, difference)
    }

    /// The inverse transform of eight rows in bit-reversed order: values below one unit to sums
    /// `Σ_p v_p·σ_p^−j`, σ = 1, −1, ι, −ι, ζ, −ζ, ζι, −ζι, within the family's word; the first
    /// below one unit. `C` columns side by side, as in [`Self::layers`].
    #[inline(always)]
    fn inverse8<const PLAN: u8, const C: usize>(self, v: [[V<A>; C]; 8], roots: &[Twiddle<A>; 3]) -> [[V<A>; C]; 8] {
        // With a free hand (M ≥ 8) the differences that are `x` of a later product carry the
        // units which keep those differences positive: d0 in [2, 4) units, then e0, e1 in
        // [1, 5); d2 in [1, 3), and the difference of s in [1, 5).
        let free = PLAN == INVERSE_PASS;
        let by_layer = PLAN == INVERSE_LAYER;

        // [0, 2) units from here.
        let (s0, d0) = self.sum_difference(v[0], v[1], if free { 3 } else { 1 });
        let (s1, d1) = self.sum_difference(v[2], v[3], 1);
        let (s2, d2) = self.sum_difference(v[4], v[5], if free { 2 } else { 1 });
        let (s3, d3) = self.sum_difference(v[6], v[7], 1);

        let (s0, s1) = (self.reduce_if(s0, by_layer), self.reduce_if(s1, by_layer));
        let (s2, s3) = (self.reduce_if(s2, by_layer), self.reduce_if(s3, by_layer));
        let (d0, d2) = (self.reduce_if(d0, by_layer), self.reduce_if(d2, by_layer));
        // By layer: [0, 2) units; third: sums [0, 4), products' [0, 3).
        let gap = if by_layer { 1 } else { 2 };
        let (t0, u0) = self.sum_difference(s0, s1, if free { 3 } else { gap });
        let (t1, u1) = self.sum_difference(s2, s3, gap);
        let (e0, e1) = self.twist(d0, d1, roots[0], !free);
        let (f0, f1) = self.twist(d2, d3, roots[0], !free);

        let (t0, t1) = (self.reduce_if(t0, !free), self.reduce_if(t1, !free));
        let u0 = self.reduce_if(u0, !free);
        let (e0, e1) = (self.reduce_if(e0, by_layer), self.reduce_if(e1, by_layer));
        let (o0, o4) = self.sum_difference(t0, t1, if free { 4 } else { 1 });
        let (o2, o6) = self.twist(u0, u1, roots[0], !free);
        let (o1, o5) = self.twist(e0, f0, roots[1], !free);
        let (o3, o7) = self.twist(e1, f1, roots[2], !free);
        [self.reduce_if(o0, true), o1, o2, o3, o4, o5, o6, o7]
    }

    /// The same of four rows: σ = 1, −1, ι, −ι.
    #[inline(always)]
    fn inverse4<const PLAN: u8, const C: usize>(self, v: [[V<A>; C]; 4], roots: &[Twiddle<A>; 3]) -> [[V<A>; C]; 4] {
        let by_layer = PLAN == INVERSE_LAYER;
        let free = PLAN != INVERSE_LAYER;
        // M ≥ 4 suffices: d0 in [1, 3) units.
        let (s0, d0) = self.sum_difference(v[0], v[1], if free { 2 } else { 1 });
        let (s1, d1) = self.sum_difference(v[2], v[3], 1);
        let (s0, s1) = (self.reduce_if(s0, by_layer), self.reduce_if(s1, by_layer));
        let d0 = self.reduce_if(d0, by_layer);
        let (o0, o2) = self.sum_difference(s0, s1, if free { 2 } else { 1 });
        let (o1, o3) = self.twist(d0, d1, roots[0], !free);
        [self.reduce_if(o0, true), o1, o2, o3]
    }

    /// The product after an inverse transform of rows; `LAST` is the pass that ends at the
    /// coefficients.
    #[inline(always)]
    fn inverse_product<const LAST: bool>(self, i: usize, x: V<A>, w: Twiddle<A>) -> V<A> {
        match (i, LAST) {
            (0, false) => x,
            (_, false) => self.arithmetic.mul(x, w),
            (_, true) => self.arithmetic.finish_product(self.arithmetic.mul(x, w)),
        }
    }

    /// One pass of the inverse: blocks of `ROWS·stride` words with `ROWS` twiddles each, `C`
    /// vectors of each row at a time.
    // Rows, columns and twiddles share their indices.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn inverse_pass<const PLAN: u8, const ROWS: usize, const LAST: bool, const C: usize>(
        self,
        twiddles: &[Pair],
        roots: &[Twiddle<A>; 3],
        a: &mut [u64],
        stride: usize,
    ) {
        let lanes = self.arithmetic.lanes();
        for (block, pairs) in a.chunks_exact_mut(ROWS * stride).zip(twiddles.chunks_exact(ROWS)) {
            let w: [Twiddle<A>; ROWS] = splat_all(lanes, pairs);
            let mut rows = Rows::<ROWS>::new(block, stride);
            for k in (0..stride).step_by(8 * C) {
                let mut columns = rows.columns::<C>(k);
                let mut v = [[lanes.splat(0); C]; 8];
                for (i, row) in v.iter_mut().enumerate().take(ROWS) {
                    for (c, x) in row.iter_mut().enumerate() {
                        *x = self.load(&columns, i, c);
                    }
                }
                if ROWS == 8 {
                    v = self.inverse8::<PLAN, C>(v, roots);
                } else {
                    let [o0, o1, o2, o3] = self.inverse4::<PLAN, C>([v[0], v[1], v[2], v[3]], roots);
                    (v[0], v[1], v[2], v[3]) = (o0, o1, o2, o3);
                }
                for i in 0..ROWS {
                    for c in 0..C {
                        lanes.store(columns.at_mut(i, c), self.inverse_product::<LAST>(i, v[i][c], w[i]));
                    }
                }
            }
        }
    }

    /// The inverse of the last six forward layers; values in `[0, q)` to below one unit.
    // Rows, columns and twiddles share their indices.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn inverse_head<const PLAN: u8, const C: usize>(
        self,
        per_lane: &[LaneBlock],
        twiddles: &[Pair],
        roots: &[Twiddle<A>; 3],
        a: &mut [u64],
    ) {
        let lanes = self.arithmetic.lanes();
        let groups = squares(a).as_chunks_mut::<C>().0;
        let twiddles = twiddles.as_chunks::<8>().0.as_chunks::<C>().0;
        for ((group, per_lane), pairs) in groups.iter_mut().zip(per_lane.as_chunks::<C>().0).zip(twiddles) {
            let mut v = [[lanes.splat(0); C]; 8];
            for (i, row) in v.iter_mut().enumerate() {
                for c in 0..C {
                    self.ask(group[c][i].as_ptr());
                    row[c] = lanes.load(&group[c][i]);
                }
            }
            v = self.inverse8::<PLAN, C>(v, roots);
            for c in 0..C {
                let mut square = [v[0][c]; 8];
                for i in 1..8 {
                    square[i] = self.arithmetic.mul(v[i][c], PerLane(&per_lane[c]).at(lanes, i - 1));
                }
                square = lanes.transpose(square);
                for i in 0..8 {
                    v[i][c] = square[i];
                }
            }
            v = self.inverse8::<PLAN, C>(v, roots);
            for i in 0..8 {
                for c in 0..C {
                    let x = self.inverse_product::<false>(i, v[i][c], splat(lanes, &pairs[c][i]));
                    lanes.store(&mut group[c][i], x);
                }
            }
        }
    }

    /// The inverse transform of a whole limb, with a plan known at compile time; `C` columns side by side. Of `source`, if there is one.
    #[inline(always)]
    pub(crate) fn inverse<const PLAN: u8, const C: usize>(
        self,
        t: &VectorTables,
        a: &mut [u64],
        source: Option<Source<'_>>,
    ) {
        let n = a.len();
        let passes = t.inverse_passes;
        let roots: [Twiddle<A>; 3] = splat_all(self.arithmetic.lanes(), &t.inverse_roots);
        // Where each pass's twiddles begin: `2^R` per block.
        let mut starts = [0usize; 8];
        let mut depth = 0;
        for (i, radix) in passes.iter().enumerate() {
            starts[i + 1] = starts[i] + (1 << (depth + radix));
            depth += radix;
        }
        let outer_depth: usize = passes[..t.inverse_outer].iter().sum();
        let chunks = 1usize << outer_depth;
        // Each chunk first; the last leg is the passes over everything.
        for leg in 0..=chunks {
            let whole = leg == chunks;
            let (i, size) = if whole { (0, n) } else { (leg, n >> outer_depth) };
            let chunk = &mut a[i * size..(i + 1) * size];
            let (range, mut stride) =
                if whole { (0..t.inverse_outer, n >> outer_depth) } else { (t.inverse_outer..passes.len(), 64) };
            let mut kernel = self;
            if whole {
                kernel.distance += kernel.per_pass * (1 + passes.len() - t.inverse_outer) as isize;
            } else {
                let blocks = size / 64;
                if let Some(source) = &source {
                    source.fill(i * size, chunk);
                }
                let at = starts[passes.len()] + 8 * i * blocks;
                let per_lane = &t.inverse_lanes[i * blocks..(i + 1) * blocks];
                kernel.inverse_head::<PLAN, C>(per_lane, &t.inverse[at..at + 8 * blocks], &roots, chunk);
                kernel.distance += kernel.per_pass;
            }
            for p in range.rev() {
                let rows = 1 << passes[p];
                let twiddles = (size / (rows * stride)) * rows;
                let at = starts[p] + i * twiddles;
                kernel.inverse_pass_of::<PLAN, C>(&t.inverse[at..at + twiddles], &roots, chunk, stride, rows, p == 0);
                kernel.distance += kernel.per_pass;
                stride *= rows;
            }
        }
    }

    #[inline(always)]
    fn inverse_pass_of<const PLAN: u8, const C: usize>(
        self,
        twiddles: &[Pair],
        roots: &[Twiddle<A>; 3],
        a: &mut [u64],
        stride: usize,
        rows: usize,
        last: bool,
    ) {
        match (rows, last) {
            (8, false) => self.inverse_pass::<PLAN, 8, false, C>(twiddles, roots, a, stride),
            (8, true) => self.inverse_pass::<PLAN, 8, true, C>(twiddles, roots, a, stride),
            (_, false) => self.inverse_pass::<PLAN, 4, false, C>(twiddles, roots, a, stride),
            (_, true) => self.inverse_pass::<PLAN, 4, true, C>(twiddles, roots, a, stride),
        }
    }

    /// `R` Gentleman–Sande layers on rows, values below one unit throughout; twiddles as in
    /// [`Self::layers`], but of the negated inverses.
    #[inline(always)]
    fn inverse_layers<const R: usize, const ROWS: usize>(
        self,
        mut v: [V<A>; ROWS],
        w: impl Twiddles<A::Lanes>,
    ) -> [V<A>; ROWS] {
        for l in (0..R).rev() {
            let half = ROWS >> (l + 1);
            for block in 0..1 << l {
                let twiddle = w.at(self.arithmetic.lanes(), (1 << l) - 1 + block);
                for i in 0..half {
                    let (low, high) = (2 * half * block + i, 2 * half * block + i + half);
                    let ([sum], [difference]) = self.sum_difference([v[high]], [v[low]], 1);
                    v[low] = self.arithmetic.reduce(sum);
                    v[high] = self.arithmetic.mul(difference, twiddle);
                }
            }
        }
        v
    }

    /// `R` layers of the inverse on all `m` blocks. The inverse twiddle of block `i` is that of
    /// block `m − 1 − i` of the forward layer, negated.
    #[inline(always)]
    fn inverse_partial_pass<const R: usize, const ROWS: usize>(
        self,
        twiddles: &[Pair],
        a: &mut [u64],
        m: usize,
        stride: usize,
    ) {
        let lanes = self.arithmetic.lanes();
        for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
            let mut w = [splat(lanes, &[0, 0]); ROWS];
            for l in 0..R {
                for i in 0..1usize << l {
                    w[(1 << l) - 1 + i] = splat(lanes, &twiddles[((2 * m) << l) - 1 - ((b << l) + i)]);
                }
            }
            let mut rows = Rows::<ROWS>::new(block, stride);
            for k in (0..stride).step_by(8) {
                let mut columns = rows.columns::<1>(k);
                let mut v = [lanes.splat(0); ROWS];
                for (i, x) in v.iter_mut().enumerate() {
                    *x = lanes.load(columns.at(i, 0));
                }
                for (i, x) in self.inverse_layers::<R, ROWS>(v, &w).into_iter().enumerate() {
                    lanes.store(columns.at_mut(i, 0), x);
                }
            }
        }
    }

    /// The inverse of [`Self::forward_partial`]; `scale` is 2^−layers with the family's quotient.
    #[inline(always)]
    pub(crate) fn inverse_partial(self, t: &VectorTables, a: &mut [u64], layers: usize, scale: &Pair) {
        let lanes = self.arithmetic.lanes();
        let n = a.len();
        let rows = layers.min(n.trailing_zeros() as usize - 3);
        if layers > rows {
            for (square, lane) in squares(a).iter_mut().zip(t.forward_lanes.iter().rev()) {
                let v = lanes.transpose(load_square(lanes, square));
                let v = match layers - rows {
                    1 => self.inverse_layers::<1, 8>(v, Mirrored(lane)),
                    2 => self.inverse_layers::<2, 8>(v, Mirrored(lane)),
                    _ => self.inverse_layers::<3, 8>(v, Mirrored(lane)),
                };
                store_square(lanes, square, lanes.transpose(v));
            }
        }
        let mut depth = rows;
        while depth > 0 {
            let radix = (depth - 1) % 3 + 1;
            let stride = n >> depth;
            depth -= radix;
            match radix {
                1 => self.inverse_partial_pass::<1, 2>(&t.forward, a, 1 << depth, stride),
                2 => self.inverse_partial_pass::<2, 4>(&t.forward, a, 1 << depth, stride),
                _ => self.inverse_partial_pass::<3, 8>(&t.forward, a, 1 << depth, stride),
            }
        }
        let scale = splat(lanes, scale);
        for row in a.as_chunks_mut::<8>().0 {
            lanes.store(row, self.arithmetic.finish_product(self.arithmetic.mul(lanes.load(row), scale)));
        }
    }
}
